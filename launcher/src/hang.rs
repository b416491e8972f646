//! Finds out whether a running job hangs.
//!
//! ```text
//!  oversight       when the launcher looks at the ranks and asks for their queues
//!  watch           deadlock: the job cannot go on; stall: it has not gone on for a time
//!  idle            which threads only their own process wakes
//!  standstill      notes on jobs that may hang
//!  observe         what the ranks and their processes do, for a report
//! ```

mod idle;
pub(crate) mod observe;
pub(crate) mod oversight;
pub(crate) mod standstill;
pub(crate) mod watch;

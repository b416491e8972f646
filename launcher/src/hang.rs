//! Jobs that hang: what the launcher sees of ranks that run, and what it concludes from that.
//!
//! ```text
//!  oversight       when they are looked at, and asked
//!  watch           whether they can go on: deadlock, and stall
//!  idle            threads that only their own process wakes
//!  standstill      whether they seem not to
//!  observe         what the ranks and their processes do, for a report
//! ```

mod idle;
pub(crate) mod observe;
pub(crate) mod oversight;
pub(crate) mod standstill;
pub(crate) mod watch;

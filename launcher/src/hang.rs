//! Finds out whether a running job hangs.
//!
//! ```text
//!  watcher       when the launcher looks at the ranks and asks for their queues
//!  watch           deadlock: the job cannot go on; stall: it has not gone on for a time
//!  agreement       the same in a job of several hosts, from what agents tell
//!  pauses          stalls and standstills of such a job
//!  host_watch      what an agent tells
//!  idle            which threads only their own process wakes
//!  standstill      notes on jobs that may hang
//!  observe         what the ranks and their processes do
//!  snapshot        the state of all ranks at one moment, for a report
//!  gathering       that of ranks of several hosts, as their agents tell it
//! ```

mod agreement;
mod gathering;
pub(crate) mod host_watch;
mod idle;
pub(crate) mod observe;
mod pauses;
pub(crate) mod snapshot;
pub(crate) mod standstill;
pub(crate) mod watch;
pub(crate) mod watcher;

//! Settings of a rank, and figures about how its messages travel. Most programs need none of them: `mpjrun` and the
//! environment choose the settings.
//!
//! - [`Options`] are the settings of ranks that are threads, for [`local::run_with`](crate::local::run_with):
//!   [`BackendChoice`] selects eager or rendezvous messages, [`WaitMode`] how a rank waits.
//! - [`Stats`] counts what a rank has sent, received and copied: see [`Communicator::stats`](crate::Communicator::stats).
//! - [`Table`] and [`Step`] say which [`Protocol`] a message takes: see
//!   [`Communicator::table`](crate::Communicator::table) and
//!   [`Communicator::thresholds`](crate::Communicator::thresholds).
//! - [`Pages`] is what memory of [`alloc_buffer`](crate::alloc_buffer) lies on.

pub use mpjdev::{BackendChoice, Options, Protocol, ProtocolStats, Stats, Step, Table, WaitMode};

pub use crate::memory::Pages;

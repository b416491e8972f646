//! The typed layer, as programs use it, with ranks that are threads, in part also processes on several hosts.
//!
//! Every job runs under a watchdog, whose failure shows the dumps of all ranks.

#[path = "typed/all.rs"]
mod all;
#[path = "typed/job.rs"]
mod job;
#[path = "typed/over_hosts.rs"]
mod over_hosts;

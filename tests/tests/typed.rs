//! The typed layer, as programs use it, with ranks that are threads.
//!
//! Every job runs under a watchdog, whose failure shows the dumps of all ranks.

#[path = "typed/all.rs"]
mod all;
#[path = "../../mpj/tests/job/mod.rs"]
mod job;

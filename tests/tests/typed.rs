//! The typed layer, as programs use it, with ranks that are threads, in part also processes on several hosts.
//!
//! Every job runs under a watchdog, whose failure shows the dumps of all ranks.

#[path = "typed/all.rs"]
mod all;
#[path = "typed/job.rs"]
mod job;
#[path = "typed/over_hosts.rs"]
mod over_hosts;

/// The last test of a rank, by its name.
#[test]
#[ignore = "for ranks on several hosts"]
fn zz_a_rank_leaves() {
    assert_ne!(job::leave(), 0, "there are tests for such jobs");
}

//! Runs the tests of a suite once more, with ranks that are processes on several hosts. Every rank runs the program of the
//! suite, so all of them run the same tests in the same order, one after the other. A test takes part in the jobs that
//! have as many ranks and the same options as its own, in place of its threads.

use std::env::current_exe;

use mpj_harness::{Hosts, launch, mpjrun_path, skip};

/// Parts of names of tests that do not run over hosts, with the reason.
pub type LeftOut = [(&'static str, &'static str)];

/// The tests of the typed layer that do not run over hosts.
pub const TYPED: &LeftOut = &[
    ("all::failures::", ENDS),
    ("a_panic_with_an_open_send", ENDS),
    ("a_request_after_the_end", ENDS),
    ("futures_that_nobody_finishes", ENDS),
    (
        "a_progress_thread_carries_out_what_was_started",
        "its ranks meet without a call of the library",
    ),
    ("waits_for_functions_at_work_on_its_buffers", ENDS),
    ("attributes_of_the_rank_alone_go_first_when_the_world_ends", ENDS),
    ("a_delete_callback_that_fails_keeps_no_rank_from_leaving", ENDS),
    (
        "a_rank_that_has_left_a_barrier_need_not_make_progress",
        "a rank has to learn without a call of the library that another one has left the barrier",
    ),
    ("a_world_ends_after_calls_between_communicators_and_contexts", ENDS),
    ("a_world_ends_after_the_last_call", ENDS),
    ("calls_to_a_lost_rank_fail", ENDS),
    ("a_rank_that_panics_ends_fences", ENDS),
    ("long_data_in_huge_pages_are_fetched", "pages count where ranks read each other's memory"),
    ("over_hosts::", HERE),
];

/// The tests of collectives that do not run over hosts.
pub const COLLECTIVE: &LeftOut = &[
    ("errors::a_lost_member", ENDS),
    ("a_host_combines_its_own_operands_first", "it says which ranks share a host"),
    ("grids::neighbours_share_a_host", "it says which ranks share a host"),
    ("each_two_values_together", CASES),
    ("some_of_them_over_channels", CASES),
    ("cases_of_chance", CASES),
    ("the_product_of", CASES),
    ("the_case_that_is_asked_for", CASES),
    ("over_hosts::", HERE),
];

const ENDS: &str = "ranks that fail or leave would end the job of the other tests";
const CASES: &str =
    "all cases run over hosts in the test `several_hosts`, and with other numbers of ranks";
const HERE: &str = "it starts these jobs";

/// Runs jobs, each with its number of ranks, the ranks of each host, and options: all tests pass on every rank.
///
/// # Panics
/// When a job fails, or a rank of it takes part in no test.
#[track_caller]
pub fn pass(jobs: &[(usize, &str, &[&str])], left_out: &LeftOut) {
    if let Err(reason) = mpj_doubles::fabric::fabric() {
        return skip(reason);
    }
    let Some(hosts) = Hosts::open(3) else { return };
    let tests = current_exe().expect("a test knows its own path");
    for (ranks, on, options) in jobs {
        let job = hosts.on("node1", mpjrun_path()).options(["--hosts", on]).options(*options);
        let job = job.args([&tests]).args(["--include-ignored", "--test-threads=1"]);
        let job = job.args(left_out.iter().flat_map(|(name, _)| ["--skip", name])).expect(0);
        let passed = job.stdout.matches("\ntest result: ok. ").count();
        assert_eq!(passed, *ranks, "all ranks say so: {}", job.stdout);
    }
}

/// Checks that the tests which are left out exist.
///
/// # Panics
/// When one does not.
#[track_caller]
pub fn are_there(left_out: &LeftOut) {
    let tests = current_exe().expect("a test knows its own path");
    let told = launch(tests).ranks(1).args(["--list"]).expect_quiet();
    for (name, reason) in left_out {
        assert!(told.stdout.contains(name), "{name}: {reason}");
    }
}

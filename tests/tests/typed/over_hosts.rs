//! The tests of the typed layer once more, with ranks that are processes on several hosts: every rank runs this program, so
//! all of them run the same tests in the same order, one after the other. A test takes part in the jobs that have as many
//! ranks and the same options as its own.

use mpj_harness::{Hosts, launch, mpjrun_path, skip};

use crate::job;

/// Parts of names of tests that do not run over hosts, with the reason.
const LEFT_OUT: [(&str, &str); 8] = [
    ("all::failures::", "ranks that fail or end their worlds would end those of the other tests"),
    ("a_panic_with_an_open_send", "likewise"),
    ("a_request_after_the_end", "likewise"),
    ("waits_for_functions_at_work_on_its_buffers", "likewise"),
    ("attributes_of_the_rank_alone_go_first_when_the_world_ends", "likewise"),
    ("a_delete_callback_that_fails_keeps_no_rank_from_leaving", "likewise"),
    (
        "a_rank_that_has_left_a_barrier_need_not_make_progress",
        "a rank learns that another one has left a barrier without a call of the library, from its memory",
    ),
    (
        "long_data_in_huge_pages_are_fetched",
        "pages matter only where ranks read each other's memory",
    ),
];
/// Numbers of ranks, how many of them are on each host, and options.
const JOBS: [(usize, &str, &[&str]); 8] = [
    (2, "node1,node2", &[]),
    (2, "node1,node2", &["--contexts", "2"]),
    (2, "node1,node2", &["--backend", "eager"]),
    (2, "node1,node2", &["--backend", "rendezvous"]),
    (3, "node1,node2,node3", &[]),
    (4, "node1:2,node2:2", &[]),
    (5, "node1:3,node2:2", &[]),
    (6, "node1:2,node2:2,node3:2", &["--map-by", "node"]),
];
/// The last test of a rank.
const END: &str = "over_hosts::zz_a_rank_leaves";

#[test]
fn tests_pass_over_hosts() {
    if let Err(reason) = mpj_doubles::fabric::fabric() {
        return skip(reason);
    }
    let Some(hosts) = Hosts::open(3) else { return };
    let test = std::env::current_exe().expect("a test knows its own path");
    for (ranks, on, options) in JOBS {
        let job = hosts.on("node1", mpjrun_path()).options(["--hosts", on]).options(options);
        let job = job.args([&test]).args(["all::", END, "--include-ignored", "--test-threads=1"]);
        let job = job.args(LEFT_OUT.iter().flat_map(|(name, _)| ["--skip", name])).expect(0);
        let passed = job.stdout.matches("\ntest result: ok. ").count();
        assert_eq!(passed, ranks, "all ranks say so: {}", job.stdout);
    }
}

/// So that the list becomes shorter when a test is renamed or removed.
#[test]
fn what_is_left_out_is_there() {
    let test = std::env::current_exe().expect("a test knows its own path");
    let told = launch(test).ranks(1).args(["--list"]).expect_quiet();
    for (name, reason) in LEFT_OUT {
        assert!(told.stdout.contains(name), "{name}: {reason}");
    }
}

/// Its name makes it the last one.
#[test]
#[ignore = "for the ranks of the test above"]
fn zz_a_rank_leaves() {
    assert_ne!(job::finish(), 0, "there are tests for such jobs");
}

//! The tests of some modules once more, with ranks that are processes on two and on three hosts: every rank runs this
//! program, so all of them run the same tests in the same order.

use mpj_harness::{Hosts, mpjrun_path, skip};

use crate::job;

const MODULES: [&str; 4] = ["all::arrays", "all::elements", "all::interleaved", "all::scopes"];
/// Parts of names of tests that compare answers of ranks or fail on purpose.
const LEFT_OUT: [&str; 4] = [
    "bits_of_numbers_that_are_none",
    "more_bytes_than_memory_has_are_refused",
    "panic",
    "waiting_inside_gives_the_borrow_back",
];
/// The last test of a rank.
const END: &str = "over_hosts::zz_a_rank_leaves";

#[test]
fn tests_pass_over_hosts() {
    if let Err(reason) = mpj_doubles::fabric::fabric() {
        return skip(reason);
    }
    let test = std::env::current_exe().expect("a test knows its own path");
    for (count, each) in [(2, 1), (3, 1), (2, 2)] {
        let Some(hosts) = Hosts::open(count) else { return };
        let names: Vec<String> = hosts.names().map(|name| format!("{name}:{each}")).collect();
        let job = hosts.on("node1", mpjrun_path()).options(["--hosts", &names.join(",")]);
        let job =
            job.args([&test]).args(MODULES).args([END, "--include-ignored", "--test-threads=1"]);
        let job = job.args(LEFT_OUT.iter().flat_map(|name| ["--skip", name])).expect(0);
        let passed = job.stdout.matches("\ntest result: ok. ").count();
        assert_eq!(passed, count * each, "all ranks say so: {}", job.stdout);
    }
}

/// Its name makes it the last one.
#[test]
#[ignore = "for the ranks of the test above"]
fn zz_a_rank_leaves() {
    assert!(job::finish(), "this is no rank");
}

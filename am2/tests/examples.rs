//! The example programs run, as two threads and as processes under the launcher.

use mpj_harness::{command, example, launch};

#[test]
fn ping_between_threads_and_between_processes() {
    let ping = example("ping");
    let rows = |outcome: mpj_harness::Outcome| outcome.stdout.lines().count();
    assert_eq!(rows(command(&ping).args(["20"]).expect(0)), 16);
    assert_eq!(rows(launch(&ping).ranks(2).args(["20"]).expect(0)), 16);
    assert_eq!(rows(launch(&ping).ranks(3).args(["20"]).expect(0)), 16);
}

#[test]
fn bulk_between_threads_and_between_processes() {
    let bulk = example("bulk");
    let rows = |outcome: mpj_harness::Outcome| outcome.stdout.lines().count();
    assert_eq!(rows(command(&bulk).args(["1"]).expect(0)), 8);
    assert_eq!(rows(launch(&bulk).ranks(2).args(["1"]).expect(0)), 8);
}

/// There are 303 primes below 2,000.
#[test]
fn two_clients_in_one_process() {
    let program = example("beside_mpj");
    for outcome in [command(&program).expect_quiet(), launch(&program).ranks(3).expect_quiet()] {
        assert_eq!(outcome.stdout, "303 primes below 2000\n");
    }
}

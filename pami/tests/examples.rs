//! The example programs run, as two threads and as processes under the launcher.

use mpj_harness::{command, example, launch};

#[test]
fn there_and_back_between_threads_and_between_processes() {
    let program = example("there_and_back");
    let rows = |outcome: mpj_harness::Outcome| outcome.stdout.lines().count();
    assert_eq!(rows(command(&program).args(["20"]).expect(0)), 10);
    assert_eq!(rows(launch(&program).ranks(3).args(["20"]).expect(0)), 10);
}

#[test]
fn rate_with_one_to_three_contexts() {
    let rate = example("rate");
    let rows = |outcome: mpj_harness::Outcome| outcome.stdout.lines().count();
    assert_eq!(rows(command(&rate).args(["2000"]).expect(0)), 3);
    assert_eq!(rows(launch(&rate).ranks(2).args(["2000"]).expect(0)), 3);
}

#[test]
fn a_selection_table_changes_the_algorithm_at_its_bounds() {
    let ranges = example("ranges");
    let expected = "    0 bytes  Eager
   99 bytes  Eager
  100 bytes  Eager
  101 bytes  Rendezvous
  999 bytes  Rendezvous
 1000 bytes  Rendezvous
 1001 bytes  Eager
 2000 bytes  Eager
 2001 bytes  2001 bytes are above the last range of the association, which ends at 2000; let it end at u64::MAX
    0 bytes  Broadcast by binomial
  100 bytes  Broadcast by binomial
  101 bytes  Broadcast by scatter_allgather
 1000 bytes  Broadcast by scatter_allgather
 1001 bytes  Broadcast by binomial
";
    for outcome in [command(&ranges).expect_quiet(), launch(&ranges).ranks(2).expect_quiet()] {
        assert_eq!(outcome.stdout, expected);
    }
}

#[test]
fn a_collective_by_algorithms_that_the_program_chooses() {
    let program = example("by_name");
    for outcome in [command(&program).expect_quiet(), launch(&program).ranks(4).expect_quiet()] {
        let lines: Vec<_> = outcome.stdout.lines().collect();
        let [unfit, doubling, halving, best] = lines[..] else { panic!("{lines:?}") };
        assert_eq!(unfit, "Allreduce by hosts does not fit: all members are on one host");
        assert!(doubling.starts_with("Allreduce by doubling, 65536 bytes: "), "{doubling}");
        assert!(halving.starts_with("Allreduce by halving, 65536 bytes: "), "{halving}");
        assert!(best.starts_with("the best: Allreduce by "), "{best}");
    }
}

#[test]
fn what_was_chosen_is_printed_by_stats() {
    let told = launch(example("ranges")).ranks(2).options(["--stats"]).expect(0);
    told.says("mpjrun: Broadcast by binomial was chosen 6 times\n")
        .says("mpjrun: Broadcast by scatter_allgather was chosen 4 times\n")
        .says("mpjrun: Send by rendezvous was chosen ");
}

#[test]
fn three_clients_in_one_process() {
    let program = example("beside_others");
    let alone = command(&program).args(["500"]).expect_quiet();
    assert_eq!(alone.stdout, "each of 1000 messages came once\n");
    let three = launch(&program).ranks(3).args(["500"]).expect_quiet();
    assert_eq!(three.stdout, "each of 3000 messages came once\n");
}

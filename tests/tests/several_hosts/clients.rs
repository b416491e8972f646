//! Several clients in one process, in jobs of several hosts: their endpoints meet when they join.

use super::{CLIENTS, job, open};

#[test]
fn clients_of_several_hosts_meet() {
    for (count, each, fanout) in [(2, 2, "16"), (3, 1, "1")] {
        let Some(hosts) = open(count) else { return };
        let size = count * each;
        let job = job(&hosts, each, CLIENTS).options(["--agent-fanout", fanout]);
        let told = job.options(["--contexts", "2"]).args(["exchange", "am2,mpj,own"]);
        let expected: Vec<String> =
            (0..size).map(|rank| format!("rank {rank} of {size}")).collect();
        assert_eq!(told.expect_quiet().sorted_lines(), expected);
        assert_eq!(hosts.remains(), [""; 0]);
    }
}

/// Ranks of one host find it out themselves, and those of several are told by `mpjrun`.
#[test]
fn ranks_that_join_in_different_orders_are_told_so() {
    let Some(hosts) = open(2) else { return };
    let outcome = job(&hosts, 1, CLIENTS).args(["order"]).expect(125);
    // Either rank may have been the first to say where its client is.
    let ways = [
        "joins the job as other, where rank 0 joins as own: all ranks join",
        "joins the job as own, where rank 1 joins as other: all ranks join",
    ];
    assert!(ways.iter().any(|way| outcome.stderr.contains(way)), "{outcome:?}");
    assert_eq!(hosts.remains(), [""; 0]);
}

#[test]
fn a_rank_that_works_in_another_client_is_left_alone() {
    let Some(hosts) = open(2) else { return };
    job(&hosts, 1, CLIENTS).options(["--look-every", "0.001"]).args(["busy"]).expect_quiet();
    let outcome = job(&hosts, 1, CLIENTS).args(["stuck"]).expect(125);
    outcome.says("mpjrun: deadlock").says("a call of am2");
}

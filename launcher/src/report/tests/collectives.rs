//! Collective calls: who has come, who has not, and who makes another one.

use super::*;

/// The communicator that the ranks of these jobs call `rows`: number 3.
const ROWS: u32 = 7;

/// A rank in this call on a communicator, by its context, with this number, in the round for `peer`.
fn within(call: Call, context: u32, number: i32, peer: impl Into<Option<u32>>) -> Wait {
    Wait { call: call.into(), operation: call.into(), space: on(context), ..recv(peer, number) }
}

/// A rank that waits for a non-blocking call.
fn begun(operation: Call, context: u32, number: i32) -> Wait {
    let (call, phase) = (Call::Wait.into(), Phase::Unknown);
    Wait { call, phase, open: 1, ..within(operation, context, number, None) }
}

fn report(job: &ExitLog, waits: &[Wait]) -> String {
    found_in(job, &waiting(waits.iter().copied()))
}

#[test]
fn who_has_not_come_to_a_collective_call_is_named() {
    let mut job = joined(7);
    tells(&mut job, 2, ROWS, "rows", &[0, 2, 4, 6]);
    job.ended(6, Ending::Code(0), ms(800));
    let allreduce = begun(Call::Allreduce, ROWS, 17);
    let blocking = within(Call::Allreduce, ROWS, 17, 0);
    let other = recv(None, 1);
    let told = report(&job, &[blocking, other, blocking, other, recv(2, 5), other, other]);
    let line = "mpjrun:   allreduce, call 17 on communicator 3 \"rows\" (ranks 0, 2, 4, 6): \
                ranks 0, 2 have come; rank 4 has not; rank 6 has not (joined, exited with code 0)\n";
    assert!(told.ends_with(line), "{told}");
    let cycle = "mpjrun:   cycle: 2 waits for 4 (allreduce on communicator 3) -> \
                 4 waits for 2 (recv tag 5) -> 2\n";
    assert!(told.starts_with(cycle), "{told}");
    let told =
        report(&job, &[allreduce, other, allreduce, other, recv(5, 5), recv(None, 3), other]);
    assert!(
        told.contains("0 waits for 4 (wait: allreduce on communicator 3) -> 4 waits"),
        "{told}"
    );
}

#[test]
fn calls_that_are_started_do_not_match_those_that_wait() {
    let begun = begun(Call::Allreduce, 1, 17);
    let waiting = within(Call::Allreduce, 1, 17, 0);
    let told = report(&joined(3), &[begun, waiting, begun]);
    let line = "mpjrun:   ranks call different collectives, call 17 on world: ranks 0, 2 iallreduce, rank 1 allreduce: \
                all ranks of a communicator must make the same collective calls in the same order\n";
    assert!(told.contains(line), "{told}");
}

/// Two communicators may have the same context if no rank is in both.
#[test]
fn communicators_without_a_common_rank_are_apart() {
    let mut job = joined(5);
    tells(&mut job, 0, ROWS, "low", &[0, 1, 4]);
    tells(&mut job, 3, ROWS, "high", &[2, 3]);
    let bcast = within(Call::Bcast, ROWS, 4, None);
    let told = report(&job, &[bcast, recv(None, 1), recv(None, 2), bcast, recv(None, 9)]);
    for line in [
        "bcast, call 4 on communicator 3 \"high\" (ranks 2-3): rank 3 has come; \
         rank 2 has not (recv tag 2 from any rank)\n",
        "bcast, call 4 on communicator 3 \"low\" (ranks 0-1, 4): rank 0 has come; \
         rank 1 has not; rank 4 has not (recv tag 9 from any rank)\n",
    ] {
        assert!(told.contains(line), "{told}");
    }
}

#[test]
fn where_the_members_are_not_known_nobody_is_missed() {
    let told =
        report(&joined(3), &[within(Call::Gather, ROWS, 2, None), recv(None, 1), recv(None, 1)]);
    let line = "mpjrun:   gather, call 2 on communicator 3: rank 0 has come; \
                who else belongs to it is not known\n";
    assert!(told.ends_with(line), "{told}");
}

#[test]
fn different_calls_with_one_number_are_told() {
    let rule =
        "all ranks of a communicator must make the same collective calls in the same order\n";
    let calls = [
        within(Call::Bcast, 1, 3, None),
        begun(Call::Reduce, 1, 3),
        within(Call::Reduce, 1, 3, 0),
        recv(None, 3),
    ];
    let told = report(&joined(4), &calls);
    let line = format!(
        "mpjrun:   ranks call different collectives, call 3 on world: rank 0 bcast, rank 1 ireduce, rank 2 reduce; \
         rank 3 has not come: {rule}"
    );
    assert!(told.ends_with(&line), "{told}");
    let told = report(&joined(2), &[within(Call::Dup, 1, 3, 1), barrier(0, 1)]);
    assert!(!told.contains("different"), "of another communicator: {told}");
    let told = report(&joined(2), &[within(Call::Dup, 1, 3, 1), within(Call::Dup, 1, 4, 0)]);
    assert!(!told.contains("different"), "of another number: {told}");
}

#[test]
fn who_is_in_a_later_call_has_gone_on() {
    let scan = within(Call::Scan, 1, 0, 1);
    let later = within(Call::Allgather, 1, 1, 0);
    let last = within(Call::Alltoall, 1, (1 << 30) - 1, 0);
    let told = report(&joined(3), &[scan, later, last]);
    let line = "mpjrun:   scan, call 0 on world: rank 0 has come; \
                rank 1 has gone on to call 1 (allgather); rank 2 has not";
    assert!(told.contains(line), "{told}");
    let line = "mpjrun:   alltoall, call 1073741823 on world: rank 2 has come; \
                rank 0 has gone on to call 0 (scan); rank 1 has gone on to call 1 (allgather)\n";
    assert!(told.contains(line), "{told}");
}

/// Two ranks come to two communicators in opposite order.
#[test]
fn calls_on_two_communicators_in_opposite_order_are_a_cycle() {
    let mut job = joined(2);
    let both = [(5, "left"), (7, "right")]
        .map(|(context, name)| SpaceMembers::new(on(context), name, vec![0, 1]));
    let queues = Queues { spaces: both.to_vec(), ..Queues::default() };
    job.note(0, ControlMessage::Queues { context: 0, queues }, ms(900));
    let told = report(&job, &[begun(Call::Allreduce, 5, 8), within(Call::Alltoallv, 7, 2, 0)]);
    let cycle = "mpjrun:   cycle: 0 waits for 1 (wait: allreduce on communicator 2) -> \
                 1 waits for 0 (alltoallv on communicator 3) -> 0\n";
    assert_eq!(told, cycle, "of two ranks that says all");
}

/// A leaf of a broadcast waits for its root, not for other leaves.
#[test]
fn rooted_calls_wait_for_their_peers_only() {
    let leaf = within(Call::Bcast, 1, 0, 0);
    let told = report(&joined(3), &[recv(None, 1), leaf, recv(1, 5)]);
    let chain = "mpjrun:   chain: 2 waits for 1 (recv tag 5) -> 1 waits for 0 (bcast) -> \
                 0 waits for any rank (recv tag 1)\n";
    assert!(told.starts_with(chain), "{told}");
}

#[test]
fn the_table_names_the_operation_of_a_wait() {
    let all = Wait { call: Call::WaitAll.into(), open: 3, ..begun(Call::Allreduce, 1, 9) };
    let snapshot =
        waiting([all, within(Call::ReduceScatterBlock, 1, 9, 0), within(Call::Bcast, 1, 9, 1)]);
    let expected = "\
mpjrun:   ranks  blocked in                   peer    tag  communicator  bytes  phase                       seconds
mpjrun:   0      waitall (3 open): allreduce  others    -  world             -  others have not come there  0.50
mpjrun:   1      reduce_scatter_block         others    -  world             -  others have not come there  0.50
mpjrun:   2      bcast                        rank 1    -  world             8  no message has come         0.50
";
    let shown = on_request(&joined(3), &snapshot);
    assert!(shown.contains(expected), "{shown}");
}

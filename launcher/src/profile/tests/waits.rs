//! Which calls wait, for whom, and how long.

use super::*;

/// Late senders or receivers: who was late, who waited, how often, how many seconds in all, and the longest.
fn late(rows: &[Late]) -> Vec<(usize, usize, u64, u64, u64)> {
    let row =
        |late: &Late| (late.late, late.waiting, late.times, late.waited / S, late.longest / S);
    rows.iter().map(row).collect()
}

#[test]
fn a_receive_waits_for_a_send_that_begins_later() {
    let receiver = vec![recv(1, 4, 1, 7), recv(6, 9, 1, 8)];
    let profile = Profile::of(&trace(vec![receiver, vec![send(3, 4, 0, 7), send(5, 6, 0, 8)]]));
    assert_eq!(late(&profile.late_senders), [(1, 0, 1, 2, 2)]);
    assert_eq!(late(&profile.late_receivers), []);
    let waited: Vec<u64> = profile.ranks.iter().map(|rank| rank.waited / S).collect();
    assert_eq!(waited, [2, 0]);
}

#[test]
fn waits_for_the_same_rank_are_added_up() {
    let receiver = vec![recv(1, 4, 1, 7), recv(6, 12, 1, 8)];
    let sender = vec![send(3, 4, 0, 7), send(11, 12, 0, 8)];
    let profile = Profile::of(&trace(vec![receiver, sender]));
    assert_eq!(late(&profile.late_senders), [(1, 0, 2, 7, 5)]);
}

#[test]
fn a_send_waits_for_a_receive_only_if_it_still_goes_on() {
    let sender = vec![send(0, 6, 1, 7), send(7, 8, 1, 8)];
    let profile = Profile::of(&trace(vec![sender, vec![recv(5, 6, 0, 7), recv(20, 21, 0, 8)]]));
    assert_eq!(late(&profile.late_receivers), [(1, 0, 1, 5, 5)]);
    assert_eq!(late(&profile.late_senders), []);
}

/// A call that starts what another one waits for.
fn started(name: &str, call: Call) -> Call {
    Call { name: name.into(), ..call }
}

/// Says in which call of rank 0 a message was received.
fn received_in(collected: &mut Collected, number: u64, call: usize) {
    let flow = collected.flows.iter_mut().find(|flow| flow.number == number);
    flow.expect("it is a message").to = CallAt { rank: 0, thread: 0, call };
}

#[test]
fn what_was_started_is_waited_for_in_the_wait() {
    let receiver = vec![
        started("MPI_Irecv", recv(0, 1, 1, 7)),
        started("MPI_Irecv", recv(1, 2, 2, 8)),
        call("MPI_Waitall", Kind::Wait, 4, 10),
    ];
    let mut collected = trace(vec![receiver, vec![send(6, 7, 0, 7)], vec![send(9, 10, 0, 8)]]);
    [7, 8].iter().for_each(|number| received_in(&mut collected, *number, 2));
    let profile = Profile::of(&collected);
    assert_eq!(late(&profile.late_senders), [(2, 0, 1, 5, 5)], "for the last one");
    assert_eq!(&*profile.late_senders[0].site.name, "MPI_Waitall");
}

#[test]
fn a_wait_is_for_receives_rather_than_for_sends_that_have_ended() {
    let rank = vec![
        started("isend", send(0, 1, 1, 7)),
        started("irecv", recv(1, 2, 2, 8)),
        call("waitall", Kind::Wait, 2, 9),
    ];
    let mut collected = trace(vec![rank, vec![recv(8, 9, 0, 7)], vec![send(6, 7, 0, 8)]]);
    received_in(&mut collected, 8, 2);
    let profile = Profile::of(&collected);
    assert_eq!(late(&profile.late_senders), [(2, 0, 1, 4, 4)]);
    assert_eq!(late(&profile.late_receivers), []);
    let alone = vec![started("isend", send(0, 1, 1, 7)), call("wait", Kind::Wait, 2, 9)];
    let profile = Profile::of(&trace(vec![alone, vec![recv(8, 9, 0, 7)]]));
    assert_eq!(late(&profile.late_receivers), [(1, 0, 1, 6, 6)], "long messages wait for theirs");
}

#[test]
fn a_wait_that_names_its_message_waits_for_that() {
    let wait = Call { message: Some(7), ..call("wait", Kind::Wait, 2, 5) };
    let started = Call { name: "irecv".into(), ..recv(0, 1, 1, 7) };
    let profile = Profile::of(&trace(vec![vec![started, wait], vec![send(4, 5, 0, 7)]]));
    assert_eq!(late(&profile.late_senders), [(1, 0, 1, 2, 2)]);
}

#[test]
fn a_probe_waits_for_the_message_that_is_received_behind_it() {
    let probe = Call { peer: Some(1), tag: Some(1), ..call("probe", Kind::Probe, 1, 6) };
    let profile = Profile::of(&trace(vec![vec![probe, recv(6, 7, 1, 7)], vec![send(5, 6, 0, 7)]]));
    assert_eq!(late(&profile.late_senders), [(1, 0, 1, 4, 4)]);
    assert_eq!(&*profile.late_senders[0].site.name, "probe");
}

#[test]
fn an_exchange_waits_for_the_other_one() {
    let exchange = |start, end, peer, message| {
        let call = call("sendrecv", Kind::Exchange, start, end);
        Call { peer: Some(peer), message: Some(message), bytes: 16, ..call }
    };
    let mut collected = trace(vec![vec![exchange(1, 6, 1, 7)], vec![exchange(5, 6, 0, 8)]]);
    let [first, second] = [0, 1].map(|rank| CallAt { rank, thread: 0, call: 0 });
    let flow = |number, from, to| Flow { number, from, to };
    collected.flows = vec![flow(7, second, first), flow(8, first, second)];
    let profile = Profile::of(&collected);
    assert_eq!(late(&profile.late_senders), [(1, 0, 1, 4, 4)]);
    let pairs: Vec<_> = profile.traffic.pairs.keys().copied().collect();
    assert_eq!(pairs, [(0, 1), (1, 0)]);
}

#[test]
fn a_collective_call_waits_for_the_last_rank() {
    let ranks = vec![
        vec![collective(1, 6, 0), collective(7, 9, 1)],
        vec![collective(2, 6, 0), collective(8, 9, 1)],
        vec![collective(5, 6, 0), collective(7, 9, 1)],
    ];
    let profile = Profile::of(&trace(ranks));
    let [one] = &profile.collectives[..] else { panic!("{:?}", profile.collectives) };
    assert_eq!((one.calls, one.waited / S, one.longest / S), (2, 4 + 3 + 1 + 1, 4));
    assert_eq!(one.usual_last(), Some((1, 1)), "as often as rank 2, and the lower number");
    assert_eq!(one.longest_waiting(), Some((0, 5 * S)));
    let by_rank: Vec<u64> = one.by_rank.values().map(|nanos| nanos / S).collect();
    assert_eq!(by_rank, [5, 3, 1]);
    assert_eq!(charges(&profile.direct), [(0, 1, 1), (0, 2, 4), (1, 2, 3), (2, 1, 1)]);
}

/// Two communicators one after the other, the second with the number of the first, and one without the first rank.
#[test]
fn calls_of_a_number_that_was_given_again_are_others() {
    let ranks = vec![
        vec![collective(1, 3, 0), collective(10, 13, 0)],
        vec![collective(2, 3, 0), collective(12, 13, 0), collective(20, 23, 0)],
        vec![collective(2, 3, 0), collective(12, 13, 0), collective(22, 23, 0)],
    ];
    let profile = Profile::of(&trace(ranks));
    assert_eq!((profile.collectives[0].calls, profile.collectives[0].waited / S), (3, 1 + 2 + 2));
    assert_eq!(charges(&profile.direct), [(0, 2, 3), (1, 2, 2)]);
}

#[test]
fn a_rank_that_needs_only_some_others_waits_for_these() {
    // A broadcast: the root goes on at once, a leaf waits for the root, and not for the other leaf.
    let ranks =
        vec![vec![collective(4, 5, 0)], vec![collective(1, 5, 0)], vec![collective(8, 9, 0)]];
    let profile = Profile::of(&trace(ranks));
    assert_eq!(charges(&profile.direct), [(1, 0, 3)]);
}

#[test]
fn a_collective_call_that_was_started_is_waited_for_in_the_wait() {
    let started = |call: Call| Call { name: "MPI_Ibarrier".into(), ..call };
    let ranks = vec![
        vec![started(collective(0, 1, 0)), call("MPI_Wait", Kind::Wait, 3, 8)],
        vec![started(collective(7, 8, 0)), call("MPI_Wait", Kind::Wait, 8, 9)],
    ];
    let profile = Profile::of(&trace(ranks));
    assert_eq!(charges(&profile.direct), [(0, 1, 4)]);
    assert_eq!(profile.collectives[0].waited, 4 * S);
}

#[test]
fn ranks_wait_for_each_other_at_the_end() {
    let end = |start| vec![call("MPI_Finalize", Kind::Other, start, 9)];
    let profile = Profile::of(&trace(vec![end(2), end(8), end(5)]));
    assert_eq!(charges(&profile.causes), [(0, 1, 6), (2, 1, 3)]);
    assert_eq!(
        (&*profile.collectives[0].key.name, profile.collectives[0].calls),
        ("MPI_Finalize", 1)
    );
}

#[test]
fn a_call_without_an_end_goes_on_until_the_job_ends() {
    let open = |call: Call| Call { end: None, ..call };
    let ranks = vec![vec![open(recv(1, 1, 1, 7))], vec![send(5, 8, 0, 7)]];
    let profile = Profile::of(&trace(ranks));
    assert_eq!((profile.end, profile.ranks[0].in_calls), (8 * S, 7 * S));
    assert_eq!(late(&profile.late_senders), [(1, 0, 1, 4, 4)]);
}

#[test]
fn nobody_waits_for_itself_or_for_ranks_that_are_not_there() {
    let rank = vec![recv(1, 4, 0, 7), send(3, 4, 0, 7), recv(5, 6, 9, 8), send(7, 8, 9, 9)];
    let profile = Profile::of(&trace(vec![rank]));
    assert_eq!((profile.waited(), profile.direct.len()), (0, 0));
    assert_eq!(profile.traffic.elsewhere.messages, 1);
}

//! Cycles, chains, near misses and queues.

use super::*;

#[test]
fn a_cycle_is_told_step_by_step() {
    let cycle = "mpjrun:   cycle: 0 waits for 1 (recv tag 7) -> 1 waits for 0 (recv tag 9) -> 0\n";
    assert_eq!(found(&[recv(1, 7), recv(0, 9)]), cycle);
    let ring: Vec<Wait> = (0..5).map(|rank| recv((rank + 4) % 5, 3)).collect();
    let cycle = "mpjrun:   cycle: 0 waits for 4 (recv tag 3) -> 4 waits for 3 (recv tag 3) -> \
                 3 waits for 2 (recv tag 3) -> 2 waits for 1 (recv tag 3) -> \
                 1 waits for 0 (recv tag 3) -> 0\n";
    assert_eq!(found(&ring), cycle);
    let itself = "mpjrun:   cycle: 0 waits for 0 (recv any tag) -> 0\n";
    assert_eq!(found(&[recv(0, None)]), itself);
}

#[test]
fn a_long_cycle_has_a_gap() {
    let ring: Vec<Wait> = (0..256).map(|rank| recv((rank + 1) % 256, 3)).collect();
    let found = found(&ring);
    assert!(found.contains("7 waits for 8 (recv tag 3) -> ... (242 more) ... -> 250"), "{found}");
    assert!(found.ends_with("255 waits for 0 (recv tag 3) -> 0\n"), "{found}");
}

#[test]
fn calls_of_several_operations_and_of_all_ranks_are_named_in_cycles() {
    let all = Wait { call: Call::WaitAll.into(), open: 2, space: on(4), ..recv(1, 7) };
    let barrier = Wait { tag: Some(-1), ..barrier(0, 0) };
    let expected = "mpjrun:   cycle: 0 waits for 1 (waitall: recv tag 7 on communicator 2) -> \
                    1 waits for 0 (barrier) -> 0\n";
    assert_eq!(found(&[all, barrier]), expected);
    let collective = Wait { space: on(1), ..recv(1, 7) };
    let expected = "mpjrun:   cycle: 0 waits for 1 (recv of a collective call) -> \
                    1 waits for 0 (finish) -> 0\n\
                    mpjrun:   finish: rank 1 has come (at the end of main, or out of it by an error, \
                    which is printed only after the World is dropped)\n";
    assert_eq!(found(&[collective, finishing()]), expected);
}

#[test]
fn a_chain_says_what_stands_at_its_end() {
    let chain =
        "mpjrun:   chain: 0 waits for 1 (recv tag 7) -> 1 waits for any rank (recv tag 9)\n";
    assert_eq!(found(&[recv(1, 7), recv(None, 9)]), chain);
    let computing = snapshot([state(&[recv(1, 7)]), state(&[])]);
    let chain = "mpjrun:   chain: 0 waits for 1 (recv tag 7) -> \
                 1 (awake)\n";
    assert_eq!(found_in(&joined(2), &computing), chain);
    let mut job = joined(2);
    finish(&mut job, 1);
    job.ended(1, Ending::Code(0), ms(3));
    let chain = "mpjrun:   chain: 0 waits for 1 (recv tag 7) -> 1 (finished, exited with code 0)\n";
    assert_eq!(found_in(&job, &waiting([recv(1, 7), recv(0, 7)])), chain);
}

#[test]
fn who_has_not_come_to_a_barrier_is_named() {
    let told = found(&[barrier(3, 0), barrier(0, 0), recv(None, 7), barrier(2, 0)]);
    let line = "mpjrun:   barrier, call 0 on world: ranks 0-1, 3 have come; rank 2 has not (recv tag 7 from any rank)\n";
    assert_eq!(told, line, "nobody waits for his neighbour in the round");
    let told = found(&[barrier(3, 0), barrier(0, 0), recv(0, 7), barrier(2, 0)]);
    let expected = "\
mpjrun:   cycle: 0 waits for 2 (barrier) -> 2 waits for 0 (recv tag 7) -> 0
mpjrun:   barrier, call 0 on world: ranks 0-1, 3 have come; rank 2 has not
";
    assert_eq!(told, expected);
    let mut job = joined(4);
    tells(&mut job, 0, 5, "", &[0, 1, 2, 3]);
    let mut awake = waiting([barrier(1, 2), recv(1, 7), recv(1, 7), recv(1, 7)]);
    awake.ranks[1] = Seen::from(Some(state(&[])));
    awake.activities = vec![None, Some(Activity::Computing)];
    let expected = "\
mpjrun:   chain: 0 waits for 2 (barrier on communicator 2) -> 2 waits for 1 (recv tag 7) -> \
1 (awake)
mpjrun:   barrier, call 0 on communicator 2: rank 0 has come; ranks 1-2 have not; rank 3 has not (recv tag 7 from rank 1)
";
    assert_eq!(found_in(&job, &awake), expected);
}

#[test]
fn barriers_that_exclude_each_other_are_a_cycle() {
    let cycle = "mpjrun:   cycle: 0 waits for 1 (barrier) -> 1 waits for 0 (barrier on communicator 1) -> 0\n";
    let mut job = joined(2);
    tells(&mut job, 1, 3, "", &[0, 1]);
    assert_eq!(found_in(&job, &waiting([barrier(1, 0), barrier(0, 1)])), cycle);
    let complete = "mpjrun:   cycle: 0 waits for 1 (barrier) -> 1 waits for 0 (barrier) -> 0\n";
    assert_eq!(found(&[barrier(1, 0), barrier(0, 0)]), complete, "as of a moment before its end");
}

#[test]
fn who_has_not_come_to_the_end_is_named() {
    let line = "mpjrun:   finish: ranks 1-2 have come (at the end of main, or out of it by an error, \
                which is printed only after the World is dropped); rank 0 has not (recv any tag from any \
                rank)\n";
    assert_eq!(found(&[recv(None, None), finishing(), finishing()]), line);
    let mut slow = waiting([finishing(), finishing(), finishing(), finishing()]);
    slow.ranks[1] = Seen::from(Some(state(&[])));
    slow.ranks[3] = Seen::from(Some(state(&[])));
    slow.activities = vec![None, Some(Activity::Sleeping), None, Some(Activity::Computing)];
    let line = "mpjrun:   finish: ranks 0, 2 have come (at the end of main, or out of it by an error, which is \
                printed only after the World is dropped); rank 1 has not (asleep outside of MPI); rank 3 has \
                not (awake)\n";
    assert_eq!(found_in(&joined(4), &slow), line);
}

#[test]
fn gatherings_and_those_who_have_not_come_are_counted() {
    let waits = (0..40).map(|rank| match rank % 2 {
        0 => barrier(0, rank),
        _ => Wait { tag: Some(rank as i32), ..recv(None, None) },
    });
    let told = found(&waits.collect::<Vec<_>>());
    assert_eq!(told.matches("   barrier, call 0 on").count(), 4, "{told}");
    let more = "mpjrun:   and 16 more collective calls that are not complete\n";
    assert!(told.ends_with(more), "{told}");
    assert!(told.lines().all(|line| line.matches(" not").count() <= 5), "{told}");
}

#[test]
fn a_rank_that_stands_still_waits_for_nobody() {
    let mut snapshot = waiting([recv(1, 7), recv(0, 9)]);
    snapshot.activities = vec![None, Some(Activity::Stopped)];
    let chain = "mpjrun:   chain: 0 waits for 1 (recv tag 7) -> \
                 1 (stopped by a signal)\n";
    assert_eq!(found_in(&joined(2), &snapshot), chain);
    let gone = {
        let mut job = joined(2);
        job.ended(1, Ending::Code(1), ms(900));
        job
    };
    let chain = "mpjrun:   chain: 0 waits for 1 (recv tag 7) -> 1 (joined, exited with code 1)\n";
    assert_eq!(found_in(&gone, &snapshot), chain, "the number may be another process's now");
}

#[test]
fn where_nobody_is_named_any_rank_is_everybody() {
    let cycle = "mpjrun:   cycle: 0 waits for any rank (recv tag 1) -> \
                 1 waits for any rank (recv tag 2) -> 0\n";
    assert_eq!(found(&[recv(None, 1), recv(None, 2), recv(None, 3)]), cycle);
}

#[test]
fn who_has_failed_waits_no_more() {
    let mut failed = state(&[recv(0, 7)]);
    failed.blocked[0].failed = true;
    let chain = "mpjrun:   chain: 0 waits for 1 (recv tag 7) -> 1 (joined)\n";
    assert_eq!(found_in(&joined(2), &snapshot([state(&[recv(1, 7)]), failed])), chain);
}

#[test]
fn many_chains_are_counted() {
    let states = (0..20).map(|rank| match rank < 10 {
        true => state(&[recv(rank + 10, 7)]),
        false => state(&[]),
    });
    let found = found_in(&joined(20), &snapshot(states));
    assert_eq!(found.lines().count(), 5, "{found}");
    assert!(found.ends_with("mpjrun:   and 6 more chains\n"), "{found}");
}

/// A probe for a message on the world.
fn probe(peer: u32, tag: i32) -> Wait {
    Wait { call: Call::Probe.into(), phase: Phase::Sought, ..recv(peer, tag) }
}

/// Rank 1 waits for what `posted` says, and has the messages `unexpected`.
fn misses(posted: Wait, unexpected: &[(u32, i32, u32)]) -> Vec<String> {
    let mut job = joined(2);
    let unexpected: Vec<_> = unexpected
        .iter()
        .map(|&(source, tag, context)| UnexpectedMessage {
            source,
            tag,
            space: on(context),
            bytes: 8,
            eager: true,
        })
        .collect();
    let queues =
        Queues { all_unexpected: unexpected.len() as u64, unexpected, ..Queues::default() };
    job.note(1, ControlMessage::Queues { context: 0, queues }, ms(900));
    let found = found_in(&job, &snapshot([state(&[]), state(&[posted])]));
    let lines = found.lines().filter_map(|line| line.strip_prefix("mpjrun:   rank 1 waits for "));
    lines.map(str::to_owned).collect()
}

#[test]
fn a_message_that_differs_in_one_field_is_a_near_miss() {
    assert_eq!(
        misses(recv(0, 8), &[(0, 7, 0)]),
        ["tag 8 from rank 0; a message from rank 0 with tag 7 is there: the tags differ"]
    );
    assert_eq!(
        misses(recv(None, 8), &[(5, 7, 0)]),
        ["tag 8 from any rank; a message from rank 5 with tag 7 is there: the tags differ"]
    );
    assert_eq!(
        misses(recv(0, 8), &[(3, 8, 0)]),
        ["tag 8 from rank 0; a message from rank 3 with tag 8 is there: the sources differ"]
    );
    assert_eq!(
        misses(Wait { space: on(4), ..recv(0, 8) }, &[(0, 8, 0)]),
        [
            "tag 8 from rank 0 on communicator 2; a message from rank 0 with tag 8 on world is there: \
          the communicators differ"
        ]
    );
    let none: [String; 0] = [];
    assert_eq!(misses(recv(0, 8), &[(3, 7, 0), (0, 7, 2), (3, 8, 2), (0, 8, 0)]), none);
    assert_eq!(misses(recv(0, 8), &[(0, 8, 1), (0, 7, 1)]), none, "collective calls");
    assert_eq!(misses(Wait { space: on(1), ..recv(0, 8) }, &[(0, 7, 1)]), none, "collective calls");
}

#[test]
fn near_misses_are_told_best_first_and_only_some() {
    let unexpected: Vec<_> = (0..64).map(|turn| (turn % 8, 8 + turn as i32 / 8, 0)).collect();
    let told = misses(recv(9, 8), &unexpected);
    assert_eq!(told.len(), 2, "{told:?}");
    let told = misses(recv(0, 20), &[(0, 20, 2), (1, 20, 0), (0, 21, 0)]);
    assert!(told[0].ends_with("the tags differ"), "{told:?}");
    assert!(told[1].ends_with("the communicators differ"), "{told:?}");
    let all: Vec<Wait> =
        (0..64).map(|rank| Wait { tag: Some(rank), bytes: 8, ..send(0, 0) }).collect();
    let mut states: Vec<_> = all.iter().map(|wait| state(&[*wait])).collect();
    let receives: Vec<Wait> = (0..7).map(|tag| recv(None, 1_000 + tag)).collect();
    states[0] = state(&receives);
    let found = found_in(&joined(64), &snapshot(states));
    assert_eq!(found.matches("the tags differ").count(), 8, "{found}");
}

#[test]
fn a_blocked_send_is_a_message_that_is_there() {
    let expected = "\
mpjrun:   rank 1 waits for tag 8 from rank 0; a message from rank 0 with tag 7 is there, perhaps for it: \
the tags differ
";
    let told = found(&[send(1, 7), Wait { bytes: 1 << 20, ..recv(0, 8) }]);
    assert!(told.ends_with(expected), "{told}");
    let probe = Wait { bytes: 0, ..probe(0, 8) };
    let told = found(&[send(1, 7), probe]);
    assert!(told.ends_with(expected), "{told}");
    let told = found(&[send(1, 7), recv(0, 8)]);
    assert!(!told.contains("the tags differ"), "it does not fit: {told}");
}

#[test]
fn queues_are_told_with_counts() {
    let mut job = joined(2);
    let posted = |source, tag| PostedReceive { source, tag, space: on(0), bytes: 16 };
    let unexpected =
        |tag| UnexpectedMessage { source: 0, tag, space: on(2), bytes: 8, eager: tag != 2 };
    let queues = Queues {
        posted: vec![posted(Some(0), Some(8)), posted(None, None), posted(None, None)],
        all_posted: 3,
        unexpected: (0..9).map(unexpected).collect(),
        all_unexpected: 1_000,
        spaces: Vec::new(),
    };
    job.note(1, ControlMessage::Queues { context: 0, queues }, ms(900));
    let collective = PostedReceive { source: Some(1), tag: Some(-4), space: on(1), bytes: 0 };
    let queues = Queues { posted: vec![collective], all_posted: 1, ..Queues::default() };
    job.note(0, ControlMessage::Queues { context: 0, queues }, ms(900));
    let expected = "\
mpjrun:   rank 0: posted receive from rank 1, of a collective call, 0 bytes
mpjrun:   rank 1: posted receive from rank 0, tag 8, 16 bytes
mpjrun:   rank 1: posted receive from any rank, any tag, 16 bytes, 2 times
mpjrun:   rank 1: unexpected message from rank 0, tag 0 on communicator 1, 8 bytes
mpjrun:   rank 1: unexpected message from rank 0, tag 1 on communicator 1, 8 bytes
mpjrun:   rank 1: unexpected message from rank 0, tag 2 on communicator 1, 8 bytes, data still with the sender
mpjrun:   rank 1: unexpected message from rank 0, tag 3 on communicator 1, 8 bytes
mpjrun:   rank 1: unexpected message from rank 0, tag 4 on communicator 1, 8 bytes
mpjrun:   rank 1: unexpected message from rank 0, tag 5 on communicator 1, 8 bytes
mpjrun:   rank 1: and 994 more unexpected messages
";
    assert!(found_in(&job, &snapshot([state(&[]), state(&[])])).ends_with(expected));
}

/// Of two equal receives, only the one that a thread is blocked in is left out.
#[test]
fn the_queues_leave_out_what_the_table_has() {
    let mut job = joined(2);
    let posted =
        |tag, bytes| PostedReceive { source: Some(0), tag: Some(tag), space: on(0), bytes };
    let listed = vec![posted(7, 8), posted(7, 8), posted(7, 16), posted(9, 8)];
    let queues = Queues { posted: listed, all_posted: 70, ..Queues::default() };
    job.note(1, ControlMessage::Queues { context: 0, queues }, ms(900));
    let told = |waits: &[Wait]| {
        let told = found_in(&job, &snapshot([state(&[]), state(waits)]));
        let lines = told.lines().filter_map(|line| line.strip_prefix("mpjrun:   rank 1: "));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let of = |tag, bytes| format!("posted receive from rank 0, tag {tag}, {bytes} bytes");
    let rest = [of(7, 16), of(9, 8), "and 66 more posted receives".to_owned()];
    let twice = [of(7, 8) + ", 2 times"];
    assert_eq!(told(&[recv(0, 7)]), [&[of(7, 8)], &rest[..]].concat());
    assert_eq!(told(&[recv(0, 7), recv(0, 7)]), rest);
    assert_eq!(told(&[recv(0, 8)]), [&twice, &rest[..]].concat());
    let probe = probe(0, 7);
    let arriving = Wait { phase: Phase::Arriving, ..recv(0, 7) };
    assert_eq!(told(&[probe, arriving]), [&twice, &rest[..]].concat());
}

#[test]
fn a_cycle_with_a_send_says_what_to_do() {
    let advice = "mpjrun:   a send in the cycle waits for its receive, as long and synchronous ones do: \
                  use sendrecv or isend, or receive first\n";
    let cycle = "mpjrun:   cycle: 0 waits for 1 (send tag 7) -> 1 waits for 0 (send tag 8) -> 0\n";
    assert_eq!(found(&[send(1, 7), send(0, 8)]), format!("{cycle}{advice}"));
    assert!(found(&[send(0, 1), recv(0, 2)]).contains(advice), "to itself");
    assert!(found(&[send(1, 7), recv(0, 9)]).contains(advice));
    assert!(!found(&[recv(1, 7), recv(0, 9)]).contains("a send"));
}

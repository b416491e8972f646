//! The last calls of ranks.

use crate::report::last_calls;
use crate::trace::{Call, Kind, RankTrace, ThreadTrace, Trace};

fn call(name: &str, start: u64, end: Option<u64>) -> Call {
    Call {
        name: name.into(),
        kind: Kind::Other,
        place: None,
        start,
        end,
        communicator: None,
        peer: None,
        tag: None,
        bytes: 0,
        message: None,
        sequence: None,
        by_rendezvous: None,
    }
}

fn send(start: u64, tag: i32) -> Call {
    Call {
        place: Some("src/ring.rs:7".into()),
        communicator: Some(0),
        peer: Some(1),
        tag: Some(tag),
        bytes: 1024,
        ..call("send", start, Some(start + 1500 + 1000 * start))
    }
}

/// A rank with these calls of each of its threads.
fn rank(rank: u32, threads: Vec<Vec<Call>>) -> RankTrace {
    let threads =
        threads.into_iter().map(|calls| ThreadTrace { calls, ..ThreadTrace::default() }).collect();
    RankTrace { rank, host: "host".to_owned(), threads, ..RankTrace::default() }
}

#[test]
fn equal_calls_of_ranks_share_a_table() {
    let open = || Call { communicator: Some(2), ..call("barrier", 9, None) };
    let ranks = vec![
        rank(0, vec![vec![send(1, 5), open()]]),
        rank(1, vec![vec![open(), call("init", 0, Some(3_000_000))], vec![send(1, -3)]]),
        rank(2, vec![]),
        rank(3, vec![vec![send(2, 5), open()]]),
    ];
    let expected = "\
mpjrun: the last calls of ranks 0, 3, the latest one last:
mpjrun:   call     communicator  peer  tag  bytes               took  at
mpjrun:   send     world            1    5   1024  2.50 µs - 3.50 µs  src/ring.rs:7
mpjrun:   barrier  2                -    -      -           not over  -
mpjrun: the last calls of rank 1, the latest one last:
mpjrun:   call     communicator  peer  tag  bytes      took  at
mpjrun:   init     -                -    -      -   3.00 ms  -
mpjrun:   send     world            1   -3   1024   2.50 µs  src/ring.rs:7
mpjrun:   barrier  2                -    -      -  not over  -
mpjrun: rank 2: no calls
";
    assert_eq!(last_calls(&Trace { ranks }), expected);
}

#[test]
fn twenty_calls_of_a_rank_and_sixteen_tables_are_shown() {
    let of_rank = |number: u32| {
        let calls = (0..30).map(|start| send(start, number as i32 * 100 + start as i32));
        rank(number, vec![calls.collect()])
    };
    let text = last_calls(&Trace { ranks: (0..20).map(of_rank).collect() });
    assert_eq!(text.lines().count(), 16 * 22 + 1);
    let tags: Vec<&str> = text.lines().filter_map(|line| line.split_whitespace().nth(4)).collect();
    assert_eq!((tags[2], tags[21]), ("10", "29"), "{text}");
    assert!(text.ends_with("mpjrun: the last calls of ranks 16-19 are left out\n"), "{text}");
}

#[test]
fn nothing_is_said_of_a_job_that_records_nothing() {
    let ranks = vec![rank(0, vec![]), rank(1, vec![vec![]])];
    assert_eq!(last_calls(&Trace { ranks }), "");
}

//! Profiles of made-up traces.

mod causes;
mod forms;
mod properties;
mod simulation;
mod sums;
mod waits;

use std::collections::BTreeMap;

use super::*;
use crate::trace::{Call, CallAt, Flow, Kind, RankTrace, ThreadTrace, Trace};

/// A second.
const S: u64 = 1_000_000_000;

/// A call from one second to another one.
fn call(name: &str, kind: Kind, start: u64, end: u64) -> Call {
    Call {
        name: name.into(),
        kind,
        place: None,
        start: start * S,
        end: Some(end * S),
        communicator: Some(0),
        peer: None,
        tag: None,
        bytes: 0,
        message: None,
        sequence: None,
        by_rendezvous: None,
    }
}

/// A send of message `message`, with 8 bytes.
fn send(start: u64, end: u64, peer: u32, message: u64) -> Call {
    let call = call("send", Kind::Send, start, end);
    Call { peer: Some(peer), message: Some(message), bytes: 8, tag: Some(1), ..call }
}

/// Its receive.
fn recv(start: u64, end: u64, peer: u32, message: u64) -> Call {
    let call = call("recv", Kind::Receive, start, end);
    Call { peer: Some(peer), message: Some(message), bytes: 8, tag: Some(1), ..call }
}

/// A collective call on the world, with the place in the program that all ranks have.
fn collective(start: u64, end: u64, sequence: u64) -> Call {
    let call = call("all_reduce", Kind::Collective, start, end);
    Call { sequence: Some(sequence), place: Some("src/main.rs:40".into()), bytes: 8, ..call }
}

/// A job of ranks with one thread each, which make these calls.
fn trace(ranks: Vec<Vec<Call>>) -> Collected {
    let rank = |(rank, calls): (usize, Vec<Call>)| RankTrace {
        rank: rank as u32,
        host: "here".to_owned(),
        threads: vec![ThreadTrace { calls, ..ThreadTrace::default() }],
        ..RankTrace::default()
    };
    joined(Trace { ranks: ranks.into_iter().enumerate().map(rank).collect() })
}

/// The same with the messages that follow from the numbers of calls: from the first send with a number to the last receive
/// or wait.
fn joined(trace: Trace) -> Collected {
    let mut ends: BTreeMap<u64, (Option<CallAt>, Option<CallAt>)> = BTreeMap::new();
    for (rank, of_rank) in trace.ranks.iter().enumerate() {
        for (thread, of_thread) in of_rank.threads.iter().enumerate() {
            for (place, call) in of_thread.calls.iter().enumerate() {
                let Some(number) = call.message else { continue };
                let at = CallAt { rank, thread, call: place };
                let (from, to) = ends.entry(number).or_default();
                match call.kind {
                    Kind::Send => from.get_or_insert(at),
                    _ => to.insert(at),
                };
            }
        }
    }
    let flow = |(number, (from, to))| Some(Flow { number, from: from?, to: to? });
    let flows = ends.into_iter().filter_map(flow).collect();
    Collected { trace, flows, ..Collected::default() }
}

/// Who caused what, in seconds: the waiting rank, the cause, the time.
fn charges(charges: &[Charge]) -> Vec<(usize, usize, u64)> {
    charges.iter().map(|charge| (charge.waiting, charge.cause, charge.nanos / S)).collect()
}

//! Reports on made-up jobs, word for word.

mod causes;
mod claims;
mod collectives;
mod findings;
mod last_calls;
mod names;
mod stats;
mod tables;
mod unjudged;
mod watch;

use std::time::Duration;

use mpjdev::Call;
use transport_lapi::bootstrap::control::{
    ControlMessage, PostedReceive, Queues, RankRange, SpaceMembers, UnexpectedMessage,
};
use transport_lapi::bootstrap::waits::{Blocked, CallCode, Phase, Space, TaskState, Wait};

use super::*;
use crate::exits::scene::{
    START, complain, exit_log, exit_log_of_hosts, finish, mistake, ms, panic,
};
use crate::exits::{Decision, Ending, Failure, Fault};
use crate::hang::snapshot::{Activity, Seen};

fn join(exit_log: &mut ExitLog, rank: u32) {
    let joined = ControlMessage::Joined { pid: 100 + rank };
    exit_log.note(rank as usize, joined, ms(1));
    let told = ControlMessage::Vocabulary { first: 0, contexts: 4, vocabulary: Call::vocabulary() };
    exit_log.note(rank as usize, told, ms(1));
}

/// The space of a context of the device: the communicator's number times two, plus one for collective calls.
fn on(context: u32) -> Space {
    let (label, is_collective) = (Some(context / 2), context % 2 == 1);
    Space { context: 0, id: context, label, is_collective }
}

/// The failure that ended the job.
#[track_caller]
fn failure_of(exit_log: &ExitLog) -> Failure {
    match exit_log.decide(u64::MAX) {
        Decision::Failed(failure) => failure,
        decision => panic!("no rank has failed: {decision:?}"),
    }
}

/// A job whose ranks have all joined.
fn joined(ranks: u32) -> ExitLog {
    let mut job = exit_log(ranks);
    (0..ranks).for_each(|rank| join(&mut job, rank));
    job
}

/// The same on hosts of these names, one rank on each.
fn joined_on(hosts: &[&str]) -> ExitLog {
    let mut job = exit_log_of_hosts(hosts);
    (0..hosts.len() as u32).for_each(|rank| join(&mut job, rank));
    job
}

/// A receive of 8 bytes on the world that lasts since 500 ms after the start.
fn recv(peer: impl Into<Option<u32>>, tag: impl Into<Option<i32>>) -> Wait {
    Wait {
        at_end: false,
        alone: false,
        unwinding: false,
        call: Call::Recv.into(),
        operation: CallCode::NONE,
        open: 0,
        sends: false,
        peer: peer.into(),
        tag: tag.into(),
        space: on(0),
        bytes: 8,
        phase: Phase::Unmatched,
        since: ms(500),
        thread: 0,
    }
}

/// A long send by rendezvous.
fn send(peer: u32, tag: i32) -> Wait {
    let (call, phase) = (Call::Send.into(), Phase::Offered);
    Wait { call, sends: true, bytes: 1 << 20, phase, ..recv(peer, tag) }
}

/// The wait of a rank at its end.
fn finishing() -> Wait {
    let (call, phase, space) = (Call::Finish.into(), Phase::Others, Space::default());
    Wait { call, phase, at_end: true, space, ..recv(None, None) }
}

fn state(waits: &[Wait]) -> TaskState {
    let blocked = |&wait: &Wait| Blocked { wait, undisturbed: true, failed: false, looks: 0 };
    TaskState {
        is_here: true,
        pid: 200,
        epoch: 2,
        moves: 3,
        blocked: waits.iter().map(blocked).collect(),
        unlisted: 0,
        sent: 0,
        received: 0,
        contexts: 1,
    }
}

/// A snapshot 1 s after the start.
fn snapshot(states: impl IntoIterator<Item = TaskState>) -> Snapshot {
    let ranks = states.into_iter().map(|state| Seen::from(Some(state))).collect();
    Snapshot { at: ms(1_000), ranks, ..Snapshot::default() }
}

/// Each rank blocked in one wait, in a thread of its own number.
fn waiting(waits: impl IntoIterator<Item = Wait>) -> Snapshot {
    let waits = (200..).zip(waits).map(|(thread, wait)| Wait { thread, ..wait });
    snapshot(waits.map(|wait| state(&[wait])))
}

/// The findings about a job of ranks that are blocked in one wait each.
fn found(waits: &[Wait]) -> String {
    found_in(&joined(waits.len() as u32), &waiting(waits.iter().copied()))
}

fn found_in(job: &ExitLog, snapshot: &Snapshot) -> String {
    let standings = standing::of_all(job, snapshot, None);
    findings(&standings, &crate::report::unjudged::text(&standings, snapshot))
}

/// Rank `by` sends the members of the communicator with this context.
fn tells(job: &mut ExitLog, by: u32, context: u32, name: &str, ranks: &[u32]) {
    let spaces = vec![SpaceMembers::new(on(context), name, ranks.to_vec())];
    let queues = Queues { spaces, ..Queues::default() };
    job.note(by as usize, ControlMessage::Queues { context: 0, queues }, ms(900));
}

/// A rank in a barrier of the communicator with this number, in the round for `peer`.
fn barrier(peer: u32, number: u32) -> Wait {
    let barrier = Call::Barrier.into();
    let space = on(2 * number + 1);
    Wait { call: barrier, operation: barrier, space, bytes: 0, ..recv(peer, 0) }
}

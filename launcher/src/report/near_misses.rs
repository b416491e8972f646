//! Near misses: messages that are there and differ in one field from what their receiver waits for. Messages longer
//! than the receive are left out.

use std::collections::BTreeSet;

use transport_lapi::bootstrap::board::{Call, Phase, Wait};
use transport_lapi::bootstrap::control::{PostedReceive, Queues, UnexpectedMessage};

use super::INDENT;
use super::format::{is_collective, on_communicator, on_named_communicator, source, tag};
use super::standing::Standing;

/// Most near misses, in all and for one receive.
const MAX_MISSES: usize = 8;
const MAX_PER_RECEIVE: usize = 2;

/// The one field in which they differ, the most likely mistake first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Differing {
    Tags,
    Communicators,
    Sources,
}

/// The field in which a message misses a receive or probe, if it is only one.
fn differing(wanted: &PostedReceive, message: &UnexpectedMessage) -> Option<Differing> {
    let source = wanted.source.is_some_and(|source| source != message.source);
    let tag = wanted.tag.is_some_and(|tag| tag != message.tag);
    match (source, tag, wanted.context != message.context) {
        _ if message.bytes > wanted.bytes => None,
        (false, true, false) => Some(Differing::Tags),
        (false, false, true) => Some(Differing::Communicators),
        (true, false, false) => Some(Differing::Sources),
        _ => None,
    }
}

/// The near misses of all ranks: first those of receives that a thread is blocked in, then by [`Differing`].
pub(super) fn text(standings: &[Standing]) -> String {
    let sent = sent(standings);
    let mut misses: Vec<(bool, Differing, usize, String)> = Vec::new();
    for (rank, standing) in standings.iter().enumerate().filter(|(_, rank)| rank.is_alive) {
        let blocked = blocked(standing);
        let to_rank = sent.iter().filter(|(peer, _)| *peer as usize == rank);
        let to_rank = to_rank.map(|(_, message)| *message);
        let messages: BTreeSet<UnexpectedMessage> = unexpected(standing).chain(to_rank).collect();
        for wanted in posted(standing).chain(blocked.iter().copied()).collect::<BTreeSet<_>>() {
            let missing = |message| Some((differing(&wanted, message)?, *message));
            let mut of_wanted: Vec<_> = messages.iter().filter_map(missing).collect();
            of_wanted.sort();
            let is_posted_only = !blocked.contains(&wanted);
            misses.extend(of_wanted.iter().take(MAX_PER_RECEIVE).map(|(differing, message)| {
                let words = words(rank, &wanted, message, *differing);
                (is_posted_only, *differing, rank, words)
            }));
        }
    }
    misses.sort();
    misses.into_iter().take(MAX_MISSES).map(|(.., words)| format!("{INDENT}{words}\n")).collect()
}

fn posted(standing: &Standing) -> impl Iterator<Item = PostedReceive> {
    let posted = standing.queues.iter().flat_map(|queues| queues.posted.iter().copied());
    posted.take(Queues::LISTED).filter(|receive| !is_collective(receive.context))
}

/// The receives and probes that threads are blocked in.
fn blocked(standing: &Standing) -> BTreeSet<PostedReceive> {
    let waits = standing.holding().filter(|wait| !wait.sends && wait.phase == Phase::Unmatched);
    waits
        .filter(|wait| !is_collective(wait.context) && !is_of_all(wait))
        .map(|wait| {
            let Wait { call, peer, tag, context, bytes, .. } = *wait;
            let bytes = if call == Call::Probe { u64::MAX } else { bytes };
            PostedReceive { source: peer, tag, context, bytes }
        })
        .collect()
}

fn is_of_all(wait: &Wait) -> bool {
    wait.call == Call::Finish || wait.operation.is_collective()
}

fn unexpected(standing: &Standing) -> impl Iterator<Item = UnexpectedMessage> {
    let unexpected = standing.queues.iter().flat_map(|queues| queues.unexpected.iter().copied());
    unexpected.take(Queues::LISTED).filter(|message| !is_collective(message.context))
}

/// The messages of blocked sends, each with its receiver, which may not have sent its queues.
fn sent(standings: &[Standing]) -> Vec<(u32, UnexpectedMessage)> {
    let mut sent = Vec::new();
    for (rank, standing) in standings.iter().enumerate() {
        for wait in standing.holding().filter(|wait| wait.sends && !is_collective(wait.context)) {
            let is_there = matches!(wait.phase, Phase::Offered | Phase::Unanswered);
            if let (true, Some(peer), Some(tag)) = (is_there, wait.peer, wait.tag) {
                let (context, bytes, source) = (wait.context, wait.bytes, rank as u32);
                // The receive may be waiting for the data of one that was offered.
                let eager = wait.phase != Phase::Offered;
                sent.push((peer, UnexpectedMessage { source, tag, context, bytes, eager }));
            }
        }
    }
    sent
}

fn words(
    rank: usize,
    receive: &PostedReceive,
    message: &UnexpectedMessage,
    differing: Differing,
) -> String {
    let wanted = format!("{} from {}", tag(receive.tag), source(receive.source));
    let there = format!("rank {} with tag {}", message.source, message.tag);
    let (wanted_on, there_on) = match differing {
        Differing::Communicators => {
            (on_named_communicator(receive.context, ""), on_named_communicator(message.context, ""))
        }
        _ => (on_communicator(receive.context), String::new()),
    };
    let what = match differing {
        Differing::Tags => "the tags differ",
        Differing::Communicators => "the communicators differ",
        Differing::Sources => "the sources differ",
    };
    let perhaps = if message.eager { "" } else { ", perhaps for it" };
    format!(
        "rank {rank} waits for {wanted}{wanted_on}; a message from {there}{there_on} is \
         there{perhaps}: {what}"
    )
}

//! Near misses: messages that are there and differ in one field from what their receiver waits for. Messages longer
//! than the receive are left out.

use std::collections::BTreeSet;

use transport_lapi::bootstrap::control::{PostedReceive, Queues, UnexpectedMessage, Vocabulary};
use transport_lapi::bootstrap::waits::Phase;

use super::INDENT;
use super::format::{on_named_space, on_space, source, tag};
use super::standing::Standing;

/// Most near misses, in all and for one receive.
const MAX_MISSES: usize = 8;
const MAX_PER_RECEIVE: usize = 2;

/// The one field in which they differ, the most likely mistake first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Differing {
    Tags,
    Spaces,
    Sources,
}

/// The field in which a message misses a receive or probe, if it is only one.
fn differing(wanted: &PostedReceive, message: &UnexpectedMessage) -> Option<Differing> {
    let source = wanted.source.is_some_and(|source| source != message.source);
    let tag = wanted.tag.is_some_and(|tag| tag != message.tag);
    match (source, tag, wanted.space != message.space) {
        _ if message.bytes > wanted.bytes => None,
        (false, true, false) => Some(Differing::Tags),
        (false, false, true) => Some(Differing::Spaces),
        (true, false, false) => Some(Differing::Sources),
        _ => None,
    }
}

/// The near misses of all ranks: first those of receives that a thread is blocked in, then by [`Differing`].
pub(super) fn text(standings: &[Standing<'_>]) -> String {
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
                let names = standing.names.of(wanted.space.context);
                let words = words(rank, &wanted, message, *differing, names);
                (is_posted_only, *differing, rank, words)
            }));
        }
    }
    misses.sort();
    misses.into_iter().take(MAX_MISSES).map(|(.., words)| format!("{INDENT}{words}\n")).collect()
}

fn posted(standing: &Standing<'_>) -> impl Iterator<Item = PostedReceive> {
    let posted = standing.queues.iter().flat_map(|queues| queues.posted.iter().copied());
    posted.take(Queues::LISTED).filter(|receive| !receive.space.is_collective)
}

/// The receives and probes that threads are blocked in.
fn blocked(standing: &Standing<'_>) -> BTreeSet<PostedReceive> {
    let waits =
        standing.holding().filter(|wait| !wait.space.is_collective && !wait.is_for_others());
    waits.filter_map(|wait| wait.receive()).collect()
}

fn unexpected(standing: &Standing<'_>) -> impl Iterator<Item = UnexpectedMessage> {
    let unexpected = standing.queues.iter().flat_map(|queues| queues.unexpected.iter().copied());
    unexpected.take(Queues::LISTED).filter(|message| !message.space.is_collective)
}

/// The messages of blocked sends, each with its receiver, which may not have sent its queues.
fn sent(standings: &[Standing<'_>]) -> Vec<(u32, UnexpectedMessage)> {
    let mut sent = Vec::new();
    for (rank, standing) in standings.iter().enumerate() {
        for wait in standing.holding().filter(|wait| wait.sends && !wait.space.is_collective) {
            let is_there = matches!(wait.phase, Phase::Offered | Phase::Unanswered);
            if let (true, Some(peer), Some(tag)) = (is_there, wait.peer, wait.tag) {
                let (space, bytes, source) = (wait.space, wait.bytes, rank as u32);
                // The receive may be waiting for the data of one that was offered.
                let eager = wait.phase != Phase::Offered;
                sent.push((peer, UnexpectedMessage { source, tag, space, bytes, eager }));
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
    names: &Vocabulary,
) -> String {
    let wanted = format!("{} from {}", tag(receive.tag), source(receive.source));
    let there = format!("rank {} with tag {}", message.source, message.tag);
    let (wanted_on, there_on) = match differing {
        Differing::Spaces => {
            (on_named_space(receive.space, "", names), on_named_space(message.space, "", names))
        }
        _ => (on_space(receive.space, names), String::new()),
    };
    let what = match differing {
        Differing::Tags => "tag",
        Differing::Spaces => names.space(),
        Differing::Sources => "source",
    };
    let perhaps = if message.eager { "" } else { ", perhaps for it" };
    format!(
        "rank {rank} waits for {wanted}{wanted_on}; a message from {there}{there_on} is \
         there{perhaps}: the {what}s differ"
    )
}

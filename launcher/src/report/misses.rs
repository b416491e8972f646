//! Near misses: messages that are there and differ in one field from what their receiver waits for. Messages longer
//! than the receive are left out.

use std::collections::BTreeSet;

use transport_lapi::bootstrap::board::{Call, Phase, Wait};
use transport_lapi::bootstrap::control::Queues;

use super::INDENT;
use super::standing::Standing;
use super::words::{is_collective, on_communicator, on_named_communicator, source, tag};

/// Most near misses, in all and for one receive.
const MAX_MISSES: usize = 8;
const MAX_PER_RECEIVE: usize = 2;

/// What a rank wants to receive. The order of the fields decides the order of the lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Pattern {
    source: Option<u32>,
    tag: Option<i32>,
    context: u64,
    /// Length of the buffer in bytes.
    room: u64,
}

/// A message that has come to a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Message {
    source: u32,
    tag: i32,
    context: u64,
    bytes: u64,
    /// Whether its data are still with the sender, for which the receive may be waiting.
    is_offered: bool,
}

/// The one field in which they differ, the most likely mistake first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Differing {
    Tags,
    Communicators,
    Sources,
}

impl Pattern {
    fn differs(&self, message: &Message) -> Option<Differing> {
        let source = self.source.is_some_and(|source| source != message.source);
        let tag = self.tag.is_some_and(|tag| tag != message.tag);
        match (source, tag, self.context != message.context) {
            _ if message.bytes > self.room => None,
            (false, true, false) => Some(Differing::Tags),
            (false, false, true) => Some(Differing::Communicators),
            (true, false, false) => Some(Differing::Sources),
            _ => None,
        }
    }
}

/// The near misses of all ranks: first those of receives that a thread is blocked in, then by [`Differing`].
pub(super) fn text(standings: &[Standing]) -> String {
    let sent = sent(standings);
    let mut misses: Vec<(bool, Differing, usize, String)> = Vec::new();
    for (rank, standing) in standings.iter().enumerate().filter(|(_, rank)| rank.is_alive) {
        let blocked = blocked(standing);
        let messages: BTreeSet<Message> = early(standing).chain(sent_to(&sent, rank)).collect();
        for pattern in posted(standing).chain(blocked.iter().copied()).collect::<BTreeSet<_>>() {
            let differing = |message| Some((pattern.differs(message)?, *message));
            let mut of_pattern: Vec<_> = messages.iter().filter_map(differing).collect();
            of_pattern.sort();
            let is_posted_only = !blocked.contains(&pattern);
            misses.extend(of_pattern.iter().take(MAX_PER_RECEIVE).map(|(differing, message)| {
                let words = words(rank, &pattern, message, *differing);
                (is_posted_only, *differing, rank, words)
            }));
        }
    }
    misses.sort();
    misses.into_iter().take(MAX_MISSES).map(|(.., words)| format!("{INDENT}{words}\n")).collect()
}

fn posted(standing: &Standing) -> impl Iterator<Item = Pattern> {
    let posted = standing.queues.iter().flat_map(|queues| queues.posted.iter());
    let patterns = posted.take(Queues::LISTED).map(|receive| Pattern {
        source: receive.source,
        tag: receive.tag,
        context: receive.context,
        room: receive.bytes,
    });
    patterns.filter(|pattern| !is_collective(pattern.context))
}

/// The receives and probes that threads are blocked in.
fn blocked(standing: &Standing) -> BTreeSet<Pattern> {
    let waits = standing.holding().filter(|wait| !wait.sends && wait.phase == Phase::Unmatched);
    waits
        .filter(|wait| !is_collective(wait.context) && !is_of_all(wait))
        .map(|wait| {
            let Wait { call, peer, tag, context, bytes, .. } = *wait;
            let room = if call == Call::Probe { u64::MAX } else { bytes };
            Pattern { source: peer, tag, context, room }
        })
        .collect()
}

fn is_of_all(wait: &Wait) -> bool {
    wait.call == Call::Finish || wait.operation.is_collective()
}

fn early(standing: &Standing) -> impl Iterator<Item = Message> {
    let early = standing.queues.iter().flat_map(|queues| queues.early.iter());
    let messages = early.take(Queues::LISTED).map(|message| Message {
        source: message.source,
        tag: message.tag,
        context: message.context,
        bytes: message.bytes,
        is_offered: !message.eager,
    });
    messages.filter(|message| !is_collective(message.context))
}

/// The messages of blocked sends, each with its receiver, which may not have sent its queues.
fn sent(standings: &[Standing]) -> Vec<(u32, Message)> {
    let mut sent = Vec::new();
    for (rank, standing) in standings.iter().enumerate() {
        for wait in standing.holding().filter(|wait| wait.sends && !is_collective(wait.context)) {
            let is_there = matches!(wait.phase, Phase::Offered | Phase::Unanswered);
            if let (true, Some(peer), Some(tag)) = (is_there, wait.peer, wait.tag) {
                let (context, bytes, source) = (wait.context, wait.bytes, rank as u32);
                let is_offered = wait.phase == Phase::Offered;
                sent.push((peer, Message { source, tag, context, bytes, is_offered }));
            }
        }
    }
    sent
}

fn sent_to(sent: &[(u32, Message)], rank: usize) -> impl Iterator<Item = Message> {
    let own = sent.iter().filter(move |(peer, _)| *peer as usize == rank);
    own.map(|(_, message)| *message)
}

fn words(rank: usize, pattern: &Pattern, message: &Message, differing: Differing) -> String {
    let wanted = format!("{} from {}", tag(pattern.tag), source(pattern.source));
    let there = format!("rank {} with tag {}", message.source, message.tag);
    let (wanted_on, there_on) = match differing {
        Differing::Communicators => {
            (on_named_communicator(pattern.context, ""), on_named_communicator(message.context, ""))
        }
        _ => (on_communicator(pattern.context), String::new()),
    };
    let what = match differing {
        Differing::Tags => "the tags differ",
        Differing::Communicators => "the communicators differ",
        Differing::Sources => "the sources differ",
    };
    let perhaps = if message.is_offered { ", perhaps for it" } else { "" };
    format!(
        "rank {rank} waits for {wanted}{wanted_on}; a message from {there}{there_on} is \
         there{perhaps}: {what}"
    )
}

//! Both queues of each rank: posted receives and unexpected messages that have found no partner. Receives that a thread
//! is blocked in are left out, since the table has them.

use transport_lapi::bootstrap::control::{PostedReceive, Queues, UnexpectedMessage, Vocabulary};
use transport_lapi::bootstrap::waits::Space;

use super::INDENT;
use super::format::{self, and_more, on_space, source, tag};
use super::standing::Standing;

/// Most lines, in all and for one queue.
const MAX_LINES: usize = 64;
const MAX_PER_QUEUE: usize = 6;

/// The queues that ranks have sent, unless they are empty.
pub(super) fn text(standings: &[Standing<'_>]) -> String {
    let lines: Vec<String> = standings
        .iter()
        .enumerate()
        .filter_map(|(rank, standing)| Some((rank, standing, standing.queues.as_ref()?)))
        .flat_map(|(rank, standing, queues)| of_rank(rank, standing, queues))
        .collect();
    let text: String =
        lines.iter().take(MAX_LINES).map(|line| format!("{INDENT}{line}\n")).collect();
    text + &and_more(lines.len(), MAX_LINES, "lines of queues")
}

fn of_rank(rank: usize, standing: &Standing<'_>, queues: &Queues) -> Vec<String> {
    let names = |space: Space| standing.names.of(space.context);
    let listed = &queues.posted[..queues.posted.len().min(Queues::LISTED)];
    let (posted, left_out) = without_blocked(listed, standing);
    let all_posted = queues.all_posted.saturating_sub(left_out);
    let posted = posted.into_iter().map(|receive| posted_words(receive, names(receive.space)));
    let unexpected = queues.unexpected.iter().take(Queues::LISTED);
    let unexpected = unexpected.map(|message| unexpected_words(message, names(message.space)));
    let mut lines = of_queue(posted, all_posted, "posted receives");
    lines.extend(of_queue(unexpected, queues.all_unexpected, "unexpected messages"));
    lines.into_iter().map(|line| format!("rank {rank}: {line}")).collect()
}

/// The receives that no thread is blocked in, and the number of the others.
fn without_blocked<'a>(
    posted: &'a [PostedReceive],
    standing: &Standing<'_>,
) -> (Vec<&'a PostedReceive>, u64) {
    let mut blocked: Vec<PostedReceive> =
        standing.holding().filter_map(|wait| wait.receive()).collect();
    let is_left = |receive: &&PostedReceive| {
        let place = blocked.iter().position(|wait| wait == *receive);
        place.map(|place| blocked.swap_remove(place)).is_none()
    };
    let left: Vec<&PostedReceive> = posted.iter().filter(is_left).collect();
    let left_out = posted.len() - left.len();
    (left, left_out as u64)
}

/// The lines for the first entries of a queue with `all` entries; equal neighbours share a line.
fn of_queue(entries: impl Iterator<Item = String>, all: u64, noun: &str) -> Vec<String> {
    let entries: Vec<String> = entries.collect();
    let runs: Vec<&[String]> = entries.chunk_by(|one, next| one == next).collect();
    let shown = &runs[..runs.len().min(MAX_PER_QUEUE)];
    let mut lines: Vec<String> = shown
        .iter()
        .map(|run| match run.len() {
            1 => run[0].clone(),
            times => format!("{}, {times} times", run[0]),
        })
        .collect();
    let counted: usize = shown.iter().map(|run| run.len()).sum();
    if let more @ 1.. = all.saturating_sub(counted as u64) {
        lines.push(format!("and {more} more {noun}"));
    }
    lines
}

fn posted_words(receive: &PostedReceive, words: &Vocabulary) -> String {
    let PostedReceive { source: from, tag, space, bytes } = *receive;
    let envelope = envelope(tag, space, words);
    format!("posted receive from {}, {envelope}, {}", source(from), format::bytes(bytes))
}

fn unexpected_words(message: &UnexpectedMessage, words: &Vocabulary) -> String {
    let UnexpectedMessage { source: from, tag, space, bytes, eager } = *message;
    let envelope = envelope(Some(tag), space, words);
    let place = if eager { "" } else { ", data still with the sender" };
    format!("unexpected message from rank {from}, {envelope}, {}{place}", format::bytes(bytes))
}

fn envelope(wanted: Option<i32>, space: Space, words: &Vocabulary) -> String {
    let on = on_space(space, words);
    match space.is_collective {
        true => format!("of a collective call{on}"),
        false => format!("{}{on}", tag(wanted)),
    }
}

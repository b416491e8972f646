//! Both queues of each rank: what was posted or has come, and found no partner.

use std::fmt::Write;

use transport_lapi::bootstrap::control::{EarlyMessage, PostedReceive, Queues};

use super::INDENT;
use super::standing::Standing;
use super::words::{is_collective, on_communicator, source, tag};

/// Most lines, of all ranks and of one queue.
const MAX_LINES: usize = 64;
const MAX_PER_QUEUE: usize = 6;

/// The queues of all ranks that have told theirs, unless they are empty.
pub(super) fn text(standings: &[Standing]) -> String {
    let lines: Vec<String> = standings
        .iter()
        .enumerate()
        .filter_map(|(rank, standing)| Some((rank, standing.queues.as_ref()?)))
        .flat_map(|(rank, queues)| of_rank(rank, queues))
        .collect();
    let mut text: String =
        lines.iter().take(MAX_LINES).map(|line| format!("{INDENT}{line}\n")).collect();
    if let Some(more @ 1..) = lines.len().checked_sub(MAX_LINES) {
        // Writing to a string does not fail.
        let _ = writeln!(text, "{INDENT}and {more} more lines of queues");
    }
    text
}

fn of_rank(rank: usize, queues: &Queues) -> Vec<String> {
    let posted = queues.posted.iter().take(Queues::LISTED).map(posted_words);
    let early = queues.early.iter().take(Queues::LISTED).map(early_words);
    let mut lines = of_queue(posted, queues.all_posted, "posted receives");
    lines.extend(of_queue(early, queues.all_early, "early messages"));
    lines.into_iter().map(|line| format!("rank {rank}: {line}")).collect()
}

/// The first entries of a queue that has `all`, equal neighbours in one line.
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
    let told: usize = shown.iter().map(|run| run.len()).sum();
    if let more @ 1.. = all.saturating_sub(told as u64) {
        lines.push(format!("and {more} more {noun}"));
    }
    lines
}

fn posted_words(receive: &PostedReceive) -> String {
    let PostedReceive { source: from, tag, context, bytes } = *receive;
    let envelope = envelope(tag, context);
    format!("posted receive from {}, {envelope}, {bytes} bytes", source(from))
}

fn early_words(message: &EarlyMessage) -> String {
    let EarlyMessage { source: from, tag, context, bytes, eager } = *message;
    let envelope = envelope(Some(tag), context);
    let place = if eager { "" } else { ", data still with the sender" };
    format!("early message from rank {from}, {envelope}, {bytes} bytes{place}")
}

fn envelope(wanted: Option<i32>, context: u32) -> String {
    let on = on_communicator(context);
    match is_collective(context) {
        true => format!("of a collective call{on}"),
        false => format!("{}{on}", tag(wanted)),
    }
}

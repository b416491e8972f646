//! The table of `--stats`: how many messages each protocol carried, by rank and in all, and why.

use transport_lapi::bootstrap::control::{MessageCounts, ProtocolCounts};

use super::aligned;
use crate::exits::{Chosen, ExitLog};

const HEAD: [&str; 9] = [
    "rank",
    "eager",
    "bytes",
    "unexpected",
    "rendezvous",
    "bytes",
    "unexpected",
    "received",
    "most unexpected bytes",
];

/// Returns the table. Ranks send their counts when they leave the job.
pub(crate) fn text(exit_log: &ExitLog) -> String {
    let records = exit_log.records().iter().enumerate();
    let sent: Vec<(usize, MessageCounts)> =
        records.filter_map(|(rank, record)| Some((rank, record.counters?))).collect();
    if sent.is_empty() {
        return "mpjrun: --stats: no rank has come to its end, where it sends its numbers\n"
            .to_owned();
    }
    let sum = sent.iter().map(|(_, counters)| *counters).fold(MessageCounts::default(), plus);
    let mut rows = vec![HEAD.map(str::to_owned).to_vec()];
    rows.extend(sent.iter().map(|(rank, counters)| row(rank.to_string(), counters)));
    rows.extend((sent.len() > 1).then(|| row("all".to_owned(), &sum)));
    let head = "mpjrun: messages sent, by protocol; unexpected ones came before their receive\n";
    let mut text = head.to_owned() + &aligned("mpjrun: ", &rows, |_| true);
    if sum.fallbacks > 0 {
        text += &format!(
            "mpjrun: {} messages went by rendezvous for want of unexpected-message memory (MPJ_EARLY_LIMIT)\n",
            sum.fallbacks
        );
    }
    let mut chosen = Chosen::default();
    for (name, times) in exit_log.records().iter().flat_map(|record| record.chosen.iter()) {
        chosen.add(name, times);
    }
    for (name, times) in chosen.iter() {
        text += &format!("mpjrun: {name} was chosen {times} times\n");
    }
    if sum.dropped > 0 {
        text += &format!(
            "mpjrun: {} packets were dropped that strangers had sent, or that had lost their turn\n",
            sum.dropped
        );
    }
    match exit_log.records().len() - sent.len() {
        0 => text,
        missing => text + &format!("mpjrun: ranks that have not sent their numbers: {missing}\n"),
    }
}

fn row(name: String, counters: &MessageCounts) -> Vec<String> {
    let MessageCounts { eager, rendezvous, received, unexpected_bytes, .. } = counters;
    let of = |counts: &ProtocolCounts| [counts.messages, counts.bytes, counts.unexpected];
    let numbers = [&of(eager)[..], &of(rendezvous), &[*received, *unexpected_bytes]].concat();
    std::iter::once(name).chain(numbers.iter().map(u64::to_string)).collect()
}

/// Adds two counts; of the peaks it takes the higher one. Counts may be anything, so sums saturate (RE1).
fn plus(one: MessageCounts, other: MessageCounts) -> MessageCounts {
    let both = |a: u64, b: u64| a.saturating_add(b);
    let protocols = |a: ProtocolCounts, b: ProtocolCounts| ProtocolCounts {
        messages: both(a.messages, b.messages),
        bytes: both(a.bytes, b.bytes),
        unexpected: both(a.unexpected, b.unexpected),
    };
    MessageCounts {
        eager: protocols(one.eager, other.eager),
        rendezvous: protocols(one.rendezvous, other.rendezvous),
        received: both(one.received, other.received),
        fallbacks: both(one.fallbacks, other.fallbacks),
        unexpected_bytes: one.unexpected_bytes.max(other.unexpected_bytes),
        dropped: both(one.dropped, other.dropped),
    }
}

//! Sends that wait for their receive while the receiver waits for something else: why programs hang with
//! long messages that work with short ones.

use std::collections::BTreeMap;

use transport_lapi::bootstrap::board::{Call, Phase, Wait};
use transport_lapi::config::RENDEZVOUS_FROM;

use super::INDENT;
use super::standing::Standing;
use super::words::{self, is_collective, on_communicator, operation_with_peer, ranks, tag};

/// Most lines, of messages that are told one by one.
const MAX_LINES: usize = 4;

/// A send of `from` that waits.
struct Unfetched<'a> {
    from: usize,
    to: usize,
    wait: &'a Wait,
}

/// The ranks that have begun equal sends: receiver, context, tag, bytes, and whether they go by
/// rendezvous.
type Groups = BTreeMap<(usize, u64, Option<i32>, u64, bool), Vec<usize>>;

/// What holds such sends up; empty where there is none.
pub(super) fn text(standings: &[Standing]) -> String {
    let (own, others): (Vec<_>, Vec<_>) =
        unfetched(standings).into_iter().partition(|send| send.from == send.to);
    let (mutual, others): (Vec<_>, Vec<_>) = others
        .into_iter()
        .partition(|send| is_rendezvous(send.wait) && sends_itself(&standings[send.to]));
    to_itself(&own) + &both_send(&mutual) + &to_others(&others, standings)
}

/// All of them, but those that their receiver is about to take.
fn unfetched(standings: &[Standing]) -> Vec<Unfetched<'_>> {
    let ranks = standings.iter().enumerate();
    let sends = ranks.flat_map(|(from, standing)| {
        let sends = standing.holding().filter(|wait| is_unfetched(wait));
        sends.filter_map(move |wait| Some(Unfetched { from, to: wait.peer? as usize, wait }))
    });
    // A receiver that does not exist is a claim.
    sends
        .filter(|send| standings.get(send.to).is_some_and(|to| waits_elsewhere(to, send)))
        .collect()
}

fn is_unfetched(wait: &Wait) -> bool {
    let is_open = matches!(wait.phase, Phase::Offered | Phase::Unanswered);
    wait.sends && is_open && !is_collective(wait.context)
}

fn is_rendezvous(wait: &Wait) -> bool {
    wait.phase == Phase::Offered
}

/// Whether a message goes by rendezvous since it is long: a shorter one does where the user has asked for it.
fn is_large(bytes: u64) -> bool {
    RENDEZVOUS_FROM.iter().any(|(from, _)| bytes >= *from as u64)
}

/// Whether a rank waits, and not for this message.
fn waits_elsewhere(receiver: &Standing, send: &Unfetched<'_>) -> bool {
    let waits = receiver.holding().next().is_some() || receiver.is_at_its_end();
    let takes = |wait: &Wait| {
        let is_receive = !wait.sends && wait.phase == Phase::Unmatched;
        let from = wait.peer.is_none_or(|peer| peer as usize == send.from);
        let fits = wait.tag.is_none() || wait.tag == send.wait.tag;
        is_receive && from && fits && wait.context == send.wait.context
    };
    receiver.is_alive && !receiver.is_halted() && waits && !receiver.holding().any(takes)
}

fn sends_itself(standing: &Standing) -> bool {
    standing.holding().any(is_unfetched)
}

fn senders(sends: &[Unfetched<'_>]) -> Vec<usize> {
    let mut senders: Vec<usize> = sends.iter().map(|send| send.from).collect();
    senders.dedup();
    senders
}

fn to_itself(sends: &[Unfetched<'_>]) -> String {
    let senders = senders(sends);
    let what = match senders.len() {
        0 => return String::new(),
        1 => "sends to itself before it receives",
        _ => "send to themselves before they receive",
    };
    format!("{INDENT}{} {what}: use sendrecv or isend\n", ranks(&senders))
}

fn both_send(sends: &[Unfetched<'_>]) -> String {
    let senders = senders(sends);
    let and_receivers = match senders.len() {
        0 => return String::new(),
        1 => "and its receiver",
        _ => "and their receivers",
    };
    let are_large = sends.iter().all(|send| is_large(send.wait.bytes));
    format!(
        "{INDENT}{} {and_receivers} send first: {} wait for their receive (rendezvous); use sendrecv or \
         isend, or let one side receive first\n",
        ranks(&senders),
        if are_large { "large messages" } else { "their messages" }
    )
}

fn to_others(sends: &[Unfetched<'_>], standings: &[Standing]) -> String {
    let mut groups = Groups::new();
    for Unfetched { from, to, wait } in sends {
        let key = (*to, wait.context, wait.tag, wait.bytes, is_rendezvous(wait));
        groups.entry(key).or_default().push(*from);
    }
    let left_out = groups.len().saturating_sub(MAX_LINES);
    let mut lines: Vec<String> = groups
        .iter()
        .take(MAX_LINES)
        .map(|((to, context, tag, bytes, is_rendezvous), from)| {
            let message = message(from, *to, *bytes, &envelope(*tag, *context));
            let why = match (is_rendezvous, is_large(*bytes)) {
                (true, true) => LARGE,
                (true, false) => "it goes by rendezvous",
                (false, _) => "it is synchronous",
            };
            let instead = instead(*to, &standings[*to]);
            format!("{message} waits for its receive, since {why}; {instead}")
        })
        .collect();
    if left_out > 0 {
        lines.push(format!("and {left_out} more kinds of messages that wait for their receive"));
    }
    lines.iter().map(|line| format!("{INDENT}{line}\n")).collect()
}

/// Why a message waits that would not with another length.
const LARGE: &str = "it goes by rendezvous (shorter ones may be sent eagerly, but correct programs do not \
                     rely on that)";

fn message(from: &[usize], to: usize, bytes: u64, envelope: &str) -> String {
    let bytes = words::bytes(bytes);
    match from {
        [from] => format!("rank {from}'s message of {bytes} to rank {to} ({envelope})"),
        _ => format!("each message of {bytes} of {} to rank {to} ({envelope})", ranks(from)),
    }
}

fn envelope(wanted: Option<i32>, context: u64) -> String {
    tag(wanted) + &on_communicator(context)
}

/// What the receiver does.
fn instead(rank: usize, receiver: &Standing) -> String {
    let mut waits = receiver.holding().filter(|wait| wait.call != Call::Finish);
    match waits.next() {
        Some(wait) => {
            format!("rank {rank} waits for something else first: {}", operation_with_peer(wait))
        }
        None => format!("rank {rank} has come to its end without it"),
    }
}

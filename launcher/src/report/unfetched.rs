//! Sends that wait for their receive while the receiver waits for something else: why programs hang with
//! long messages that work with short ones.

use transport_lapi::bootstrap::board::{Phase, Wait};
use transport_lapi::config::RENDEZVOUS_FROM;

use super::INDENT;
use super::standing::Standing;
use super::words::{is_collective, ranks};

/// A send of `from` that waits.
struct Unfetched<'a> {
    from: usize,
    to: usize,
    wait: &'a Wait,
}

/// What holds such sends up; empty where there is none.
pub(super) fn text(standings: &[Standing]) -> String {
    let (own, others): (Vec<_>, Vec<_>) =
        unfetched(standings).into_iter().partition(|send| send.from == send.to);
    let (mutual, mut others): (Vec<_>, Vec<_>) = others
        .into_iter()
        .partition(|send| is_rendezvous(send.wait) && sends_itself(&standings[send.to]));
    others.retain(|send| is_rendezvous(send.wait) && is_large(send.wait.bytes));
    [
        line(
            &own,
            ["sends to itself before it receives", "send to themselves before they receive"],
            "use sendrecv or isend",
        ),
        line(
            &mutual,
            ["and its receiver send first", "and their receivers send first"],
            "messages wait for their receive (rendezvous); use sendrecv or isend, or let one side receive \
             first",
        ),
        line(
            &others,
            ["sends what its receiver does not take first", "send what their receivers do not take first"],
            "large messages wait for their receive (rendezvous; shorter ones may be sent eagerly, but correct \
             programs do not rely on that)",
        ),
    ]
    .concat()
}

/// A line about the senders, in words for one and for several.
fn line(sends: &[Unfetched<'_>], [one, several]: [&str; 2], meaning: &str) -> String {
    let mut senders: Vec<usize> = sends.iter().map(|send| send.from).collect();
    senders.dedup();
    match senders.len() {
        0 => String::new(),
        1 => format!("{INDENT}{} {one}: {meaning}\n", ranks(&senders)),
        _ => format!("{INDENT}{} {several}: {meaning}\n", ranks(&senders)),
    }
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

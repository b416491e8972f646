//! The loss of a rank ends the operations that need it, and no others.
//!
//! - LO1: an operation that needs a lost rank fails once, with an error that names the rank. In a context without
//!   members these are a send to the rank, a receive or probe from it, and a receive from any source that is posted
//!   when the loss is noticed. Messages from the lost rank that have arrived in full can still be received there, and
//!   later receives from any source wait for the remaining ranks. In a context with members ([`crate::Members`]) every
//!   send, receive and probe fails when a member is lost, even if its peer is another rank that lives and has an
//!   unexpected message here: the peer may have failed in the same collective operation, and then never does its part.
//!   The loss of a rank that is not a member ends nothing there. The messages of a call that only some ranks make have
//!   the members of that call instead.
//! - LO2: an operation fails only when no peer can touch its buffer any more. Before [`lost`] runs, the transport has
//!   ended everything that was under way to the rank and from it. Gets that are being carried out end by themselves.
//!   The data of a send to the rank are withdrawn first. A send to a rank that lives is withdrawn as if by its client
//!   (`backend/withdrawal.rs`): it ends when the receiver has answered, and succeeds if the receiver has taken the
//!   message. A receive whose message is coming from a rank that lives ends by itself.
//! - LO3: afterwards no operation starts that needs the rank. From the first loss on, no message is short enough for
//!   the fast path of sends ([`Credits::spend_short`]), so every send and receive checks [`Losses`] first.

use transport_lapi::Outbox;

use crate::backend::{self, withdrawal};
use crate::matching::Pattern;
use crate::request::{self, Operation, Receiving, Requests, Sending};
use crate::state::State;
use crate::state::losses::error;
use crate::state::unexpected::{Unexpected, UnexpectedBody};

/// Ends the operations that need rank `lost`, whose loss was just noticed.
pub(crate) fn lost(state: &mut State, outbox: &mut Outbox<State>, lost: u32) {
    state.losses.ranks.push(lost);
    state.is_cautious = true;
    state.losses.first_loss.get_or_insert(lost);
    state.credits.call_short(0);
    let keys: Vec<u64> = state.requests.iter().map(|(key, _)| key).collect();
    for key in keys {
        let State { requests, matcher, losses, .. } = state;
        match requests.get(key) {
            Some(Operation::Send(sending)) if sending.dest == lost => {
                backend::lose_send(state, outbox, key, error(lost));
            }
            Some(Operation::Send(Sending { context, tag, .. }))
                if losses.members.need(*context, Some(*tag), lost) =>
            {
                withdrawal::ask(state, outbox, key, error(lost));
            }
            Some(Operation::Posted(_)) => {
                let number = request::number(key);
                let ends = |pattern: Pattern| losses.end_posted(&pattern, lost);
                if matcher.pattern_of(number).is_some_and(ends) && matcher.cancel_posted(number) {
                    fail(requests, key, lost);
                }
            }
            // The Get of a rendezvous ends by itself.
            Some(Operation::Receiving(Receiving { matched, .. }))
                if matched.source == lost && matched.data.is_none() =>
            {
                fail(requests, key, lost);
            }
            Some(&Operation::Client { context, tag, peer: Some(peer), .. })
                if peer == lost || losses.members.need(context, Some(tag), lost) =>
            {
                fail(requests, key, lost);
            }
            _ => {}
        }
    }
    // Keep only those unexpected messages that have arrived in full.
    let is_here = |unexpected: &Unexpected| {
        matches!(
            unexpected.body,
            UnexpectedBody::Eager { arrived: true, .. } | UnexpectedBody::Failure(_)
        )
    };
    state.drop_unexpected(|unexpected| unexpected.source == lost && !is_here(unexpected));
    // Drop the buffers of failed receives: nobody fills them any more.
    let of_failed = |unexpected: &Unexpected| {
        let waits = matches!(
            unexpected.body,
            UnexpectedBody::Eager { arrived: false, waiting: Some(_), .. }
        );
        unexpected.source == lost && waits
    };
    let broken =
        state.unexpected.iter().filter(|(_, unexpected)| of_failed(unexpected)).map(|(key, _)| key);
    for key in broken.collect::<Vec<_>>() {
        state.forget_unexpected(key);
    }
}

/// Fails an operation because rank `lost` is lost.
pub(crate) fn fail(requests: &mut Requests, key: u64, lost: u32) {
    requests.end(key, Operation::Failed(Box::new(error(lost))));
}

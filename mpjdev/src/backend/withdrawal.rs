//! Withdrawing a send to a rank that is not lost.
//!
//! The receiver of a rendezvous may be reading the sender's buffer, or may begin to at any moment, and only the
//! receiver knows. So a sender that gives up a message sends WITHDRAW, which arrives after the message ([`ask`]). The
//! receiver answers every message once:
//!
//! | at the receiver, the message | the receiver | the send | the receive |
//! |---|---|---|---|
//! | has met neither a receive nor a matched probe | forgets it and answers WITHDRAWN | fails | meets another message |
//! | has met one | answers DONE, as always, when a receive takes it | ends well | ends well |
//!
//! So a withdrawn message is as if it had never been sent. If it was withdrawn because a rank was lost that both ends
//! need, the receiver notices that loss too, and its receive fails for it.
//!
//! The send's buffer stays untouched until the answer comes. An eager message of standard mode cannot be
//! withdrawn: its send ends when its data have left.
//!
//! The receiver finds the message in constant time ([`Withdrawable`]), since programs withdraw many messages at once.

use transport_lapi::{ForeignBytes, Outbox, ShortHandler};

use super::{NextHandler, answered, is_bare};
use crate::envelope::{PeerError, WITHDRAW, WITHDRAWN};
use crate::error::Error;
use crate::state::State;
use crate::state::unexpected::{Unexpected, UnexpectedBody};

/// The handlers of both messages.
pub(super) const SHORT: [(u8, ShortHandler<State>); 2] =
    [(WITHDRAW, asked), (WITHDRAWN, withdrawn)];

/// Asks the receiver of the send `key` to forget the message, if an answer to the send is still outstanding.
pub(crate) fn ask(state: &mut State, outbox: &mut Outbox<State>, key: u64, because: Error) {
    let Some(sending) = state.requests.sending(key) else { return };
    if sending.unanswered && sending.failed.is_none() {
        sending.failed = Some(Box::new(because));
        let dest = sending.dest;
        state.post(outbox, dest, WITHDRAW, key);
    }
}

/// WITHDRAW: a sender gives up a message.
fn asked(
    state: &mut State,
    origin: u32,
    request: u64,
    udata: ForeignBytes<'_>,
) -> Option<NextHandler> {
    if !is_bare(state, origin, udata) {
        return None;
    }
    state.withdrawable.begin(&state.matcher, &state.unexpected);
    let (_, key) = state.withdrawable.find((origin, request))?;
    Some((leave, key))
}

/// Forgets an unexpected message that its sender withdraws, unless a matched probe has taken it out of the queue.
fn leave(state: &mut State, outbox: &mut Outbox<State>, key: u64) {
    let Some(&Unexpected { source, len, ref body, .. }) = state.unexpected.get(key) else { return };
    let has_credit = matches!(body, UnexpectedBody::Eager { .. });
    let Some(request) = body.answerable() else { return };
    let queued = state.withdrawable.find((source, request));
    if queued.and_then(|(ticket, _)| state.matcher.remove_unexpected(ticket)).is_none() {
        return;
    }
    state.forget_unexpected(key);
    if has_credit {
        state.release_credit(outbox, source, len);
    }
    state.post(outbox, source, WITHDRAWN, request);
}

/// WITHDRAWN: the receiver has forgotten the message of the send `request`.
fn withdrawn(
    state: &mut State,
    origin: u32,
    request: u64,
    udata: ForeignBytes<'_>,
) -> Option<NextHandler> {
    if !is_bare(state, origin, udata) {
        return None;
    }
    match state.requests.sending(request) {
        Some(sending)
            if sending.dest == origin && sending.unanswered && sending.failed.is_some() =>
        {
            sending.unanswered = false;
            Some((answered, request))
        }
        _ => {
            state.violation(origin, PeerError::StrayWithdrawn);
            None
        }
    }
}

//! Withdrawing a send to a rank that lives.
//!
//! The receiver of a rendezvous may be reading the sender's buffer, or begin to at any moment, and only the receiver
//! knows. So a sender that gives a message up says so with WITHDRAW, which comes behind the message ([`ask`]). The
//! receiver answers every message once:
//!
//! | at the receiver, the message | the receiver | the send | the receive |
//! |---|---|---|---|
//! | has met no receive | answers WITHDRAWN | fails | fails, whenever it meets what is left of the message |
//! | has met a receive, which takes it or has taken it | answers DONE, as always | ends well | ends well |
//!
//! Until the answer the send's buffer stays as it is. An eager message of standard mode has no answer, and is not
//! withdrawn: its send ends when its data have left.

use transport_lapi::{ForeignBytes, Outbox, ShortHandler};

use super::{NextHandler, answered, is_bare};
use crate::early::{Early, EarlyBody};
use crate::envelope::{WITHDRAW, WITHDRAWN};
use crate::error::{Error, PeerError};
use crate::request::Operation;
use crate::state::State;

/// The handlers of both messages.
pub(super) fn short_handlers() -> [(u8, ShortHandler<State>); 2] {
    [(WITHDRAW, asked), (WITHDRAWN, withdrawn)]
}

/// Asks the receiver of the send `key` not to take the message, if there is an answer to come.
pub(crate) fn ask(state: &mut State, outbox: &mut Outbox<State>, key: u64, because: Error) {
    let Some(sending) = state.requests.sending(key) else { return };
    if sending.unanswered && sending.failed.is_none() {
        sending.failed = Some(Box::new(because));
        let dest = sending.dest;
        state.post(outbox, dest, WITHDRAW, key);
    }
}

/// WITHDRAW: a sender gives a message up. One that is not early any more is answered when it has been taken, or was.
fn asked(
    state: &mut State,
    origin: u32,
    request: u64,
    udata: ForeignBytes<'_>,
) -> Option<NextHandler> {
    if !is_bare(state, origin, udata) {
        return None;
    }
    let is_meant = |early: &Early| early.source == origin && early.body.may_be_withdrawn(request);
    let (key, _) = state.early.iter().find(|(_, early)| is_meant(early))?;
    Some((leave, key))
}

/// Leaves an early message to its sender, and keeps what it was, for the receive that it meets.
fn leave(state: &mut State, outbox: &mut Outbox<State>, key: u64) {
    let Some(early) = state.early.get_mut(key) else { return };
    let Early { source, len, .. } = *early;
    let request = match std::mem::replace(&mut early.body, EarlyBody::Withdrawn) {
        EarlyBody::Rendezvous { sender, .. } => Some(sender),
        EarlyBody::Eager { sync, .. } => {
            state.stats.early_bytes -= len as u64;
            state.release_credit(outbox, source, len);
            sync
        }
        EarlyBody::Withdrawn => None,
    };
    if let Some(request) = request {
        state.post(outbox, source, WITHDRAWN, request);
    }
}

/// The receive `key` has met a message that was withdrawn.
pub(super) fn receive(state: &mut State, early: u64, key: u64) {
    if let Some(Early { source: source_rank, tag, .. }) = state.forget_early(early) {
        let error = Error::Withdrawn { source_rank, tag };
        state.requests.end(key, Operation::Failed(Box::new(error)));
    }
}

/// WITHDRAWN: the receiver will not take what the request sends.
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

//! The two protocols, eager and rendezvous, behind one trait. Both use the same matching. A receive may match a message
//! of either protocol, so every rank serves both, whichever it uses for its own sends. Here are also the checks of what
//! peers' envelopes claim that both protocols need: lengths, answers, data where there must be none.

mod collective_failure;
pub(crate) mod eager;
pub(crate) mod loss;
pub(crate) mod rendezvous;
pub(crate) mod withdrawal;

use transport_lapi::{
    ForeignBytes, HeaderHandler, InlineHandler, LapiError, Next, Outbox, Session, ShortHandler,
    Sink, Source,
};

use self::eager::Eager;
use self::rendezvous::Rendezvous;
use crate::description::Told;
use crate::envelope::{self, PeerError};
use crate::error::Error;
use crate::request::Operation;
use crate::state::State;
use crate::state::unexpected::UnexpectedBody;

/// A message to send, whose arguments have been checked.
#[derive(Debug)]
pub(crate) struct Outbound {
    pub dest: u32,
    pub context: u32,
    pub tag: i32,
    pub data: Source,
    /// Whether the send completes only when the matching receive has begun (MPI_Ssend).
    pub synchronous: bool,
    /// Whether the receiver was told of the message.
    pub is_told: bool,
}

/// A protocol between the device and the transport.
pub(crate) trait Backend {
    /// The handlers of this protocol's short messages, by index.
    const SHORT: &'static [(u8, ShortHandler<State>)];

    /// The header handlers of its other messages, by index.
    const HEADERS: &'static [(u8, HeaderHandler<State>)];

    /// Starts a send; returns the key of its request.
    fn send(session: &mut Session<State>, message: Outbound) -> Result<u64, LapiError>;

    /// Moves the data of the unexpected message `unexpected` into `into`, at once or later, for the receive `key` that
    /// has matched it. The message came by this protocol and has already left the unexpected queue.
    fn receive(
        state: &mut State,
        outbox: &mut Outbox<State>,
        unexpected: u64,
        key: u64,
        into: Sink,
    );
}

/// Registers the handlers of each protocol and the handlers that both use.
pub(crate) fn register(session: &mut Session<State>) -> Result<(), LapiError> {
    for &(index, handler) in Eager::HEADERS.iter().chain(Rendezvous::HEADERS) {
        session.addr_set(usize::from(index), handler)?;
    }
    let shared: [(u8, ShortHandler<State>); 3] =
        [(envelope::DONE, done), (envelope::CREDIT, credit), (envelope::TOLD, told)];
    let own = Eager::SHORT.iter().chain(Rendezvous::SHORT);
    for &(index, handler) in
        own.chain(&shared).chain(&withdrawal::SHORT).chain(&collective_failure::SHORT)
    {
        session.addr_set_short(usize::from(index), handler)?;
    }
    Ok(())
}

/// Matches a receive into `into` with an unexpected message that has already left the unexpected queue, and passes both
/// to the protocol by which the message came. Returns the key of the receive.
pub(crate) fn receive(
    state: &mut State,
    outbox: &mut Outbox<State>,
    unexpected: u64,
    into: Sink,
) -> u64 {
    if let Some(misfit) = state.check_unexpected(unexpected) {
        let dropped = receive(state, outbox, unexpected, Sink::EMPTY);
        state.forsake(dropped);
        return state.requests.insert(|| misfit);
    }
    let key = state.requests.insert(|| Operation::Cancelled);
    match state.unexpected.get(unexpected).map(|unexpected| &unexpected.body) {
        Some(UnexpectedBody::Eager { .. }) => Eager::receive(state, outbox, unexpected, key, into),
        Some(UnexpectedBody::Rendezvous { .. }) => {
            Rendezvous::receive(state, outbox, unexpected, key, into)
        }
        Some(UnexpectedBody::Failure(_)) => collective_failure::receive(state, unexpected, key),
        None => {}
    }
    key
}

/// Returns the length of a message, or reports a violation if no buffer of this machine could have that length.
#[inline]
fn length(state: &mut State, origin: u32, len: u64) -> Option<usize> {
    match usize::try_from(len) {
        Ok(len) if len <= isize::MAX as usize => Some(len),
        _ => {
            state.violation(origin, PeerError::Length { len });
            None
        }
    }
}

/// The handler that runs next, and its argument.
type NextHandler = (InlineHandler<State>, u64);

/// Returns whether a message carries no data; reports a violation if it does.
fn is_bare(state: &mut State, origin: u32, udata: ForeignBytes<'_>) -> bool {
    match udata.len() as u64 {
        0 => true,
        len => {
            state.violation(origin, PeerError::Data { len });
            false
        }
    }
}

/// DONE: the receiver has all data of a rendezvous or of a synchronous send.
fn done(
    state: &mut State,
    origin: u32,
    request: u64,
    udata: ForeignBytes<'_>,
) -> Option<NextHandler> {
    if !is_bare(state, origin, udata) {
        return None;
    }
    match state.requests.sending(request) {
        Some(sending) if sending.dest == origin && sending.unanswered => {
            // The receiver took the message before a withdrawal reached it, so the send succeeds.
            (sending.unanswered, sending.failed) = (false, None);
            if state.records.is_some() {
                let about = (sending.dest, sending.tag, sending.len);
                state.phases.end(request, "rendezvous: until answered", about);
            }
            Some((answered, request))
        }
        _ => {
            state.violation(origin, PeerError::StrayDone);
            None
        }
    }
}

/// Fails a send whose receiver is lost. The transport has dropped what was queued for that receiver, so the send ends
/// as soon as its region is revoked and its data have left. A send that was being withdrawn fails for the sender's
/// reason.
pub(crate) fn lose_send(state: &mut State, outbox: &mut Outbox<State>, key: u64, error: Error) {
    if let Some(sending) = state.requests.sending(key) {
        sending.unanswered = false;
        sending.failed.get_or_insert_with(|| Box::new(error));
        answered(state, outbox, key);
    }
}

/// Revokes the region of a send that was answered, or that will never be: the receiver does not need its data any more.
fn answered(state: &mut State, outbox: &mut Outbox<State>, info: u64) {
    if state.records.is_some() {
        state.phases.forget(info);
    }
    let Some(sending) = state.requests.sending(info) else { return };
    let Some(region) = sending.registered else { return end_send(state, info) };
    if outbox.deregister(region, Next::Inline(revoked, info)).is_some() {
        revoked(state, outbox, info);
    }
}

/// The region of a send is revoked: nobody reads its data any more.
fn revoked(state: &mut State, _: &mut Outbox<State>, info: u64) {
    let Some(sending) = state.requests.sending(info) else { return };
    sending.registered = None;
    end_send(state, info);
}

/// The data of an eager send have left the user's buffer.
fn send_complete(state: &mut State, _: &mut Outbox<State>, info: u64) {
    if let Some(sending) = state.requests.sending(info) {
        sending.in_flight = false;
        end_send(state, info);
    }
}

/// Ends a send if it waits for nothing any more.
fn end_send(state: &mut State, key: u64) {
    if let Some(sending) = state.requests.sending(key) {
        if !sending.in_flight && !sending.unanswered && sending.registered.is_none() {
            let ended = sending.ended();
            state.requests.end(key, ended);
        }
    }
}

/// TOLD: what the sender of the next message says of it.
fn told(
    state: &mut State,
    origin: u32,
    fingerprint: u64,
    text: ForeignBytes<'_>,
) -> Option<NextHandler> {
    match Told::unpack(fingerprint, text) {
        Ok(told) => state.tell(origin, told),
        Err(violation) => state.violation(origin, violation),
    }
    None
}

/// CREDIT: the receiver returns credit for unexpected messages.
fn credit(
    state: &mut State,
    origin: u32,
    bytes: u64,
    udata: ForeignBytes<'_>,
) -> Option<NextHandler> {
    if is_bare(state, origin, udata) {
        if let Err(error) = state.credits.refund(origin, bytes) {
            state.violation(origin, error);
        }
    }
    None
}

#[cfg(test)]
mod tests;

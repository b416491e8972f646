//! The eager backend: one Amsend carries envelope and data (the *Amsend only* implementation).
//!
//! A sender spends credit for unexpected-message memory at the receiver, whether the message will need it or not
//! ([`spend`]), and sends. Most messages leave at once (`Device::try_send`); the others wait in the transport
//! ([`start`]). The send is complete when its data have left the user's buffer and, in synchronous mode, the receiver
//! has answered.
//!
//! At the receiver a message matches a posted receive, or it is unexpected:
//!
//! | | in one packet | in several packets |
//! |---|---|---|
//! | a receive is posted | [`arrived_whole`] copies the bytes into its buffer and ends it | [`accept`] names its buffer, the transport stores the bytes there, [`stored`] ends it |
//! | none is | [`keep`] copies them into an unexpected buffer of their length | [`keep`] names such a buffer, [`unexpected_stored`] notes that they are there |
//!
//! A receive that is posted later finds the unexpected message ([`Eager::receive`]). The bytes are copied once more
//! when all of them have arrived ([`hand_over`]).

use std::num::NonZeroU64;

use transport_lapi::{
    Amsend, Arrival, ForeignBytes, HeaderAction, HeaderHandler, InlineHandler, LapiError, Next,
    Outbox, Session, ShortHandler, Sink,
};

use super::{Backend, Outbound, length, send_complete};
use crate::backend::loss;
use crate::envelope::{self, EAGER, PeerError};
use crate::matching::Envelope;
use crate::request::{Matched, Operation, Receiving, Sending, Status};
use crate::state::State;
use crate::state::deliveries::Taker;
use crate::state::unexpected::{Unexpected, UnexpectedBody};
use crate::state::unexpected_buffer::UnexpectedBuffer;

/// The eager protocol.
pub(crate) struct Eager;

impl Backend for Eager {
    const SHORT: &'static [(u8, ShortHandler<State>)] = &[(EAGER, arrived_whole)];

    const HEADERS: &'static [(u8, HeaderHandler<State>)] = &[(EAGER, arrived)];

    fn send(session: &mut Session<State>, message: Outbound) -> Result<u64, LapiError> {
        let len = message.data.len();
        let key = start(session, message)?;
        session.state.stats.eager.messages += 1;
        session.state.stats.eager.bytes += len as u64;
        Ok(key)
    }

    fn receive(
        state: &mut State,
        outbox: &mut Outbox<State>,
        unexpected: u64,
        key: u64,
        into: Sink,
    ) {
        let Some(message) = state.unexpected.get_mut(unexpected) else { return };
        let Unexpected { source, tag, context, len, .. } = *message;
        let UnexpectedBody::Eager { arrived, sync, waiting, .. } = &mut message.body else {
            return;
        };
        if !*arrived && state.losses.contain(source) {
            state.forget_unexpected(unexpected);
            return loss::fail(&mut state.requests, key, source);
        }
        *waiting = Some(key);
        let (arrived, sender) = (*arrived, sync.and_then(NonZeroU64::new));
        let matched = Matched { source, tag, context, len, sender, data: None };
        state.begin_receiving(key, into, matched);
        if arrived {
            hand_over(state, outbox, unexpected);
        }
    }
}

/// After this many rounds of progress that did something else, a sender stops looking for credit: each of these rounds
/// may copy a slice of a long message.
const BUSY_LOOKS: u32 = 4;

/// Spends the credit for a message of `len` bytes to `dest`. If there is not enough, first looks whether some has
/// arrived, since a rank that only sends makes no other progress. An error found by that look concerns other messages;
/// the next call that makes progress reports it (DS3).
pub(crate) fn spend(session: &mut Session<State>, dest: u32, len: usize) -> bool {
    if session.state.credits.spend(dest, len) {
        return true;
    }
    let looks = session.state.credits.looks(dest, len);
    let mut busy = 0;
    for _ in 0..looks {
        if session.round() == 0 {
            continue;
        }
        if session.state.credits.spend(dest, len) {
            return true;
        }
        busy += 1;
        if busy == BUSY_LOOKS {
            break;
        }
    }
    if looks > 0 {
        session.state.credits.looked_in_vain(dest);
    }
    false
}

/// Starts a send that may have to wait for room in the transport or for an answer.
fn start(session: &mut Session<State>, message: Outbound) -> Result<u64, LapiError> {
    let Outbound { dest, context, tag, data, synchronous, is_told } = message;
    let len = data.len();
    let key = session.state.requests.insert(|| {
        Operation::Send(Sending {
            dest,
            tag,
            context,
            len,
            in_flight: true,
            unanswered: synchronous,
            registered: None,
            failed: None,
        })
    });
    // A second word keeps a message off the path of most, which compares no descriptions.
    let sync = if synchronous { key } else { 0 };
    let words = [envelope::eager(context, tag), sync].map(u64::to_le_bytes);
    let uhdr = words[..1 + usize::from(synchronous || is_told)].as_flattened();
    let mut amsend = Amsend::new(dest, EAGER, uhdr, data);
    amsend.on_origin = Next::Inline(send_complete, key);
    match session.amsend(amsend) {
        Ok(_) => Ok(key),
        Err(error) => {
            session.state.requests.forget(key);
            Err(error)
        }
    }
}

/// EAGER in one packet, with the header in a register: the path of most messages.
fn arrived_whole(
    state: &mut State,
    source: u32,
    uhdr: u64,
    body: ForeignBytes<'_>,
) -> Option<(InlineHandler<State>, u64)> {
    let (context, tag) = envelope::of_eager(uhdr);
    let State { matcher, requests, credits, stats, .. } = state;
    let Some(number) = matcher.take_posted(Envelope { context, source, tag }) else {
        arrived_unexpected(state, source, uhdr, body);
        return None;
    };
    requests.receive(number, source, tag, body);
    stats.received += 1;
    match credits.pass(source, body.len()) {
        Ok(false) => None,
        Ok(true) => Some((State::settle_credit, u64::from(source))),
        Err(error) => {
            state.violation(source, error);
            None
        }
    }
}

/// Handles such a message if no receive for it is posted.
#[inline(never)]
fn arrived_unexpected(state: &mut State, origin: u32, uhdr: u64, data: ForeignBytes<'_>) {
    let (len, data) = (data.len() as u64, Some(data));
    // No receive fits, and all of the message is in its packet and is copied: the transport has nothing left to store.
    let _ = accept(state, &Arrival { origin, uhdr: &[], len, data }, uhdr, None);
}

/// EAGER: the first packet of an eager message has come. The user header is the envelope, followed in synchronous mode
/// by the request of the sender, or by 0.
#[inline]
fn arrived(state: &mut State, arrival: Arrival<'_>) -> HeaderAction<State> {
    let mut words = envelope::words(arrival.uhdr);
    match [words.next(), words.next(), words.next()] {
        [Some(word), sync, None] => accept(state, &arrival, word, sync.filter(|sync| *sync != 0)),
        _ => {
            let error = PeerError::Envelope { len: arrival.uhdr.len(), needed: 8 };
            refuse(state, arrival.origin, error)
        }
    }
}

#[cold]
fn refuse(state: &mut State, origin: u32, error: PeerError) -> HeaderAction<State> {
    state.violation(origin, error);
    HeaderAction::Drop
}

/// Chooses where the bytes of an eager message go: into the buffer of its receive, or into an unexpected buffer.
#[inline]
fn accept(
    state: &mut State,
    arrival: &Arrival<'_>,
    word: u64,
    sync: Option<u64>,
) -> HeaderAction<State> {
    let source = arrival.origin;
    let (context, tag) = envelope::of_eager(word);
    let Some(len) = length(state, source, arrival.len) else {
        return HeaderAction::Drop;
    };
    if let Err(error) = state.credits.charge(source, len) {
        return refuse(state, source, error);
    }
    if let (Some(data), None) = (arrival.data, sync) {
        if let Some(taker) = state.deliveries.taker(context) {
            return deliver(state, data, taker, Status::new(source, tag, len));
        }
    }
    let envelope = Envelope { context, source, tag };
    let Some((key, into)) = state.match_posted(envelope, len) else {
        return keep(state, arrival, envelope, len, sync);
    };
    let (sender, capacity) = (sync.and_then(NonZeroU64::new), into.len());
    let matched = Matched { source, tag, context, len, sender, data: None };
    let receiving = Receiving { into: Sink::EMPTY, capacity, matched };
    state.requests.change(key, Operation::Receiving(receiving));
    HeaderAction::Deliver { into, next: Next::Inline(stored, key) }
}

/// All bytes of a message are in the user's buffer: ends the receive.
fn stored(state: &mut State, outbox: &mut Outbox<State>, key: u64) {
    let Some(&mut Receiving { capacity, matched, .. }) = state.requests.receiving(key) else {
        return;
    };
    let Matched { source, tag, len, .. } = matched;
    state.end_receive(key, source, tag, len, capacity);
    state.answer(outbox, &matched);
    state.release_credit(outbox, matched.source, matched.len);
}

/// Delivers a message that is all here, and whose sender awaits nothing.
fn deliver(
    state: &mut State,
    data: ForeignBytes<'_>,
    taker: Taker,
    status: Status,
) -> HeaderAction<State> {
    let Some(buffer) = UnexpectedBuffer::filled(data) else {
        return refuse(state, status.source, PeerError::Length { len: data.len() as u64 });
    };
    state.deliveries.deliver_bytes(taker, buffer.into_bytes(), status);
    HeaderAction::Consumed
}

/// Puts an unexpected message into the unexpected queue.
#[cold]
fn keep(
    state: &mut State,
    arrival: &Arrival<'_>,
    envelope: Envelope,
    len: usize,
    sync: Option<u64>,
) -> HeaderAction<State> {
    let buffer = match arrival.data {
        Some(body) => UnexpectedBuffer::filled(body),
        None => UnexpectedBuffer::new(len),
    };
    let Some(buffer) = buffer else {
        return refuse(state, arrival.origin, PeerError::Length { len: len as u64 });
    };
    state.stats.eager.unexpected += 1;
    state.stats.unexpected_bytes += len as u64;
    state.stats.unexpected_bytes_peak =
        state.stats.unexpected_bytes_peak.max(state.stats.unexpected_bytes);
    let arrived = arrival.data.is_some();
    let body = UnexpectedBody::Eager { buffer, arrived, sync, waiting: None };
    let Envelope { context, source, tag } = envelope;
    let key = state.keep_unexpected(Unexpected { source, tag, context, len, body, told: None });
    match state.unexpected.get_mut(key).map(|unexpected| &mut unexpected.body) {
        Some(UnexpectedBody::Eager { buffer, arrived: false, .. }) => HeaderAction::Deliver {
            into: buffer.region().into(),
            next: Next::Inline(unexpected_stored, key),
        },
        _ => HeaderAction::Consumed,
    }
}

/// All bytes of an unexpected message are in its unexpected buffer.
fn unexpected_stored(state: &mut State, outbox: &mut Outbox<State>, key: u64) {
    let Some(unexpected) = state.unexpected.get_mut(key) else {
        return;
    };
    let UnexpectedBody::Eager { arrived, waiting, .. } = &mut unexpected.body else {
        return;
    };
    *arrived = true;
    if waiting.is_some() {
        hand_over(state, outbox, key);
    }
}

/// Takes the bytes of an unexpected message that has arrived in full and left the queue, without a copy.
pub(crate) fn take_whole(
    state: &mut State,
    outbox: &mut Outbox<State>,
    unexpected: u64,
) -> Option<Vec<u8>> {
    let is_here = state.unexpected.get(unexpected).is_some_and(|unexpected| {
        matches!(unexpected.body, UnexpectedBody::Eager { arrived: true, .. })
    });
    let Unexpected { source, tag, context, len, body, .. } =
        is_here.then(|| state.forget_unexpected(unexpected))??;
    let UnexpectedBody::Eager { buffer, sync, .. } = body else { return None };
    let sender = sync.and_then(NonZeroU64::new);
    state.stats.received += 1;
    state.answer(outbox, &Matched { source, tag, context, len, sender, data: None });
    state.release_credit(outbox, source, len);
    Some(buffer.into_bytes())
}

/// Copies a completely arrived unexpected message into the buffer of the receive that waits for it.
fn hand_over(state: &mut State, outbox: &mut Outbox<State>, unexpected: u64) {
    let Some(Unexpected { body, .. }) = state.forget_unexpected(unexpected) else { return };
    let UnexpectedBody::Eager { buffer, waiting: Some(key), .. } = body else {
        return;
    };
    if let Some(Receiving { into, .. }) = state.requests.receiving(key) {
        into.store(0, ForeignBytes::from_slice(buffer.bytes()));
    }
    state.stats.eager.copies += 1;
    stored(state, outbox, key);
}

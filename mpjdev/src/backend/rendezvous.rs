//! The rendezvous backend (the *Amsend and Get* implementation). An Amsend carries the envelope and says where the data
//! lie. Once a receive matches, the receiver fetches the data with Get into the user's buffer, and answers.
//!
//! The data are never copied into memory of the device, and an unexpected message takes memory only for its envelope. A
//! send is complete when the answer has come, so every rendezvous is synchronous. Until then the sender's buffer stays
//! registered, and the sender has to stay alive.

use std::num::NonZeroU64;

use transport_lapi::{
    ForeignBytes, HeaderHandler, LapiError, Next, Outbox, Session, ShortHandler, Sink,
};

use super::{Backend, NextHandler, Outbound, length};
use crate::envelope::{self, Offer, PeerError, RENDEZVOUS};
use crate::error::Error;
use crate::matching::Envelope;
use crate::request::{Matched, Operation, Receiving, Sending};
use crate::state::State;
use crate::state::unexpected::{Unexpected, UnexpectedBody};

/// The rendezvous protocol.
pub(crate) struct Rendezvous;

impl Backend for Rendezvous {
    const SHORT: &'static [(u8, ShortHandler<State>)] = &[(RENDEZVOUS, arrived)];

    const HEADERS: &'static [(u8, HeaderHandler<State>)] = &[];

    fn send(session: &mut Session<State>, message: Outbound) -> Result<u64, LapiError> {
        let Outbound { dest, context, tag, data, .. } = message;
        let len = data.len();
        let registered = session.register_for(dest, data)?;
        let key = session.state.requests.insert(|| {
            Operation::Send(Sending {
                dest,
                tag,
                context,
                len,
                in_flight: false,
                unanswered: true,
                registered: Some(registered),
                failed: None,
            })
        });
        let word = envelope::eager(context, tag);
        let offer = Offer { request: key, data: registered }.pack();
        if !session.try_amsend_bytes(dest, RENDEZVOUS, word, &offer) {
            let sent = session.amsend_bytes(dest, RENDEZVOUS, &word.to_le_bytes(), &offer);
            sent.inspect_err(|_| {
                session.state.requests.forget(key);
                session.deregister(registered, Next::Nothing);
            })?;
        }
        if session.state.records.is_some() {
            session.state.phases.begin(key);
        }
        session.state.stats.rendezvous.messages += 1;
        session.state.stats.rendezvous.bytes += len as u64;
        Ok(key)
    }

    fn receive(
        state: &mut State,
        outbox: &mut Outbox<State>,
        unexpected: u64,
        key: u64,
        into: Sink,
    ) {
        let Some(Unexpected { source, tag, context, len, body, .. }) =
            state.unexpected.remove(unexpected)
        else {
            return;
        };
        let UnexpectedBody::Rendezvous { data, sender } = body else { return };
        let (sender, data) = (NonZeroU64::new(sender), Some(data));
        let matched = Matched { source, tag, context, len, sender, data };
        state.begin_receiving(key, into, matched);
        fetch(state, outbox, key);
    }
}

/// RENDEZVOUS: an envelope has come.
fn arrived(
    state: &mut State,
    source: u32,
    word: u64,
    offer: ForeignBytes<'_>,
) -> Option<NextHandler> {
    let (context, tag) = envelope::of_eager(word);
    let mut bytes = [0; Offer::MOST];
    let bytes = bytes.get_mut(..offer.len());
    let unpacked = bytes.and_then(|bytes| {
        offer.copy_to(bytes);
        Offer::unpack(bytes)
    });
    let Some(Offer { request: sender, data }) = unpacked else {
        let needed = offer.len().clamp(Offer::LEAST, Offer::MOST);
        let error = PeerError::Envelope { len: offer.len(), needed };
        state.violation(source, error);
        return None;
    };
    let len = length(state, source, data.len)?;
    let envelope = Envelope { context, source, tag };
    match state.match_posted(envelope, len) {
        Some((key, into)) => {
            let (sender, data) = (NonZeroU64::new(sender), Some(data));
            let matched = Matched { source, tag, context, len, sender, data };
            state.begin_receiving(key, into, matched);
            Some((fetch, key))
        }
        None => {
            state.stats.rendezvous.unexpected += 1;
            let body = UnexpectedBody::Rendezvous { data, sender };
            state.keep_unexpected(Unexpected { source, tag, context, len, body, told: None });
            None
        }
    }
}

/// Starts the Get of a receive that has matched an envelope, for as many bytes as fit into the buffer.
fn fetch(state: &mut State, outbox: &mut Outbox<State>, key: u64) {
    let Some(Receiving { into, matched, .. }) = state.requests.receiving(key) else { return };
    let Matched { source, len, data: Some(data), .. } = *matched else { return };
    let into = into.take().truncated(len);
    if state.records.is_some() {
        state.phases.begin(key);
    }
    if let Err(error) = outbox.get(source, data, 0, into, Next::Outcome(fetched, key)) {
        fetched(state, outbox, key, Err(error));
    }
}

/// The Get has ended, successfully or not: ends the receive and answers the sender.
fn fetched(
    state: &mut State,
    outbox: &mut Outbox<State>,
    key: u64,
    outcome: Result<(), LapiError>,
) {
    let Some(&mut Receiving { capacity, matched, .. }) = state.requests.receiving(key) else {
        return;
    };
    let Matched { source, tag, len, .. } = matched;
    if state.records.is_some() {
        state.phases.end(key, "rendezvous: data", (source, tag, len));
    }
    match outcome {
        Ok(()) => state.end_receive(key, source, tag, len, capacity),
        Err(error) => {
            let error = Error::from(error);
            state.losses.first_loss = state.losses.first_loss.or(error.lost_rank());
            state.requests.end(key, Operation::Failed(Box::new(error)));
        }
    }
    state.answer(outbox, &matched);
}

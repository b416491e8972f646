//! The receiving end of failures, which ranks send in collective operations instead of data that they do not have
//! ([`Failure`](crate::envelope::Failure)). A failure matches as the message would have whose place it takes, and may
//! be unexpected.

use std::sync::Arc;

use transport_lapi::{ForeignBytes, ShortHandler};

use super::NextHandler;
use crate::backend::loss;
use crate::envelope::{self, FAILED, Failure};
use crate::error::Error;
use crate::matching::Envelope;
use crate::request::Operation;
use crate::state::State;
use crate::state::unexpected::{Unexpected, UnexpectedBody};

/// The handler of failures.
pub(super) const SHORT: [(u8, ShortHandler<State>); 1] = [(FAILED, arrived)];

/// FAILED: a peer does not have what it was to send.
fn arrived(
    state: &mut State,
    source: u32,
    word: u64,
    body: ForeignBytes<'_>,
) -> Option<NextHandler> {
    let (context, tag) = envelope::of_eager(word);
    let failure = match Failure::unpack(body, state.size) {
        Ok(failure) => Arc::new(failure),
        Err(violation) => {
            state.violation(source, violation);
            return None;
        }
    };
    let envelope = Envelope { context, source, tag };
    match state.match_posted(envelope, 0) {
        Some((key, _)) => fail(state, key, failure),
        None => {
            let body = UnexpectedBody::Failure(failure);
            state.keep_unexpected(Unexpected { source, tag, context, len: 0, body, told: None });
        }
    }
    None
}

/// Ends a receive that has matched an unexpected failure.
pub(super) fn receive(state: &mut State, unexpected: u64, key: u64) {
    if let Some(Unexpected { body: UnexpectedBody::Failure(failure), .. }) =
        state.forget_unexpected(unexpected)
    {
        fail(state, key, failure);
    }
}

fn fail(state: &mut State, key: u64, failure: Arc<Failure>) {
    match failure.lost {
        Some(lost) => {
            state.losses.first_loss.get_or_insert(lost);
            loss::fail(&mut state.requests, key, lost);
        }
        None => state.requests.end(key, Operation::Failed(Box::new(Error::Failed(failure)))),
    }
}

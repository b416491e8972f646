//! The loss of a rank ends the operations that need it, and no others.
//!
//! - LO1: an operation fails with an error that names the lost rank, once: a send to it, a receive or probe from it, and
//!   in a context without members a receive from any source that is posted when the loss is noticed. In a context
//!   with members ([`crate::Members`]) every send, receive and probe fails when one of these is lost, whatever its
//!   other end, also where that lives and has an early message here: it may have failed itself in the collective
//!   operation that they are parts of, and then never does its part. The loss of others ends nothing there. What
//!   came from the rank before its loss can still be received in a context without members, as far as it is here in
//!   full, and later receives from any source wait for the ranks that are left.
//! - LO2: an operation fails when no peer can touch its buffer any more. The transport has ended what was under way
//!   to the rank and from it before [`lost`] runs; gets that are being carried out end by themselves, and the data of
//!   a send to the rank are withdrawn first. A send to a rank that lives is withdrawn as its client would
//!   (`backend/withdrawal.rs`): it ends when the receiver has answered, well if that has
//!   taken the message. A receive whose message is coming from a rank that lives ends by itself.
//! - LO3: after that nothing is started that needs the rank: from the first loss on, the short way of sends finds no
//!   credit ([`crate::credit`]), so every send and receive asks [`Losses`] first.

use transport_lapi::adapter::AdapterError;
use transport_lapi::{LapiError, Outbox};

use crate::backend::{self, withdrawal};
use crate::early::{Early, EarlyBody};
use crate::error::Error;
use crate::matching::Pattern;
use crate::members::Registry;
use crate::request::{self, Operation, Requests, Taking};
use crate::state::State;

/// The ranks that are lost, as far as that was noticed, in the order in which it was; and who needs them.
#[derive(Debug, Default)]
pub(crate) struct Losses {
    ranks: Vec<u32>,
    /// The rank whose loss was the first to end an operation, or to be noticed.
    pub met: Option<u32>,
    /// Which contexts need which ranks.
    pub members: Registry,
}

impl Losses {
    /// Whether none is.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.ranks.is_empty()
    }

    /// Whether `rank` is one of them.
    #[inline(always)]
    pub fn contain(&self, rank: u32) -> bool {
        !self.is_empty() && self.ranks.contains(&rank)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.ranks.len()
    }

    /// The error of an operation of `context` with this other end, if it needs a lost rank; no end is any rank.
    #[inline(always)]
    pub fn check(&self, peer: Option<u32>, context: u32) -> Result<(), Box<Error>> {
        if self.is_empty() { Ok(()) } else { self.check_each(peer, context) }
    }

    #[cold]
    #[inline(never)]
    fn check_each(&self, peer: Option<u32>, context: u32) -> Result<(), Box<Error>> {
        let mut lost = self.ranks.iter().copied();
        let needed = lost.find(|lost| peer == Some(*lost) || self.members.need(context, *lost));
        needed.map_or(Ok(()), |lost| Err(Box::new(error(lost))))
    }

    /// The error of every operation of `context`, if one of its members is lost.
    #[inline(always)]
    pub fn check_members(&self, context: u32) -> Result<(), Box<Error>> {
        self.check(None, context)
    }

    /// The error of a probe that has found nothing, if it needs a lost rank, or asks for any source, in a context
    /// without members, and there are losses beyond those that are `known`.
    pub fn of_probe(&self, pattern: &Pattern, known: usize) -> Option<Error> {
        match (pattern.source, self.members.of(pattern.context)) {
            (None, None) => self.ranks.get(known).map(|lost| error(*lost)),
            (peer, _) => self.check(peer, pattern.context).err().map(|error| *error),
        }
    }

    /// Whether a posted receive ends by the loss of `lost`.
    fn end_posted(&self, pattern: &Pattern, lost: u32) -> bool {
        match (pattern.source, self.members.of(pattern.context)) {
            (Some(source), _) if source == lost => true,
            (_, Some(members)) => members.contains(lost),
            (source, None) => source.is_none(),
        }
    }
}

/// The loss of a rank as an error.
#[cold]
fn error(rank: u32) -> Error {
    LapiError::from(AdapterError::PeerLost { task: rank }).into()
}

/// Rank `lost` is lost: ends the operations that need it.
pub(crate) fn lost(state: &mut State, outbox: &mut Outbox<State>, lost: u32) {
    state.losses.ranks.push(lost);
    state.losses.met.get_or_insert(lost);
    state.credits.close(lost);
    let keys: Vec<u64> = state.requests.iter().map(|(key, _)| key).collect();
    for key in keys {
        let State { requests, matcher, losses, .. } = state;
        match requests.get(key) {
            Some(Operation::Send(sending)) if sending.dest == lost => {
                backend::lose_send(state, outbox, key, error(lost));
            }
            Some(Operation::Send(sending)) if losses.members.need(sending.context, lost) => {
                withdrawal::ask(state, outbox, key, error(lost));
            }
            Some(Operation::Posted(_)) => {
                let number = request::number(key);
                let ends = |pattern: Pattern| losses.end_posted(&pattern, lost);
                if matcher.pattern_of(number).is_some_and(ends) && matcher.cancel_posted(number) {
                    fail(requests, key, lost);
                }
            }
            // The get of a rendezvous ends by itself.
            Some(Operation::Taking(Taking { matched, .. }))
                if matched.source == lost && matched.data.is_none() =>
            {
                fail(requests, key, lost);
            }
            _ => {}
        }
    }
    // Of the early messages those are kept that are here in full.
    let is_here = |early: &Early| matches!(early.body, EarlyBody::Eager { arrived: true, .. });
    state.drop_early_of(lost, |_, early| !is_here(early));
    // Nobody fills the buffers any more of those whose receives have failed.
    let of_failed = |early: &Early| {
        let waits = matches!(early.body, EarlyBody::Eager { arrived: false, waiting: Some(_), .. });
        early.source == lost && waits
    };
    let broken = state.early.iter().filter(|(_, early)| of_failed(early)).map(|(key, _)| key);
    for key in broken.collect::<Vec<_>>() {
        state.forget_early(key);
    }
}

/// The operation fails since `lost` is lost.
pub(crate) fn fail(requests: &mut Requests, key: u64, lost: u32) {
    requests.end(key, Operation::Failed(Box::new(error(lost))));
}

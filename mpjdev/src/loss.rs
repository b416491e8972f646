//! The loss of a rank ends the operations that need it, and no others.
//!
//! - LO1: an operation that needs a lost rank fails once, with an error that names the rank. In a context without
//!   members these are a send to the rank, a receive or probe from it, and a receive from any source that is posted
//!   when the loss is noticed. Messages from the lost rank that have arrived in full can still be received there, and
//!   later receives from any source wait for the remaining ranks. In a context with members ([`crate::Members`]) every
//!   send, receive and probe fails when a member is lost, even if its peer is another rank that lives and has an early
//!   message here: the peer may have failed in the same collective operation, and then never does its part. The loss of
//!   a rank that is not a member ends nothing there. The messages of a call that only some ranks make have the members
//!   of that call instead.
//! - LO2: an operation fails only when no peer can touch its buffer any more. Before [`lost`] runs, the transport has
//!   ended everything that was under way to the rank and from it. Gets that are being carried out end by themselves.
//!   The data of a send to the rank are withdrawn first. A send to a rank that lives is withdrawn as if by its client
//!   (`backend/withdrawal.rs`): it ends when the receiver has answered, and succeeds if the receiver has taken the
//!   message. A receive whose message is coming from a rank that lives ends by itself.
//! - LO3: afterwards no operation starts that needs the rank. From the first loss on, the fast path of sends finds no
//!   credit ([`crate::credit`]), so every send and receive checks [`Losses`] first.

use transport_lapi::adapter::AdapterError;
use transport_lapi::{LapiError, Outbox};

use crate::backend::{self, withdrawal};
use crate::early::{Early, EarlyBody};
use crate::error::Error;
use crate::matching::Pattern;
use crate::members::Registry;
use crate::request::{self, Operation, Requests, Sending, Taking};
use crate::state::State;

/// The lost ranks, in the order in which their losses were noticed, and which contexts need which ranks.
#[derive(Debug, Default)]
pub(crate) struct Losses {
    ranks: Vec<u32>,
    /// The rank whose loss ended an operation first, or else was noticed first.
    pub met: Option<u32>,
    /// Which contexts need which ranks.
    pub members: Registry,
}

impl Losses {
    /// Returns whether no rank is lost.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.ranks.is_empty()
    }

    /// Returns whether `rank` is lost.
    #[inline(always)]
    pub fn contain(&self, rank: u32) -> bool {
        !self.is_empty() && self.ranks.contains(&rank)
    }

    /// Returns how many ranks are lost.
    pub fn len(&self) -> usize {
        self.ranks.len()
    }

    /// Returns an error if a message needs a lost rank. `None` as source stands for any.
    #[inline(always)]
    pub fn check(&self, message: &Pattern) -> Result<(), Box<Error>> {
        if self.is_empty() { Ok(()) } else { self.check_each(message) }
    }

    #[cold]
    #[inline(never)]
    fn check_each(&self, message: &Pattern) -> Result<(), Box<Error>> {
        let Pattern { context, source, tag } = *message;
        let mut lost = self.ranks.iter().copied();
        let needed =
            lost.find(|lost| source == Some(*lost) || self.members.need(context, tag, *lost));
        needed.map_or(Ok(()), |lost| Err(Box::new(error(lost))))
    }

    /// Returns an error if a message needs a lost rank, whoever sends it.
    #[inline(always)]
    pub fn check_members(&self, message: &Pattern) -> Result<(), Box<Error>> {
        self.check(&Pattern { source: None, ..*message })
    }

    /// Returns an error if a message to `dest` needs a lost rank.
    #[inline(always)]
    pub fn check_send(&self, dest: u32, context: u32, tag: i32) -> Result<(), Box<Error>> {
        self.check(&Pattern { context, source: Some(dest), tag: Some(tag) })
    }

    /// Returns the error of a probe that has found nothing, if it needs a lost rank. A probe for any source in a
    /// context without members fails if there are losses beyond the first `known`.
    pub fn of_probe(&self, pattern: &Pattern, known: usize) -> Option<Error> {
        match (pattern.source, self.members.of_messages(pattern.context, pattern.tag)) {
            (None, None) => self.ranks.get(known).map(|lost| error(*lost)),
            _ => self.check(pattern).err().map(|error| *error),
        }
    }

    /// Returns whether the loss of `lost` ends a posted receive.
    fn end_posted(&self, pattern: &Pattern, lost: u32) -> bool {
        match (pattern.source, self.members.of_messages(pattern.context, pattern.tag)) {
            (Some(source), _) if source == lost => true,
            (_, Some(members)) => members.contains(lost),
            (source, None) => source.is_none(),
        }
    }
}

/// Makes the error for the loss of a rank.
#[cold]
fn error(rank: u32) -> Error {
    LapiError::from(AdapterError::PeerLost { task: rank }).into()
}

/// Ends the operations that need rank `lost`, whose loss was just noticed.
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
            Some(Operation::Taking(Taking { matched, .. }))
                if matched.source == lost && matched.data.is_none() =>
            {
                fail(requests, key, lost);
            }
            _ => {}
        }
    }
    // Keep only those early messages that have arrived in full.
    let is_here = |early: &Early| {
        matches!(early.body, EarlyBody::Eager { arrived: true, .. } | EarlyBody::Failure(_))
    };
    state.drop_early(|early| early.source == lost && !is_here(early));
    // Drop the buffers of failed receives: nobody fills them any more.
    let of_failed = |early: &Early| {
        let waits = matches!(early.body, EarlyBody::Eager { arrived: false, waiting: Some(_), .. });
        early.source == lost && waits
    };
    let broken = state.early.iter().filter(|(_, early)| of_failed(early)).map(|(key, _)| key);
    for key in broken.collect::<Vec<_>>() {
        state.forget_early(key);
    }
}

/// Fails an operation because rank `lost` is lost.
pub(crate) fn fail(requests: &mut Requests, key: u64, lost: u32) {
    requests.end(key, Operation::Failed(Box::new(error(lost))));
}

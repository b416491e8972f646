//! What the programs of both ranks say of messages, in jobs that find mistakes between ranks
//! ([`Description`]): a receive of other types than were sent fails, and its message is dropped.
//!
//! - DN1: between what a peer tells of a message and that message comes no other message of that peer. So it belongs to
//!   the next message that matches a receive or is kept.
//!
//! What is told of an unexpected message, some 300 bytes, is not counted as memory for unexpected messages.

use std::collections::{HashMap, HashSet};

use rustc_hash::FxBuildHasher;
use transport_lapi::{RecvRegion, Sink};

use crate::description::{Description, Told};
use crate::error::{Error, Misfit, Unreceived, UnreceivedList};
use crate::matching::Envelope;
use crate::request::{self, Operation, Posted, Receiving, Status};
use crate::state::State;
use crate::state::unexpected::Unexpected;

/// What is said of messages that are under way.
#[derive(Default)]
pub(crate) struct Checks {
    /// What each peer has told of its next message (DN1).
    told: HashMap<u32, Told, FxBuildHasher>,
    /// What is said of posted receives, by their numbers in the queue. Each receive that is posted replaces what was said
    /// of an earlier one with its number.
    posted: HashMap<u32, Description, FxBuildHasher>,
    /// Messages whose receives the program has dropped.
    lost: UnreceivedList,
}

impl State {
    /// Notes what a peer tells of its next message.
    pub(crate) fn tell(&mut self, source: u32, told: Told) {
        if let Some(checks) = &mut self.checks {
            checks.told.insert(source, told);
        }
    }

    /// Takes what a peer has told of the message that is arriving.
    pub(crate) fn take_told(&mut self, source: u32) -> Option<Told> {
        self.checks.as_mut()?.told.remove(&source)
    }

    /// Refuses a receive of the program, of which something was said, into a place where another one is under way. Elements
    /// with gaps are not compared.
    ///
    /// # Errors
    /// [`Error::Overlap`].
    pub(crate) fn check_place(&self, into: &Sink, context: u32) -> Result<(), Error> {
        let Sink::Span(own) = into else { return Ok(()) };
        if self.checks.is_none() || own.is_empty() || !Description::is_given(context) {
            return Ok(());
        }
        let start = |place: &RecvRegion| place.as_mut_ptr().addr();
        let is_in = |(_, operation): (u64, &Operation)| match operation {
            Operation::Posted(Posted { into: Sink::Span(other) })
            | Operation::Receiving(Receiving { into: Sink::Span(other), .. }) => {
                !other.is_empty()
                    && start(own) < start(other) + other.len()
                    && start(other) < start(own) + own.len()
            }
            _ => false,
        };
        if self.requests.iter().any(is_in) { Err(Error::Overlap) } else { Ok(()) }
    }

    /// Notes what is said of a receive that was posted.
    pub(crate) fn say(&mut self, number: u32, context: u32) {
        let Some(checks) = &mut self.checks else { return };
        match Description::take(context) {
            Some(description) => checks.posted.insert(number, description),
            None => checks.posted.remove(&number),
        };
    }

    /// Checks a posted receive against an arriving message that it matches. Returns the receive that gets the message:
    /// if it does not fit, one that drops it.
    pub(crate) fn check_posted(
        &mut self,
        (key, into): (u64, Sink),
        envelope: Envelope,
        len: usize,
    ) -> (u64, Sink) {
        let Some(told) = self.take_told(envelope.source) else { return (key, into) };
        let number = request::number(key);
        let said = self.checks.as_mut().and_then(|checks| checks.posted.remove(&number));
        match said.and_then(|said| self.misfit(&said, &told, envelope, len)) {
            Some(misfit) => {
                self.requests.end(key, misfit);
                (self.begin_drop(), Sink::EMPTY)
            }
            None => (key, into),
        }
    }

    /// Checks a receive in the thread that starts it against the unexpected message that it matches. Returns the
    /// operation as which it has failed, if the message does not fit.
    pub(crate) fn check_unexpected(&mut self, unexpected: u64) -> Option<Operation> {
        self.checks.as_ref()?;
        let message = self.unexpected.get_mut(unexpected)?;
        let said = Description::take(message.context)?;
        let (told, len) = (message.told.take()?, message.len);
        let (context, source, tag) = (message.context, message.source, message.tag);
        self.misfit(&said, &told, Envelope { context, source, tag }, len)
    }

    fn misfit(
        &self,
        said: &Description,
        told: &Told,
        envelope: Envelope,
        len: usize,
    ) -> Option<Operation> {
        let Envelope { source: source_rank, tag, .. } = envelope;
        let received = said.misfit(told, len)?;
        let sent = told.text.clone();
        let misfit = Misfit { rank: self.rank, source_rank, tag, sent, received };
        Some(Operation::Failed(Box::new(Error::Misfit(Box::new(misfit)))))
    }

    /// Begins a receive for which nobody waits, and returns its key.
    fn begin_drop(&mut self) -> u64 {
        let key = self.requests.insert(|| Operation::Posted(Posted { into: Sink::EMPTY }));
        self.forsake(key);
        key
    }

    /// Removes a receive when it has ended.
    pub(crate) fn forsake(&mut self, key: u64) {
        self.requests.follow(key, Box::new(drop));
    }

    /// Notes that the program drops the receive `key` in this context, if it has matched a message. Without bytes nothing
    /// is lost.
    pub(crate) fn lose(&mut self, key: u64, context: u32) {
        let status = match self.requests.get(key) {
            Some(Operation::Receiving(Receiving { matched, .. })) => {
                Status::new(matched.source, matched.tag, matched.len)
            }
            Some(&Operation::Done { from, bytes }) => from.status(bytes),
            _ => return,
        };
        if status.bytes == 0 {
            return;
        }
        let lost = self.unreceived_as(status, context, "the request that received it was dropped");
        if let Some(checks) = &mut self.checks {
            checks.lost.add(|| lost);
        }
    }

    /// Returns the error about messages that were told of and that no receive has got, if there are any. It is for the
    /// end of the job, when all have arrived.
    pub(crate) fn unreceived(&self) -> Option<Error> {
        let lost = &self.checks.as_ref()?.lost;
        let in_order = || self.matcher.unexpected().map(|(_, key)| *key);
        let queued: HashSet<u64, FxBuildHasher> = in_order().collect();
        // Those that a matched probe has taken are not in the queue.
        let taken = self.unexpected.iter().map(|(key, _)| key).filter(|key| !queued.contains(key));
        let mut left = UnreceivedList::default();
        for message in in_order().chain(taken).filter_map(|key| self.unexpected.get(key)) {
            let Unexpected { source, tag, len, context, told: Some(told), .. } = message else {
                continue;
            };
            let status = Status::new(*source, *tag, *len);
            left.add(|| self.unreceived_as(status, *context, &told.text));
        }
        left.with(lost).into_error()
    }

    fn unreceived_as(&self, message: Status, context: u32, about: &str) -> Unreceived {
        // The members of a communicator are known by its context of collective calls.
        let members = self.losses.members.of(context | 1);
        Unreceived {
            source_rank: message.source,
            tag: message.tag,
            bytes: message.bytes,
            communicator: members.map(|members| members.name()).unwrap_or_default(),
            about: about.to_owned(),
        }
    }
}

//! Probe and matched probe (MPI-4 section 3.8).

use std::num::NonZeroU32;

use transport_lapi::bootstrap::waits::{Phase, Wait};
use transport_lapi::{Awaited, Session, Sink};

use crate::backend;
use crate::call_names::Call;
use crate::device::{Device, diagnostics};
use crate::error::Error;
use crate::matching::Pattern;
use crate::request::{Request, Status};
use crate::state::State;

/// A message that a matched probe took out of the unexpected queue (MPI_Message), so that only the holder can receive
/// it. It must be received; until then a sender that waits for the match keeps waiting.
#[derive(Debug)]
#[must_use = "the message is out of the queue: nobody but the holder can receive it"]
pub struct Message {
    pub(super) unexpected: u64,
    pub(super) status: Status,
    /// Number of the device that it was sent to.
    pub(super) device: NonZeroU32,
}

impl Message {
    /// Returns source, tag and length of the message.
    pub fn status(&self) -> Status {
        self.status
    }
}

impl Device {
    /// Looks for an unexpected message that a receive with these arguments would get, and returns its status
    /// (MPI_Iprobe).
    ///
    /// # Errors
    /// [`Error::Rank`], [`Error::Tag`]; what made the device unusable.
    pub fn iprobe(
        &self,
        source: Option<usize>,
        tag: Option<i32>,
        context: u32,
    ) -> Result<Option<Status>, Error> {
        let pattern = self.pattern(source, tag, context)?;
        self.poll_for_message(&pattern, peek)
    }

    /// Waits for a message that a receive with these arguments would get, and returns its status (MPI_Probe).
    ///
    /// # Errors
    /// As [`Device::iprobe`].
    pub fn probe(
        &self,
        source: Option<usize>,
        tag: Option<i32>,
        context: u32,
    ) -> Result<Status, Error> {
        let pattern = self.pattern(source, tag, context)?;
        self.wait_for_message(pattern, peek)
    }

    /// Looks for a message as [`Device::iprobe`] does, and takes it out of the queue (MPI_Improbe).
    ///
    /// # Errors
    /// As [`Device::iprobe`].
    pub fn improbe(
        &self,
        source: Option<usize>,
        tag: Option<i32>,
        context: u32,
    ) -> Result<Option<Message>, Error> {
        let pattern = self.pattern(source, tag, context)?;
        self.poll_for_message(&pattern, |state, pattern| self.take(state, pattern))
    }

    /// Waits for a message as [`Device::probe`] does, and takes it out of the queue (MPI_Mprobe).
    ///
    /// # Errors
    /// As [`Device::iprobe`].
    pub fn mprobe(
        &self,
        source: Option<usize>,
        tag: Option<i32>,
        context: u32,
    ) -> Result<Message, Error> {
        let pattern = self.pattern(source, tag, context)?;
        self.wait_for_message(pattern, |state, pattern| self.take(state, pattern))
    }

    /// Starts to receive a message that a matched probe took (MPI_Imrecv).
    ///
    /// # Errors
    /// [`Error::Request`] for a message of another device; what made the device unusable.
    pub fn imrecv(&self, message: Message, into: impl Into<Sink>) -> Result<Request, Error> {
        if message.device != self.number() {
            return Err(Error::Request);
        }
        let mut session = self.session()?;
        let (state, outbox) = session.parts();
        let key = backend::receive(state, outbox, message.unexpected, into.into());
        session.wake();
        drop(session);
        Ok(Request::pending(key, self.number()))
    }

    fn wait_for_message<R>(
        &self,
        pattern: Pattern,
        look: impl FnMut(&mut State, &Pattern) -> Option<R>,
    ) -> Result<R, Error> {
        self.wait_until(self.session()?, Probed { pattern, look, losses: None })?
    }

    /// Looks once for a message. If there is none, fails if the message would have to come from a lost rank, and fails
    /// once for each loss if it might have come from any source (LO1 of `backend/loss.rs`).
    fn poll_for_message<R>(
        &self,
        pattern: &Pattern,
        mut look: impl FnMut(&mut State, &Pattern) -> Option<R>,
    ) -> Result<Option<R>, Error> {
        let outcome = self.poll_for(|session| {
            let state = &mut session.state;
            if let Some(found) = look(state, pattern) {
                return Some(Ok(found));
            }
            let known = state.losses.reported;
            if pattern.source.is_none() {
                state.losses.reported = state.losses.len();
            }
            state.losses.of_probe(pattern, known).map(Err)
        })?;
        outcome.transpose()
    }

    fn take(&self, state: &mut State, pattern: &Pattern) -> Option<Message> {
        let status = peek(state, pattern)?;
        let (_, unexpected) = state.matcher.take_unexpected(pattern)?;
        Some(Message { unexpected, status, device: self.number() })
    }
}

/// Waits for what `look` finds in the unexpected messages that fit `pattern`.
struct Probed<F> {
    pattern: Pattern,
    look: F,
    /// How many losses had been noticed at its first look.
    losses: Option<usize>,
}

impl<R, F> Awaited<State> for Probed<F>
where
    F: FnMut(&mut State, &Pattern) -> Option<R>,
{
    type Answer = Result<R, Error>;

    fn look(&mut self, session: &mut Session<State>) -> Option<Self::Answer> {
        let Self { pattern, look, losses } = self;
        let state = &mut session.state;
        if let Some(found) = look(state, pattern) {
            return Some(Ok(found));
        }
        let known = *losses.get_or_insert(state.losses.len());
        state.losses.of_probe(pattern, known).map(Err)
    }

    fn is_failure(&self, _: &Session<State>, answer: &Self::Answer) -> bool {
        answer.is_err()
    }

    fn describe(&self, _: &Session<State>) -> Wait {
        let call = Call::Probe.into();
        Wait { call, phase: Phase::Sought, ..diagnostics::of_pattern(&self.pattern) }
    }
}

fn peek(state: &mut State, pattern: &Pattern) -> Option<Status> {
    let (_, &key) = state.matcher.peek_unexpected(pattern)?;
    let unexpected = state.unexpected.get(key)?;
    Some(Status::new(unexpected.source, unexpected.tag, unexpected.len))
}

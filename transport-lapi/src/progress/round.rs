//! One round of progress: the frames that have arrived, then the rest.
//!
//! - E1: frames from one origin are dispatched in the order of arrival, by the thread that holds the session; so header
//!   handlers run in the order of sending.
//! - E3: a violation drops the packet that contains it, and is reported by the call that found it. The packets behind
//!   it are dispatched as usual.

use crate::adapter::{AdapterError, Events, Frame, SHORT_HEAD, TaskId, Ticket};
use crate::error::LapiError;
use crate::memory::region::ForeignBytes;
use crate::progress::completion::Due;
use crate::progress::engine::Engine;
use crate::progress::handler::Next;
use crate::progress::outbox::Outbox;
use crate::progress::session::Session;
use crate::progress::spin::ALONE;
use crate::wire::{self, RemoteCounters};

/// Frames that one call of progress dispatches at most, so that a flood of frames does not hold up the caller. Data
/// that stays in place counts as one frame, whatever its length, as does a get of memory in a shared area.
pub(crate) const BUDGET: usize = 64;

/// Keeps an error if it is the first one.
#[cold]
#[inline(never)]
pub(crate) fn keep_first(first_error: &mut Option<Box<LapiError>>, error: LapiError) {
    first_error.get_or_insert_with(|| Box::new(error));
}

impl<S> Session<S> {
    /// Makes one round of progress (LAPI_Probe): dispatches arrived frames, sends queued ones, and advances gets. Never
    /// blocks. Returns the number of things done.
    ///
    /// # Errors
    /// The first asynchronous error since the last call: [`LapiError::Peer`], [`LapiError::HdrHndlrNull`],
    /// [`LapiError::CompletionPanicked`], [`LapiError::Timeout`], or an error of the adapter. The packet concerned is
    /// dropped; later calls continue with the packets behind it. With an error handler there is no error: the handler
    /// gets it ([`crate::ErrorHandler`]).
    #[inline(always)]
    pub fn progress(&mut self) -> Result<usize, LapiError> {
        self.progress_within(BUDGET, None)
    }

    /// [`Session::progress`] with at most `frames` frames. The frame behind the last one that is asked for is not looked at:
    /// its origin may just be about to write it, and the load would wait for that.
    ///
    /// # Errors
    /// As [`Session::progress`].
    #[inline(always)]
    pub fn progress_up_to(&mut self, frames: usize) -> Result<usize, LapiError> {
        self.progress_within(frames, None)
    }

    /// [`Session::progress`] with at most `frames` frames. If `origin` is given, only its frames are taken, but after
    /// [`ALONE`] such turns one turn takes all.
    #[inline(always)]
    pub(crate) fn progress_within(
        &mut self,
        frames: usize,
        origin: Option<TaskId>,
    ) -> Result<usize, LapiError> {
        let done = self.turn(frames, origin);
        self.report_first_error().map(|()| done)
    }

    /// Makes one round of progress for a caller that is not waiting. An error does not cut the round short: the first
    /// one is kept for the next call of [`Session::progress`]. Returns how many things were done.
    #[inline(never)]
    pub fn round(&mut self) -> usize {
        self.turn(BUDGET, None)
    }

    /// The inlined body of [`Session::round`]. Each turn of a spin is one such round, so this is on the path of every
    /// message; mostly there is nothing to do except for arrivals.
    #[inline(always)]
    pub(crate) fn turn(&mut self, frames: usize, origin: Option<TaskId>) -> usize {
        let budget = frames.clamp(1, BUDGET);
        let Self { state, adapter, engine, first_error, alone, .. } = self;
        // Nothing is stored if no origin is given: a store in every turn of a spin makes short messages slower.
        let origin = match origin {
            Some(_) if *alone == ALONE => {
                *alone = 0;
                None
            }
            Some(_) => {
                *alone += 1;
                origin
            }
            None => None,
        };
        let mut done =
            match adapter.poll_into(origin, budget, &mut Dispatcher { state, engine, first_error })
            {
                Ok(arrived) => arrived,
                Err(error) => {
                    keep_first(&mut self.first_error, (*error).into());
                    0
                }
            };
        if !self.engine.is_idle() {
            done += self.rest_of_round();
        }
        if done > 0 || self.first_error.is_some() {
            self.end_round();
        }
        done
    }

    /// Sets a hook that runs in the dispatcher at the end of each round that did something. A client uses it for work
    /// that its handlers have left. There is one hook at a time.
    pub fn after_rounds(&mut self, hook: fn(&mut S, &mut Outbox<S>)) {
        self.after_rounds = Some(hook);
    }

    /// Ends a round, whether or not it failed: ends the registrations of regions whose registration ended before their
    /// memory can be freed, and wakes sleeping threads, whose events may have happened.
    #[inline(always)]
    fn end_round(&mut self) {
        if let Some(hook) = self.after_rounds {
            hook(&mut self.state, &mut self.engine.outbox);
        }
        if !self.engine.outbox.deregistered.is_empty() {
            self.engine.outbox.deregister_directly(&mut self.adapter);
        }
        if self.sleeping != 0 {
            self.wake_sleepers();
        }
    }

    /// The parts of a round other than arrivals.
    #[inline(never)]
    fn rest_of_round(&mut self) -> usize {
        let Self { state, adapter, engine, first_error, .. } = self;
        let mut done = engine.outbox.advance_gets(adapter);
        let mut count = |step: Result<usize, LapiError>| match step {
            Ok(more) => done += more,
            Err(error) => keep_first(first_error, error),
        };
        count(engine.collect());
        // Frames queued here are sent in this round.
        count(engine.run_ready(state, adapter));
        count(engine.outbox.flush(adapter));
        count(engine.run_ready(state, adapter));
        engine.rest += done as u64;
        if self.hooks.is_some() {
            self.round_ended(false);
        }
        done
    }

    /// Ends a call in which operations may have ended: performs `next`, then what follows the ended operations, and
    /// sends the frames that they queue.
    pub(crate) fn end_call(&mut self, next: Next<S>) {
        let Self { state, engine, adapter, first_error, .. } = self;
        let due = Due { origin: engine.task, counters: RemoteCounters::default() };
        let mut note = |step: Result<(), LapiError>| {
            step.unwrap_or_else(|error| keep_first(first_error, error));
        };
        note(engine.complete(state, next, due));
        note(engine.run_ready(state, adapter).map(drop));
        note(engine.outbox.flush(adapter).map(drop));
        self.end_round();
    }

    /// Wakes the threads of this task that sleep in a wait. Call it after changing state that they wait for.
    pub fn wake(&self) {
        if self.sleeping != 0 {
            self.wake_sleepers();
        }
    }

    #[cold]
    fn wake_sleepers(&self) {
        self.bell.ring();
        let all =
            self.terminated || self.engine.connections.some_not_open || self.first_error.is_some();
        self.engine.outbox.counters.wake_waiters(all);
    }
}

/// Handles the frames of one round, and keeps the first error (E3).
pub(crate) struct Dispatcher<'a, S> {
    pub engine: &'a mut Engine<S>,
    pub state: &'a mut S,
    pub first_error: &'a mut Option<Box<LapiError>>,
}

impl<S> Events for Dispatcher<'_, S> {
    #[inline(never)]
    fn frame(&mut self, frame: Frame<'_>) {
        if let Err(error) = self.engine.dispatch(self.state, frame) {
            keep_first(self.first_error, error);
        }
    }

    #[inline(always)]
    fn short(&mut self, origin: TaskId, head: [u8; SHORT_HEAD], body: ForeignBytes<'_>) {
        let words = u128::from_le_bytes(head);
        let (first, uhdr) = (words as u64, (words >> 64) as u64);
        // Where a connection is not open, `frame` finds out whether it is this one.
        if !wire::is_short(first) || self.engine.connections.some_not_open {
            return self.frame(Frame { origin, head: &head, body });
        }
        let Some(handler) = self.engine.short[usize::from(wire::handler_of(first))] else {
            return self.frame(Frame { origin, head: &head, body });
        };
        if let Some((follow_up, info)) = handler(self.state, origin, uhdr, body) {
            follow_up(self.state, &mut self.engine.outbox, info);
        }
    }

    fn send_complete(&mut self, ticket: Ticket) {
        self.engine.outbox.send_complete(ticket);
    }

    fn got(&mut self, ticket: Ticket, outcome: Result<(), AdapterError>) {
        self.engine.outbox.got(ticket, outcome);
    }

    fn ended(&mut self, Ticket(number): Ticket, outcome: Result<i64, AdapterError>) {
        self.engine.outbox.access_ended(number, outcome);
    }
}

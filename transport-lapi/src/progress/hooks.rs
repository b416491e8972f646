//! What may hang on progress without being part of it: the interrupt mode and the time limits of `lapi/`. Progress
//! tells it when waits begin and end, after rounds that left work unfinished, and when the context closes.

use std::any::Any;

use crate::adapter::{TaskId, ThreadState};
use crate::error::LapiError;
use crate::progress::context::SessionGuard;
use crate::progress::round::keep_first;
use crate::progress::session::Session;

/// How far a send queue has come: operations that it has sent, and bytes of the next one.
pub(crate) type Position = (u64, u64);

/// The targets and the positions of their send queues, always in the same order; `None` for one in which nothing is
/// queued.
pub(crate) type Positions<'a> = dyn Iterator<Item = (TaskId, Option<Position>)> + 'a;

/// The state that hangs on a session. All calls except [`Hooks::close`] are made with the lock held.
pub(crate) trait Hooks: Any + Send {
    /// The last wait that lasts has ended, or its thread does something else for a while: no thread of the program
    /// makes progress.
    fn waits_ended(&self);

    /// Whether a thread that sleeps while `queued` operations wait may go on although nothing arrives.
    fn may_go_on(&self, queued: usize) -> bool;

    /// A round left operations unfinished or, if `has_slept`, a thread has slept. `positions` are those of the send
    /// queues.
    ///
    /// # Errors
    /// What is to be reported.
    fn round_ended(
        &mut self,
        positions: &mut Positions<'_>,
        has_slept: bool,
    ) -> Result<(), LapiError>;

    /// The context was terminated.
    fn close(self: Box<Self>);

    /// The session is dropped in a fork, which has none of the threads of this.
    fn forget(self: Box<Self>);
}

impl<S> Session<S> {
    /// Calls the hook of rounds, if something hangs on the session.
    #[cold]
    pub(crate) fn round_ended(&mut self, has_slept: bool) {
        let Self { hooks, engine, first_error, .. } = self;
        let Some(hooks) = hooks else { return };
        let outbox = &mut engine.outbox;
        let mut send_queues = (0..).map_while(|place| {
            let target = outbox.send_queues.task_at(place)?;
            Some((target, outbox.position(target)))
        });
        if let Err(error) = hooks.round_ended(&mut send_queues, has_slept) {
            keep_first(first_error, error);
        }
    }

    /// How a thread that sleeps with this ticket is published. If a hook may end its sleep, it may go on although
    /// nothing arrives, so an observer must not take it for blocked.
    pub(crate) fn thread_state(&self, ticket: u32) -> ThreadState {
        match &self.hooks {
            Some(hooks) if hooks.may_go_on(self.engine.outbox.queued) => ThreadState::Awake,
            _ => ThreadState::Asleep { ticket },
        }
    }

    /// Calls the hook of waits unless a wait of the program lasts.
    pub(crate) fn waits_ended(&self) {
        if let (0, Some(hooks)) = (self.waits, &self.hooks) {
            hooks.waits_ended();
        }
    }
}

/// A wait that is counted until it ends, also by a panic.
pub(crate) struct Waiting<'g, 'a, S>(pub &'g mut SessionGuard<'a, S>);

impl<'g, 'a, S> Waiting<'g, 'a, S> {
    /// Begins a wait of a thread of the program.
    pub fn begin(session: &'g mut SessionGuard<'a, S>) -> Self {
        session.waits += 1;
        Self(session)
    }
}

impl<S> Drop for Waiting<'_, '_, S> {
    fn drop(&mut self) {
        self.0.waits -= 1;
        self.0.waits_ended();
    }
}

/// A wait whose thread runs continuations, which is not counted meanwhile, also if one panics. Continuations are mostly
/// short, so the hook is called only if somebody relies on it: a wait without polling.
pub(crate) struct Paused<'g, 'a, S>(pub &'g mut SessionGuard<'a, S>);

impl<'g, 'a, S> Paused<'g, 'a, S> {
    /// Takes a wait out of the count.
    pub fn begin(session: &'g mut SessionGuard<'a, S>) -> Self {
        session.waits -= 1;
        if session.engine.outbox.counters.has_waiters() {
            session.waits_ended();
        }
        Self(session)
    }
}

impl<S> Drop for Paused<'_, '_, S> {
    fn drop(&mut self) {
        self.0.waits += 1;
    }
}

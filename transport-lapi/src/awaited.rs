//! What a thread waits for: how to see that it is there, and how to say what it is.
//!
//! A wait asks [`Awaited::look`] after every round of progress. Only where it has lasted so long that the
//! thread goes to sleep does it ask [`Awaited::note`], and publish the answer: a person who asks why the
//! job stands still is told that. So the note costs nothing where messages come soon.
//!
//! - AW1: what a thread waits for is published after its last look and before it sleeps, and withdrawn
//!   after it has woken and before it does anything else, all under the session's lock. So while it is
//!   published the thread sends nothing, and has seen everything for which its ticket's bell was not
//!   rung since.

use std::marker::PhantomData;

use crate::adapter::{Adapter, Standing};
use crate::bootstrap::board::{Wait, Within};
use crate::bootstrap::monotonic_nanos;
use crate::session::Session;

/// What a thread waits for. See the module's head.
pub trait Awaited<A: Adapter, S> {
    /// What the wait returns.
    type Answer;

    /// Whether it is there. Called with the lock held; must not call the context.
    fn look(&mut self, session: &mut Session<A, S>) -> Option<Self::Answer>;

    /// What it is, in words for a report; the time is filled in by the caller.
    fn note(&self, session: &Session<A, S>) -> Wait;
}

/// Something that says nothing about itself.
pub(crate) struct Unnamed<F, R> {
    look: F,
    answer: PhantomData<fn() -> R>,
}

impl<F, R> Unnamed<F, R> {
    pub(crate) fn new(look: F) -> Self {
        Self { look, answer: PhantomData }
    }
}

impl<A: Adapter, S, F, R> Awaited<A, S> for Unnamed<F, R>
where
    F: FnMut(&mut Session<A, S>) -> Option<R>,
{
    type Answer = R;

    #[inline(always)]
    fn look(&mut self, session: &mut Session<A, S>) -> Option<R> {
        (self.look)(session)
    }

    fn note(&self, _: &Session<A, S>) -> Wait {
        Wait::default()
    }
}

/// The published wait of one thread, from its first sleep on.
#[derive(Default)]
pub(crate) struct Notice {
    since: Option<u64>,
    place: Option<usize>,
}

impl Notice {
    /// Publishes what `awaited` is (AW1). The caller holds the lock.
    #[cold]
    pub(crate) fn post<A: Adapter, S>(
        &mut self,
        session: &mut Session<A, S>,
        awaited: &impl Awaited<A, S>,
        standing: Standing,
    ) {
        let mut wait = awaited.note(session);
        wait.since = *self.since.get_or_insert_with(monotonic_nanos);
        wait.call = Within::current().unwrap_or(wait.call);
        let places = &mut session.places;
        let place = *self.place.get_or_insert_with(|| {
            // Beyond 64 threads all share the last place, which no slate has.
            let free = (!*places).trailing_zeros().min(63);
            *places |= 1 << free;
            free as usize
        });
        session.bell.publish(place, &wait, standing);
    }

    /// Whether it was ever published.
    #[inline(always)]
    pub(crate) fn has_lasted(&self) -> bool {
        self.since.is_some()
    }

    /// Withdraws it.
    pub(crate) fn withdraw<A: Adapter, S>(&mut self, session: &mut Session<A, S>) {
        if let Some(place) = self.place.take() {
            session.places &= !(1 << place);
            session.bell.withdraw(place);
        }
    }

    /// The wait has ended by an error. What it was stays published.
    #[cold]
    pub(crate) fn fail<A: Adapter, S>(
        &mut self,
        session: &mut Session<A, S>,
        awaited: &impl Awaited<A, S>,
    ) {
        self.post(session, awaited, Standing::Failed);
    }
}

//! What a thread waits for: how to check for it, and how to describe it.
//!
//! A wait calls [`Awaited::look`] after every round of progress. It calls [`Awaited::describe`] only when it has lasted
//! so long that the thread goes to sleep, and publishes the result for reports about a job that stands still. So the
//! description costs nothing where messages arrive soon.
//!
//! - AW1: a wait is published as asleep after the thread's last look and before it sleeps, and unpublished after the
//!   thread has woken and before it does anything else, all under the session's lock. So while it is published the
//!   thread sends nothing, except in a look that finds something; such a look is not counted, and ends with the end of
//!   its publication. And the thread has seen every event except those for which the bell was rung after its ticket. A
//!   published wait of a thread that never sleeps, or that has failed, states what the thread waits or waited for, and
//!   proves nothing else.

use std::marker::PhantomData;

use rustix::thread::gettid;

use crate::adapter::waits::{Wait, Within};
use crate::adapter::{TaskId, ThreadState, WaitRecords};
use crate::error::LapiError;
use crate::job::bootstrap::monotonic_nanos;
use crate::progress::session::Session;

/// An event that a thread waits for. See the module's documentation.
pub trait Awaited<S> {
    /// What the wait returns.
    type Answer;

    /// The most frames that one round of progress takes before the next look. A wait for one message takes one: a later
    /// message stays where it is, and a receive posted next takes it without a copy.
    #[inline(always)]
    fn frames(&self) -> usize {
        crate::progress::round::BUDGET
    }

    /// The task whose frames it waits for, if it is a single one. Then most polls take only frames of that task: those
    /// of others are not needed yet, and a message without a posted receive would have to be stored.
    #[inline(always)]
    fn origin(&self) -> Option<TaskId> {
        None
    }

    /// Returns the answer if the event has happened. Called with the lock held; must not call the context.
    fn look(&mut self, session: &mut Session<S>) -> Option<Self::Answer>;

    /// Returns an error if the event cannot happen any more because tasks are lost. Called only in slow turns after a
    /// loss. The default is for a wait that needs all tasks.
    fn in_vain(&self, session: &Session<S>) -> Option<LapiError> {
        session.check_lost().err()
    }

    /// Returns whether this answer means that the event can never happen. The wait then stays published, so that a
    /// report can show what the others were doing.
    fn is_failure(&self, session: &Session<S>, answer: &Self::Answer) -> bool {
        let _ = (session, answer);
        false
    }

    /// Describes the event for a report; the caller fills in the time.
    fn describe(&self, session: &Session<S>) -> Wait;
}

/// A wait without a description.
pub(crate) struct Unnamed<F, R> {
    look: F,
    answer: PhantomData<fn() -> R>,
}

impl<F, R> Unnamed<F, R> {
    pub(crate) fn new(look: F) -> Self {
        Self { look, answer: PhantomData }
    }
}

impl<S, F, R> Awaited<S> for Unnamed<F, R>
where
    F: FnMut(&mut Session<S>) -> Option<R>,
{
    type Answer = R;

    #[inline(always)]
    fn look(&mut self, session: &mut Session<S>) -> Option<R> {
        (self.look)(session)
    }

    fn describe(&self, _: &Session<S>) -> Wait {
        Wait::default()
    }
}

/// The wait of one thread, and the part of it that is published.
#[derive(Default)]
pub(crate) enum Publication {
    /// The wait has not lasted long enough to be published.
    #[default]
    None,
    /// The wait was published before, and is not published now.
    Lasting { wait: Wait },
    /// The wait is published at this place.
    Posted { wait: Wait, place: usize },
}

impl Publication {
    /// Publishes what `awaited` waits for (AW1), unless it is published already. The caller holds the lock.
    #[cold]
    pub(crate) fn post<S>(
        &mut self,
        session: &mut Session<S>,
        awaited: &impl Awaited<S>,
        state: ThreadState,
    ) {
        let Some(records) = session.wait_records.clone() else { return };
        let mut wait = awaited.describe(session);
        Within::describe(&mut wait);
        wait.unwinding = std::thread::panicking();
        let (since, place) = match *self {
            Self::None => (monotonic_nanos(), None),
            Self::Lasting { wait: Wait { since, .. } } => (since, None),
            Self::Posted { wait: Wait { since, .. }, place } => (since, Some(place)),
        };
        (wait.since, wait.thread) = (since, gettid().as_raw_nonzero().get().unsigned_abs());
        if matches!(self, Self::Posted { wait: posted, .. } if *posted == wait) {
            return;
        }
        let place = match place {
            None => {
                // The threads of failed waits have continued or are about to; this thread is an example.
                session.forget_failures(&*records);
                take_place(&mut session.places)
            }
            Some(place) => {
                records.unpublish(place);
                place
            }
        };
        records.publish(place, &wait, state);
        *self = Self::Posted { wait, place };
    }

    /// Records that the thread has polled again and found nothing.
    pub(crate) fn looked_again<S>(&self, session: &Session<S>) {
        if let (Self::Posted { place, .. }, Some(records)) = (self, &session.wait_records) {
            records.looked_again(*place);
        }
    }

    /// Whether the wait was ever published.
    #[inline(always)]
    pub(crate) fn has_lasted(&self) -> bool {
        !matches!(self, Self::None)
    }

    /// Ends a wait that failed: it stays published as failed until a thread publishes the next one.
    #[cold]
    pub(crate) fn fail<S>(&mut self, session: &mut Session<S>) {
        let Some(records) = session.wait_records.clone() else { return };
        let (wait, place) = match *self {
            Self::None => return,
            Self::Lasting { wait } => (wait, take_place(&mut session.places)),
            Self::Posted { wait, place } => {
                records.unpublish(place);
                (wait, place)
            }
        };
        records.publish(place, &wait, ThreadState::Failed);
        session.failed_places |= 1 << place;
    }

    /// Unpublishes the wait, if it is published.
    pub(crate) fn unpublish<S>(&mut self, session: &mut Session<S>) {
        if let (&mut Self::Posted { wait, place }, Some(records)) =
            (&mut *self, &session.wait_records)
        {
            records.unpublish(place);
            session.places &= !(1 << place);
            *self = Self::Lasting { wait };
        }
    }
}

impl<S> Session<S> {
    /// Unpublishes the waits that have failed.
    fn forget_failures(&mut self, records: &dyn WaitRecords) {
        let mut failed = std::mem::take(&mut self.failed_places);
        self.places &= !failed;
        while failed != 0 {
            records.unpublish(failed.trailing_zeros() as usize);
            failed &= failed - 1;
        }
    }
}

/// Takes a place that no other thread of the task has. All threads beyond the 63rd share the last place, which no wait
/// table has.
fn take_place(places: &mut u64) -> usize {
    let free = (!*places).trailing_zeros().min(63);
    *places |= 1 << free;
    free as usize
}

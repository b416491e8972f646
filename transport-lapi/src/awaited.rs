//! What a thread waits for: how to see that it is there, and how to say what it is.
//!
//! A wait asks [`Awaited::look`] after every round of progress. Only where it has lasted so long that the
//! thread goes to sleep does it ask [`Awaited::note`], and publish the answer: a person who asks why the
//! job stands still is told that. So the note costs nothing where messages come soon.
//!
//! - AW1: what a thread waits for is published as asleep after its last look and before it sleeps, and
//!   withdrawn after it has woken and before it does anything else, all under the session's lock. So while
//!   that is published the thread sends nothing, but in a look that has found something, which is not
//!   counted and ends with the withdrawal; and it has seen everything for which its ticket's bell was not
//!   rung since. What is published of a thread that never sleeps, or whose wait has failed, says what
//!   it waits or waited for, and nothing else.

use std::marker::PhantomData;

use rustix::thread::gettid;

use crate::adapter::{Adapter, Standing, TaskId, WaitBoard};
use crate::bootstrap::board::{Outer, Wait, Within};
use crate::bootstrap::monotonic_nanos;
use crate::error::LapiError;
use crate::session::Session;

/// What a thread waits for. See the module's head.
pub trait Awaited<A: Adapter, S> {
    /// What the wait returns.
    type Answer;

    /// How many frames at most are taken in before the next look. Who waits for one message takes one: what has come
    /// behind it stays where it is, and the receive that is posted next takes it without a copy.
    #[inline(always)]
    fn frames(&self) -> usize {
        crate::session::BUDGET
    }

    /// Whose frames it waits for, if those of one task. Then most polls look for these alone: what has come from
    /// others is not needed yet, and a message that no receive waits for would have to be kept.
    #[inline(always)]
    fn origin(&self) -> Option<TaskId> {
        None
    }

    /// Whether it is there. Called with the lock held; must not call the context.
    fn look(&mut self, session: &mut Session<A, S>) -> Option<Self::Answer>;

    /// Why it can never be there, now that tasks are lost. Asked in slow turns, and only then. A wait that does not
    /// say which tasks it needs needs all of them.
    fn in_vain(&self, session: &Session<A, S>) -> Option<LapiError> {
        session.check_lost().err()
    }

    /// Whether this answer says that it can never be there: what was awaited stays published then, for who asks
    /// what the others were doing.
    fn is_failure(&self, session: &Session<A, S>, answer: &Self::Answer) -> bool {
        let _ = (session, answer);
        false
    }

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

/// The wait of one thread, and what of it is published.
#[derive(Default)]
pub(crate) enum Notice {
    /// The wait has not lasted.
    #[default]
    None,
    /// It has lasted, and is not published now. What it was.
    Lasting { wait: Wait },
    /// It is published there.
    Posted { wait: Wait, place: usize },
}

impl Notice {
    /// Publishes what `awaited` is (AW1), unless that stands there. The caller holds the lock.
    #[cold]
    pub(crate) fn post<A: Adapter, S>(
        &mut self,
        session: &mut Session<A, S>,
        awaited: &impl Awaited<A, S>,
        standing: Standing,
    ) {
        let Some(board) = session.board.clone() else { return };
        let mut wait = awaited.note(session);
        if let Some(Outer { call, collective, alone }) = Within::current() {
            (wait.call, wait.alone) = (call, alone);
            // A function of the program that the call runs may wait for something else.
            if let Some((_, number)) = collective.filter(|(context, _)| *context == wait.context) {
                (wait.operation, wait.tag) = (call, Some(number));
            }
        }
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
                // Their threads have gone on, or are about to: this one has.
                session.forget_failures(&*board);
                take_place(&mut session.places)
            }
            Some(place) => {
                board.withdraw(place);
                place
            }
        };
        board.publish(place, &wait, standing);
        *self = Self::Posted { wait, place };
    }

    /// It is still so.
    pub(crate) fn looked_again<A: Adapter, S>(&self, session: &Session<A, S>) {
        if let (Self::Posted { place, .. }, Some(board)) = (self, &session.board) {
            board.looked_again(*place);
        }
    }

    /// Whether it was ever published.
    #[inline(always)]
    pub(crate) fn has_lasted(&self) -> bool {
        !matches!(self, Self::None)
    }

    /// The wait has ended by an error: what it was stays published until a thread waits again.
    #[cold]
    pub(crate) fn fail<A: Adapter, S>(&mut self, session: &mut Session<A, S>) {
        let Some(board) = session.board.clone() else { return };
        let (wait, place) = match *self {
            Self::None => return,
            Self::Lasting { wait } => (wait, take_place(&mut session.places)),
            Self::Posted { wait, place } => {
                board.withdraw(place);
                (wait, place)
            }
        };
        board.publish(place, &wait, Standing::Failed);
        session.failed_places |= 1 << place;
    }

    /// Withdraws it.
    pub(crate) fn withdraw<A: Adapter, S>(&mut self, session: &mut Session<A, S>) {
        if let (&mut Self::Posted { wait, place }, Some(board)) = (&mut *self, &session.board) {
            board.withdraw(place);
            session.places &= !(1 << place);
            *self = Self::Lasting { wait };
        }
    }
}

impl<A: Adapter, S> Session<A, S> {
    /// Withdraws what is published of waits that have failed.
    fn forget_failures(&mut self, board: &dyn WaitBoard) {
        let mut failed = std::mem::take(&mut self.failed_places);
        self.places &= !failed;
        while failed != 0 {
            board.withdraw(failed.trailing_zeros() as usize);
            failed &= failed - 1;
        }
    }
}

/// A place that no other thread of the task has. Beyond 64 threads all share the last one, which no slate
/// has.
fn take_place(places: &mut u64) -> usize {
    let free = (!*places).trailing_zeros().min(63);
    *places |= 1 << free;
    free as usize
}

//! The workspace of collective calls on a communicator: the last schedules, the places of buffers, a scratch area, and
//! a list of requests. It is kept from call to call, since programs repeat their calls.
//!
//! A call has all of it for itself until it has ended. Collective calls on one communicator follow each other, so no
//! call waits for it: a call that finds it in use makes a workspace of its own.

use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard, TryLockError};

use mpjdev::Request;

use crate::collective::{Collective, Division, Schedule};
use crate::error::Error;
use crate::memory::{Input, Memory, Output, Reduction};

/// How many schedules are kept. A loop over more different calls builds all of them again each time.
const MOST: usize = 8;

/// A collective, and how this rank divides it.
pub(crate) type Divided = (Collective, Division);

/// The workspace of one communicator.
#[derive(Default)]
pub(crate) struct Workspace(Mutex<Work>);

/// What a collective call works with in its rounds.
#[derive(Default)]
pub(crate) struct Work {
    kept: Vec<(Divided, Schedule)>,
    /// The index in `kept` of this call's schedule, unless it is in `other`.
    at: usize,
    other: Option<Schedule>,
    memory: Memory,
    reduction: Option<Reduction>,
    requests: Vec<Option<Request>>,
}

/// What running the rounds of a call needs.
pub(crate) struct Parts<'a> {
    pub schedule: &'a Schedule,
    pub memory: &'a mut Memory,
    pub reduction: &'a mut Option<Reduction>,
    /// The requests of a round of many messages, until the next such round.
    pub requests: &'a mut Vec<Option<Request>>,
}

/// The workspace of one call.
pub(crate) enum InUse<'c> {
    /// The workspace of the communicator.
    Shared(MutexGuard<'c, Work>),
    /// A workspace of its own.
    Own(Box<Work>),
}

impl Workspace {
    /// Begins a call with this schedule.
    pub fn with(&self, schedule: Schedule) -> InUse<'_> {
        let mut work = self.begin();
        work.other = Some(schedule);
        work
    }

    /// Begins a call of this collective. Its schedule is one that was built before, or else the result of `build`.
    #[inline]
    pub fn with_kept(
        &self,
        collective: Divided,
        build: impl FnOnce() -> Result<Schedule, Error>,
    ) -> Result<InUse<'_>, Error> {
        let mut work = self.begin();
        match work.kept.iter().position(|(of, _)| *of == collective) {
            Some(at) => work.at = at,
            None => work.keep(collective, build()?),
        }
        Ok(work)
    }

    #[inline]
    fn begin(&self) -> InUse<'_> {
        let mut work = match self.0.try_lock() {
            Ok(work) => InUse::Shared(work),
            Err(TryLockError::Poisoned(poisoned)) => InUse::Shared(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => InUse::Own(Box::default()),
        };
        work.other = None;
        work
    }
}

impl Work {
    fn keep(&mut self, collective: Divided, schedule: Schedule) {
        if self.kept.len() == MOST {
            self.kept.remove(0);
        }
        self.at = self.kept.len();
        self.kept.push((collective, schedule));
    }

    /// Stores the buffers and the operation of the call. Refuses buffers that are too short for the schedule.
    #[inline]
    pub fn fill(
        &mut self,
        buffers: (Input, Output),
        reduction: Option<Reduction>,
    ) -> Result<(), Error> {
        let parts = self.parts();
        // Mostly both are `None`; checking that takes less time than writing.
        if parts.reduction.is_some() || reduction.is_some() {
            *parts.reduction = reduction;
        }
        parts.memory.fill(buffers, parts.schedule, parts.reduction.as_ref())
    }

    /// Returns what running the rounds needs.
    #[inline]
    pub fn parts(&mut self) -> Parts<'_> {
        let Self { kept, at, other, memory, reduction, requests } = self;
        let schedule = match other {
            Some(schedule) => schedule,
            None => &kept[*at].1,
        };
        Parts { schedule, memory, reduction, requests }
    }

    /// Ends the call. Stale places of plain buffers may remain; nothing reads them before the next call replaces them.
    #[inline]
    fn release(&mut self) {
        self.memory.release();
        if self.reduction.is_some() {
            self.reduction = None;
        }
    }

    /// Like [`Self::parts`], but takes them out, for a collective that runs beside other calls.
    pub fn take_parts(&mut self) -> (Schedule, Memory, Option<Reduction>) {
        let Parts { schedule, memory, reduction, .. } = self.parts();
        (schedule.clone(), std::mem::take(memory), reduction.take())
    }
}

impl Drop for InUse<'_> {
    /// Releases users' functions and datatypes, whatever the outcome of the call.
    #[inline]
    fn drop(&mut self) {
        self.release();
    }
}

impl Deref for InUse<'_> {
    type Target = Work;

    #[inline]
    fn deref(&self) -> &Work {
        match self {
            Self::Shared(work) => work,
            Self::Own(work) => work,
        }
    }
}

impl DerefMut for InUse<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Work {
        match self {
            Self::Shared(work) => work,
            Self::Own(work) => work,
        }
    }
}

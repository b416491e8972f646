//! The workspace of collective calls on a communicator, kept from call to call since programs repeat their calls: the
//! last schedules, the places of buffers, a scratch area, a list of requests.
//!
//! A call has all of it for itself until it has ended. Collective calls on one communicator follow each other, so
//! nobody waits for it: a call that comes in between makes its own.

use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard, TryLockError};

use mpjdev::{Call, Request};

use crate::collective::Schedule;
use crate::error::Error;
use crate::memory::{Input, Memory, Output, Reduction};

/// What tells schedules of one communicator apart: the call, and all that the function that builds it is given.
pub(super) type Key = (Call, [Option<u64>; 4]);

/// The number of schedules that are kept. A loop of more different calls builds all of them again each time.
const MOST: usize = 8;

/// That of one communicator.
#[derive(Default)]
pub(super) struct Workspace(Mutex<Work>);

/// What is done in the rounds of a collective call, and with what.
#[derive(Default)]
pub(crate) struct Work {
    kept: Vec<(Key, Schedule)>,
    /// The place among those that are kept of the schedule of this call, unless it is another one.
    at: usize,
    other: Option<Schedule>,
    memory: Memory,
    reduction: Option<Reduction>,
    requests: Vec<Option<Request>>,
}

/// What runs the rounds of a call.
pub(crate) struct Parts<'a> {
    pub schedule: &'a Schedule,
    pub memory: &'a mut Memory,
    pub reduction: &'a mut Option<Reduction>,
    /// Those of a round of many messages, until the next such round.
    pub requests: &'a mut Vec<Option<Request>>,
}

/// The work of one call.
pub(crate) enum InUse<'c> {
    /// That of the communicator.
    Shared(MutexGuard<'c, Work>),
    /// Its own.
    Own(Box<Work>),
}

impl Workspace {
    /// For a call with this schedule.
    pub fn with(&self, schedule: Schedule) -> InUse<'_> {
        let mut work = self.begin();
        work.other = Some(schedule);
        work
    }

    /// For a call whose schedule has this key: one that was built before, or what `build` answers.
    #[inline]
    pub fn with_kept(
        &self,
        key: Key,
        build: impl FnOnce() -> Result<Schedule, Error>,
    ) -> Result<InUse<'_>, Error> {
        let mut work = self.begin();
        match work.kept.iter().position(|(of, _)| *of == key) {
            Some(at) => work.at = at,
            None => work.keep(key, build()?),
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
    fn keep(&mut self, key: Key, schedule: Schedule) {
        if self.kept.len() == MOST {
            self.kept.remove(0);
        }
        self.at = self.kept.len();
        self.kept.push((key, schedule));
    }

    /// Takes the buffers and the operation. Refuses buffers that are too short for the schedule.
    #[inline]
    pub fn fill(
        &mut self,
        buffers: (Input, Output),
        reduction: Option<Reduction>,
    ) -> Result<(), Error> {
        let parts = self.parts();
        // Two that are nothing, most often: that is seen faster than it is written.
        if parts.reduction.is_some() || reduction.is_some() {
            *parts.reduction = reduction;
        }
        parts.memory.fill(buffers, parts.schedule)
    }

    /// What runs the rounds.
    #[inline]
    pub fn parts(&mut self) -> Parts<'_> {
        let Self { kept, at, other, memory, reduction, requests } = self;
        let schedule = match other {
            Some(schedule) => schedule,
            None => &kept[*at].1,
        };
        Parts { schedule, memory, reduction, requests }
    }

    /// The call has ended. Where its buffers were is not read before the next call has filled it in.
    #[inline]
    fn release(&mut self) {
        self.memory.release();
        if self.reduction.is_some() {
            self.reduction = None;
        }
    }

    /// The same for a collective that runs beside other calls.
    pub fn take_parts(&mut self) -> (Schedule, Memory, Option<Reduction>) {
        let Parts { schedule, memory, reduction, .. } = self.parts();
        (schedule.clone(), std::mem::take(memory), reduction.take())
    }
}

impl Drop for InUse<'_> {
    /// Whatever the outcome of the call, users' functions and datatypes in it are released.
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

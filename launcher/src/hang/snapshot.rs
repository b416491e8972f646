//! The state of all ranks at one moment, for [`crate::report`].

use transport_lapi::bootstrap::control::Usage;
use transport_lapi::bootstrap::waits::{TaskState, Wait};

use crate::hang::watch::Doubt;

pub(crate) use transport_lapi::bootstrap::control::Activity;

/// The state of one rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Seen {
    /// It was not read.
    Unread,
    /// Its host has not answered.
    Unanswered,
    /// It changed during every attempt to read it.
    Unsteady,
    /// It was read.
    State(TaskState),
}

impl From<Option<TaskState>> for Seen {
    /// Takes the answer of the view.
    fn from(state: Option<TaskState>) -> Self {
        state.map_or(Self::Unsteady, Self::State)
    }
}

impl Seen {
    /// The state, if it was read.
    pub(crate) fn state(&self) -> Option<&TaskState> {
        match self {
            Self::State(state) => Some(state),
            Self::Unread | Self::Unanswered | Self::Unsteady => None,
        }
    }
}

/// The state of the ranks of a job.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Snapshot {
    /// When, in nanoseconds of the monotonic clock.
    pub(crate) at: u64,
    /// The state of each rank; ranks that are missing were not read.
    pub(crate) ranks: Vec<Seen>,
    /// What their processes did; `None` if that is not known.
    pub(crate) activities: Vec<Option<Activity>>,
    /// Why a waiting rank may still go on; `None` if there is no reason.
    pub(crate) doubts: Vec<Option<Doubt>>,
    /// What they use.
    pub(crate) usages: Vec<Usage>,
    /// Threads of ranks on other hosts that have panicked and are gone.
    pub(crate) gone_threads: Vec<(usize, i32)>,
    /// The ranks that were started with MPJ_WAIT=spin.
    pub(crate) spinning: Vec<usize>,
    /// Whether the user has asked to ignore deadlocks.
    pub(crate) ignores_deadlocks: bool,
}

impl Snapshot {
    /// Returns a snapshot without any state.
    pub(crate) fn unread(at: u64) -> Self {
        Self { at, ..Self::default() }
    }

    /// The ranks with a thread that waits at its end for the others.
    pub(crate) fn at_their_end(&self) -> impl Iterator<Item = usize> {
        self.waiting(|wait| wait.at_end)
    }

    /// The ranks with a thread that waits for others before its end.
    pub(crate) fn amid_calls(&self) -> impl Iterator<Item = usize> {
        self.waiting(|wait| !wait.at_end)
    }

    /// The ranks with a thread that waits while it unwinds from a panic.
    pub(crate) fn unwinding(&self) -> impl Iterator<Item = usize> {
        self.waiting(|wait| wait.unwinding)
    }

    /// When the latest wait began, in nanoseconds of the monotonic clock.
    pub(crate) fn last_wait(&self) -> u64 {
        let blocked = self.ranks.iter().filter_map(Seen::state).flat_map(|state| &state.blocked);
        blocked.map(|blocked| blocked.wait.since).max().unwrap_or(0)
    }

    /// The ranks with one of these waits that has not failed.
    fn waiting(&self, is_one: fn(&Wait) -> bool) -> impl Iterator<Item = usize> {
        let ranks = self.ranks.iter().enumerate();
        ranks.filter_map(move |(rank, seen)| {
            let mut held = seen.state()?.blocked.iter().filter(|blocked| !blocked.failed);
            held.any(|blocked| is_one(&blocked.wait)).then_some(rank)
        })
    }

    pub(crate) fn rank(&self, rank: usize) -> &Seen {
        self.ranks.get(rank).unwrap_or(&Seen::Unread)
    }

    pub(crate) fn activity(&self, rank: usize) -> Option<Activity> {
        self.activities.get(rank).copied().flatten()
    }

    pub(crate) fn usage(&self, rank: usize) -> Usage {
        self.usages.get(rank).copied().unwrap_or_default()
    }

    pub(crate) fn doubt(&self, rank: usize) -> Option<Doubt> {
        self.doubts.get(rank).copied().flatten()
    }
}

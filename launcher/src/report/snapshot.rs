//! What was read of all ranks at one moment. Taken by who watches a job; only looked at here.

use transport_lapi::bootstrap::board::{Call, TaskState, Wait};

use crate::hang::watch::Doubt;

/// What was read of one rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Seen {
    /// Nobody looked.
    Unread,
    /// It was different at every look.
    Unsteady,
    /// This.
    State(TaskState),
}

impl From<Option<TaskState>> for Seen {
    /// What the board answers.
    fn from(state: Option<TaskState>) -> Self {
        state.map_or(Self::Unsteady, Self::State)
    }
}

impl Seen {
    /// What was read, if anything was.
    pub(super) fn state(&self) -> Option<&TaskState> {
        match self {
            Self::State(state) => Some(state),
            Self::Unread | Self::Unsteady => None,
        }
    }
}

/// What the process of a rank did, by what the kernel says of its threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Activity {
    /// It was stopped by a signal.
    Stopped,
    /// It was stopped by a debugger.
    Traced,
    /// A thread ran, or could have.
    Computing,
    /// A thread was in the kernel, and not to be interrupted.
    InKernel,
    /// All threads slept.
    Sleeping,
}

/// What was read of the ranks of a job.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Snapshot {
    /// When, in nanoseconds of the monotonic clock.
    pub(crate) at: u64,
    /// Rank by rank. Of those that are not here nothing was read.
    pub(crate) ranks: Vec<Seen>,
    /// What their processes did meanwhile; `None` where that is not known.
    pub(crate) activities: Vec<Option<Activity>>,
    /// Why those that wait may go on all the same; `None` where nothing is known that speaks for it.
    pub(crate) doubts: Vec<Option<Doubt>>,
    /// Whether nobody looks for deadlocks, since the user does not want it.
    pub(crate) ignores_deadlocks: bool,
}

impl Snapshot {
    /// One for which nothing was read.
    pub(crate) fn unread(at: u64) -> Self {
        Self { at, ..Self::default() }
    }

    /// The ranks of which a thread has done its part, and waits for the others.
    pub(crate) fn at_their_end(&self) -> impl Iterator<Item = usize> {
        self.waiting(|wait| wait.call == Call::Finish)
    }

    /// The ranks of which a thread waits while it unwinds from a panic.
    pub(crate) fn unwinding(&self) -> impl Iterator<Item = usize> {
        self.waiting(|wait| wait.unwinding)
    }

    /// When the wait began that began last, in nanoseconds of the monotonic clock.
    pub(crate) fn last_wait(&self) -> u64 {
        let blocked = self.ranks.iter().filter_map(Seen::state).flat_map(|state| &state.blocked);
        blocked.map(|blocked| blocked.wait.since).max().unwrap_or(0)
    }

    /// The ranks that hold one of these waits, which has not failed.
    fn waiting(&self, is_one: fn(&Wait) -> bool) -> impl Iterator<Item = usize> {
        let ranks = self.ranks.iter().enumerate();
        ranks.filter_map(move |(rank, seen)| {
            let mut held = seen.state()?.blocked.iter().filter(|blocked| !blocked.failed);
            held.any(|blocked| is_one(&blocked.wait)).then_some(rank)
        })
    }

    pub(super) fn rank(&self, rank: usize) -> &Seen {
        self.ranks.get(rank).unwrap_or(&Seen::Unread)
    }

    pub(super) fn activity(&self, rank: usize) -> Option<Activity> {
        self.activities.get(rank).copied().flatten()
    }

    pub(super) fn doubt(&self, rank: usize) -> Option<Doubt> {
        self.doubts.get(rank).copied().flatten()
    }
}

//! What was read of all ranks at one moment. Taken by who watches a job; only looked at here.

use transport_lapi::bootstrap::board::TaskState;

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

/// What was read of the ranks of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Snapshot {
    /// When, in nanoseconds of the monotonic clock.
    pub(crate) at: u64,
    /// Rank by rank. Of those that are not here nothing was read.
    pub(crate) ranks: Vec<Seen>,
}

impl Snapshot {
    /// One for which nothing was read.
    pub(crate) fn unread(at: u64) -> Self {
        Self { at, ranks: Vec::new() }
    }

    pub(super) fn rank(&self, rank: usize) -> &Seen {
        self.ranks.get(rank).unwrap_or(&Seen::Unread)
    }
}

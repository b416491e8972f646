//! The queues of a rank and the communicators that they belong to, as it tells them to the launcher.

use bincode::{Decode, Encode};

use super::cut;
use crate::adapters::MAX_TASKS;

/// A receive that has not met a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct PostedReceive {
    /// From whom; `None` is any rank.
    pub source: Option<u32>,
    /// Its tag; `None` is any.
    pub tag: Option<i32>,
    /// Its context, see [`Wait::context`](crate::bootstrap::board::Wait::context).
    pub context: u64,
    /// Length of its buffer in bytes.
    pub bytes: u64,
}

/// A message that has not met a receive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct EarlyMessage {
    /// Who sent it.
    pub source: u32,
    /// Its tag.
    pub tag: i32,
    /// Its context, see [`Wait::context`](crate::bootstrap::board::Wait::context).
    pub context: u64,
    /// Its length.
    pub bytes: u64,
    /// Whether its data came with it, rather than waiting with the sender.
    pub eager: bool,
}

/// Ranks with numbers in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct RankRange {
    /// The first one.
    pub first: u32,
    /// The last one, which belongs to it.
    pub last: u32,
}

/// Who belongs to a communicator.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Communicator {
    /// Context of its collective operations, see [`Wait::context`](crate::bootstrap::board::Wait::context).
    pub context: u64,
    /// What the program calls it; empty if it does not, at most [`Communicator::MAX_NAME`] bytes.
    pub name: String,
    /// The ranks of the job that its operations need, ascending, at most [`Communicator::MAX_RANGES`] ranges.
    pub members: Vec<RankRange>,
}

impl Communicator {
    /// Longest name in bytes.
    pub const MAX_NAME: usize = 64;
    /// Most ranges: as many as the ranks of the largest job can have.
    pub const MAX_RANGES: usize = MAX_TASKS / 2;

    /// The communicator of these ranks of the job, in whatever order. An overlong name is cut between two characters,
    /// and of more ranges than the largest job can have the first ones are kept.
    pub fn new(context: u64, name: &str, mut ranks: Vec<u32>) -> Self {
        ranks.sort_unstable();
        ranks.dedup();
        let runs = ranks.chunk_by(|one, next| one.checked_add(1) == Some(*next));
        let ranges = runs.map(|run| RankRange { first: run[0], last: run[run.len() - 1] });
        let name = cut(name, Self::MAX_NAME).to_owned();
        Self { context, name, members: ranges.take(Self::MAX_RANGES).collect() }
    }
}

/// Both queues of a rank in one of its contexts, in the order in which they would match.
#[derive(Debug, Clone, Default, PartialEq, Eq, Encode, Decode)]
pub struct Queues {
    /// The first posted receives without partner, at most [`Queues::LISTED`].
    pub posted: Vec<PostedReceive>,
    /// How many there are.
    pub all_posted: u64,
    /// The first early messages without partner, at most [`Queues::LISTED`].
    pub early: Vec<EarlyMessage>,
    /// How many there are.
    pub all_early: u64,
    /// Who belongs to the communicators in whose collective operations the rank is, or messages of which are in its
    /// queues, as far as that is known; at most [`Queues::COMMUNICATORS`].
    pub communicators: Vec<Communicator>,
}

impl Queues {
    /// Most entries that are listed of each queue.
    pub const LISTED: usize = 64;
    /// Most communicators that are listed.
    pub const COMMUNICATORS: usize = 16;
}

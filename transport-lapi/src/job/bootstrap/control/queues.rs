//! The queues of a rank and the members of the spaces that they belong to, as the rank sends them to the launcher.

use bincode::de::Decoder;
use bincode::enc::Encoder;
use bincode::error::{DecodeError, EncodeError};
use bincode::{Decode, Encode};

use super::cut;
use crate::adapter::waits::Space;
use crate::adapters::MAX_TASKS_PER_HOST;

/// A posted receive that has not matched a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
pub struct PostedReceive {
    /// The rank it receives from; `None` stands for any.
    pub source: Option<u32>,
    /// Its tag; `None` stands for any.
    pub tag: Option<i32>,
    /// The space in which it matches.
    pub space: Space,
    /// Length of its buffer in bytes.
    pub bytes: u64,
}

/// A message that has not matched a receive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
pub struct UnexpectedMessage {
    /// The rank that sent it.
    pub source: u32,
    /// Its tag.
    pub tag: i32,
    /// The space in which it matches.
    pub space: Space,
    /// Its length in bytes.
    pub bytes: u64,
    /// Whether its data have been sent with it; otherwise they are still with the sender.
    pub eager: bool,
}

/// A range of consecutive ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct RankRange {
    /// The first rank.
    pub first: u32,
    /// The last rank, which belongs to the range.
    pub last: u32,
}

/// The tasks that the operations in a space need.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct SpaceMembers {
    /// The space.
    pub space: Space,
    /// Its name, at most [`SpaceMembers::MAX_NAME`] bytes; empty if the program has not named it.
    pub name: String,
    /// The ranks of the job, ascending; none if they form more than [`SpaceMembers::MAX_RANGES`] ranges, so that they are
    /// not known.
    pub members: Vec<RankRange>,
}

impl SpaceMembers {
    /// Longest name in bytes.
    pub const MAX_NAME: usize = 64;
    /// Most ranges: as many as the ranks of one host can form. A message has no room for those of the largest job.
    pub const MAX_RANGES: usize = MAX_TASKS_PER_HOST / 2;

    /// States that these ranks of the job, in any order, belong to a space. An overlong name is cut between two
    /// characters.
    pub fn new(space: Space, name: &str, mut ranks: Vec<u32>) -> Self {
        ranks.sort_unstable();
        ranks.dedup();
        let runs = ranks.chunk_by(|one, next| one.checked_add(1) == Some(*next));
        let ranges = runs.map(|run| RankRange { first: run[0], last: run[run.len() - 1] });
        let mut members: Vec<_> = ranges.take(Self::MAX_RANGES + 1).collect();
        if members.len() > Self::MAX_RANGES {
            members.clear();
        }
        Self { space, name: cut(name, Self::MAX_NAME).to_owned(), members }
    }
}

/// Both queues of a rank in one of its contexts, in the order in which they would match.
#[derive(Debug, Clone, Default, PartialEq, Eq, Encode, Decode)]
pub struct Queues {
    /// The first unmatched posted receives, at most [`Queues::LISTED`].
    pub posted: Vec<PostedReceive>,
    /// Number of unmatched posted receives.
    pub all_posted: u64,
    /// The first unmatched unexpected messages, at most [`Queues::LISTED`].
    pub unexpected: Vec<UnexpectedMessage>,
    /// Number of unmatched unexpected messages.
    pub all_unexpected: u64,
    /// The members, as far as known, of the spaces in whose operations the rank is, or that have messages in its
    /// queues; at most [`Queues::SPACES`].
    pub spaces: Vec<SpaceMembers>,
}

impl Queues {
    /// Most entries that are listed of each queue.
    pub const LISTED: usize = 64;
    /// Most spaces that are listed.
    pub const SPACES: usize = 16;
}

impl Encode for Space {
    fn encode<E: Encoder>(&self, encoder: &mut E) -> Result<(), EncodeError> {
        (self.context, self.id, self.label, self.is_collective).encode(encoder)
    }
}

impl<C> Decode<C> for Space {
    fn decode<D: Decoder<Context = C>>(decoder: &mut D) -> Result<Self, DecodeError> {
        let (context, id, label, is_collective) = Decode::decode(decoder)?;
        Ok(Self { context, id, label, is_collective })
    }
}

bincode::impl_borrow_decode!(Space);

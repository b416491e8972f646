//! The queues of a rank, as it tells them to the launcher.

use bincode::{Decode, Encode};

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
}

impl Queues {
    /// Most entries that are listed of each queue.
    pub const LISTED: usize = 64;
}

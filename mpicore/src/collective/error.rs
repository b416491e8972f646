//! Why a collective was refused, and the MPI error class of each reason. Made by the builders of
//! schedules; callers report it.

use crate::ErrorClass;

/// The reason why a collective was refused. Nothing has been sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CollectiveError {
    /// The communicator has no such rank.
    #[error("rank {rank} is out of range: the communicator has {size} ranks, counted from 0")]
    Rank {
        /// The rank that was given; it may be negative.
        rank: i64,
        /// How many ranks there are.
        size: u32,
    },
    /// The root is no rank of the communicator, or of the remote group.
    #[error("root {root} is out of range: the group of the root has {size} ranks, counted from 0")]
    Root {
        /// The root that was given; it may be negative.
        root: i64,
        /// How many ranks the group has.
        size: u32,
    },
    /// A rank other than the root asks to work in place, where only the root may.
    #[error("rank {rank} cannot work in place: only the root, rank {root}, can; give it a buffer")]
    InPlace {
        /// The rank whose schedule was to be built.
        rank: u32,
        /// The root.
        root: u32,
    },
    /// A list with one entry for each rank has another length.
    #[error("{given} entries for {size} ranks; give one for each")]
    Entries {
        /// How many entries were given.
        given: usize,
        /// How many ranks there are.
        size: u32,
    },
    /// There are more elements than can be indexed.
    #[error("{blocks} times {count} elements are more than {most}; give fewer", most = i64::MAX)]
    Count {
        /// Elements of one block; of the largest one, where they differ.
        count: u64,
        /// How many blocks there are, or how often the elements are needed.
        blocks: u32,
    },
    /// A block ends behind the last element that can be indexed.
    #[error(
        "the block of rank {rank}, {count} elements from {displacement} on, ends beyond {most}",
        most = i64::MAX
    )]
    Block {
        /// Whose block.
        rank: u32,
        /// How many elements it has.
        count: u64,
        /// The index of its first element.
        displacement: i64,
    },
    /// Two blocks that are received have elements in common.
    #[error(
        "the blocks of rank {one} and rank {other} overlap, so what one sends would replace what the other does; \
         give blocks without common elements"
    )]
    Overlap {
        /// The rank of the block that begins first.
        one: u32,
        /// The rank of the other.
        other: u32,
    },
}

impl CollectiveError {
    /// Returns MPI's class of this error.
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Rank { .. } => ErrorClass::Rank,
            Self::Root { .. } => ErrorClass::Root,
            Self::InPlace { .. } => ErrorClass::Buffer,
            Self::Count { .. } => ErrorClass::Count,
            Self::Entries { .. } | Self::Block { .. } | Self::Overlap { .. } => ErrorClass::Arg,
        }
    }
}

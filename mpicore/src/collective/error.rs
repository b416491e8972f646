//! Why a collective was refused, and the MPI error class of each reason. The builders of schedules make these errors.

use crate::ErrorClass;

/// Why a collective was refused. Nothing has been sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CollectiveError {
    /// The communicator has no such rank.
    #[error("rank {rank} is out of range: the communicator has {size} ranks, counted from 0")]
    Rank {
        /// The rank that was given; it may be negative.
        rank: i64,
        /// Number of ranks of the communicator.
        size: u32,
    },
    /// The root is not a rank of the communicator, or of the remote group.
    #[error("root {root} is out of range: the group of the root has {size} ranks, counted from 0")]
    Root {
        /// The root that was given; it may be negative.
        root: i64,
        /// Number of ranks of the group.
        size: u32,
    },
    /// A rank other than the root asks to work in place, in a call in which only the root may.
    #[error("rank {rank} cannot work in place: only the root, rank {root}, can; give it a buffer")]
    InPlace {
        /// The rank whose schedule was being built.
        rank: u32,
        /// The root.
        root: u32,
    },
    /// A list with one entry for each rank has another length.
    #[error("{given} entries for {size} ranks; give one for each")]
    Entries {
        /// Number of entries that were given.
        given: usize,
        /// Number of ranks.
        size: u32,
    },
    /// There are more elements than can be indexed.
    #[error("{blocks} times {count} elements are more than {most}; give fewer", most = i64::MAX)]
    Count {
        /// Number of elements of one block, or of the largest one if they differ.
        count: u64,
        /// Number of blocks, or how often the elements are needed.
        blocks: u32,
    },
    /// A block ends beyond the last element that can be indexed.
    #[error(
        "the block of rank {rank}, {count} elements from {displacement} on, ends beyond {most}",
        most = i64::MAX
    )]
    Block {
        /// The rank whose block it is.
        rank: u32,
        /// Number of elements of the block.
        count: u64,
        /// The index of the block's first element.
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
        /// The rank of the other block.
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

//! Why a call on datatypes was refused, and the MPI error class of each reason. Made by the files of
//! `datatype/`; callers report it.

use transport_lapi::LayoutError;

use super::Basic;
use crate::ErrorClass;

/// The reason why a call on datatypes was refused. No output has changed, except as the call says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DatatypeError {
    /// A number of elements, bytes or dimensions is below zero.
    #[error("{argument} is {given}; give 0 or more")]
    Negative {
        /// The argument of the call in MPI.
        argument: &'static str,
        /// What was given.
        given: i64,
    },
    /// An entry of a list is not allowed.
    #[error("{argument}[{index}] is {given}; give {low} to {high}")]
    Entry {
        /// The argument of the call in MPI.
        argument: &'static str,
        /// Which entry, from 0.
        index: usize,
        /// What was given.
        given: i64,
        /// The least that is allowed.
        low: i64,
        /// The most that is allowed.
        high: i64,
    },
    /// Lists that belong together have different lengths.
    #[error("{argument} has {given} entries; give {expected}, as many as in {other}")]
    Entries {
        /// The argument of the call in MPI.
        argument: &'static str,
        /// How many entries it has.
        given: usize,
        /// The list that decides.
        other: &'static str,
        /// How many entries that one has.
        expected: usize,
    },
    /// An array has no dimensions.
    #[error("ndims is 0; an array has at least 1 dimension")]
    NoDimensions,
    /// The processes of a distributed array do not form its grid.
    #[error(
        "size is {size}, but the grid array_of_psizes has {grid} processes; both must be the same"
    )]
    Grid {
        /// How many processes were given.
        size: i64,
        /// The product of the lengths of the grid.
        grid: i128,
    },
    /// A rank is not one of a distributed array's.
    #[error("rank is {rank}; give 0 to {last}", last = .size - 1)]
    Rank {
        /// What was given.
        rank: i64,
        /// How many processes there are.
        size: i64,
    },
    /// The datatype would be larger than memory, or nested too deep; or it does not fit its memory, or names a byte
    /// twice in a receive.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// The datatype would be made of datatypes in more levels than [`Datatype::MAX_DEPTH`].
    ///
    /// [`Datatype::MAX_DEPTH`]: super::Datatype::MAX_DEPTH
    #[error("the datatype is made of datatypes in more than {} levels", super::Datatype::MAX_DEPTH)]
    TooDeep,
    /// A packed buffer ends too early.
    #[error("the packed buffer has {left} bytes from position {position} on, {needed} are needed")]
    NoRoom {
        /// Where in the buffer the bytes begin.
        position: usize,
        /// How many bytes there are.
        left: usize,
        /// How many are needed.
        needed: usize,
    },
    /// The position lies after the end of the packed buffer.
    #[error("position is {position}; give 0 to {len}, the size of the packed buffer in bytes")]
    Position {
        /// What was given.
        position: usize,
        /// Length of the buffer.
        len: usize,
    },
    /// A value does not fit into its representation, in memory or in `external32`.
    #[error("a value of type {basic} does not fit into the {bytes} bytes that it is converted to")]
    Conversion {
        /// What the value is.
        basic: Basic,
        /// How long the other representation is.
        bytes: usize,
    },
}

impl DatatypeError {
    /// Returns MPI's class of this error.
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Negative { argument: "count", .. } => ErrorClass::Count,
            Self::Negative { .. } | Self::Entry { .. } | Self::Entries { .. } => ErrorClass::Arg,
            Self::Position { .. } => ErrorClass::Arg,
            Self::NoDimensions | Self::Grid { .. } => ErrorClass::Dims,
            Self::Rank { .. } => ErrorClass::Rank,
            Self::Layout(LayoutError::TooLarge) => ErrorClass::Count,
            Self::Layout(LayoutError::Outside { .. } | LayoutError::Null) => ErrorClass::Buffer,
            Self::Layout(_) | Self::TooDeep => ErrorClass::Type,
            Self::NoRoom { .. } => ErrorClass::Truncate,
            Self::Conversion { .. } => ErrorClass::Conversion,
        }
    }
}

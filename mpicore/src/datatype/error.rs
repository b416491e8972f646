//! Why a call on datatypes was refused, and the MPI error class of each reason.

use transport_lapi::LayoutError;

use super::Basic;
use crate::ErrorClass;

/// Why a call on datatypes was refused. No output has changed, unless the call states otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DatatypeError {
    /// A number of elements, bytes or dimensions is below zero.
    #[error("{argument} is {given}; give 0 or more")]
    Negative {
        /// The argument of the call in MPI.
        argument: &'static str,
        /// The value that was given.
        given: i64,
    },
    /// An entry of a list is not allowed.
    #[error("{argument}[{index}] is {given}; give {low} to {high}")]
    Entry {
        /// The argument of the call in MPI.
        argument: &'static str,
        /// The index of the entry.
        index: usize,
        /// The value that was given.
        given: i64,
        /// The lowest value that is allowed.
        low: i64,
        /// The highest value that is allowed.
        high: i64,
    },
    /// Lists that belong together have different lengths.
    #[error("{argument} has {given} entries; give {expected}, as many as in {other}")]
    Entries {
        /// The argument of the call in MPI.
        argument: &'static str,
        /// Number of entries of the argument.
        given: usize,
        /// The list that determines the length.
        other: &'static str,
        /// Number of entries of that list.
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
        /// Number of processes that was given.
        size: i64,
        /// The product of the lengths of the grid.
        grid: i128,
    },
    /// A rank is not one of the distributed array's.
    #[error("rank is {rank}; give 0 to {last}", last = .size - 1)]
    Rank {
        /// The rank that was given.
        rank: i64,
        /// Number of processes.
        size: i64,
    },
    /// The datatype would be larger than memory, or nested too deeply; or it does not fit its memory, or names a byte
    /// twice in a receive.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// The datatype would consist of more levels of datatypes than [`Datatype::MAX_DEPTH`].
    ///
    /// [`Datatype::MAX_DEPTH`]: super::Datatype::MAX_DEPTH
    #[error("the datatype is made of datatypes in more than {} levels", super::Datatype::MAX_DEPTH)]
    TooDeep,
    /// A packed buffer ends too early.
    #[error("the packed buffer has {left} bytes from position {position} on, {needed} are needed")]
    NoRoom {
        /// The position in the buffer.
        position: usize,
        /// Number of bytes from there on.
        left: usize,
        /// Number of bytes that are needed.
        needed: usize,
    },
    /// The position lies after the end of the packed buffer.
    #[error("position is {position}; give 0 to {len}, the size of the packed buffer in bytes")]
    Position {
        /// The position that was given.
        position: usize,
        /// Length of the buffer.
        len: usize,
    },
    /// No kind of number has this precision and range.
    #[error(
        "no kind of number has {} digits and range {}; give less, and not both as undefined",
        .p.map_or("any number of".to_owned(), |p| p.to_string()),
        .r.map_or("of any size".to_owned(), |r| format!("10^{r}"))
    )]
    Precision {
        /// Number of decimal digits, if it was given.
        p: Option<i64>,
        /// The decimal exponent range, if it was given.
        r: Option<i64>,
    },
    /// A value does not fit into its representation, in memory or in `external32`.
    #[error("a value of type {basic} does not fit into the {bytes} bytes that it is converted to")]
    Conversion {
        /// Type of the value.
        basic: Basic,
        /// Length of the representation that it is converted to.
        bytes: usize,
    },
}

impl DatatypeError {
    /// Returns MPI's class of this error.
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Negative { argument: "count", .. } => ErrorClass::Count,
            Self::Negative { .. } | Self::Entry { .. } | Self::Entries { .. } => ErrorClass::Arg,
            Self::Position { .. } | Self::Precision { .. } => ErrorClass::Arg,
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

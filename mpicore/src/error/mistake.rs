//! Mistakes that only a comparison of several ranks finds.

use std::fmt;

use crate::ErrorClass;

/// In what collective calls of several ranks must agree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Aspect {
    /// The call itself.
    Call,
    /// The root.
    Root,
    /// The operation of a reduction.
    Operation,
    /// The length of the data.
    Length,
    /// The types of the elements.
    Types,
    /// The memory of what is sent and of what is received, which have no byte in common on any rank.
    Buffers,
    /// The length of what one rank sends to another.
    BlockLength,
    /// The types of what one rank sends to another.
    BlockTypes,
}

impl Aspect {
    /// Those that are the same on all ranks, in the order in which they are compared.
    pub(crate) const ALL: [Self; 6] =
        [Self::Call, Self::Root, Self::Operation, Self::Length, Self::Types, Self::Buffers];

    /// MPI's class of errors about it.
    pub(crate) fn class(self) -> ErrorClass {
        match self {
            Self::Call => ErrorClass::Other,
            Self::Root => ErrorClass::Root,
            Self::Operation => ErrorClass::Op,
            Self::Length | Self::BlockLength => ErrorClass::Count,
            Self::Types | Self::BlockTypes => ErrorClass::Type,
            Self::Buffers => ErrorClass::Buffer,
        }
    }

    fn advice(self) -> &'static str {
        match self {
            Self::Call => "all ranks of a communicator make the same calls in the same order",
            Self::Root => "give the same root on all ranks",
            Self::Operation => "give the same operation on all ranks",
            Self::Length => "give the same number of elements on all ranks",
            Self::Types => "give elements of the same types on all ranks",
            Self::BlockLength => "send and receive the same number of elements",
            Self::BlockTypes => "send and receive elements of the same types",
            Self::Buffers => "give buffers that do not overlap, or MPI_IN_PLACE",
        }
    }
}

/// Collective calls of two ranks that do not fit together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// In what they differ first.
    pub aspect: Aspect,
    /// Rank 0 of the communicator, and the first rank whose call does not fit that of rank 0, or whose buffers overlap. Of
    /// blocks, the rank that sends one, and the rank that receives it.
    pub ranks: [u32; 2],
    /// The calls of these ranks, with their arguments and their places in the program, as far as these are
    /// known.
    pub calls: [String; 2],
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { aspect, ranks: [one, rank], calls: [first, other] } = self;
        let where_other = format!("rank {one} calls {first} where rank {rank} calls {other}");
        match aspect {
            Aspect::BlockLength => {
                write!(f, "{where_other}, which expects another length from it: ")?
            }
            Aspect::BlockTypes => write!(f, "{where_other}, which expects other types from it: ")?,
            Aspect::Buffers => write!(f, "rank {rank} calls {other} with buffers that overlap: ")?,
            _ => write!(f, "rank {rank} calls {other} where rank {one} calls {first}: ")?,
        }
        f.write_str(aspect.advice())
    }
}

impl std::error::Error for Mistake {}

/// Two accesses of an epoch that conflict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// The rank of the window whose memory both access.
    pub target: u32,
    /// The first byte that both access, and the one after the last, from the beginning of the window; in dynamic windows,
    /// addresses.
    pub bytes: (i64, i64),
    /// The ranks that make them.
    pub origins: [u32; 2],
    /// The calls, with their places in the program as far as these are known.
    pub calls: [String; 2],
}

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { target, bytes: (low, high), origins, calls } = self;
        let [one, other] = [0, 1].map(|at| format!("rank {} calls {}", origins[at], calls[at]));
        write!(
            f,
            "{one} and {other} in the same epoch, and both access bytes {low} to {high} of rank {target}'s window: end \
             the epoch between them, or let both accumulate by the same operation"
        )
    }
}

impl std::error::Error for Conflict {}

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
}

impl Aspect {
    /// All, in the order in which they are compared.
    pub(crate) const ALL: [Self; 5] =
        [Self::Call, Self::Root, Self::Operation, Self::Length, Self::Types];

    /// MPI's class of errors about it.
    pub(crate) fn class(self) -> ErrorClass {
        match self {
            Self::Call => ErrorClass::Other,
            Self::Root => ErrorClass::Root,
            Self::Operation => ErrorClass::Op,
            Self::Length => ErrorClass::Count,
            Self::Types => ErrorClass::Type,
        }
    }

    fn advice(self) -> &'static str {
        match self {
            Self::Call => "all ranks of a communicator make the same calls in the same order",
            Self::Root => "give the same root on all ranks",
            Self::Operation => "give the same operation on all ranks",
            Self::Length => "give the same number of elements on all ranks",
            Self::Types => "give elements of the same types on all ranks",
        }
    }
}

/// Collective calls of two ranks that do not fit together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// In what they differ first.
    pub aspect: Aspect,
    /// The first rank of the communicator whose call does not fit that of rank 0.
    pub rank: u32,
    /// The calls of rank 0 and of that rank, with their arguments and their places in the program, as far as these are
    /// known.
    pub calls: [String; 2],
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { aspect, rank, calls: [first, other] } = self;
        write!(f, "rank {rank} calls {other} where rank 0 calls {first}: {}", aspect.advice())
    }
}

impl std::error::Error for Mistake {}

//! The error type of this crate.

use std::any::Any;
use std::sync::Arc;

use mpjdev::{LayoutError, panic_text};

use crate::ErrorClass;
use crate::collective::CollectiveError;
use crate::datatype::DatatypeError;
use crate::group::GroupError;
use crate::op::{OpError, Predefined};
use crate::topology::TopologyError;

/// The reason why a call failed; [`Error::class`] is MPI's class of it.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The device below refused the call, or failed.
    #[error(transparent)]
    Device(mpjdev::Error),
    /// The arguments of a collective are wrong. Nothing was sent.
    #[error(transparent)]
    Collective(#[from] CollectiveError),
    /// A group cannot be made, or has no such rank.
    #[error(transparent)]
    Group(#[from] GroupError),
    /// An operation is not defined on the elements. Nothing was sent.
    #[error(transparent)]
    Op(#[from] OpError),
    /// A datatype cannot be made or used.
    #[error(transparent)]
    Datatype(#[from] DatatypeError),
    /// A topology cannot be made or used.
    #[error(transparent)]
    Topology(#[from] TopologyError),
    /// The elements of a call lie outside of the memory of its buffer. Nothing was sent.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// A buffer is too short. Nothing was sent.
    #[error(
        "{count} elements from element {first} on do not lie in the buffer of {len} bytes; give a \
         longer buffer"
    )]
    Buffer {
        /// Index of the first element.
        first: i64,
        /// How many elements.
        count: u64,
        /// Length of the buffer's memory in bytes.
        len: usize,
    },
    /// The part that a rank sends to itself differs in length from its place in the output. Nothing was sent.
    #[error(
        "this rank's own part has {from} bytes, and the place for it {into} bytes; give buffers with the same number \
         of elements for each rank"
    )]
    Unequal {
        /// How long the part is.
        from: usize,
        /// How long its place is.
        into: usize,
    },
    /// A message of a collective is shorter than this rank expects.
    #[error(
        "{bytes} bytes came from job rank {rank} where {expected} were to come: the ranks give different \
         numbers of elements, or make different collective calls; all have to make the same ones in the same order"
    )]
    Short {
        /// The job rank that sent it.
        rank: u32,
        /// How long it is.
        bytes: usize,
        /// How long it was to be.
        expected: usize,
    },
    /// There is no memory for the temporary data of a collective. Nothing was sent.
    #[error("no memory for {bytes} bytes that this call needs beside its buffers")]
    Memory {
        /// How many bytes.
        bytes: usize,
    },
    /// A reduction got MPI_REPLACE or MPI_NO_OP, which are for windows.
    #[error("{op} is for accumulate calls of windows only; collectives cannot use it")]
    NotForReductions {
        /// The operation.
        op: Predefined,
    },
    /// A predefined operation is not defined for these elements.
    #[error("{op} is not defined on a derived datatype; make an operation of your own")]
    NoKind {
        /// The operation.
        op: Predefined,
    },
    /// A user's function panicked in a collective outside of a blocking call.
    #[error("the operation of a non-blocking reduction panicked: {message}")]
    Panicked {
        /// What the panic says.
        message: String,
    },
    /// All context ids are in use by communicators of some member.
    #[error(
        "no context id is left for another communicator: the members have {most} each, and no id is free \
         on all of them; free communicators that are not needed, on all ranks"
    )]
    Contexts {
        /// How many communicators a rank can have at a time.
        most: u32,
    },
    /// Intercommunicators do not have this collective call, or only they have it.
    #[error("{call} is not defined on an {kind}")]
    Kind {
        /// The call.
        call: &'static str,
        /// What the communicator is.
        kind: &'static str,
    },
    /// The groups of an intercommunicator have a rank in common.
    #[error("job rank {rank} is in both groups; the groups of an intercommunicator are disjoint")]
    Overlap {
        /// A job rank that is in both.
        rank: u32,
    },
    /// The leader of a group got no message from the leader of the other one.
    #[error(
        "rank {leader}, the leader, could not exchange the groups of an intercommunicator with the other \
         leader; see what the call says there"
    )]
    Leader {
        /// The rank of the leader.
        leader: u32,
    },
    /// A callback of an attribute has failed.
    #[error("the {callback} callback of an attribute failed: {cause}")]
    Callback {
        /// Which one: copy or delete.
        callback: &'static str,
        /// What it says.
        cause: Arc<dyn std::error::Error + Send + Sync>,
    },
    /// A communicator without a grid got a call that needs one.
    #[error("the communicator has no grid; make one of it that has, by MPI_Cart_create")]
    NoGrid,
    /// Ranks gave different groups, in a call in which all members of a group give the same.
    #[error(
        "rank {rank} is in the group that this rank gives, but gives another one; the groups of a call \
         are equal or have no rank in common"
    )]
    GroupsDiffer {
        /// The first rank of the communicator that gives another group.
        rank: u32,
    },
    /// A group has a member that the communicator does not have, or lacks the caller.
    #[error("job rank {rank} is in the group, but not in the communicator")]
    NotMember {
        /// The job rank.
        rank: u32,
    },
}

impl Error {
    /// Returns MPI's class of this error (MPI-4.1 section 9.4).
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Device(error) => error.class().into(),
            Self::Collective(error) => error.class(),
            Self::Group(error) => error.class(),
            Self::Op(error) => error.class(),
            Self::Datatype(error) => error.class(),
            Self::Topology(error) => error.class(),
            Self::Layout(_) => ErrorClass::Arg,
            Self::Buffer { .. } => ErrorClass::Buffer,
            Self::Short { .. } | Self::Unequal { .. } => ErrorClass::Count,
            Self::Memory { .. } => ErrorClass::NoMem,
            Self::NotForReductions { .. } | Self::NoKind { .. } => ErrorClass::Op,
            Self::Panicked { .. } | Self::Contexts { .. } => ErrorClass::Other,
            Self::Kind { .. } => ErrorClass::Comm,
            Self::NoGrid => ErrorClass::Topology,
            Self::Leader { .. } | Self::Callback { .. } => ErrorClass::Other,
            Self::Overlap { .. } | Self::NotMember { .. } | Self::GroupsDiffer { .. } => {
                ErrorClass::Group
            }
        }
    }

    /// The panic of a user's function as an error.
    pub(crate) fn panicked(panic: &(dyn Any + Send)) -> Self {
        Self::Panicked { message: panic_text(panic) }
    }

    /// This error as the outcome of a request of the device.
    pub(crate) fn into_device(self) -> mpjdev::Error {
        match self {
            Self::Device(error) => error,
            error => mpjdev::Error::Client(Arc::new(error)),
        }
    }

    /// Returns the job rank that was lost, if this error is about a loss.
    pub fn lost_rank(&self) -> Option<u32> {
        match self {
            Self::Device(error) => error.lost_rank(),
            _ => None,
        }
    }
}

impl From<mpjdev::Error> for Error {
    /// An error of the device, or that of a collective whose request the device had.
    fn from(error: mpjdev::Error) -> Self {
        match &error {
            mpjdev::Error::Client(own) => match own.downcast_ref::<Self>() {
                Some(own) => own.clone(),
                None => Self::Device(error),
            },
            _ => Self::Device(error),
        }
    }
}

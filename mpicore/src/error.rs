//! The error type of this crate.

pub(crate) mod code;
mod file;
mod mistake;
mod service;
mod window;
mod world;

use std::any::Any;
use std::sync::Arc;

use mpjdev::{Failure, LayoutError, panic_text};

use crate::ErrorClass;
use crate::collective::CollectiveError;
use crate::datatype::DatatypeError;
use crate::group::GroupError;
use crate::op::{OpError, Predefined};
use crate::topology::TopologyError;

pub use file::FileError;
pub use mistake::{Aspect, Conflict, Mistake};
pub use service::ServiceError;
pub use window::WindowError;
pub use world::WorldError;

/// Why a call failed. [`Error::class`] returns MPI's class.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The device below refused the call or failed.
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
    /// A call of a service brought no answer.
    #[error(transparent)]
    Service(#[from] ServiceError),
    /// A call on a window was refused.
    #[error(transparent)]
    Window(#[from] WindowError),
    /// Ranks could not be spawned, or groups could not meet.
    #[error(transparent)]
    World(#[from] WorldError),
    /// A call on a file was refused, or has failed.
    #[error(transparent)]
    File(#[from] FileError),
    /// The elements of a call lie outside the memory of its buffer. Nothing was sent.
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
        /// Number of elements.
        count: u64,
        /// Length of the buffer's memory in bytes.
        len: usize,
    },
    /// The part that a rank sends to itself and the place for it differ in length. Nothing was sent.
    #[error(
        "this rank's own part has {from} bytes, and the place for it {into} bytes; give buffers with the same number \
         of elements for each rank"
    )]
    Unequal {
        /// Length of the part in bytes.
        from: usize,
        /// Length of its place in bytes.
        into: usize,
    },
    /// A message of a collective is shorter than this rank expects.
    #[error(
        "in this {call}, {bytes} bytes came from job rank {rank} instead of {expected}: the ranks give different \
         numbers of elements, or make different collective calls; all must make the same calls in the same order \
         (mpjrun --check compares them)"
    )]
    Short {
        /// The name of the call.
        call: &'static str,
        /// The job rank of the sender.
        rank: u32,
        /// Length of the message.
        bytes: usize,
        /// Expected length.
        expected: usize,
    },
    /// A message of a collective is longer than this rank expects.
    #[error(
        "in this {call}, {bytes} bytes came from job rank {rank}, more than the {room} that are expected: the ranks give \
         different numbers of elements, or make different collective calls; all must make the same calls in the same \
         order (mpjrun --check compares them)"
    )]
    Long {
        /// The name of the call.
        call: &'static str,
        /// The job rank of the sender.
        rank: u32,
        /// Length of the message.
        bytes: usize,
        /// Expected length, or at least room.
        room: usize,
    },
    /// The ranks make collective calls that do not fit together, as a check has found (`MPJ_CHECK`). Nothing was sent.
    #[error(transparent)]
    Mistake(Box<Mistake>),
    /// Accesses to a window conflict, as a check has found (`MPJ_CHECK`).
    #[error(transparent)]
    Conflict(Box<Conflict>),
    /// There is no memory for the temporary data of a collective. Nothing was sent.
    #[error("no memory for {bytes} bytes that this call needs in addition to its buffers")]
    Memory {
        /// Number of bytes.
        bytes: usize,
    },
    /// The system starts no further thread.
    #[error(
        "no thread could be started that makes progress: {}; allow more threads (ulimit -u)",
        std::io::Error::from_raw_os_error(*.errno)
    )]
    Thread {
        /// The system's error number.
        errno: i32,
    },
    /// The attached buffer has too little room for a buffered send. Nothing was sent.
    #[error(
        "a buffered send of {bytes} bytes finds {free} bytes free of the {attached} that are attached; attach more \
         by MPI_Buffer_attach, or detach first, which waits until all of them are free"
    )]
    AttachedBuffer {
        /// Length of the message.
        bytes: usize,
        /// Bytes of the buffer that no other message uses.
        free: usize,
        /// Length of the buffer; 0 if none is attached.
        attached: usize,
    },
    /// A buffer is attached already.
    #[error(
        "a buffer of {} is attached already; detach it first",
        .attached.map_or("any length".to_owned(), |len| format!("{len} bytes"))
    )]
    Attached {
        /// Length of the attached buffer; `None` if it grows by itself.
        attached: Option<usize>,
    },
    /// A partition does not exist, or was declared ready twice.
    #[error(
        "partition {partition} of {partitions}: {}",
        if *.is_ready { "it is ready already" } else { "partitions are numbered from 0 on" }
    )]
    Partition {
        /// The number that was given.
        partition: usize,
        /// Number of partitions.
        partitions: usize,
        /// Whether it exists and is ready already.
        is_ready: bool,
    },
    /// A partitioned send does not fill the receive that it meets. Nothing was received.
    #[error(
        "job rank {rank} sends {partitions} partitions of {len} bytes, where this rank receives {expected} bytes in all; \
         give both as many bytes, and at most 65536 partitions if these are empty"
    )]
    Partitions {
        /// The job rank of the sender.
        rank: u32,
        /// Number of its partitions.
        partitions: usize,
        /// Length of each in bytes.
        len: usize,
        /// Length of the receive in bytes.
        expected: usize,
    },
    /// A communicator has no tags left for partitions.
    #[error(
        "the partitioned sends of this rank on the communicator have nearly 2^31 partitions; free \
         some, or make a duplicate of the communicator for further ones"
    )]
    PartitionTags,
    /// A communicator has no tags left for persistent collectives.
    #[error(
        "the communicator has had nearly 2^29 persistent collectives, as many as it can have; make a duplicate of it \
         for further ones"
    )]
    PersistentTags,
    /// The members of a group gave different texts, or texts that cannot be told apart.
    #[error(
        "the messages of this call met those of a call with another text; give the same text on all members of the \
         group, and a text like no other to calls that are made at the same time"
    )]
    Texts,
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
    /// The operation of a reduction panicked. In a blocking call the panic continues on the rank itself.
    #[error("the operation of the reduction panicked: {message}")]
    Panicked {
        /// The text of the panic.
        message: String,
    },
    /// All context ids are in use by communicators of some member.
    #[error(
        "no context id is left for another communicator: the members have {most} each, and no id is free \
         on all of them; free communicators that are not needed, on all ranks"
    )]
    Contexts {
        /// The most communicators that a rank can have at a time.
        most: u32,
    },
    /// The collective call does not exist for this kind of communicator.
    #[error("{call} is not defined on an {kind}")]
    Kind {
        /// The call.
        call: &'static str,
        /// The kind of the communicator.
        kind: &'static str,
    },
    /// The groups of an intercommunicator have a rank in common.
    #[error("job rank {rank} is in both groups; the groups of an intercommunicator are disjoint")]
    Overlap {
        /// A job rank that is in both groups.
        rank: u32,
    },
    /// The leader of a group got no message from the leader of the other group.
    #[error(
        "rank {leader}, the leader, could not exchange the groups of an intercommunicator with the other \
         leader; see what the call says there"
    )]
    Leader {
        /// The rank of the leader.
        leader: u32,
    },
    /// A callback of an attribute or of a generalized request has failed.
    #[error("the {callback} failed: {cause}")]
    Callback {
        /// Which callback, for example `copy callback of an attribute`.
        callback: &'static str,
        /// The error of the callback.
        cause: Arc<dyn std::error::Error + Send + Sync>,
    },
    /// A communicator without a grid got a call that needs one.
    #[error(
        "the communicator has no grid; make a communicator with one from it, by MPI_Cart_create"
    )]
    NoGrid,
    /// A communicator without a topology got a call among neighbours.
    #[error(
        "the communicator has no topology; make a communicator with one from it, for example by MPI_Cart_create"
    )]
    NoTopology,
    /// Ranks gave different groups in a call in which all members of a group must give the same.
    #[error(
        "rank {rank} is in the group that this rank gives, but gives another one; the groups of a call \
         are equal or have no rank in common"
    )]
    GroupsDiffer {
        /// The first rank of the communicator that gives another group.
        rank: u32,
    },
    /// A group has a member that is not in the communicator, or does not contain the caller.
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
            Self::Device(mpjdev::Error::Failed(failure)) => ErrorClass::of_number(failure.class),
            Self::Device(error) => error.class().into(),
            Self::Collective(error) => error.class(),
            Self::Group(error) => error.class(),
            Self::Op(error) => error.class(),
            Self::Datatype(error) => error.class(),
            Self::Topology(error) => error.class(),
            Self::Service(error) => error.class(),
            Self::Window(error) => error.class(),
            Self::World(error) => error.class(),
            Self::File(error) => error.class(),
            Self::Layout(_) => ErrorClass::Arg,
            Self::Buffer { .. } | Self::AttachedBuffer { .. } | Self::Attached { .. } => {
                ErrorClass::Buffer
            }
            Self::Short { .. } | Self::Unequal { .. } => ErrorClass::Count,
            Self::Long { .. } => ErrorClass::Truncate,
            Self::Mistake(mistake) => mistake.aspect.class(),
            Self::Conflict(_) => ErrorClass::RmaConflict,
            Self::Memory { .. } => ErrorClass::NoMem,
            Self::NotForReductions { .. } | Self::NoKind { .. } => ErrorClass::Op,
            Self::Panicked { .. } | Self::Contexts { .. } | Self::Thread { .. } => {
                ErrorClass::Other
            }
            Self::PartitionTags | Self::PersistentTags => ErrorClass::Other,
            Self::Texts => ErrorClass::Arg,
            Self::Kind { .. } => ErrorClass::Comm,
            Self::NoGrid | Self::NoTopology => ErrorClass::Topology,
            Self::Partition { .. } => ErrorClass::Arg,
            Self::Partitions { partitions, len, expected, .. } => {
                match partitions.saturating_mul(*len) > *expected {
                    true => ErrorClass::Truncate,
                    false => ErrorClass::Count,
                }
            }
            Self::Leader { .. } | Self::Callback { .. } => ErrorClass::Other,
            Self::Overlap { .. } | Self::NotMember { .. } | Self::GroupsDiffer { .. } => {
                ErrorClass::Group
            }
        }
    }

    /// Makes an error of a panic of a user's function.
    pub(crate) fn panicked(panic: &(dyn Any + Send)) -> Self {
        Self::Panicked { message: panic_text(panic) }
    }

    /// Returns what this rank, `rank` of the job, tells those ranks that wait for what it does not have because of this
    /// error. The failure of another rank is passed on as it is.
    pub(crate) fn failure(&self, rank: u32) -> Failure {
        match self {
            Self::Device(mpjdev::Error::Failed(first)) => Failure::clone(first),
            error => Failure {
                rank,
                lost: error.lost_rank(),
                class: error.class().number(),
                text: error.to_string(),
            },
        }
    }

    /// Returns this error in the form that a request of the device can have as its outcome.
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
    /// Converts an error of the device, or the error of a collective whose request the device had.
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

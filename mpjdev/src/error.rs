//! Errors of the device, each with its MPI error class.

use std::sync::Arc;

use transport_lapi::LapiError;
use transport_lapi::adapter::AdapterError;
use transport_lapi::wireup::WireupError;

use crate::buffer::{BufferError, ParseError};
use crate::failure::Failure;

/// The reason why an operation failed.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The job has no such rank.
    #[error(
        "rank {rank} is out of range: the job has ranks 0 to {last}{}",
        why_alone(*.is_alone),
        last = .size - 1
    )]
    Rank {
        /// The rank that was given.
        rank: usize,
        /// The number of ranks.
        size: usize,
        /// Whether the job has only one rank because no launcher started the program.
        is_alone: bool,
    },
    /// The number is not a tag.
    #[error("tag {tag} is out of range: tags are 0 to {max}", max = i32::MAX)]
    Tag {
        /// The tag that was given.
        tag: i32,
    },
    /// The message is longer than the receive buffer. The message is consumed, the buffer contains its beginning, and
    /// the device stays usable.
    #[error(
        "message of {sent} bytes from rank {source_rank} with tag {tag} does not fit the receive \
         buffer of {capacity} bytes; make the buffer longer, or receive it with recv_vec"
    )]
    Truncate {
        /// Rank of the sender.
        source_rank: u32,
        /// Tag of the message.
        tag: i32,
        /// Length of the message in bytes.
        sent: usize,
        /// Length of the buffer in bytes.
        capacity: usize,
    },
    /// A buffer cannot be sent as it is. Nothing was sent.
    #[error(transparent)]
    Buffer(Arc<BufferError>),
    /// A message that was received as a buffer does not have the format of one. The message is consumed, and the device
    /// stays usable.
    #[error(
        "the message from rank {source_rank} with tag {tag} is not a buffer: {violation}; receive \
         it in the form in which it was sent"
    )]
    Malformed {
        /// Rank of the sender.
        source_rank: u32,
        /// Tag of the message.
        tag: i32,
        /// What is wrong with the message.
        violation: Arc<ParseError>,
    },
    /// A collective operation has failed on another rank, which therefore does not have what this rank waits for.
    #[error("rank {} failed in this call: {}", .0.rank, .0.text)]
    Failed(Arc<Failure>),
    /// The request belongs to another device, or was completed before.
    #[error("the request was completed before, or belongs to another device")]
    Request,
    /// An operation that a client of the device began has ended with an error of the client's own.
    #[error(transparent)]
    Client(Arc<dyn std::error::Error + Send + Sync>),
    /// The device was finished, so no further communication is possible.
    #[error("the device was finished; communicate before that")]
    Finished,
    /// A peer broke the protocol. The device is unusable afterwards.
    #[error("rank {rank} broke the protocol: {violation}")]
    Peer {
        /// Rank of the peer.
        rank: u32,
        /// The rule that the peer broke.
        violation: PeerError,
    },
    /// The transport failed. The device is unusable afterwards.
    #[error(transparent)]
    Transport(Arc<LapiError>),
    /// The job could not be joined.
    #[error(transparent)]
    Wireup(Arc<WireupError>),
}

/// Returns the hint for a user who forgot the launcher and so has only one rank.
fn why_alone(is_alone: bool) -> &'static str {
    if is_alone {
        " (started without mpjrun, so a job of one rank: mpjrun -n N PROGRAM)"
    } else {
        ""
    }
}

impl From<LapiError> for Error {
    fn from(error: LapiError) -> Self {
        Self::Transport(Arc::new(error))
    }
}

impl From<BufferError> for Error {
    fn from(error: BufferError) -> Self {
        Self::Buffer(Arc::new(error))
    }
}

impl From<WireupError> for Error {
    fn from(error: WireupError) -> Self {
        Self::Wireup(Arc::new(error))
    }
}

/// A violation of the device's protocols by a peer. Each violation has a variant, and each variant a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PeerError {
    /// The user header, or the data of a rendezvous envelope, does not have the length that its handler needs.
    #[error("an envelope of {len} bytes, where {needed} were expected")]
    Envelope {
        /// Bytes of the header or of the data.
        len: usize,
        /// Bytes that the handler needs.
        needed: usize,
    },
    /// The peer sent more early messages than it had credit for.
    #[error(
        "early messages beyond the agreed {limit} bytes; set MPJ_EARLY_LIMIT to the same value on all ranks"
    )]
    Credit {
        /// The agreed limit in bytes.
        limit: usize,
    },
    /// The peer returned more credit than this rank has spent.
    #[error("{bytes} bytes of credit, more than were spent")]
    CreditReturn {
        /// Bytes of credit that were returned.
        bytes: u64,
    },
    /// A message that must not carry data carries some.
    #[error("{len} bytes of data with a message that has none")]
    Data {
        /// Bytes of data.
        len: u64,
    },
    /// The peer answered a send that is not under way to it.
    #[error("the end of a send that is not under way")]
    StrayDone,
    /// The peer confirmed a withdrawal that this rank did not ask for.
    #[error("the withdrawal of a send that was not withdrawn")]
    StrayWithdrawn,
    /// The peer reported the failure of a rank that does not exist.
    #[error("a failure of rank {rank}, which the job does not have")]
    FailedRank {
        /// The rank that was named.
        rank: u32,
    },
    /// A message claims to be longer than the address space.
    #[error("a message of {len} bytes, for which there is no memory")]
    Length {
        /// The length that was claimed.
        len: u64,
    },
}

/// MPI's error classes (MPI-4 section 9.4), as far as they occur.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorClass {
    /// MPI_ERR_RANK.
    Rank,
    /// MPI_ERR_TAG.
    Tag,
    /// MPI_ERR_TRUNCATE.
    Truncate,
    /// MPI_ERR_REQUEST.
    Request,
    /// MPI_ERR_PROC_FAILED of the fault tolerance chapter: a rank of the job is gone.
    ProcFailed,
    /// MPI_ERR_NO_MEM.
    NoMem,
    /// MPI_ERR_OTHER.
    Other,
    /// MPI_ERR_INTERN: a peer or the system broke a rule.
    Intern,
}

impl Error {
    /// Returns the rank that was lost, if this error is about a loss.
    pub fn lost_rank(&self) -> Option<u32> {
        match self {
            Self::Transport(error) => match **error {
                LapiError::Adapter(AdapterError::PeerLost { task }) => Some(task),
                _ => None,
            },
            _ => None,
        }
    }

    /// Returns MPI's class of this error.
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Rank { .. } => ErrorClass::Rank,
            Self::Tag { .. } => ErrorClass::Tag,
            Self::Truncate { .. } => ErrorClass::Truncate,
            Self::Request => ErrorClass::Request,
            Self::Finished
            | Self::Wireup(_)
            | Self::Buffer(_)
            | Self::Client(_)
            | Self::Failed(_) => ErrorClass::Other,
            Self::Malformed { violation, .. } => match **violation {
                ParseError::Memory { .. } => ErrorClass::NoMem,
                _ => ErrorClass::Other,
            },
            Self::Peer { .. } => ErrorClass::Intern,
            Self::Transport(_) if self.lost_rank().is_some() => ErrorClass::ProcFailed,
            Self::Transport(_) => ErrorClass::Intern,
        }
    }
}

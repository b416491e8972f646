//! Errors of the device, and MPI's class of each.

use std::sync::Arc;

use transport_lapi::LapiError;
use transport_lapi::adapter::AdapterError;
use transport_lapi::wireup::WireupError;

use crate::buffer::{BufferError, ParseError};

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
        /// How many ranks there are.
        size: usize,
        /// Whether there is but one since no launcher has started the program.
        is_alone: bool,
    },
    /// The number is not a tag.
    #[error("tag {tag} is out of range: tags are 0 to {max}", max = i32::MAX)]
    Tag {
        /// The tag that was given.
        tag: i32,
    },
    /// The message is longer than the receive buffer. The message is consumed; the buffer holds its
    /// beginning, and the connection stays usable.
    #[error(
        "message of {sent} bytes from rank {source_rank} with tag {tag} does not fit the receive \
         buffer of {capacity} bytes; make the buffer longer, or receive it with recv_vec"
    )]
    Truncate {
        /// Who sent it.
        source_rank: u32,
        /// Its tag.
        tag: i32,
        /// Its length in bytes.
        sent: usize,
        /// The buffer's length in bytes.
        capacity: usize,
    },
    /// A buffer cannot be sent as it is. Nothing was sent.
    #[error(transparent)]
    Buffer(Arc<BufferError>),
    /// A message that was received as a buffer is not one. It is consumed, and the connection stays usable.
    #[error(
        "the message from rank {source_rank} with tag {tag} is no buffer: {violation}; receive it \
         as what was sent"
    )]
    Malformed {
        /// Who sent it.
        source_rank: u32,
        /// Its tag.
        tag: i32,
        /// What is wrong with it.
        violation: Arc<ParseError>,
    },
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
        /// Who sent it.
        rank: u32,
        /// What was wrong with it.
        violation: PeerError,
    },
    /// The transport failed. The device is unusable afterwards.
    #[error(transparent)]
    Transport(Arc<LapiError>),
    /// The job could not be joined.
    #[error(transparent)]
    Wireup(Arc<WireupError>),
}

/// What a user may have forgotten who has one rank only.
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

/// A violation of the device's protocols by a peer: one variant for each, and a test for each variant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PeerError {
    /// The user header is not of the length that its handler needs.
    #[error("an envelope of {len} bytes, where {needed} were expected")]
    Envelope {
        /// Bytes there are.
        len: usize,
        /// Bytes that are needed.
        needed: usize,
    },
    /// The peer sent more early messages than it had credit for.
    #[error("early messages beyond the agreed {limit} bytes; set MPJ_EARLY_LIMIT alike everywhere")]
    Credit {
        /// What was agreed.
        limit: usize,
    },
    /// The peer returned more credit than was ever spent.
    #[error("{bytes} bytes of credit, more than were spent")]
    CreditReturn {
        /// What was returned.
        bytes: u64,
    },
    /// A message carries data that must not have any.
    #[error("{len} bytes of data with a message that has none")]
    Data {
        /// How many there were.
        len: u64,
    },
    /// The peer ended a send that is not under way to it.
    #[error("the end of a send that is not under way")]
    StrayDone,
    /// The peer confirmed a withdrawal that this rank did not ask for.
    #[error("the withdrawal of a send that was not withdrawn")]
    StrayWithdrawn,
    /// A length exceeds the address space.
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
            Self::Finished | Self::Wireup(_) | Self::Buffer(_) | Self::Client(_) => {
                ErrorClass::Other
            }
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

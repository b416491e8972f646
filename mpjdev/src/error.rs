//! Errors of the device, each with its MPI error class.

use std::sync::Arc;

use transport_lapi::LapiError;
use transport_lapi::adapter::AdapterError;
use transport_lapi::wireup::WireupError;

use crate::envelope::{Failure, PeerError};

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
    /// The elements of the message have other types than those that are received. The message is consumed, the buffer is
    /// unchanged, and the device stays usable. Only jobs that find mistakes between ranks find it.
    #[error(transparent)]
    Misfit(Box<Misfit>),
    /// The place of a receive overlaps that of another one, which is under way. It was not started. Only jobs that find
    /// mistakes between ranks find it.
    #[error(
        "the receive buffer overlaps that of a receive under way; wait for that one first, or give another buffer"
    )]
    Overlap,
    /// Messages that were sent to this rank were never received. Only jobs that find mistakes between ranks find it, at
    /// their end.
    #[error(
        "{} never received: {}{}; receive every message that is sent",
        match .0.count { 1 => "a message was".to_owned(), n => format!("{n} messages were") },
        .0.named.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
        match .0.count.saturating_sub(.0.named.len() as u64) { 0 => String::new(), n => format!(", and {n} more") }
    )]
    Unreceived(Arc<UnreceivedList>),
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

/// A receive of other types than were sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "rank {rank} receives {received} where rank {source_rank} sends {sent} with tag {tag}: send and receive elements of \
     the same types"
)]
pub struct Misfit {
    /// The receiver.
    pub rank: u32,
    /// The sender.
    pub source_rank: u32,
    /// The tag of the message.
    pub tag: i32,
    /// What was sent, and where in the program, as far as it is known.
    pub sent: String,
    /// The same of what is received.
    pub received: String,
}

/// Messages that were never received. The first few are named.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UnreceivedList {
    /// Some of them.
    pub named: Vec<Unreceived>,
    /// How many there are.
    pub count: u64,
}

impl UnreceivedList {
    /// How many are named.
    const NAMED: usize = 4;

    /// Adds a message, which is made only if it is named.
    pub(crate) fn add(&mut self, message: impl FnOnce() -> Unreceived) {
        if self.named.len() < Self::NAMED {
            self.named.push(message());
        }
        self.count += 1;
    }

    /// Returns these messages and then `further`.
    pub(crate) fn with(&self, further: &Self) -> Self {
        let named = self.named.iter().chain(&further.named).take(Self::NAMED).cloned();
        Self { named: named.collect(), count: self.count + further.count }
    }

    /// Returns the error about them, if there are any.
    pub(crate) fn into_error(self) -> Option<Error> {
        (self.count > 0).then(|| Error::Unreceived(self.into()))
    }
}

/// A message that was never received.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{bytes} bytes from rank {source_rank} of the job with tag {tag}{} ({about})",
    match .communicator.as_str() { "" => String::new(), name => format!(" in communicator {name}") }
)]
pub struct Unreceived {
    /// The sender, as a rank of the job.
    pub source_rank: u32,
    /// The tag.
    pub tag: i32,
    /// The length.
    pub bytes: usize,
    /// The name of the communicator; empty if it has none.
    pub communicator: String,
    /// What was sent, and where in the program, as far as it is known, or why it was not received.
    pub about: String,
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

impl From<WireupError> for Error {
    fn from(error: WireupError) -> Self {
        Self::Wireup(Arc::new(error))
    }
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
    /// MPI_ERR_BUFFER.
    Buffer,
    /// MPI_ERR_TYPE.
    Type,
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

    /// Returns the error of a rank whose contexts have failed with this error and then `further`: messages that were never
    /// received are counted together, and stand behind any other error.
    #[must_use]
    pub fn and(self, further: Self) -> Self {
        match (self, further) {
            (Self::Unreceived(first), Self::Unreceived(further)) => {
                Self::Unreceived(first.with(&further).into())
            }
            (Self::Unreceived(_), other) | (other, _) => other,
        }
    }

    /// Returns MPI's class of this error.
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Rank { .. } => ErrorClass::Rank,
            Self::Tag { .. } => ErrorClass::Tag,
            Self::Truncate { .. } => ErrorClass::Truncate,
            Self::Misfit(_) => ErrorClass::Type,
            Self::Overlap => ErrorClass::Buffer,
            Self::Request => ErrorClass::Request,
            Self::Unreceived(_)
            | Self::Finished
            | Self::Wireup(_)
            | Self::Client(_)
            | Self::Failed(_) => ErrorClass::Other,
            Self::Peer { .. } => ErrorClass::Intern,
            Self::Transport(_) if self.lost_rank().is_some() => ErrorClass::ProcFailed,
            Self::Transport(_) => ErrorClass::Intern,
        }
    }
}

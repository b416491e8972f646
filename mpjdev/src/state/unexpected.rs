//! Unexpected messages: messages that arrived before their receive was posted. They are the entries of the unexpected
//! queue.

use std::sync::Arc;

use transport_lapi::RemoteRegion;

use crate::description::Told;
use crate::envelope::Failure;
use crate::matching::UNEXPECTED_ENTRY;
use crate::request::slab;
use crate::state::unexpected_buffer::UnexpectedBuffer;

/// Bytes of memory that an unexpected message takes in addition to its data: its slot here, its entry in the queue, and
/// what the allocator adds to the buffer of its data. Spare capacity of lists is not counted, since nobody has touched
/// it.
pub(crate) const OVERHEAD: usize = slab::place::<Unexpected>() + UNEXPECTED_ENTRY + ALLOCATION;

/// The most that an allocator adds to an allocation: a word before it, and rounding up to a multiple of two words and
/// to at least four words.
const ALLOCATION: usize = 4 * size_of::<usize>();

/// An unexpected message.
#[derive(Debug)]
pub(crate) struct Unexpected {
    pub source: u32,
    pub tag: i32,
    pub context: u32,
    pub len: usize,
    pub body: UnexpectedBody,
    /// What the sender has told of it, if anything.
    pub told: Option<Box<Told>>,
}

/// Where the bytes of an unexpected message are.
#[derive(Debug)]
pub(crate) enum UnexpectedBody {
    /// The bytes are in unexpected-message memory, or on their way there.
    Eager {
        buffer: UnexpectedBuffer,
        /// Whether all bytes have arrived.
        arrived: bool,
        /// The sender's request, if the sender waits for the match, or the number by which it times the message.
        sync: Option<u64>,
        /// The receive that has matched the message before all of it arrived.
        waiting: Option<u64>,
    },
    /// The bytes are still at the sender.
    Rendezvous {
        data: RemoteRegion,
        /// The sender's request.
        sender: u64,
    },
    /// The sender does not have the message.
    Failure(Arc<Failure>),
}

impl UnexpectedBody {
    /// Returns the number by which the sender awaits an answer, if it does.
    pub fn awaited(&self) -> Option<u64> {
        match self {
            Self::Eager { sync, .. } => *sync,
            Self::Rendezvous { sender, .. } => Some(*sender),
            Self::Failure(_) => None,
        }
    }

    /// Returns the sender's request if the sender asks for an answer, unless the message is still arriving.
    pub fn answerable(&self) -> Option<u64> {
        match self {
            Self::Eager { arrived: true, sync, .. } => *sync,
            Self::Eager { .. } | Self::Failure(_) => None,
            Self::Rendezvous { sender, .. } => Some(*sender),
        }
    }
}

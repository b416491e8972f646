//! Early messages, which arrived before their receive was posted: the entries of the early-send queue.

use transport_lapi::RemoteRegion;

use crate::early_buffer::EarlyBuffer;
use crate::matching::EARLY_ENTRY;
use crate::slab;

/// Bytes of memory that an early message takes beside its data: its place here, its place in the queue, and
/// what the allocator adds to the buffer of its data. What lists have in reserve is not counted: nobody
/// has touched it.
pub(crate) const OVERHEAD: usize = slab::place::<Early>() + EARLY_ENTRY + ALLOCATION;

/// What an allocator adds to an allocation at most: a word before it, and its rounding up, to a multiple of
/// two words and to four words at least.
const ALLOCATION: usize = 4 * size_of::<usize>();

/// An early message.
#[derive(Debug)]
pub(crate) struct Early {
    pub source: u32,
    pub tag: i32,
    pub context: u32,
    pub len: usize,
    pub body: EarlyBody,
}

/// Where the bytes of an early message are.
#[derive(Debug)]
pub(crate) enum EarlyBody {
    /// Here, or on their way here.
    Eager {
        buffer: EarlyBuffer,
        /// Whether all bytes are here.
        arrived: bool,
        /// The sender's request, if it waits for the match.
        sync: Option<u64>,
        /// The receive that was matched meanwhile.
        waiting: Option<u64>,
    },
    /// Still with the sender.
    Rendezvous {
        data: RemoteRegion,
        /// The sender's request.
        sender: u64,
    },
}

impl EarlyBody {
    /// The sender's request, if it waits for an answer, and the message is here in full or not at all.
    pub fn answerable(&self) -> Option<u64> {
        match self {
            Self::Eager { arrived: true, sync, .. } => *sync,
            Self::Eager { .. } => None,
            Self::Rendezvous { sender, .. } => Some(*sender),
        }
    }
}

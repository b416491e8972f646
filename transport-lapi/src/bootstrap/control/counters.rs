//! What the protocols did on a rank, as it tells the launcher when it leaves.

use bincode::{Decode, Encode};

/// What one protocol did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Encode, Decode)]
pub struct ProtocolCounts {
    /// Messages sent.
    pub messages: u64,
    /// Bytes of these messages.
    pub bytes: u64,
    /// Messages that arrived before their receive was posted.
    pub early: u64,
}

/// What a rank did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Encode, Decode)]
pub struct MessageCounts {
    /// By the eager protocol.
    pub eager: ProtocolCounts,
    /// By the rendezvous protocol.
    pub rendezvous: ProtocolCounts,
    /// Messages received.
    pub received: u64,
    /// Messages that went by rendezvous for want of early memory at the receiver.
    pub fallbacks: u64,
    /// Most bytes that were held for early messages at once.
    pub early_bytes: u64,
}

//! Counters of the protocols on a rank, which it sends to the launcher when it leaves.

use bincode::{Decode, Encode};

/// Counters of one protocol.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Encode, Decode)]
pub struct ProtocolCounts {
    /// Messages sent.
    pub messages: u64,
    /// Bytes of these messages.
    pub bytes: u64,
    /// Messages that arrived before their receive was posted.
    pub unexpected: u64,
}

/// Counters of a rank.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Encode, Decode)]
pub struct MessageCounts {
    /// Messages of the eager protocol.
    pub eager: ProtocolCounts,
    /// Messages of the rendezvous protocol.
    pub rendezvous: ProtocolCounts,
    /// Messages received.
    pub received: u64,
    /// Messages sent by rendezvous because the receiver had too little unexpected-message memory left.
    pub fallbacks: u64,
    /// Most bytes that unexpected messages occupied at any time.
    pub unexpected_bytes: u64,
    /// Messages of the network that were not of this job, or not the next ones of their origin, and were dropped.
    pub dropped: u64,
}

//! Counters of the protocols on a rank, which it sends to the launcher when it leaves.

use std::iter::Sum;

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

impl Sum for MessageCounts {
    /// Adds the counters of the clients of a rank. The sum of the peaks is an upper bound of the peak of the sum.
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        let add = |one: ProtocolCounts, other: ProtocolCounts| ProtocolCounts {
            messages: one.messages + other.messages,
            bytes: one.bytes + other.bytes,
            unexpected: one.unexpected + other.unexpected,
        };
        all.fold(Self::default(), |one, other| Self {
            eager: add(one.eager, other.eager),
            rendezvous: add(one.rendezvous, other.rendezvous),
            received: one.received + other.received,
            fallbacks: one.fallbacks + other.fallbacks,
            unexpected_bytes: one.unexpected_bytes + other.unexpected_bytes,
            dropped: one.dropped + other.dropped,
        })
    }
}

//! Statistics: plain numbers, readable at any time. The sends and the backends count; at the end of the job the numbers
//! go to the launcher as [`MessageCounts`], whose report prints them (`mpjrun --stats`).

use std::iter::Sum;
use std::ops::Add;

use transport_lapi::bootstrap::control::{MessageCounts, ProtocolCounts};

/// Counters of one protocol on this rank.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProtocolStats {
    /// Messages sent.
    pub messages: u64,
    /// Bytes of these messages.
    pub bytes: u64,
    /// Messages that arrived before their receive was posted.
    pub unexpected: u64,
    /// Copies out of unexpected buffers into user buffers.
    pub copies: u64,
}

/// Counters of one rank's device.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// The eager backend.
    pub eager: ProtocolStats,
    /// The rendezvous backend.
    pub rendezvous: ProtocolStats,
    /// Messages that went by rendezvous instead of eagerly because the credit for the receiver's unexpected-message
    /// memory was used up.
    pub credit_fallbacks: u64,
    /// Messages received.
    pub received: u64,
    /// Bytes of eager messages that are in unexpected-message memory now.
    pub unexpected_bytes: u64,
    /// The most bytes of eager messages that were in unexpected-message memory at once.
    pub unexpected_bytes_peak: u64,
    /// How often a thread waited for the lock of the device because another thread had it.
    pub contended: u64,
    /// Messages of the network that were not of this job, or not the next ones of their origin, and were dropped.
    pub dropped: u64,
}

impl Add for ProtocolStats {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            messages: self.messages + other.messages,
            bytes: self.bytes + other.bytes,
            unexpected: self.unexpected + other.unexpected,
            copies: self.copies + other.copies,
        }
    }
}

impl Sum for Stats {
    /// Adds the counters of all contexts of a rank. The sum of the peaks is an upper bound of the peak of the sum.
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |one, other| Self {
            eager: one.eager + other.eager,
            rendezvous: one.rendezvous + other.rendezvous,
            credit_fallbacks: one.credit_fallbacks + other.credit_fallbacks,
            received: one.received + other.received,
            unexpected_bytes: one.unexpected_bytes + other.unexpected_bytes,
            unexpected_bytes_peak: one.unexpected_bytes_peak + other.unexpected_bytes_peak,
            contended: one.contended + other.contended,
            dropped: one.dropped + other.dropped,
        })
    }
}

impl From<ProtocolStats> for ProtocolCounts {
    fn from(ProtocolStats { messages, bytes, unexpected, .. }: ProtocolStats) -> Self {
        Self { messages, bytes, unexpected }
    }
}

impl From<Stats> for MessageCounts {
    /// Converts the counters to the form that the launcher gets.
    fn from(stats: Stats) -> Self {
        Self {
            eager: stats.eager.into(),
            rendezvous: stats.rendezvous.into(),
            received: stats.received,
            fallbacks: stats.credit_fallbacks,
            unexpected_bytes: stats.unexpected_bytes_peak,
            dropped: stats.dropped,
        }
    }
}

//! Counters of the protocols: plain numbers, readable at any time.

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
    pub early: u64,
    /// Copies out of early buffers into user buffers.
    pub copies: u64,
}

/// Counters of one rank's device.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// The eager backend.
    pub eager: ProtocolStats,
    /// The rendezvous backend.
    pub rendezvous: ProtocolStats,
    /// Messages that went by rendezvous instead of eagerly because the credit for the receiver's early memory was used
    /// up.
    pub credit_fallbacks: u64,
    /// Messages received.
    pub received: u64,
    /// Bytes of eager messages that are in early memory now.
    pub early_bytes: u64,
    /// The most bytes of eager messages that were in early memory at once.
    pub early_bytes_peak: u64,
    /// How often a thread waited for the lock of the device because another thread had it.
    pub contended: u64,
}

impl Add for ProtocolStats {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            messages: self.messages + other.messages,
            bytes: self.bytes + other.bytes,
            early: self.early + other.early,
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
            early_bytes: one.early_bytes + other.early_bytes,
            early_bytes_peak: one.early_bytes_peak + other.early_bytes_peak,
            contended: one.contended + other.contended,
        })
    }
}

impl From<ProtocolStats> for ProtocolCounts {
    fn from(ProtocolStats { messages, bytes, early, .. }: ProtocolStats) -> Self {
        Self { messages, bytes, early }
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
            early_bytes: stats.early_bytes_peak,
        }
    }
}

//! Statistics: plain numbers, readable at any time. The sends and the backends count; at the end of the job the numbers
//! go to the launcher as [`MessageCounts`], whose report prints them (`mpjrun --stats`). While the job runs, the launcher
//! reads the first of them in the rank's memory (`mpjrun --watch`).

use std::iter::Sum;
use std::mem::offset_of;
use std::ops::Add;

use transport_lapi::bootstrap::control::{MessageCounts, MessageTotals, ProtocolCounts};

/// Counters of one protocol on this rank.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
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
#[repr(C)]
pub struct Stats {
    /// The eager backend.
    pub eager: ProtocolStats,
    /// The rendezvous backend.
    pub rendezvous: ProtocolStats,
    /// Messages received.
    pub received: u64,
    /// Messages that went by rendezvous instead of eagerly because the credit for the receiver's unexpected-message
    /// memory was used up.
    pub credit_fallbacks: u64,
    /// Bytes of eager messages that are in unexpected-message memory now.
    pub unexpected_bytes: u64,
    /// The most bytes of eager messages that were in unexpected-message memory at once.
    pub unexpected_bytes_peak: u64,
    /// How often a thread waited for the lock of the device because another thread had it.
    pub contended: u64,
    /// Messages of the network that were not of this job, or not the next ones of their origin, and were dropped.
    pub dropped: u64,
    /// Puts and gets of windows that a network was to carry out without the target's help.
    pub accesses: u64,
    /// Bytes of these.
    pub access_bytes: u64,
}

/// They begin with the words of [`MessageTotals`].
const _: () = assert!(
    offset_of!(ProtocolStats, bytes) == 8
        && offset_of!(Stats, rendezvous) == 32
        && offset_of!(Stats, received) == 8 * (MessageTotals::WORDS - 1)
);

/// What a number of [`Stats`] tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CounterKind {
    /// How often something has happened.
    Count,
    /// A sum over what has happened.
    Sum,
    /// How much there is at present.
    Level,
    /// The most that there was.
    Peak,
}

/// A number of [`Stats`], described for tools.
#[derive(Debug, Clone, Copy)]
pub struct Counter {
    /// Its name.
    pub name: &'static str,
    /// What it tells.
    pub kind: CounterKind,
    /// What is counted.
    pub meaning: &'static str,
    /// Returns its value.
    pub value: fn(&Stats) -> u64,
}

/// Shortens the table below.
const fn counter(
    name: &'static str,
    kind: CounterKind,
    meaning: &'static str,
    value: fn(&Stats) -> u64,
) -> Counter {
    Counter { name, kind, meaning, value }
}

/// All numbers of [`Stats`].
pub const COUNTERS: [Counter; 15] = {
    use CounterKind::{Count, Level, Peak, Sum};
    [
        counter("eager_messages", Count, "messages sent eagerly", |all| all.eager.messages),
        counter("eager_bytes", Sum, "bytes of messages sent eagerly", |all| all.eager.bytes),
        counter(
            "eager_unexpected",
            Count,
            "eager messages that arrived before their receive was posted",
            |all| all.eager.unexpected,
        ),
        counter(
            "eager_copies",
            Count,
            "copies out of unexpected-message memory into buffers",
            |all| all.eager.copies,
        ),
        counter("rendezvous_messages", Count, "messages sent by rendezvous", |all| {
            all.rendezvous.messages
        }),
        counter("rendezvous_bytes", Sum, "bytes of messages sent by rendezvous", |all| {
            all.rendezvous.bytes
        }),
        counter(
            "rendezvous_unexpected",
            Count,
            "rendezvous messages that arrived before their receive was posted",
            |all| all.rendezvous.unexpected,
        ),
        counter("received_messages", Count, "messages received", |all| all.received),
        counter(
            "credit_fallbacks",
            Count,
            "messages that went by rendezvous because the receiver's unexpected-message memory was used up",
            |all| all.credit_fallbacks,
        ),
        counter(
            "unexpected_bytes",
            Level,
            "bytes of eager messages that are in unexpected-message memory",
            |all| all.unexpected_bytes,
        ),
        counter(
            "unexpected_bytes_peak",
            Peak,
            "most bytes of eager messages that were in unexpected-message memory at once",
            |all| all.unexpected_bytes_peak,
        ),
        counter(
            "contended_locks",
            Count,
            "how often a thread waited for the lock of the device",
            |all| all.contended,
        ),
        counter(
            "dropped_packets",
            Count,
            "packets of the network that were not of this job, or not the next ones of their origin",
            |all| all.dropped,
        ),
        counter(
            "network_accesses",
            Count,
            "puts and gets of windows that a network was to carry out without the target",
            |all| all.accesses,
        ),
        counter(
            "network_access_bytes",
            Sum,
            "bytes of puts and gets of windows that a network was to carry out without the target",
            |all| all.access_bytes,
        ),
    ]
};

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
            accesses: one.accesses + other.accesses,
            access_bytes: one.access_bytes + other.access_bytes,
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

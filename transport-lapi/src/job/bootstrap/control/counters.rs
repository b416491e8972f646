//! Counters of the protocols on a rank: what it sends to the launcher when it leaves, and what the launcher reads in the
//! rank's memory while the job runs, so that a rank does nothing for that.

use std::iter::Sum;

use bincode::{Decode, Encode};

use super::{Control, ControlMessage};

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

/// What a rank has sent and received so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Encode, Decode)]
pub struct MessageTotals {
    /// Messages sent.
    pub sent: u64,
    /// Bytes of these messages.
    pub bytes: u64,
    /// Messages received.
    pub received: u64,
}

impl MessageTotals {
    /// How many words a client's counters begin with: messages and bytes of one protocol, two others, the same four of
    /// the other protocol, and the messages received.
    pub const WORDS: usize = 9;

    /// Returns what these words say, which may be anything.
    pub fn of_words(words: [u64; Self::WORDS]) -> Self {
        let both = |at: usize| words[at].saturating_add(words[at + 4]);
        Self { sent: both(0), bytes: both(1), received: words[8] }
    }
}

impl From<MessageCounts> for MessageTotals {
    fn from(MessageCounts { eager, rendezvous, received, .. }: MessageCounts) -> Self {
        let sent = eager.messages.saturating_add(rendezvous.messages);
        Self { sent, bytes: eager.bytes.saturating_add(rendezvous.bytes), received }
    }
}

impl Sum for MessageTotals {
    /// Adds what the clients of a rank have sent and received.
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |one, other| Self {
            sent: one.sent.saturating_add(other.sent),
            bytes: one.bytes.saturating_add(other.bytes),
            received: one.received.saturating_add(other.received),
        })
    }
}

impl Control {
    /// Reports how often the client has chosen an algorithm, whose name says for what, too: at most
    /// [`Vocabulary::MAX_NAME`](super::Vocabulary::MAX_NAME) bytes. Call it before [`Control::leaving`].
    pub fn chosen(&self, name: &str, times: u64) {
        self.send(&ControlMessage::Chosen { name: name.to_owned(), times });
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_both_protocols_are_added() {
        let totals = MessageTotals::of_words([1, 20, 3, 4, 50, 600, 7, 8, 9]);
        assert_eq!(totals, MessageTotals { sent: 51, bytes: 620, received: 9 });
        let most = MessageTotals::of_words([u64::MAX; 9]);
        assert_eq!([most, most].into_iter().sum::<MessageTotals>(), most);
    }
}

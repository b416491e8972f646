//! What an endpoint keeps of one peer: its address, the numbers of packets in both directions, and the packets that the
//! provider has not taken.
//!
//! - PN1: packets to a peer have consecutive numbers in the order in which they are made, and go in that order. A packet
//!   is numbered when its first frame is put in.

use std::collections::VecDeque;

use super::packet::Header;
use crate::adapter::TaskId;
use crate::adapters::hosts::table::SECRET_BYTES;

/// A packet that may still grow, in a send buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Waiting {
    pub(super) buffer: usize,
    pub(super) len: usize,
}

/// See the head of this file.
#[derive(Debug)]
pub(super) struct Peer {
    /// The provider's number of its address, once something was sent to it.
    pub(super) address: Option<u64>,
    /// Proves to the peer who sends.
    token: u64,
    /// Proves the same of the peer.
    expected: u64,
    next_sent: u32,
    next_received: u32,
    /// Packets that wait for the provider; frames are added to the last.
    pub(super) waiting: VecDeque<Waiting>,
    /// Packets in buffers that the provider has.
    pub(super) under_way: usize,
    /// At which poll a packet was sent last.
    pub(super) sent_at: Option<u64>,
    /// Whether packets were injected since one was sent whose completion tells that all before it have left.
    pub(super) injected: bool,
    /// Whether it is listed among those for whom packets wait.
    pub(super) is_listed: bool,
}

/// What a packet is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Judgement {
    /// The next one of its origin.
    Next,
    /// One of its origin behind others that never came: the connection has lost them.
    Gap,
    /// One of a stranger, or one that came before.
    Foreign,
}

/// What proves that `origin` sends to `target` in this context, to those who know the secret.
pub(super) fn token(
    secret: &[u8; SECRET_BYTES],
    origin: TaskId,
    target: TaskId,
    context: usize,
) -> u64 {
    let mut who = [0; 12];
    who[..4].copy_from_slice(&origin.to_le_bytes());
    who[4..8].copy_from_slice(&target.to_le_bytes());
    who[8..].copy_from_slice(&(context as u32).to_le_bytes());
    let hash = blake3::keyed_hash(secret, &who);
    let start = hash.as_bytes().first_chunk().expect("a hash is longer");
    u64::from_le_bytes(*start)
}

impl Peer {
    pub(super) fn new(
        secret: &[u8; SECRET_BYTES],
        own: TaskId,
        peer: TaskId,
        context: usize,
    ) -> Self {
        Self {
            address: None,
            token: token(secret, own, peer, context),
            expected: token(secret, peer, own, context),
            next_sent: 0,
            next_received: 0,
            waiting: VecDeque::new(),
            under_way: 0,
            sent_at: None,
            injected: false,
            is_listed: false,
        }
    }

    /// Whether nothing is on its way to the peer, as far as is known after `polls` polls: a frame then goes at once.
    pub(super) fn is_idle(&self, polls: u64) -> bool {
        self.waiting.is_empty() && self.under_way == 0 && self.sent_at != Some(polls)
    }

    /// The header of the next packet from `own` (PN1).
    pub(super) fn next_header(&mut self, own: TaskId) -> Header {
        let header = Header { token: self.token, origin: own, number: self.next_sent };
        self.next_sent = self.next_sent.wrapping_add(1);
        header
    }

    /// Takes back the header that was given last, of a packet that was not sent.
    pub(super) fn take_back_header(&mut self) {
        self.next_sent = self.next_sent.wrapping_sub(1);
    }

    /// Judges a packet by its header. The next one of the peer counts as received.
    pub(super) fn judge(&mut self, header: Header) -> Judgement {
        let ahead = header.number.wrapping_sub(self.next_received);
        match ahead {
            _ if header.token != self.expected => Judgement::Foreign,
            0 => {
                self.next_received = self.next_received.wrapping_add(1);
                Judgement::Next
            }
            _ if ahead <= u32::MAX / 2 => Judgement::Gap,
            _ => Judgement::Foreign,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_agree_and_nobody_else_does() {
        let secret = [3; SECRET_BYTES];
        let mut origin = Peer::new(&secret, 1, 2, 0);
        let mut target = Peer::new(&secret, 2, 1, 0);
        let first = origin.next_header(1);
        let foreign = |peer: &mut Peer, header| peer.judge(header) == Judgement::Foreign;
        assert!(foreign(&mut Peer::new(&secret, 2, 1, 1), first), "another context");
        assert!(foreign(&mut Peer::new(&[4; SECRET_BYTES], 2, 1, 0), first), "another job");
        assert!(foreign(&mut Peer::new(&secret, 2, 3, 0), first), "another origin");
        assert_eq!(target.judge(first), Judgement::Next);
        assert!(foreign(&mut target, first), "twice");
        let (second, third) = (origin.next_header(1), origin.next_header(1));
        assert_eq!(target.judge(third), Judgement::Gap);
        assert_eq!([second, third].map(|header| target.judge(header)), [Judgement::Next; 2]);
    }

    #[test]
    fn a_header_that_was_taken_back_is_used_again() {
        let mut peer = Peer::new(&[3; SECRET_BYTES], 1, 2, 0);
        let first = peer.next_header(1);
        peer.take_back_header();
        assert_eq!(peer.next_header(1), first);
    }

    #[test]
    fn a_peer_is_idle_after_a_poll_that_left_nothing() {
        let mut peer = Peer::new(&[3; SECRET_BYTES], 1, 2, 0);
        assert!(peer.is_idle(0));
        peer.sent_at = Some(0);
        assert!(!peer.is_idle(0) && peer.is_idle(1));
        peer.under_way = 1;
        assert!(!peer.is_idle(1));
        peer.under_way = 0;
        peer.waiting.push_back(Waiting { buffer: 0, len: 16 });
        assert!(!peer.is_idle(1));
    }
}

//! The record of one call, while the rank adds to it. Only the thread that has begun it writes to it (TC2).

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use super::{Clock, Kind, WORDS, flag, mapping, word};

/// The record of a call.
#[derive(Clone, Copy)]
pub struct Entry {
    pub(super) words: &'static [AtomicU64; WORDS],
    /// Where it begins, in words from the start of the memory.
    pub(super) at: usize,
    pub(super) clock: Clock,
}

impl Entry {
    #[inline(always)]
    pub(super) fn word(self, word: usize) -> &'static AtomicU64 {
        &self.words[word]
    }

    /// Returns whether it is of something that goes on.
    pub(super) fn is_open(self) -> bool {
        let is_moment = [Kind::Ended, Kind::Started, Kind::Mark, Kind::Levels];
        let [start, end] = [word::START, word::END].map(|word| self.word(word).load(Relaxed));
        start != 0 && end == 0 && !is_moment.into_iter().any(|kind| self.is(kind))
    }

    /// Makes the record none (TC3).
    pub(super) fn clear(self) {
        self.word(word::START).store(0, Relaxed);
        self.words[1..].iter().for_each(|word| word.store(0, Relaxed));
    }

    /// Sets bits of the word that has the kind. Only this thread writes to it (TC2).
    #[inline(always)]
    fn add(self, bits: u64) {
        let kind = self.word(word::KIND);
        kind.store(kind.load(Relaxed) | bits, Relaxed);
    }

    /// Says where in the source the call is: a number that [`Recorder::place`](super::Recorder::place) has returned.
    #[inline]
    pub fn at(self, place: u32) {
        let name = self.word(word::NAME);
        name.store(name.load(Relaxed) | u64::from(place) << 32, Relaxed);
    }

    /// Replaces the name.
    #[inline]
    pub fn name(self, text: u32) {
        let name = self.word(word::NAME);
        name.store(name.load(Relaxed) >> 32 << 32 | u64::from(text), Relaxed);
    }

    /// Replaces the kind.
    #[inline]
    pub fn kind(self, kind: Kind) {
        let word = self.word(word::KIND);
        word.store(word.load(Relaxed) & !(0xFF << 32) | (kind as u64) << 32, Relaxed);
    }

    /// Returns whether it is of this kind.
    pub fn is(self, kind: Kind) -> bool {
        self.word(word::KIND).load(Relaxed) >> 32 & 0xFF == kind as u64
    }

    /// Says in which communicator the call is: a number that is the same on all its ranks.
    #[inline]
    pub fn communicator(self, number: u32) {
        self.add(flag::COMMUNICATOR | u64::from(number));
    }

    /// Says with whom the call communicates, a rank of the world, if that is known, and with which tag.
    #[inline]
    pub fn peer(self, peer: Option<u32>, tag: Option<i32>) {
        let (has_peer, has_tag) = (peer.map_or(0, |_| flag::PEER), tag.map_or(0, |_| flag::TAG));
        let tag = u64::from(tag.unwrap_or(0) as u32);
        self.word(word::PEER).store(tag << 32 | u64::from(peer.unwrap_or(0)), Relaxed);
        let kind = self.word(word::KIND);
        let others = kind.load(Relaxed) & !(flag::PEER | flag::TAG);
        kind.store(others | has_peer | has_tag, Relaxed);
    }

    /// Says how many bytes the call sends or receives.
    #[inline]
    pub fn bytes(self, bytes: u64) {
        self.word(word::BYTES).store(bytes, Relaxed);
    }

    /// Says for which request the call is, by a number other than 0, which is free for another request when it has ended.
    #[inline]
    pub fn request(self, request: u64) {
        self.word(word::REQUEST).store(request, Relaxed);
    }

    /// Says which collective call of its communicator it is.
    #[inline]
    pub fn sequence(self, number: u64) {
        self.word(word::SEQUENCE).store(number, Relaxed);
        self.add(flag::SEQUENCE);
    }

    /// Returns whether another rank was named.
    #[inline]
    pub fn has_peer(self) -> bool {
        self.word(word::KIND).load(Relaxed) & flag::PEER != 0
    }

    /// Returns whether the peer is this rank of the world, and the tag this one.
    #[inline]
    pub fn is_to(self, peer: u32, tag: i32) -> bool {
        let both = u64::from(tag as u32) << 32 | u64::from(peer);
        self.has_peer() && self.word(word::PEER).load(Relaxed) == both
    }

    /// Returns whether it is known by which protocol the call sends.
    #[inline]
    pub fn has_protocol(self) -> bool {
        self.word(word::KIND).load(Relaxed) & flag::PROTOCOL != 0
    }

    /// Returns whether a request was named.
    #[inline]
    pub fn has_request(self) -> bool {
        self.word(word::REQUEST).load(Relaxed) != 0
    }

    /// Says what an exchange without a request has received: the rank of the world that has sent it, its tag and bytes.
    #[inline]
    pub fn received(self, source: u32, tag: i32, bytes: u64) {
        self.word(word::REQUEST).store(bytes, Relaxed);
        self.word(word::SEQUENCE).store(u64::from(tag as u32) << 32 | u64::from(source), Relaxed);
        self.add(flag::RECEIVED);
    }

    /// Says by which protocol the call sends.
    #[inline]
    pub fn protocol(self, is_rendezvous: bool) {
        self.add(flag::PROTOCOL | if is_rendezvous { flag::RENDEZVOUS } else { 0 });
    }

    /// Says that the operation was cancelled.
    #[inline]
    pub fn cancelled(self) {
        self.add(flag::CANCELLED);
    }

    /// Ends the call.
    #[inline]
    pub fn end(self) {
        self.word(word::END).store(mapping::ticks(self.clock).max(1), Relaxed);
    }
}

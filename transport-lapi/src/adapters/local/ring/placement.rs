//! What is done for the caches, and where a body goes that does not fit into the slot.
//!
//! Such a body has two places. Recycled buffers change hands with each body, so few lines
//! are in use, and these stay in the caches. The data ring is larger, and its next place is known in advance, so that
//! it can be prefetched.

use crate::memory::copy::PASSES_CACHES;
use crate::platform::sys;

/// How the lines of a frame get from the producer's processor to the consumer's. Both ends of a ring have the same
/// policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CachePolicy {
    /// Processors without `cldemote`: the consumer fetches them. While it waits, it prefetches the lines of the next
    /// slot. The producer prefetches the next slot for writing only in a stream, or if a frame takes one line: where
    /// both ends send at once and then wait, the line is still there when the next frame is written, and where the
    /// consumer awaits it meanwhile, little is lost. To a distant processor, long bodies in the data ring are stored
    /// past the caches.
    Pull,
    /// Processors with `cldemote`: the producer pushes the lines of a lone frame out to a cache that both share, and
    /// prefetches those of the next slot for writing, which would still be in the consumer's cache. While it waits, it
    /// prefetches the places of the next bodies. A waiting consumer reads none of these lines before a frame is there:
    /// it would take them back.
    Demote,
}

/// [`CachePolicy::Pull`]: after a body of at least this length in the data ring, so much of the next one's place is
/// prefetched, which is roughly what a processor can have under way at once. For shorter bodies that takes longer than
/// it saves.
const PULL_NEXT_FROM: usize = 2 << 10;
const PULL_NEXT: usize = 4 << 10;

/// [`CachePolicy::Demote`]: as much of the next body's place is prefetched as this body has, at most so much.
const DEMOTE_NEXT: usize = 16 << 10;

/// The longest lone body whose lines are pushed out. The reader of a longer one is already copying its beginning. For
/// longer ones a place that was prefetched during a wait is better than a recycled buffer.
const PUSHED_UP_TO: usize = 8 << 10;

/// If the consumer is distant, the shortest body that is stored past the caches into the data ring. A shorter one
/// arrives sooner from the producer's cache.
const PAST_CACHES_FROM: usize = 768;

impl CachePolicy {
    /// The policy that suits this machine's processors: that for which they have the instructions.
    pub(crate) fn here() -> Self {
        if sys::can_push_out() { Self::Demote } else { Self::Pull }
    }

    /// After so many frames in a row, without one from the consumer in between, the producer assumes a stream. A
    /// dialogue in which each side answers and then asks must not be taken for one if lines are fetched: both ends
    /// would compete for the next slot.
    pub(super) const fn stream(self) -> u32 {
        match self {
            Self::Pull => 3,
            Self::Demote => 1,
        }
    }

    /// Whether a body of `len` bytes whose place in the data ring was prefetched during a wait goes there, and not into
    /// recycled buffers.
    pub(super) const fn prefers_prefetched(self, len: usize) -> bool {
        matches!(self, Self::Demote) && len > PUSHED_UP_TO
    }

    /// Whether any body is stored past the caches, so that the distance of the consumer matters.
    pub(super) const fn passes_caches(self) -> bool {
        matches!(self, Self::Pull) && PASSES_CACHES
    }

    /// Whether a span of `len` bytes for a distant consumer is stored past the caches into the data ring. Ordinary
    /// stores would fetch the lines from a distant processor, which would then fetch them back.
    pub(super) const fn is_past_caches(self, len: usize) -> bool {
        self.passes_caches() && len >= PAST_CACHES_FROM
    }

    /// Whether the lines of a body of `len` bytes outside of the slot are pushed out, if it is lone.
    pub(super) const fn is_pushed_out(self, len: usize) -> bool {
        matches!(self, Self::Demote) && len <= PUSHED_UP_TO
    }

    /// How much of the next body's place is prefetched after a body of `len` bytes in the data ring.
    pub(super) fn prefetched_next(self, len: usize, is_lone: bool, past_caches: bool) -> usize {
        match self {
            Self::Pull if past_caches || len < PULL_NEXT_FROM => 0,
            Self::Pull => PULL_NEXT,
            // A long body that is not lone is mostly a piece of a long message, and prefetches would delay the next
            // piece. After the last one, the wait for an answer has time for them.
            Self::Demote if !is_lone && len >= DEMOTE_NEXT => 0,
            Self::Demote => len.min(DEMOTE_NEXT),
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::CachePolicy::{Demote, Pull};
    use super::*;

    #[test]
    fn only_long_bodies_go_where_a_wait_has_prefetched() {
        for len in [273, 4096, 8192, 8193, 1 << 20] {
            assert!(!Pull.prefers_prefetched(len));
            assert_eq!(Demote.prefers_prefetched(len), len > 8192, "{len}");
        }
    }

    #[test]
    fn the_caches_are_bypassed_towards_a_distant_processor_that_fetches() {
        assert!(!Pull.is_past_caches(767) && !Demote.is_past_caches(1 << 20));
        assert_eq!(Pull.is_past_caches(768), PASSES_CACHES);
    }

    #[test]
    fn lines_are_pushed_out_and_prefetched_by_length() {
        assert!(
            Demote.is_pushed_out(8192) && !Demote.is_pushed_out(8193) && !Pull.is_pushed_out(1)
        );
        let next = |policy: CachePolicy, is_lone| {
            [2047, 2048, 16 << 10, 20 << 10].map(|len| policy.prefetched_next(len, is_lone, false))
        };
        assert_eq!(next(Pull, true), [0, 4096, 4096, 4096]);
        assert_eq!(next(Pull, false), next(Pull, true));
        assert_eq!(next(Demote, true), [2047, 2048, 16 << 10, 16 << 10]);
        assert_eq!(next(Demote, false), [2047, 2048, 0, 0]);
        assert_eq!(Pull.prefetched_next(4096, true, true), 0);
    }
}

//! Where a body goes, and what is done for the caches: one function for the place, and one table of constants for each
//! policy.
//!
//! A body that does not fit into the slot has two places. Recycled buffers change hands with each body, so few lines
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

/// The constants of a policy. Lengths are those of bodies, in bytes.
struct Constants {
    /// After so many frames in a row, without one from the consumer in between, the producer assumes a stream.
    stream: u32,
    /// The longest lone body whose lines are pushed out. The reader of a longer one is already copying its beginning.
    pushed_up_to: usize,
    /// The shortest body for which a place that was prefetched during a wait is better than a recycled buffer.
    prefetched_from: usize,
    /// If the consumer is distant, the shortest body that is stored past the caches into the data ring. A shorter one
    /// arrives sooner from the producer's cache.
    past_caches_from: usize,
}

/// Of [`CachePolicy::Pull`]. A dialogue in which each side answers and then asks must not be taken for a stream: both
/// ends would compete for the next slot.
const PULL: Constants = Constants {
    stream: 3,
    pushed_up_to: 0,
    prefetched_from: usize::MAX,
    past_caches_from: if PASSES_CACHES { 768 } else { usize::MAX },
};

/// Of [`CachePolicy::Demote`].
const DEMOTE: Constants = Constants {
    stream: 1,
    pushed_up_to: 8 << 10,
    prefetched_from: (8 << 10) + 1,
    past_caches_from: usize::MAX,
};

/// [`CachePolicy::Pull`]: after a body of at least this length in the data ring, so much of the next one's place is
/// prefetched, which is roughly what a processor can have under way at once. For shorter bodies that takes longer than
/// it saves.
const PULL_NEXT_FROM: usize = 2 << 10;
const PULL_NEXT: usize = 4 << 10;

/// [`CachePolicy::Demote`]: as much of the next body's place is prefetched as this body has, at most so much.
const DEMOTE_NEXT: usize = 16 << 10;

/// What is known of a body, besides its length, when its place is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Facts {
    /// How many bytes are left in the slot.
    pub room: usize,
    /// The body is one span of memory.
    pub is_span: bool,
    /// Its place in the data ring has been prefetched during a wait.
    pub is_prefetched: bool,
    /// The consumer's processor is distant.
    pub is_distant: bool,
}

/// Where a body goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Placement {
    /// Into the slot, behind the head.
    Slot,
    /// Into recycled buffers or into the data ring: first where `recycled_first` says, and if there is no room into the
    /// other.
    Outside {
        /// Recycled buffers are better.
        recycled_first: bool,
        /// In the data ring it is stored past the caches. Ordinary stores would fetch the lines from a distant
        /// processor, which would then fetch them back.
        past_caches: bool,
    },
}

impl CachePolicy {
    /// The policy that suits this machine's processors: that for which they have the instructions.
    pub(crate) fn here() -> Self {
        if sys::can_push_out() { Self::Demote } else { Self::Pull }
    }

    const fn constants(self) -> &'static Constants {
        match self {
            Self::Pull => &PULL,
            Self::Demote => &DEMOTE,
        }
    }

    /// After so many frames in a row, without one from the consumer in between, the producer assumes a stream.
    pub(super) const fn stream(self) -> u32 {
        self.constants().stream
    }

    /// Where a body of `len` bytes goes.
    pub(super) const fn placement(self, len: usize, facts: Facts) -> Placement {
        if len <= facts.room {
            return Placement::Slot;
        }
        let constants = self.constants();
        Placement::Outside {
            recycled_first: !(facts.is_prefetched && len >= constants.prefetched_from),
            past_caches: facts.is_distant && facts.is_span && len >= constants.past_caches_from,
        }
    }

    /// Whether any body is stored past the caches, so that the distance of the consumer matters.
    pub(super) const fn passes_caches(self) -> bool {
        self.constants().past_caches_from != usize::MAX
    }

    /// Whether the lines of a body of `len` bytes outside of the slot are pushed out, if it is lone.
    pub(super) const fn is_pushed_out(self, len: usize) -> bool {
        len <= self.constants().pushed_up_to
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

    const PLAIN: Facts =
        Facts { room: 272, is_span: true, is_prefetched: false, is_distant: false };

    const fn outside(recycled_first: bool, past_caches: bool) -> Placement {
        Placement::Outside { recycled_first, past_caches }
    }

    #[test]
    fn what_fits_goes_into_the_cell() {
        for policy in [Pull, Demote] {
            for facts in [PLAIN, Facts { is_distant: true, is_prefetched: true, ..PLAIN }] {
                assert_eq!(policy.placement(272, facts), Placement::Slot);
                assert_ne!(policy.placement(273, facts), Placement::Slot);
            }
        }
    }

    #[test]
    fn longer_bodies_go_into_recycled_buffers_unless_a_wait_has_prefetched_their_place() {
        let prefetched = Facts { is_prefetched: true, ..PLAIN };
        for len in [273, 4096, 8192, 8193, 1 << 20] {
            assert_eq!(Pull.placement(len, prefetched), outside(true, false), "{len}");
            assert_eq!(Demote.placement(len, PLAIN), outside(true, false), "{len}");
            assert_eq!(Demote.placement(len, prefetched), outside(len <= 8192, false), "{len}");
        }
    }

    #[test]
    fn the_caches_are_bypassed_towards_a_distant_processor_that_fetches() {
        let distant = Facts { is_distant: true, ..PLAIN };
        assert_eq!(Pull.placement(767, distant), outside(true, false));
        assert_eq!(Pull.placement(768, distant), outside(true, PASSES_CACHES));
        assert_eq!(Pull.placement(768, PLAIN), outside(true, false));
        assert_eq!(Pull.placement(768, Facts { is_span: false, ..distant }), outside(true, false));
        assert_eq!(Demote.placement(1 << 20, distant), outside(true, false));
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

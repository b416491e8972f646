//! The ways in which lines get from the processor of one end to that of the other.

use crate::sys;

/// How the lines of a frame get from the producer's processor to the consumer's. Both ends of a ring use the same way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Passing {
    /// The consumer fetches them: while it waits, it prefetches the lines of the next cell. The producer prefetches the
    /// next cell for writing only in a stream, or if a frame takes one line: where both ends send at once and then wait,
    /// the line is still there when the next frame is written, and where the consumer awaits it meanwhile, little is
    /// lost. To a distant processor, long bodies in the bulk area are stored past the caches.
    Fetched,
    /// The producer pushes the lines of a lone frame out to a cache that both share, and prefetches those of the next
    /// cell for writing, which would still be in the consumer's cache. While it waits, it prefetches the places of the
    /// next bodies. A waiting consumer reads none of these lines before a frame is there: it would take them back.
    Pushed,
}

impl Passing {
    /// The way that suits this machine's processors: that for which they have the instructions.
    pub(crate) fn here() -> Self {
        if sys::can_push_out() { Self::Pushed } else { Self::Fetched }
    }

    /// After so many frames in a row, without one from the consumer in between, the producer assumes a stream. If the
    /// lines are fetched, a dialogue in which each side answers and then asks must not be taken for one: both ends
    /// would compete for the next cell.
    pub(super) const fn stream(self) -> u32 {
        match self {
            Self::Fetched => 3,
            Self::Pushed => 1,
        }
    }
}

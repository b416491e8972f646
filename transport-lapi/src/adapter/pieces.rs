//! The pieces that a message is cut into. Ranks go by them, and the launcher shows them.

/// How messages to a target are cut into frames: short messages travel as one frame, longer ones in pieces, which are
/// small enough that both ends work at once, and large enough that the cost per piece does not matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pieces {
    whole: u32,
    sizes: [u32; 3],
}

impl Pieces {
    /// The lengths of messages, in bytes and ascending, at which the first and the second size of pieces ends.
    pub const BOUNDS: [usize; 2] = [128 << 10, 512 << 10];

    /// Makes the pieces for a target to which messages of up to `whole` bytes go as one frame, and longer ones in pieces
    /// of these sizes, by the lengths of [`Pieces::BOUNDS`].
    pub const fn new(whole: u32, sizes: [u32; 3]) -> Self {
        Self { whole, sizes }
    }

    /// The same, except that no piece has more than `longest` bytes.
    pub fn within(self, longest: usize) -> Self {
        let longest = u32::try_from(longest).unwrap_or(u32::MAX);
        Self { whole: self.whole.min(longest), sizes: self.sizes.map(|size| size.min(longest)) }
    }

    /// Returns the longest message that travels as one frame, in bytes.
    #[inline]
    pub fn whole(self) -> usize {
        self.whole as usize
    }

    /// Returns the size of the pieces of a message of `len` bytes, or a length that the message does not exceed.
    #[inline]
    pub fn size(self, len: usize) -> usize {
        let ([small, medium], [first, second, third]) = (Self::BOUNDS, self.sizes);
        let size = if len <= self.whole() {
            self.whole
        } else if len <= small {
            first
        } else if len <= medium {
            second
        } else {
            third
        };
        size as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_frames_shorten_the_pieces() {
        let all = Pieces::new(16 << 10, [16 << 10, 32 << 10, 64 << 10]);
        let of = |longest| {
            let pieces = all.within(longest);
            let [small, medium] = Pieces::BOUNDS;
            let sizes = [1, small, small + 1, medium, medium + 1].map(|len| pieces.size(len));
            (pieces.whole(), sizes)
        };
        let sizes = [16 << 10, 16 << 10, 32 << 10, 32 << 10, 64 << 10];
        assert_eq!(of(64 << 10), (16 << 10, sizes));
        assert_eq!(of(20 << 10), (16 << 10, sizes.map(|size| size.min(20 << 10))));
        assert_eq!(of(4096), (4096, [4096; 5]));
    }
}

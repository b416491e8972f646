//! The pieces that a message is cut into. Ranks go by them, and the launcher shows them.

/// How messages are cut into frames: short messages travel as one frame, longer ones in pieces, which are small enough
/// that both ends work at once, and large enough that the cost per piece does not matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pieces {
    shortest: usize,
    longest: usize,
}

impl Pieces {
    /// The lengths of messages, in bytes and ascending, above which pieces are larger, if frames may be as long.
    pub const BOUNDS: [usize; 2] = [128 << 10, 512 << 10];

    /// Makes the pieces of which none has more than `longest` bytes, and, in messages of several, only the last fewer
    /// than `shortest`.
    pub fn new(shortest: usize, longest: usize) -> Self {
        Self { shortest: shortest.min(longest), longest }
    }

    /// Returns the longest message that travels as one frame, in bytes.
    #[inline]
    pub fn whole(self) -> usize {
        self.shortest
    }

    /// Returns the size of the pieces of a message of `len` bytes.
    #[inline]
    pub fn size(self, len: usize) -> usize {
        let [small, medium] = Self::BOUNDS;
        let size = if len <= small {
            self.shortest
        } else if len <= medium {
            32 << 10
        } else {
            64 << 10
        };
        size.clamp(self.shortest, self.longest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_adapter_decides_about_the_shortest_and_the_longest_pieces() {
        let of = |shortest, longest| {
            let pieces = Pieces::new(shortest, longest);
            let [small, medium] = Pieces::BOUNDS;
            let sizes = [small, small + 1, medium, medium + 1].map(|len| pieces.size(len));
            (pieces.whole(), sizes)
        };
        assert_eq!(of(16 << 10, 64 << 10), (16 << 10, [16 << 10, 32 << 10, 32 << 10, 64 << 10]));
        assert_eq!(of(16 << 10, 20 << 10), (16 << 10, [16 << 10, 20 << 10, 20 << 10, 20 << 10]));
        assert_eq!(of(16 << 10, 4096), (4096, [4096; 4]));
        assert_eq!(of(64 << 10, 64 << 10), (64 << 10, [64 << 10; 4]));
    }
}

//! The pieces that a message is cut into. Ranks go by them, and the launcher shows them.

/// How messages are cut into frames whose bodies have at most a certain length: short messages travel as one frame,
/// longer ones in pieces, which are small enough that both ends work at once, and large enough that the cost per piece
/// does not matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pieces {
    max_body: usize,
}

impl Pieces {
    /// The lengths of messages, in bytes and ascending, above which pieces are larger, if frames may be as long.
    pub const BOUNDS: [usize; 2] = [128 << 10, 512 << 10];

    /// Makes the pieces for frames whose bodies have at most `max_body` bytes.
    pub fn within(max_body: usize) -> Self {
        Self { max_body }
    }

    /// Returns the longest message that travels as one frame, in bytes.
    #[inline]
    pub fn whole(self) -> usize {
        self.max_body.min(16 << 10)
    }

    /// Returns the size of the pieces of a message of `len` bytes.
    #[inline]
    pub fn size(self, len: usize) -> usize {
        let [small, medium] = Self::BOUNDS;
        let size = if len <= small {
            16 << 10
        } else if len <= medium {
            32 << 10
        } else {
            64 << 10
        };
        self.max_body.min(size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_adapter_with_short_frames_shortens_the_pieces() {
        let of = |max_body| {
            let pieces = Pieces::within(max_body);
            let [small, medium] = Pieces::BOUNDS;
            let sizes = [small, small + 1, medium, medium + 1].map(|len| pieces.size(len));
            (pieces.whole(), sizes)
        };
        assert_eq!(of(64 << 10), (16 << 10, [16 << 10, 32 << 10, 32 << 10, 64 << 10]));
        assert_eq!(of(20 << 10), (16 << 10, [16 << 10, 20 << 10, 20 << 10, 20 << 10]));
        assert_eq!(of(4096), (4096, [4096; 4]));
    }
}

//! Blocks that change hands: memory for bodies that the two tasks of a pair send to and fro.
//!
//! A task that has received a body in a block sends its next one in the same block. A line that a processor has read from
//! another one's cache can be written there at less cost than a line of a bulk area, which was read elsewhere a lap ago,
//! and a dialogue of short bodies uses very few lines. Used by [`crate::adapters::ring`].
//!
//! - BK1: a block belongs to one end at a time: first to the one that was made with all, then to the one that has
//!   received the last body in it. A frame's stamp passes the block with the body. The sink reads the body while the
//!   consumer borrows the end's blocks, so nothing is written to it meanwhile. The block of a damaged frame belongs to
//!   nobody any more.
//! - BK2: no deadlock. Nobody waits for a block: an end that has none, as in a stream, uses the bulk area.
//! - BK3: a number that the peer wrote is untrusted. An end accepts that of a block which exists and is not its own.

#![expect(unsafe_code, reason = "the blocks are memory shared with a peer")]

use crate::adapters::bulk::{BulkLine, lend, push_out};
use crate::adapters::ring::RingDamage;
use crate::body::Piece;
use crate::region::RecvPart;
use crate::sys::LINE;

/// Bytes of a block, which is the longest body in one.
pub(crate) const BLOCK_BYTES: usize = if cfg!(loom) { LINE } else { 32 << 10 };

/// Most blocks of a pair: as many as an end's set has bits.
pub(crate) const MAX_BLOCKS: usize = u32::BITS as usize;

/// How many blocks these lines are.
const fn number(lines: &[BulkLine]) -> usize {
    lines.len() * LINE / BLOCK_BYTES
}

/// The blocks of a pair as one end sees them.
pub(crate) struct Blocks<'m> {
    /// The memory of all blocks. Their number is zero or a power of two.
    lines: &'m [BulkLine],
    /// The set of those that belong to this end, by number.
    mine: u32,
}

impl<'m> Blocks<'m> {
    /// Makes the view of the end that has all blocks at first, or of the other end, which has none.
    pub(crate) fn new(lines: &'m [BulkLine], has_all: bool) -> Self {
        let number = number(lines);
        assert!(number <= MAX_BLOCKS, "the layout limits the number of blocks");
        let all = ((1_u64 << number) - 1) as u32;
        Self { lines, mine: if has_all { all } else { 0 } }
    }

    /// Copies `body` into a block, which the caller passes to the other end, and returns its number, or `None` if this
    /// end has no block or the body is longer than one. It is the first block of this end, so that as few as possible are
    /// in use.
    pub(crate) fn store(&mut self, body: Piece<'_>) -> Option<u32> {
        if self.mine == 0 || body.len() > BLOCK_BYTES {
            return None;
        }
        let number = self.mine.trailing_zeros();
        self.mine &= self.mine - 1;
        self.lend(number, |to| {
            // SAFETY: the body fits into the block, which belonged to this end (BK1).
            let mut part = unsafe { RecvPart::new(to, body.len()) };
            match body {
                Piece::Span(span) => part.store_piece(span.foreign()),
                Piece::Layout { .. } => body.copy_to(part),
            }
        });
        Some(number)
    }

    /// Checks the number of a block with a body of `len` bytes (BK3), takes the block, and lends its address to the
    /// reader of the body.
    pub(crate) fn take<R>(
        &mut self,
        number: u32,
        len: usize,
        body: impl FnOnce(*const u8) -> R,
    ) -> Result<R, RingDamage> {
        if len > BLOCK_BYTES {
            return Err(RingDamage::BodyLength);
        }
        let exists = (number as usize) < self::number(self.lines);
        if !exists || self.mine & 1 << number != 0 {
            return Err(RingDamage::Block);
        }
        self.mine |= 1 << number;
        Ok(self.lend(number, |from| body(from)))
    }

    /// Pushes the lines of the first `len` bytes of a block out, for the other end.
    pub(crate) fn push_out(&self, number: u32, len: usize) {
        push_out(self.lines, number * BLOCK_BYTES as u32, len);
    }

    /// Lends the address of a block that exists.
    fn lend<R>(&self, number: u32, body: impl FnOnce(*mut u8) -> R) -> R {
        lend(self.lines, number * BLOCK_BYTES as u32, body)
    }
}

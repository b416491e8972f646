//! Recycled buffers: memory for bodies that the two tasks of a pair send to and fro.
//!
//! A task that has received a body in a buffer sends its next one in the same buffer. A line that a processor has read
//! from another one's cache can be written there at less cost than a line of a data ring, which was read elsewhere a
//! lap ago, and a dialogue of short bodies uses very few lines. Used by [`crate::adapters::local::ring`].
//!
//! A body of up to [`LONGEST`] bytes occupies one buffer or two, one behind the other. The pieces of a long message
//! mostly fill buffers and follow one another, too, so a processor that prefetches lines ahead of a reader can go on
//! from piece to piece.
//!
//! - BK1: a buffer belongs to one end at a time: first to the one that was made with all, then to the one that has
//!   received the last body in it. A frame's header word passes the buffer with the body. The sink reads the body while
//!   the consumer borrows the end's buffers, so nothing is written to it meanwhile. The buffers of a damaged frame
//!   belong to nobody any more.
//! - BK2: no deadlock. Nobody waits for a buffer: an end that has none, as in a stream, or not two in a row uses the
//!   data ring.
//! - BK3: a number that the peer wrote is untrusted. An end accepts that of buffers which exist and are not its own.

#![expect(unsafe_code, reason = "the buffers are memory shared with a peer")]

use crate::adapters::local::data_ring::{DataLine, lend, push_out};
use crate::adapters::local::ring::RingDamage;
use crate::memory::body::Piece;
use crate::memory::region::RecvPart;
use crate::platform::sys::LINE;

/// Bytes of a buffer.
pub(crate) const BUFFER_BYTES: usize = if cfg!(loom) { LINE } else { 16 << 10 };

/// The longest body in buffers.
pub(crate) const LONGEST: usize = if cfg!(loom) { LINE } else { 2 * BUFFER_BYTES };

/// Most buffers of a pair: as many as an end's set has bits.
pub(crate) const MAX_BUFFERS: usize = u64::BITS as usize;

/// How many buffers these lines are.
const fn number(lines: &[DataLine]) -> usize {
    lines.len() * LINE / BUFFER_BYTES
}

/// How many buffers a body of `len` bytes occupies.
fn occupied(len: usize) -> usize {
    len.div_ceil(BUFFER_BYTES).max(1)
}

/// The set of `count` buffers from `number` on. They exist.
fn set(number: u32, count: usize) -> u64 {
    (u64::MAX >> (MAX_BUFFERS - count)) << number
}

/// The buffers of a pair as one end sees them.
pub(crate) struct RecycledBuffers<'m> {
    /// The memory of all buffers. Their number is zero or a power of two.
    lines: &'m [DataLine],
    /// The set of those that belong to this end, by number.
    mine: u64,
}

impl<'m> RecycledBuffers<'m> {
    /// Makes the view of the end that has all buffers at first, or of the other end, which has none.
    pub(crate) fn new(lines: &'m [DataLine], has_all: bool) -> Self {
        let number = number(lines);
        assert!(number <= MAX_BUFFERS, "the layout limits the number of buffers");
        Self { lines, mine: if has_all && number > 0 { set(0, number) } else { 0 } }
    }

    /// Copies `body` into buffers, which the caller passes to the other end, and returns the number of the first one,
    /// or `None` if the body is longer than [`LONGEST`] or this end has not as many buffers in a row. They are the
    /// first ones of this end, so that as few as possible are in use.
    pub(crate) fn store(&mut self, body: Piece<'_>) -> Option<u32> {
        if self.mine == 0 || body.len() > LONGEST {
            return None;
        }
        let count = occupied(body.len());
        let starts = (1..count).fold(self.mine, |starts, behind| starts & (self.mine >> behind));
        if starts == 0 {
            return None;
        }
        let number = starts.trailing_zeros();
        self.mine &= !set(number, count);
        self.lend(number, |to| {
            // SAFETY: the body fits into the buffers, which belonged to this end (BK1).
            body.copy_to_peer(unsafe { RecvPart::new(to, body.len()) });
        });
        Some(number)
    }

    /// Checks the number of the first buffer of a body of `len` bytes (BK3), takes the buffers, and lends their address
    /// to the reader of the body.
    pub(crate) fn take<R>(
        &mut self,
        number: u32,
        len: usize,
        body: impl FnOnce(*const u8) -> R,
    ) -> Result<R, RingDamage> {
        if len > LONGEST {
            return Err(RingDamage::BodyLength);
        }
        let count = occupied(len);
        let exist = u64::from(number) + count as u64 <= self::number(self.lines) as u64;
        if !exist || self.mine & set(number, count) != 0 {
            return Err(RingDamage::RecycledBuffer);
        }
        self.mine |= set(number, count);
        Ok(self.lend(number, |from| body(from)))
    }

    /// Pushes the lines of the first `len` bytes from a buffer on out, for the other end.
    pub(crate) fn push_out(&self, number: u32, len: usize) {
        push_out(self.lines, number * BUFFER_BYTES as u32, len);
    }

    /// Lends the address of a buffer that exists.
    fn lend<R>(&self, number: u32, body: impl FnOnce(*mut u8) -> R) -> R {
        lend(self.lines, number * BUFFER_BYTES as u32, body)
    }
}

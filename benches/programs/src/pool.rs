//! The buffers of one rank for sending or receiving, for each kind of [`Buffers`].
//!
//! * *Unchanged*: one send buffer, and one receive buffer per message in flight.
//! * *Rewritten*: one buffer per message in flight on both sides. [`Pool::store`] gives every word
//!   a new value, [`Pool::read`] reads every word.
//! * *Cold*: a pool of many times as many buffers. [`Pool::advance`] visits them in an order that
//!   no prefetcher follows, so a buffer has left the caches when its turn comes again. Every page
//!   is written once; otherwise all pages would map to one zero page, which is never cold.
//!
//! Storing and reading are part of the timed rounds, and their time alone is subtracted
//! ([`crate::pace::alone`]): it is measured with the same loops over the same buffers, in this
//! rank's own cache as far as they fit. So the result includes other costs of the messages for the
//! buffers: fetching lines that the library left in another processor's cache counts as the
//! library's time.

use crate::order::{Buffers, Order};
use crate::payload::Buffer;
use crate::words::{read, store};

/// The alignment of cold buffers, unless they are shorter; those lie on lines of their own: 128
/// bytes, because lines are fetched in pairs.
const PAGE: usize = 4096;
const LINES: usize = 128;

/// The purpose of a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// Messages are sent from it.
    Send,
    /// Messages are received into it.
    Receive,
}

/// The buffers of one rank for one direction.
pub struct Pool {
    buffers: Buffers,
    least: usize,
    purpose: Use,
    bytes: Buffer<u8>,
    /// Length of a message.
    size: usize,
    /// Bytes from the start of one buffer to the start of the next.
    stride: usize,
    /// Buffers of a block, one per message in flight.
    count: usize,
    /// Number of blocks, a power of two.
    blocks: usize,
    /// The current block.
    block: usize,
    /// How often the pool was stored to.
    turn: u64,
}

impl Pool {
    /// Creates a pool without buffers.
    pub fn new(order: &Order, purpose: Use) -> Self {
        Self {
            buffers: order.buffers,
            least: order.pool,
            purpose,
            bytes: Buffer::zeroed(0),
            size: 0,
            stride: 1,
            count: 1,
            blocks: 1,
            block: 0,
            turn: 0,
        }
    }

    /// Makes buffers for messages of `size` bytes, `window` of them in flight. Their content is
    /// unspecified.
    pub fn cut(&mut self, size: usize, window: usize) {
        let is_one = self.buffers == Buffers::Unchanged && self.purpose == Use::Send;
        let is_cold = self.buffers == Buffers::Cold;
        (self.size, self.count) = (size, if is_one { 1 } else { window });
        (self.blocks, self.block) = (1, 0);
        self.stride = match size {
            _ if !is_cold => size.max(1),
            short if short < PAGE => short.next_multiple_of(LINES).max(LINES),
            long => long.next_multiple_of(PAGE),
        };
        let block = self.stride * self.count;
        if is_cold {
            self.blocks = 1 << (self.least / block).checked_ilog2().unwrap_or(0);
        }
        // A cold pool is reused for all sizes, since touching its pages takes long.
        if !is_cold || self.bytes.len() < block * self.blocks {
            self.bytes = Buffer::zeroed(0);
            let len = if is_cold { self.least.max(block) } else { block };
            self.bytes = Buffer::zeroed(len);
            store(&mut self.bytes, 1);
        }
    }

    /// Moves to the buffers of the next messages.
    #[inline]
    pub fn advance(&mut self) {
        // An odd step visits every block, since their number is a power of two.
        self.block = (self.block + ((self.blocks * 5 / 8) | 1)) & (self.blocks - 1);
    }

    /// Returns the send buffer of message `place` in flight.
    #[inline]
    pub fn message(&self, place: usize) -> &[u8] {
        let start = (self.block * self.count + place % self.count) * self.stride;
        &self.bytes[start..][..self.size]
    }

    /// Returns all buffers of the messages in flight.
    #[inline]
    pub fn places(&mut self) -> impl Iterator<Item = &mut [u8]> {
        let (size, block) = (self.size, self.stride * self.count);
        let block = &mut self.bytes[self.block * block..][..block];
        block.chunks_mut(self.stride).map(move |place| &mut place[..size])
    }

    /// Returns the buffer of the only message in flight.
    #[inline]
    pub fn place(&mut self) -> &mut [u8] {
        &mut self.bytes[self.block * self.stride..][..self.size]
    }

    /// Stores every word of the messages in flight, if buffers are rewritten.
    #[inline]
    pub fn store(&mut self) {
        if self.buffers == Buffers::Rewritten {
            self.turn += 1;
            let turn = self.turn;
            self.places().for_each(|place| store(place, turn));
        }
    }

    /// Reads every word of the messages in flight, if buffers are rewritten.
    #[inline]
    pub fn read(&mut self) {
        if self.buffers == Buffers::Rewritten {
            self.places().for_each(|place| read(place));
        }
    }
}

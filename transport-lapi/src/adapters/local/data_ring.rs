//! The data ring of a pair: memory for bodies that do not fit into a slot.
//!
//! It is a ring of lines beside the ring of slots, used only by [`crate::adapters::local::ring`]. The recycled buffers
//! of [`crate::adapters::local::recycled`] consist of such lines, too. The producer places each body contiguously, at
//! the start of a line, and skips to the start of the area if the body does not fit before its end. Positions are
//! counters of bytes that wrap at 2^32. The area's size is a power of two, so a position modulo the size is an offset.
//!
//! The lines of the next body's place were read by the consumer a lap before. Where lines are pushed, a producer that
//! waits prefetches them for writing, as many as it has just sent ([`DataRingProducer::prefetch_more`]).
//!
//! - B1: the bytes from the position that the consumer has freed up to the producer's position belong to the consumer,
//!   the others to the producer. A frame's header word passes bytes to the consumer; the freed position passes them
//!   back, and only after the sink has returned.
//! - B2: no deadlock. A body is at most a quarter of the area. The consumer publishes what it has freed at every
//!   quarter, so once it has seen all frames less than a quarter is unpublished. Room that is left behind the last body
//!   ([`DataRingProducer::page_pad`]) is at most another quarter. A body needs its own length and skips less than that:
//!   together less than two quarters. As many are free, so a body that is refused now is taken when the consumer has
//!   caught up.
//! - B3: a position that the peer wrote is untrusted. The consumer accepts one that starts a line, does not cross the
//!   area's end, and reaches at most one area beyond the freed position.

#![expect(unsafe_code, reason = "the area is memory shared with a peer")]

use crate::adapters::local::ring::RingDamage;
use crate::memory::body::Piece;
use crate::memory::region::RecvPart;
use crate::platform::sync::{AtomicU32, Ordering, UnsafeCell};
use crate::platform::sys::{self, LINE};

/// One line of a data ring.
#[repr(C, align(64))]
pub(crate) struct DataLine(pub(crate) UnsafeCell<[u8; LINE]>);

// SAFETY: B1 determines which end may access the bytes, and BK1 for those of a recycled buffer.
unsafe impl Sync for DataLine {}

const _: () = assert!(cfg!(loom) || size_of::<DataLine>() == LINE);

/// Largest body that these lines accept (B2).
const fn quarter(lines: &[DataLine]) -> usize {
    lines.len() * LINE / 4
}

/// Least room that is left between two bodies that are kept apart, and the size of the pages in which they begin.
const APART: u32 = 2 << 10;
const PAGE: u32 = 4 << 10;

/// How much a waiting producer prefetches at a time.
const STEP: usize = 4 * LINE;
/// It prefetches at most this part of the area, which in a job of two tasks has twice the size of a processor's
/// second-level cache: what the producer sends and receives has to find room there, too.
const EXPECTED_PART: u32 = 32;

/// Bytes that a body of `len` bytes occupies.
const fn footprint(len: usize) -> u32 {
    len.next_multiple_of(LINE) as u32
}

/// The address of the line at `position`; the following lines are adjacent. It derives from the whole slice, whose
/// lines are cells, so it may be written through.
fn address(lines: &[DataLine], position: u32) -> *mut u8 {
    let offset = position as usize & (lines.len() * LINE - 1);
    lines.as_ptr().cast::<u8>().cast_mut().wrapping_add(offset)
}

/// Lends the address of the line at `position` for writing; the following lines are adjacent.
#[cfg(not(loom))]
pub(crate) fn lend<R>(lines: &[DataLine], position: u32, body: impl FnOnce(*mut u8) -> R) -> R {
    body(address(lines, position))
}

/// Likewise in a model, whose lines are not adjacent and whose bodies are one line at most.
#[cfg(loom)]
pub(crate) fn lend<R>(lines: &[DataLine], position: u32, body: impl FnOnce(*mut u8) -> R) -> R {
    let line = &lines[position as usize / LINE & (lines.len() - 1)];
    line.0.with_mut(|bytes| body(bytes.cast()))
}

/// Pushes the lines of the `len` bytes from `position` on out, for the processor that reads them. That is a hint, not
/// an access.
#[inline(never)]
pub(crate) fn push_out(lines: &[DataLine], position: u32, len: usize) {
    let start = address(lines, position);
    for at in (0..len).step_by(LINE) {
        sys::push_out(start.wrapping_add(at));
    }
}

/// The producer's end of a data ring.
pub(crate) struct DataRingProducer<'m> {
    lines: &'m [DataLine],
    pub(super) position: u32,
    pub(super) freed: u32,
    /// How many bytes of bodies are expected next: as many as were counted since the last wait or frame from the
    /// consumer.
    expected: u32,
    /// How many bytes from `position` on have been prefetched.
    pub(super) ahead: u32,
    /// Whether the producer has waited since the last body.
    has_waited: bool,
}

impl<'m> DataRingProducer<'m> {
    pub(crate) fn new(lines: &'m [DataLine]) -> Self {
        Self { lines, position: 0, freed: 0, expected: 0, ahead: 0, has_waited: false }
    }

    /// Copies `body` into the area and returns its position, or `None` if there is no room now. `freed` is the
    /// consumer's published position.
    ///
    /// # Panics
    /// If the body is longer than a quarter of the area, which the caller must have checked.
    pub(crate) fn store(
        &mut self,
        body: Piece<'_>,
        past_caches: bool,
        freed: &AtomicU32,
    ) -> Result<Option<u32>, RingDamage> {
        assert!(body.len() <= quarter(self.lines), "callers respect Caps::max_body");
        let area = self.area();
        let needed = footprint(body.len());
        let start = self.position.wrapping_add(self.skipped(needed));
        let end = start.wrapping_add(needed);
        if end.wrapping_sub(self.freed) > area {
            self.freed = self.reload(freed)?;
            if end.wrapping_sub(self.freed) > area {
                return Ok(None);
            }
        }
        lend(self.lines, start, |to| {
            // SAFETY: `start..end` does not cross the end of the area and reaches at most one area beyond the freed
            // position, so B1 makes it the producer's.
            let part = |len| unsafe { RecvPart::new(to, len) };
            match body {
                Piece::Span(span) if past_caches => {
                    part(needed as usize).store_past_caches(span.foreign());
                }
                body => body.copy_to_peer(part(body.len())),
            }
        });
        self.advance(end);
        Ok(Some(start))
    }

    /// Pushes the lines of the body of `len` bytes at `start` out, for the consumer.
    pub(crate) fn push_out(&self, start: u32, len: usize) {
        push_out(self.lines, start, len);
    }

    /// How many bytes before the end of the area are skipped if the next body needs `needed` bytes.
    fn skipped(&self, needed: u32) -> u32 {
        let area = self.area();
        let left = area - (self.position & (area - 1));
        if needed > left { left } else { 0 }
    }

    /// Leaves room behind the last body, so that the next one begins in another page. A processor that reads a body
    /// prefetches lines behind it on its own, up to the end of the page, and would take those of the next body from the
    /// producer, which is about to write them.
    pub(crate) fn page_pad(&mut self) {
        let page = self.position.wrapping_add(APART + PAGE - 1) & !(PAGE - 1);
        let room = page.wrapping_sub(self.position) as usize;
        if room <= quarter(self.lines) && page.wrapping_sub(self.freed) <= self.area() {
            self.advance(page);
        }
    }

    /// Goes on at `position`.
    fn advance(&mut self, position: u32) {
        self.ahead = self.ahead.saturating_sub(position.wrapping_sub(self.position));
        self.position = position;
    }

    /// Prefetches the lines of the first `len` bytes of the next body's place. They are in the consumer's cache since
    /// the previous lap; requested now, they are here when the next frame is written. Before the end of the area this
    /// may prefetch something else, which does no harm. Lines behind these no longer count as prefetched: so the first
    /// piece or two of a long message go where a wait has prefetched, and the others into recycled buffers. That takes
    /// less time than to send all of them the first way.
    #[inline(never)]
    pub(crate) fn prefetch_next_write(&mut self, len: usize) {
        self.ahead = 0;
        self.prefetch(len);
    }

    /// Counts a body of `len` bytes that was sent, here or in a recycled buffer, which may be the first one after a
    /// frame from the consumer. `freed` is the consumer's published position; a wrong claim is reported when the room
    /// is needed.
    pub(crate) fn count(&mut self, len: usize, is_first: bool, freed: &AtomicU32) {
        let area = self.area();
        let before = if is_first || self.has_waited { 0 } else { self.expected };
        let expected = (before + footprint(len)).min(area / EXPECTED_PART);
        // The consumer may still be reading what it has not freed.
        if self.free() < expected {
            self.freed = self.reload(freed).unwrap_or(self.freed);
        }
        self.expected = expected.min(self.free());
        self.has_waited = false;
    }

    /// Bytes of the area.
    fn area(&self) -> u32 {
        (self.lines.len() * LINE) as u32
    }

    /// How much of the area belongs to the producer, as far as it knows.
    fn free(&self) -> u32 {
        self.area() - self.position.wrapping_sub(self.freed)
    }

    /// Whether the place of a body of `len` bytes, if it is the next one, has been prefetched.
    pub(crate) fn has_prefetched(&self, len: usize) -> bool {
        let needed = footprint(len);
        self.ahead >= self.skipped(needed) + needed
    }

    /// Prefetches the next [`STEP`] bytes for writing, unless as many bytes as expected are prefetched already. If the
    /// copy of the next body had to fetch these lines, that would also delay the consumer, who reads at the same time.
    #[inline(always)]
    pub(crate) fn prefetch_more(&mut self) {
        if self.ahead < self.expected {
            self.expect_step();
        }
    }

    #[cold]
    fn expect_step(&mut self) {
        self.has_waited = true;
        self.prefetch(STEP);
    }

    /// Prefetches the lines of `len` more bytes.
    #[inline(always)]
    fn prefetch(&mut self, len: usize) {
        let start = address(self.lines, self.position.wrapping_add(self.ahead));
        for at in (0..len).step_by(LINE) {
            sys::prefetch_to_write(start.wrapping_add(at));
        }
        self.ahead += footprint(len);
    }

    #[cold]
    fn reload(&self, freed: &AtomicU32) -> Result<u32, RingDamage> {
        let claim = freed.load(Ordering::Acquire); // SYNC: data ring credit
        let owned = self.position.wrapping_sub(self.freed);
        if claim.wrapping_sub(self.freed) > owned || claim % LINE as u32 != 0 {
            return Err(RingDamage::DataCredit);
        }
        Ok(claim)
    }
}

/// The consumer's end of a data ring.
pub(crate) struct DataRingConsumer<'m> {
    lines: &'m [DataLine],
    pub(super) position: u32,
    pub(super) published: u32,
}

impl<'m> DataRingConsumer<'m> {
    pub(crate) fn new(lines: &'m [DataLine]) -> Self {
        Self { lines, position: 0, published: 0 }
    }

    /// Checks the position of a body of `len` bytes at `start` (B3), takes the body, and lends its address.
    /// [`DataRingConsumer::release`] frees it.
    pub(crate) fn take<R>(
        &mut self,
        start: u32,
        len: usize,
        body: impl FnOnce(*const u8) -> R,
    ) -> Result<R, RingDamage> {
        if len > quarter(self.lines) {
            return Err(RingDamage::BodyLength);
        }
        let area = (self.lines.len() * LINE) as u32;
        let needed = footprint(len);
        if start % LINE as u32 != 0 || (start & (area - 1)) + needed > area {
            return Err(RingDamage::DataPlace);
        }
        let end = start.wrapping_add(needed);
        if start.wrapping_sub(self.position) > area || end.wrapping_sub(self.published) > area {
            return Err(RingDamage::DataRange);
        }
        self.position = end;
        Ok(lend(self.lines, start, |from| body(from)))
    }

    /// Frees everything taken so far, and publishes that if it is at least a quarter of the area (B2). Returns whether
    /// it published.
    pub(crate) fn release(&mut self, freed: &AtomicU32) -> bool {
        let hidden = self.position.wrapping_sub(self.published) as usize;
        let due = hidden >= quarter(self.lines);
        if due {
            freed.store(self.position, Ordering::Release); // SYNC: data ring credit
            self.published = self.position;
        }
        due
    }
}

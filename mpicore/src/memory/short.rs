//! The memory of a short collective: contiguous elements, and a scratch area of the caller. It finds the bytes of places
//! like [`Memory`](super::Memory), and keeps its rules (CM1 to CM3).

use std::mem::MaybeUninit;

use mpjdev::{RecvRegion, SendRegion};

use super::{Input, Output};
use crate::collective::{Buffer, Part, Place, Scratch};

/// Contiguous elements of one size, in memory that the caller of a collective lends until its end (CM1).
#[derive(Debug, Clone, Copy)]
pub struct Plain {
    pub(super) start: *mut u8,
    /// In bytes.
    pub(super) len: usize,
    /// Bytes of an element.
    pub(super) size: usize,
}

impl Plain {
    /// Describes no elements, for a buffer that a rank does not use.
    #[inline(always)]
    pub fn none() -> Self {
        Self { start: std::ptr::dangling_mut(), len: 0, size: 0 }
    }

    /// Describes elements of `size` bytes that the collective reads.
    #[inline(always)]
    pub fn input(memory: SendRegion, size: usize) -> Self {
        Self { start: memory.as_ptr().cast_mut(), len: memory.len(), size }
    }

    /// Describes elements of `size` bytes that the collective writes.
    #[inline(always)]
    pub fn output(memory: RecvRegion, size: usize) -> Self {
        Self { start: memory.as_mut_ptr(), len: memory.len(), size }
    }

    /// Returns the bytes of an element.
    #[inline(always)]
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// Returns the bytes of an element, if there are `used` of them, and if these are at most `most` and have at most
    /// that many bytes.
    #[inline(always)]
    pub(crate) fn short_size(&self, used: u64, most: usize) -> Option<usize> {
        let bytes = used.saturating_mul(self.size as u64);
        (used <= most as u64 && bytes <= self.len.min(most) as u64).then_some(self.size)
    }

    /// Returns offset and length of the bytes of a place, if it lies inside.
    #[inline(always)]
    pub(super) fn span(&self, place: &Place) -> Option<(usize, usize)> {
        let Part::Elements { first, count } = place.part else { return None };
        let at = usize::try_from(first).ok()?.checked_mul(self.size)?;
        let len = usize::try_from(count).ok()?.checked_mul(self.size)?;
        (at.checked_add(len)? <= self.len).then_some((at, len))
    }
}

impl Input {
    /// Returns its elements, if they are contiguous.
    #[inline(always)]
    pub(crate) fn plain(&self) -> Option<Plain> {
        self.area.plain_elements()
    }
}

impl Output {
    /// As [`Input::plain`].
    #[inline(always)]
    pub(crate) fn plain(&self) -> Option<Plain> {
        self.area.plain_elements()
    }
}

/// The memory of one short collective. The caller has just written the descriptions of its buffers, so they are not moved,
/// like the places in `collective/partial.rs`.
pub(crate) struct ShortMemory<'r> {
    input: &'r Plain,
    output: &'r Plain,
    scratch: Plain,
    /// Room for a scratch area, until there is one.
    room: Option<&'r mut [MaybeUninit<u128>]>,
}

impl<'r> ShortMemory<'r> {
    /// Makes the memory of a call that has checked its buffers by [`Plain::short_size`]. A scratch area is made in
    /// `room`.
    #[inline(always)]
    pub fn new(input: &'r Plain, output: &'r Plain, room: &'r mut [MaybeUninit<u128>]) -> Self {
        Self { input, output, scratch: Plain::none(), room: Some(room) }
    }

    /// Makes the scratch area, of zeros.
    #[inline]
    pub fn make_scratch(&mut self, needed: Scratch) {
        let (count, size) = match needed {
            Scratch::Elements { count, of: Buffer::Input } => (count, self.input.size),
            Scratch::Elements { count, .. } => (count, self.output.size),
            Scratch::Operands { .. } | Scratch::LargestEntry => {
                unreachable!("short collectives copy nothing apart, and have no entries")
            }
        };
        let room = self.room.take().expect("an algorithm requests memory once");
        let len = count as usize * size;
        let units = &mut room[..len.div_ceil(size_of::<u128>())];
        for unit in &mut *units {
            unit.write(0);
        }
        self.scratch = Plain { start: units.as_mut_ptr().cast(), len, size };
    }

    /// Returns where the bytes of a place are (CM3).
    #[inline(always)]
    fn find(&self, place: &Place) -> (*mut u8, usize) {
        let plain = match place.buffer {
            Buffer::Input => self.input,
            Buffer::Output => self.output,
            Buffer::Scratch => &self.scratch,
        };
        let (at, len) = plain.span(place).expect("the call has checked its buffers");
        (plain.start.wrapping_add(at), len)
    }

    /// Returns the data to be sent from a place.
    #[inline]
    pub fn source(&self, place: &Place) -> SendRegion {
        let (start, len) = self.find(place);
        // SAFETY: CM1; the bytes lie inside their area (CM3).
        unsafe { SendRegion::new(start, len) }
    }

    /// Returns the destination for data received into a place.
    #[inline]
    pub fn sink(&self, place: &Place) -> RecvRegion {
        let (start, len) = self.find(place);
        // SAFETY: as in `source`; CM2: nobody else writes these bytes.
        unsafe { RecvRegion::new(start, len) }
    }

    /// Copies the data of one place to another.
    #[inline]
    pub fn copy(&mut self, from: &Place, into: &Place) {
        let ((from, len), (into, room)) = (self.find(from), self.find(into));
        assert_eq!(len, room, "the call has compared the sizes of elements");
        if len == 0 {
            // Buffers without elements may be null.
            return;
        }
        // SAFETY: CM1, CM2: only this copy uses these bytes now; they lie inside their areas (CM3).
        unsafe { std::ptr::copy(from, into, len) };
    }

    /// Returns the operands at two places, which do not overlap.
    #[inline]
    pub fn operands(&mut self, from: &Place, into: &Place) -> (&[u8], &mut [u8]) {
        let ((left, len), (right, room)) = (self.find(from), self.find(into));
        if len == 0 || room == 0 {
            // Buffers without elements may be null.
            return (&[], &mut []);
        }
        // SAFETY: CM1, CM2: nobody writes these bytes now; they lie inside their area (CM3).
        let left = unsafe { std::slice::from_raw_parts(left, len) };
        // SAFETY: as above, and nobody else reads them; the places of a reduction do not overlap.
        (left, unsafe { std::slice::from_raw_parts_mut(right, room) })
    }
}

//! The memory of a short collective: contiguous elements, and a scratch area of the caller. It finds the bytes of places
//! like [`Memory`](super::Memory), and keeps its rules (CM1 to CM3).

use std::mem::MaybeUninit;

use mpjdev::{RecvRegion, SendRegion};

use super::area::{Area, Form};
use super::{Input, Output};
use crate::collective::{Buffer, Place, Scratch};

/// The memory of one short collective.
pub(crate) struct ShortMemory<'r> {
    /// The buffers, where the call has just stored them: to copy them would take longer than to send a message.
    input: &'r Area,
    output: &'r Area,
    scratch: Area,
    /// Room for a scratch area, until there is one.
    room: Option<&'r mut [MaybeUninit<u128>]>,
}

impl Input {
    /// Returns the bytes of an element, if the elements are contiguous and the first `used` of them are short.
    #[inline]
    pub(crate) fn short_size(&self, used: u64, most: usize) -> Option<usize> {
        self.area.short_size(used, most)
    }
}

impl Output {
    /// As [`Input::short_size`].
    #[inline]
    pub(crate) fn short_size(&self, used: u64, most: usize) -> Option<usize> {
        self.area.short_size(used, most)
    }
}

impl Area {
    /// Returns the bytes of an element, if the elements are contiguous, if there are `used` of them, and if these are at
    /// most `most` and have at most that many bytes.
    #[inline]
    fn short_size(&self, used: u64, most: usize) -> Option<usize> {
        let Form::Plain(size) = self.form else { return None };
        let bytes = used.saturating_mul(size as u64);
        (used <= most as u64 && bytes <= self.len.min(most) as u64).then_some(size)
    }
}

impl<'r> ShortMemory<'r> {
    /// Makes the memory of a call that has checked its buffers by [`Input::short_size`]. A scratch area is made in
    /// `room`.
    #[inline]
    pub fn new(input: &'r Input, output: &'r Output, room: &'r mut [MaybeUninit<u128>]) -> Self {
        let (input, output) = (&input.area, &output.area);
        Self { input, output, scratch: Area::EMPTY, room: Some(room) }
    }

    /// Makes the scratch area, of zeros.
    #[inline]
    pub fn make_scratch(&mut self, needed: Scratch) {
        let (count, of) = match needed {
            Scratch::Elements { count, of: Buffer::Input } => (count, self.input),
            Scratch::Elements { count, .. } => (count, self.output),
            Scratch::Plain { .. } | Scratch::LargestEntry => {
                unreachable!("short collectives copy nothing apart, and have no entries")
            }
        };
        let size = of.plain_size().expect("the call has checked its buffers");
        let room = self.room.take().expect("an algorithm requests memory once");
        let len = count as usize * size;
        let units = &mut room[..len.div_ceil(size_of::<u128>())];
        for unit in &mut *units {
            unit.write(0);
        }
        self.scratch = Area { start: units.as_mut_ptr().cast(), len, form: Form::Plain(size) };
    }

    /// Returns where the bytes of a place are (CM3).
    #[inline(always)]
    fn find(&self, place: &Place) -> (*mut u8, usize) {
        let area = match place.buffer {
            Buffer::Input => self.input,
            Buffer::Output => self.output,
            Buffer::Scratch => &self.scratch,
        };
        let (at, len) = area.span(place).expect("the call has checked its buffers");
        (area.start.wrapping_add(at), len)
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

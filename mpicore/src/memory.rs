//! The memory that a collective works on: its caller's buffers, and the scratch area. Plans name [places](Place); this
//! file finds their bytes, for messages and for the local steps between them.
//!
//! - CM1: the maker of an [`Input`] or an [`Output`] lends the memory of its region until the collective has ended, as
//!   promised when the region was made (G1, G2 of the transport). A [`Memory`] is used by one run of one schedule at a
//!   time, and lives as long as its messages.
//! - CM2: no message of a round writes what another one reads or writes. Local steps run one after another, while no
//!   message is under way; before that, only messages read or write. This is the contract of
//!   [`Schedule`](crate::collective::Schedule). The input is only read.
//! - CM3: bytes are named by a span or a layout that lies inside an area, otherwise the call is refused.

#![expect(unsafe_code, reason = "divides borrowed buffers among messages")]

use std::cell::Cell;
use std::sync::Arc;

use mpjdev::{RecvRegion, SendRegion, Sink, Source};

use crate::collective::{Buffer, Local, Message, Part, Place, Reach, Schedule, Scratch};
use crate::datatype::{Datatype, Signature};
use crate::error::Error;

mod area;
mod reduction;
mod short;

pub use reduction::{Operand, Reduction};
pub use short::Plain;
pub(crate) use short::ShortMemory;

use area::{Area, Form, Spot, aligned, whole_bounds, zeros};

/// How the elements of a buffer lie in its memory.
#[derive(Debug, Clone)]
pub enum Elements {
    /// Contiguous elements of the same size.
    Plain {
        /// Size of an element in bytes.
        size: usize,
    },
    /// Elements that lie as a datatype describes.
    Typed(Datatype),
    /// Blocks with datatypes of their own, one for each rank: MPI_Alltoallw.
    Blocks(Arc<[TypedBlock]>),
}

/// A block of a buffer whose blocks have datatypes of their own.
#[derive(Debug, Clone)]
pub struct TypedBlock {
    /// Number of elements.
    pub count: u64,
    /// Where the block begins, in bytes from the address of the buffer.
    pub displacement: isize,
    /// The datatype of the elements.
    pub datatype: Datatype,
}

/// The data that a collective reads: MPI's send buffer.
#[derive(Debug)]
pub struct Input {
    area: Area,
}

/// The place that a collective writes: MPI's receive buffer; in a broadcast, the only buffer.
#[derive(Debug)]
pub struct Output {
    area: Area,
}

impl Input {
    /// Makes an input of words that belong to the collective.
    pub(crate) fn keeping(words: Vec<u64>) -> Self {
        Self { area: Area::of_words(words) }
    }

    /// Makes an empty input, for a rank that sends nothing.
    #[inline]
    pub fn none() -> Self {
        Self { area: Area::EMPTY }
    }

    /// Makes an input of blocks of elements, one for each rank, each in its own memory: MPI_Alltoallw on separate
    /// buffers. Each block comes with its number of elements. The maker of the blocks lends their memory for as long as
    /// that of one buffer (CM1).
    pub fn of_blocks(blocks: impl IntoIterator<Item = (Self, u64)>) -> Self {
        let blocks = blocks.into_iter().map(|(block, count)| (block.area, count));
        Self { area: Area::of_blocks(blocks) }
    }

    /// Describes the same memory as blocks with datatypes of their own, one for each rank: MPI_Alltoallw.
    pub fn in_blocks(self, blocks: Vec<TypedBlock>) -> Self {
        Self { area: self.area.with(Elements::Blocks(blocks.into())) }
    }

    /// Describes the same memory as other elements.
    pub(crate) fn with(self, elements: Elements) -> Self {
        Self { area: self.area.with(elements) }
    }

    /// Returns the datatype of the elements, if the buffer has one.
    pub(crate) fn datatype(&self) -> Option<&Datatype> {
        self.area.datatype()
    }

    /// Returns whether an element has a byte in common with one of an output. Where that cannot be told, as of blocks,
    /// the answer is no.
    pub fn overlaps(&self, output: &Output) -> bool {
        self.area.overlaps(&output.area)
    }

    /// Makes an input of elements in `memory`. The address of the first is `origin` bytes after its beginning.
    #[inline]
    pub fn new(memory: SendRegion, origin: isize, elements: Elements) -> Self {
        Self { area: Area::new(memory.as_ptr().cast_mut(), memory.len(), origin, elements) }
    }

    /// Returns the bytes of data in an element.
    #[inline]
    pub(crate) fn data_size(&self) -> usize {
        self.area.data_size()
    }
}

impl Output {
    /// Makes an output of words that belong to the collective, which returns them at its end.
    pub(crate) fn keeping(words: Vec<u64>) -> Self {
        Self { area: Area::of_words(words) }
    }

    /// Makes an empty output, for a rank that receives nothing.
    #[inline]
    pub fn none() -> Self {
        Self { area: Area::EMPTY }
    }

    /// Like [`Input::of_blocks`], for received data. A call in place, which would exchange blocks, refuses them.
    pub fn of_blocks(blocks: impl IntoIterator<Item = (Self, u64)>) -> Self {
        let blocks = blocks.into_iter().map(|(block, count)| (block.area, count));
        Self { area: Area::of_blocks(blocks) }
    }

    /// Like [`Input::in_blocks`]. The caller ensures that no two blocks share a byte of their data (CM2).
    pub fn in_blocks(self, blocks: Vec<TypedBlock>) -> Self {
        Self { area: self.area.with(Elements::Blocks(blocks.into())) }
    }

    /// Describes the same memory as other elements.
    pub(crate) fn with(self, elements: Elements) -> Self {
        Self { area: self.area.with(elements) }
    }

    /// Returns the datatype of the elements, if the buffer has one.
    pub(crate) fn datatype(&self) -> Option<&Datatype> {
        self.area.datatype()
    }

    /// Makes an output of elements in `memory`. The address of the first is `origin` bytes after its beginning.
    #[inline]
    pub fn new(memory: RecvRegion, origin: isize, elements: Elements) -> Self {
        Self { area: Area::new(memory.as_mut_ptr(), memory.len(), origin, elements) }
    }

    /// Returns the bytes of data in an element.
    #[inline]
    pub(crate) fn data_size(&self) -> usize {
        self.area.data_size()
    }
}

/// Number of units in the largest scratch area that each communicator keeps for its next call.
const LARGEST_KEPT: usize = (64 << 10) / size_of::<u128>();

/// Number of units in the largest scratch area that each thread keeps for the next call on any communicator.
const LARGEST_SPARE: usize = (4 << 20) / size_of::<u128>();

thread_local! {
    /// A scratch area that is too large for a communicator to keep. Filling a new one with zeros would take an eighth
    /// of the time of a large reduction.
    static SPARE: Cell<Vec<u128>> = const { Cell::new(Vec::new()) };
}

/// The memory areas of one collective.
#[derive(Default)]
pub(crate) struct Memory {
    input: Area,
    output: Area,
    scratch: Area,
    owned: Owned,
}

/// The memory of a scratch area, in units that suit the alignment of all predefined elements. A large one becomes the
/// spare one of the thread that drops it.
#[derive(Default)]
struct Owned(Vec<u128>);

// SAFETY: CM1 lends the memory to the collective, whatever thread runs it.
unsafe impl Send for Input {}
// SAFETY: as above; a shared reference to it reads nothing.
unsafe impl Sync for Input {}
// SAFETY: as for `Input`.
unsafe impl Send for Output {}
// SAFETY: as for `Input`.
unsafe impl Sync for Output {}
// SAFETY: as for `Input`; the scratch area is owned.
unsafe impl Send for Memory {}

impl Memory {
    /// Makes the memory of messages that send elements of an input.
    pub(crate) fn of_input(input: Input) -> Self {
        Self { input: input.area, ..Self::default() }
    }

    /// Makes the memory of messages that receive elements of an output.
    pub(crate) fn of_output(output: Output) -> Self {
        Self { output: output.area, ..Self::default() }
    }

    /// Returns the data of `count` elements of the input, from number `first` on.
    pub(crate) fn input_from(&self, first: i64, count: u64) -> Result<Source, Error> {
        self.source(&Place { buffer: Buffer::Input, part: Part::Elements { first, count } })
    }

    /// Returns the place of `count` elements of the output, from number `first` on.
    pub(crate) fn output_from(&self, first: i64, count: u64) -> Result<Sink, Error> {
        self.sink(&Place { buffer: Buffer::Output, part: Part::Elements { first, count } })
    }

    /// Prepares the memory for a schedule, with the scratch area that it needs. `reduction` is its operation, if it has
    /// one.
    ///
    /// # Errors
    /// [`Error::Buffer`] and others if not all places are in the buffers (CM3); [`Error::Memory`].
    #[inline]
    pub(crate) fn fill(
        &mut self,
        (input, output): (Input, Output),
        schedule: &Schedule,
        reduction: Option<&Reduction>,
    ) -> Result<(), Error> {
        (self.input, self.output) = (input.area, output.area);
        self.scratch = match schedule.scratch() {
            Scratch::Elements { count: 0, .. } => Area::EMPTY,
            needed => {
                let areas = [&self.input, &self.output];
                Area::of_scratch(needed, areas, reduction, &mut self.owned)?
            }
        };
        self.check(schedule)
    }

    /// Releases what belongs to the buffers, and the scratch area if it is large. Addresses of plain buffers stay;
    /// nothing reads them before the next [`Memory::fill`].
    #[inline]
    pub(crate) fn release(&mut self) {
        for area in [&mut self.input, &mut self.output, &mut self.scratch] {
            if let Form::Other(_) = area.form {
                *area = Area::EMPTY;
            }
        }
        if self.owned.0.len() > LARGEST_KEPT {
            self.owned = Owned::default();
        }
    }

    /// Takes the words of the output, if it keeps some. This memory is not used any more afterwards.
    pub(crate) fn take_kept(&mut self) -> Vec<u64> {
        match &mut self.output.form {
            Form::Other(other) => std::mem::take(&mut other.words),
            Form::Plain(_) => Vec::new(),
        }
    }

    /// Refuses buffers that do not contain all places of a schedule (CM3).
    #[inline]
    fn check(&self, schedule: &Schedule) -> Result<(), Error> {
        let (mut are_plain, mut common) = (schedule.is_even(), None);
        for buffer in [Buffer::Input, Buffer::Output, Buffer::Scratch] {
            let Some(Reach { first, count }) = schedule.reach(buffer) else { continue };
            let area = self.area(buffer);
            match area.plain_size() {
                Some(size) => {
                    area.plain(size, first, count)?;
                    are_plain &= *common.get_or_insert(size) == size;
                }
                None => are_plain = false,
            }
        }
        if are_plain { Ok(()) } else { self.check_places(schedule) }
    }

    /// Checks each place, so that nothing is refused any more when the first message is sent.
    fn check_places(&self, schedule: &Schedule) -> Result<(), Error> {
        for round in schedule.rounds() {
            for message in round.messages {
                match message {
                    Message::Send { from, .. } => self.source(from).map(drop)?,
                    Message::Receive { into, .. } => self.sink(into).map(drop)?,
                }
            }
            for step in round.local {
                let (Local::Copy { from, into } | Local::Reduce { from, into }) = step;
                let (from, into) = (self.source(from)?.len(), self.sink(into)?.len());
                if from != into {
                    return Err(Error::Unequal { from, into });
                }
            }
        }
        Ok(())
    }

    /// Returns how many bytes of data a place has, if it lies inside its area. For plain elements, the check of the
    /// whole schedule has ensured that.
    fn len(&self, place: Place) -> Result<usize, Error> {
        match (self.area(place.buffer).plain_size(), place.part) {
            (Some(size), Part::Elements { count, .. }) => Ok(size * count as usize),
            _ => Ok(self.source(&place)?.len()),
        }
    }

    /// Returns the types of the data of a place, where the buffer has a datatype.
    pub(crate) fn signature(&self, place: Place) -> Option<Signature> {
        let (area, place) = self.find(place);
        area.signature(place.part)
    }

    /// Returns the length that a received message must have.
    pub(crate) fn expected(&self, message: &Message) -> Option<usize> {
        match *message {
            Message::Send { .. } => None,
            Message::Receive { into, .. } => self.len(into).ok(),
        }
    }

    /// Returns the data to be sent from a place.
    #[inline]
    pub(crate) fn source(&self, place: &Place) -> Result<Source, Error> {
        let area = self.area(place.buffer);
        match area.span(place) {
            Some((at, len)) => {
                // SAFETY: CM1; the span lies inside the area (CM3).
                Ok(unsafe { SendRegion::new(area.start.wrapping_add(at), len) }.into())
            }
            None => self.source_anywhere(*place),
        }
    }

    fn source_anywhere(&self, place: Place) -> Result<Source, Error> {
        let (area, place) = self.find(place);
        // SAFETY: CM1; `locate` returns only what lies inside (CM3), and a layout is checked against the whole area.
        let region = |at, len| unsafe { SendRegion::new(area.start.wrapping_add(at), len) };
        match area.locate(place)? {
            Spot::Span(at, len) => Ok(region(at, len).into()),
            Spot::Layout(layout, origin) => Ok(layout.to_send(region(0, area.len), origin)?),
        }
    }

    /// Returns the destination for data received into a place.
    #[inline]
    pub(crate) fn sink(&self, place: &Place) -> Result<Sink, Error> {
        let area = self.area(place.buffer);
        match area.span(place) {
            Some((at, len)) => {
                // SAFETY: as in `source`; CM2: nobody else writes these bytes.
                Ok(unsafe { RecvRegion::new(area.start.wrapping_add(at), len) }.into())
            }
            None => self.sink_anywhere(*place),
        }
    }

    fn sink_anywhere(&self, place: Place) -> Result<Sink, Error> {
        let (area, place) = self.find(place);
        // SAFETY: as in `source`; CM2: nobody else writes these bytes.
        let region = |at, len| unsafe { RecvRegion::new(area.start.wrapping_add(at), len) };
        match area.locate(place)? {
            Spot::Span(at, len) => Ok(region(at, len).into()),
            Spot::Layout(layout, origin) => Ok(layout.to_receive(region(0, area.len), origin)?),
        }
    }

    /// Copies the data of one place to another.
    #[inline]
    pub(crate) fn copy(&self, from: &Place, into: &Place) -> Result<(), Error> {
        let (left, right) = (self.area(from.buffer), self.area(into.buffer));
        match (left.span(from), right.span(into)) {
            (Some((here, len)), Some((there, room))) if len == room => {
                let (from, into) = (left.start.wrapping_add(here), right.start.wrapping_add(there));
                // SAFETY: CM1, CM2: only this copy uses these bytes now; they lie inside their areas (CM3).
                unsafe { std::ptr::copy(from, into, len) };
            }
            _ => {
                self.source(from)?.copy_to(&mut self.sink(into)?);
            }
        }
        Ok(())
    }

    /// Combines the elements of two places: `into[i] = from[i] op into[i]`.
    pub(crate) fn reduce(
        &mut self,
        with: &Reduction,
        from: &Place,
        into: &Place,
    ) -> Result<(), Error> {
        let ((left, here), (right, there)) = (self.find(*from), self.find(*into));
        if left.datatype().or(right.datatype()).is_some() {
            let is_apart =
                |element: &Datatype| !(left.are_each(element) && right.are_each(element));
            // Operations that take elements as they lie get no packed ones.
            let packed = || left.packed().or(right.packed()).cloned();
            let element =
                with.element().map_or_else(packed, |element| Some(element).filter(is_apart));
            if let Some(element) = element {
                return self.reduce_apart(with, &element, from, into);
            }
        }
        let (left_at, left_len) = left.elements_at(here)?;
        let (right_at, right_len) = right.elements_at(there)?;
        // One side may lack the padding after its last element.
        let len = left_len.min(right_len);
        if len == 0 {
            return Ok(());
        }
        // SAFETY: CM1, CM2: nobody writes these bytes now; they lie inside the area (CM3).
        let left = unsafe { std::slice::from_raw_parts(left.start.add(left_at), len) };
        // SAFETY: as above, and nobody else reads them; the places of a reduction do not overlap.
        let right = unsafe { std::slice::from_raw_parts_mut(right.start.add(right_at), len) };
        with.apply(left, right, count_of(there) as usize)
    }

    /// [`Memory::reduce`] for elements with other data between them that must not change: works on copies.
    fn reduce_apart(
        &self,
        with: &Reduction,
        element: &Datatype,
        from: &Place,
        into: &Place,
    ) -> Result<(), Error> {
        let mut result = packed(&self.source(into)?)?;
        let Some(count) = result.len().checked_div(element.size()) else { return Ok(()) };
        let elements = i64::try_from(count).unwrap_or(i64::MAX);
        let (low, high) = whole_bounds(element, count as u64)?;
        let start = aligned(low);
        let (len, origin, first) = (high.abs_diff(start), -start, low.abs_diff(start));
        let (mut left, mut right) = (zeros(len, len)?, zeros(len, len)?);
        let from = packed(&self.source(from)?)?;
        element.unpack(&from, &mut 0, &mut left, origin, elements)?;
        element.unpack(&result, &mut 0, &mut right, origin, elements)?;
        with.apply(&left[first..], &mut right[first..], count)?;
        element.pack(&right, origin, elements, &mut result, &mut 0)?;
        Source::from(result).copy_to(&mut self.sink(into)?);
        Ok(())
    }

    fn area(&self, buffer: Buffer) -> &Area {
        match buffer {
            Buffer::Input => &self.input,
            Buffer::Output => &self.output,
            Buffer::Scratch => &self.scratch,
        }
    }

    /// Returns the area that a place is in, and the place inside that area.
    fn find(&self, place: Place) -> (&Area, Place) {
        let area = self.area(place.buffer);
        let Part::Entry(rank) = place.part else { return (area, place) };
        let Form::Other(other) = &area.form else { return (area, place) };
        match other.apart.get(rank as usize) {
            Some((block, count)) => {
                (block, Place { part: Part::Elements { first: 0, count: *count }, ..place })
            }
            None => (area, place),
        }
    }
}

impl Owned {
    /// Enlarges the memory to this many units, which are `len` bytes, if it has fewer. What is in it is lost.
    fn reserve(&mut self, units: usize, len: usize) -> Result<(), Error> {
        if self.0.len() >= units {
            return Ok(());
        }
        if units > LARGEST_KEPT {
            let spare = SPARE.try_with(Cell::take).unwrap_or_default();
            if spare.len() >= units {
                *self = Self(spare);
                return Ok(());
            }
            let _ = SPARE.try_with(|kept| kept.set(spare));
        }
        *self = Self(zeros(units, len)?);
        Ok(())
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        if (LARGEST_KEPT + 1..=LARGEST_SPARE).contains(&self.0.len()) {
            let owned = std::mem::take(&mut self.0);
            // A thread that is ending keeps nothing.
            let _ = SPARE.try_with(|spare| spare.set(owned));
        }
    }
}

/// Returns the bytes of a source without gaps.
pub(crate) fn packed(source: &Source) -> Result<Vec<u8>, Error> {
    let mut packed = zeros(source.len(), source.len())?;
    // SAFETY: the vector's own bytes, which nothing else touches until the copy is made.
    let region = unsafe { RecvRegion::new(packed.as_mut_ptr(), packed.len()) };
    source.copy_to(&mut region.into());
    Ok(packed)
}

/// Returns the number of elements of a place; 1 for a block with a datatype of its own.
fn count_of(place: Place) -> u64 {
    match place.part {
        Part::Elements { count, .. } => count,
        Part::Entry(_) => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_collective_of_a_thread_gets_the_memory_of_a_large_scratch_area() {
        let area = |units| {
            let mut owned = Owned::default();
            owned.reserve(units, units * size_of::<u128>()).unwrap();
            owned
        };
        let first = area(2 * LARGEST_KEPT);
        let at = first.0.as_ptr();
        drop(first);
        assert_eq!(area(LARGEST_KEPT + 1).0.as_ptr(), at);
        // What is longer than all spare memory may be is not kept.
        drop(area(LARGEST_SPARE + 1));
        assert_eq!(area(2 * LARGEST_KEPT).0.as_ptr(), at);
    }
}

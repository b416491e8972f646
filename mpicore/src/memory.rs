//! The memory that a collective works on: what its caller handed in, and the scratch area. Plans name
//! [places](Place); this file finds the bytes, for messages and for the local steps between them.
//!
//! - CM1: who makes an [`Input`] or an [`Output`] lends the memory of its region until the collective has ended,
//!   as promised when the region was made (G1, G2 of the transport). A [`Memory`] is used by one run of one
//!   schedule at a time, and lives as long as its messages.
//! - CM2: no message of a round writes what another one reads or writes, local steps run while no message is
//!   under way, one after the other, and nothing but messages reads or writes before that: the contract of
//!   [`Schedule`](crate::collective::Schedule). The input is only read.
//! - CM3: bytes are named by a span or by a layout inside of an area, or the call is refused.

#![expect(unsafe_code, reason = "divides borrowed buffers among messages")]

use std::cell::Cell;
use std::sync::Arc;

use mpjdev::{RecvRegion, SendRegion, Sink, Source};

use crate::collective::{Buffer, Local, Message, Part, Place, Reach, Schedule, Scratch};
use crate::datatype::Datatype;
use crate::error::Error;

mod area;
mod reduction;

pub use reduction::{Operand, Reduction};

use area::{Area, Form, Spot, whole_bounds, zeros};

/// How the elements of a buffer lie in its memory.
#[derive(Debug, Clone)]
pub enum Elements {
    /// One behind the other, each of so many bytes.
    Plain {
        /// Bytes of one.
        size: usize,
    },
    /// As a datatype says.
    Typed(Datatype),
    /// In blocks with datatypes of their own, one for each rank: MPI_Alltoallw.
    Blocks(Arc<[TypedBlock]>),
}

/// A block of a buffer whose blocks have datatypes of their own.
#[derive(Debug, Clone)]
pub struct TypedBlock {
    /// How many elements it has.
    pub count: u64,
    /// Where it begins, in bytes from the address of the buffer.
    pub displacement: isize,
    /// What its elements are.
    pub datatype: Datatype,
}

/// What a collective reads: MPI's send buffer.
#[derive(Debug)]
pub struct Input {
    area: Area,
}

/// What a collective writes: MPI's receive buffer; in a broadcast, the only one.
#[derive(Debug)]
pub struct Output {
    area: Area,
}

impl Input {
    /// Words that belong to the collective.
    pub(crate) fn keeping(words: Vec<u64>) -> Self {
        Self { area: Area::of_words(words) }
    }

    /// No buffer, as where a rank sends nothing.
    #[inline]
    pub fn none() -> Self {
        Self { area: Area::EMPTY }
    }

    /// Blocks of elements, one for each rank, each in memory of its own: MPI_Alltoallw on buffers that do not belong
    /// together. Beside each stands how many elements it has. Whoever has the blocks lends their memory for as long as
    /// one buffer (CM1).
    pub fn of_blocks(blocks: impl IntoIterator<Item = (Self, u64)>) -> Self {
        let blocks = blocks.into_iter().map(|(block, count)| (block.area, count));
        Self { area: Area::of_blocks(blocks) }
    }

    /// The same memory in blocks with datatypes of their own, one for each rank: MPI_Alltoallw.
    pub fn in_blocks(self, blocks: Vec<TypedBlock>) -> Self {
        Self { area: self.area.with(Elements::Blocks(blocks.into())) }
    }

    /// Elements in `memory`, the first of which has the address `origin` bytes behind its beginning.
    #[inline]
    pub fn new(memory: SendRegion, origin: isize, elements: Elements) -> Self {
        Self { area: Area::new(memory.as_ptr().cast_mut(), memory.len(), origin, elements) }
    }

    /// Bytes of data of an element.
    #[inline]
    pub(crate) fn data_size(&self) -> usize {
        self.area.data_size()
    }
}

impl Output {
    /// Words that belong to the collective, which gives them back.
    pub(crate) fn keeping(words: Vec<u64>) -> Self {
        Self { area: Area::of_words(words) }
    }

    /// No buffer, as where a rank receives nothing.
    #[inline]
    pub fn none() -> Self {
        Self { area: Area::EMPTY }
    }

    /// As [`Input::of_blocks`], for what is received. A call in place, which would exchange blocks, refuses them.
    pub fn of_blocks(blocks: impl IntoIterator<Item = (Self, u64)>) -> Self {
        let blocks = blocks.into_iter().map(|(block, count)| (block.area, count));
        Self { area: Area::of_blocks(blocks) }
    }

    /// As [`Input::in_blocks`]. The caller sees to it that no two blocks share a byte of their data (CM2).
    pub fn in_blocks(self, blocks: Vec<TypedBlock>) -> Self {
        Self { area: self.area.with(Elements::Blocks(blocks.into())) }
    }

    /// Elements in `memory`, the first of which has the address `origin` bytes behind its beginning.
    #[inline]
    pub fn new(memory: RecvRegion, origin: isize, elements: Elements) -> Self {
        Self { area: Area::new(memory.as_mut_ptr(), memory.len(), origin, elements) }
    }

    /// Bytes of data of an element.
    #[inline]
    pub(crate) fn data_size(&self) -> usize {
        self.area.data_size()
    }
}

/// Units of the largest scratch area that each communicator keeps for its next call.
const LARGEST_KEPT: usize = (64 << 10) / size_of::<u128>();

/// Units of the largest scratch area that each thread keeps for the next call on any communicator.
const LARGEST_SPARE: usize = (4 << 20) / size_of::<u128>();

thread_local! {
    /// A scratch area that is too large to be kept by a communicator. To fill a new one with zeros would take an eighth
    /// of the time of a large reduction.
    static SPARE: Cell<Vec<u128>> = const { Cell::new(Vec::new()) };
}

/// The areas of one collective.
#[derive(Default)]
pub(crate) struct Memory {
    input: Area,
    output: Area,
    scratch: Area,
    /// The scratch area itself; in units that suit the alignment of all predefined elements.
    owned: Vec<u128>,
}

// SAFETY: CM1 lends the memory to the collective, whatever thread runs it.
unsafe impl Send for Input {}
// SAFETY: as above; nothing is read by a shared reference to it.
unsafe impl Sync for Input {}
// SAFETY: as for `Input`.
unsafe impl Send for Output {}
// SAFETY: as for `Input`.
unsafe impl Sync for Output {}
// SAFETY: as for `Input`; the scratch area belongs to it.
unsafe impl Send for Memory {}

impl Memory {
    /// Makes it that of a schedule, with the scratch area that this needs.
    ///
    /// # Errors
    /// [`Error::Buffer`] and others where not all places are in the buffers (CM3); [`Error::Memory`].
    #[inline]
    pub(crate) fn fill(
        &mut self,
        (input, output): (Input, Output),
        schedule: &Schedule,
    ) -> Result<(), Error> {
        (self.input, self.output) = (input.area, output.area);
        self.scratch = match schedule.scratch() {
            Scratch::Elements { count: 0, .. } => Area::EMPTY,
            needed => Area::of_scratch(needed, [&self.input, &self.output], &mut self.owned)?,
        };
        self.check(schedule)
    }

    /// Gives back what belongs to the buffers, and the scratch area if that is large. Addresses of plain buffers stay;
    /// nothing reads them before the next [`Memory::fill`].
    #[inline]
    pub(crate) fn release(&mut self) {
        for area in [&mut self.input, &mut self.output, &mut self.scratch] {
            if let Form::Other(_) = area.form {
                *area = Area::EMPTY;
            }
        }
        if self.owned.len() > LARGEST_KEPT {
            let owned = std::mem::take(&mut self.owned);
            if owned.len() <= LARGEST_SPARE {
                // A thread at its end keeps nothing.
                let _ = SPARE.try_with(|spare| spare.set(owned));
            }
        }
    }

    /// The words of the output, if it keeps some: for who has no further use for this memory.
    pub(crate) fn take_kept(&mut self) -> Vec<u64> {
        match &mut self.output.form {
            Form::Other(other) => std::mem::take(&mut other.words),
            Form::Plain(_) => Vec::new(),
        }
    }

    /// Refuses buffers in which not all places of a schedule are (CM3).
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

    /// Looks at each place: nothing is refused any more when the first message is sent.
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

    /// How many bytes of data a place has, if it lies inside of its area. Of plain elements that is known of the
    /// schedule as a whole.
    fn len(&self, place: Place) -> Result<usize, Error> {
        match (self.area(place.buffer).plain_size(), place.part) {
            (Some(size), Part::Elements { count, .. }) => Ok(size * count as usize),
            _ => Ok(self.source(&place)?.len()),
        }
    }

    /// How long a message has to be that is received.
    pub(crate) fn expected(&self, message: &Message) -> Option<usize> {
        match *message {
            Message::Send { .. } => None,
            Message::Receive { into, .. } => self.len(into).ok(),
        }
    }

    /// What is sent from a place.
    #[inline]
    pub(crate) fn source(&self, place: &Place) -> Result<Source, Error> {
        let area = self.area(place.buffer);
        match area.span(place) {
            Some((at, len)) => {
                // SAFETY: CM1; it lies inside (CM3).
                Ok(unsafe { SendRegion::new(area.start.wrapping_add(at), len) }.into())
            }
            None => self.source_anywhere(*place),
        }
    }

    fn source_anywhere(&self, place: Place) -> Result<Source, Error> {
        let (area, place) = self.find(place);
        // SAFETY: CM1; `locate` answers what lies inside (CM3), and a layout is checked against the whole area.
        let region = |at, len| unsafe { SendRegion::new(area.start.wrapping_add(at), len) };
        match area.locate(place)? {
            Spot::Span(at, len) => Ok(region(at, len).into()),
            Spot::Layout(layout, origin) => Ok(layout.to_send(region(0, area.len), origin)?),
        }
    }

    /// Where what comes to a place goes.
    #[inline]
    pub(crate) fn sink(&self, place: &Place) -> Result<Sink, Error> {
        let area = self.area(place.buffer);
        match area.span(place) {
            Some((at, len)) => {
                // SAFETY: as in `source`; CM2: nobody else writes the bytes that are named.
                Ok(unsafe { RecvRegion::new(area.start.wrapping_add(at), len) }.into())
            }
            None => self.sink_anywhere(*place),
        }
    }

    fn sink_anywhere(&self, place: Place) -> Result<Sink, Error> {
        let (area, place) = self.find(place);
        // SAFETY: as in `source`; CM2: nobody else writes the bytes that are named.
        let region = |at, len| unsafe { RecvRegion::new(area.start.wrapping_add(at), len) };
        match area.locate(place)? {
            Spot::Span(at, len) => Ok(region(at, len).into()),
            Spot::Layout(layout, origin) => Ok(layout.to_receive(region(0, area.len), origin)?),
        }
    }

    /// Copies from a place to another one.
    #[inline]
    pub(crate) fn copy(&self, from: &Place, into: &Place) -> Result<(), Error> {
        let (left, right) = (self.area(from.buffer), self.area(into.buffer));
        match (left.span(from), right.span(into)) {
            (Some((here, len)), Some((there, room))) if len == room => {
                let (from, into) = (left.start.wrapping_add(here), right.start.wrapping_add(there));
                // SAFETY: CM1, CM2: nobody writes these bytes now but this; they lie inside of their areas (CM3).
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
            // Who wants elements as they lie is not given packed ones.
            let packed = || left.packed().or(right.packed()).cloned();
            let element =
                with.element().map_or_else(packed, |element| Some(element).filter(is_apart));
            if let Some(element) = element {
                return self.reduce_apart(with, &element, from, into);
            }
        }
        let (left_at, left_len) = left.elements_at(here)?;
        let (right_at, right_len) = right.elements_at(there)?;
        // One may lack the padding behind its last element.
        let len = left_len.min(right_len);
        if len == 0 {
            return Ok(());
        }
        // SAFETY: CM1, CM2: nobody writes these bytes now; they lie inside of the area (CM3).
        let left = unsafe { std::slice::from_raw_parts(left.start.add(left_at), len) };
        // SAFETY: as above, and nobody else reads them; the places of a reduction do not overlap.
        let right = unsafe { std::slice::from_raw_parts_mut(right.start.add(right_at), len) };
        with.apply(left, right, count_of(there) as usize)
    }

    /// [`Memory::reduce`] where something else lies between the elements, which is not to be touched: by copies.
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
        let (len, origin) = (high.abs_diff(low), -low);
        let (mut left, mut right) = (zeros(len, len)?, zeros(len, len)?);
        let from = packed(&self.source(from)?)?;
        element.unpack(&from, &mut 0, &mut left, origin, elements)?;
        element.unpack(&result, &mut 0, &mut right, origin, elements)?;
        with.apply(&left, &mut right, count)?;
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

    /// The area that a place is in, and where it is there.
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

/// The bytes of a source, one behind the other.
fn packed(source: &Source) -> Result<Vec<u8>, Error> {
    let mut packed = zeros(source.len(), source.len())?;
    // SAFETY: the vector's own bytes, which are not touched otherwise until the copy is made.
    let region = unsafe { RecvRegion::new(packed.as_mut_ptr(), packed.len()) };
    source.copy_to(&mut region.into());
    Ok(packed)
}

/// How many elements a place has; one for a block with a datatype of its own.
fn count_of(place: Place) -> u64 {
    match place.part {
        Part::Elements { count, .. } => count,
        Part::Entry(_) => 1,
    }
}

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

#![allow(unsafe_code, reason = "divides borrowed buffers among messages")]

use std::any::Any;
use std::sync::Arc;

use mpjdev::{Layout, LayoutError, RecvRegion, SendRegion, Sink, Source};

use crate::collective::{Buffer, Local, Message, Part, Place, Reach, Schedule, Scratch};
use crate::datatype::Datatype;
use crate::error::Error;
use crate::op::{ElementKind, Op, OpError, Predefined, reduce_local};

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
    kept: Vec<u64>,
}

/// What a collective writes: MPI's receive buffer; in a broadcast, the only one.
#[derive(Debug)]
pub struct Output {
    area: Area,
    kept: Vec<u64>,
}

impl Input {
    /// Words that belong to the collective.
    pub(crate) fn keeping(mut words: Vec<u64>) -> Self {
        Self { area: Area::of_words(&mut words), kept: words }
    }

    /// No buffer, as where a rank sends nothing.
    pub fn none() -> Self {
        Self::new(SendRegion::EMPTY, 0, Elements::Plain { size: 0 })
    }

    /// Blocks of elements, one for each rank, each in memory of its own: MPI_Alltoallw on buffers that do not belong
    /// together. Beside each stands how many elements it has. Whoever has the blocks lends their memory for as long as
    /// one buffer (CM1).
    pub fn of_blocks(blocks: impl IntoIterator<Item = (Self, u64)>) -> Self {
        let blocks = blocks.into_iter().map(|(block, count)| (block.area, count));
        Self { area: Area::of_blocks(blocks), kept: Vec::new() }
    }

    /// Elements in `memory`, the first of which has the address `origin` bytes behind its beginning.
    pub fn new(memory: SendRegion, origin: isize, elements: Elements) -> Self {
        let (start, len) = (memory.as_ptr().cast_mut(), memory.len());
        Self { area: Area { start, len, origin, elements, apart: Vec::new() }, kept: Vec::new() }
    }
}

impl Output {
    /// Words that belong to the collective, which gives them back.
    pub(crate) fn keeping(mut words: Vec<u64>) -> Self {
        Self { area: Area::of_words(&mut words), kept: words }
    }

    /// No buffer, as where a rank receives nothing.
    pub fn none() -> Self {
        Self::new(RecvRegion::EMPTY, 0, Elements::Plain { size: 0 })
    }

    /// As [`Input::of_blocks`], for what is received. A call in place, which would exchange blocks, refuses them.
    pub fn of_blocks(blocks: impl IntoIterator<Item = (Self, u64)>) -> Self {
        let blocks = blocks.into_iter().map(|(block, count)| (block.area, count));
        Self { area: Area::of_blocks(blocks), kept: Vec::new() }
    }

    /// Elements in `memory`, the first of which has the address `origin` bytes behind its beginning.
    pub fn new(memory: RecvRegion, origin: isize, elements: Elements) -> Self {
        let (start, len) = (memory.as_mut_ptr(), memory.len());
        Self { area: Area { start, len, origin, elements, apart: Vec::new() }, kept: Vec::new() }
    }
}

/// The operation of a reduction, and what it is applied to.
#[derive(Clone)]
pub struct Reduction {
    /// The operation.
    pub op: Op,
    /// The kind of the elements.
    pub operand: Operand,
}

/// What elements are to an operation.
#[derive(Clone)]
pub enum Operand {
    /// Of a kind that predefined operations know.
    Kind(ElementKind),
    /// Each of this datatype, which is asked for where they do not lie in a slice. Operations of users get them side by
    /// side, wherever they lie, and `()` as their description.
    Elements(fn() -> Option<Datatype>),
    /// Something for operations of users, who are given this as its description, and the elements as they lie, with
    /// what is between them: MPI's user functions.
    Described(Arc<dyn Any + Send + Sync>),
}

impl Reduction {
    /// The highest of words.
    pub(crate) fn highest() -> Self {
        Self { op: Predefined::Max.into(), operand: Operand::Kind(ElementKind::U64) }
    }

    /// Refuses an operation that is not defined on the elements, before anything is sent.
    pub(crate) fn check(&self) -> Result<(), Error> {
        match (&self.op, &self.operand) {
            (Op::Predefined(op), _) if !op.reduces() => Err(Error::NotForReductions { op: *op }),
            (op, Operand::Kind(kind)) => Ok(op.check(*kind)?),
            (Op::User(_), _) => Ok(()),
            (Op::Predefined(op), _) => Err(Error::NoKind { op: *op }),
        }
    }

    /// `into[i] = from[i] op into[i]` for `count` elements. The padding behind the last one need not be there.
    fn apply(&self, from: &[u8], into: &mut [u8], count: usize) -> Result<(), Error> {
        match (&self.op, &self.operand) {
            (Op::User(op), Operand::Described(what)) => op.apply(from, into, count, &**what),
            (Op::User(op), Operand::Kind(kind)) => op.apply(from, into, count, kind),
            (Op::User(op), Operand::Elements(_)) => op.apply(from, into, count, &()),
            (op, Operand::Kind(kind)) => apply_predefined(op, *kind, from, into)?,
            (Op::Predefined(op), _) => return Err(Error::NoKind { op: *op }),
        }
        Ok(())
    }

    /// The datatype of one element, if it is to have them side by side.
    fn element(&self) -> Option<Datatype> {
        match self.operand {
            Operand::Kind(kind) => Some(Datatype::predefined(kind)),
            Operand::Elements(datatype) => datatype(),
            Operand::Described(_) => None,
        }
    }
}

/// Bytes of the largest predefined element, with its padding.
const LARGEST: usize = 32;

/// Elements that lie as a datatype says end with the data of the last one.
fn apply_predefined(
    op: &Op,
    kind: ElementKind,
    from: &[u8],
    into: &mut [u8],
) -> Result<(), OpError> {
    let (size, extent) = (kind.size(), kind.extent());
    if size == extent || from.len() % extent != size || into.len() != from.len() {
        return reduce_local(op, kind, from, into);
    }
    let whole = from.len() - size;
    let (into, last_into) = into.split_at_mut(whole);
    reduce_local(op, kind, &from[..whole], into)?;
    let (mut last, mut result) = ([0; LARGEST], [0; LARGEST]);
    last[..size].copy_from_slice(&from[whole..]);
    result[..size].copy_from_slice(last_into);
    reduce_local(op, kind, &last[..extent], &mut result[..extent])?;
    last_into.copy_from_slice(&result[..size]);
    Ok(())
}

/// Memory with elements in it.
#[derive(Debug, Clone)]
struct Area {
    start: *mut u8,
    len: usize,
    /// Where the address of the first element is, in bytes from the start.
    origin: isize,
    elements: Elements,
    /// The blocks that have memory of their own, each with how many elements it has; then there is no other memory.
    apart: Vec<(Area, u64)>,
}

/// The areas of one collective.
pub(crate) struct Memory {
    input: Area,
    output: Area,
    scratch: Area,
    /// The scratch area itself; in units that suit the alignment of all predefined elements.
    _owned: Vec<u128>,
    /// Words that the input and the output name.
    kept: [Vec<u64>; 2],
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

/// Where in an area the bytes of a place are.
enum Spot {
    /// Together: offset and length.
    Span(usize, usize),
    /// As a layout says, whose displacement 0 is this many bytes from the start.
    Layout(Layout, isize),
}

impl Memory {
    /// The memory of a schedule, with the scratch area that it needs.
    pub(crate) fn new(input: Input, output: Output, schedule: &Schedule) -> Result<Self, Error> {
        let kept = [input.kept, output.kept];
        let (input, output) = (input.area, output.area);
        let (len, origin, elements) = match schedule.scratch() {
            Scratch::Elements { count, of } => {
                let like = if of == Buffer::Input { &input } else { &output };
                let (low, high) = like.elements.bounds(count)?;
                (high.abs_diff(low), -low, like.elements.clone())
            }
            Scratch::LargestEntry => {
                let bounds = output.elements.blocks().iter().map(TypedBlock::bounds);
                let mut lens = bounds.map(|bounds| bounds.map(|(low, high)| high.abs_diff(low)));
                let largest = lens.try_fold(0, |most, len| len.map(|len| most.max(len)))?;
                (largest, 0, at_the_start(output.elements.blocks())?)
            }
        };
        let mut owned: Vec<u128> = zeros(len.div_ceil(size_of::<u128>()), len)?;
        let start = owned.as_mut_ptr().cast();
        let scratch = Area { start, len, origin, elements, apart: Vec::new() };
        let memory = Self { input, output, scratch, _owned: owned, kept };
        memory.check(schedule)?;
        Ok(memory)
    }

    /// The words of the output, if it keeps some: for who has no further use for this memory.
    pub(crate) fn take_kept(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.kept[1])
    }

    /// Refuses buffers in which not all places of a schedule are (CM3).
    fn check(&self, schedule: &Schedule) -> Result<(), Error> {
        for buffer in [Buffer::Input, Buffer::Output, Buffer::Scratch] {
            let (area, reach) = (self.area(buffer), schedule.reach(buffer));
            if let (Elements::Plain { size }, Some(Reach { first, count })) =
                (&area.elements, reach)
            {
                area.plain(*size, first, count)?;
            }
        }
        for round in schedule.rounds() {
            for message in round.messages {
                match *message {
                    Message::Send { from: place, .. } | Message::Receive { into: place, .. } => {
                        self.len(place)?;
                    }
                }
            }
            for step in round.local {
                let (Local::Copy { from, into } | Local::Reduce { from, into }) = *step;
                let (from, into) = (self.len(from)?, self.len(into)?);
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
        match (&self.area(place.buffer).elements, place.part) {
            (Elements::Plain { size }, Part::Elements { count, .. }) => Ok(size * count as usize),
            _ => Ok(self.source(place)?.len()),
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
    pub(crate) fn source(&self, place: Place) -> Result<Source, Error> {
        let (area, place) = self.find(place);
        // SAFETY: CM1; `locate` answers what lies inside (CM3), and a layout is checked against the whole area.
        let region = |at, len| unsafe { SendRegion::new(area.start.wrapping_add(at), len) };
        match area.locate(place)? {
            Spot::Span(at, len) => Ok(region(at, len).into()),
            Spot::Layout(layout, origin) => Ok(layout.to_send(region(0, area.len), origin)?),
        }
    }

    /// Where what comes to a place goes.
    pub(crate) fn sink(&self, place: Place) -> Result<Sink, Error> {
        let (area, place) = self.find(place);
        // SAFETY: as in `source`; CM2: nobody else writes the bytes that are named.
        let region = |at, len| unsafe { RecvRegion::new(area.start.wrapping_add(at), len) };
        match area.locate(place)? {
            Spot::Span(at, len) => Ok(region(at, len).into()),
            Spot::Layout(layout, origin) => Ok(layout.to_receive(region(0, area.len), origin)?),
        }
    }

    /// Copies from a place to another one.
    pub(crate) fn copy(&self, from: Place, into: Place) -> Result<(), Error> {
        self.source(from)?.copy_to(&mut self.sink(into)?);
        Ok(())
    }

    /// Combines the elements of two places: `into[i] = from[i] op into[i]`.
    pub(crate) fn reduce(
        &mut self,
        with: &Reduction,
        from: Place,
        into: Place,
    ) -> Result<(), Error> {
        let ((left, here), (right, there)) = (self.find(from), self.find(into));
        if left.is_typed() || right.is_typed() {
            let element = with.element();
            let is_apart =
                |element: &Datatype| !(left.are_each(element) && right.are_each(element));
            if let Some(element) = element.filter(is_apart) {
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
        from: Place,
        into: Place,
    ) -> Result<(), Error> {
        let mut result = packed(&self.source(into)?)?;
        let Some(count) = result.len().checked_div(element.size()) else { return Ok(()) };
        let elements = i64::try_from(count).unwrap_or(i64::MAX);
        let len = count.saturating_mul(element.extent().unsigned_abs());
        let (mut left, mut right) = (zeros(len, len)?, zeros(len, len)?);
        let from = packed(&self.source(from)?)?;
        element.unpack(&from, &mut 0, &mut left, 0, elements)?;
        element.unpack(&result, &mut 0, &mut right, 0, elements)?;
        with.apply(&left, &mut right, count)?;
        element.pack(&right, 0, elements, &mut result, &mut 0)?;
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
        match area.apart.get(rank as usize) {
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

/// So many zeros, which take `len` bytes.
fn zeros<T: Clone + Default>(count: usize, len: usize) -> Result<Vec<T>, Error> {
    let mut zeros = Vec::new();
    zeros.try_reserve_exact(count).map_err(|_| Error::Memory { bytes: len })?;
    zeros.resize(count, T::default());
    Ok(zeros)
}

/// How many elements a place has; one for a block with a datatype of its own.
fn count_of(place: Place) -> u64 {
    match place.part {
        Part::Elements { count, .. } => count,
        Part::Entry(_) => 1,
    }
}

impl Area {
    /// Words whose vector is kept with the area; it is not touched before the collective has ended.
    fn of_words(words: &mut Vec<u64>) -> Self {
        let (len, elements) = (size_of_val(&**words), Elements::Plain { size: size_of::<u64>() });
        Self { start: words.as_mut_ptr().cast(), len, origin: 0, elements, apart: Vec::new() }
    }

    /// Areas that do not belong together.
    fn of_blocks(apart: impl Iterator<Item = (Self, u64)>) -> Self {
        let (start, elements) = (std::ptr::null_mut(), Elements::Plain { size: 0 });
        Self { start, len: 0, origin: 0, elements, apart: apart.collect() }
    }

    fn is_typed(&self) -> bool {
        matches!(self.elements, Elements::Typed(_))
    }

    /// Whether the elements lie as if each were an `element`, side by side.
    fn are_each(&self, element: &Datatype) -> bool {
        match &self.elements {
            Elements::Typed(own) => {
                (own.size(), own.extent()) == (element.size(), element.extent())
                    && own.lower_bound() == element.lower_bound()
            }
            Elements::Plain { .. } | Elements::Blocks(_) => true,
        }
    }

    fn locate(&self, place: Place) -> Result<Spot, Error> {
        match place.part {
            Part::Elements { count: 0, .. } => Ok(Spot::Span(0, 0)),
            Part::Elements { first, count } => match &self.elements {
                Elements::Plain { size } => self.plain(*size, first, count),
                Elements::Typed(datatype) => {
                    let outside = || Error::Buffer { first, count, len: self.len };
                    let skipped = (datatype.extent() as i64).checked_mul(first);
                    let skipped = skipped.and_then(|bytes| isize::try_from(bytes).ok());
                    let origin = skipped.and_then(|bytes| self.origin.checked_add(bytes));
                    self.typed(datatype, count, origin.ok_or_else(outside)?)
                }
                Elements::Blocks(_) => Err(Error::Buffer { first, count, len: self.len }),
            },
            Part::Entry(rank) => match self.elements.blocks().get(rank as usize) {
                Some(TypedBlock { count, displacement, datatype }) => {
                    let origin = self.origin.saturating_add(*displacement);
                    self.typed(datatype, *count, origin)
                }
                None => Err(Error::Buffer { first: rank.into(), count: 1, len: self.len }),
            },
        }
    }

    fn plain(&self, size: usize, first: i64, count: u64) -> Result<Spot, Error> {
        let at = (size as i128) * i128::from(first) + self.origin as i128;
        let end = at + (size as i128) * i128::from(count);
        if at < 0 || end > self.len as i128 {
            return Err(Error::Buffer { first, count, len: self.len });
        }
        Ok(Spot::Span(at as usize, (end - at) as usize))
    }

    /// `count` elements, the first of which has its address `origin` bytes from the start.
    fn typed(&self, datatype: &Datatype, count: u64, origin: isize) -> Result<Spot, Error> {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        let Some((at, len)) = datatype.span(count) else {
            return Ok(Spot::Layout(datatype.layout(count)?, origin));
        };
        let start = origin.checked_add(at).and_then(|at| usize::try_from(at).ok());
        match start.filter(|at| at.checked_add(len).is_some_and(|end| end <= self.len)) {
            Some(at) => Ok(Spot::Span(at, len)),
            None if len == 0 => Ok(Spot::Span(0, 0)),
            None => {
                let low = origin.saturating_add(at);
                let high = low.saturating_add_unsigned(len);
                Err(LayoutError::Outside { low, high, len: self.len }.into())
            }
        }
    }

    /// Where the elements of an operation are: whole ones, with the gaps that their datatype leaves.
    fn elements_at(&self, place: Place) -> Result<(usize, usize), Error> {
        match (&self.elements, place.part) {
            (Elements::Typed(datatype), Part::Elements { first, count }) if count > 0 => {
                // Checked before, so nothing overflows.
                let origin = self.origin + first as isize * datatype.extent();
                let (low, high) = whole_bounds(datatype, count)?;
                let end = origin.saturating_add(high).clamp(0, self.len as isize) as usize;
                let start = origin.saturating_add(low).clamp(0, end as isize) as usize;
                Ok((start, end - start))
            }
            _ => match self.locate(place)? {
                Spot::Span(at, len) => Ok((at, len)),
                Spot::Layout(..) => Err(Error::Buffer { first: 0, count: 1, len: self.len }),
            },
        }
    }
}

impl Elements {
    fn blocks(&self) -> &[TypedBlock] {
        match self {
            Self::Blocks(blocks) => blocks,
            Self::Plain { .. } | Self::Typed(_) => &[],
        }
    }

    /// From which byte to which `count` elements reach, from the address of the first one on.
    fn bounds(&self, count: u64) -> Result<(isize, isize), Error> {
        match self {
            _ if count == 0 => Ok((0, 0)),
            Self::Plain { size } => {
                let bytes = usize::try_from(count).ok().and_then(|count| count.checked_mul(*size));
                let bytes = bytes.and_then(|bytes| isize::try_from(bytes).ok());
                Ok((0, bytes.ok_or(Error::Memory { bytes: usize::MAX })?))
            }
            Self::Typed(datatype) => whole_bounds(datatype, count),
            Self::Blocks(_) => Ok((0, 0)),
        }
    }
}

impl TypedBlock {
    fn bounds(&self) -> Result<(isize, isize), Error> {
        bounds_of(&self.datatype, self.count)
    }
}

fn bounds_of(datatype: &Datatype, count: u64) -> Result<(isize, isize), Error> {
    let count = i64::try_from(count).unwrap_or(i64::MAX);
    Ok(datatype.layout(count)?.bounds())
}

/// From which byte to which whole elements reach, with what lies between and behind their data.
fn whole_bounds(datatype: &Datatype, count: u64) -> Result<(isize, isize), Error> {
    let (low, high) = bounds_of(datatype, count)?;
    let whole = datatype.extent().saturating_mul(isize::try_from(count).unwrap_or(isize::MAX));
    Ok((low.min(0), high.max(whole)))
}

/// The same blocks, each with its lowest byte at the start of the buffer.
fn at_the_start(blocks: &[TypedBlock]) -> Result<Elements, Error> {
    let moved = blocks.iter().map(|block| {
        let displacement = -block.bounds()?.0;
        Ok(TypedBlock { displacement, ..block.clone() })
    });
    Ok(Elements::Blocks(moved.collect::<Result<Vec<_>, Error>>()?.into()))
}

//! A buffer of a collective: memory, and how its elements lie there.

use mpjdev::{Layout, LayoutError};

use super::{Elements, Owned, Plain, Reduction, TypedBlock};
use crate::collective::{Buffer, Part, Place, Scratch};
use crate::datatype::{Datatype, Signature};
use crate::error::Error;
use crate::op::ElementKind;

/// Memory with elements. It is small for plain elements, since calls on few bytes move it more often than those bytes.
#[derive(Debug)]
pub(super) struct Area {
    pub start: *mut u8,
    pub len: usize,
    pub form: Form,
}

/// How the elements of an area lie.
#[derive(Debug)]
pub(super) enum Form {
    /// Contiguous from the start, each of this many bytes.
    Plain(usize),
    /// Anything else.
    Other(Box<Other>),
}

#[derive(Debug)]
pub(super) struct Other {
    /// Where the address of the first element is, in bytes from the start.
    pub origin: isize,
    pub elements: Elements,
    /// Blocks in separate memory, each with its number of elements; then there is no other memory.
    pub apart: Vec<(Area, u64)>,
    /// The memory, if it belongs to the collective.
    pub words: Vec<u64>,
    /// The original datatype, if the elements are packed here.
    pub packed: Option<Datatype>,
}

/// Where the bytes of a place are in an area.
pub(super) enum Spot {
    /// In one span: offset and length.
    Span(usize, usize),
    /// As a layout describes, whose displacement 0 is this many bytes from the start.
    Layout(Layout, isize),
}

impl Default for Area {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl Area {
    pub const EMPTY: Self = Self { start: std::ptr::dangling_mut(), len: 0, form: Form::Plain(0) };

    #[inline]
    pub fn new(start: *mut u8, len: usize, origin: isize, elements: Elements) -> Self {
        match elements {
            Elements::Plain { size } if origin == 0 => Self { start, len, form: Form::Plain(size) },
            elements => Self::other(start, len, Other { origin, ..Other::of(elements) }),
        }
    }

    fn other(start: *mut u8, len: usize, other: Other) -> Self {
        Self { start, len, form: Form::Other(Box::new(other)) }
    }

    /// Makes an area of words that belong to the collective, which nothing else touches before it has ended.
    pub fn of_words(mut words: Vec<u64>) -> Self {
        let (start, len) = (words.as_mut_ptr().cast(), size_of_val(&*words));
        let elements = Elements::Plain { size: size_of::<u64>() };
        Self::other(start, len, Other { words, ..Other::of(elements) })
    }

    /// Returns the same memory with other elements.
    pub fn with(mut self, elements: Elements) -> Self {
        match &mut self.form {
            Form::Plain(_) => Self::new(self.start, self.len, 0, elements),
            Form::Other(other) => {
                (other.elements, other.apart) = (elements, Vec::new());
                self
            }
        }
    }

    /// Makes an area of blocks in separate memory.
    pub fn of_blocks(apart: impl Iterator<Item = (Self, u64)>) -> Self {
        let other = Other::of(Elements::Plain { size: 0 });
        Self::other(std::ptr::null_mut(), 0, Other { apart: apart.collect(), ..other })
    }

    /// Makes the scratch area that a schedule needs. Enlarges `owned` if it is too small.
    pub fn of_scratch(
        needed: Scratch,
        [input, output]: [&Self; 2],
        reduction: Option<&Reduction>,
        owned: &mut Owned,
    ) -> Result<Self, Error> {
        let room_for = |count, other: Other| {
            let (low, high) = other.elements.bounds(count)?;
            let start = aligned(low);
            Ok::<_, Error>((high.abs_diff(start), Other { origin: -start, ..other }))
        };
        let (len, other) = match needed {
            Scratch::Elements { count, of: Buffer::Input } => room_for(count, input.beside()?)?,
            Scratch::Elements { count, .. } => room_for(count, output.beside()?)?,
            Scratch::Operands { count } => {
                let operands = reduction.and_then(Reduction::operands);
                room_for(count, Other::of(operands.expect("only known operands are copied")))?
            }
            Scratch::LargestEntry => {
                let elements = output.elements();
                let bounds = elements.blocks().iter().map(TypedBlock::bounds);
                let mut lens = bounds.map(|bounds| bounds.map(|(low, high)| high.abs_diff(low)));
                let largest = lens.try_fold(0, |most, len| len.map(|len| most.max(len)))?;
                (largest, Other::of(at_the_start(elements.blocks())?))
            }
        };
        let units = len.div_ceil(size_of::<u128>());
        owned.reserve(units, len)?;
        let start = owned.0.as_mut_ptr().cast();
        Ok(match other.elements {
            Elements::Plain { size } => Self { start, len, form: Form::Plain(size) },
            _ => Self::other(start, len, other),
        })
    }

    /// Returns how elements like these lie when those of several ranks are stored side by side. They are packed if
    /// elements overlap the extent of others, as the rows of a matrix stored by columns do, or if they are mostly gaps.
    fn beside(&self) -> Result<Other, Error> {
        let Some(own) = self.datatype() else { return Ok(Other::of(self.elements())) };
        let (size, extent) = (own.size(), own.extent().unsigned_abs());
        if own.true_extent().unsigned_abs() <= extent && extent <= size.saturating_mul(2) {
            return Ok(Other::of(self.elements()));
        }
        let count = i64::try_from(size).unwrap_or(i64::MAX);
        let bytes = Datatype::contiguous(count, &Datatype::predefined(ElementKind::Byte))?;
        Ok(Other { packed: Some(own.clone()), ..Other::of(Elements::Typed(bytes)) })
    }

    /// Returns the original datatype if the elements are packed here.
    pub fn packed(&self) -> Option<&Datatype> {
        match &self.form {
            Form::Other(other) => other.packed.as_ref(),
            Form::Plain(_) => None,
        }
    }

    fn elements(&self) -> Elements {
        match &self.form {
            Form::Plain(size) => Elements::Plain { size: *size },
            Form::Other(other) => other.elements.clone(),
        }
    }

    /// Returns the bytes of an element, if it has no datatype.
    #[inline]
    pub fn plain_size(&self) -> Option<usize> {
        match &self.form {
            Form::Plain(size) => Some(*size),
            Form::Other(other) => match other.elements {
                Elements::Plain { size } => Some(size),
                Elements::Typed(_) | Elements::Blocks(_) => None,
            },
        }
    }

    /// Returns the bytes of data in an element; 0 for blocks with datatypes of their own.
    pub fn data_size(&self) -> usize {
        self.plain_size().or_else(|| self.datatype().map(Datatype::size)).unwrap_or(0)
    }

    /// Returns the datatype of the elements, if they have one.
    pub fn datatype(&self) -> Option<&Datatype> {
        match &self.form {
            Form::Other(other) => match &other.elements {
                Elements::Typed(datatype) => Some(datatype),
                Elements::Plain { .. } | Elements::Blocks(_) => None,
            },
            Form::Plain(_) => None,
        }
    }

    /// Returns the types of the data of a part, if they have datatypes.
    pub fn signature(&self, part: Part) -> Option<Signature> {
        let Form::Other(other) = &self.form else { return None };
        match (&other.elements, part) {
            (Elements::Typed(datatype), Part::Elements { count, .. }) => {
                Some(datatype.signature().repeat(count))
            }
            (elements, Part::Entry(rank)) => {
                let block = elements.blocks().get(rank as usize)?;
                Some(block.datatype.signature().repeat(block.count))
            }
            _ => None,
        }
    }

    /// Returns whether an element here has a byte in common with one in `other`; false where that cannot be told.
    pub fn overlaps(&self, other: &Self) -> bool {
        let (here, there) = (self.start.addr(), other.start.addr());
        if here >= there.saturating_add(other.len) || there >= here.saturating_add(self.len) {
            return false;
        }
        let both = self.layout().zip(other.layout());
        both.is_some_and(|((own, origin), (others, other_origin))| {
            let apart = there.wrapping_sub(here) as isize;
            let places = [(origin, own.clone()), (apart.saturating_add(other_origin), others)];
            own.is_disjoint() && Layout::list(places).is_ok_and(|both| !both.is_disjoint())
        })
    }

    /// Returns how the bytes of all elements lie in the memory, and where their displacement 0 is, in bytes from the
    /// start.
    fn layout(&self) -> Option<(Layout, isize)> {
        match self.datatype() {
            // The memory goes from the first byte of the first element to the last one of the last.
            Some(datatype) => {
                let gaps = self.len.checked_sub(datatype.true_extent().unsigned_abs())?;
                let more = gaps.checked_div(datatype.extent().unsigned_abs()).unwrap_or(0);
                Some((datatype.layout(i64::try_from(more).ok()? + 1).ok()?, self.origin()))
            }
            None => Some((Layout::contiguous(self.plain_size().and(Some(self.len))?).ok()?, 0)),
        }
    }

    /// Returns where the address of the first element is, in bytes from the start.
    #[inline]
    pub fn origin(&self) -> isize {
        match &self.form {
            Form::Plain(_) => 0,
            Form::Other(other) => other.origin,
        }
    }

    /// Returns whether the elements lie as contiguous elements of `element` would.
    pub fn are_each(&self, element: &Datatype) -> bool {
        self.datatype().is_none_or(|own| {
            (own.size(), own.extent()) == (element.size(), element.extent())
                && own.lower_bound() == element.lower_bound()
        })
    }

    /// Returns its elements, if they are contiguous.
    #[inline(always)]
    pub fn plain_elements(&self) -> Option<Plain> {
        let Form::Plain(size) = self.form else { return None };
        Some(Plain { start: self.start, len: self.len, size })
    }

    /// Returns offset and length of the bytes of a place, in an area of plain elements, if it lies inside. This is the
    /// path of calls on few bytes: two numbers, and no error to be moved.
    #[inline(always)]
    pub fn span(&self, place: &Place) -> Option<(usize, usize)> {
        self.plain_elements()?.span(place)
    }

    /// Returns where the bytes of any place are.
    pub fn locate(&self, place: Place) -> Result<Spot, Error> {
        if let Part::Elements { count: 0, .. } = place.part {
            return Ok(Spot::Span(0, 0));
        }
        let other = match (&self.form, place.part) {
            (Form::Other(other), _) => other,
            (Form::Plain(size), Part::Elements { first, count }) => {
                return self.plain(*size, first, count);
            }
            (Form::Plain(_), Part::Entry(rank)) => return Err(self.no_entry(rank)),
        };
        match (&other.elements, place.part) {
            (Elements::Plain { size }, Part::Elements { first, count }) => {
                self.plain(*size, first, count)
            }
            (Elements::Typed(datatype), Part::Elements { first, count }) => {
                let outside = || Error::Buffer { first, count, len: self.len };
                let skipped = (datatype.extent() as i64).checked_mul(first);
                let skipped = skipped.and_then(|bytes| isize::try_from(bytes).ok());
                let origin = skipped.and_then(|bytes| other.origin.checked_add(bytes));
                self.typed(datatype, count, origin.ok_or_else(outside)?)
            }
            (Elements::Blocks(_), Part::Elements { first, count }) => {
                Err(Error::Buffer { first, count, len: self.len })
            }
            (elements, Part::Entry(rank)) => match elements.blocks().get(rank as usize) {
                Some(TypedBlock { count, displacement, datatype }) => {
                    self.typed(datatype, *count, other.origin.saturating_add(*displacement))
                }
                None => Err(self.no_entry(rank)),
            },
        }
    }

    fn no_entry(&self, rank: u32) -> Error {
        Error::Buffer { first: rank.into(), count: 1, len: self.len }
    }

    pub fn plain(&self, size: usize, first: i64, count: u64) -> Result<Spot, Error> {
        let at = (size as i128) * i128::from(first) + self.origin() as i128;
        let end = at + (size as i128) * i128::from(count);
        if at < 0 || end > self.len as i128 {
            return Err(Error::Buffer { first, count, len: self.len });
        }
        Ok(Spot::Span(at as usize, (end - at) as usize))
    }

    /// Returns where `count` elements are, the first of which has its address `origin` bytes from the start.
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

    /// Returns where the elements of an operation are: from their lowest byte of data on, with the gaps of their datatype.
    pub fn elements_at(&self, place: Place) -> Result<(usize, usize), Error> {
        if let Some(span) = self.span(&place) {
            return Ok(span);
        }
        match (self.datatype(), place.part) {
            (Some(datatype), Part::Elements { first, count }) if count > 0 => {
                // Checked before, so nothing overflows.
                let origin = self.origin() + first as isize * datatype.extent();
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

impl Other {
    fn of(elements: Elements) -> Self {
        Self { origin: 0, elements, apart: Vec::new(), words: Vec::new(), packed: None }
    }
}

impl Elements {
    fn blocks(&self) -> &[TypedBlock] {
        match self {
            Self::Blocks(blocks) => blocks,
            Self::Plain { .. } | Self::Typed(_) => &[],
        }
    }

    /// Returns the range of bytes that `count` elements cover, from the address of the first one.
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

/// Returns the range of bytes that whole elements cover, from their lowest byte of data on, including the gaps between
/// and after their data.
pub(super) fn whole_bounds(datatype: &Datatype, count: u64) -> Result<(isize, isize), Error> {
    let (low, high) = bounds_of(datatype, count)?;
    let whole = datatype.extent().saturating_mul(isize::try_from(count).unwrap_or(isize::MAX));
    Ok((low, high.max(whole)))
}

/// Returns where memory begins in which the addresses of elements are aligned like the memory, if their lowest byte is
/// `low` bytes from those addresses.
pub(super) fn aligned(low: isize) -> isize {
    low & !(align_of::<u128>() as isize - 1)
}

/// Moves each block so that its lowest byte is at the start of the buffer.
fn at_the_start(blocks: &[TypedBlock]) -> Result<Elements, Error> {
    let moved = blocks.iter().map(|block| {
        let displacement = -block.bounds()?.0;
        Ok(TypedBlock { displacement, ..block.clone() })
    });
    Ok(Elements::Blocks(moved.collect::<Result<Vec<_>, Error>>()?.into()))
}

/// Returns this many zeros, which take `len` bytes.
pub(super) fn zeros<T: Clone + Default>(count: usize, len: usize) -> Result<Vec<T>, Error> {
    let mut zeros = Vec::new();
    zeros.try_reserve_exact(count).map_err(|_| Error::Memory { bytes: len })?;
    zeros.resize(count, T::default());
    Ok(zeros)
}

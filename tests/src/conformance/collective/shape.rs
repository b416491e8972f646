//! Where the elements of a case lie: as lists of displacements, by code that has nothing in common with the code under
//! test, and as the datatype that the call gets.

use std::sync::Arc;

use mpicore::collective::Blocks;
use mpicore::datatype::Datatype;
use mpicore::{Elements, TypedBlock};

use super::case::choices;
use super::element::Kind;

choices! {
    /// How the elements of a buffer lie.
    Shape {
        Plain = "plain",
        Typed = "typed",
        Vector = "vector",
        Resized = "resized",
        Indexed = "indexed",
        Struct = "struct",
        Interleaved = "interleaved",
    }
}

/// The byte that fills memory outside of the data.
const MARK: u8 = 0xA7;
/// Bytes before and behind all data.
const MARGIN: usize = 48;
/// Bytes between blocks that have datatypes of their own.
const GAP: isize = 5;

impl Shape {
    /// Whether a datatype is made of several elements, or of one with a gap.
    pub fn is_derived(self) -> bool {
        !matches!(self, Self::Plain | Self::Typed)
    }

    /// How many elements the datatype has.
    pub fn elements(self) -> usize {
        match self {
            Self::Plain | Self::Typed | Self::Resized => 1,
            Self::Vector | Self::Interleaved => 2,
            Self::Struct => 3,
            Self::Indexed => 4,
        }
    }

    /// The shape of a rank's block, where each block has a shape of its own.
    pub fn of_block(self, rank: usize, kind: Kind) -> Self {
        match Self::ALL[(self as usize + rank) % Self::ALL.len()] {
            Self::Plain if kind.has_padding() => Self::Typed,
            shape => shape,
        }
    }
}

/// A shape of elements of one kind.
#[derive(Debug, Clone)]
pub struct Form {
    kind: Kind,
    /// Displacements of the elements of one datatype, in the order of the message.
    displacements: Vec<isize>,
    extent: isize,
    datatype: Option<Datatype>,
}

impl Form {
    /// Makes a form.
    ///
    /// # Panics
    /// When the datatype cannot be made.
    pub fn new(shape: Shape, kind: Kind) -> Self {
        let (one, step) = (kind.datatype(), kind.extent() as isize);
        let bytes = |indices: &[isize]| indices.iter().map(|index| index * step).collect();
        let (displacements, extent, datatype) = match shape {
            Shape::Plain | Shape::Typed => (vec![0], step, Ok(one)),
            Shape::Vector => (bytes(&[0, 3]), 4 * step, Datatype::vector(2, 1, 3, &one)),
            Shape::Resized => (vec![0], 3 * step, one.resized(-step, 3 * step)),
            Shape::Indexed => {
                let datatype = Datatype::indexed(&[1, 2, 1], &[5, 2, 0], &one);
                (bytes(&[5, 2, 3, 0]), 6 * step, datatype)
            }
            Shape::Struct => {
                let places = [3 * step, -2 * step];
                let datatype = Datatype::create_struct(&[1, 2], &places, &[one.clone(), one]);
                (bytes(&[3, -2, -1]), 6 * step, datatype)
            }
            // The second element of each is between the first ones of the next two.
            Shape::Interleaved => {
                let pair = Datatype::indexed(&[1, 1], &[0, 3], &one);
                let datatype = pair.and_then(|pair| pair.resized(0, 2 * step));
                (bytes(&[0, 3]), 2 * step, datatype)
            }
        };
        let datatype = datatype.expect("the datatypes of the suite are legal");
        let datatype = (shape != Shape::Plain).then_some(datatype);
        Self { kind, displacements, extent, datatype }
    }

    /// The datatype; `None` if elements follow each other without gaps.
    pub fn datatype(&self) -> Option<&Datatype> {
        self.datatype.as_ref()
    }

    /// The first byte of the data of `count` datatypes, and the byte behind the last one.
    pub fn bounds(&self, count: usize) -> (isize, isize) {
        if count == 0 {
            return (0, 0);
        }
        let low = self.displacements.iter().min().expect("a datatype has elements");
        let high = self.displacements.iter().max().expect("as above");
        let last = self.extent * (count as isize - 1) + high;
        // The padding of the last element follows its data.
        (*low, last + self.kind.size() as isize)
    }

    /// The offset of each element of `count` datatypes that begin at `at`.
    pub fn places(&self, count: usize, at: isize) -> impl Iterator<Item = usize> + '_ {
        let starts = (0..count as isize).map(move |index| at + index * self.extent);
        let all = starts.flat_map(|start| self.displacements.iter().map(move |one| start + one));
        all.map(place)
    }

    /// Whether elements follow each other without gaps.
    fn is_dense(&self) -> bool {
        self.displacements == [0] && self.extent == self.kind.size() as isize
    }

    fn elements(&self) -> Elements {
        match &self.datatype {
            Some(datatype) => Elements::Typed(datatype.clone()),
            None => Elements::Plain { size: self.kind.size() },
        }
    }
}

/// An offset in the memory.
fn place(offset: isize) -> usize {
    usize::try_from(offset).expect("inside of the memory")
}

/// A block of a buffer.
#[derive(Debug, Clone)]
struct Block {
    form: Arc<Form>,
    /// Datatypes.
    count: usize,
    /// Bytes from the address of the buffer.
    at: isize,
}

/// The blocks of a buffer, and how the call gets them.
#[derive(Debug, Clone)]
pub struct Side {
    blocks: Vec<Block>,
    elements: Elements,
    listed: Option<(Vec<u64>, Vec<i64>)>,
    low: isize,
    high: isize,
}

impl Side {
    /// Blocks with these numbers of datatypes, one behind another.
    pub fn consecutive(form: &Form, counts: &[usize]) -> Self {
        let mut first = 0;
        let places = counts.iter().map(|count| {
            first += *count as isize;
            first - *count as isize
        });
        Self::placed(form, counts, &places.collect::<Vec<_>>(), false)
    }

    /// Blocks in the opposite order with an element between them, some of them before the address of the buffer.
    pub fn scattered(form: &Form, counts: &[usize]) -> Self {
        let mut next = -3;
        let mut places = vec![0; counts.len()];
        for (place, count) in places.iter_mut().zip(counts).rev() {
            *place = next;
            next += *count as isize + 1;
        }
        Self::placed(form, counts, &places, true)
    }

    /// `places` are in datatypes.
    fn placed(form: &Form, counts: &[usize], places: &[isize], is_listed: bool) -> Self {
        let (elements, shared) = (form.elements(), Arc::new(form.clone()));
        let block = |(count, place): (&usize, &isize)| {
            let at = place * form.extent;
            Block { form: shared.clone(), count: *count, at }
        };
        let blocks: Vec<_> = counts.iter().zip(places).map(block).collect();
        let numbers = counts.iter().map(|count| *count as u64).collect();
        let listed = is_listed.then(|| (numbers, places.iter().map(|one| *one as i64).collect()));
        Self::new(blocks, elements, listed)
    }

    /// Blocks with forms of their own, in the opposite order.
    pub fn typed(blocks: Vec<(Form, usize)>) -> Self {
        let mut next = 0;
        let mut placed: Vec<_> = blocks
            .into_iter()
            .rev()
            .map(|(form, count)| {
                let (low, high) = form.bounds(count);
                let at = next - low;
                next += high - low + GAP;
                Block { form: Arc::new(form), count, at }
            })
            .collect();
        placed.reverse();
        let told = placed.iter().map(|block| TypedBlock {
            count: block.count as u64,
            displacement: block.at,
            datatype: block.form.datatype.clone().unwrap_or_else(|| block.form.kind.datatype()),
        });
        let elements = Elements::Blocks(told.collect());
        Self::new(placed, elements, None)
    }

    fn new(blocks: Vec<Block>, elements: Elements, listed: Option<(Vec<u64>, Vec<i64>)>) -> Self {
        let bounds = blocks.iter().filter(|block| block.count > 0).map(|block| {
            let (low, high) = block.form.bounds(block.count);
            (block.at + low, block.at + high)
        });
        let ends =
            |one: (isize, isize), other: (isize, isize)| (one.0.min(other.0), one.1.max(other.1));
        let (low, high) = bounds.reduce(ends).unwrap_or((0, 0));
        Self { blocks, elements, listed, low, high }
    }

    /// How the elements lie, for the call.
    pub fn elements(&self) -> Elements {
        self.elements.clone()
    }

    /// The datatypes of the first block.
    pub fn count(&self) -> u64 {
        self.blocks.first().map_or(0, |block| block.count as u64)
    }

    /// The datatypes of each block.
    pub fn counts(&self) -> Vec<u64> {
        self.blocks.iter().map(|block| block.count as u64).collect()
    }

    /// The blocks, for the call.
    pub fn blocks(&self) -> Blocks<'_> {
        match (&self.listed, &self.elements) {
            (Some((counts, displacements)), _) => Blocks::Listed { counts, displacements },
            (None, Elements::Blocks(_)) => Blocks::Typed { entries: self.blocks.len() },
            (None, _) => Blocks::Equal { count: self.count() },
        }
    }

    /// The number of bytes of all data, with the gaps between them.
    pub fn len(&self) -> usize {
        self.high.abs_diff(self.low)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Where the address of the buffer is, in bytes from the lowest data.
    pub fn origin(&self) -> isize {
        -self.low
    }

    /// Where the data begin in the memory, behind a margin.
    pub fn start(&self) -> usize {
        MARGIN
    }

    /// Memory for it, with margins and without data.
    pub fn blank(&self) -> Vec<u8> {
        vec![MARK; self.len() + 2 * MARGIN]
    }

    /// Puts packed data into a block of `memory`.
    ///
    /// # Panics
    /// When the block has another length.
    pub fn put(&self, memory: &mut [u8], block: usize, data: &[u8]) {
        let Block { form, count, at } = &self.blocks[block];
        let len = count * form.displacements.len() * form.kind.size();
        assert_eq!(data.len(), len, "the block is filled");
        self.put_at(memory, form, *at, data);
    }

    /// Puts packed data at the address of the buffer, in the form of its first block.
    pub fn put_in_front(&self, memory: &mut [u8], data: &[u8]) {
        if let Some(first) = self.blocks.first() {
            self.put_at(memory, &first.form, 0, data);
        }
    }

    fn put_at(&self, memory: &mut [u8], form: &Form, at: isize, data: &[u8]) {
        let size = form.kind.size();
        let mut datatype = at - self.low + MARGIN as isize;
        if data.is_empty() {
            return;
        }
        if form.is_dense() {
            let start = place(datatype);
            return memory[start..start + data.len()].copy_from_slice(data);
        }
        // By indices: iterators and slices take many times as long without optimisation.
        let mut from = 0;
        while from < data.len() {
            for displacement in &form.displacements {
                let into = place(datatype + displacement);
                let mut byte = 0;
                while byte < size {
                    memory[into + byte] = data[from + byte];
                    byte += 1;
                }
                from += size;
            }
            datatype += form.extent;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The datatypes agree with the lists of displacements.
    #[test]
    fn forms_and_datatypes_agree() {
        for (shape, kind) in
            Shape::ALL.iter().flat_map(|shape| Kind::ALL.iter().map(move |kind| (*shape, *kind)))
        {
            let form = Form::new(shape, kind);
            assert_eq!(form.displacements.len(), shape.elements());
            let Some(datatype) = form.datatype() else { continue };
            assert_eq!(datatype.extent(), form.extent, "{shape:?} of {kind:?}");
            assert_eq!(datatype.layout(3).unwrap().bounds(), form.bounds(3));
            assert_eq!(datatype.size(), shape.elements() * kind.size());
        }
    }
}

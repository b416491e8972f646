//! Long reductions: one piece of the elements after the other, so that the temporary memory of a rank is bounded, and
//! what one step has written is still in the caches when the next one reads it. Only elements that are not contiguous, and
//! that consist of several operands each, are copied as a whole, since pieces may end inside of them.

use super::place::check_total;
use super::steps::Steps;
use super::{Buffer, CollectiveError, Part, Place, Scratch};

/// How a rank divides a reduction. All ranks divide it in the same places, whatever their elements are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Division {
    /// The most operands of a piece.
    pub most: u64,
    /// On a rank whose elements are several operands each: how they are copied, so that pieces may end inside of them.
    pub packing: Option<Packing>,
}

/// How elements of several operands each are stored for a reduction: one operand after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Packing {
    /// Number of operands in an element.
    pub operands: u64,
    /// Bytes of data in an operand.
    pub size: usize,
}

impl Division {
    /// All elements at once.
    pub const NONE: Self = Self { most: u64::MAX, packing: None };
}

/// Takes the steps of an algorithm for each piece of `count` elements, of at most `most` elements. The algorithm gets
/// the number of elements of the piece, and names them from 0 on.
pub(super) fn in_pieces(
    steps: &mut dyn Steps,
    (count, most): (u64, u64),
    algorithm: impl Fn(&mut Piece<'_>, u64) -> Result<(), CollectiveError>,
) -> Result<(), CollectiveError> {
    check_total(count, 1)?;
    let mut first = 0;
    while first < count {
        let len = most.min(count - first);
        algorithm(&mut Piece { steps, first }, len)?;
        steps.end_round();
        first += len;
    }
    Ok(())
}

/// The steps for one piece. The scratch area is that of the first piece, which no other exceeds.
pub(super) struct Piece<'a> {
    steps: &'a mut dyn Steps,
    /// The number of the first element of the piece.
    first: u64,
}

impl Piece<'_> {
    /// Returns the place of elements of the piece among all elements.
    fn find(&self, place: Place) -> Place {
        match (place.buffer, place.part) {
            (Buffer::Input | Buffer::Output, Part::Elements { first, count }) => {
                // The total has been checked.
                let first = first.saturating_add_unsigned(self.first);
                Place { part: Part::Elements { first, count }, ..place }
            }
            _ => place,
        }
    }
}

impl Steps for Piece<'_> {
    fn name(&mut self, name: &'static str) {
        self.steps.name(name);
    }

    fn needs(&mut self, scratch: Scratch) {
        if self.first == 0 {
            self.steps.needs(scratch);
        }
    }

    fn send(&mut self, peer: u32, from: Place) {
        self.steps.send(peer, self.find(from));
    }

    fn receive(&mut self, peer: u32, into: Place) {
        self.steps.receive(peer, self.find(into));
    }

    fn copy(&mut self, from: Place, into: Place) {
        self.steps.copy(self.find(from), self.find(into));
    }

    fn reduce(&mut self, from: Place, into: Place) {
        self.steps.reduce(self.find(from), self.find(into));
    }

    fn end_round(&mut self) {
        self.steps.end_round();
    }
}

/// Takes the steps of an algorithm that reduces copies. `used` is how many elements of input and output the rank uses;
/// without input, the operands are in the output. The algorithm names operands instead of elements.
pub(super) fn packed(
    steps: &mut impl Steps,
    packing: Packing,
    [input, output]: [u64; 2],
    algorithm: impl FnOnce(&mut Packed<'_>) -> Result<(), CollectiveError>,
) -> Result<(), CollectiveError> {
    let lens = [input, output].map(|elements| elements.saturating_mul(packing.operands));
    check_total(lens[0].max(lens[1]), 4)?;
    let elements = [input, output];
    let mut copies = Packed { steps, elements, lens, has_begun: false, has_results: false };
    algorithm(&mut copies)?;
    copies.end();
    Ok(())
}

/// The steps of an algorithm on copies, which lie in the scratch area: the input, then the output, then the scratch
/// area of the algorithm.
pub(super) struct Packed<'a> {
    steps: &'a mut dyn Steps,
    /// Numbers of elements of input and output.
    elements: [u64; 2],
    /// Numbers of operands of input and output.
    lens: [u64; 2],
    has_begun: bool,
    /// Whether a step has written the output.
    has_results: bool,
}

impl Packed<'_> {
    /// Requests the memory, and copies the operands.
    fn begin(&mut self, scratch: u64) {
        if std::mem::replace(&mut self.has_begun, true) {
            return;
        }
        let [input, output] = self.lens;
        self.steps.needs(Scratch::Operands { count: input + output + scratch });
        let operands = if input > 0 { Buffer::Input } else { Buffer::Output };
        self.steps.copy(self.original(operands), self.copy_of(operands));
        self.steps.end_round();
    }

    /// Copies the results to the output, if there are any.
    fn end(&mut self) {
        if self.has_results {
            self.steps.end_round();
            self.steps.copy(self.copy_of(Buffer::Output), self.original(Buffer::Output));
        }
    }

    /// Returns the place of all elements that the rank uses of its input or output.
    fn original(&self, buffer: Buffer) -> Place {
        Place::first(buffer, self.elements[usize::from(buffer == Buffer::Output)])
    }

    /// Returns the place of their copies.
    fn copy_of(&self, buffer: Buffer) -> Place {
        self.find(Place::first(buffer, self.lens[usize::from(buffer == Buffer::Output)]))
    }

    /// Returns where operands of the algorithm are.
    fn find(&self, place: Place) -> Place {
        let [input, output] = self.lens;
        let before = match place.buffer {
            Buffer::Input => 0,
            Buffer::Output => input,
            Buffer::Scratch => input + output,
        };
        let Part::Elements { first, count } = place.part else { return place };
        let first = first.saturating_add_unsigned(before);
        Place { buffer: Buffer::Scratch, part: Part::Elements { first, count } }
    }

    /// Returns where the algorithm writes.
    fn find_written(&mut self, place: Place) -> Place {
        self.has_results |= place.buffer == Buffer::Output;
        self.find(place)
    }
}

impl Steps for Packed<'_> {
    fn name(&mut self, name: &'static str) {
        self.steps.name(name);
    }

    fn needs(&mut self, scratch: Scratch) {
        match scratch {
            Scratch::Elements { count, .. } => self.begin(count),
            Scratch::Operands { .. } | Scratch::LargestEntry => {
                unreachable!("reductions need room for their elements")
            }
        }
    }

    fn send(&mut self, peer: u32, from: Place) {
        self.begin(0);
        self.steps.send(peer, self.find(from));
    }

    fn receive(&mut self, peer: u32, into: Place) {
        self.begin(0);
        let into = self.find_written(into);
        self.steps.receive(peer, into);
    }

    fn copy(&mut self, from: Place, into: Place) {
        self.begin(0);
        let into = self.find_written(into);
        self.steps.copy(self.find(from), into);
    }

    fn reduce(&mut self, from: Place, into: Place) {
        self.begin(0);
        let into = self.find_written(into);
        self.steps.reduce(self.find(from), into);
    }

    fn end_round(&mut self) {
        self.steps.end_round();
    }
}

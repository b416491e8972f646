//! What the calls of the accumulate family do with elements of a window.

use crate::datatype::{Basic, Datatype, Signature};
use crate::error::WindowError;
use crate::op::{Class, ElementKind, Op, Predefined, SharedInout, kernel, shared_kernel};

/// A predefined operation on elements of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Update {
    op: Predefined,
    kind: ElementKind,
}

impl Update {
    /// Makes the update of elements with this signature.
    ///
    /// # Errors
    /// [`WindowError::Elements`] if the operation is not defined on them, or if they are not of one kind.
    pub fn new(op: Predefined, elements: &Signature) -> Result<Self, WindowError> {
        let kind = match op {
            // These move bytes.
            Predefined::Replace | Predefined::NoOp => Some(ElementKind::Byte),
            _ => kind_of(elements, op.classes().contains(&Class::Pair)),
        };
        let defined = kind.filter(|kind| Op::from(op).check(*kind).is_ok());
        Ok(Self { op, kind: defined.ok_or(WindowError::Elements { op })? })
    }

    /// Makes the update of elements of one kind; `None` if they have padding, or the operation is not defined on them.
    #[inline]
    pub fn plain(op: Predefined, kind: ElementKind) -> Option<Self> {
        let is_defined = kind.size() == kind.extent() && Op::from(op).check(kind).is_ok();
        is_defined.then_some(Self { op, kind })
    }

    /// Returns it as the bytes of a head.
    pub fn bytes(self) -> [u8; 2] {
        let place = |found: Option<usize>| found.map_or(u8::MAX, |at| at as u8);
        let op = Predefined::ALL.iter().position(|op| *op == self.op);
        let kind = ElementKind::ALL.iter().position(|kind| *kind == self.kind);
        [place(op), place(kind)]
    }

    /// Reads the bytes of a peer.
    pub fn of_bytes([op, kind]: [u8; 2]) -> Option<Self> {
        let (op, kind) =
            (*Predefined::ALL.get(usize::from(op))?, *ElementKind::ALL.get(usize::from(kind))?);
        Op::from(op).check(kind).is_ok().then_some(Self { op, kind })
    }

    /// Returns the operation.
    pub fn op(self) -> Predefined {
        self.op
    }

    /// Returns the bytes of data in an element.
    pub fn size(self) -> usize {
        self.kind.size()
    }

    /// Returns whether the result depends on the origin's elements.
    pub fn needs_data(self) -> bool {
        self.op != Predefined::NoOp
    }

    /// Returns whether the result is the origin's elements.
    pub fn replaces(self) -> bool {
        self.op == Predefined::Replace
    }

    /// Returns whether elements have no padding.
    pub fn is_dense(self) -> bool {
        self.kind.size() == self.kind.extent()
    }

    /// Combines elements without padding with as many in a window, and keeps what was there, if that is wanted.
    pub fn apply_in_place(self, input: &[u8], inout: SharedInout<'_>) {
        if let Some(kernel) = shared_kernel(self.op, self.kind) {
            kernel(input, inout);
        }
    }

    /// Combines packed elements with others of the same number.
    pub fn apply(self, input: &[u8], inout: &mut [u8]) {
        let Some(kernel) = kernel(self.op, self.kind) else { return };
        let (size, extent) = (self.kind.size(), self.kind.extent());
        if size == extent {
            return kernel(input, inout);
        }
        // Pairs with padding are spread, so that they lie as in C.
        let pair = Datatype::predefined(self.kind);
        let mut places = [vec![0; extent], vec![0; extent]];
        for (input, inout) in input.chunks_exact(size).zip(inout.chunks_exact_mut(size)) {
            let [one, other] = &mut places;
            let spread = [(input, &mut *one), (&*inout, &mut *other)]
                .into_iter()
                .try_for_each(|(packed, into)| pair.unpack(packed, &mut 0, into, 0, 1));
            spread.expect("a pair lies inside of its extent");
            kernel(one, other);
            pair.pack(other, 0, 1, inout, &mut 0).expect("as above");
        }
    }
}

/// The kind of MPI_CHAR. The standard has none, but programs combine C's `char` by it, as in reductions.
const CHAR: ElementKind =
    if std::ffi::c_char::MIN == 0 { ElementKind::U8 } else { ElementKind::I8 };

/// Returns whether compare_and_swap can compare elements of this datatype.
pub(super) fn is_compared(element: &Datatype) -> bool {
    let kind = kind_of(element.signature(), false).filter(|kind| kind.size() == element.size());
    kind.is_some_and(is_kind_compared)
}

/// Returns whether compare_and_swap can compare elements of this kind.
pub(super) fn is_kind_compared(kind: ElementKind) -> bool {
    matches!(kind.class(), Class::Integer | Class::Logical | Class::Byte)
}

/// Returns a number of bytes of which elements consist, if all are of one kind. Two integers may be a pair.
pub(super) fn element_size(elements: &Signature) -> Option<usize> {
    let Some(kind) = kind_of(elements, false) else {
        return kind_of(elements, true).map(ElementKind::size);
    };
    let in_pair = if elements.elements() % 2 == 0 { 2 } else { 1 };
    Some(in_pair * kind.size())
}

/// Returns the kind of elements that are all of one kind; with `pairs`, of pairs of value and index.
fn kind_of(elements: &Signature, pairs: bool) -> Option<ElementKind> {
    if pairs {
        let are_all = |kind: &ElementKind| {
            let pair = Datatype::predefined(*kind);
            kind.class() == Class::Pair
                && pair.signature().repeat(elements.elements() / 2) == *elements
        };
        return ElementKind::ALL.into_iter().find(are_all);
    }
    let mut first = None;
    let visited = elements.each_run(&mut |basic, _| {
        let kind = basic.kind().or((basic == Basic::Char).then_some(CHAR)).ok_or(())?;
        if *first.get_or_insert(kind) == kind { Ok(()) } else { Err(()) }
    });
    first.filter(|_| visited.is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_of_one_kind_are_updated() {
        let (int, double) =
            (Datatype::predefined(ElementKind::I32), Datatype::predefined(ElementKind::F64));
        let rows = Datatype::vector(3, 2, 5, &int).unwrap();
        let update = Update::new(Predefined::Sum, rows.signature()).unwrap();
        assert_eq!(update, Update { op: Predefined::Sum, kind: ElementKind::I32 });
        assert_eq!(Update::of_bytes(update.bytes()), Some(update));
        let both =
            Datatype::create_struct(&[1, 1], &[0, 8], &[int.clone(), double.clone()]).unwrap();
        let op = Predefined::Sum;
        assert_eq!(Update::new(op, both.signature()), Err(WindowError::Elements { op }));
        assert!(
            Update::new(Predefined::Replace, both.signature()).is_ok(),
            "any bytes can be replaced"
        );
        let op = Predefined::Band;
        assert_eq!(Update::new(op, double.signature()), Err(WindowError::Elements { op }));
        let char = Datatype::predefined(Basic::Char);
        assert_eq!(Update::new(Predefined::Max, char.signature()).unwrap().kind.size(), 1);
        assert_eq!([&int, &char, &double, &rows].map(is_compared), [true, true, false, false]);
    }

    #[test]
    fn updates_of_peers_are_checked() {
        let place = |kind| ElementKind::ALL.iter().position(|other| *other == kind).unwrap() as u8;
        let sum = Predefined::ALL.iter().position(|op| *op == Predefined::Sum).unwrap() as u8;
        assert!(Update::of_bytes([sum, place(ElementKind::F32)]).is_some());
        for bytes in [
            [sum, place(ElementKind::TwoInt)],
            [sum, 255],
            [255, 0],
            [Predefined::ALL.len() as u8, 0],
        ] {
            assert_eq!(Update::of_bytes(bytes), None);
        }
    }

    /// Pairs of a value and an index, packed without the padding that they have in memory.
    #[test]
    fn packed_pairs_are_compared() {
        let pair =
            |value: i16, index: i32| [&value.to_ne_bytes()[..], &index.to_ne_bytes()].concat();
        let pairs = Datatype::contiguous(2, &Datatype::predefined(ElementKind::ShortInt)).unwrap();
        let update = Update::new(Predefined::MaxLoc, pairs.signature()).unwrap();
        assert_eq!(update.kind, ElementKind::ShortInt);
        let mut now = [pair(3, 7), pair(4, 7)].concat();
        update.apply(&[pair(5, 1), pair(4, 2)].concat(), &mut now);
        assert_eq!(now, [pair(5, 1), pair(4, 2)].concat());
        update.apply(&[pair(-5, 1), pair(4, 3)].concat(), &mut now);
        assert_eq!(now, [pair(5, 1), pair(4, 2)].concat());
    }
}

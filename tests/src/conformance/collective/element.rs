//! Elements of a case: their size, their values, and the result of operations on two of them, by code that has nothing
//! in common with the code under test.
//!
//! Here elements are *packed*: the bytes of data, without padding. Floating-point numbers are such that all sums and
//! products of a case are exact, so every order of combining them gives the same bits.

use std::sync::OnceLock;

use mpicore::datatype::Datatype;
use mpicore::op::{ElementKind, Predefined};

use super::case::choices;
use crate::conformance::{Numbers, cut};

choices! {
    /// What the elements of a case are.
    Kind {
        I32 = "i32",
        I8 = "i8",
        U16 = "u16",
        I64 = "i64",
        F32 = "f32",
        F64 = "f64",
        TwoInt = "two-int",
        DoubleInt = "double-int",
        Byte = "byte",
        Matrix = "matrix",
    }
}

choices! {
    /// An operation. Those from `left` on are a user's.
    Op {
        Nothing = "none",
        Sum = "sum",
        Prod = "prod",
        Max = "max",
        Min = "min",
        Land = "land",
        Lor = "lor",
        Lxor = "lxor",
        Band = "band",
        Bor = "bor",
        Bxor = "bxor",
        MaxLoc = "maxloc",
        MinLoc = "minloc",
        Left = "left",
        Mixed = "user-xor",
        Product = "matrix-product",
    }
}

/// The field of the entries of matrices: the integers modulo this prime.
const PRIME: i64 = 46_337;

impl Kind {
    /// Bytes of data.
    pub fn size(self) -> usize {
        match self {
            Self::I8 | Self::Byte => 1,
            Self::U16 => 2,
            Self::I32 | Self::F32 => 4,
            Self::I64 | Self::F64 | Self::TwoInt => 8,
            Self::DoubleInt => 12,
            Self::Matrix => 16,
        }
    }

    /// Bytes from one element to the next.
    pub fn extent(self) -> usize {
        if self == Self::DoubleInt { 16 } else { self.size() }
    }

    /// Whether there are bytes between elements that do not belong to them.
    pub fn has_padding(self) -> bool {
        self.extent() != self.size()
    }

    /// The kind under test, which matrices do not have.
    pub fn known(self) -> Option<ElementKind> {
        let kind = match self {
            Self::I32 => ElementKind::I32,
            Self::I8 => ElementKind::I8,
            Self::U16 => ElementKind::U16,
            Self::I64 => ElementKind::I64,
            Self::F32 => ElementKind::F32,
            Self::F64 => ElementKind::F64,
            Self::TwoInt => ElementKind::TwoInt,
            Self::DoubleInt => ElementKind::DoubleInt,
            Self::Byte => ElementKind::Byte,
            Self::Matrix => return None,
        };
        Some(kind)
    }

    /// The datatype of one element.
    ///
    /// # Panics
    /// When it cannot be made.
    pub fn datatype(self) -> Datatype {
        match self.known() {
            Some(kind) => Datatype::predefined(kind),
            None => {
                let entry = Datatype::predefined(ElementKind::I32);
                Datatype::contiguous(4, &entry).expect("four numbers")
            }
        }
    }

    /// The operations on it.
    pub fn ops(self) -> &'static [Op] {
        const INTEGERS: &[Op] = &[
            Op::Sum,
            Op::Prod,
            Op::Max,
            Op::Min,
            Op::Land,
            Op::Lor,
            Op::Lxor,
            Op::Band,
            Op::Bor,
            Op::Bxor,
            Op::Left,
            Op::Mixed,
        ];
        match self {
            Self::I8 | Self::U16 | Self::I32 | Self::I64 => INTEGERS,
            Self::F32 | Self::F64 => &[Op::Sum, Op::Prod, Op::Max, Op::Min, Op::Left],
            Self::TwoInt | Self::DoubleInt => &[Op::MaxLoc, Op::MinLoc, Op::Left, Op::Mixed],
            Self::Byte => &[Op::Band, Op::Bor, Op::Bxor, Op::Left],
            Self::Matrix => &[Op::Product, Op::Left],
        }
    }

    /// `count` packed elements.
    pub fn data(self, numbers: &mut Numbers, count: usize) -> Vec<u8> {
        static BLOCKS: [OnceLock<Vec<u8>>; Kind::ALL.len()] =
            [const { OnceLock::new() }; Kind::ALL.len()];
        // A prime number, so that blocks of usual lengths differ in their elements.
        const ELEMENTS: usize = 65_521;
        let block = BLOCKS[self as usize].get_or_init(|| self.any(&mut Numbers(1), ELEMENTS));
        cut(block, numbers.below(ELEMENTS) * self.size(), count * self.size())
    }

    /// Elements, each made by itself.
    fn any(self, numbers: &mut Numbers, count: usize) -> Vec<u8> {
        let mut bytes = numbers.bytes(count * self.size());
        match self {
            Self::F32 => each(&mut bytes, |word| (tame(word) as f32).to_le_bytes()),
            Self::F64 => each(&mut bytes, |word| tame(word).to_le_bytes()),
            Self::Matrix => each(&mut bytes, |word: [u8; 4]| {
                { (i64::from(u32::from_le_bytes(word)) % PRIME) as i32 }.to_le_bytes()
            }),
            Self::TwoInt => each(&mut bytes, |word: [u8; 4]| i32::from(word[0] % 8).to_le_bytes()),
            Self::DoubleInt => each(&mut bytes, |word: [u8; 12]| {
                let mut pair = [0; 12];
                pair[..8].copy_from_slice(&f64::from(word[0] % 4).to_le_bytes());
                pair[8] = word[9];
                pair
            }),
            Self::I8 | Self::U16 | Self::I32 | Self::I64 | Self::Byte => {}
        }
        bytes
    }
}

/// Replaces each element.
fn each<const N: usize>(bytes: &mut [u8], make: impl Fn([u8; N]) -> [u8; N]) {
    for element in bytes.chunks_exact_mut(N) {
        let made = make(element.try_into().expect("as long as an element"));
        element.copy_from_slice(&made);
    }
}

/// Half, one or two, of either sign: sums and products of some dozens of them are exact, also in 32 bits.
fn tame<const N: usize>(word: [u8; N]) -> f64 {
    let size = [0.5, 1.0, 2.0][usize::from(word[0]) % 3];
    if word[1] % 2 == 0 { size } else { -size }
}

impl Op {
    /// The operation of MPI, where it is one.
    pub fn predefined(self) -> Option<Predefined> {
        let op = match self {
            Self::Sum => Predefined::Sum,
            Self::Prod => Predefined::Prod,
            Self::Max => Predefined::Max,
            Self::Min => Predefined::Min,
            Self::Land => Predefined::Land,
            Self::Lor => Predefined::Lor,
            Self::Lxor => Predefined::Lxor,
            Self::Band => Predefined::Band,
            Self::Bor => Predefined::Bor,
            Self::Bxor => Predefined::Bxor,
            Self::MaxLoc => Predefined::MaxLoc,
            Self::MinLoc => Predefined::MinLoc,
            Self::Nothing | Self::Left | Self::Mixed | Self::Product => return None,
        };
        Some(op)
    }

    /// Whether MPI defines it.
    pub fn is_predefined(self) -> bool {
        self.predefined().is_some()
    }

    /// Whether the operation is commutative.
    pub fn commutes(self) -> bool {
        !matches!(self, Self::Left | Self::Product)
    }

    /// `right = left op right` for one packed element.
    pub fn combine(self, kind: Kind, left: &[u8], right: &mut [u8]) {
        match self {
            Self::Nothing => {}
            Self::Left => right.copy_from_slice(left),
            Self::Band => right.iter_mut().zip(left).for_each(|(right, left)| *right &= left),
            Self::Bor => right.iter_mut().zip(left).for_each(|(right, left)| *right |= left),
            Self::Bxor | Self::Mixed => {
                right.iter_mut().zip(left).for_each(|(right, left)| *right ^= left);
            }
            Self::Product => product(left, right),
            Self::MaxLoc | Self::MinLoc => {
                if self.prefers(kind, left, right) {
                    right.copy_from_slice(left);
                }
            }
            _ => self.compute(kind, left, right),
        }
    }

    /// Whether the left one of two pairs is the result.
    fn prefers(self, kind: Kind, left: &[u8], right: &[u8]) -> bool {
        let value = |pair: &[u8]| match kind {
            Kind::DoubleInt => f64::from_le_bytes(fixed(&pair[..8])),
            _ => f64::from(i32::from_le_bytes(fixed(&pair[..4]))),
        };
        let index = |pair: &[u8]| i32::from_le_bytes(fixed(&pair[pair.len() - 4..]));
        if value(left) == value(right) {
            return index(left) < index(right);
        }
        (value(left) > value(right)) == (self == Self::MaxLoc)
    }

    /// Arithmetic, order and logic.
    fn compute(self, kind: Kind, left: &[u8], right: &mut [u8]) {
        match kind {
            Kind::F32 => {
                let number = |bytes: &[u8]| f64::from(f32::from_le_bytes(fixed(bytes)));
                let result = self.of_numbers(number(left), number(right)) as f32;
                right.copy_from_slice(&result.to_le_bytes());
            }
            Kind::F64 => {
                let number = |bytes: &[u8]| f64::from_le_bytes(fixed(bytes));
                let result = self.of_numbers(number(left), number(right));
                right.copy_from_slice(&result.to_le_bytes());
            }
            _ => {
                let is_signed = kind != Kind::U16;
                let result = self.of_integers(integer(left, is_signed), integer(right, is_signed));
                let len = right.len();
                right.copy_from_slice(&result.to_le_bytes()[..len]);
            }
        }
    }

    fn of_numbers(self, left: f64, right: f64) -> f64 {
        match self {
            Self::Sum => left + right,
            Self::Prod => left * right,
            Self::Max => left.max(right),
            _ => left.min(right),
        }
    }

    fn of_integers(self, left: i128, right: i128) -> i128 {
        let truths = (left != 0, right != 0);
        match self {
            Self::Sum => left + right,
            Self::Prod => left * right,
            Self::Max => left.max(right),
            Self::Min => left.min(right),
            Self::Land => i128::from(truths.0 && truths.1),
            Self::Lor => i128::from(truths.0 || truths.1),
            _ => i128::from(truths.0 != truths.1),
        }
    }
}

fn fixed<const N: usize>(bytes: &[u8]) -> [u8; N] {
    bytes.try_into().expect("as long as a number")
}

/// An integer of any length.
fn integer(bytes: &[u8], is_signed: bool) -> i128 {
    let is_negative = is_signed && bytes.last().is_some_and(|highest| *highest >= 128);
    let mut wide = [if is_negative { 255 } else { 0 }; 16];
    wide[..bytes.len()].copy_from_slice(bytes);
    i128::from_le_bytes(wide)
}

/// The entries of a matrix of two rows.
fn entries(matrix: &[u8]) -> [i64; 4] {
    [0, 4, 8, 12].map(|at| {
        let entry = [matrix[at], matrix[at + 1], matrix[at + 2], matrix[at + 3]];
        i32::from_le_bytes(entry).into()
    })
}

/// The product of two matrices of two rows.
fn product(left: &[u8], right: &mut [u8]) {
    let ([a, b, c, d], [e, f, g, h]) = (entries(left), entries(right));
    let [i, j, k, l] = [a * e + b * g, a * f + b * h, c * e + d * g, c * f + d * h]
        .map(|entry| ((entry % PRIME) as i32).to_le_bytes());
    right.copy_from_slice(&[i, j, k, l].concat());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_what_they_are_called() {
        let of = |op: Op, kind, left: &[u8], right: &[u8]| {
            let mut result = right.to_vec();
            op.combine(kind, left, &mut result);
            result
        };
        assert_eq!(of(Op::Sum, Kind::I8, &[100], &[100]), [200], "it wraps");
        assert_eq!(of(Op::Prod, Kind::U16, &[255, 255], &[2, 0]), [254, 255]);
        assert_eq!(of(Op::Max, Kind::I8, &[255], &[1]), [1], "-1 is less");
        assert_eq!(of(Op::Max, Kind::U16, &[255, 255], &[1, 0]), [255, 255]);
        assert_eq!(of(Op::Lxor, Kind::I8, &[2], &[3]), [0]);
        let pair = |value: i32, index: i32| [value.to_le_bytes(), index.to_le_bytes()].concat();
        let loc = |op, left: &[u8], right: &[u8]| of(op, Kind::TwoInt, left, right);
        assert_eq!(loc(Op::MaxLoc, &pair(4, 9), &pair(4, 2)), pair(4, 2));
        assert_eq!(loc(Op::MinLoc, &pair(3, 9), &pair(4, 2)), pair(3, 9));
        let matrix = |entries: [i32; 4]| entries.map(i32::to_le_bytes).concat();
        let (one, other) = (matrix([0, 1, 0, 0]), matrix([0, 0, 1, 0]));
        assert_eq!(of(Op::Product, Kind::Matrix, &one, &other), matrix([1, 0, 0, 0]));
        assert_eq!(of(Op::Product, Kind::Matrix, &other, &one), matrix([0, 0, 0, 1]));
    }
}

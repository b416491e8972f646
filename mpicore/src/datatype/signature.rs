//! Type signatures: the basic types of a message in order, without their places.
//!
//! Every datatype has one. Receives compare theirs with the sender's, `MPI_Get_elements` counts in them, and
//! `external.rs` converts run by run. The memory of a signature grows with the constructors of its type, not with the
//! elements.

use std::fmt;
use std::sync::Arc;

use super::Basic;
use crate::op::ElementKind;

/// The modulus of fingerprints, a prime.
const PRIME: u128 = (1 << 61) - 1;
/// The base of fingerprints: an arbitrary number below the modulus that is not a small power.
const BASE: u64 = 0x0b47_1c5e_93d2_6a1f;

/// The sequence of basic types of a datatype, or of several elements of it (MPI-4.1 section 5.1).
///
/// ```
/// use mpicore::datatype::Datatype;
/// use mpicore::op::ElementKind;
///
/// let int = Datatype::predefined(ElementKind::I32);
/// let (row, column) = (Datatype::contiguous(6, &int)?, Datatype::vector(2, 3, 7, &int)?);
/// assert_eq!(row.signature(), column.signature(), "six integers, wherever they lie");
/// assert!(row.signature().is_received_by(&row.signature().repeat(2)));
/// assert_eq!(row.signature().to_string(), "6 int32_t");
/// # Ok::<(), mpicore::datatype::DatatypeError>(())
/// ```
#[derive(Clone)]
pub struct Signature(Arc<Sequence>);

struct Sequence {
    shape: Shape,
    /// Number of basic types.
    elements: u64,
    /// Number of bytes of data.
    size: u64,
    /// The sequence as the digits of a number to the base [`BASE`], modulo [`PRIME`].
    fingerprint: u64,
}

enum Shape {
    /// This many of one basic type; the number is [`Sequence::elements`].
    Run(Basic),
    /// A sequence, repeated this many times. The sequence itself is neither a run nor a repetition.
    Repeat(Signature, u64),
    /// Sequences one after another, none of them empty.
    List(Box<[Signature]>),
}

impl Signature {
    /// Makes the sequence of `elements` values of one basic type.
    pub(super) fn run(basic: Basic, elements: u64) -> Self {
        if elements == 0 {
            return Self::list(Vec::new());
        }
        let fingerprint = repeated(1, code(basic), elements);
        let size = (basic.size() as u64).saturating_mul(elements);
        Self(Arc::new(Sequence { shape: Shape::Run(basic), elements, size, fingerprint }))
    }

    /// Repeats the sequence `count` times, as for `count` elements of its type.
    ///
    /// The sequence may have any number of elements, but at most 2^64 - 1 are counted.
    pub fn repeat(&self, count: u64) -> Self {
        match &self.0.shape {
            _ if count == 0 => Self::list(Vec::new()),
            _ if count == 1 || self.0.elements == 0 => self.clone(),
            Shape::Run(basic) => Self::run(*basic, self.0.elements.saturating_mul(count)),
            Shape::Repeat(inner, before) => {
                Self::rounds(inner.clone(), before.saturating_mul(count))
            }
            Shape::List(_) => Self::rounds(self.clone(), count),
        }
    }

    fn rounds(inner: Self, count: u64) -> Self {
        let elements = inner.0.elements.saturating_mul(count);
        let size = inner.0.size.saturating_mul(count);
        let fingerprint = repeated(inner.0.elements, inner.0.fingerprint, count);
        let shape = Shape::Repeat(inner, count);
        Self(Arc::new(Sequence { shape, elements, size, fingerprint }))
    }

    /// Joins these sequences. Equal neighbours become a repetition.
    pub(super) fn concat(parts: impl IntoIterator<Item = Self>) -> Self {
        let mut joined: Vec<(Self, u64)> = Vec::new();
        for part in parts.into_iter().filter(|part| part.0.elements > 0) {
            let (stem, count) = part.stem();
            match joined.last_mut() {
                Some((last, before)) if last.is_same_stem(&stem) => {
                    *before = before.saturating_add(count)
                }
                _ => joined.push((stem, count)),
            }
        }
        let mut parts: Vec<_> = joined.iter().map(|(stem, count)| stem.repeat(*count)).collect();
        if parts.len() == 1 { parts.remove(0) } else { Self::list(parts) }
    }

    fn list(parts: Vec<Self>) -> Self {
        let (mut elements, mut size, mut fingerprint) = (0_u64, 0_u64, 0);
        for Self(part) in &parts {
            elements = elements.saturating_add(part.elements);
            size = size.saturating_add(part.size);
            fingerprint = joined(fingerprint, part.elements, part.fingerprint);
        }
        let shape = Shape::List(parts.into());
        Self(Arc::new(Sequence { shape, elements, size, fingerprint }))
    }

    /// Returns the sequence that is repeated, and how often.
    fn stem(&self) -> (Self, u64) {
        match &self.0.shape {
            Shape::Run(basic) => (Self::run(*basic, 1), self.0.elements),
            Shape::Repeat(inner, count) => (inner.clone(), *count),
            Shape::List(_) => (self.clone(), 1),
        }
    }

    fn is_same_stem(&self, other: &Self) -> bool {
        match (&self.0.shape, &other.0.shape) {
            (Shape::Run(one), Shape::Run(another)) => one == another,
            _ => Arc::ptr_eq(&self.0, &other.0),
        }
    }

    /// Returns whether it has bytes, in which elements of any type may lie: `MPI_BYTE`, `MPI_PACKED`, or the type that Rust
    /// has for them.
    pub(crate) fn has_bytes(&self) -> bool {
        let [byte, of_rust] = [ElementKind::Byte, ElementKind::U8].map(Basic::Element);
        match &self.0.shape {
            Shape::Run(basic) => [byte, of_rust, Basic::Packed].contains(basic),
            Shape::Repeat(inner, _) => inner.has_bytes(),
            Shape::List(parts) => parts.iter().any(Self::has_bytes),
        }
    }

    /// Returns the sequence of the first `elements` elements, of which there must be as many.
    pub(crate) fn first(&self, elements: u64) -> Self {
        if elements == self.0.elements {
            return self.clone();
        }
        match &self.0.shape {
            Shape::Run(basic) => Self::run(*basic, elements),
            Shape::Repeat(inner, _) => {
                let (rounds, rest) = (elements / inner.0.elements, elements % inner.0.elements);
                Self::concat([inner.repeat(rounds), inner.first(rest)])
            }
            Shape::List(parts) => {
                let mut left = elements;
                Self::concat(parts.iter().map(|part| {
                    let taken = left.min(part.0.elements);
                    left -= taken;
                    part.first(taken)
                }))
            }
        }
    }

    /// Returns the number of basic types, with pairs counted as two.
    pub fn elements(&self) -> u64 {
        self.0.elements
    }

    /// Returns the bytes of data in them.
    pub fn size(&self) -> u64 {
        self.0.size
    }

    /// Returns a number that is the same for equal sequences, so that ranks can compare theirs without sending them.
    /// Two different sequences of `n` elements have the same fingerprint with a probability of about `n` in 2^61.
    pub fn fingerprint(&self) -> u64 {
        self.0.fingerprint
    }

    /// Returns whether a message of these elements may be received as the elements of `receive`: `receive` must begin
    /// with these elements, or one of the two must consist only of packed bytes and the message must fit (MPI-4.1
    /// section 3.3.1). The time depends on how both were composed, not on the number of elements. A wrong answer is as
    /// unlikely as equal [`fingerprint`](Self::fingerprint)s of different sequences.
    ///
    /// C's `long` matches an integer of 64 bits here, which is more than MPI requires.
    pub fn is_received_by(&self, receive: &Self) -> bool {
        if self.is_packed() || receive.is_packed() {
            return self.size() <= receive.size();
        }
        self.elements() <= receive.elements()
            && receive.fingerprint_of_first(self.elements()) == self.fingerprint()
    }

    /// Returns whether all elements are `MPI_PACKED`.
    fn is_packed(&self) -> bool {
        matches!(self.0.shape, Shape::Run(Basic::Packed))
    }

    /// Returns the fingerprint of the first `elements` elements, of which there must be as many.
    fn fingerprint_of_first(&self, elements: u64) -> u64 {
        if elements == self.0.elements {
            return self.0.fingerprint;
        }
        match &self.0.shape {
            Shape::Run(basic) => repeated(1, code(*basic), elements),
            Shape::Repeat(inner, _) => {
                let (rounds, rest) = (elements / inner.0.elements, elements % inner.0.elements);
                let whole = repeated(inner.0.elements, inner.0.fingerprint, rounds);
                joined(whole, rest, inner.fingerprint_of_first(rest))
            }
            Shape::List(parts) => {
                let (mut left, mut fingerprint) = (elements, 0);
                for part in parts {
                    let taken = left.min(part.0.elements);
                    fingerprint = joined(fingerprint, taken, part.fingerprint_of_first(taken));
                    left -= taken;
                }
                fingerprint
            }
        }
    }

    /// Returns the number of basic types in `bytes` bytes of data: `MPI_Get_elements` (MPI-4.1 section 5.1.11). `None`
    /// if the bytes end inside a basic type, or are more than the sequence has.
    pub fn elements_in(&self, bytes: u64) -> Option<u64> {
        if bytes == self.0.size {
            return Some(self.0.elements);
        }
        if bytes > self.0.size {
            return None;
        }
        match &self.0.shape {
            Shape::Run(basic) => {
                let size = basic.size() as u64;
                (bytes % size == 0).then_some(bytes / size)
            }
            Shape::Repeat(inner, _) => {
                let rest = inner.elements_in(bytes % inner.0.size)?;
                Some(bytes / inner.0.size * inner.0.elements + rest)
            }
            Shape::List(parts) => {
                let (mut left, mut elements) = (bytes, 0);
                for part in parts {
                    let taken = left.min(part.0.size);
                    elements += part.elements_in(taken)?;
                    left -= taken;
                }
                Some(elements)
            }
        }
    }

    /// Returns the number of bytes of data in the first `elements` elements, of which there must be as many.
    pub(super) fn size_of_first(&self, elements: u64) -> u64 {
        if elements == self.0.elements {
            return self.0.size;
        }
        match &self.0.shape {
            Shape::Run(basic) => basic.size() as u64 * elements,
            Shape::Repeat(inner, _) => {
                let (rounds, rest) = (elements / inner.0.elements, elements % inner.0.elements);
                rounds * inner.0.size + inner.size_of_first(rest)
            }
            Shape::List(parts) => {
                let (mut left, mut size) = (elements, 0);
                for part in parts {
                    let taken = left.min(part.0.elements);
                    size += part.size_of_first(taken);
                    left -= taken;
                }
                size
            }
        }
    }

    /// Calls `visit` with each run of one basic type and its length, in order, until it fails.
    ///
    /// # Errors
    /// Those of `visit`.
    pub fn each_run<E>(
        &self,
        visit: &mut impl FnMut(Basic, u64) -> Result<(), E>,
    ) -> Result<(), E> {
        match &self.0.shape {
            Shape::Run(basic) => visit(*basic, self.0.elements),
            Shape::Repeat(inner, count) => (0..*count).try_for_each(|_| inner.each_run(visit)),
            Shape::List(parts) => parts.iter().try_for_each(|part| part.each_run(visit)),
        }
    }

    /// Adds up a number for each element, such as its size in another format; `None` if the sum is not below 2^64.
    pub(super) fn sum(&self, of: &impl Fn(Basic) -> u64) -> Option<u64> {
        match &self.0.shape {
            Shape::Run(basic) => of(*basic).checked_mul(self.0.elements),
            Shape::Repeat(inner, count) => inner.sum(of)?.checked_mul(*count),
            Shape::List(parts) => {
                parts.iter().try_fold(0_u64, |sum, part| sum.checked_add(part.sum(of)?))
            }
        }
    }
}

impl PartialEq for Signature {
    /// A wrong answer is as unlikely as equal [`fingerprint`](Self::fingerprint)s of different sequences.
    fn eq(&self, other: &Self) -> bool {
        self.0.elements == other.0.elements && self.0.fingerprint == other.0.fingerprint
    }
}

impl Eq for Signature {}

impl fmt::Debug for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Signature {
    /// Writes for example `2 times [1 double, 3 char]`; of long lists, the first entries.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 8;
        match &self.0.shape {
            Shape::Run(basic) => write!(f, "{} {basic}", self.0.elements),
            Shape::Repeat(inner, count) => write!(f, "{count} times {inner}"),
            Shape::List(parts) => {
                write!(f, "[")?;
                for (index, part) in parts.iter().take(SHOWN).enumerate() {
                    write!(f, "{}{part}", if index > 0 { ", " } else { "" })?;
                }
                if parts.len() > SHOWN {
                    write!(f, ", and {} more", parts.len() - SHOWN)?;
                }
                write!(f, "]")
            }
        }
    }
}

fn product(one: u64, other: u64) -> u64 {
    (u128::from(one) * u128::from(other) % PRIME) as u64
}

fn sum(one: u64, other: u64) -> u64 {
    ((u128::from(one) + u128::from(other)) % PRIME) as u64
}

/// Returns [`BASE`] to the power of `exponent`.
fn power(mut exponent: u64) -> u64 {
    let (mut result, mut square) = (1, BASE);
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = product(result, square);
        }
        square = product(square, square);
        exponent >>= 1;
    }
    result
}

/// Returns the fingerprint of a sequence followed by one of `elements` elements with the fingerprint `next`.
fn joined(first: u64, elements: u64, next: u64) -> u64 {
    sum(product(first, power(elements)), next)
}

/// Returns the fingerprint of a sequence of `elements` elements with this fingerprint, repeated `count` times.
fn repeated(elements: u64, fingerprint: u64, mut count: u64) -> u64 {
    let (mut result, mut doubled, mut shift) = (0, fingerprint, power(elements));
    while count > 0 {
        if count & 1 == 1 {
            result = sum(product(result, shift), doubled);
        }
        doubled = sum(product(doubled, shift), doubled);
        shift = product(shift, shift);
        count >>= 1;
    }
    result
}

/// Returns the digit of a basic type, which is not 0.
fn code(basic: Basic) -> u64 {
    match basic.matched() {
        Basic::Element(kind) => 1 + kind as u64,
        Basic::Char => 0x101,
        Basic::WideChar => 0x102,
        Basic::Packed => 0x103,
        Basic::Logical16 => 0x104,
        Basic::Real16 => 0x105,
        Basic::Complex4 => 0x106,
        Basic::Complex32 => 0x107,
        Basic::Long | Basic::UnsignedLong => unreachable!("`matched` gives their kinds"),
    }
}

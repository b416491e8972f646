//! Ranges of a slice, of any lengths and in any order: MPI_Type_indexed of a slice (MPI-4 section 5.1.2).
//!
//! - IND1: the ranges of an [`Indexed`] and of an [`IndexedMut`] lie inside its slice: [`check`] has looked.

#![expect(unsafe_code, reason = "promises that ranges of slices are buffers")]

use std::fmt;
use std::ops::Range;

use super::borrowed::Borrowed;
use super::{RecvBuffer, SendBuffer, Unit, View};
use crate::datatype::{Datatype, TypeMap, count};
use crate::error::Error;

/// Ranges of a slice, to be sent in this order. One message carries them without a copy of the whole, and any buffer with
/// as many elements can receive them.
///
/// ```
/// use mpj::{Indexed, IndexedMut};
/// mpj::local::run(2, |world| {
///     let mut numbers = [0, 1, 2, 3, 4, 5, 6, 7].map(|number| number + 10 * world.rank());
///     if world.rank() == 0 {
///         world.send(&Indexed::new(&numbers, [5..8, 0..1]).unwrap(), 1, 0).unwrap();
///     } else {
///         world.recv(&mut IndexedMut::new(&mut numbers, [1..3, 6..8]).unwrap(), 0, 0).unwrap();
///         assert_eq!(numbers, [10, 5, 6, 13, 14, 15, 7, 0]);
///     }
/// })?;
/// # Ok::<(), mpj::local::LocalError>(())
/// ```
#[doc(alias("MPI_Type_indexed", "MPI_Type_create_hindexed", "MPI_Type_create_indexed_block"))]
#[derive(Debug, Clone)]
pub struct Indexed<'a, T> {
    memory: &'a [T],
    ranges: Vec<Range<usize>>,
}

/// Ranges of a slice, to receive into in this order. No element may occur twice.
///
/// ```
/// use mpj::IndexedMut;
/// mpj::local::run(1, |world| {
///     let mut numbers = [0; 4];
///     world.isend(vec![1, 2, 3], 0, 0).unwrap();
///     world.recv(&mut IndexedMut::new(&mut numbers, [3..4, 0..2]).unwrap(), 0, 0).unwrap();
///     assert_eq!(numbers, [2, 3, 0, 1]);
///     let mut twice = IndexedMut::new(&mut numbers, [0..2, 1..3]).unwrap();
///     assert!(matches!(world.recv(&mut twice, 0, 0), Err(mpj::Error::Overlap)));
/// })?;
/// # Ok::<(), mpj::local::LocalError>(())
/// ```
#[doc(alias("MPI_Type_indexed", "MPI_Type_create_hindexed", "MPI_Type_create_indexed_block"))]
pub struct IndexedMut<'a, T> {
    memory: Borrowed<'a, [T]>,
    ranges: Vec<Range<usize>>,
}

impl<'a, T: Datatype> Indexed<'a, T> {
    /// Selects these ranges of `slice`.
    ///
    /// # Errors
    /// [`Error::Range`] if one of them is not inside the slice.
    ///
    /// ```
    /// let numbers = [0.0; 10];
    /// assert_eq!(mpj::Indexed::new(&numbers, [8..10, 0..3])?.len(), 5);
    /// assert!(mpj::Indexed::new(&numbers, [8..11]).is_err());
    /// # Ok::<(), mpj::Error>(())
    /// ```
    pub fn new(
        slice: &'a [T],
        ranges: impl IntoIterator<Item = Range<usize>>,
    ) -> Result<Self, Error> {
        Ok(Self { memory: slice, ranges: check(slice.len(), ranges)? })
    }

    /// Returns the number of elements.
    ///
    /// ```
    /// assert_eq!(mpj::Indexed::new(&[1, 2, 3], [0..1, 2..3])?.len(), 2);
    /// # Ok::<(), mpj::Error>(())
    /// ```
    pub fn len(&self) -> usize {
        total(&self.ranges)
    }

    /// Returns whether there are no elements.
    ///
    /// ```
    /// assert!(mpj::Indexed::new(&[1, 2, 3], [1..1])?.is_empty());
    /// # Ok::<(), mpj::Error>(())
    /// ```
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<'a, T: Datatype> IndexedMut<'a, T> {
    /// Selects these ranges of `slice`.
    ///
    /// # Errors
    /// As [`Indexed::new`].
    ///
    /// ```
    /// assert_eq!(mpj::IndexedMut::new(&mut [0; 10], [8..10, 0..3])?.len(), 5);
    /// # Ok::<(), mpj::Error>(())
    /// ```
    pub fn new(
        slice: &'a mut [T],
        ranges: impl IntoIterator<Item = Range<usize>>,
    ) -> Result<Self, Error> {
        let ranges = check(slice.len(), ranges)?;
        Ok(Self { memory: Borrowed::new(slice), ranges })
    }

    /// Returns the number of elements.
    ///
    /// ```
    /// assert_eq!(mpj::IndexedMut::new(&mut [1, 2, 3], [0..1, 2..3])?.len(), 2);
    /// # Ok::<(), mpj::Error>(())
    /// ```
    pub fn len(&self) -> usize {
        total(&self.ranges)
    }

    /// Returns whether there are no elements.
    ///
    /// ```
    /// assert!(mpj::IndexedMut::new(&mut [1, 2, 3], [1..1])?.is_empty());
    /// # Ok::<(), mpj::Error>(())
    /// ```
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Returns the ranges, all of which lie inside a slice of `len` elements (IND1).
fn check(
    len: usize,
    ranges: impl IntoIterator<Item = Range<usize>>,
) -> Result<Vec<Range<usize>>, Error> {
    let inside = |range: Range<usize>| match range.start <= range.end && range.end <= len {
        true => Ok(range),
        false => Err(Error::Range { range, len }),
    };
    ranges.into_iter().map(inside).collect()
}

fn total(ranges: &[Range<usize>]) -> usize {
    // An element that is sent several times counts each time.
    ranges.iter().fold(0, |sum, range| sum.saturating_add(range.len()))
}

/// Describes the ranges as one unit of memory of `len` elements that begins at `start`.
fn view<T: Datatype, P>(start: P, len: usize, ranges: &[Range<usize>]) -> Result<View<P>, Error> {
    let lengths: Vec<i64> = ranges.iter().map(|range| count(range.len())).collect();
    let starts: Vec<i64> = ranges.iter().map(|range| count(range.start)).collect();
    let unit = Unit::Typed(TypeMap::indexed(&lengths, &starts, &T::datatype()?)?);
    let (len, elements_per_unit) = (len * size_of::<T>(), total(ranges));
    Ok(View { start, len, origin: 0, units: 1, elements_per_unit, unit })
}

// SAFETY: BF1: the ranges lie inside the slice (IND1), which is borrowed. BF3: returns itself.
unsafe impl<T: Datatype> SendBuffer for Indexed<'_, T> {
    type Element = T;
    type Memory = Self;

    fn memory(&self) -> &Self {
        self
    }

    fn as_elements(&self) -> Option<&[T]> {
        only(&self.ranges).map(|range| &self.memory[range])
    }

    fn describe(&self) -> Result<View<*const u8>, Error> {
        view::<T, _>(self.memory.as_ptr().cast(), self.memory.len(), &self.ranges)
    }
}

impl<T> fmt::Debug for IndexedMut<'_, T> {
    /// Writes where the elements lie, not the elements.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("IndexedMut").field("ranges", &self.ranges).finish_non_exhaustive()
    }
}

// SAFETY: BF1: as for `Indexed`. BF3: returns itself.
unsafe impl<T: Datatype> SendBuffer for IndexedMut<'_, T> {
    type Element = T;
    type Memory = Self;

    fn memory(&self) -> &Self {
        self
    }

    fn as_elements(&self) -> Option<&[T]> {
        only(&self.ranges).map(|range| &self.memory.get()[range])
    }

    fn describe(&self) -> Result<View<*const u8>, Error> {
        let (start, len) = self.memory.place();
        view::<T, _>(start.cast_const().cast(), len, &self.ranges)
    }
}

// SAFETY: BF2: the ranges lie inside the slice (IND1), which is borrowed exclusively, and DT1 says which bytes may be
// written. BF3: returns itself.
unsafe impl<T: Datatype> RecvBuffer for IndexedMut<'_, T> {
    type MemoryMut = Self;

    fn memory_mut(&mut self) -> &mut Self {
        self
    }

    fn as_elements_mut(&mut self) -> Option<&mut [T]> {
        only(&self.ranges).map(|range| &mut self.memory.get_mut()[range])
    }

    fn describe_mut(&mut self) -> Result<View<*mut u8>, Error> {
        let (start, len) = self.memory.place();
        view::<T, _>(start.cast(), len, &self.ranges)
    }
}

/// Returns the range, if there is only one; then its elements are a slice.
fn only(ranges: &[Range<usize>]) -> Option<Range<usize>> {
    match ranges {
        [range] => Some(range.clone()),
        _ => None,
    }
}

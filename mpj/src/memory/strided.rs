//! Blocks of elements at equal distances in a slice: MPI_Type_vector of a slice (MPI-4 section 5.1.2).
//!
//! - STR1: the blocks of a [`Shape`] lie inside its memory, which begins with the lowest element and ends with the
//!   highest one: [`Shape::place`] checks this.
//! - STR2: the elements that the shape of a [`StridedMut`] names are borrowed exclusively by it, for its lifetime. The
//!   elements between them may belong to other views, so they are never part of a reference.

#![expect(unsafe_code, reason = "promises that blocks of slices are buffers")]

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Bound, Range, RangeBounds};
use std::ptr::NonNull;

use super::{RecvBuffer, SendBuffer, Unit, View};
use crate::datatype::{Datatype, TypeMap, count};
use crate::error::Error;

/// Blocks of elements at equal distances in a slice, to be sent: a column or a block of a matrix, every second
/// element, a reversed slice.
///
/// One message carries them without a copy of the whole. Any buffer with as many elements can receive them.
///
/// ```
/// use mpj::Strided;
/// mpj::local::run(2, |world| {
///     if world.rank() == 0 {
///         let numbers = [0, 1, 2, 3, 4, 5, 6, 7];
///         world.send(&Strided::new(&numbers, 1, 2, 3).unwrap(), 1, 0).unwrap();
///         world.send(&Strided::new(&numbers, 7, -1, 3).unwrap(), 1, 0).unwrap();
///     } else {
///         let mut odd_and_back = [[0; 3]; 2];
///         world.recv(&mut odd_and_back[0], 0, 0).unwrap();
///         world.recv(&mut odd_and_back[1], 0, 0).unwrap();
///         assert_eq!(odd_and_back, [[1, 3, 5], [7, 6, 5]]);
///     }
/// })?;
/// # Ok::<(), mpj::local::LocalError>(())
/// ```
#[doc(alias("MPI_Type_vector", "MPI_Type_create_hvector"))]
#[derive(Debug, Clone, Copy)]
pub struct Strided<'a, T> {
    memory: &'a [T],
    shape: Shape,
}

/// Blocks of elements at equal distances in a slice, to receive into. No element may occur twice.
///
/// ```
/// use mpj::StridedMut;
/// mpj::local::run(2, |world| {
///     let mut numbers = [0; 6];
///     if world.rank() == 0 {
///         world.send(&[1, 2, 3], 1, 0).unwrap();
///     } else {
///         world.recv(&mut StridedMut::new(&mut numbers, 0, 2, 3).unwrap(), 0, 0).unwrap();
///         assert_eq!(numbers, [1, 0, 2, 0, 3, 0]);
///         let mut same = StridedMut::new(&mut numbers, 0, 0, 3).unwrap();
///         assert!(matches!(world.recv(&mut same, 0, 0), Err(mpj::Error::Overlap)));
///     }
/// })?;
/// # Ok::<(), mpj::local::LocalError>(())
/// ```
#[doc(alias("MPI_Type_vector", "MPI_Type_create_hvector"))]
pub struct StridedMut<'a, T> {
    /// The lowest element of the memory.
    start: NonNull<T>,
    /// Number of elements of the memory.
    len: usize,
    shape: Shape,
    borrow: PhantomData<&'a mut [T]>,
}

// SAFETY: STR2: it is an exclusive borrow of its elements, which may change threads.
unsafe impl<T: Send> Send for StridedMut<'_, T> {}
// SAFETY: as above; a shared one only gives shared access to its elements.
unsafe impl<T: Sync> Sync for StridedMut<'_, T> {}

/// Blocks at equal distances, in elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Shape {
    /// Index of the first block's first element in the memory.
    first: usize,
    /// Number of elements of a block.
    block: usize,
    /// Distance from the beginning of a block to that of the next one, in elements.
    step: isize,
    /// Number of blocks.
    count: usize,
}

impl Shape {
    /// Makes the shape of these blocks in a slice of `len` elements, and returns the range of the slice that it covers
    /// (STR1).
    fn place(
        len: usize,
        start: usize,
        block: usize,
        step: isize,
        count: usize,
    ) -> Result<(Self, Range<usize>), Error> {
        if block == 0 || count == 0 {
            return Ok((Self { first: 0, block, step, count }, 0..0));
        }
        let way = step as i128 * (count as i128 - 1);
        let low = start as i128 + way.min(0);
        let high = start as i128 + way.max(0) + block as i128;
        if low < 0 || high > len as i128 {
            return Err(Error::Outside { start, block, step, count, len });
        }
        let (low, high) = (low as usize, high as usize);
        Ok((Self { first: start - low, block, step, count }, low..high))
    }

    /// Returns whether the elements are contiguous and in order; then they are all of the memory.
    fn is_slice(&self) -> bool {
        self.count <= 1 || self.block == 0 || usize::try_from(self.step) == Ok(self.block)
    }

    /// Describes the blocks in their memory of `len` elements, which begins at `start`.
    fn view<T: Datatype, P>(&self, start: P, len: usize) -> Result<View<P>, Error> {
        let Self { first, block, step, count: units } = *self;
        let size = size_of::<T>();
        let mut unit = T::datatype()?;
        if block != 1 {
            unit = TypeMap::contiguous(count(block), &unit)?;
        }
        // A step between two blocks lies inside the memory (STR1). If there are not two, the step may be any number.
        let step = if self.is_slice() { block as isize } else { step };
        let unit = Unit::Typed(unit.resized(0, step.saturating_mul(size as isize))?);
        let (len, origin) = (len * size, first * size);
        Ok(View { start, len, origin, units, elements_per_unit: block, unit })
    }
}

impl<'a, T: Datatype> Strided<'a, T> {
    /// Selects `count` elements of `slice`: the one at `start`, then every `step`th. `step` may be negative.
    ///
    /// # Errors
    /// [`Error::Outside`] if not all of them are in the slice.
    ///
    /// ```
    /// let numbers = [0.0; 10];
    /// assert_eq!(mpj::Strided::new(&numbers, 9, -3, 4)?.len(), 4);
    /// assert!(mpj::Strided::new(&numbers, 9, -3, 5).is_err());
    /// # Ok::<(), mpj::Error>(())
    /// ```
    pub fn new(slice: &'a [T], start: usize, step: isize, count: usize) -> Result<Self, Error> {
        Self::blocks(slice, start, 1, step, count)
    }

    /// Selects `count` blocks of `block` elements of `slice`. The first block begins at `start`, each further one
    /// `step` elements after the one before it (MPI_Type_vector).
    ///
    /// # Errors
    /// As [`Strided::new`].
    ///
    /// ```
    /// let numbers = [0, 1, 2, 3, 4, 5, 6];
    /// assert_eq!(mpj::Strided::blocks(&numbers, 0, 2, 3, 2)?.len(), 4, "0, 1, 3, 4");
    /// # Ok::<(), mpj::Error>(())
    /// ```
    #[doc(alias = "MPI_Type_vector")]
    pub fn blocks(
        slice: &'a [T],
        start: usize,
        block: usize,
        step: isize,
        count: usize,
    ) -> Result<Self, Error> {
        let (shape, covered) = Shape::place(slice.len(), start, block, step, count)?;
        Ok(Self { memory: &slice[covered], shape })
    }

    /// Returns the number of elements.
    ///
    /// ```
    /// assert_eq!(mpj::column(&[1, 2, 3, 4, 5, 6], 3, 0)?.len(), 2);
    /// # Ok::<(), mpj::Error>(())
    /// ```
    pub fn len(&self) -> usize {
        self.shape.block.saturating_mul(self.shape.count)
    }

    /// Returns whether there are no elements.
    ///
    /// ```
    /// assert!(mpj::Strided::new(&[1, 2], 0, 1, 0)?.is_empty());
    /// # Ok::<(), mpj::Error>(())
    /// ```
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<'a, T: Datatype> StridedMut<'a, T> {
    /// Selects elements as [`Strided::new`] does, to receive into.
    ///
    /// # Errors
    /// As [`Strided::new`].
    ///
    /// ```
    /// let mut numbers = [0; 10];
    /// assert_eq!(mpj::StridedMut::new(&mut numbers, 1, 2, 5)?.len(), 5);
    /// # Ok::<(), mpj::Error>(())
    /// ```
    pub fn new(slice: &'a mut [T], start: usize, step: isize, count: usize) -> Result<Self, Error> {
        Self::blocks(slice, start, 1, step, count)
    }

    /// Selects blocks as [`Strided::blocks`] does.
    ///
    /// # Errors
    /// As [`Strided::new`].
    ///
    /// ```
    /// let mut numbers = [0; 10];
    /// assert_eq!(mpj::StridedMut::blocks(&mut numbers, 0, 3, 5, 2)?.len(), 6);
    /// # Ok::<(), mpj::Error>(())
    /// ```
    pub fn blocks(
        slice: &'a mut [T],
        start: usize,
        block: usize,
        step: isize,
        count: usize,
    ) -> Result<Self, Error> {
        // SAFETY: STR2: the whole slice is borrowed exclusively.
        unsafe { Self::of_memory(Memory::of(slice), (start, block, step, count)) }
    }

    /// Makes a view of these blocks in a piece of memory: start, length, step and count, as in [`StridedMut::blocks`].
    ///
    /// # Safety
    /// Nobody else uses the elements of the blocks for the lifetime of the view (STR2).
    unsafe fn of_memory(
        memory: Memory<'a, T>,
        (start, block, step, count): (usize, usize, isize, usize),
    ) -> Result<Self, Error> {
        let (shape, covered) = Shape::place(memory.len, start, block, step, count)?;
        // SAFETY: STR1: the first covered element lies in the memory, or at its end if nothing is covered.
        let start = unsafe { memory.start.add(covered.start) };
        Ok(Self { start, len: covered.len(), shape, borrow: PhantomData })
    }

    /// Returns the number of elements.
    ///
    /// ```
    /// assert_eq!(mpj::column_mut(&mut [1, 2, 3, 4, 5, 6], 3, 0)?.len(), 2);
    /// # Ok::<(), mpj::Error>(())
    /// ```
    pub fn len(&self) -> usize {
        self.shape.block.saturating_mul(self.shape.count)
    }

    /// Returns whether there are no elements.
    ///
    /// ```
    /// assert!(mpj::StridedMut::new(&mut [1, 2], 0, 1, 0)?.is_empty());
    /// # Ok::<(), mpj::Error>(())
    /// ```
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

// SAFETY: BF1: the blocks lie inside the memory (STR1), which is borrowed. BF3: returns itself.
unsafe impl<T: Datatype> SendBuffer for Strided<'_, T> {
    type Element = T;
    type Memory = Self;

    fn memory(&self) -> &Self {
        self
    }

    fn as_elements(&self) -> Option<&[T]> {
        self.shape.is_slice().then_some(self.memory)
    }

    fn describe(&self) -> Result<View<*const u8>, Error> {
        self.shape.view::<T, _>(self.memory.as_ptr().cast(), self.memory.len())
    }
}

impl<T> fmt::Debug for StridedMut<'_, T> {
    /// Writes where the elements lie, not the elements.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("StridedMut").field("shape", &self.shape).finish_non_exhaustive()
    }
}

/// A slice that is borrowed exclusively, to be divided into views.
#[derive(Clone, Copy)]
struct Memory<'a, T> {
    start: NonNull<T>,
    len: usize,
    borrow: PhantomData<&'a [T]>,
}

impl<'a, T> Memory<'a, T> {
    fn of(slice: &'a mut [T]) -> Self {
        let len = slice.len();
        Self { start: NonNull::from(slice).cast(), len, borrow: PhantomData }
    }
}

// SAFETY: BF1: the blocks lie inside the memory (STR1), and are borrowed (STR2). BF3: returns itself.
unsafe impl<T: Datatype> SendBuffer for StridedMut<'_, T> {
    type Element = T;
    type Memory = Self;

    fn memory(&self) -> &Self {
        self
    }

    fn as_elements(&self) -> Option<&[T]> {
        // SAFETY: STR1, STR2: the elements are all of the memory.
        let elements = || unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) };
        self.shape.is_slice().then(elements)
    }

    fn describe(&self) -> Result<View<*const u8>, Error> {
        self.shape.view::<T, _>(self.start.as_ptr().cast_const().cast(), self.len)
    }
}

// SAFETY: BF2: the blocks are borrowed exclusively (STR2), and DT1 says which bytes may be written. BF3: returns
// itself.
unsafe impl<T: Datatype> RecvBuffer for StridedMut<'_, T> {
    type MemoryMut = Self;

    fn memory_mut(&mut self) -> &mut Self {
        self
    }

    fn as_elements_mut(&mut self) -> Option<&mut [T]> {
        let (start, len) = (self.start.as_ptr(), self.len);
        // SAFETY: as in `as_elements`; the borrow is exclusive.
        self.shape.is_slice().then(|| unsafe { std::slice::from_raw_parts_mut(start, len) })
    }

    fn describe_mut(&mut self) -> Result<View<*mut u8>, Error> {
        self.shape.view::<T, _>(self.start.as_ptr().cast(), self.len)
    }
}

/// Selects column `column` of a matrix to be sent. The matrix has `columns` columns and lies row by row in a slice.
///
/// # Errors
/// [`Error::Matrix`] if the slice does not consist of whole rows, or if there is no such column.
///
/// ```
/// mpj::local::run(2, |world| {
///     let mut matrix = [[1, 2, 3], [4, 5, 6]];
///     if world.rank() == 0 {
///         world.send(&mpj::column(matrix.as_flattened(), 3, 1).unwrap(), 1, 0).unwrap();
///     } else {
///         world.recv(&mut mpj::column_mut(matrix.as_flattened_mut(), 3, 2).unwrap(), 0, 0).unwrap();
///         assert_eq!(matrix, [[1, 2, 2], [4, 5, 5]]);
///     }
/// })?;
/// # Ok::<(), mpj::local::LocalError>(())
/// ```
pub fn column<T: Datatype>(
    matrix: &[T],
    columns: usize,
    column: usize,
) -> Result<Strided<'_, T>, Error> {
    block(matrix, columns, .., one(column))
}

/// Selects a column as [`column`](fn@column) does, to receive into.
///
/// # Errors
/// As [`column`](fn@column).
///
/// ```
/// let mut matrix = [0; 6];
/// assert_eq!(mpj::column_mut(&mut matrix, 3, 2)?.len(), 2);
/// assert!(mpj::column_mut(&mut matrix, 3, 3).is_err());
/// # Ok::<(), mpj::Error>(())
/// ```
pub fn column_mut<T: Datatype>(
    matrix: &mut [T],
    columns: usize,
    column: usize,
) -> Result<StridedMut<'_, T>, Error> {
    block_mut(matrix, columns, .., one(column))
}

/// Selects the part of a matrix in these rows and columns to be sent (MPI_Type_create_subarray). The matrix has
/// `columns` columns and lies row by row in a slice.
///
/// # Errors
/// [`Error::Matrix`] if the slice does not consist of whole rows, or if the matrix does not have all these rows and
/// columns.
///
/// ```
/// mpj::local::run(2, |world| {
///     let mut matrix = [[1, 2, 3], [4, 5, 6], [7, 8, 9]];
///     if world.rank() == 0 {
///         world.send(&mpj::block(matrix.as_flattened(), 3, ..2, 1..).unwrap(), 1, 0).unwrap();
///     } else {
///         world.recv(&mut mpj::block_mut(matrix.as_flattened_mut(), 3, 1.., ..2).unwrap(), 0, 0).unwrap();
///         assert_eq!(matrix, [[1, 2, 3], [2, 3, 6], [5, 6, 9]]);
///     }
/// })?;
/// # Ok::<(), mpj::local::LocalError>(())
/// ```
#[doc(alias = "MPI_Type_create_subarray")]
pub fn block<T: Datatype>(
    matrix: &[T],
    columns: usize,
    in_rows: impl RangeBounds<usize>,
    in_columns: impl RangeBounds<usize>,
) -> Result<Strided<'_, T>, Error> {
    let (start, block, count) = part(matrix.len(), columns, in_rows, in_columns)?;
    Strided::blocks(matrix, start, block, columns as isize, count)
}

/// Selects a part as [`block`] does, to receive into.
///
/// # Errors
/// As [`block`].
///
/// ```
/// let mut matrix = [0; 6];
/// assert_eq!(mpj::block_mut(&mut matrix, 3, .., 1..)?.len(), 4);
/// assert!(mpj::block_mut(&mut matrix, 4, .., 1..).is_err(), "6 elements are no rows of 4");
/// # Ok::<(), mpj::Error>(())
/// ```
#[doc(alias = "MPI_Type_create_subarray")]
pub fn block_mut<T: Datatype>(
    matrix: &mut [T],
    columns: usize,
    in_rows: impl RangeBounds<usize>,
    in_columns: impl RangeBounds<usize>,
) -> Result<StridedMut<'_, T>, Error> {
    let (start, block, count) = part(matrix.len(), columns, in_rows, in_columns)?;
    StridedMut::blocks(matrix, start, block, columns as isize, count)
}

/// Divides a matrix into bands of columns of these widths, starting with the first column. The program can receive into
/// all bands at once, or receive into some and send others. The matrix has `columns` columns and lies row by row in a
/// slice.
///
/// # Errors
/// [`Error::Matrix`] if the slice does not consist of whole rows, or if the sum of the widths exceeds the number of
/// columns.
///
/// ```
/// mpj::local::run(2, |world| {
///     let (other, mut matrix) = (1 - world.rank(), [[1, 2, 0], [3, 4, 0]]);
///     let mut bands = mpj::split_columns_mut(matrix.as_flattened_mut(), 3, [1, 1, 1]).unwrap();
///     let [_, send, receive] = &mut bands[..] else { unreachable!() };
///     world.sendrecv(send, other, 0, receive, other, 0).unwrap();
///     assert_eq!(matrix, [[1, 2, 2], [3, 4, 4]]);
/// })?;
/// # Ok::<(), mpj::local::LocalError>(())
/// ```
pub fn split_columns_mut<T: Datatype>(
    matrix: &mut [T],
    columns: usize,
    widths: impl IntoIterator<Item = usize>,
) -> Result<Vec<StridedMut<'_, T>>, Error> {
    let memory = Memory::of(matrix);
    let mut end = 0_usize;
    let band = |width| {
        let start = end;
        end = end.saturating_add(width);
        let (start, block, count) = part(memory.len, columns, .., start..end)?;
        // SAFETY: STR2: the matrix is borrowed exclusively, and the bands lie side by side.
        unsafe { StridedMut::of_memory(memory, (start, block, columns as isize, count)) }
    };
    widths.into_iter().map(band).collect()
}

/// Divides a matrix into the parts in these rows and columns. The program can receive into all parts at once, or
/// receive into some and send others. The matrix has `columns` columns and lies row by row in a slice.
///
/// # Errors
/// [`Error::Matrix`] if the slice does not consist of whole rows, or if the matrix does not contain all of a part;
/// [`Error::Shared`] if two parts have an element in common.
///
/// ```
/// mpj::local::run(2, |world| {
///     let (other, mut matrix) = (1 - world.rank(), [1, 2, 3, 4, 5, 6]);
///     // The middle of the first row, and what is below it.
///     let parts = [(0..1, 1..2), (1..2, 1..2)];
///     let [send, mut receive] = mpj::split_blocks_mut(&mut matrix, 3, parts).unwrap();
///     world.sendrecv(&send, other, 0, &mut receive, other, 0).unwrap();
///     assert_eq!(matrix, [1, 2, 3, 4, 2, 6]);
///     assert!(mpj::split_blocks_mut(&mut matrix, 3, [(0..2, 0..1), (1..2, 0..3)]).is_err());
/// })?;
/// # Ok::<(), mpj::local::LocalError>(())
/// ```
pub fn split_blocks_mut<T: Datatype, const N: usize>(
    matrix: &mut [T],
    columns: usize,
    parts: [(Range<usize>, Range<usize>); N],
) -> Result<[StridedMut<'_, T>; N], Error> {
    for (second, part) in parts.iter().enumerate() {
        let shares = |first: &_| meet(first, part);
        if let Some(first) = parts[..second].iter().position(shares) {
            return Err(Error::Shared { first, second });
        }
    }
    let memory = Memory::of(matrix);
    let views = parts.into_iter().map(|(in_rows, in_columns)| {
        let (start, block, count) = part(memory.len, columns, in_rows, in_columns)?;
        // SAFETY: STR2: the matrix is borrowed exclusively, and no two parts overlap.
        unsafe { StridedMut::of_memory(memory, (start, block, columns as isize, count)) }
    });
    let views = views.collect::<Result<Vec<_>, Error>>()?;
    Ok(views.try_into().expect("there is a view of each part"))
}

/// Returns whether two parts of a matrix, in these rows and columns, have an element in common.
fn meet(one: &(Range<usize>, Range<usize>), other: &(Range<usize>, Range<usize>)) -> bool {
    let both = |a: &Range<usize>, b: &Range<usize>| a.start.max(b.start) < a.end.min(b.end);
    both(&one.0, &other.0) && both(&one.1, &other.1)
}

/// Makes the bounds of one column. It is written without the number of the next column, which may not exist.
fn one(column: usize) -> (Bound<usize>, Bound<usize>) {
    (Bound::Included(column), Bound::Included(column))
}

/// Returns where a part of a matrix begins, the length of its rows, and their number.
fn part(
    len: usize,
    columns: usize,
    in_rows: impl RangeBounds<usize>,
    in_columns: impl RangeBounds<usize>,
) -> Result<(usize, usize, usize), Error> {
    let rows = len.checked_div(columns).unwrap_or(0);
    let inside = (range(in_rows, rows), range(in_columns, columns));
    match inside {
        (Some(in_rows), Some(in_columns)) if rows * columns == len => {
            Ok((in_rows.start * columns + in_columns.start, in_columns.len(), in_rows.len()))
        }
        _ => Err(Error::Matrix { len, columns, rows }),
    }
}

/// Converts bounds to a range below `end`; `None` if they do not lie below it.
fn range(bounds: impl RangeBounds<usize>, end: usize) -> Option<Range<usize>> {
    let from = match bounds.start_bound() {
        Bound::Included(from) => *from,
        Bound::Excluded(before) => before.checked_add(1)?,
        Bound::Unbounded => 0,
    };
    let to = match bounds.end_bound() {
        Bound::Included(last) => last.checked_add(1)?,
        Bound::Excluded(to) => *to,
        Bound::Unbounded => end,
    };
    (from <= to && to <= end).then_some(from..to)
}

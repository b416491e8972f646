//! Ghost cells: an array is divided into those around it, which are received into, and the cells beside them, which are
//! sent to the neighbours for theirs.
//!
//! - HL1: the regions of all ghost parts and the inner cells have no element in common, and the regions of borders lie
//!   among the inner cells. So ghost cells are borrowed exclusively, and inner cells are shared by the borders.
//! - HL2: all regions lie inside the array, which is borrowed exclusively for the lifetime of the views.

#![expect(unsafe_code, reason = "promises that parts of arrays are buffers")]

use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;
use std::ptr::NonNull;

use super::axes::view;
use super::{RecvBuffer, SendBuffer, View};
use crate::datatype::Datatype;
use crate::error::Error;

/// What one neighbour exchanges with this rank; see [`split_halo_mut`].
#[derive(Debug)]
pub struct HaloPart<'a, T, const N: usize> {
    /// Where the neighbour is: -1, 0 or 1 along each axis.
    pub offset: [i32; N],
    /// The inner cells that the neighbour gets, to be sent. Borders of different neighbours overlap.
    pub border: Border<'a, T, N>,
    /// The ghost cells that mirror the neighbour's border, to receive into.
    pub ghost: Ghost<'a, T, N>,
}

/// Inner cells of an array that are sent to one neighbour; see [`split_halo_mut`].
///
/// ```
/// let mut row = [0, 1, 2, 0];
/// let parts = mpj::split_halo_mut(&mut row, [4], 1)?;
/// assert_eq!(mpj::SendBuffer::as_elements(&parts[0].border), Some(&[1][..]));
/// # Ok::<(), mpj::Error>(())
/// ```
pub struct Border<'a, T, const N: usize> {
    region: Region<T, N>,
    borrow: PhantomData<&'a [T]>,
}

/// Ghost cells of an array that are received from one neighbour; see [`split_halo_mut`].
///
/// ```
/// let mut row = [7, 1, 2, 0];
/// let parts = mpj::split_halo_mut(&mut row, [4], 1)?;
/// assert_eq!(mpj::SendBuffer::as_elements(&parts[0].ghost), Some(&[7][..]));
/// # Ok::<(), mpj::Error>(())
/// ```
pub struct Ghost<'a, T, const N: usize> {
    region: Region<T, N>,
    borrow: PhantomData<&'a mut [T]>,
}

// SAFETY: HL1: a shared borrow of its elements.
unsafe impl<T: Sync, const N: usize> Send for Border<'_, T, N> {}
// SAFETY: as above.
unsafe impl<T: Sync, const N: usize> Sync for Border<'_, T, N> {}
// SAFETY: HL1: an exclusive borrow of its elements.
unsafe impl<T: Send, const N: usize> Send for Ghost<'_, T, N> {}
// SAFETY: as above; a shared one only gives shared access to its elements.
unsafe impl<T: Sync, const N: usize> Sync for Ghost<'_, T, N> {}

/// A part of an array.
#[derive(Debug)]
struct Region<T, const N: usize> {
    /// The first element; the start of the array if there is none.
    first: NonNull<T>,
    lengths: [usize; N],
    /// Distances between neighbours along each axis, in elements.
    strides: [usize; N],
}

impl<T, const N: usize> Region<T, N> {
    fn len(&self) -> usize {
        self.lengths.iter().fold(1, |product, length| usize::saturating_mul(product, *length))
    }

    /// Returns whether the elements are adjacent, in their order.
    fn is_slice(&self) -> bool {
        let mut inner = 1;
        let mut axes = self.lengths.iter().zip(&self.strides).rev();
        let is_adjacent = axes.all(|(length, stride)| {
            let is_next = *length <= 1 || *stride == inner;
            inner = usize::saturating_mul(inner, *length);
            is_next
        });
        is_adjacent || self.len() == 0
    }
}

impl<T: Datatype, const N: usize> Region<T, N> {
    fn view<P: Copy>(&self, first: P, moved: impl Fn(P, isize) -> P) -> Result<View<P>, Error> {
        view::<T, _>(first, moved, &self.lengths, &self.strides.map(|stride| stride as isize))
    }
}

/// Divides an array with ghost cells into what is exchanged with each neighbour, so that all of it can be sent and
/// received at the same time. The array lies in a slice, the last axis with adjacent elements. Its lengths `dims` include
/// the ghost cells: `width` at both ends of each axis.
///
/// There is a part for each neighbour, also across edges and corners: 8 in two dimensions, 26 in three, ordered by
/// offset. Stencils without diagonals need only those with [`HaloPart::is_face`].
///
/// # Errors
/// [`Error::Halo`] if the slice has another length, or an axis has less than `width` cells between its ghost cells.
///
/// ```
/// mpj::local::run(4, |world| {
///     let grid = world.create_cartesian(&[2, 2], &[true, true], false).unwrap().unwrap();
///     // Two rows and three columns of cells of this rank, with ghost cells around them.
///     let (rows, columns, me) = (2 + 2, 3 + 2, grid.rank());
///     let mut field = vec![9; rows * columns];
///     for row in 1..rows - 1 {
///         field[row * columns..][1..columns - 1].fill(me);
///     }
///     let outcome: Result<(), mpj::Error> = grid.scope(|scope| {
///         for part in mpj::split_halo_mut(&mut field, [rows, columns], 1)? {
///             let Some(rank) = grid.neighbour(&part.offset)? else { continue };
///             let (sent, received) = (part.send_tag(), part.recv_tag());
///             scope.irecv_view(part.ghost, rank, received)?;
///             scope.isend_view(part.border, rank, sent)?;
///         }
///         Ok(())
///     });
///     outcome.unwrap();
///     let (beside, below, across) = (me ^ 1, me ^ 2, me ^ 3);
///     assert_eq!(field[..5], [across, below, below, below, across]);
///     assert_eq!(field[5..10], [beside, me, me, me, beside]);
/// })?;
/// # Ok::<(), mpj::local::LocalError>(())
/// ```
pub fn split_halo_mut<T: Datatype, const N: usize>(
    array: &mut [T],
    dims: [usize; N],
    width: usize,
) -> Result<Vec<HaloPart<'_, T, N>>, Error> {
    let len = dims.iter().try_fold(1, |all: usize, length| all.checked_mul(*length));
    let is_wide = |length: &usize| width.checked_mul(3).is_some_and(|least| *length >= least);
    if len != Some(array.len()) || !dims.iter().all(is_wide) {
        return Err(Error::Halo { len: array.len(), dims: dims.to_vec(), width });
    }
    let mut strides = [1_usize; N];
    for axis in (1..N).rev() {
        strides[axis - 1] = strides[axis].saturating_mul(dims[axis]);
    }
    let start = NonNull::from(array).cast::<T>();
    let region = |ranges: [Range<usize>; N]| {
        let first = match ranges.iter().any(Range::is_empty) {
            true => 0,
            false => ranges.iter().zip(&strides).map(|(range, by)| range.start * by).sum(),
        };
        // SAFETY: HL2: the ranges lie inside the lengths. So the first element is in the array, or there is none.
        let first = unsafe { start.add(first) };
        Region { first, lengths: ranges.map(|range| range.len()), strides }
    };
    let part = |offset: [i32; N]| {
        let along = |choose: fn(i32, usize, usize) -> Range<usize>| {
            region(std::array::from_fn(|axis| choose(offset[axis], dims[axis], width)))
        };
        HaloPart {
            offset,
            border: Border { region: along(inner_cells), borrow: PhantomData },
            ghost: Ghost { region: along(ghost_cells), borrow: PhantomData },
        }
    };
    Ok(offsets().map(part).collect())
}

/// The ghost cells along one axis that mirror a neighbour in this direction; beside itself, the inner cells.
fn ghost_cells(direction: i32, length: usize, width: usize) -> Range<usize> {
    match direction {
        -1 => 0..width,
        0 => width..length - width,
        _ => length - width..length,
    }
}

/// The inner cells along one axis that a neighbour in this direction mirrors.
fn inner_cells(direction: i32, length: usize, width: usize) -> Range<usize> {
    match direction {
        -1 => width..2 * width,
        0 => width..length - width,
        _ => length - 2 * width..length - width,
    }
}

/// Lists the offsets of all neighbours, in ascending order.
fn offsets<const N: usize>() -> impl Iterator<Item = [i32; N]> {
    let all = (0..3_i32.pow(N as u32)).map(|mut number| {
        let mut offset = [0; N];
        for along in offset.iter_mut().rev() {
            *along = number % 3 - 1;
            number /= 3;
        }
        offset
    });
    all.filter(|offset| *offset != [0; N])
}

impl<T, const N: usize> HaloPart<'_, T, N> {
    /// Returns whether the neighbour lies straight along one axis: it shares a face, not only an edge or a corner.
    ///
    /// ```
    /// let mut field = [0; 16];
    /// let parts = mpj::split_halo_mut(&mut field, [4, 4], 1)?;
    /// assert_eq!(parts.iter().filter(|part| part.is_face()).count(), 4);
    /// # Ok::<(), mpj::Error>(())
    /// ```
    pub fn is_face(&self) -> bool {
        self.offset.iter().filter(|along| **along != 0).count() == 1
    }

    /// Returns a tag for the message with the border: its neighbour's [`recv_tag`](Self::recv_tag). Tags of all parts
    /// differ, so it does not matter if several neighbours are the same rank. They are less than 3 to the power of `N`.
    ///
    /// ```
    /// let mut row = [0; 4];
    /// let [before, after] = &mpj::split_halo_mut(&mut row, [4], 1)?[..] else { unreachable!() };
    /// assert_eq!((before.send_tag(), before.recv_tag()), (after.recv_tag(), after.send_tag()));
    /// # Ok::<(), mpj::Error>(())
    /// ```
    pub fn send_tag(&self) -> i32 {
        self.offset.iter().fold(0, |number, along| 3 * number + along + 1)
    }

    /// Returns the tag of the message for the ghost cells; see [`send_tag`](Self::send_tag).
    ///
    /// ```
    /// let mut row = [0; 4];
    /// assert_eq!(mpj::split_halo_mut(&mut row, [4], 1)?[0].recv_tag(), 2);
    /// # Ok::<(), mpj::Error>(())
    /// ```
    pub fn recv_tag(&self) -> i32 {
        self.offset.iter().fold(0, |number, along| 3 * number + 1 - along)
    }
}

/// Implements [`SendBuffer`] for both views.
macro_rules! sends {
    ($($view:ident)+) => { $(
        // SAFETY: BF1: the elements lie inside the array, which is borrowed (HL1, HL2). BF3: returns itself.
        unsafe impl<T: Datatype, const N: usize> SendBuffer for $view<'_, T, N> {
            type Element = T;
            type Memory = Self;

            fn memory(&self) -> &Self {
                self
            }

            fn as_elements(&self) -> Option<&[T]> {
                let Region { first, .. } = self.region;
                // SAFETY: HL1, HL2: the elements are adjacent, and borrowed for as long as the view is.
                let elements = || unsafe { std::slice::from_raw_parts(first.as_ptr(), self.region.len()) };
                self.region.is_slice().then(elements)
            }

            fn describe(&self) -> Result<View<*const u8>, Error> {
                let first = self.region.first.as_ptr().cast_const().cast();
                self.region.view(first, |first: *const u8, by| first.wrapping_offset(by))
            }
        }

        impl<T, const N: usize> fmt::Debug for $view<'_, T, N> {
            /// Writes where the elements lie, not the elements.
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                let mut view = formatter.debug_struct(stringify!($view));
                view.field("lengths", &self.region.lengths).finish_non_exhaustive()
            }
        }
    )+ };
}

sends!(Border Ghost);

// SAFETY: BF2: the elements are borrowed exclusively (HL1), and DT1 says which bytes may be written. BF3: returns itself.
unsafe impl<T: Datatype, const N: usize> RecvBuffer for Ghost<'_, T, N> {
    type MemoryMut = Self;

    fn memory_mut(&mut self) -> &mut Self {
        self
    }

    fn as_elements_mut(&mut self) -> Option<&mut [T]> {
        let (first, len) = (self.region.first.as_ptr(), self.region.len());
        // SAFETY: HL1, HL2: as in `as_elements`; the borrow is exclusive.
        self.region.is_slice().then(|| unsafe { std::slice::from_raw_parts_mut(first, len) })
    }

    fn describe_mut(&mut self) -> Result<View<*mut u8>, Error> {
        let first = self.region.first.as_ptr().cast();
        self.region.view(first, |first: *mut u8, by| first.wrapping_offset(by))
    }
}

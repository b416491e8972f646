//! Arrays and views of the crate `ndarray`, with any number of axes, any order of them, and any strides.

#![expect(unsafe_code, reason = "promises that arrays are buffers")]

use ndarray::{ArrayBase, Data, DataMut, Dimension};

use super::{RecvBuffer, SendBuffer, Unit, View};
use crate::datatype::{Datatype, TypeMap, count};
use crate::error::Error;

/// The elements of an array whose first one is behind `first`, in the order of its indices: units along axis 0, made
/// from the innermost axis outwards. `moved` moves a pointer by bytes.
fn view<T: Datatype, P: Copy>(
    first: P,
    moved: impl Fn(P, isize) -> P,
    lengths: &[usize],
    strides: &[isize],
) -> Result<View<P>, Error> {
    let size = size_of::<T>() as isize;
    let (units, inner) =
        lengths.split_first().map_or((1, lengths), |(units, inner)| (*units, inner));
    let elements_per_unit =
        inner.iter().fold(1, |product, len| usize::saturating_mul(product, *len));
    let mut unit = T::datatype()?;
    if units == 0 || elements_per_unit == 0 {
        let unit = Unit::Typed(TypeMap::contiguous(0, &unit)?);
        return Ok(View { start: first, len: 0, origin: 0, units, elements_per_unit, unit });
    }
    // What the elements cover: each axis goes from its first one up or down.
    let (mut low, mut high) = (0, size);
    for (len, stride) in lengths.iter().zip(strides) {
        let way = stride * (*len as isize - 1) * size;
        low += way.min(0);
        high += way.max(0);
    }
    let inner_axes = lengths.iter().zip(strides).skip(1);
    for (len, stride) in inner_axes.rev() {
        unit = TypeMap::hvector(count(*len), 1, stride.saturating_mul(size), &unit)?;
    }
    let stride = strides.first().filter(|_| units > 1).copied().unwrap_or(0);
    let unit = Unit::Typed(unit.resized(0, stride * size)?);
    let (start, origin) = (moved(first, low), low.unsigned_abs());
    Ok(View { start, len: (high - low).unsigned_abs(), origin, units, elements_per_unit, unit })
}

// SAFETY: BF1: an array owns or borrows the elements that its lengths and strides say; pointers to its first one reach
// all of them. BF3: itself.
unsafe impl<S, D> SendBuffer for ArrayBase<S, D>
where
    S: Data<Elem: Datatype>,
    D: Dimension,
{
    type Element = S::Elem;
    type Memory = Self;

    fn memory(&self) -> &Self {
        self
    }

    fn as_elements(&self) -> Option<&[S::Elem]> {
        self.as_slice()
    }

    fn describe(&self) -> Result<View<*const u8>, Error> {
        let first = self.as_ptr().cast::<u8>();
        view::<S::Elem, _>(
            first,
            |first, by| first.wrapping_offset(by),
            self.shape(),
            self.strides(),
        )
    }
}

// SAFETY: BF2: as above, borrowed exclusively; an array that shares its elements has made them its own before it gives
// a pointer to write through. DT1 says what may be written. BF3: itself.
unsafe impl<S, D> RecvBuffer for ArrayBase<S, D>
where
    S: DataMut<Elem: Datatype>,
    D: Dimension,
{
    type MemoryMut = Self;

    fn memory_mut(&mut self) -> &mut Self {
        self
    }

    fn as_elements_mut(&mut self) -> Option<&mut [S::Elem]> {
        self.as_slice_mut()
    }

    fn describe_mut(&mut self) -> Result<View<*mut u8>, Error> {
        // First, since it may change the strides.
        let first = self.as_mut_ptr().cast::<u8>();
        view::<S::Elem, _>(
            first,
            |first, by| first.wrapping_offset(by),
            self.shape(),
            self.strides(),
        )
    }
}

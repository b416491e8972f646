//! Elements along several axes, with any stride along each: the layout of arrays and of their parts.

use super::{Unit, View};
use crate::datatype::{Datatype, TypeMap, count};
use crate::error::Error;

/// Describes the elements of an array in the order of its indices: units along axis 0, built from the innermost axis
/// outwards. `first` points to the first element; `moved` moves a pointer by bytes.
pub(super) fn view<T: Datatype, P: Copy>(
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
    // The bytes that the elements cover: along each axis they extend from the first element upwards or downwards.
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

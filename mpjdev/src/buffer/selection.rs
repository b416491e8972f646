//! Which elements of a slice a call moves, and in which order.
//!
//! Calls that write or read elements move one run of neighbours after another.

use std::ops::Range;

use super::error::{BufferError, IllegalArgument};

/// A selection of the elements of a slice.
pub(super) enum Selection<'a> {
    /// All of them.
    All,
    /// The elements with these indexes.
    Indexes(&'a [usize]),
    /// The elements of a multi-strided region.
    Strided(Region<'a>),
}

/// A multi-strided region, with an extent and a stride for each dimension. The last dimension runs fastest.
pub(super) struct Region<'a> {
    offset: usize,
    /// None is negative.
    extents: &'a [isize],
    /// As many as extents.
    strides: &'a [isize],
}

impl Selection<'_> {
    /// Returns how many elements of a slice of `len` elements are selected; the largest number if there are more.
    pub fn count(&self, len: usize) -> usize {
        match self {
            Self::All => len,
            Self::Indexes(indexes) => indexes.len(),
            Self::Strided(region) => region.volume(),
        }
    }

    /// Checks that all selected elements lie in a slice of `len` elements.
    ///
    /// # Errors
    /// [`BufferError::OutOfBounds`], with the first index that is not.
    pub fn check(&self, len: usize) -> Result<(), BufferError> {
        let outside = match self {
            Self::All => None,
            Self::Indexes(indexes) => {
                let outside = indexes.iter().find(|index| **index >= len);
                outside.map(|index| isize::try_from(*index).unwrap_or(isize::MAX))
            }
            Self::Strided(region) => region.outside(len),
        };
        outside.map_or(Ok(()), |index| Err(BufferError::OutOfBounds { index, len }))
    }

    /// Calls `visit` for the selected elements of a slice of `len` elements, in order, in runs of neighbours. The
    /// selection has been checked.
    pub fn for_each_run(&self, len: usize, mut visit: impl FnMut(Range<usize>)) {
        match self {
            Self::All => visit(0..len),
            Self::Indexes(indexes) => indexes.iter().for_each(|&index| visit(index..index + 1)),
            Self::Strided(region) => region.for_each_run(visit),
        }
    }
}

impl<'a> Region<'a> {
    /// Makes the region that begins at `offset` and has `rank` dimensions. Its extents are those of `shape` from
    /// `extents` on, its strides those from `strides` on.
    ///
    /// # Errors
    /// [`IllegalArgument::Rank`], [`IllegalArgument::Extent`].
    pub fn new(
        offset: usize,
        rank: usize,
        extents: usize,
        strides: usize,
        shape: &'a [isize],
    ) -> Result<Self, IllegalArgument> {
        let entries = |from: usize| match rank {
            0 => Ok(&[][..]),
            _ => from
                .checked_add(rank)
                .and_then(|end| shape.get(from..end))
                .ok_or(IllegalArgument::Rank { rank, from, len: shape.len() }),
        };
        let (extents, strides) = (entries(extents)?, entries(strides)?);
        match extents.iter().position(|extent| *extent < 0) {
            Some(dimension) => {
                Err(IllegalArgument::Extent { extent: extents[dimension], dimension })
            }
            None => Ok(Self { offset, extents, strides }),
        }
    }

    /// Returns the number of elements: the product of the extents, or the largest number if the product is larger.
    fn volume(&self) -> usize {
        if self.extents.contains(&0) {
            return 0;
        }
        self.extents
            .iter()
            .fold(1, |volume: usize, extent| volume.saturating_mul(extent.unsigned_abs()))
    }

    /// Returns the lowest index of the region if it is negative, or the highest one if it is not below `len`.
    fn outside(&self, len: usize) -> Option<isize> {
        if self.volume() == 0 {
            return None;
        }
        let (mut lowest, mut highest) = (self.offset as i128, self.offset as i128);
        for (extent, stride) in self.extents.iter().zip(self.strides) {
            let reach = (*extent as i128 - 1) * *stride as i128;
            let end = if reach < 0 { &mut lowest } else { &mut highest };
            *end = end.saturating_add(reach);
        }
        let outside = if lowest < 0 { lowest } else { highest };
        let is_outside = outside < 0 || outside >= len as i128;
        is_outside.then(|| outside.clamp(isize::MIN as i128, isize::MAX as i128) as isize)
    }

    /// [`Selection::for_each_run`]. Every index that is visited lies in the slice, so intermediate results may wrap
    /// around.
    fn for_each_run(&self, mut visit: impl FnMut(Range<usize>)) {
        if self.volume() == 0 {
            return;
        }
        let Some((&extent, extents)) = self.extents.split_last() else {
            return visit(self.offset..self.offset + 1);
        };
        let (stride, strides) = (self.strides[extents.len()], &self.strides[..extents.len()]);
        let mut start = self.offset;
        let mut places = vec![0; extents.len()];
        loop {
            visit_row(start, extent.unsigned_abs(), stride, &mut visit);
            // Move to the next row, in the last dimension that has one.
            let mut dimension = extents.len();
            loop {
                let Some(before) = dimension.checked_sub(1) else { return };
                dimension = before;
                places[dimension] += 1;
                start = start.wrapping_add_signed(strides[dimension]);
                if places[dimension] < extents[dimension] {
                    break;
                }
                places[dimension] = 0;
                let whole = extents[dimension].wrapping_mul(strides[dimension]);
                start = start.wrapping_sub(whole as usize);
            }
        }
    }
}

/// Calls `visit` for the elements of a row, in one run if they are neighbours.
fn visit_row(start: usize, extent: usize, stride: isize, visit: &mut impl FnMut(Range<usize>)) {
    if stride == 1 {
        return visit(start..start + extent);
    }
    let mut index = start;
    for _ in 0..extent {
        visit(index..index.wrapping_add(1));
        index = index.wrapping_add_signed(stride);
    }
}

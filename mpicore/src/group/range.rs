//! Ranges of ranks, as `MPI_Group_range_incl` and `MPI_Group_range_excl` take them.

use std::fmt;

use super::GroupError;

/// The ranks `first`, `first + stride`, ... up to `last`, or down to it with a negative stride
/// (MPI-4.1 section 7.3.2). `last` itself need not be one of them.
///
/// ```
/// use mpicore::group::{Group, RankRange};
/// let odd = Group::world(8).range_incl(&[RankRange { first: 1, last: 7, stride: 2 }])?;
/// assert_eq!(odd.iter().collect::<Vec<_>>(), [1, 3, 5, 7]);
/// let down = odd.range_incl(&[[3, 0, -2].into()])?;
/// assert_eq!(down.iter().collect::<Vec<_>>(), [7, 3]);
/// # Ok::<(), mpicore::group::GroupError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RankRange {
    /// The first rank.
    pub first: i32,
    /// The limit of the range.
    pub last: i32,
    /// The distance from one rank to the next; not 0.
    pub stride: i32,
}

impl RankRange {
    /// Returns the ranks of the range, all of which are ranks of a group of `size` members.
    ///
    /// # Errors
    /// [`GroupError::StrideZero`]; [`GroupError::StrideAway`], in which case the range has no ranks;
    /// [`GroupError::RangeRank`] if the first or the last of its ranks is not a rank of the group.
    pub(super) fn ranks(self, size: u32) -> Result<impl Iterator<Item = u32>, GroupError> {
        let [first, last, stride] = [self.first, self.last, self.stride].map(i64::from);
        if stride == 0 {
            return Err(GroupError::StrideZero(self));
        }
        if (last - first).signum() == -stride.signum() {
            return Err(GroupError::StrideAway(self));
        }
        let steps = (last - first) / stride;
        let mut ends = [first, first + steps * stride].into_iter();
        match ends.find(|end| !(0..i64::from(size)).contains(end)) {
            Some(rank) => Err(GroupError::RangeRank { range: self, rank, size }),
            // All ranks lie between the first and the last one, which are ranks of the group.
            None => Ok((0..=steps).map(move |step| (first + step * stride) as u32)),
        }
    }
}

impl From<[i32; 3]> for RankRange {
    /// Converts MPI's triplet: first, last, stride.
    fn from([first, last, stride]: [i32; 3]) -> Self {
        Self { first, last, stride }
    }
}

impl fmt::Display for RankRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({}, {}, {})", self.first, self.last, self.stride)
    }
}

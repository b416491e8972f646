//! Groups: ordered sets of the job's tasks (MPI-4.1 section 7.3). Communicators translate ranks with them.
//!
//! A group never changes. A *job rank* is the rank of a task in the job, which the device uses; a *rank* is the
//! position of a task in the group. Groups whose job ranks have equal distances, such as the world and every second
//! rank of it, take no memory on the heap; others take eight bytes per member. Finding the job rank of a rank takes
//! constant time in every group. Finding the rank of a job rank takes constant time if the distances are equal, and a
//! binary search otherwise.

mod error;
mod members;
mod range;
#[cfg(test)]
mod tests;

pub use error::GroupError;
pub use range::RankRange;

use members::{Members, Twice};

/// An ordered set of job ranks. A copy shares the memory. Groups are equal if
/// [`compare`](Self::compare) says that they are identical.
///
/// ```
/// use mpicore::group::Group;
/// let world = Group::world(6);
/// let group = world.incl(&[5, 0, 3])?;
/// assert_eq!((group.size(), group.job_rank(0)?, group.rank_of(3)), (3, 5, Some(2)));
/// assert_eq!(world.difference(&group), Group::of_ranks([1, 2, 4])?);
/// # Ok::<(), mpicore::group::GroupError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    members: Members,
}

/// The relation of two groups, the result of `MPI_Group_compare`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Comparison {
    /// The same members in the same order: MPI_IDENT.
    Identical,
    /// The same members in another order: MPI_SIMILAR.
    Similar,
    /// Anything else: MPI_UNEQUAL.
    Unequal,
}

impl Group {
    /// Makes the group of all tasks of a job of `size`, the group of MPI_COMM_WORLD: job rank and rank are the same.
    pub fn world(size: u32) -> Self {
        Self { members: Members::first(size) }
    }

    /// Makes the group without members: MPI_GROUP_EMPTY.
    pub fn empty() -> Self {
        Self::world(0)
    }

    /// Makes the group of these job ranks in this order.
    ///
    /// # Errors
    /// [`GroupError::JobRankTwice`] if a job rank occurs more than once, [`GroupError::JobRank`] if one is `u32::MAX`,
    /// which no task has.
    ///
    /// ```
    /// use mpicore::group::{Group, GroupError};
    /// assert_eq!(Group::of_ranks(0..4)?, Group::world(4));
    /// assert_eq!(Group::of_ranks([2, 7, 2]), Err(GroupError::JobRankTwice { job_rank: 2 }));
    /// # Ok::<(), GroupError>(())
    /// ```
    pub fn of_ranks(job_ranks: impl IntoIterator<Item = u32>) -> Result<Self, GroupError> {
        let mut are_legal = true;
        let legal = job_ranks.into_iter().take_while(|&job_rank| {
            are_legal = job_rank < u32::MAX;
            are_legal
        });
        let members = Members::collect(legal)
            .map_err(|Twice(job_rank)| GroupError::JobRankTwice { job_rank })?;
        if are_legal {
            Ok(Self { members })
        } else {
            Err(GroupError::JobRank { job_rank: u32::MAX })
        }
    }

    /// Makes the group of these job ranks, which must be distinct.
    fn of_distinct(job_ranks: impl Iterator<Item = u32>) -> Self {
        let members = Members::collect(job_ranks).expect("members of groups are taken once each");
        Self { members }
    }

    /// Returns the number of members: MPI_Group_size.
    #[inline]
    pub fn size(&self) -> u32 {
        self.members.len()
    }

    /// Returns whether this is MPI_GROUP_EMPTY.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.size() == 0
    }

    /// Iterates over the job ranks in the order of their ranks.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = u32> + DoubleEndedIterator {
        self.members.iter()
    }

    /// Returns the rank of a task in the group: MPI_Group_rank for the task's own; `None` is MPI_UNDEFINED.
    #[inline]
    pub fn rank_of(&self, job_rank: u32) -> Option<u32> {
        self.members.position(job_rank)
    }

    /// Returns the job rank of the task with this rank.
    ///
    /// # Errors
    /// [`GroupError::Rank`] if no member has this rank.
    #[inline]
    pub fn job_rank(&self, rank: u32) -> Result<u32, GroupError> {
        self.check(rank)?;
        Ok(self.members.value(rank))
    }

    /// Translates `ranks` of this group into ranks of `other`: MPI_Group_translate_ranks. `None` is MPI_UNDEFINED.
    /// MPI_PROC_NULL, which MPI translates to itself, is no rank here; callers handle it.
    ///
    /// # Errors
    /// [`GroupError::Rank`] if no member of this group has one of the ranks.
    ///
    /// ```
    /// use mpicore::group::Group;
    /// let (all, even) = (Group::world(6), Group::of_ranks([0, 2, 4])?);
    /// assert_eq!(all.translate_ranks(&[4, 5, 0], &even)?, [Some(2), None, Some(0)]);
    /// # Ok::<(), mpicore::group::GroupError>(())
    /// ```
    pub fn translate_ranks(
        &self,
        ranks: &[u32],
        other: &Self,
    ) -> Result<Vec<Option<u32>>, GroupError> {
        ranks.iter().map(|&rank| Ok(other.rank_of(self.job_rank(rank)?))).collect()
    }

    /// Compares this group with `other`: MPI_Group_compare.
    pub fn compare(&self, other: &Self) -> Comparison {
        if self == other {
            Comparison::Identical
        } else if self.size() == other.size() && self.iter().all(|member| other.has(member)) {
            Comparison::Similar
        } else {
            Comparison::Unequal
        }
    }

    /// Makes a group of the members of this one in their order, then those of `other` that are not in this one, in
    /// their order: MPI_Group_union.
    ///
    /// ```
    /// use mpicore::group::Group;
    /// let (left, right) = (Group::of_ranks([3, 1])?, Group::of_ranks([2, 1, 0])?);
    /// assert_eq!(left.union(&right), Group::of_ranks([3, 1, 2, 0])?);
    /// # Ok::<(), mpicore::group::GroupError>(())
    /// ```
    pub fn union(&self, other: &Self) -> Self {
        Self::of_distinct(self.iter().chain(other.iter().filter(|&member| !self.has(member))))
    }

    /// Makes a group of the members that are also in `other`, in the order of this group: MPI_Group_intersection.
    pub fn intersection(&self, other: &Self) -> Self {
        Self::of_distinct(self.iter().filter(|&member| other.has(member)))
    }

    /// Makes a group of the members that are not in `other`, in the order of this group: MPI_Group_difference.
    pub fn difference(&self, other: &Self) -> Self {
        Self::of_distinct(self.iter().filter(|&member| !other.has(member)))
    }

    /// Makes a group of the members with `ranks`, in the order of `ranks`: MPI_Group_incl. No ranks give the empty
    /// group.
    ///
    /// # Errors
    /// [`GroupError::Rank`] if no member has one of the ranks, [`GroupError::RankTwice`] if one is named
    /// more than once.
    pub fn incl(&self, ranks: &[u32]) -> Result<Self, GroupError> {
        Ok(self.with(&self.select(ranks)?))
    }

    /// Makes a group of all members except those with `ranks`, in the order of this group: MPI_Group_excl. No ranks
    /// give the group itself.
    ///
    /// # Errors
    /// As [`incl`](Self::incl).
    pub fn excl(&self, ranks: &[u32]) -> Result<Self, GroupError> {
        Ok(self.without(&self.select(ranks)?))
    }

    /// Makes a group of the members that the ranges name, in that order: MPI_Group_range_incl.
    ///
    /// # Errors
    /// [`GroupError::StrideZero`] or [`GroupError::StrideAway`] if a range does not lead from its first to its last
    /// rank, [`GroupError::RangeRank`] if one names a rank that no member has, [`GroupError::RankTwice`] if a rank is
    /// named more than once.
    pub fn range_incl(&self, ranges: &[RankRange]) -> Result<Self, GroupError> {
        Ok(self.with(&self.select_ranges(ranges)?))
    }

    /// Makes a group of all members except those that the ranges name, in the order of this group:
    /// MPI_Group_range_excl.
    ///
    /// # Errors
    /// As [`range_incl`](Self::range_incl).
    ///
    /// ```
    /// use mpicore::group::Group;
    /// let group = Group::world(10).range_excl(&[[0, 9, 4].into(), [2, 1, -1].into()])?;
    /// assert_eq!(group, Group::of_ranks([3, 5, 6, 7, 9])?);
    /// # Ok::<(), mpicore::group::GroupError>(())
    /// ```
    pub fn range_excl(&self, ranges: &[RankRange]) -> Result<Self, GroupError> {
        Ok(self.without(&self.select_ranges(ranges)?))
    }

    fn has(&self, job_rank: u32) -> bool {
        self.rank_of(job_rank).is_some()
    }

    fn check(&self, rank: u32) -> Result<(), GroupError> {
        let size = self.size();
        if rank < size { Ok(()) } else { Err(GroupError::Rank { rank: rank.into(), size }) }
    }

    /// Checks that the listed ranks are distinct ranks of this group.
    fn select(&self, ranks: &[u32]) -> Result<Members, GroupError> {
        ranks.iter().try_for_each(|&rank| self.check(rank))?;
        Members::collect(ranks.iter().copied())
            .map_err(|Twice(rank)| GroupError::RankTwice { rank })
    }

    /// Checks that the ranks in the ranges are distinct ranks of this group.
    fn select_ranges(&self, ranges: &[RankRange]) -> Result<Members, GroupError> {
        let ranks = ranges.iter().map(|range| range.ranks(self.size()));
        let ranks = ranks.collect::<Result<Vec<_>, _>>()?.into_iter().flatten();
        Members::collect(ranks).map_err(|Twice(rank)| GroupError::RankTwice { rank })
    }

    /// Returns the members with these ranks, in the order of the ranks.
    fn with(&self, ranks: &Members) -> Self {
        Self::of_distinct(ranks.iter().map(|rank| self.members.value(rank)))
    }

    /// Returns all members except those with these ranks.
    fn without(&self, ranks: &Members) -> Self {
        let left = (0..self.size()).filter(|&rank| ranks.position(rank).is_none());
        Self::of_distinct(left.map(|rank| self.members.value(rank)))
    }
}

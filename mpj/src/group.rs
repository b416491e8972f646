//! Groups of ranks (MPI-4.1 section 7.3): a typed layer over the groups of the core.

pub use mpicore::group::Comparison;
use mpicore::group::{self, GroupError, RankRange};

use crate::error::Error;

/// An ordered set of ranks of the job. A group never changes, and clones share its memory. A *rank* is a place in the
/// group; a *world rank* is the number of a process in the world.
///
/// ```
/// use mpj::Group;
/// let world = Group::of_ranks(0..6)?;
/// let group = world.incl([5, 0, 3])?;
/// assert_eq!((group.size(), group.world_rank(0)?, group.rank_of(3)), (3, 5, Some(2)));
/// assert_eq!(world.difference(&group), Group::of_ranks([1, 2, 4])?);
/// # Ok::<(), mpj::Error>(())
/// ```
#[doc(alias = "MPI_Group")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    pub(crate) core: group::Group,
}

impl Group {
    /// Makes the group without members: MPI_GROUP_EMPTY.
    ///
    /// ```
    /// assert!(mpj::Group::empty().is_empty());
    /// # Ok::<(), mpj::Error>(())
    /// ```
    #[doc(alias = "MPI_GROUP_EMPTY")]
    pub fn empty() -> Self {
        group::Group::empty().into()
    }

    /// Makes the group of these world ranks, in this order.
    ///
    /// # Errors
    /// A world rank appears more than once.
    ///
    /// ```
    /// let group = mpj::Group::of_ranks([5, 0, 3])?;
    /// assert_eq!(group.world_rank(0)?, 5);
    /// assert!(mpj::Group::of_ranks([1, 1]).is_err());
    /// # Ok::<(), mpj::Error>(())
    /// ```
    pub fn of_ranks(world_ranks: impl IntoIterator<Item = usize>) -> Result<Self, Error> {
        let core = group::Group::of_ranks(world_ranks.into_iter().map(narrowed));
        core.map(Self::from).map_err(Error::from)
    }

    /// Returns the number of members (MPI_Group_size).
    ///
    /// ```
    /// let group = mpj::Group::of_ranks([5, 0, 3])?;
    /// assert_eq!(group.size(), 3);
    /// # Ok::<(), mpj::Error>(())
    /// ```
    #[doc(alias = "MPI_Group_size")]
    pub fn size(&self) -> usize {
        self.core.size() as usize
    }

    /// Returns whether the group has no members.
    ///
    /// ```
    /// let group = mpj::Group::of_ranks([5, 0, 3])?;
    /// assert!(!group.is_empty());
    /// # Ok::<(), mpj::Error>(())
    /// ```
    pub fn is_empty(&self) -> bool {
        self.core.is_empty()
    }

    /// Iterates over the world ranks of the members, in the order of their ranks.
    ///
    /// ```
    /// let group = mpj::Group::of_ranks([5, 0, 3])?;
    /// assert!(group.iter().eq([5, 0, 3]));
    /// # Ok::<(), mpj::Error>(())
    /// ```
    pub fn iter(&self) -> impl ExactSizeIterator<Item = usize> + DoubleEndedIterator {
        self.core.iter().map(|rank| rank as usize)
    }

    /// Returns the rank of a process of the world in this group (MPI_Group_rank), or `None` if it is not a member.
    ///
    /// ```
    /// let group = mpj::Group::of_ranks([5, 0, 3])?;
    /// assert_eq!((group.rank_of(3), group.rank_of(1)), (Some(2), None));
    /// # Ok::<(), mpj::Error>(())
    /// ```
    #[doc(alias = "MPI_Group_rank")]
    pub fn rank_of(&self, world_rank: usize) -> Option<usize> {
        let rank = self.core.rank_of(u32::try_from(world_rank).ok()?);
        rank.map(|rank| rank as usize)
    }

    /// Returns the world rank of the member with this rank.
    ///
    /// # Errors
    /// No member has this rank.
    ///
    /// ```
    /// let group = mpj::Group::of_ranks([5, 0, 3])?;
    /// assert_eq!(group.world_rank(2)?, 3);
    /// assert!(group.world_rank(3).is_err());
    /// # Ok::<(), mpj::Error>(())
    /// ```
    pub fn world_rank(&self, rank: usize) -> Result<usize, Error> {
        let found = u32::try_from(rank).ok().and_then(|rank| self.core.job_rank(rank).ok());
        found.map(|rank| rank as usize).ok_or_else(|| no_rank(&self.core, rank))
    }

    /// Translates `ranks` of this group into ranks of `other` (MPI_Group_translate_ranks). The result has `None` for
    /// each member that is not in `other`.
    ///
    /// # Errors
    /// No member of this group has one of the ranks.
    ///
    /// ```
    /// let group = mpj::Group::of_ranks([5, 0, 3])?;
    /// let other = mpj::Group::of_ranks([3, 4, 5])?;
    /// assert_eq!(group.translate_ranks([0, 1], &other)?, [Some(2), None]);
    /// # Ok::<(), mpj::Error>(())
    /// ```
    #[doc(alias = "MPI_Group_translate_ranks")]
    pub fn translate_ranks(
        &self,
        ranks: impl IntoIterator<Item = usize>,
        other: &Self,
    ) -> Result<Vec<Option<usize>>, Error> {
        ranks.into_iter().map(|rank| Ok(other.rank_of(self.world_rank(rank)?))).collect()
    }

    /// Compares this group with `other` (MPI_Group_compare).
    ///
    /// ```
    /// use mpj::{Comparison, Group};
    /// let group = Group::of_ranks([5, 0, 3])?;
    /// assert_eq!(group.compare(&Group::of_ranks([0, 3, 5])?), Comparison::Similar);
    /// # Ok::<(), mpj::Error>(())
    /// ```
    #[doc(alias = "MPI_Group_compare")]
    pub fn compare(&self, other: &Self) -> Comparison {
        self.core.compare(&other.core)
    }

    /// Makes a group of the members of this one, then those of `other` that are not in this one (MPI_Group_union).
    ///
    /// ```
    /// let group = mpj::Group::of_ranks([5, 0, 3])?;
    /// let all = group.union(&mpj::Group::of_ranks([4, 5])?);
    /// assert!(all.iter().eq([5, 0, 3, 4]));
    /// # Ok::<(), mpj::Error>(())
    /// ```
    #[doc(alias = "MPI_Group_union")]
    pub fn union(&self, other: &Self) -> Self {
        self.core.union(&other.core).into()
    }

    /// Makes a group of the members that are also in `other`, in the order of this group (MPI_Group_intersection).
    ///
    /// ```
    /// let group = mpj::Group::of_ranks([5, 0, 3])?;
    /// let both = group.intersection(&mpj::Group::of_ranks([3, 4, 5])?);
    /// assert!(both.iter().eq([5, 3]));
    /// # Ok::<(), mpj::Error>(())
    /// ```
    #[doc(alias = "MPI_Group_intersection")]
    pub fn intersection(&self, other: &Self) -> Self {
        self.core.intersection(&other.core).into()
    }

    /// Makes a group of the members that are not in `other`, in the order of this group (MPI_Group_difference).
    ///
    /// ```
    /// let group = mpj::Group::of_ranks([5, 0, 3])?;
    /// let rest = group.difference(&mpj::Group::of_ranks([3, 4])?);
    /// assert!(rest.iter().eq([5, 0]));
    /// # Ok::<(), mpj::Error>(())
    /// ```
    #[doc(alias = "MPI_Group_difference")]
    pub fn difference(&self, other: &Self) -> Self {
        self.core.difference(&other.core).into()
    }

    /// Makes a group of the members with `ranks`, in the order of `ranks` (MPI_Group_incl).
    ///
    /// # Errors
    /// No member has one of the ranks; one is named more than once.
    ///
    /// ```
    /// use mpj::Group;
    /// let group = Group::of_ranks(0..8)?;
    /// let even = group.incl((0..8).step_by(2))?;
    /// assert!(even.iter().eq([0, 2, 4, 6]));
    /// assert_eq!(group.incl([8]).unwrap_err().class(), mpj::ErrorClass::Rank);
    /// # Ok::<(), mpj::Error>(())
    /// ```
    #[doc(alias = "MPI_Group_incl")]
    pub fn incl(&self, ranks: impl IntoIterator<Item = usize>) -> Result<Self, Error> {
        made(self.core.incl(&self.narrow(ranks)?))
    }

    /// Makes a group of all members except those with `ranks` (MPI_Group_excl).
    ///
    /// # Errors
    /// As [`Group::incl`].
    ///
    /// ```
    /// let group = mpj::Group::of_ranks([5, 0, 3])?;
    /// assert!(group.excl([1])?.iter().eq([5, 3]));
    /// # Ok::<(), mpj::Error>(())
    /// ```
    #[doc(alias = "MPI_Group_excl")]
    pub fn excl(&self, ranks: impl IntoIterator<Item = usize>) -> Result<Self, Error> {
        made(self.core.excl(&self.narrow(ranks)?))
    }

    /// Makes a group of the members that the ranges name, in that order (MPI_Group_range_incl).
    ///
    /// # Errors
    /// A range that does not lead from its first to its last rank; as [`Group::incl`].
    ///
    /// ```
    /// use mpj::{Group, RankRange};
    /// let odd = Group::of_ranks(0..8)?.range_incl(&[RankRange { first: 7, last: 0, stride: -2 }])?;
    /// assert!(odd.iter().eq([7, 5, 3, 1]));
    /// # Ok::<(), mpj::Error>(())
    /// ```
    #[doc(alias = "MPI_Group_range_incl")]
    pub fn range_incl(&self, ranges: &[RankRange]) -> Result<Self, Error> {
        made(self.core.range_incl(ranges))
    }

    /// Makes a group of all members except those that the ranges name (MPI_Group_range_excl).
    ///
    /// # Errors
    /// As [`Group::range_incl`].
    ///
    /// ```
    /// let group = mpj::Group::of_ranks(0..8)?;
    /// let odd = group.range_excl(&[mpj::RankRange { first: 0, last: 6, stride: 2 }])?;
    /// assert!(odd.iter().eq([1, 3, 5, 7]));
    /// # Ok::<(), mpj::Error>(())
    /// ```
    #[doc(alias = "MPI_Group_range_excl")]
    pub fn range_excl(&self, ranges: &[RankRange]) -> Result<Self, Error> {
        made(self.core.range_excl(ranges))
    }

    fn narrow(&self, ranks: impl IntoIterator<Item = usize>) -> Result<Vec<u32>, Error> {
        let one = |rank| u32::try_from(rank).map_err(|_| no_rank(&self.core, rank));
        ranks.into_iter().map(one).collect()
    }
}

fn made(core: Result<group::Group, GroupError>) -> Result<Group, Error> {
    core.map(Group::from).map_err(Error::from)
}

/// Converts a number to the core's type. All numbers that are too high become the highest one, which no rank has.
pub(crate) fn narrowed(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Makes the error that no member of the group has this rank.
pub(crate) fn no_rank(group: &group::Group, rank: usize) -> Error {
    let rank = i64::try_from(rank).unwrap_or(i64::MAX);
    GroupError::Rank { rank, size: group.size() }.into()
}

impl From<group::Group> for Group {
    /// Makes a group from one of the core, whose job ranks are world ranks.
    fn from(core: group::Group) -> Self {
        Self { core }
    }
}

impl From<GroupError> for Error {
    fn from(error: GroupError) -> Self {
        Self::Core(error.into())
    }
}

//! The roots of collective calls between two groups.

use mpicore::collective::inter;

use crate::group::narrowed;

/// Says where the root of a collective call between two groups is. The root passes [`Root::Here`], the other ranks of
/// its group pass [`Root::Beside`], and the ranks of the other group pass [`Root::There`]. See
/// [`collective`](crate::collective#between-two-groups).
///
/// ```
/// use mpj::Root;
/// mpj::local::run(3, |world| {
///     # let half = world.split((world.rank() > 0).into(), 0).unwrap();
///     # let leader = if world.rank() > 0 { 0 } else { 1 };
///     # let other = mpj::RemoteLeader { peers: &world, leader, tag: 0 };
///     # let between = half.create_inter(0, Some(other)).unwrap();
///     // Rank 2 of the world is rank 1 of its group, and has the word.
///     let root = [Root::There(1), Root::Beside, Root::Here][world.rank()];
///     let mut word = world.rank();
///     between.run(mpj::collective::broadcast(&mut word, root)).unwrap();
///     assert_eq!(word, [2, 1, 2][world.rank()]);
/// })?;
/// # Ok::<(), mpj::local::LocalError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Root {
    /// This rank is the root: MPI_ROOT.
    #[doc(alias = "MPI_ROOT")]
    Here,
    /// The root is another rank of this group, so this rank takes no part (MPI_PROC_NULL).
    #[doc(alias = "MPI_PROC_NULL")]
    Beside,
    /// The root is this rank of the other group.
    There(usize),
}

impl Root {
    pub(super) fn as_core(self) -> inter::Root {
        match self {
            Self::Here => inter::Root::Here,
            Self::Beside => inter::Root::Beside,
            Self::There(rank) => inter::Root::Remote(narrowed(rank)),
        }
    }
}

//! Intercommunicators: two groups whose ranks exchange messages (MPI-4.1 section 7.6).

use std::ops::Deref;

use super::{Communicator, PointToPoint};
use crate::error::Error;
use crate::group::{Group, narrowed};

/// A communicator between two groups without a common rank, in which each rank exchanges messages with the ranks of the
/// other group. See [`Communicator::create_inter`]. A clone is the same intercommunicator.
///
/// ```
/// mpj::local::run(3, |world| {
///     // World rank 0 alone, and ranks 1 and 2.
///     let half = world.split((world.rank() > 0).into(), 0).unwrap();
///     let leader = if world.rank() > 0 { 0 } else { 1 };
///     let other = mpj::RemoteLeader { peers: &world, leader, tag: 0 };
///     let between = half.create_inter(0, Some(other)).unwrap();
///     assert_eq!(between.remote_size(), [2, 1, 1][world.rank()]);
///     // Ranks are those of the other group.
///     if world.rank() == 2 {
///         between.send(&[7], 0, 0).unwrap();
///     } else if world.rank() == 0 {
///         assert_eq!(between.recv_vec::<i32>(1, 0).unwrap().0, [7]);
///     }
/// })?;
/// # Ok::<(), mpj::local::LocalError>(())
/// ```
#[derive(Clone)]
pub struct InterCommunicator {
    /// The communicator whose peers are the ranks of the other group.
    pub(crate) communicator: Communicator,
}

impl Deref for InterCommunicator {
    type Target = PointToPoint;

    fn deref(&self) -> &PointToPoint {
        &self.communicator
    }
}

/// Tells [`Communicator::create_inter`] where the leader of the other group is.
///
/// ```
/// mpj::local::run(2, |world| {
///     // One rank in each group, of which rank 0 and rank 1 of the world are the leaders.
///     let other = mpj::RemoteLeader { peers: &world, leader: 1 - world.rank(), tag: 0 };
///     let between = world.self_comm().unwrap().create_inter(0, Some(other)).unwrap();
///     between.barrier().unwrap();
/// })?;
/// # Ok::<(), mpj::local::LocalError>(())
/// ```
#[derive(Clone, Copy)]
pub struct RemoteLeader<'a> {
    /// A communicator that contains both leaders.
    pub peers: &'a Communicator,
    /// The rank of the other leader in `peers`.
    pub leader: usize,
    /// The tag of the messages that the leaders exchange in `peers`.
    pub tag: i32,
}

/// # Intercommunicators
impl Communicator {
    /// Makes an intercommunicator between the ranks of this communicator and those of another one
    /// (MPI_Intercomm_create). All ranks of both communicators call it. The rank `leader` passes the place of the other
    /// leader, in a communicator that contains both. What the other ranks pass is ignored.
    ///
    /// # Errors
    /// As [`Communicator::split`]. [`ErrorClass::Group`](crate::ErrorClass::Group), on all ranks: the groups have a
    /// rank in common. [`ErrorClass::Root`](crate::ErrorClass::Root): no rank is the leader. If the leader cannot reach
    /// the other leader, the other ranks get [`ErrorClass::Other`](crate::ErrorClass::Other).
    ///
    /// ```
    /// use mpj::RemoteLeader;
    /// mpj::local::run(5, |world| {
    ///     let is_odd = world.rank() % 2 == 1;
    ///     let half = world.split(is_odd.into(), 0).unwrap();
    ///     // Rank 0 leads the even ones, rank 1 the odd ones.
    ///     let other = RemoteLeader { peers: &world, leader: (!is_odd).into(), tag: 0 };
    ///     let between = half.create_inter(0, Some(other)).unwrap();
    ///     assert_eq!((between.size(), between.remote_size()), if is_odd { (2, 3) } else { (3, 2) });
    ///     between.barrier().unwrap();
    ///     let all = between.merge(is_odd).unwrap();
    ///     assert!(all.group().iter().eq([0, 2, 4, 1, 3]));
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Intercomm_create")]
    pub fn create_inter(
        &self,
        leader: usize,
        other: Option<RemoteLeader<'_>>,
    ) -> Result<InterCommunicator, Error> {
        let other = other.map(|RemoteLeader { peers, leader, tag }| mpicore::RemoteLeader {
            peers: &peers.core,
            leader: narrowed(leader),
            tag,
        });
        let made = self.made(self.core.create_inter(narrowed(leader), other));
        made.map(|communicator| InterCommunicator { communicator })
    }

    /// Makes the communicator with the ranks that have spawned this world, of which rank `parent` of the job was the root.
    pub(crate) fn parents(&self, parent: u32) -> Result<InterCommunicator, Error> {
        let made = self.made(self.core.parents(parent));
        made.map(|communicator| InterCommunicator { communicator })
    }

    /// Makes an intercommunicator between two groups without common members, which need not be ranks of this
    /// communicator; only the members call it (MPI_Intercomm_create_from_groups). Each passes its own group with the rank
    /// of its leader there; the leader also passes the other group with the rank of its leader, and what the others pass
    /// is ignored. This communicator only determines the context of the rank. Threads that call it at the same time give
    /// different texts.
    ///
    /// # Errors
    /// As [`Communicator::create_from_group`] and [`Communicator::create_inter`].
    ///
    /// ```
    /// use mpj::Group;
    /// mpj::local::run(4, |world| {
    ///     let halves = [[0, 2], [1, 3]].map(|ranks| Group::of_ranks(ranks).unwrap());
    ///     let [here, there] = [world.rank() % 2, 1 - world.rank() % 2].map(|half| &halves[half]);
    ///     let text = "org.example.halves";
    ///     let between = world.create_inter_from_groups((here, 0), Some((there, 0)), text).unwrap();
    ///     assert_eq!((between.rank(), between.remote_size()), (world.rank() / 2, 2));
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Intercomm_create_from_groups")]
    pub fn create_inter_from_groups(
        &self,
        (here, leader): (&Group, usize),
        there: Option<(&Group, usize)>,
        text: &str,
    ) -> Result<InterCommunicator, Error> {
        let here = (&here.core, narrowed(leader));
        let there = there.map(|(there, leader)| (&there.core, narrowed(leader)));
        let (process, text) = (self.core.process(), text.as_bytes());
        let made = mpicore::Communicator::create_inter_from_groups(process, here, there, text);
        self.made(made).map(|communicator| InterCommunicator { communicator })
    }
}

/// # Ranks and groups
impl InterCommunicator {
    /// Returns the rank of this process in its own group (MPI_Comm_rank).
    ///
    /// ```
    /// mpj::local::run(3, |world| {
    ///     // World rank 0 alone, and ranks 1 and 2.
    ///     # let half = world.split((world.rank() > 0).into(), 0).unwrap();
    ///     # let leader = if world.rank() > 0 { 0 } else { 1 };
    ///     # let other = mpj::RemoteLeader { peers: &world, leader, tag: 0 };
    ///     # let between = half.create_inter(0, Some(other)).unwrap();
    ///     assert_eq!(between.rank(), [0, 0, 1][world.rank()]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Comm_rank")]
    pub fn rank(&self) -> usize {
        self.communicator.rank()
    }

    /// Returns the number of ranks in this process's group (MPI_Comm_size).
    ///
    /// ```
    /// mpj::local::run(3, |world| {
    ///     // World rank 0 alone, and ranks 1 and 2.
    ///     # let half = world.split((world.rank() > 0).into(), 0).unwrap();
    ///     # let leader = if world.rank() > 0 { 0 } else { 1 };
    ///     # let other = mpj::RemoteLeader { peers: &world, leader, tag: 0 };
    ///     # let between = half.create_inter(0, Some(other)).unwrap();
    ///     assert_eq!(between.size(), [1, 2, 2][world.rank()]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Comm_size")]
    pub fn size(&self) -> usize {
        self.communicator.size()
    }

    /// Returns the number of ranks in the other group (MPI_Comm_remote_size).
    ///
    /// ```
    /// mpj::local::run(3, |world| {
    ///     // World rank 0 alone, and ranks 1 and 2.
    ///     # let half = world.split((world.rank() > 0).into(), 0).unwrap();
    ///     # let leader = if world.rank() > 0 { 0 } else { 1 };
    ///     # let other = mpj::RemoteLeader { peers: &world, leader, tag: 0 };
    ///     # let between = half.create_inter(0, Some(other)).unwrap();
    ///     assert_eq!(between.remote_size(), [2, 1, 1][world.rank()]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Comm_remote_size")]
    pub fn remote_size(&self) -> usize {
        self.communicator.core.peers().size() as usize
    }

    /// Returns the group of this process (MPI_Comm_group).
    ///
    /// ```
    /// mpj::local::run(3, |world| {
    ///     // World rank 0 alone, and ranks 1 and 2.
    ///     # let half = world.split((world.rank() > 0).into(), 0).unwrap();
    ///     # let leader = if world.rank() > 0 { 0 } else { 1 };
    ///     # let other = mpj::RemoteLeader { peers: &world, leader, tag: 0 };
    ///     # let between = half.create_inter(0, Some(other)).unwrap();
    ///     let own: Vec<_> = between.group().iter().collect();
    ///     assert_eq!(own, [vec![0], vec![1, 2], vec![1, 2]][world.rank()]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Comm_group")]
    pub fn group(&self) -> Group {
        self.communicator.group()
    }

    /// Returns the other group (MPI_Comm_remote_group).
    ///
    /// ```
    /// mpj::local::run(3, |world| {
    ///     // World rank 0 alone, and ranks 1 and 2.
    ///     # let half = world.split((world.rank() > 0).into(), 0).unwrap();
    ///     # let leader = if world.rank() > 0 { 0 } else { 1 };
    ///     # let other = mpj::RemoteLeader { peers: &world, leader, tag: 0 };
    ///     # let between = half.create_inter(0, Some(other)).unwrap();
    ///     let others: Vec<_> = between.remote_group().iter().collect();
    ///     assert_eq!(others, [vec![1, 2], vec![0], vec![0]][world.rank()]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Comm_remote_group")]
    pub fn remote_group(&self) -> Group {
        self.communicator.core.peers().clone().into()
    }

    /// Makes an intercommunicator of the same groups whose messages never match those of this one (MPI_Comm_dup).
    /// Collective over both groups.
    ///
    /// # Errors
    /// As [`Communicator::dup`].
    ///
    /// ```
    /// mpj::local::run(3, |world| {
    ///     // World rank 0 alone, and ranks 1 and 2.
    ///     # let half = world.split((world.rank() > 0).into(), 0).unwrap();
    ///     # let leader = if world.rank() > 0 { 0 } else { 1 };
    ///     # let other = mpj::RemoteLeader { peers: &world, leader, tag: 0 };
    ///     # let between = half.create_inter(0, Some(other)).unwrap();
    ///     let twin = between.dup().unwrap();
    ///     assert_eq!(twin.remote_group(), between.remote_group());
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Comm_dup")]
    pub fn dup(&self) -> Result<Self, Error> {
        self.communicator.dup().map(|communicator| Self { communicator })
    }

    /// Makes one communicator of both groups (MPI_Intercomm_merge). All ranks of a group give the same `high`. The
    /// ranks of the group with `high` come after those of the other group. If both groups give the same, either may
    /// come first. Collective over both groups.
    ///
    /// # Errors
    /// As [`Communicator::split`].
    ///
    /// ```
    /// mpj::local::run(3, |world| {
    ///     // World rank 0 alone, and ranks 1 and 2.
    ///     # let half = world.split((world.rank() > 0).into(), 0).unwrap();
    ///     # let leader = if world.rank() > 0 { 0 } else { 1 };
    ///     # let other = mpj::RemoteLeader { peers: &world, leader, tag: 0 };
    ///     # let between = half.create_inter(0, Some(other)).unwrap();
    ///     // Those from rank 1 of the world on come first.
    ///     let all = between.merge(world.rank() == 0).unwrap();
    ///     assert!(all.group().iter().eq([1, 2, 0]));
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Intercomm_merge")]
    pub fn merge(&self, high: bool) -> Result<Communicator, Error> {
        self.communicator.made(self.communicator.core.merge(high))
    }

    /// Waits until every rank of both groups has called the barrier (MPI_Barrier).
    ///
    /// # Errors
    /// As [`PointToPoint::recv`].
    ///
    /// ```
    /// mpj::local::run(3, |world| {
    ///     // World rank 0 alone, and ranks 1 and 2.
    ///     # let half = world.split((world.rank() > 0).into(), 0).unwrap();
    ///     # let leader = if world.rank() > 0 { 0 } else { 1 };
    ///     # let other = mpj::RemoteLeader { peers: &world, leader, tag: 0 };
    ///     # let between = half.create_inter(0, Some(other)).unwrap();
    ///     between.barrier().unwrap();
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Barrier")]
    pub fn barrier(&self) -> Result<(), Error> {
        let plan = self.communicator.core.inter_barrier();
        self.communicator.answer(plan.and_then(mpicore::Plan::run))
    }
}

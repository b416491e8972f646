//! Collective calls between the two groups of an intercommunicator (MPI-4.1 section 6.2.3): all data go to the other
//! group. The non-blocking and persistent calls, in `inter_collective/`, use the plans made here.

use mpicore::{Plan, Reduction};

use super::InterCommunicator;
use crate::collective::{Partition, RecvArg, SendArg, divided, same_length, typed};
use crate::error::Error;
use crate::memory::core::{inputs, output, outputs};
use crate::memory::{RecvBuffer, SendBuffer};
use crate::op::Operation;

mod persistent;
mod request;
mod root;
mod scoped;

pub use root::Root;
pub use scoped::ScopeBetween;

/// Plans of the calls. The caller keeps the borrows of the buffers until a plan has run.
impl InterCommunicator {
    /// Describes blocks of the same length, one for each rank of the other group.
    fn share(&self, units: u64) -> Result<mpicore::collective::Blocks<'static>, Error> {
        self.communicator.equal_blocks(units)
    }

    fn plan_broadcast(&self, (buffer, count): RecvArg, root: Root) -> Result<Plan<'_>, Error> {
        Ok(self.communicator.core.inter_bcast(buffer, count, root.as_core())?)
    }

    fn plan_gather(
        &self,
        data: SendArg,
        (into, units): RecvArg,
        root: Root,
    ) -> Result<Plan<'_>, Error> {
        let blocks = self.share(if root == Root::Here { units } else { 0 })?;
        Ok(self.communicator.core.inter_gather(data, into, blocks, root.as_core())?)
    }

    fn plan_gatherv(
        &self,
        data: SendArg,
        (into, _): RecvArg,
        blocks: &Partition,
        root: Root,
    ) -> Result<Plan<'_>, Error> {
        let blocks = if root == Root::Here { blocks.apart()? } else { blocks.as_core() };
        Ok(self.communicator.core.inter_gather(data, into, blocks, root.as_core())?)
    }

    fn plan_scatter(
        &self,
        (data, units): SendArg,
        into: RecvArg,
        root: Root,
    ) -> Result<Plan<'_>, Error> {
        let blocks = self.share(if root == Root::Here { units } else { 0 })?;
        Ok(self.communicator.core.inter_scatter(data, blocks, into, root.as_core())?)
    }

    fn plan_scatterv(
        &self,
        (data, _): SendArg,
        blocks: &Partition,
        into: RecvArg,
        root: Root,
    ) -> Result<Plan<'_>, Error> {
        Ok(self.communicator.core.inter_scatter(data, blocks.as_core(), into, root.as_core())?)
    }

    fn plan_all_gather(&self, data: SendArg, (into, units): RecvArg) -> Result<Plan<'_>, Error> {
        Ok(self.communicator.core.inter_allgather(data, into, self.share(units)?)?)
    }

    fn plan_all_gatherv(
        &self,
        data: SendArg,
        (into, _): RecvArg,
        blocks: &Partition,
    ) -> Result<Plan<'_>, Error> {
        Ok(self.communicator.core.inter_allgather(data, into, blocks.as_core())?)
    }

    fn plan_all_to_all(
        &self,
        (data, sent): SendArg,
        (into, received): RecvArg,
    ) -> Result<Plan<'_>, Error> {
        let (sent, received) = ((data, self.share(sent)?), (into, self.share(received)?));
        Ok(self.communicator.core.inter_alltoall(sent, received)?)
    }

    fn plan_all_to_allv(
        &self,
        (data, _): SendArg,
        sent: &Partition,
        (into, _): RecvArg,
        received: &Partition,
    ) -> Result<Plan<'_>, Error> {
        let (sent, received) = ((data, sent.as_core()), (into, received.as_core()));
        Ok(self.communicator.core.inter_alltoall(sent, received)?)
    }

    fn plan_all_to_allw(
        &self,
        (data, sent): SendArg,
        (into, received): RecvArg,
    ) -> Result<Plan<'_>, Error> {
        let (sent, received) = ((data, typed(sent)), (into, typed(received)));
        Ok(self.communicator.core.inter_alltoall(sent, received)?)
    }

    fn plan_reduce(
        &self,
        (data, given): SendArg,
        (into, room): RecvArg,
        reduction: Reduction,
        root: Root,
    ) -> Result<Plan<'_>, Error> {
        let count = if root == Root::Here { room } else { given };
        Ok(self.communicator.core.inter_reduce(data, into, count, reduction, root.as_core())?)
    }

    fn plan_all_reduce(
        &self,
        (data, count): SendArg,
        (into, room): RecvArg,
        reduction: Reduction,
    ) -> Result<Plan<'_>, Error> {
        same_length(count, room)?;
        Ok(self.communicator.core.inter_allreduce(data, into, count, reduction)?)
    }

    fn plan_reduce_scatter(
        &self,
        (data, given): SendArg,
        (into, room): RecvArg,
        counts: &[usize],
        reduction: Reduction,
    ) -> Result<Plan<'_>, Error> {
        let counts = divided(counts, self.rank(), given, room)?;
        Ok(self.communicator.core.inter_reduce_scatter(data, into, &counts, reduction)?)
    }

    fn plan_reduce_scatter_block(
        &self,
        data: SendArg,
        (into, room): RecvArg,
        reduction: Reduction,
    ) -> Result<Plan<'_>, Error> {
        let counts = vec![room as usize; self.group().size()];
        self.plan_reduce_scatter(data, (into, room), &counts, reduction)
    }
}

impl InterCommunicator {
    /// Copies the elements of the root's buffer to all ranks of the other group (MPI_Bcast).
    ///
    /// # Errors
    /// As [`Communicator::broadcast`](crate::Communicator::broadcast).
    ///
    /// ```
    /// use mpj::{RemoteLeader, Root};
    /// mpj::local::run(4, |world| {
    ///     let is_odd = world.rank() % 2 == 1;
    ///     let half = world.split(is_odd.into(), 0).unwrap();
    ///     let other = RemoteLeader { peers: &world, leader: (!is_odd).into(), tag: 0 };
    ///     let between = half.create_inter(0, Some(other)).unwrap();
    ///     // World rank 1 is the root; the even ranks get what it has, and rank 3 nothing.
    ///     let root = [Root::There(0), Root::Here, Root::There(0), Root::Beside][world.rank()];
    ///     let mut word = [0, 7, 0, 9][world.rank()];
    ///     between.broadcast(&mut word, root).unwrap();
    ///     assert_eq!(word, [7, 7, 7, 9][world.rank()]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn broadcast<B: RecvBuffer + ?Sized>(
        &self,
        buffer: &mut B,
        root: Root,
    ) -> Result<(), Error> {
        let plan = output(buffer).and_then(|buffer| self.plan_broadcast(buffer, root));
        self.communicator.run(plan)
    }

    /// Collects the elements of the other group at the root (MPI_Gather). `into` is used only at the root, and `data`
    /// only in the other group.
    ///
    /// # Errors
    /// As [`Communicator::gather`](crate::Communicator::gather).
    ///
    /// ```
    /// use mpj::Root;
    /// // One rank in each group: `between` is an intercommunicator of both.
    /// mpj::local::run(2, |world| {
    ///     # let (own, leader) = (world.self_comm().unwrap(), 1 - world.rank());
    ///     # let other = mpj::RemoteLeader { peers: &world, leader, tag: 0 };
    ///     # let between = own.create_inter(0, Some(other)).unwrap();
    ///     // The rank of the second group gets what the first one has.
    ///     let root = [Root::There(0), Root::Here][world.rank()];
    ///     let mut all = [9];
    ///     between.gather(&7, &mut all, root).unwrap();
    ///     assert_eq!(all, [[9], [7]][world.rank()]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn gather<S: SendBuffer + ?Sized, R>(
        &self,
        data: &S,
        into: &mut R,
        root: Root,
    ) -> Result<(), Error>
    where
        R: RecvBuffer<Element = S::Element> + ?Sized,
    {
        self.communicator.run_with(data, into, |data, into| self.plan_gather(data, into, root))
    }

    /// Collects parts of different lengths in blocks of the root's buffer, one for each rank of the other group
    /// (MPI_Gatherv).
    ///
    /// # Errors
    /// As [`Communicator::gatherv`](crate::Communicator::gatherv).
    ///
    /// ```
    /// use mpj::{Partition, Root};
    /// // One rank in each group: `between` is an intercommunicator of both.
    /// mpj::local::run(2, |world| {
    ///     # let (own, leader) = (world.self_comm().unwrap(), 1 - world.rank());
    ///     # let other = mpj::RemoteLeader { peers: &world, leader, tag: 0 };
    ///     # let between = own.create_inter(0, Some(other)).unwrap();
    ///     let root = [Root::There(0), Root::Here][world.rank()];
    ///     let mut all = [9; 3];
    ///     between.gatherv(&[7, 8], &mut all, &Partition::at([(1, 2)]), root).unwrap();
    ///     assert_eq!(all, [[9; 3], [9, 7, 8]][world.rank()]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn gatherv<S: SendBuffer + ?Sized, R>(
        &self,
        data: &S,
        into: &mut R,
        blocks: &Partition,
        root: Root,
    ) -> Result<(), Error>
    where
        R: RecvBuffer<Element = S::Element> + ?Sized,
    {
        self.communicator
            .run_with(data, into, |data, into| self.plan_gatherv(data, into, blocks, root))
    }

    /// Distributes the root's elements: each rank of the other group gets its part (MPI_Scatter). `data` is used only
    /// at the root, and `into` only in the other group.
    ///
    /// # Errors
    /// As [`Communicator::scatter`](crate::Communicator::scatter).
    ///
    /// ```
    /// use mpj::Root;
    /// // One rank in each group: `between` is an intercommunicator of both.
    /// mpj::local::run(2, |world| {
    ///     # let (own, leader) = (world.self_comm().unwrap(), 1 - world.rank());
    ///     # let other = mpj::RemoteLeader { peers: &world, leader, tag: 0 };
    ///     # let between = own.create_inter(0, Some(other)).unwrap();
    ///     let root = [Root::There(0), Root::Here][world.rank()];
    ///     let mut mine = 9;
    ///     between.scatter(&[7], &mut mine, root).unwrap();
    ///     assert_eq!(mine, [7, 9][world.rank()]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn scatter<S: SendBuffer + ?Sized, R>(
        &self,
        data: &S,
        into: &mut R,
        root: Root,
    ) -> Result<(), Error>
    where
        R: RecvBuffer<Element = S::Element> + ?Sized,
    {
        self.communicator.run_with(data, into, |data, into| self.plan_scatter(data, into, root))
    }

    /// Distributes the root's elements in blocks of different lengths, one for each rank of the other group
    /// (MPI_Scatterv).
    ///
    /// # Errors
    /// As [`Communicator::scatterv`](crate::Communicator::scatterv).
    ///
    /// ```
    /// use mpj::{Partition, Root};
    /// // One rank in each group: `between` is an intercommunicator of both.
    /// mpj::local::run(2, |world| {
    ///     # let (own, leader) = (world.self_comm().unwrap(), 1 - world.rank());
    ///     # let other = mpj::RemoteLeader { peers: &world, leader, tag: 0 };
    ///     # let between = own.create_inter(0, Some(other)).unwrap();
    ///     let root = [Root::There(0), Root::Here][world.rank()];
    ///     let mut mine = [9; 2];
    ///     between.scatterv(&[6, 7, 8], &Partition::at([(1, 2)]), &mut mine, root).unwrap();
    ///     assert_eq!(mine, [[7, 8], [9, 9]][world.rank()]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn scatterv<S: SendBuffer + ?Sized, R>(
        &self,
        data: &S,
        blocks: &Partition,
        into: &mut R,
        root: Root,
    ) -> Result<(), Error>
    where
        R: RecvBuffer<Element = S::Element> + ?Sized,
    {
        self.communicator
            .run_with(data, into, |data, into| self.plan_scatterv(data, blocks, into, root))
    }

    /// Collects the elements of each group at every rank of the other group (MPI_Allgather).
    ///
    /// # Errors
    /// As [`Communicator::all_gather`](crate::Communicator::all_gather).
    ///
    /// ```
    /// // One rank in each group: `between` is an intercommunicator of both.
    /// mpj::local::run(2, |world| {
    ///     # let (own, leader) = (world.self_comm().unwrap(), 1 - world.rank());
    ///     # let other = mpj::RemoteLeader { peers: &world, leader, tag: 0 };
    ///     # let between = own.create_inter(0, Some(other)).unwrap();
    ///     let mut theirs = [9];
    ///     between.all_gather(&world.rank(), &mut theirs).unwrap();
    ///     assert_eq!(theirs, [1 - world.rank()]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn all_gather<S: SendBuffer + ?Sized, R>(&self, data: &S, into: &mut R) -> Result<(), Error>
    where
        R: RecvBuffer<Element = S::Element> + ?Sized,
    {
        self.communicator.run_with(data, into, |data, into| self.plan_all_gather(data, into))
    }

    /// Collects parts of different lengths, one from each rank of the other group (MPI_Allgatherv).
    ///
    /// # Errors
    /// As [`Communicator::all_gatherv`](crate::Communicator::all_gatherv).
    ///
    /// ```
    /// use mpj::Partition;
    /// // One rank in each group: `between` is an intercommunicator of both.
    /// mpj::local::run(2, |world| {
    ///     # let (own, leader) = (world.self_comm().unwrap(), 1 - world.rank());
    ///     # let other = mpj::RemoteLeader { peers: &world, leader, tag: 0 };
    ///     # let between = own.create_inter(0, Some(other)).unwrap();
    ///     // Rank 0 gives one number, rank 1 two.
    ///     let (mine, len) = (vec![world.rank(); world.rank() + 1], 2 - world.rank());
    ///     let mut theirs = vec![9; len];
    ///     between.all_gatherv(&mine, &mut theirs, &Partition::packed([len])).unwrap();
    ///     assert_eq!(theirs, vec![1 - world.rank(); len]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn all_gatherv<S: SendBuffer + ?Sized, R>(
        &self,
        data: &S,
        into: &mut R,
        blocks: &Partition,
    ) -> Result<(), Error>
    where
        R: RecvBuffer<Element = S::Element> + ?Sized,
    {
        self.communicator
            .run_with(data, into, |data, into| self.plan_all_gatherv(data, into, blocks))
    }

    /// Sends part `r` of each rank's elements to rank `r` of the other group (MPI_Alltoall).
    ///
    /// # Errors
    /// As [`Communicator::all_to_all`](crate::Communicator::all_to_all).
    ///
    /// ```
    /// // One rank in each group: `between` is an intercommunicator of both.
    /// mpj::local::run(2, |world| {
    ///     # let (own, leader) = (world.self_comm().unwrap(), 1 - world.rank());
    ///     # let other = mpj::RemoteLeader { peers: &world, leader, tag: 0 };
    ///     # let between = own.create_inter(0, Some(other)).unwrap();
    ///     let mut theirs = [9];
    ///     between.all_to_all(&[world.rank()], &mut theirs).unwrap();
    ///     assert_eq!(theirs, [1 - world.rank()]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn all_to_all<S: SendBuffer + ?Sized, R>(&self, data: &S, into: &mut R) -> Result<(), Error>
    where
        R: RecvBuffer<Element = S::Element> + ?Sized,
    {
        self.communicator.run_with(data, into, |data, into| self.plan_all_to_all(data, into))
    }

    /// Exchanges blocks of different lengths with the ranks of the other group, one in each direction (MPI_Alltoallv).
    ///
    /// # Errors
    /// As [`Communicator::all_to_allv`](crate::Communicator::all_to_allv).
    ///
    /// ```
    /// use mpj::Partition;
    /// // One rank in each group: `between` is an intercommunicator of both.
    /// mpj::local::run(2, |world| {
    ///     # let (own, leader) = (world.self_comm().unwrap(), 1 - world.rank());
    ///     # let other = mpj::RemoteLeader { peers: &world, leader, tag: 0 };
    ///     # let between = own.create_inter(0, Some(other)).unwrap();
    ///     // Rank 0 gives one number, rank 1 two.
    ///     let (sent, received) = (world.rank() + 1, 2 - world.rank());
    ///     let (mine, mut theirs) = (vec![world.rank(); sent], vec![9; received]);
    ///     let (sent, received) = (Partition::packed([sent]), Partition::packed([received]));
    ///     between.all_to_allv(&mine, &sent, &mut theirs, &received).unwrap();
    ///     assert_eq!(theirs.first(), Some(&(1 - world.rank())));
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn all_to_allv<S: SendBuffer + ?Sized, R>(
        &self,
        data: &S,
        sent: &Partition,
        into: &mut R,
        received: &Partition,
    ) -> Result<(), Error>
    where
        R: RecvBuffer<Element = S::Element> + ?Sized,
    {
        self.communicator
            .run_with(data, into, |data, into| self.plan_all_to_allv(data, sent, into, received))
    }

    /// Exchanges a buffer with each rank of the other group, each in memory of any layout (MPI_Alltoallw).
    ///
    /// # Errors
    /// As [`Communicator::all_to_allw`](crate::Communicator::all_to_allw).
    ///
    /// ```
    /// // One rank in each group: `between` is an intercommunicator of both.
    /// mpj::local::run(2, |world| {
    ///     # let (own, leader) = (world.self_comm().unwrap(), 1 - world.rank());
    ///     # let other = mpj::RemoteLeader { peers: &world, leader, tag: 0 };
    ///     # let between = own.create_inter(0, Some(other)).unwrap();
    ///     let (mine, mut theirs) = ([world.rank(); 2], [9; 4]);
    ///     let mut column = [mpj::column_mut(&mut theirs, 2, 1).unwrap()];
    ///     between.all_to_allw(&[mine], &mut column).unwrap();
    ///     assert_eq!(theirs, [9, 1 - world.rank(), 9, 1 - world.rank()]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn all_to_allw<S: SendBuffer, R>(&self, data: &[S], into: &mut [R]) -> Result<(), Error>
    where
        R: RecvBuffer<Element = S::Element>,
    {
        let plan = inputs(data).and_then(|data| self.plan_all_to_allw(data, outputs(into)?));
        self.communicator.run(plan)
    }

    /// Combines the elements of the other group at the root (MPI_Reduce). `into` is used only at the root, and `data`
    /// only in the other group.
    ///
    /// # Errors
    /// As [`Communicator::reduce`](crate::Communicator::reduce).
    ///
    /// ```
    /// use mpj::{Op, Root};
    /// // One rank in each group: `between` is an intercommunicator of both.
    /// mpj::local::run(2, |world| {
    ///     # let (own, leader) = (world.self_comm().unwrap(), 1 - world.rank());
    ///     # let other = mpj::RemoteLeader { peers: &world, leader, tag: 0 };
    ///     # let between = own.create_inter(0, Some(other)).unwrap();
    ///     let root = [Root::There(0), Root::Here][world.rank()];
    ///     let mut sum = 9;
    ///     between.reduce(&7, &mut sum, Op::Sum, root).unwrap();
    ///     assert_eq!(sum, [9, 7][world.rank()]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn reduce<S: SendBuffer + ?Sized, R>(
        &self,
        data: &S,
        into: &mut R,
        op: impl Operation<S::Element>,
        root: Root,
    ) -> Result<(), Error>
    where
        R: RecvBuffer<Element = S::Element> + ?Sized,
    {
        self.communicator
            .run_with(data, into, |data, into| self.plan_reduce(data, into, op.reduction(), root))
    }

    /// Combines the elements of each group and gives the results to all ranks of the other group (MPI_Allreduce).
    ///
    /// # Errors
    /// As [`Communicator::all_reduce`](crate::Communicator::all_reduce); [`Error::Lengths`].
    ///
    /// ```
    /// use mpj::{Op, RemoteLeader};
    /// mpj::local::run(4, |world| {
    ///     let is_odd = world.rank() % 2 == 1;
    ///     let half = world.split(is_odd.into(), 0).unwrap();
    ///     let other = RemoteLeader { peers: &world, leader: (!is_odd).into(), tag: 0 };
    ///     let between = half.create_inter(0, Some(other)).unwrap();
    ///     let mut sum = 0_usize;
    ///     between.all_reduce(&world.rank(), &mut sum, Op::Sum).unwrap();
    ///     assert_eq!(sum, if is_odd { 2 } else { 4 });
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn all_reduce<S: SendBuffer + ?Sized, R>(
        &self,
        data: &S,
        into: &mut R,
        op: impl Operation<S::Element>,
    ) -> Result<(), Error>
    where
        R: RecvBuffer<Element = S::Element> + ?Sized,
    {
        self.communicator
            .run_with(data, into, |data, into| self.plan_all_reduce(data, into, op.reduction()))
    }

    /// Combines the elements of each group and divides the results among the ranks of the other group
    /// (MPI_Reduce_scatter): rank `r` of this group gets `counts[r]` results of the other group's elements. All ranks
    /// of both groups give the same number of elements.
    ///
    /// # Errors
    /// As [`Communicator::reduce_scatter`](crate::Communicator::reduce_scatter).
    ///
    /// ```
    /// // One rank in each group: `between` is an intercommunicator of both.
    /// mpj::local::run(2, |world| {
    ///     # let (own, leader) = (world.self_comm().unwrap(), 1 - world.rank());
    ///     # let other = mpj::RemoteLeader { peers: &world, leader, tag: 0 };
    ///     # let between = own.create_inter(0, Some(other)).unwrap();
    ///     let mut theirs = [9; 2];
    ///     let mine = [world.rank(), 5];
    ///     between.reduce_scatter(&mine, &mut theirs, &[2], mpj::Op::Sum).unwrap();
    ///     assert_eq!(theirs, [1 - world.rank(), 5]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn reduce_scatter<S: SendBuffer + ?Sized, R>(
        &self,
        data: &S,
        into: &mut R,
        counts: &[usize],
        op: impl Operation<S::Element>,
    ) -> Result<(), Error>
    where
        R: RecvBuffer<Element = S::Element> + ?Sized,
    {
        self.communicator.run_with(data, into, |data, into| {
            self.plan_reduce_scatter(data, into, counts, op.reduction())
        })
    }

    /// Like [`InterCommunicator::reduce_scatter`], with parts of equal length: that of `into`, which is the same on all
    /// ranks of a group (MPI_Reduce_scatter_block).
    ///
    /// # Errors
    /// As [`Communicator::reduce_scatter_block`](crate::Communicator::reduce_scatter_block).
    ///
    /// ```
    /// // One rank in each group: `between` is an intercommunicator of both.
    /// mpj::local::run(2, |world| {
    ///     # let (own, leader) = (world.self_comm().unwrap(), 1 - world.rank());
    ///     # let other = mpj::RemoteLeader { peers: &world, leader, tag: 0 };
    ///     # let between = own.create_inter(0, Some(other)).unwrap();
    ///     let mut theirs = [9; 2];
    ///     between.reduce_scatter_block(&[world.rank(), 5], &mut theirs, mpj::Op::Sum).unwrap();
    ///     assert_eq!(theirs, [1 - world.rank(), 5]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn reduce_scatter_block<S: SendBuffer + ?Sized, R>(
        &self,
        data: &S,
        into: &mut R,
        op: impl Operation<S::Element>,
    ) -> Result<(), Error>
    where
        R: RecvBuffer<Element = S::Element> + ?Sized,
    {
        self.communicator.run_with(data, into, |data, into| {
            self.plan_reduce_scatter_block(data, into, op.reduction())
        })
    }
}

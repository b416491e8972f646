//! Non-blocking collective calls between two groups that own their buffers (MPI-4.1 section 6.12).

use super::Root;
use crate::collective::{CollectiveRequest, Partition, Parts};
use crate::communicator::InterCommunicator;
use crate::datatype::Datatype;
use crate::error::Error;
use crate::memory::{Strided, StridedMut};
use crate::op::Operation;

impl InterCommunicator {
    /// Starts [`InterCommunicator::barrier`] (MPI_Ibarrier).
    ///
    /// # Errors
    /// As [`InterCommunicator::barrier`].
    ///
    /// ```
    /// // One rank in each group: `between` is an intercommunicator of both.
    /// mpj::local::run(2, |world| {
    ///     # let (own, leader) = (world.self_comm().unwrap(), 1 - world.rank());
    ///     # let other = mpj::RemoteLeader { peers: &world, leader, tag: 0 };
    ///     # let between = own.create_inter(0, Some(other)).unwrap();
    ///     between.ibarrier().unwrap().wait().unwrap();
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn ibarrier(&self) -> Result<CollectiveRequest<u8>, Error> {
        self.communicator
            .start(Vec::new(), Vec::new(), |_, _| Ok(self.communicator.core.inter_barrier()?))
    }

    /// Starts [`InterCommunicator::broadcast`] (MPI_Ibcast).
    ///
    /// # Errors
    /// As [`InterCommunicator::broadcast`].
    ///
    /// ```
    /// use mpj::Root;
    /// // One rank in each group: `between` is an intercommunicator of both.
    /// mpj::local::run(2, |world| {
    ///     # let (own, leader) = (world.self_comm().unwrap(), 1 - world.rank());
    ///     # let other = mpj::RemoteLeader { peers: &world, leader, tag: 0 };
    ///     # let between = own.create_inter(0, Some(other)).unwrap();
    ///     let root = [Root::There(0), Root::Here][world.rank()];
    ///     let word = vec![world.rank()];
    ///     assert_eq!(between.ibroadcast(word, root).unwrap().wait().unwrap(), [1]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn ibroadcast<T: Datatype>(
        &self,
        buffer: Vec<T>,
        root: Root,
    ) -> Result<CollectiveRequest<T>, Error> {
        self.communicator.start(Vec::new(), buffer, |_, buffer| self.plan_broadcast(buffer, root))
    }

    /// Starts [`InterCommunicator::gather`] (MPI_Igather).
    ///
    /// # Errors
    /// As [`InterCommunicator::gather`].
    ///
    /// ```
    /// use mpj::Root;
    /// // One rank in each group: `between` is an intercommunicator of both.
    /// mpj::local::run(2, |world| {
    ///     # let (own, leader) = (world.self_comm().unwrap(), 1 - world.rank());
    ///     # let other = mpj::RemoteLeader { peers: &world, leader, tag: 0 };
    ///     # let between = own.create_inter(0, Some(other)).unwrap();
    ///     let root = [Root::There(0), Root::Here][world.rank()];
    ///     let all = between.igather(vec![7], vec![9], root).unwrap().wait().unwrap();
    ///     assert_eq!(all, [[9], [7]][world.rank()]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn igather<T: Datatype>(
        &self,
        data: Vec<T>,
        into: Vec<T>,
        root: Root,
    ) -> Result<CollectiveRequest<T>, Error> {
        self.communicator.start(data, into, |data, into| self.plan_gather(data, into, root))
    }

    /// Starts [`InterCommunicator::gatherv`] (MPI_Igatherv).
    ///
    /// # Errors
    /// As [`InterCommunicator::gatherv`].
    ///
    /// ```
    /// use mpj::{Partition, Root};
    /// // One rank in each group: `between` is an intercommunicator of both.
    /// mpj::local::run(2, |world| {
    ///     # let (own, leader) = (world.self_comm().unwrap(), 1 - world.rank());
    ///     # let other = mpj::RemoteLeader { peers: &world, leader, tag: 0 };
    ///     # let between = own.create_inter(0, Some(other)).unwrap();
    ///     let root = [Root::There(0), Root::Here][world.rank()];
    ///     let request = between.igatherv(vec![7, 8], vec![9; 3], &Partition::at([(1, 2)]), root);
    ///     let all = request.unwrap().wait().unwrap();
    ///     assert_eq!(all, [[9; 3], [9, 7, 8]][world.rank()]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn igatherv<T: Datatype>(
        &self,
        data: Vec<T>,
        into: Vec<T>,
        blocks: &Partition,
        root: Root,
    ) -> Result<CollectiveRequest<T>, Error> {
        self.communicator
            .start(data, into, |data, into| self.plan_gatherv(data, into, blocks, root))
    }

    /// Starts [`InterCommunicator::scatter`] (MPI_Iscatter).
    ///
    /// # Errors
    /// As [`InterCommunicator::scatter`].
    ///
    /// ```
    /// use mpj::Root;
    /// // One rank in each group: `between` is an intercommunicator of both.
    /// mpj::local::run(2, |world| {
    ///     # let (own, leader) = (world.self_comm().unwrap(), 1 - world.rank());
    ///     # let other = mpj::RemoteLeader { peers: &world, leader, tag: 0 };
    ///     # let between = own.create_inter(0, Some(other)).unwrap();
    ///     let root = [Root::There(0), Root::Here][world.rank()];
    ///     let mine = between.iscatter(vec![7], vec![9], root).unwrap().wait().unwrap();
    ///     assert_eq!(mine, [[7], [9]][world.rank()]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn iscatter<T: Datatype>(
        &self,
        data: Vec<T>,
        into: Vec<T>,
        root: Root,
    ) -> Result<CollectiveRequest<T>, Error> {
        self.communicator.start(data, into, |data, into| self.plan_scatter(data, into, root))
    }

    /// Starts [`InterCommunicator::scatterv`] (MPI_Iscatterv).
    ///
    /// # Errors
    /// As [`InterCommunicator::scatterv`].
    ///
    /// ```
    /// use mpj::{Partition, Root};
    /// // One rank in each group: `between` is an intercommunicator of both.
    /// mpj::local::run(2, |world| {
    ///     # let (own, leader) = (world.self_comm().unwrap(), 1 - world.rank());
    ///     # let other = mpj::RemoteLeader { peers: &world, leader, tag: 0 };
    ///     # let between = own.create_inter(0, Some(other)).unwrap();
    ///     let root = [Root::There(0), Root::Here][world.rank()];
    ///     let blocks = Partition::at([(1, 2)]);
    ///     let request = between.iscatterv(vec![6, 7, 8], &blocks, vec![9; 2], root).unwrap();
    ///     assert_eq!(request.wait().unwrap(), [[7, 8], [9, 9]][world.rank()]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn iscatterv<T: Datatype>(
        &self,
        data: Vec<T>,
        blocks: &Partition,
        into: Vec<T>,
        root: Root,
    ) -> Result<CollectiveRequest<T>, Error> {
        self.communicator
            .start(data, into, |data, into| self.plan_scatterv(data, blocks, into, root))
    }

    /// Starts [`InterCommunicator::all_gather`] (MPI_Iallgather).
    ///
    /// # Errors
    /// As [`InterCommunicator::all_gather`].
    ///
    /// ```
    /// // One rank in each group: `between` is an intercommunicator of both.
    /// mpj::local::run(2, |world| {
    ///     # let (own, leader) = (world.self_comm().unwrap(), 1 - world.rank());
    ///     # let other = mpj::RemoteLeader { peers: &world, leader, tag: 0 };
    ///     # let between = own.create_inter(0, Some(other)).unwrap();
    ///     let request = between.iall_gather(vec![world.rank()], vec![9]).unwrap();
    ///     assert_eq!(request.wait().unwrap(), [1 - world.rank()]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn iall_gather<T: Datatype>(
        &self,
        data: Vec<T>,
        into: Vec<T>,
    ) -> Result<CollectiveRequest<T>, Error> {
        self.communicator.start(data, into, |data, into| self.plan_all_gather(data, into))
    }

    /// Starts [`InterCommunicator::all_gatherv`] (MPI_Iallgatherv).
    ///
    /// # Errors
    /// As [`InterCommunicator::all_gatherv`].
    ///
    /// ```
    /// use mpj::Partition;
    /// // One rank in each group: `between` is an intercommunicator of both.
    /// mpj::local::run(2, |world| {
    ///     # let (own, leader) = (world.self_comm().unwrap(), 1 - world.rank());
    ///     # let other = mpj::RemoteLeader { peers: &world, leader, tag: 0 };
    ///     # let between = own.create_inter(0, Some(other)).unwrap();
    ///     let blocks = Partition::packed([2]);
    ///     let request = between.iall_gatherv(vec![world.rank(); 2], vec![9; 2], &blocks).unwrap();
    ///     assert_eq!(request.wait().unwrap(), [1 - world.rank(); 2]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn iall_gatherv<T: Datatype>(
        &self,
        data: Vec<T>,
        into: Vec<T>,
        blocks: &Partition,
    ) -> Result<CollectiveRequest<T>, Error> {
        self.communicator.start(data, into, |data, into| self.plan_all_gatherv(data, into, blocks))
    }

    /// Starts [`InterCommunicator::all_to_all`] (MPI_Ialltoall).
    ///
    /// # Errors
    /// As [`InterCommunicator::all_to_all`].
    ///
    /// ```
    /// // One rank in each group: `between` is an intercommunicator of both.
    /// mpj::local::run(2, |world| {
    ///     # let (own, leader) = (world.self_comm().unwrap(), 1 - world.rank());
    ///     # let other = mpj::RemoteLeader { peers: &world, leader, tag: 0 };
    ///     # let between = own.create_inter(0, Some(other)).unwrap();
    ///     let request = between.iall_to_all(vec![world.rank()], vec![9]).unwrap();
    ///     assert_eq!(request.wait().unwrap(), [1 - world.rank()]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn iall_to_all<T: Datatype>(
        &self,
        data: Vec<T>,
        into: Vec<T>,
    ) -> Result<CollectiveRequest<T>, Error> {
        self.communicator.start(data, into, |data, into| self.plan_all_to_all(data, into))
    }

    /// Starts [`InterCommunicator::all_to_allv`] (MPI_Ialltoallv).
    ///
    /// # Errors
    /// As [`InterCommunicator::all_to_allv`].
    ///
    /// ```
    /// use mpj::Partition;
    /// // One rank in each group: `between` is an intercommunicator of both.
    /// mpj::local::run(2, |world| {
    ///     # let (own, leader) = (world.self_comm().unwrap(), 1 - world.rank());
    ///     # let other = mpj::RemoteLeader { peers: &world, leader, tag: 0 };
    ///     # let between = own.create_inter(0, Some(other)).unwrap();
    ///     let (both, mine) = (Partition::packed([2]), vec![world.rank(); 2]);
    ///     let request = between.iall_to_allv(mine, &both, vec![9; 2], &both).unwrap();
    ///     assert_eq!(request.wait().unwrap(), [1 - world.rank(); 2]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn iall_to_allv<T: Datatype>(
        &self,
        data: Vec<T>,
        sent: &Partition,
        into: Vec<T>,
        received: &Partition,
    ) -> Result<CollectiveRequest<T>, Error> {
        self.communicator
            .start(data, into, |data, into| self.plan_all_to_allv(data, sent, into, received))
    }

    /// Starts [`InterCommunicator::all_to_allw`] on memory that the call owns (MPI_Ialltoallw): `sent` divides `data`
    /// into a part for each rank of the other group, and `received` divides `into` into a part from each.
    ///
    /// # Errors
    /// As [`Communicator::iall_to_allw`](crate::Communicator::iall_to_allw).
    ///
    /// ```
    /// // One rank in each group: `between` is an intercommunicator of both.
    /// mpj::local::run(2, |world| {
    ///     # let (own, leader) = (world.self_comm().unwrap(), 1 - world.rank());
    ///     # let other = mpj::RemoteLeader { peers: &world, leader, tag: 0 };
    ///     # let between = own.create_inter(0, Some(other)).unwrap();
    ///     let request = between.iall_to_allw(
    ///         vec![world.rank(); 4],
    ///         |matrix| Ok(vec![mpj::column(matrix, 2, 0)?]),
    ///         vec![9; 4],
    ///         |matrix| Ok(vec![mpj::column_mut(matrix, 2, 1)?]),
    ///     );
    ///     let theirs = request.unwrap().wait().unwrap();
    ///     assert_eq!(theirs, [9, 1 - world.rank(), 9, 1 - world.rank()]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn iall_to_allw<T: Datatype>(
        &self,
        data: Vec<T>,
        sent: impl FnOnce(&[T]) -> Result<Vec<Strided<'_, T>>, Error>,
        mut into: Vec<T>,
        received: impl FnOnce(&mut [T]) -> Result<Vec<StridedMut<'_, T>>, Error>,
    ) -> Result<CollectiveRequest<T>, Error> {
        let parts = Parts::of(&data, sent, &mut into, received);
        self.communicator.start(data, into, |data, into| {
            let (data, into) = parts?.divide(data, into);
            self.plan_all_to_allw(data, into)
        })
    }

    /// Starts [`InterCommunicator::reduce`] (MPI_Ireduce).
    ///
    /// # Errors
    /// As [`InterCommunicator::reduce`].
    ///
    /// ```
    /// use mpj::{Op, Root};
    /// // One rank in each group: `between` is an intercommunicator of both.
    /// mpj::local::run(2, |world| {
    ///     # let (own, leader) = (world.self_comm().unwrap(), 1 - world.rank());
    ///     # let other = mpj::RemoteLeader { peers: &world, leader, tag: 0 };
    ///     # let between = own.create_inter(0, Some(other)).unwrap();
    ///     let root = [Root::There(0), Root::Here][world.rank()];
    ///     let request = between.ireduce(vec![7], vec![9], Op::Sum, root).unwrap();
    ///     assert_eq!(request.wait().unwrap(), [[9], [7]][world.rank()]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn ireduce<T: Datatype>(
        &self,
        data: Vec<T>,
        into: Vec<T>,
        op: impl Operation<T>,
        root: Root,
    ) -> Result<CollectiveRequest<T>, Error> {
        self.communicator
            .start(data, into, |data, into| self.plan_reduce(data, into, op.reduction(), root))
    }

    /// Starts [`InterCommunicator::all_reduce`] (MPI_Iallreduce).
    ///
    /// # Errors
    /// As [`InterCommunicator::all_reduce`].
    ///
    /// ```
    /// // One rank in each group: `between` is an intercommunicator of both.
    /// mpj::local::run(2, |world| {
    ///     # let (own, leader) = (world.self_comm().unwrap(), 1 - world.rank());
    ///     # let other = mpj::RemoteLeader { peers: &world, leader, tag: 0 };
    ///     # let between = own.create_inter(0, Some(other)).unwrap();
    ///     let request = between.iall_reduce(vec![world.rank()], vec![9], mpj::Op::Sum).unwrap();
    ///     assert_eq!(request.wait().unwrap(), [1 - world.rank()]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn iall_reduce<T: Datatype>(
        &self,
        data: Vec<T>,
        into: Vec<T>,
        op: impl Operation<T>,
    ) -> Result<CollectiveRequest<T>, Error> {
        self.communicator
            .start(data, into, |data, into| self.plan_all_reduce(data, into, op.reduction()))
    }

    /// Starts [`InterCommunicator::reduce_scatter`] (MPI_Ireduce_scatter).
    ///
    /// # Errors
    /// As [`InterCommunicator::reduce_scatter`].
    ///
    /// ```
    /// // One rank in each group: `between` is an intercommunicator of both.
    /// mpj::local::run(2, |world| {
    ///     # let (own, leader) = (world.self_comm().unwrap(), 1 - world.rank());
    ///     # let other = mpj::RemoteLeader { peers: &world, leader, tag: 0 };
    ///     # let between = own.create_inter(0, Some(other)).unwrap();
    ///     let request = between.ireduce_scatter(vec![world.rank()], vec![9], &[1], mpj::Op::Sum);
    ///     assert_eq!(request.unwrap().wait().unwrap(), [1 - world.rank()]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn ireduce_scatter<T: Datatype>(
        &self,
        data: Vec<T>,
        into: Vec<T>,
        counts: &[usize],
        op: impl Operation<T>,
    ) -> Result<CollectiveRequest<T>, Error> {
        self.communicator.start(data, into, |data, into| {
            self.plan_reduce_scatter(data, into, counts, op.reduction())
        })
    }

    /// Starts [`InterCommunicator::reduce_scatter_block`] (MPI_Ireduce_scatter_block).
    ///
    /// # Errors
    /// As [`InterCommunicator::reduce_scatter_block`].
    ///
    /// ```
    /// // One rank in each group: `between` is an intercommunicator of both.
    /// mpj::local::run(2, |world| {
    ///     # let (own, leader) = (world.self_comm().unwrap(), 1 - world.rank());
    ///     # let other = mpj::RemoteLeader { peers: &world, leader, tag: 0 };
    ///     # let between = own.create_inter(0, Some(other)).unwrap();
    ///     let request = between.ireduce_scatter_block(vec![world.rank()], vec![9], mpj::Op::Sum);
    ///     assert_eq!(request.unwrap().wait().unwrap(), [1 - world.rank()]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn ireduce_scatter_block<T: Datatype>(
        &self,
        data: Vec<T>,
        into: Vec<T>,
        op: impl Operation<T>,
    ) -> Result<CollectiveRequest<T>, Error> {
        self.communicator.start(data, into, |data, into| {
            self.plan_reduce_scatter_block(data, into, op.reduction())
        })
    }
}

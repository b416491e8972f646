//! Persistent collective calls between two groups (MPI-4.1 section 6.13).

use super::Root;
use crate::collective::{Partition, Parts, PersistentCollective};
use crate::communicator::InterCommunicator;
use crate::datatype::Datatype;
use crate::error::Error;
use crate::memory::{Strided, StridedMut};
use crate::op::Operation;

impl InterCommunicator {
    /// Makes a persistent request for [`InterCommunicator::barrier`] (MPI_Barrier_init).
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
    ///     let mut kept = between.barrier_init().unwrap();
    ///     kept.start().unwrap();
    ///     kept.wait().unwrap();
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn barrier_init(&self) -> Result<PersistentCollective<u8>, Error> {
        self.communicator
            .keep(Vec::new(), Vec::new(), |_, _| Ok(self.communicator.core.inter_barrier()?))
    }

    /// Makes a persistent request for [`InterCommunicator::broadcast`] (MPI_Bcast_init).
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
    ///     let mut kept = between.broadcast_init(vec![world.rank()], root).unwrap();
    ///     kept.start().unwrap();
    ///     kept.wait().unwrap();
    ///     assert_eq!(kept.buffer().unwrap(), [1]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn broadcast_init<T: Datatype>(
        &self,
        buffer: Vec<T>,
        root: Root,
    ) -> Result<PersistentCollective<T>, Error> {
        self.communicator.keep(Vec::new(), buffer, |_, buffer| self.plan_broadcast(buffer, root))
    }

    /// Makes a persistent request for [`InterCommunicator::gather`] (MPI_Gather_init).
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
    ///     let mut kept = between.gather_init(vec![7], vec![9], root).unwrap();
    ///     kept.start().unwrap();
    ///     kept.wait().unwrap();
    ///     assert_eq!(kept.buffer().unwrap(), [[9], [7]][world.rank()]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn gather_init<T: Datatype>(
        &self,
        data: Vec<T>,
        into: Vec<T>,
        root: Root,
    ) -> Result<PersistentCollective<T>, Error> {
        self.communicator.keep(data, into, |data, into| self.plan_gather(data, into, root))
    }

    /// Makes a persistent request for [`InterCommunicator::gatherv`] (MPI_Gatherv_init).
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
    ///     let blocks = Partition::at([(1, 2)]);
    ///     let mut kept = between.gatherv_init(vec![7, 8], vec![9; 3], &blocks, root).unwrap();
    ///     kept.start().unwrap();
    ///     kept.wait().unwrap();
    ///     assert_eq!(kept.buffer().unwrap(), [[9; 3], [9, 7, 8]][world.rank()]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn gatherv_init<T: Datatype>(
        &self,
        data: Vec<T>,
        into: Vec<T>,
        blocks: &Partition,
        root: Root,
    ) -> Result<PersistentCollective<T>, Error> {
        self.communicator.keep(data, into, |data, into| self.plan_gatherv(data, into, blocks, root))
    }

    /// Makes a persistent request for [`InterCommunicator::scatter`] (MPI_Scatter_init).
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
    ///     let mut kept = between.scatter_init(vec![7], vec![9], root).unwrap();
    ///     kept.start().unwrap();
    ///     kept.wait().unwrap();
    ///     assert_eq!(kept.buffer().unwrap(), [[7], [9]][world.rank()]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn scatter_init<T: Datatype>(
        &self,
        data: Vec<T>,
        into: Vec<T>,
        root: Root,
    ) -> Result<PersistentCollective<T>, Error> {
        self.communicator.keep(data, into, |data, into| self.plan_scatter(data, into, root))
    }

    /// Makes a persistent request for [`InterCommunicator::scatterv`] (MPI_Scatterv_init).
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
    ///     let (all, blocks) = (vec![6, 7, 8], Partition::at([(1, 2)]));
    ///     let mut kept = between.scatterv_init(all, &blocks, vec![9; 2], root).unwrap();
    ///     kept.start().unwrap();
    ///     kept.wait().unwrap();
    ///     assert_eq!(kept.buffer().unwrap(), [[7, 8], [9, 9]][world.rank()]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn scatterv_init<T: Datatype>(
        &self,
        data: Vec<T>,
        blocks: &Partition,
        into: Vec<T>,
        root: Root,
    ) -> Result<PersistentCollective<T>, Error> {
        self.communicator
            .keep(data, into, |data, into| self.plan_scatterv(data, blocks, into, root))
    }

    /// Makes a persistent request for [`InterCommunicator::all_gather`] (MPI_Allgather_init).
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
    ///     let mut kept = between.all_gather_init(vec![world.rank()], vec![9]).unwrap();
    ///     kept.start().unwrap();
    ///     kept.wait().unwrap();
    ///     assert_eq!(kept.buffer().unwrap(), [1 - world.rank()]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn all_gather_init<T: Datatype>(
        &self,
        data: Vec<T>,
        into: Vec<T>,
    ) -> Result<PersistentCollective<T>, Error> {
        self.communicator.keep(data, into, |data, into| self.plan_all_gather(data, into))
    }

    /// Makes a persistent request for [`InterCommunicator::all_gatherv`] (MPI_Allgatherv_init).
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
    ///     let (mine, blocks) = (vec![world.rank(); 2], Partition::packed([2]));
    ///     let mut kept = between.all_gatherv_init(mine, vec![9; 2], &blocks).unwrap();
    ///     kept.start().unwrap();
    ///     kept.wait().unwrap();
    ///     assert_eq!(kept.buffer().unwrap(), [1 - world.rank(); 2]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn all_gatherv_init<T: Datatype>(
        &self,
        data: Vec<T>,
        into: Vec<T>,
        blocks: &Partition,
    ) -> Result<PersistentCollective<T>, Error> {
        self.communicator.keep(data, into, |data, into| self.plan_all_gatherv(data, into, blocks))
    }

    /// Makes a persistent request for [`InterCommunicator::all_to_all`] (MPI_Alltoall_init).
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
    ///     let mut kept = between.all_to_all_init(vec![world.rank()], vec![9]).unwrap();
    ///     kept.start().unwrap();
    ///     kept.wait().unwrap();
    ///     assert_eq!(kept.buffer().unwrap(), [1 - world.rank()]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn all_to_all_init<T: Datatype>(
        &self,
        data: Vec<T>,
        into: Vec<T>,
    ) -> Result<PersistentCollective<T>, Error> {
        self.communicator.keep(data, into, |data, into| self.plan_all_to_all(data, into))
    }

    /// Makes a persistent request for [`InterCommunicator::all_to_allv`] (MPI_Alltoallv_init).
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
    ///     let mut kept = between.all_to_allv_init(mine, &both, vec![9; 2], &both).unwrap();
    ///     kept.start().unwrap();
    ///     kept.wait().unwrap();
    ///     assert_eq!(kept.buffer().unwrap(), [1 - world.rank(); 2]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn all_to_allv_init<T: Datatype>(
        &self,
        data: Vec<T>,
        sent: &Partition,
        into: Vec<T>,
        received: &Partition,
    ) -> Result<PersistentCollective<T>, Error> {
        self.communicator
            .keep(data, into, |data, into| self.plan_all_to_allv(data, sent, into, received))
    }

    /// Makes a persistent request for [`InterCommunicator::all_to_allw`] on memory that it owns (MPI_Alltoallw_init):
    /// `sent` and `received` divide it as for [`InterCommunicator::iall_to_allw`], once for all starts.
    ///
    /// # Errors
    /// As [`InterCommunicator::iall_to_allw`].
    ///
    /// ```
    /// // One rank in each group: `between` is an intercommunicator of both.
    /// mpj::local::run(2, |world| {
    ///     # let (own, leader) = (world.self_comm().unwrap(), 1 - world.rank());
    ///     # let other = mpj::RemoteLeader { peers: &world, leader, tag: 0 };
    ///     # let between = own.create_inter(0, Some(other)).unwrap();
    ///     let kept = between.all_to_allw_init(
    ///         vec![world.rank(); 4],
    ///         |matrix| Ok(vec![mpj::column(matrix, 2, 0)?]),
    ///         vec![9; 4],
    ///         |matrix| Ok(vec![mpj::column_mut(matrix, 2, 1)?]),
    ///     );
    ///     let mut kept = kept.unwrap();
    ///     kept.start().unwrap();
    ///     kept.wait().unwrap();
    ///     assert_eq!(kept.buffer().unwrap(), [9, 1 - world.rank(), 9, 1 - world.rank()]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn all_to_allw_init<T: Datatype>(
        &self,
        data: Vec<T>,
        sent: impl FnOnce(&[T]) -> Result<Vec<Strided<'_, T>>, Error>,
        mut into: Vec<T>,
        received: impl FnOnce(&mut [T]) -> Result<Vec<StridedMut<'_, T>>, Error>,
    ) -> Result<PersistentCollective<T>, Error> {
        let parts = Parts::of(&data, sent, &mut into, received);
        self.communicator.keep(data, into, |data, into| {
            let (data, into) = parts?.divide(data, into);
            self.plan_all_to_allw(data, into)
        })
    }

    /// Makes a persistent request for [`InterCommunicator::reduce`] (MPI_Reduce_init).
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
    ///     let mut kept = between.reduce_init(vec![7], vec![9], Op::Sum, root).unwrap();
    ///     kept.start().unwrap();
    ///     kept.wait().unwrap();
    ///     assert_eq!(kept.buffer().unwrap(), [[9], [7]][world.rank()]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn reduce_init<T: Datatype>(
        &self,
        data: Vec<T>,
        into: Vec<T>,
        op: impl Operation<T>,
        root: Root,
    ) -> Result<PersistentCollective<T>, Error> {
        self.communicator
            .keep(data, into, |data, into| self.plan_reduce(data, into, op.reduction(), root))
    }

    /// Makes a persistent request for [`InterCommunicator::all_reduce`] (MPI_Allreduce_init).
    ///
    /// # Errors
    /// As [`InterCommunicator::all_reduce`].
    ///
    /// ```
    /// use mpj::Op;
    /// // One rank in each group: `between` is an intercommunicator of both.
    /// mpj::local::run(2, |world| {
    ///     # let (own, leader) = (world.self_comm().unwrap(), 1 - world.rank());
    ///     # let other = mpj::RemoteLeader { peers: &world, leader, tag: 0 };
    ///     # let between = own.create_inter(0, Some(other)).unwrap();
    ///     let mut kept = between.all_reduce_init(vec![world.rank()], vec![9], Op::Sum).unwrap();
    ///     kept.start().unwrap();
    ///     kept.wait().unwrap();
    ///     assert_eq!(kept.buffer().unwrap(), [1 - world.rank()]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn all_reduce_init<T: Datatype>(
        &self,
        data: Vec<T>,
        into: Vec<T>,
        op: impl Operation<T>,
    ) -> Result<PersistentCollective<T>, Error> {
        self.communicator
            .keep(data, into, |data, into| self.plan_all_reduce(data, into, op.reduction()))
    }

    /// Makes a persistent request for [`InterCommunicator::reduce_scatter`] (MPI_Reduce_scatter_init).
    ///
    /// # Errors
    /// As [`InterCommunicator::reduce_scatter`].
    ///
    /// ```
    /// use mpj::Op;
    /// // One rank in each group: `between` is an intercommunicator of both.
    /// mpj::local::run(2, |world| {
    ///     # let (own, leader) = (world.self_comm().unwrap(), 1 - world.rank());
    ///     # let other = mpj::RemoteLeader { peers: &world, leader, tag: 0 };
    ///     # let between = own.create_inter(0, Some(other)).unwrap();
    ///     let mine = vec![world.rank()];
    ///     let mut kept = between.reduce_scatter_init(mine, vec![9], &[1], Op::Sum).unwrap();
    ///     kept.start().unwrap();
    ///     kept.wait().unwrap();
    ///     assert_eq!(kept.buffer().unwrap(), [1 - world.rank()]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn reduce_scatter_init<T: Datatype>(
        &self,
        data: Vec<T>,
        into: Vec<T>,
        counts: &[usize],
        op: impl Operation<T>,
    ) -> Result<PersistentCollective<T>, Error> {
        self.communicator.keep(data, into, |data, into| {
            self.plan_reduce_scatter(data, into, counts, op.reduction())
        })
    }

    /// Makes a persistent request for [`InterCommunicator::reduce_scatter_block`] (MPI_Reduce_scatter_block_init).
    ///
    /// # Errors
    /// As [`InterCommunicator::reduce_scatter_block`].
    ///
    /// ```
    /// use mpj::Op;
    /// // One rank in each group: `between` is an intercommunicator of both.
    /// mpj::local::run(2, |world| {
    ///     # let (own, leader) = (world.self_comm().unwrap(), 1 - world.rank());
    ///     # let other = mpj::RemoteLeader { peers: &world, leader, tag: 0 };
    ///     # let between = own.create_inter(0, Some(other)).unwrap();
    ///     let mine = vec![world.rank()];
    ///     let mut kept = between.reduce_scatter_block_init(mine, vec![9], Op::Sum).unwrap();
    ///     kept.start().unwrap();
    ///     kept.wait().unwrap();
    ///     assert_eq!(kept.buffer().unwrap(), [1 - world.rank()]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn reduce_scatter_block_init<T: Datatype>(
        &self,
        data: Vec<T>,
        into: Vec<T>,
        op: impl Operation<T>,
    ) -> Result<PersistentCollective<T>, Error> {
        self.communicator.keep(data, into, |data, into| {
            self.plan_reduce_scatter_block(data, into, op.reduction())
        })
    }
}

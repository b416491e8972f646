//! Non-blocking collective calls of a scope between two groups, which borrow their buffers (MPI-4.1 section 6.12). The
//! calls of a scope on a communicator are in `collective/scoped.rs`.

use mpicore::Plan;

use super::Root;
use crate::collective::{Partition, RecvArg};
use crate::communicator::InterCommunicator;
use crate::error::Error;
use crate::memory::core::{input, inputs, outputs};
use crate::memory::{RecvBuffer, SendBuffer};
use crate::op::Operation;
use crate::scope::{Scope, ScopeOn, ScopedCollective};

/// The collective calls of a scope between the two groups of an intercommunicator: see [`Scope::between`].
///
/// ```
/// // One rank in each group: `between` is an intercommunicator of both.
/// mpj::local::run(2, |world| {
///     # let (own, leader) = (world.self_comm().unwrap(), 1 - world.rank());
///     # let other = mpj::RemoteLeader { peers: &world, leader, tag: 0 };
///     # let between = own.create_inter(0, Some(other)).unwrap();
///     let (mine, mut theirs) = (world.rank(), 9);
///     let outcome: Result<(), mpj::Error> = world.scope(|scope| {
///         let calls: mpj::ScopeBetween<'_, '_> = scope.between(&between);
///         let sum = calls.iall_reduce(&mine, &mut theirs, mpj::Op::Sum)?;
///         calls.ibarrier()?;
///         *sum.wait()? += 10;
///         Ok(())
///     });
///     outcome.unwrap();
///     assert_eq!(theirs, 11 - mine);
/// })?;
/// # Ok::<(), mpj::local::LocalError>(())
/// ```
#[derive(Clone, Copy)]
pub struct ScopeBetween<'scope, 'env: 'scope> {
    on: ScopeOn<'scope, 'env>,
    between: &'scope InterCommunicator,
}

impl<'scope, 'env> Scope<'scope, 'env> {
    /// Returns the collective calls of this scope between two groups. As with [`Scope::on`], the intercommunicator
    /// must belong to the same context of the rank as the communicator of the scope; otherwise all calls fail with
    /// [`Error::OtherContext`].
    ///
    /// ```
    /// // One rank in each group: `between` is an intercommunicator of both.
    /// mpj::local::run(2, |world| {
    ///     # let (own, leader) = (world.self_comm().unwrap(), 1 - world.rank());
    ///     # let other = mpj::RemoteLeader { peers: &world, leader, tag: 0 };
    ///     # let between = own.create_inter(0, Some(other)).unwrap();
    ///     let (mut sum, mut theirs) = (world.rank() + 1, 9);
    ///     let mine = sum;
    ///     let outcome: Result<(), mpj::Error> = world.scope(|scope| {
    ///         scope.iall_reduce(&mut sum, mpj::Op::Sum)?;
    ///         scope.between(&between).iall_gather(&mine, &mut theirs)?;
    ///         Ok(())
    ///     });
    ///     outcome.unwrap();
    ///     assert_eq!((sum, theirs), (3, 2 - world.rank()));
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn between(&'scope self, between: &'scope InterCommunicator) -> ScopeBetween<'scope, 'env> {
        ScopeBetween { on: self.on(&between.communicator), between }
    }
}

impl<'scope, 'env> ScopeBetween<'scope, 'env> {
    /// Starts the collective call that `plan` makes for the place of its results.
    fn start_collective<B: RecvBuffer + ?Sized>(
        self,
        results: &'env mut B,
        plan: impl FnOnce(&'scope InterCommunicator, RecvArg) -> Result<Plan<'scope>, Error>,
    ) -> Result<ScopedCollective<'scope, 'env, &'env mut B::MemoryMut>, Error> {
        self.on.start_collective(results, |_, results| plan(self.between, results))
    }

    /// Starts [`InterCommunicator::barrier`] (MPI_Ibarrier).
    ///
    /// # Errors
    /// As the blocking call; [`Error::OtherContext`].
    ///
    /// ```
    /// // One rank in each group: `between` is an intercommunicator of both.
    /// mpj::local::run(2, |world| {
    ///     # let (own, leader) = (world.self_comm().unwrap(), 1 - world.rank());
    ///     # let other = mpj::RemoteLeader { peers: &world, leader, tag: 0 };
    ///     # let between = own.create_inter(0, Some(other)).unwrap();
    ///     world.scope(|scope| scope.between(&between).ibarrier()?.wait()).unwrap();
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn ibarrier(self) -> Result<ScopedCollective<'scope, 'env, ()>, Error> {
        self.on.start_barrier(|on| on.core.inter_barrier())
    }

    /// Starts [`InterCommunicator::broadcast`] (MPI_Ibcast).
    ///
    /// # Errors
    /// As the blocking call; [`Error::OtherContext`].
    ///
    /// ```
    /// use mpj::Root;
    /// // One rank in each group: `between` is an intercommunicator of both.
    /// mpj::local::run(2, |world| {
    ///     # let (own, leader) = (world.self_comm().unwrap(), 1 - world.rank());
    ///     # let other = mpj::RemoteLeader { peers: &world, leader, tag: 0 };
    ///     # let between = own.create_inter(0, Some(other)).unwrap();
    ///     let root = [Root::There(0), Root::Here][world.rank()];
    ///     let mut word = world.rank();
    ///     world.scope(|scope| scope.between(&between).ibroadcast(&mut word, root).map(drop)).unwrap();
    ///     assert_eq!(word, 1);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn ibroadcast<B: RecvBuffer + ?Sized>(
        self,
        buffer: &'env mut B,
        root: Root,
    ) -> Result<ScopedCollective<'scope, 'env, &'env mut B::MemoryMut>, Error> {
        self.start_collective(buffer, |between, buffer| between.plan_broadcast(buffer, root))
    }

    /// Starts [`InterCommunicator::gather`] (MPI_Igather).
    ///
    /// # Errors
    /// As the blocking call; [`Error::OtherContext`].
    ///
    /// ```
    /// use mpj::Root;
    /// // One rank in each group: `between` is an intercommunicator of both.
    /// mpj::local::run(2, |world| {
    ///     # let (own, leader) = (world.self_comm().unwrap(), 1 - world.rank());
    ///     # let other = mpj::RemoteLeader { peers: &world, leader, tag: 0 };
    ///     # let between = own.create_inter(0, Some(other)).unwrap();
    ///     let root = [Root::There(0), Root::Here][world.rank()];
    ///     let mut all = [9];
    ///     world.scope(|scope| scope.between(&between).igather(&7, &mut all, root).map(drop)).unwrap();
    ///     assert_eq!(all, [[9], [7]][world.rank()]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn igather<S: SendBuffer + ?Sized, R>(
        self,
        data: &'env S,
        into: &'env mut R,
        root: Root,
    ) -> Result<ScopedCollective<'scope, 'env, &'env mut R::MemoryMut>, Error>
    where
        R: RecvBuffer<Element = S::Element> + ?Sized,
    {
        self.start_collective(into, |between, into| between.plan_gather(input(data)?, into, root))
    }

    /// Starts [`InterCommunicator::gatherv`] (MPI_Igatherv).
    ///
    /// # Errors
    /// As the blocking call; [`Error::OtherContext`].
    ///
    /// ```
    /// use mpj::{Partition, Root};
    /// // One rank in each group: `between` is an intercommunicator of both.
    /// mpj::local::run(2, |world| {
    ///     # let (own, leader) = (world.self_comm().unwrap(), 1 - world.rank());
    ///     # let other = mpj::RemoteLeader { peers: &world, leader, tag: 0 };
    ///     # let between = own.create_inter(0, Some(other)).unwrap();
    ///     let root = [Root::There(0), Root::Here][world.rank()];
    ///     let (blocks, mut all) = (Partition::at([(1, 2)]), [9; 3]);
    ///     world.scope(|scope| {
    ///         scope.between(&between).igatherv(&[7, 8], &mut all, &blocks, root).map(drop)
    ///     }).unwrap();
    ///     assert_eq!(all, [[9; 3], [9, 7, 8]][world.rank()]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn igatherv<S: SendBuffer + ?Sized, R>(
        self,
        data: &'env S,
        into: &'env mut R,
        blocks: &Partition,
        root: Root,
    ) -> Result<ScopedCollective<'scope, 'env, &'env mut R::MemoryMut>, Error>
    where
        R: RecvBuffer<Element = S::Element> + ?Sized,
    {
        self.start_collective(into, |between, into| {
            between.plan_gatherv(input(data)?, into, blocks, root)
        })
    }

    /// Starts [`InterCommunicator::scatter`] (MPI_Iscatter).
    ///
    /// # Errors
    /// As the blocking call; [`Error::OtherContext`].
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
    ///     world.scope(|scope| scope.between(&between).iscatter(&[7], &mut mine, root).map(drop)).unwrap();
    ///     assert_eq!(mine, [7, 9][world.rank()]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn iscatter<S: SendBuffer + ?Sized, R>(
        self,
        data: &'env S,
        into: &'env mut R,
        root: Root,
    ) -> Result<ScopedCollective<'scope, 'env, &'env mut R::MemoryMut>, Error>
    where
        R: RecvBuffer<Element = S::Element> + ?Sized,
    {
        self.start_collective(into, |between, into| between.plan_scatter(input(data)?, into, root))
    }

    /// Starts [`InterCommunicator::scatterv`] (MPI_Iscatterv).
    ///
    /// # Errors
    /// As the blocking call; [`Error::OtherContext`].
    ///
    /// ```
    /// use mpj::{Partition, Root};
    /// // One rank in each group: `between` is an intercommunicator of both.
    /// mpj::local::run(2, |world| {
    ///     # let (own, leader) = (world.self_comm().unwrap(), 1 - world.rank());
    ///     # let other = mpj::RemoteLeader { peers: &world, leader, tag: 0 };
    ///     # let between = own.create_inter(0, Some(other)).unwrap();
    ///     let root = [Root::There(0), Root::Here][world.rank()];
    ///     let (blocks, mut mine) = (Partition::at([(1, 2)]), [9; 2]);
    ///     world.scope(|scope| {
    ///         scope.between(&between).iscatterv(&[6, 7, 8], &blocks, &mut mine, root).map(drop)
    ///     }).unwrap();
    ///     assert_eq!(mine, [[7, 8], [9, 9]][world.rank()]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn iscatterv<S: SendBuffer + ?Sized, R>(
        self,
        data: &'env S,
        blocks: &Partition,
        into: &'env mut R,
        root: Root,
    ) -> Result<ScopedCollective<'scope, 'env, &'env mut R::MemoryMut>, Error>
    where
        R: RecvBuffer<Element = S::Element> + ?Sized,
    {
        self.start_collective(into, |between, into| {
            between.plan_scatterv(input(data)?, blocks, into, root)
        })
    }

    /// Starts [`InterCommunicator::all_gather`] (MPI_Iallgather).
    ///
    /// # Errors
    /// As the blocking call; [`Error::OtherContext`].
    ///
    /// ```
    /// // One rank in each group: `between` is an intercommunicator of both.
    /// mpj::local::run(2, |world| {
    ///     # let (own, leader) = (world.self_comm().unwrap(), 1 - world.rank());
    ///     # let other = mpj::RemoteLeader { peers: &world, leader, tag: 0 };
    ///     # let between = own.create_inter(0, Some(other)).unwrap();
    ///     let (mine, mut theirs) = (world.rank(), [9]);
    ///     world.scope(|scope| scope.between(&between).iall_gather(&mine, &mut theirs).map(drop)).unwrap();
    ///     assert_eq!(theirs, [1 - mine]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn iall_gather<S: SendBuffer + ?Sized, R>(
        self,
        data: &'env S,
        into: &'env mut R,
    ) -> Result<ScopedCollective<'scope, 'env, &'env mut R::MemoryMut>, Error>
    where
        R: RecvBuffer<Element = S::Element> + ?Sized,
    {
        self.start_collective(into, |between, into| between.plan_all_gather(input(data)?, into))
    }

    /// Starts [`InterCommunicator::all_gatherv`] (MPI_Iallgatherv).
    ///
    /// # Errors
    /// As the blocking call; [`Error::OtherContext`].
    ///
    /// ```
    /// use mpj::Partition;
    /// // One rank in each group: `between` is an intercommunicator of both.
    /// mpj::local::run(2, |world| {
    ///     # let (own, leader) = (world.self_comm().unwrap(), 1 - world.rank());
    ///     # let other = mpj::RemoteLeader { peers: &world, leader, tag: 0 };
    ///     # let between = own.create_inter(0, Some(other)).unwrap();
    ///     let (mine, mut theirs, blocks) = ([world.rank(); 2], [9; 2], Partition::packed([2]));
    ///     world.scope(|scope| {
    ///         scope.between(&between).iall_gatherv(&mine, &mut theirs, &blocks).map(drop)
    ///     }).unwrap();
    ///     assert_eq!(theirs, [1 - world.rank(); 2]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn iall_gatherv<S: SendBuffer + ?Sized, R>(
        self,
        data: &'env S,
        into: &'env mut R,
        blocks: &Partition,
    ) -> Result<ScopedCollective<'scope, 'env, &'env mut R::MemoryMut>, Error>
    where
        R: RecvBuffer<Element = S::Element> + ?Sized,
    {
        self.start_collective(into, |between, into| {
            between.plan_all_gatherv(input(data)?, into, blocks)
        })
    }

    /// Starts [`InterCommunicator::all_to_all`] (MPI_Ialltoall).
    ///
    /// # Errors
    /// As the blocking call; [`Error::OtherContext`].
    ///
    /// ```
    /// // One rank in each group: `between` is an intercommunicator of both.
    /// mpj::local::run(2, |world| {
    ///     # let (own, leader) = (world.self_comm().unwrap(), 1 - world.rank());
    ///     # let other = mpj::RemoteLeader { peers: &world, leader, tag: 0 };
    ///     # let between = own.create_inter(0, Some(other)).unwrap();
    ///     let (mine, mut theirs) = ([world.rank()], [9]);
    ///     world.scope(|scope| scope.between(&between).iall_to_all(&mine, &mut theirs).map(drop)).unwrap();
    ///     assert_eq!(theirs, [1 - world.rank()]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn iall_to_all<S: SendBuffer + ?Sized, R>(
        self,
        data: &'env S,
        into: &'env mut R,
    ) -> Result<ScopedCollective<'scope, 'env, &'env mut R::MemoryMut>, Error>
    where
        R: RecvBuffer<Element = S::Element> + ?Sized,
    {
        self.start_collective(into, |between, into| between.plan_all_to_all(input(data)?, into))
    }

    /// Starts [`InterCommunicator::all_to_allv`] (MPI_Ialltoallv).
    ///
    /// # Errors
    /// As the blocking call; [`Error::OtherContext`].
    ///
    /// ```
    /// use mpj::Partition;
    /// // One rank in each group: `between` is an intercommunicator of both.
    /// mpj::local::run(2, |world| {
    ///     # let (own, leader) = (world.self_comm().unwrap(), 1 - world.rank());
    ///     # let other = mpj::RemoteLeader { peers: &world, leader, tag: 0 };
    ///     # let between = own.create_inter(0, Some(other)).unwrap();
    ///     let (mine, mut theirs, both) = ([world.rank(); 2], [9; 2], Partition::packed([2]));
    ///     world.scope(|scope| {
    ///         scope.between(&between).iall_to_allv(&mine, &both, &mut theirs, &both).map(drop)
    ///     }).unwrap();
    ///     assert_eq!(theirs, [1 - world.rank(); 2]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn iall_to_allv<S: SendBuffer + ?Sized, R>(
        self,
        data: &'env S,
        sent: &Partition,
        into: &'env mut R,
        received: &Partition,
    ) -> Result<ScopedCollective<'scope, 'env, &'env mut R::MemoryMut>, Error>
    where
        R: RecvBuffer<Element = S::Element> + ?Sized,
    {
        self.start_collective(into, |between, into| {
            between.plan_all_to_allv(input(data)?, sent, into, received)
        })
    }

    /// Starts [`InterCommunicator::all_to_allw`] (MPI_Ialltoallw).
    ///
    /// # Errors
    /// As the blocking call; [`Error::OtherContext`].
    ///
    /// ```
    /// // One rank in each group: `between` is an intercommunicator of both.
    /// mpj::local::run(2, |world| {
    ///     # let (own, leader) = (world.self_comm().unwrap(), 1 - world.rank());
    ///     # let other = mpj::RemoteLeader { peers: &world, leader, tag: 0 };
    ///     # let between = own.create_inter(0, Some(other)).unwrap();
    ///     let (mine, mut theirs) = ([[world.rank(); 2]], [[9; 2]]);
    ///     world.scope(|scope| scope.between(&between).iall_to_allw(&mine, &mut theirs).map(drop)).unwrap();
    ///     assert_eq!(theirs, [[1 - world.rank(); 2]]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn iall_to_allw<S: SendBuffer, R>(
        self,
        data: &'env [S],
        into: &'env mut [R],
    ) -> Result<ScopedCollective<'scope, 'env, &'env mut [R]>, Error>
    where
        R: RecvBuffer<Element = S::Element>,
    {
        let Self { on, between } = self;
        on.start_lent(into, |_, into| between.plan_all_to_allw(inputs(data)?, outputs(into)?))
    }

    /// Starts [`InterCommunicator::reduce`] (MPI_Ireduce).
    ///
    /// # Errors
    /// As the blocking call; [`Error::OtherContext`].
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
    ///     world.scope(|scope| {
    ///         scope.between(&between).ireduce(&7, &mut sum, Op::Sum, root).map(drop)
    ///     }).unwrap();
    ///     assert_eq!(sum, [9, 7][world.rank()]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn ireduce<S: SendBuffer + ?Sized, R>(
        self,
        data: &'env S,
        into: &'env mut R,
        op: impl Operation<S::Element>,
        root: Root,
    ) -> Result<ScopedCollective<'scope, 'env, &'env mut R::MemoryMut>, Error>
    where
        R: RecvBuffer<Element = S::Element> + ?Sized,
    {
        self.start_collective(into, |between, into| {
            between.plan_reduce(input(data)?, into, op.reduction(), root)
        })
    }

    /// Starts [`InterCommunicator::all_reduce`] (MPI_Iallreduce).
    ///
    /// # Errors
    /// As the blocking call; [`Error::OtherContext`].
    ///
    /// ```
    /// use mpj::Op;
    /// // One rank in each group: `between` is an intercommunicator of both.
    /// mpj::local::run(2, |world| {
    ///     # let (own, leader) = (world.self_comm().unwrap(), 1 - world.rank());
    ///     # let other = mpj::RemoteLeader { peers: &world, leader, tag: 0 };
    ///     # let between = own.create_inter(0, Some(other)).unwrap();
    ///     let (mine, mut sum) = (world.rank(), 9);
    ///     world.scope(|scope| scope.between(&between).iall_reduce(&mine, &mut sum, Op::Sum).map(drop)).unwrap();
    ///     assert_eq!(sum, 1 - mine);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn iall_reduce<S: SendBuffer + ?Sized, R>(
        self,
        data: &'env S,
        into: &'env mut R,
        op: impl Operation<S::Element>,
    ) -> Result<ScopedCollective<'scope, 'env, &'env mut R::MemoryMut>, Error>
    where
        R: RecvBuffer<Element = S::Element> + ?Sized,
    {
        self.start_collective(into, |between, into| {
            between.plan_all_reduce(input(data)?, into, op.reduction())
        })
    }

    /// Starts [`InterCommunicator::reduce_scatter`] (MPI_Ireduce_scatter).
    ///
    /// # Errors
    /// As the blocking call; [`Error::OtherContext`].
    ///
    /// ```
    /// use mpj::Op;
    /// // One rank in each group: `between` is an intercommunicator of both.
    /// mpj::local::run(2, |world| {
    ///     # let (own, leader) = (world.self_comm().unwrap(), 1 - world.rank());
    ///     # let other = mpj::RemoteLeader { peers: &world, leader, tag: 0 };
    ///     # let between = own.create_inter(0, Some(other)).unwrap();
    ///     let (mine, mut theirs) = ([world.rank(), 5], [9; 2]);
    ///     world.scope(|scope| {
    ///         scope.between(&between).ireduce_scatter(&mine, &mut theirs, &[2], Op::Sum).map(drop)
    ///     }).unwrap();
    ///     assert_eq!(theirs, [1 - world.rank(), 5]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn ireduce_scatter<S: SendBuffer + ?Sized, R>(
        self,
        data: &'env S,
        into: &'env mut R,
        counts: &[usize],
        op: impl Operation<S::Element>,
    ) -> Result<ScopedCollective<'scope, 'env, &'env mut R::MemoryMut>, Error>
    where
        R: RecvBuffer<Element = S::Element> + ?Sized,
    {
        self.start_collective(into, |between, into| {
            between.plan_reduce_scatter(input(data)?, into, counts, op.reduction())
        })
    }

    /// Starts [`InterCommunicator::reduce_scatter_block`] (MPI_Ireduce_scatter_block).
    ///
    /// # Errors
    /// As the blocking call; [`Error::OtherContext`].
    ///
    /// ```
    /// use mpj::Op;
    /// // One rank in each group: `between` is an intercommunicator of both.
    /// mpj::local::run(2, |world| {
    ///     # let (own, leader) = (world.self_comm().unwrap(), 1 - world.rank());
    ///     # let other = mpj::RemoteLeader { peers: &world, leader, tag: 0 };
    ///     # let between = own.create_inter(0, Some(other)).unwrap();
    ///     let (mine, mut theirs) = ([world.rank(), 5], [9; 2]);
    ///     world.scope(|scope| {
    ///         scope.between(&between).ireduce_scatter_block(&mine, &mut theirs, Op::Sum).map(drop)
    ///     }).unwrap();
    ///     assert_eq!(theirs, [1 - world.rank(), 5]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn ireduce_scatter_block<S: SendBuffer + ?Sized, R>(
        self,
        data: &'env S,
        into: &'env mut R,
        op: impl Operation<S::Element>,
    ) -> Result<ScopedCollective<'scope, 'env, &'env mut R::MemoryMut>, Error>
    where
        R: RecvBuffer<Element = S::Element> + ?Sized,
    {
        self.start_collective(into, |between, into| {
            between.plan_reduce_scatter_block(input(data)?, into, op.reduction())
        })
    }
}

//! Non-blocking collective calls of a scope, which borrow their buffers (MPI-4.1 section 6.12). They run on the
//! communicator of the scope or, by [`Scope::on`](crate::Scope::on), on another one.
//!
//! The sent buffer is borrowed as long as the scope's environment lasts. The buffer of the results is lent (LE1 of
//! `memory/borrowed.rs`); [`ScopedCollective::wait`] returns its borrow when the call has ended.

use super::Partition;
use crate::error::Error;
use crate::memory::core::{input, inputs, outputs};
use crate::memory::{RecvBuffer, SendBuffer};
use crate::op::Operation;
use crate::scope::{ScopeOn, ScopedCollective};

impl<'scope, 'env> ScopeOn<'scope, 'env> {
    /// Starts a barrier (MPI_Ibarrier).
    ///
    /// # Errors
    /// As [`Communicator::barrier`](crate::Communicator::barrier); [`Error::OtherContext`].
    ///
    /// ```
    /// mpj::local::run(3, |world| {
    ///     world.scope(|scope| scope.ibarrier()?.wait()).unwrap();
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn ibarrier(self) -> Result<ScopedCollective<'scope, 'env, ()>, Error> {
        self.start_barrier(|on| on.core.barrier())
    }

    /// Starts [`Communicator::broadcast`](crate::Communicator::broadcast) (MPI_Ibcast).
    ///
    /// # Errors
    /// As the blocking call; [`Error::OtherContext`].
    ///
    /// ```
    /// mpj::local::run(3, |world| {
    ///     let mut word = [world.rank(); 2];
    ///     world.scope(|scope| scope.ibroadcast(&mut word, 1).map(drop)).unwrap();
    ///     assert_eq!(word, [1, 1]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn ibroadcast<B: RecvBuffer + ?Sized>(
        self,
        buffer: &'env mut B,
        root: usize,
    ) -> Result<ScopedCollective<'scope, 'env, &'env mut B::MemoryMut>, Error> {
        self.start_collective(buffer, |on, buffer| on.plan_broadcast(buffer, root))
    }

    /// Starts [`Communicator::gather`](crate::Communicator::gather) (MPI_Igather).
    ///
    /// # Errors
    /// As the blocking call; [`Error::OtherContext`].
    ///
    /// ```
    /// mpj::local::run(3, |world| {
    ///     let (mine, mut all) = (world.rank(), if world.rank() == 0 { vec![0; 3] } else { vec![] });
    ///     world.scope(|scope| scope.igather(&mine, &mut all, 0).map(drop)).unwrap();
    ///     assert!(world.rank() > 0 || all == [0, 1, 2]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn igather<S: SendBuffer + ?Sized, R>(
        self,
        data: &'env S,
        into: &'env mut R,
        root: usize,
    ) -> Result<ScopedCollective<'scope, 'env, &'env mut R::MemoryMut>, Error>
    where
        R: RecvBuffer<Element = S::Element> + ?Sized,
    {
        self.start_collective(into, |on, into| on.plan_gather(input(data)?, into, root))
    }

    /// Starts [`Communicator::gatherv`](crate::Communicator::gatherv) (MPI_Igatherv).
    ///
    /// # Errors
    /// As the blocking call; [`Error::OtherContext`].
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     let blocks = mpj::Partition::packed([1, 2]);
    ///     let (mine, mut all) = (vec![world.rank(); world.rank() + 1], [9; 3]);
    ///     world.scope(|scope| scope.igatherv(&mine, &mut all, &blocks, 0).map(drop)).unwrap();
    ///     assert_eq!(all, [[0, 1, 1], [9; 3]][world.rank()]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn igatherv<S: SendBuffer + ?Sized, R>(
        self,
        data: &'env S,
        into: &'env mut R,
        blocks: &Partition,
        root: usize,
    ) -> Result<ScopedCollective<'scope, 'env, &'env mut R::MemoryMut>, Error>
    where
        R: RecvBuffer<Element = S::Element> + ?Sized,
    {
        self.start_collective(into, |on, into| on.plan_gatherv(input(data)?, into, blocks, root))
    }

    /// Starts [`Communicator::scatter`](crate::Communicator::scatter) (MPI_Iscatter).
    ///
    /// # Errors
    /// As the blocking call; [`Error::OtherContext`].
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     let (all, mut mine) = ([7, 8], 0);
    ///     world.scope(|scope| scope.iscatter(&all, &mut mine, 0).map(drop)).unwrap();
    ///     assert_eq!(mine, 7 + world.rank());
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn iscatter<S: SendBuffer + ?Sized, R>(
        self,
        data: &'env S,
        into: &'env mut R,
        root: usize,
    ) -> Result<ScopedCollective<'scope, 'env, &'env mut R::MemoryMut>, Error>
    where
        R: RecvBuffer<Element = S::Element> + ?Sized,
    {
        self.start_collective(into, |on, into| on.plan_scatter(input(data)?, into, root))
    }

    /// Starts [`Communicator::scatterv`](crate::Communicator::scatterv) (MPI_Iscatterv).
    ///
    /// # Errors
    /// As the blocking call; [`Error::OtherContext`].
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     let (all, mut mine) = ([7, 8, 9], vec![0; world.rank() + 1]);
    ///     let blocks = mpj::Partition::packed([1, 2]);
    ///     world.scope(|scope| scope.iscatterv(&all, &blocks, &mut mine, 0).map(drop)).unwrap();
    ///     assert_eq!(mine, [&[7][..], &[8, 9]][world.rank()]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn iscatterv<S: SendBuffer + ?Sized, R>(
        self,
        data: &'env S,
        blocks: &Partition,
        into: &'env mut R,
        root: usize,
    ) -> Result<ScopedCollective<'scope, 'env, &'env mut R::MemoryMut>, Error>
    where
        R: RecvBuffer<Element = S::Element> + ?Sized,
    {
        self.start_collective(into, |on, into| on.plan_scatterv(input(data)?, blocks, into, root))
    }

    /// Starts [`Communicator::all_gather`](crate::Communicator::all_gather) (MPI_Iallgather).
    ///
    /// # Errors
    /// As the blocking call; [`Error::OtherContext`].
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     let (mine, mut all) = (world.rank(), [9; 2]);
    ///     world.scope(|scope| scope.iall_gather(&mine, &mut all).map(drop)).unwrap();
    ///     assert_eq!(all, [0, 1]);
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
        self.start_collective(into, |on, into| on.plan_all_gather(input(data)?, into))
    }

    /// Starts [`Communicator::all_gatherv`](crate::Communicator::all_gatherv) (MPI_Iallgatherv).
    ///
    /// # Errors
    /// As the blocking call; [`Error::OtherContext`].
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     let (mine, mut all) = (vec![world.rank(); world.rank() + 1], [9; 3]);
    ///     let blocks = mpj::Partition::packed([1, 2]);
    ///     world.scope(|scope| scope.iall_gatherv(&mine, &mut all, &blocks).map(drop)).unwrap();
    ///     assert_eq!(all, [0, 1, 1]);
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
        self.start_collective(into, |on, into| on.plan_all_gatherv(input(data)?, into, blocks))
    }

    /// Starts [`Communicator::all_to_all`](crate::Communicator::all_to_all) (MPI_Ialltoall).
    ///
    /// # Errors
    /// As the blocking call; [`Error::OtherContext`].
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     let (data, mut into) = ([world.rank(), 10 + world.rank()], [0; 2]);
    ///     world.scope(|scope| scope.iall_to_all(&data, &mut into).map(drop)).unwrap();
    ///     assert_eq!(into, [0, 1].map(|from| 10 * world.rank() + from));
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
        self.start_collective(into, |on, into| on.plan_all_to_all(input(data)?, into))
    }

    /// Starts [`Communicator::all_to_allv`](crate::Communicator::all_to_allv) (MPI_Ialltoallv).
    ///
    /// # Errors
    /// As the blocking call; [`Error::OtherContext`].
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     // Every rank sends one number to rank 0, and two to rank 1.
    ///     let (sent, count) = (mpj::Partition::packed([1, 2]), world.rank() + 1);
    ///     let received = mpj::Partition::packed([count; 2]);
    ///     let (data, mut into) = ([world.rank(); 3], vec![9; 2 * count]);
    ///     world.scope(|scope| scope.iall_to_allv(&data, &sent, &mut into, &received).map(drop)).unwrap();
    ///     assert_eq!(into, [&[0, 1][..], &[0, 0, 1, 1]][world.rank()]);
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
        self.start_collective(into, |on, into| {
            on.plan_all_to_allv(input(data)?, sent, into, received)
        })
    }

    /// Starts [`Communicator::all_to_allw`](crate::Communicator::all_to_allw) (MPI_Ialltoallw).
    ///
    /// # Errors
    /// As the blocking call; [`Error::OtherContext`].
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     // Rank r gets a vector of r + 1 numbers from every rank.
    ///     let (data, len) = ([vec![world.rank()], vec![world.rank(); 2]], world.rank() + 1);
    ///     let mut into = [vec![9; len], vec![9; len]];
    ///     world.scope(|scope| scope.iall_to_allw(&data, &mut into).map(drop)).unwrap();
    ///     assert_eq!(into, [vec![0; len], vec![1; len]]);
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
        self.start_lent(into, |on, into| on.plan_all_to_allw(inputs(data)?, outputs(into)?))
    }

    /// Starts [`Communicator::reduce`](crate::Communicator::reduce) (MPI_Ireduce).
    ///
    /// # Errors
    /// As the blocking call; [`Error::OtherContext`].
    ///
    /// ```
    /// mpj::local::run(3, |world| {
    ///     let (mine, mut sum) = (world.rank(), 9_usize);
    ///     world.scope(|scope| scope.ireduce(&mine, &mut sum, mpj::Op::Sum, 0).map(drop)).unwrap();
    ///     assert_eq!(sum, [3, 9, 9][world.rank()]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn ireduce<S: SendBuffer + ?Sized, R>(
        self,
        data: &'env S,
        into: &'env mut R,
        op: impl Operation<S::Element>,
        root: usize,
    ) -> Result<ScopedCollective<'scope, 'env, &'env mut R::MemoryMut>, Error>
    where
        R: RecvBuffer<Element = S::Element> + ?Sized,
    {
        self.start_collective(into, |on, into| {
            on.plan_reduce(input(data)?, into, op.reduction(), root)
        })
    }

    /// Starts [`Communicator::all_reduce`](crate::Communicator::all_reduce) (MPI_Iallreduce).
    ///
    /// # Errors
    /// As the blocking call; [`Error::OtherContext`].
    ///
    /// ```
    /// mpj::local::run(3, |world| {
    ///     let mut sum = [world.rank(), 1];
    ///     let outcome: Result<(), mpj::Error> = world.scope(|scope| {
    ///         let sums = scope.iall_reduce(&mut sum, mpj::Op::Sum)?;
    ///         // Work that needs no sums.
    ///         sums.wait()?[1] += 10;
    ///         Ok(())
    ///     });
    ///     outcome.unwrap();
    ///     assert_eq!(sum, [3, 13]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn iall_reduce<B: RecvBuffer + ?Sized>(
        self,
        buffer: &'env mut B,
        op: impl Operation<B::Element>,
    ) -> Result<ScopedCollective<'scope, 'env, &'env mut B::MemoryMut>, Error> {
        self.start_collective(buffer, |on, buffer| on.plan_all_reduce(buffer, op.reduction()))
    }

    /// Starts [`Communicator::reduce_scatter_block`](crate::Communicator::reduce_scatter_block)
    /// (MPI_Ireduce_scatter_block).
    ///
    /// # Errors
    /// As the blocking call; [`Error::OtherContext`].
    ///
    /// ```
    /// use mpj::Op;
    /// mpj::local::run(2, |world| {
    ///     let (data, mut mine) = ([1, 10], 0);
    ///     world.scope(|scope| scope.ireduce_scatter_block(&data, &mut mine, Op::Sum).map(drop)).unwrap();
    ///     assert_eq!(mine, [2, 20][world.rank()]);
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
        self.start_collective(into, |on, into| {
            on.plan_reduce_scatter_block(input(data)?, into, op.reduction())
        })
    }

    /// Starts [`Communicator::reduce_scatter`](crate::Communicator::reduce_scatter) (MPI_Ireduce_scatter).
    ///
    /// # Errors
    /// As the blocking call; [`Error::OtherContext`].
    ///
    /// ```
    /// use mpj::Op;
    /// mpj::local::run(2, |world| {
    ///     let (data, mut mine) = ([1, 10, 100], vec![0; world.rank() + 1]);
    ///     let outcome: Result<(), mpj::Error> = world.scope(|scope| {
    ///         scope.ireduce_scatter(&data, &mut mine, &[1, 2], Op::Sum).map(drop)
    ///     });
    ///     outcome.unwrap();
    ///     assert_eq!(mine, [&[2][..], &[20, 200]][world.rank()]);
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
        self.start_collective(into, |on, into| {
            on.plan_reduce_scatter(input(data)?, into, counts, op.reduction())
        })
    }

    /// Starts [`Communicator::scan`](crate::Communicator::scan) (MPI_Iscan).
    ///
    /// # Errors
    /// As the blocking call; [`Error::OtherContext`].
    ///
    /// ```
    /// mpj::local::run(3, |world| {
    ///     let mut sum = world.rank() + 1;
    ///     world.scope(|scope| scope.iscan(&mut sum, mpj::Op::Sum).map(drop)).unwrap();
    ///     assert_eq!(sum, [1, 3, 6][world.rank()]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn iscan<B: RecvBuffer + ?Sized>(
        self,
        buffer: &'env mut B,
        op: impl Operation<B::Element>,
    ) -> Result<ScopedCollective<'scope, 'env, &'env mut B::MemoryMut>, Error> {
        self.start_collective(buffer, |on, buffer| on.plan_scan(buffer, op.reduction()))
    }

    /// Starts [`Communicator::exscan`](crate::Communicator::exscan) (MPI_Iexscan).
    ///
    /// # Errors
    /// As the blocking call; [`Error::OtherContext`].
    ///
    /// ```
    /// mpj::local::run(3, |world| {
    ///     let mut sum = world.rank() + 1;
    ///     world.scope(|scope| scope.iexscan(&mut sum, mpj::Op::Sum).map(drop)).unwrap();
    ///     assert_eq!(sum, [1, 1, 3][world.rank()]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn iexscan<B: RecvBuffer + ?Sized>(
        self,
        buffer: &'env mut B,
        op: impl Operation<B::Element>,
    ) -> Result<ScopedCollective<'scope, 'env, &'env mut B::MemoryMut>, Error> {
        self.start_collective(buffer, |on, buffer| on.plan_exscan(buffer, op.reduction()))
    }
}

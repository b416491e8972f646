//! Collective calls that are started in a scope and borrow their buffers (MPI-4.1 section 6.12): on the communicator of
//! the scope, or on another one by [`Scope::on`].
//!
//! What is sent is borrowed for as long as the scope's environment lasts. The buffer of the results is lent (LE1 of
//! `lent.rs`); its borrow comes back from [`ScopedCollective::wait`], which has seen the call end.

use crate::error::Error;
use crate::memory::{RecvBuffer, SendBuffer};
use crate::op::Operation;
use crate::scope::{Scope, ScopeOn, ScopedCollective};

impl<'scope, 'env> Scope<'scope, 'env> {
    /// Starts a barrier (MPI_Ibarrier).
    ///
    /// # Errors
    /// As [`Communicator::barrier`](crate::Communicator::barrier).
    pub fn ibarrier(&'scope self) -> Result<ScopedCollective<'scope, 'env, ()>, Error> {
        self.on_own().ibarrier()
    }

    /// Starts [`Communicator::broadcast`](crate::Communicator::broadcast) (MPI_Ibcast).
    ///
    /// # Errors
    /// As the blocking call.
    pub fn ibroadcast<B: RecvBuffer + ?Sized>(
        &'scope self,
        buffer: &'env mut B,
        root: usize,
    ) -> Result<ScopedCollective<'scope, 'env, &'env mut B::MemoryMut>, Error> {
        self.on_own().ibroadcast(buffer, root)
    }

    /// Starts [`Communicator::gather`](crate::Communicator::gather) (MPI_Igather).
    ///
    /// # Errors
    /// As the blocking call.
    ///
    /// ```
    /// mpj::local::run(3, |world| {
    ///     let mut all = if world.rank() == 0 { vec![0; 3] } else { vec![] };
    ///     let mine = world.rank();
    ///     let outcome: Result<(), mpj::Error> =
    ///         world.scope(|scope| scope.igather(&mine, &mut all, 0).map(drop));
    ///     outcome.unwrap();
    ///     assert!(world.rank() > 0 || all == [0, 1, 2]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn igather<S: SendBuffer + ?Sized, R>(
        &'scope self,
        data: &'env S,
        into: &'env mut R,
        root: usize,
    ) -> Result<ScopedCollective<'scope, 'env, &'env mut R::MemoryMut>, Error>
    where
        R: RecvBuffer<Element = S::Element> + ?Sized,
    {
        self.on_own().igather(data, into, root)
    }

    /// Starts [`Communicator::scatter`](crate::Communicator::scatter) (MPI_Iscatter).
    ///
    /// # Errors
    /// As the blocking call.
    pub fn iscatter<S: SendBuffer + ?Sized, R>(
        &'scope self,
        data: &'env S,
        into: &'env mut R,
        root: usize,
    ) -> Result<ScopedCollective<'scope, 'env, &'env mut R::MemoryMut>, Error>
    where
        R: RecvBuffer<Element = S::Element> + ?Sized,
    {
        self.on_own().iscatter(data, into, root)
    }

    /// Starts [`Communicator::all_gather`](crate::Communicator::all_gather) (MPI_Iallgather).
    ///
    /// # Errors
    /// As the blocking call.
    pub fn iall_gather<S: SendBuffer + ?Sized, R>(
        &'scope self,
        data: &'env S,
        into: &'env mut R,
    ) -> Result<ScopedCollective<'scope, 'env, &'env mut R::MemoryMut>, Error>
    where
        R: RecvBuffer<Element = S::Element> + ?Sized,
    {
        self.on_own().iall_gather(data, into)
    }

    /// Starts [`Communicator::all_to_all`](crate::Communicator::all_to_all) (MPI_Ialltoall).
    ///
    /// # Errors
    /// As the blocking call.
    pub fn iall_to_all<S: SendBuffer + ?Sized, R>(
        &'scope self,
        data: &'env S,
        into: &'env mut R,
    ) -> Result<ScopedCollective<'scope, 'env, &'env mut R::MemoryMut>, Error>
    where
        R: RecvBuffer<Element = S::Element> + ?Sized,
    {
        self.on_own().iall_to_all(data, into)
    }

    /// Starts [`Communicator::reduce`](crate::Communicator::reduce) (MPI_Ireduce).
    ///
    /// # Errors
    /// As the blocking call.
    pub fn ireduce<S: SendBuffer + ?Sized, R>(
        &'scope self,
        data: &'env S,
        into: &'env mut R,
        op: impl Operation<S::Element>,
        root: usize,
    ) -> Result<ScopedCollective<'scope, 'env, &'env mut R::MemoryMut>, Error>
    where
        R: RecvBuffer<Element = S::Element> + ?Sized,
    {
        self.on_own().ireduce(data, into, op, root)
    }

    /// Starts [`Communicator::all_reduce`](crate::Communicator::all_reduce) (MPI_Iallreduce).
    ///
    /// # Errors
    /// As the blocking call.
    ///
    /// ```
    /// use mpj::Op;
    /// mpj::local::run(3, |world| {
    ///     let mut sum = [world.rank(), 1];
    ///     let outcome: Result<(), mpj::Error> = world.scope(|scope| {
    ///         let sums = scope.iall_reduce(&mut sum, Op::Sum)?;
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
        &'scope self,
        buffer: &'env mut B,
        op: impl Operation<B::Element>,
    ) -> Result<ScopedCollective<'scope, 'env, &'env mut B::MemoryMut>, Error> {
        self.on_own().iall_reduce(buffer, op)
    }
}

impl<'scope, 'env> ScopeOn<'scope, 'env> {
    /// As [`Scope::ibarrier`], on this communicator.
    ///
    /// # Errors
    /// As the blocking call; [`Error::OtherContext`].
    pub fn ibarrier(self) -> Result<ScopedCollective<'scope, 'env, ()>, Error> {
        self.start_barrier()
    }

    /// As [`Scope::ibroadcast`], on this communicator.
    ///
    /// # Errors
    /// As the blocking call; [`Error::OtherContext`].
    pub fn ibroadcast<B: RecvBuffer + ?Sized>(
        self,
        buffer: &'env mut B,
        root: usize,
    ) -> Result<ScopedCollective<'scope, 'env, &'env mut B::MemoryMut>, Error> {
        self.start_collective(buffer, |on, buffer| on.plan_broadcast(buffer, root))
    }

    /// As [`Scope::igather`], on this communicator.
    ///
    /// # Errors
    /// As the blocking call; [`Error::OtherContext`].
    pub fn igather<S: SendBuffer + ?Sized, R>(
        self,
        data: &'env S,
        into: &'env mut R,
        root: usize,
    ) -> Result<ScopedCollective<'scope, 'env, &'env mut R::MemoryMut>, Error>
    where
        R: RecvBuffer<Element = S::Element> + ?Sized,
    {
        self.start_collective(into, |on, into| on.plan_gather(data, into, root))
    }

    /// As [`Scope::iscatter`], on this communicator.
    ///
    /// # Errors
    /// As the blocking call; [`Error::OtherContext`].
    pub fn iscatter<S: SendBuffer + ?Sized, R>(
        self,
        data: &'env S,
        into: &'env mut R,
        root: usize,
    ) -> Result<ScopedCollective<'scope, 'env, &'env mut R::MemoryMut>, Error>
    where
        R: RecvBuffer<Element = S::Element> + ?Sized,
    {
        self.start_collective(into, |on, into| on.plan_scatter(data, into, root))
    }

    /// As [`Scope::iall_gather`], on this communicator.
    ///
    /// # Errors
    /// As the blocking call; [`Error::OtherContext`].
    pub fn iall_gather<S: SendBuffer + ?Sized, R>(
        self,
        data: &'env S,
        into: &'env mut R,
    ) -> Result<ScopedCollective<'scope, 'env, &'env mut R::MemoryMut>, Error>
    where
        R: RecvBuffer<Element = S::Element> + ?Sized,
    {
        self.start_collective(into, |on, into| on.plan_all_gather(data, into))
    }

    /// As [`Scope::iall_to_all`], on this communicator.
    ///
    /// # Errors
    /// As the blocking call; [`Error::OtherContext`].
    pub fn iall_to_all<S: SendBuffer + ?Sized, R>(
        self,
        data: &'env S,
        into: &'env mut R,
    ) -> Result<ScopedCollective<'scope, 'env, &'env mut R::MemoryMut>, Error>
    where
        R: RecvBuffer<Element = S::Element> + ?Sized,
    {
        self.start_collective(into, |on, into| on.plan_all_to_all(data, into))
    }

    /// As [`Scope::ireduce`], on this communicator.
    ///
    /// # Errors
    /// As the blocking call; [`Error::OtherContext`].
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
        self.start_collective(into, |on, into| on.plan_reduce(data, into, op, root))
    }

    /// As [`Scope::iall_reduce`], on this communicator.
    ///
    /// # Errors
    /// As the blocking call; [`Error::OtherContext`].
    pub fn iall_reduce<B: RecvBuffer + ?Sized>(
        self,
        buffer: &'env mut B,
        op: impl Operation<B::Element>,
    ) -> Result<ScopedCollective<'scope, 'env, &'env mut B::MemoryMut>, Error> {
        self.start_collective(buffer, |on, buffer| on.plan_all_reduce(buffer, op))
    }
}

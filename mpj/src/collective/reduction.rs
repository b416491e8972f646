//! Reductions (MPI-4.1 sections 6.9 to 6.12): their plans, and their blocking forms.

use mpicore::{Plan, Reduction};

use super::{RecvArg, SendArg};
use crate::communicator::Communicator;
use crate::error::Error;
use crate::memory::core::output;
use crate::memory::{RecvBuffer, SendBuffer};
use crate::op::Operation;

/// Plans of the calls. The caller keeps the borrows of the buffers until a plan has run.
impl Communicator {
    #[inline]
    pub(super) fn plan_all_reduce(
        &self,
        (buffer, count): RecvArg,
        reduction: Reduction,
    ) -> Result<Plan<'_>, Error> {
        Ok(self.core.allreduce(None, buffer, count, reduction)?)
    }

    #[inline]
    pub(super) fn plan_reduce(
        &self,
        (data, count): SendArg,
        (into, room): RecvArg,
        reduction: Reduction,
        root: usize,
    ) -> Result<Plan<'_>, Error> {
        if self.rank() == root {
            same_length(count, room)?;
        }
        Ok(self.core.reduce(Some(data), into, count, reduction, Self::root(root))?)
    }

    pub(super) fn plan_reduce_scatter_block(
        &self,
        (data, all): SendArg,
        (into, count): RecvArg,
        reduction: Reduction,
    ) -> Result<Plan<'_>, Error> {
        same_length(self.share(all)?, count)?;
        Ok(self.core.reduce_scatter_block(Some(data), into, count, reduction)?)
    }

    pub(super) fn plan_reduce_scatter(
        &self,
        (data, all): SendArg,
        (into, count): RecvArg,
        counts: &[usize],
        reduction: Reduction,
    ) -> Result<Plan<'_>, Error> {
        let counts = divided(counts, self.rank(), all, count)?;
        Ok(self.core.reduce_scatter(Some(data), into, &counts, reduction)?)
    }

    pub(super) fn plan_scan(
        &self,
        (buffer, count): RecvArg,
        reduction: Reduction,
    ) -> Result<Plan<'_>, Error> {
        Ok(self.core.scan(None, buffer, count, reduction)?)
    }

    pub(super) fn plan_exscan(
        &self,
        (buffer, count): RecvArg,
        reduction: Reduction,
    ) -> Result<Plan<'_>, Error> {
        Ok(self.core.exscan(None, buffer, count, reduction)?)
    }
}

/// Refuses operands and results with different numbers of elements.
pub(crate) fn same_length(operands: u64, results: u64) -> Result<(), Error> {
    if operands == results {
        return Ok(());
    }
    Err(Error::Lengths { operands: operands as usize, results: results as usize })
}

/// Checks the counts of a reduction whose results are divided, where `rank` has room for `own` of them.
pub(crate) fn divided(
    counts: &[usize],
    rank: usize,
    operands: u64,
    own: u64,
) -> Result<Vec<u64>, Error> {
    let counts: Vec<u64> = counts.iter().map(|count| *count as u64).collect();
    same_length(operands, counts.iter().fold(0, |all, count| all.saturating_add(*count)))?;
    same_length(counts.get(rank).copied().unwrap_or(0), own)?;
    Ok(counts)
}

impl Communicator {
    /// Combines the elements of all ranks, element `i` with element `i`, and gives the results to all ranks
    /// (MPI_Allreduce with MPI_IN_PLACE). All ranks give the same number of elements, and all get exactly the same
    /// bits. See [`Op`](crate::Op) and [`UserOp`](crate::UserOp).
    ///
    /// # Errors
    /// The operation is not defined on the elements; the ranks have different numbers of elements, if this is noticed;
    /// a rank is lost; the device has failed.
    ///
    /// ```
    /// use mpj::Op;
    /// mpj::local::run(4, |world| {
    ///     let mut x = world.rank() as f64;
    ///     world.all_reduce(&mut x, Op::Sum).unwrap();
    ///     assert_eq!(x, 6.0);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn all_reduce<B: RecvBuffer + ?Sized>(
        &self,
        buffer: &mut B,
        op: impl Operation<B::Element>,
    ) -> Result<(), Error> {
        self.run(output(buffer).and_then(|buffer| self.plan_all_reduce(buffer, op.reduction())))
    }

    /// Like [`Communicator::all_reduce`], with the results in a separate buffer (MPI_Allreduce).
    ///
    /// # Errors
    /// As [`Communicator::all_reduce`]; [`Error::Lengths`].
    ///
    /// ```
    /// use mpj::Op;
    /// mpj::local::run(3, |world| {
    ///     let (mine, mut most) = ([world.rank() as i32, -5], [0; 2]);
    ///     world.all_reduce_into(&mine, &mut most, Op::Max).unwrap();
    ///     assert_eq!(most, [2, -5]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn all_reduce_into<S: SendBuffer + ?Sized, R>(
        &self,
        data: &S,
        into: &mut R,
        op: impl Operation<S::Element>,
    ) -> Result<(), Error>
    where
        R: RecvBuffer<Element = S::Element> + ?Sized,
    {
        self.run_with(data, into, |(data, count), (into, room)| {
            same_length(count, room)?;
            Ok(self.core.allreduce(Some(data), into, count, op.reduction())?)
        })
    }

    /// Combines the elements of all ranks and gives the results to the root (MPI_Reduce). Only the root's `into` is
    /// used.
    ///
    /// # Errors
    /// As [`Communicator::all_reduce`]; no such root; at the root [`Error::Lengths`].
    ///
    /// ```
    /// use mpj::Op;
    /// mpj::local::run(3, |world| {
    ///     let mut product = if world.rank() == 1 { vec![0; 1] } else { vec![] };
    ///     world.reduce(&(world.rank() + 1), &mut product, Op::Product, 1).unwrap();
    ///     assert!(world.rank() != 1 || product == [6]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn reduce<S: SendBuffer + ?Sized, R>(
        &self,
        data: &S,
        into: &mut R,
        op: impl Operation<S::Element>,
        root: usize,
    ) -> Result<(), Error>
    where
        R: RecvBuffer<Element = S::Element> + ?Sized,
    {
        self.run_with(data, into, |data, into| self.plan_reduce(data, into, op.reduction(), root))
    }

    /// Like [`Communicator::reduce`], for a root that gets the results in place of its operands (MPI_Reduce with
    /// MPI_IN_PLACE). The other ranks call `reduce`.
    ///
    /// # Errors
    /// As [`Communicator::reduce`]; the caller is not the root.
    ///
    /// ```
    /// use mpj::Op;
    /// mpj::local::run(3, |world| {
    ///     let mut sum = world.rank() + 1;
    ///     if world.rank() == 0 {
    ///         world.reduce_in_place(&mut sum, Op::Sum, 0).unwrap();
    ///         assert_eq!(sum, 6);
    ///     } else {
    ///         world.reduce(&sum, &mut [], Op::Sum, 0).unwrap();
    ///     }
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn reduce_in_place<B: RecvBuffer + ?Sized>(
        &self,
        buffer: &mut B,
        op: impl Operation<B::Element>,
        root: usize,
    ) -> Result<(), Error> {
        let plan = output(buffer).and_then(|(buffer, count)| {
            Ok(self.core.reduce(None, buffer, count, op.reduction(), Self::root(root))?)
        });
        self.run(plan)
    }

    /// Combines the elements of all ranks and gives part `r` of the results to rank `r` (MPI_Reduce_scatter_block). All
    /// parts have the same length.
    ///
    /// # Errors
    /// As [`Communicator::all_reduce`]; [`Error::Lengths`] if `data` does not have, for each rank, as many elements
    /// as `into`.
    ///
    /// ```
    /// use mpj::Op;
    /// mpj::local::run(3, |world| {
    ///     let mut mine = 0;
    ///     world.reduce_scatter_block(&[1, 10, 100], &mut mine, Op::Sum).unwrap();
    ///     assert_eq!(mine, [3, 30, 300][world.rank()]);
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
        self.run_with(data, into, |data, into| {
            self.plan_reduce_scatter_block(data, into, op.reduction())
        })
    }

    /// Combines the elements of all ranks and gives `counts[r]` of the results to rank `r` (MPI_Reduce_scatter).
    ///
    /// # Errors
    /// As [`Communicator::reduce_scatter_block`]; a number of counts other than that of the ranks.
    ///
    /// ```
    /// use mpj::Op;
    /// mpj::local::run(2, |world| {
    ///     let mut mine = vec![0; [1, 2][world.rank()]];
    ///     world.reduce_scatter(&[1, 10, 100], &mut mine, &[1, 2], Op::Sum).unwrap();
    ///     assert_eq!(mine, [&[2][..], &[20, 200]][world.rank()]);
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
        self.run_with(data, into, |data, into| {
            self.plan_reduce_scatter(data, into, counts, op.reduction())
        })
    }

    /// Combines the elements of this rank and of all lower ranks, and replaces this rank's elements with the results
    /// (MPI_Scan with MPI_IN_PLACE).
    ///
    /// # Errors
    /// As [`Communicator::all_reduce`].
    ///
    /// ```
    /// use mpj::Op;
    /// mpj::local::run(4, |world| {
    ///     let mut sum = world.rank() + 1;
    ///     world.scan(&mut sum, Op::Sum).unwrap();
    ///     assert_eq!(sum, [1, 3, 6, 10][world.rank()]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn scan<B: RecvBuffer + ?Sized>(
        &self,
        buffer: &mut B,
        op: impl Operation<B::Element>,
    ) -> Result<(), Error> {
        self.run(output(buffer).and_then(|buffer| self.plan_scan(buffer, op.reduction())))
    }

    /// Combines the elements of all lower ranks, and replaces this rank's elements with the results (MPI_Exscan with
    /// MPI_IN_PLACE). Rank 0 keeps its own elements.
    ///
    /// # Errors
    /// As [`Communicator::all_reduce`].
    ///
    /// ```
    /// use mpj::Op;
    /// mpj::local::run(4, |world| {
    ///     let mut sum = world.rank() + 1;
    ///     world.exscan(&mut sum, Op::Sum).unwrap();
    ///     assert_eq!(sum, [1, 1, 3, 6][world.rank()]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn exscan<B: RecvBuffer + ?Sized>(
        &self,
        buffer: &mut B,
        op: impl Operation<B::Element>,
    ) -> Result<(), Error> {
        self.run(output(buffer).and_then(|buffer| self.plan_exscan(buffer, op.reduction())))
    }
}

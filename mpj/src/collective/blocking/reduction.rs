//! The blocking reductions of a communicator under their short names.

use crate::collective;
use crate::communicator::Communicator;
use crate::datatype::{Bool, Datatype};
use crate::error::Error;
use crate::group::narrowed;
use crate::memory::core::output;
use crate::memory::{RecvBuffer, SendBuffer};
use crate::op::{Op, Operation};

/// # Reductions
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
    #[doc(alias("MPI_Allreduce", "MPI_IN_PLACE"))]
    #[track_caller]
    pub fn all_reduce<B: RecvBuffer + ?Sized>(
        &self,
        buffer: &mut B,
        op: impl Operation<B::Element>,
    ) -> Result<(), Error> {
        self.run(collective::all_reduce(buffer, op))
    }

    /// Returns on all ranks whether `flag` is true on every rank (MPI_Allreduce with MPI_LAND).
    ///
    /// # Errors
    /// As [`Communicator::all_reduce`].
    ///
    /// ```
    /// mpj::local::run(3, |world| {
    ///     let mut residual = 10.0 * (world.rank() + 1) as f64;
    ///     let mut steps = 0;
    ///     while !world.all(residual < 1.0).unwrap() {
    ///         residual /= 2.0;
    ///         steps += 1;
    ///     }
    ///     assert_eq!(steps, 5);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias("MPI_Allreduce", "MPI_LAND"))]
    #[track_caller]
    pub fn all(&self, flag: bool) -> Result<bool, Error> {
        self.judge(flag, Op::LogicalAnd)
    }

    /// Returns on all ranks whether `flag` is true on at least one rank (MPI_Allreduce with MPI_LOR).
    ///
    /// # Errors
    /// As [`Communicator::all_reduce`].
    ///
    /// ```
    /// mpj::local::run(3, |world| {
    ///     assert!(world.any(world.rank() == 2).unwrap());
    ///     assert!(!world.any(world.rank() == 3).unwrap());
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias("MPI_Allreduce", "MPI_LOR"))]
    #[track_caller]
    pub fn any(&self, flag: bool) -> Result<bool, Error> {
        self.judge(flag, Op::LogicalOr)
    }

    #[track_caller]
    fn judge(&self, flag: bool, op: Op) -> Result<bool, Error> {
        let mut flag = Bool::from(flag);
        self.all_reduce(&mut flag, op)?;
        Ok(flag.get())
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
    #[doc(alias = "MPI_Allreduce")]
    #[track_caller]
    pub fn all_reduce_into<S: SendBuffer + ?Sized, R>(
        &self,
        data: &S,
        into: &mut R,
        op: impl Operation<S::Element>,
    ) -> Result<(), Error>
    where
        R: RecvBuffer<Element = S::Element> + ?Sized,
    {
        self.run(collective::all_reduce_into(data, into, op))
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
    #[doc(alias = "MPI_Reduce")]
    #[track_caller]
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
        self.run(collective::reduce(data, into, op, root))
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
    #[doc(alias("MPI_Reduce", "MPI_IN_PLACE"))]
    #[track_caller]
    pub fn reduce_in_place<B: RecvBuffer + ?Sized>(
        &self,
        buffer: &mut B,
        op: impl Operation<B::Element>,
        root: usize,
    ) -> Result<(), Error> {
        let _site = self.site("collective", || B::Element::datatype().ok());
        let plan = output(buffer).and_then(|(buffer, count)| {
            Ok(self.core.reduce(None, buffer, count, op.reduction(), narrowed(root))?)
        });
        self.answer(plan.and_then(|plan| Ok(plan.run()?)))
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
    #[doc(alias = "MPI_Reduce_scatter_block")]
    #[track_caller]
    pub fn reduce_scatter_block<S: SendBuffer + ?Sized, R>(
        &self,
        data: &S,
        into: &mut R,
        op: impl Operation<S::Element>,
    ) -> Result<(), Error>
    where
        R: RecvBuffer<Element = S::Element> + ?Sized,
    {
        self.run(collective::reduce_scatter_block(data, into, op))
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
    #[doc(alias = "MPI_Reduce_scatter")]
    #[track_caller]
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
        self.run(collective::reduce_scatter(data, into, counts, op))
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
    #[doc(alias("MPI_Scan", "MPI_IN_PLACE"))]
    #[track_caller]
    pub fn scan<B: RecvBuffer + ?Sized>(
        &self,
        buffer: &mut B,
        op: impl Operation<B::Element>,
    ) -> Result<(), Error> {
        self.run(collective::scan(buffer, op))
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
    #[doc(alias("MPI_Exscan", "MPI_IN_PLACE"))]
    #[track_caller]
    pub fn exscan<B: RecvBuffer + ?Sized>(
        &self,
        buffer: &mut B,
        op: impl Operation<B::Element>,
    ) -> Result<(), Error> {
        self.run(collective::exscan(buffer, op))
    }
}

//! Reductions (MPI-4.1 sections 6.9 to 6.11): their descriptions, and the plans that the core makes of them.

use mpicore::Reduction;

use super::{CallOn, Collective, Planned, RecvArg, Root, SendArg, share};
use crate::communicator::{Communicator, InterCommunicator};
use crate::error::Error;
use crate::group::narrowed;
use crate::memory::{RecvBuffer, SendBuffer};
use crate::op::Operation;

/// Describes [`Communicator::all_reduce`] (MPI_Iallreduce, MPI_Allreduce_init, with MPI_IN_PLACE).
///
/// ```
/// use mpj::{Op, collective};
/// mpj::local::run(3, |world| {
///     let call = collective::all_reduce(vec![world.rank() as f32, 1.0], Op::Sum);
///     assert_eq!(world.start(call).unwrap().wait().unwrap().0, [3.0, 3.0]);
/// })?;
/// # Ok::<(), mpj::local::LocalError>(())
/// ```
#[doc(alias("MPI_Iallreduce", "MPI_Allreduce_init", "MPI_IN_PLACE"))]
#[inline]
pub fn all_reduce<B: RecvBuffer>(
    buffer: B,
    op: impl Operation<B::Element>,
) -> Collective<AllReduce, (), B> {
    Collective { kind: AllReduce(op.reduction()), data: (), into: buffer }
}

pub struct AllReduce(Reduction);

impl CallOn<Communicator> for AllReduce {
    #[inline]
    fn plan(self, on: &Communicator, _: SendArg, (buffer, count): RecvArg) -> Planned<'_> {
        Ok(on.core.allreduce(None, buffer, count, self.0)?)
    }
}

/// Describes [`Communicator::all_reduce_into`] (MPI_Iallreduce, MPI_Allreduce_init). Between two groups, the elements of
/// each group are combined, and all ranks of the other group get the results.
///
/// ```
/// use mpj::{Op, collective};
/// mpj::local::run(3, |world| {
///     let call = collective::all_reduce_into(vec![world.rank()], vec![0], Op::Max);
///     assert_eq!(world.start(call).unwrap().wait_both().unwrap(), (vec![world.rank()], vec![2]));
/// })?;
/// # Ok::<(), mpj::local::LocalError>(())
/// ```
#[doc(alias("MPI_Iallreduce", "MPI_Allreduce_init"))]
#[inline]
pub fn all_reduce_into<S: SendBuffer, I: RecvBuffer<Element = S::Element>>(
    data: S,
    into: I,
    op: impl Operation<S::Element>,
) -> Collective<AllReduceInto, S, I> {
    Collective { kind: AllReduceInto(op.reduction()), data, into }
}

pub struct AllReduceInto(Reduction);

impl CallOn<Communicator> for AllReduceInto {
    #[inline]
    fn plan(self, on: &Communicator, (data, count): SendArg, into: RecvArg) -> Planned<'_> {
        same_length(count, into.1)?;
        Ok(on.core.allreduce(Some(data), into.0, count, self.0)?)
    }
}

impl CallOn<InterCommunicator> for AllReduceInto {
    fn plan(self, on: &InterCommunicator, (data, count): SendArg, into: RecvArg) -> Planned<'_> {
        same_length(count, into.1)?;
        Ok(on.core.inter_allreduce(data, into.0, count, self.0)?)
    }
}

/// Describes [`Communicator::reduce`] (MPI_Ireduce, MPI_Reduce_init). Between two groups, the elements of the other group
/// are combined at the root: `into` is used only at the root, and `data` only in the other group.
///
/// ```
/// use mpj::{Op, collective};
/// mpj::local::run(3, |world| {
///     let into = if world.rank() == 0 { vec![0] } else { vec![] };
///     let sum = world.start(collective::reduce(vec![world.rank()], into, Op::Sum, 0)).unwrap();
///     let (sum, _) = sum.wait().unwrap();
///     assert!(world.rank() > 0 || sum == [3]);
/// })?;
/// # Ok::<(), mpj::local::LocalError>(())
/// ```
#[doc(alias("MPI_Ireduce", "MPI_Reduce_init"))]
#[inline]
pub fn reduce<S: SendBuffer, I: RecvBuffer<Element = S::Element>, R>(
    data: S,
    into: I,
    op: impl Operation<S::Element>,
    root: R,
) -> Collective<Reduce<R>, S, I> {
    Collective { kind: Reduce(op.reduction(), root), data, into }
}

pub struct Reduce<R>(Reduction, R);

impl CallOn<Communicator> for Reduce<usize> {
    #[inline]
    fn plan(self, on: &Communicator, (data, count): SendArg, into: RecvArg) -> Planned<'_> {
        let Self(reduction, root) = self;
        if on.rank() == root {
            same_length(count, into.1)?;
        }
        Ok(on.core.reduce(Some(data), into.0, count, reduction, narrowed(root))?)
    }
}

impl CallOn<InterCommunicator> for Reduce<Root> {
    fn plan(self, on: &InterCommunicator, data: SendArg, into: RecvArg) -> Planned<'_> {
        let Self(reduction, root) = self;
        let count = if root == Root::Here { into.1 } else { data.1 };
        Ok(on.core.inter_reduce(data.0, into.0, count, reduction, root.as_core())?)
    }
}

/// Describes [`Communicator::reduce_scatter_block`] (MPI_Ireduce_scatter_block, MPI_Reduce_scatter_block_init). Between
/// two groups, as [`reduce_scatter`] with parts of the length of `into`, which is the same on all ranks of a group.
///
/// ```
/// use mpj::{Op, collective};
/// mpj::local::run(2, |world| {
///     let call = collective::reduce_scatter_block(vec![1, 10], vec![0], Op::Sum);
///     assert_eq!(world.start(call).unwrap().wait().unwrap().0, [[2], [20]][world.rank()]);
/// })?;
/// # Ok::<(), mpj::local::LocalError>(())
/// ```
#[doc(alias("MPI_Ireduce_scatter_block", "MPI_Reduce_scatter_block_init"))]
pub fn reduce_scatter_block<S: SendBuffer, I: RecvBuffer<Element = S::Element>>(
    data: S,
    into: I,
    op: impl Operation<S::Element>,
) -> Collective<ReduceScatterBlock, S, I> {
    Collective { kind: ReduceScatterBlock(op.reduction()), data, into }
}

pub struct ReduceScatterBlock(Reduction);

impl CallOn<Communicator> for ReduceScatterBlock {
    fn plan(self, on: &Communicator, (data, all): SendArg, into: RecvArg) -> Planned<'_> {
        same_length(share(on, all)?, into.1)?;
        Ok(on.core.reduce_scatter_block(Some(data), into.0, into.1, self.0)?)
    }
}

impl CallOn<InterCommunicator> for ReduceScatterBlock {
    fn plan(self, on: &InterCommunicator, data: SendArg, into: RecvArg) -> Planned<'_> {
        let counts = vec![into.1 as usize; on.size()];
        ReduceScatter(&counts, self.0).plan(on, data, into)
    }
}

/// Describes [`Communicator::reduce_scatter`] (MPI_Ireduce_scatter, MPI_Reduce_scatter_init). Between two groups, rank `r`
/// of this group gets `counts[r]` results of the other group's elements; all ranks of both groups give the same number of
/// elements.
///
/// ```
/// use mpj::{Op, collective};
/// mpj::local::run(2, |world| {
///     let (data, mine) = (vec![1, 10, 100], vec![0; world.rank() + 1]);
///     let call = collective::reduce_scatter(data, mine, &[1, 2], Op::Sum);
///     let (mine, _) = world.start(call).unwrap().wait().unwrap();
///     assert_eq!(mine, [&[2][..], &[20, 200]][world.rank()]);
/// })?;
/// # Ok::<(), mpj::local::LocalError>(())
/// ```
#[doc(alias("MPI_Ireduce_scatter", "MPI_Reduce_scatter_init"))]
pub fn reduce_scatter<S: SendBuffer, I: RecvBuffer<Element = S::Element>>(
    data: S,
    into: I,
    counts: &[usize],
    op: impl Operation<S::Element>,
) -> Collective<ReduceScatter<'_>, S, I> {
    Collective { kind: ReduceScatter(counts, op.reduction()), data, into }
}

pub struct ReduceScatter<'p>(&'p [usize], Reduction);

impl CallOn<Communicator> for ReduceScatter<'_> {
    fn plan(self, on: &Communicator, data: SendArg, into: RecvArg) -> Planned<'_> {
        let counts = divided(self.0, on.rank(), data.1, into.1)?;
        Ok(on.core.reduce_scatter(Some(data.0), into.0, &counts, self.1)?)
    }
}

impl CallOn<InterCommunicator> for ReduceScatter<'_> {
    fn plan(self, on: &InterCommunicator, data: SendArg, into: RecvArg) -> Planned<'_> {
        let counts = divided(self.0, on.rank(), data.1, into.1)?;
        Ok(on.core.inter_reduce_scatter(data.0, into.0, &counts, self.1)?)
    }
}

/// Describes [`Communicator::scan`] (MPI_Iscan, MPI_Scan_init).
///
/// ```
/// use mpj::{Op, collective};
/// mpj::local::run(3, |world| {
///     let sum = world.start(collective::scan(vec![world.rank() + 1], Op::Sum)).unwrap();
///     assert_eq!(sum.wait().unwrap().0, [[1], [3], [6]][world.rank()]);
/// })?;
/// # Ok::<(), mpj::local::LocalError>(())
/// ```
#[doc(alias("MPI_Iscan", "MPI_Scan_init"))]
pub fn scan<B: RecvBuffer>(buffer: B, op: impl Operation<B::Element>) -> Collective<Scan, (), B> {
    Collective { kind: Scan(op.reduction()), data: (), into: buffer }
}

pub struct Scan(Reduction);

impl CallOn<Communicator> for Scan {
    fn plan(self, on: &Communicator, _: SendArg, (buffer, count): RecvArg) -> Planned<'_> {
        Ok(on.core.scan(None, buffer, count, self.0)?)
    }
}

/// Describes [`Communicator::exscan`] (MPI_Iexscan, MPI_Exscan_init).
///
/// ```
/// use mpj::{Op, collective};
/// mpj::local::run(3, |world| {
///     let sum = world.start(collective::exscan(vec![world.rank() + 1], Op::Sum)).unwrap();
///     assert_eq!(sum.wait().unwrap().0, [[1], [1], [3]][world.rank()]);
/// })?;
/// # Ok::<(), mpj::local::LocalError>(())
/// ```
#[doc(alias("MPI_Iexscan", "MPI_Exscan_init"))]
pub fn exscan<B: RecvBuffer>(
    buffer: B,
    op: impl Operation<B::Element>,
) -> Collective<Exscan, (), B> {
    Collective { kind: Exscan(op.reduction()), data: (), into: buffer }
}

pub struct Exscan(Reduction);

impl CallOn<Communicator> for Exscan {
    fn plan(self, on: &Communicator, _: SendArg, (buffer, count): RecvArg) -> Planned<'_> {
        Ok(on.core.exscan(None, buffer, count, self.0)?)
    }
}

/// Refuses operands and results with different numbers of elements.
fn same_length(operands: u64, results: u64) -> Result<(), Error> {
    if operands == results {
        return Ok(());
    }
    Err(Error::Lengths { operands: operands as usize, results: results as usize })
}

/// Checks the counts of a reduction whose results are divided, where `rank` has room for `own` of them.
fn divided(counts: &[usize], rank: usize, operands: u64, own: u64) -> Result<Vec<u64>, Error> {
    let counts: Vec<u64> = counts.iter().map(|count| *count as u64).collect();
    same_length(operands, counts.iter().fold(0, |all, count| all.saturating_add(*count)))?;
    same_length(counts.get(rank).copied().unwrap_or(0), own)?;
    Ok(counts)
}

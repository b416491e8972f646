//! Collective calls that move data (MPI-4.1 sections 6.3 to 6.8): their descriptions, and the plans that the core makes
//! of them.

use super::buffers::List;
use super::parts::{InParts, Parts};
use super::{CallOn, Collective, Partition, Planned, RecvArg, Root, SendArg};
use super::{equal_blocks, share, typed};
use crate::communicator::{Communicator, InterCommunicator};
use crate::datatype::Datatype;
use crate::error::Error;
use crate::group::narrowed;
use crate::memory::{RecvBuffer, SendBuffer, Strided, StridedMut};

/// Describes [`Communicator::barrier`] (MPI_Ibarrier, MPI_Barrier_init). Between two groups, it waits for the ranks of
/// both.
///
/// ```
/// use mpj::collective;
/// mpj::local::run(3, |world| {
///     let barrier = world.start(collective::barrier()).unwrap();
///     // Work that the others do not have to wait for.
///     barrier.wait().unwrap();
/// })?;
/// # Ok::<(), mpj::local::LocalError>(())
/// ```
#[doc(alias("MPI_Ibarrier", "MPI_Barrier_init"))]
pub fn barrier() -> Collective<Barrier, (), ()> {
    Collective { kind: Barrier, data: (), into: () }
}

pub struct Barrier;

impl CallOn<Communicator> for Barrier {
    fn plan(self, on: &Communicator, _: SendArg, _: RecvArg) -> Planned<'_> {
        Ok(on.core.barrier()?)
    }
}

impl CallOn<InterCommunicator> for Barrier {
    fn plan(self, on: &InterCommunicator, _: SendArg, _: RecvArg) -> Planned<'_> {
        Ok(on.core.inter_barrier()?)
    }
}

/// Describes [`Communicator::broadcast`] (MPI_Ibcast, MPI_Bcast_init). Between two groups, the root's elements go to all
/// ranks of the other group.
///
/// ```
/// use mpj::collective;
/// mpj::local::run(3, |world| {
///     let word = world.start(collective::broadcast(vec![world.rank(); 2], 1)).unwrap();
///     assert_eq!(word.wait().unwrap().0, [1, 1]);
/// })?;
/// # Ok::<(), mpj::local::LocalError>(())
/// ```
#[doc(alias("MPI_Ibcast", "MPI_Bcast_init"))]
#[inline]
pub fn broadcast<B: RecvBuffer, R>(buffer: B, root: R) -> Collective<Broadcast<R>, (), B> {
    Collective { kind: Broadcast(root), data: (), into: buffer }
}

pub struct Broadcast<R>(R);

impl CallOn<Communicator> for Broadcast<usize> {
    #[inline]
    fn plan(self, on: &Communicator, _: SendArg, (buffer, count): RecvArg) -> Planned<'_> {
        Ok(on.core.bcast(buffer, count, narrowed(self.0))?)
    }
}

impl CallOn<InterCommunicator> for Broadcast<Root> {
    fn plan(self, on: &InterCommunicator, _: SendArg, (buffer, count): RecvArg) -> Planned<'_> {
        Ok(on.core.inter_bcast(buffer, count, self.0.as_core())?)
    }
}

/// Describes [`Communicator::gather`] (MPI_Igather, MPI_Gather_init). Between two groups, the root collects the elements
/// of the other group: `into` is used only at the root, and `data` only in the other group.
///
/// ```
/// use mpj::collective;
/// mpj::local::run(3, |world| {
///     let into = if world.rank() == 2 { vec![0; 3] } else { vec![] };
///     let all = world.start(collective::gather(vec![world.rank()], into, 2)).unwrap();
///     let (all, _) = all.wait().unwrap();
///     assert!(world.rank() != 2 || all == [0, 1, 2]);
/// })?;
/// # Ok::<(), mpj::local::LocalError>(())
/// ```
#[doc(alias("MPI_Igather", "MPI_Gather_init"))]
#[inline]
pub fn gather<S: SendBuffer, I: RecvBuffer<Element = S::Element>, R>(
    data: S,
    into: I,
    root: R,
) -> Collective<Gather<R>, S, I> {
    Collective { kind: Gather(root), data, into }
}

pub struct Gather<R>(R);

impl CallOn<Communicator> for Gather<usize> {
    #[inline]
    fn plan(self, on: &Communicator, data: SendArg, (into, units): RecvArg) -> Planned<'_> {
        let count = if on.rank() == self.0 { share(on, units)? } else { 0 };
        Ok(on.core.gather(Some(data), into, count, narrowed(self.0))?)
    }
}

impl CallOn<InterCommunicator> for Gather<Root> {
    fn plan(self, on: &InterCommunicator, data: SendArg, (into, units): RecvArg) -> Planned<'_> {
        let blocks = equal_blocks(on, if self.0 == Root::Here { units } else { 0 })?;
        Ok(on.core.inter_gather(data, into, blocks, self.0.as_core())?)
    }
}

/// Describes [`Communicator::gatherv`] (MPI_Igatherv, MPI_Gatherv_init). Between two groups, the root's `blocks` are
/// those of the ranks of the other group.
///
/// ```
/// use mpj::{Partition, collective};
/// mpj::local::run(2, |world| {
///     let (mine, blocks) = (vec![world.rank(); world.rank() + 1], Partition::packed([1, 2]));
///     let all = world.start(collective::gatherv(mine, vec![9; 3], &blocks, 0)).unwrap();
///     assert_eq!(all.wait().unwrap().0, [[0, 1, 1], [9; 3]][world.rank()]);
/// })?;
/// # Ok::<(), mpj::local::LocalError>(())
/// ```
#[doc(alias("MPI_Igatherv", "MPI_Gatherv_init"))]
pub fn gatherv<S: SendBuffer, I: RecvBuffer<Element = S::Element>, R>(
    data: S,
    into: I,
    blocks: &Partition,
    root: R,
) -> Collective<Gatherv<'_, R>, S, I> {
    Collective { kind: Gatherv(blocks, root), data, into }
}

pub struct Gatherv<'p, R>(&'p Partition, R);

impl CallOn<Communicator> for Gatherv<'_, usize> {
    fn plan(self, on: &Communicator, data: SendArg, into: RecvArg) -> Planned<'_> {
        let Self(blocks, root) = self;
        let blocks = if on.rank() == root { blocks.apart()? } else { blocks.as_core() };
        Ok(on.core.gatherv(Some(data), into.0, blocks, narrowed(root))?)
    }
}

impl CallOn<InterCommunicator> for Gatherv<'_, Root> {
    fn plan(self, on: &InterCommunicator, data: SendArg, into: RecvArg) -> Planned<'_> {
        let Self(blocks, root) = self;
        let blocks = if root == Root::Here { blocks.apart()? } else { blocks.as_core() };
        Ok(on.core.inter_gather(data, into.0, blocks, root.as_core())?)
    }
}

/// Describes [`Communicator::scatter`] (MPI_Iscatter, MPI_Scatter_init). Between two groups, each rank of the other group
/// gets its part: `data` is used only at the root, and `into` only in the other group.
///
/// ```
/// use mpj::collective;
/// mpj::local::run(3, |world| {
///     let data = if world.rank() == 0 { vec![7, 8, 9] } else { vec![] };
///     let mine = world.start(collective::scatter(data, vec![0], 0)).unwrap();
///     assert_eq!(mine.wait().unwrap().0, [7 + world.rank()]);
/// })?;
/// # Ok::<(), mpj::local::LocalError>(())
/// ```
#[doc(alias("MPI_Iscatter", "MPI_Scatter_init"))]
#[inline]
pub fn scatter<S: SendBuffer, I: RecvBuffer<Element = S::Element>, R>(
    data: S,
    into: I,
    root: R,
) -> Collective<Scatter<R>, S, I> {
    Collective { kind: Scatter(root), data, into }
}

pub struct Scatter<R>(R);

impl CallOn<Communicator> for Scatter<usize> {
    #[inline]
    fn plan(self, on: &Communicator, (data, units): SendArg, into: RecvArg) -> Planned<'_> {
        let count = if on.rank() == self.0 { share(on, units)? } else { 0 };
        Ok(on.core.scatter(data, count, Some(into), narrowed(self.0))?)
    }
}

impl CallOn<InterCommunicator> for Scatter<Root> {
    fn plan(self, on: &InterCommunicator, (data, units): SendArg, into: RecvArg) -> Planned<'_> {
        let blocks = equal_blocks(on, if self.0 == Root::Here { units } else { 0 })?;
        Ok(on.core.inter_scatter(data, blocks, into, self.0.as_core())?)
    }
}

/// Describes [`Communicator::scatterv`] (MPI_Iscatterv, MPI_Scatterv_init). Between two groups, the root's `blocks` are
/// those of the ranks of the other group.
///
/// ```
/// use mpj::{Partition, collective};
/// mpj::local::run(2, |world| {
///     let (all, mut mine) = ([7, 8, 9], vec![0; world.rank() + 1]);
///     let blocks = Partition::packed([1, 2]);
///     world.scope(|scope| {
///         scope.start(collective::scatterv(&all, &blocks, &mut mine, 0)).map(drop)
///     }).unwrap();
///     assert_eq!(mine, [&[7][..], &[8, 9]][world.rank()]);
/// })?;
/// # Ok::<(), mpj::local::LocalError>(())
/// ```
#[doc(alias("MPI_Iscatterv", "MPI_Scatterv_init"))]
pub fn scatterv<S: SendBuffer, I: RecvBuffer<Element = S::Element>, R>(
    data: S,
    blocks: &Partition,
    into: I,
    root: R,
) -> Collective<Scatterv<'_, R>, S, I> {
    Collective { kind: Scatterv(blocks, root), data, into }
}

pub struct Scatterv<'p, R>(&'p Partition, R);

impl CallOn<Communicator> for Scatterv<'_, usize> {
    fn plan(self, on: &Communicator, data: SendArg, into: RecvArg) -> Planned<'_> {
        Ok(on.core.scatterv(data.0, self.0.as_core(), Some(into), narrowed(self.1))?)
    }
}

impl CallOn<InterCommunicator> for Scatterv<'_, Root> {
    fn plan(self, on: &InterCommunicator, data: SendArg, into: RecvArg) -> Planned<'_> {
        Ok(on.core.inter_scatter(data.0, self.0.as_core(), into, self.1.as_core())?)
    }
}

/// Describes [`Communicator::all_gather`] (MPI_Iallgather, MPI_Allgather_init). Between two groups, each rank collects the
/// elements of the other group.
///
/// ```
/// use mpj::collective;
/// mpj::local::run(3, |world| {
///     let all = world.start(collective::all_gather(vec![world.rank()], vec![0; 3])).unwrap();
///     assert_eq!(all.wait().unwrap().0, [0, 1, 2]);
/// })?;
/// # Ok::<(), mpj::local::LocalError>(())
/// ```
#[doc(alias("MPI_Iallgather", "MPI_Allgather_init"))]
#[inline]
pub fn all_gather<S: SendBuffer, I: RecvBuffer<Element = S::Element>>(
    data: S,
    into: I,
) -> Collective<AllGather, S, I> {
    Collective { kind: AllGather, data, into }
}

pub struct AllGather;

impl CallOn<Communicator> for AllGather {
    #[inline]
    fn plan(self, on: &Communicator, data: SendArg, (into, units): RecvArg) -> Planned<'_> {
        Ok(on.core.allgather(Some(data), into, share(on, units)?)?)
    }
}

impl CallOn<InterCommunicator> for AllGather {
    fn plan(self, on: &InterCommunicator, data: SendArg, (into, units): RecvArg) -> Planned<'_> {
        Ok(on.core.inter_allgather(data, into, equal_blocks(on, units)?)?)
    }
}

/// Describes [`Communicator::all_gatherv`] (MPI_Iallgatherv, MPI_Allgatherv_init). Between two groups, the blocks are
/// those of the ranks of the other group.
///
/// ```
/// use mpj::{Partition, collective};
/// mpj::local::run(2, |world| {
///     let (mine, blocks) = (vec![world.rank(); world.rank() + 1], Partition::packed([1, 2]));
///     let all = world.start(collective::all_gatherv(mine, vec![9; 3], &blocks)).unwrap();
///     assert_eq!(all.wait().unwrap().0, [0, 1, 1]);
/// })?;
/// # Ok::<(), mpj::local::LocalError>(())
/// ```
#[doc(alias("MPI_Iallgatherv", "MPI_Allgatherv_init"))]
pub fn all_gatherv<S: SendBuffer, I: RecvBuffer<Element = S::Element>>(
    data: S,
    into: I,
    blocks: &Partition,
) -> Collective<AllGatherv<'_>, S, I> {
    Collective { kind: AllGatherv(blocks), data, into }
}

pub struct AllGatherv<'p>(&'p Partition);

impl CallOn<Communicator> for AllGatherv<'_> {
    fn plan(self, on: &Communicator, data: SendArg, into: RecvArg) -> Planned<'_> {
        Ok(on.core.allgatherv(Some(data), into.0, self.0.apart()?)?)
    }
}

impl CallOn<InterCommunicator> for AllGatherv<'_> {
    fn plan(self, on: &InterCommunicator, data: SendArg, into: RecvArg) -> Planned<'_> {
        Ok(on.core.inter_allgather(data, into.0, self.0.as_core())?)
    }
}

/// Describes [`Communicator::all_to_all`] (MPI_Ialltoall, MPI_Alltoall_init). Between two groups, part `r` goes to rank
/// `r` of the other group.
///
/// ```
/// use mpj::collective;
/// mpj::local::run(2, |world| {
///     let data = vec![10 * world.rank(), 10 * world.rank() + 1];
///     let into = world.start(collective::all_to_all(data, vec![0; 2])).unwrap();
///     assert_eq!(into.wait().unwrap().0, [world.rank(), 10 + world.rank()]);
/// })?;
/// # Ok::<(), mpj::local::LocalError>(())
/// ```
#[doc(alias("MPI_Ialltoall", "MPI_Alltoall_init"))]
#[inline]
pub fn all_to_all<S: SendBuffer, I: RecvBuffer<Element = S::Element>>(
    data: S,
    into: I,
) -> Collective<AllToAll, S, I> {
    Collective { kind: AllToAll, data, into }
}

pub struct AllToAll;

impl CallOn<Communicator> for AllToAll {
    #[inline]
    fn plan(self, on: &Communicator, data: SendArg, into: RecvArg) -> Planned<'_> {
        let (sent, received) = (equal_blocks(on, data.1)?, equal_blocks(on, into.1)?);
        Ok(on.core.alltoall(Some((data.0, sent)), into.0, received)?)
    }
}

impl CallOn<InterCommunicator> for AllToAll {
    fn plan(self, on: &InterCommunicator, data: SendArg, into: RecvArg) -> Planned<'_> {
        let (sent, received) = (equal_blocks(on, data.1)?, equal_blocks(on, into.1)?);
        Ok(on.core.inter_alltoall((data.0, sent), (into.0, received))?)
    }
}

/// Describes [`Communicator::all_to_allv`] (MPI_Ialltoallv, MPI_Alltoallv_init). Between two groups, the blocks are those
/// of the ranks of the other group.
///
/// ```
/// use mpj::{Partition, collective};
/// mpj::local::run(2, |world| {
///     // Every rank sends one number to rank 0, and two to rank 1.
///     let (sent, count) = (Partition::packed([1, 2]), world.rank() + 1);
///     let received = Partition::packed([count; 2]);
///     let (data, into) = (vec![world.rank(); 3], vec![9; 2 * count]);
///     let call = collective::all_to_allv(data, &sent, into, &received);
///     let (into, _) = world.start(call).unwrap().wait().unwrap();
///     assert_eq!(into, [&[0, 1][..], &[0, 0, 1, 1]][world.rank()]);
/// })?;
/// # Ok::<(), mpj::local::LocalError>(())
/// ```
#[doc(alias("MPI_Ialltoallv", "MPI_Alltoallv_init"))]
pub fn all_to_allv<'p, S: SendBuffer, I: RecvBuffer<Element = S::Element>>(
    data: S,
    sent: &'p Partition,
    into: I,
    received: &'p Partition,
) -> Collective<AllToAllv<'p>, S, I> {
    Collective { kind: AllToAllv { sent, received }, data, into }
}

pub struct AllToAllv<'p> {
    sent: &'p Partition,
    received: &'p Partition,
}

impl CallOn<Communicator> for AllToAllv<'_> {
    fn plan(self, on: &Communicator, data: SendArg, into: RecvArg) -> Planned<'_> {
        let sent = Some((data.0, self.sent.as_core()));
        Ok(on.core.alltoall(sent, into.0, self.received.as_core())?)
    }
}

impl CallOn<InterCommunicator> for AllToAllv<'_> {
    fn plan(self, on: &InterCommunicator, data: SendArg, into: RecvArg) -> Planned<'_> {
        let (sent, received) = (self.sent.as_core(), self.received.as_core());
        Ok(on.core.inter_alltoall((data.0, sent), (into.0, received))?)
    }
}

/// Describes [`Communicator::all_to_allw`] on borrowed buffers (MPI_Ialltoallw). Between two groups, there is a buffer for
/// each rank of the other group.
///
/// ```
/// use mpj::collective;
/// mpj::local::run(2, |world| {
///     // Rank r gets a vector of r + 1 numbers from every rank.
///     let (data, len) = ([vec![world.rank()], vec![world.rank(); 2]], world.rank() + 1);
///     let mut into = [vec![9; len], vec![9; len]];
///     world.scope(|scope| {
///         scope.start(collective::all_to_allw(&data, &mut into)).map(drop)
///     }).unwrap();
///     assert_eq!(into, [vec![0; len], vec![1; len]]);
/// })?;
/// # Ok::<(), mpj::local::LocalError>(())
/// ```
#[doc(alias = "MPI_Ialltoallw")]
pub fn all_to_allw<'s, 'r, S: SendBuffer, R: RecvBuffer<Element = S::Element>>(
    data: &'s [S],
    into: &'r mut [R],
) -> Collective<AllToAllw, List<&'s [S]>, List<&'r mut [R]>> {
    Collective { kind: AllToAllw, data: List(data), into: List(into) }
}

pub struct AllToAllw;

impl CallOn<Communicator> for AllToAllw {
    fn plan(self, on: &Communicator, data: SendArg, into: RecvArg) -> Planned<'_> {
        Ok(on.core.alltoall(Some((data.0, typed(data.1))), into.0, typed(into.1))?)
    }
}

impl CallOn<InterCommunicator> for AllToAllw {
    fn plan(self, on: &InterCommunicator, data: SendArg, into: RecvArg) -> Planned<'_> {
        Ok(on.core.inter_alltoall((data.0, typed(data.1)), (into.0, typed(into.1)))?)
    }
}

/// Describes [`Communicator::all_to_allw`] on memory that the call owns (MPI_Ialltoallw, MPI_Alltoallw_init): `sent`
/// divides `data` into a part for each rank, and `received` divides `into` into a part from each rank. Both functions run
/// once, before this returns; their errors, and [`Error::Elsewhere`], are those of the call. Between two groups, the
/// parts are those of the ranks of the other group.
///
/// ```
/// use mpj::{Strided, collective};
/// mpj::local::run(2, |world| {
///     // The halves of a row go to the ranks, and what comes is a column of a matrix.
///     let (row, matrix) = ([1, 2, 3, 4].map(|x| x + 10 * world.rank()).to_vec(), vec![0; 4]);
///     let call = collective::all_to_allw_owned(
///         row,
///         |row| row.chunks(2).map(|half| Strided::new(half, 0, 1, 2)).collect(),
///         matrix,
///         |matrix| mpj::split_columns_mut(matrix, 2, [1, 1]),
///     );
///     let (matrix, _) = world.start(call).unwrap().wait().unwrap();
///     assert_eq!(matrix, [[1, 11, 2, 12], [3, 13, 4, 14]][world.rank()]);
/// })?;
/// # Ok::<(), mpj::local::LocalError>(())
/// ```
#[doc(alias("MPI_Ialltoallw", "MPI_Alltoallw_init"))]
pub fn all_to_allw_owned<T: Datatype>(
    data: Vec<T>,
    sent: impl FnOnce(&[T]) -> Result<Vec<Strided<'_, T>>, Error>,
    mut into: Vec<T>,
    received: impl FnOnce(&mut [T]) -> Result<Vec<StridedMut<'_, T>>, Error>,
) -> Collective<InParts<AllToAllw>, Vec<T>, Vec<T>> {
    let parts = Parts::of(&data, sent, &mut into, received);
    Collective { kind: InParts { kind: AllToAllw, parts }, data, into }
}

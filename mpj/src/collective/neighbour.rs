//! Collective calls among neighbours in a grid or a graph (MPI-4.1 section 8.6): their descriptions, and the plans that the
//! core makes of them. The blocking forms are in `blocking/neighbour.rs`.

use mpicore::collective::Blocks;

use super::buffers::List;
use super::parts::{InParts, Parts};
use super::{CallOn, Collective, Partition, Planned, RecvArg, SendArg, divided, typed};
use crate::communicator::Communicator;
use crate::datatype::Datatype;
use crate::error::Error;
use crate::memory::{RecvBuffer, SendBuffer, Strided, StridedMut};

/// Describes [`Communicator::neighbour_all_gather`] (MPI_Ineighbor_allgather, MPI_Neighbor_allgather_init).
///
/// ```
/// use mpj::collective;
/// mpj::local::run(3, |world| {
///     let ring = world.create_cartesian(&[3], &[true], false).unwrap().unwrap();
///     let call = collective::neighbour_all_gather(vec![ring.rank()], vec![9; 2]);
///     let (beside, _) = ring.start(call).unwrap().wait().unwrap();
///     assert_eq!(beside, [[2, 1], [0, 2], [1, 0]][ring.rank()]);
/// })?;
/// # Ok::<(), mpj::local::LocalError>(())
/// ```
#[doc(alias("MPI_Ineighbor_allgather", "MPI_Neighbor_allgather_init"))]
pub fn neighbour_all_gather<S: SendBuffer, I: RecvBuffer<Element = S::Element>>(
    data: S,
    into: I,
) -> Collective<NeighbourAllGather, S, I> {
    Collective { kind: NeighbourAllGather, data, into }
}

pub struct NeighbourAllGather;

impl CallOn<Communicator> for NeighbourAllGather {
    fn plan(self, on: &Communicator, data: SendArg, (into, units): RecvArg) -> Planned<'_> {
        let blocks = shares(units, on.core.neighbours()?.sources.len())?;
        Ok(on.core.neighbour_allgather(data, into, blocks)?)
    }
}

/// Describes [`Communicator::neighbour_all_gatherv`] (MPI_Ineighbor_allgatherv, MPI_Neighbor_allgatherv_init).
///
/// ```
/// use mpj::{Partition, collective};
/// mpj::local::run(2, |world| {
///     let row = world.create_cartesian(&[2], &[false], false).unwrap().unwrap();
///     // Rank 0 has no neighbour before it, rank 1 none after it.
///     let blocks = [Partition::packed([0, 2]), Partition::packed([1, 0])];
///     let (mine, blocks) = (vec![row.rank(); row.rank() + 1], &blocks[row.rank()]);
///     let call = collective::neighbour_all_gatherv(mine, vec![9; blocks.end()], blocks);
///     let (beside, _) = row.start(call).unwrap().wait().unwrap();
///     assert_eq!(beside, [vec![1, 1], vec![0]][row.rank()]);
/// })?;
/// # Ok::<(), mpj::local::LocalError>(())
/// ```
#[doc(alias("MPI_Ineighbor_allgatherv", "MPI_Neighbor_allgatherv_init"))]
pub fn neighbour_all_gatherv<S: SendBuffer, I: RecvBuffer<Element = S::Element>>(
    data: S,
    into: I,
    blocks: &Partition,
) -> Collective<NeighbourAllGatherv<'_>, S, I> {
    Collective { kind: NeighbourAllGatherv(blocks), data, into }
}

pub struct NeighbourAllGatherv<'p>(&'p Partition);

impl CallOn<Communicator> for NeighbourAllGatherv<'_> {
    fn plan(self, on: &Communicator, data: SendArg, into: RecvArg) -> Planned<'_> {
        Ok(on.core.neighbour_allgather(data, into.0, self.0.apart()?)?)
    }
}

/// Describes [`Communicator::neighbour_all_to_all`] (MPI_Ineighbor_alltoall, MPI_Neighbor_alltoall_init).
///
/// ```
/// use mpj::collective;
/// mpj::local::run(3, |world| {
///     let ring = world.create_cartesian(&[3], &[true], false).unwrap().unwrap();
///     // What goes backwards is odd, what goes forwards is even.
///     let data = vec![2 * ring.rank() + 1, 2 * ring.rank()];
///     let mut kept = ring.persistent(collective::neighbour_all_to_all(data, vec![9; 2])).unwrap();
///     kept.start().unwrap();
///     kept.wait().unwrap();
///     assert_eq!(kept.buffer().unwrap(), [[4, 3], [0, 5], [2, 1]][ring.rank()]);
/// })?;
/// # Ok::<(), mpj::local::LocalError>(())
/// ```
#[doc(alias("MPI_Ineighbor_alltoall", "MPI_Neighbor_alltoall_init"))]
pub fn neighbour_all_to_all<S: SendBuffer, I: RecvBuffer<Element = S::Element>>(
    data: S,
    into: I,
) -> Collective<NeighbourAllToAll, S, I> {
    Collective { kind: NeighbourAllToAll, data, into }
}

pub struct NeighbourAllToAll;

impl CallOn<Communicator> for NeighbourAllToAll {
    fn plan(self, on: &Communicator, data: SendArg, into: RecvArg) -> Planned<'_> {
        let neighbours = on.core.neighbours()?;
        let sent = shares(data.1, neighbours.destinations.len())?;
        let received = shares(into.1, neighbours.sources.len())?;
        Ok(on.core.neighbour_alltoall((data.0, sent), into.0, received)?)
    }
}

/// Describes [`Communicator::neighbour_all_to_allv`] (MPI_Ineighbor_alltoallv, MPI_Neighbor_alltoallv_init).
///
/// ```
/// use mpj::{Partition, collective};
/// mpj::local::run(2, |world| {
///     let ring = world.create_cartesian(&[2], &[true], false).unwrap().unwrap();
///     // One number goes backwards, two go forwards.
///     let (sent, received) = (Partition::packed([1, 2]), Partition::packed([2, 1]));
///     let data = [0, 1, 2].map(|at| 10 * ring.rank() + at).to_vec();
///     let call = collective::neighbour_all_to_allv(data, &sent, vec![9; 3], &received);
///     let (into, _) = ring.start(call).unwrap().wait().unwrap();
///     assert_eq!(into, [[11, 12, 10], [1, 2, 0]][ring.rank()]);
/// })?;
/// # Ok::<(), mpj::local::LocalError>(())
/// ```
#[doc(alias("MPI_Ineighbor_alltoallv", "MPI_Neighbor_alltoallv_init"))]
pub fn neighbour_all_to_allv<'p, S: SendBuffer, I: RecvBuffer<Element = S::Element>>(
    data: S,
    sent: &'p Partition,
    into: I,
    received: &'p Partition,
) -> Collective<NeighbourAllToAllv<'p>, S, I> {
    Collective { kind: NeighbourAllToAllv { sent, received }, data, into }
}

pub struct NeighbourAllToAllv<'p> {
    sent: &'p Partition,
    received: &'p Partition,
}

impl CallOn<Communicator> for NeighbourAllToAllv<'_> {
    fn plan(self, on: &Communicator, data: SendArg, into: RecvArg) -> Planned<'_> {
        let (sent, received) = (self.sent.as_core(), self.received.apart()?);
        Ok(on.core.neighbour_alltoall((data.0, sent), into.0, received)?)
    }
}

/// Describes [`Communicator::neighbour_all_to_allw`] on borrowed buffers (MPI_Ineighbor_alltoallw).
///
/// ```
/// use mpj::collective;
/// mpj::local::run(2, |world| {
///     let ring = world.create_cartesian(&[2], &[true], false).unwrap().unwrap();
///     let (data, mut into) = ([vec![1], vec![2, 2]], [vec![0; 2], vec![0; 1]]);
///     ring.scope(|scope| {
///         scope.start(collective::neighbour_all_to_allw(&data, &mut into)).map(drop)
///     }).unwrap();
///     assert_eq!(into, [vec![2, 2], vec![1]]);
/// })?;
/// # Ok::<(), mpj::local::LocalError>(())
/// ```
#[doc(alias = "MPI_Ineighbor_alltoallw")]
pub fn neighbour_all_to_allw<'s, 'r, S: SendBuffer, R: RecvBuffer<Element = S::Element>>(
    data: &'s [S],
    into: &'r mut [R],
) -> Collective<NeighbourAllToAllw, List<&'s [S]>, List<&'r mut [R]>> {
    Collective { kind: NeighbourAllToAllw, data: List(data), into: List(into) }
}

/// Describes [`Communicator::neighbour_all_to_allw`] on memory that the call owns (MPI_Ineighbor_alltoallw,
/// MPI_Neighbor_alltoallw_init): `sent` divides `data` into a part for each destination, and `received` divides `into`
/// into a part from each source, as those of [`all_to_allw_owned`](super::all_to_allw_owned) do.
///
/// ```
/// use mpj::{Strided, collective};
/// mpj::local::run(2, |world| {
///     let ring = world.create_cartesian(&[2], &[true], false).unwrap().unwrap();
///     // The ends of a row go to the neighbours, and what comes is a column of a matrix.
///     let (row, matrix) = ([1, 2, 3, 4].map(|x| x + 10 * ring.rank()).to_vec(), vec![0; 4]);
///     let call = collective::neighbour_all_to_allw_owned(
///         row,
///         |row| row.chunks(2).map(|half| Strided::new(half, 0, 1, 2)).collect(),
///         matrix,
///         |matrix| mpj::split_columns_mut(matrix, 2, [1, 1]),
///     );
///     let (matrix, _) = ring.start(call).unwrap().wait().unwrap();
///     assert_eq!(matrix, [[13, 11, 14, 12], [3, 1, 4, 2]][ring.rank()]);
/// })?;
/// # Ok::<(), mpj::local::LocalError>(())
/// ```
#[doc(alias("MPI_Ineighbor_alltoallw", "MPI_Neighbor_alltoallw_init"))]
pub fn neighbour_all_to_allw_owned<T: Datatype>(
    data: Vec<T>,
    sent: impl FnOnce(&[T]) -> Result<Vec<Strided<'_, T>>, Error>,
    mut into: Vec<T>,
    received: impl FnOnce(&mut [T]) -> Result<Vec<StridedMut<'_, T>>, Error>,
) -> Collective<InParts<NeighbourAllToAllw>, Vec<T>, Vec<T>> {
    let parts = Parts::of(&data, sent, &mut into, received);
    Collective { kind: InParts { kind: NeighbourAllToAllw, parts }, data, into }
}

pub struct NeighbourAllToAllw;

impl CallOn<Communicator> for NeighbourAllToAllw {
    fn plan(self, on: &Communicator, data: SendArg, into: RecvArg) -> Planned<'_> {
        Ok(on.core.neighbour_alltoall((data.0, typed(data.1)), into.0, typed(into.1))?)
    }
}

/// Describes blocks of the same length for all neighbours on one side, into which `units` are divided.
fn shares(units: u64, neighbours: usize) -> Result<Blocks<'static>, Error> {
    match (units, neighbours) {
        (0, 0) => Ok(Blocks::Equal { count: 0 }),
        _ => Ok(Blocks::Equal { count: divided(units, neighbours as u64)? }),
    }
}

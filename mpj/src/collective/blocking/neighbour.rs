//! The blocking calls among neighbours of a communicator under their short names.

use crate::collective::{self, Partition};
use crate::communicator::Communicator;
use crate::error::Error;
use crate::memory::{RecvBuffer, SendBuffer};

/// # Collective calls among neighbours
///
/// They need a communicator with a grid ([`Communicator::create_cartesian`]) or a graph
/// ([`Communicator::create_adjacent`] and others). A rank receives one block from each source, and sends to each
/// destination, in the order in which its topology lists them. In a grid both are, for each dimension, the rank before this
/// one and the rank after it; at the end of a dimension that is not periodic there is none, and its block stays as it is.
impl Communicator {
    /// Sends all elements to each destination, and receives a part of `into` from each source
    /// (MPI_Neighbor_allgather). All ranks send the same number of elements.
    ///
    /// # Errors
    /// As [`Communicator::broadcast`]; [`Error::Division`] if `into` cannot be divided equally among the sources;
    /// [`ErrorClass::Topology`](crate::ErrorClass::Topology) if the communicator has no topology.
    ///
    /// ```
    /// mpj::local::run(3, |world| {
    ///     let row = world.create_cartesian(&[3], &[false], false).unwrap().unwrap();
    ///     let mut beside = [9; 2];
    ///     row.neighbour_all_gather(&row.rank(), &mut beside).unwrap();
    ///     assert_eq!(beside, [[9, 1], [0, 2], [1, 9]][row.rank()]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Neighbor_allgather")]
    #[track_caller]
    pub fn neighbour_all_gather<S: SendBuffer + ?Sized, R>(
        &self,
        data: &S,
        into: &mut R,
    ) -> Result<(), Error>
    where
        R: RecvBuffer<Element = S::Element> + ?Sized,
    {
        self.run(collective::neighbour_all_gather(data, into))
    }

    /// Like [`Communicator::neighbour_all_gather`], with a block of its own length from each source
    /// (MPI_Neighbor_allgatherv).
    ///
    /// # Errors
    /// As [`Communicator::neighbour_all_gather`]; blocks that do not lie inside `into` or overlap, or a number of blocks
    /// other than that of the sources.
    ///
    /// ```
    /// use mpj::Partition;
    /// mpj::local::run(3, |world| {
    ///     // Every rank but the last sends to the last one.
    ///     let edges = [vec![2], vec![2], vec![]];
    ///     let sources = if world.rank() == 2 { vec![0, 1] } else { vec![] };
    ///     let tree = world.create_adjacent(&sources, &edges[world.rank()]).unwrap();
    ///     let mine = vec![world.rank(); world.rank() + 1];
    ///     let blocks = Partition::packed(sources.iter().map(|source| source + 1));
    ///     let mut all = vec![9; blocks.end()];
    ///     tree.neighbour_all_gatherv(&mine, &mut all, &blocks).unwrap();
    ///     assert!(world.rank() < 2 || all == [0, 1, 1]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Neighbor_allgatherv")]
    #[track_caller]
    pub fn neighbour_all_gatherv<S: SendBuffer + ?Sized, R>(
        &self,
        data: &S,
        into: &mut R,
        blocks: &Partition,
    ) -> Result<(), Error>
    where
        R: RecvBuffer<Element = S::Element> + ?Sized,
    {
        self.run(collective::neighbour_all_gatherv(data, into, blocks))
    }

    /// Sends a part of `data` to each destination, and receives a part of `into` from each source
    /// (MPI_Neighbor_alltoall).
    ///
    /// # Errors
    /// As [`Communicator::neighbour_all_gather`], also for `data` and the destinations.
    ///
    /// ```
    /// mpj::local::run(4, |world| {
    ///     let ring = world.create_cartesian(&[4], &[true], false).unwrap().unwrap();
    ///     let (mine, mut halo) = ([10 * ring.rank(), 10 * ring.rank() + 1], [0; 2]);
    ///     ring.neighbour_all_to_all(&mine, &mut halo).unwrap();
    ///     assert_eq!(halo, [[31, 10], [1, 20], [11, 30], [21, 0]][ring.rank()]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Neighbor_alltoall")]
    #[track_caller]
    pub fn neighbour_all_to_all<S: SendBuffer + ?Sized, R>(
        &self,
        data: &S,
        into: &mut R,
    ) -> Result<(), Error>
    where
        R: RecvBuffer<Element = S::Element> + ?Sized,
    {
        self.run(collective::neighbour_all_to_all(data, into))
    }

    /// Like [`Communicator::neighbour_all_to_all`], with blocks of different lengths (MPI_Neighbor_alltoallv): block `i` of
    /// `sent` goes to destination `i`, and block `i` of `received` comes from source `i`.
    ///
    /// # Errors
    /// As [`Communicator::neighbour_all_gatherv`], for both buffers.
    ///
    /// ```
    /// use mpj::Partition;
    /// mpj::local::run(3, |world| {
    ///     let row = world.create_cartesian(&[3], &[false], false).unwrap().unwrap();
    ///     // Two numbers go forwards, none backwards.
    ///     let (sent, received) = (Partition::packed([0, 2]), Partition::packed([2, 0]));
    ///     let (data, mut into) = ([row.rank(); 2], [9; 2]);
    ///     row.neighbour_all_to_allv(&data, &sent, &mut into, &received).unwrap();
    ///     assert_eq!(into, [[9; 2], [0; 2], [1; 2]][row.rank()]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Neighbor_alltoallv")]
    #[track_caller]
    pub fn neighbour_all_to_allv<S: SendBuffer + ?Sized, R>(
        &self,
        data: &S,
        sent: &Partition,
        into: &mut R,
        received: &Partition,
    ) -> Result<(), Error>
    where
        R: RecvBuffer<Element = S::Element> + ?Sized,
    {
        self.run(collective::neighbour_all_to_allv(data, sent, into, received))
    }

    /// Exchanges a buffer with each neighbour, each in its own memory and of any layout (MPI_Neighbor_alltoallw): `data[i]`
    /// goes to destination `i`, and `into[i]` receives from source `i`.
    ///
    /// # Errors
    /// As [`Communicator::neighbour_all_to_all`]; a number of buffers other than that of the neighbours;
    /// [`Error::Overlap`].
    ///
    /// ```
    /// use mpj::{column, column_mut};
    /// mpj::local::run(2, |world| {
    ///     let ring = world.create_cartesian(&[2], &[true], false).unwrap().unwrap();
    ///     // The first column goes backwards, the last one forwards, into columns of another matrix.
    ///     let (matrix, mut halo) = ([1, 2, 3, 4].map(|x| x + 10 * ring.rank()), [0; 4]);
    ///     let data = [column(&matrix, 2, 0).unwrap(), column(&matrix, 2, 1).unwrap()];
    ///     let mut into = mpj::split_columns_mut(&mut halo, 2, [1, 1]).unwrap();
    ///     ring.neighbour_all_to_allw(&data, &mut into).unwrap();
    ///     assert_eq!(halo, [[12, 11, 14, 13], [2, 1, 4, 3]][ring.rank()]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Neighbor_alltoallw")]
    #[track_caller]
    pub fn neighbour_all_to_allw<S: SendBuffer, R>(
        &self,
        data: &[S],
        into: &mut [R],
    ) -> Result<(), Error>
    where
        R: RecvBuffer<Element = S::Element>,
    {
        self.run(collective::neighbour_all_to_allw(data, into))
    }
}

//! The blocking calls that move data.

use crate::collective::{self, Partition, equal_blocks, share};
use crate::communicator::Communicator;
use crate::datatype::Datatype;
use crate::error::Error;
use crate::group::narrowed;
use crate::memory::core::{input, output};
use crate::memory::{RecvBuffer, SendBuffer};

/// # Collective calls that move data
impl Communicator {
    /// Waits until every rank has called the barrier (MPI_Barrier).
    ///
    /// # Errors
    /// As [`PointToPoint::recv`](crate::PointToPoint::recv).
    ///
    /// ```
    /// mpj::local::run(3, |world| world.barrier().unwrap())?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Barrier")]
    #[track_caller]
    pub fn barrier(&self) -> Result<(), Error> {
        let _site = self.site("barrier", || None);
        self.answer(self.core.run_barrier())
    }

    /// Copies the root's elements to the buffers of all ranks, which have as many elements (MPI_Bcast).
    ///
    /// # Errors
    /// No such root; on a rank whose buffer has fewer elements, the message does not fit; a rank is lost; the device
    /// has failed.
    ///
    /// ```
    /// mpj::local::run(4, |world| {
    ///     let mut numbers = if world.rank() == 2 { [1.5, 2.5] } else { [0.0; 2] };
    ///     world.broadcast(&mut numbers, 2).unwrap();
    ///     assert_eq!(numbers, [1.5, 2.5]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Bcast")]
    #[track_caller]
    pub fn broadcast<B: RecvBuffer + ?Sized>(
        &self,
        buffer: &mut B,
        root: usize,
    ) -> Result<(), Error> {
        self.run(collective::broadcast(buffer, root))
    }

    /// Collects the elements of all ranks at the root, in the order of ranks (MPI_Gather). All ranks send the same
    /// number of elements.
    ///
    /// # Errors
    /// As [`Communicator::broadcast`]; at the root [`Error::Division`] if `into` cannot be divided equally among the
    /// ranks.
    ///
    /// ```
    /// mpj::local::run(3, |world| {
    ///     let mut all = if world.rank() == 0 { vec![0; 3] } else { vec![] };
    ///     world.gather(&world.rank(), &mut all, 0).unwrap();
    ///     assert!(world.rank() > 0 || all == [0, 1, 2]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Gather")]
    #[track_caller]
    pub fn gather<S: SendBuffer + ?Sized, R>(
        &self,
        data: &S,
        into: &mut R,
        root: usize,
    ) -> Result<(), Error>
    where
        R: RecvBuffer<Element = S::Element> + ?Sized,
    {
        self.run(collective::gather(data, into, root))
    }

    /// Like [`Communicator::gather`], for a root whose own part is already in its place in `all` (MPI_Gather with
    /// MPI_IN_PLACE). The other ranks call `gather`.
    ///
    /// # Errors
    /// As [`Communicator::gather`]; the caller is not the root.
    ///
    /// ```
    /// mpj::local::run(3, |world| {
    ///     if world.rank() == 0 {
    ///         let mut all = [7_usize, 0, 0];
    ///         world.gather_in_place(&mut all, 0).unwrap();
    ///         assert_eq!(all, [7, 1, 2]);
    ///     } else {
    ///         world.gather(&world.rank(), &mut [], 0).unwrap();
    ///     }
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias("MPI_Gather", "MPI_IN_PLACE"))]
    #[track_caller]
    pub fn gather_in_place<R: RecvBuffer + ?Sized>(
        &self,
        all: &mut R,
        root: usize,
    ) -> Result<(), Error> {
        let _site = self.site("collective", || R::Element::datatype().ok());
        let plan = output(all).and_then(|(all, count)| {
            Ok(self.core.gather(None, all, share(self, count)?, narrowed(root))?)
        });
        self.answer(plan.and_then(|plan| Ok(plan.run()?)))
    }

    /// Collects parts of different lengths in blocks of the root's buffer (MPI_Gatherv). Only the root's `blocks` are
    /// used. See [`Partition`] for an example.
    ///
    /// # Errors
    /// As [`Communicator::gather`]; at the root, blocks that do not lie inside `into`, or a number of blocks other than
    /// that of the ranks.
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     let blocks = mpj::Partition::packed([1, 2]);
    ///     let mut all = if world.rank() == 0 { vec![0; 3] } else { vec![] };
    ///     world.gatherv(&vec![world.rank(); world.rank() + 1], &mut all, &blocks, 0).unwrap();
    ///     assert!(world.rank() > 0 || all == [0, 1, 1]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Gatherv")]
    #[track_caller]
    pub fn gatherv<S: SendBuffer + ?Sized, R>(
        &self,
        data: &S,
        into: &mut R,
        blocks: &Partition,
        root: usize,
    ) -> Result<(), Error>
    where
        R: RecvBuffer<Element = S::Element> + ?Sized,
    {
        self.run(collective::gatherv(data, into, blocks, root))
    }

    /// Distributes the root's elements: each rank gets its part (MPI_Scatter). Only the root's `data` is used.
    ///
    /// # Errors
    /// As [`Communicator::broadcast`]; at the root [`Error::Division`] if `data` cannot be divided equally among the
    /// ranks.
    ///
    /// ```
    /// mpj::local::run(3, |world| {
    ///     let (all, mut mine) = ([10, 20, 30, 40, 50, 60], [0; 2]);
    ///     let all = if world.rank() == 1 { &all[..] } else { &[] };
    ///     world.scatter(all, &mut mine, 1).unwrap();
    ///     assert_eq!(mine[1], 20 * (world.rank() + 1));
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Scatter")]
    #[track_caller]
    pub fn scatter<S: SendBuffer + ?Sized, R>(
        &self,
        data: &S,
        into: &mut R,
        root: usize,
    ) -> Result<(), Error>
    where
        R: RecvBuffer<Element = S::Element> + ?Sized,
    {
        self.run(collective::scatter(data, into, root))
    }

    /// Like [`Communicator::scatter`], for a root whose own part stays in `data` (MPI_Scatter with MPI_IN_PLACE). The
    /// other ranks call `scatter`.
    ///
    /// # Errors
    /// As [`Communicator::scatter`]; the caller is not the root.
    ///
    /// ```
    /// mpj::local::run(3, |world| {
    ///     if world.rank() == 0 {
    ///         world.scatter_in_place(&[7_usize, 8, 9], 0).unwrap();
    ///     } else {
    ///         let mut mine = 0;
    ///         world.scatter::<[usize], _>(&[], &mut mine, 0).unwrap();
    ///         assert_eq!(mine, 7 + world.rank());
    ///     }
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias("MPI_Scatter", "MPI_IN_PLACE"))]
    #[track_caller]
    pub fn scatter_in_place<S: SendBuffer + ?Sized>(
        &self,
        data: &S,
        root: usize,
    ) -> Result<(), Error> {
        let _site = self.site("collective", || S::Element::datatype().ok());
        let plan = input(data).and_then(|(data, count)| {
            Ok(self.core.scatter(data, share(self, count)?, None, narrowed(root))?)
        });
        self.answer(plan.and_then(|plan| Ok(plan.run()?)))
    }

    /// Distributes the root's elements in blocks of different lengths (MPI_Scatterv). Only the root's blocks are used.
    ///
    /// # Errors
    /// As [`Communicator::scatter`]; at the root, blocks that do not lie inside `data`, or a number of blocks other
    /// than that of the ranks.
    ///
    /// ```
    /// use mpj::Partition;
    /// mpj::local::run(3, |world| {
    ///     // The first element goes to all, and one more to each.
    ///     let blocks = Partition::at([(0, 1), (0, 2), (0, 3)]);
    ///     let mut mine = vec![0; world.rank() + 1];
    ///     world.scatterv(&[7, 8, 9], &blocks, &mut mine, 0).unwrap();
    ///     assert_eq!(mine, [7, 8, 9][..=world.rank()]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Scatterv")]
    #[track_caller]
    pub fn scatterv<S: SendBuffer + ?Sized, R>(
        &self,
        data: &S,
        blocks: &Partition,
        into: &mut R,
        root: usize,
    ) -> Result<(), Error>
    where
        R: RecvBuffer<Element = S::Element> + ?Sized,
    {
        self.run(collective::scatterv(data, blocks, into, root))
    }

    /// Collects the elements of all ranks at every rank, in the order of ranks (MPI_Allgather). All ranks send the same
    /// number of elements.
    ///
    /// # Errors
    /// As [`Communicator::broadcast`]; [`Error::Division`] if `into` cannot be divided equally among the ranks.
    ///
    /// ```
    /// mpj::local::run(3, |world| {
    ///     let mut all = [0; 6];
    ///     world.all_gather(&[world.rank(), 9], &mut all).unwrap();
    ///     assert_eq!(all, [0, 9, 1, 9, 2, 9]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Allgather")]
    #[track_caller]
    pub fn all_gather<S: SendBuffer + ?Sized, R>(&self, data: &S, into: &mut R) -> Result<(), Error>
    where
        R: RecvBuffer<Element = S::Element> + ?Sized,
    {
        self.run(collective::all_gather(data, into))
    }

    /// Like [`Communicator::all_gather`], with each rank's own part already in its place (MPI_Allgather with
    /// MPI_IN_PLACE).
    ///
    /// # Errors
    /// As [`Communicator::all_gather`].
    ///
    /// ```
    /// mpj::local::run(3, |world| {
    ///     let mut all = [9; 3];
    ///     all[world.rank()] = world.rank();
    ///     world.all_gather_in_place(&mut all).unwrap();
    ///     assert_eq!(all, [0, 1, 2]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias("MPI_Allgather", "MPI_IN_PLACE"))]
    #[track_caller]
    pub fn all_gather_in_place<R: RecvBuffer + ?Sized>(&self, all: &mut R) -> Result<(), Error> {
        let _site = self.site("collective", || R::Element::datatype().ok());
        let plan = output(all)
            .and_then(|(all, count)| Ok(self.core.allgather(None, all, share(self, count)?)?));
        self.answer(plan.and_then(|plan| Ok(plan.run()?)))
    }

    /// Collects parts of different lengths at every rank (MPI_Allgatherv). All ranks give the same counts.
    ///
    /// # Errors
    /// As [`Communicator::all_gather`]; blocks that do not lie inside `into`, or a number of blocks other than that of
    /// the ranks.
    ///
    /// ```
    /// use mpj::Partition;
    /// mpj::local::run(3, |world| {
    ///     let (mine, mut all) = (vec![world.rank(); world.rank() + 1], [0; 6]);
    ///     world.all_gatherv(&mine, &mut all, &Partition::packed([1, 2, 3])).unwrap();
    ///     assert_eq!(all, [0, 1, 1, 2, 2, 2]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Allgatherv")]
    #[track_caller]
    pub fn all_gatherv<S: SendBuffer + ?Sized, R>(
        &self,
        data: &S,
        into: &mut R,
        blocks: &Partition,
    ) -> Result<(), Error>
    where
        R: RecvBuffer<Element = S::Element> + ?Sized,
    {
        self.run(collective::all_gatherv(data, into, blocks))
    }

    /// Sends part `r` of each rank's elements to rank `r`, which stores the parts in the order of ranks (MPI_Alltoall).
    ///
    /// # Errors
    /// As [`Communicator::broadcast`]; [`Error::Division`] if a buffer cannot be divided equally among the ranks.
    ///
    /// ```
    /// mpj::local::run(3, |world| {
    ///     let me = 10 * world.rank();
    ///     let mut into = [0; 3];
    ///     world.all_to_all(&[me, me + 1, me + 2], &mut into).unwrap();
    ///     assert_eq!(into, [0, 10, 20].map(|of| of + world.rank()));
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Alltoall")]
    #[track_caller]
    pub fn all_to_all<S: SendBuffer + ?Sized, R>(&self, data: &S, into: &mut R) -> Result<(), Error>
    where
        R: RecvBuffer<Element = S::Element> + ?Sized,
    {
        self.run(collective::all_to_all(data, into))
    }

    /// Like [`Communicator::all_to_all`], but replaces the sent elements with the received ones (MPI_Alltoall with
    /// MPI_IN_PLACE).
    ///
    /// # Errors
    /// As [`Communicator::all_to_all`].
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     let mut data = [10 * world.rank(), 10 * world.rank() + 1];
    ///     world.all_to_all_in_place(&mut data).unwrap();
    ///     assert_eq!(data, [world.rank(), 10 + world.rank()]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias("MPI_Alltoall", "MPI_IN_PLACE"))]
    #[track_caller]
    pub fn all_to_all_in_place<R: RecvBuffer + ?Sized>(&self, data: &mut R) -> Result<(), Error> {
        let _site = self.site("collective", || R::Element::datatype().ok());
        let plan = output(data).and_then(|(data, units)| {
            Ok(self.core.alltoall(None, data, equal_blocks(self, units)?)?)
        });
        self.answer(plan.and_then(|plan| Ok(plan.run()?)))
    }

    /// Exchanges blocks of different lengths (MPI_Alltoallv): block `r` of `data` goes to rank `r`, and block `r` of
    /// `into` receives from rank `r`. It must have as many elements as rank `r` sends.
    ///
    /// # Errors
    /// As [`Communicator::all_to_all`]; blocks that do not lie inside their buffer, or a number of blocks other than
    /// that of the ranks.
    ///
    /// ```
    /// use mpj::Partition;
    /// mpj::local::run(2, |world| {
    ///     // Rank 0 sends 1 and 2 numbers, rank 1 sends 0 and 1.
    ///     let (sent, received) = [([1, 2], [1, 0]), ([0, 1], [2, 1])][world.rank()];
    ///     let (sent, received) = (Partition::packed(sent), Partition::packed(received));
    ///     let (data, mut into) = (vec![world.rank(); sent.end()], vec![9; received.end()]);
    ///     world.all_to_allv(&data, &sent, &mut into, &received).unwrap();
    ///     assert_eq!(into, [vec![0], vec![0, 0, 1]][world.rank()]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Alltoallv")]
    #[track_caller]
    pub fn all_to_allv<S: SendBuffer + ?Sized, R>(
        &self,
        data: &S,
        sent: &Partition,
        into: &mut R,
        received: &Partition,
    ) -> Result<(), Error>
    where
        R: RecvBuffer<Element = S::Element> + ?Sized,
    {
        self.run(collective::all_to_allv(data, sent, into, received))
    }

    /// Exchanges a buffer with each rank, each in its own memory and of any layout (MPI_Alltoallw): `data[r]` goes to
    /// rank `r`, and `into[r]` receives from rank `r`. It must have as many elements as rank `r` sends.
    ///
    /// # Errors
    /// As [`Communicator::all_to_all`]; a number of buffers other than that of the ranks; [`Error::Overlap`].
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     // The halves of a row go to the ranks, and what comes is a column of a matrix.
    ///     let (row, mut matrix) = ([1, 2, 3, 4].map(|x| x + 10 * world.rank()), [0; 4]);
    ///     let halves: Vec<_> = row.chunks(2).collect();
    ///     let mut columns = mpj::split_columns_mut(&mut matrix, 2, [1, 1]).unwrap();
    ///     world.all_to_allw(&halves, &mut columns).unwrap();
    ///     assert_eq!(matrix, [[1, 11, 2, 12], [3, 13, 4, 14]][world.rank()]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Alltoallw")]
    #[track_caller]
    pub fn all_to_allw<S: SendBuffer, R>(&self, data: &[S], into: &mut [R]) -> Result<(), Error>
    where
        R: RecvBuffer<Element = S::Element>,
    {
        self.run(collective::all_to_allw(data, into))
    }
}

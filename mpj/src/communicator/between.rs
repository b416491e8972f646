//! Collective calls between the two groups of an intercommunicator (MPI-4.1 section 6.2.3): all data go to the other
//! group.

use mpicore::collective::Blocks;
use mpicore::collective::inter;

use super::InterCommunicator;
use crate::collective::{divided, same_length};
use crate::error::Error;
use crate::group::narrowed;
use crate::memory::core::{input, output};
use crate::memory::{RecvBuffer, SendBuffer};
use crate::op::Operation;

/// The root of a collective call between two groups, as a rank sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Root {
    /// This rank: MPI_ROOT.
    Here,
    /// Another rank of this group, which takes no part: MPI_PROC_NULL.
    Beside,
    /// This rank of the other group.
    There(usize),
}

impl Root {
    fn as_core(self) -> inter::Root {
        match self {
            Self::Here => inter::Root::Here,
            Self::Beside => inter::Root::Beside,
            Self::There(rank) => inter::Root::Remote(narrowed(rank)),
        }
    }
}

impl InterCommunicator {
    /// Blocks of the same length for each rank of the other group.
    fn share(&self, units: u64) -> Result<Blocks<'static>, Error> {
        self.communicator.equal_blocks(units)
    }

    /// Brings the elements of the root's buffer to the buffers of the other group (MPI_Bcast).
    ///
    /// # Errors
    /// As [`Communicator::broadcast`](crate::Communicator::broadcast).
    ///
    /// ```
    /// use mpj::{OtherGroup, Root};
    /// mpj::local::run(3, |world| {
    ///     let is_odd = world.rank() == 1;
    ///     let half = world.split(is_odd.into(), 0).unwrap();
    ///     let other = OtherGroup { peers: &world, leader: (!is_odd).into(), tag: 0 };
    ///     let between = half.create_inter(0, Some(other)).unwrap();
    ///     // World rank 1 is the root, and all of its group; the even ranks get what it has.
    ///     let (root, mut word) = if is_odd { (Root::Here, 7) } else { (Root::There(0), 0) };
    ///     between.broadcast(&mut word, root).unwrap();
    ///     assert_eq!(word, 7);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn broadcast<B: RecvBuffer + ?Sized>(
        &self,
        buffer: &mut B,
        root: Root,
    ) -> Result<(), Error> {
        self.communicator.run(output(buffer).and_then(|(buffer, count)| {
            Ok(self.communicator.core.inter_bcast(buffer, count, root.as_core())?)
        }))
    }

    /// Brings the elements of the other group to the root (MPI_Gather). `into` matters at the root alone, `data` in the
    /// other group.
    ///
    /// # Errors
    /// As [`Communicator::gather`](crate::Communicator::gather).
    pub fn gather<S: SendBuffer + ?Sized, R>(
        &self,
        data: &S,
        into: &mut R,
        root: Root,
    ) -> Result<(), Error>
    where
        R: RecvBuffer<Element = S::Element> + ?Sized,
    {
        self.communicator.run(input(data).and_then(|data| {
            let (into, units) = output(into)?;
            let units = if root == Root::Here { units } else { 0 };
            let (core, blocks) = (&self.communicator.core, self.share(units)?);
            Ok(core.inter_gather(data, into, blocks, root.as_core())?)
        }))
    }

    /// Brings to each rank of the other group its part of the root's elements (MPI_Scatter). `data` matters at the root
    /// alone, `into` in the other group.
    ///
    /// # Errors
    /// As [`Communicator::scatter`](crate::Communicator::scatter).
    pub fn scatter<S: SendBuffer + ?Sized, R>(
        &self,
        data: &S,
        into: &mut R,
        root: Root,
    ) -> Result<(), Error>
    where
        R: RecvBuffer<Element = S::Element> + ?Sized,
    {
        self.communicator.run(input(data).and_then(|(data, units)| {
            let into = output(into)?;
            let units = if root == Root::Here { units } else { 0 };
            let (core, blocks) = (&self.communicator.core, self.share(units)?);
            Ok(core.inter_scatter(data, blocks, into, root.as_core())?)
        }))
    }

    /// Brings the elements of all ranks to all ranks of the other group (MPI_Allgather).
    ///
    /// # Errors
    /// As [`Communicator::all_gather`](crate::Communicator::all_gather).
    pub fn all_gather<S: SendBuffer + ?Sized, R>(&self, data: &S, into: &mut R) -> Result<(), Error>
    where
        R: RecvBuffer<Element = S::Element> + ?Sized,
    {
        self.communicator.run(input(data).and_then(|data| {
            let (into, units) = output(into)?;
            Ok(self.communicator.core.inter_allgather(data, into, self.share(units)?)?)
        }))
    }

    /// Brings part `r` of each rank's elements to rank `r` of the other group (MPI_Alltoall).
    ///
    /// # Errors
    /// As [`Communicator::all_to_all`](crate::Communicator::all_to_all).
    pub fn all_to_all<S: SendBuffer + ?Sized, R>(&self, data: &S, into: &mut R) -> Result<(), Error>
    where
        R: RecvBuffer<Element = S::Element> + ?Sized,
    {
        self.communicator.run(input(data).and_then(|(data, sent)| {
            let (into, received) = output(into)?;
            let (sent, received) = ((data, self.share(sent)?), (into, self.share(received)?));
            Ok(self.communicator.core.inter_alltoall(sent, received)?)
        }))
    }

    /// Combines the elements of the other group at the root (MPI_Reduce). `into` matters at the root alone, `data` in
    /// the other group.
    ///
    /// # Errors
    /// As [`Communicator::reduce`](crate::Communicator::reduce).
    pub fn reduce<S: SendBuffer + ?Sized, R>(
        &self,
        data: &S,
        into: &mut R,
        op: impl Operation<S::Element>,
        root: Root,
    ) -> Result<(), Error>
    where
        R: RecvBuffer<Element = S::Element> + ?Sized,
    {
        self.communicator.run(input(data).and_then(|(data, given)| {
            let (into, room) = output(into)?;
            let count = if root == Root::Here { room } else { given };
            let core = &self.communicator.core;
            Ok(core.inter_reduce(data, into, count, op.reduction(), root.as_core())?)
        }))
    }

    /// Combines the elements of each group, and leaves the results with all ranks of the other (MPI_Allreduce).
    ///
    /// # Errors
    /// As [`Communicator::all_reduce`](crate::Communicator::all_reduce); [`Error::Lengths`].
    ///
    /// ```
    /// use mpj::{Op, OtherGroup};
    /// mpj::local::run(4, |world| {
    ///     let is_odd = world.rank() % 2 == 1;
    ///     let half = world.split(is_odd.into(), 0).unwrap();
    ///     let other = OtherGroup { peers: &world, leader: (!is_odd).into(), tag: 0 };
    ///     let between = half.create_inter(0, Some(other)).unwrap();
    ///     let mut sum = 0_usize;
    ///     between.all_reduce(&world.rank(), &mut sum, Op::Sum).unwrap();
    ///     assert_eq!(sum, if is_odd { 2 } else { 4 });
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn all_reduce<S: SendBuffer + ?Sized, R>(
        &self,
        data: &S,
        into: &mut R,
        op: impl Operation<S::Element>,
    ) -> Result<(), Error>
    where
        R: RecvBuffer<Element = S::Element> + ?Sized,
    {
        self.communicator.run(input(data).and_then(|(data, count)| {
            let (into, room) = output(into)?;
            same_length(count, room)?;
            Ok(self.communicator.core.inter_allreduce(data, into, count, op.reduction())?)
        }))
    }

    /// Combines the elements of each group, and divides the results among the ranks of the other: rank `r` of this
    /// group gets `counts[r]` of those of the other one (MPI_Reduce_scatter). All ranks of both give as many elements.
    ///
    /// # Errors
    /// As [`Communicator::reduce_scatter`](crate::Communicator::reduce_scatter).
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
        self.communicator.run(input(data).and_then(|(data, given)| {
            let (into, room) = output(into)?;
            let counts = divided(counts, self.rank(), given, room)?;
            let core = &self.communicator.core;
            Ok(core.inter_reduce_scatter(data, into, &counts, op.reduction())?)
        }))
    }
}

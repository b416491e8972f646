//! Collectives as schedules (MPI-4.1 chapter 6). A schedule is a value that describes everything that one rank does in
//! a collective call. Collective calls build schedules here; an executor runs them.
//!
//! - A [`Schedule`] is a sequence of rounds. It names ranks and [places](Place) in buffers; it contains no addresses,
//!   datatypes or operations. Nothing here communicates.
//! - Which messages there are depends on ranks, sizes, roots, and on the algorithm that the caller chooses. Counts only
//!   decide how long they are: even a message of no elements is sent, since the peer may describe the same empty data
//!   by a count that is not zero, of a datatype that is empty.
//! - Messages from one rank to another are sent and received in the same order and with the same sizes, so one tag
//!   suffices for a collective. No message needs to be buffered: schedules complete even if no send completes before
//!   its receive.
//! - Operands are combined in the order of ranks, unless the caller states that the order is free. Which operands are
//!   combined first depends only on ranks and their hosts, never on which message arrives first.
//!
//! Each collective has one algorithm, with these exceptions: callers of allreduce choose one of two; callers of gather
//! and scatter use [`gatherv`] and [`scatterv`] for few ranks or long blocks; allgather and barrier choose by the
//! number of ranks. If the ranks are on several [hosts](Hosts), barrier, bcast, gather, scatter, allgather, reduce and
//! allreduce have algorithms of two levels. Reductions combine long operands in pieces, one after the other (`pieces.rs`).
//! Functions are named as MPI's. Forms for intercommunicators are in [`inter`].

mod allgather;
mod allreduce;
mod alltoall;
mod barrier;
mod bcast;
mod blocks;
mod error;
mod gather;
mod hosts;
pub mod inter;
mod neighbour;
mod partial;
mod pieces;
mod place;
mod reduce;
mod reduce_scatter;
mod scan;
mod scatter;
mod schedule;
mod steps;
#[cfg(test)]
mod tests;
mod tree;

pub use allgather::{allgather, allgatherv};
pub use allreduce::{Exchange, allreduce};
pub use alltoall::alltoall;
pub use barrier::barrier;
pub(crate) use barrier::barrier_steps;
pub use bcast::{bcast, divided_bcast};
pub(crate) use blocks::{Collective, Used};
pub use error::CollectiveError;
pub use gather::{gather, gatherv};
pub use hosts::Hosts;
pub use neighbour::{Neighbours, neighbour_allgather, neighbour_alltoall};
pub(crate) use pieces::{Division, Packing};
pub use place::{Blocks, Buffer, Part, Place};
pub use reduce::{Order, reduce};
pub(crate) use reduce_scatter::divided_reduce_scatter;
pub use reduce_scatter::{reduce_scatter, reduce_scatter_block};
pub use scan::{exscan, scan};
pub use scatter::{scatter, scatterv};
pub(crate) use schedule::Reach;
pub use schedule::{Local, Message, Round, Schedule, Scratch};
pub(crate) use steps::Steps;

/// A rank of an intracommunicator, for which a schedule is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Member<'h> {
    rank: u32,
    size: u32,
    /// Where the ranks are, unless all are on one host.
    hosts: Option<&'h Hosts>,
}

/// The buffer that contains a rank's operands of a reduction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operands {
    /// The send buffer.
    Input,
    /// The receive buffer, which also gets the result: MPI_IN_PLACE.
    InPlace,
}

impl<'h> Member<'h> {
    /// Makes the member with this rank in a communicator of `size` ranks, all on one host.
    ///
    /// # Errors
    /// [`CollectiveError::Rank`] if there is no such rank.
    pub fn new(rank: u32, size: u32) -> Result<Self, CollectiveError> {
        if rank >= size {
            return Err(CollectiveError::Rank { rank: rank.into(), size });
        }
        Ok(Self { rank, size, hosts: None })
    }

    /// Returns the member of a communicator whose ranks are on these hosts. All ranks give the same hosts.
    #[inline]
    pub fn on(self, hosts: Option<&'h Hosts>) -> Self {
        Self { hosts, ..self }
    }

    /// Returns the rank for which the schedule is built.
    pub fn rank(self) -> u32 {
        self.rank
    }

    /// Returns the number of ranks of the communicator.
    pub fn size(self) -> u32 {
        self.size
    }

    /// Returns the rank that is `distance` before this one, where rank 0 follows the last rank. `distance` is at most
    /// the size.
    fn behind(self, distance: u32) -> u32 {
        wrapped(u64::from(self.rank) + u64::from(self.size - distance), self.size)
    }

    /// Returns the rank that is `distance` after this one, where rank 0 follows the last rank. `distance` is at most the
    /// size.
    fn ahead(self, distance: u32) -> u32 {
        wrapped(u64::from(self.rank) + u64::from(distance), self.size)
    }

    fn check_root(self, root: u32) -> Result<(), CollectiveError> {
        let is_rank = root < self.size;
        is_rank.then_some(()).ok_or(CollectiveError::Root { root: root.into(), size: self.size })
    }

    /// Refuses `in_place` for a rank that is not the root.
    fn check_in_place(self, root: u32, in_place: bool) -> Result<(), CollectiveError> {
        let is_refused = in_place && self.rank != root;
        (!is_refused).then_some(()).ok_or(CollectiveError::InPlace { rank: self.rank, root })
    }
}

impl Operands {
    fn buffer(self) -> Buffer {
        match self {
            Self::Input => Buffer::Input,
            Self::InPlace => Buffer::Output,
        }
    }
}

/// Returns `sum` modulo `size`. `sum` is below twice the size.
fn wrapped(sum: u64, size: u32) -> u32 {
    // A division would take a few percent of a barrier's time.
    let wrapped = if sum < u64::from(size) { sum } else { sum - u64::from(size) };
    debug_assert!(wrapped < size.into(), "{sum} is not below twice {size}");
    wrapped as u32
}

/// Iterates over 1, 2, 4 and so on below `limit`.
fn doublings(limit: u32) -> impl Iterator<Item = u32> {
    let powers = u32::BITS - limit.saturating_sub(1).leading_zeros();
    (0..powers).map(|power| 1 << power)
}

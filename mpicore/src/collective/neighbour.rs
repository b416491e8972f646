//! Collectives in which each rank exchanges blocks with its neighbours in a topology (MPI-4.1 section 8.6).
//!
//! Messages between two ranks that are neighbours more than once are sent in the order of destinations, and received in
//! the order of sources. In a grid both neighbours along a dimension may be the same rank; what was sent backwards
//! comes first there, and belongs to the neighbour that follows.

use super::schedule::Draft;
use super::steps::Steps;
use super::{Blocks, Buffer, CollectiveError, Place, Schedule};

/// The neighbours of one rank, in the order of the blocks of neighbourhood collectives (MPI-4.1 section 8.6). `None` is
/// MPI_PROC_NULL: its block is neither sent nor received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Neighbours {
    /// The ranks to receive from.
    pub sources: Vec<Option<u32>>,
    /// The ranks to send to.
    pub destinations: Vec<Option<u32>>,
    /// Whether they are the neighbours in a grid: what a rank sends backwards along a dimension comes from the rank
    /// that follows, even if both neighbours are the same rank.
    pub are_in_grid: bool,
}

/// Sends `count` elements of the input to each destination, and receives a block from each source:
/// MPI_Neighbor_allgather, MPI_Neighbor_allgatherv.
///
/// # Errors
/// [`CollectiveError::Entries`] unless there is one block for each source, [`CollectiveError::Block`] or
/// [`CollectiveError::Count`] if blocks end beyond `i64::MAX`.
pub fn neighbour_allgather(
    neighbours: &Neighbours,
    count: u64,
    receive: Blocks<'_>,
) -> Result<Schedule, CollectiveError> {
    let whole = Place::first(Buffer::Input, count);
    exchange("allgather among neighbours", neighbours, |_| whole, receive)
}

/// Sends a block of the input to each destination, and receives a block from each source: MPI_Neighbor_alltoall,
/// MPI_Neighbor_alltoallv or MPI_Neighbor_alltoallw for equal, listed or typed blocks.
///
/// # Errors
/// As [`neighbour_allgather`], for both buffers.
///
/// ```
/// use mpicore::collective::{Blocks, Neighbours, neighbour_alltoall};
/// let (sources, destinations) = (vec![Some(3)], vec![Some(1), None, Some(3)]);
/// let neighbours = Neighbours { sources, destinations, are_in_grid: false };
/// let blocks = Blocks::Equal { count: 2 };
/// let schedule = neighbour_alltoall(&neighbours, blocks, blocks)?;
/// assert_eq!(schedule.messages(), 3);
/// # Ok::<(), mpicore::collective::CollectiveError>(())
/// ```
pub fn neighbour_alltoall(
    neighbours: &Neighbours,
    send: Blocks<'_>,
    receive: Blocks<'_>,
) -> Result<Schedule, CollectiveError> {
    send.check(neighbours.destinations.len() as u32)?;
    let from = |block| send.of(Buffer::Input, block);
    exchange("alltoall among neighbours", neighbours, from, receive)
}

fn exchange(
    name: &'static str,
    neighbours: &Neighbours,
    from: impl Fn(u32) -> Place,
    receive: Blocks<'_>,
) -> Result<Schedule, CollectiveError> {
    let Neighbours { sources, destinations, are_in_grid } = neighbours;
    receive.check(sources.len() as u32)?;
    let mut draft = Draft::new(name);
    for (block, destination) in (0..).zip(destinations) {
        if let Some(destination) = *destination {
            draft.send(destination, from(block));
        }
    }
    for turn in 0..sources.len() {
        let block = if *are_in_grid { turn ^ 1 } else { turn };
        if let Some(source) = sources[block] {
            draft.receive(source, receive.of(Buffer::Output, block as u32));
        }
    }
    Ok(draft.finish())
}

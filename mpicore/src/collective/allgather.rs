//! Gathers blocks at all ranks of an intracommunicator.

use super::place::check_total;
use super::steps::Steps;
use super::{Blocks, Buffer, CollectiveError, Member, Place, Schedule, doublings};

/// Collects one block of each rank at all ranks, in the order of ranks: MPI_Allgather (MPI-4.1 section 6.7). If the
/// number of ranks is a power of two, each rank exchanges all blocks that it has with the rank at distance 1, 2, 4 and
/// so on; otherwise blocks go around a ring.
///
/// `send` is the number of elements of the input. `None` is MPI_IN_PLACE: each rank's own block is already in its place
/// in the output. `receive` is the number of elements in each block of the output.
///
/// # Errors
/// [`CollectiveError::Count`] if the blocks together have more than `i64::MAX` elements.
pub fn allgather(
    member: Member,
    send: Option<u64>,
    receive: u64,
) -> Result<Schedule, CollectiveError> {
    Schedule::of(|steps| allgather_steps(steps, member, send, receive))
}

/// Takes the steps of [`allgather`].
#[inline]
pub(super) fn allgather_steps(
    steps: &mut impl Steps,
    member: Member,
    send: Option<u64>,
    receive: u64,
) -> Result<(), CollectiveError> {
    if !member.size.is_power_of_two() {
        steps.name("allgather by a ring");
        return ring(steps, member, send, Blocks::Equal { count: receive });
    }
    steps.name("allgather by recursive doubling");
    check_total(receive, member.size)?;
    let own = Place::blocks(Buffer::Output, member.rank, 1, receive);
    own_block(steps, send, own)?;
    for distance in doublings(member.size) {
        let peer = member.rank ^ distance;
        let half = |rank| Place::blocks(Buffer::Output, rank & !(distance - 1), distance, receive);
        steps.send(peer, half(member.rank));
        steps.receive(peer, half(peer));
        steps.end_round();
    }
    Ok(())
}

/// Collects one block of each rank at all ranks, each at its own place: MPI_Allgatherv (MPI-4.1 section 6.7). The
/// blocks go around a ring. `send` is as for [`allgather`]; `receive` describes the blocks of the output. If blocks of a
/// rank have elements in common, these get the data of any of them, on the ranks to which it passes the blocks on, too.
///
/// # Errors
/// [`CollectiveError::Entries`] unless there is one block for each rank, [`CollectiveError::Block`] or
/// [`CollectiveError::Count`] if blocks end beyond `i64::MAX`.
pub fn allgatherv(
    member: Member,
    send: Option<u64>,
    receive: Blocks<'_>,
) -> Result<Schedule, CollectiveError> {
    Schedule::of(|steps| {
        steps.name("allgatherv by a ring");
        ring(steps, member, send, receive)
    })
}

/// Each rank passes on the block that it got in the round before.
fn ring(
    steps: &mut impl Steps,
    member: Member,
    send: Option<u64>,
    receive: Blocks<'_>,
) -> Result<(), CollectiveError> {
    receive.check(member.size)?;
    own_block(steps, send, receive.of(Buffer::Output, member.rank))?;
    for distance in 1..member.size {
        let has = member.behind(distance - 1);
        steps.send(member.ahead(1), receive.of(Buffer::Output, has));
        steps.receive(member.behind(1), receive.of(Buffer::Output, member.behind(distance)));
        steps.end_round();
    }
    Ok(())
}

/// Copies a rank's own block to its place.
fn own_block(steps: &mut impl Steps, send: Option<u64>, own: Place) -> Result<(), CollectiveError> {
    if let Some(count) = send {
        check_total(count, 1)?;
        steps.copy(Place::first(Buffer::Input, count), own);
        steps.end_round();
    }
    Ok(())
}

//! Exchanges blocks between all ranks of an intracommunicator.

use super::steps::Steps;
use super::{Blocks, Buffer, CollectiveError, Member, Place, Schedule, wrapped};

/// How many ranks a rank exchanges data with at a time. If ranks share a processor, each wait may cost a process
/// switch, so few waits are better; but the more messages are under way, the longer are the queues that are searched.
const TOGETHER: usize = 32;

/// Sends one block of each rank's input to each rank: MPI_Alltoall, MPI_Alltoallv or MPI_Alltoallw (MPI-4.1 section
/// 6.8) for equal, listed or typed blocks. Ranks exchange in pairs, many at a time.
///
/// `send` describes the blocks of the input. `None` is MPI_IN_PLACE: each block of the output is sent and replaced by
/// the block from the same rank, one after another through a scratch area with room for one block.
///
/// # Errors
/// [`CollectiveError::Entries`] unless there is one block for each rank, [`CollectiveError::Block`] or
/// [`CollectiveError::Count`] if blocks end beyond `i64::MAX`.
pub fn alltoall(
    member: Member,
    send: Option<Blocks<'_>>,
    receive: Blocks<'_>,
) -> Result<Schedule, CollectiveError> {
    Schedule::of(|steps| alltoall_steps(steps, member, send, receive))
}

/// Takes the steps of [`alltoall`].
#[inline]
pub(super) fn alltoall_steps(
    steps: &mut impl Steps,
    member: Member,
    send: Option<Blocks<'_>>,
    receive: Blocks<'_>,
) -> Result<(), CollectiveError> {
    steps.name("alltoall by exchange in pairs");
    let Member { rank, size, .. } = member;
    receive.check(size)?;
    send.map_or(Ok(()), |blocks| blocks.check(size))?;
    if let Some(send) = send {
        let from = |peer| send.of(Buffer::Input, peer);
        let into = |peer| receive.of(Buffer::Output, peer);
        exchange(steps, rank, size, |peer| (peer != rank).then(|| (from(peer), into(peer))));
        steps.copy(from(rank), into(rank));
    } else {
        steps.needs(receive.room_for_one());
        for peer in (0..size).map(|turn| partner(rank, turn, size)).filter(|peer| *peer != rank) {
            let (block, landing) = (receive.of(Buffer::Output, peer), receive.in_scratch(peer));
            steps.send(peer, block);
            steps.receive(peer, landing);
            steps.copy(landing, block);
            steps.end_round();
        }
    }
    Ok(())
}

/// Exchanges blocks with each partner in `turns` turns, many at a time. `blocks` returns the block to send to a partner
/// and the one to receive, or `None` if there is nothing to exchange with it.
pub(super) fn exchange(
    steps: &mut impl Steps,
    rank: u32,
    turns: u32,
    blocks: impl Fn(u32) -> Option<(Place, Place)>,
) {
    for first in (0..turns).step_by(TOGETHER) {
        let partners = (first..turns).take(TOGETHER).map(|turn| partner(rank, turn, turns));
        let pairs = partners.filter_map(|peer| Some((peer, blocks(peer)?)));
        pairs.clone().for_each(|(peer, (from, _))| steps.send(peer, from));
        pairs.for_each(|(peer, (_, into))| steps.receive(peer, into));
        steps.end_round();
    }
}

/// Returns the partner of `rank` in a turn: their sum is `turn` modulo `turns`, so each is the other's partner.
fn partner(rank: u32, turn: u32, turns: u32) -> u32 {
    wrapped(u64::from(turn) + u64::from(turns - rank), turns)
}

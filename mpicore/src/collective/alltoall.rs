//! Exchanges blocks between all ranks of an intracommunicator.

use super::schedule::Draft;
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
    let Member { rank, size } = member;
    receive.check(size)?;
    send.map_or(Ok(()), |blocks| blocks.check(size))?;
    let mut draft = Draft::new("alltoall by exchange in pairs");
    if let Some(send) = send {
        let from = |peer| send.of(Buffer::Input, peer);
        let into = |peer| receive.of(Buffer::Output, peer);
        exchange(&mut draft, rank, size, |peer| (peer != rank).then(|| (from(peer), into(peer))));
        draft.copy(from(rank), into(rank));
    } else {
        draft.needs(receive.room_for_one());
        for peer in (0..size).map(|turn| partner(rank, turn, size)).filter(|peer| *peer != rank) {
            let (block, landing) = (receive.of(Buffer::Output, peer), receive.in_scratch(peer));
            draft.send(peer, block);
            draft.receive(peer, landing);
            draft.copy(landing, block);
            draft.end_round();
        }
    }
    Ok(draft.finish())
}

/// Exchanges blocks with each partner in `turns` turns, many at a time. `blocks` returns the block to send to a partner
/// and the one to receive, or `None` if there is nothing to exchange with it.
pub(super) fn exchange(
    draft: &mut Draft,
    rank: u32,
    turns: u32,
    blocks: impl Fn(u32) -> Option<(Place, Place)>,
) {
    let partners: Vec<u32> = (0..turns).map(|turn| partner(rank, turn, turns)).collect();
    for together in partners.chunks(TOGETHER) {
        let pairs = || together.iter().filter_map(|&peer| Some((peer, blocks(peer)?)));
        // Receives come first, so that arriving messages find them.
        pairs().for_each(|(peer, (_, into))| draft.receive(peer, into));
        pairs().for_each(|(peer, (from, _))| draft.send(peer, from));
        draft.end_round();
    }
}

/// Returns the partner of `rank` in a turn: their sum is `turn` modulo `turns`, so each is the other's partner.
fn partner(rank: u32, turn: u32, turns: u32) -> u32 {
    wrapped(u64::from(turn) + u64::from(turns - rank), turns)
}

//! Exchanging blocks between all ranks of an intracommunicator. The faces' calls come here through
//! `collective.rs`.

use super::schedule::Draft;
use super::{Blocks, Buffer, CollectiveError, Member, Schedule, wrapped};

/// Brings one block of each rank's input to each rank: MPI_Alltoall, MPI_Alltoallv or MPI_Alltoallw
/// (MPI-4.1 section 6.8), as the blocks are equal, listed or typed. In each round ranks exchange in pairs:
/// those whose ranks add up to the number of the round, modulo the number of ranks.
///
/// `send` describes the blocks of the input; `None` is MPI_IN_PLACE: each block of the output is sent,
/// and replaced by what comes from the same rank, through a scratch area with room for one block.
///
/// # Errors
/// [`CollectiveError::Entries`] unless there is one block for each rank, [`CollectiveError::Block`] or
/// [`CollectiveError::Count`] if blocks end beyond `i64::MAX`.
pub fn alltoall(
    member: Member,
    send: Option<Blocks<'_>>,
    receive: Blocks<'_>,
) -> Result<Schedule, CollectiveError> {
    receive.check(member.size)?;
    send.map_or(Ok(()), |blocks| blocks.check(member.size))?;
    let mut draft = Draft::new("alltoall by exchange in pairs");
    if send.is_none() {
        draft.needs(receive.room_for_one());
    }
    for round in 0..member.size {
        let peer = partner(member.rank, round, member.size);
        let into = receive.of(Buffer::Output, peer);
        match send.map(|blocks| blocks.of(Buffer::Input, peer)) {
            Some(from) if peer == member.rank => draft.copy(from, into),
            Some(from) => {
                draft.send(peer, from);
                draft.receive(peer, into);
            }
            None if peer == member.rank => {}
            None => {
                draft.send(peer, into);
                draft.receive(peer, receive.in_scratch(peer));
                draft.copy(receive.in_scratch(peer), into);
            }
        }
        draft.end_round();
    }
    Ok(draft.finish())
}

/// Whose rank adds up with `rank` to `round` modulo `size`. Each is the other's partner.
pub(super) fn partner(rank: u32, round: u32, size: u32) -> u32 {
    wrapped(u64::from(round) + u64::from(size - rank), size)
}

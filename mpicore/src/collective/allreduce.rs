//! Reduction whose results all ranks of an intracommunicator get. The faces' calls come here through
//! `collective.rs`.

use super::partial::Partial;
use super::place::check_total;
use super::schedule::Draft;
use super::{Buffer, CollectiveError, Member, Operands, Place, Schedule, Scratch, doublings};

/// Combines `count` elements of all ranks and brings the results to all: MPI_Allreduce (MPI-4.1 section
/// 6.9.6), by recursive doubling. Where the number of ranks is no power of two, as many of the first ranks
/// as are too many hand their operands to the next rank before, and get the results from it after.
///
/// Operands are combined in the order of ranks and associated in the same way for all, so all ranks get
/// the same bits. Either all ranks work in place or none does.
///
/// # Errors
/// [`CollectiveError::Count`] if `count` is more than `i64::MAX`.
///
/// ```
/// use mpicore::collective::{Member, Operands, allreduce};
/// let schedule = allreduce(Member::new(0, 8)?, 1, Operands::Input)?;
/// assert_eq!((schedule.rounds().count(), schedule.messages()), (3, 6));
/// # Ok::<(), mpicore::collective::CollectiveError>(())
/// ```
pub fn allreduce(
    member: Member,
    count: u64,
    operands: Operands,
) -> Result<Schedule, CollectiveError> {
    check_total(count, 1)?;
    let mut draft = Draft::new("allreduce by recursive doubling");
    let output = Place::first(Buffer::Output, count);
    let held = Place::first(operands.buffer(), count);
    let folded = Folded::of(member.size);
    let Some(position) = folded.position(member.rank) else {
        draft.send(member.rank + 1, held);
        draft.end_round();
        draft.receive(member.rank + 1, output);
        return Ok(draft.finish());
    };
    draft.needs(Scratch::Elements { count, of: operands.buffer() });
    let scratch = Place::first(Buffer::Scratch, count);
    let free = if held == output { vec![scratch] } else { vec![output, scratch] };
    let mut partial = Partial::new(held, free);
    let handed_over = folded.handed_over(position, member.rank);
    if let Some(lower) = handed_over {
        draft.receive(lower, partial.landing());
        partial.absorb_lower(&mut draft);
    }
    for distance in doublings(folded.positions) {
        let partner = position ^ distance;
        let peer = folded.rank_at(partner);
        draft.end_round();
        draft.send(peer, partial.held());
        draft.receive(peer, partial.landing());
        if partner < position {
            partial.absorb_lower(&mut draft);
        } else {
            partial.absorb_higher(&mut draft);
        }
    }
    partial.settle(&mut draft, output);
    if let Some(lower) = handed_over {
        draft.end_round();
        draft.send(lower, output);
    }
    Ok(draft.finish())
}

/// The ranks that take part in recursive doubling: of the first ones, two for each that is too many, only
/// the odd ones.
#[derive(Debug, Clone, Copy)]
struct Folded {
    /// How many take part: a power of two.
    positions: u32,
    /// How many do not.
    extra: u32,
}

impl Folded {
    fn of(size: u32) -> Self {
        let positions = 1 << size.ilog2();
        Self { positions, extra: size - positions }
    }

    /// The position of a rank, if it takes part.
    fn position(&self, rank: u32) -> Option<u32> {
        let is_beyond = rank >= 2 * self.extra;
        let among_pairs = (rank % 2 == 1).then_some(rank / 2);
        if is_beyond { Some(rank - self.extra) } else { among_pairs }
    }

    fn rank_at(&self, position: u32) -> u32 {
        if position < self.extra { 2 * position + 1 } else { position + self.extra }
    }

    /// The rank that hands its operands to the one at `position`, if one does.
    fn handed_over(&self, position: u32, rank: u32) -> Option<u32> {
        (position < self.extra).then(|| rank - 1)
    }
}

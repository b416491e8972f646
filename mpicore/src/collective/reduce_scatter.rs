//! Reduces, with the results divided among the ranks of an intracommunicator.

use super::pieces::{Division, packed};
use super::place::{check_entries, check_total};
use super::steps::Steps;
use super::{Buffer, CollectiveError, Member, Operands, Place, Schedule, Scratch};

/// Combines one block of `count` elements for each rank, and gives each rank the results of its block:
/// MPI_Reduce_scatter_block (MPI-4.1 section 6.10.1). See [`reduce_scatter`].
///
/// # Errors
/// [`CollectiveError::Count`] if the blocks together have more than `i64::MAX` elements, or if three times `count` is
/// more than that.
pub fn reduce_scatter_block(
    member: Member,
    count: u64,
    operands: Operands,
) -> Result<Schedule, CollectiveError> {
    Schedule::of(|steps| reduce_scatter_block_steps(steps, member, (count, operands), u64::MAX))
}

/// Takes the steps of [`reduce_scatter_block`], for at most `most` elements of each block at a time.
pub(super) fn reduce_scatter_block_steps(
    steps: &mut impl Steps,
    member: Member,
    (count, operands): (u64, Operands),
    most: u64,
) -> Result<(), CollectiveError> {
    steps.name("reduce_scatter_block by exchange in pairs");
    check_total(count, member.size)?;
    let block = |rank| (u64::from(rank) * count, count);
    by_pairs(steps, member, operands, (count, most), block)
}

/// Combines one block of `counts[rank]` elements for each rank, and gives each rank the results of its block:
/// MPI_Reduce_scatter (MPI-4.1 section 6.10.2).
///
/// Each rank sends its operands to every other rank, beginning with the one at distance 1. It combines its own operands
/// with those of lower ranks, in descending order, then those of higher ranks, in descending order, and finally both
/// results. So the order of ranks is kept. If ranks work in place, the operands are in the output, and the results go
/// to its beginning.
///
/// # Errors
/// [`CollectiveError::Entries`] unless there is one count for each rank, [`CollectiveError::Count`] if the blocks
/// together have more than `i64::MAX` elements, or if three times the own block has.
pub fn reduce_scatter(
    member: Member,
    counts: &[u64],
    operands: Operands,
) -> Result<Schedule, CollectiveError> {
    divided_reduce_scatter(member, counts, operands, Division::NONE)
}

/// Builds the schedule of [`reduce_scatter`], divided.
pub(crate) fn divided_reduce_scatter(
    member: Member,
    counts: &[u64],
    operands: Operands,
    Division { most, packing }: Division,
) -> Result<Schedule, CollectiveError> {
    let Some(packing) = packing else {
        return Schedule::of(|draft| reduce_scatter_steps(draft, member, (counts, operands), most));
    };
    check_entries(counts.len(), member.size)?;
    let total = counts.iter().fold(0_u64, |total, count| total.saturating_add(*count));
    let used = match operands {
        Operands::Input => [total, counts[member.rank as usize]],
        Operands::InPlace => [0, total],
    };
    let of_operands = counts.iter().map(|count| count.saturating_mul(packing.operands));
    let of_operands: Vec<_> = of_operands.collect();
    Schedule::of(|draft| {
        packed(draft, packing, used, |copies| {
            reduce_scatter_steps(copies, member, (&of_operands, operands), most)
        })
    })
}

/// Takes the steps of [`reduce_scatter`], for at most `most` elements of each block at a time.
fn reduce_scatter_steps(
    steps: &mut impl Steps,
    member: Member,
    (counts, operands): (&[u64], Operands),
    most: u64,
) -> Result<(), CollectiveError> {
    steps.name("reduce_scatter by exchange in pairs");
    check_entries(counts.len(), member.size)?;
    let largest = counts.iter().copied().max().unwrap_or(0);
    let mut ends = Vec::with_capacity(counts.len());
    let mut end = 0_u64;
    for &count in counts {
        let sum = end.checked_add(count).filter(|sum| i64::try_from(*sum).is_ok());
        end = sum.ok_or(CollectiveError::Count { count: largest, blocks: member.size })?;
        ends.push(end);
    }
    let block = |rank: u32| {
        let count = counts[rank as usize];
        (ends[rank as usize] - count, count)
    };
    by_pairs(steps, member, operands, (largest, most), block)
}

/// Adds the rounds of [`reduce_scatter`], for one piece of each block after the other. `block` returns the number of the
/// first operand for a rank, and how many there are, of which no rank has more than `largest`.
///
/// If a rank works in place, the results of a piece replace only operands that have been sent: those of the same piece
/// or of earlier ones, of any block, since no operand is farther from the beginning of its block than from that of the
/// output.
fn by_pairs(
    steps: &mut impl Steps,
    member: Member,
    operands: Operands,
    (largest, most): (u64, u64),
    block: impl Fn(u32) -> (u64, u64),
) -> Result<(), CollectiveError> {
    let (_, count) = block(member.rank);
    check_total(count, 3)?;
    let areas = if operands == Operands::InPlace { 3 } else { 2 };
    steps.needs(Scratch::Elements { count: areas * count.min(most), of: operands.buffer() });
    for piece in 0..largest.div_ceil(most).max(1) {
        let before = piece * most;
        // All blocks have a first piece, also those without elements.
        let part = |rank| {
            let (first, count) = block(rank);
            let len = most.min(count.saturating_sub(before));
            let place = || Place::elements(operands.buffer(), first + before, len);
            (piece == 0 || len > 0).then(place)
        };
        let output =
            Place::elements(Buffer::Output, before, most.min(count.saturating_sub(before)));
        piece_by_pairs(steps, member, operands, (part, output));
        steps.end_round();
    }
    Ok(())
}

/// Adds the rounds for one piece of each block. `part` returns the operands of a rank's piece, if there is one; `output`
/// is the place of the results, if this rank has a piece.
fn piece_by_pairs(
    steps: &mut impl Steps,
    member: Member,
    operands: Operands,
    (part, output): (impl Fn(u32) -> Option<Place>, Place),
) {
    let own = part(member.rank);
    let count = output.count().unwrap_or(0);
    let scratch = |index| Place::elements(Buffer::Scratch, index * count, count);
    // A rank that works in place needs the operands in its output until all are sent.
    let is_in_place = operands == Operands::InPlace;
    let (lower, landing) = (scratch(0), scratch(1));
    let higher = if is_in_place { scratch(2) } else { output };
    if let Some(own) = own {
        steps.copy(own, lower);
        steps.end_round();
    }
    for distance in 1..member.size {
        let (target, source) = (member.ahead(distance), member.behind(distance));
        if let Some(operands) = part(target) {
            steps.send(target, operands);
        }
        if own.is_some() {
            let is_highest = source > member.rank && source + 1 == member.size;
            let into = if is_highest { higher } else { landing };
            steps.receive(source, into);
            if !is_highest {
                steps.reduce(landing, if source < member.rank { lower } else { higher });
            }
        }
        steps.end_round();
    }
    if own.is_none() {
        return;
    }
    let mut result = lower;
    if member.rank + 1 < member.size {
        steps.reduce(lower, higher);
        result = higher;
    }
    if result != output {
        steps.copy(result, output);
    }
}

//! Reduces, with the results divided among the ranks of an intracommunicator.

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
    Schedule::of(|steps| reduce_scatter_block_steps(steps, member, count, operands))
}

/// Takes the steps of [`reduce_scatter_block`].
pub(super) fn reduce_scatter_block_steps(
    steps: &mut impl Steps,
    member: Member,
    count: u64,
    operands: Operands,
) -> Result<(), CollectiveError> {
    steps.name("reduce_scatter_block by exchange in pairs");
    check_total(count, member.size)?;
    let block = |rank| Place::blocks(operands.buffer(), rank, 1, count);
    by_pairs(steps, member, operands, count, block)
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
        Place::elements(operands.buffer(), ends[rank as usize] - count, count)
    };
    let own = counts[member.rank as usize];
    Schedule::of(|steps| {
        steps.name("reduce_scatter by exchange in pairs");
        by_pairs(steps, member, operands, own, block)
    })
}

/// Adds the rounds of [`reduce_scatter`]. `count` is the length of the own block; `block` returns the place of the
/// operands for a rank.
fn by_pairs(
    steps: &mut impl Steps,
    member: Member,
    operands: Operands,
    count: u64,
    block: impl Fn(u32) -> Place,
) -> Result<(), CollectiveError> {
    let own = block(member.rank);
    check_total(count, 3)?;
    let output = Place::first(Buffer::Output, count);
    let scratch = |index| Place::elements(Buffer::Scratch, index * count, count);
    // A rank that works in place needs the operands in its output to the end.
    let is_in_place = operands == Operands::InPlace;
    let (lower, landing) = (scratch(0), scratch(1));
    let higher = if is_in_place { scratch(2) } else { output };
    let areas = if is_in_place { 3 } else { 2 };
    steps.needs(Scratch::Elements { count: areas * count, of: operands.buffer() });
    steps.copy(own, lower);
    steps.end_round();
    for distance in 1..member.size {
        let (target, source) = (member.ahead(distance), member.behind(distance));
        let is_highest = source > member.rank && source + 1 == member.size;
        let into = if is_highest { higher } else { landing };
        steps.send(target, block(target));
        steps.receive(source, into);
        if !is_highest {
            steps.reduce(landing, if source < member.rank { lower } else { higher });
        }
        steps.end_round();
    }
    let mut result = lower;
    if member.rank + 1 < member.size {
        steps.reduce(lower, higher);
        result = higher;
    }
    if result != output {
        steps.copy(result, output);
    }
    Ok(())
}

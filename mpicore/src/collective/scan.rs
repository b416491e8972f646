//! Reductions over each rank and those before it, in an intracommunicator.

use super::place::check_total;
use super::steps::Steps;
use super::{Buffer, CollectiveError, Member, Operands, Place, Schedule, Scratch, doublings};

/// Combines, for each rank, the operands of rank 0 to that rank: MPI_Scan (MPI-4.1 section 6.11.1). In the rounds with
/// distance 1, 2, 4 and so on, each rank sends the combined operands of that many ranks, the last of which is itself,
/// to the rank at that distance after it. The order of ranks is kept.
///
/// # Errors
/// [`CollectiveError::Count`] if `count` is more than `i64::MAX`.
pub fn scan(member: Member, count: u64, operands: Operands) -> Result<Schedule, CollectiveError> {
    Schedule::of(|steps| scan_steps(steps, member, count, operands))
}

/// Takes the steps of [`scan`].
pub(super) fn scan_steps(
    steps: &mut impl Steps,
    member: Member,
    count: u64,
    operands: Operands,
) -> Result<(), CollectiveError> {
    check_total(count, 1)?;
    steps.name("scan by doubling of distances");
    steps.needs(Scratch::Elements { count, of: operands.buffer() });
    if operands == Operands::Input {
        steps.copy(Place::first(Buffer::Input, count), Place::first(Buffer::Output, count));
        steps.end_round();
    }
    prefix(steps, member, 0, count);
    Ok(())
}

/// Combines, for each rank but 0, the operands of rank 0 to the rank before it: MPI_Exscan (MPI-4.1 section 6.11.2).
/// All operands move one rank up and are combined there as in [`scan`]. The output of rank 0 stays unchanged.
///
/// # Errors
/// [`CollectiveError::Count`] if `count` is more than `i64::MAX`.
pub fn exscan(member: Member, count: u64, operands: Operands) -> Result<Schedule, CollectiveError> {
    Schedule::of(|steps| exscan_steps(steps, member, count, operands))
}

/// Takes the steps of [`exscan`].
pub(super) fn exscan_steps(
    steps: &mut impl Steps,
    member: Member,
    count: u64,
    operands: Operands,
) -> Result<(), CollectiveError> {
    check_total(count, 1)?;
    steps.name("exscan by doubling of distances");
    steps.needs(Scratch::Elements { count, of: operands.buffer() });
    let output = Place::first(Buffer::Output, count);
    if member.rank + 1 < member.size {
        steps.send(member.rank + 1, Place::first(operands.buffer(), count));
    }
    if member.rank > 0 {
        match operands {
            Operands::Input => steps.receive(member.rank - 1, output),
            Operands::InPlace => {
                let scratch = Place::first(Buffer::Scratch, count);
                steps.receive(member.rank - 1, scratch);
                steps.copy(scratch, output);
            }
        }
        steps.end_round();
        prefix(steps, member, 1, count);
    }
    Ok(())
}

/// Combines the outputs of the ranks from `first` to this one in the output of this rank.
fn prefix(steps: &mut impl Steps, member: Member, first: u32, count: u64) {
    let (output, scratch) =
        (Place::first(Buffer::Output, count), Place::first(Buffer::Scratch, count));
    for distance in doublings(member.size - first) {
        if distance < member.size - member.rank {
            steps.send(member.rank + distance, output);
        }
        if distance <= member.rank - first {
            steps.receive(member.rank - distance, scratch);
            steps.reduce(scratch, output);
        }
        steps.end_round();
    }
}

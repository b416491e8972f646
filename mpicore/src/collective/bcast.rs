//! The broadcast of an intracommunicator.

use super::place::check_total;
use super::steps::Steps;
use super::tree::Tree;
use super::{Buffer, CollectiveError, Member, Place, Schedule};

/// Copies `count` elements of the root's output to the output of all ranks: MPI_Bcast (MPI-4.1 section 6.4), by a
/// binomial tree. The only buffer is the output. `count` is in elements of the caller's datatype, and may differ
/// between ranks whose datatypes differ.
///
/// # Errors
/// [`CollectiveError::Root`] if the root is no rank, [`CollectiveError::Count`] if `count` is more than
/// `i64::MAX`.
pub fn bcast(member: Member, root: u32, count: u64) -> Result<Schedule, CollectiveError> {
    Schedule::of(|steps| bcast_steps(steps, member, root, count))
}

/// Takes the steps of [`bcast`].
#[inline]
pub(super) fn bcast_steps(
    steps: &mut impl Steps,
    member: Member,
    root: u32,
    count: u64,
) -> Result<(), CollectiveError> {
    steps.name("bcast by a binomial tree");
    member.check_root(root)?;
    check_total(count, 1)?;
    let (tree, all) = (Tree::new(member, root), Place::first(Buffer::Output, count));
    if let Some(parent) = tree.parent() {
        steps.receive(tree.rank_at(parent), all);
        steps.end_round();
    }
    // The child with the most ranks below it comes first.
    for child in tree.children().rev() {
        steps.send(tree.rank_at(child.position), all);
    }
    Ok(())
}

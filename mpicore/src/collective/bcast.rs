//! The broadcast of an intracommunicator.

use super::place::check_total;
use super::schedule::Draft;
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
    member.check_root(root)?;
    check_total(count, 1)?;
    let (tree, all) = (Tree::new(member, root), Place::first(Buffer::Output, count));
    let mut draft = Draft::new("bcast by a binomial tree");
    if let Some(parent) = tree.parent() {
        draft.receive(tree.rank_at(parent), all);
        draft.end_round();
    }
    // The child with the most ranks below it comes first.
    for child in tree.children().rev() {
        draft.send(tree.rank_at(child.position), all);
    }
    Ok(draft.finish())
}

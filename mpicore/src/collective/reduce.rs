//! Reduces to a root, in an intracommunicator.

use super::partial::{Free, Partial};
use super::place::check_total;
use super::steps::Steps;
use super::tree::Tree;
use super::{Buffer, CollectiveError, Member, Operands, Place, Schedule, Scratch};

/// The order in which operands may be combined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Order {
    /// Any order: the operation is commutative.
    Free,
    /// The order of ranks.
    Ranks,
}

/// Combines `count` elements of all ranks and gives the results to the root: MPI_Reduce (MPI-4.1 section 6.9.1), by a
/// binomial tree. If the order is free, the root of the collective is the root of the tree; otherwise rank 0 is, and
/// sends the results to the root.
///
/// Only the root can work in place. All ranks give the same order.
///
/// # Errors
/// [`CollectiveError::Root`] if the root is no rank, [`CollectiveError::InPlace`] if another rank works in
/// place, [`CollectiveError::Count`] if twice `count` is more than `i64::MAX`.
///
/// ```
/// use mpicore::collective::{Member, Operands, Order, Scratch, Buffer, reduce};
/// let leaf = reduce(Member::new(1, 4)?, 0, 8, Operands::Input, Order::Free)?;
/// assert_eq!((leaf.messages(), leaf.scratch()), (1, Scratch::Elements { count: 0, of: Buffer::Input }));
/// # Ok::<(), mpicore::collective::CollectiveError>(())
/// ```
pub fn reduce(
    member: Member,
    root: u32,
    count: u64,
    operands: Operands,
    order: Order,
) -> Result<Schedule, CollectiveError> {
    Schedule::of(|steps| reduce_steps(steps, member, root, (count, operands, order)))
}

/// Takes the steps of [`reduce`].
#[inline]
pub(super) fn reduce_steps(
    steps: &mut impl Steps,
    member: Member,
    root: u32,
    (count, operands, order): (u64, Operands, Order),
) -> Result<(), CollectiveError> {
    steps.name("reduce by a binomial tree");
    member.check_root(root)?;
    member.check_in_place(root, operands == Operands::InPlace)?;
    check_total(count, 2)?;
    let top = if order == Order::Free { root } else { 0 };
    let (tree, is_root) = (Tree::new(member, top), member.rank == root);
    let output = Place::first(Buffer::Output, count);
    let held = Place::first(operands.buffer(), count);
    let (free, scratch) = working_places(&tree, count, is_root, operands);
    steps.needs(Scratch::Elements { count: scratch, of: operands.buffer() });
    let mut partial = Partial::new(held, free);
    for child in tree.children() {
        steps.end_round();
        steps.receive(tree.rank_at(child.position), partial.landing());
        partial.absorb_higher(steps);
    }
    let above = tree.parent().map(|parent| tree.rank_at(parent));
    match above.or((!is_root).then_some(root)) {
        Some(peer) => {
            steps.end_round();
            steps.send(peer, partial.held());
        }
        None => partial.settle(steps, output),
    }
    if is_root && top != root {
        steps.end_round();
        steps.receive(top, output);
    }
    Ok(())
}

/// Returns the places between which the running result moves, and how many elements of them are scratch. The root also
/// uses its output; the first place is chosen so that the last operands are received in the output.
fn working_places(tree: &Tree, count: u64, is_root: bool, operands: Operands) -> (Free, u64) {
    let output = Place::first(Buffer::Output, count);
    let scratch = |index| Place::elements(Buffer::Scratch, index * count, count);
    let children = tree.children().len();
    match (is_root, operands) {
        _ if children == 0 => (Free::none(), 0),
        (true, Operands::InPlace) => (Free::one(scratch(0)), count),
        (true, Operands::Input) if children == 1 => (Free::one(output), 0),
        (true, Operands::Input) if children % 2 == 1 => (Free::two(scratch(0), output), count),
        (true, Operands::Input) => (Free::two(output, scratch(0)), count),
        (false, _) if children == 1 => (Free::one(scratch(0)), count),
        (false, _) => (Free::two(scratch(1), scratch(0)), 2 * count),
    }
}

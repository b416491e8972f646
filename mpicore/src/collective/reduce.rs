//! Reduces to a root, in an intracommunicator.

use super::hosts::HostTree;
use super::partial::{Free, Partial};
use super::place::check_total;
use super::steps::Steps;
use super::tree::{Kin, Tree};
use super::{Buffer, CollectiveError, Member, Operands, Place, Schedule, Scratch};

/// The order in which operands may be combined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Order {
    /// Any order: the operation is commutative.
    Free,
    /// The order of ranks.
    Ranks,
}

impl Order {
    /// Returns the order for an operation that does or does not commute.
    #[inline]
    pub(crate) fn of(commutes: bool) -> Self {
        if commutes { Self::Free } else { Self::Ranks }
    }
}

/// Combines `count` elements of all ranks and gives the results to the root: MPI_Reduce (MPI-4.1 section 6.9.1), by a
/// binomial tree. If the order is free, the root of the collective is the root of the tree; otherwise rank 0 is, and
/// sends the results to the root. On several hosts the tree is one of hosts, and one on each host, if that keeps the
/// order.
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
    member.check_root(root)?;
    member.check_in_place(root, operands == Operands::InPlace)?;
    check_total(count, 2)?;
    let top = if order == Order::Free { root } else { 0 };
    let arguments = (root, top, count, operands);
    match member.hosts_for(order) {
        None => {
            steps.name("reduce by a binomial tree");
            up(steps, member.rank, &Tree::new(member, top), arguments);
        }
        Some(hosts) => {
            steps.name("reduce by a tree of hosts");
            up(steps, member.rank, &HostTree::new(hosts, member.rank, top), arguments);
        }
    }
    Ok(())
}

/// Combines operands up a tree to the rank `top`, and passes the results to `root`.
#[inline]
fn up(
    steps: &mut impl Steps,
    rank: u32,
    tree: &impl Kin,
    (root, top, count, operands): (u32, u32, u64, Operands),
) {
    let is_root = rank == root;
    let output = Place::first(Buffer::Output, count);
    let held = Place::first(operands.buffer(), count);
    let (free, scratch) = working_places(tree.num_below(), count, is_root, operands);
    steps.needs(Scratch::Elements { count: scratch, of: operands.buffer() });
    let mut partial = Partial::new(held, free);
    for child in tree.below() {
        steps.end_round();
        steps.receive(child, partial.landing());
        partial.absorb_higher(steps);
    }
    match tree.above().or((!is_root).then_some(root)) {
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
}

/// Returns the places between which the running result moves, and how many elements of them are scratch. The root also
/// uses its output; the first place is chosen so that the last operands are received in the output.
fn working_places(children: usize, count: u64, is_root: bool, operands: Operands) -> (Free, u64) {
    let output = Place::first(Buffer::Output, count);
    let scratch = |index| Place::elements(Buffer::Scratch, index * count, count);
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

//! Reduction to a root, in an intracommunicator. The faces' calls come here through `collective.rs`.

use super::partial::Partial;
use super::place::check_total;
use super::schedule::Draft;
use super::tree::Tree;
use super::{Buffer, CollectiveError, Member, Operands, Place, Schedule, Scratch, doublings};

/// In which order operands may be combined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Order {
    /// In any: the operation is commutative.
    Free,
    /// In the order of ranks.
    Ranks,
}

/// Who combines operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Combining {
    /// The root, to which all other ranks send theirs. None of these waits for another one, so it is the fastest for
    /// few ranks with few data.
    AtRoot,
    /// Ranks between the root and the others, as they are in a binomial tree: as many rounds as the logarithm of the
    /// number of ranks.
    OnTheWay,
}

/// Combines `count` elements of all ranks and brings the results to the root: MPI_Reduce (MPI-4.1 section
/// 6.9.1), by a binomial tree or by messages from all to the root. A tree has the root of the collective at its own
/// root if the order is free; otherwise it has rank 0 there, which sends the results to the root.
///
/// Wherever operands are combined, they are associated alike. The root alone can work in place. All ranks give the same
/// order and the same place to combine.
///
/// # Errors
/// [`CollectiveError::Root`] if the root is no rank, [`CollectiveError::InPlace`] if another rank works in
/// place, [`CollectiveError::Count`] if twice `count`, or the operands of all ranks that are combined at the root, are
/// more than `i64::MAX`.
///
/// ```
/// use mpicore::collective::{Combining, Member, Operands, Order, reduce};
/// let rounds = |combining| {
///     let schedule = reduce(Member::new(0, 8)?, 0, 1, Operands::Input, Order::Free, combining)?;
///     Ok((schedule.rounds().count(), schedule.messages()))
/// };
/// assert_eq!((rounds(Combining::OnTheWay)?, rounds(Combining::AtRoot)?), ((3, 3), (1, 7)));
/// # Ok::<(), mpicore::collective::CollectiveError>(())
/// ```
pub fn reduce(
    member: Member,
    root: u32,
    count: u64,
    operands: Operands,
    order: Order,
    combining: Combining,
) -> Result<Schedule, CollectiveError> {
    member.check_root(root)?;
    member.check_in_place(root, operands == Operands::InPlace)?;
    let top = if order == Order::Free { root } else { 0 };
    match combining {
        Combining::AtRoot => at_root(member, root, count, operands, top),
        Combining::OnTheWay => on_the_way(member, root, count, operands, top),
    }
}

/// By messages from all ranks to the root, which associates operands as the tree with `top` at its root does.
fn at_root(
    member: Member,
    root: u32,
    count: u64,
    operands: Operands,
    top: u32,
) -> Result<Schedule, CollectiveError> {
    check_total(count, member.size)?;
    let mut draft = Draft::new("reduce at the root");
    let held = Place::first(operands.buffer(), count);
    if member.rank != root {
        draft.send(root, held);
        return Ok(draft.finish());
    }
    let (tree, output) = (Tree::new(member, top), Place::first(Buffer::Output, count));
    draft.needs(Scratch::Elements { count: u64::from(member.size) * count, of: operands.buffer() });
    let mut partial: Vec<_> = (0..member.size)
        .map(|position| Place::elements(Buffer::Scratch, u64::from(position) * count, count))
        .collect();
    // The last operand is where the results will be.
    if let (Operands::Input, Some(last)) = (operands, partial.last_mut()) {
        *last = output;
    }
    let own = tree.own().position as usize;
    for (position, place) in (0..).zip(&partial).filter(|&(position, _)| position as usize != own) {
        draft.receive(tree.rank_at(position), *place);
    }
    // The first operand is only read, and so may stay where it is.
    if own == 0 || operands == Operands::InPlace {
        partial[own] = held;
    } else {
        draft.copy(held, partial[own]);
    }
    for distance in doublings(member.size) {
        for left in (0..member.size - distance).step_by(2 * distance as usize) {
            let (left, right) = (left as usize, (left + distance) as usize);
            draft.reduce(partial[left], partial[right]);
            partial[left] = partial[right];
        }
    }
    if partial[0] != output {
        draft.copy(partial[0], output);
    }
    Ok(draft.finish())
}

fn on_the_way(
    member: Member,
    root: u32,
    count: u64,
    operands: Operands,
    top: u32,
) -> Result<Schedule, CollectiveError> {
    check_total(count, 2)?;
    let (tree, is_root) = (Tree::new(member, top), member.rank == root);
    let output = Place::first(Buffer::Output, count);
    let held = Place::first(operands.buffer(), count);
    let (free, scratch) = working_places(&tree, count, is_root, operands);
    let mut draft = Draft::new("reduce by a binomial tree");
    draft.needs(Scratch::Elements { count: scratch, of: operands.buffer() });
    let mut partial = Partial::new(held, free);
    for child in tree.children() {
        draft.end_round();
        draft.receive(tree.rank_at(child.position), partial.landing());
        partial.absorb_higher(&mut draft);
    }
    let above = tree.parent().map(|parent| tree.rank_at(parent));
    match above.or((!is_root).then_some(root)) {
        Some(peer) => {
            draft.end_round();
            draft.send(peer, partial.held());
        }
        None => partial.settle(&mut draft, output),
    }
    if is_root && top != root {
        draft.end_round();
        draft.receive(top, output);
    }
    Ok(draft.finish())
}

/// The places between which the running result moves, and how many elements of them are scratch. The
/// root uses its output; which comes first is chosen so that the last operand is received there.
fn working_places(tree: &Tree, count: u64, is_root: bool, operands: Operands) -> (Vec<Place>, u64) {
    let output = Place::first(Buffer::Output, count);
    let scratch = |index| Place::elements(Buffer::Scratch, index * count, count);
    let children = tree.children().len();
    match (is_root, operands) {
        _ if children == 0 => (vec![], 0),
        (true, Operands::InPlace) => (vec![scratch(0)], count),
        (true, Operands::Input) if children == 1 => (vec![output], 0),
        (true, Operands::Input) if children % 2 == 1 => (vec![scratch(0), output], count),
        (true, Operands::Input) => (vec![output, scratch(0)], count),
        (false, _) if children == 1 => (vec![scratch(0)], count),
        (false, _) => (vec![scratch(1), scratch(0)], 2 * count),
    }
}

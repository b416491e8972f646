//! Gathers blocks at a root, in an intracommunicator.

use super::hosts::Hosts;
use super::place::check_total;
use super::steps::Steps;
use super::tree::{Branch, Tree};
use super::{Blocks, Buffer, CollectiveError, Member, Place, Schedule, Scratch};

/// Collects one block of each rank at the root, in the order of ranks: MPI_Gather (MPI-4.1 section 6.5), by a
/// binomial tree. Inner ranks of the tree collect blocks in the scratch area. On several hosts, if each has consecutive
/// ranks, the first rank of each host collects the blocks of its host, and sends them to the root.
///
/// `send` is the number of elements of the input. `None` is MPI_IN_PLACE: the root's own block is already in its place.
/// `receive` is the number of elements in each block of the output, and is used only at the root.
///
/// # Errors
/// [`CollectiveError::Root`] if the root is no rank, [`CollectiveError::InPlace`] if another rank works in
/// place, [`CollectiveError::Count`] if the blocks together have more than `i64::MAX` elements.
///
/// ```
/// use mpicore::collective::{Member, Message, Place, Buffer, Part, gather};
/// let at_root = gather(Member::new(0, 2)?, 0, None, 5)?;
/// let block = Place { buffer: Buffer::Output, part: Part::Elements { first: 5, count: 5 } };
/// let round = at_root.round(0).expect("one round");
/// assert_eq!(round.messages, [Message::Receive { peer: 1, into: block }]);
/// # Ok::<(), mpicore::collective::CollectiveError>(())
/// ```
pub fn gather(
    member: Member,
    root: u32,
    send: Option<u64>,
    receive: u64,
) -> Result<Schedule, CollectiveError> {
    Schedule::of(|steps| gather_steps(steps, member, root, (send, receive)))
}

/// Takes the steps of [`gather`].
pub(super) fn gather_steps(
    steps: &mut impl Steps,
    member: Member,
    root: u32,
    (send, receive): (Option<u64>, u64),
) -> Result<(), CollectiveError> {
    member.check_root(root)?;
    member.check_in_place(root, send.is_none())?;
    if let Some(hosts) = member.hosts_of_blocks() {
        return by_hosts(steps, (member, hosts), root, (send, receive));
    }
    steps.name("gather by a binomial tree");
    let tree = Tree::new(member, root);
    match (tree.parent(), send) {
        (Some(parent), Some(count)) => {
            check_total(count, member.size)?;
            pass_up(steps, &tree, parent, count);
        }
        _ => {
            check_total(receive, member.size)?;
            check_total(send.unwrap_or(0), 1)?;
            for child in tree.children() {
                for run in tree.runs(child) {
                    let into = Place::blocks(Buffer::Output, run.rank, run.ranks, receive);
                    steps.receive(tree.rank_at(child.position), into);
                }
            }
            if let Some(count) = send {
                let own = Place::blocks(Buffer::Output, root, 1, receive);
                steps.copy(Place::first(Buffer::Input, count), own);
            }
        }
    }
    Ok(())
}

/// Takes the steps on several hosts, each of which has consecutive ranks.
fn by_hosts(
    steps: &mut impl Steps,
    (member, hosts): (Member, &Hosts),
    root: u32,
    (send, receive): (Option<u64>, u64),
) -> Result<(), CollectiveError> {
    steps.name("gather by hosts");
    let Some(count) = send.filter(|_| member.rank != root) else {
        check_total(receive, member.size)?;
        check_total(send.unwrap_or(0), 1)?;
        for (peer, blocks) in hosts.below_root(root) {
            let blocks = Place::blocks(Buffer::Output, blocks.start, blocks.len() as u32, receive);
            steps.receive(peer, blocks);
        }
        if let Some(count) = send {
            let own = Place::blocks(Buffer::Output, root, 1, receive);
            steps.copy(Place::first(Buffer::Input, count), own);
        }
        return Ok(());
    };
    check_total(count, member.size)?;
    let (input, (above, blocks)) =
        (Place::first(Buffer::Input, count), hosts.toward(root, member.rank));
    if blocks.len() == 1 {
        steps.send(above, input);
        return Ok(());
    }
    let all = blocks.len() as u64 * count;
    steps.needs(Scratch::Elements { count: all, of: Buffer::Input });
    for (peer, block) in blocks.zip(0..).skip(1) {
        steps.receive(peer, Place::blocks(Buffer::Scratch, block, 1, count));
    }
    steps.copy(input, Place::first(Buffer::Scratch, count));
    steps.end_round();
    steps.send(above, Place::first(Buffer::Scratch, all));
    Ok(())
}

/// Adds the steps of a rank that is not the root.
fn pass_up(steps: &mut impl Steps, tree: &Tree, parent: u32, count: u64) {
    let (own, input) = (tree.own(), Place::first(Buffer::Input, count));
    if own.ranks == 1 {
        steps.send(tree.rank_at(parent), input);
        return;
    }
    steps.needs(Scratch::Elements { count: u64::from(own.ranks) * count, of: Buffer::Input });
    for child in tree.children() {
        steps.receive(tree.rank_at(child.position), in_scratch(own, child, count));
    }
    steps.copy(input, Place::first(Buffer::Scratch, count));
    steps.end_round();
    if parent == 0 {
        // The root stores the blocks in the order of ranks, so it receives each run by itself.
        for run in tree.runs(own) {
            let from = Place::blocks(Buffer::Scratch, run.offset, run.ranks, count);
            steps.send(tree.rank_at(parent), from);
        }
    } else {
        let all = Place::blocks(Buffer::Scratch, 0, own.ranks, count);
        steps.send(tree.rank_at(parent), all);
    }
}

/// Returns the place of the blocks of a child's branch in the scratch area of its parent.
pub(super) fn in_scratch(own: Branch, child: Branch, count: u64) -> Place {
    Place::blocks(Buffer::Scratch, child.position - own.position, child.ranks, count)
}

/// Collects one block of each rank at the root, each at its own place: MPI_Gatherv (MPI-4.1 section 6.5). Each rank
/// sends to the root, which receives all blocks at once.
///
/// `send` is as for [`gather`]; `receive` describes the blocks of the output, and is used only at the root. If blocks
/// have elements in common, these get the data of any of them.
///
/// # Errors
/// [`CollectiveError::Root`] if the root is no rank, [`CollectiveError::InPlace`] if another rank works in
/// place, [`CollectiveError::Entries`] unless there is one block for each rank, [`CollectiveError::Block`] or
/// [`CollectiveError::Count`] if blocks end beyond `i64::MAX`.
pub fn gatherv(
    member: Member,
    root: u32,
    send: Option<u64>,
    receive: Blocks<'_>,
) -> Result<Schedule, CollectiveError> {
    Schedule::of(|steps| gatherv_steps(steps, member, root, (send, receive)))
}

/// Takes the steps of [`gatherv`].
#[inline]
pub(super) fn gatherv_steps(
    steps: &mut impl Steps,
    member: Member,
    root: u32,
    (send, receive): (Option<u64>, Blocks<'_>),
) -> Result<(), CollectiveError> {
    steps.name("gatherv by messages to the root");
    member.check_root(root)?;
    member.check_in_place(root, send.is_none())?;
    check_total(send.unwrap_or(0), 1)?;
    let input = send.map(|count| Place::first(Buffer::Input, count));
    if member.rank == root {
        receive.check(member.size)?;
        for peer in (0..member.size).filter(|&peer| peer != root) {
            steps.receive(peer, receive.of(Buffer::Output, peer));
        }
        if let Some(input) = input {
            steps.copy(input, receive.of(Buffer::Output, root));
        }
    } else if let Some(input) = input {
        steps.send(root, input);
    }
    Ok(())
}

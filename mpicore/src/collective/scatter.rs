//! Scatters blocks from a root, in an intracommunicator: the reverse of gather.

use super::gather::in_scratch;
use super::hosts::Hosts;
use super::place::check_total;
use super::steps::Steps;
use super::tree::Tree;
use super::{Blocks, Buffer, CollectiveError, Member, Place, Schedule, Scratch};

/// Sends one block of the root's input to each rank, in the order of ranks: MPI_Scatter (MPI-4.1 section 6.6), by a
/// binomial tree. Inner ranks of the tree keep blocks in the scratch area. On several hosts, if each has consecutive
/// ranks, the first rank of each host gets the blocks of its host from the root.
///
/// `send` is the number of elements in each block of the input, and is used only at the root. `receive` is the number
/// of elements of the output. `None` is MPI_IN_PLACE: the root's own block stays in its input, and the schedule names
/// no output.
///
/// # Errors
/// [`CollectiveError::Root`] if the root is no rank, [`CollectiveError::InPlace`] if another rank works in
/// place, [`CollectiveError::Count`] if the blocks together have more than `i64::MAX` elements.
pub fn scatter(
    member: Member,
    root: u32,
    send: u64,
    receive: Option<u64>,
) -> Result<Schedule, CollectiveError> {
    Schedule::of(|steps| scatter_steps(steps, member, root, (send, receive)))
}

/// Takes the steps of [`scatter`].
pub(super) fn scatter_steps(
    steps: &mut impl Steps,
    member: Member,
    root: u32,
    (send, receive): (u64, Option<u64>),
) -> Result<(), CollectiveError> {
    member.check_root(root)?;
    member.check_in_place(root, receive.is_none())?;
    if let Some(hosts) = member.hosts_of_blocks() {
        return by_hosts(steps, (member, hosts), root, (send, receive));
    }
    steps.name("scatter by a binomial tree");
    let tree = Tree::new(member, root);
    match (tree.parent(), receive) {
        (Some(parent), Some(count)) => {
            check_total(count, member.size)?;
            pass_down(steps, &tree, parent, count);
        }
        _ => {
            check_total(send, member.size)?;
            check_total(receive.unwrap_or(0), 1)?;
            for child in tree.children().rev() {
                for run in tree.runs(child) {
                    let from = Place::blocks(Buffer::Input, run.rank, run.ranks, send);
                    steps.send(tree.rank_at(child.position), from);
                }
            }
            if let Some(count) = receive {
                let own = Place::blocks(Buffer::Input, root, 1, send);
                steps.copy(own, Place::first(Buffer::Output, count));
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
    (send, receive): (u64, Option<u64>),
) -> Result<(), CollectiveError> {
    steps.name("scatter by hosts");
    let Some(count) = receive.filter(|_| member.rank != root) else {
        check_total(send, member.size)?;
        check_total(receive.unwrap_or(0), 1)?;
        // Those for other hosts come first.
        for (peer, blocks) in hosts.below_root(root).rev() {
            let blocks = Place::blocks(Buffer::Input, blocks.start, blocks.len() as u32, send);
            steps.send(peer, blocks);
        }
        if let Some(count) = receive {
            let own = Place::blocks(Buffer::Input, root, 1, send);
            steps.copy(own, Place::first(Buffer::Output, count));
        }
        return Ok(());
    };
    check_total(count, member.size)?;
    let (output, (above, blocks)) =
        (Place::first(Buffer::Output, count), hosts.toward(root, member.rank));
    if blocks.len() == 1 {
        steps.receive(above, output);
        return Ok(());
    }
    let all = blocks.len() as u64 * count;
    steps.needs(Scratch::Elements { count: all, of: Buffer::Output });
    steps.receive(above, Place::first(Buffer::Scratch, all));
    steps.end_round();
    for (peer, block) in blocks.zip(0..).skip(1) {
        steps.send(peer, Place::blocks(Buffer::Scratch, block, 1, count));
    }
    steps.copy(Place::first(Buffer::Scratch, count), output);
    Ok(())
}

/// Adds the steps of a rank that is not the root.
fn pass_down(steps: &mut impl Steps, tree: &Tree, parent: u32, count: u64) {
    let (own, output) = (tree.own(), Place::first(Buffer::Output, count));
    if own.ranks == 1 {
        steps.receive(tree.rank_at(parent), output);
        return;
    }
    steps.needs(Scratch::Elements { count: u64::from(own.ranks) * count, of: Buffer::Output });
    if parent == 0 {
        // The root stores the blocks in the order of ranks, so it sends each run by itself.
        for run in tree.runs(own) {
            let into = Place::blocks(Buffer::Scratch, run.offset, run.ranks, count);
            steps.receive(tree.rank_at(parent), into);
        }
    } else {
        let all = Place::blocks(Buffer::Scratch, 0, own.ranks, count);
        steps.receive(tree.rank_at(parent), all);
    }
    steps.end_round();
    for child in tree.children().rev() {
        steps.send(tree.rank_at(child.position), in_scratch(own, child, count));
    }
    steps.copy(Place::first(Buffer::Scratch, count), output);
}

/// Sends one block of the root's input to each rank, each from its own place: MPI_Scatterv (MPI-4.1 section 6.6). The
/// root sends all blocks at once.
///
/// `send` describes the blocks of the input, and is used only at the root; `receive` is as for [`scatter`].
///
/// # Errors
/// [`CollectiveError::Root`] if the root is no rank, [`CollectiveError::InPlace`] if another rank works in
/// place, [`CollectiveError::Entries`] unless there is one block for each rank,
/// [`CollectiveError::Block`] or [`CollectiveError::Count`] if blocks end beyond `i64::MAX`.
pub fn scatterv(
    member: Member,
    root: u32,
    send: Blocks<'_>,
    receive: Option<u64>,
) -> Result<Schedule, CollectiveError> {
    Schedule::of(|steps| scatterv_steps(steps, member, root, (send, receive)))
}

/// Takes the steps of [`scatterv`].
#[inline]
pub(super) fn scatterv_steps(
    steps: &mut impl Steps,
    member: Member,
    root: u32,
    (send, receive): (Blocks<'_>, Option<u64>),
) -> Result<(), CollectiveError> {
    steps.name("scatterv by messages of the root");
    member.check_root(root)?;
    member.check_in_place(root, receive.is_none())?;
    check_total(receive.unwrap_or(0), 1)?;
    let output = receive.map(|count| Place::first(Buffer::Output, count));
    if member.rank == root {
        send.check(member.size)?;
        for peer in (0..member.size).filter(|&peer| peer != root) {
            steps.send(peer, send.of(Buffer::Input, peer));
        }
        if let Some(output) = output {
            steps.copy(send.of(Buffer::Input, root), output);
        }
    } else if let Some(output) = output {
        steps.receive(root, output);
    }
    Ok(())
}

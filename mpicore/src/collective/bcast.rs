//! The broadcast of an intracommunicator.

use super::allgather::ring;
use super::hosts::HostTree;
use super::place::check_total;
use super::steps::Steps;
use super::tree::{Kin, Tree};
use super::{Blocks, Buffer, CollectiveError, Member, Place, Schedule};

/// Copies `count` elements of the root's output to the output of all ranks: MPI_Bcast (MPI-4.1 section 6.4), by a
/// binomial tree; on several hosts by one of hosts, and one on each host. The only buffer is the output. `count` is in
/// elements of the caller's datatype, and may differ between ranks whose datatypes differ.
///
/// # Errors
/// [`CollectiveError::Root`] if the root is no rank, [`CollectiveError::Count`] if `count` is more than
/// `i64::MAX`.
pub fn bcast(member: Member, root: u32, count: u64) -> Result<Schedule, CollectiveError> {
    Schedule::of(|steps| bcast_steps(steps, member, root, count))
}

/// [`bcast`] of long data: the root sends each rank a part, and the parts go around a ring. So no rank sends much more than
/// the data once. All ranks give the same `count`.
///
/// # Errors
/// Those of [`bcast`].
pub fn divided_bcast(member: Member, root: u32, count: u64) -> Result<Schedule, CollectiveError> {
    member.check_root(root)?;
    check_total(count, 1)?;
    let size = u64::from(member.size);
    let begin = |part: u64| part * (count / size) + part.min(count % size);
    let counts: Vec<_> = (0..size).map(|part| begin(part + 1) - begin(part)).collect();
    let displacements: Vec<_> = (0..size).map(|part| begin(part) as i64).collect();
    let parts = Blocks::Listed { counts: &counts, displacements: &displacements };
    Schedule::of(|steps| {
        steps.name("bcast by parts that go around a ring");
        let of = |rank| parts.of(Buffer::Output, rank);
        if member.rank == root {
            let others = (0..member.size).filter(|rank| *rank != root);
            others.for_each(|rank| steps.send(rank, of(rank)));
        } else {
            steps.receive(root, of(member.rank));
        }
        steps.end_round();
        ring(steps, member, None, parts)
    })
}

/// Takes the steps of [`bcast`].
#[inline]
pub(super) fn bcast_steps(
    steps: &mut impl Steps,
    member: Member,
    root: u32,
    count: u64,
) -> Result<(), CollectiveError> {
    member.check_root(root)?;
    check_total(count, 1)?;
    match member.hosts {
        None => {
            steps.name("bcast by a binomial tree");
            down(steps, &Tree::new(member, root), count);
        }
        Some(hosts) => {
            steps.name("bcast by a tree of hosts");
            down(steps, &HostTree::new(hosts, member.rank, root), count);
        }
    }
    Ok(())
}

/// Passes `count` elements of the output down a tree.
#[inline]
pub(super) fn down(steps: &mut impl Steps, tree: &impl Kin, count: u64) {
    let all = Place::first(Buffer::Output, count);
    if let Some(parent) = tree.above() {
        steps.receive(parent, all);
        steps.end_round();
    }
    // The child with the most ranks below it comes first, or with the hosts.
    tree.below().rev().for_each(|child| steps.send(child, all));
}

//! The barrier of an intracommunicator.

use super::hosts::{Among, Hosts};
use super::steps::Steps;
use super::{Member, Place, Schedule, doublings};

/// Largest communicator whose barrier is a dissemination. That is fastest when every rank has a processor. When ranks
/// share processors, each round may cost every rank a process switch; a barrier by groups costs two per rank, for any
/// number of ranks.
const MOST_DISSEMINATING: u32 = 4;
/// Number of ranks in a group of a barrier by groups.
const GROUP: u32 = 16;

/// Waits until every rank has called it: MPI_Barrier (MPI-4.1 section 6.3). A small communicator uses dissemination: in
/// round `k` a rank signals the rank `2^k` after it and waits for the rank `2^k` before it. In a larger one, ranks form
/// groups: the first rank of each group collects signals from the others, the first ranks do the same among themselves,
/// up to rank 0, and the release takes the same way back. On several hosts each host collects the signals of its ranks,
/// the first ranks of all hosts use dissemination, and release the others.
pub fn barrier(member: Member) -> Schedule {
    let schedule = Schedule::of(|steps| {
        barrier_steps(steps, member);
        Ok(())
    });
    schedule.expect("a barrier has no arguments")
}

/// Takes the steps of [`barrier`].
#[inline(always)]
pub(crate) fn barrier_steps(steps: &mut impl Steps, member: Member) {
    if let Some(hosts) = member.hosts {
        return by_hosts(steps, member, hosts);
    }
    if member.size > MOST_DISSEMINATING {
        return by_groups(steps, member);
    }
    steps.name("barrier by dissemination");
    disseminate(steps, member);
}

#[inline(always)]
fn disseminate(steps: &mut impl Steps, member: Member) {
    for distance in doublings(member.size) {
        steps.send(member.ahead(distance), Place::NOTHING);
        steps.receive(member.behind(distance), Place::NOTHING);
        steps.end_round();
    }
}

/// [`barrier_steps`] in a larger communicator. Not inlined, so that those of a small one stay short.
#[inline(never)]
fn by_groups(steps: &mut impl Steps, member: Member) {
    steps.name("barrier by groups");
    let distance = collect(steps, member);
    release(steps, member, distance);
}

/// [`barrier_steps`] on several hosts.
#[inline(never)]
fn by_hosts(steps: &mut impl Steps, member: Member, hosts: &Hosts) {
    steps.name("barrier by hosts");
    let (inside, rank_at) = hosts.inside(member.rank);
    let distance = collect(&mut Among { steps, rank_at }, inside);
    if inside.rank == 0 {
        let rank_at = |host| hosts.first_of(host);
        disseminate(&mut Among { steps, rank_at }, hosts.between());
    }
    release(&mut Among { steps, rank_at }, inside, distance);
}

/// Iterates over the ranks that signal this one at a distance.
fn followers(member: Member, distance: u64) -> impl Iterator<Item = u32> {
    let (rank, size) = (u64::from(member.rank), u64::from(member.size));
    let all = (1..u64::from(GROUP)).map(move |number| rank + number * distance);
    all.take_while(move |&follower| follower < size).map(|follower| follower as u32)
}

/// Returns the rank that this one signals, if its followers have lower distances than `distance`; rank 0 signals none.
fn leader(member: Member, distance: u64) -> Option<u32> {
    let rank = u64::from(member.rank);
    (rank > 0).then(|| (rank - rank % (distance * u64::from(GROUP))) as u32)
}

/// Collects the signals of all ranks at rank 0. Returns the distance below which this rank has followers. The last round
/// has not ended.
fn collect(steps: &mut impl Steps, member: Member) -> u64 {
    let (rank, size, group) = (u64::from(member.rank), u64::from(member.size), u64::from(GROUP));
    let mut distance = 1;
    while distance < size && rank % (distance * group) == 0 {
        followers(member, distance).for_each(|follower| steps.receive(follower, Place::NOTHING));
        steps.end_round();
        distance *= group;
    }
    if let Some(leader) = leader(member, distance) {
        steps.send(leader, Place::NOTHING);
    }
    distance
}

/// Releases all ranks, after rank 0.
fn release(steps: &mut impl Steps, member: Member, mut distance: u64) {
    if let Some(leader) = leader(member, distance) {
        steps.receive(leader, Place::NOTHING);
        steps.end_round();
    }
    while distance > 1 {
        distance /= u64::from(GROUP);
        followers(member, distance).for_each(|follower| steps.send(follower, Place::NOTHING));
        steps.end_round();
    }
}

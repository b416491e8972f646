//! The barrier of an intracommunicator.

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
/// up to rank 0, and the release takes the same way back.
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
    if member.size > MOST_DISSEMINATING {
        return by_groups(steps, member);
    }
    steps.name("barrier by dissemination");
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
    let rank = u64::from(member.rank);
    let size = u64::from(member.size);
    let followers = |distance: u64| {
        let all = (1..u64::from(GROUP)).map(move |number| rank + number * distance);
        all.take_while(move |&follower| follower < size).map(|follower| follower as u32)
    };
    let mut distance = 1;
    while distance < size && rank % (distance * u64::from(GROUP)) == 0 {
        followers(distance).for_each(|follower| steps.receive(follower, Place::NOTHING));
        steps.end_round();
        distance *= u64::from(GROUP);
    }
    if rank > 0 {
        let first = (rank - rank % (distance * u64::from(GROUP))) as u32;
        steps.send(first, Place::NOTHING);
        steps.receive(first, Place::NOTHING);
        steps.end_round();
    }
    while distance > 1 {
        distance /= u64::from(GROUP);
        followers(distance).for_each(|follower| steps.send(follower, Place::NOTHING));
        steps.end_round();
    }
}

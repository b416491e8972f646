//! What communicators do when a rank is lost.

use std::sync::Barrier;

use super::*;
use crate::communicator::ranks::run_apart;

/// Runs `body` on all ranks but `lost`, which gives up at any moment. They end together, since a rank that has ended is
/// lost to the others, too.
fn run_without(lost: u32, ranks: usize, body: impl Fn(&Communicator) + Send + Sync + 'static) {
    let end = Barrier::new(ranks - 1);
    run_apart(ranks, move |world| {
        if world.rank() == lost {
            return world.device().give_up();
        }
        body(world);
        end.wait();
    });
}

/// Waits until this rank knows that a rank is lost.
fn notice_loss(world: &Communicator) {
    while world.run_barrier().is_ok() {}
}

#[test]
fn the_survivors_make_a_communicator_of_their_own() {
    for notices in [false, true] {
        run_without(2, 4, move |world| {
            if notices {
                notice_loss(world);
            }
            let survivors = world.group().excl(&[2]).unwrap();
            let ours = world.create_group(&survivors, 7).unwrap();
            let again =
                Communicator::create_from_group(world.process(), &survivors, b"again").unwrap();
            assert_eq!([sum(&ours, 1), sum(&again, 2)], [3, 6]);
        });
    }
}

#[test]
fn every_member_learns_that_another_is_lost() {
    for lost in (0..5).cycle().take(20) {
        run_without(lost, 5, move |world| {
            let group = world.group().clone();
            let by_all = world.create_group(&group, 7).map(drop);
            let by_strangers =
                Communicator::create_from_group(world.process(), &group, b"all").map(drop);
            for outcome in [by_all, by_strangers] {
                assert_eq!(outcome.unwrap_err().lost_rank(), Some(lost));
            }
        });
    }
}

/// A call that fails because a member is lost may leave a message behind. The next calls with the same tag or text do
/// not find it.
#[test]
fn a_call_that_has_failed_leaves_nothing_to_the_next_one() {
    type Make = fn(&Communicator, &Group) -> Result<Communicator, Error>;
    let ways: [Make; 2] = [
        |world, group| world.create_group(group, 7),
        |world, group| Communicator::create_from_group(world.process(), group, b"text"),
    ];
    for make in ways {
        // Rank 1 has sent its message before rank 2 is lost, and rank 0 begins only when it knows of the loss.
        let (lost, end) = (Barrier::new(2), Barrier::new(2));
        run_apart(3, move |world| {
            let device = world.device();
            if world.rank() == 2 {
                lost.wait();
                return device.give_up();
            }
            if world.rank() == 0 {
                let unexpected = "unexpected messages without a receive: 1";
                while !device.dump().unwrap().contains(unexpected) {
                    device.progress().unwrap();
                }
                lost.wait();
                notice_loss(world);
            }
            // In this group it is rank 1 that sends first.
            let all = world.group().incl(&[1, 0, 2]).unwrap();
            assert_eq!(make(world, &all).unwrap_err().lost_rank(), Some(2));
            let both = world.group().incl(&[0, 1]).unwrap();
            make(world, &both).unwrap();
            // Now rank 1 takes the id that rank 0 proposes next.
            let alone = world.group().incl(&[world.rank()]).unwrap();
            let kept = (world.rank() == 1).then(|| make(world, &alone).unwrap());
            let ours = make(world, &both).unwrap();
            assert_eq!(sum(&ours, 1), 2);
            end.wait();
            drop(kept);
        });
    }
}

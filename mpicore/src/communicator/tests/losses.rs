//! What communicators do when a rank is lost.

use std::sync::Barrier;

use super::*;

/// Runs `body` on all ranks but `lost`, which gives up at any moment. They end together, since a rank that has ended is
/// lost to the others, too.
fn run_without(lost: u32, ranks: usize, body: impl Fn(&Communicator) + Send + Sync + 'static) {
    watch(move || {
        let devices = wireup::in_process(ranks, &Options::default()).unwrap();
        let end = Barrier::new(ranks - 1);
        thread::scope(|scope| {
            for mut of_rank in devices {
                let (body, end) = (&body, &end);
                scope.spawn(move || {
                    let process = Arc::new(Process::new(of_rank.remove(0), ()));
                    let world = Communicator::world(process).unwrap();
                    if world.rank() == lost {
                        return world.device().give_up();
                    }
                    body(&world);
                    end.wait();
                });
            }
        });
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

//! Barriers and duplicated communicators, which do not disturb other messages.

use std::sync::atomic::{AtomicUsize, Ordering};

use mpj::{ANY_SOURCE, ANY_TAG, Op};
use transport_lapi::bootstrap::monotonic_nanos;

use crate::job::job;

/// Nobody leaves a barrier before everybody has come, whatever the number of ranks.
#[test]
fn barriers_of_jobs_of_many_sizes() {
    const ROUNDS: usize = 30;
    for ranks in [1, 2, 3, 4, 5, 9, 16, 17, 35] {
        job(ranks, |world| {
            let (mut come, mut left) = (Vec::new(), Vec::new());
            for _ in 0..ROUNDS {
                come.push(monotonic_nanos());
                world.barrier().unwrap();
                left.push(monotonic_nanos());
            }
            // All ranks have one clock, also those on hosts out of namespaces.
            world.all_reduce(&mut come, Op::Max).unwrap();
            world.all_reduce(&mut left, Op::Min).unwrap();
            assert!(come.iter().zip(&left).all(|(come, left)| come <= left), "{come:?} {left:?}");
        });
    }
}

/// A rank that has left a barrier owes the others nothing: they leave it too, even if that rank makes no progress and
/// more messages are on their way than there is room for.
#[test]
fn a_rank_that_has_left_a_barrier_need_not_make_progress() {
    const ROUNDS: usize = 20;
    const BEFORE: usize = 400;
    let passed = AtomicUsize::new(0);
    job(2, move |world| {
        for round in 1..=ROUNDS {
            if world.rank() == 1 {
                world.barrier().unwrap();
                passed.store(round, Ordering::SeqCst);
                for _ in 0..BEFORE {
                    world.recv(&mut [0u8], 0, 1).unwrap();
                }
                continue;
            }
            let sends = world.scope(|scope| {
                for _ in 0..BEFORE {
                    scope.isend(&[7u8], 1, 1).unwrap();
                }
                world.barrier().unwrap();
                // No call of the library, until the other rank has left.
                while passed.load(Ordering::SeqCst) < round {
                    std::thread::yield_now();
                }
                Ok(())
            });
            sends.unwrap();
        }
    });
}

#[test]
fn a_barrier_meets_no_receive_of_the_program() {
    job(4, |world| {
        let me = world.rank();
        let receive = world.irecv(vec![0usize], ANY_SOURCE, ANY_TAG).unwrap();
        for _ in 0..20 {
            world.barrier().unwrap();
            let _copy = world.dup().unwrap();
        }
        world.send(&[me], (me + 1) % 4, 0).unwrap();
        let (value, status) = receive.wait().unwrap();
        assert_eq!((value[0], status.source), ((me + 3) % 4, (me + 3) % 4));
        assert_eq!(world.iprobe(ANY_SOURCE, ANY_TAG).unwrap(), None);
    });
}

/// Copies of copies do not mix their messages, also with wildcards and probes.
#[test]
fn communicators_are_apart() {
    job(2, |world| {
        let first = world.dup().unwrap();
        let second = first.dup().unwrap();
        let third = world.dup().unwrap();
        let all = [world, &first, &second, &third];
        if world.rank() == 0 {
            for (number, communicator) in (0..4_u16).zip(all) {
                communicator.send(&[number], 1, 3).unwrap();
                communicator.send(&[number + 10], 1, 4).unwrap();
            }
            return;
        }
        third.probe(0, 4).unwrap();
        for (number, communicator) in (0..4_u16).zip(all).rev() {
            let mut value = [0_u16];
            communicator.recv(&mut value, ANY_SOURCE, 4).unwrap();
            assert_eq!(value, [number + 10]);
            communicator.recv(&mut value, ANY_SOURCE, ANY_TAG).unwrap();
            assert_eq!(value, [number]);
            assert_eq!(communicator.iprobe(ANY_SOURCE, ANY_TAG).unwrap(), None);
        }
    });
}

/// Many copies are made while messages are under way on the old ones, with barriers on each.
#[test]
fn many_copies() {
    job(3, |world| {
        let (right, left) = ((world.rank() + 1) % 3, (world.rank() + 2) % 3);
        let mut communicators = vec![world.dup().unwrap()];
        for number in 0..25u32 {
            let last = communicators.last().unwrap();
            let receive = last.irecv(vec![0u32], left, ANY_TAG).unwrap();
            let copy = last.dup().unwrap();
            copy.barrier().unwrap();
            last.send(&[number], right, 0).unwrap();
            assert_eq!(receive.wait().unwrap().0, [number]);
            communicators.push(copy);
        }
        for communicator in &communicators {
            assert_eq!((communicator.rank(), communicator.size()), (world.rank(), 3));
            communicator.barrier().unwrap();
        }
    });
}

#[test]
fn a_world_of_one_rank() {
    job(1, |world| {
        world.barrier().unwrap();
        let copy = world.dup().unwrap();
        let receive = copy.irecv(vec![0u8; 3], ANY_SOURCE, ANY_TAG).unwrap();
        copy.send(&[1u8, 2, 3], 0, 0).unwrap();
        assert_eq!(receive.wait().unwrap().0, [1, 2, 3]);
    });
}

#[test]
fn what_a_communicator_tells_of_itself() {
    job(2, |world| {
        let (eager, small) = (mpj::tuning::Protocol::Eager, world.table().protocol(8));
        assert_eq!(small, eager);
        let thresholds: Vec<_> =
            world.thresholds().unwrap().iter().map(|step| step.bytes).collect();
        assert!(thresholds.is_sorted() && thresholds[0] < 512, "{thresholds:?}");
        for from in world.table().steps() {
            assert!(thresholds.contains(&(from - 1)), "{thresholds:?}");
        }
        let before = world.stats().unwrap().received;
        let receive = world.irecv(vec![0u16; 4], 1 - world.rank(), 77).unwrap();
        let dump = world.dump().unwrap();
        assert!(dump.starts_with(&format!("rank {} of 2\n", world.rank())), "{dump}");
        assert!(dump.contains("tag 77, context 0, 8 bytes"), "{dump}");
        world.send(&[1u16; 4], 1 - world.rank(), 77).unwrap();
        receive.wait().unwrap();
        assert_eq!(world.stats().unwrap().received - before, 1);
    });
}

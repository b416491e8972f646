//! Windows: accesses of every kind in every epoch, and what must not be.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

use mpj::local::LocalError;
use mpj::tuning::Options;
use mpj::{
    Bool, Communicator, Datatype, Error, ErrorClass, Exposure, Op, Place, ValueIndex, Window,
};

use crate::job::{job, try_job};

/// Lengths of data that are short messages, and long ones.
const LENGTHS: [usize; 4] = [0, 1, 1000, 30_000];

#[test]
fn fences_move_elements_of_any_type() {
    #[derive(Clone, Copy, Debug, PartialEq, Datatype)]
    #[repr(C)]
    struct Particle {
        charge: i8,
        mass: f64,
    }

    fn pass<T: Datatype + PartialEq + std::fmt::Debug>(
        over: &Communicator,
        make: impl Fn(usize) -> T,
    ) {
        let (rank, ranks) = (over.rank(), over.size());
        let (next, last) = ((rank + 1) % ranks, (rank + ranks - 1) % ranks);
        for len in LENGTHS {
            let mut window = over.allocate_window::<T>(2 * len).unwrap();
            let data = vec![make(rank); len];
            window.fence(|epoch| epoch.put(&data, next, len)).unwrap();
            assert!(window.local().unwrap()[len..].iter().all(|one| *one == make(last)));
            let got = window.fence(|epoch| epoch.get_vec(len, next, len)).unwrap();
            assert!(got == data, "what it has written itself");
        }
    }

    job(3, |world| {
        pass(world, |rank| rank as u16);
        pass(world, |rank| [rank as f32, 0.5]);
        pass(world, |rank| Particle { charge: -1, mass: rank as f64 });
        pass(world, |_| [0_u8; 0]);
    });
}

/// A matrix with ghost columns: views of a matrix here, places with steps there.
#[test]
fn columns_are_written_and_read() {
    job(2, |world| {
        let (other, mut matrix) = (1 - world.rank(), (0..12).collect::<Vec<usize>>());
        let mut window = world.allocate_window::<usize>(12).unwrap();
        window.local().unwrap().copy_from_slice(&matrix);
        window
            .fence(|epoch| {
                epoch.put(&mpj::column(&matrix, 4, 1)?, other, Place::strided(3, 1, 4))?;
                epoch.put(&mpj::block(&matrix, 4, ..2, 2..)?, other, Place::strided(4, 2, 4))
            })
            .unwrap();
        assert_eq!(*window.local().unwrap(), [0, 1, 2, 1, 2, 3, 6, 5, 6, 7, 10, 9]);
        window
            .lock(other, |epoch| {
                let mut column = mpj::column_mut(&mut matrix, 4, 0)?;
                epoch.get(&mut column, other, Place::strided(0, 1, 4))
            })
            .unwrap();
        assert_eq!(matrix[..9], [0, 1, 2, 3, 2, 5, 6, 7, 6]);
        let mut refusal =
            |place| window.lock(other, |epoch| epoch.put(&[1, 2, 3, 4], other, place)).unwrap_err();
        let [overlap, blocks] =
            [Place::strided(0, 2, 1), Place::strided(0, 3, 4)].map(&mut refusal);
        assert!(matches!(overlap, Error::Overlap), "{overlap}");
        assert!(matches!(blocks, Error::Blocks { elements: 4, block: 3 }), "{blocks}");
        world.barrier().unwrap();
    });
}

/// A ring, in which each rank is exposed to its neighbours and accesses them; of two ranks both neighbours are the same.
#[test]
fn neighbours_access_each_other() {
    for ranks in [2, 5] {
        job(ranks, |world| {
            let (rank, ranks) = (world.rank(), world.size());
            let (left, right) = ((rank + ranks - 1) % ranks, (rank + 1) % ranks);
            for len in LENGTHS {
                let mut ghosts = world.allocate_window::<usize>(2 * len).unwrap();
                for round in 0..3 {
                    let data = vec![10 * rank + round; len];
                    ghosts
                        .expose(&[left, right], |exposure| {
                            exposure.access(&[right, left], |epoch| {
                                epoch.scope(|scope| {
                                    scope.put(&data, left, len)?;
                                    scope.put(&data, right, 0)
                                })
                            })
                        })
                        .unwrap();
                    let ghosts = ghosts.local().unwrap();
                    let (of_left, of_right) = ghosts.split_at(len);
                    assert!(of_left.iter().all(|ghost| *ghost == 10 * left + round));
                    assert!(of_right.iter().all(|ghost| *ghost == 10 * right + round));
                }
            }
        });
    }
}

#[test]
fn locks_exclude_and_operations_are_atomic() {
    const ROUNDS: u64 = 20;
    job(4, |world| {
        let mut window = world.allocate_window::<u64>(3).unwrap();
        for _ in 0..ROUNDS {
            window
                .lock_exclusive(3, |epoch| {
                    let before = epoch.get_vec(1, 3, 0)?[0];
                    epoch.put(&[before + 1], 3, 0)
                })
                .unwrap();
            window
                .lock_all(|epoch| {
                    let before = epoch.load(3, 1)?;
                    assert!(epoch.fetch_and_op(1, 3, 1, Op::Sum)? >= before, "it only grows");
                    let mut expected = 0;
                    loop {
                        match epoch.compare_and_swap(expected, expected + 1, 3, 2)? {
                            found if found == expected => return Ok(()),
                            found => expected = found,
                        }
                    }
                })
                .unwrap();
            if world.rank() == 3 {
                window.local().unwrap()[0] += 1;
            }
        }
        world.barrier().unwrap();
        if world.rank() == 3 {
            assert_eq!(*window.local().unwrap(), [5 * ROUNDS, 4 * ROUNDS, 4 * ROUNDS]);
        }
    });
}

#[test]
fn operations_are_those_of_reductions() {
    job(2, |world| {
        let mut nearest = world.allocate_window::<ValueIndex<f64>>(1).unwrap();
        let found = ValueIndex { value: -1.5 - world.rank() as f64, index: world.rank() as i32 };
        nearest.fence(|epoch| epoch.accumulate(&[found][..], 0, 0, Op::MinLoc)).unwrap();
        assert!(world.rank() > 0 || nearest.local().unwrap()[0].index == 1);

        let mut flags = world.allocate_window::<Bool>(2).unwrap();
        let mine = [world.rank() == 0, true].map(Bool::from);
        flags.fence(|epoch| epoch.accumulate(&mine, 1, 0, Op::LogicalXor)).unwrap();
        assert!(world.rank() == 0 || *flags.local().unwrap() == [true, false]);

        let mut sums = world.allocate_window::<[i32; 2]>(20_000).unwrap();
        let (ones, mut before) = (vec![[1, 2]; 20_000], vec![[9; 2]; 20_000]);
        sums.fence(|epoch| epoch.get_accumulate(&ones, &mut before, 0, 0, Op::Sum)).unwrap();
        assert!(before.iter().all(|one| [[0, 0], [1, 2]].contains(one)));
        sums.fence(|epoch| epoch.accumulate(&ones, 0, 0, Op::Product)).unwrap();
        assert!(world.rank() > 0 || sums.local().unwrap().iter().all(|sum| *sum == [2, 16]));

        let mut halves = world.allocate_window::<f32>(1).unwrap();
        let refused = halves.lock(0, |epoch| epoch.accumulate(&[0.5], 0, 0, Op::BitAnd));
        assert_eq!(refused.unwrap_err().class(), ErrorClass::Op);
        halves.lock(1, |epoch| epoch.store(1.5, 1, 0)).unwrap();
        let before = halves.lock(1, |epoch| epoch.swap(1.5, 1, 0)).unwrap();
        assert_eq!(before, 1.5);
    });
}

#[test]
fn threads_share_an_epoch_and_a_counter() {
    const ROUNDS: usize = 30;
    job(3, |world| {
        let (mut window, counter) =
            (world.allocate_window::<usize>(4).unwrap(), world.shared_counter().unwrap());
        let taken = thread::scope(|scope| {
            let taken = scope.spawn(|| (0..ROUNDS).map(|_| counter.next().unwrap()).max());
            window
                .lock_all(|epoch| {
                    thread::scope(|scope| {
                        for thread in 0..3 {
                            let target = (world.rank() + thread) % 3;
                            scope.spawn(move || {
                                for round in 1..=ROUNDS {
                                    epoch.put(&round, target, 1 + world.rank()).unwrap();
                                    epoch.accumulate(&[1], target, 0, Op::Sum).unwrap();
                                    epoch.flush(target).unwrap();
                                    let own = epoch.get_vec(1, target, 1 + world.rank()).unwrap();
                                    assert_eq!(own, [round]);
                                }
                            });
                        }
                    });
                })
                .unwrap();
            taken.join().unwrap()
        });
        world.barrier().unwrap();
        assert_eq!(*window.local().unwrap(), [3 * ROUNDS, ROUNDS, ROUNDS, ROUNDS]);
        let mut highest = taken.unwrap();
        world.all_reduce(&mut highest, Op::Max).unwrap();
        assert_eq!((highest, counter.add(0).unwrap()), (3 * ROUNDS as u64 - 1, 3 * ROUNDS as u64));
        world.barrier().unwrap();
    });
}

/// The ranks of a window are those of its communicator, and one that drops it early keeps serving the others.
#[test]
fn windows_of_parts_end_when_all_ranks_have_dropped_them() {
    job(5, |world| {
        let part = world.split((world.rank() % 2) as u32, -(world.rank() as i32)).unwrap();
        let mut window = part.allocate_window::<usize>(part.rank() + 1).unwrap();
        window.set_name("board");
        assert_eq!((window.len(), window.communicator().size()), (part.rank() + 1, part.size()));
        let to = part.size() - 1;
        window.fence(|epoch| epoch.put(&world.rank(), to, part.rank())).unwrap();
        if part.rank() == to {
            let ranks: Vec<_> = (0..5).rev().filter(|rank| rank % 2 == world.rank() % 2).collect();
            assert_eq!(*window.local().unwrap(), ranks);
            drop(window);
            part.barrier().unwrap();
        } else {
            part.barrier().unwrap();
            let own = window.lock(to, |epoch| epoch.get_vec(1, to, part.rank())).unwrap();
            assert_eq!(own, [world.rank()]);
        }
    });
}

#[test]
fn what_does_not_fit_is_refused_and_the_window_goes_on() {
    fn class<R>(outcome: Result<R, Error>) -> ErrorClass {
        outcome.map(drop).unwrap_err().class()
    }

    job(2, |world| {
        let (other, mut window) = (1 - world.rank(), world.allocate_window::<u8>(4).unwrap());
        for outside in [3, usize::MAX] {
            let put = window.lock(other, |epoch| epoch.put(&[1, 2], other, outside));
            assert_eq!(class(put), ErrorClass::RmaRange);
        }
        for rank in [2, usize::MAX] {
            assert_eq!(class(window.lock(rank, |_| {})), ErrorClass::Rank);
            assert_eq!(class(window.access(&[rank], |_| {})), ErrorClass::Rank);
            assert_eq!(class(window.expose(&[rank], |_| {})), ErrorClass::Rank);
            assert_eq!(class(window.lock_all(|epoch| epoch.load(rank, 0))), ErrorClass::Rank);
        }
        let elsewhere = window.lock(other, |epoch| epoch.load(world.rank(), 0));
        assert_eq!(class(elsewhere), ErrorClass::RmaSync);
        world.barrier().unwrap();
        // An epoch ends on all ranks, whatever the closure returns.
        let refused = window.fence(|epoch| match world.rank() {
            0 => epoch.flush(1),
            _ => epoch.put(&[7], 0, 0),
        });
        assert_eq!(
            refused.map_err(|error| error.class()),
            [Err(ErrorClass::RmaSync), Ok(())][world.rank()]
        );
        window
            .expose(&[other], |exposure: &mut Exposure<'_, u8>| {
                let refused = exposure.access(&[other], |epoch| epoch.put(&[1], world.rank(), 0));
                assert_eq!(class(refused), ErrorClass::RmaSync);
                exposure.access(&[], |_| {})
            })
            .unwrap();
        assert_eq!(window.local().unwrap()[0], [7, 0][world.rank()]);
        // Ranks with other types: all refuse.
        let differs = match world.rank() {
            0 => world.allocate_window::<f32>(1).map(drop),
            _ => world.allocate_window::<u32>(1).map(drop),
        };
        assert!(matches!(differs, Err(Error::WindowElements)), "{differs:?}");
        assert_eq!(class(world.allocate_window::<u64>(usize::MAX)), ErrorClass::NoMem);
        let shared = world.allocate_shared::<std::sync::atomic::AtomicU8>(usize::MAX >> 2);
        assert_eq!(class(shared), ErrorClass::RmaShared);
        world.barrier().unwrap();
    });
}

#[test]
fn after_a_panic_locks_are_given_back_and_other_epochs_break_the_window() {
    fn caught(window: &mut Window<u32>, epoch: impl FnOnce(&mut Window<u32>)) {
        catch_unwind(AssertUnwindSafe(|| epoch(window))).unwrap_err();
    }

    fn fail<R>(text: &str) -> R {
        panic!("{text}");
    }

    job(2, |world| {
        let (rank, mut window) = (world.rank(), world.allocate_window::<u32>(40_000).unwrap());
        let (data, mut got) = (vec![7; 40_000], vec![9; 40_000]);
        if rank == 1 {
            caught(&mut window, |window| {
                window
                    .lock_exclusive(0, |epoch| {
                        epoch.scope(|scope| {
                            scope.put(&data, 0, 0)?;
                            scope.get(&mut got, 0, 0)?;
                            fail::<Result<(), Error>>("with long data under way")
                        })
                    })
                    .unwrap();
            });
            assert!(got.iter().all(|one| *one == 7), "the scope has waited");
        }
        world.barrier().unwrap();
        assert!(rank == 1 || window.local().unwrap().iter().all(|one| *one == 7));
        if rank == 0 {
            caught(&mut window, |window| {
                window.access(&[1], |_| fail::<()>("in an access")).unwrap();
            });
        } else {
            caught(&mut window, |window| {
                window.expose(&[0], |_| fail::<()>("in an exposure")).unwrap();
            });
        }
        // This rank has ended its access; that one has not waited for it.
        assert_eq!(window.lock(rank, |_| {}).is_ok(), rank == 0);
        assert!(rank == 0 || matches!(window.local(), Err(Error::Epoch)));
        world.barrier().unwrap();
    });
}

/// A rank that panics between fences is lost to the others, whose windows are then of no use.
#[test]
fn a_rank_that_panics_ends_fences() {
    let outcome = try_job(&Options::default(), 3, |world| {
        let mut window = world.allocate_window::<u32>(4).unwrap();
        let left = window.fence(|epoch| {
            assert_ne!(world.rank(), 2, "a wall was hit");
            epoch.put(&[1], 1, 0)
        });
        let error = left.unwrap_err();
        assert_eq!(error.class(), ErrorClass::ProcFailed, "{error}");
        assert!(error.to_string().contains("rank 2 is gone"), "{error}");
        let broken = window.local().map(drop).unwrap_err();
        assert_eq!(broken.class(), ErrorClass::RmaSync, "{broken}");
    });
    let Err(LocalError::Panicked { rank: 2, message }) = outcome else { panic!("{outcome:?}") };
    assert!(message.contains("a wall was hit"), "{message}");
}

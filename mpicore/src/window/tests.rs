//! Tests of windows over ranks that are threads of this process.

use std::sync::Mutex as Cells;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use mpjdev::{Request, Source};
use transport_lapi::{ForeignBytes, Unpack};

use super::head::Kind;
use super::*;
use crate::ErrorClass;
use crate::communicator::ranks;
use crate::datatype::Datatype;
use crate::op::{ElementKind, Predefined};

mod conflicts;
mod refusals;

/// Runs `body` on so many ranks.
fn run(ranks: usize, body: impl Fn(&Communicator) + Send + Sync + 'static) {
    ranks::run_apart(ranks, move |world| {
        body(world);
        // A test of what breaks the rules has ended the device.
        let _ = world.device().finish();
    });
}

/// Makes a window of so many bytes, with this unit of displacements.
type Make = fn(&Communicator, usize, usize) -> Window;

/// A window in memory that no other rank has mapped, so that all operations are messages.
fn private(world: &Communicator, size: usize, unit: usize) -> Window {
    Window::make(world, Flavor::Allocate, (Memory::new(size), None), (size, unit)).unwrap()
}

/// A window in memory that all ranks have mapped.
fn mapped(world: &Communicator, size: usize, unit: usize) -> Window {
    let window = Window::allocate(world, size, unit).unwrap();
    assert_eq!(window.0.direct.is_some(), !cfg!(miri));
    window
}

/// Runs `body` with windows of both kinds, also in jobs that compare accesses.
fn run_both(ranks: usize, body: impl Fn(&Communicator, Make) + Clone + Send + Sync + 'static) {
    for make in [private as Make, mapped] {
        let body = body.clone();
        let checked = body.clone();
        run(ranks, move |world| body(world, make));
        ranks::run_checked(ranks, move |world| {
            checked(world, make);
            let _ = world.device().finish();
        });
    }
}

/// Numbers that a get fetches.
#[derive(Clone, Default)]
struct Fetched(Arc<Cells<Vec<u8>>>);

impl Fetched {
    fn of(numbers: usize) -> (Self, Sink) {
        let fetched = Self(Arc::new(Cells::new(vec![0xff; 8 * numbers])));
        let sink = Sink::layout(fetched.clone());
        (fetched, sink)
    }

    fn numbers(&self) -> Vec<u64> {
        let bytes = self.0.lock().unwrap();
        bytes.chunks_exact(8).map(|bytes| u64::from_ne_bytes(bytes.try_into().unwrap())).collect()
    }
}

impl Unpack for Fetched {
    fn size(&self) -> usize {
        self.0.lock().unwrap().len()
    }

    fn unpack(&mut self, offset: usize, from: ForeignBytes<'_>) {
        from.copy_to(&mut self.0.lock().unwrap()[offset..]);
    }
}

fn number() -> Datatype {
    Datatype::predefined(ElementKind::U64)
}

fn source(numbers: &[u64]) -> Source {
    numbers.iter().flat_map(|number| number.to_ne_bytes()).collect::<Vec<_>>().into()
}

/// So many numbers of a rank from a displacement on.
fn at(rank: u32, displacement: i64, count: i64, datatype: &Datatype) -> Target<'_> {
    Target { rank, displacement, count, datatype }
}

/// Returns numbers of this rank's own window.
fn own(window: &Window, count: usize) -> Vec<u64> {
    let (fetched, sink) = Fetched::of(count);
    window.lock(LockKind::Shared, window.rank(), true).unwrap();
    window.get(sink, at(window.rank(), 0, count as i64, &number())).unwrap();
    window.unlock(window.rank()).unwrap();
    fetched.numbers()
}

fn class(outcome: Result<impl Sized, Error>) -> ErrorClass {
    outcome.map(drop).unwrap_err().class()
}

fn wait(window: &Window, request: Request) {
    window.0.communicator.device().iwait(request).unwrap();
}

#[test]
fn fences_separate_operations() {
    run_both(3, |world, make| {
        let window = make(world, 64, 8);
        let (rank, number) = (u64::from(world.rank()), &number());
        window.fence(false, true).unwrap();
        for target in 0..3 {
            let here = at(target, rank as i64, 1, number);
            window.put(source(&[10 * rank + u64::from(target)]), here).unwrap();
            window
                .accumulate(source(&[rank + 1]), Predefined::Sum, at(target, 4, 1, number))
                .unwrap();
        }
        window.fence(true, true).unwrap();
        let (fetched, sink) = Fetched::of(5);
        let next = (world.rank() + 1) % 3;
        window.get(sink, at(next, 0, 5, number)).unwrap();
        window.fence(true, false).unwrap();
        let of_next = u64::from(next);
        assert_eq!(fetched.numbers(), [of_next, 10 + of_next, 20 + of_next, 0, 6]);
        assert_eq!(class(window.put(source(&[1]), at(0, 0, 1, number))), ErrorClass::RmaSync);
        window.free().unwrap();
    });
}

#[test]
fn groups_expose_and_access() {
    run_both(3, |world, make| {
        let (window, number) = (make(world, 64, 8), &number());
        let group = |ranks: &[u32]| Group::of_ranks(ranks.iter().copied()).unwrap();
        for round in 0..5 {
            match world.rank() {
                // Rank 0 is accessed by both others and by itself.
                0 => {
                    window.post(&group(&[0, 1, 2])).unwrap();
                    window.start(&group(&[0])).unwrap();
                    window.put(source(&[round]), at(0, 0, 1, number)).unwrap();
                    window.complete().unwrap();
                    if round % 2 == 0 {
                        window.wait().unwrap();
                    } else {
                        while !window.test().unwrap() {}
                    }
                    assert_eq!(own(&window, 3), [round, 10 + round, 20 + round]);
                }
                rank => {
                    window.start(&group(&[0])).unwrap();
                    let put = source(&[10 * u64::from(rank) + round]);
                    window.put(put, at(0, rank.into(), 1, number)).unwrap();
                    assert_eq!(
                        class(window.put(source(&[1]), at(1, 0, 1, number))),
                        ErrorClass::RmaSync
                    );
                    window.complete().unwrap();
                }
            }
        }
        // Nobody is a group, too.
        window.post(&Group::empty()).unwrap();
        window.start(&Group::empty()).unwrap();
        window.complete().unwrap();
        assert!(window.test().unwrap());
        assert_eq!(class(window.wait()), ErrorClass::RmaSync);
        window.free().unwrap();
    });
}

/// Under an exclusive lock, a number is read and written without losses; so it is by the accumulate family without one.
#[test]
fn locks_exclude_and_accumulates_are_atomic() {
    const ROUNDS: u64 = 20;
    run_both(4, |world, make| {
        let (window, number) = (make(world, 64, 8), &number());
        let counter = |place| at(3, place, 1, number);
        let (mut seen, device) = (Vec::new(), world.device());
        for _ in 0..ROUNDS {
            window.lock(LockKind::Exclusive, 3, true).unwrap();
            let (fetched, sink) = Fetched::of(1);
            window.get(sink, counter(0)).unwrap();
            window.flush(Some(3)).unwrap();
            window.put(source(&[fetched.numbers()[0] + 1]), counter(0)).unwrap();
            window.unlock(3).unwrap();

            window.lock_all(true).unwrap();
            let (fetched, sink) = Fetched::of(1);
            window.get_accumulate(source(&[1]), sink, Predefined::Sum, counter(1)).unwrap();
            window.flush_local(Some(3)).unwrap();
            seen.push(fetched.numbers()[0]);
            // An attempt succeeds as soon as nobody comes between.
            let mut expected = 0;
            loop {
                let (found, sink) = Fetched::of(1);
                let (from, compare) = (source(&[expected + 1]), source(&[expected]));
                window.compare_and_swap(from, compare, sink, counter(2)).unwrap();
                window.flush(None).unwrap();
                match found.numbers()[0] {
                    found if found == expected => break,
                    found => expected = found,
                }
            }
            window.unlock_all().unwrap();
        }
        assert!(seen.is_sorted(), "a counter that only grows");
        world.run_barrier().unwrap();
        if world.rank() == 3 {
            assert_eq!(own(&window, 3), [4 * ROUNDS; 3]);
        }
        assert!(device.is_idle(window.0.waits()).unwrap());
        window.free().unwrap();
    });
}

/// Of short data and of long ones, which are messages of their own.
#[test]
fn requests_end_when_results_are_there() {
    run_both(2, |world, make| {
        let (window, number) = (make(world, 80 << 10, 8), &number());
        let other = 1 - world.rank();
        window.lock_all(true).unwrap();
        for count in [1, 1000, 10_000] {
            let numbers: Vec<u64> = (0..count).collect();
            let there = at(other, 0, count as i64, number);
            wait(&window, window.rput(source(&numbers), there).unwrap());
            let sum = Predefined::Sum;
            wait(&window, window.raccumulate(source(&numbers), sum, there).unwrap());
            let (before, sink) = Fetched::of(numbers.len());
            let request = window.rget_accumulate(source(&numbers), sink, sum, there);
            wait(&window, request.unwrap());
            assert!(before.numbers().into_iter().eq((0..count).map(|number| 2 * number)));
            let (after, sink) = Fetched::of(numbers.len());
            wait(&window, window.rget(sink, there).unwrap());
            assert!(after.numbers().into_iter().eq((0..count).map(|number| 3 * number)));
        }
        // One without elements is complete.
        let (_, nothing) = Fetched::of(0);
        wait(&window, window.rget(nothing, at(other, 0, 0, number)).unwrap());
        window.unlock_all().unwrap();
        let (_, sink) = Fetched::of(1);
        assert_eq!(class(window.rget(sink, at(other, 0, 1, number))), ErrorClass::RmaSync);
        window.free().unwrap();
    });
}

/// Nothing overtakes long data: what is behind them finds them there.
#[test]
fn long_data_keep_their_place_in_the_order() {
    const COUNT: u64 = 20_000;
    run_both(2, |world, make| {
        let (window, number) = (make(world, 8 * COUNT as usize, 8), &number());
        let (first, whole) = (at(1, 0, 1, number), at(1, 0, COUNT as i64, number));
        for round in 1..=20 {
            if world.rank() == 0 {
                window.lock(LockKind::Exclusive, 1, true).unwrap();
                window.put(source(&vec![round; COUNT as usize]), whole).unwrap();
                window.accumulate(source(&[5]), Predefined::Sum, first).unwrap();
                window.flush_local(Some(1)).unwrap();
                let (fetched, sink) = Fetched::of(COUNT as usize);
                window.get(sink, whole).unwrap();
                window.unlock(1).unwrap();
                let mut due = vec![round; COUNT as usize];
                due[0] += 5;
                assert!(fetched.numbers() == due);
            }
            world.run_barrier().unwrap();
            if world.rank() == 1 {
                assert_eq!(own(&window, 2), [round + 5, round]);
            }
            world.run_barrier().unwrap();
        }
        window.free().unwrap();
    });
}

/// Several threads of each rank flush and fetch at the same time. What a flush has waited for is there.
#[test]
fn threads_share_a_window() {
    const ROUNDS: u64 = 30;
    run_both(3, |world, make| {
        let (window, number) = (make(world, 64, 8), number());
        window.lock_all(true).unwrap();
        thread::scope(|scope| {
            for thread in 0..3_i64 {
                let (window, number) = (&window, &number);
                scope.spawn(move || {
                    let target = (window.rank() + thread as u32) % 3;
                    // The number of this rank and thread alone, and the one that all add to.
                    let own = at(target, 1 + i64::from(window.rank()), 1, number);
                    for round in 1..=ROUNDS {
                        window.put(source(&[round]), own).unwrap();
                        window
                            .accumulate(source(&[1]), Predefined::Sum, at(target, 0, 1, number))
                            .unwrap();
                        window.flush(Some(target)).unwrap();
                        let (fetched, sink) = Fetched::of(1);
                        let request = window.rget(sink, own).unwrap();
                        wait(window, request);
                        assert_eq!(fetched.numbers(), [round]);
                    }
                });
            }
        });
        window.unlock_all().unwrap();
        world.run_barrier().unwrap();
        assert_eq!(own(&window, 4), [3 * ROUNDS, ROUNDS, ROUNDS, ROUNDS]);
        window.free().unwrap();
    });
}

/// A lock that needs one word alone is an epoch like others for every call of every thread.
#[test]
fn a_quick_lock_is_an_epoch_for_all_calls() {
    run_both(2, |world, make| {
        let (window, number) = (make(world, 64, 8), number());
        // The first lock asks the epochs, and the next ones do not.
        for round in 0..20 {
            window.lock(LockKind::Shared, 1, true).unwrap();
            window.put(source(&[round]), at(1, i64::from(window.rank()), 1, &number)).unwrap();
            match round % 5 {
                0 => [2, 1 << 30 | 1, u32::MAX].into_iter().for_each(|rank| {
                    assert_eq!(class(window.unlock(rank)), ErrorClass::Rank);
                    assert_eq!(class(window.lock(LockKind::Shared, rank, true)), ErrorClass::Rank);
                }),
                1 => {
                    let again = window.lock(LockKind::Shared, 1, true);
                    assert_eq!(class(again), ErrorClass::RmaSync);
                    assert_eq!(class(window.lock_all(true)), ErrorClass::RmaSync);
                }
                2 => assert_eq!(class(window.unlock(0)), ErrorClass::RmaSync),
                3 => thread::scope(|scope| {
                    let other = || {
                        window.lock(LockKind::Shared, 0, true).unwrap();
                        window.put(source(&[7]), at(0, 2, 1, &number)).unwrap();
                        window.flush(Some(1)).unwrap();
                        window.unlock(0).unwrap();
                    };
                    scope.spawn(other);
                }),
                _ => {}
            }
            window.flush(Some(1)).unwrap();
            window.unlock(1).unwrap();
            assert_eq!(class(window.unlock(1)), ErrorClass::RmaSync);
        }
        world.run_barrier().unwrap();
        let expected = if window.rank() == 1 { [19, 19, 0] } else { [0, 0, 7] };
        assert_eq!(own(&window, 3), expected);
        window.free().unwrap();
    });
}

/// What is written to a byte twice is not defined. It can be read twice.
#[test]
fn bytes_are_written_once() {
    run_both(2, |world, make| {
        let (window, number) = (make(world, 64, 8), &number());
        let twice = Datatype::indexed_block(1, &[2, 2], number).unwrap();
        window.lock_all(true).unwrap();
        assert_eq!(class(window.put(source(&[1, 2]), at(0, 0, 1, &twice))), ErrorClass::Type);
        let (fetched, sink) = Fetched::of(2);
        window.get(sink, at(0, 0, 1, &twice)).unwrap();
        window.unlock_all().unwrap();
        assert_eq!(fetched.numbers(), [0, 0]);
        window.free().unwrap();
    });
}

/// Long data of both ranks' operations with the same number, in both directions at once.
#[test]
fn long_data_of_both_directions_are_not_mixed_up() {
    const COUNT: usize = 5_000;
    run_both(2, |world, make| {
        let (window, number) = (make(world, 16 * COUNT, 8), &number());
        for round in 1..=20 {
            let whole = |displacement| at(1 - world.rank(), displacement, COUNT as i64, number);
            window.fence(false, true).unwrap();
            let (fetched, sink) = Fetched::of(COUNT);
            if world.rank() == 0 {
                window.put(source(&vec![round; COUNT]), whole(0)).unwrap();
            } else {
                // The half that nobody writes.
                window.get(sink, whole(COUNT as i64)).unwrap();
            }
            window.fence(true, false).unwrap();
            if world.rank() == 1 {
                assert_eq!(fetched.numbers(), vec![0; COUNT], "round {round}");
                assert_eq!(own(&window, COUNT), vec![round; COUNT], "round {round}");
            }
        }
        window.free().unwrap();
    });
}

/// Ranks that do not order their accesses get one of the values for each number, also of long data, and all come to an end.
#[test]
fn unordered_long_data_are_apart_from_other_operations() {
    const COUNT: usize = 5_000;
    run_both(3, |world, make| {
        let (window, number) = (make(world, 8 * COUNT, 8), &number());
        let whole = at(2, 0, COUNT as i64, number);
        window.lock_all(true).unwrap();
        for round in 1..=20 {
            // Numbers that differ in one byte only.
            let value = 10 * round + u64::from(world.rank());
            let (all, sink) = Fetched::of(COUNT);
            let (some, short) = Fetched::of(9);
            if round % 3 == u64::from(world.rank()) {
                window.get(sink, whole).unwrap();
            } else {
                window.put(source(&vec![value; COUNT]), whole).unwrap();
            }
            window.put(source(&[value]), at(2, 7, 1, number)).unwrap();
            window.get(short, at(2, 3, 9, number)).unwrap();
            window.flush(Some(2)).unwrap();
            let known = |number: &u64| *number == u64::MAX || number % 10 < 3 && *number < 203;
            assert!(all.numbers().iter().all(known), "round {round}");
            assert!(some.numbers().iter().all(known), "round {round}");
        }
        window.unlock_all().unwrap();
        window.free().unwrap();
    });
}

/// The lock protects long data until they have been read.
#[test]
fn a_lock_is_held_until_long_data_are_read() {
    const COUNT: usize = 20_000;
    run_both(3, |world, make| {
        let (window, number) = (make(world, 8 * COUNT, 8), &number());
        let whole = at(2, 0, COUNT as i64, number);
        for round in 1..=20 {
            let (fetched, sink) = Fetched::of(COUNT);
            if world.rank() < 2 {
                window.lock(LockKind::Exclusive, 2, true).unwrap();
                match world.rank() {
                    0 => window.put(source(&vec![round; COUNT]), whole).unwrap(),
                    _ => window.get(sink, whole).unwrap(),
                }
                window.unlock(2).unwrap();
            }
            world.run_barrier().unwrap();
            let numbers = fetched.numbers();
            if world.rank() == 1 {
                assert!(numbers.iter().all(|number| *number == numbers[0]), "round {round}");
                assert!([round - 1, round].contains(&numbers[0]));
            }
        }
        window.free().unwrap();
    });
}

/// In mapped memory, a target that makes no call is not needed.
#[test]
#[cfg_attr(miri, ignore = "no memory is mapped")]
fn a_target_may_compute() {
    run(2, |world| {
        let (window, number) = (mapped(world, 64, 8), &number());
        static DONE: AtomicBool = AtomicBool::new(false);
        if world.rank() == 1 {
            while !DONE.load(Ordering::Acquire) {
                std::hint::spin_loop();
            }
            assert_eq!(own(&window, 3), [7, 6, 1]);
        } else {
            window.lock(LockKind::Exclusive, 1, true).unwrap();
            window.put(source(&[7]), at(1, 0, 1, number)).unwrap();
            window.accumulate(source(&[6]), Predefined::Sum, at(1, 1, 1, number)).unwrap();
            let (found, sink) = Fetched::of(1);
            let place = at(1, 2, 1, number);
            window.compare_and_swap(source(&[1]), source(&[0]), sink, place).unwrap();
            window.unlock(1).unwrap();
            assert_eq!(found.numbers(), [0]);
            DONE.store(true, Ordering::Release);
        }
        window.free().unwrap();
    });
}

/// Elements of mixed kinds are replaced as a whole: nobody sees a part of one.
#[test]
fn mixed_elements_are_replaced_whole() {
    run_both(3, |world, make| {
        const COUNT: usize = 8_000;
        let parts = [Datatype::predefined(ElementKind::U8), Datatype::predefined(ElementKind::I32)];
        let packed = Datatype::create_struct(&[1, 1], &[0, 1], &parts).unwrap();
        let packed = packed.resized(0, 5).unwrap();
        let (window, whole) = (make(world, 5 * COUNT, 1), at(2, 0, COUNT as i64, &packed));
        window.lock_all(true).unwrap();
        for round in 0..10 {
            let byte = (10 * world.rank() + round) as u8;
            let from = Source::from(vec![byte; 5 * COUNT]);
            let fetched = Fetched(Arc::new(Cells::new(vec![0; 5 * COUNT])));
            let sink = Sink::layout(fetched.clone());
            window.get_accumulate(from, sink, Predefined::Replace, whole).unwrap();
            window.flush(Some(2)).unwrap();
            let bytes = fetched.0.lock().unwrap();
            assert!(bytes.chunks_exact(5).all(|bytes| bytes[1..].iter().all(|b| *b == bytes[1])));
        }
        window.unlock_all().unwrap();
        window.free().unwrap();
    });
}

/// A rank without a lock that others need not ask for: no rank waits, and operations are still complete at the end.
#[test]
fn locks_without_checks_ask_nobody() {
    run_both(2, |world, make| {
        let (window, number) = (make(world, 64, 8), &number());
        let rank = u64::from(world.rank());
        window.lock(LockKind::Exclusive, 0, false).unwrap();
        window.put(source(&[rank + 1]), at(0, rank as i64, 1, number)).unwrap();
        window.unlock(0).unwrap();
        window.lock_all(false).unwrap();
        window.put(source(&[rank + 5]), at(0, 2 + rank as i64, 1, number)).unwrap();
        window.sync().unwrap();
        window.unlock_all().unwrap();
        world.run_barrier().unwrap();
        if rank == 0 {
            assert_eq!(own(&window, 4), [1, 2, 5, 6]);
        }
        window.free().unwrap();
    });
}

//! Collective calls on buffers that are not slices, on buffers that do not match each other, and on ranks that give up
//! while the program's function works on the buffers. Every job runs under a watchdog.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use mpj::tuning::Options;
use mpj::{Datatype, Error, ErrorClass, Op, Request, UserOp, World, collective, column_mut};

use crate::job::{job, try_job};

/// A structure with padding.
#[derive(Debug, Clone, Copy, PartialEq, Datatype)]
#[repr(C)]
struct Padded {
    small: u8,
    large: u32,
}

/// Long reductions divide their operands in the same places, whether or not these are contiguous.
#[test]
fn ranks_reduce_parts_of_matrices_with_slices() {
    // Three of five columns, and one of two; more than 64 KiB, less, and numbers of rows that are no multiple of the
    // ranks.
    for (ranks, rows) in [(2, 2_733), (3, 2_731), (4, 2_733), (3, 1_001)] {
        job(ranks, move |world| {
            let me = world.rank() as f64;
            let given = |index: usize| me * 10.0 + index as f64;
            let sum = |index: usize| {
                let ranks = world.size() as f64;
                ranks * (ranks - 1.0) / 2.0 * 10.0 + ranks * index as f64
            };
            let sums: Vec<f64> = (0..3 * rows).map(sum).collect();
            let mut matrix = vec![-1.0; 5 * rows];
            for index in 0..3 * rows {
                matrix[index / 3 * 5 + 1 + index % 3] = given(index);
            }
            let mut slice: Vec<f64> = (0..3 * rows).map(given).collect();
            if me == 0.0 {
                let mut part = mpj::block_mut(&mut matrix, 5, .., 1..4).unwrap();
                world.all_reduce(&mut part, Op::Sum).unwrap();
                for (row, sums) in matrix.chunks(5).zip(sums.chunks(3)) {
                    assert_eq!((row[0], &row[1..4], row[4]), (-1.0, sums, -1.0));
                }
            } else {
                world.all_reduce(&mut slice[..], Op::Sum).unwrap();
                assert_eq!(slice, sums);
            }

            let mut spread = vec![-2.0; 6 * rows];
            (0..3 * rows).for_each(|index| spread[2 * index] = given(index));
            let mut slice: Vec<f64> = (0..3 * rows).map(given).collect();
            if me == 1.0 {
                world.all_reduce(&mut column_mut(&mut spread, 2, 0).unwrap(), Op::Sum).unwrap();
                let expected = sums.iter().flat_map(|sum| [*sum, -2.0]);
                assert!(spread.iter().copied().eq(expected));
            } else {
                world.all_reduce(&mut slice[..], Op::Sum).unwrap();
                assert_eq!(slice, sums);
            }
        });
    }
}

#[test]
fn reductions_leave_what_lies_between_the_elements() {
    job(3, |world| {
        let mine = world.rank() as u32 + 2;
        let mut matrix = [mine, 70, 71, mine + 1, 72, 73];
        let mut column = column_mut(&mut matrix, 3, 0).unwrap();
        world.all_reduce(&mut column, Op::Product).unwrap();
        assert_eq!(matrix, [24, 70, 71, 60, 72, 73]);

        let mut matrix = [80, mine, 81, mine + 1];
        let least = UserOp::ordered(|a: &u32, b: &u32| *a.min(b));
        world.all_reduce(&mut column_mut(&mut matrix, 2, 1).unwrap(), &least).unwrap();
        assert_eq!(matrix, [80, 2, 81, 3]);

        let mut backwards = [mine, 90, mine + 1];
        let mut ends = mpj::StridedMut::new(&mut backwards, 2, -2, 2).unwrap();
        world.scan(&mut ends, Op::Sum).unwrap();
        let sums = [[2, 90, 3], [5, 90, 7], [9, 90, 12]];
        assert_eq!(backwards, sums[world.rank()]);
    });
}

#[test]
fn reductions_combine_all_elements_of_blocks_and_of_structures() {
    job(2, |world| {
        let mine = world.rank() as u32;
        let mut matrix = [mine, 1, 60, 61, mine, 3, 62, 63];
        let mut left = mpj::block_mut(&mut matrix, 4, .., ..2).unwrap();
        let sum = UserOp::new(|a: &u32, b: &u32| a + b);
        world.all_reduce(&mut left, &sum).unwrap();
        assert_eq!(matrix, [1, 2, 60, 61, 1, 6, 62, 63]);

        let of = |small| Padded { small, large: 10 * u32::from(small) };
        let mut rows = [of(world.rank() as u8 + 1), of(50), of(world.rank() as u8 + 3), of(51)];
        let both = UserOp::new(|a: &Padded, b: &Padded| Padded {
            small: a.small + b.small,
            large: a.large * b.large,
        });
        world.all_reduce(&mut column_mut(&mut rows, 2, 0).unwrap(), &both).unwrap();
        let combined = |small, large| Padded { small, large };
        assert_eq!(rows, [combined(3, 200), of(50), combined(7, 1200), of(51)]);
    });
}

#[test]
fn an_exchange_leaves_the_padding_and_what_lies_between_the_parts() {
    job(2, |world| {
        let of = |small| Padded { small, large: 10 * u32::from(small) };
        let mine = world.rank() as u8;
        let mut kept = world
            .persistent(collective::all_to_allw_owned(
                vec![of(0); 4],
                |rows| (0..2).map(|column| mpj::column(rows, 2, column)).collect(),
                vec![of(9); 6],
                |rows| mpj::split_columns_mut(rows, 3, [1, 1]),
            ))
            .unwrap();
        for step in [0, 100] {
            let numbers = [0, 1, 2, 3].map(|index| of(step + 10 * mine + index));
            kept.data_mut().unwrap().copy_from_slice(&numbers);
            kept.start().unwrap();
            kept.wait().unwrap();
            let row = |first| [of(first), of(first + 10), of(9)];
            let expected = [row(step + mine), row(step + mine + 2)];
            assert_eq!(kept.buffer().unwrap(), expected.as_flattened());
        }
    });
}

#[test]
fn own_parts_of_different_lengths_are_refused_before_anything_is_sent() {
    job(2, |world| {
        let count = |outcome: Result<(), Error>| {
            assert_eq!(outcome.unwrap_err().class(), ErrorClass::Count)
        };
        let refused = world.all_gather(&[1, 2, 3], &mut [0; 4]);
        let text = refused.as_ref().unwrap_err().to_string();
        assert!(text.contains("12 bytes") && text.contains("8 bytes"), "{text}");
        count(refused);
        count(world.all_to_all(&[1, 2, 3, 4], &mut [0; 2]));
        if world.rank() == 0 {
            count(world.gather(&[1, 2, 3], &mut [0; 2], 0));
            count(world.scatter(&[1, 2, 3, 4], &mut [0; 1], 0));
        }
        // The refused calls have not counted: the ranks match in the next call.
        let mut all = [0; 2];
        world.all_gather(&[world.rank()], &mut all).unwrap();
        assert_eq!(all, [0, 1]);
    });
    job(1, |world| {
        let outcome = world.all_gather(&[1, 2, 3], &mut [0; 2]);
        assert_eq!(outcome.unwrap_err().class(), ErrorClass::Count);
    });
}

#[test]
fn blocks_that_overlap_are_refused_where_several_are_received_at_once() {
    job(3, |world| {
        let blocks = mpj::Partition::at([(1, 2), (0, 2), (3, 0)]);
        let arg = |outcome: Result<(), Error>| {
            let error = outcome.unwrap_err();
            assert_eq!(error.class(), ErrorClass::Arg);
            assert!(error.to_string().contains("rank 1 and rank 0 overlap"), "{error}");
        };
        arg(world.all_gatherv(&[7, 8], &mut [0; 3], &blocks));
        if world.rank() == 0 {
            arg(world.gatherv(&[7, 8], &mut [0; 3], &blocks, 0));
        }
        // Blocks that are only read may overlap.
        let mut mine = vec![0; [2, 2, 0][world.rank()]];
        world.scatterv(&[7, 8, 9], &blocks, &mut mine, 0).unwrap();
        assert_eq!(mine, [&[8, 9][..], &[7, 8], &[]][world.rank()]);
    });
}

/// State that a function of the program and the program itself share.
#[derive(Default)]
struct Watch {
    is_inside: AtomicBool,
    /// Whether the program has its buffers back.
    are_back: AtomicBool,
    /// Whether it had them back while the function worked on them.
    came_early: AtomicBool,
}

impl Watch {
    /// Makes a sum that takes a while, and checks that nobody else uses its operands meanwhile.
    fn sum(self: &Arc<Self>) -> UserOp<u32> {
        let watch = self.clone();
        UserOp::new(move |a: &u32, b: &u32| {
            watch.is_inside.store(true, Ordering::SeqCst);
            let end = Instant::now() + Duration::from_millis(300);
            while Instant::now() < end && !watch.are_back.load(Ordering::SeqCst) {
                thread::yield_now();
            }
            watch.came_early.fetch_or(watch.are_back.load(Ordering::SeqCst), Ordering::SeqCst);
            a + b
        })
    }

    fn wait_until_inside(&self) {
        while !self.is_inside.load(Ordering::SeqCst) {
            thread::yield_now();
        }
    }
}

/// Starts the call on rank 1 that rank 0 has started, and waits for its end.
fn starts(world: &World) {
    let sum = UserOp::new(|a: &u32, b: &u32| a + b);
    let _ = world.start(collective::all_reduce(vec![1_u32], &sum)).map(Request::wait);
}

/// [`starts`] for a persistent call, since calls match those of the same kind only.
fn starts_kept(world: &World) {
    let sum = UserOp::new(|a: &u32, b: &u32| a + b);
    let mut kept = world.persistent(collective::all_reduce(vec![1_u32], sum)).unwrap();
    let _ = kept.start();
    let _ = kept.wait();
}

/// Runs `body` on rank 0 of two, while another thread of that rank runs the program's function in a collective call
/// that `body` has started. Rank 1 runs `other`.
fn with_a_function_at_work(other: fn(&World), body: fn(&World, &Arc<Watch>)) {
    let early = Arc::new(AtomicU32::new(0));
    let counted = early.clone();
    // The job ends with an error, since rank 0 gives up.
    let _ = try_job(&Options::default(), 2, move |world| {
        let watch = Arc::new(Watch::default());
        if world.rank() == 1 {
            return other(&world);
        }
        thread::scope(|scope| {
            // Makes progress until the device has failed.
            scope.spawn(|| world.recv(&mut [0u8], 1, 5));
            body(&world, &watch);
            watch.are_back.store(true, Ordering::SeqCst);
            // If nothing was under way any more, the device still works, and the other thread waits.
            give_up(&world);
        });
        counted
            .fetch_add(u32::from(watch.came_early.load(Ordering::SeqCst)) + 10, Ordering::SeqCst);
    });
    assert_eq!(early.load(Ordering::SeqCst), 10, "nobody had the buffers back too early");
}

#[test]
fn a_scope_that_panics_waits_for_functions_at_work_on_its_buffers() {
    with_a_function_at_work(starts, |world, watch| {
        let (sum, mut number) = (watch.sum(), 1_u32);
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            world.scope(|scope| {
                scope.start(collective::all_reduce(&mut number, &sum))?;
                watch.wait_until_inside();
                panics()
            })
        }));
        assert!(panicked.is_err());
    });
}

#[test]
fn a_wait_that_fails_waits_for_functions_at_work_on_its_buffers() {
    with_a_function_at_work(starts, |world, watch| {
        let started = world.start(collective::all_reduce(vec![1_u32], watch.sum())).unwrap();
        watch.wait_until_inside();
        give_up(world);
        started.wait().unwrap_err();
    });
}

#[test]
fn a_kept_call_that_fails_waits_for_functions_at_work_on_its_buffers() {
    with_a_function_at_work(starts_kept, |world, watch| {
        let mut kept = world.persistent(collective::all_reduce(vec![1_u32], watch.sum())).unwrap();
        kept.start().unwrap();
        watch.wait_until_inside();
        give_up(world);
        kept.wait().unwrap_err();
    });
}

/// Panics without a panic message, which would take time.
fn panics() -> Result<(), Error> {
    resume_unwind(Box::new("the body gives up"))
}

/// Makes the device fail, as a scope does whose body panics.
fn give_up(world: &World) {
    let data = vec![0_u8; 10_000_000];
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        world.scope(|scope| {
            // Refused if the device has already failed.
            let _ = scope.issend(&data, 1, 9);
            panics()
        })
    }));
    assert!(panicked.is_err());
}

/// The other ranks do not wait for ever, and later calls find no messages of this one.
#[test]
fn a_panic_of_a_function_is_passed_on_when_the_call_has_ended() {
    job(4, |world| {
        let rank = world.rank() as u32;
        let sum = UserOp::new(move |a: &u32, b: &u32| match rank {
            0 => resume_unwind(Box::new("no sum today")),
            _ => a + b,
        });
        let outcome = catch_unwind(AssertUnwindSafe(|| world.all_reduce(&mut 1_u32, &sum)));
        assert_eq!(outcome.is_err(), rank == 0);
        let mut all = [9; 4];
        world.all_gather(&[rank], &mut all).unwrap();
        assert_eq!(all, [0, 1, 2, 3]);
    });
}

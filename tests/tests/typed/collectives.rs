//! Collective calls in their forms: blocking, started, in a scope, persistent; and which communicators see their
//! errors.
//!
//! Every job runs under a watchdog.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use mpj::{Error, ErrorClass, Op, Partition, Strided, StridedMut, collective};

use super::forms::forms;
use super::unchecked;
use crate::job::{job, job_with};

/// A rank whose buffer is too short gets the error from its wait, and so does the error handler.
#[test]
fn error_handlers_get_the_errors_of_collective_waits() {
    job_with(&unchecked(), 2, |world| {
        let (world, told) = (world.dup().unwrap(), Arc::new(AtomicUsize::new(0)));
        let counted = told.clone();
        world.set_error_handler(move |_, error| {
            assert_eq!(error.class(), ErrorClass::Truncate);
            counted.fetch_add(1, Ordering::Relaxed);
        });
        let (is_root, len) = (world.rank() == 0, [4, 2][world.rank()]);
        let mut lent = vec![0; len];
        let outcomes = [
            world.start(collective::broadcast(vec![0; len], 0)).unwrap().wait().map(drop),
            tested(world.start(collective::broadcast(vec![0; len], 0)).unwrap()),
            world.persistent(collective::broadcast(vec![0; len], 0)).and_then(|mut kept| {
                kept.start()?;
                kept.wait().map(drop)
            }),
            world.persistent(collective::broadcast(vec![0; len], 0)).and_then(|mut kept| {
                kept.start()?;
                while !kept.test()? {}
                Ok(())
            }),
            world.scope(|scope| scope.start(collective::broadcast(&mut lent, 0))?.wait().map(drop)),
        ];
        for (number, outcome) in outcomes.iter().enumerate() {
            assert_eq!(outcome.is_ok(), is_root, "call {number}: {outcome:?}");
        }
        let errors = if is_root { 0 } else { outcomes.len() };
        assert_eq!(told.load(Ordering::Relaxed), errors);
        // A rank whose last call had an error would not wait for the others.
        world.barrier().unwrap();
    });
}

/// Tests until the call is complete.
fn tested(mut request: mpj::Request<i32>) -> Result<(), Error> {
    loop {
        if request.test()?.is_some() {
            return Ok(());
        }
    }
}

#[test]
fn calls_that_move_data_are_the_same_in_every_form() {
    job(3, |world| {
        let (rank, at_the_root) = (world.rank(), if world.rank() == 1 { 6 } else { 0 });
        forms!(world, world by on, 0, 2, |_none, into| collective::broadcast(into, 1));
        forms!(world, world by on, 2, at_the_root, |data, into| collective::gather(data, into, 1));
        forms!(world, world by on, at_the_root, 2, |data, into| collective::scatter(data, into, 1));
        forms!(world, world by on, 2, 6, |data, into| collective::all_gather(data, into));
        forms!(world, world by on, 6, 6, |data, into| collective::all_to_all(data, into));
        // Rank r gives r + 1 numbers. The last block comes first, and there is a gap after each.
        let parts = Partition::at((0..3).map(|rank| (8 - 4 * rank, rank + 1)));
        let mine = rank + 1;
        forms!(world, world by on, mine, 12, |data, into| {
            collective::gatherv(data, into, &parts, 1)
        });
        forms!(world, world by on, 12, mine, |data, into| {
            collective::scatterv(data, &parts, into, 1)
        });
        forms!(world, world by on, mine, 12, |data, into| {
            collective::all_gatherv(data, into, &parts)
        });
        let sent = Partition::packed((0..3).map(|to| rank + to));
        let received = Partition::at((0..3).map(|from| (4 * (2 - from), rank + from)));
        forms!(world, world by on, sent.end(), 12, |data, into| {
            collective::all_to_allv(data, &sent, into, &received)
        });
    });
}

#[test]
fn reductions_are_the_same_in_every_form() {
    job(3, |world| {
        let counts = [2, 0, 4];
        let mine = counts[world.rank()];
        forms!(world, world by on, 3, 3, |data, into| collective::reduce(data, into, Op::Sum, 1));
        forms!(world, world by on, 0, 3, |_none, into| collective::all_reduce(into, Op::Sum));
        forms!(world, world by on, 3, 3, |data, into| {
            collective::all_reduce_into(data, into, Op::Max)
        });
        forms!(world, world by on, 6, mine, |data, into| {
            collective::reduce_scatter(data, into, &counts, Op::Sum)
        });
        forms!(world, world by on, 6, 2, |data, into| {
            collective::reduce_scatter_block(data, into, Op::Sum)
        });
        forms!(world, world by on, 0, 3, |_none, into| collective::scan(into, Op::Sum));
        forms!(world, world by on, 0, 3, |_none, into| collective::exscan(into, Op::Sum));
    });
}

/// Requests of collective calls and of messages in one list, and persistent ones started at once.
#[test]
fn waits_for_lists_take_collective_calls_and_messages() {
    job_with(&unchecked(), 2, |world| {
        let (mine, other) = (world.rank() as i32, 1 - world.rank());
        let sum = || collective::all_reduce(vec![mine], Op::Sum);
        let mut requests = vec![
            world.irecv(vec![9], other, 5).unwrap(),
            world.start(sum()).unwrap(),
            world.start(collective::all_gather(vec![mine], vec![9; 2])).unwrap(),
        ];
        let (mut left, mut found) = (vec![0, 1, 2], [vec![], vec![], vec![]]);
        while requests.len() > 1 {
            let place = mpj::wait_any(&mut requests).unwrap().unwrap();
            found[left.remove(place)] = requests.remove(place).wait().unwrap().0;
        }
        // The receive is left, unless the other rank was faster.
        world.send(&[mine], other, 5).unwrap();
        assert_eq!(mpj::wait_some(&mut requests).unwrap(), [0]);
        found[left[0]] = requests.remove(0).wait().unwrap().0;
        assert_eq!(found, [vec![other as i32], vec![1], vec![0, 1]]);

        let mut receive = world.recv_init(vec![9], other, 6).unwrap();
        let mut send = world.send_init(vec![mine], other, 6).unwrap();
        let mut kept = world.persistent(sum()).unwrap();
        mpj::start_all([&mut receive, &mut kept, &mut send]).unwrap();
        assert!(!kept.cancel().unwrap(), "collective calls are not cancelled");
        for call in [&mut kept, &mut receive, &mut send] {
            assert!(call.wait().unwrap().is_some());
        }
        assert_eq!(
            (receive.buffer().unwrap(), kept.buffer().unwrap()),
            (&[other as i32][..], &[1][..])
        );

        // A look leaves both buffers with the request.
        let call = collective::all_gather(vec![mine], vec![9; 2]);
        let request = world.start(call).unwrap();
        while request.status().unwrap().is_none() {}
        assert_eq!(request.wait_both().unwrap(), (vec![mine], vec![0, 1]));

        // A call that fails in a list gives its error there.
        let mut short =
            vec![world.start(collective::broadcast(vec![0; 2 - world.rank()], 0)).unwrap()];
        assert_eq!(mpj::wait_some(&mut short).unwrap(), [0]);
        assert_eq!(short.remove(0).wait().is_err(), world.rank() == 1);
        world.barrier().unwrap();
    });
}

/// Blocks with a gap, in another order than that of the ranks, in every form of the calls that take them.
#[test]
fn listed_blocks_land_where_they_say_in_every_form() {
    job(3, |world| {
        let (rank, blocks) = (world.rank(), Partition::at([(5, 1), (0, 2), (2, 1)]));
        let mine = vec![rank; blocks.count(rank)];
        let (room, all) = (vec![9; 6], [1, 1, 2, 9, 9, 0]);

        let mut into = room.clone();
        world.all_gatherv(&mine, &mut into, &blocks).unwrap();
        assert_eq!(into, all);
        let owning =
            world.start(collective::all_gatherv(mine.clone(), room.clone(), &blocks)).unwrap();
        let mut kept =
            world.persistent(collective::all_gatherv(mine.clone(), room.clone(), &blocks)).unwrap();
        let mut scoped = room.clone();
        kept.start().unwrap();
        world
            .scope(|scope| {
                scope.start(collective::all_gatherv(&mine, &mut scoped, &blocks)).map(drop)
            })
            .unwrap();
        kept.wait().unwrap();
        assert_eq!((&*scoped, kept.buffer().unwrap()), (&all[..], &all[..]));
        assert_eq!(owning.wait().unwrap().0, all);

        // The gathered blocks are scattered again.
        let part = vec![7; blocks.count(rank)];
        let owning = world.start(collective::scatterv(scoped, &blocks, part.clone(), 2)).unwrap();
        assert_eq!(owning.wait().unwrap().0, mine);
        let mut kept =
            world.persistent(collective::scatterv(all.to_vec(), &blocks, part, 2)).unwrap();
        kept.start().unwrap();
        kept.wait().unwrap();
        assert_eq!(kept.buffer().unwrap(), mine);

        // A list with one block too few is refused, and the call does not count.
        let short = Partition::packed([1, 1]);
        assert!(world.start(collective::all_gatherv(mine.clone(), room.clone(), &short)).is_err());
        assert!(world.persistent(collective::all_gatherv(mine, room, &short)).is_err());
        world.barrier().unwrap();
    });
}

/// A persistent reduction combines the contents that its buffer has at each start.
#[test]
fn kept_reductions_run_again_with_other_numbers() {
    job(3, |world| {
        let rank = world.rank() as i64;
        let mut scan = world.persistent(collective::scan(vec![0; 2], Op::Sum)).unwrap();
        let mut before = world.persistent(collective::exscan(vec![0], Op::Sum)).unwrap();
        let mut reduced =
            world.persistent(collective::reduce(vec![0], vec![0], Op::Max, 1)).unwrap();
        let mut shared = world
            .persistent(collective::reduce_scatter_block(vec![0; 3], vec![0], Op::Sum))
            .unwrap();
        for step in 1..4 {
            scan.buffer_mut().unwrap().fill(step);
            before.buffer_mut().unwrap().fill(step);
            reduced.data_mut().unwrap().fill(step * rank);
            shared.data_mut().unwrap().copy_from_slice(&[step, 10 * step, 100 * step]);
            for call in [&mut scan, &mut before, &mut reduced, &mut shared] {
                call.start().unwrap();
            }
            assert_eq!(scan.start().unwrap_err().class(), ErrorClass::Request);
            for call in [&mut shared, &mut reduced, &mut before, &mut scan] {
                call.wait().unwrap();
            }
            assert_eq!(scan.buffer().unwrap(), [step * (rank + 1); 2]);
            assert_eq!(before.buffer().unwrap(), [step * rank.max(1)]);
            assert!(rank != 1 || reduced.buffer().unwrap() == [2 * step]);
            assert_eq!(shared.buffer().unwrap(), [3 * step * 10_i64.pow(rank as u32)]);
        }
    });
}

/// Buffers of several lengths and layouts in one call, some of them empty.
#[test]
fn an_exchange_of_buffers_of_their_own() {
    job(3, |world| {
        let rank = world.rank();
        // Rank s sends s * r numbers to rank r.
        let data: Vec<_> = (0..3).map(|to| vec![10 * rank + to; rank * to]).collect();
        let mut into: Vec<_> = (0..3).map(|from| vec![99; from * rank]).collect();
        world.all_to_allw(&data, &mut into).unwrap();
        let expected: Vec<_> = (0..3).map(|from| vec![10 * from + rank; from * rank]).collect();
        assert_eq!(into, expected);

        // Columns arrive as rows, in the opposite order.
        let matrix: Vec<_> = (0..6).map(|n| 10 * rank + n).collect();
        let columns = [0, 1, 2].map(|column| mpj::column(&matrix, 3, column).unwrap());
        let mut got = [0; 6];
        let (last, rest) = got.split_at_mut(2);
        let (middle, first) = rest.split_at_mut(2);
        world.all_to_allw(&columns, &mut [first, middle, last]).unwrap();
        let expected = [2, 1, 0].map(|from| [10 * from + rank, 10 * from + rank + 3]);
        assert_eq!(got, expected.as_flattened());

        // These calls are refused on all ranks, and do not count.
        assert!(world.all_to_allw(&data[..2], &mut into).is_err());
        assert!(world.all_to_allw(&data, &mut into[1..]).is_err());
        let mut twice = [[0; 2]; 3];
        let mut same = twice.each_mut().map(|two| StridedMut::new(two, 0, 0, 2).unwrap());
        let refused = world.all_to_allw(&[[rank; 2]; 3], &mut same).unwrap_err();
        assert!(refused.to_string().contains("twice"), "{refused}");
        world.barrier().unwrap();
    });
}

/// Returns a column for each of three ranks.
fn columns(matrix: &[usize]) -> Result<Vec<Strided<'_, usize>>, Error> {
    (0..3).map(|column| mpj::column(matrix, 3, column)).collect()
}

/// Returns room for four elements from each of three ranks: a row, every second element backwards, the middle of a
/// matrix.
fn shapes(memory: &mut [usize]) -> Result<Vec<StridedMut<'_, usize>>, Error> {
    let (row, rest) = memory.split_at_mut(4);
    let (second, matrix) = rest.split_at_mut(8);
    let middle = mpj::block_mut(matrix, 4, .., 1..3)?;
    Ok(vec![StridedMut::new(row, 0, 1, 4)?, StridedMut::new(second, 7, -2, 4)?, middle])
}

/// The places of the parts are fixed when the request is made; their contents are not.
#[test]
fn an_exchange_of_shapes_is_the_same_in_every_form() {
    job(3, |world| {
        let numbers = |step: usize| -> Vec<usize> {
            (0..12).map(|index| 1000 * step + 100 * world.rank() + index).collect()
        };
        let mut kept = world
            .persistent(collective::all_to_allw_owned(numbers(0), columns, vec![9; 20], shapes))
            .unwrap();
        for step in 1..4 {
            let column = |from: usize| {
                [0, 3, 6, 9].map(|first| 1000 * step + 100 * from + first + world.rank())
            };
            let ([a, b, c, d], [e, f, g, h]) = (column(1), column(2));
            let apart = [[9, d, 9, c, 9, b, 9, a], [9, e, f, 9, 9, g, h, 9]];
            let expected = [&column(0)[..], apart.as_flattened()].concat();

            let (given, mut into) = (numbers(step), vec![9; 20]);
            world.all_to_allw(&columns(&given).unwrap(), &mut shapes(&mut into).unwrap()).unwrap();
            assert_eq!(into, expected, "step {step}");
            kept.data_mut().unwrap().copy_from_slice(&given);
            kept.buffer_mut().unwrap().fill(9);
            kept.start().unwrap();
            assert!(kept.data_mut().is_err());
            let owning = world
                .start(collective::all_to_allw_owned(given.clone(), columns, vec![9; 20], shapes))
                .unwrap();
            kept.wait().unwrap();
            assert_eq!(kept.buffer().unwrap(), expected, "step {step}");
            assert_eq!(owning.wait_both().unwrap(), (given, expected), "step {step}");
        }
    });
}

static ELSEWHERE: [usize; 4] = [1, 2, 3, 4];

/// Returns room for four elements from rank 0, and for `len` from each other rank.
fn rows(memory: &mut [usize], len: usize) -> Result<Vec<StridedMut<'_, usize>>, Error> {
    let rows = memory.chunks_mut(4).zip([4, len, len]);
    rows.map(|(row, len)| StridedMut::new(row, 0, 1, len)).collect()
}

/// Returns parts that name their first element twice.
fn twice(memory: &mut [usize]) -> Result<Vec<StridedMut<'_, usize>>, Error> {
    memory.chunks_mut(4).take(3).map(|four| StridedMut::new(four, 0, 0, 4)).collect()
}

#[test]
fn parts_that_an_exchange_cannot_have_are_refused() {
    job(3, |world| {
        let class = |outcome: Result<(), Error>| outcome.unwrap_err().class();
        let (data, into) = (|| vec![world.rank(); 12], || vec![9; 20]);
        let elsewhere = world.start(collective::all_to_allw_owned(
            data(),
            |_| Ok(vec![Strided::new(&ELSEWHERE, 0, 1, 4)?; 3]),
            into(),
            shapes,
        ));
        assert!(matches!(elsewhere, Err(Error::Elsewhere)));
        let leaked =
            world.persistent(collective::all_to_allw_owned(data(), columns, into(), |_| {
                shapes(vec![9; 20].leak())
            }));
        assert!(matches!(leaked, Err(Error::Elsewhere)));
        // An error of the function itself; one part too few; an element named twice.
        let refused = world
            .start(collective::all_to_allw_owned(vec![1; 13], columns, into(), shapes))
            .map(drop);
        assert!(matches!(refused, Err(Error::Matrix { .. })), "{refused:?}");
        let fewer = world.persistent(collective::all_to_allw_owned(
            data(),
            |memory| Ok(columns(memory)?[1..].to_vec()),
            into(),
            shapes,
        ));
        assert_eq!(class(fewer.map(drop)), ErrorClass::Arg);
        let refused =
            world.start(collective::all_to_allw_owned(data(), columns, into(), twice)).map(drop);
        assert!(refused.unwrap_err().to_string().contains("twice"));

        // No refused call has counted. Parts without elements may lie anywhere.
        let nothing = world.start(collective::all_to_allw_owned(
            data(),
            |_| Ok(vec![Strided::new(&ELSEWHERE, 2, 1, 0)?; 3]),
            into(),
            |_| (0..3).map(|_| StridedMut::new(&mut [], 0, 1, 0)).collect(),
        ));
        assert_eq!(nothing.unwrap().wait().unwrap().0, into());
    });
}

/// Rank 0 has too little room, in a single call and at each start of a persistent one.
#[test]
fn an_exchange_that_is_truncated_can_be_started_again() {
    job_with(&unchecked(), 3, |world| {
        let is_short = world.rank() == 0;
        let len = if is_short { 3 } else { 4 };
        let kept = world.persistent(collective::all_to_allw_owned(
            vec![7; 12],
            columns,
            vec![9; 12],
            |into| rows(into, len),
        ));
        let mut kept = kept.unwrap();
        for _ in 0..2 {
            kept.start().unwrap();
            match kept.wait() {
                Err(error) => assert_eq!((error.class(), is_short), (ErrorClass::Truncate, true)),
                Ok(_) => assert_eq!((kept.buffer().unwrap(), is_short), (&[7; 12][..], false)),
            }
        }
        let owning =
            world.start(collective::all_to_allw_owned(vec![7; 12], columns, vec![9; 12], |into| {
                rows(into, len)
            }));
        assert_eq!(owning.unwrap().wait().is_err(), is_short);
        world.barrier().unwrap();
    });
}

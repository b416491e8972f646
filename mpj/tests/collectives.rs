//! Collective calls in their forms: blocking, started, in a scope, kept; and whom their errors reach.
//!
//! Every job runs under a watchdog.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use mpj::{Blocks, Error, ErrorClass, Op, StridedMut, World, local};

/// How long a job may take.
const LIMIT: Duration = Duration::from_secs(60);

#[track_caller]
fn job(ranks: usize, body: impl Fn(&World) + Send + Sync + 'static) {
    let (done, outcome) = mpsc::channel();
    // Nobody listens any more after the limit.
    thread::spawn(move || done.send(local::run(ranks, |world| body(&world))));
    outcome.recv_timeout(LIMIT).expect("the job ends").unwrap_or_else(|error| panic!("{error}"));
}

/// A rank with a buffer that is too short learns of it where it waits, and so does the error handler.
#[test]
fn error_handlers_get_the_errors_of_collective_waits() {
    job(2, |world| {
        let told = Arc::new(AtomicUsize::new(0));
        let counted = told.clone();
        world.set_error_handler(move |_, error| {
            assert_eq!(error.class(), ErrorClass::Truncate);
            counted.fetch_add(1, Ordering::Relaxed);
        });
        let (is_root, len) = (world.rank() == 0, [4, 2][world.rank()]);
        let mut lent = vec![0; len];
        let outcomes = [
            world.ibroadcast(vec![0; len], 0).unwrap().wait().map(drop),
            tested(world.ibroadcast(vec![0; len], 0).unwrap()),
            world.broadcast_init(vec![0; len], 0).and_then(|mut kept| {
                kept.start()?;
                kept.wait()
            }),
            world.broadcast_init(vec![0; len], 0).and_then(|mut kept| {
                kept.start()?;
                while !kept.test()? {}
                Ok(())
            }),
            world.scope(|scope| scope.ibroadcast(&mut lent, 0)?.wait().map(drop)),
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
fn tested(mut request: mpj::CollectiveRequest<i32>) -> Result<(), Error> {
    loop {
        match request.test()? {
            Ok(_) => return Ok(()),
            Err(open) => request = open,
        }
    }
}

/// Blocks with a gap and another order than that of the ranks, by every form of the calls that take them.
#[test]
fn listed_blocks_land_where_they_say_in_every_form() {
    job(3, |world| {
        let (rank, blocks) = (world.rank(), Blocks::at([(5, 1), (0, 2), (2, 1)]));
        let mine = vec![rank; blocks.count(rank)];
        let (room, all) = (vec![9; 6], [1, 1, 2, 9, 9, 0]);

        let mut into = room.clone();
        world.all_gatherv(&mine, &mut into, &blocks).unwrap();
        assert_eq!(into, all);
        let owning = world.iall_gatherv(mine.clone(), room.clone(), &blocks).unwrap();
        let mut kept = world.all_gatherv_init(mine.clone(), room.clone(), &blocks).unwrap();
        let mut scoped = room.clone();
        kept.start().unwrap();
        world.scope(|scope| scope.iall_gatherv(&mine, &mut scoped, &blocks).map(drop)).unwrap();
        kept.wait().unwrap();
        assert_eq!((&*scoped, kept.buffer().unwrap()), (&all[..], &all[..]));
        assert_eq!(owning.wait().unwrap(), all);

        // What was gathered is scattered again.
        let part = vec![7; blocks.count(rank)];
        let owning = world.iscatterv(scoped, &blocks, part.clone(), 2).unwrap();
        assert_eq!(owning.wait().unwrap(), mine);
        let mut kept = world.scatterv_init(all.to_vec(), &blocks, part, 2).unwrap();
        kept.start().unwrap();
        kept.wait().unwrap();
        assert_eq!(kept.buffer().unwrap(), mine);

        // One block too few is refused, and does not count as a call.
        let short = Blocks::packed([1, 1]);
        assert!(world.iall_gatherv(mine.clone(), room.clone(), &short).is_err());
        assert!(world.all_gatherv_init(mine, room, &short).is_err());
        world.barrier().unwrap();
    });
}

/// A kept reduction combines what its buffer has when it is started.
#[test]
fn kept_reductions_run_again_with_other_numbers() {
    job(3, |world| {
        let rank = world.rank() as i64;
        let mut scan = world.scan_init(vec![0; 2], Op::Sum).unwrap();
        let mut before = world.exscan_init(vec![0], Op::Sum).unwrap();
        let mut reduced = world.reduce_init(vec![0], vec![0], Op::Max, 1).unwrap();
        let mut shared = world.reduce_scatter_block_init(vec![0; 3], vec![0], Op::Sum).unwrap();
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

        // Columns in the opposite order of rows.
        let matrix: Vec<_> = (0..6).map(|n| 10 * rank + n).collect();
        let columns = [0, 1, 2].map(|column| mpj::column(&matrix, 3, column).unwrap());
        let mut got = [0; 6];
        let (last, rest) = got.split_at_mut(2);
        let (middle, first) = rest.split_at_mut(2);
        world.all_to_allw(&columns, &mut [first, middle, last]).unwrap();
        let expected = [2, 1, 0].map(|from| [10 * from + rank, 10 * from + rank + 3]);
        assert_eq!(got, expected.as_flattened());

        // Refused on all ranks, and not counted as a call.
        assert!(world.all_to_allw(&data[..2], &mut into).is_err());
        assert!(world.all_to_allw(&data, &mut into[1..]).is_err());
        let mut twice = [[0; 2]; 3];
        let mut same = twice.each_mut().map(|two| StridedMut::new(two, 0, 0, 2).unwrap());
        let refused = world.all_to_allw(&[[rank; 2]; 3], &mut same).unwrap_err();
        assert!(refused.to_string().contains("twice"), "{refused}");
        world.barrier().unwrap();
    });
}

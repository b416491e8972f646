//! Collective calls that do not fit together, found by comparison before any data are used (`MPJ_CHECK`). Every job
//! runs under a watchdog.

use std::panic::Location;

use job::job_with;
use mpj::tuning::Options;
use mpj::{Communicator, Error, ErrorClass, Op, World, collective};

mod job;

fn checked() -> Options {
    Options { checks_calls: true, ..Options::default() }
}

/// Runs `call` on three ranks, and returns what each says. Afterwards all make a call that fits.
fn refusals(call: impl Fn(&World) -> Result<(), Error> + Send + Sync + 'static) -> Vec<Error> {
    job_with(&checked(), 3, move |world| {
        let refused = call(world).expect_err("the calls do not fit");
        let mut sum = [world.rank()];
        world.all_reduce(&mut sum, Op::Sum).expect("these fit");
        assert_eq!(sum, [3]);
        refused
    })
}

/// All ranks say the same, in words that contain these.
fn all_say(refusals: &[Error], class: ErrorClass, words: &[&str]) {
    let first = refusals[0].to_string();
    for refusal in refusals {
        assert_eq!((refusal.class(), refusal.to_string()), (class, first.clone()));
    }
    for word in words {
        assert!(first.contains(word), "{word}: {first}");
    }
}

#[track_caller]
fn line() -> String {
    let place = Location::caller();
    format!("{}:{}", place.file(), place.line())
}

#[test]
fn different_calls_are_refused_with_both_places() {
    let refused = refusals(|world| match world.rank() {
        1 => world.reduce(&[1.5], &mut [0.0], Op::Sum, 0),
        _ => world.broadcast(&mut [1.5], 0),
    });
    let here = line();
    let line = here.rsplit_once(':').expect("it has a line").1.parse::<u32>().expect("a number");
    let (reduce, broadcast) = (line - 3, line - 2);
    let expected = format!(
        "rank 1 calls reduce(root 0, MPI_SUM, 1 double) at mpj/tests/checks.rs:{reduce} where rank 0 calls \
         bcast(root 0, 1 double) at mpj/tests/checks.rs:{broadcast}: "
    );
    all_say(&refused, ErrorClass::Other, &[&expected]);
}

#[test]
fn different_types_of_one_size_are_refused() {
    let refused = refusals(|world| match world.rank() {
        2 => world.all_reduce(&mut [1.0_f32], Op::Sum),
        _ => world.all_reduce(&mut [1_i32], Op::Sum),
    });
    all_say(&refused, ErrorClass::Type, &["rank 2 calls", "1 float", "1 int32"]);
    let refused = refusals(|world| match world.rank() {
        1 => world.broadcast(&mut [1.0; 4], 0),
        _ => world.broadcast(&mut [1; 8], 0),
    });
    all_say(&refused, ErrorClass::Type, &["rank 1 calls", "4 double", "8 int32"]);
}

#[test]
fn different_operations_roots_and_counts_are_refused() {
    let refused = refusals(|world| {
        let op = if world.rank() == 1 { Op::Product } else { Op::Sum };
        world.all_reduce(&mut [1.0], op)
    });
    all_say(&refused, ErrorClass::Op, &["rank 1 calls", "MPI_PROD", "MPI_SUM"]);
    let refused = refusals(|world| world.broadcast(&mut [0], usize::from(world.rank() == 2)));
    all_say(&refused, ErrorClass::Root, &["rank 2 calls", "root 1", "root 0"]);
    let refused = refusals(|world| world.all_reduce(&mut vec![0; 1 + world.rank() / 2], Op::Sum));
    all_say(&refused, ErrorClass::Count, &["rank 2 calls", "2 int32", "1 int32"]);
    let refused = refusals(|world| {
        world.gatherv(&[1], &mut [0; 3], &mpj::Partition::packed([1, 1, 1]), world.rank() / 2)
    });
    all_say(&refused, ErrorClass::Root, &["rank 2 calls gatherv(root 1)"]);
}

#[test]
fn calls_that_are_started_or_kept_are_compared_with_those_that_block() {
    let refused = refusals(|world| match world.rank() {
        0 => world.start(collective::all_reduce(vec![1], Op::Sum))?.wait().map(drop),
        1 => world.persistent(collective::all_reduce(vec![1], Op::Sum)).map(drop),
        _ => world.barrier(),
    });
    all_say(
        &refused,
        ErrorClass::Other,
        &["rank 1 calls allreduce_init(", "iallreduce(MPI_SUM, 1 int32"],
    );
    let refused = refusals(|world| match world.rank() {
        2 => world.start(collective::barrier())?.wait().map(drop),
        _ => world.barrier(),
    });
    all_say(&refused, ErrorClass::Other, &["rank 2 calls ibarrier()", "rank 0 calls barrier()"]);
    let refused = refusals(|world| match world.rank() {
        1 => world.dup().map(drop),
        _ => world.barrier(),
    });
    all_say(&refused, ErrorClass::Other, &["rank 1 calls dup()", "rank 0 calls barrier()"]);
    let refused = refusals(|world| {
        let root = usize::from(world.rank() == 1);
        let mut word = [1];
        world.scope(|scope| scope.start(collective::broadcast(&mut word, root))?.wait().map(drop))
    });
    all_say(&refused, ErrorClass::Root, &["rank 1 calls ibcast(root 1"]);
}

/// Several calls are under way at a time, and end in any order.
#[test]
fn calls_that_fit_are_made_as_ever() {
    job_with(&checked(), 4, |world| {
        let me = world.rank();
        let part: Communicator = world.split((me % 2) as u32, 0).unwrap();
        let sums: Vec<_> = (0..20)
            .map(|n| world.start(collective::all_reduce(vec![me + n; 5], Op::Sum)).unwrap())
            .collect();
        let mut half = [me];
        part.all_reduce(&mut half, Op::Max).unwrap();
        assert_eq!(half, [2 + me % 2]);
        let mut all = [0; 4];
        world.all_gather(&me, &mut all).unwrap();
        assert_eq!(all, [0, 1, 2, 3]);
        for (n, sum) in sums.into_iter().enumerate().rev() {
            assert_eq!(sum.wait().unwrap().0, [6 + 4 * n; 5]);
        }
        let mut kept = world.persistent(collective::all_reduce(vec![1], Op::Sum)).unwrap();
        for _ in 0..3 {
            kept.buffer_mut().unwrap().fill(me);
            kept.start().unwrap();
            kept.wait().unwrap();
            assert_eq!(kept.buffer().unwrap(), [6]);
        }
        // One element of four on one rank, four elements on the others: the same data.
        match me {
            0 => world.broadcast(&mut [[1.0; 4]], 0).unwrap(),
            _ => world.broadcast(&mut [0.0; 4], 0).unwrap(),
        }
    });
}

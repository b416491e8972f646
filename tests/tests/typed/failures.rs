//! Ranks that fail, and how the others and the caller learn of it.

use std::panic::panic_any;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use mpj::local::{self, LocalError};
use mpj::tuning::{BackendChoice, Options};
use mpj::{Communicator, ErrorClass, World};
use mpj_harness::Sleepers;

use crate::job::try_job;

/// Rank 2 of three panics while the others do `blocked`; returns what the caller learns.
fn panicking(
    panic: fn(),
    blocked: impl Fn(&World) -> Result<(), mpj::Error> + Send + Sync + 'static,
) -> (usize, String) {
    let sleepers = Sleepers::default();
    let outcome = try_job(&Options::default(), 3, move |world| {
        if world.rank() == 2 {
            sleepers.wait_until_asleep(2);
            panic();
        }
        sleepers.join();
        let error = blocked(&world).unwrap_err();
        assert_eq!(error.class(), ErrorClass::ProcFailed, "{error}");
        assert!(error.to_string().contains("rank 2 is gone"), "{error}");
    });
    match outcome {
        Err(LocalError::Panicked { rank, message }) => (rank, message),
        other => panic!("{other:?}"),
    }
}

fn fail() {
    panic!("a wall was hit");
}

#[test]
fn a_rank_that_panics_ends_receives() {
    let learnt = panicking(fail, |world| world.recv(&mut [0u8], 2, 0).map(drop));
    assert_eq!(learnt, (2, "a wall was hit".to_owned()));
    let learnt = panicking(fail, |world| world.recv_vec::<u8>(mpj::ANY_SOURCE, 0).map(drop));
    assert_eq!(learnt.0, 2);
}

#[test]
fn a_rank_that_panics_ends_sends() {
    assert_eq!(panicking(fail, |world| world.ssend(&[1u8], 2, 0)).0, 2);
    let large = |world: &World| world.isend(vec![0u8; 4 << 20], 2, 0)?.wait().map(drop);
    assert_eq!(panicking(fail, large).0, 2);
}

#[test]
fn a_rank_that_panics_ends_barriers() {
    assert_eq!(panicking(fail, |world| world.barrier()).0, 2);
    assert_eq!(panicking(fail, |world| world.dup().and_then(|copy| copy.barrier())).0, 2);
}

#[test]
fn a_rank_that_panics_ends_scopes() {
    let learnt = panicking(fail, |world| {
        let mut buffer = [0u8; 100];
        world.scope(|scope| scope.irecv(&mut buffer, 2, 0).map(drop))
    });
    assert_eq!(learnt.0, 2);
}

#[test]
fn a_rank_that_panics_ends_the_end() {
    let sleepers = Sleepers::default();
    let outcome = try_job(&Options::default(), 3, move |world| {
        if world.rank() == 2 {
            sleepers.wait_until_asleep(2);
            fail();
        }
        sleepers.join();
        // The world is dropped: that waits for everybody, and must not wait for ever.
    });
    assert!(matches!(outcome, Err(LocalError::Panicked { rank: 2, .. })), "{outcome:?}");
}

#[test]
fn panics_say_what_they_can() {
    let text = |panic| panicking(panic, |world| world.barrier()).1;
    assert_eq!(text(|| panic!("{} and {}", 1, 2)), "1 and 2");
    assert_eq!(text(|| panic_any(5)), "no message");
}

/// Ranks that fail because the first one is gone are not the cause, although they panic too.
#[test]
fn the_first_panic_is_the_cause() {
    let outcome = try_job(&Options::default(), 4, |world| {
        if world.rank() == 3 {
            thread::sleep(Duration::from_millis(20));
            fail();
        }
        world.barrier().expect("nobody fails");
    });
    match outcome {
        Err(LocalError::Panicked { rank: 3, message }) => assert_eq!(message, "a wall was hit"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn numbers_of_ranks_that_are_not_possible() {
    for ranks in [0, 257, usize::MAX] {
        let error = local::run(ranks, |world| world.rank()).unwrap_err();
        assert!(matches!(error, LocalError::Setup(_)), "{error}");
        assert!(error.to_string().contains("1 to 256"), "{error}");
    }
}

#[test]
fn answers_come_in_the_order_of_the_ranks() {
    let answers = try_job(&Options::default(), 9, |world| {
        thread::sleep(Duration::from_millis(9 - world.rank() as u64));
        (world.rank(), world.size())
    });
    assert!(answers.unwrap().into_iter().eq((0..9).map(|rank| (rank, 9))));
}

/// A `sendrecv` whose send fails leaves no receive behind: later messages go into no buffer that the call has given
/// back. Nothing else of a failed call is in the way of the remaining ranks either.
#[test]
fn a_failed_exchange_leaves_nothing_posted() {
    let outcome = try_job(&Options::default(), 3, |world| {
        if world.rank() == 2 {
            fail();
        }
        let other = 1 - world.rank();
        let lost = world.recv(&mut [0u8], 2, 0).unwrap_err();
        assert_eq!(lost.class(), ErrorClass::ProcFailed, "{lost}");
        let mut buffer = [0u8; 8];
        let error = world.sendrecv(&[1u8], 2, 0, &mut buffer, other, 5).unwrap_err();
        assert!(error.to_string().contains("rank 2 is gone"), "{error}");
        let mut got = [0u8; 8];
        let send = world.isend(vec![7u8; 8], other, 5).unwrap();
        world.recv(&mut got, other, 5).unwrap();
        send.wait().unwrap();
        assert_eq!((buffer, got), ([0; 8], [7; 8]));
        assert_eq!(world.barrier().unwrap_err().class(), ErrorClass::ProcFailed);
    });
    assert!(matches!(outcome, Err(LocalError::Panicked { rank: 2, .. })), "{outcome:?}");
}

/// Five ranks, one of which is lost before a barrier: every other one learns of it there, by either protocol.
#[test]
fn no_rank_waits_in_a_barrier_for_those_that_have_failed_in_it() {
    for backend in [BackendChoice::Eager, BackendChoice::Rendezvous] {
        let through = Arc::new(AtomicUsize::new(0));
        let outcome = try_job(&Options::with_backend(backend), 5, move |world| {
            if world.rank() == 4 {
                fail();
            }
            thread::sleep(Duration::from_millis(20 * world.rank() as u64));
            for _ in 0..3 {
                assert_eq!(world.barrier().unwrap_err().class(), ErrorClass::ProcFailed);
            }
            through.fetch_add(1, Ordering::Relaxed);
            // A rank takes a message back only when its living receiver agrees, so this one makes progress.
            while through.load(Ordering::Relaxed) < 4 {
                let _ = world.iprobe(mpj::ANY_SOURCE, 0);
                thread::yield_now();
            }
        });
        assert!(matches!(outcome, Err(LocalError::Panicked { rank: 4, .. })), "{outcome:?}");
    }
}

/// Programs may return errors from the body.
#[test]
fn a_failed_call_is_no_failed_job() {
    let answers = try_job(&Options::default(), 2, |world| world.send(&[0u8], 9, 0)).unwrap();
    assert!(answers.iter().all(Result::is_err));
}

/// Rank 0 meets an error that would end a program, and says whether it goes on; rank 1 then waits for it. Returns what
/// rank 1 meets.
fn after_an_error(goes_on: bool) -> Result<(), ErrorClass> {
    let answers = try_job(&Options::default(), 2, move |world| {
        if world.rank() == 1 {
            world.send(&[1u8; 8], 0, 0).unwrap();
            return world.barrier().map_err(|error| error.class());
        }
        let error = world.recv(&mut [0u8; 4], 1, 0).unwrap_err();
        assert_eq!(error.class(), ErrorClass::Truncate);
        if goes_on { world.barrier().map_err(|error| error.class()) } else { Ok(()) }
    });
    answers.unwrap()[1]
}

/// A world that is dropped right after an error does not wait for the others, and they do not wait for it, since
/// programs leave by `?`.
#[test]
fn leaving_after_an_error_ends_the_job() {
    assert_eq!(after_an_error(false), Err(ErrorClass::ProcFailed));
    assert_eq!(after_an_error(true), Ok(()), "an error that the program has dealt with");
}

/// One thread meets the error, another one may drop the world, while a third one polls.
#[test]
fn an_error_counts_in_whatever_thread_the_world_is_dropped() {
    let answers = try_job(&Options::default(), 2, |world| {
        if world.rank() == 1 {
            return world.barrier().map_err(|error| error.class());
        }
        let communicator = Communicator::clone(&world);
        thread::scope(|scope| {
            // Until this rank has left.
            scope.spawn(|| while communicator.iprobe(mpj::ANY_SOURCE, mpj::ANY_TAG).is_ok() {});
            communicator.send(&[0u8], 9, 0).unwrap_err();
            scope.spawn(move || drop(world)).join().unwrap();
        });
        Ok(())
    });
    assert_eq!(answers.unwrap()[1], Err(ErrorClass::ProcFailed));
}

/// The error of a thread counts as handled if the thread that drops the world has gone on since.
#[test]
fn an_error_of_a_thread_is_settled_when_the_rank_goes_on() {
    let answers = try_job(&Options::default(), 2, |world| {
        thread::scope(|scope| {
            let failing = scope.spawn(|| world.send(&[0u8], 9, 0));
            failing.join().unwrap().unwrap_err();
        });
        world.barrier().map_err(|error| error.class())
    });
    assert_eq!(answers.unwrap(), [Ok(()), Ok(())]);
}

/// After the end, communicators that a program has kept return an error for it.
#[test]
fn communicators_after_the_end() {
    let kept = try_job(&Options::default(), 2, |world| {
        let kept = world.dup().unwrap();
        world.finish().unwrap();
        kept
    });
    for communicator in kept.unwrap() {
        let error = communicator.send(&[1u8], 0, 0).unwrap_err();
        assert_eq!(error.to_string(), "the device was finished; communicate before that");
        assert!(communicator.barrier().is_err());
    }
}

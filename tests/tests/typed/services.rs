//! Services: functions that other ranks call.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use mpj::tuning::{BackendChoice, Options};
use mpj::{AnyRequest, Communicator, Error, ErrorClass, Op, Service, ServiceError, collective};
use mpj_doubles::numbers::Numbers;
use serde::{Deserialize, Serialize};

use crate::job::{job, job_with, try_job};

const BACKENDS: [BackendChoice; 3] =
    [BackendChoice::Auto, BackendChoice::Eager, BackendChoice::Rendezvous];

/// A request that says what is wanted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
enum Question {
    Length(String),
    Sum { of: Vec<f64>, twice: bool },
    Nothing,
}

fn answer(question: Question) -> Result<Option<f64>, String> {
    match question {
        Question::Length(text) if text.is_empty() => Err("there is no text".to_owned()),
        Question::Length(text) => Ok(Some(text.len() as f64)),
        Question::Sum { of, twice } => {
            Ok(Some(of.iter().sum::<f64>() * if twice { 2.0 } else { 1.0 }))
        }
        Question::Nothing => Ok(None),
    }
}

#[track_caller]
fn refused<A: std::fmt::Debug>(outcome: Result<A, Error>) -> ServiceError {
    match outcome {
        Err(Error::Service(error)) => error,
        other => panic!("no error of a service: {other:?}"),
    }
}

/// Requests and answers of many lengths and types, from each rank to each.
#[test]
fn questions_are_answered() {
    for backend in BACKENDS {
        job_with(&Options::with_backend(backend), 3, |world| {
            let answers = world.try_serve(|_, question: Question| answer(question)).unwrap();
            let upper = world.serve(|caller, text: String| (caller, text.to_uppercase())).unwrap();
            for rank in 0..3 {
                let sum = Question::Sum { of: vec![0.5; 1000], twice: true };
                assert_eq!(answers.call(rank, &sum).unwrap(), Some(1000.0));
                assert_eq!(
                    answers.call(rank, &Question::Length("grün".into())).unwrap(),
                    Some(5.0)
                );
                assert_eq!(answers.call(rank, &Question::Nothing).unwrap(), None);
                for len in [0, 1, 100, 10_000, 3_000_000] {
                    let (caller, got) = upper.call(rank, &"abc".repeat(len / 3)).unwrap();
                    assert!(caller == world.rank() && got == "ABC".repeat(len / 3), "{len}");
                }
            }
            world.barrier().unwrap();
        });
    }
}

#[test]
fn what_goes_wrong_in_a_handler_reaches_the_caller() {
    job(2, |world| {
        // Its services are counted from 0, also where other tests have used the world.
        let world = world.dup().unwrap();
        let answers = world.try_serve(|_, question: Question| answer(question)).unwrap();
        let panics = world
            .serve(|caller, len: usize| -> u8 {
                panic!("rank {caller} wants {}", "ü".repeat(len));
            })
            .unwrap();
        // Rank 1 has registered functions of other types.
        let mixed = match world.rank() {
            0 => world.serve(|_, number: u32| number).unwrap(),
            _ => {
                let texts = world.serve(|_, text: String| text).unwrap();
                assert_eq!(texts.call(1, &"own".to_owned()).unwrap(), "own");
                let error = refused(texts.call(0, &"other".to_owned()));
                assert!(
                    matches!(error, ServiceError::Request { rank: 0, service: 2, .. }),
                    "{error}"
                );
                world.barrier().unwrap();
                return;
            }
        };
        let (own, other) = (world.rank() as u32, 1);
        let error = answers.call(1, &Question::Length(String::new())).unwrap_err();
        assert_eq!(error.class(), ErrorClass::Other);
        assert_eq!(
            refused::<()>(Err(error)),
            ServiceError::Failed { rank: other, service: 0, message: "there is no text".into() }
        );
        for rank in [0, 1] {
            let error = refused(panics.call(rank, &3));
            let message = format!("rank {own} wants üüü");
            assert_eq!(error, ServiceError::Panicked { rank: rank as u32, service: 1, message });
        }
        let ServiceError::Panicked { message, .. } = refused(panics.call(1, &100_000)) else {
            panic!("it panics");
        };
        assert!(message.starts_with("rank 0 wants üü") && (990..=1000).contains(&message.len()));
        panics.notify(1, &1).unwrap();
        let error = mixed.call(1, &7).unwrap_err();
        assert_eq!(error.class(), ErrorClass::Type);
        let words = "rank 1 cannot read the request to its service 2: it is no alloc::string::String: \
                     there is an integer instead of";
        assert!(error.to_string().starts_with(words), "{error}");
        assert!(mixed.call(2, &7).unwrap_err().to_string().contains("rank 2"));
        world.barrier().unwrap();
    });
}

/// An answer of another type than the caller expects.
#[test]
fn an_answer_of_another_type_is_an_error() {
    job(2, |world| {
        if world.rank() == 0 {
            let numbers = world.serve(|_, (): ()| 7_u32).unwrap();
            let error = refused(numbers.call(1, &()));
            assert!(
                matches!(error, ServiceError::Answer { rank: 1, type_name: "u32", .. }),
                "{error}"
            );
        } else {
            world.serve(|_, (): ()| "seven".to_owned()).unwrap();
        }
        world.barrier().unwrap();
    });
}

/// Calls come back to ranks that wait for them, up to the deepest chain; one more is an error.
#[test]
fn calls_go_back_and_forth() {
    for ranks in [1, 2, 3] {
        job(ranks, move |world| {
            let here = world.rank();
            let bounce = world
                .serve_recursive(move |bounce, caller, left: u32| -> Result<Vec<usize>, String> {
                    let mut path = vec![caller];
                    if left > 0 {
                        let next = (here + 1) % ranks;
                        let rest =
                            bounce.call(next, &(left - 1)).map_err(|error| error.to_string())?;
                        path.extend(rest?);
                    }
                    Ok(path)
                })
                .unwrap();
            // All ranks at once, so that each runs handlers for several chains.
            for depth in [1, 2, 15] {
                let path = bounce.call((here + 1) % ranks, &depth).unwrap().unwrap();
                assert!(path.into_iter().eq((0..=depth as usize).map(|hop| (here + hop) % ranks)));
            }
            let error = bounce.call(0, &16).unwrap().unwrap_err();
            assert!(error.starts_with("a chain of 16 calls"), "{error}");
            world.barrier().unwrap();
        });
    }
}

/// Many chains at a time, from several threads of each rank, whose handlers all wait for other ranks.
#[test]
fn many_chains_at_a_time() {
    const CALLS: u32 = 60;
    job(3, |world| {
        let here = world.rank();
        let spread = world
            .serve_recursive(move |spread: &Service<u32, u64>, _, left: u32| -> u64 {
                if left == 0 {
                    return 1;
                }
                let calls =
                    [1, 2].map(|step| spread.start((here + step) % 3, &(left - 1)).unwrap());
                calls.into_iter().map(|call| call.wait().unwrap()).sum()
            })
            .unwrap();
        let total = AtomicU64::new(0);
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    let calls: Vec<_> = (0..CALLS)
                        .map(|at| spread.start(at as usize % 3, &(at % 5)).unwrap())
                        .collect();
                    for call in calls {
                        total.fetch_add(call.wait().unwrap(), Ordering::Relaxed);
                    }
                });
            }
        });
        let each: u64 = (0..CALLS).map(|at| 1 << (at % 5)).sum();
        assert_eq!(total.into_inner(), 3 * each);
        world.barrier().unwrap();
    });
}

/// A handler that receives a message and sends one, and a rank that waits for a message while others call it.
#[test]
fn handlers_communicate() {
    job(2, |world| {
        let messages = Communicator::clone(world);
        let fetch = world
            .serve(move |caller, tag: i32| {
                let (numbers, _) = messages.recv_vec::<u16>(caller, tag).unwrap();
                messages.send(&[0.5f32], caller, tag + 1).unwrap();
                numbers.len()
            })
            .unwrap();
        if world.rank() == 0 {
            let call = fetch.start(1, &3).unwrap();
            world.send(&[7u16; 2000], 1, 3).unwrap();
            assert_eq!(world.recv_vec::<f32>(1, 4).unwrap().0, [0.5]);
            assert_eq!(call.wait().unwrap(), 2000);
            world.send(&[1u8], 1, 9).unwrap();
        } else {
            world.recv(&mut 0u8, 0, 9).unwrap();
        }
        world.barrier().unwrap();
    });
}

#[test]
fn calls_stand_in_lists_with_other_requests() {
    job(2, |world| {
        let other = 1 - world.rank();
        let double = world.serve(|_, number: i64| 2 * number).unwrap();
        let mut calls: Vec<_> =
            (0..5).map(|number| double.start(number as usize % 2, &number).unwrap()).collect();
        let mut receive = world.irecv(vec![0u8; 3], other, 1).unwrap();
        let mut sum = world.start(collective::all_reduce(vec![1.0], Op::Sum)).unwrap();
        world.send(&[5u8; 3], other, 1).unwrap();
        let mut list: Vec<&mut dyn AnyRequest> = vec![&mut receive, &mut sum];
        list.extend(calls.iter_mut().map(|call| call as &mut dyn AnyRequest));
        let first = mpj::wait_any(list.iter_mut().map(|request| &mut **request)).unwrap();
        assert!(first.is_some_and(|first| first < 7));
        mpj::wait_all(list.iter_mut().map(|request| &mut **request)).unwrap();
        assert_eq!((receive.wait().unwrap().0, sum.wait().unwrap().0), (vec![5; 3], vec![2.0]));
        let doubled: Vec<_> = calls.into_iter().map(|call| call.wait().unwrap()).collect();
        assert_eq!(doubled, [0, 2, 4, 6, 8]);
        // Nobody waits for this one.
        drop(double.start(other, &1).unwrap());
        world.barrier().unwrap();
    });
}

/// A rank that makes no call gets no more than the window of notices and of started calls.
#[test]
fn a_flood_waits_at_its_source() {
    const CALLS: usize = 5_000;
    for backend in BACKENDS {
        job_with(&Options::with_backend(backend), 2, |world| {
            let taken = Arc::new(AtomicUsize::new(0));
            let (count, before) = (taken.clone(), world.stats().unwrap().unexpected_bytes_peak);
            let take = world
                .serve(move |_, text: String| {
                    count.fetch_add(1, Ordering::Relaxed);
                    text.len()
                })
                .unwrap();
            if world.rank() == 1 {
                thread::sleep(Duration::from_millis(30));
                world.barrier().unwrap();
                let peak = world.stats().unwrap().unexpected_bytes_peak;
                assert!(peak <= before.max(256 * 1_100), "{peak} bytes");
                assert_eq!(taken.load(Ordering::Relaxed), CALLS + CALLS / 10);
                return;
            }
            let message = "a".repeat(500);
            (0..CALLS).for_each(|_| take.notify(1, &message).unwrap());
            let calls: Vec<_> = (0..CALLS / 10).map(|_| take.start(1, &message).unwrap()).collect();
            calls.into_iter().for_each(|call| assert_eq!(call.wait().unwrap(), 500));
            world.barrier().unwrap();
        });
    }
}

/// Requests that take most of the window each, between ranks that flood each other.
#[test]
fn long_requests_both_ways() {
    job(2, |world| {
        let other = 1 - world.rank();
        let echo = world.serve(|_, text: String| text.len()).unwrap();
        let forward = {
            let echo = echo.clone();
            world
                .serve(move |caller, len: usize| echo.call(caller, &"a".repeat(len)).unwrap())
                .unwrap()
        };
        for len in [100_000, 5_000_000] {
            let calls: Vec<_> = (0..8).map(|_| forward.start(other, &len).unwrap()).collect();
            calls.into_iter().for_each(|call| assert_eq!(call.wait().unwrap(), len));
            (0..4).for_each(|_| echo.notify(other, &"b".repeat(len)).unwrap());
        }
        world.quiesce().unwrap();
    });
}

#[test]
fn threads_of_all_ranks_call_at_once() {
    job(2, |world| {
        world.progress_thread().unwrap();
        let table = Mutex::new(BTreeMap::<u32, u64>::new());
        let add = world
            .serve(move |_, (key, by): (u32, u64)| {
                let mut table = table.lock().unwrap_or_else(PoisonError::into_inner);
                let value = table.entry(key).or_default();
                *value += by;
                *value
            })
            .unwrap();
        thread::scope(|scope| {
            for thread in 0..4 {
                let add = add.clone();
                scope.spawn(move || {
                    for call in 0..200 {
                        add.call(call % 2, &(thread, 1)).unwrap();
                    }
                });
            }
        });
        world.barrier().unwrap();
        for (rank, key) in [(0, 0), (0, 3), (1, 1), (1, 2)] {
            assert_eq!(add.call(rank, &(key, 0)).unwrap(), 200, "of both ranks");
        }
        world.barrier().unwrap();
    });
}

/// The rank that is called makes no call itself.
#[test]
fn a_progress_thread_runs_handlers_beside_computation() {
    job(2, |world| {
        world.progress_thread().unwrap();
        let (sent, received) = mpsc::channel();
        let tell =
            world.serve(move |caller, word: String| sent.send((caller, word)).unwrap()).unwrap();
        if world.rank() == 0 {
            tell.call(1, &"now".to_owned()).unwrap();
        } else {
            assert_eq!(received.recv().unwrap(), (0, "now".to_owned()));
        }
        world.barrier().unwrap();
    });
}

#[test]
fn communicators_and_contexts_have_services_of_their_own() {
    let options = Options { contexts: 2, ..Options::default() };
    job_with(&options, 4, |world| {
        let rank = world.rank();
        let half = world.split((rank % 2) as u32, -(rank as i32)).unwrap();
        let apart = world.on_endpoint(1).unwrap();
        let whose = half.serve(move |caller, ()| (rank, caller)).unwrap();
        let names = apart.serve(move |caller, ()| format!("{rank} for {caller}")).unwrap();
        // Ranks of a communicator count from 0, here from the highest rank down.
        for peer in 0..2 {
            assert_eq!(whose.call(peer, &()).unwrap(), (rank % 2 + 2 * (1 - peer), half.rank()));
        }
        let error = whose.call(2, &()).unwrap_err();
        assert_eq!(error.class(), ErrorClass::Rank, "{error}");
        drop(half);
        // A rank that waits in one context makes no progress in the other.
        world.barrier().unwrap();
        assert_eq!(names.call(3, &()).unwrap(), format!("3 for {rank}"));
        apart.barrier().unwrap();
    });
}

/// Work that makes more work, by notices in a random tree, has ended when all ranks are quiet.
#[test]
fn quiescence_is_found_when_all_work_is_done() {
    for seed in 0..20 {
        job(3, move |world| {
            let done = Arc::new(AtomicU64::new(0));
            let (count, twin) = (done.clone(), world.dup().unwrap());
            let work = twin
                .serve_recursive(
                    move |work: &Service<(u64, u32), ()>, _, (seed, size): (u64, u32)| {
                        count.fetch_add(1, Ordering::Relaxed);
                        let mut random = Numbers(seed);
                        // The children share what is left.
                        let mut left = size - 1;
                        while left > 0 {
                            let part = 1 + random.below(left as usize) as u32;
                            work.notify(random.below(3), &(random.next_number(), part)).unwrap();
                            left -= part;
                        }
                    },
                )
                .unwrap();
            for round in 0..3 {
                if world.rank() == 0 {
                    work.notify(1, &(seed, 3_000 + round)).unwrap();
                }
                twin.quiesce().unwrap();
                let all = world
                    .start(collective::all_reduce(vec![done.load(Ordering::Relaxed)], Op::Sum));
                let expected: u32 = (0..=round).map(|round| 3_000 + round).sum();
                assert_eq!(all.unwrap().wait().unwrap().0, [u64::from(expected)]);
            }
        });
    }
}

#[test]
fn a_handler_does_not_wait_for_itself() {
    job(1, |world| {
        let on = Communicator::clone(world);
        let wait = world.try_serve(move |_, ()| on.quiesce()).unwrap();
        let error = refused(wait.call(0, &()));
        assert!(
            matches!(&error, ServiceError::Failed { message, .. } if message.starts_with("a handler"))
        );
    });
}

/// What a program may do with a table that is spread over the ranks.
#[derive(Debug, Serialize, Deserialize)]
enum Act {
    Put(u64, u64),
    Get(u64),
    Add(u64, u64),
}

fn act(table: &mut BTreeMap<u64, u64>, act: &Act) -> Option<u64> {
    match *act {
        Act::Put(key, value) => table.insert(key, value),
        Act::Get(key) => table.get(&key).copied(),
        Act::Add(key, by) => {
            let value = table.entry(key).or_default();
            *value = value.wrapping_add(by);
            Some(*value)
        }
    }
}

/// Random acts on a distributed table do what they do to a table of one's own.
#[test]
fn a_distributed_table_is_like_a_local_one() {
    for seed in 0..10 {
        let options = Options::with_backend(BACKENDS[seed as usize % 3]);
        job_with(&options, 3, move |world| {
            let table = Mutex::new(BTreeMap::new());
            let remote = world
                .serve(move |_, request: Act| {
                    act(&mut table.lock().unwrap_or_else(PoisonError::into_inner), &request)
                })
                .unwrap();
            let (mut random, mut own) = (Numbers(10 * seed + world.rank() as u64), BTreeMap::new());
            for _ in 0..300 {
                // The keys of each rank are its own, and lie on all ranks.
                let key = (100 * world.rank() + random.below(20)) as u64;
                let request = match random.below(3) {
                    0 => Act::Put(key, random.next_number()),
                    1 => Act::Get(key),
                    _ => Act::Add(key, random.next_number()),
                };
                let expected = act(&mut own, &request);
                assert_eq!(
                    remote.call(key as usize % 3, &request).unwrap(),
                    expected,
                    "{request:?}"
                );
            }
            // One key of all, to which they add without waiting.
            let calls: Vec<_> =
                (0..100).map(|by| remote.start(1, &Act::Add(999, by)).unwrap()).collect();
            for call in calls {
                assert!(call.wait().unwrap().is_some());
            }
            world.barrier().unwrap();
            assert_eq!(remote.call(1, &Act::Get(999)).unwrap(), Some(3 * 4950));
        });
    }
}

/// A rank that has come to its end serves the others until they come there, too; what handlers started is done then.
#[test]
fn a_world_ends_after_the_last_call() {
    for finishes in [false, true] {
        let hops = Arc::new(AtomicU64::new(0));
        let seen = hops.clone();
        let outcome = try_job(&Options::default(), 3, move |world| {
            let (hops, size) = (seen.clone(), world.size());
            let next = (world.rank() + 1) % size;
            let pass = world
                .serve_recursive(move |pass: &Service<u32, ()>, _, left: u32| {
                    hops.fetch_add(1, Ordering::Relaxed);
                    if left > 0 {
                        pass.notify(next, &(left - 1)).unwrap();
                    }
                })
                .unwrap();
            if world.rank() == 1 {
                (0..500).for_each(|_| pass.call(0, &0).unwrap());
                pass.notify(2, &99).unwrap();
            }
            if finishes {
                world.finish().unwrap();
                let error = pass.call(0, &0).unwrap_err();
                assert!(error.to_string().contains("finished"), "{error}");
            }
        });
        outcome.unwrap();
        assert_eq!(hops.load(Ordering::Relaxed), 600);
        assert_eq!(Arc::strong_count(&hops), 1, "the handlers are gone");
    }
}

/// A chain of notices that starts on one communicator goes on, on another one and in other contexts, until it ends.
#[test]
fn a_world_ends_after_calls_between_communicators_and_contexts() {
    let options = Options { contexts: 2, ..Options::default() };
    for finishes in [false, true] {
        let hops = Arc::new(AtomicU64::new(0));
        let seen = hops.clone();
        let outcome = try_job(&options, 3, move |world| {
            let (hops, rank) = (seen.clone(), world.rank());
            let next = (rank + 1) % 3;
            let pass = world
                .serve_recursive(move |pass: &Service<u32, ()>, _, left: u32| {
                    thread::sleep(Duration::from_millis(1));
                    hops.fetch_add(1, Ordering::Relaxed);
                    if left > 0 {
                        pass.notify(next, &(left - 1)).unwrap();
                    }
                })
                .unwrap();
            let slowly = move |_, (pause, left): (u64, u32)| {
                thread::sleep(Duration::from_millis(pause));
                pass.call(next, &left).unwrap();
            };
            let second = world.dup().unwrap().serve(slowly.clone()).unwrap();
            let third = world.on_endpoint(1).unwrap().serve(slowly).unwrap();
            if rank == 1 {
                second.notify(2, &(20, 29)).unwrap();
                third.notify(0, &(100, 29)).unwrap();
            }
            drop((second, third));
            if finishes {
                world.finish().unwrap();
            }
        });
        outcome.unwrap();
        assert_eq!(hops.load(Ordering::Relaxed), 60);
        assert_eq!(Arc::strong_count(&hops), 1, "the handlers are gone");
    }
}

/// The loss of a rank ends the calls that need it, whether they wait for its answer or for room.
#[test]
fn calls_to_a_lost_rank_fail() {
    let outcome = try_job(&Options::default(), 3, |world| {
        let stuck = world.serve(|_, (): ()| thread::sleep(Duration::from_millis(1))).unwrap();
        if world.rank() == 2 {
            world.recv(&mut 0u8, 0, 1).unwrap();
            panic!("a wall was hit");
        }
        if world.rank() == 0 {
            world.send(&0u8, 2, 1).unwrap();
        }
        let error = loop {
            if let Err(error) = stuck.call(2, &()) {
                break error;
            }
        };
        assert_eq!(
            (error.class(), error.lost_rank()),
            (ErrorClass::ProcFailed, Some(2)),
            "{error}"
        );
        assert!(stuck.start(2, &()).is_err() && stuck.notify(2, &()).is_err());
        // The others go on.
        stuck.call(1 - world.rank(), &()).unwrap();
        world.sendrecv(&0u8, 1 - world.rank(), 7, &mut 0u8, 1 - world.rank(), 7).unwrap();
    });
    assert!(outcome.unwrap_err().to_string().contains("a wall was hit"));
}

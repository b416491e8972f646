//! Clients, contexts, locks and posted work.

mod support;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;

use mpj_doubles::numbers::Numbers;
use pami::{Client, Code, Context, Error, Guard, Hints, Outcome, SendCall};
use support::{Kind, Log, Meeting, Task, run, run_with};
use transport_lapi::Source;

#[test]
fn clients_contexts_and_endpoints() {
    let mut clients = Client::in_process("first", 2, 3).unwrap();
    let second = Client::in_process("second", 1, 1).unwrap();
    assert_eq!((clients[1].name(), second[0].name()), ("first", "second"));
    let client = &mut clients[1];
    assert_eq!((client.task(), client.num_tasks(), client.num_contexts()), (1, 2, 3));
    assert_eq!(client.local_tasks().collect::<Vec<_>>(), [0, 1]);
    assert!(client.wtime() >= 0.0);
    let two = client.create_contexts(2).unwrap();
    assert_eq!(two[1].endpoint(), client.endpoint(1, 1).unwrap());
    let error = client.create_contexts(2).map(|_| ()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "task 1: 2 more contexts; the client was created with 3, of which 1 are left"
    );
    assert_eq!(client.create_contexts(1).unwrap()[0].endpoint().offset(), 2);
    for (task, offset) in [(2, 0), (0, 3), (0, usize::MAX)] {
        assert!(matches!(client.endpoint(task, offset), Err(Error::NoEndpoint { .. })));
    }
    let error = client.destroy().unwrap_err();
    assert!(matches!(error, Error::ContextsLeft { left: 2, .. }) && error.code() == Code::Inval);
    assert!(matches!(Client::create("", 1), Err(Error::Name { .. })));
    drop(two);
    thread::scope(|scope| {
        for client in &mut clients {
            scope.spawn(|| {
                client.destroy().unwrap();
                assert!(matches!(client.destroy(), Err(Error::Destroyed { .. })));
                assert!(matches!(client.create_contexts(0), Err(Error::Destroyed { .. })));
            });
        }
    });
}

#[test]
fn posted_work_runs_until_it_is_done_and_in_order() {
    run(Kind::Threads, 1, |task| {
        let context = &task.contexts[0];
        let (log, stop) = (Log::new(), Arc::new(AtomicBool::new(false)));
        for number in 0..3 {
            let (log, stop) = (log.clone(), Arc::clone(&stop));
            context.post(move |_| {
                log.push(number);
                match number == 1 && !stop.load(Ordering::Relaxed) {
                    true => Outcome::Again,
                    false => Outcome::Done,
                }
            });
        }
        let mut guard = task.lock();
        assert_eq!(guard.advance(0).unwrap(), Outcome::Again, "no iteration, no work");
        assert_eq!(guard.advance(10).unwrap(), Outcome::Done);
        assert_eq!(log.get(), [0, 1, 2]);
        let to = log.clone();
        context.post(move |_| {
            to.push(3);
            Outcome::Done
        });
        assert_eq!(guard.advance(10).unwrap(), Outcome::Done);
        stop.store(true, Ordering::Relaxed);
        assert_eq!(guard.advance(10).unwrap(), Outcome::Done);
        assert_eq!(guard.advance(10).unwrap(), Outcome::Again);
        assert_eq!(log.get(), [0, 1, 2, 1, 3, 1], "what is done again keeps its place");
    });
}

/// Work that panics is dropped; the work behind it runs at the next advance.
#[test]
fn posted_work_survives_a_panic_of_other_work() {
    run(Kind::Threads, 1, |task| {
        let log = Log::new();
        for number in 0..3 {
            let log = log.clone();
            task.contexts[0].post(move |_| {
                assert_ne!(number, 1, "the second one fails");
                log.push(number);
                Outcome::Done
            });
        }
        let mut guard = task.lock();
        let mut advance = || guard.advance(1);
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(&mut advance)).is_err());
        assert_eq!(advance().unwrap(), Outcome::Done);
        assert_eq!(log.get(), [0, 2]);
    });
}

#[test]
fn a_lock_is_refused_to_others_to_its_own_thread_and_in_callbacks() {
    run_with(Kind::Threads, 1, 2, |task| {
        let [first, second] = &task.contexts[..] else { panic!("there are two") };
        let guard = first.lock().unwrap();
        assert!(matches!(first.lock().map(|_| ()), Err(Error::Held { offset: 0, .. })));
        assert!(matches!(first.trylock().map(|_| ()), Err(Error::Held { offset: 0, .. })));
        thread::scope(|scope| {
            let other = scope.spawn(|| first.trylock().unwrap().is_none());
            assert!(other.join().unwrap(), "PAMI_EAGAIN");
        });
        drop(guard);
        assert!(first.trylock().unwrap().is_some());

        // Contexts live longer than what is posted, so the test lends them.
        let found = Log::new();
        let contexts: &'static [Context; 2] = {
            let mut client = Client::in_process("inner", 1, 2).unwrap().remove(0);
            let contexts = client.create_contexts(2).unwrap();
            std::mem::forget(client);
            Box::leak(Box::new(contexts.try_into().ok().unwrap()))
        };
        let to = found.clone();
        contexts[0].post(move |_| {
            let text =
                |result: Result<Guard<'_>, Error>| result.map(|_| ()).unwrap_err().to_string();
            to.push(text(contexts[0].lock()));
            to.push(text(contexts[1].lock()));
            let mut other = contexts[1].trylock().unwrap().expect("nobody holds it");
            assert_eq!(other.advance(1).unwrap(), Outcome::Again, "another context may advance");
            Outcome::Done
        });
        let mut guard = contexts[0].lock().unwrap();
        assert_eq!(guard.advance(1).unwrap(), Outcome::Done);
        assert_eq!(
            found.get(),
            [
                "task 0: this thread holds context 0 already; use its guard, or the argument of the callback",
                "task 0: a callback locks context 1; use trylock, or post the work",
            ]
        );
        drop(guard);
        drop(second.lock().unwrap());
        true
    });
}

#[test]
fn several_contexts_advance_together() {
    run_with(Kind::Threads, 1, 3, |task| {
        let log = Log::new();
        for (number, context) in task.contexts.iter().enumerate() {
            let log = log.clone();
            context.post(move |_| {
                log.push(number);
                Outcome::Done
            });
        }
        let mut guards: Vec<_> = task.contexts[..2].iter().map(|one| one.lock().unwrap()).collect();
        assert_eq!(Guard::advancev(&mut guards, 5).unwrap(), Outcome::Done);
        assert_eq!(Guard::advancev(&mut guards, 5).unwrap(), Outcome::Again);
        assert_eq!(log.get(), [0, 1]);
        drop(guards.pop());
        thread::scope(|scope| {
            let other = || Context::trylock_advancev(&task.contexts, 5).unwrap();
            assert_eq!(scope.spawn(other).join().unwrap(), Outcome::Done);
            assert_eq!(scope.spawn(other).join().unwrap(), Outcome::Again, "one is held");
        });
        assert_eq!(log.get(), [0, 1, 2]);
        true
    });
}

/// Messages are queued in a context that the other task still needs while this one ends its client.
#[test]
fn a_client_that_is_destroyed_sends_what_is_queued_in_every_context() {
    const MESSAGES: usize = 20_000;
    run_with(Kind::Threads, 2, 2, |task| {
        let come = Log::new();
        let to = come.clone();
        let mut guard = task.contexts[1].lock().unwrap();
        guard.dispatch_set(0, move |_, _| to.push(()), Hints::default()).unwrap();
        if task.id() == 0 {
            let dest = task.client.endpoint(1, 1).unwrap();
            for _ in 0..MESSAGES {
                let _ = guard.send_immediate(dest, 0, &[1; 100], &[]).unwrap();
            }
        } else {
            come.wait_in(&mut guard, MESSAGES);
        }
        true
    });
}

/// A random program: several threads of each task post work to all its contexts, which sends to random endpoints of the
/// other task; everything arrives once.
#[test]
fn random_programs_of_posts_and_advances() {
    const CONTEXTS: usize = 3;
    const THREADS: usize = 3;
    const ROUNDS: usize = 100;
    for (kind, seed) in [(Kind::Threads, 1), (Kind::Shm, 2), (Kind::Channels, 3)] {
        run_with(kind, 2, CONTEXTS, move |task: &Task| {
            let (sums, came) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
            for context in &task.contexts {
                let (sums, came) = (Arc::clone(&sums), Arc::clone(&came));
                let take = move |_: &mut pami::Section<'_>, message: pami::Message<'_>| {
                    let number = u64::from_le_bytes(message.header.try_into().unwrap());
                    sums.fetch_add(number as usize, Ordering::Relaxed);
                    came.fetch_add(1, Ordering::Relaxed);
                };
                context.lock().unwrap().dispatch_set(0, take, Hints::default()).unwrap();
            }
            let all = Barrier::new(THREADS);
            thread::scope(|scope| {
                for thread in 0..THREADS {
                    let (all, came) = (&all, &came);
                    scope.spawn(move || {
                        let mut numbers = Numbers(seed * 100 + thread as u64);
                        all.wait();
                        for round in 0..ROUNDS {
                            let dest = task
                                .client
                                .endpoint(1 - task.id(), numbers.below(CONTEXTS))
                                .unwrap();
                            let len = [0, 10, 40_000][numbers.below(3)];
                            let number = (thread * ROUNDS + round) as u64;
                            let mut tries = numbers.below(3);
                            task.contexts[numbers.below(CONTEXTS)].post(move |section| {
                                if tries > 0 {
                                    tries -= 1;
                                    return Outcome::Again;
                                }
                                let header = &number.to_le_bytes();
                                let data = Source::from(vec![7; len]);
                                section
                                    .send(SendCall { header, data, ..SendCall::new(dest, 0) })
                                    .unwrap();
                                Outcome::Done
                            });
                            if numbers.below(2) == 0 {
                                let _ = Context::trylock_advancev(&task.contexts, 1).unwrap();
                            }
                        }
                        while came.load(Ordering::Relaxed) < THREADS * ROUNDS {
                            if Context::trylock_advancev(&task.contexts, 1).unwrap()
                                == Outcome::Again
                            {
                                thread::yield_now();
                            }
                        }
                    });
                }
            });
            let count = THREADS * ROUNDS;
            assert_eq!(came.load(Ordering::Relaxed), count);
            assert_eq!(sums.load(Ordering::Relaxed), count * (count - 1) / 2);
            let meeting = Meeting::of(task, &mut task.lock());
            meeting.come(&mut task.lock());
            // What this task has posted may still have to be sent.
            while !meeting.is_met() {
                let _ = Context::trylock_advancev(&task.contexts, 1).unwrap();
            }
            true
        });
    }
}

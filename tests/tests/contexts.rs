//! Ranks with several contexts, as threads and as processes: contexts do not affect each other, and share no lock.

use std::thread;

use job::try_job;
use mpj::local::LocalError;
use mpj::tuning::{BackendChoice, Options};
use mpj::{Error, ErrorClass, World};
use mpj_harness::{Launch, Sleepers, launch};
use mpj_tests::bytes::are_all;

#[path = "../../mpj/tests/job/mod.rs"]
mod job;

const CONTEXTS: &str = env!("CARGO_BIN_EXE_contexts");

/// Messages of each thread.
const MESSAGES: usize = 1_200;
/// Their lengths, in turn.
const LENGTHS: [usize; 6] = [0, 8, 200, 3_000, 40_000, 300_000];

/// Runs a job of threads, within a time limit.
fn job<R: Send + 'static>(
    contexts: usize,
    backend: BackendChoice,
    body: impl Fn(World) -> R + Send + Sync + 'static,
) -> Vec<R> {
    let options = Options { contexts, ..Options::with_backend(backend) };
    try_job(&options, 2, body).unwrap_or_else(|error| panic!("{error}"))
}

/// Runs `contexts` on two ranks, with these options of `mpjrun`.
fn processes(options: &[&str], how: &str) -> Launch {
    launch(CONTEXTS).ranks(2).options(options).args([how])
}

#[test]
fn threads_that_use_a_context_each_never_wait_for_a_lock() {
    for backend in [BackendChoice::Eager, BackendChoice::Rendezvous] {
        let contended = job(2, backend, |world| {
            thread::scope(|scope| {
                for context in 0..world.contexts() {
                    let ranks = world.on_endpoint(context).unwrap();
                    scope.spawn(move || {
                        let other = 1 - ranks.rank();
                        for (number, len) in LENGTHS.into_iter().cycle().take(MESSAGES).enumerate()
                        {
                            let fill = [number as u8 ^ context as u8, ranks.rank() as u8];
                            let sent =
                                ranks.isend([fill[0] ^ fill[1]].repeat(len), other, 1).unwrap();
                            let mut got = vec![0; len];
                            ranks.recv(&mut got, other, 1).unwrap();
                            assert!(are_all(&got, fill[0] ^ other as u8));
                            sent.wait().unwrap();
                        }
                    });
                }
            });
            let stats = |context| world.on_endpoint(context).unwrap().stats().unwrap();
            [0, 1].map(|context| (stats(context).received, stats(context).contended))
        });
        assert_eq!(contended, [[(MESSAGES as u64, 0); 2]; 2], "{backend:?}");
    }
}

#[test]
fn messages_meet_receives_of_their_context_alone() {
    job(3, BackendChoice::Auto, |world| {
        let on = |context| world.on_endpoint(context).unwrap();
        if world.rank() == 0 {
            (0..3_u8).for_each(|context| on(context.into()).send(&[context], 1, 7).unwrap());
            return;
        }
        for context in [2, 0, 1] {
            let mut got = [9_u8];
            on(context).recv(&mut got, mpj::ANY_SOURCE, mpj::ANY_TAG).unwrap();
            assert_eq!(usize::from(got[0]), context);
            assert!(on(context).iprobe(mpj::ANY_SOURCE, mpj::ANY_TAG).unwrap().is_none());
        }
    });
}

#[test]
fn each_context_has_its_communicators_and_barriers() {
    job(2, BackendChoice::Auto, |world| {
        let further = world.on_endpoint(1).unwrap();
        let (own, copy) = (world.dup().unwrap(), further.dup().unwrap());
        copy.barrier().unwrap();
        own.barrier().unwrap();
        let other = 1 - world.rank();
        for (number, within) in (0_u8..).zip([&*world, &own, &further, &copy]) {
            within.send(&[number], other, 0).unwrap();
        }
        for (number, within) in
            (0_u8..).zip([&*world, &own, &further, &copy]).collect::<Vec<_>>().into_iter().rev()
        {
            let mut got = [99];
            within.recv(&mut got, other, 0).unwrap();
            assert_eq!(got, [number]);
        }
    });
}

#[test]
fn a_context_that_there_is_not_is_refused_with_what_to_change() {
    job(2, BackendChoice::Auto, |world| {
        assert_eq!(world.contexts(), 2);
        let refused = world.on_endpoint(2).map(drop).unwrap_err();
        assert!(matches!(refused, Error::Context { asked: 2, contexts: 2 }));
        let text = refused.to_string();
        assert!(text.contains("contexts 0 to 1") && text.contains("--contexts"), "{text}");
    });
    for contexts in [0, 5] {
        let options = Options { contexts, ..Options::default() };
        let Err(LocalError::Setup(refused)) = try_job(&options, 2, drop) else {
            panic!("{contexts} contexts are not possible");
        };
        let expected = format!("a rank has 1 to 4 contexts, not {contexts}");
        assert_eq!(refused.to_string(), expected);
    }
}

#[test]
fn requests_of_several_contexts_are_not_waited_for_together() {
    job(2, BackendChoice::Auto, |world| {
        let other = 1 - world.rank();
        let further = world.on_endpoint(1).unwrap();
        let mut requests = vec![
            world.irecv(vec![0_u8], other, 1).unwrap(),
            further.irecv(vec![0_u8], other, 1).unwrap(),
        ];
        assert!(matches!(mpj::wait_any(&mut requests), Err(Error::Mixed)));
        world.send(&[1_u8], other, 1).unwrap();
        further.send(&[2_u8], other, 1).unwrap();
        mpj::wait_all(&mut requests).unwrap();
        let got: Vec<_> = requests.into_iter().map(|one| one.wait().unwrap().0[0]).collect();
        assert_eq!(got, [1, 2]);
    });
}

#[test]
fn a_success_in_any_context_settles_an_error_in_another() {
    let ended = job(2, BackendChoice::Auto, |world| {
        let further = world.on_endpoint(1).unwrap();
        let refused = further.send(&[1_u8], 9, 0).unwrap_err();
        assert_eq!(refused.class(), ErrorClass::Rank);
        world.barrier().unwrap();
        // The drop waits for the others, which it would not do after an error that counts.
    });
    assert_eq!(ended.len(), 2);
}

#[test]
fn a_world_ends_in_all_contexts_whatever_is_under_way_in_them() {
    for backend in [BackendChoice::Eager, BackendChoice::Rendezvous] {
        let sleepers = Sleepers::default();
        job(4, backend, move |world| {
            let last = world.on_endpoint(3).unwrap();
            if world.rank() == 0 {
                drop(last.isend(vec![5_u8; 8 << 20], 1, 7).unwrap());
                sleepers.join();
                return world.finish().unwrap();
            }
            sleepers.wait_until_asleep(1);
            let mut got = vec![0_u8; 8 << 20];
            last.recv(&mut got, 0, 7).unwrap();
            assert!(are_all(&got, 5));
            world.finish().unwrap();
            assert!(last.barrier().is_err(), "the context has ended with its world");
        });
    }
}

#[test]
fn a_rank_that_panics_ends_calls_in_every_context() {
    let options = Options { contexts: 2, ..Options::default() };
    let outcome = try_job(&options, 2, |world| {
        assert!(world.rank() == 1, "a wall was hit");
        let error = world.on_endpoint(1).unwrap().recv(&mut [0_u8], 0, 0).unwrap_err();
        assert_eq!(error.class(), ErrorClass::ProcFailed);
    });
    assert!(matches!(outcome, Err(LocalError::Panicked { rank: 0, .. })));
}

#[test]
fn processes_whose_threads_use_a_context_each_never_wait_for_a_lock() {
    for backend in ["eager", "rendezvous"] {
        let outcome =
            processes(&["--contexts", "2", "--backend", backend], "exchange").expect_quiet();
        let mut lines: Vec<_> = outcome.stdout.lines().collect();
        lines.sort_unstable();
        let [zero, one] = ["context 0: 0 times contended", "context 1: 0 times contended"];
        assert_eq!(lines, [zero, zero, one, one], "{backend}");
    }
}

#[test]
fn a_job_has_the_contexts_that_it_is_started_with() {
    let outcome = processes(&[], "exchange").expect_quiet();
    assert!(!outcome.stdout.contains("context 1"), "{outcome:?}");
    for (contexts, has) in [("1", "context 0 alone"), ("4", "contexts 0 to 3")] {
        let outcome = processes(&["--contexts", contexts], "beyond").expect(3);
        outcome.says(has);
    }
    processes(&["--contexts", "9"], "exchange").run().says("a rank has 1 to 4 contexts");
}

#[test]
fn a_deadlock_of_threads_in_several_contexts_is_found_and_told() {
    let outcome = processes(&["--contexts", "3"], "deadlock").expect(125);
    outcome.says_all(&["world ", "world, context 1 ", "world, context 2 "]);
}

/// The message has come, and nobody will ever take it in.
#[test]
fn a_message_to_a_context_in_which_nobody_waits_hides_no_deadlock() {
    processes(&["--contexts", "2"], "unattended").expect(125);
}

#[test]
fn a_thread_that_is_about_to_send_in_another_context_is_waited_for() {
    processes(&["--contexts", "2", "--look-every", "0.01"], "late").expect_quiet();
}

#[test]
fn what_is_under_way_in_a_context_is_fetched_at_the_end() {
    for get in ["auto", "am"] {
        let export = format!("-xMPJ_GET={get}");
        processes(&["--contexts", "2", &export], "fetched").expect_quiet();
    }
}

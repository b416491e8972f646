//! Fences: what is in place when they return, and which tasks wait for which.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use transport_lapi::{Amsend, Arrival, HeaderAction, LapiError, Next};

use crate::support::buffers::{Landing, pattern, source};
use crate::support::job::{Kind, run};
use mpj_doubles::numbers::Numbers;

const LONG: usize = 2 << 20;

/// The landings of messages, by origin.
type Landings = Vec<Landing>;

fn store(landings: &mut Landings, message: Arrival<'_>) -> HeaderAction<Landings> {
    let into = landings[message.origin as usize].region(message.len as usize);
    HeaderAction::Deliver { into: into.into(), next: Next::Nothing }
}

/// When the fence has returned at the origin, the bytes are at their destination in the target; the origin itself reads
/// them there.
#[test]
fn after_a_fence_the_data_is_in_place() {
    for kind in [Kind::Threads, Kind::Shm] {
        let landings: Landings = (0..9).map(|_| Landing::new(LONG)).collect();
        let of_task = move |landings: &[Landing], task: u32| -> Landings {
            landings[task as usize * 3..][..3].to_vec()
        };
        let states = landings.clone();
        run(
            kind,
            3,
            move |task| of_task(&states, task),
            move |context| {
                context.session().unwrap().addr_set(1, store).unwrap();
                context.gfence().unwrap();
                let me = context.task();
                for (round, len) in [0, 8, 8192, 50_000, LONG].into_iter().enumerate() {
                    let seed = u64::from(me) * 100 + round as u64;
                    for target in 0..3 {
                        let call = Amsend::new(target, 1, &[], source(pattern(seed, len)));
                        let _ = context.session().unwrap().amsend(call).unwrap();
                    }
                    context.fence().unwrap();
                    for target in 0..3 {
                        let landing = of_task(&landings, target)[me as usize];
                        assert!(landing.holds(pattern(seed, len)), "{kind:?}: {len} bytes");
                    }
                }
                context.gfence().unwrap();
            },
        );
    }
}

/// The same by a fence that does not block, of one target.
#[test]
fn a_fence_begins_and_ends_without_a_wait() {
    for kind in Kind::ALL {
        let landings: Landings = (0..2).map(|_| Landing::new(LONG)).collect();
        let states = landings.clone();
        run(
            kind,
            2,
            move |_| states.clone(),
            move |context| {
                context.session().unwrap().addr_set(1, store).unwrap();
                context.gfence().unwrap();
                if context.task() == 0 {
                    let mut session = context.session().unwrap();
                    let call = Amsend::new(1, 1, &[], source(pattern(3, LONG)));
                    let _ = session.amsend(call).unwrap();
                    session.begin_fence(Some(1)).unwrap();
                    assert!(session.is_fenced(Some(0)).unwrap(), "nothing was sent to task 0");
                    assert!(!session.is_fenced(Some(1)).unwrap(), "task 1 has not answered");
                    assert!(!session.is_fenced(None).unwrap());
                    assert!(matches!(
                        session.begin_fence(Some(2)),
                        Err(LapiError::Tgt { target: 2, num_tasks: 2 })
                    ));
                    drop(session);
                    context
                        .wait(|session| session.is_fenced(Some(1)).unwrap().then_some(()))
                        .unwrap();
                    assert!(landings[0].holds(pattern(3, LONG)), "{kind:?}");
                }
                context.gfence().unwrap();
            },
        );
    }
}

/// A fence waits for gets too.
#[test]
fn after_a_fence_gets_are_complete() {
    for kind in Kind::ALL {
        run(
            kind,
            1,
            |_| (),
            move |context| {
                let landing = Landing::new(LONG);
                let mut session = context.session().unwrap();
                let remote = session.register(source(pattern(7, LONG))).unwrap();
                session.get(0, remote, 0, landing.region(LONG), Next::Nothing).unwrap();
                drop(session);
                context.fence().unwrap();
                assert!(landing.holds(pattern(7, LONG)), "{kind:?}");
                context.session().unwrap().deregister(remote, Next::Nothing);
            },
        );
    }
}

/// Nothing was sent, so the fence asks no task: it returns although the peer does nothing.
#[test]
fn a_fence_without_traffic_needs_nobody() {
    run(
        Kind::Threads,
        2,
        |_| (),
        |context| {
            if context.task() == 0 {
                context.fence().unwrap();
            }
        },
    );
}

/// Two threads of one task fence at the same time.
#[test]
fn threads_of_one_task_fence_together() {
    run(
        Kind::Threads,
        2,
        |_| vec![Landing::new(LONG); 2],
        |context| {
            context.session().unwrap().addr_set(1, store).unwrap();
            context.gfence().unwrap();
            if context.task() == 0 {
                std::thread::scope(|scope| {
                    for thread in 0..3_u64 {
                        let context = Arc::clone(context);
                        scope.spawn(move || {
                            for round in 0..50 {
                                let udata = source(pattern(thread * 100 + round, 9_000));
                                let call = Amsend::new(1, 1, &[], udata);
                                let _ = context.session().unwrap().amsend(call).unwrap();
                                context.fence().unwrap();
                            }
                        });
                    }
                });
            }
            context.gfence().unwrap();
        },
    );
}

/// No task leaves a global fence before all have entered it, round after round.
#[test]
fn a_global_fence_is_a_barrier() {
    const ROUNDS: usize = 60;
    for (kind, num_tasks) in [1, 2, 3, 5].into_iter().flat_map(|n| Kind::ALL.map(|kind| (kind, n)))
    {
        let arrived: Arc<Vec<AtomicUsize>> =
            Arc::new((0..ROUNDS).map(|_| AtomicUsize::new(0)).collect());
        run(
            kind,
            num_tasks,
            |_| (),
            move |context| {
                let mut numbers = Numbers(context.task().into());
                for (round, count) in arrived.iter().enumerate() {
                    if numbers.below(20) == 0 {
                        std::thread::sleep(Duration::from_millis(1));
                    }
                    count.fetch_add(1, Ordering::SeqCst);
                    context.gfence().unwrap();
                    let seen = count.load(Ordering::SeqCst);
                    assert_eq!(seen, num_tasks, "{kind:?}, round {round}");
                }
            },
        );
    }
}

/// After a global fence, messages from every task to every task are in place.
#[test]
fn after_a_global_fence_all_data_is_in_place() {
    for num_tasks in [2, 3, 5] {
        let landings = move |_| (0..num_tasks).map(|_| Landing::new(30_000)).collect::<Landings>();
        run(Kind::Threads, num_tasks, landings, move |context| {
            context.session().unwrap().addr_set(1, store).unwrap();
            context.gfence().unwrap();
            for round in 0..20_u64 {
                let seed = |origin: u32| round * 100 + u64::from(origin);
                for target in 0..num_tasks as u32 {
                    let udata = source(pattern(seed(context.task()), 30_000));
                    let call = Amsend::new(target, 1, &[], udata);
                    let _ = context.session().unwrap().amsend(call).unwrap();
                }
                context.gfence().unwrap();
                let landings = context.session().unwrap().state.clone();
                for (origin, landing) in landings.iter().enumerate() {
                    assert!(landing.holds(pattern(seed(origin as u32), 30_000)), "round {round}");
                }
                context.gfence().unwrap();
            }
        });
    }
}

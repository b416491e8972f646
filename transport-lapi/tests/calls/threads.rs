//! Several threads of one task share its context; sleeping threads are woken by every event that they wait for.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;

use mpj_harness::{Sleepers, watch};
use transport_lapi::adapters::shm::{ShmAdapter, create_segment};
use transport_lapi::bootstrap::waits::{JobView, Wait};
use transport_lapi::config::{GetMode, WaitMode};
use transport_lapi::{
    Amsend, Arrival, Awaited, Context, CounterId, HeaderAction, LapiError, Next, Options,
    SendRegion, Session,
};

use crate::support::buffers::{Landing, pattern, source};
use crate::support::job::{Kind, run_with, waiting};

/// The threads that wait in a job of [`wakes_a_sleeper`].
type Waiting = Arc<Sleepers>;

fn consume<S>(_: &mut S, _: Arrival<'_>) -> HeaderAction<S> {
    HeaderAction::Consumed
}

/// A thread sleeps until the counter is incremented; meanwhile `act` runs on another thread of its task. Task 1 makes
/// no progress, so nobody else rings.
fn wakes_a_sleeper(kind: Kind, act: fn(&Context<Waiting>, CounterId)) {
    run_with(
        kind.adapters(2),
        waiting(WaitMode::Block),
        |_| Waiting::default(),
        move |context| {
            if context.task() == 1 {
                return;
            }
            let mut session = context.session().unwrap();
            session.addr_set(1, consume).unwrap();
            let (counter, sleepers) = (session.counter(), session.state.clone());
            drop(session);
            thread::scope(|scope| {
                let sleeper = scope.spawn(|| {
                    sleepers.join();
                    context.waitcntr(counter, 1)
                });
                sleepers.wait_until_asleep(1);
                act(context, counter);
                assert_eq!(sleeper.join().expect("waiting does not panic").unwrap(), 0);
            });
        },
    );
}

#[test]
fn setting_a_counter_wakes_who_waits_for_it() {
    wakes_a_sleeper(Kind::Threads, |context, counter| {
        context.session().unwrap().setcntr(counter, 1).unwrap();
    });
}

/// The message is sent at once, so the counter is incremented during the call.
#[test]
fn a_send_wakes_who_waits_for_its_origin_counter() {
    fn send(context: &Context<Waiting>, counter: CounterId) {
        let mut call = Amsend::new(1, 1, &[], SendRegion::EMPTY);
        call.on_origin = Next::Counter(counter);
        let _ = context.session().unwrap().amsend(call).unwrap();
    }
    wakes_a_sleeper(Kind::Threads, send);
}

/// The message takes several packets, for which the ring has room.
#[test]
fn a_long_send_wakes_who_waits_for_its_origin_counter() {
    fn send(context: &Context<Waiting>, counter: CounterId) {
        let mut call = Amsend::new(1, 1, &[], source(pattern(1, 100_000)));
        call.on_origin = Next::Counter(counter);
        let _ = context.session().unwrap().amsend(call).unwrap();
    }
    wakes_a_sleeper(Kind::Threads, send);
}

/// The thread that starts a get does nothing more; the sleeping one carries it out.
#[test]
fn a_get_wakes_who_waits_for_it() {
    fn get(context: &Context<Waiting>, counter: CounterId) {
        let mut session = context.session().unwrap();
        let remote = session.register(source(pattern(1, 100_000))).unwrap();
        let into = Landing::new(100_000).region(100_000);
        session.get(0, remote, 0, into, Next::Counter(counter)).unwrap();
    }
    for kind in Kind::ALL {
        wakes_a_sleeper(kind, get);
    }
}

/// A handler on the completion thread has returned: its counter must be incremented.
#[test]
fn the_completion_thread_wakes_who_waits() {
    fn defer(sleepers: &mut Waiting, _: Arrival<'_>) -> HeaderAction<Waiting> {
        let sleepers = sleepers.clone();
        HeaderAction::Then(Next::Thread(Box::new(move || sleepers.wait_until_asleep(1))))
    }
    fn send(context: &Context<Waiting>, counter: CounterId) {
        let mut session = context.session().unwrap();
        session.addr_set(2, defer).unwrap();
        let mut call = Amsend::new(0, 2, &[], SendRegion::EMPTY);
        call.tgt_cntr = Some(counter);
        let _ = session.amsend(call).unwrap();
    }
    wakes_a_sleeper(Kind::Threads, send);
}

/// The client changes its own state and calls `wake`.
#[test]
fn a_call_of_wake_wakes_who_waits_for_the_state() {
    run_with(
        Kind::Threads.adapters(1),
        waiting(WaitMode::Block),
        |_| false,
        |context| {
            let sleepers = Sleepers::default();
            thread::scope(|scope| {
                let sleeper = scope.spawn(|| {
                    sleepers.join();
                    context.wait(|session| session.state.then_some(()))
                });
                sleepers.wait_until_asleep(1);
                let mut session = context.session().unwrap();
                session.state = true;
                session.wake();
                drop(session);
                sleeper.join().expect("waiting does not panic").unwrap();
            });
        },
    );
}

/// A thread that has used the context alone has to wait when a second thread comes.
#[test]
fn a_second_thread_gets_in_while_the_first_one_waits() {
    for wait in [WaitMode::Spin, WaitMode::Adaptive, WaitMode::Block] {
        run_with(
            Kind::Threads.adapters(1),
            waiting(wait),
            |_| 0,
            |context| {
                for _ in 0..100 {
                    context.session().unwrap().state += 1;
                }
                let is_waiting = AtomicBool::new(false);
                thread::scope(|scope| {
                    scope.spawn(|| {
                        while !is_waiting.load(Ordering::Relaxed) {
                            thread::yield_now();
                        }
                        let mut session = context.session().unwrap();
                        session.state += 1;
                        session.wake();
                    });
                    let ready = |session: &mut Session<i32>| {
                        is_waiting.store(true, Ordering::Relaxed);
                        (session.state == 101).then_some(())
                    };
                    context.wait(ready).unwrap();
                });
                assert_eq!(context.session().unwrap().state, 101);
            },
        );
    }
}

/// A thread receives a message for another one, and then does other things.
#[test]
fn progress_of_one_thread_wakes_the_others() {
    for wait in [WaitMode::Block, WaitMode::Adaptive] {
        let sleepers = Sleepers::default();
        run_with(
            Kind::Threads.adapters(2),
            waiting(wait),
            |_| 0_u32,
            move |context| {
                fn count(count: &mut u32, _: Arrival<'_>) -> HeaderAction<u32> {
                    *count += 1;
                    HeaderAction::Consumed
                }
                context.session().unwrap().addr_set(1, count).unwrap();
                context.gfence().unwrap();
                if context.task() == 0 {
                    sleepers.wait_until_asleep(4);
                    for _ in 0..3 {
                        let call = Amsend::new(1, 1, &[], SendRegion::EMPTY);
                        let _ = context.session().unwrap().amsend(call).unwrap();
                    }
                    context.gfence().unwrap();
                    return;
                }
                thread::scope(|scope| {
                    for due in [1, 2, 3, 3] {
                        let sleepers = &sleepers;
                        let seen = move || {
                            sleepers.join();
                            context.wait(|session| (session.state >= due).then_some(())).unwrap();
                        };
                        scope.spawn(seen);
                    }
                });
                context.gfence().unwrap();
            },
        );
    }
}

/// Four threads send and wait for their own completions while three others wait at the target for theirs: no thread
/// gets another one's events, and none sleeps for ever.
fn many_threads(wait: WaitMode) {
    const SENDERS: usize = 4;
    const WAITERS: usize = 3;
    const MESSAGES: usize = 300;
    run_with(
        Kind::Threads.adapters(2),
        waiting(wait),
        |_| (),
        |context| {
            let mut session = context.session().unwrap();
            session.addr_set(1, consume).unwrap();
            let counters: Vec<_> = (0..SENDERS.max(WAITERS)).map(|_| session.counter()).collect();
            drop(session);
            context.gfence().unwrap();
            let (context, counters) = (&**context, &counters[..]);
            thread::scope(|scope| {
                for thread in 0..SENDERS * usize::from(context.task() == 0) {
                    scope.spawn(move || {
                        for number in 0..MESSAGES {
                            let len = [0, 8, 500, 9_000][number % 4];
                            let mut call = Amsend::new(1, 1, &[], source(pattern(1, len)));
                            call.cmpl_cntr = Some(counters[thread]);
                            call.tgt_cntr = Some(counters[number % WAITERS]);
                            let _ = context.session().unwrap().amsend(call).unwrap();
                            assert_eq!(context.waitcntr(counters[thread], 1).unwrap(), 0);
                        }
                    });
                }
                for &counter in &counters[..WAITERS * usize::from(context.task() == 1)] {
                    scope.spawn(move || {
                        for left in (0..SENDERS * MESSAGES / WAITERS).rev() {
                            let surplus = context.waitcntr(counter, 1).unwrap();
                            assert!(surplus <= left as i64, "more events than messages");
                        }
                    });
                }
            });
            context.gfence().unwrap();
            let mut session = context.session().unwrap();
            for &counter in counters {
                assert_eq!(session.getcntr(counter).unwrap(), 0);
            }
        },
    );
}

#[test]
fn many_threads_that_spin() {
    many_threads(WaitMode::Spin);
}

#[test]
fn many_threads_that_adapt() {
    many_threads(WaitMode::Adaptive);
}

#[test]
fn many_threads_that_sleep() {
    many_threads(WaitMode::Block);
}

/// Ping-pong where every wait sleeps: a lost wake-up would end it.
#[test]
fn sleeping_tasks_wake_each_other() {
    for kind in [Kind::Threads, Kind::Shm] {
        run_with(
            kind.adapters(2),
            waiting(WaitMode::Block),
            |_| (),
            |context| {
                let context: &Arc<Context<()>> = context;
                context.session().unwrap().addr_set(1, consume).unwrap();
                let counter = context.session().unwrap().counter();
                context.gfence().unwrap();
                for round in 0..2_000 {
                    if round % 2 == context.task() {
                        let mut call = Amsend::new(1 - context.task(), 1, &[], SendRegion::EMPTY);
                        call.tgt_cntr = Some(counter);
                        let _ = context.session().unwrap().amsend(call).unwrap();
                    } else {
                        context.waitcntr(counter, 1).unwrap();
                    }
                }
                context.gfence().unwrap();
            },
        );
    }
}

/// An event that never happens; records that it was checked for.
struct Never<'a>(&'a AtomicBool);

impl<S> Awaited<S> for Never<'_> {
    type Answer = ();

    fn look(&mut self, _: &mut Session<S>) -> Option<()> {
        self.0.store(true, Ordering::Relaxed);
        None
    }

    fn describe(&self, _: &Session<S>) -> Wait {
        Wait::default()
    }
}

/// A message for an abandoned context may concern buffers that have been freed.
#[test]
fn a_wait_takes_nothing_in_after_its_context_was_abandoned() {
    type Taken = Arc<AtomicUsize>;
    fn count(taken: &mut Taken, _: Arrival<'_>) -> HeaderAction<Taken> {
        taken.fetch_add(1, Ordering::Relaxed);
        HeaderAction::Consumed
    }
    watch(|| {
        for wait in [WaitMode::Spin, WaitMode::Adaptive] {
            let adapter = Kind::Threads.adapters(1).remove(0);
            let taken = Taken::default();
            let context = Context::init(adapter, taken.clone(), waiting(wait));
            context.session().unwrap().addr_set(1, count).unwrap();
            let polled = AtomicBool::new(false);
            let mut awaited = Never(&polled);
            thread::scope(|scope| {
                let waiter = scope.spawn(|| {
                    context.wait_from(context.session().unwrap(), &mut awaited).unwrap_err()
                });
                while !polled.load(Ordering::Relaxed) {
                    thread::yield_now();
                }
                let mut session = context.session().unwrap();
                assert!(session.try_amsend(0, 1, 0, SendRegion::EMPTY));
                session.abandon();
                let error = waiter.join().expect("waiting does not panic");
                assert!(matches!(error, LapiError::HndlInvalid), "{error}");
            });
            assert!(context.session().is_err(), "it stays abandoned");
            assert_eq!(taken.load(Ordering::Relaxed), 0, "the message was not taken in");
        }
    });
}

/// C4: a launcher that reads slowly does not keep the task's other threads from the session.
#[test]
fn an_inquiry_is_answered_without_the_lock() {
    watch(|| {
        let segment = create_segment("test", 1, 1).unwrap();
        let view = JobView::open(&segment).unwrap();
        let adapter = ShmAdapter::attach(segment, 0, 1, GetMode::Am).unwrap();
        let context = Context::init(adapter, (), Options::default());
        let (telling, told) = (Arc::new(Barrier::new(2)), Arc::new(Barrier::new(2)));
        context.on_inquiry({
            let (telling, told) = (telling.clone(), told.clone());
            move |_| {
                let (telling, told) = (telling.clone(), told.clone());
                move || {
                    telling.wait();
                    told.wait();
                }
            }
        });
        view.inquire(0);
        thread::scope(|scope| {
            scope.spawn(|| context.attend(context.session().unwrap()));
            telling.wait();
            drop(context.session().unwrap());
            told.wait();
        });
    });
}

//! Interrupt mode and LAPI_Nopoll_wait.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier, mpsc};
use std::thread::{self, ThreadId};

use mpj_harness::{Sleepers, eventually, watch};
use transport_lapi::adapter::AdapterError;
use transport_lapi::adapters::shm::{ShmAdapter, create_segment};
use transport_lapi::bootstrap::waits::JobView;
use transport_lapi::config::{GetMode, WaitMode};
use transport_lapi::{
    Amsend, Arrival, Context, CounterId, HeaderAction, LapiError, Next, Options, Query, SendRegion,
};

use crate::support::buffers::{Landing, pattern, source};
use crate::support::job::{Kind, run_with, waiting};

/// Tells the program about each message.
type Teller = mpsc::Sender<u64>;
type Task = Arc<Context<Teller>>;

fn tell(teller: &mut Teller, message: Arrival<'_>) -> HeaderAction<Teller> {
    let (teller, len) = (teller.clone(), message.len);
    let into = Landing::new(len as usize).region(len as usize);
    let told = move || teller.send(len).expect("the test listens");
    HeaderAction::Deliver { into: into.into(), next: Next::Unlocked(Box::new(told)) }
}

fn interrupts(context: &Arc<Context<impl Send + 'static>>, is_on: bool) {
    context.senv(Query::InterruptSet, is_on.into()).unwrap();
}

/// Two tasks whose contexts this thread uses, and what arrives at the second.
fn pair(kind: Kind, wait: WaitMode) -> (Task, Task, mpsc::Receiver<u64>) {
    let mut adapters = kind.adapters(2);
    let (teller, told) = mpsc::channel();
    let target = Context::init(adapters.remove(1), teller.clone(), waiting(wait));
    target.session().unwrap().addr_set(1, tell).unwrap();
    let origin = Context::init(adapters.remove(0), teller, waiting(wait));
    (Arc::new(origin), Arc::new(target), told)
}

/// The target's program waits for a channel, and makes no call.
#[test]
fn messages_are_handled_while_the_program_makes_no_call() {
    watch(|| {
        for kind in Kind::ALL {
            let (origin, target, told) = pair(kind, WaitMode::Adaptive);
            let counter = origin.session().unwrap().counter();
            interrupts(&target, true);
            for len in [0, 8, 20_000, 3 << 20, 0, 100] {
                let mut call = Amsend::new(1, 1, &[], source(pattern(1, len)));
                call.cmpl_cntr = Some(counter);
                let _ = origin.session().unwrap().amsend(call).unwrap();
                assert_eq!(origin.waitcntr(counter, 1).unwrap(), 0);
                assert_eq!(told.recv().unwrap(), len as u64);
            }
            target.term().unwrap();
        }
    });
}

/// A get over messages needs the target's progress.
#[test]
fn a_get_is_answered_while_the_program_makes_no_call() {
    watch(|| {
        let (origin, target, _) = pair(Kind::ShmAm, WaitMode::Block);
        interrupts(&target, true);
        let bytes = pattern(3, 300_000);
        let remote = target.session().unwrap().register(source(bytes)).unwrap();
        let (counter, landing) = (origin.session().unwrap().counter(), Landing::new(bytes.len()));
        let into = landing.region(bytes.len());
        origin.session().unwrap().get(1, remote, 0, into, Next::Counter(counter)).unwrap();
        assert_eq!(origin.waitcntr(counter, 1).unwrap(), 0);
        assert!(landing.holds(bytes));
        target.term().unwrap();
    });
}

/// The mode changes at run time; after a change to polling mode nobody makes progress any more.
#[test]
fn the_mode_changes_at_run_time() {
    watch(|| {
        let (origin, target, told) = pair(Kind::Threads, WaitMode::Adaptive);
        for round in 0..20 {
            interrupts(&target, true);
            interrupts(&target, true);
            assert_eq!(target.session().unwrap().qenv(Query::InterruptSet).unwrap(), 1);
            assert!(origin.session().unwrap().try_amsend(1, 1, 0, SendRegion::EMPTY));
            assert_eq!(told.recv().unwrap(), 0);
            interrupts(&target, false);
            interrupts(&target, false);
            assert_eq!(Arc::strong_count(&target), 1, "the thread has ended, round {round}");
            assert!(origin.session().unwrap().try_amsend(1, 1, 0, SendRegion::EMPTY));
            assert!(told.try_recv().is_err(), "nobody makes progress");
            let mut session = target.session().unwrap();
            assert_eq!(session.progress().unwrap(), 1);
            target.attend(session);
            assert_eq!(told.try_recv(), Ok(0));
        }
    });
}

/// While a thread of the program waits, it handles the messages itself.
#[test]
fn a_waiting_thread_is_not_disturbed() {
    type Handled = HashSet<ThreadId>;
    fn note(handled: &mut Handled, _: Arrival<'_>) -> HeaderAction<Handled> {
        handled.insert(thread::current().id());
        HeaderAction::Consumed
    }
    for wait in [WaitMode::Spin, WaitMode::Adaptive, WaitMode::Block] {
        let begun = Barrier::new(2);
        run_with(
            Kind::Threads.adapters(2),
            waiting(wait),
            |_| Handled::new(),
            move |context| {
                const MESSAGES: i64 = 200;
                context.session().unwrap().addr_set(1, note).unwrap();
                let counter = context.session().unwrap().counter();
                interrupts(context, true);
                context.gfence().unwrap();
                if context.task() == 0 {
                    begun.wait();
                    for _ in 0..MESSAGES {
                        let mut call = Amsend::new(1, 1, &[], SendRegion::EMPTY);
                        call.tgt_cntr = Some(counter);
                        let _ = context.session().unwrap().amsend(call).unwrap();
                    }
                } else {
                    let mut has_begun = false;
                    let all = context.wait(|session| {
                        if !std::mem::replace(&mut has_begun, true) {
                            begun.wait();
                        }
                        (session.getcntr(counter).unwrap() == MESSAGES).then_some(())
                    });
                    all.unwrap();
                    let handled = &context.session().unwrap().state;
                    assert_eq!(*handled, Handled::from([thread::current().id()]), "{wait:?}");
                }
                context.gfence().unwrap();
                context.term().unwrap();
            },
        );
    }
}

/// Both ends sleep again and again, beside their notification threads: a lost wake-up would end it.
fn ping_pong(kind: Kind, wait: WaitMode, polls: bool) {
    const ROUNDS: u32 = 400;
    run_with(
        kind.adapters(2),
        waiting(wait),
        |_| (),
        move |context| {
            let mut session = context.session().unwrap();
            session.addr_set(1, |_: &mut (), _: Arrival<'_>| HeaderAction::Consumed).unwrap();
            let counter = session.counter();
            drop(session);
            context.gfence().unwrap();
            interrupts(context, true);
            for round in 0..ROUNDS {
                if round % 2 == context.task() {
                    let mut call = Amsend::new(1 - context.task(), 1, &[], SendRegion::EMPTY);
                    call.tgt_cntr = Some(counter);
                    let _ = context.session().unwrap().amsend(call).unwrap();
                } else if polls {
                    assert_eq!(context.waitcntr(counter, 1).unwrap(), 0);
                } else {
                    assert_eq!(context.nopoll_wait(counter, 1).unwrap(), 0);
                }
            }
            context.gfence().unwrap();
            context.term().unwrap();
        },
    );
}

#[test]
fn waits_beside_the_notification_thread_are_all_served() {
    for kind in [Kind::Threads, Kind::Shm] {
        for wait in [WaitMode::Adaptive, WaitMode::Block] {
            ping_pong(kind, wait, true);
        }
    }
}

#[test]
fn waits_without_polling_are_woken_by_the_notification_thread() {
    for kind in Kind::ALL {
        ping_pong(kind, WaitMode::Adaptive, false);
    }
}

/// Without interrupt mode another thread that waits makes the progress.
#[test]
fn a_wait_without_polling_is_served_by_another_thread() {
    watch(|| {
        let context = Context::init(Kind::Threads.adapters(1).remove(0), (), Options::default());
        let mut session = context.session().unwrap();
        session.addr_set(1, |_: &mut (), _: Arrival<'_>| HeaderAction::Consumed).unwrap();
        let (counter, other) = (session.counter(), session.counter());
        let mut call = Amsend::new(0, 1, &[], SendRegion::EMPTY);
        call.tgt_cntr = Some(counter);
        let _ = session.amsend(call).unwrap();
        drop(session);
        let sleepers = Sleepers::default();
        thread::scope(|scope| {
            let waits = scope.spawn(|| {
                sleepers.join();
                context.nopoll_wait(counter, 1)
            });
            sleepers.wait_until_asleep(1);
            assert_eq!(context.session().unwrap().getcntr(counter).unwrap(), 0, "no progress");
            let polls = scope.spawn(|| context.waitcntr(other, 1));
            assert_eq!(waits.join().unwrap().unwrap(), 0);
            context.session().unwrap().setcntr(other, 1).unwrap();
            assert_eq!(polls.join().unwrap().unwrap(), 0);
        });
    });
}

/// A continuation that the only waiting thread runs may wait without polling: the notification thread polls meanwhile,
/// and also after another continuation has panicked.
#[test]
fn a_continuation_may_wait_without_polling_in_interrupt_mode() {
    watch(|| {
        for wait in [WaitMode::Spin, WaitMode::Block] {
            let context = Context::init(Kind::Threads.adapters(1).remove(0), (), waiting(wait));
            let (context, (teller, told)) = (Arc::new(context), mpsc::channel());
            let mut session = context.session().unwrap();
            session.addr_set(1, |_: &mut (), _: Arrival<'_>| HeaderAction::Consumed).unwrap();
            let counter = session.counter();
            drop(session);
            interrupts(&context, true);
            for panics in [true, false] {
                let (inner, teller) = (context.clone(), teller.clone());
                let has_ended = Arc::new(AtomicBool::new(false));
                let ends = has_ended.clone();
                let mut continuation = Some(move || {
                    assert!(!panics, "a continuation");
                    let mut call = Amsend::new(0, 1, &[], SendRegion::EMPTY);
                    call.tgt_cntr = Some(counter);
                    let _ = inner.session().unwrap().amsend(call).unwrap();
                    teller.send(inner.nopoll_wait(counter, 1)).unwrap();
                    ends.store(true, Ordering::Relaxed);
                });
                // Only the waiting thread knows of the continuation.
                let outer = context.clone();
                let waits = thread::spawn(move || {
                    outer.wait(|session| {
                        if let Some(continuation) = continuation.take() {
                            session.parts().1.when_unlocked(Box::new(continuation));
                        }
                        has_ended.load(Ordering::Relaxed).then_some(())
                    })
                });
                assert_eq!(waits.join().is_err(), panics);
            }
            assert_eq!(told.recv().unwrap().unwrap(), 0);
            context.term().unwrap();
        }
    });
}

/// A thread that sleeps on a counter without polling, while `act` runs.
fn sleeps_until(act: impl FnOnce(&Task, CounterId) + Send + 'static) -> Result<i64, LapiError> {
    watch(move || {
        let (_origin, target, _told) = pair(Kind::Threads, WaitMode::Block);
        let counter = target.session().unwrap().counter();
        let sleepers = Sleepers::default();
        thread::scope(|scope| {
            let waits = scope.spawn(|| {
                sleepers.join();
                target.nopoll_wait(counter, 2)
            });
            sleepers.wait_until_asleep(1);
            act(&target, counter);
            waits.join().expect("waiting does not panic")
        })
    })
}

#[test]
fn a_wait_without_polling_subtracts() {
    let woken = sleeps_until(|task, counter| {
        task.session().unwrap().setcntr(counter, 1).unwrap();
        task.session().unwrap().setcntr(counter, 7).unwrap();
    });
    assert_eq!(woken.unwrap(), 5);
}

#[test]
fn one_thread_at_a_time_waits_for_a_counter_without_polling() {
    let woken = sleeps_until(|task, counter| {
        let error = task.nopoll_wait(counter, 1).unwrap_err();
        assert!(matches!(error, LapiError::MultipleWaiters { index: 0 }), "{error}");
        task.session().unwrap().setcntr(counter, 2).unwrap();
    });
    assert_eq!(woken.unwrap(), 0);
}

#[test]
fn a_purge_wakes_who_waits_for_that_destination() {
    let woken = sleeps_until(|task, counter| {
        let mut session = task.session().unwrap();
        session.setcntr_wstatus(counter, &[0, 1]).unwrap();
        session.purge_totask(0).unwrap();
    });
    assert!(matches!(woken, Err(LapiError::TgtPurged { target: 0 })), "{woken:?}");
}

/// The task was purged before the wait began, and is listed for its counter afterwards.
#[test]
fn a_purged_destination_wakes_who_waits_for_its_counter() {
    watch(|| {
        let (_origin, target, _told) = pair(Kind::Threads, WaitMode::Block);
        let counter = target.session().unwrap().counter();
        target.session().unwrap().purge_totask(0).unwrap();
        let sleepers = Sleepers::default();
        thread::scope(|scope| {
            let waits = scope.spawn(|| {
                sleepers.join();
                target.nopoll_wait(counter, 1)
            });
            sleepers.wait_until_asleep(1);
            target.session().unwrap().setcntr_wstatus(counter, &[1, 0]).unwrap();
            let error = waits.join().expect("waiting does not panic").unwrap_err();
            assert!(matches!(error, LapiError::TgtPurged { target: 0 }), "{error}");
        });
    });
}

#[test]
fn term_wakes_who_waits_without_polling() {
    let woken = sleeps_until(|task, _| task.term().unwrap());
    assert!(matches!(woken, Err(LapiError::HndlInvalid)), "{woken:?}");
}

#[test]
fn a_wait_without_polling_checks_its_parameters() {
    let (_origin, target, _told) = pair(Kind::Threads, WaitMode::Block);
    for value in [0, -1, i64::MIN] {
        let error = target.nopoll_wait(CounterId(0), value).unwrap_err();
        assert!(matches!(error, LapiError::CntrVal { value: v } if v == value));
    }
    let error = target.nopoll_wait(CounterId(0), 1).unwrap_err();
    assert!(matches!(error, LapiError::CntrNull { index: 0, count: 0 }));
}

/// What the notification thread finds fails the waits that rely on it: a message for a handler that is not set, a panic
/// of a continuation or of a handler, and the loss of a task.
#[test]
fn what_goes_wrong_on_the_notification_thread_is_reported() {
    fn panics(_: &mut Teller, _: Arrival<'_>) -> HeaderAction<Teller> {
        HeaderAction::Then(Next::Unlocked(Box::new(|| panic!("a continuation"))))
    }
    fn panics_inline(_: &mut Teller, _: Arrival<'_>) -> HeaderAction<Teller> {
        panic!("a header handler")
    }
    watch(|| {
        let mut adapters = Kind::Threads.adapters(2);
        let (lost, (teller, told)) = (adapters[0].parts().losses, mpsc::channel());
        let target = Context::init(adapters.remove(1), teller.clone(), Options::default());
        let target: Task = Arc::new(target);
        let origin: Task = Arc::new(Context::init(adapters.remove(0), teller, Options::default()));
        let mut session = target.session().unwrap();
        session.addr_set(1, tell).unwrap();
        session.addr_set(2, panics).unwrap();
        session.addr_set(3, panics_inline).unwrap();
        let counter = session.counter();
        drop(session);
        interrupts(&target, true);
        let fails = |handler| {
            assert!(origin.session().unwrap().try_amsend(1, handler, 0, SendRegion::EMPTY));
            target.nopoll_wait(counter, 1).unwrap_err()
        };
        let error = fails(99);
        assert!(matches!(error, LapiError::HdrHndlrNull { origin: 0, index: 99 }), "{error}");
        for (handler, text) in [(2, "a continuation"), (3, "a header handler")] {
            let error = fails(handler);
            let has_panicked =
                matches!(&error, LapiError::CompletionPanicked { message } if message == text);
            assert!(has_panicked, "{error}");
        }
        assert!(origin.session().unwrap().try_amsend(1, 1, 0, SendRegion::EMPTY));
        assert_eq!(told.recv(), Ok(0), "the thread goes on");
        lost.declare();
        let error = target.nopoll_wait(counter, 1).unwrap_err();
        assert_eq!(error.code().number(), 434, "{error}");
        target.term().unwrap();
    });
}

/// A hook that panics on the notification thread fails the waits that rely on it. The thread acts on every loss all the
/// same, and goes on.
#[test]
fn the_notification_thread_outlives_a_panic_of_the_hook_of_losses() {
    watch(|| {
        let mut adapters = Kind::Threads.adapters(3);
        let lost = [1, 2].map(|task: usize| adapters[task].parts().losses);
        let (teller, told) = mpsc::channel();
        let target: Task =
            Arc::new(Context::init(adapters.remove(0), teller.clone(), Options::default()));
        let mut session = target.session().unwrap();
        session.addr_set(1, tell).unwrap();
        let counter = session.counter();
        session.on_loss(|teller, _, task| {
            teller.send(u64::from(task)).expect("the test listens");
            panic!("a hook")
        });
        // Both losses lie there when the thread first looks.
        lost.iter().for_each(|bell| bell.declare());
        drop(session);
        interrupts(&target, true);
        let mut losses = [told.recv().unwrap(), told.recv().unwrap()];
        losses.sort_unstable();
        assert_eq!(losses, [1, 2]);
        let error = target.nopoll_wait(counter, 1).unwrap_err();
        assert!(
            matches!(&error, LapiError::CompletionPanicked { message } if message == "a hook"),
            "{error}"
        );
        assert!(target.session().unwrap().try_amsend(0, 1, 0, SendRegion::EMPTY));
        assert_eq!(told.recv(), Ok(0), "the thread goes on");
        assert_eq!(target.session().unwrap().qenv(Query::InterruptSet).unwrap(), 1);
        target.term().unwrap();
    });
}

/// The thread of a task that was declared lost ends, and every wait that would rely on it fails.
#[test]
fn a_task_that_is_lost_itself_leaves_interrupt_mode() {
    watch(|| {
        let mut adapters = Kind::Threads.adapters(2);
        let lost = adapters[1].parts().losses;
        let (teller, _told) = mpsc::channel();
        let target: Task = Arc::new(Context::init(adapters.remove(1), teller, Options::default()));
        let counter = target.session().unwrap().counter();
        interrupts(&target, true);
        lost.declare();
        for _ in 0..3 {
            let error = target.nopoll_wait(counter, 1).unwrap_err();
            assert!(
                matches!(error, LapiError::Adapter(AdapterError::PeerLost { task: 1 })),
                "{error}"
            );
        }
        eventually("the thread has ended", || Arc::strong_count(&target) == 1);
        assert_eq!(target.session().unwrap().qenv(Query::InterruptSet).unwrap(), 0);
    });
}

/// A continuation on the notification thread may end that thread.
#[test]
fn the_notification_thread_may_end_itself() {
    type Slot = Arc<std::sync::OnceLock<std::sync::Weak<Context<Holder>>>>;
    struct Holder(Slot, mpsc::Sender<bool>);
    fn end(Holder(slot, told): &mut Holder, message: Arrival<'_>) -> HeaderAction<Holder> {
        let (slot, told, terminates) = (slot.clone(), told.clone(), message.len > 0);
        HeaderAction::Then(Next::Unlocked(Box::new(move || {
            let context = slot.get().unwrap().upgrade().unwrap();
            if terminates {
                context.term().unwrap();
            } else {
                context.senv(Query::InterruptSet, 0).unwrap();
            }
            told.send(terminates).unwrap();
        })))
    }
    watch(|| {
        for terminates in [false, true] {
            let mut adapters = Kind::Threads.adapters(2);
            let (slot, (teller, told)) = (Slot::default(), mpsc::channel());
            let holder = || Holder(slot.clone(), teller.clone());
            let target = Arc::new(Context::init(adapters.remove(1), holder(), Options::default()));
            let origin = Context::init(adapters.remove(0), holder(), Options::default());
            slot.set(Arc::downgrade(&target)).unwrap();
            target.session().unwrap().addr_set(1, end).unwrap();
            interrupts(&target, true);
            let data = &b"end"[..usize::from(terminates)];
            assert!(origin.session().unwrap().try_amsend_bytes(1, 1, 0, data));
            assert_eq!(told.recv(), Ok(terminates));
            eventually("the thread has ended", || Arc::strong_count(&target) == 1);
            assert_eq!(target.session().is_err(), terminates);
        }
    });
}

#[test]
fn term_ends_the_notification_thread() {
    watch(|| {
        let (_origin, target, _told) = pair(Kind::Shm, WaitMode::Adaptive);
        interrupts(&target, true);
        assert_eq!(Arc::strong_count(&target), 2);
        target.term().unwrap();
        assert_eq!(Arc::strong_count(&target), 1, "it was waited for");
        assert!(matches!(target.senv(Query::InterruptSet, 1), Err(LapiError::HndlInvalid)));
        assert!(matches!(target.nopoll_wait(CounterId(0), 1), Err(LapiError::HndlInvalid)));
    });
}

/// The thread does not keep a context that nobody else has.
#[test]
fn the_drop_of_the_last_owner_ends_the_notification_thread() {
    watch(|| {
        let (_origin, target, _told) = pair(Kind::Threads, WaitMode::Adaptive);
        interrupts(&target, true);
        let context = Arc::downgrade(&target);
        drop(target);
        eventually("the context is dropped", || context.strong_count() == 0);
    });
}

/// A thread whose sleep TIMEOUT may end may go on although nothing arrives, so the launcher must not take it for
/// blocked.
#[test]
fn a_thread_that_timeout_may_wake_does_not_count_as_blocked() {
    watch(|| {
        let segment = create_segment("test", 2, 1).unwrap();
        let view = JobView::open(&segment).unwrap();
        let attach = |task: u32| {
            let segment = segment.try_clone().unwrap();
            thread::spawn(move || ShmAdapter::attach(segment, task, 2, GetMode::Am).unwrap())
        };
        let [adapter, _peer] = [attach(0), attach(1)].map(|task| task.join().unwrap());
        let context = Arc::new(Context::init(adapter, (), waiting(WaitMode::Block)));
        let is_blocked = |view: &JobView| {
            let state = view.state(0)?;
            state.blocked.first().map(|blocked| blocked.undisturbed)
        };
        let call = Amsend::new(1, 1, &[], source(pattern(1, 6 << 20)));
        let _ = context.session().unwrap().amsend(call).unwrap();
        for (timeout, blocks) in [(0, true), (100, false)] {
            context.senv(Query::Timeout, timeout).unwrap();
            context.senv(Query::InterruptSet, 1).unwrap();
            eventually("it sleeps", || is_blocked(&view) == Some(blocks));
            context.senv(Query::InterruptSet, 0).unwrap();
            assert_eq!(is_blocked(&view), None, "nothing stays published");
        }
    });
}

/// The launcher sees the sleeping thread among those that are blocked in calls, and not while it is parked.
#[test]
fn a_sleeping_notification_thread_counts_as_blocked() {
    watch(|| {
        let segment = create_segment("test", 1, 1).unwrap();
        let view = JobView::open(&segment).unwrap();
        let adapter = ShmAdapter::attach(segment, 0, 1, GetMode::Am).unwrap();
        let context = Arc::new(Context::init(adapter, (), waiting(WaitMode::Block)));
        let threads = || {
            let blocked = view.state(0).map_or(Vec::new(), |state| state.blocked);
            blocked.iter().map(|blocked| blocked.wait.thread).collect::<Vec<_>>()
        };
        assert_eq!(threads(), []);
        context.senv(Query::InterruptSet, 1).unwrap();
        eventually("it sleeps", || threads().len() == 1);
        let looks = || view.state(0).and_then(|state| Some(state.blocked.first()?.looks));
        let (sleeper, first) = (threads(), looks());
        eventually("it looks again and finds nothing", || looks() > first);
        let stops = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| context.wait(|_| stops.load(Ordering::Relaxed).then_some(())));
            eventually("it gives way to the wait", || {
                let blocked = threads();
                blocked.len() == 1 && blocked != sleeper
            });
            let before = looks();
            eventually("the waiting thread has looked twice more", || {
                assert_ne!(threads(), sleeper, "the notification thread is parked");
                assert!(threads().len() < 2, "the notification thread is parked");
                looks() > before.map(|looks| looks + 1)
            });
            stops.store(true, Ordering::Relaxed);
            context.session().unwrap().wake();
        });
        eventually("it sleeps again", || threads() == sleeper);
        context.term().unwrap();
        assert_eq!(threads(), [], "nothing stays published");
    });
}

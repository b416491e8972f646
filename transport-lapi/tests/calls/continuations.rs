//! What follows operations: in which order, in which thread, with or without the lock (H2 and H4).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use transport_lapi::{Amsend, Arrival, Context, HeaderAction, Next, Outbox, SendRegion, Source};

use crate::support::buffers::{Landing, pattern, source};
use crate::support::job::{Kind, run};

const KINDS: [Kind; 3] = [Kind::Threads, Kind::Shm, Kind::ShmAm];

/// A task's handle on its own context, so that its continuations can call it.
#[derive(Default)]
struct Task {
    context: Option<std::sync::Weak<Context<Self>>>,
    answers: usize,
    ran: Arc<AtomicUsize>,
}

fn count(ran: &AtomicUsize) {
    ran.fetch_add(1, Ordering::Relaxed);
}

fn meet(context: &Arc<Context<Task>>) {
    context.session().unwrap().state.context = Some(Arc::downgrade(context));
}

/// The handler of a question returns a continuation, which takes the lock to send the answer.
fn question(task: &mut Task, message: Arrival<'_>) -> HeaderAction<Task> {
    let (context, asker) = (task.context.clone().expect("set before"), message.origin);
    HeaderAction::Then(Next::Unlocked(Box::new(move || {
        let context = context.upgrade().expect("somebody is in a call of it");
        let answer = Amsend::new(asker, 2, &[], SendRegion::EMPTY);
        let _ = context.session().expect("the lock is free").amsend(answer).unwrap();
    })))
}

fn answer(task: &mut Task, _: Arrival<'_>) -> HeaderAction<Task> {
    task.answers += 1;
    HeaderAction::Consumed
}

/// A continuation runs while its task waits for something else, and may call the context.
#[test]
fn a_continuation_may_call_the_context() {
    for kind in KINDS {
        run(
            kind,
            2,
            |_| Task::default(),
            |context: &Arc<Context<Task>>| {
                meet(context);
                context.session().unwrap().addr_set(1, question).unwrap();
                context.session().unwrap().addr_set(2, answer).unwrap();
                context.gfence().unwrap();
                for round in 1..=200 {
                    let ask = Amsend::new(1 - context.task(), 1, &[], SendRegion::EMPTY);
                    let _ = context.session().unwrap().amsend(ask).unwrap();
                    context.wait(|session| (session.state.answers == round).then_some(())).unwrap();
                }
                // The other task may still be waiting for this task's answer.
                context.gfence().unwrap();
            },
        );
    }
}

/// Each of these operations ends at once or later, in its own way; what follows it runs exactly once.
#[test]
fn every_operation_is_followed_once() {
    for kind in KINDS {
        run(
            kind,
            1,
            |_| Task::default(),
            |context: &Arc<Context<Task>>| {
                let ran = context.session().unwrap().state.ran.clone();
                let next = || {
                    let ran = ran.clone();
                    Next::Unlocked(Box::new(move || count(&ran)))
                };
                let mut session = context.session().unwrap();
                session.addr_set(2, answer).unwrap();
                for len in [0, 8, 300_000] {
                    let mut call = Amsend::new(0, 2, &[], source(pattern(1, len)));
                    call.on_origin = next();
                    let _ = session.amsend(call).unwrap();
                    let exposed = session.register(source(pattern(2, len))).unwrap();
                    let landing = Landing::new(len);
                    session.get(0, exposed, 0, landing.region(len), next()).unwrap();
                    let packed = session.register(Source::from(pattern(3, len).to_vec())).unwrap();
                    session.get(0, packed, 0, Landing::new(len).region(len), next()).unwrap();
                    let unread = session.register(source(pattern(4, len))).unwrap();
                    session.deregister(unread, next());
                }
                assert_eq!(ran.load(Ordering::Relaxed), 0, "the lock is not free");
                drop(session);
                context.wait(|_| (ran.load(Ordering::Relaxed) == 12).then_some(())).unwrap();
                context.gfence().unwrap();
                assert_eq!(ran.load(Ordering::Relaxed), 12);
            },
        );
    }
}

/// A chain longer than any stack: what follows an operation that a handler starts never runs inside that handler.
#[test]
fn handlers_do_not_nest() {
    const LENGTH: u64 = 1_000_000;
    fn link(task: &mut Task, outbox: &mut Outbox<Task>, left: u64) {
        task.answers += 1;
        if left > 0 {
            let nothing = transport_lapi::RemoteRegion::over_frames(0, 0, 0);
            let none = transport_lapi::RecvRegion::EMPTY;
            outbox.get(0, nothing, 0, none, Next::Inline(link, left - 1)).unwrap();
        }
    }
    run(
        Kind::Threads,
        1,
        |_| Task::default(),
        |context: &Arc<Context<Task>>| {
            let mut session = context.session().unwrap();
            let (state, outbox) = session.parts();
            link(state, outbox, LENGTH);
            drop(session);
            let whole = LENGTH as usize + 1;
            context.wait(|session| (session.state.answers == whole).then_some(())).unwrap();
        },
    );
}

/// A panicking continuation ends the call that ran it. The context, and continuations due later, are unharmed.
#[test]
fn a_continuation_that_panics_harms_nothing_else() {
    run(
        Kind::Threads,
        1,
        |_| Task::default(),
        |context: &Arc<Context<Task>>| {
            let mut session = context.session().unwrap();
            let ran = session.state.ran.clone();
            let (_, outbox) = session.parts();
            outbox.when_unlocked(Box::new(|| std::panic::resume_unwind(Box::new("told"))));
            outbox.when_unlocked(Box::new(move || count(&ran)));
            drop(session);
            let waited = catch_unwind(AssertUnwindSafe(|| context.wait(|_| None::<()>)));
            let panic = waited.expect_err("the continuation panics");
            assert_eq!(panic.downcast_ref::<&str>(), Some(&"told"));
            context.attend(context.session().unwrap());
            assert_eq!(context.session().unwrap().state.ran.load(Ordering::Relaxed), 1);
            context.gfence().unwrap();
        },
    );
}

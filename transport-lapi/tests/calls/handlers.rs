//! The possible results of header handlers, and what completion handlers can do.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mpj_harness::watch;
use transport_lapi::{Amsend, Arrival, Context, CounterId, HeaderAction, Next, Outbox, SendRegion};

use crate::support::buffers::{Landing, pattern, source};
use crate::support::frames::{COMPLETE, Head, SINGLE, received};
use crate::support::job::{Kind, run};

/// Lengths of messages of one packet and of several.
const LENGTHS: [usize; 4] = [16, 1000, 8 << 10, 100_000];

const TARGET: CounterId = CounterId(0);
const COMPLETION: CounterId = CounterId(1);

/// Makes two counters, in the same order on every task.
fn counters<S>(context: &Context<S>) {
    let mut session = context.session().unwrap();
    assert_eq!((session.counter(), session.counter()), (TARGET, COMPLETION));
}

/// Task 0 sends a message to task 1 and waits until it is complete there.
fn send_and_complete<S>(context: &Context<S>, handler: u8, uhdr: &[u8], udata: SendRegion) {
    let mut call = Amsend::new(1, handler, uhdr, udata);
    call.tgt_cntr = Some(TARGET);
    call.cmpl_cntr = Some(COMPLETION);
    let _ = context.session().unwrap().amsend(call).unwrap();
    assert_eq!(context.waitcntr(COMPLETION, 1).unwrap(), 0);
}

/// State of the tests of results of header handlers.
struct Answers {
    landing: Landing,
    /// How many bytes of a message the next handler accepts.
    wanted: usize,
    headers: usize,
    completed: Vec<u64>,
}

fn answers(_: u32) -> Answers {
    Answers { landing: Landing::new(100_100), wanted: 0, headers: 0, completed: Vec::new() }
}

fn drop_it(state: &mut Answers, _: Arrival<'_>) -> HeaderAction<Answers> {
    state.headers += 1;
    HeaderAction::Drop
}

fn store_part(state: &mut Answers, message: Arrival<'_>) -> HeaderAction<Answers> {
    state.headers += 1;
    let into = state.landing.region(state.wanted);
    HeaderAction::Deliver { into: into.into(), next: Next::Inline(completed, message.len) }
}

fn store_silently(state: &mut Answers, message: Arrival<'_>) -> HeaderAction<Answers> {
    state.headers += 1;
    let into = state.landing.region(message.len as usize);
    HeaderAction::Deliver { into: into.into(), next: Next::Nothing }
}

fn completed(state: &mut Answers, _: &mut Outbox<Answers>, info: u64) {
    state.completed.push(info);
}

/// A dropped message stores nothing and counts as complete; the next one arrives.
#[test]
fn a_dropped_message_leaves_no_trace() {
    run(Kind::Threads, 2, answers, |context| {
        counters(context);
        context.session().unwrap().addr_set(1, drop_it).unwrap();
        context.session().unwrap().addr_set(2, store_silently).unwrap();
        context.gfence().unwrap();
        for (round, len) in LENGTHS.into_iter().enumerate() {
            if context.task() == 0 {
                send_and_complete(context, 1, &[], source(pattern(1, len)));
                send_and_complete(context, 2, &[], source(pattern(2, len)));
            } else {
                assert_eq!(context.waitcntr(TARGET, 2).unwrap(), 0);
                let session = context.session().unwrap();
                assert_eq!(session.state.headers, 2 * (round + 1));
                assert!(session.state.landing.holds(pattern(2, len)), "{len} bytes");
                session.state.landing.wipe();
            }
            // The next messages come when this round was checked.
            context.gfence().unwrap();
        }
    });
}

/// A region shorter than the message receives what fits; nothing behind it is touched.
#[test]
fn a_short_region_takes_what_fits() {
    run(Kind::Threads, 2, answers, |context| {
        counters(context);
        context.session().unwrap().addr_set(1, store_part).unwrap();
        let mut count = 0;
        for len in LENGTHS {
            for wanted in [0, 1, len / 2, len - 1, len, len + 3] {
                context.session().unwrap().state.wanted = wanted;
                context.gfence().unwrap();
                count += 1;
                if context.task() == 0 {
                    send_and_complete(context, 1, &[], source(pattern(3, len)));
                } else {
                    context.waitcntr(TARGET, 1).unwrap();
                    let session = context.session().unwrap();
                    assert_eq!(session.state.completed.len(), count);
                    assert_eq!(session.state.completed.last(), Some(&(len as u64)));
                    let stored = pattern(3, wanted.min(len));
                    assert!(session.state.landing.holds(stored), "{wanted} of {len} bytes");
                    session.state.landing.wipe();
                }
            }
        }
        context.gfence().unwrap();
    });
}

/// An inline completion handler runs when all bytes are in place, with its argument, and may reply.
#[test]
fn an_inline_handler_sees_the_data_and_replies() {
    struct Echo {
        landing: Landing,
        replies: Vec<Vec<u8>>,
    }
    fn arrive(state: &mut Echo, message: Arrival<'_>) -> HeaderAction<Echo> {
        let into = state.landing.region(message.len as usize);
        let info = u64::from(message.origin) << 32 | message.len;
        HeaderAction::Deliver { into: into.into(), next: Next::Inline(reply, info) }
    }
    fn reply(state: &mut Echo, outbox: &mut Outbox<Echo>, info: u64) {
        let (origin, len) = ((info >> 32) as u32, info as u32 as usize);
        let (bytes, rest_is_blank) = state.landing.contents(len);
        assert!(rest_is_blank, "nothing is written behind the message");
        state.landing.wipe();
        outbox.amsend(origin, 2, &(len as u64).to_le_bytes(), bytes).unwrap();
    }
    fn replied(state: &mut Echo, message: Arrival<'_>) -> HeaderAction<Echo> {
        assert_eq!(message.uhdr, message.len.to_le_bytes());
        let into = state.landing.region(message.len as usize);
        HeaderAction::Deliver { into: into.into(), next: Next::Inline(keep, message.len) }
    }
    fn keep(state: &mut Echo, _: &mut Outbox<Echo>, len: u64) {
        state.replies.push(state.landing.contents(len as usize).0);
    }
    let echo = |_| Echo { landing: Landing::new(100_100), replies: Vec::new() };
    run(Kind::Shm, 2, echo, |context| {
        context.session().unwrap().addr_set(1, arrive).unwrap();
        context.session().unwrap().addr_set(2, replied).unwrap();
        context.gfence().unwrap();
        let complete = context.session().unwrap().counter();
        if context.task() == 0 {
            for (round, len) in LENGTHS.into_iter().enumerate() {
                let mut call = Amsend::new(1, 1, &[], source(pattern(round as u64, len)));
                call.cmpl_cntr = Some(complete);
                let _ = context.session().unwrap().amsend(call).unwrap();
                context.waitcntr(complete, 1).unwrap();
                let replies = &context.session().unwrap().state.replies;
                assert_eq!(replies.len(), round + 1, "the counter counts after the handler");
                assert_eq!(replies[round], pattern(round as u64, len));
            }
        }
        context.gfence().unwrap();
    });
}

/// State of the tests of the completion thread: the function that the next header handler sends there.
struct Deferred {
    landing: Landing,
    next: Option<Box<dyn FnOnce() + Send>>,
}

fn deferred(_: u32) -> Deferred {
    Deferred { landing: Landing::new(100_100), next: None }
}

fn defer(state: &mut Deferred, message: Arrival<'_>) -> HeaderAction<Deferred> {
    let into = state.landing.region(message.len as usize);
    let run = state.next.take().expect("the test has prepared a handler for every message");
    HeaderAction::Deliver { into: into.into(), next: Next::Thread(run) }
}

/// The counters are incremented only when the handler on the thread has returned; meanwhile the dispatcher continues.
#[test]
fn counters_wait_for_the_handler_on_the_thread() {
    run(Kind::Threads, 2, deferred, |context| {
        counters(context);
        context.session().unwrap().addr_set(1, defer).unwrap();
        for (round, len) in LENGTHS.into_iter().enumerate() {
            let (release, gate) = mpsc::channel::<()>();
            let (tell, seen) = mpsc::channel();
            let landing = context.session().unwrap().state.landing;
            context.session().unwrap().state.next = Some(Box::new(move || {
                gate.recv().expect("the test opens the gate");
                tell.send(landing.holds(pattern(round as u64, len))).expect("the test listens");
            }));
            context.gfence().unwrap();
            if context.task() == 0 {
                send_and_complete(context, 1, &[], source(pattern(round as u64, len)));
            } else {
                let arrived = |state: &Deferred| state.next.is_none().then_some(());
                context.wait(|session| arrived(&session.state)).unwrap();
                for _ in 0..1_000 {
                    let mut session = context.session().unwrap();
                    session.progress().unwrap();
                    assert_eq!(session.getcntr(TARGET).unwrap(), 0, "the handler has not returned");
                }
                release.send(()).unwrap();
                assert_eq!(context.waitcntr(TARGET, 1).unwrap(), 0);
                assert!(seen.try_recv().unwrap(), "{len} bytes are in place for the handler");
                landing.wipe();
            }
        }
        context.gfence().unwrap();
    });
}

/// Handlers run on the thread one after another, in the order in which their messages completed.
#[test]
fn handlers_on_the_thread_run_in_order() {
    type Jobs = Arc<Mutex<Vec<u64>>>;
    fn arrive(log: &mut Jobs, message: Arrival<'_>) -> HeaderAction<Jobs> {
        let number = u64::from_le_bytes(message.uhdr.try_into().expect("eight bytes"));
        let log = Arc::clone(log);
        let run = Box::new(move || log.lock().unwrap().push(number));
        let completion = Next::Thread(run);
        HeaderAction::Then(completion)
    }
    run(
        Kind::Threads,
        2,
        |_| Jobs::default(),
        |context| {
            counters(context);
            context.session().unwrap().addr_set(1, arrive).unwrap();
            context.gfence().unwrap();
            if context.task() == 0 {
                for number in 0..500_u64 {
                    let mut call = Amsend::new(1, 1, &[], SendRegion::EMPTY);
                    let uhdr = number.to_le_bytes();
                    call.uhdr = &uhdr;
                    call.tgt_cntr = Some(TARGET);
                    let _ = context.session().unwrap().amsend(call).unwrap();
                }
            } else {
                assert_eq!(context.waitcntr(TARGET, 500).unwrap(), 0);
                let log = Arc::clone(&context.session().unwrap().state);
                assert!(log.lock().unwrap().iter().copied().eq(0..500));
            }
            context.gfence().unwrap();
        },
    );
}

/// A handler on the thread may communicate and wait, like any thread of the task.
#[test]
fn a_handler_on_the_thread_may_wait() {
    run(Kind::Threads, 2, deferred, |context| {
        counters(context);
        context.session().unwrap().addr_set(1, defer).unwrap();
        let inner = Arc::clone(context);
        let mine = context.session().unwrap().counter();
        context.session().unwrap().state.next = Some(if context.task() == 0 {
            Box::new(|| {})
        } else {
            Box::new(move || {
                let mut call = Amsend::new(0, 1, &[], source(pattern(5, 50_000)));
                call.cmpl_cntr = Some(mine);
                let _ = inner.session().unwrap().amsend(call).unwrap();
                inner.waitcntr(mine, 1).unwrap();
            })
        });
        context.gfence().unwrap();
        if context.task() == 0 {
            send_and_complete(context, 1, &[], source(pattern(4, 10)));
            let session = context.session().unwrap();
            assert!(session.state.landing.holds(pattern(5, 50_000)), "the handler's own message");
            drop(session);
        } else {
            assert_eq!(context.waitcntr(TARGET, 1).unwrap(), 0);
        }
        context.gfence().unwrap();
    });
}

/// A handler that needs the context keeps it alive, and may be the last owner.
#[test]
fn a_handler_on_the_thread_may_be_the_last_owner_of_its_context() {
    let panicked = watch(|| {
        let panicked = Arc::new(AtomicBool::new(false));
        let adapter = Kind::Threads.adapters(1).remove(0);
        let context = Arc::new(Context::init(adapter, deferred(0), Default::default()));
        context.session().unwrap().addr_set(1, defer).unwrap();
        let (release, gate) = mpsc::channel::<()>();
        let (tell, done) = mpsc::channel();
        let (owner, witness) = (Arc::clone(&context), Arc::clone(&panicked));
        context.session().unwrap().state.next = Some(Box::new(move || {
            gate.recv().expect("the test opens the gate");
            let last = std::panic::AssertUnwindSafe(|| drop(owner));
            let outcome = std::panic::catch_unwind(last);
            witness.store(outcome.is_err(), Ordering::SeqCst);
            tell.send(()).expect("the test listens");
        }));
        let call = Amsend::new(0, 1, &[], source(pattern(1, 8)));
        let _ = context.session().unwrap().amsend(call).unwrap();
        let arrived = |state: &Deferred| state.next.is_none().then_some(());
        context.wait(|session| arrived(&session.state)).unwrap();
        drop(context);
        release.send(()).unwrap();
        done.recv_timeout(Duration::from_secs(5)).expect("the handler ends");
        panicked.load(Ordering::SeqCst)
    });
    assert!(!panicked, "dropping the context on its completion thread panicked");
}

/// Handlers that are queued when the context is dropped still run.
#[test]
fn queued_handlers_run_before_the_context_is_gone() {
    watch(|| {
        let adapter = Kind::Threads.adapters(1).remove(0);
        let context = Context::init(adapter, deferred(0), Default::default());
        context.session().unwrap().addr_set(1, defer).unwrap();
        let ran = Arc::new(AtomicBool::new(false));
        let witness = Arc::clone(&ran);
        context.session().unwrap().state.next = Some(Box::new(move || {
            std::thread::sleep(Duration::from_millis(30));
            witness.store(true, Ordering::SeqCst);
        }));
        let call = Amsend::new(0, 1, &[], source(pattern(1, 8)));
        let _ = context.session().unwrap().amsend(call).unwrap();
        let arrived = |state: &Deferred| state.next.is_none().then_some(());
        context.wait(|session| arrived(&session.state)).unwrap();
        drop(context);
        assert!(ran.load(Ordering::SeqCst));
    });
}

/// The handler that reports the end of the origin's own send may start a reply.
#[test]
fn the_origin_handler_may_send() {
    #[derive(Default)]
    struct Chain {
        arrived: Vec<u64>,
    }
    fn arrive(state: &mut Chain, message: Arrival<'_>) -> HeaderAction<Chain> {
        state.arrived.push(message.len);
        HeaderAction::Consumed
    }
    fn next(_: &mut Chain, outbox: &mut Outbox<Chain>, left: u64) {
        outbox.amsend(0, 1, &[], vec![7; left as usize]).unwrap();
    }
    run(
        Kind::Threads,
        1,
        |_| Chain::default(),
        |context| {
            context.session().unwrap().addr_set(1, arrive).unwrap();
            let mut call = Amsend::new(0, 1, &[], source(pattern(1, 20_000)));
            call.on_origin = Next::Inline(next, 5);
            let _ = context.session().unwrap().amsend(call).unwrap();
            context.wait(|session| (session.state.arrived.len() == 2).then_some(())).unwrap();
            assert_eq!(context.session().unwrap().state.arrived, [20_000, 5]);
        },
    );
}

/// The completion counter is incremented after the handler: its packet is sent behind the handler's reply.
#[test]
fn the_news_of_a_completion_goes_behind_the_reply_of_its_handler() {
    fn arrive(_: &mut (), message: Arrival<'_>) -> HeaderAction<()> {
        let completion = Next::Inline(reply, message.len);
        HeaderAction::Then(completion)
    }
    fn reply(_: &mut (), outbox: &mut Outbox<()>, len: u64) {
        outbox.amsend(1, 9, &[], vec![3; len as usize]).unwrap();
    }
    let mut adapters = Kind::Threads.adapters(2);
    let mut peer = adapters.remove(1);
    let context = Context::init(adapters.remove(0), (), Default::default());
    context.session().unwrap().addr_set(1, arrive).unwrap();
    let message = Head::new(SINGLE, 1, 0).counters(0, 7);
    message.send(&mut peer, 0, &[1; 40]);
    context.session().unwrap().progress().unwrap();
    let sent = [Head::new(SINGLE, 9, 0), Head::new(COMPLETE, 0, 7)].map(|head| head.0);
    let heads: Vec<_> = received(&mut *peer).into_iter().map(|(head, _)| head).collect();
    assert_eq!(heads, sent);
}

//! Every error that a call of the transport can return, each provoked.

mod support;

use std::sync::atomic::Ordering;
use std::sync::{Arc, Barrier, OnceLock, Weak};
use std::thread;

use mpj_harness::{Sleepers, watch};
use transport_lapi::adapter::AdapterError;
use transport_lapi::config::WaitMode;
use transport_lapi::{
    Amsend, Arrival, Context, CounterId, HeaderAction, LapiError, MAX_HANDLERS, MAX_UHDR, Next,
    Options, Outbox, RecvRegion, RemoteKey, RemoteRegion, SendRegion,
};

use support::buffers::{Landing, endless_source, null_landing, null_source, pattern, source};
use support::flaky::Flaky;
use support::job::{Kind, run, run_with, waiting};

type Alone = Context<()>;

/// The only task of a job.
fn alone() -> Alone {
    Context::init(Kind::Threads.adapters(1).remove(0), (), Options::default())
}

fn consume<S>(_: &mut S, _: Arrival<'_>) -> HeaderAction<S> {
    HeaderAction::Consumed
}

/// The error for a correct message to the task itself after `change`. Checks that `try_amsend`, which gives no reasons,
/// refuses it too.
fn refused(change: impl Fn(&mut Amsend<'_, ()>)) -> LapiError {
    let context = alone();
    let mut session = context.session().unwrap();
    session.addr_set(1, consume).unwrap();
    let call = || {
        let mut call = Amsend::new(0, 1, &[], SendRegion::EMPTY);
        change(&mut call);
        call
    };
    let Amsend { target, handler, uhdr, udata, .. } = call();
    if uhdr.is_empty() {
        assert!(
            !session.try_amsend(target, handler, 0, udata.span().expect("one span")),
            "one word in place of none"
        );
    }
    let error = session.amsend(call()).unwrap_err();
    assert_eq!(session.progress().unwrap(), 0, "a refused message is not sent");
    error
}

#[test]
fn tgt_a_target_outside_the_job() {
    for target in [1, u32::MAX] {
        let error = refused(|call| call.target = target);
        assert!(matches!(error, LapiError::Tgt { target: t, num_tasks: 1 } if t == target));
    }
    let error = refused(|call| call.target = 7);
    assert_eq!(error.to_string(), "target 7 is out of range: the job has ranks 0 to 0");
}

#[test]
fn uhdr_len_too_long_or_not_a_multiple_of_eight() {
    static LONG: [u8; MAX_UHDR + 8] = [0; MAX_UHDR + 8];
    for len in [1, 4, 7, 9, MAX_UHDR - 1, MAX_UHDR + 1, MAX_UHDR + 8] {
        let error = refused(|call| call.uhdr = &LONG[..len]);
        assert!(matches!(error, LapiError::UhdrLen { len: l, max: MAX_UHDR } if l == len), "{len}");
    }
}

#[test]
fn org_addr_null_a_length_without_an_address() {
    for len in [1, 100_000] {
        let error = refused(|call| call.udata = null_source(len).into());
        assert!(matches!(error, LapiError::OrgAddrNull { len: l } if l == len));
    }
    let context = alone();
    let mut session = context.session().unwrap();
    let error = session.register(null_source(8)).unwrap_err();
    assert!(matches!(error, LapiError::OrgAddrNull { len: 8 }));
    session.addr_set(1, consume).unwrap();
    let nothing = Amsend::new(0, 1, &[], null_source(0));
    let _ = session.amsend(nothing).expect("no bytes need no address");
}

#[test]
fn data_len_longer_than_any_memory() {
    let error = refused(|call| call.udata = endless_source().into());
    let limit = isize::MAX as u64;
    assert!(
        matches!(error, LapiError::DataLen { len: u64::MAX, limit: l, .. } if l == limit),
        "{error:?}"
    );
}

#[test]
fn addr_hndl_range_an_index_outside_the_table() {
    let error = refused(|call| call.handler = 0);
    assert!(matches!(error, LapiError::AddrHndlRange { index: 0 }));
    let context = alone();
    let mut session = context.session().unwrap();
    for index in [0, MAX_HANDLERS, usize::MAX] {
        let error = session.addr_set(index, consume).unwrap_err();
        assert!(matches!(error, LapiError::AddrHndlRange { index: i } if i == index));
    }
    session.addr_set(MAX_HANDLERS - 1, consume).expect("the last index is legal");
    let (_, outbox) = session.parts();
    let error = outbox.amsend(0, 0, &[], Vec::new()).unwrap_err();
    assert!(matches!(error, LapiError::AddrHndlRange { index: 0 }));
}

/// The outbox refuses the same as the session.
#[test]
fn an_outbox_checks_its_parameters() {
    let context = alone();
    let mut session = context.session().unwrap();
    let (_, outbox) = session.parts();
    let error = outbox.amsend(1, 1, &[], Vec::new()).unwrap_err();
    assert!(matches!(error, LapiError::Tgt { target: 1, num_tasks: 1 }));
    let error = outbox.amsend(0, 1, &[0; 12], Vec::new()).unwrap_err();
    assert!(matches!(error, LapiError::UhdrLen { len: 12, max: MAX_UHDR }));
    assert_eq!(session.progress().unwrap(), 0, "nothing was queued");
}

/// The error for a get of `into` from `remote`.
fn get_refused(target: u32, remote: RemoteRegion, offset: u64, into: RecvRegion) -> LapiError {
    let context = alone();
    let mut session = context.session().unwrap();
    session.get(target, remote, offset, into, Next::Nothing).unwrap_err()
}

#[test]
fn a_get_checks_its_parameters() {
    let landing = Landing::new(100);
    let remote = RemoteRegion::over_frames(4096, 50, 0);
    let error = get_refused(3, remote, 0, landing.region(8));
    assert!(matches!(error, LapiError::Tgt { target: 3, num_tasks: 1 }));
    let error = get_refused(0, remote, 0, null_landing(8));
    assert!(matches!(error, LapiError::OrgAddrNull { len: 8 }));
    let nowhere = RemoteRegion { addr: 0, ..remote };
    let error = get_refused(0, nowhere, 0, landing.region(8));
    assert!(matches!(error, LapiError::TgtAddrNull { len: 50 }));
    for (offset, len) in [(0, 51), (43, 8), (50, 1), (51, 0), (u64::MAX, 1), (u64::MAX - 7, 8)] {
        let error = get_refused(0, remote, offset, landing.region(len));
        let LapiError::DataLen { offset: o, len: l, limit: 50 } = error else {
            panic!("{len} bytes at {offset}: {error:?}");
        };
        assert_eq!((o, l), (offset, len as u64));
    }
}

#[test]
fn cntr_null_a_counter_that_was_not_made() {
    let context = alone();
    let missing = CounterId(1);
    let made = context.session().unwrap().counter();
    assert_eq!(made, CounterId(0));
    let is_named = |error| matches!(error, LapiError::CntrNull { index: 1, count: 1 });
    assert!(is_named(context.waitcntr(missing, 1).unwrap_err()));
    let mut session = context.session().unwrap();
    assert!(is_named(session.getcntr(missing).unwrap_err()));
    assert!(is_named(session.setcntr(missing, 1).unwrap_err()));
    let error = session.getcntr(CounterId(u32::MAX)).unwrap_err();
    assert!(matches!(error, LapiError::CntrNull { index: u32::MAX, count: 1 }));
}

#[test]
fn cntr_val_a_wait_for_nothing() {
    let context = alone();
    let counter = context.session().unwrap().counter();
    for value in [0, -1, i64::MIN] {
        let error = context.waitcntr(counter, value).unwrap_err();
        assert!(matches!(error, LapiError::CntrVal { value: v } if v == value));
    }
}

#[test]
fn hdr_hndlr_null_is_found_by_the_target() {
    // The tasks meet outside the transport: a global fence would run into the error.
    let set = Barrier::new(2);
    run(
        Kind::Threads,
        2,
        |_| 0,
        move |context| {
            fn count(count: &mut u32, _: Arrival<'_>) -> HeaderAction<u32> {
                *count += 1;
                HeaderAction::Consumed
            }
            context.session().unwrap().addr_set(2, count).unwrap();
            set.wait();
            if context.task() == 0 {
                for handler in [200, 2] {
                    let call = Amsend::new(1, handler, &[], source(pattern(1, 8)));
                    let _ = context.session().unwrap().amsend(call).unwrap();
                }
            } else {
                let error = context.wait(|session| (session.state == 9).then_some(())).unwrap_err();
                assert!(matches!(error, LapiError::HdrHndlrNull { origin: 0, index: 200 }));
                context.wait(|session| (session.state == 1).then_some(())).unwrap();
            }
            context.gfence().unwrap();
        },
    );
}

#[test]
fn completion_panicked_is_found_by_progress() {
    fn defer(_: &mut (), message: Arrival<'_>) -> HeaderAction<()> {
        let number = message.len;
        let panics = move || match number {
            0 => panic!("a literal"),
            1 => panic!("a text with {number}"),
            2 => std::panic::panic_any(7),
            _ => {}
        };
        let completion = Next::Thread(Box::new(panics));
        HeaderAction::Then(completion)
    }
    watch(|| {
        let context = alone();
        context.session().unwrap().addr_set(1, defer).unwrap();
        let counter = context.session().unwrap().counter();
        for (len, text) in [(0, "a literal"), (1, "a text with 1"), (2, "no message")] {
            let mut call = Amsend::new(0, 1, &[], source(pattern(1, len)));
            call.tgt_cntr = Some(counter);
            let _ = context.session().unwrap().amsend(call).unwrap();
            let error = context.waitcntr(counter, 1).unwrap_err();
            let LapiError::CompletionPanicked { message } = error else {
                panic!("{error:?}");
            };
            assert_eq!(message, text);
        }
        let mut call = Amsend::new(0, 1, &[], source(pattern(1, 3)));
        call.tgt_cntr = Some(counter);
        let _ = context.session().unwrap().amsend(call).unwrap();
        assert_eq!(context.waitcntr(counter, 1).unwrap(), 0, "the thread goes on");
    });
}

/// Waits until this many threads look for what they wait for: again and again, or between two sleeps.
fn until_they_wait(sleepers: &Sleepers, count: usize, wait: WaitMode) {
    match wait {
        WaitMode::Spin => sleepers.wait_for(count),
        WaitMode::Adaptive | WaitMode::Block => sleepers.wait_until_asleep(count),
    }
}

#[test]
fn peer_lost_ends_every_wait() {
    for wait in [WaitMode::Spin, WaitMode::Adaptive, WaitMode::Block] {
        let sleepers = Sleepers::default();
        let adapters = Kind::Threads.adapters(3);
        let bell = adapters[1].parts().losses;
        run_with(
            adapters,
            waiting(wait),
            |_| (),
            move |context| {
                let is_lost =
                    |error| matches!(error, LapiError::Adapter(AdapterError::PeerLost { task: 1 }));
                if context.task() == 1 {
                    until_they_wait(&sleepers, 2, wait);
                    bell.declare();
                    return;
                }
                let waits = context.wait(|_| {
                    sleepers.join();
                    None::<()>
                });
                assert!(is_lost(waits.unwrap_err()), "{wait:?}");
                let counter = context.session().unwrap().counter();
                assert!(is_lost(context.waitcntr(counter, 1).unwrap_err()), "{wait:?}");
                assert!(is_lost(context.gfence().unwrap_err()), "{wait:?}");
            },
        );
    }
}

/// Frames that have arrived are delivered, whichever task has been lost meanwhile.
#[test]
fn a_lost_peer_does_not_take_back_what_arrived() {
    let mut adapters = Kind::Threads.adapters(2);
    let bell = adapters[1].parts().losses;
    let context = Context::init(adapters.remove(0), (), waiting(WaitMode::Block));
    let counter = context.session().unwrap().counter();
    context.session().unwrap().addr_set(1, consume).unwrap();
    let mut call = Amsend::new(0, 1, &[], SendRegion::EMPTY);
    call.tgt_cntr = Some(counter);
    let _ = context.session().unwrap().amsend(call).unwrap();
    bell.declare();
    assert_eq!(context.waitcntr(counter, 1).unwrap(), 0);
}

/// If a get fails with its target and what follows it takes no outcome, progress reports the error.
#[test]
fn a_get_from_a_lost_task_fails_asynchronously() {
    let mut adapters = Kind::ShmAm.adapters(2);
    let bell = adapters[1].parts().losses;
    let context = Context::init(adapters.remove(0), (), Options::default());
    let mut session = context.session().unwrap();
    let counter = session.counter();
    let remote = RemoteRegion::over_frames(64, 8, 0);
    let landing = Landing::new(8);
    session.get(1, remote, 0, landing.region(8), Next::Counter(counter)).unwrap();
    session.progress().unwrap();
    bell.declare();
    assert!(session.notice_losses().unwrap(), "it is news");
    let told = session.progress();
    let is_loss = matches!(told, Err(LapiError::Adapter(AdapterError::PeerLost { task: 1 })));
    assert!(is_loss, "{told:?}");
}

fn is_invalid<T>(answer: Result<T, LapiError>) -> bool {
    matches!(answer, Err(LapiError::HndlInvalid))
}

#[test]
fn hndl_invalid_after_term() {
    let context = alone();
    let counter = context.session().unwrap().counter();
    context.term().unwrap();
    assert!(is_invalid(context.session().map(drop)));
    assert!(is_invalid(context.wait(|_| Some(()))));
    assert!(is_invalid(context.waitcntr(counter, 1)));
    assert!(is_invalid(context.fence()));
    assert!(is_invalid(context.gfence()));
    assert!(is_invalid(context.term()));
}

#[test]
fn hndl_invalid_after_abandon() {
    let context = alone();
    context.session().unwrap().abandon();
    assert!(is_invalid(context.session().map(drop)));
    assert!(is_invalid(context.term()));
}

/// Waiting threads get the error, whether they spin or sleep.
#[test]
fn term_and_abandon_end_the_waits_of_other_threads() {
    let endings: [fn(&Alone); 2] =
        [|context| context.term().unwrap(), |context| context.session().unwrap().abandon()];
    for wait in [WaitMode::Spin, WaitMode::Adaptive, WaitMode::Block] {
        for ending in endings {
            run_with(
                Kind::Threads.adapters(1),
                waiting(wait),
                |_| (),
                move |context| {
                    let sleepers = Sleepers::default();
                    let waits = || {
                        context.wait(|_| {
                            sleepers.join();
                            None::<()>
                        })
                    };
                    thread::scope(|scope| {
                        let waits: Vec<_> = (0..3).map(|_| scope.spawn(waits)).collect();
                        until_they_wait(&sleepers, 3, wait);
                        ending(context);
                        for wait in waits {
                            assert!(is_invalid(wait.join().expect("waiting does not panic")));
                        }
                    });
                },
            );
        }
    }
}

/// Abandoned operations have no effects: no handler runs, no buffer is touched.
#[test]
fn abandoned_operations_touch_no_buffer() {
    type Told = Arc<OnceLock<u64>>;
    fn told(told: &mut Told, _: &mut Outbox<Told>, info: u64) {
        told.get_or_init(|| info);
    }
    let mut adapters = Kind::ShmAm.adapters(2);
    let mut peer = adapters.remove(1);
    let state = Told::default();
    let context = Context::init(adapters.remove(0), Arc::clone(&state), Options::default());
    let landing = Landing::new(1000);
    let mut session = context.session().unwrap();
    let remote = RemoteRegion::over_frames(4096, 1000, 0);
    session.get(1, remote, 0, landing.region(1000), Next::Inline(told, 1)).unwrap();
    // Together more than the segment has room for on any machine, so the last one waits.
    for nth in 1..=8 {
        let mut call = Amsend::new(1, 1, &[], source(pattern(1, 4 << 20)));
        if nth == 8 {
            call.on_origin = Next::Inline(told, 2);
        }
        let _ = session.amsend(call).unwrap();
    }
    session.progress().unwrap();
    session.abandon();
    let frames = support::frames::received(&mut *peer);
    let ticket = support::frames::number(&frames[0].0);
    let head = support::frames::Head::new(support::frames::GET_DATA, 0, ticket).field(0);
    head.send(&mut peer, 0, pattern(3, 1000));
    let error = context.wait(|_| None::<()>).unwrap_err();
    assert!(matches!(error, LapiError::HndlInvalid), "{error:?}");
    assert!(landing.holds(&[]), "the landing is blank");
    assert_eq!(state.get(), None);
    assert_eq!(support::frames::received(&mut *peer).len(), 0, "nothing more is sent");
}

/// State that holds its own context, like that of a careless client.
#[derive(Default)]
struct Careless {
    context: OnceLock<Weak<Context<Self>>>,
    answers: Vec<&'static str>,
}

impl Careless {
    /// Makes every possible call on the context.
    fn call_everything(&mut self) {
        let context = self.context.get().expect("set before the first message");
        let context = context.upgrade().expect("the context dispatches just now");
        let answers = [
            context.session().map(drop),
            context.wait(|_| Some(())),
            context.waitcntr(CounterId(0), 1).map(drop),
            context.fence(),
            context.gfence(),
            context.term(),
        ];
        let word = |answer| match answer {
            Err(LapiError::InHandler) => "in handler",
            Err(_) => "another error",
            Ok(()) => "accepted",
        };
        self.answers.extend(answers.map(word));
    }
}

#[test]
fn in_handler_for_every_call_from_inside_one() {
    fn header(state: &mut Careless, _: Arrival<'_>) -> HeaderAction<Careless> {
        state.call_everything();
        let completion = Next::Inline(handler, 0);
        HeaderAction::Then(completion)
    }
    fn handler(state: &mut Careless, _: &mut Outbox<Careless>, _: u64) {
        state.call_everything();
    }
    watch(|| {
        let adapter = Kind::Threads.adapters(1).remove(0);
        let context = Arc::new(Context::init(adapter, Careless::default(), Options::default()));
        let mut session = context.session().unwrap();
        session.counter();
        session.addr_set(1, header).unwrap();
        session.state.context.get_or_init(|| Arc::downgrade(&context));
        let mut call = Amsend::new(0, 1, &[], source(pattern(1, 20_000)));
        call.on_origin = Next::Inline(handler, 0);
        let _ = session.amsend(call).unwrap();
        drop(session);
        context.wait(|session| (session.state.answers.len() == 18).then_some(())).unwrap();
        let session = context.session().expect("outside of handlers the context answers");
        assert!(session.state.answers.iter().all(|&answer| answer == "in handler"));
    });
}

#[test]
fn in_handler_for_every_call_while_the_thread_holds_the_session() {
    watch(|| {
        let context = alone();
        let is_inside = |answer| matches!(answer, Err(LapiError::InHandler));
        // Often enough that the thread gets the bias of the lock.
        for _ in 0..20 {
            let inside = context.wait(|_| Some(is_inside(context.session().map(drop)))).unwrap();
            assert!(inside, "from what a wait waits for");
            let session = context.session().unwrap();
            assert!(is_inside(context.session().map(drop)));
            assert!(is_inside(context.fence()));
            drop(session);
            context.session().expect("the session is free again");
        }
    });
}

/// Another thread is not inside: it waits for its turn.
#[test]
fn another_thread_waits_for_the_session() {
    watch(|| {
        let (context, sleepers) = (alone(), Sleepers::default());
        thread::scope(|scope| {
            let session = context.session().unwrap();
            let other = scope.spawn(|| {
                sleepers.join();
                context.session().map(drop)
            });
            sleepers.wait_until_asleep(1);
            drop(session);
            other.join().expect("no panic").expect("the other thread got its turn");
        });
    });
}

/// A get of a region whose registration has ended fails, however it is read.
#[test]
fn get_failed_when_the_registration_has_ended() {
    run(
        Kind::Threads,
        1,
        |_| (),
        |context| {
            let mut session = context.session().unwrap();
            let region = session.register(source(pattern(1, 100))).unwrap();
            session.deregister(region, Next::Nothing);
            let into = Landing::new(100).region(100);
            session.get(0, region, 0, into, Next::Nothing).unwrap();
            let error = session.progress().unwrap_err();
            let LapiError::Adapter(AdapterError::AccessFailed { target: 0, len: 100, .. }) = error
            else {
                panic!("{error:?}");
            };
            drop(session);
            context.fence().expect("the failed get is not waited for");
        },
    );
}

/// A get of memory that does not exist in the target.
#[test]
fn get_failed_when_the_kernel_refuses() {
    run(
        Kind::Shm,
        1,
        |_| (),
        |context| {
            let mut session = context.session().unwrap();
            if session.get_kind().is_none() {
                return;
            }
            let nowhere = RemoteRegion { addr: 8, len: 100, key: 0, direct: RemoteKey::from(8) };
            let into = Landing::new(100).region(100);
            session.get(0, nowhere, 0, into, Next::Nothing).unwrap();
            let error = session.progress().unwrap_err();
            let LapiError::Adapter(AdapterError::AccessFailed { target: 0, len: 100, reason }) =
                error
            else {
                panic!("{error:?}");
            };
            assert!(reason.raw_os_error().is_some(), "the kernel's own error: {reason}");
        },
    );
}

/// After an error nothing was sent: the buffer belongs to the caller again, and is not read any more.
#[test]
fn a_send_that_failed_is_not_sent_later() {
    fn count(count: &mut u32, _: Arrival<'_>) -> HeaderAction<u32> {
        *count += 1;
        HeaderAction::Consumed
    }
    for len in [8, 20_000] {
        let inner = Kind::Threads.adapters(1).remove(0);
        let (adapter, passes) = Flaky::new(inner);
        passes.store(0, Ordering::Relaxed);
        let context = Context::init(adapter, 0, Options::default());
        let mut session = context.session().unwrap();
        session.addr_set(1, count).unwrap();
        let call = || Amsend::new(0, 1, &[], source(pattern(1, len)));
        let error = session.amsend(call()).unwrap_err();
        assert!(matches!(error, LapiError::Adapter(AdapterError::Corrupt { .. })));
        for _ in 0..10 {
            session.progress().unwrap();
        }
        assert_eq!(session.state, 0, "{len} bytes arrived although their send had failed");
        let _ = session.amsend(call()).expect("the adapter works again");
        for _ in 0..10 {
            session.progress().unwrap();
        }
        assert_eq!(session.state, 1, "{len} bytes");
    }
}

//! The error handler for asynchronous conditions, and TIMEOUT.

use std::sync::{Arc, Mutex};

use mpj_harness::{eventually, watch};
use transport_lapi::AnyAdapter;
use transport_lapi::{
    Amsend, AsyncError, Code, Context, ErrorHandler, ErrorKind, LapiError, Next, Options, Query,
    RemoteRegion, Sent,
};

use crate::support::buffers::{Landing, pattern, source};
use crate::support::frames::{BODY, COMPLETE, FENCE_ACK, GET_REFUSED, GET_REQUEST, Head};
use crate::support::job::{Kind, waiting};

type Seen = (Code, ErrorKind, u32, u32);

/// What the handler has got.
type Reports = Arc<Mutex<Vec<Seen>>>;

/// Task 0 of two, with a handler, and the adapter of task 1.
fn scene() -> (Arc<Context<()>>, AnyAdapter, Reports) {
    let mut adapters = Kind::ShmAm.adapters(2);
    let (peer, reports) = (adapters.remove(1), Reports::default());
    let kept = Arc::clone(&reports);
    let handler = ErrorHandler::new(move |error: AsyncError| {
        assert!(!error.error.to_string().is_empty());
        kept.lock().unwrap().push((error.code, error.kind, error.task, error.source));
    });
    let options = Options { error_handler: Some(handler), ..Options::default() };
    let context = Arc::new(Context::init(adapters.remove(0), (), options));
    (context, peer, reports)
}

/// Makes a round of progress, and what follows it with the lock free.
fn round(context: &Context<()>) {
    let mut session = context.session().unwrap();
    session.progress().expect("the handler gets the errors");
    context.attend(session);
}

fn taken(reports: &Reports) -> Vec<Seen> {
    std::mem::take(&mut *reports.lock().unwrap())
}

#[test]
fn conditions_go_to_the_handler_with_kind_and_code() {
    let (context, mut peer, reports) = scene();
    let unset = Head::new(1, 200, 0);
    let cases = [
        (unset, Code::HdrHndlrNull, ErrorKind::Am),
        (Head::new(BODY, 0, 7).field(0), Code::Unknown, ErrorKind::Am),
        (Head::new(COMPLETE, 0, 5), Code::CntrNull, ErrorKind::Am),
        (Head::new(GET_REFUSED, 0, 5), Code::Unknown, ErrorKind::Get),
        (Head::new(GET_REQUEST, 0, 5).field(9).field(0).field(8), Code::Unknown, ErrorKind::Get),
        (Head::new(FENCE_ACK, 0, 0), Code::Unknown, ErrorKind::Internal),
        (Head::new(99, 0, 0), Code::Unknown, ErrorKind::Internal),
    ];
    for (head, code, kind) in cases {
        head.send(&mut peer, 0, &[]);
        round(&context);
        assert_eq!(taken(&reports), [(code, kind, 0, 1)], "{head:?}");
    }
    let counter = context.session().unwrap().counter();
    Head::new(99, 0, 0).send(&mut peer, 0, &[]);
    Head::new(COMPLETE, 0, 1).send(&mut peer, 0, &[]);
    assert_eq!(context.waitcntr(counter, 1).unwrap(), 0, "the wait goes on");
    assert_eq!(taken(&reports).len(), 1);
}

#[test]
fn a_lost_task_is_reported_once_and_its_calls_fail_as_usual() {
    let (context, peer, reports) = scene();
    let counter = context.session().unwrap().counter();
    peer.parts().losses.declare();
    for _ in 0..2 {
        context.waitcntr(counter, 1).unwrap_err();
    }
    round(&context);
    assert_eq!(taken(&reports), [(Code::NoConnectivity, ErrorKind::Internal, 0, 1)]);
}

/// A get fails with its task, and what follows it takes no outcome.
#[test]
fn a_failed_get_without_an_outcome_is_reported() {
    let (context, _peer, reports) = scene();
    let mut session = context.session().unwrap();
    let (remote, landing) = (RemoteRegion::over_frames(64, 8, 0), Landing::new(8));
    session.get(1, remote, 0, landing.region(8), Next::Nothing).unwrap();
    session.purge_totask(1).unwrap();
    drop(session);
    round(&context);
    assert_eq!(taken(&reports), [(Code::TgtPurged, ErrorKind::Internal, 0, 1)]);
}

/// The handler runs with the lock free: it purges the task that has broken the protocol.
#[test]
fn the_handler_may_call_the_context() {
    let mut adapters = Kind::ShmAm.adapters(2);
    let mut peer = adapters.remove(1);
    let slot = Arc::new(Mutex::new(None::<Arc<Context<()>>>));
    let of_handler = Arc::clone(&slot);
    let handler = ErrorHandler::new(move |error| {
        let context = of_handler.lock().unwrap();
        let mut session = context.as_ref().unwrap().session().expect("the lock is free");
        session.purge_totask(error.source).unwrap();
    });
    let options = Options { error_handler: Some(handler), ..Options::default() };
    let context = Arc::new(Context::init(adapters.remove(0), (), options));
    *slot.lock().unwrap() = Some(Arc::clone(&context));
    Head::new(99, 0, 0).send(&mut peer, 0, &[]);
    round(&context);
    assert!(context.session().unwrap().is_purged(1).unwrap());
    *slot.lock().unwrap() = None;
}

/// A message that waits because its target takes nothing is reported after TIMEOUT, whether the task polls or sleeps.
#[test]
fn a_message_that_does_not_move_is_reported_after_timeout() {
    watch(|| {
        for mode in
            [transport_lapi::config::WaitMode::Spin, transport_lapi::config::WaitMode::Block]
        {
            let mut adapters = Kind::Threads.adapters(2);
            let _peer = adapters.remove(1);
            let context = Arc::new(Context::init(adapters.remove(0), (), waiting(mode)));
            context.senv(Query::Timeout, 1).unwrap();
            let call = Amsend::new(1, 1, &[], source(pattern(1, 6 << 20)));
            assert_eq!(context.session().unwrap().amsend(call).unwrap(), Sent::Later);
            let error = context.wait(|_| None::<()>).unwrap_err();
            let LapiError::Timeout { target: 1, seconds } = error else { panic!("{error:?}") };
            assert!(seconds >= 1);
        }
    });
}

#[test]
fn timeout_is_a_condition_of_the_timer_and_the_message_can_be_purged() {
    watch(|| {
        let (context, _peer, reports) = scene();
        context.senv(Query::Timeout, 1).unwrap();
        context.senv(Query::InterruptSet, 1).unwrap();
        let counter = context.session().unwrap().counter();
        let mut call = Amsend::new(1, 1, &[], source(pattern(1, 6 << 20)));
        call.on_origin = Next::Counter(counter);
        let _ = context.session().unwrap().amsend(call).unwrap();
        eventually("the notification thread finds it", || !reports.lock().unwrap().is_empty());
        assert_eq!(taken(&reports), [(Code::Timeout, ErrorKind::Timer, 0, 1)]);
        context.session().unwrap().purge_totask(1).unwrap();
        assert_eq!(context.nopoll_wait(counter, 1).unwrap(), 0, "its buffer is reusable");
        context.term().unwrap();
    });
}

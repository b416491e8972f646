//! LAPI_Address_init, LAPI_Addr_set and LAPI_Addr_get.

use std::thread;

use mpj_harness::watch;
use transport_lapi::{
    Arrival, Context, HeaderAction, HeaderHandler, LapiError, MAX_HANDLERS, Options, SendRegion,
};

use crate::support::job::{Kind, run};

#[test]
fn each_task_gets_the_values_of_all() {
    for kind in Kind::ALL {
        for num_tasks in [1, 2, 5] {
            run(
                kind,
                num_tasks,
                |_| (),
                move |context| {
                    let value = |task: u64, round: u64| (task << 40) | round;
                    for round in 0..20 {
                        let table =
                            context.address_init(value(context.task().into(), round)).unwrap();
                        let expected: Vec<_> =
                            (0..num_tasks as u64).map(|task| value(task, round)).collect();
                        assert_eq!(table, expected, "round {round}");
                    }
                    assert_eq!(context.address_init(u64::MAX).unwrap(), vec![u64::MAX; num_tasks]);
                    context.gfence().unwrap();
                },
            );
        }
    }
}

/// No task returns before all have called.
#[test]
fn it_waits_for_all() {
    use std::sync::atomic::{AtomicUsize, Ordering};
    let called = AtomicUsize::new(0);
    run(
        Kind::Threads,
        3,
        |_| (),
        move |context| {
            for round in 1..=10 {
                called.fetch_add(1, Ordering::SeqCst);
                context.address_init(0).unwrap();
                assert!(called.load(Ordering::SeqCst) >= 3 * round);
            }
        },
    );
}

/// An error that has nothing to do with the exchange ends a call of it; the next call ends the exchange.
#[test]
fn a_call_after_an_error_continues_the_exchange() {
    watch(|| {
        let mut adapters = Kind::Threads.adapters(2);
        let peer = Context::init(adapters.remove(1), (), Options::default());
        let task = Context::init(adapters.remove(0), (), Options::default());
        assert!(peer.session().unwrap().try_amsend(0, 99, 0, SendRegion::EMPTY));
        let error = task.address_init(10).unwrap_err();
        assert!(matches!(error, LapiError::HdrHndlrNull { origin: 1, index: 99 }), "{error}");
        thread::scope(|scope| {
            let values = scope.spawn(|| [70, 71].map(|value| peer.address_init(value).unwrap()));
            assert_eq!(task.address_init(20).unwrap(), [10, 70], "the value that was sent");
            assert_eq!(task.address_init(30).unwrap(), [30, 71]);
            assert_eq!(values.join().unwrap(), [[10, 70], [30, 71]]);
        });
    });
}

#[test]
fn a_handler_that_was_set_can_be_asked_for() {
    fn consume(_: &mut u32, _: Arrival<'_>) -> HeaderAction<u32> {
        HeaderAction::Consumed
    }
    let context = Context::init(Kind::Threads.adapters(1).remove(0), 0, Options::default());
    let mut session = context.session().unwrap();
    let is_set = |handler: Option<HeaderHandler<u32>>| handler.is_some();
    assert!(!is_set(session.addr_get(MAX_HANDLERS - 1).unwrap()));
    session.addr_set(MAX_HANDLERS - 1, consume).unwrap();
    assert!(is_set(session.addr_get(MAX_HANDLERS - 1).unwrap()));
    assert!(!is_set(session.addr_get(1).unwrap()));
    for index in [0, MAX_HANDLERS, usize::MAX] {
        let error = session.addr_get(index).map(drop).unwrap_err();
        assert!(matches!(error, LapiError::AddrHndlRange { index: i } if i == index));
    }
    drop(session);
    context.term().unwrap();
    assert!(matches!(context.address_init(1), Err(LapiError::HndlInvalid)));
}

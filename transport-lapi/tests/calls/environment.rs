//! LAPI_Qenv, LAPI_Senv and the statistics.

use std::sync::Arc;

use transport_lapi::{
    Amsend, Arrival, Context, HeaderAction, LapiError, MAX_HANDLERS, MAX_UHDR, Options, Query,
    SendRegion, Statistics, msg_string,
};

use crate::support::buffers::{pattern, source};
use crate::support::job::Kind;

fn alone(kind: Kind) -> Arc<Context<()>> {
    Arc::new(Context::init(kind.adapters(1).remove(0), (), Options::default()))
}

fn qenv(context: &Context<()>, query: Query) -> u64 {
    context.session().unwrap().qenv(query).unwrap()
}

/// The numbers of the keys are LAPI's, so a face of another language can pass them on.
#[test]
fn every_key_has_a_value_or_query_type() {
    for kind in Kind::ALL {
        let context = alone(kind);
        for key in 0..100 {
            let answer =
                Query::of_key(key).and_then(|query| context.session().unwrap().qenv(query));
            match (key, answer) {
                (0..=22 | 28 | 29, Ok(_)) => {}
                (23..=27 | 30.., Err(LapiError::QueryType { key: named })) => {
                    assert_eq!(named, key);
                }
                (key, other) => panic!("key {key}: {other:?}"),
            }
        }
        for (place, query) in Query::ALL.into_iter().enumerate() {
            assert_eq!(query.key() as usize, place);
        }
    }
}

#[test]
fn the_values_of_a_new_context() {
    let context = alone(Kind::Threads);
    let packet = qenv(&context, Query::MaxPktSz);
    let expected = [
        (Query::TaskId, 0),
        (Query::NumTasks, 1),
        (Query::MaxUhdrSz, MAX_UHDR as u64),
        (Query::MaxDataSz, isize::MAX as u64),
        (Query::ErrorChk, 1),
        (Query::Timeout, 0),
        (Query::MinTimeout, 1),
        (Query::MaxTimeout, 86_400),
        (Query::InterruptSet, 0),
        (Query::MaxAtomSize, packet),
        (Query::LocAddrtblSz, MAX_HANDLERS as u64),
        (Query::AckThreshold, 30),
        (Query::ShmEnabled, 1),
        (Query::ShmNumTasks, 1),
    ];
    for (query, value) in expected {
        assert_eq!(qenv(&context, query), value, "{query:?}");
    }
    assert_eq!(context.session().unwrap().shm_tasks(), [0]);
    let apart = alone(Kind::ShmAm);
    assert_eq!((qenv(&apart, Query::ShmEnabled), qenv(&apart, Query::ShmNumTasks)), (0, 0));
    assert_eq!(apart.session().unwrap().shm_tasks(), []);
}

/// A message that is alone in its send queue leaves during the call up to BUF_CP_SIZE, and not if no ring holds it.
#[test]
fn buf_cp_size_is_where_sends_end_at_once() {
    let context = alone(Kind::Threads);
    let limit = qenv(&context, Query::BufCpSize) as usize;
    let mut session = context.session().unwrap();
    session.addr_set(1, |_, _: Arrival<'_>| HeaderAction::Drop).unwrap();
    for (len, leaves) in [(limit, true), (3 << 20, false)] {
        let call = Amsend::new(0, 1, &[], source(pattern(1, len)));
        let sent = session.amsend(call).unwrap();
        assert_eq!(sent == transport_lapi::Sent::Now, leaves, "{len}");
        while session.progress().unwrap() > 0 {}
    }
}

#[test]
fn four_keys_can_be_set_within_their_ranges() {
    let context = alone(Kind::Threads);
    let settable = [
        (Query::ErrorChk, 0, 1),
        (Query::Timeout, 0, 86_400),
        (Query::InterruptSet, 0, 1),
        (Query::AckThreshold, 1, 30),
    ];
    for (query, least, most) in settable {
        for value in [least, most] {
            context.senv(query, value).unwrap();
            assert_eq!(qenv(&context, query), value.unsigned_abs(), "{query:?}");
        }
        for value in [least - 1, most + 1, i64::MIN, i64::MAX] {
            let error = context.senv(query, value).unwrap_err();
            let named = matches!(error, LapiError::SetVal { key, value: v, .. }
                if key == query.key() && v == value);
            assert!(named, "{query:?}: {error}");
            assert_eq!(qenv(&context, query), most.unsigned_abs(), "unchanged");
        }
    }
    for query in Query::ALL {
        if settable.iter().all(|(settable, ..)| *settable != query) {
            let error = context.senv(query, 1).unwrap_err();
            assert!(matches!(error, LapiError::QueryType { key } if key == query.key()));
        }
    }
    context.term().unwrap();
    assert!(matches!(context.senv(Query::ErrorChk, 1), Err(LapiError::HndlInvalid)));
}

/// Parameters are checked even then, since memory depends on it.
#[test]
fn error_chk_off_leaves_the_checks() {
    let context = alone(Kind::Threads);
    context.senv(Query::ErrorChk, 0).unwrap();
    let mut session = context.session().unwrap();
    let error = session.amsend(Amsend::new(1, 1, &[], SendRegion::EMPTY)).unwrap_err();
    assert!(matches!(error, LapiError::Tgt { target: 1, .. }), "{error}");
}

#[test]
fn the_statistics_count_packets() {
    let mut adapters = Kind::Threads.adapters(2);
    let other = Context::init(adapters.remove(1), (), Options::default());
    let context = Context::init(adapters.remove(0), (), Options::default());
    for context in [&context, &other] {
        let mut session = context.session().unwrap();
        session.addr_set(1, |_, _: Arrival<'_>| HeaderAction::Drop).unwrap();
    }
    let mut session = context.session().unwrap();
    assert_eq!(session.statistics(), Some(Statistics::default()));
    for _ in 0..3 {
        assert!(session.try_amsend_bytes(1, 1, 0, b"packet"));
    }
    assert!(session.try_amsend_bytes(0, 1, 0, b"packet"));
    while session.progress().unwrap() > 0 {}
    let (sent, received) = (4, 1);
    let expected = Statistics { packets_sent: sent, packets_received: received, dropped: 0 };
    assert_eq!(session.statistics(), Some(expected));
    let mut session = other.session().unwrap();
    while session.progress().unwrap() > 0 {}
    assert_eq!(session.statistics().map(|counted| counted.packets_received), Some(3));
}

#[test]
fn a_code_has_a_text() {
    let error = Query::of_key(1_000).unwrap_err();
    let text = msg_string(error.code().number()).unwrap();
    assert!(text.starts_with("LAPI_ERR_QUERY_TYPE: "), "{text}");
    assert!(matches!(msg_string(1), Err(LapiError::CodeUnknown { code: 1 })));
}

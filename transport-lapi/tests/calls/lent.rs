//! Active messages whose data is borrowed for the call.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Barrier};

use transport_lapi::adapter::AdapterError;
use transport_lapi::{Arrival, HeaderAction, LapiError, Next, Options};

use crate::support::buffers::{Landing, pattern};
use crate::support::flaky::Flaky;
use crate::support::job::{Kind, run, run_with};

const STORE: u8 = 1;
/// In one packet, in several, and more than fits into a ring.
const LENGTHS: [usize; 8] = [0, 8, 300, 16 << 10, (16 << 10) + 1, 100_000, 3 << 20, 9];

/// The messages in the order of arrival.
type Inbox = Vec<(Landing, usize)>;

fn store(inbox: &mut Inbox, message: Arrival<'_>) -> HeaderAction<Inbox> {
    let len = message.len as usize;
    let landing = Landing::new(len);
    let into = landing.region(len).into();
    inbox.push((landing, len));
    HeaderAction::Deliver { into, next: Next::Nothing }
}

/// The borrowed bytes are overwritten as soon as the call returns, while the target makes no progress.
#[test]
fn what_has_to_wait_is_copied() {
    for kind in Kind::ALL {
        let gate = Arc::new(Barrier::new(2));
        run(
            kind,
            2,
            |_| Inbox::new(),
            move |context| {
                context.session().unwrap().addr_set(STORE.into(), store).unwrap();
                context.gfence().unwrap();
                let all = || (0..).zip(LENGTHS.into_iter().cycle().take(3 * LENGTHS.len()));
                if context.task() == 0 {
                    for (number, len) in all() {
                        let mut bytes = pattern(number, len).to_vec();
                        let mut session = context.session().unwrap();
                        session.amsend_bytes(1, STORE, &[], &bytes).unwrap();
                        drop(session);
                        bytes.fill(0);
                    }
                }
                gate.wait();
                context.gfence().unwrap();
                let session = context.session().unwrap();
                for ((number, len), (landing, found)) in all().zip(&session.state) {
                    assert_eq!(len, *found, "{kind:?}: message {number}");
                    assert!(landing.holds(pattern(number, len)), "{kind:?}: message {number}");
                }
                let due = if context.task() == 1 { 3 * LENGTHS.len() } else { 0 };
                assert_eq!(session.state.len(), due, "{kind:?}");
            },
        );
    }
}

#[test]
fn wrong_arguments_are_refused() {
    run(
        Kind::Threads,
        1,
        |_| (),
        |context| {
            let mut session = context.session().unwrap();
            let refusal = session.amsend_bytes(1, 1, &[], &[1]).unwrap_err();
            assert!(matches!(refusal, LapiError::Tgt { target: 1, .. }), "{refusal}");
            let refusal = session.amsend_bytes(0, 0, &[], &[1]).unwrap_err();
            assert!(matches!(refusal, LapiError::AddrHndlRange { index: 0 }), "{refusal}");
            let refusal = session.amsend_bytes(0, 1, &[0; 9], &[1]).unwrap_err();
            assert!(matches!(refusal, LapiError::UhdrLen { len: 9, .. }), "{refusal}");
        },
    );
}

/// An adapter that fails before the first frame makes the call fail; one that fails later is reported by progress, and
/// the target gets the whole message.
#[test]
fn a_failure_is_reported_once() {
    let is_made_up = |error: &LapiError| matches!(error, LapiError::Adapter(AdapterError::Corrupt { what, .. }) if what.contains("made up"));
    for passes_first in [0, 2] {
        let (adapter, passes) = Flaky::new(Kind::Threads.adapters(1).remove(0));
        run_with(
            vec![adapter],
            Options::default(),
            |_| Inbox::new(),
            move |context| {
                let bytes = pattern(1, 200_000);
                let mut session = context.session().unwrap();
                session.addr_set(STORE.into(), store).unwrap();
                passes.store(passes_first, Ordering::Relaxed);
                let sent = session.amsend_bytes(0, STORE, &[], bytes);
                passes.store(-1, Ordering::Relaxed);
                if passes_first == 0 {
                    assert!(sent.is_err_and(|error| is_made_up(&error)));
                    session.amsend_bytes(0, STORE, &[], bytes).unwrap();
                } else {
                    sent.unwrap();
                    assert!(session.progress().is_err_and(|error| is_made_up(&error)));
                }
                drop(session);
                context.fence().unwrap();
                let session = context.session().unwrap();
                assert_eq!(session.state.len(), 1);
                assert!(session.state[0].0.holds(bytes));
            },
        );
    }
}

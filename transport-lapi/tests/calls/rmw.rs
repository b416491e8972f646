//! Read-modify-writes.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use transport_lapi::adapter::AdapterError;
use transport_lapi::{Context, LapiError, Next, Operation, RemoteRegion, Rmw, RmwOp, Violation};

use crate::support::board::Board;
use crate::support::buffers::{Landing, source};
use crate::support::job::{Kind, both_errors, run};

const REGION: usize = 64;

fn register<S>(context: &Context<S>, board: &Board) -> Landing {
    let landing = Landing::new(REGION + 8);
    landing.fill(0);
    let region = landing.region(REGION);
    let region = context.session().unwrap().register_writable(region).unwrap();
    board.publish(context, region);
    landing
}

/// Carries an operation out and returns its result.
fn result(
    context: &Context<()>,
    remote: RemoteRegion,
    target: u32,
    offset: u64,
    operation: impl Into<Operation>,
) -> i64 {
    let prev = Arc::new(AtomicI64::new(-77));
    let counter = context.session().unwrap().counter();
    let call = Rmw::new(target, remote, offset, operation);
    let call = Rmw { prev: Some(Arc::clone(&prev)), next: Next::Counter(counter), ..call };
    context.session().unwrap().rmw(call).unwrap();
    assert_eq!(context.waitcntr(counter, 1).unwrap(), 0);
    prev.load(Ordering::Relaxed)
}

#[test]
fn all_operations_of_both_sizes() {
    for kind in Kind::ALL {
        let board = Board::new(2);
        run(
            kind,
            2,
            |_| (),
            move |context| {
                let landing = register(context, &board);
                if context.task() == 0 {
                    let remote = board.of(1);
                    let wide = |op: RmwOp<i64>| result(context, remote, 1, 8, op);
                    assert_eq!(wide(RmwOp::FetchAndAdd(i64::MAX)), 0);
                    assert_eq!(wide(RmwOp::FetchAndAdd(2)), i64::MAX);
                    assert_eq!(wide(RmwOp::Swap(0b1010)), i64::MIN + 1);
                    assert_eq!(wide(RmwOp::FetchAndOr(0b0101)), 0b1010);
                    let swap = |expected, new| RmwOp::CompareAndSwap { expected, new };
                    assert_eq!(wide(swap(0b1010, 1)), 0, "a boolean, not the old value");
                    let fetch = |expected, new| RmwOp::CompareAndFetch { expected, new };
                    assert_eq!(wide(fetch(0b1010, 1)), 0b1111, "the old value");
                    assert_eq!(wide(fetch(0b1111, 0b0110)), 0b1111);
                    assert_eq!(wide(RmwOp::FetchAndXor(0b1101)), 0b0110);
                    assert_eq!(wide(RmwOp::FetchAndAnd(0b1110)), 0b1011);
                    assert_eq!(wide(RmwOp::Swap(0b1111)), 0b1010);
                    assert_eq!(wide(swap(0b1111, -5)), 1);
                    let narrow = |op: RmwOp<i32>| result(context, remote, 1, 20, op);
                    assert_eq!(narrow(RmwOp::FetchAndAdd(i32::MAX)), 0);
                    assert_eq!(narrow(RmwOp::FetchAndAdd(1)), i64::from(i32::MAX));
                    assert_eq!(narrow(RmwOp::Swap(6)), i64::from(i32::MIN), "with its sign");
                    assert_eq!(narrow(RmwOp::FetchAndOr(9)), 6);
                    let swap = RmwOp::CompareAndSwap { expected: 15, new: -1 };
                    assert_eq!(narrow(swap), 1);
                    assert_eq!(narrow(swap), 0);
                }
                context.gfence().unwrap();
                if context.task() == 1 {
                    let mut expected = [0; REGION];
                    expected[8..16].copy_from_slice(&(-5_i64).to_le_bytes());
                    expected[20..24].copy_from_slice(&[255; 4]);
                    assert_eq!(landing.contents(REGION).0, expected, "{kind:?}");
                }
                context.gfence().unwrap();
            },
        );
    }
}

/// Four tasks add to one variable of task 0; each sum is seen once.
#[test]
fn concurrent_additions_are_atomic() {
    const TASKS: usize = 4;
    const EACH: usize = 200;
    for kind in Kind::ALL {
        let board = Board::new(TASKS);
        let seen = run(
            kind,
            TASKS,
            |_| (),
            move |context| {
                let landing = register(context, &board);
                let counter = context.session().unwrap().counter();
                let results: Vec<_> = (0..EACH).map(|_| Arc::new(AtomicI64::new(-1))).collect();
                for prev in &results {
                    let call = Rmw::new(0, board.of(0), 16, RmwOp::FetchAndAdd(1_i64));
                    let (prev, next) = (Some(Arc::clone(prev)), Next::Counter(counter));
                    context.session().unwrap().rmw(Rmw { prev, next, ..call }).unwrap();
                }
                context.waitcntr(counter, EACH as i64).unwrap();
                context.gfence().unwrap();
                if context.task() == 0 {
                    let sum = ((TASKS * EACH) as u64).to_le_bytes();
                    assert_eq!(landing.contents(24).0[16..], sum, "{kind:?}");
                }
                context.gfence().unwrap();
                results.iter().map(|prev| prev.load(Ordering::Relaxed)).collect::<Vec<_>>()
            },
        );
        let mut seen: Vec<i64> = seen.into_iter().flatten().collect();
        seen.sort_unstable();
        assert!(seen.into_iter().eq(0..(TASKS * EACH) as i64), "{kind:?}: each value is seen once");
    }
}

#[test]
fn wrong_arguments_are_refused() {
    let board = Board::new(1);
    run(
        Kind::Shm,
        1,
        |_| (),
        move |context| {
            let landing = register(context, &board);
            let remote = board.of(0);
            let mut session = context.session().unwrap();
            let add = RmwOp::FetchAndAdd(1_i64);
            let refusal = session.rmw(Rmw::new(1, remote, 0, add)).unwrap_err();
            assert!(matches!(refusal, LapiError::Tgt { target: 1, .. }), "{refusal}");
            let nowhere = RemoteRegion { addr: 0, ..remote };
            let refusal = session.rmw(Rmw::new(0, nowhere, 0, add)).unwrap_err();
            assert!(matches!(refusal, LapiError::TgtVarNull), "{refusal}");
            for offset in [57, 64, u64::MAX - 3] {
                let refusal = session.rmw(Rmw::new(0, remote, offset, add)).unwrap_err();
                assert!(matches!(refusal, LapiError::DataLen { len: 8, .. }), "{refusal}");
            }
            drop(session);
            context.fence().unwrap();
            assert_eq!(landing.contents(REGION).0, [0; REGION]);
        },
    );
}

/// A variable that is not aligned, or in memory that may only be read, is not changed. The operation ends with an
/// error.
#[test]
fn other_variables_are_refused() {
    for kind in Kind::ALL {
        let mut adapters = kind.adapters(2);
        let owner = Context::init(adapters.remove(1), (), Default::default());
        let origin = Context::init(adapters.remove(0), (), Default::default());
        let landing = Landing::new(REGION);
        landing.fill(0);
        let read_only = owner.session().unwrap().register(source(&[0; REGION])).unwrap();
        let region = landing.region(REGION);
        let writable = owner.session().unwrap().register_writable(region).unwrap();
        for (remote, offset) in [(read_only, 8), (writable, 12)] {
            // A made-up description, so that the origin does not see that the variable is not aligned.
            let remote = RemoteRegion { addr: u64::MAX, ..remote };
            let call = Rmw::new(1, remote, offset, RmwOp::Swap(7_i64));
            let counter = origin.session().unwrap().counter();
            let call = Rmw { next: Next::Counter(counter), ..call };
            origin.session().unwrap().rmw(call).unwrap();
            if kind == Kind::OneSided {
                // The owner does not take part.
                let refused = origin.wait(|_| None::<()>).unwrap_err();
                let expected = matches!(
                    refused,
                    LapiError::Adapter(AdapterError::AccessFailed { target: 1, len: 8, .. })
                );
                assert!(expected, "{refused}");
            } else {
                let violations = both_errors([&owner, &origin]).map(|error| match error {
                    LapiError::Peer { violation, .. } => Some(violation),
                    _ => None,
                });
                let unregistered = Violation::UnregisteredRmw;
                assert_eq!(violations, [unregistered, Violation::RmwRefused].map(Some), "{kind:?}");
            }
            assert_eq!(origin.session().unwrap().getcntr(counter).unwrap(), 0);
            assert_eq!(landing.contents(REGION).0, [0; REGION], "{kind:?}");
        }
    }
}

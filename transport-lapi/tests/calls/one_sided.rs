//! Puts, transfers as values, and which counter is incremented when.

use std::sync::mpsc;

use mpj_doubles::channels::{self, Cards};
use mpj_doubles::fault::{FaultAdapter, FaultPlan};
use mpj_harness::watch;
use transport_lapi::adapter::AdapterError;
use transport_lapi::{
    Amsend, Arrival, Context, CounterId, HeaderAction, LapiError, Next, Outbox, Put, RemoteKey,
    RemoteRegion, Rmw, RmwOp, SendRegion, Sent, Violation, Xfer,
};

use crate::support::board::Board;
use crate::support::buffers::{Landing, null_source, pattern, source};
use crate::support::job::{Kind, both_errors, run};

const REGION: usize = 1 << 20;
const LENGTHS: [usize; 11] = [1, 8, 63, 64, 300, 4096, 16_384, 16_385, 65_537, 600_001, REGION];

/// Registers a blank landing of this task for writing, and waits until every task has done so.
fn register<S>(context: &Context<S>, board: &Board) -> Landing {
    let landing = Landing::new(REGION);
    let region = context.session().unwrap().register_writable(landing.region(REGION)).unwrap();
    board.publish(context, region);
    landing
}

/// Ends the registration, and returns once nobody writes there any more.
fn end<S>(context: &Context<S>, board: &Board) {
    let counter = context.session().unwrap().counter();
    context.gfence().unwrap();
    let over = Next::Counter(counter);
    context.session().unwrap().deregister(board.of(context.task()), over);
    context.waitcntr(counter, 1).unwrap();
}

/// The bytes `offset..offset + len` of a landing that is otherwise blank.
fn contains(landing: Landing, offset: usize, bytes: &[u8]) -> bool {
    let (all, is_blank_behind) = landing.contents(offset + bytes.len());
    let before = &all[..offset];
    is_blank_behind && before.iter().all(|&byte| byte == 0xA5) && &all[offset..] == bytes
}

#[test]
fn every_length_and_offset_is_stored() {
    for kind in Kind::ALL {
        let board = Board::new(2);
        run(
            kind,
            2,
            |_| (),
            move |context| {
                let landing = register(context, &board);
                let counter = context.session().unwrap().counter();
                for (round, len) in LENGTHS.into_iter().enumerate() {
                    let offset = [0, 1, 63, REGION - len][round % 4].min(REGION - len);
                    let bytes = pattern(round as u64, len);
                    if context.task() == 0 {
                        let mut call = Put::new(1, board.of(1), offset as u64, source(bytes));
                        call.cmpl_cntr = Some(counter);
                        let _ = context.session().unwrap().put(call).unwrap();
                        assert_eq!(context.waitcntr(counter, 1).unwrap(), 0);
                    }
                    context.gfence().unwrap();
                    if context.task() == 1 {
                        assert!(contains(landing, offset, bytes), "{kind:?}: {len} at {offset}");
                        landing.wipe();
                    }
                    context.gfence().unwrap();
                }
                end(context, &board);
            },
        );
    }
}

/// A fence waits for puts, so those after it overwrite those before it.
#[test]
fn a_fence_orders_puts() {
    for kind in Kind::ALL {
        let board = Board::new(3);
        run(
            kind,
            3,
            |_| (),
            move |context| {
                let landing = register(context, &board);
                let me = context.task();
                for round in 0..20 {
                    for (target, len) in [((me + 1) % 3, 40_000), ((me + 1) % 3, 30_000)] {
                        let bytes = source(pattern(round + len, len as usize));
                        let put = Put::new(target, board.of(target), 0, bytes);
                        let _ = context.session().unwrap().put(put).unwrap();
                        context.fence().unwrap();
                    }
                    context.gfence().unwrap();
                    let (all, _) = landing.contents(40_000);
                    let (head, tail) = all.split_at(30_000);
                    assert!(head == pattern(round + 30_000, 30_000), "{kind:?}: round {round}");
                    assert!(*tail == pattern(round + 40_000, 40_000)[30_000..], "{kind:?}");
                    context.gfence().unwrap();
                }
                end(context, &board);
            },
        );
    }
}

#[test]
fn a_task_puts_into_its_own_memory() {
    for kind in Kind::ALL {
        let board = Board::new(1);
        run(
            kind,
            1,
            |_| (),
            move |context| {
                let landing = register(context, &board);
                let bytes = pattern(3, REGION);
                let put = Put::new(0, board.of(0), 0, source(bytes));
                let _ = context.session().unwrap().put(put).unwrap();
                context.fence().unwrap();
                assert!(landing.holds(bytes), "{kind:?}");
                end(context, &board);
            },
        );
    }
}

/// What a counter test looks at.
#[derive(Default)]
struct Seen {
    completed: usize,
}

fn deliver(_: &mut Seen, message: Arrival<'_>) -> HeaderAction<Seen> {
    fn count(seen: &mut Seen, _: &mut Outbox<Seen>, _: u64) {
        seen.completed += 1;
    }
    let len = message.len as usize;
    let into = Landing::new(len).region(len).into();
    HeaderAction::Deliver { into, next: Next::Inline(count, 0) }
}

/// A kind of transfer, with the counters that it increments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Row {
    Put,
    Get,
    Am,
    Rmw,
}

/// Starts a transfer of `len` bytes to or from task 1, with counters `[origin, target, completion]`.
fn start(
    context: &Context<Seen>,
    board: &Board,
    row: Row,
    len: usize,
    [origin, target, completion]: [CounterId; 3],
) {
    let (remote, bytes, on_origin) = (board.of(1), source(pattern(1, len)), Next::Counter(origin));
    let (tgt_cntr, cmpl_cntr) = (Some(target), Some(completion));
    let transfer = match row {
        Row::Put => {
            let call = Put::new(1, remote, 0, bytes);
            Xfer::Put(Put { on_origin, tgt_cntr, cmpl_cntr, ..call })
        }
        Row::Am => {
            let call = Amsend::new(1, 1, &[], bytes);
            Xfer::Am(Amsend { on_origin, tgt_cntr, cmpl_cntr, ..call })
        }
        Row::Get => {
            let into = Landing::new(len).region(len).into();
            Xfer::Get { target: 1, remote, offset: 0, into, next: on_origin, tgt_cntr }
        }
        Row::Rmw => {
            Xfer::Rmw(Rmw { next: on_origin, ..Rmw::new(1, remote, 8, RmwOp::Swap(1_i64)) })
        }
    };
    let sent = context.session().unwrap().xfer(transfer).unwrap();
    assert!(matches!(row, Row::Put | Row::Am) || sent == Sent::Later);
}

/// The table of counters, row by row: each counter that the operation has is incremented once, and no other.
#[test]
fn each_operation_increments_its_counters_once() {
    for kind in Kind::ALL {
        let board = Board::new(2);
        run(
            kind,
            2,
            |_| Seen::default(),
            move |context| {
                let landing = register(context, &board);
                let mut session = context.session().unwrap();
                session.addr_set(1, deliver).unwrap();
                let counters = [(); 3].map(|()| session.counter());
                drop(session);
                context.gfence().unwrap();
                let mut messages = 0;
                for row in [Row::Put, Row::Get, Row::Am, Row::Rmw] {
                    for len in [0, 1, 300, 20_000, 400_000] {
                        let has_target = row != Row::Rmw;
                        let has_completion = matches!(row, Row::Put | Row::Am);
                        messages += usize::from(row == Row::Am);
                        let [origin, target, completion] = counters;
                        if context.task() == 0 {
                            start(context, &board, row, len, counters);
                            context.waitcntr(origin, 1).unwrap();
                            if has_completion {
                                context.waitcntr(completion, 1).unwrap();
                            }
                        } else if has_target {
                            context.waitcntr(target, 1).unwrap();
                            let seen = context.session().unwrap().state.completed;
                            assert_eq!(seen, messages, "{kind:?}: the handler has returned");
                            let stored = row != Row::Put || contains(landing, 0, pattern(1, len));
                            assert!(stored, "{kind:?}: {len} bytes are stored");
                        }
                        context.gfence().unwrap();
                        let mut session = context.session().unwrap();
                        let left = counters.map(|counter| session.getcntr(counter).unwrap());
                        drop(session);
                        assert_eq!(left, [0; 3], "{kind:?}: {row:?} of {len} bytes");
                        landing.wipe();
                        context.gfence().unwrap();
                    }
                }
                end(context, &board);
            },
        );
    }
}

#[test]
fn wrong_arguments_are_refused_and_nothing_is_stored() {
    let board = Board::new(1);
    run(
        Kind::Shm,
        1,
        |_| (),
        move |context| {
            let landing = register(context, &board);
            let bytes = || source(pattern(1, 100));
            let remote = board.of(0);
            let mut session = context.session().unwrap();
            let refusal = session.put(Put::new(1, remote, 0, bytes())).unwrap_err();
            assert!(matches!(refusal, LapiError::Tgt { target: 1, num_tasks: 1 }), "{refusal}");
            for offset in [REGION as u64 - 99, u64::MAX] {
                let refusal = session.put(Put::new(0, remote, offset, bytes())).unwrap_err();
                let expected = matches!(
                    refusal, LapiError::DataLen { offset: at, len: 100, .. } if at == offset
                );
                assert!(expected, "{refusal}");
            }
            let refusal = session.put(Put::new(0, remote, 0, null_source(8))).unwrap_err();
            assert!(matches!(refusal, LapiError::OrgAddrNull { len: 8 }), "{refusal}");
            let nowhere = transport_lapi::RemoteRegion { addr: 0, ..remote };
            let refusal = session.put(Put::new(0, nowhere, 0, bytes())).unwrap_err();
            assert!(matches!(refusal, LapiError::TgtAddrNull { .. }), "{refusal}");
            let unknown = Next::Counter(CounterId(99));
            let call = Put { on_origin: unknown, ..Put::new(0, remote, 0, bytes()) };
            let refusal = session.put(call).unwrap_err();
            assert!(matches!(refusal, LapiError::CntrNull { index: 99, .. }), "{refusal}");
            let refusal = session.register_writable(crate::support::buffers::null_landing(4));
            assert!(matches!(refusal, Err(LapiError::OrgAddrNull { len: 4 })));
            drop(session);
            context.fence().unwrap();
            assert!(landing.holds(&[]));
            end(context, &board);
        },
    );
}

/// Memory that is registered for reading only, or not any more, is not written. Both ends get an error, no counter is
/// incremented, and later messages are not affected.
#[test]
fn puts_into_other_memory_are_refused() {
    for kind in Kind::ALL {
        for len in [8, 20_000, 400_000] {
            watch(move || refused_puts(kind, len));
        }
    }
}

fn refused_puts(kind: Kind, len: usize) {
    let mut adapters = kind.adapters(2);
    let owner = Context::init(adapters.remove(1), (), Default::default());
    let origin = Context::init(adapters.remove(0), (), Default::default());
    let landing = Landing::new(REGION);
    let counters = [(); 2].map(|()| origin.session().unwrap().counter());
    let read_only = owner.session().unwrap().register(landing.source(REGION)).unwrap();
    let writable = landing.region(REGION);
    let ended = owner.session().unwrap().register_writable(writable).unwrap();
    owner.session().unwrap().deregister(ended, Next::Nothing);
    for remote in [read_only, ended] {
        let call = Put::new(1, remote, 0, source(pattern(1, len)));
        let [on_origin, completion] = counters;
        let on_origin = Next::Counter(on_origin);
        let call = Put { on_origin, cmpl_cntr: Some(completion), ..call };
        let _ = origin.session().unwrap().put(call).unwrap();
        let [at_origin, at_owner] = both_errors([&origin, &owner]);
        let violation = Violation::UnregisteredPut;
        let expected = matches!(
            at_owner, LapiError::Peer { origin: 0, violation: found } if found == violation
        );
        assert!(expected, "{kind:?}: {at_owner}");
        let violation = Violation::PutRefused;
        let expected = matches!(
            at_origin, LapiError::Peer { origin: 1, violation: found } if found == violation
        );
        assert!(expected, "{kind:?}: {at_origin}");
    }
    // The buffers are reusable once nothing of them is under way.
    while origin.session().unwrap().getcntr(counters[0]).unwrap() < 2 {
        origin.session().unwrap().progress().unwrap();
        owner.session().unwrap().progress().unwrap();
    }
    assert_eq!(origin.session().unwrap().getcntr(counters[1]).unwrap(), 0, "nothing is complete");
    assert!(landing.holds(&[]), "{kind:?}: {len} bytes");
}

/// The end of a registration waits for a put whose data is still arriving.
#[test]
fn the_end_of_a_registration_waits_for_puts_under_way() {
    for kind in Kind::SEGMENTS {
        let mut adapters = kind.adapters(2);
        let owner = Context::init(adapters.remove(1), (), Default::default());
        let origin = Context::init(adapters.remove(0), (), Default::default());
        const LONG: usize = 6 << 20;
        let landing = Landing::new(LONG);
        let over = owner.session().unwrap().counter();
        let region = owner.session().unwrap().register_writable(landing.region(LONG)).unwrap();
        let put = Put::new(1, region, 0, SendRegion::EMPTY);
        let put = Put { from: source(pattern(5, LONG)).into(), ..put };
        let sent = origin.session().unwrap().put(put).unwrap();
        assert_eq!(sent, Sent::Later, "the ring has no room for all of it");
        owner.session().unwrap().progress().unwrap();
        owner.session().unwrap().deregister(region, Next::Counter(over));
        assert_eq!(owner.session().unwrap().getcntr(over).unwrap(), 0, "{kind:?}");
        while owner.session().unwrap().getcntr(over).unwrap() == 0 {
            origin.session().unwrap().progress().unwrap();
            owner.session().unwrap().progress().unwrap();
        }
        assert!(landing.holds(pattern(5, LONG)), "{kind:?}: all of it was stored before");
    }
}

/// Where the adapter accesses memory itself, the target does nothing: no operation needs its progress, and neither do
/// the fence and the counter that say when a put is in place.
#[test]
fn a_target_that_makes_no_progress_is_accessed() {
    watch(|| {
        let mut adapters = Kind::OneSided.adapters(2);
        let owner = Context::init(adapters.remove(1), (), Default::default());
        let origin = Context::init(adapters.remove(0), (), Default::default());
        let (landing, copy) = (Landing::new(REGION), Landing::new(REGION));
        landing.fill(0);
        let region = owner.session().unwrap().register_writable(landing.region(REGION)).unwrap();
        let bytes = pattern(8, REGION - 64);
        let counter = origin.session().unwrap().counter();
        for nth in 0..3 {
            let put = Put::new(1, region, 64, source(pattern(nth, REGION - 64)));
            let _ = origin.session().unwrap().put(put).unwrap();
            let put = Put::new(1, region, 64, source(bytes));
            origin.fence().unwrap();
            let put = Put { cmpl_cntr: Some(counter), ..put };
            let _ = origin.session().unwrap().put(put).unwrap();
            assert_eq!(origin.waitcntr(counter, 1).unwrap(), 0);
            assert!(landing.contents(REGION).0[64..] == *bytes, "in place, the later one");
            let add = Rmw::new(1, region, 8, RmwOp::FetchAndAdd(5_i64));
            let add = Rmw { next: Next::Counter(counter), ..add };
            origin.session().unwrap().rmw(add).unwrap();
            assert_eq!(origin.waitcntr(counter, 1).unwrap(), 0);
            let (into, next) = (copy.region(REGION), Next::Counter(counter));
            origin.session().unwrap().get(1, region, 0, into, next).unwrap();
            assert_eq!(origin.waitcntr(counter, 1).unwrap(), 0);
            let got = copy.contents(REGION).0;
            assert_eq!(got[8..16], (5 * (nth as i64 + 1)).to_le_bytes());
            assert!(got[64..] == *bytes);
        }
    });
}

/// A put that the adapter refuses, here because of its key, is stored by the target, and a fence waits for that.
#[test]
fn a_put_that_the_adapter_refuses_is_sent() {
    let board = Board::new(2);
    run(
        Kind::OneSided,
        2,
        |_| (),
        move |context| {
            let landing = register(context, &board);
            let remote = board.of(1);
            let unknown = RemoteRegion { direct: RemoteKey::new(&[1]), ..remote };
            for round in 0..20 {
                let bytes = pattern(round, 30_000);
                if context.task() == 0 {
                    let put = Put::new(1, unknown, 7, source(bytes));
                    let _ = context.session().unwrap().put(put).unwrap();
                    context.fence().unwrap();
                    let counter = context.session().unwrap().counter();
                    let (copy, next) = (Landing::new(30_000), Next::Counter(counter));
                    context
                        .session()
                        .unwrap()
                        .get(1, remote, 7, copy.region(30_000), next)
                        .unwrap();
                    context.waitcntr(counter, 1).unwrap();
                    assert!(copy.holds(bytes), "round {round}");
                }
                context.gfence().unwrap();
            }
            assert!(context.task() == 0 || contains(landing, 7, pattern(19, 30_000)));
            end(context, &board);
        },
    );
}

/// A target that has left in order is not lost, but nothing is stored there any more: the fence says so.
#[test]
fn a_put_to_a_task_that_has_left_fails() {
    watch(|| {
        let mut adapters = Kind::OneSided.adapters(2);
        let owner = Context::init(adapters.remove(1), (), Default::default());
        let origin = Context::init(adapters.remove(0), (), Default::default());
        let landing = Landing::new(REGION);
        let region = owner.session().unwrap().register_writable(landing.region(REGION)).unwrap();
        let counter = origin.session().unwrap().counter();
        drop(owner);
        let put = Put::new(1, region, 0, source(pattern(1, 100)));
        let put = Put { on_origin: Next::Counter(counter), ..put };
        let _ = origin.session().unwrap().put(put).unwrap();
        let failed = origin.fence().unwrap_err();
        let expected = matches!(failed, LapiError::Adapter(AdapterError::PeerLost { task: 1 }));
        assert!(expected, "{failed}");
        assert_eq!(origin.waitcntr(counter, 1).unwrap(), 0, "the source is reusable");
        origin.fence().unwrap();
        assert!(landing.holds(&[]), "nothing is stored");
    });
}

/// Whoever needs a flush that fails is told: a fence, and the wait for a counter, which is not incremented. The context
/// lives on.
#[test]
fn a_flush_that_fails_is_reported() {
    watch(|| {
        let plan = FaultPlan { unflushed: 1000, ..FaultPlan::ONE_SIDED };
        let tasks = channels::job(2, Cards::OneSided).expect("memory suffices");
        let mut adapters = FaultAdapter::job(tasks, 3, plan);
        let owner = Context::init(adapters.remove(1), (), Default::default());
        let origin = Context::init(adapters.remove(0), (), Default::default());
        let landing = Landing::new(REGION);
        let region = owner.session().unwrap().register_writable(landing.region(REGION)).unwrap();
        let counter = origin.session().unwrap().counter();
        let put = |cmpl_cntr| {
            let put = Put::new(1, region, 0, source(pattern(1, 100)));
            origin.session().unwrap().put(Put { cmpl_cntr, ..put }).unwrap()
        };
        let failed = |error| {
            matches!(
                error,
                LapiError::Adapter(AdapterError::AccessFailed { target: 1, len: 0, .. })
            )
        };
        for round in 0..20 {
            let _ = put(None);
            assert!(failed(origin.fence().unwrap_err()), "round {round}");
            origin.fence().expect("the failure was reported");
            let _ = put(Some(counter));
            assert!(failed(origin.waitcntr(counter, 1).unwrap_err()), "round {round}");
            let (copy, next) = (Landing::new(100), Next::Counter(counter));
            origin.session().unwrap().get(1, region, 0, copy.region(100), next).unwrap();
            assert_eq!(origin.waitcntr(counter, 1).unwrap(), 0, "the put was not counted");
            assert!(failed(origin.fence().unwrap_err()), "round {round}");
        }
    });
}

/// What follows an operation on a thread has the memory of the operation for itself, whatever else is under way.
#[test]
fn a_thread_has_the_memory_of_an_operation_that_has_ended() {
    const LEN: usize = 900;
    for kind in Kind::ALL {
        let board = Board::new(2);
        run(
            kind,
            2,
            |_| (),
            move |context| {
                let (landing, other) = (register(context, &board), 1 - context.task());
                landing.fill(7);
                context.gfence().unwrap();
                let (remote, (tell, told)) = (board.of(other), mpsc::channel());
                for nth in 0..40_u8 {
                    let (from, into, tell) = (Landing::new(LEN), Landing::new(LEN), tell.clone());
                    from.fill(nth);
                    let put = Put::new(other, remote, u64::from(nth) * 900, from.source(LEN));
                    let on_origin = Next::Thread(Box::new(move || from.wipe()));
                    let mut session = context.session().unwrap();
                    let _ = session.put(Put { on_origin, ..put }).unwrap();
                    let look = move || tell.send(into.holds(&[7; LEN])).expect("the test listens");
                    let next = Next::Thread(Box::new(look));
                    session.get(other, remote, 500_000, into.region(LEN), next).unwrap();
                }
                for nth in 0..40 {
                    assert!(context.wait(|_| told.try_recv().ok()).unwrap(), "{kind:?}: get {nth}");
                }
                context.gfence().unwrap();
                for (nth, bytes) in (0..40).zip(landing.contents(REGION).0.chunks(LEN)) {
                    assert!(*bytes == [nth; LEN], "{kind:?}: put {nth}");
                }
                end(context, &board);
            },
        );
    }
}

/// The owner of memory that a handler gives back on a thread.
struct Owner {
    memory: Option<(RemoteRegion, Box<dyn FnOnce() + Send>)>,
    /// Tells whether the memory stayed as the thread has left it.
    stayed: mpsc::Receiver<bool>,
    answer: Option<bool>,
}

fn give_back(owner: &mut Owner, outbox: &mut Outbox<Owner>, _: u64) {
    let (region, run) = owner.memory.take().expect("it is given back once");
    assert!(outbox.deregister(region, Next::Thread(run)).is_none());
}

/// Keeps the round from its end until the thread has done its work.
fn await_thread(owner: &mut Owner, _: &mut Outbox<Owner>) {
    if owner.memory.is_none() && owner.answer.is_none() {
        owner.answer = owner.stayed.recv().ok();
    }
}

/// Nothing is stored any more in memory that a thread releases, although bytes are on their way to it, and although the
/// handler that ended the registration runs in the same round.
#[test]
fn memory_that_is_released_on_a_thread_is_not_written() {
    watch(|| {
        let mut adapters = Kind::OneSided.adapters(2);
        let (tell, stayed) = mpsc::channel();
        let state = Owner { memory: None, stayed, answer: None };
        let owner = Context::init(adapters.remove(1), state, Default::default());
        let origin = Context::init(adapters.remove(0), (), Default::default());
        let landing = Landing::new(REGION);
        let mut session = owner.session().unwrap();
        let region = session.register_writable(landing.region(REGION)).unwrap();
        let trigger = session.register(SendRegion::EMPTY).unwrap();
        let counter = origin.session().unwrap().counter();
        let put = Put::new(1, region, 0, source(pattern(1, 100)));
        let put = Put { on_origin: Next::Counter(counter), ..put };
        let _ = origin.session().unwrap().put(put).unwrap();
        assert_eq!(origin.waitcntr(counter, 1).unwrap(), 0, "the bytes are on their way");
        let release = move || {
            landing.wipe();
            origin.fence().expect("the owner need not help");
            tell.send(landing.holds(&[])).expect("the owner waits");
        };
        session.after_rounds(await_thread);
        session.state.memory = Some((region, Box::new(release)));
        session.deregister(trigger, Next::Inline(give_back, 0));
        assert_eq!(session.state.answer, Some(true), "the memory is as it was released");
    });
}

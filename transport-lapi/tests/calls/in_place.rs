//! Active messages whose data stays in the shared area until the target has copied it. The tasks are two contexts that
//! one thread uses, so the order of events is fixed.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use mpj_harness::watch;
use transport_lapi::adapter::AdapterError;
use transport_lapi::config::WaitMode;
use transport_lapi::{
    Amsend, Arrival, Context, CounterId, HeaderAction, IN_PLACE_FROM, LapiError, Next, Options,
    SendRegion, Sent, SharedMemory,
};

use crate::support::buffers::{Landing, area_source, pattern, source};
use crate::support::job::{Kind, run_with, waiting};

const LEN: usize = 100_000;

/// What a task has received.
struct Inbox {
    landing: Landing,
    /// The first byte of each user header, and the length of the data if all of it was there.
    seen: Vec<(u8, Option<usize>)>,
}

type Task = Context<Inbox>;

fn store(inbox: &mut Inbox, message: Arrival<'_>) -> HeaderAction<Inbox> {
    inbox.seen.push((message.uhdr[0], message.data.map(|data| data.len())));
    let into = inbox.landing.region(message.len.min(LEN as u64) as usize).into();
    HeaderAction::Deliver { into, next: Next::Counter(ARRIVED) }
}

const LEFT: CounterId = CounterId(0);
const ARRIVED: CounterId = CounterId(1);
const COMPLETE: CounterId = CounterId(2);

/// The tasks of a job of two, and memory of the first one in its shared area with a pattern.
fn tasks(kind: Kind) -> ([Task; 2], SharedMemory) {
    let task = |adapter| {
        let inbox = Inbox { landing: Landing::new(LEN), seen: Vec::new() };
        let context = Context::init(adapter, inbox, Options::default());
        let mut session = context.session().unwrap();
        session.addr_set(1, store).unwrap();
        assert_eq!([(); 3].map(|()| session.counter()), [LEFT, ARRIVED, COMPLETE]);
        drop(session);
        context
    };
    let tasks: Vec<Task> = kind.adapters(2).into_iter().map(task).collect();
    let memory = tasks[0].session().unwrap().alloc_shared(LEN).unwrap();
    memory.write(0, pattern(1, LEN)).unwrap();
    (tasks.try_into().ok().expect("two tasks"), memory)
}

/// Sends from the first task, in place if that is possible.
fn send(from: &Task, target: u32, handler: u8, uhdr: u8, data: SendRegion) -> Sent {
    let uhdr = [uhdr; 8];
    let mut call = Amsend::new(target, handler, &uhdr, data);
    (call.on_origin, call.cmpl_cntr, call.in_place) = (Next::Counter(LEFT), Some(COMPLETE), true);
    from.session().unwrap().amsend(call).unwrap()
}

fn progress(task: &Task) {
    task.session().unwrap().progress().unwrap();
}

fn count(task: &Task, counter: CounterId) -> i64 {
    task.session().unwrap().getcntr(counter).unwrap()
}

fn seen(task: &Task) -> Vec<(u8, Option<usize>)> {
    std::mem::take(&mut task.session().unwrap().state.seen)
}

#[test]
fn data_stays_in_place_until_the_target_has_copied_it() {
    for kind in [Kind::Shm, Kind::ShmAm] {
        let ([origin, target], memory) = tasks(kind);
        for (round, len, offset) in [(1, IN_PLACE_FROM, LEN - IN_PLACE_FROM), (2, LEN, 0)] {
            let data = area_source(&memory, offset, len);
            assert_eq!(send(&origin, 1, 1, 5, data), Sent::Later);
            progress(&origin);
            assert_eq!(count(&origin, LEFT), round - 1, "{kind:?}: nobody has copied it");
            progress(&target);
            assert_eq!(seen(&target), [(5, Some(len))], "in one packet");
            assert_eq!(count(&target, ARRIVED), round);
            let whole = &pattern(1, LEN)[offset..][..len];
            assert!(target.session().unwrap().state.landing.holds(whole), "{kind:?}: {len} bytes");
            target.session().unwrap().state.landing.wipe();
            progress(&origin);
            assert_eq!([LEFT, COMPLETE].map(|counter| count(&origin, counter)), [round; 2]);
        }
    }
}

/// Short data, data elsewhere, and data for the task itself leave without the target.
#[test]
fn other_data_is_sent() {
    let ([origin, target], memory) = tasks(Kind::Shm);
    let short = area_source(&memory, 0, IN_PLACE_FROM - 1);
    assert_eq!(send(&origin, 1, 1, 1, short), Sent::Now);
    let _ = send(&origin, 1, 1, 2, source(pattern(2, LEN)));
    let _ = send(&origin, 0, 1, 3, area_source(&memory, 0, LEN));
    let call = Amsend::new(1, 1, &[4; 8], area_source(&memory, 0, LEN));
    let call = Amsend { on_origin: Next::Counter(LEFT), ..call };
    let _ = origin.session().unwrap().amsend(call).unwrap();
    assert_eq!(count(&origin, LEFT), 4);
    progress(&target);
    assert_eq!(seen(&target), [(1, Some(IN_PLACE_FROM - 1)), (2, None), (4, None)]);
    progress(&origin);
    assert_eq!(seen(&origin), [(3, None)]);
}

#[test]
fn header_handlers_run_in_the_order_of_sending() {
    let ([origin, target], memory) = tasks(Kind::Shm);
    for uhdr in 0..9 {
        let data = match uhdr % 3 {
            0 => area_source(&memory, 0, LEN),
            1 => source(pattern(1, 8)),
            _ => source(pattern(1, LEN)),
        };
        let _ = send(&origin, 1, 1, uhdr, data);
    }
    while count(&target, ARRIVED) < 9 {
        progress(&target);
        progress(&origin);
    }
    let order: Vec<u8> = seen(&target).iter().map(|(uhdr, _)| *uhdr).collect();
    assert_eq!(order, (0..9).collect::<Vec<u8>>());
}

/// The data may be used again although the target has no such handler, or its handler panics.
#[test]
fn a_message_that_fails_at_its_target_leaves_all_the_same() {
    let ([origin, target], memory) = tasks(Kind::Shm);
    assert_eq!(send(&origin, 1, 9, 5, area_source(&memory, 0, LEN)), Sent::Later);
    let failure = target.session().unwrap().progress().unwrap_err();
    assert!(matches!(failure, LapiError::HdrHndlrNull { origin: 0, index: 9 }), "{failure}");
    target.session().unwrap().addr_set(8, |_, _| panic!("on purpose")).unwrap();
    assert_eq!(send(&origin, 1, 8, 5, area_source(&memory, 0, LEN)), Sent::Later);
    let panicking = AssertUnwindSafe(|| progress(&target));
    assert!(catch_unwind(panicking).is_err());
    progress(&target);
    progress(&origin);
    assert_eq!([LEFT, COMPLETE].map(|counter| count(&origin, counter)), [2, 0]);
}

/// It waits in a send queue until there is room in the ring.
#[test]
fn a_message_behind_others_waits_for_its_turn() {
    let ([origin, target], memory) = tasks(Kind::Shm);
    let _ = send(&origin, 1, 1, 1, source(pattern(2, 6 << 20)));
    assert_eq!(send(&origin, 1, 1, 2, area_source(&memory, 0, LEN)), Sent::Later);
    while count(&target, ARRIVED) < 2 {
        progress(&target);
        progress(&origin);
    }
    assert_eq!(seen(&target), [(1, None), (2, Some(LEN))]);
    assert!(target.session().unwrap().state.landing.holds(pattern(1, LEN)));
    progress(&origin);
    assert_eq!(count(&origin, LEFT), 2);
}

/// Both ends sleep in their waits. A fence behind such a message means that its data has been stored.
#[test]
fn sleepers_are_woken() {
    fn take(taken: &mut u32, message: Arrival<'_>) -> HeaderAction<u32> {
        *taken += u32::from(message.data.is_some_and(|data| data.to_vec() == pattern(1, LEN)));
        HeaderAction::Consumed
    }
    const ROUNDS: u32 = 50;
    let body = |context: &Arc<Context<u32>>| {
        context.session().unwrap().addr_set(1, take).unwrap();
        let left = context.session().unwrap().counter();
        let memory = context.session().unwrap().alloc_shared(LEN).unwrap();
        memory.write(0, pattern(1, LEN)).unwrap();
        context.gfence().unwrap();
        for round in 0..ROUNDS {
            let mut call = Amsend::new(1, 1, &[], area_source(&memory, 0, LEN));
            (call.on_origin, call.in_place) = (Next::Counter(left), true);
            if context.task() == 1 {
                context.wait(|session| (session.state > round).then_some(())).unwrap();
            } else if round % 2 == 0 {
                let _ = context.session().unwrap().amsend(call).unwrap();
                context.waitcntr(left, 1).unwrap();
            } else {
                let _ = context.session().unwrap().amsend(call).unwrap();
                context.fence().unwrap();
                assert_eq!(context.session().unwrap().getcntr(left).unwrap(), 1);
                context.session().unwrap().setcntr(left, 0).unwrap();
            }
        }
        context.gfence().unwrap();
    };
    run_with(Kind::Shm.adapters(2), waiting(WaitMode::Block), |_| 0, body);
}

#[test]
fn a_purge_or_a_loss_of_the_target_ends_the_wait() {
    let ([origin, _target], memory) = tasks(Kind::Shm);
    assert_eq!(send(&origin, 1, 1, 5, area_source(&memory, 0, LEN)), Sent::Later);
    origin.session().unwrap().purge_totask(1).unwrap();
    assert_eq!(count(&origin, LEFT), 1, "purged");

    watch(|| {
        let mut adapters = Kind::Shm.adapters(2);
        let lost = adapters.pop().expect("two tasks").parts().losses;
        let origin: Task = Context::init(
            adapters.pop().expect("two tasks"),
            Inbox { landing: Landing::new(8), seen: Vec::new() },
            Options::default(),
        );
        assert_eq!(origin.session().unwrap().counter(), LEFT);
        let memory = origin.session().unwrap().alloc_shared(LEN).unwrap();
        let call = Amsend::new(1, 1, &[], area_source(&memory, 0, LEN));
        let call = Amsend { on_origin: Next::Counter(LEFT), in_place: true, ..call };
        assert_eq!(origin.session().unwrap().amsend(call).unwrap(), Sent::Later);
        lost.declare();
        let loss = origin.waitcntr(LEFT, 2).unwrap_err();
        let is_loss = matches!(loss, LapiError::Adapter(AdapterError::PeerLost { task: 1 }));
        assert!(is_loss, "{loss}");
        assert_eq!(count(&origin, LEFT), 1, "lost");
    });
}

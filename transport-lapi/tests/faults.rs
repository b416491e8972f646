//! The transport over an adapter that misbehaves: delays lose nothing, damage is noticed, and nothing hangs or panics.

mod support;

use std::sync::atomic::{AtomicUsize, Ordering};

use mpj_doubles::fault::{FaultAdapter, FaultCount, FaultPlan};
use mpj_harness::watch;
use transport_lapi::AnyAdapter;
use transport_lapi::adapter::{Adapter, AdapterError, Frame, Post, Ticket};
use transport_lapi::adapters::{LocalAdapter, Reach};
use transport_lapi::config::WaitMode;
use transport_lapi::{
    Amsend, Arrival, Context, HeaderAction, LapiError, Next, Options, Outbox, Piece, RemoteRegion,
    Sent, TaskId, Violation,
};

use mpj_doubles::numbers::Numbers;
use support::buffers::{Landing, pattern, source};
use support::job::{Kind, run_with, waiting};

/// Frames and gets are refused and held back, but nothing is damaged.
const SLOW: FaultPlan = FaultPlan { full: 300, delay: 200, ..FaultPlan::ONE_SIDED };
/// Frames are damaged.
const DAMAGED: FaultPlan = FaultPlan { truncate: 120, corrupt: 120, ..FaultPlan::NONE };

type Faulty = FaultAdapter<LocalAdapter<Box<dyn Reach>>>;

/// A job over a segment whose adapters misbehave, each with its own seed.
fn faulty(kind: Kind, num_tasks: usize, seed: u64, plan: FaultPlan) -> Vec<Faulty> {
    let local = |adapter| match adapter {
        AnyAdapter::Local(adapter) => adapter,
        _ => panic!("{kind:?} has no segment"),
    };
    FaultAdapter::job(kind.adapters(num_tasks).into_iter().map(local).collect(), seed, plan)
}

/// The received messages, in the order of the header handlers.
#[derive(Default)]
struct Inbox {
    begun: Vec<(TaskId, u64)>,
    landed: Vec<(Landing, u64, usize)>,
    complete: usize,
    gets: usize,
}

fn seed_of(origin: TaskId, number: u64) -> u64 {
    number << 8 | u64::from(origin)
}

fn arrive(inbox: &mut Inbox, message: Arrival<'_>) -> HeaderAction<Inbox> {
    let number = u64::from_le_bytes(message.uhdr.try_into().expect("eight bytes"));
    inbox.begun.push((message.origin, number));
    let len = message.len as usize;
    let landing = Landing::new(len);
    inbox.landed.push((landing, seed_of(message.origin, number), len));
    HeaderAction::Deliver { into: landing.region(len).into(), next: Next::Inline(complete, 0) }
}

fn complete(inbox: &mut Inbox, _: &mut Outbox<Inbox>, _: u64) {
    inbox.complete += 1;
}

fn got(inbox: &mut Inbox, _: &mut Outbox<Inbox>, _: u64) {
    inbox.gets += 1;
}

/// Every task sends to every other one and reads from itself; everything arrives, in order.
fn everything_arrives(adapters: Vec<Faulty>, seed: u64) {
    const MESSAGES: usize = 40;
    let (inbox, num_tasks) = (|_| Inbox::default(), adapters.len());
    let through = AtomicUsize::new(0);
    run_with(adapters, waiting(WaitMode::Spin), inbox, move |context| {
        let mut session = context.session().unwrap();
        session.addr_set(1, arrive).unwrap();
        let sent_all = session.counter();
        let region = session.register(source(pattern(seed, 100_000))).unwrap();
        drop(session);
        context.gfence().unwrap();
        let mut numbers = Numbers(seed << 8 | u64::from(context.task()));
        let fetched = Landing::new(100_000);
        let told = Next::Inline(got, 0);
        let into = fetched.region(100_000);
        context.session().unwrap().get(context.task(), region, 0, into, told).unwrap();
        for target in 0..num_tasks as TaskId {
            for number in 0..MESSAGES as u64 {
                let len = numbers.pick(&[0, 8, 300, 5_000, 8_193, 60_000]);
                let udata = source(pattern(seed_of(context.task(), number), len));
                let uhdr = number.to_le_bytes();
                let mut call = Amsend::new(target, 1, &uhdr, udata);
                call.cmpl_cntr = Some(sent_all);
                let _ = context.session().unwrap().amsend(call).unwrap();
            }
        }
        context.waitcntr(sent_all, (MESSAGES * num_tasks) as i64).unwrap();
        context.wait(|session| (session.state.gets == 1).then_some(())).unwrap();
        context.gfence().unwrap();
        // Held-back frames are sent only while their sender polls.
        through.fetch_add(1, Ordering::SeqCst);
        let all_through = || (through.load(Ordering::SeqCst) == num_tasks).then_some(());
        context.wait(|_| all_through()).unwrap();
        assert!(fetched.holds(pattern(seed, 100_000)), "seed {seed}");
        let session = context.session().unwrap();
        let inbox = &session.state;
        for origin in 0..num_tasks as TaskId {
            let begun = inbox.begun.iter().filter(|(from, _)| *from == origin);
            let in_order = begun.map(|(_, number)| *number).eq(0..MESSAGES as u64);
            assert!(in_order, "seed {seed}: messages of task {origin}");
        }
        assert_eq!(inbox.complete, MESSAGES * num_tasks);
        for (landing, pattern_seed, len) in &inbox.landed {
            assert!(landing.holds(pattern(*pattern_seed, *len)), "seed {seed}");
        }
    });
}

#[test]
fn full_rings_and_delays_lose_nothing() {
    for seed in 0..40 {
        everything_arrives(faulty(Kind::Threads, 2, seed, SLOW), seed);
    }
    for seed in 0..10 {
        everything_arrives(faulty(Kind::ShmAm, 2, seed, SLOW), seed);
        everything_arrives(faulty(Kind::Threads, 3, seed, SLOW), seed);
    }
}

/// The layer of faults shows the capabilities of the adapter inside.
#[test]
fn capabilities_are_passed_on() {
    let faulty = faulty(Kind::Shm, 1, 0, FaultPlan::NONE).remove(0);
    let area = faulty.parts().area.expect("the adapter inside has areas");
    area.reserve(0, 0, 8).unwrap();
    let same = faulty.parts().area.expect("the result never changes");
    assert_eq!(same.start(0), area.start(0));
    assert!(faulty.parts().wait_records.is_some());
}

/// A message as its receiver checks it: number, length, and the sum of both with a constant.
fn stamped(number: u64, len: usize) -> Vec<u8> {
    [number, len as u64, number ^ len as u64 ^ 0x5A5A].map(u64::to_le_bytes).concat()
}

/// What a receiver has noticed of the current message.
#[derive(Default)]
struct Witness {
    landing: Option<Landing>,
    due: u64,
    intact: usize,
    damaged: usize,
}

fn witness(state: &mut Witness, message: Arrival<'_>) -> HeaderAction<Witness> {
    let landing = *state.landing.get_or_insert_with(|| Landing::new(40_000));
    landing.wipe();
    let len = message.len as usize;
    if message.uhdr != stamped(state.due, len) {
        state.damaged += 1;
        return HeaderAction::Drop;
    }
    HeaderAction::Deliver {
        into: landing.region(len).into(),
        next: Next::Inline(judge, len as u64),
    }
}

fn judge(state: &mut Witness, _: &mut Outbox<Witness>, len: u64) {
    let landing = state.landing.expect("the header handler has made it");
    if landing.holds(pattern(state.due, len as usize)) {
        state.intact += 1;
    } else {
        state.damaged += 1;
    }
}

/// Both ends make progress until nothing more happens. Returns the errors they met.
fn settle(sender: &Context<Witness>, receiver: &Context<Witness>) -> Vec<LapiError> {
    let mut errors = Vec::new();
    let mut quiet = 0;
    for _ in 0..10_000 {
        let steps = [sender.session().unwrap().progress(), receiver.session().unwrap().progress()];
        let idle = steps.iter().all(|step| matches!(step, Ok(0)));
        errors.extend(steps.into_iter().filter_map(Result::err));
        quiet = if idle { quiet + 1 } else { 0 };
        if quiet == 3 {
            return errors;
        }
    }
    panic!("progress never comes to rest: {:?}", errors.last());
}

fn tells_of_a_break(error: &LapiError) -> bool {
    matches!(error, LapiError::Peer { violation: Violation::Interleaved { .. }, .. })
}

/// Sends messages one after the other to a receiver that damages frames. Each arrives intact, or its handler detects
/// the damage, or there is an error. The exception is a message whose last packet was truncated: that is detected when
/// the next message of several packets begins.
fn damage_is_noticed(seed: u64) -> (usize, usize) {
    let mut adapters = Kind::Threads.adapters(2);
    let AnyAdapter::Local(receiver) = adapters.remove(1) else { panic!("threads have a segment") };
    let receiver = FaultAdapter::new(receiver, seed, DAMAGED);
    let receiver = Context::init(receiver, Witness::default(), Options::default());
    let sender = Context::init(adapters.remove(0), Witness::default(), Options::default());
    receiver.session().unwrap().addr_set(1, witness).unwrap();
    let mut numbers = Numbers(seed);
    let (mut intact, mut noticed) = (0, 0);
    let mut broken_off = None;
    for number in 0..40 {
        receiver.session().unwrap().state.due = number;
        let len = numbers.pick(&[0, 8, 290, 4_000, 8_192, 9_000, 40_000]);
        let uhdr = stamped(number, len);
        let call = Amsend::new(1, 1, &uhdr, source(pattern(number, len)));
        let _ = sender.session().unwrap().amsend(call).unwrap();
        let errors = settle(&sender, &receiver);
        let mut session = receiver.session().unwrap();
        let arrived = std::mem::take(&mut session.state.intact);
        let damaged = std::mem::take(&mut session.state.damaged);
        if errors.iter().any(tells_of_a_break) {
            broken_off = None;
        }
        assert!(arrived <= 1, "seed {seed}: message {number} arrived {arrived} times");
        intact += arrived;
        if arrived == 1 || damaged + errors.len() > 0 {
            noticed += usize::from(arrived == 0);
            continue;
        }
        assert!(len > 8_192, "seed {seed}: message {number} of {len} bytes vanished");
        assert_eq!(broken_off, None, "seed {seed}: message {number} vanished behind another one");
        broken_off = Some(number);
    }
    (intact, noticed)
}

#[test]
fn truncated_and_corrupted_frames_are_noticed() {
    let (mut intact, mut noticed) = (0, 0);
    for seed in 0..150 {
        let (more_intact, more_noticed) = watch(move || damage_is_noticed(seed));
        intact += more_intact;
        noticed += more_noticed;
    }
    assert!(intact > 1_000, "most messages meet no fault: {intact}");
    assert!(noticed > 500, "many do: {noticed}");
}

/// Control packets, fences and gets over a damaging adapter: they end, without panic.
#[test]
fn damaged_control_packets_do_no_harm() {
    for seed in 0..60 {
        watch(move || {
            let kind = Kind::SEGMENTS[seed as usize % Kind::SEGMENTS.len()];
            // If the adapter reads by itself, a long get sends a packet that asks for help.
            let len = if kind == Kind::ShmAm { 10_000 } else { 300_000 };
            let mut adapters = faulty(kind, 2, seed, DAMAGED);
            let other = Context::init(adapters.remove(1), Witness::default(), Options::default());
            let one = Context::init(adapters.remove(0), Witness::default(), Options::default());
            let region = other.session().unwrap().register(source(pattern(1, 350_000))).unwrap();
            let counter = one.session().unwrap().counter();
            other.session().unwrap().addr_set(1, witness).unwrap();
            let mut errors = 0;
            let landing = Landing::new(350_000);
            for round in 0..30_u64 {
                let mut session = one.session().unwrap();
                let into = landing.region(len);
                session.get(1, region, round, into, Next::Counter(counter)).unwrap();
                let mut call = Amsend::new(1, 1, &[], source(pattern(round, 9_000)));
                call.cmpl_cntr = Some(counter);
                let _ = session.amsend(call).unwrap();
                drop(session);
                errors += settle(&one, &other).len();
            }
            assert!(errors > 0, "seed {seed}: faults were met");
            assert!(landing.contents(len).1, "seed {seed}: nothing is written behind a region");
        });
    }
}

fn is_lost<T>(answer: Result<T, LapiError>) -> bool {
    matches!(answer, Err(LapiError::Adapter(AdapterError::PeerLost { task: 1 })))
}

/// The peer is lost after some frames: sends and gets fail from then on, and so does every wait that does not name the
/// tasks it needs.
#[test]
fn a_lost_peer_is_reported_by_every_call() {
    for after in [0, 1, 2, 5, 17] {
        for len in [8, 100_000] {
            watch(move || {
                let plan = FaultPlan { lose: Some((1, after)), ..FaultPlan::default() };
                let adapter = faulty(Kind::Threads, 2, 1, plan).remove(0);
                let context = Context::init(adapter, (), Options::default());
                let counter = context.session().unwrap().counter();
                let mut accepted = 0;
                loop {
                    let call = Amsend::new(1, 1, &[], source(pattern(1, len)));
                    let answer = context.session().unwrap().amsend(call);
                    if is_lost(answer) {
                        break;
                    }
                    accepted += 1;
                    assert!(accepted <= after, "sends go on after the loss");
                }
                assert!(is_lost(context.waitcntr(counter, 1)));
                assert!(is_lost(context.wait(|_| None::<()>)));
                let nothing_to_fence = accepted == 0;
                assert!(is_lost(context.fence()) || nothing_to_fence);
                let remote = RemoteRegion::over_frames(64, 8, 0);
                let into = Landing::new(8).region(8);
                let mut session = context.session().unwrap();
                assert!(is_lost(session.get(1, remote, 0, into, Next::Nothing)));
                assert!(session.progress().is_ok(), "the context lives on");
            });
        }
    }
}

/// One peer is lost while others still work: messages to the others are not delayed.
#[test]
fn a_lost_peer_does_not_hold_up_frames_to_others() {
    watch(|| {
        let plan = FaultPlan { lose: Some((1, 3)), ..FaultPlan::default() };
        let mut adapters = faulty(Kind::Threads, 3, 1, plan);
        let mut other = adapters.remove(2);
        let context = Context::init(adapters.remove(0), (), Options::default());
        let long = || source(pattern(1, 100_000));
        let answer = context.session().unwrap().amsend(Amsend::new(1, 1, &[], long()));
        assert_eq!(answer.unwrap(), Sent::Later, "its fourth frame meets the loss");
        let mut session = context.session().unwrap();
        session.parts().1.amsend(2, 1, &[], vec![7; 10]).unwrap();
        for _ in 0..10 {
            // Each round encounters the lost peer again.
            session.progress().unwrap();
        }
        let frames = support::frames::received(&mut other);
        assert_eq!(frames.len(), 1, "the message to task 2 was not sent");
    });
}

/// Runs a fixed sequence of offers and polls over a pair of misbehaving adapters. Returns the injected faults and the
/// frames that arrived.
fn replay(seed: u64, plan: FaultPlan) -> (FaultCount, FaultCount, Vec<Vec<u8>>) {
    let mut adapters = faulty(Kind::Threads, 2, seed, plan);
    let (mut receiver, mut sender) = (adapters.remove(1), adapters.remove(0));
    let mut frames = Vec::new();
    for number in 0..2_000_u32 {
        let body = pattern(number.into(), number as usize % 700);
        let _ = sender
            .try_send(1, &number.to_le_bytes(), Piece::Span(source(body)), Ticket(0))
            .unwrap();
        for adapter in [&mut sender, &mut receiver] {
            let keep = &mut |frame: transport_lapi::adapter::Frame<'_>| {
                frames.push([frame.head, &frame.body.to_vec()].concat());
            };
            adapter.poll(None, 1, keep).unwrap();
        }
    }
    let (sent, received) = (*sender.count().lock(), *receiver.count().lock());
    (sent, received, frames)
}

const EVERYTHING: FaultPlan =
    FaultPlan { full: 200, delay: 100, truncate: 50, corrupt: 50, ..FaultPlan::NONE };

#[test]
fn the_same_seed_gives_the_same_faults() {
    for seed in 0..5 {
        assert_eq!(replay(seed, EVERYTHING), replay(seed, EVERYTHING), "seed {seed}");
        assert_ne!(replay(seed, EVERYTHING).2, replay(seed + 1, EVERYTHING).2, "seed {seed}");
    }
}

/// Faults are about as frequent as planned.
#[test]
fn faults_are_as_frequent_as_planned() {
    let (sender, receiver, frames) = replay(7, EVERYTHING);
    let share = |count: u64, of: usize| count * 1000 / of as u64;
    assert!((150..250).contains(&share(sender.full, 2_000)), "{sender:?}");
    assert!(share(sender.delayed, 2_000) >= 80, "{sender:?}");
    assert!((30..70).contains(&share(receiver.truncated, frames.len())), "{receiver:?}");
    assert!((30..70).contains(&share(receiver.corrupted, frames.len())), "{receiver:?}");
}

/// Without a plan nothing changes.
#[test]
fn an_empty_plan_changes_nothing() {
    let (sender, receiver, frames) = replay(7, FaultPlan::default());
    assert_eq!((sender, receiver), Default::default());
    assert_eq!(frames.len(), 2_000);
    for (number, frame) in frames.iter().enumerate() {
        let expected = [&(number as u32).to_le_bytes(), pattern(number as u64, number % 700)];
        assert_eq!(*frame, expected.concat());
    }
}

/// A frame that was refused as full was not taken, and a held-back one arrives exactly once.
#[test]
fn refused_frames_do_not_come_and_held_ones_come_once() {
    let plan = FaultPlan { full: 400, delay: 400, ..FaultPlan::default() };
    for seed in 0..20 {
        let mut adapters = faulty(Kind::Threads, 2, seed, plan);
        let (mut receiver, mut sender) = (adapters.remove(1), adapters.remove(0));
        let mut taken = Vec::new();
        let mut come = Vec::new();
        for number in 0..500_u32 {
            let post = sender.try_send(1, &number.to_le_bytes(), Piece::EMPTY, Ticket(0)).unwrap();
            taken.extend((post == Post::Taken).then_some(number));
        }
        for _ in 0..5_000 {
            sender.poll(None, 1, &mut |_: Frame<'_>| {}).unwrap();
            receiver
                .poll(None, 8, &mut |frame: Frame<'_>| {
                    come.push(support::frames::word(frame.head, 0))
                })
                .unwrap();
        }
        assert_eq!(come, taken, "seed {seed}");
        assert!(taken.len() < 500);
    }
}

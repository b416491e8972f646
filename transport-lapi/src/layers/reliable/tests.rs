//! The layer over adapters that drop, duplicate, delay and reorder frames: the contract, the end of a task, silence,
//! and frames that break the protocol.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::*;
use crate::adapters::channels::{self, ChannelAdapter};
use crate::adapters::contract::{next, until};
use crate::adapters::threads::{self, ThreadsAdapter};
use crate::layers::fault::{FaultAdapter, FaultCount, FaultPlan};

/// One frame in ten is dropped; others come twice, or late and behind later ones.
const LOSSY: FaultPlan = FaultPlan { drop: 100, duplicate: 50, reorder: 100, ..FaultPlan::NONE };

/// No frame is held back for more polls than this.
const LONGEST_DELAY: usize = 10;

/// Frames are repeated soon, so that tests are quick.
fn options() -> ReliableOptions {
    let (resend, linger) = (Duration::from_millis(1), Duration::from_secs(10));
    ReliableOptions { resend, linger, ..ReliableOptions::default() }
}

type Lossy<A> = ReliableAdapter<FaultAdapter<A>>;

fn lossy<A: Adapter>(tasks: Vec<A>, plan: FaultPlan) -> Vec<Lossy<A>> {
    let faulty = tasks.into_iter().zip(1..).map(|(task, seed)| FaultAdapter::new(task, seed, plan));
    faulty.map(|task| ReliableAdapter::new(task, options()).expect("legal options")).collect()
}

fn over_threads(num_tasks: usize) -> Vec<Lossy<ThreadsAdapter>> {
    lossy(threads::job(num_tasks).expect("memory suffices"), LOSSY)
}

fn over_channels(num_tasks: usize) -> Vec<Lossy<ChannelAdapter>> {
    lossy(channels::job(num_tasks).expect("memory suffices"), LOSSY)
}

mod over_lossy_threads {
    use super::over_threads;

    crate::adapters::contract::adapter_contract!(super::over_threads, while sender polls);
}

mod over_lossy_channels {
    use super::over_channels;

    crate::adapters::contract::adapter_contract!(super::over_channels, while sender polls);
}

/// Tasks over threads without faults.
fn job<const N: usize, C>(
    options: ReliableOptions,
    clock: C,
) -> [ReliableAdapter<ThreadsAdapter>; N]
where
    C: Fn() -> Instant + Clone + Send + Sync + 'static,
{
    let tasks = threads::job(N).expect("memory suffices").into_iter();
    let wrap = |task| ReliableAdapter::with_clock(task, options, clock.clone());
    let tasks: Vec<_> = tasks.map(|task| wrap(task).expect("legal options")).collect();
    tasks.try_into().unwrap_or_else(|_| unreachable!("{N} tasks were asked for"))
}

/// Two of them.
fn pair<C>(options: ReliableOptions, clock: C) -> [ReliableAdapter<ThreadsAdapter>; 2]
where
    C: Fn() -> Instant + Clone + Send + Sync + 'static,
{
    job(options, clock)
}

/// A clock that stands still until it is advanced, by a number of milliseconds.
fn stopped_clock() -> (Arc<AtomicU64>, impl Fn() -> Instant + Clone + Send + Sync + 'static) {
    let (start, millis) = (Instant::now(), Arc::new(AtomicU64::new(0)));
    let passed = millis.clone();
    (millis, move || start + Duration::from_millis(passed.load(Ordering::Relaxed)))
}

fn send<A: Adapter>(task: &mut A, target: TaskId, head: &[u8], body: &[u8]) {
    let post = task.try_send(target, head, Piece::of(body), Ticket(0)).expect("the ring is sound");
    assert_eq!(post, Post::Taken);
}

/// What a poll says that finds no frame.
fn refusal<A: Adapter>(task: &mut A) -> Option<FrameError> {
    match task.poll(None, 10, &mut |_: Frame<'_>| panic!("no frame is handed over")) {
        Ok(_) => None,
        Err(AdapterError::Refused { origin: 0, violation }) => Some(violation),
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn without_the_layer_the_same_faults_lose_repeat_and_reorder_frames() {
    let tasks = threads::job(2).expect("memory suffices").into_iter().zip(1..);
    let mut tasks = tasks.map(|(task, seed)| FaultAdapter::new(task, seed, LOSSY));
    let (mut origin, mut target) = (tasks.next().expect("task 0"), tasks.next().expect("task 1"));
    let mut come = Vec::new();
    let mut take_all = || {
        while let Some((_, _, body)) = next(&mut target) {
            come.push(u32::from_le_bytes(body.try_into().expect("bodies are whole")));
        }
    };
    for number in 0..400_u32 {
        send(&mut origin, 1, b"", &number.to_le_bytes());
        assert_eq!(next(&mut origin), None, "sends what was held back");
        take_all();
    }
    for _ in 0..LONGEST_DELAY {
        assert_eq!(next(&mut origin), None);
        take_all();
    }
    let mut distinct = Vec::new();
    for number in &come {
        if !distinct.contains(number) {
            distinct.push(*number);
        }
    }
    let FaultCount { dropped, duplicated, .. } = origin.count();
    assert_eq!((400 - distinct.len()) as u64, dropped, "nothing else is missing");
    assert_eq!((come.len() - distinct.len()) as u64, duplicated, "nothing else is there twice");
    assert!(dropped > 0 && duplicated > 0 && !distinct.is_sorted());
}

#[test]
fn frames_without_room_are_kept_and_leave_in_later_polls() {
    let often_full = FaultPlan { full: 900, ..FaultPlan::NONE };
    let mut tasks = lossy(threads::job(2).expect("memory suffices"), often_full);
    (0..20).for_each(|number| send(&mut tasks[0], 1, &[number], b""));
    assert!(tasks[0].inner.count().full > 0);
    let mut come = Vec::new();
    until("all frames come", || {
        let polled = tasks[0].poll(None, 0, &mut |_: Frame<'_>| panic!("nothing is sent back"));
        assert_eq!(polled.expect("the rings are sound"), 0);
        come.extend(next(&mut tasks[1]).map(|(_, head, _)| head[0]));
        come.len() == 20
    });
    assert!(come.into_iter().eq(0..20));
}

#[test]
fn frames_of_a_task_that_leaves_arrive() {
    for seed in 0..50 {
        let tasks = threads::job(2).expect("memory suffices").into_iter().zip(seed..);
        let faulty = tasks.map(|(task, seed)| FaultAdapter::new(task, seed, LOSSY));
        let reliable = faulty.map(|task| ReliableAdapter::new(task, options()));
        let mut job = reliable.collect::<Result<Vec<_>, _>>().expect("legal options");
        let (mut target, mut origin) = (job.remove(1), job.remove(0));
        let mut sent = 0_u8;
        while sent < 20 {
            let post = origin.try_send(1, &[sent], Piece::of(&[sent; 3000]), Ticket(0));
            sent += u8::from(post.expect("the ring is sound") == Post::Taken);
        }
        let mut come = Vec::new();
        until("the task may leave", || {
            come.extend(next(&mut target));
            origin.withdraw()
        });
        drop(origin);
        until("the frames arrive", || {
            come.extend(next(&mut target));
            come.len() == 20
        });
        let whole = (0..20).map(|number| (0, vec![number], vec![number; 3000]));
        assert!(come.into_iter().eq(whole), "seed {seed}");
    }
}

#[test]
fn nobody_waits_for_receipts_of_a_task_that_has_left() {
    let (millis, clock) = stopped_clock();
    let [mut one, mut other] = pair(options(), clock);
    send(&mut one, 1, b"last", b"");
    assert!(!one.withdraw(), "its frame has no receipt");
    assert!(next(&mut other).is_some());
    assert_eq!(next(&mut other), None, "sends the receipt");
    send(&mut other, 0, b"dropped", b"");
    // The receipt arrives; of what is behind it, nothing does.
    let mut frames = 0;
    while next(&mut one.inner).is_some() {
        frames += 1;
    }
    assert_eq!(frames, 2);
    let receipt = other.peers[0].link.receipt();
    send(&mut other.inner, 0, &head::encode(Kind::Receipt, receipt), b"");
    assert!(one.withdraw(), "its frame has a receipt");
    assert!(other.withdraw(), "the farewell tells that no receipt comes");
    assert_eq!(millis.load(Ordering::Relaxed), 0, "nobody has waited");
}

#[test]
fn the_wait_for_a_lost_receipt_is_limited() {
    let (millis, clock) = stopped_clock();
    let [mut one, other] = pair(options(), clock);
    send(&mut one, 1, b"last", b"");
    // The other one ends without a farewell, as if all its frames were dropped.
    drop(other);
    for passed in [0, 1, 5_000, 9_999] {
        millis.store(passed, Ordering::Relaxed);
        assert!(!one.withdraw(), "after {passed} ms");
    }
    assert!(one.statistics().retransmitted > 0);
    millis.store(10_000, Ordering::Relaxed);
    assert!(one.withdraw());
}

#[test]
fn a_silent_task_counts_as_lost() {
    let (millis, clock) = stopped_clock();
    let options = ReliableOptions { timeout: Duration::from_secs(5), ..options() };
    let [mut one, mut other] = pair(options, clock);
    let bell = one.doorbell();
    send(&mut one, 1, b"heard", b"");
    assert!(next(&mut other).is_some());
    assert_eq!(next(&mut other), None, "sends the receipt");
    assert_eq!(next(&mut one), None);
    millis.store(60_000, Ordering::Relaxed);
    assert_eq!((next(&mut one), one.losses()), (None, 0), "nothing is under way");
    send(&mut one, 1, b"unheard", b"");
    millis.store(64_999, Ordering::Relaxed);
    assert_eq!((next(&mut one), one.losses()), (None, 0));
    let ticket = bell.announce();
    // The silence is noticed when a frame is to be repeated.
    millis.store(65_010, Ordering::Relaxed);
    assert_eq!(next(&mut one), None);
    assert_eq!((one.losses(), one.is_lost(1), one.is_lost(0)), (1, true, false));
    assert!(bell.sleep(ticket, Some(Duration::from_secs(20))), "its sleepers are woken");
    let post = one.try_send(1, b"to nobody", Piece::EMPTY, Ticket(0));
    assert_eq!(post.expect("the ring is sound"), Post::Full);
    assert!(one.withdraw(), "nothing is under way");
}

#[test]
fn a_task_whose_receipt_was_not_read_yet_is_not_lost() {
    // The receipt is of another origin than the poll, or lies behind a frame that uses up the budget.
    for (origin, budget) in [(Some(1), 10), (None, 1)] {
        let (millis, clock) = stopped_clock();
        let options = ReliableOptions { timeout: Duration::from_secs(5), ..options() };
        let [mut one, mut busy, mut quiet] = job(options, clock);
        send(&mut one, 2, b"heard", b"");
        assert!(next(&mut quiet).is_some());
        assert_eq!(next(&mut quiet), None, "sends the receipt");
        for number in 0..2 {
            send(&mut busy, 0, &[number], b"");
        }
        millis.store(6_000, Ordering::Relaxed);
        let polled = one.poll(origin, budget, &mut |frame: Frame<'_>| assert_eq!(frame.origin, 1));
        assert!(polled.is_ok_and(|come| come > 0));
        assert!(!one.peers[2].link.is_settled(), "the receipt was not read");
        assert_eq!((one.losses(), one.is_lost(2)), (0, false));
        until("all is read", || next(&mut one).is_none());
        assert!(one.peers[2].link.is_settled(), "the receipt was read");
        assert_eq!(one.losses(), 0);
    }
}

#[test]
fn a_loss_that_the_adapter_inside_knows_ends_the_link() {
    let (millis, clock) = stopped_clock();
    let [mut one, other] = pair(options(), clock);
    send(&mut one, 1, b"unheard", b"");
    other.doorbell().declare_lost();
    assert_eq!((one.losses(), one.is_lost(1)), (1, true));
    millis.store(1, Ordering::Relaxed);
    assert_eq!(next(&mut one), None);
    assert!(one.withdraw(), "nothing is under way");
}

#[test]
fn a_sleep_ends_when_a_frame_must_be_repeated() {
    let [mut one, mut other] = pair(options(), Instant::now);
    let bell = one.doorbell();
    let sleep = |task: &mut ReliableAdapter<ThreadsAdapter>, limit| {
        let (ticket, start) = (bell.announce(), Instant::now());
        assert_eq!(next(task), None);
        assert!(!bell.sleep(ticket, Some(limit)), "nobody rings");
        start.elapsed()
    };
    send(&mut one, 1, b"x", b"");
    let long = Duration::from_secs(60);
    until("the frame is repeated", || {
        assert!(sleep(&mut one, long) < long);
        one.statistics().retransmitted > 0
    });
    until("the receipt has come", || {
        next(&mut other).is_none() && one.peers[1].link.is_settled() || next(&mut one).is_some()
    });
    let short = Duration::from_millis(20);
    until("the alarm is off", || sleep(&mut one, short) >= short);
    assert_eq!(one.alarm.due(), None);
}

#[test]
fn statistics_are_exact() {
    let (millis, clock) = stopped_clock();
    let [mut one, mut other] = pair(ReliableOptions { ack_threshold: 2, ..options() }, clock);
    for body in [&b""[..], b"12345"] {
        send(&mut one, 1, b"head", body);
    }
    millis.store(1, Ordering::Relaxed);
    assert_eq!(next(&mut one), None, "repeats both");
    let sent = Statistics { packets_sent: 2, bytes_sent: 13, ..Statistics::default() };
    assert_eq!(one.statistics(), Statistics { retransmitted: 2, ..sent });
    assert_eq!(one.packets(), Some((2, 0)));
    assert!(next(&mut other).is_some() && next(&mut other).is_some());
    let received = Statistics { packets_received: 2, bytes_received: 13, ..Statistics::default() };
    assert_eq!(other.statistics(), Statistics { acks_sent: 1, ..received });
    assert_eq!(next(&mut other), None);
    assert_eq!(other.statistics(), Statistics { acks_sent: 2, duplicates: 2, ..received });
    assert_eq!(other.packets(), Some((0, 2)));
    assert_eq!(next(&mut one), None);
    let heard = Statistics { acks_received: 2, retransmitted: 2, ..sent };
    assert_eq!(one.statistics(), heard);
    // A receipt that travels with a frame is not counted.
    send(&mut one, 1, b"", b"x");
    assert!(next(&mut other).is_some());
    send(&mut other, 0, b"", b"y");
    assert!(next(&mut one).is_some());
    assert!(one.peers[1].link.is_settled());
    assert_eq!(one.statistics().acks_received, 2);
}

#[test]
fn a_sleeper_is_not_left_with_a_frame_behind_a_receipt() {
    let [mut one, mut other] = pair(options(), Instant::now);
    send(&mut one, 1, b"x", b"");
    assert!(next(&mut other).is_some());
    assert_eq!(next(&mut other), None, "sends a receipt");
    send(&mut other, 0, b"behind the receipt", b"");
    assert!(next(&mut one).is_some(), "RL3");
}

#[test]
fn frames_beyond_the_budget_are_handed_over_later() {
    let (_, clock) = stopped_clock();
    let [mut one, mut other] = pair(options(), clock);
    // Frames 1 and 2 arrive before frame 0.
    send(
        &mut one.inner,
        1,
        &head::encode(Kind::Data(number(1)), one.peers[1].link.receipt()),
        b"1",
    );
    send(
        &mut one.inner,
        1,
        &head::encode(Kind::Data(number(2)), one.peers[1].link.receipt()),
        b"2",
    );
    assert_eq!(next(&mut other), None);
    send(&mut one, 1, b"", b"0");
    let bodies = [0, 1, 2].map(|_| next(&mut other).expect("all have arrived").2);
    assert_eq!(bodies, [b"0", b"1", b"2"]);
    assert_eq!(next(&mut other), None);
    assert_eq!(other.stored, 0);
}

#[test]
fn a_poll_without_a_budget_does_all_but_hand_over() {
    let (millis, clock) = stopped_clock();
    let [mut one, mut other] = pair(options(), clock);
    send(&mut one, 1, b"x", b"body");
    let tend = |task: &mut ReliableAdapter<ThreadsAdapter>| {
        let nothing = &mut |_: Frame<'_>| panic!("a frame is handed over");
        assert_eq!(task.poll(None, 0, nothing).expect("nobody breaks the protocol"), 0);
    };
    tend(&mut other);
    assert_eq!((other.stored, other.statistics().acks_sent), (1, 1));
    millis.store(1, Ordering::Relaxed);
    tend(&mut one);
    assert_eq!(one.statistics().retransmitted, 1, "it was not handed over, so it has no receipt");
    assert_eq!(next(&mut other), Some((0, b"x".to_vec(), b"body".to_vec())));
    tend(&mut other);
    tend(&mut one);
    assert!(one.peers[1].link.is_settled());
}

/// The number of the frame that comes `count` frames after the first one.
fn number(count: usize) -> head::Number {
    Link::<()>::new().next().plus(count)
}

#[test]
fn frames_that_break_the_protocol_are_refused_and_named() {
    let (_, clock) = stopped_clock();
    let [mut one, mut other] = pair(options(), clock);
    let good = one.peers[1].link.receipt();
    send(&mut one.inner, 1, b"short", b"");
    assert_eq!(refusal(&mut other), Some(FrameError::Truncated { len: 5 }));
    send(&mut one.inner, 1, &[9; HEAD], b"");
    assert_eq!(refusal(&mut other), Some(FrameError::UnknownKind(0x0909_0909)));
    send(&mut one.inner, 1, &head::encode(Kind::Farewell, good), b"body");
    assert_eq!(refusal(&mut other), Some(FrameError::UnexpectedData { number: 0, len: 4 }));
    let (far, expected) = (number(64).0, number(0).0);
    send(&mut one.inner, 1, &head::encode(Kind::Data(number(64)), good), b"body");
    let outside = FrameError::OutsideWindow { number: far, expected };
    assert_eq!(refusal(&mut other), Some(outside));
    let unsent = Receipt { marks: 1, ..good };
    send(&mut one.inner, 1, &head::encode(Kind::Receipt, unsent), b"");
    let violation = FrameError::UnsentReceipt { expected, marks: 1, next: expected };
    assert_eq!(refusal(&mut other), Some(violation));
    assert_eq!(other.statistics().refused, 5);
    let text = AdapterError::Refused { origin: 3, violation: outside }.to_string();
    let cause = "rank 3 broke the protocol of the reliable layer: frame 4294967260";
    assert!(text.starts_with(cause), "{text}");
    // The link goes on.
    send(&mut one, 1, b"good", b"");
    assert!(next(&mut other).is_some());
}

#[test]
fn the_head_of_the_layer_is_taken_from_the_limit() {
    let inner = threads::job(1).expect("memory suffices").remove(0);
    let limits = inner.caps();
    let caps = ReliableAdapter::new(inner, options()).expect("legal options").caps();
    assert_eq!((caps.max_head, caps.max_inline), (limits.max_head - 20, limits.max_inline - 20));
    assert!(caps.copies_bodies && caps.max_body == limits.max_body);
}

#[test]
fn options_that_are_not_legal_are_refused() {
    let inner = threads::job(1).expect("memory suffices").remove(0);
    let options = ReliableOptions { ack_threshold: 31, ..options() };
    let refused = ReliableAdapter::new(inner, options).err();
    assert_eq!(refused, Some(OptionsError::AckThreshold { asked: 31 }));
}

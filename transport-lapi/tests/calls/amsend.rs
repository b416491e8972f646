//! Active messages of every length, with every length of user header.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use transport_lapi::adapter::AdapterError;
use transport_lapi::config::WaitMode;
use transport_lapi::{
    Amsend, Arrival, Context, ForeignBytes, HeaderAction, InlineHandler, LapiError, MAX_UHDR, Next,
    Options, Outbox, Query, SendRegion, Sent,
};

use crate::support::buffers::{Landing, pattern, source};
use crate::support::flaky::Flaky;
use crate::support::frames::received;
use crate::support::job::{Kind, run, run_with, waiting};

/// Bytes that fit into a cell together with their head.
const CELL: usize = 304;
/// Bytes that travel as one frame.
const ONE_SHOT: usize = 16 << 10;
const LONGEST: usize = 5 << 20;

/// Handler of the tests here.
const STORE: u8 = 1;
const TAKE: u8 = 2;

/// What a task has received.
struct Inbox {
    landing: Landing,
    /// Index of the case that the next header handler expects.
    expected: usize,
    faults: Vec<String>,
    complete: usize,
}

fn inbox(longest: usize) -> Inbox {
    Inbox { landing: Landing::new(longest), expected: 0, faults: Vec::new(), complete: 0 }
}

/// Lengths around every boundary of cells, frames and pieces, with the length of the user header.
fn cases() -> Vec<(usize, usize)> {
    let mut cases = Vec::new();
    for uhdr in [0, 8, 56, 64, MAX_UHDR] {
        let cell = CELL - 8 - uhdr;
        let mut sizes = vec![0, 1, 7, 8, 9, 16, 17, 31, 32, 33, 63, 64, 65, 100];
        for edge in [cell - 8, cell, CELL, ONE_SHOT, 32 << 10, 64 << 10, 128 << 10] {
            sizes.extend([edge - 1, edge, edge + 1]);
        }
        cases.extend(sizes.into_iter().map(|size| (size, uhdr)));
    }
    for edge in [512 << 10, 1 << 20] {
        cases.extend([(edge - 1, 0), (edge, 8), (edge + 1, MAX_UHDR)]);
    }
    cases.extend([(LONGEST, 0), (LONGEST - 1, MAX_UHDR)]);
    cases
}

fn uhdr_of(case: usize, len: usize) -> &'static [u8] {
    pattern(case as u64 + 1_000_000, len)
}

/// Compares an arriving message with the expected case.
fn check(inbox: &mut Inbox, message: &Arrival<'_>) -> (usize, usize) {
    let case = inbox.expected;
    inbox.expected += 1;
    let (len, uhdr_len) = cases()[case];
    if message.uhdr != uhdr_of(case, uhdr_len) {
        inbox.faults.push(format!("case {case}: the user header of {uhdr_len} bytes is damaged"));
    }
    if message.len != len as u64 {
        inbox.faults.push(format!("case {case}: {} bytes announced instead of {len}", message.len));
    }
    if message.data.is_some() != (len <= ONE_SHOT) {
        inbox.faults.push(format!("case {case}: {len} bytes in place: {}", message.data.is_some()));
    }
    (case, len)
}

fn store(inbox: &mut Inbox, message: Arrival<'_>) -> HeaderAction<Inbox> {
    let (case, len) = check(inbox, &message);
    let into = inbox.landing.region(len);
    HeaderAction::Deliver { into: into.into(), next: Next::Inline(compare, case as u64) }
}

fn compare(inbox: &mut Inbox, _: &mut Outbox<Inbox>, case: u64) {
    let (len, _) = cases()[case as usize];
    if !inbox.landing.holds(pattern(case, len)) {
        inbox.faults.push(format!("case {case}: {len} bytes arrived damaged"));
    }
    inbox.landing.wipe_first(len);
    inbox.complete += 1;
}

fn take(inbox: &mut Inbox, message: Arrival<'_>) -> HeaderAction<Inbox> {
    let (case, len) = check(inbox, &message);
    if let Some(data) = message.data {
        if data.to_vec() != pattern(case as u64, len) {
            inbox.faults.push(format!("case {case}: {len} bytes in place are damaged"));
        }
    }
    inbox.complete += 1;
    HeaderAction::Consumed
}

fn set_handlers(context: &Context<Inbox>) {
    let mut session = context.session().unwrap();
    session.addr_set(STORE.into(), store).unwrap();
    session.addr_set(TAKE.into(), take).unwrap();
    drop(session);
    context.gfence().unwrap();
}

/// Task 0 sends every case to the last task, each after the previous one is complete there.
fn one_by_one(kind: Kind, num_tasks: usize, handler: u8) {
    let faults = run(
        kind,
        num_tasks,
        |_| inbox(LONGEST),
        move |context| {
            set_handlers(context);
            let counter = context.session().unwrap().counter();
            let target = context.num_tasks() as u32 - 1;
            if context.task() == 0 {
                for (case, (len, uhdr_len)) in cases().into_iter().enumerate() {
                    let udata = source(pattern(case as u64, len));
                    let uhdr = uhdr_of(case, uhdr_len);
                    let mut call = Amsend::new(target, handler, uhdr, udata);
                    call.cmpl_cntr = Some(counter);
                    let _ = context.session().unwrap().amsend(call).unwrap();
                    assert_eq!(context.waitcntr(counter, 1).unwrap(), 0);
                }
            }
            context.gfence().unwrap();
            let session = context.session().unwrap();
            let due = if context.task() == target { cases().len() } else { 0 };
            assert_eq!(session.state.complete, due);
            session.state.faults.clone()
        },
    );
    assert_eq!(faults.concat(), Vec::<String>::new(), "{kind:?}");
}

#[test]
fn every_length_is_stored_where_the_handler_says() {
    for kind in [Kind::Threads, Kind::Shm] {
        one_by_one(kind, 2, STORE);
    }
}

#[test]
fn every_length_can_be_consumed_in_the_handler() {
    for kind in [Kind::Threads, Kind::Shm] {
        one_by_one(kind, 2, TAKE);
    }
}

#[test]
fn a_task_sends_to_itself() {
    one_by_one(Kind::Threads, 1, STORE);
    one_by_one(Kind::Shm, 1, STORE);
    one_by_one(Kind::Threads, 1, TAKE);
}

/// All cases are sent at once: rings fill up, and messages queue in their send queue.
#[test]
fn nothing_is_lost_when_the_rings_are_full() {
    for kind in [Kind::Threads, Kind::Shm] {
        let options = waiting(WaitMode::Spin);
        run_with(
            kind.adapters(2),
            options,
            |_| inbox(LONGEST),
            |context| {
                set_handlers(context);
                let counter = context.session().unwrap().counter();
                let all = cases().len();
                for (case, (len, uhdr_len)) in cases().into_iter().enumerate() {
                    let udata = source(pattern(case as u64, len));
                    let uhdr = uhdr_of(case, uhdr_len);
                    let mut call = Amsend::new(1 - context.task(), STORE, uhdr, udata);
                    call.cmpl_cntr = Some(counter);
                    let _ = context.session().unwrap().amsend(call).unwrap();
                }
                assert_eq!(context.waitcntr(counter, all as i64).unwrap(), 0);
                context.gfence().unwrap();
                let session = context.session().unwrap();
                assert_eq!(session.state.faults, Vec::<String>::new());
                assert_eq!(session.state.complete, all);
            },
        );
    }
}

/// The origin's buffer may be overwritten as soon as the call returns `Now` or the handler runs.
#[test]
fn the_buffer_is_reusable_when_the_call_says_so() {
    type Log = Vec<Vec<u8>>;
    fn keep(log: &mut Log, message: Arrival<'_>) -> HeaderAction<Log> {
        log.extend(message.data.map(|data| data.to_vec()));
        HeaderAction::Consumed
    }
    let logs = run(
        Kind::Threads,
        2,
        |_| Log::new(),
        |context| {
            context.session().unwrap().addr_set(1, keep).unwrap();
            context.gfence().unwrap();
            let buffer = Landing::new(ONE_SHOT);
            let mut later = 0;
            if context.task() == 0 {
                let reusable = context.session().unwrap().counter();
                for round in 0..2_000_u64 {
                    let len = [8, 300, 301, 1000, ONE_SHOT][round as usize % 5];
                    buffer.fill(round as u8);
                    let mut call = Amsend::new(1, 1, &[], buffer.source(len));
                    call.on_origin = Next::Counter(reusable);
                    let sent = context.session().unwrap().amsend(call).unwrap();
                    if sent == Sent::Now {
                        assert_eq!(context.session().unwrap().getcntr(reusable).unwrap(), 1);
                    }
                    later += usize::from(sent == Sent::Later);
                    context.waitcntr(reusable, 1).unwrap();
                }
            }
            context.gfence().unwrap();
            (later, std::mem::take(&mut context.session().unwrap().state))
        },
    );
    let log = &logs[1].1;
    assert_eq!(log.len(), 2_000);
    for (round, bytes) in log.iter().enumerate() {
        assert!(bytes.iter().all(|&byte| byte == round as u8), "message {round} was overwritten");
    }
}

/// The handler runs once, whether the message is sent at once or queued.
#[test]
fn the_origin_handler_runs_once_for_every_message() {
    type Told = Vec<u64>;
    fn told(told: &mut Told, _: &mut Outbox<Told>, info: u64) {
        told.push(info);
    }
    fn ignore(_: &mut Told, _: Arrival<'_>) -> HeaderAction<Told> {
        HeaderAction::Consumed
    }
    let handler: InlineHandler<Told> = told;
    run(
        Kind::Threads,
        1,
        |_| Told::new(),
        move |context| {
            let mut session = context.session().unwrap();
            session.addr_set(1, ignore).unwrap();
            let mut waited = Vec::new();
            for number in 0..1_000 {
                let mut call = Amsend::new(0, 1, &[], source(pattern(number, 64)));
                call.on_origin = Next::Inline(handler, number);
                if session.amsend(call).unwrap() == Sent::Later {
                    waited.push(number);
                }
            }
            assert!(!waited.is_empty(), "a ring has room for fewer than 1000 messages");
            assert!(!waited.contains(&0), "an empty ring has room");
            assert_eq!(session.state.len() + waited.len(), 1_000, "what has ended has told");
            drop(session);
            context.wait(|session| (session.state.len() >= 1_000).then_some(())).unwrap();
            context.gfence().unwrap();
            assert_eq!(context.session().unwrap().state, (0..1_000).collect::<Vec<_>>());
        },
    );
}

#[test]
fn trying_never_queues() {
    type Count = usize;
    fn count(count: &mut Count, _: Arrival<'_>) -> HeaderAction<Count> {
        *count += 1;
        HeaderAction::Consumed
    }
    run(
        Kind::Threads,
        1,
        |_| 0,
        |context| {
            let mut session = context.session().unwrap();
            session.addr_set(1, count).unwrap();
            let (long, short) = (source(pattern(1, ONE_SHOT + 1)), source(pattern(1, 8)));
            assert!(!session.try_amsend(0, 1, 0, long), "not one packet");
            assert!(!session.try_amsend(1, 1, 0, short), "no such task");
            assert!(!session.try_amsend(0, 0, 0, short), "no handler");
            let mut taken = 0;
            while session.try_amsend(0, 1, 0, short) {
                taken += 1;
            }
            drop(session);
            context.gfence().unwrap();
            assert_eq!(context.session().unwrap().state, taken);
        },
    );
}

/// Bytes that are borrowed for the call have been copied when it returns.
#[test]
fn borrowed_bytes_are_copied_inside_the_call() {
    fn keep(
        kept: &mut Vec<Vec<u8>>,
        _: u32,
        _: u64,
        data: ForeignBytes<'_>,
    ) -> Option<(InlineHandler<Vec<Vec<u8>>>, u64)> {
        kept.push(data.to_vec());
        None
    }
    for kind in Kind::SEGMENTS {
        run(
            kind,
            1,
            |_| Vec::new(),
            |context| {
                let mut session = context.session().unwrap();
                session.addr_set_short(1, keep).unwrap();
                let lengths = [0, 1, 32, 300, 5_000, ONE_SHOT];
                for (number, len) in (1..).zip(lengths) {
                    let mut bytes = vec![number; len];
                    assert!(session.try_amsend_bytes(0, 1, 0, &bytes), "{len} bytes fit");
                    bytes.fill(0);
                }
                assert!(!session.try_amsend_bytes(0, 1, 0, &[1; ONE_SHOT + 1]), "not one packet");
                drop(session);
                context.gfence().unwrap();
                let expected: Vec<_> =
                    (1..).zip(lengths).map(|(number, len)| vec![number; len]).collect();
                assert_eq!(context.session().unwrap().state, expected);
            },
        );
    }
}

/// The received messages: handler, origin, first byte of the user header, length.
type Seen = Vec<(&'static str, u32, u8, usize)>;

fn see_arrival(seen: &mut Seen, arrival: Arrival<'_>) -> HeaderAction<Seen> {
    seen.push(("header", arrival.origin, arrival.uhdr[0], arrival.len as usize));
    HeaderAction::Consumed
}

fn see_short(
    seen: &mut Seen,
    origin: u32,
    uhdr: u64,
    udata: ForeignBytes<'_>,
) -> Option<(InlineHandler<Seen>, u64)> {
    fn follow_up(seen: &mut Seen, _: &mut Outbox<Seen>, info: u64) {
        seen.push(("follow-up", 0, 0, info as usize));
    }
    seen.push(("short", origin, uhdr as u8, udata.len()));
    (uhdr == 9).then_some((follow_up, 77))
}

#[test]
fn a_short_handler_gets_the_short_messages_of_its_index() {
    for kind in Kind::SEGMENTS {
        run(
            kind,
            1,
            |_| Seen::new(),
            |context| {
                let mut session = context.session().unwrap();
                for index in [0, 256] {
                    assert!(session.addr_set_short(index, see_short).is_err(), "no such index");
                }
                session.addr_set(1, see_arrival).unwrap();
                session.addr_set(2, see_arrival).unwrap();
                session.addr_set_short(2, see_short).unwrap();
                for len in [0, 8, 48, 300, ONE_SHOT] {
                    assert!(session.try_amsend(0, 1, 5, source(pattern(1, len))));
                    assert!(session.try_amsend(0, 2, 9, source(pattern(1, len))));
                }
                let counted = Amsend { tgt_cntr: Some(session.counter()), ..amsend(2, 8) };
                assert_eq!(session.amsend(counted).unwrap(), Sent::Now);
                assert_eq!(session.amsend(amsend(2, 16)).unwrap(), Sent::Now);
                drop(session);
                context.gfence().unwrap();
                let mut expected = Seen::new();
                for len in [0, 8, 48, 300, ONE_SHOT] {
                    expected.push(("header", 0, 5, len));
                    expected.push(("short", 0, 9, len));
                    expected.push(("follow-up", 0, 0, 77));
                }
                expected.extend([("header", 0, 4, 3), ("header", 0, 4, 3)]);
                let seen = std::mem::take(&mut context.session().unwrap().state);
                assert_eq!(seen, expected);
            },
        );
    }
}

/// A message of three bytes with a user header of this length.
fn amsend<S>(handler: u8, uhdr: usize) -> Amsend<'static, S> {
    Amsend::new(0, handler, &[4; 16][..uhdr], source(pattern(1, 3)))
}

#[test]
fn queries_describe_the_task_and_its_limits() {
    for kind in Kind::SEGMENTS {
        run(
            kind,
            3,
            |_| (),
            move |context: &Arc<Context<()>>| {
                let session = context.session().unwrap();
                assert_eq!(session.qenv(Query::TaskId).unwrap(), u64::from(context.task()));
                assert_eq!(session.qenv(Query::NumTasks).unwrap(), 3);
                assert_eq!(session.qenv(Query::MaxUhdrSz).unwrap(), MAX_UHDR as u64);
                assert_eq!(session.qenv(Query::MaxDataSz).unwrap(), isize::MAX as u64);
                assert!(session.qenv(Query::MaxPktSz).unwrap() >= ONE_SHOT as u64);
                assert_eq!(session.qenv(Query::LocAddrtblSz).unwrap(), 256);
                let steps: Vec<_> =
                    session.steps(context.task(), 8).iter().map(|step| step.bytes).collect();
                assert_eq!((steps.len(), steps.is_sorted()), (4, true));
                assert_eq!(steps[1..], [ONE_SHOT, 128 << 10, 512 << 10]);
                let name = if kind == Kind::Threads { "threads" } else { "shm" };
                assert_eq!(session.caps(0).map(|caps| caps.name), Some(name));
                assert_eq!(session.get_kind().is_none(), kind == Kind::ShmAm);
            },
        );
    }
}

#[test]
fn messages_are_cut_as_frames_allow() {
    let options = Options { max_body: 4096, ..Options::default() };
    let adapters = Kind::Threads.adapters(1);
    run_with(
        adapters,
        options,
        |_| Vec::new(),
        |context: &Arc<Context<Vec<bool>>>| {
            let whole = |seen: &mut Vec<bool>, message: Arrival<'_>| {
                seen.push(message.data.is_some());
                HeaderAction::Drop
            };
            context.session().unwrap().addr_set(1, whole).unwrap();
            for len in [4096, 4097] {
                let message = source(pattern(1, len));
                let _ = context.session().unwrap().amsend(Amsend::new(0, 1, &[], message)).unwrap();
            }
            context.wait(|session| (session.state.len() == 2).then_some(())).unwrap();
            let session = context.session().unwrap();
            assert_eq!(session.state, [true, false]);
            let steps = session.steps(context.task(), 0);
            assert_eq!(session.longest_packet(context.task()), steps[1].bytes);
            let above =
                |bytes| steps.iter().find(|step| step.bytes == bytes).map(|step| step.above);
            assert_eq!((above(4096), above(128 << 10)), (Some("in pieces"), None));
        },
    );
}

/// Only the failing send is taken back: neither earlier sends nor later ones of handlers.
#[test]
fn a_failed_send_is_taken_back_and_no_other() {
    const FOLLOWS: u64 = 1_000_000;
    const FAILS: u64 = 2_000_000;
    let uhdr_of = |head: &[u8]| u64::from_le_bytes(head[8..16].try_into().expect("eight bytes"));
    fn follow(is_full: &mut bool, outbox: &mut Outbox<bool>, uhdr: u64) {
        if *is_full {
            outbox.amsend(1, 1, &uhdr.to_le_bytes(), Vec::new()).unwrap();
        }
    }
    let mut adapters = Kind::Threads.adapters(2);
    let mut peer = adapters.remove(1);
    let (flaky, passes) = Flaky::new(adapters.remove(0));
    let context = Context::init(flaky, false, Options::default());
    let mut session = context.session().unwrap();
    let mut send = |uhdr: u64| {
        let uhdr = uhdr.to_le_bytes();
        let mut call = Amsend::new(1, 1, &uhdr, SendRegion::EMPTY);
        call.on_origin = Next::Inline(follow, FOLLOWS);
        let sent = session.amsend(call);
        session.state = matches!(sent, Ok(Sent::Later));
        sent
    };
    let filled = (0..).find(|&uhdr| send(uhdr).unwrap() == Sent::Later).expect("rings are finite");
    let mut seen: Vec<u64> = received(&mut *peer).iter().map(|(head, _)| uhdr_of(head)).collect();
    // There is room again. The queued message is sent, its handler queues another one, and then the new one fails.
    passes.store(1, Ordering::Relaxed);
    let error = send(FAILS).unwrap_err();
    assert!(matches!(error, LapiError::Adapter(AdapterError::Corrupt { .. })), "{error}");
    session.progress().unwrap();
    seen.extend(received(&mut *peer).iter().map(|(head, _)| uhdr_of(head)));
    let expected: Vec<u64> = (0..=filled).chain([FOLLOWS]).collect();
    assert_eq!(seen, expected, "a send that failed was sent, or another one was not");
}

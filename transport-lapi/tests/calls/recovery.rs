//! LAPI_Purge_totask, LAPI_Resume_totask and LAPI_Setcntr_wstatus. The tasks are two contexts that one thread uses, so
//! the order of events is fixed.

use mpj_harness::watch;
use transport_lapi::adapter::AdapterError;
use transport_lapi::config::WaitMode;
use transport_lapi::{
    Amsend, Arrival, Context, CounterId, DestStatus, HeaderAction, LapiError, Next, Options,
    Outbox, Put, RemoteRegion, Rmw, RmwOp, SendRegion, Sent,
};

use crate::support::buffers::{Landing, pattern, source};
use crate::support::job::{Kind, waiting};

/// Longer than the rings and the bulk area of a pair have room for.
const STUCK: usize = 6 << 20;

/// The lengths of the messages that have arrived, and how gets have ended.
#[derive(Default)]
struct Log {
    arrived: Vec<u64>,
    gets: Vec<Result<(), LapiError>>,
}

type Task = Context<Log>;

fn take(_: &mut Log, message: Arrival<'_>) -> HeaderAction<Log> {
    fn whole(log: &mut Log, _: &mut Outbox<Log>, len: u64) {
        log.arrived.push(len);
    }
    let into = Landing::new(message.len as usize).region(message.len as usize);
    HeaderAction::Deliver { into: into.into(), next: Next::Inline(whole, message.len) }
}

fn got(log: &mut Log, _: &mut Outbox<Log>, _: u64, outcome: Result<(), LapiError>) {
    log.gets.push(outcome);
}

/// The tasks of a job, each with two counters.
fn tasks(kind: Kind, count: usize) -> Vec<Task> {
    let task = |adapter| {
        let context = Context::init(adapter, Log::default(), Options::default());
        let mut session = context.session().unwrap();
        session.addr_set(1, take).unwrap();
        assert_eq!([session.counter(), session.counter()], [FIRST, SECOND]);
        drop(session);
        context
    };
    kind.adapters(count).into_iter().map(task).collect()
}

const FIRST: CounterId = CounterId(0);
const SECOND: CounterId = CounterId(1);

/// Sends a message, and returns whether it has left.
fn send(from: &Task, target: u32, len: usize) -> Result<bool, LapiError> {
    let mut call = Amsend::new(target, 1, &[], source(pattern(1, len)));
    call.on_origin = Next::Counter(FIRST);
    call.cmpl_cntr = Some(SECOND);
    Ok(from.session().unwrap().amsend(call)? == Sent::Now)
}

/// Makes progress on all tasks until nothing moves.
fn settle(tasks: &[Task]) {
    let round = |task: &Task| task.session().unwrap().progress().unwrap();
    while tasks.iter().map(round).sum::<usize>() > 0 {}
}

fn purge(of: &Task, target: u32) {
    of.session().unwrap().purge_totask(target).unwrap();
}

fn resume(of: &Task, target: u32) {
    of.session().unwrap().resume_totask(target).unwrap();
}

fn is_purged(of: &Task, target: u32) -> bool {
    of.session().unwrap().is_purged(target).unwrap()
}

fn arrived(at: &Task) -> Vec<u64> {
    at.session().unwrap().state.arrived.clone()
}

fn is_refused<T: std::fmt::Debug>(answer: Result<T, LapiError>) -> bool {
    let refused = matches!(answer, Err(LapiError::TgtPurged { target: 1 }));
    assert!(refused, "{answer:?}");
    refused
}

#[test]
fn tgt_is_checked() {
    let task = tasks(Kind::Threads, 2).remove(0);
    let mut session = task.session().unwrap();
    let is_tgt = |error| matches!(error, LapiError::Tgt { target: 2, num_tasks: 2 });
    assert!(is_tgt(session.purge_totask(2).unwrap_err()));
    assert!(is_tgt(session.resume_totask(2).unwrap_err()));
    assert!(is_tgt(session.is_purged(2).unwrap_err()));
}

#[test]
fn a_purge_ends_what_is_queued_and_refuses_later_calls() {
    for kind in Kind::SEGMENTS {
        let tasks = tasks(kind, 2);
        let task = &tasks[0];
        assert!(!send(task, 1, STUCK).unwrap());
        let landing = Landing::new(8);
        let nowhere = RemoteRegion::over_frames(u64::MAX, 8, 0);
        let get = |task: &Task| {
            let mut session = task.session().unwrap();
            session.get(1, nowhere, 0, landing.region(8), Next::Outcome(got, 0))
        };
        get(task).unwrap();
        task.session().unwrap().progress().unwrap();
        assert_eq!(task.session().unwrap().getcntr(FIRST).unwrap(), 0, "{kind:?}: it waits");
        purge(task, 1);
        let mut session = task.session().unwrap();
        assert_eq!(session.getcntr(FIRST).unwrap(), 1, "the buffer is reusable");
        assert_eq!(session.getcntr(SECOND).unwrap(), 0, "the message has not arrived");
        if kind == Kind::ShmAm {
            assert_eq!(session.state.gets.len(), 1);
            assert!(is_refused(session.state.gets.remove(0)));
        }
        assert!(!session.try_amsend(1, 1, 0, SendRegion::EMPTY));
        assert!(is_refused(session.parts().1.amsend(1, 1, &[], Vec::new())));
        drop(session);
        assert!(is_refused(send(task, 1, 8)));
        assert!(is_refused(send(task, 1, STUCK)));
        assert!(is_refused(get(task)));
        assert!(is_refused(task.gfence()));
        assert!(is_refused(task.address_init(0)));
        task.fence().expect("nothing is on its way to a task that others need");
        assert!(is_purged(task, 1) && !is_purged(task, 0));
    }
}

#[test]
fn frames_of_a_purged_task_are_discarded_and_those_of_others_are_not() {
    let tasks = tasks(Kind::Threads, 3);
    send(&tasks[1], 0, 8).unwrap();
    send(&tasks[1], 0, 20_000).unwrap();
    assert!(tasks[1].session().unwrap().try_amsend_bytes(0, 1, 0, b"short"));
    purge(&tasks[0], 1);
    send(&tasks[2], 0, 16).unwrap();
    settle(&tasks);
    assert_eq!(arrived(&tasks[0]), [16]);
    assert_eq!(tasks[2].session().unwrap().getcntr(SECOND).unwrap(), 1);
}

/// A message of which a part was under way when its task was purged does not go on; a new one arrives whole.
#[test]
fn tasks_that_have_purged_and_resumed_each_other_communicate_again() {
    for kind in Kind::SEGMENTS {
        for first in [0, 1] {
            let tasks = tasks(kind, 2);
            let other = 1 - first;
            assert!(!send(&tasks[0], 1, STUCK).unwrap());
            // The beginning of the message has been taken in, and there is more of it in the ring.
            tasks[1].session().unwrap().progress().unwrap();
            tasks[0].session().unwrap().progress().unwrap();
            purge(&tasks[first], other as u32);
            purge(&tasks[other], first as u32);
            resume(&tasks[first], other as u32);
            settle(&tasks);
            assert!(is_purged(&tasks[first], other as u32), "the other has not resumed it");
            let mut session = tasks[first].session().unwrap();
            assert!(!session.try_amsend(other as u32, 1, 0, SendRegion::EMPTY));
            drop(session);
            resume(&tasks[other], first as u32);
            settle(&tasks);
            for (from, to) in [(0, 1), (1, 0)] {
                assert!(!is_purged(&tasks[from], to), "{kind:?}, {first} first");
                send(&tasks[from], to, 70_000).unwrap();
                assert!(tasks[from].session().unwrap().try_amsend_bytes(to, 1, 0, b"short"));
            }
            settle(&tasks);
            for task in &tasks {
                let mut lengths = arrived(task);
                lengths.sort_unstable();
                assert_eq!(lengths, [5, 70_000], "{kind:?}, {first} first");
                assert_eq!(task.session().unwrap().getcntr(SECOND).unwrap(), 1);
            }
        }
    }
}

/// The packet by which a task resumes may arrive before this side has even purged.
#[test]
fn a_resumption_counts_however_early_it_comes() {
    let tasks = tasks(Kind::Threads, 2);
    for round in 1..=3 {
        purge(&tasks[1], 0);
        resume(&tasks[1], 0);
        settle(&tasks);
        assert!(is_purged(&tasks[1], 0), "only one side has purged");
        purge(&tasks[0], 1);
        resume(&tasks[0], 1);
        settle(&tasks);
        assert!(!is_purged(&tasks[0], 1) && !is_purged(&tasks[1], 0));
        send(&tasks[1], 0, 8).unwrap();
        settle(&tasks);
        assert_eq!(arrived(&tasks[0]).len(), round);
    }
    resume(&tasks[0], 1);
    send(&tasks[0], 1, 8).expect("to resume a task that is not purged does nothing");
}

/// Waits for other tasks go on; whoever purges a task that is lost need not hear of its loss.
#[test]
fn the_loss_of_a_purged_task_harms_no_wait() {
    for purged_first in [true, false] {
        let mut adapters = Kind::Threads.adapters(2);
        let bell = adapters[1].parts().losses;
        let task = Context::init(adapters.remove(0), Log::default(), waiting(WaitMode::Spin));
        let counter = task.session().unwrap().counter();
        if purged_first {
            purge(&task, 1);
        }
        bell.declare();
        if !purged_first {
            let error = task.waitcntr(counter, 1).unwrap_err();
            assert!(matches!(error, LapiError::Adapter(AdapterError::PeerLost { task: 1 })));
            purge(&task, 1);
        }
        task.session().unwrap().check_lost().expect("it was given up");
        let mut looks = 0;
        let seen = task.wait(|session| {
            looks += 1;
            session.notice_losses().expect("this task is not lost");
            (looks == 20_000).then_some(())
        });
        seen.expect("nobody needs task 1");
        let mut session = task.session().unwrap();
        assert!(is_refused(session.amsend(Amsend::new(1, 1, &[], SendRegion::EMPTY))));
    }
}

/// The packet by which a task resumes may lie there when the task is lost; so it is taken back, and then reported.
#[test]
fn the_loss_of_a_purged_task_is_noticed_once_it_is_taken_back() {
    watch(|| {
        let mut adapters = Kind::Threads.adapters(2);
        let bell = adapters[1].parts().losses;
        let peer = Context::init(adapters.remove(1), Log::default(), Options::default());
        let task = Context::init(adapters.remove(0), Log::default(), Options::default());
        let counter = task.session().unwrap().counter();
        purge(&peer, 0);
        resume(&peer, 0);
        purge(&task, 1);
        bell.declare();
        let mut session = task.session().unwrap();
        while session.notice_losses().unwrap() || session.progress().unwrap() > 0 {}
        drop(session);
        assert!(is_purged(&task, 1));
        resume(&task, 1);
        assert!(!is_purged(&task, 1), "both have resumed");
        let is_reported =
            |error| matches!(error, LapiError::Adapter(AdapterError::PeerLost { task: 1 }));
        assert!(is_reported(task.waitcntr(counter, 1).unwrap_err()));
        assert!(is_reported(task.gfence().unwrap_err()));
        assert!(is_reported(send(&task, 1, 8).unwrap_err()));
    });
}

#[test]
fn statuses_tell_whose_events_were_counted() {
    use DestStatus::{Initial, Invalid, Purged, PurgedReceived, Received};
    let tasks = tasks(Kind::Threads, 3);
    let task = &tasks[0];
    let status = || task.session().unwrap().cntr_status(SECOND).unwrap();
    assert_eq!(status(), []);
    task.session().unwrap().setcntr(SECOND, 9).unwrap();
    task.session().unwrap().setcntr_wstatus(SECOND, &[1, 2, 1, 3]).unwrap();
    assert_eq!(task.session().unwrap().getcntr(SECOND).unwrap(), 0);
    assert_eq!(status(), [Initial, Initial, Initial, Invalid]);
    send(task, 1, 8).unwrap();
    send(task, 2, 20_000).unwrap();
    settle(&tasks);
    assert_eq!(status(), [Received, Received, Initial, Invalid]);
    purge(task, 1);
    assert_eq!(status(), [PurgedReceived, Received, Purged, Invalid]);
    assert_eq!(task.waitcntr(SECOND, 2).unwrap(), 0, "both events came");
    assert!(is_refused(task.waitcntr(SECOND, 1)));
    assert!(is_refused(task.nopoll_wait(SECOND, 1)));
    task.session().unwrap().setcntr_wstatus(SECOND, &[1]).unwrap();
    assert_eq!(status(), [Purged]);
    task.session().unwrap().setcntr(SECOND, 0).unwrap();
    assert_eq!(status(), [], "the list is forgotten");
    let missing = CounterId(7);
    let mut session = task.session().unwrap();
    let is_named = |error| matches!(error, LapiError::CntrNull { index: 7, count: 2 });
    assert!(is_named(session.setcntr_wstatus(missing, &[1]).unwrap_err()));
    assert!(is_named(session.cntr_status(missing).unwrap_err()));
}

/// The end of a get is an event of its target, and the end of a message one of its origin.
#[test]
fn gets_and_arrivals_mark_their_destinations() {
    let tasks = tasks(Kind::ShmAm, 3);
    let remote = tasks[2].session().unwrap().register(source(pattern(1, 100))).unwrap();
    let landing = Landing::new(100);
    let mut session = tasks[0].session().unwrap();
    session.setcntr_wstatus(FIRST, &[1, 2]).unwrap();
    session.get(2, remote, 0, landing.region(100), Next::Counter(FIRST)).unwrap();
    drop(session);
    let mut call = Amsend::new(0, 1, &[], SendRegion::EMPTY);
    call.tgt_cntr = Some(SECOND);
    tasks[0].session().unwrap().setcntr_wstatus(SECOND, &[2, 1]).unwrap();
    let _ = tasks[1].session().unwrap().amsend(call).unwrap();
    settle(&tasks);
    let mut session = tasks[0].session().unwrap();
    assert_eq!(session.cntr_status(FIRST).unwrap(), [DestStatus::Initial, DestStatus::Received]);
    assert_eq!(session.cntr_status(SECOND).unwrap(), [DestStatus::Initial, DestStatus::Received]);
}

/// Puts and read-modify-writes that the adapter carries out end with a purge, those under way and those that wait for
/// room. What ends later has no effect on operations that begin after the task was taken back.
#[test]
fn a_purge_ends_operations_of_the_adapter() {
    watch(|| {
        let tasks = tasks(Kind::OneSided, 2);
        let (task, owner) = (&tasks[0], &tasks[1]);
        let landing = Landing::new(4096);
        landing.fill(0);
        let memory = landing.region(4096);
        let region = owner.session().unwrap().register_writable(memory).unwrap();
        for round in 0..20 {
            for nth in 0..9 {
                let bytes = source(pattern(nth, 1900));
                let put = Put { on_origin: Next::Counter(FIRST), ..Put::new(1, region, 96, bytes) };
                let _ = task.session().unwrap().put(put).unwrap();
                let add = Rmw::new(1, region, 0, RmwOp::FetchAndAdd(1_i64));
                let add = Rmw { next: Next::Outcome(got, 0), ..add };
                task.session().unwrap().rmw(add).unwrap();
            }
            purge(task, 1);
            purge(owner, 0);
            let is_over = |session: &mut transport_lapi::Session<Log>| {
                let puts = session.getcntr(FIRST).unwrap();
                (puts == 9 && session.state.gets.len() == 9).then_some(())
            };
            task.wait(is_over).unwrap();
            let mut session = task.session().unwrap();
            session.setcntr(FIRST, 0).unwrap();
            let ends = std::mem::take(&mut session.state.gets);
            drop(session);
            let purged = |end: &Result<(), LapiError>| {
                matches!(end, Err(LapiError::TgtPurged { target: 1 }))
            };
            assert!(ends.iter().all(|end| end.is_ok() || purged(end)), "{ends:?}");
            assert!(purged(&ends[8]), "the last one has not begun: {ends:?}");
            resume(task, 1);
            resume(owner, 0);
            while is_purged(task, 1) || is_purged(owner, 0) {
                settle(&tasks);
            }
            let bytes = pattern(round, 1900);
            let _ = task.session().unwrap().put(Put::new(1, region, 2100, source(bytes))).unwrap();
            let mut fenced = false;
            std::thread::scope(|scope| {
                let fence = scope.spawn(|| task.fence().unwrap());
                while !fence.is_finished() {
                    owner.session().unwrap().progress().unwrap();
                }
                fenced = fence.join().is_ok();
            });
            assert!(fenced && landing.contents(4096).0[2100..4000] == *bytes, "round {round}");
        }
    });
}

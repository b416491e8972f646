//! What is concluded from looks at made-up states, and whether it is true in all interleavings of a model.

use std::ffi::CString;
use std::fs;

use super::*;
use rustix::thread::{gettid, set_name};
use transport_lapi::bootstrap::waits::{Blocked, Wait, bystander_name};

mod model;

fn asleep() -> Blocked {
    Blocked { wait: Wait::default(), undisturbed: true, failed: false, looks: 5 }
}

fn state(epoch: u64, blocked: Vec<Blocked>) -> Option<TaskState> {
    let (sent, received) = (0, 0);
    let (is_here, contexts) = (true, 1);
    Some(TaskState {
        pid: 7,
        is_here,
        epoch,
        moves: 0,
        blocked,
        unlisted: 0,
        sent,
        received,
        contexts,
    })
}

fn slept(looks: u32) -> TaskState {
    state(8, vec![Blocked { looks, ..asleep() }]).expect("a state")
}

fn running(_: usize) -> Stage {
    Stage::Running
}

fn deadlocks() -> Watch {
    Watch::new(true, None)
}

/// Judges three looks: at `first`, at `then`, and at `then` after each thread has looked for messages `more` times.
/// `all_blocked` says whether all threads are blocked or idle between the looks.
fn verdict(first: Look, then: Look, more: u32, all_blocked: bool) -> Finding {
    let mut watch = deadlocks();
    let mut last = then.clone();
    let threads = last.iter_mut().flatten().flat_map(|state| &mut state.blocked);
    threads.for_each(|thread| thread.looks += more);
    let mut found = Finding::Nothing;
    for look in [first, then, last] {
        assert_eq!(found, Finding::Nothing, "before the last look");
        let before = watch.candidate.take().filter(|_| all_blocked);
        found = watch.judge(before, look, running, Instant::now());
    }
    found
}

#[test]
fn a_sleep_of_all_ranks_in_which_they_look_twice_is_a_deadlock() {
    let ranks = || vec![state(2, vec![asleep()]), state(8, vec![asleep(), asleep()])];
    assert_eq!(verdict(ranks(), ranks(), 2, true), Finding::Deadlock);
    assert_eq!(
        verdict(ranks(), ranks(), 1, true),
        Finding::Nothing,
        "a look may have begun before"
    );
    assert_eq!(verdict(ranks(), ranks(), 2, false), Finding::Nothing, "a thread that runs");
}

#[test]
fn whatever_else_is_not() {
    let sleeping = vec![state(2, vec![asleep()]), state(8, vec![asleep()])];
    let with = |other: Option<TaskState>| vec![sleeping[0].clone(), other];
    let rung = Blocked { undisturbed: false, ..asleep() };
    let failed = Blocked { failed: true, ..asleep() };
    let absent = Some(TaskState { pid: 0, ..state(0, vec![]).unwrap() });
    let crowded = Some(TaskState { unlisted: 1, ..state(8, vec![asleep()]).unwrap() });
    let others = [
        ("another sleep", state(10, vec![asleep()])),
        ("awake", state(8, vec![])),
        ("rung for", state(8, vec![asleep(), rung])),
        ("failed", state(8, vec![failed])),
        ("not joined", absent),
        ("unlisted threads", crowded),
        ("unreadable", None),
    ];
    for (name, other) in others {
        let found = verdict(sleeping.clone(), with(other.clone()), 2, true);
        assert_eq!(found, Finding::Nothing, "{name}, then");
        let found = verdict(with(other.clone()), sleeping.clone(), 2, true);
        assert_eq!(found, Finding::Nothing, "{name}, first");
    }
}

#[test]
fn ranks_that_ended_are_not_waited_for_and_a_job_without_ranks_is_at_its_end() {
    let now = Instant::now();
    let first_ended = |rank| if rank == 0 { Stage::Ended } else { Stage::Running };
    let looked = |looks| vec![state(9, vec![]), Some(slept(looks))];
    let mut watch = deadlocks();
    for looks in [5, 6, 7] {
        let before = watch.candidate.take();
        assert_eq!(watch.judge(before, looked(looks), first_ended, now), Finding::Nothing);
    }
    let before = watch.candidate.take();
    assert_eq!(watch.judge(before, looked(8), first_ended, now), Finding::Deadlock);
    for looks in [9, 11, 13, 15] {
        let before = watch.candidate.take();
        assert_eq!(watch.judge(before, looked(looks), |_| Stage::Ended, now), Finding::Nothing);
    }
}

#[test]
fn a_rank_that_ends_between_the_looks_may_have_sent() {
    let looked = |looks| vec![Some(slept(looks)), Some(slept(looks))];
    let mut watch = deadlocks();
    for (looks, ended) in [(1, false), (3, false), (5, true), (7, true)] {
        let before = watch.candidate.take();
        let stage = |rank| if rank == 1 && ended { Stage::Ended } else { Stage::Running };
        assert_eq!(watch.judge(before, looked(looks), stage, Instant::now()), Finding::Nothing);
    }
}

#[test]
fn a_stall_is_told_when_nothing_has_changed_for_so_long() {
    let limit = Duration::from_secs(5);
    let mut watch = Watch::new(false, Some(limit));
    let start = Instant::now();
    let at = |seconds| start + Duration::from_secs(seconds);
    let computing = |moves| vec![Some(TaskState { moves, ..state(4, vec![]).unwrap() })];
    for (second, moves) in [(0, 1), (4, 1), (6, 2), (10, 2)] {
        let found = watch.judge(None, computing(moves), running, at(second));
        assert_eq!(found, Finding::Nothing, "at {second} s");
    }
    let found = watch.judge(None, computing(2), running, at(11));
    assert_eq!(found, Finding::Stall(limit));
}

#[test]
fn a_program_of_somebody_else_does_not_stall() {
    let mut watch = Watch::new(true, Some(Duration::from_secs(1)));
    let start = Instant::now();
    let stranger = || vec![Some(TaskState { pid: 0, ..state(0, vec![]).unwrap() })];
    for second in 0..9 {
        let now = start + Duration::from_secs(second);
        assert_eq!(watch.judge(None, stranger(), running, now), Finding::Nothing);
    }
}

#[test]
fn ranks_that_have_done_their_part_do_not_stall() {
    let mut watch = Watch::new(false, Some(Duration::from_secs(2)));
    let start = Instant::now();
    let both = || vec![state(4, vec![]), state(6, vec![])];
    for second in 0..9 {
        let now = start + Duration::from_secs(second);
        let done = |rank| if rank == 0 { Stage::Finished } else { Stage::Ended };
        assert_eq!(watch.judge(None, both(), done, now), Finding::Nothing);
    }
    let found = watch.judge(None, both(), running, start + Duration::from_secs(9));
    assert_eq!(found, Finding::Nothing, "time counts only from here");
}

#[test]
fn an_inquiry_neither_is_progress_nor_puts_off_a_stall() {
    let limit = Duration::from_secs(3);
    let mut watch = Watch::new(true, Some(limit));
    let start = Instant::now();
    let awake = |epoch| vec![state(epoch, vec![])];
    for second in 0..3 {
        let now = start + Duration::from_secs(second);
        assert_eq!(watch.judge(None, awake(2 * second), running, now), Finding::Nothing);
        watch.wake();
    }
    let found = watch.judge(None, awake(6), running, start + limit);
    assert_eq!(found, Finding::Stall(limit));
}

#[test]
fn a_thread_in_no_call_and_another_namespace_are_doubts() {
    let here = TaskState { pid: std::process::id(), ..state(2, vec![]).unwrap() };
    let stacks = Stacks::new(Vec::new);
    assert_eq!(doubt(&here, &stacks), Some(Doubt::OtherThread));
    let elsewhere = TaskState { is_here: false, ..here.clone() };
    assert_eq!(doubt(&elsewhere, &stacks), Some(Doubt::Elsewhere));
    assert_eq!(idle(&TaskState { pid: u32::MAX, ..here }, &stacks), None);
}

/// A candidate without a list of its threads is dropped.
#[test]
fn idle_threads_have_to_sleep_from_the_first_list_on() {
    let ended = |_: usize| Stage::Ended;
    let look = || vec![state(2, vec![asleep()])];
    assert_eq!(idle_of_all(&look(), ended), Some(vec![vec![]]), "nobody asks one that has ended");
    let impossible = TaskState { pid: u32::MAX, ..slept(5) };
    assert_eq!(idle_of_all(&vec![Some(impossible)], running), None);
}

#[test]
fn a_bystander_does_not_hand_on_its_name() {
    let own = |of: &str| fs::read_to_string(format!("/proc/thread-self/{of}")).unwrap();
    let bystander = std::thread::spawn(move || {
        let name = bystander_name(gettid().as_raw_nonzero().get());
        set_name(&CString::new(name).unwrap()).unwrap();
        let child = std::thread::Builder::new().spawn(move || own("comm")).unwrap();
        (own("comm"), child.join().unwrap(), gettid().as_raw_nonzero().get())
    });
    let (name, childs_name, number) = bystander.join().unwrap();
    assert_eq!(name.trim_end(), bystander_name(number));
    assert_eq!(childs_name, name, "names are inherited, numbers are not");
}

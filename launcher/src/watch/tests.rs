//! What looks add up to, over made-up states; whether it is true, over all interleavings of a model.

use super::*;
use transport_lapi::bootstrap::board::{Blocked, Wait};

mod model;

fn asleep() -> Blocked {
    Blocked { wait: Wait::default(), undisturbed: true, failed: false }
}

fn state(epoch: u64, blocked: Vec<Blocked>) -> Option<TaskState> {
    Some(TaskState { pid: 7, epoch, moves: 0, blocked, unlisted: 0 })
}

fn deadlocks() -> Watch {
    Watch::new(true, None)
}

/// Two looks at the same ranks, whose threads are `all_blocked` in between.
fn verdict(first: Look, second: Look, all_blocked: bool) -> Finding {
    let mut watch = deadlocks();
    let now = Instant::now();
    assert_eq!(
        watch.judge(first, false, |_| false, now),
        Finding::Nothing,
        "one look is not enough"
    );
    watch.judge(second, all_blocked, |_| false, now)
}

#[test]
fn the_same_sleep_of_all_ranks_twice_is_a_deadlock() {
    let ranks = vec![state(2, vec![asleep()]), state(8, vec![asleep(), asleep()])];
    assert_eq!(verdict(ranks.clone(), ranks, true), Finding::Deadlock);
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
        let found = verdict(sleeping.clone(), with(other.clone()), true);
        assert_eq!(found, Finding::Nothing, "{name}, then");
        let found = verdict(with(other.clone()), sleeping.clone(), true);
        assert_eq!(found, Finding::Nothing, "{name}, first");
    }
    assert_eq!(verdict(sleeping.clone(), sleeping, false), Finding::Nothing, "a thread that runs");
}

#[test]
fn ranks_that_ended_are_not_waited_for_and_a_job_without_ranks_is_at_its_end() {
    let ranks = vec![state(9, vec![]), state(8, vec![asleep()])];
    let now = Instant::now();
    let mut watch = deadlocks();
    assert_eq!(watch.judge(ranks.clone(), false, |rank| rank == 0, now), Finding::Nothing);
    assert_eq!(watch.judge(ranks.clone(), true, |rank| rank == 0, now), Finding::Deadlock);
    let mut watch = deadlocks();
    for _ in 0..3 {
        assert_eq!(watch.judge(ranks.clone(), true, |_| true, now), Finding::Nothing);
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
        let found = watch.judge(computing(moves), false, |_| false, at(second));
        assert_eq!(found, Finding::Nothing, "at {second} s");
    }
    let found = watch.judge(computing(2), false, |_| false, at(11));
    assert_eq!(found, Finding::Stall(limit));
}

#[test]
fn a_program_of_somebody_else_does_not_stall() {
    let mut watch = Watch::new(true, Some(Duration::from_secs(1)));
    let start = Instant::now();
    let stranger = || vec![Some(TaskState { pid: 0, ..state(0, vec![]).unwrap() })];
    for second in 0..9 {
        let now = start + Duration::from_secs(second);
        assert_eq!(watch.judge(stranger(), false, |_| false, now), Finding::Nothing);
    }
}

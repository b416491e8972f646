//! When a standstill is noted, with made-up ranks and times.

use super::*;
use transport_lapi::bootstrap::waits::{Blocked, Wait};

/// Two ranks asleep in calls, the second in its `epoch`.
fn asleep(epoch: u64) -> Option<Vec<Sleeper>> {
    let sleeper = |rank, epoch| Sleeper { rank, pid: 7 + rank as u32, epoch, moves: 3, threads: 1 };
    Some(vec![sleeper(0, 2), sleeper(1, epoch)])
}

/// A job that is looked at every second.
struct Job {
    standstill: Standstill,
    start: Instant,
    seconds: u64,
}

impl Job {
    fn new() -> Self {
        Self { standstill: Standstill::new(SPAN), start: Instant::now(), seconds: 0 }
    }

    /// Goes on for a second, at whose end the ranks have used these ticks.
    fn second(&mut self, ranks: Option<Vec<Sleeper>>, used: [u64; 2]) -> Option<u64> {
        self.seconds += 1;
        let now = self.start + Duration::from_secs(self.seconds);
        let told = self.standstill.judge(ranks, |_| Some(used.to_vec()), now);
        told.map(|lasted| lasted.as_secs())
    }

    /// Wakes the ranks, which sleep again within a second.
    fn wake(&mut self) {
        let now = self.start + Duration::from_secs(self.seconds);
        self.standstill.wake(now + WAKING);
    }

    /// Lets the ranks sleep for so many seconds; returns the second of each note, and what it says.
    fn seconds(&mut self, count: u64, epoch: u64) -> Vec<(u64, u64)> {
        let told = (1..=count).map(|second| (second, self.second(asleep(epoch), [5, 5])));
        told.filter_map(|(second, told)| Some((second, told?))).collect()
    }
}

#[test]
fn a_standstill_is_told_once() {
    let mut job = Job::new();
    // The time counts from the second look.
    assert_eq!(job.seconds(200, 4), [(32, 30)]);
}

#[test]
fn the_next_one_after_a_move_has_to_last_longer() {
    let mut job = Job::new();
    assert_eq!(job.seconds(40, 4), [(32, 30)]);
    assert_eq!(job.seconds(70, 6), [(62, 60)]);
    assert_eq!(job.second(None, [5, 5]), None, "a rank is awake");
    assert_eq!(job.seconds(200, 6), [(122, 120)]);
}

#[test]
fn a_job_that_moves_or_computes_does_not_stand_still() {
    let mut job = Job::new();
    for second in 0..100 {
        assert_eq!(job.second(asleep(second), [5, 5]), None, "moves in second {second}");
    }
    for second in 0..100 {
        let used = [5, second * 100];
        assert_eq!(job.second(asleep(0), used), None, "computes in second {second}");
    }
    assert_eq!(job.second(None, [5, 5]), None);
    assert_eq!(job.seconds(20, 0), []);
}

#[test]
fn a_rank_that_has_computed_is_told_of_again() {
    let mut job = Job::new();
    assert_eq!(job.seconds(40, 4), [(32, 30)]);
    for second in 0..100 {
        assert_eq!(job.second(asleep(4), [5, second * 100]), None, "computes in second {second}");
    }
    let told = job.seconds(200, 4);
    assert_eq!(told.iter().map(|(_, lasted)| *lasted).collect::<Vec<_>>(), [60], "{told:?}");
}

#[test]
fn sleep_may_cost_a_little() {
    let used = |most: u64| {
        let mut job = Job::new();
        let mut told = (0..40).filter_map(|second| {
            job.second(asleep(4), [5, 5 + if second < 20 { 0 } else { most }])
        });
        told.next()
    };
    assert_eq!(used(TICKS_ASLEEP), Some(30));
    assert_eq!(used(TICKS_ASLEEP + 1), None);
}

#[test]
fn a_rank_in_no_call_may_use_as_little() {
    let used = |most: u64| {
        let mut job = Job::new();
        let mut ranks = asleep(4).expect("they are asleep");
        ranks[1].threads = 0;
        let mut told = (0..40).filter_map(|second| {
            job.second(Some(ranks.clone()), [5, 5 + if second < 20 { 0 } else { most }])
        });
        told.next()
    };
    assert_eq!(used(TICKS_ASLEEP), Some(30));
    assert_eq!(used(TICKS_ASLEEP + 1), None);
}

#[test]
fn an_inquiry_moves_nobody() {
    let mut job = Job::new();
    assert_eq!(job.seconds(20, 4), []);
    job.wake();
    assert_eq!(job.second(None, [5, 5]), None, "a rank answers");
    assert_eq!(job.second(asleep(6), [5, 5]), None, "and sleeps again");
    assert_eq!(job.seconds(20, 6), [(10, 30)], "it was not put off");
    job.wake();
    assert_eq!(job.seconds(200, 8), [], "it is not told again");
    assert_eq!(job.seconds(70, 9), [(62, 60)], "until something moves");
}

#[test]
fn a_suspension_counts_for_nothing() {
    let mut job = Job::new();
    assert_eq!(job.seconds(20, 4), []);
    job.standstill.start_anew();
    assert_eq!(job.seconds(40, 4), [(32, 30)]);
    job.standstill.start_anew();
    assert_eq!(job.seconds(200, 4), [], "it is still the same");
}

#[test]
fn a_rank_whose_time_is_not_known_may_compute() {
    let mut standstill = Standstill::new(SPAN);
    let start = Instant::now();
    for second in 0..100 {
        let now = start + Duration::from_secs(second);
        assert_eq!(standstill.judge(asleep(4), |_| None, now), None);
    }
}

/// What the agent of a host tells, at which nobody may wait.
#[test]
fn a_host_tells_how_long_its_ranks_stand_still() {
    let mut host = Standstill::new(SPAN);
    let start = Instant::now();
    let mut used = 5;
    let mut second = |at: u64, epoch, more: u64| {
        let now = start + Duration::from_secs(at);
        used += more;
        host.follow_host(asleep(epoch), |_| Some(vec![used; 2]), now);
        let lasted = host.lasted_by(|_| Some(vec![used; 2]), now);
        lasted.map(|lasted| lasted.as_secs())
    };
    assert_eq!(second(0, 4, 0), None, "the first look");
    // However often it is asked, ten ticks are allowed in 30 s.
    let told: Vec<_> = (1..80).map(|at| second(at, 4, u64::from(at % 4 == 0))).collect();
    assert_eq!(told, (0..79).map(Some).collect::<Vec<_>>());
    assert_eq!(second(80, 4, 20), None, "it computes");
    assert_eq!(second(90, 4, 0), Some(10));
    assert_eq!(second(91, 6, 0), None, "it moves");
    assert_eq!(second(92, 6, 0), Some(0));
    assert!(
        (93..120).any(|at| second(at, 6, u64::from(at % 2 == 0)).is_none()),
        "too much in 30 s"
    );
}

fn state(threads: &[Blocked]) -> Option<TaskState> {
    let blocked = threads.to_vec();
    Some(TaskState {
        pid: 7,
        is_here: true,
        epoch: 2,
        moves: 3,
        blocked,
        unlisted: 0,
        sent: 0,
        received: 0,
        contexts: 1,
    })
}

#[test]
fn a_rank_that_is_left_needs_a_thread_asleep_in_a_call() {
    let waits = Blocked { wait: Wait::default(), undisturbed: true, failed: false, looks: 5 };
    let polls = Blocked { undisturbed: false, ..waits };
    let failed = Blocked { failed: true, ..waits };
    let with =
        |other: Option<TaskState>| sleepers(&vec![state(&[waits]), other], |_| Stage::Running);
    for other in [&[polls, waits][..], &[polls], &[failed], &[]] {
        assert_eq!(with(state(other)).map(|sleepers| sleepers.len()), Some(2), "{other:?}");
    }
    for nobody in [&[][..], &[polls], &[failed]] {
        let look = vec![state(nobody), state(&[])];
        assert_eq!(sleepers(&look, |_| Stage::Running), None, "{nobody:?}");
    }
    let elsewhere = TaskState { is_here: false, ..state(&[waits]).expect("a state") };
    let absent = TaskState { pid: 0, ..elsewhere.clone() };
    for other in [Some(elsewhere), Some(absent), None] {
        assert_eq!(with(other.clone()), None, "{other:?}");
    }
    let first_only = |rank| if rank == 0 { Stage::Running } else { Stage::Ended };
    let look = vec![state(&[waits]), None];
    assert_eq!(sleepers(&look, first_only).map(|sleepers| sleepers.len()), Some(1));
    assert_eq!(sleepers(&look, |_| Stage::Finished), None);
}

#[test]
fn a_process_has_used_time() {
    let sleeper = |pid| Sleeper { rank: 0, pid, epoch: 2, moves: 3, threads: 1 };
    let sleepers = [std::process::id(), u32::MAX].map(sleeper);
    assert_eq!(ticks_of_all(&sleepers[..1]).map(|ticks| ticks.len()), Some(1));
    assert_eq!(ticks_of_all(&sleepers), None);
}

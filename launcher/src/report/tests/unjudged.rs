//! Why ranks that all wait were not found to be in deadlock.

use super::*;
use crate::hang::watch::Doubt;

/// Two ranks that wait for each other, in doubt.
fn doubted(doubts: [Option<Doubt>; 2]) -> Snapshot {
    Snapshot { doubts: doubts.to_vec(), ..waiting([recv(1, 7), recv(0, 9)]) }
}

/// The line about it, if there is one.
fn said(snapshot: &Snapshot) -> Option<String> {
    let job = joined(snapshot.ranks.len() as u32);
    let standings = standing::of_all(&job, snapshot, None);
    let text = crate::report::unjudged::text(&standings, snapshot);
    let line = text.strip_prefix("mpjrun:   not judged to be a deadlock: ");
    assert!(text.is_empty() || line.is_some(), "{text}");
    line.map(|line| line.trim_end().to_owned())
}

#[test]
fn each_doubt_has_its_words() {
    let (other, crowded) = (Some(Doubt::OtherThread), Some(Doubt::Crowded));
    let advice = "that may go on by itself (it runs, sleeps for a time, waits for input or a child; or its process \
                  catches signals, shares its memory, or cannot be looked at)";
    assert_eq!(
        said(&doubted([other, other])),
        Some(format!("ranks 0-1 have a thread outside of mpj's calls {advice}"))
    );
    assert_eq!(
        said(&doubted([other, crowded])),
        Some(format!(
            "rank 1 has more threads in calls than the 7 that are listed; rank 0 has a thread outside of mpj's \
             calls {advice}"
        ))
    );
    assert_eq!(
        said(&doubted([None, Some(Doubt::Elsewhere)])).as_deref(),
        Some("rank 1 is in another PID namespace, where threads cannot be counted")
    );
    let mut awake = doubted([Some(Doubt::Awake), None]);
    assert_eq!(said(&awake), None, "it was just woken");
    awake.activities = vec![Some(Activity::Computing), Some(Activity::Sleeping)];
    assert_eq!(said(&awake).as_deref(), Some("rank 0 polls while waiting"));
    awake.spinning = vec![0];
    assert_eq!(said(&awake).as_deref(), Some("rank 0 polls while waiting (MPJ_WAIT=spin)"));
}

#[test]
fn where_nothing_is_doubted_nothing_is_said_but_what_the_user_wants() {
    let sure = doubted([None, None]);
    assert_eq!(said(&sure), None);
    let ignoring = Snapshot { ignores_deadlocks: true, ..sure };
    assert_eq!(said(&ignoring).as_deref(), Some("--deadlock ignore"));
}

#[test]
fn frames_between_hosts_that_were_not_received_are_a_reason() {
    let with = |sent, received| {
        let mut job = doubted([None, None]);
        let one =
            |wait, sent, received| Seen::from(Some(TaskState { sent, received, ..state(&[wait]) }));
        job.ranks = vec![one(recv(1, 7), sent, 0), one(recv(0, 9), 0, received)];
        said(&job)
    };
    assert_eq!(with(3, 3), None);
    assert_eq!(
        with(3, 2).as_deref(),
        Some("messages between hosts are on their way, or went to a rank that has ended")
    );
}

#[test]
fn nothing_is_said_while_a_rank_may_move() {
    let doubts = [Some(Doubt::OtherThread); 2];
    let mut awake = doubted(doubts);
    awake.ranks[1] = Seen::from(Some(state(&[])));
    assert_eq!(said(&awake), None);
    let mut stopped = doubted(doubts);
    stopped.activities = vec![None, Some(Activity::Stopped)];
    assert_eq!(said(&stopped), None);
}

#[test]
fn reports_on_jobs_that_were_not_judged_say_why() {
    let snapshot = doubted([Some(Doubt::OtherThread), None]);
    let job = joined(2);
    let line = " -> 0\nmpjrun:   not judged to be a deadlock: rank 0 has a thread outside";
    let timeout = Verdict::TimedOut(Duration::from_secs(1));
    let told = [
        on_request(&job, &snapshot),
        on_standstill(&job, &snapshot, Duration::from_millis(30_250), 77),
        of_verdict(&job, timeout, ms(1_000), &snapshot),
    ];
    for told in &told {
        assert!(told.contains(line), "{told}");
    }
    assert!(
        told[1].starts_with(
            "mpjrun: no rank has made progress for 30 s, and none computes: the job may hang; it goes \
             on (kill -QUIT 77 prints this again, --stall S would end it, --deadlock ignore silences this)\n"
        ),
        "{}",
        told[1]
    );
    let deadlock = of_verdict(&job, Verdict::Deadlock, ms(1_000), &snapshot);
    assert!(!deadlock.contains("not judged"), "{deadlock}");
}

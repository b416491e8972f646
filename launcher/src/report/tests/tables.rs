//! The table, and the lines beside it.

use super::*;

#[test]
fn a_failure_shows_what_every_other_rank_was_doing() {
    let mut job = joined(7);
    finish(&mut job, 5);
    job.ended(5, Ending::Code(0), ms(700));
    job.ended(1, Ending::Signal(libc::SIGKILL), ms(1_000));
    for rank in [0, 2, 3, 4, 6] {
        job.ended(rank, Ending::Signal(libc::SIGTERM), ms(1_100));
    }
    let barrier = Wait { tag: Some(-3), ..barrier(0, 2) };
    let wait_all = Wait { call: Call::WaitAll.into(), open: 3, since: ms(900), ..send(1, 9) };
    let snapshot = snapshot([
        state(&[Wait { since: ms(250), ..recv(1, 7) }]),
        state(&[recv(None, None)]),
        state(&[recv(1, 7), wait_all]),
        state(&[barrier]),
        state(&[]),
        state(&[]),
        state(&[finishing()]),
    ]);
    let failure = failure_of(&job);
    let expected = "\
mpjrun: rank 1 (pid 101, host box) was killed by signal 9 (SIGKILL), 1.00 s after start
mpjrun:   ranks  blocked in              peer    tag  communicator    bytes  phase                         seconds
mpjrun:   0, 2   recv                    rank 1    7  world               8  no message has come           0.50-0.75
mpjrun:   2      waitall (3 open): send  rank 1    9  world         1048576  not fetched yet (rendezvous)  0.10
mpjrun:   3      barrier                 others    -  2                   -  others have not come there    0.50
mpjrun:   6      finish                  others    -  -                   -  others have not come there    0.50
mpjrun:   rank 4: joined, awake: computing, polling, or at the beginning of a call, still running; ended by mpjrun
mpjrun:   rank 5: finished, exited with code 0
";
    assert_eq!(of_verdict(&job, Verdict::Failed(failure), ms(1_000), &snapshot), expected);
}

#[test]
fn who_has_ended_of_itself_is_told_beside_what_it_was_doing() {
    let mut job = joined(3);
    job.ended(0, Ending::Signal(libc::SIGKILL), ms(900));
    job.ended(1, Ending::Code(1), ms(950));
    let mut failed = state(&[recv(0, 7)]);
    failed.blocked[0].failed = true;
    let snapshot = snapshot([state(&[]), failed.clone(), failed]);
    let failure = failure_of(&job);
    let expected = "\
mpjrun: rank 0 (pid 100, host box) was killed by signal 9 (SIGKILL), 0.90 s after start
mpjrun:   ranks  blocked in  peer    tag  communicator  bytes  phase                seconds
mpjrun:   1-2    recv        rank 0    7  world             8  no message has come  0.50
mpjrun:   rank 1: joined, exited with code 1
mpjrun:   rank 2: joined, still running, even after SIGKILL
";
    assert_eq!(of_verdict(&job, Verdict::Failed(failure), ms(1_000), &snapshot), expected);
}

#[test]
fn every_hang_has_its_headline_and_the_whole_analysis() {
    let mut job = joined(2);
    (0..2).for_each(|rank| job.ended(rank, Ending::Signal(libc::SIGTERM), ms(1_100)));
    let snapshot = waiting([recv(1, 7), recv(0, 9)]);
    let analysis = "\
mpjrun:   ranks  blocked in  peer    tag  communicator  bytes  phase                seconds
mpjrun:   0      recv        rank 1    7  world             8  no message has come  0.50
mpjrun:   1      recv        rank 0    9  world             8  no message has come  0.50
mpjrun:   cycle: 0 waits for 1 (recv tag 7) -> 1 waits for 0 (recv tag 9) -> 0
";
    let headlines = [
        (
            Verdict::Deadlock,
            "mpjrun: deadlock: every rank that is left waits for another one, and no message is on \
             its way\n",
        ),
        (
            Verdict::Stalled(Duration::from_millis(5_031)),
            "mpjrun: no rank made progress for 5.0 s (--stall)\n",
        ),
        (
            Verdict::TimedOut(Duration::from_millis(1_500)),
            "mpjrun: the job still ran after 1.5 s, its time limit\n",
        ),
        (Verdict::Signalled(libc::SIGINT), "mpjrun: ended by signal 2 (SIGINT)\n"),
    ];
    for (verdict, headline) in headlines {
        let report = of_verdict(&job, verdict, ms(1_000), &snapshot);
        assert_eq!(report, format!("{headline}{analysis}"));
    }
    let state = on_request(&joined(2), &snapshot);
    assert_eq!(state, format!("mpjrun: state of the job 1.00 s after start\n{analysis}"));
}

#[test]
fn a_rank_may_be_blocked_in_several_threads() {
    let crowd = TaskState { unlisted: 3, ..state(&[recv(1, 7), recv(1, 7), recv(1, 8)]) };
    let expected = "\
mpjrun:   ranks  blocked in  peer    tag  communicator  bytes  phase                seconds
mpjrun:   0      recv        rank 1    7  world             8  no message has come  0.50
mpjrun:   0      recv        rank 1    8  world             8  no message has come  0.50
mpjrun:   rank 0: 3 more threads are blocked in calls; 3 are listed
mpjrun:   rank 1: joined, awake: computing, polling, or at the beginning of a call, still running
";
    let shown = on_request(&joined(2), &snapshot([crowd, state(&[])]));
    assert!(shown.contains(expected), "{shown}");
}

/// What the processes of ranks do, by what the kernel says.
#[test]
fn a_rank_that_is_not_blocked_does_something() {
    let mut snapshot = snapshot([&[][..], &[], &[], &[], &[], &[recv(0, 7)]].map(state));
    let activities = [
        None,
        Some(Activity::Computing),
        Some(Activity::Sleeping),
        Some(Activity::InKernel),
        Some(Activity::Traced),
        Some(Activity::Stopped),
    ];
    snapshot.activities = activities.to_vec();
    let expected = "\
mpjrun:   5      recv        rank 0    7  world             8  no message has come  0.50
mpjrun:   ranks 0-1: joined, awake: computing, polling, or at the beginning of a call, still running
mpjrun:   rank 2: joined, asleep outside of MPI: in a lock, a pipe or a timer, still running
mpjrun:   rank 3: joined, in a system call that cannot be interrupted, still running
mpjrun:   rank 4: joined, stopped by a debugger
mpjrun:   rank 5: joined, stopped by a signal; kill -CONT 200 lets it go on
";
    let shown = on_request(&joined(6), &snapshot);
    assert!(shown.contains(expected), "{shown}");
    let mut ended = joined(6);
    (0..6).for_each(|rank| ended.ended(rank, Ending::Signal(libc::SIGTERM), ms(1_100)));
    let shown = of_verdict(&ended, Verdict::TimedOut(Duration::from_secs(1)), ms(1_000), &snapshot);
    assert!(shown.contains("rank 5: joined, stopped by a signal; ended by mpjrun\n"), "{shown}");
}

#[test]
fn what_is_not_known_is_not_said() {
    let absent = TaskState { pid: 0, ..state(&[]) };
    let mut snapshot = snapshot([absent.clone(), absent, state(&[])]);
    snapshot.ranks.push(Seen::from(None));
    let mut job = exit_log(5);
    (1..5).for_each(|rank| join(&mut job, rank));
    let expected = "\
mpjrun: state of the job 1.00 s after start
mpjrun:   rank 0: not joined, still running
mpjrun:   ranks 1, 4: joined, still running
mpjrun:   rank 2: joined, waiting for the others to join, still running
mpjrun:   rank 3: joined, in a state that cannot be read, still running
";
    assert_eq!(on_request(&job, &snapshot), expected);
}

#[test]
fn a_rank_that_was_stopped_before_it_joined_is_told_as_such() {
    let mut snapshot = snapshot([TaskState { pid: 0, ..state(&[]) }, state(&[])]);
    snapshot.activities = vec![Some(Activity::Stopped), Some(Activity::Sleeping)];
    let mut job = exit_log(2);
    join(&mut job, 1);
    let told = on_request(&job, &snapshot);
    let line = "rank 0: not joined, stopped by a signal; kill -CONT 100 lets it go on\n";
    assert!(told.contains(line), "{told}");
    snapshot.activities[0] = Some(Activity::Computing);
    let told = on_request(&job, &snapshot);
    assert!(told.contains("rank 0: not joined, still running\n"), "{told}");
}

#[test]
fn a_wait_that_has_failed_is_marked_where_no_failure_is_told() {
    let mut failed = state(&[recv(1, 7)]);
    failed.blocked[0].failed = true;
    let shown = on_request(&joined(2), &snapshot([failed, state(&[])]));
    assert!(shown.contains("  no message has come, then an error  0.50\n"), "{shown}");
}

#[test]
fn a_job_of_several_hosts_has_a_column_for_them() {
    let mut snapshot = waiting([recv(1, 7), recv(0, 9), recv(0, 9), recv(0, 9), recv(0, 9)]);
    snapshot.ranks.push(Seen::Unanswered);
    snapshot.ranks.push(Seen::from(Some(state(&[]))));
    snapshot.activities = vec![None; 6];
    snapshot.activities.push(Some(Activity::Stopped));
    let expected = "\
mpjrun: state of the job 1.00 s after start
mpjrun:   ranks  hosts    blocked in  peer    tag  communicator  bytes  phase                seconds
mpjrun:   0      a        recv        rank 1    7  world             8  no message has come  0.50
mpjrun:   1-4    4 hosts  recv        rank 0    9  world             8  no message has come  0.50
mpjrun:   rank 5 on f: joined; its host has not answered, still running
mpjrun:   rank 6 on g: joined, stopped by a signal; kill -CONT 200 on g lets it go on
mpjrun:   cycle: 0 on a waits for 1 (recv tag 7) -> 1 on b waits for 0 (recv tag 9) -> 0 on a
";
    let job = joined_on(&["a", "b", "c", "d", "e", "f", "g"]);
    assert_eq!(on_request(&job, &snapshot), expected);
}

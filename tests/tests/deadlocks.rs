//! Deadlocks are found and explained, and programs without one are left alone.
//!
//! `MPJ_PROGRAMS=100000 MPJ_PROGRAMS_SEED=2 cargo test -p mpj-tests --test deadlocks` runs more programs than the usual
//! 1,000, and others. A quarter as many run with pools.

use std::iter;
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use mpj_harness::process::{children, find};
use mpj_harness::{Launch, Running, eventually, example, launch, mpjrun};
use mpj_tests::faults::asked;
use rustix::process::Signal;

const PROGRAM: &str = env!("CARGO_BIN_EXE_program");
const DEADLOCK: &str = env!("CARGO_BIN_EXE_deadlock");
const NOTIFIED: &str = env!("CARGO_BIN_EXE_notified");

/// Number of programs in one job.
const EACH: u64 = 125;

/// Ranks and protocols of the jobs that play the programs, in turn.
const JOBS: [(&str, &str); 8] = [
    ("2", "auto"),
    ("3", "rendezvous"),
    ("4", "auto"),
    ("5", "eager"),
    ("2", "rendezvous"),
    ("3", "eager"),
    ("4", "rendezvous"),
    ("5", "auto"),
];

#[test]
fn correct_programs_are_left_alone() {
    play("correct", "0", asked("MPJ_PROGRAMS", 1_000));
}

/// Threads of a pool do a part of the work; they compute, nap and wait for each other.
#[test]
fn correct_programs_with_pools_are_left_alone() {
    play("pooled", "0", asked("MPJ_PROGRAMS", 1_000) / 4);
}

/// A thread of each rank waits for whatever comes.
#[test]
fn correct_programs_with_progress_threads_are_left_alone() {
    play("correct", "1", asked("MPJ_PROGRAMS", 1_000) / 4);
}

/// Ranks in interrupt mode whose own threads make no call: messages go on from handler to handler.
#[test]
fn ranks_that_only_notification_threads_serve_are_left_alone() {
    for ranks in ["1", "2", "4"] {
        let options = ["-n", ranks, "--look-every", "0.001"];
        launch(NOTIFIED).options(options).args(["relay"]).expect_quiet();
    }
}

/// Notification threads that sleep count as blocked; the other threads wait for a counter, or for a handler. Programs
/// that use the transport itself have told no names for their calls.
#[test]
fn ranks_whose_notification_threads_wait_in_vain() {
    for how in ["starved", "orphaned"] {
        let cycle = "cycle: 0 waits for any rank (a call) -> 1 waits for any rank (a call) -> 0";
        let says = ["mpjrun: deadlock", "space", "0-1    a call      -", cycle];
        deadlock(&["-n", "2", NOTIFIED, how], &says);
    }
}

fn play(how: &str, progress_thread: &str, count: u64) {
    let first = asked("MPJ_PROGRAMS_SEED", 1);
    for job in 0..count.div_ceil(EACH) {
        let (ranks, backend) = JOBS[job as usize % JOBS.len()];
        let (first, each) = ((first + job * EACH).to_string(), EACH.to_string());
        // The launcher looks as often as it can, so that many looks fall between the steps of a program.
        let options = ["-n", ranks, "--backend", backend, "--look-every", "0.001"];
        let job = launch(PROGRAM).options(options).args([how, &first, &each]);
        job.env("MPJ_PROGRESS_THREAD", progress_thread).expect_quiet();
    }
}

/// Runs a job that cannot go on: it ends with the code for deadlocks, and says all of `says` in this order.
#[track_caller]
fn deadlock(args: &[&str], says: &[&str]) {
    hang(args, 125, says);
}

/// Runs a job that cannot go on: it ends with `code`, and says all of `says` in this order. The launcher looks more
/// often than usual, so that the test is quick.
#[track_caller]
fn hang(args: &[&str], code: i32, says: &[&str]) {
    let outcome = mpjrun([&["--look-every", "0.05"], args].concat()).expect(code);
    let mut rest = outcome.stderr.as_str();
    for words in says {
        let at = rest.find(words);
        let at = at.unwrap_or_else(|| panic!("{args:?}: no {words:?} in order: {outcome:?}"));
        rest = &rest[at + words.len()..];
    }
}

#[test]
fn two_ranks_that_both_send_first() {
    deadlock(
        &["-n", "2", "--backend", "rendezvous", DEADLOCK, "sends"],
        &[
            "mpjrun: deadlock",
            "cycle: 0 waits for 1 (send tag 3) -> 1 waits for 0 (send tag 3) -> 0",
        ],
    );
}

/// A rank that waits serves others meanwhile, and so it is not in deadlock; a handler that waits in vain is.
#[test]
fn a_handler_that_waits_for_its_caller() {
    let says = [
        "mpjrun: deadlock",
        "call of service",
        "cycle: 0 waits for 1 (call of service 0) -> 1 waits for 0 (recv tag 4) -> 0",
    ];
    deadlock(&["-n", "2", DEADLOCK, "called"], &says);
}

/// Ranks wait for each other's services most of the time.
#[test]
fn ranks_that_serve_while_they_wait_are_left_alone() {
    for (ranks, progress_thread) in [(2, "0"), (3, "1"), (5, "0")] {
        for _ in 0..5 {
            let job = launch(example("task_farm")).ranks(ranks).options(["--look-every", "0.001"]);
            job.env("MPJ_PROGRESS_THREAD", progress_thread).expect_quiet();
        }
    }
}

#[test]
fn five_ranks_that_all_receive_first() {
    let cycle = [
        "0 waits for 4 (recv tag 5) -> 4 waits for 3 (recv tag 5)",
        "-> 1 waits for 0 (recv tag 5) -> 0",
    ];
    deadlock(&["-n", "5", DEADLOCK, "ring"], &cycle);
}

#[test]
fn a_tag_that_nobody_wants() {
    deadlock(&["-n", "2", DEADLOCK, "tag"], &["tag 8", "tag 7", "the tags differ"]);
}

/// Programs that work with short messages.
#[test]
fn a_large_message_whose_receiver_waits_for_something_else() {
    let advice = "a send in the cycle waits for its receive, as long and synchronous ones do";
    let ways = [
        ("large", "cycle: 0 waits for 1 (send tag 1) -> 1 waits for 0 (recv tag 2) -> 0\n"),
        ("barrier", "cycle: 0 waits for 1 (send tag 1) -> 1 waits for 0 (barrier) -> 0\n"),
        ("finish", "cycle: 0 waits for 1 (send tag 1) -> 1 waits for 0 (finish) -> 0\n"),
    ];
    for (how, cycle) in ways {
        deadlock(&["-n", "2", DEADLOCK, how], &["not fetched yet (rendezvous)", cycle, advice]);
    }
    deadlock(&["-n", "2", DEADLOCK, "itself"], &["cycle: 0 waits for 0 (send tag ", advice]);
}

#[test]
fn collective_calls_that_differ() {
    let says = "mpjrun:   ranks call different collectives, call 0 on world: rank 0 barrier, rank 2 reduce";
    deadlock(&["--check=no", "-n", "3", DEADLOCK, "collectives"], &[says]);
}

/// A closure has not ended what it began, and nobody ends the epoch of the others.
#[test]
fn a_panic_between_fences_that_is_caught() {
    let cycle = "cycle: 0 waits for 1 (win_fence";
    deadlock(&["-n", "2", DEADLOCK, "fence"], &["mpjrun: deadlock", cycle, "(recv tag 6) -> 0"]);
}

/// Windows have the names that the program gave them.
#[test]
fn locks_of_windows_in_another_order() {
    let says = [
        "mpjrun: deadlock",
        "win_lock    rank 1    0  3 \"queue\"",
        "win_lock    rank 0    0  2 \"table\"",
        "cycle: 0 waits for 1 (win_lock",
    ];
    deadlock(&["-n", "2", DEADLOCK, "locks"], &says);
}

/// Compared before they are made, the same calls fail at once, with their places.
#[test]
fn collective_calls_that_differ_are_refused_where_calls_are_checked() {
    let says = "rank 1 calls reduce(root 2, MPI_SUM, 1 int32_t) at tests/src/bin/deadlock.rs:";
    let outcome = mpjrun(["--check", "-n", "3", DEADLOCK, "collectives"]).expect(3);
    outcome.says_all(&[says, " where rank 0 calls barrier() at tests/src/bin/deadlock.rs:"]);
}

#[test]
fn three_ranks_with_pools_that_have_nothing_to_do() {
    let cycle = "cycle: 0 waits for 2 (recv tag 5) -> 2 waits for 1 (recv tag 5) -> 1 waits for 0";
    deadlock(&["-n", "3", DEADLOCK, "pool"], &["mpjrun: deadlock", cycle]);
}

#[test]
fn ranks_that_wait_in_threads_which_others_join() {
    deadlock(&["-n", "2", DEADLOCK, "joined"], &["mpjrun: deadlock", "0 waits for 1 (recv tag 5)"]);
}

/// No thread waits for a message by name: the tasks are asleep, and the progress threads wait for anything.
#[test]
fn tasks_that_await_each_other() {
    let says = ["mpjrun: deadlock", "progress", "rank 0: posted receive from rank 1, tag 5"];
    deadlock(&["-n", "2", DEADLOCK, "awaits"], &says);
}

/// A progress thread that waits beside a call changes nothing about what the call waits for.
#[test]
fn ranks_with_progress_threads() {
    let cycle = "cycle: 0 waits for 1 (recv tag 5) -> 1 waits for 0 (recv tag 5) -> 0";
    let args = ["-n", "2", "-x", "MPJ_PROGRESS_THREAD=1", DEADLOCK, "ring"];
    deadlock(&args, &["mpjrun: deadlock", "progress", cycle]);
}

/// How a note on a standstill begins.
const NOTE: &str = "mpjrun: no rank has made progress for ";

/// Starts a job of two ranks, whose standstill is noted soon.
fn standing(how: &str, deadlock: &str) -> Launch {
    let options = ["--note-after", "0.3", "--deadlock", deadlock];
    launch(DEADLOCK).ranks(2).options(options).args([how])
}

/// Waits for a note on a standstill whose report says this.
#[track_caller]
fn await_note(job: &Running, says: &str) {
    let is_noted = || job.stderr().split_once(NOTE).is_some_and(|(_, note)| note.contains(says));
    eventually("the standstill is noted", is_noted);
}

/// A thread that sleeps for a time keeps a job from being judged, but not from being noted.
#[test]
fn a_job_that_seems_to_stand_still_is_noted() {
    let cycle = "cycle: 0 waits for 1 (recv tag 5) -> 1 waits for 0 (recv tag 5) -> 0\n\
                 mpjrun:   not judged to be a deadlock: ";
    let ignored = standing("helper", "ignore").start();
    ignored.report_with(&[&[cycle, "--deadlock ignore\n"].concat()]);
    // The ignored standstill began before this one, which is noted.
    let noted = standing("helper", "end").start();
    let why = "ranks 0-1 have a thread outside of mpj's calls that may go on by itself";
    await_note(&noted, &[cycle, why].concat());
    ignored.signal(Signal::TERM);
    let said = ignored.expect(143).stderr;
    assert!(!said.contains(NOTE), "{said}");
    noted.signal(Signal::TERM);
    noted.expect(143);
}

/// Rank 0 begins to wait when rank 1 is asleep or stopped, in no call that others could end.
#[test]
fn a_rank_that_never_comes_is_noted() {
    for (how, before, end) in [
        ("asleep", "ranks 0-1: joined, asleep outside of MPI", "asleep outside of MPI"),
        ("stopped", "rank 1: joined, stopped by a signal", "stopped by a signal"),
    ] {
        let mut job = standing(how, "end").stdin(Stdio::piped()).start();
        job.report_with(&[before]);
        drop(job.stdin());
        await_note(&job, &format!("chain: 0 waits for 1 (recv tag 6) -> 1 ({end})\n"));
        job.signal(Signal::TERM);
        job.expect(143);
    }
}

#[test]
fn an_error_that_main_returns_is_the_cause() {
    let says = ["no input file\n", "mpjrun: rank 1 (pid ", "exited with code 3", "recv", "rank 1"];
    hang(&["-n", "2", DEADLOCK, "error"], 3, &says);
}

#[test]
fn an_error_that_main_returns_where_services_are_is_the_cause() {
    let says = ["no input file\n", "mpjrun: rank 1 (pid ", "exited with code 3", "recv", "rank 1"];
    hang(&["-n", "2", DEADLOCK, "served-error"], 3, &says);
}

#[test]
fn an_error_that_main_returns_is_seen_before_a_timeout() {
    let words = ["-n", "2", "--deadlock", "ignore", "--timeout", "5", DEADLOCK, "error"];
    let says = ["no input file\n", "mpjrun: the job still ran after 5 s", "recv", "rank 1"];
    hang(&words, 124, &says);
}

#[test]
fn the_others_go_on_after_an_error_that_main_returns() {
    let says = ["no input file\n", "mpjrun: rank 1 (pid ", "the other ranks go on", "rank 1 (pid "];
    hang(&["-n", "2", "--on-failure", "keep", DEADLOCK, "error"], 3, &says);
}

#[test]
fn an_error_beside_a_helper_thread_is_the_cause() {
    // The thread cannot communicate, since the world is gone.
    let says = ["no input file\n", "mpjrun: rank 1 (pid ", "exited with code 3", "recv", "rank 1"];
    hang(&["-n", "2", DEADLOCK, "helped-error"], 3, &says);
}

#[test]
fn an_error_that_main_returns_is_seen_before_a_signal() {
    let job = launch(DEADLOCK).ranks(2).options(["--deadlock", "ignore"]).args(["error"]).start();
    job.report_with(&["  recv ", "  finish "]);
    // The report has woken the ranks, and one that is awake is not seen to wait at its end.
    let is_asleep = |pid| find(pid).is_some_and(|process| process.state == 'S');
    eventually("both wait again", || children(job.pid()).into_iter().all(is_asleep));
    job.signal(Signal::TERM);
    job.expect(143).says("no input file\nmpjrun: ended by signal 15 (SIGTERM)\n");
}

#[test]
fn a_panic_whose_unwinding_waits_is_the_cause() {
    let says = [
        "mpjrun: rank 1 (pid ",
        "panicked, ",
        "waits for others while it unwinds",
        "it panicked at tests/src/bin/deadlock.rs:",
        "0 waits for 1 (recv tag 6)",
    ];
    hang(&["-n", "2", DEADLOCK, "unwinding"], 101, &says);
}

#[test]
fn a_rank_that_is_done_too_early() {
    let says = ["mpjrun: deadlock", "recv", "rank 1", "others", "1 waits for 0 (finish)"];
    deadlock(&["-n", "2", DEADLOCK, "leaves"], &says);
}

#[test]
fn a_panic_that_takes_a_thread_with_it_is_the_cause() {
    let says = [
        "mpjrun: rank 1 (pid ",
        "lost a thread by a panic",
        "it panicked at tests/src/bin/deadlock.rs:",
        "no more data",
        "0 waits for 1 (recv tag 6)",
    ];
    hang(&["-n", "2", DEADLOCK, "thread"], 101, &says);
}

#[test]
fn a_panic_that_is_caught_is_no_cause() {
    let says = ["mpjrun: deadlock", "no more data", "0 waits for 1 (recv tag 6)"];
    deadlock(&["-n", "2", DEADLOCK, "caught"], &says);
}

/// Four jobs at a time, since they sleep most of the time.
#[test]
fn spoilt_programs_are_reported() {
    let first = asked("MPJ_PROGRAMS_SEED", 1);
    let last = first + asked("MPJ_SPOILT_PROGRAMS", 24);
    let next = AtomicU64::new(first);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let seeds = iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed));
                seeds.take_while(|seed| *seed < last).for_each(spoilt);
            });
        }
    });
}

fn spoilt(seed: u64) {
    let (ranks, backend) = JOBS[seed as usize % JOBS.len()];
    let seed = seed.to_string();
    deadlock(&["-n", ranks, "--backend", backend, PROGRAM, "spoilt", &seed], &["mpjrun: "]);
}

//! `mpjrun --watch` of jobs whose ranks join: what it shows, to whom, and what becomes of it when they end.

use std::process::Stdio;

use mpj_harness::{Running, eventually, launch, mpjrun};
use rustix::process::{Pid, Signal, kill_process};

const WATCHED: &str = env!("CARGO_BIN_EXE_watched");
const DEADLOCK: &str = env!("CARGO_BIN_EXE_deadlock");

/// A job in which rank 0 has sent a thousand messages, and rank 1 waits for one more. It ends with its input.
fn job() -> (Running, Vec<u32>) {
    let job = launch(WATCHED).ranks(2).stdin(Stdio::piped()).start();
    let ranks = job.numbers(2);
    (job, ranks)
}

/// Another `mpjrun` that watches the job.
fn watch(job: &Running) -> Running {
    mpjrun(["--watch", "--watch-every", "0.05", &job.pid().to_string()]).start()
}

/// The words of a row of the last whole block.
fn row(text: &str, rank: &str) -> Vec<String> {
    let is_row = |line: &&str| line.split_whitespace().next() == Some(rank);
    let row = text.lines().rev().find(is_row).unwrap_or_default();
    row.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn a_running_job_shows_what_its_ranks_wait_for_and_send() {
    let (mut job, _) = job();
    let watcher = watch(&job);
    let waits = "recv tag 6 from rank 0";
    eventually("a block says what rank 1 waits for", || watcher.stdout().contains(waits));
    let seen = watcher.stdout();
    let first = seen.split("\n\n").next().expect("a block");
    assert!(first.starts_with("2 ranks, "), "{first}");
    // On average since the start, of which few seconds have passed.
    let sender = row(first, "0");
    assert!(sender[1] != "0" && sender[1] != "-" && sender[2] != "0", "{first}");
    assert!(sender[3].ends_with('M'), "{first}");
    assert_eq!(row(first, "1")[1..3], ["0", "0"], "{first}");
    drop(job.stdin());
    job.expect(0);
    let seen = watcher.expect(0);
    assert!(seen.stdout.ends_with(" has ended\n"), "{}", seen.stdout);
}

#[test]
fn a_rank_that_dies_ends_the_watch_with_the_job() {
    let (job, ranks) = job();
    let watcher = watch(&job);
    eventually("the watch has begun", || watcher.stdout().contains("2 ranks"));
    let victim = Pid::from_raw(ranks[0] as i32).expect("a number");
    kill_process(victim, Signal::KILL).expect("it runs");
    let seen = watcher.expect(0);
    assert!(seen.stdout.contains(" has ended\n"), "{}", seen.stdout);
    job.expect(137);
}

/// Looks at the ranks do not keep a deadlock from being found.
#[test]
fn a_deadlock_is_found_while_it_is_watched() {
    let options = ["-n", "2", "--watch", "--watch-every", "0.02"];
    let done = launch(DEADLOCK).options(options).args(["ring"]).expect(125);
    assert!(done.stderr.contains("mpjrun: deadlock"), "{}", done.stderr);
    let waits = done.stderr.lines().filter(|line| line.contains("recv tag 5 from rank"));
    assert!(waits.clone().all(|line| line.starts_with("mpjrun: ")), "{}", done.stderr);
    assert!(waits.count() > 2, "{}", done.stderr);
}

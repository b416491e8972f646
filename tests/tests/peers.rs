//! One test for each case that other launchers and libraries were measured to handle badly. With `--nocapture` they
//! print what happens here, as rows of a table.
//!
//! Other tests show further cases: nothing listens (`no_process_of_a_job_has_a_network_socket` in
//! `processes.rs`), and what goes on when a rank dies at any other moment (`faults.rs`).

#![allow(clippy::print_stdout, reason = "rows of a table, for those who ask for them")]

use std::time::{Duration, Instant};

use mpj_harness::process::{await_end, find};
use mpj_harness::{Launch, Outcome, Running, Scene, eventually, launch};
use rustix::process::Signal;

const RANK: &str = env!("CARGO_BIN_EXE_rank");

/// A job of two ranks.
fn job(words: &[&str]) -> Launch {
    launch(RANK).ranks(2).args(words)
}

/// Runs a job that has to end with `code` and leave nothing behind; prints how it ended, and returns the outcome.
#[track_caller]
fn case(name: &str, job: Launch, code: i32) -> Outcome {
    let scene = Scene::new("");
    let start = Instant::now();
    let outcome = job.at(&scene).expect(code);
    let took = start.elapsed();
    let said = outcome.stderr.lines().next().unwrap_or("nothing");
    println!("| {name} | exit code {code} after {took:.0?} | {said} |");
    scene.assert_clean();
    outcome
}

#[test]
fn a_rank_that_dies_before_it_joins() {
    case("all ranks die before init", launch("false").ranks(2), 1).says("exited with code 1");
    case("one rank dies before init", job(&["before", "exit3", "1"]), 3).says("rank 1 (pid ");
}

#[test]
fn a_rank_that_is_killed_while_another_receives() {
    case("rank 1 SIGKILL while rank 0 receives", job(&["after", "kill", "1"]), 137)
        .says("(SIGKILL)");
}

#[test]
fn a_rank_that_exits_without_finishing() {
    case("rank 1 exits with 7 without finalize", job(&["exit", "7"]), 7).says("rank 1 (pid ");
    case("rank 1 exits with 0 without finalize", job(&["after", "exit0", "1"]), 1)
        .says("without finishing");
}

#[test]
fn a_rank_that_aborts_the_job() {
    case("rank 1 calls abort(7)", job(&["abort", "7"]), 7).says("rank 1 (pid ");
}

#[test]
fn a_synchronous_send_without_a_receive_does_not_return() {
    let waits = job(&["ssend"]).options(["--timeout", "0.7"]);
    let outcome = case("ssend without a receive", waits, 124).says("its time limit");
    assert_eq!(outcome.stdout, "", "{outcome:?}");
}

#[test]
fn a_normal_run_leaves_nothing() {
    case("a job that ends well", job(&["well"]), 0).expect_quiet();
}

/// Starts a job in which all ranks but rank 0 wait; returns it with the numbers of their processes.
fn waiting(ranks: usize) -> (Running, Vec<u32>) {
    let job = launch(RANK).ranks(ranks).args(["waiting"]).start();
    let ranks = job.numbers(ranks);
    (job, ranks)
}

#[test]
fn ranks_that_wait_use_no_processor() {
    let (job, ranks) = waiting(5);
    let of_job = || ranks.iter().copied().chain([job.pid()]).map(|pid| find(pid).expect("it runs"));
    let ticks = || -> u64 { of_job().map(|process| process.ticks).sum() };
    eventually("they are asleep", || of_job().all(|process| process.state == 'S'));
    let (start, before) = (Instant::now(), ticks());
    // Long enough to distinguish ten percent from none, in ticks of ten milliseconds.
    std::thread::sleep(Duration::from_secs(1));
    let used = (ticks() - before) as f64 / rustix::param::clock_ticks_per_second() as f64;
    let percent = 100.0 * used / start.elapsed().as_secs_f64();
    println!("| 4 blocked ranks and the launcher | {percent:.0} % of a processor | |");
    assert!(percent < 10.0, "{percent} % of a processor");
}

#[test]
fn ranks_do_not_outlive_a_launcher_that_is_killed() {
    let (job, ranks) = waiting(3);
    let start = Instant::now();
    job.signal(Signal::KILL);
    job.expect(137);
    await_end(&ranks);
    println!("| SIGKILL of the launcher | no rank left after {:.0?} | |", start.elapsed());
}

#[test]
fn jobs_start_and_end() {
    for (ranks, name) in [(2, "start and end of 2 ranks"), (64, "start and end of 64 ranks")] {
        case(name, launch(RANK).ranks(ranks).args(["well"]), 0);
    }
}

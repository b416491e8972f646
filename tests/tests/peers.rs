//! What was measured to go wrong with other launchers and libraries, one test for each case. With
//! `--nocapture` they print what happens here, as rows of a table.
//!
//! Cases that other tests show: nothing listens (`no_process_of_a_job_has_a_network_socket` in
//! `processes.rs`), and what goes on when a rank dies at any other moment (`faults.rs`).

#![allow(clippy::print_stdout, reason = "rows of a table, for those who ask for them")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use mpj_tests::faults::scene::Scene;
use mpj_tests::launch::{self, Outcome};
use rustix::process::{Pid, Signal, kill_process};

const RANK: &str = env!("CARGO_BIN_EXE_rank");

/// No case takes as long, unless it hangs.
const LONGEST: Duration = Duration::from_secs(10);

/// Runs a job whose remains are looked for; tells how it ended, and returns that.
#[track_caller]
fn case(name: &str, args: &[&str]) -> Outcome {
    launch::mpjrun_path();
    let folder = tempfile::tempdir().expect("a folder");
    let scene = Scene::new(&format!("peers-{}", folder.path().display()), "", folder.path());
    let start = Instant::now();
    let outcome = scene.mpjrun(args);
    let took = start.elapsed();
    let said = outcome.stderr.lines().next().unwrap_or("nothing");
    println!("| {name} | exit code {} after {took:.0?} | {said} |", outcome.code);
    assert!(took < LONGEST, "{outcome:?}");
    assert_eq!(scene.remains(), [""; 0], "{outcome:?}");
    outcome
}

/// The same for a job that fails with `code`, and says why.
#[track_caller]
fn failing_case(name: &str, args: &[&str], code: i32, says: &str) -> Outcome {
    let outcome = case(name, args);
    assert_eq!(outcome.code, code, "{outcome:?}");
    assert!(outcome.stderr.contains(says), "no {says:?}: {outcome:?}");
    outcome
}

#[test]
fn a_rank_that_dies_before_it_joins() {
    failing_case("all ranks die before init", &["-n", "2", "false"], 1, "exited with code 1");
    let words = ["-n", "2", RANK, "before", "exit3", "1"];
    failing_case("one rank dies before init", &words, 3, "rank 1 (pid ");
}

#[test]
fn a_rank_that_is_killed_while_another_receives() {
    let words = ["-n", "2", RANK, "after", "kill", "1"];
    failing_case("rank 1 SIGKILL while rank 0 receives", &words, 137, "(SIGKILL)");
}

#[test]
fn a_rank_that_exits_without_finishing() {
    let words = ["-n", "2", RANK, "exit", "7"];
    failing_case("rank 1 exits with 7 without finalize", &words, 7, "rank 1 (pid ");
    let words = ["-n", "2", RANK, "after", "exit0", "1"];
    failing_case("rank 1 exits with 0 without finalize", &words, 1, "without finishing");
}

#[test]
fn a_rank_that_aborts_the_job() {
    let words = ["-n", "2", RANK, "abort", "7"];
    failing_case("rank 1 calls abort(7)", &words, 7, "rank 1 (pid ");
}

#[test]
fn a_synchronous_send_without_a_receive_does_not_return() {
    let words = ["-n", "2", "--timeout", "0.7", RANK, "ssend"];
    let outcome = failing_case("ssend without a receive", &words, 124, "its time limit");
    assert_eq!(outcome.stdout, "", "{outcome:?}");
}

#[test]
fn a_normal_run_leaves_nothing() {
    let outcome = case("a job that ends well", &["-n", "2", RANK, "well"]);
    assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""), "{outcome:?}");
}

/// A job that runs, ended when the test forgets it.
struct Waiting {
    launcher: Child,
    ranks: Vec<u32>,
}

impl Waiting {
    /// Starts a job whose ranks wait, all but rank 0.
    fn start(scene: &Scene, ranks: usize) -> Self {
        let mut command = Command::new(launch::mpjrun_path());
        command.args(["-n", &ranks.to_string(), "--timeout", "50", RANK, "waiting"]);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut launcher = scene.mark(&mut command).spawn().expect("mpjrun starts");
        // The watchdog is the job's own `--timeout`, which closes the pipe.
        let lines = BufReader::new(launcher.stdout.take().expect("a pipe")).lines();
        let numbers = lines.map_while(Result::ok).filter_map(|line| line.parse().ok());
        let ranks = numbers.take(ranks).collect();
        Self { launcher, ranks }
    }

    /// Processor time that the launcher and the ranks but rank 0 have used, in clock ticks.
    fn ticks(&self) -> u64 {
        let pids = self.ranks.iter().copied().chain([self.launcher.id()]);
        pids.map(ticks).sum()
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        // Ended already, unless the test failed.
        let _ = self.launcher.kill();
        let _ = self.launcher.wait();
    }
}

/// Processor time of a process, in clock ticks: user and system.
fn ticks(pid: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("it runs");
    let (_, fields) = stat.rsplit_once(") ").expect("a state follows the name");
    let numbers: Vec<u64> = fields.split(' ').skip(11).take(2).flat_map(str::parse).collect();
    numbers.iter().sum()
}

#[test]
fn ranks_that_wait_use_no_processor() {
    let folder = tempfile::tempdir().expect("a folder");
    let scene = Scene::new("peers-idle", "", folder.path());
    let job = Waiting::start(&scene, 5);
    assert_eq!(job.ranks.len(), 5, "the job has not started");
    // Until they sleep.
    std::thread::sleep(Duration::from_millis(300));
    let before = job.ticks();
    std::thread::sleep(Duration::from_secs(1));
    let used = job.ticks() - before;
    let percent = used * 100 / rustix::param::clock_ticks_per_second();
    println!("| 4 blocked ranks and the launcher | {percent} % of a processor | |");
    assert!(percent < 10, "{percent} % of a processor");
}

#[test]
fn ranks_do_not_outlive_a_launcher_that_is_killed() {
    let folder = tempfile::tempdir().expect("a folder");
    let scene = Scene::new("peers-orphans", "", folder.path());
    let mut job = Waiting::start(&scene, 3);
    assert_eq!(job.ranks.len(), 3, "the job has not started");
    kill_process(Pid::from_child(&job.launcher), Signal::KILL).expect("it runs");
    let start = Instant::now();
    job.launcher.wait().expect("our child");
    while !scene.remains().is_empty() {
        assert!(start.elapsed() < LONGEST, "{:?}", scene.remains());
        std::thread::sleep(Duration::from_millis(1));
    }
    println!("| SIGKILL of the launcher | no rank left after {:.0?} | |", start.elapsed());
}

#[test]
fn a_job_starts_and_ends_soon() {
    for (ranks, name) in [("2", "start and end of 2 ranks"), ("64", "start and end of 64 ranks")] {
        let outcome = case(name, &["-n", ranks, RANK, "well"]);
        assert_eq!(outcome.code, 0, "{outcome:?}");
    }
}

//! Jobs of several processes that end well, badly, or not at all, through the built `mpjrun`.
//!
//! The ranks are `src/bin/rank.rs`. Every launcher has a watchdog: that of
//! [`mpj_tests::launch`], or that of [`Running`] where a test acts while the job runs.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::MetadataExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use mpj_tests::launch::{self, LIMIT, Outcome};
use rustix::process::{Pid, Signal, kill_process};

const RANK: &str = env!("CARGO_BIN_EXE_rank");

/// Runs `rank` with these words on `ranks` ranks.
fn job(ranks: usize, words: &[&str]) -> Outcome {
    launch::mpjrun(&[&["-n", &ranks.to_string(), RANK], words].concat())
}

/// Runs a job that has to fail with `code` and say all of `says`. From the misbehaviour, which comes
/// after at most 200 ms, to the end it has a second, and another one for a busy machine.
#[track_caller]
fn failing_job(ranks: usize, words: &[&str], code: i32, says: &[&str]) -> Outcome {
    launch::mpjrun_path();
    let start = Instant::now();
    let outcome = job(ranks, words);
    let took = start.elapsed();
    assert_eq!(outcome.code, code, "{words:?}: {outcome:?}");
    for words_said in says {
        assert!(outcome.stderr.contains(words_said), "no {words_said:?}: {outcome:?}");
    }
    assert!(took < Duration::from_millis(2200), "{words:?} took {took:?}: {outcome:?}");
    outcome
}

#[test]
fn a_job_that_does_everything_right() {
    for ranks in [1, 2, 5] {
        let outcome = job(ranks, &["well"]);
        assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""), "{outcome:?}");
        let mut lines: Vec<&str> = outcome.stdout.lines().collect();
        lines.sort_unstable();
        let expected: Vec<String> =
            (0..ranks).map(|rank| format!("rank {rank} of {ranks}")).collect();
        assert_eq!(lines, expected);
    }
}

#[test]
fn several_programs_are_one_world() {
    let outcome = launch::mpjrun(&["-n", "2", RANK, "well", ":", "-n", "1", RANK, "well"]);
    assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""), "{outcome:?}");
    let mut lines: Vec<&str> = outcome.stdout.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["rank 0 of 3", "rank 1 of 3", "rank 2 of 3"]);
}

#[test]
fn a_rank_that_fails_before_it_joins() {
    let gone = ["mpjrun: rank 1 (pid ", "rank 0"];
    failing_job(2, &["before", "exit3", "1"], 3, &["exited with code 3", gone[0], gone[1]]);
    failing_job(2, &["before", "kill", "1"], 137, &["signal 9 (SIGKILL)", gone[0], gone[1]]);
    failing_job(2, &["before", "abort", "1"], 134, &["signal 6 (SIGABRT)", gone[0], gone[1]]);
    failing_job(2, &["before", "panic", "1"], 101, &["rank 1 goes overboard", gone[0], gone[1]]);
}

#[test]
fn a_rank_that_ends_without_joining() {
    failing_job(
        2,
        &["before", "exit0", "1"],
        1,
        &["rank 1 (pid ", "ended without joining the job"],
    );
}

#[test]
fn a_rank_that_fails_while_the_others_wait_for_all_to_come() {
    let others =
        "rank 0: joined, waiting in mpj::init for the others, still running; ended by mpjrun";
    let absent = "rank 2: not joined, still running; ended by mpjrun";
    failing_job(3, &["during", "exit3", "1"], 3, &["exited with code 3", others, absent]);
    failing_job(3, &["during", "kill", "1"], 137, &["signal 9 (SIGKILL)", others, absent]);
}

#[test]
fn a_rank_that_fails_after_all_have_joined() {
    let other = "mpjrun:   0      recv        rank 1  any  world";
    failing_job(2, &["after", "exit3", "1"], 3, &["exited with code 3", other]);
    failing_job(2, &["after", "kill", "1"], 137, &["signal 9 (SIGKILL)", other]);
    failing_job(2, &["after", "abort", "1"], 134, &["signal 6 (SIGABRT)", other]);
}

/// Either end of a long message that both of them copy.
#[test]
fn a_rank_that_is_killed_amid_long_messages() {
    for who in ["0", "1"] {
        let cause = format!("mpjrun: rank {who} (pid ");
        failing_job(2, &["amid", "kill", who], 137, &["signal 9 (SIGKILL)", &cause]);
    }
}

#[test]
fn a_panic_is_told_with_its_text_and_place_and_decides() {
    let place = "it panicked at tests/src/bin/rank.rs:";
    let says = ["mpjrun: rank 1 (pid ", "exited with code 101", place, ": rank 1 goes overboard"];
    failing_job(3, &["after", "panic", "1"], 101, &says);
    let says = ["mpjrun: rank 0 (pid ", "exited with code 101", place, ": rank 0 goes overboard"];
    let outcome = failing_job(3, &["after", "panic", "0"], 101, &says);
    // The others are ended in their calls, and have nothing to complain of.
    assert!(!outcome.stderr.contains("is gone"), "{outcome:?}");
    let waiting = "1-2    recv        rank 0";
    assert!(outcome.stderr.contains(waiting), "{outcome:?}");
}

#[test]
fn a_panic_whose_text_a_later_hook_keeps_is_told_as_one() {
    let why = "it panicked at an unknown place: its panic hook was set after mpj::init";
    failing_job(2, &["after", "hushed", "1"], 101, &["exited with code 101", why]);
    let told = failing_job(2, &["after", "panic", "1"], 101, &["rank 1 goes overboard"]);
    assert!(!told.stderr.contains("hook"), "{told:?}");
}

#[test]
fn a_rank_that_gave_up_is_the_cause_before_it_ends() {
    let says = [
        "mpjrun: rank 1 (pid ",
        "met an error, gave up its place in the job, and has not ended since",
        "it said: rank 99",
        "barrier",
    ];
    let outcome = failing_job(2, &["error-slow"], 1, &says);
    assert!(!outcome.stderr.contains("is gone"), "{outcome:?}");
}

#[test]
fn an_abort_ends_a_job_that_goes_on_without_another_rank() {
    let outcome = launch::mpjrun(&["-n", "2", "--on-failure", "keep", RANK, "late-abort"]);
    assert_eq!(outcome.code, 7, "{outcome:?}");
    let report = outcome.stderr.rsplit("(--on-failure keep)\n").next().unwrap_or_default();
    assert!(report.starts_with("mpjrun: rank 1 (pid "), "{outcome:?}");
    assert!(report.contains("called abort with code 7"), "{outcome:?}");
}

/// A script that goes on when its program has ended.
const GOES_ON: &str = "\"$0\" \"$@\"; sleep 50";

#[test]
fn a_rank_that_dies_behind_a_script_that_goes_on() {
    let words = ["-n", "2", "sh", "-c", GOES_ON, RANK, "after", "kill", "1"];
    let outcome = launch::mpjrun(&words);
    assert_eq!(outcome.code, 1, "{outcome:?}");
    let says = ["mpjrun: rank 1 (pid ", "the script that started it goes on", "recv        rank 1"];
    for words in says {
        assert!(outcome.stderr.contains(words), "no {words:?} in {outcome:?}");
    }
}

#[test]
fn ranks_that_finish_behind_scripts_that_go_on() {
    let script = GOES_ON.replace("50", "0.8");
    let outcome = launch::mpjrun(&["-n", "2", "sh", "-c", &script, RANK, "well"]);
    assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""), "{outcome:?}");
}

#[test]
fn a_panic_that_is_caught_is_no_failure() {
    let outcome = job(2, &["after", "recover", "1"]);
    assert_eq!(outcome.code, 0, "{outcome:?}");
    assert!(!outcome.stderr.contains("mpjrun:"), "{outcome:?}");
}

#[test]
fn exit_code_0_without_finishing_is_a_failure() {
    let says = "exited with code 0 without finishing: keep the World alive until the end of main and \
                let it drop";
    failing_job(2, &["after", "exit0", "1"], 1, &["mpjrun: rank 1 (pid ", says]);
    failing_job(2, &["after", "forget", "1"], 1, &["mpjrun: rank 1 (pid ", says]);
}

#[test]
fn a_rank_that_becomes_another_program_is_told_so() {
    let says = ["mpjrun: rank ", "but its control line to mpjrun was closed before: it closed"];
    failing_job(2, &["replaced"], 1, &says);
}

/// What a rank has taken is its own: a program that it starts, or becomes, gets none of it.
#[test]
fn a_program_that_a_rank_starts_has_nothing_of_the_job() {
    let outcome = job(1, &["lists"]);
    let text = outcome.stdout.as_str();
    let control = text.lines().find_map(|line| line.strip_prefix("control ")).expect("it is told");
    let parts: Vec<&str> = text.split("another\n").collect();
    let [rank, started, replaced] = parts[..] else { panic!("{outcome:?}") };
    let line = format!("{control} -> socket:[");
    let has_line = |part: &str| {
        part.lines().any(|shown| shown.starts_with(&line) || shown.contains(&format!(" {line}")))
    };
    assert!(has_line(rank) && !rank.contains("mpj-job"), "mapped, not open: {outcome:?}");
    for program in [started, replaced] {
        assert!(program.contains(" 2 -> "), "{outcome:?}");
        assert!(!has_line(program) && !program.contains("mpj-job"), "{outcome:?}");
    }
}

/// A job in which rank 1 returns an error from main, while the others wait for it: one rank is named,
/// with the cause.
#[track_caller]
fn job_that_returns_an_error(ranks: usize, words: &[&str], cause: &str) {
    let start = Instant::now();
    let outcome = job(ranks, words);
    assert_eq!(outcome.code, 1, "{words:?}: {outcome:?}");
    let said = |words: &str| outcome.stderr.matches(words).count();
    assert_eq!((said("mpjrun: rank "), said("mpjrun: rank 1 (pid ")), (1, 1), "{outcome:?}");
    let told = outcome.stderr.lines().find_map(|line| line.strip_prefix("mpjrun:   it said: "));
    assert!(told.is_some_and(|told| told.contains(cause)), "no {cause:?}: {outcome:?}");
    assert!(start.elapsed() < Duration::from_millis(2200), "{words:?}: {outcome:?}");
}

#[test]
fn an_error_that_main_returns_ends_the_job_and_is_told() {
    launch::mpjrun_path();
    job_that_returns_an_error(2, &["error-truncate"], "16 bytes");
    job_that_returns_an_error(3, &["error-rank"], "99");
}

#[test]
fn an_error_that_main_returns_is_told_beside_a_thread_that_polls() {
    for scene in ["error-polled", "error-joined"] {
        let outcome = failing_job(3, &[scene], 1, &["mpjrun: rank 1 (pid ", "it said: rank 99"]);
        assert!(outcome.stderr.contains("rank 99 is out of range"), "{outcome:?}");
    }
}

#[test]
fn an_error_that_is_dealt_with_is_no_failure() {
    for scene in ["error-handled", "error-elsewhere"] {
        let outcome = job(3, &[scene]);
        assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""), "{scene}: {outcome:?}");
        assert_eq!(outcome.stdout.lines().count(), 3, "{scene}: {outcome:?}");
    }
}

#[test]
fn a_panic_of_a_thread_is_told_when_the_job_is_stuck() {
    let outcome = launch::mpjrun(&["-n", "2", "--timeout", "0.5", RANK, "thread-panic"]);
    assert_eq!(outcome.code, 124, "{outcome:?}");
    let told = "mpjrun:   rank 1 panicked at tests/src/bin/rank.rs:";
    assert!(outcome.stderr.contains(told), "{outcome:?}");
    assert!(outcome.stderr.contains(": rank 1 goes overboard\n"), "{outcome:?}");
}

#[test]
fn a_rank_that_has_left_is_told_when_the_others_do_not() {
    let outcome = launch::mpjrun(&["-n", "2", "--timeout", "0.5", RANK, "leaving"]);
    assert_eq!(outcome.code, 124, "{outcome:?}");
    let left =
        "mpjrun:   1      finish      others    -  -                 -  others have not come there";
    let stays =
        "mpjrun:   0      recv        rank 0  any  world             0  no message has come";
    for fate in [left, stays] {
        assert!(outcome.stderr.contains(fate), "no {fate:?}: {outcome:?}");
    }
}

#[test]
fn a_job_that_is_stuck_ends_by_its_timeout_and_tells_who_had_joined() {
    let outcome =
        launch::mpjrun(&["-n", "2", "--deadlock", "ignore", "--timeout", "0.5", RANK, "idle"]);
    assert_eq!(outcome.code, 124, "{outcome:?}");
    let both = "cycle: 0 waits for 1 (recv any tag) -> 1 waits for 0 (recv any tag) -> 0\n";
    assert!(outcome.stderr.contains(both), "{outcome:?}");
}

#[test]
fn a_rank_joins_once() {
    let outcome = job(2, &["twice"]);
    assert_eq!(outcome.code, 0, "{outcome:?}");
    assert_eq!(outcome.stdout.matches("joined its job already").count(), 2, "{outcome:?}");
}

#[test]
fn a_program_that_a_rank_starts_is_no_rank() {
    let outcome = job(1, &["nested"]);
    assert_eq!((outcome.code, outcome.stdout.trim()), (0, "exit status: 1"), "{outcome:?}");
    for advice in ["remove the variables MPJ_RANK", "Python: close_fds=False"] {
        assert!(outcome.stderr.contains(advice), "no {advice:?}: {outcome:?}");
    }
}

#[test]
fn a_script_runs_one_program() {
    let script = format!("{RANK} well && {RANK} well");
    let outcome = launch::mpjrun(&["-n", "1", "sh", "-c", &script]);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (1, "rank 0 of 1\n"), "{outcome:?}");
    let says = "rank 0 has joined the job before, in process ";
    assert!(outcome.stderr.contains(says), "{outcome:?}");
}

#[test]
fn the_launcher_of_another_mpi_is_refused_unless_told_otherwise() {
    let alone = |variables: &[(&str, &str)]| {
        launch::run(Command::new(RANK).arg("well").envs(variables.iter().copied()))
    };
    for variable in ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK", "SLURM_NTASKS"] {
        let refused = alone(&[(variable, "2")]);
        assert_eq!(refused.code, 1, "{refused:?}");
        let says = format!("({variable} is set)");
        assert!(refused.stderr.contains(&says), "{refused:?}");
        assert!(refused.stderr.contains("use mpjrun -n N"), "{refused:?}");
        let told = alone(&[(variable, "2"), ("MPJ_SINGLETON", "1")]);
        assert_eq!((told.code, told.stdout.as_str()), (0, "rank 0 of 1\n"), "{told:?}");
    }
}

#[test]
fn a_program_without_its_launcher_is_told_so_when_it_misses_a_rank() {
    let told = launch::run(Command::new(RANK).args(["after", "exit3", "1"]));
    let says = "rank 1 is out of range: the job has ranks 0 to 0 (started without mpjrun, so a job of \
                one rank: mpjrun -n N PROGRAM)\n";
    assert_eq!((told.code, told.stderr.as_str()), (1, says), "{told:?}");
    let outcome = failing_job(1, &["after", "exit3", "1"], 1, &["the job has ranks 0 to 0"]);
    assert!(!outcome.stderr.contains("without mpjrun"), "{outcome:?}");
}

#[test]
fn a_setting_that_only_the_ranks_see_is_refused_by_them() {
    let outcome = launch::mpjrun(&["-n", "2", "-x", "MPJ_EARLY_LIMIT=lots", RANK, "well"]);
    assert_eq!(outcome.code, 1, "{outcome:?}");
    let says = "MPJ_EARLY_LIMIT=lots is not known; legal values: a number of bytes";
    assert!(outcome.stderr.contains(says), "{outcome:?}");
}

/// A job whose ranks have all joined; its launcher is killed when the test forgets it.
struct Running {
    launcher: Child,
    ranks: Vec<u32>,
    /// What the launcher has said so far.
    said: Arc<Mutex<String>>,
    listener: Option<JoinHandle<()>>,
}

/// How a report begins that was asked for.
const REPORT: &str = "mpjrun: state of the job ";

impl Running {
    /// Starts `rank idle` through these words.
    fn idle(ranks: usize, through: &[&str]) -> Self {
        Self::start(ranks, through, "idle")
    }

    /// Starts ranks that do `what` through these words, and waits until every one has told its number. The
    /// launcher inherits that SIGQUIT is ignored, as one in the background of a script does.
    fn start(ranks: usize, through: &[&str], what: &str) -> Self {
        let mut command = Command::new("sh");
        command
            .args(["-c", "trap '' QUIT; exec \"$0\" \"$@\""])
            .arg(launch::mpjrun_path())
            .args(["-n", &ranks.to_string(), "--deadlock", "ignore"])
            .args(through)
            .args([RANK, what]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut launcher = command.spawn().expect("mpjrun starts");
        let lines = BufReader::new(launcher.stdout.take().expect("a pipe")).lines();
        let (sender, numbers) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                // The test may have failed and gone.
                let _ = sender.send(line.parse().expect("a process number"));
            }
        });
        let said = Arc::new(Mutex::new(String::new()));
        let lines = BufReader::new(launcher.stderr.take().expect("a pipe")).lines();
        let heard = Arc::clone(&said);
        let listener = std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                *heard.lock().expect("nobody panics with it") += &(line + "\n");
            }
        });
        let mut job = Self { launcher, ranks: Vec::new(), said, listener: Some(listener) };
        for _ in 0..ranks {
            job.ranks.push(numbers.recv_timeout(LIMIT).expect("watchdog: no rank in time"));
        }
        job
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.launcher), signal).expect("it runs");
    }

    /// Waits for the launcher's exit code and words, under the watchdog.
    #[track_caller]
    fn finish(&mut self) -> (Option<i32>, String) {
        eventually("the launcher has ended", || !runs(self.launcher.id()));
        let code = self.launcher.wait().expect("our child").code();
        self.listener.take().expect("it has not ended before").join().expect("no panic");
        (code, self.said())
    }

    fn said(&self) -> String {
        self.said.lock().expect("nobody panics with it").clone()
    }

    /// Asks for reports, one after the other, until one has all of these words, and returns that.
    #[track_caller]
    fn report_with(&self, words: &[&str]) -> String {
        let start = Instant::now();
        for asked in 1.. {
            self.signal(Signal::QUIT);
            eventually("a report comes", || self.said().matches(REPORT).count() == asked);
            let last = self.said().rsplit(REPORT).next().unwrap_or_default().to_owned();
            if words.iter().all(|words| last.contains(words)) {
                return last;
            }
            assert!(start.elapsed() < LIMIT, "watchdog: no report has {words:?}: {last}");
        }
        unreachable!("it is asked without end")
    }

    /// Waits for the end of a job whose ranks had all joined.
    #[track_caller]
    fn assert_ended_by(&mut self, signal: &str, code: i32) {
        let (ended, said) = self.finish();
        assert_eq!(ended, Some(code), "{said}");
        // The ranks are blocked, or about to be.
        assert!(said.starts_with(&format!("mpjrun: ended by {signal}\nmpjrun:   ")), "{said}");
    }

    #[track_caller]
    fn assert_ranks_gone(&self) {
        eventually("every rank is gone", || !self.ranks.iter().copied().any(runs));
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Ended already, unless the test failed.
        let _ = self.launcher.kill();
        let _ = self.launcher.wait();
    }
}

/// Whether a process runs; one that has ended and waits to be reaped does not.
fn runs(pid: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = status.rsplit(") ").next().unwrap_or_default();
    !matches!(state.chars().next(), None | Some('Z' | 'X'))
}

#[track_caller]
fn eventually(what: &str, condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < LIMIT, "watchdog: never came true: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Names in `/dev/shm`.
fn shared_memory() -> BTreeSet<String> {
    let names = fs::read_dir("/dev/shm").expect("it is there");
    names.map(|entry| entry.expect("readable").file_name().to_string_lossy().into()).collect()
}

#[test]
fn ranks_end_with_a_launcher_that_is_killed() {
    let before = shared_memory();
    let mut job = Running::idle(3, &[]);
    assert_eq!(shared_memory(), before, "while the job runs");
    job.signal(Signal::KILL);
    assert_eq!(job.finish(), (None, String::new()));
    job.assert_ranks_gone();
    assert_eq!(shared_memory(), before);
}

#[test]
fn ranks_behind_a_script_end_with_a_launcher_that_is_killed() {
    let mut job = Running::idle(2, &["sh", "-c", "\"$0\" \"$@\"; exit $?"]);
    job.signal(Signal::KILL);
    assert_eq!(job.finish(), (None, String::new()));
    job.assert_ranks_gone();
}

#[test]
fn ranks_behind_a_script_end_with_their_job() {
    let mut job = Running::idle(2, &["sh", "-c", "\"$0\" \"$@\"; exit $?"]);
    job.signal(Signal::TERM);
    job.assert_ended_by("signal 15 (SIGTERM)", 143);
    job.assert_ranks_gone();
}

#[test]
fn the_number_of_a_rank_behind_a_script_is_the_ranks_own() {
    let mut job = Running::idle(2, &["sh", "-c", "\"$0\" \"$@\"; exit $?"]);
    let victim = Pid::from_raw(job.ranks[0] as i32).expect("a process number");
    kill_process(victim, Signal::KILL).expect("a rank of this test");
    let (code, said) = job.finish();
    assert_eq!(code, Some(137), "{said}");
    assert!(said.contains(&format!("(pid {}, ", job.ranks[0])), "{said}");
    job.assert_ranks_gone();
}

#[test]
fn a_rank_killed_from_outside_ends_the_job_and_leaves_nothing() {
    let before = shared_memory();
    let mut job = Running::idle(3, &[]);
    let victim = Pid::from_raw(job.ranks[1] as i32).expect("a process number");
    kill_process(victim, Signal::KILL).expect("a rank of this test");
    let (code, said) = job.finish();
    assert_eq!(code, Some(137), "{said}");
    assert!(said.contains("was killed by signal 9 (SIGKILL)"), "{said}");
    assert!(said.contains(&format!("(pid {}, ", job.ranks[1])), "{said}");
    // The other ranks are blocked, or about to be.
    assert!(said.lines().count() > 1, "{said}");
    job.assert_ranks_gone();
    assert_eq!(shared_memory(), before);
}

/// Inodes of the TCP and UDP sockets of this host.
fn network_sockets() -> BTreeSet<u64> {
    let tables = ["tcp", "tcp6", "udp", "udp6"].map(|table| format!("/proc/net/{table}"));
    let text: String = tables.iter().filter_map(|table| fs::read_to_string(table).ok()).collect();
    text.lines().filter_map(|line| line.split_whitespace().nth(9)?.parse().ok()).collect()
}

#[test]
fn a_running_job_is_asked_what_its_ranks_do() {
    let mut job = Running::idle(3, &[]);
    let cycle = "cycle: 0 waits for 1 (recv any tag) -> 1 waits for 2 (recv any tag) -> \
                 2 waits for 0 (recv any tag) -> 0\n";
    let told = job.report_with(&[cycle, "not judged to be a deadlock: --deadlock ignore\n"]);
    assert!(told.contains("\nmpjrun:   2      recv        rank 0  any  world"), "{told}");
    job.signal(Signal::TERM);
    let (code, _) = job.finish();
    assert_eq!(code, Some(143));
    job.assert_ranks_gone();
}

#[test]
fn a_job_that_was_asked_goes_on_and_ends_well() {
    let mut job = Running::start(2, &[], "late");
    let told = job.report_with(&[
        "mpjrun:   0      barrier     others",
        "rank 1: joined, stopped by a signal; kill -CONT ",
        "barrier, call 0 on world: rank 0 has come; rank 1 has not (stopped by a signal)",
    ]);
    let pid = number_behind("kill -CONT ", &told);
    kill_process(pid, Signal::CONT).expect("it is there");
    let (code, said) = job.finish();
    assert_eq!(code, Some(0), "{said}");
    job.assert_ranks_gone();
}

/// The process whose number follows these words.
#[track_caller]
fn number_behind(words: &str, told: &str) -> Pid {
    let number = told.split_once(words).and_then(|(_, rest)| rest.split(' ').next());
    let pid = number.and_then(|number| number.parse().ok()).and_then(Pid::from_raw);
    pid.unwrap_or_else(|| panic!("no number behind {words:?} in {told}"))
}

#[test]
fn a_rank_that_does_not_wait_is_seen_to_stand_still_compute_or_sleep() {
    let mut job = Running::start(4, &[], "apart");
    let wake = "rank 1: joined, stopped by a signal; kill -CONT ";
    let told = job.report_with(&[
        wake,
        "rank 2: joined, awake: computing",
        "rank 3: joined, asleep outside of MPI",
        "   0      recv ",
        "chain: 0 waits for 1 (recv any tag) -> 1 (stopped by a signal)\n",
    ]);
    let pid = number_behind(wake, &told);
    assert!(job.ranks.contains(&(pid.as_raw_pid() as u32)), "{told}");
    kill_process(pid, Signal::CONT).expect("it is there");
    let (code, said) = job.finish();
    assert_eq!(code, Some(7), "it went on and ended the job: {said}");
    job.assert_ranks_gone();
}

#[test]
fn no_process_of_a_job_has_a_network_socket() {
    let mut job = Running::idle(3, &[]);
    let network = network_sockets();
    for pid in job.ranks.iter().copied().chain([job.launcher.id()]) {
        let entries = fs::read_dir(format!("/proc/{pid}/fd")).expect("a process of this test");
        let inodes = entries.filter_map(|entry| fs::metadata(entry.ok()?.path()).ok());
        let found: Vec<u64> =
            inodes.map(|metadata| metadata.ino()).filter(|inode| network.contains(inode)).collect();
        assert!(found.is_empty(), "process {pid}: {found:?}");
    }
    job.signal(Signal::TERM);
    job.assert_ended_by("signal 15 (SIGTERM)", 143);
}

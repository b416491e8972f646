//! Jobs of several processes that end well, badly, or not at all, through the built `mpjrun`.
//!
//! The ranks are `src/bin/rank.rs`.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::process::Stdio;

use mpj_harness::process::{await_end, signal};
use mpj_harness::{Launch, Outcome, Running, command, eventually, launch, mpjrun, shell};
use rustix::process::Signal;

const RANK: &str = env!("CARGO_BIN_EXE_rank");

/// A job of the program `rank` with these arguments.
fn job(ranks: usize, words: &[&str]) -> Launch {
    launch(RANK).ranks(ranks).args(words)
}

/// Runs a job that has to fail with `code` and say all of `says`.
#[track_caller]
fn failing_job(ranks: usize, words: &[&str], code: i32, says: &[&str]) -> Outcome {
    job(ranks, words).expect(code).says_all(says)
}

#[test]
fn a_job_that_does_everything_right() {
    for ranks in [1, 2, 5] {
        let outcome = job(ranks, &["well"]).expect_quiet();
        let expected: Vec<String> =
            (0..ranks).map(|rank| format!("rank {rank} of {ranks}")).collect();
        assert_eq!(outcome.sorted_lines(), expected);
    }
}

#[test]
fn several_programs_are_one_world() {
    let words = ["-n", "2", RANK, "well", ":", "-n", "1", RANK, "well"];
    let outcome = mpjrun(words).expect_quiet();
    assert_eq!(outcome.sorted_lines(), ["rank 0 of 3", "rank 1 of 3", "rank 2 of 3"]);
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
    let others = "rank 0: joined, waiting for the others to join, still running; ended by mpjrun";
    let absent = "rank 2: not joined, still running; ended by mpjrun";
    for (how, code, end) in
        [("exit3", 3, "exited with code 3"), ("kill", 137, "signal 9 (SIGKILL)")]
    {
        let job = job(3, &["during", how, "1"]).options(["--stdin", "1"]).stdin(Stdio::piped());
        let mut job = job.start();
        job.report_with(&["ranks 0-1: joined"]);
        drop(job.stdin());
        job.expect(code).says_all(&[end, others, absent]);
    }
}

#[test]
fn a_rank_that_fails_after_all_have_joined() {
    let other = "mpjrun:   0      recv        rank 1  any  world";
    let said = "mpjrun:   it printed last: no space is left on the disk\n";
    failing_job(2, &["after", "exit3", "1"], 3, &["exited with code 3", said, other]);
    failing_job(2, &["after", "kill", "1"], 137, &["signal 9 (SIGKILL)", other]);
    failing_job(2, &["after", "abort", "1"], 134, &["signal 6 (SIGABRT)", other]);
}

/// At either end of a long message that both ends copy.
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
    // The others are ended in their calls, before they meet an error.
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
    let job = job(2, &["late-abort"]).options(["--on-failure", "keep"]).start();
    let note = "(--on-failure keep)\n";
    eventually("the first failure is told", || job.stderr().contains(note));
    signal(job.numbers(1)[0], Signal::CONT).expect("it is there");
    let outcome = job.expect(7);
    let report = outcome.stderr.rsplit(note).next().unwrap_or_default();
    assert!(report.starts_with("mpjrun: rank 1 (pid "), "{outcome:?}");
    assert!(report.contains("called abort with code 7"), "{outcome:?}");
}

/// Two ranks behind a script that goes on when its program has ended.
fn behind_a_script(words: &[&str], then: &str) -> Launch {
    let script = format!("\"$0\" \"$@\"; {then}");
    launch("sh").ranks(2).args(["-c", &script, RANK]).args(words)
}

#[test]
fn a_rank_that_dies_behind_a_script_that_goes_on() {
    let says = ["mpjrun: rank 1 (pid ", "the script that started it goes on", "recv        rank 1"];
    behind_a_script(&["after", "kill", "1"], "sleep 600").expect(1).says_all(&says);
}

#[test]
fn ranks_that_finish_behind_scripts_that_go_on() {
    behind_a_script(&["well"], "sleep 0.8").expect_quiet();
}

#[test]
fn a_panic_that_is_caught_is_no_failure() {
    let outcome = job(2, &["after", "recover", "1"]).expect(0);
    assert!(!outcome.stderr.contains("mpjrun:"), "{outcome:?}");
}

#[test]
fn exit_code_0_without_finishing_is_a_failure_if_others_wait_for_it() {
    let says = "exited with code 0 without finishing: in C, call MPI_Finalize; in Rust, keep the World \
                alive until the end of main and let it drop";
    failing_job(2, &["after", "exit0", "1"], 1, &["mpjrun: rank 1 (pid ", says]);
    failing_job(2, &["after", "forget", "1"], 1, &["mpjrun: rank 1 (pid ", says]);
}

#[test]
fn exit_code_0_without_finishing_is_a_success_if_nobody_waits() {
    let outcome = job(3, &["forget"]).expect(0);
    let note = "mpjrun: ranks 0-2 exited with code 0 without finishing, which may lose messages: in C, call \
                MPI_Finalize; in Rust, let the World drop at the end of main\n";
    assert_eq!((outcome.stdout.as_str(), outcome.stderr.as_str()), ("sum 3\n", note));
}

#[test]
fn a_rank_that_becomes_another_program_is_told_so() {
    let says = ["mpjrun: rank ", "but its control line to mpjrun was closed before: it closed"];
    failing_job(2, &["replaced"], 1, &says);
}

/// A program that a rank starts or becomes inherits nothing of the job from it.
#[test]
fn a_program_that_a_rank_starts_has_nothing_of_the_job() {
    let outcome = job(1, &["lists"]).run();
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

/// Runs a job in which rank 1 returns an error from main while the others wait for it: the report names one rank, with
/// the cause.
#[track_caller]
fn job_that_returns_an_error(ranks: usize, words: &[&str], cause: &str) {
    let outcome = job(ranks, words).expect(1);
    let said = |words: &str| outcome.stderr.matches(words).count();
    assert_eq!((said("mpjrun: rank "), said("mpjrun: rank 1 (pid ")), (1, 1), "{outcome:?}");
    let told = outcome.stderr.lines().find_map(|line| line.strip_prefix("mpjrun:   it said: "));
    assert!(told.is_some_and(|told| told.contains(cause)), "no {cause:?}: {outcome:?}");
}

#[test]
fn an_error_that_main_returns_ends_the_job_and_is_told() {
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
fn an_error_of_the_program_itself_is_told_with_its_text() {
    let says = [
        "mpjrun: rank 1 (pid ",
        "exited with code 1",
        "mpjrun:   it printed last: Error: no input\nmpjrun:     \nmpjrun:     Caused by:\nmpjrun:         no such file\n",
    ];
    failing_job(2, &["error-other"], 1, &says);
}

/// A rank that is printing its error when another one fails may print the rest.
#[test]
fn an_error_that_is_being_printed_is_not_cut() {
    let outcome = failing_job(2, &["error-cut"], 1, &["mpjrun: rank 0 (pid ", "rank 99"]);
    assert!(outcome.stderr.contains("Error: all of it\n"), "{outcome:?}");
}

#[test]
fn an_error_that_is_dealt_with_is_no_failure() {
    for scene in ["error-handled", "error-elsewhere"] {
        let outcome = job(3, &[scene]).expect_quiet();
        assert_eq!(outcome.stdout.lines().count(), 3, "{scene}: {outcome:?}");
    }
}

#[test]
fn a_panic_of_a_thread_is_told_when_the_job_is_stuck() {
    let job = job(2, &["thread-panic"]).start();
    let told = ["mpjrun:   rank 1 panicked at tests/src/bin/rank.rs:", ": rank 1 goes overboard\n"];
    job.report_with(&told);
    job.signal(Signal::TERM);
    job.expect(143).says_all(&told);
}

#[test]
fn a_rank_that_has_left_is_told_when_the_others_do_not() {
    let job = job(2, &["leaving"]).start();
    let left =
        "mpjrun:   1      finish      others    -  -                 -  others have not come there";
    let stays =
        "mpjrun:   0      recv        rank 0  any  world             0  no message has come";
    job.report_with(&[left, stays]);
    job.signal(Signal::TERM);
    job.expect(143).says(left).says(stays);
}

#[test]
fn a_job_that_is_stuck_ends_by_its_timeout_and_tells_who_had_joined() {
    let options = ["--deadlock", "ignore", "--timeout", "5"];
    let outcome = job(2, &["idle"]).options(options).expect(124);
    let both = "cycle: 0 waits for 1 (recv any tag) -> 1 waits for 0 (recv any tag) -> 0\n";
    outcome.says(both);
}

#[test]
fn a_rank_joins_once() {
    let outcome = job(2, &["twice"]).expect(0);
    assert_eq!(outcome.stdout.matches("joined its job already").count(), 2, "{outcome:?}");
}

#[test]
fn a_program_that_a_rank_starts_is_no_rank() {
    let outcome = job(1, &["nested"]).expect(0);
    assert_eq!(outcome.stdout.trim(), "exit status: 1", "{outcome:?}");
    outcome.says_all(&["remove the variables MPJ_RANK", "Python: close_fds=False"]);
}

#[test]
fn a_script_runs_one_program() {
    let script = format!("{RANK} well && {RANK} well");
    let outcome = launch("sh").ranks(1).args(["-c", &script]).expect(1);
    assert_eq!(outcome.stdout, "rank 0 of 1\n", "{outcome:?}");
    outcome.says("rank 0 has joined the job before, in process ");
}

#[test]
fn the_launcher_of_another_mpi_is_refused_unless_told_otherwise() {
    let alone = |variables: &[(&'static str, &str)]| {
        let alone = command(RANK).args(["well"]);
        alone.set(|command| command.envs(variables.iter().copied())).run()
    };
    for variable in ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK", "SLURM_NTASKS"] {
        let says = format!("({variable} is set)");
        alone(&[(variable, "2")]).expect(1).says(&says).says("use mpjrun -n N");
        let told = alone(&[(variable, "2"), ("MPJ_SINGLETON", "1")]);
        assert_eq!((told.code, told.stdout.as_str()), (0, "rank 0 of 1\n"), "{told:?}");
    }
}

#[test]
fn a_program_without_its_launcher_is_told_so_when_it_misses_a_rank() {
    let told = command(RANK).args(["after", "exit3", "1"]).run();
    let says = "rank 1 is out of range: the job has ranks 0 to 0 (started without mpjrun, so a job of \
                one rank: mpjrun -n N PROGRAM)\n";
    assert_eq!((told.code, told.stderr.as_str()), (1, says), "{told:?}");
    let outcome = failing_job(1, &["after", "exit3", "1"], 1, &["the job has ranks 0 to 0"]);
    assert!(!outcome.stderr.contains("without mpjrun"), "{outcome:?}");
}

#[test]
fn a_setting_that_only_the_ranks_would_read_is_refused_before_they_start() {
    let outcome = job(2, &["well"]).options(["-x", "MPJ_EARLY_LIMIT=lots"]).expect(2);
    assert_eq!((outcome.stdout.as_str(), outcome.stderr.lines().count()), ("", 1), "{outcome:?}");
    outcome.says("mpjrun: MPJ_EARLY_LIMIT=lots is not known; legal values: a number of bytes");
}

/// Each of the two ranks sends 2 MiB.
#[test]
fn the_longest_eager_message_is_as_set() {
    for (longest, expected) in [("2M", ["2", "0"]), ("2097151", ["0", "2"])] {
        let job = job(2, &["reads"]).options(["--stats"]).env("MPJ_EAGER_UP_TO", longest);
        let stats = job.expect(0).stderr;
        let all = stats.lines().find_map(|line| line.split_once(" all ")).expect("a line of sums");
        let numbers: Vec<_> = all.1.split_whitespace().collect();
        assert_eq!([numbers[0], numbers[3]], expected, "{longest}: {stats}");
    }
}

/// A job whose ranks have all joined.
struct Joined {
    job: Running,
    ranks: Vec<u32>,
}

impl Joined {
    /// Starts `rank idle` through these words.
    fn idle(ranks: usize, through: &[&str]) -> Self {
        Self::start(ranks, through, "idle")
    }

    /// Starts ranks that do `what` through these words, and waits until each has printed its process number. The
    /// launcher inherits that SIGQUIT is ignored, as it does in the background of a script.
    fn start(ranks: usize, through: &[&str], what: &str) -> Self {
        let job = shell("trap '' QUIT; exec \"$0\" \"$@\"");
        let job = job.args(["-n", &ranks.to_string(), "--deadlock", "ignore"]);
        let job = job.args(through).args([RANK, what]).start();
        let ranks = job.numbers(ranks);
        Self { job, ranks }
    }

    /// Waits for the end, and until no rank runs.
    #[track_caller]
    fn expect(self, code: i32) -> Outcome {
        let outcome = self.job.expect(code);
        await_end(&self.ranks);
        outcome
    }

    /// Asks the launcher to end.
    #[track_caller]
    fn terminate(self) {
        self.job.signal(Signal::TERM);
        let said = self.expect(143).stderr;
        // The ranks are blocked, or about to be.
        let report = "mpjrun: ended by signal 15 (SIGTERM)\nmpjrun:   ";
        assert!(said.starts_with(report), "{said}");
    }

    /// Kills the launcher.
    #[track_caller]
    fn kill(self) {
        self.job.signal(Signal::KILL);
        assert_eq!(self.expect(137).stderr, "");
    }
}

/// Two ranks behind a script.
fn behind_scripts() -> Joined {
    Joined::idle(2, &["sh", "-c", "\"$0\" \"$@\"; exit $?"])
}

/// Names in `/dev/shm`.
fn shared_memory() -> BTreeSet<String> {
    let names = fs::read_dir("/dev/shm").expect("it is there");
    names.map(|entry| entry.expect("readable").file_name().to_string_lossy().into()).collect()
}

#[test]
fn ranks_end_with_a_launcher_that_is_killed() {
    let before = shared_memory();
    let joined = Joined::idle(3, &[]);
    assert_eq!(shared_memory(), before, "while the job runs");
    joined.kill();
    assert_eq!(shared_memory(), before);
}

#[test]
fn ranks_behind_a_script_end_with_a_launcher_that_is_killed() {
    behind_scripts().kill();
}

#[test]
fn ranks_behind_a_script_end_with_their_job() {
    behind_scripts().terminate();
}

#[test]
fn the_number_of_a_rank_behind_a_script_is_the_ranks_own() {
    let joined = behind_scripts();
    let victim = joined.ranks[0];
    signal(victim, Signal::KILL).expect("a rank of this test");
    joined.expect(137).says(&format!("(pid {victim}, "));
}

#[test]
fn a_rank_killed_from_outside_ends_the_job_and_leaves_nothing() {
    let before = shared_memory();
    let joined = Joined::idle(3, &[]);
    let victim = joined.ranks[1];
    signal(victim, Signal::KILL).expect("a rank of this test");
    let outcome = joined.expect(137).says("was killed by signal 9 (SIGKILL)");
    let outcome = outcome.says(&format!("(pid {victim}, "));
    // The other ranks are blocked, or about to be.
    assert!(outcome.stderr.lines().count() > 1, "{outcome:?}");
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
    let joined = Joined::idle(3, &[]);
    let cycle = "cycle: 0 waits for 1 (recv any tag) -> 1 waits for 2 (recv any tag) -> \
                 2 waits for 0 (recv any tag) -> 0\n";
    let told = joined.job.report_with(&[cycle, "not judged to be a deadlock: --deadlock ignore\n"]);
    assert!(told.contains("\nmpjrun:   2      recv        rank 0  any  world"), "{told}");
    joined.job.signal(Signal::TERM);
    joined.expect(143);
}

#[test]
fn a_job_that_was_asked_goes_on_and_ends_well() {
    let joined = Joined::start(2, &[], "late");
    let told = joined.job.report_with(&[
        "mpjrun:   0      barrier     others",
        "rank 1: joined, stopped by a signal; kill -CONT ",
        "barrier, call 0 on world: rank 0 has come; rank 1 has not (stopped by a signal)",
    ]);
    signal(number_behind("kill -CONT ", &told), Signal::CONT).expect("it is there");
    joined.expect(0);
}

/// The process whose number follows these words.
#[track_caller]
fn number_behind(words: &str, told: &str) -> u32 {
    let number = told.split_once(words).and_then(|(_, rest)| rest.split(' ').next());
    let pid = number.and_then(|number| number.parse().ok());
    pid.unwrap_or_else(|| panic!("no number behind {words:?} in {told}"))
}

#[test]
fn a_rank_that_does_not_wait_is_seen_to_stand_still_compute_or_sleep() {
    let joined = Joined::start(4, &[], "apart");
    let wake = "rank 1: joined, stopped by a signal; kill -CONT ";
    let told = joined.job.report_with(&[
        wake,
        "rank 2: joined, awake: computing",
        "rank 3: joined, asleep outside of MPI",
        "   0      recv ",
        "chain: 0 waits for 1 (recv any tag) -> 1 (stopped by a signal)\n",
    ]);
    let pid = number_behind(wake, &told);
    assert!(joined.ranks.contains(&pid), "{told}");
    signal(pid, Signal::CONT).expect("it is there");
    // It has gone on and ended the job.
    joined.expect(7);
}

#[test]
fn no_process_of_a_job_has_a_network_socket() {
    let joined = Joined::idle(3, &[]);
    let network = network_sockets();
    for pid in joined.ranks.iter().copied().chain([joined.job.pid()]) {
        let entries = fs::read_dir(format!("/proc/{pid}/fd")).expect("a process of this test");
        let inodes = entries.filter_map(|entry| fs::metadata(entry.ok()?.path()).ok());
        let found: Vec<u64> =
            inodes.map(|metadata| metadata.ino()).filter(|inode| network.contains(inode)).collect();
        assert!(found.is_empty(), "process {pid}: {found:?}");
    }
    joined.terminate();
}

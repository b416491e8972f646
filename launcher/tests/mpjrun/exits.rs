//! Exit codes and reports of `mpjrun`, with shell scripts for ranks.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::time::{Duration, Instant};

use mpj_harness::process::{await_end, find, is_suspended, runs, signal};
use mpj_harness::{Launch, Running, command, eventually, launch, mpjrun, mpjrun_path, shell};
use rustix::process::Signal;

use crate::{Mark, script};

/// Starts a job of two ranks, which print their numbers, and whose script has the path of a mark for `$0`.
#[track_caller]
fn start_pair(job: Launch, mark: &Mark) -> (Running, Vec<u32>) {
    let running = job.args([mark.path()]).start();
    let pids = running.numbers(2);
    (running, pids)
}

/// Prints its number, and a word when the test sets the mark.
const GOES: &str = "echo $$; until [ -e \"$0\" ]; do sleep 0.01; done; echo went";

/// Asserts that two ranks printed their numbers, and this afterwards.
#[track_caller]
fn assert_lines(stdout: &str, pids: &[u32], line: &str) {
    let lines: Vec<&str> = stdout.lines().collect();
    let others = lines.iter().filter(|line| line.parse().is_ok_and(|pid| pids.contains(&pid)));
    assert_eq!((lines.len(), others.count()), (4, 2), "{stdout}");
    assert_eq!(lines.iter().filter(|said| **said == line).count(), 2, "{stdout}");
}

#[test]
fn programs_that_know_nothing_of_jobs_succeed() {
    let done = mpjrun(["-n", "2", "true"]).expect(0);
    assert_eq!((done.stdout.as_str(), done.stderr.as_str()), ("", ""));
}

#[test]
fn the_most_ranks_there_can_be() {
    let done = script(256, "echo $MPJ_RANK").expect(0);
    let mut ranks: Vec<usize> =
        done.stdout.lines().map(|line| line.parse().expect("a rank")).collect();
    ranks.sort_unstable();
    assert!(ranks.into_iter().eq(0..256));
}

#[test]
fn the_first_failing_rank_in_time_gives_the_code() {
    script(3, "[ $MPJ_RANK = 2 ] && exit 5; trap 'exit 3' TERM; sleep 600 & wait")
        .expect(5)
        .says("mpjrun: rank 2 (pid ")
        .says("exited with code 5, ")
        .says("ranks 0-1: not joined, still running; ended by mpjrun\n");
}

#[test]
fn a_rank_killed_by_a_signal_is_128_more() {
    script(2, "[ $MPJ_RANK = 1 ] && kill -9 $$; sleep 600")
        .expect(137)
        .says("mpjrun: rank 1 (pid ")
        .says("was killed by signal 9 (SIGKILL), ")
        .says("rank 0: not joined, still running; ended by mpjrun\n");
}

#[test]
fn ranks_that_ignore_sigterm_are_gone_after_a_failure() {
    script(2, "trap '' TERM; [ $MPJ_RANK = 1 ] && exit 9; sleep 600 & wait; sleep 600").expect(9);
}

#[test]
fn output_before_a_failure_is_all_there_and_before_the_report() {
    let speaks = "echo said $MPJ_RANK >&2; [ $MPJ_RANK = 0 ] && { touch \"$0\"; exit 0; }; \
                  until [ -e \"$0\" ]; do sleep 0.01; done; exit 4";
    let mark = Mark::new();
    let done = script(2, speaks).args([mark.path()]).expect(4);
    let report = done.stderr.find("mpjrun: rank 1").expect("a report");
    for line in ["said 0\n", "said 1\n"] {
        assert!(done.stderr.find(line).expect("both spoke") < report, "{}", done.stderr);
    }
    assert!(done.stderr.contains("rank 0: not joined, "), "{}", done.stderr);
}

#[test]
fn a_rank_that_is_stopped_before_it_joins_is_told_as_such() {
    let stops = "[ $MPJ_RANK = 1 ] && { echo $$; kill -STOP $$; }; sleep 600";
    let running = script(2, stops).start();
    let stopped = running.numbers(1)[0];
    eventually("it is stopped", || is_suspended(stopped));
    running.signal(Signal::TERM);
    running
        .expect(143)
        .says("mpjrun:   rank 0: not joined, still running; ended by mpjrun\n")
        .says("mpjrun:   rank 1: not joined, stopped by a signal; ended by mpjrun\n");
}

#[test]
fn a_timeout_is_124_and_tells_who_still_ran() {
    script(2, "exec sleep 600")
        .options(["--timeout", "1"])
        .expect(124)
        .says("mpjrun: the job still ran after 1 s, its time limit\n")
        .says("ranks 0-1: not joined, still running; ended by mpjrun\n");
}

#[test]
fn a_job_within_its_time_is_left_alone() {
    launch("true").ranks(2).options(["--timeout", "600"]).expect(0);
}

#[test]
fn bad_command_lines_are_one_clear_message() {
    let cases: [(&[&str], i32, &str); 7] = [
        (&[], 2, "<PROGRAM>"),
        (&["-n", "0", "true"], 2, "a job has 1 to 1048576 ranks"),
        (&["-n", "2", "no-such-program"], 127, "mpjrun: program not found: no-such-program"),
        (&["-n", "2", "./no-such-program"], 127, "mpjrun: program not found: ./no-such-program"),
        (&["-n", "2", "./Cargo.toml"], 126, "mpjrun: cannot execute ./Cargo.toml: permission"),
        (&["-n", "2", "/"], 126, "mpjrun: cannot execute /: not a file"),
        (&["--wdir", "/no/such", "true"], 2, "mpjrun: --wdir /no/such: no such folder"),
    ];
    for (words, code, says) in cases {
        let done = mpjrun(words).expect(code).says(says);
        assert_eq!(done.stdout, "", "{words:?}");
    }
}

#[test]
fn an_error_that_cannot_be_printed_keeps_its_exit_code() {
    let cargo_mpj = env!("CARGO_BIN_EXE_cargo-mpj").into();
    for (program, code) in [(mpjrun_path(), 127), (cargo_mpj, 125)] {
        let words = "\"$0\" mpj run -x MPJ_WAIT=sometimes 2> /dev/full";
        let run = command("sh").args(["-c", words]).args([program]);
        run.env("CARGO", "/absent").expect(code);
    }
}

#[test]
fn a_script_whose_interpreter_is_missing_is_126() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("script");
    std::fs::write(&path, "#!/no/such/interpreter\n").expect("a file");
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).expect("its mode");
    mpjrun(["-n".as_ref(), "2".as_ref(), path.as_os_str()])
        .expect(126)
        .says("the interpreter it asks for is not there");
}

#[test]
fn an_illegal_setting_is_refused_once_before_any_rank_starts() {
    let refusal = "mpjrun: MPJ_WAIT=sometimes is not known; legal values: spin, adaptive, block\n";
    let started = ["-n", "2", "echo", "started"];
    let illegal = ["-x", "MPJ_WAIT=sometimes"];
    let second = [&started[..], &[":"], &illegal, &started].concat();
    for job in [
        mpjrun(started).env("MPJ_WAIT", "sometimes"),
        mpjrun(illegal).args(started),
        mpjrun(second),
        mpjrun(["--dry-run"]).args(started).env("MPJ_WAIT", "sometimes"),
    ] {
        let done = job.expect(2);
        assert_eq!((done.stdout.as_str(), done.stderr.as_str()), ("", refusal));
    }
}

#[test]
fn an_illegal_setting_that_an_export_replaces_reaches_no_rank() {
    for legal in ["MPJ_WAIT=block", "MPJ_WAIT="] {
        let job = launch("true").ranks(2).env("MPJ_WAIT", "sometimes");
        job.options(["-x", legal]).expect_quiet();
    }
}

/// A job of two ranks that heeds these signals: whoever runs the tests may ignore them, which the launcher would then do
/// as well.
fn heeding(script: &str) -> Launch {
    let env = command("env").args(["--default-signal=TERM,INT,HUP"]).args([mpjrun_path()]);
    env.args(["-n", "2", "sh", "-c", script])
}

#[test]
fn sigterm_and_sigint_are_passed_on_as_sigterm() {
    for (signal, code) in [(Signal::TERM, 143), (Signal::INT, 130), (Signal::HUP, 129)] {
        let script = "trap 'echo ended; exit 0' TERM; echo $$; while :; do sleep 0.01; done";
        let (running, pids) = start_pair(heeding(script), &Mark::new());
        running.signal(signal);
        let done = running
            .expect(code)
            .says("mpjrun: ended by signal ")
            .says("mpjrun:   ranks 0-1: not joined, still running; ended by mpjrun\n");
        assert_lines(&done.stdout, &pids, "ended");
        assert!(!pids.into_iter().any(runs));
    }
}

/// A job that is asked to end for the second time does so before one that was asked before it, for the first time: that
/// one has its grace.
#[test]
fn a_second_signal_kills_at_once() {
    let script = "trap 'echo deaf' TERM; echo $$; while :; do sleep 0.01; done";
    let (running, pids) = start_pair(heeding(script), &Mark::new());
    let (other, others) = start_pair(heeding(script), &Mark::new());
    let is_told = |job: &Running| job.stdout().matches("deaf").count() == 2;
    // `timeout` sends two, to the launcher and to its group.
    running.signal(Signal::INT);
    running.signal(Signal::TERM);
    eventually("both ranks are told", || is_told(&running));
    assert!(pids.iter().copied().all(runs), "there is a grace");
    // Whatever comes within a tenth of a second is one request.
    std::thread::sleep(Duration::from_millis(200));
    other.signal(Signal::INT);
    running.signal(Signal::INT);
    let done = running.expect(130);
    assert!(others.into_iter().any(runs), "it has its grace");
    assert_lines(&done.stdout, &pids, "deaf");
    assert!(!pids.into_iter().any(runs));
    other.expect(130);
}

#[test]
fn the_ranks_are_suspended_and_continued_with_the_launcher() {
    // A shell that is stopped while it starts a program does not count as stopped, so it starts none.
    let script = "echo $$; until [ -e \"$0\" ]; do :; done; echo went";
    // In a group of its own, as a shell would have it, so that somebody watches over it.
    let words = ["-n", "2", "--timeout", "4", "sh", "-c", script];
    let job = mpjrun(words).set(|command| command.process_group(0));
    let (mark, start) = (Mark::new(), Instant::now());
    let (running, ranks) = start_pair(job, &mark);
    let mut all = ranks.clone();
    all.push(running.pid());
    running.signal(Signal::TSTP);
    eventually("all are suspended", || all.iter().copied().all(is_suspended));
    // Longer than the job may run, which this does not count for.
    let pause = Instant::now();
    std::thread::sleep(Duration::from_millis(4200));
    let pause = pause.elapsed();
    running.signal(Signal::CONT);
    eventually("all go on", || !all.iter().copied().any(is_suspended));
    mark.set();
    let done = running.finish();
    if done.code == 124 {
        // A machine may be so slow that the rest takes as long.
        return assert!(start.elapsed() - pause > Duration::from_secs(4), "{done:?}");
    }
    assert_lines(&done.expect(0).stdout, &ranks, "went");
}

#[test]
fn a_launcher_that_nobody_could_continue_is_not_suspended() {
    // The leader of a session has nobody in it who watches over its group.
    let alone = command("setsid").args(["--wait"]).args([mpjrun_path()]);
    let mark = Mark::new();
    let (running, ranks) = start_pair(alone.args(["-n", "2", "sh", "-c", GOES]), &mark);
    let launcher = find(ranks[0]).expect("it runs").parent;
    signal(launcher, Signal::TSTP).expect("it runs");
    let note = "mpjrun: not suspended, since no shell could continue it\n";
    eventually("it is told", || running.stderr() == note);
    assert!(!ranks.iter().copied().any(is_suspended));
    mark.set();
    let done = running.expect(0);
    assert_lines(&done.stdout, &ranks, "went");
    assert_eq!(done.stderr, note);
}

#[test]
fn user_signals_reach_every_rank() {
    for (signal, name) in [(Signal::USR1, "USR1"), (Signal::USR2, "USR2")] {
        let got =
            format!("trap 'echo got {name}; exit 0' {name}; echo $$; while :; do sleep 0.01; done");
        let (running, pids) = start_pair(script(2, &got), &Mark::new());
        running.signal(signal);
        assert_lines(&running.expect(0).stdout, &pids, &format!("got {name}"));
    }
}

#[test]
fn a_rank_that_does_not_expect_a_user_signal_dies_of_it() {
    let (running, _) = start_pair(script(2, "echo $$; exec sleep 600"), &Mark::new());
    running.signal(Signal::USR1);
    running.expect(138).says("was killed by signal 10 (SIGUSR1)");
}

const FIRST_FAILS: &str = "[ $MPJ_RANK = 0 ] && exit 7; until [ -e \"$0\" ]; do sleep 0.01; done; \
                           [ $MPJ_RANK = 1 ] && exit 9; echo done";

#[test]
fn a_failing_rank_is_kept_for_the_report_while_the_others_go_on() {
    let mark = Mark::new();
    let job = script(3, FIRST_FAILS).options(["--on-failure", "keep"]).args([mark.path()]);
    let running = job.start();
    let is_told = |cause: &str| running.stderr().contains(cause);
    eventually("the first is told", || is_told("exited with code 7, "));
    mark.set();
    let done = running.expect(7);
    assert_eq!(done.stdout, "done\n");
    let causes: Vec<&str> = done.stderr.lines().filter(|line| line.contains("(pid ")).collect();
    let [first, second, last] = causes[..] else { panic!("{}", done.stderr) };
    assert!(first.starts_with("mpjrun: rank 0 ") && first.contains("exited with code 7, "));
    assert!(second.starts_with("mpjrun: rank 1 ") && second.contains("exited with code 9, "));
    assert_eq!(last, first, "the report");
    let note = "mpjrun: the other ranks go on (--on-failure keep)\n";
    assert_eq!(done.stderr.matches(note).count(), 1, "{}", done.stderr);
    done.says("rank 1: not joined, exited with code 9\n")
        .says("rank 2: not joined, exited with code 0\n");
}

#[test]
fn a_job_that_keeps_its_ranks_starts_them_all() {
    let starts = "[ $MPJ_RANK = 0 ] && exit 3; echo started; exec sleep 600";
    let running = script(40, starts).options(["--on-failure", "keep"]).start();
    eventually("39 ranks run", || running.stdout() == "started\n".repeat(39));
    running.signal(Signal::TERM);
    running.expect(143);
}

#[test]
fn a_job_that_keeps_its_ranks_keeps_its_time() {
    let keeps = ["--on-failure", "keep", "--timeout", "1"];
    script(2, "[ $MPJ_RANK = 0 ] && exit 3; exec sleep 600").options(keeps).expect(124);
}

#[test]
fn an_ended_rank_keeps_its_number_until_the_job_is_over() {
    let ends = format!("[ $MPJ_RANK = 1 ] && {{ echo $$; exit 3; }}; {GOES}");
    let mark = Mark::new();
    let (running, pids) = start_pair(script(2, &ends).options(["--on-failure", "keep"]), &mark);
    let exists = |pid: u32| find(pid).is_some();
    eventually("the end is told", || running.stderr().contains("exited with code 3"));
    assert!(pids.iter().copied().all(exists), "the number could be somebody else's");
    mark.set();
    running.expect(3);
    assert!(!pids.into_iter().any(exists), "a zombie is left");
}

#[test]
fn a_caller_that_ignores_its_children_does_not_confuse_the_launcher() {
    shell("trap '' CHLD; exec \"$0\" -n 2 sh -c 'exit 6'").expect(6);
}

#[test]
fn a_signal_that_the_caller_ignores_is_ignored() {
    let ignoring = "trap '' HUP INT; exec \"$0\" -n 2 sh -c \"$1\" \"$2\"";
    let mark = Mark::new();
    let got = format!("trap 'echo got' USR1; {GOES}");
    let (running, pids) = start_pair(shell(ignoring).args([&got]), &mark);
    running.signal(Signal::HUP);
    running.signal(Signal::INT);
    // Signals that wait together are taken in the order of their numbers, so the others come before.
    running.signal(Signal::USR1);
    eventually("the last signal has come", || running.stdout().matches("got").count() == 2);
    mark.set();
    let done = running.expect(0);
    assert_lines(&done.stdout.replace("got\n", ""), &pids, "went");
}

/// Shells have the jobs that scripts start in the background ignore SIGINT. SIGTERM ends them.
#[test]
fn a_job_in_the_background_of_a_script_ignores_sigint_and_ends_by_sigterm() {
    let run = "\"$0\" -n 2 sh -c 'echo $$; exec sleep 600' & echo $! >&2; wait $!; echo $? >&2";
    let running = shell(run).start();
    let ranks = running.numbers(2);
    let launcher = running.stderr().trim().parse().expect("the number of mpjrun");
    // Signals that wait together are taken in the order of their numbers.
    for one in [Signal::INT, Signal::TERM] {
        signal(launcher, one).expect("it runs");
    }
    let done = running.expect(0).says("mpjrun: ended by signal 15 (SIGTERM)\n");
    assert!(done.stderr.ends_with("\n143\n"), "{done:?}");
    await_end(&ranks);
}

#[test]
fn a_rank_that_fails_while_others_are_started_is_the_first_one() {
    let mark = Mark::new();
    // Rank 1 fails well after rank 40 has ended: then the launcher, which looks after each start, has seen that.
    let ranks = format!(
        "case $MPJ_RANK in 1) until [ -e {0} ]; do sleep 0.01; done; \
         while grep -q '^State:.[^Z]' /proc/$(cat {0})/status; do sleep 0.01; done; sleep 1; exit 8;; \
         40) echo $$ > {0}.new; mv {0}.new {0}; exit 9;; *) exec sleep 600;; esac",
        mark.path().display(),
    );
    script(256, &ranks).expect(9).says("mpjrun: rank 40 (pid ");
}

#[test]
fn no_rank_is_started_after_one_has_failed() {
    let done = script(256, "[ $MPJ_RANK = 0 ] && exit 9; exec sleep 600").expect(9);
    assert!(done.stderr.ends_with("-255: not started\n"), "{}", done.stderr);
}

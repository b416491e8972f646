//! Exit codes and reports of `mpjrun`, with shell scripts for ranks.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

use crate::support::{
    MPJRUN, command, eventually, is_suspended, mpjrun, pids_in, runs, script, start,
};
use rustix::process::{Pid, Signal, kill_process};

#[test]
fn programs_that_know_nothing_of_jobs_succeed() {
    let done = mpjrun(["-n", "2", "true"]).assert_code(0);
    assert_eq!((done.text().as_str(), done.err.as_str()), ("", ""));
}

#[test]
fn the_most_ranks_there_can_be() {
    let done = script(256, "echo $MPJ_RANK").assert_code(0);
    let mut ranks: Vec<usize> =
        done.text().lines().map(|line| line.parse().expect("a rank")).collect();
    ranks.sort_unstable();
    assert!(ranks.into_iter().eq(0..256));
}

#[test]
fn the_first_failing_rank_in_time_gives_the_code() {
    script(3, "case $MPJ_RANK in 0) sleep 1; exit 3;; 2) exit 5;; *) sleep 60;; esac")
        .assert_code(5)
        .assert_within_a_second()
        .assert_says("mpjrun: rank 2 (pid ")
        .assert_says("exited with code 5, 0.")
        .assert_says("ranks 0-1: not joined, still running; ended by mpjrun\n");
}

#[test]
fn a_rank_killed_by_a_signal_is_128_more() {
    script(2, "[ $MPJ_RANK = 1 ] && kill -9 $$; sleep 60")
        .assert_code(137)
        .assert_within_a_second()
        .assert_says("mpjrun: rank 1 (pid ")
        .assert_says("was killed by signal 9 (SIGKILL), 0.")
        .assert_says("rank 0: not joined, still running; ended by mpjrun\n");
}

#[test]
fn ranks_that_ignore_sigterm_are_gone_within_a_second_of_a_failure() {
    script(2, "trap '' TERM; [ $MPJ_RANK = 1 ] && exit 9; sleep 60 & wait; sleep 60")
        .assert_code(9)
        .assert_within_a_second();
}

#[test]
fn output_before_a_failure_is_all_there_and_before_the_report() {
    let folder = tempfile::tempdir().expect("a folder");
    let mark = folder.path().join("mark");
    let script = "echo said $MPJ_RANK >&2; [ $MPJ_RANK = 0 ] && { touch \"$0\"; exit 0; }; \
                  until [ -e \"$0\" ]; do sleep 0.01; done; exit 4";
    let mark = mark.to_str().expect("text");
    let done = mpjrun(["-n", "2", "sh", "-c", script, mark]).assert_code(4);
    let report = done.err.find("mpjrun: rank 1").expect("a report");
    for line in ["said 0\n", "said 1\n"] {
        assert!(done.err.find(line).expect("both spoke") < report, "{}", done.err);
    }
    assert!(done.err.contains("rank 0: not joined, "), "{}", done.err);
}

#[test]
fn a_rank_that_is_stopped_before_it_joins_is_told_as_such() {
    let script = "[ $MPJ_RANK = 1 ] && kill -STOP $$; sleep 60";
    mpjrun(["-n", "2", "--timeout", "0.5", "sh", "-c", script])
        .assert_code(124)
        .assert_says("mpjrun:   rank 0: not joined, still running; ended by mpjrun\n")
        .assert_says("mpjrun:   rank 1: not joined, stopped by a signal; ended by mpjrun\n");
}

#[test]
fn a_timeout_is_124_and_tells_who_still_ran() {
    let words = ["-n", "2", "--timeout", "0.2", "sh", "-c"];
    let done = mpjrun(words.into_iter().chain(["[ $MPJ_RANK = 1 ] && exit 0; sleep 60"]));
    done.assert_code(124)
        .assert_within_a_second()
        .assert_says("mpjrun: the job still ran after 0.2 s, its time limit\n")
        .assert_says("rank 0: not joined, still running; ended by mpjrun\n")
        .assert_says("rank 1: not joined, exited with code 0\n");
}

#[test]
fn a_job_within_its_time_is_left_alone() {
    let done = mpjrun(["-n", "2", "--timeout", "25", "true"]).assert_code(0);
    assert!(done.took < Duration::from_secs(20));
}

#[test]
fn bad_command_lines_are_one_clear_message() {
    let cases: [(&[&str], i32, &str); 10] = [
        (&[], 2, "<PROGRAM>"),
        (&["-n", "0", "true"], 2, "a job has 1 to 256 ranks"),
        (&["-n", "100000", "true"], 2, "a job has 1 to 256 ranks"),
        (&["--bakend", "eager", "true"], 2, "a similar argument exists: '--backend'"),
        (&["--backend", "fast", "true"], 2, "auto, eager, rendezvous"),
        (&["-n", "2", "no-such-program"], 127, "mpjrun: program not found: no-such-program"),
        (&["-n", "2", "./no-such-program"], 127, "mpjrun: program not found: ./no-such-program"),
        (&["-n", "2", "./Cargo.toml"], 126, "mpjrun: cannot execute ./Cargo.toml: permission"),
        (&["-n", "2", "/"], 126, "mpjrun: cannot execute /: not a file"),
        (&["--wdir", "/no/such", "true"], 2, "mpjrun: --wdir /no/such: no such folder"),
    ];
    for (words, code, says) in cases {
        let done = mpjrun(words).assert_code(code).assert_within_a_second().assert_says(says);
        assert_eq!(done.text(), "", "{words:?}");
    }
}

#[test]
fn an_error_that_cannot_be_printed_keeps_its_exit_code() {
    for program in [MPJRUN, env!("CARGO_BIN_EXE_cargo-mpj")] {
        let words = "\"$0\" mpj run -x MPJ_WAIT=sometimes 2> /dev/full";
        start(Command::new("sh").args(["-c", words, program]).env("CARGO", "/absent"))
            .finish()
            .assert_code(if program == MPJRUN { 127 } else { 125 });
    }
}

#[test]
fn a_script_whose_interpreter_is_missing_is_126() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("script");
    std::fs::write(&path, "#!/no/such/interpreter\n").expect("a file");
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).expect("its mode");
    mpjrun(["-n".as_ref(), "2".as_ref(), path.as_os_str()])
        .assert_code(126)
        .assert_within_a_second()
        .assert_says("the interpreter it asks for is not there");
}

#[test]
fn an_unknown_setting_is_refused_once_for_all_ranks() {
    let mut command = command(["-n", "4", "true"]);
    let done = start(command.env("MPJ_WAIT", "sometimes")).finish().assert_code(2);
    assert_eq!(
        done.err,
        "mpjrun: MPJ_WAIT=sometimes is not known; legal values: spin, adaptive, block\n"
    );
}

#[test]
fn sigterm_and_sigint_are_passed_on_as_sigterm() {
    for (signal, code) in [(Signal::TERM, 143), (Signal::INT, 130), (Signal::HUP, 129)] {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("pids");
        let script = "trap 'echo ended $MPJ_RANK; exit 0' TERM; echo $$ >> \"$0\"; \
                      while :; do sleep 0.01; done";
        let file_word = file.to_str().expect("text");
        let words = ["-n", "2", "sh", "-c", script, file_word];
        // Whoever runs the tests may ignore signals, which the launcher would then do as well.
        let mut heeding = std::process::Command::new("env");
        heeding.arg("--default-signal=TERM,INT,HUP").arg(MPJRUN).args(words);
        let running = start(&mut heeding);
        let pids = pids_in(&file, 2);
        running.signal(signal);
        let done = running
            .finish()
            .assert_code(code)
            .assert_says("mpjrun: ended by signal ")
            .assert_says("mpjrun:   ranks 0-1: not joined, still running; ended by mpjrun\n");
        assert_eq!(done.sorted_lines(), ["ended 0", "ended 1"]);
        assert!(!pids.into_iter().any(runs));
    }
}

#[test]
fn a_second_signal_kills_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("pids");
    let script = "trap 'echo deaf' TERM; echo $$ >> \"$0\"; while :; do sleep 0.01; done";
    let file_word = file.to_str().expect("text");
    // Whoever runs the tests may ignore Ctrl-C, which the launcher would then do as well.
    let mut heeding = std::process::Command::new("env");
    let words = ["-n", "2", "sh", "-c", script, file_word];
    let running = start(heeding.args(["--default-signal=INT,TERM", MPJRUN]).args(words));
    let pids = pids_in(&file, 2);
    // `timeout` sends two, to the launcher and to its group.
    running.signal(Signal::INT);
    running.signal(Signal::TERM);
    std::thread::sleep(Duration::from_millis(300));
    assert!(pids.iter().copied().all(runs), "there are two seconds of grace");
    running.signal(Signal::INT);
    let done = running.finish().assert_code(130);
    assert_eq!(done.sorted_lines(), ["deaf", "deaf"]);
    assert!(done.took < Duration::from_secs(2), "{done:?}");
    assert!(!pids.into_iter().any(runs));
}

#[test]
fn the_ranks_are_suspended_and_continued_with_the_launcher() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("pids");
    // A shell that is stopped while it starts a program does not count as stopped, so it starts none.
    let script = "echo $$ >> \"$0\"; until [ -e \"$0.go\" ]; do :; done; echo went";
    let file_word = file.to_str().expect("text");
    // In a group of its own, as a shell would have it, so that somebody watches over it.
    let words = ["-n", "2", "--timeout", "4", "sh", "-c", script, file_word];
    let running = start(command(words).process_group(0));
    let mut all = pids_in(&file, 2);
    all.push(running.pid());
    running.signal(Signal::TSTP);
    eventually("all are suspended", || all.iter().copied().all(is_suspended));
    // Longer than the job may run, which this does not count for.
    std::thread::sleep(Duration::from_millis(4200));
    running.signal(Signal::CONT);
    eventually("all go on", || !all.iter().copied().any(is_suspended));
    std::fs::write(folder.path().join("pids.go"), "").expect("a file");
    assert_eq!(running.finish().assert_code(0).text(), "went\nwent\n");
}

#[test]
fn a_launcher_that_nobody_could_continue_is_not_suspended() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("pids");
    let script = "echo $$ >> \"$0\"; until [ -e \"$0.go\" ]; do sleep 0.01; done; echo went";
    // The leader of a session has nobody in it who watches over its group.
    let mut alone = std::process::Command::new("setsid");
    alone.args(["--wait", MPJRUN, "-n", "2", "sh", "-c", script]).arg(&file);
    let running = start(&mut alone);
    let ranks = pids_in(&file, 2);
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", ranks[0])).expect("it runs");
    let launcher = stat.rsplit(") ").next().and_then(|fields| fields.split(' ').nth(1));
    let launcher = launcher.and_then(|pid| pid.parse().ok()).and_then(Pid::from_raw);
    kill_process(launcher.expect("the parent"), Signal::TSTP).expect("it runs");
    std::thread::sleep(Duration::from_millis(100));
    assert!(!ranks.into_iter().any(is_suspended));
    std::fs::write(folder.path().join("pids.go"), "").expect("a file");
    let done = running.finish().assert_code(0);
    assert_eq!(done.text(), "went\nwent\n");
    assert_eq!(done.err, "mpjrun: not suspended, since no shell could continue it\n");
}

#[test]
fn user_signals_reach_every_rank() {
    for (signal, name) in [(Signal::USR1, "USR1"), (Signal::USR2, "USR2")] {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("pids");
        let script = format!(
            "trap 'echo got {name}; exit 0' {name}; echo $$ >> \"$0\"; while :; do sleep 0.01; done"
        );
        let file_word = file.to_str().expect("text");
        let running = start(&mut command(["-n", "2", "sh", "-c", &script, file_word]));
        pids_in(&file, 2);
        running.signal(signal);
        let done = running.finish().assert_code(0);
        assert_eq!(done.text(), format!("got {name}\n").repeat(2));
    }
}

#[test]
fn a_rank_that_does_not_expect_a_user_signal_dies_of_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("pids");
    let file_word = file.to_str().expect("text");
    let script = "echo $$ >> \"$0\"; exec sleep 60";
    let running = start(&mut command(["-n", "2", "sh", "-c", script, file_word]));
    pids_in(&file, 2);
    running.signal(Signal::USR1);
    running.finish().assert_code(138).assert_says("was killed by signal 10 (SIGUSR1)");
}

const FIRST_FAILS: &str = "case $MPJ_RANK in 0) exit 7;; \
                           1) until [ -e \"$0\" ]; do sleep 0.01; done; exit 9;; \
                           *) sleep 0.3; touch \"$0\"; sleep 0.3; echo done; exit 0;; esac";

#[test]
fn a_failing_rank_is_kept_for_the_report_while_the_others_go_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let mark = folder.path().join("mark");
    let mark = mark.to_str().expect("text");
    let words = ["-n", "3", "--on-failure", "keep", "sh", "-c", FIRST_FAILS, mark];
    let done = mpjrun(words).assert_code(7);
    assert_eq!(done.text(), "done\n");
    let causes: Vec<&str> = done.err.lines().filter(|line| line.contains("(pid ")).collect();
    let [first, second, last] = causes[..] else { panic!("{}", done.err) };
    assert!(first.starts_with("mpjrun: rank 0 ") && first.contains("exited with code 7, "));
    assert!(second.starts_with("mpjrun: rank 1 ") && second.contains("exited with code 9, "));
    assert_eq!(last, first, "the report");
    let note = "mpjrun: the other ranks go on (--on-failure keep)\n";
    assert_eq!(done.err.matches(note).count(), 1, "{}", done.err);
    done.assert_says("rank 1: not joined, exited with code 9\n")
        .assert_says("rank 2: not joined, exited with code 0\n");
}

#[test]
fn a_job_that_keeps_its_ranks_starts_them_all_and_keeps_its_time() {
    let script = "[ $MPJ_RANK = 0 ] && exit 3; echo started; exec sleep 60";
    let words = ["-n", "40", "--on-failure", "keep", "--timeout", "1.5", "sh", "-c", script];
    let done = mpjrun(words).assert_code(124);
    assert_eq!(done.text(), "started\n".repeat(39));
}

#[test]
fn an_ended_rank_keeps_its_number_until_the_job_is_over() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("pids");
    let script = "echo $$ >> \"$0\"; [ $MPJ_RANK = 1 ] && exit 3; \
                  until [ -e \"$0.go\" ]; do sleep 0.01; done";
    let file_word = file.to_str().expect("text");
    let words = ["-n", "2", "--on-failure", "keep", "sh", "-c", script, file_word];
    let running = start(&mut command(words));
    let pids = pids_in(&file, 2);
    let exists = |pid: u32| std::path::Path::new(&format!("/proc/{pid}")).exists();
    eventually("one has ended", || !pids.iter().copied().all(runs));
    std::thread::sleep(Duration::from_millis(300));
    assert!(pids.iter().copied().all(exists), "the number could be somebody else's");
    std::fs::write(folder.path().join("pids.go"), "").expect("a file");
    running.finish().assert_code(3);
    assert!(!pids.into_iter().any(exists), "a zombie is left");
}

#[test]
fn a_caller_that_ignores_its_children_does_not_confuse_the_launcher() {
    let run = "trap '' CHLD; exec \"$0\" -n 2 sh -c 'exit 6'";
    let mut shell = std::process::Command::new("sh");
    start(shell.args(["-c", run, MPJRUN])).finish().assert_code(6);
}

#[test]
fn a_signal_that_the_caller_ignores_is_ignored() {
    let ignoring = "trap '' HUP INT; exec \"$0\" -n 2 sh -c \"$1\" \"$2\"";
    let script = "echo $$ >> \"$0\"; until [ -e \"$0.go\" ]; do sleep 0.01; done; echo went";
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("pids");
    let mut shell = std::process::Command::new("sh");
    let running = start(shell.args(["-c", ignoring, MPJRUN, script]).arg(&file));
    pids_in(&file, 2);
    running.signal(Signal::HUP);
    running.signal(Signal::INT);
    std::thread::sleep(Duration::from_millis(100));
    std::fs::write(folder.path().join("pids.go"), "").expect("a file");
    assert_eq!(running.finish().assert_code(0).text(), "went\nwent\n");
}

#[test]
fn a_rank_that_fails_while_others_are_started_is_the_first_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let mark = folder.path().join("failed");
    // Rank 1 fails well after rank 40, however long it takes to start that.
    let ranks = format!(
        "case $MPJ_RANK in 1) until [ -e {0} ]; do sleep 0.01; done; sleep 1; exit 8;; \
         40) touch {0}; exit 9;; *) exec sleep 60;; esac",
        mark.display(),
    );
    script(256, &ranks).assert_code(9).assert_says("mpjrun: rank 40 (pid ");
}

#[test]
fn no_rank_is_started_after_one_has_failed() {
    let done = script(256, "[ $MPJ_RANK = 0 ] && exit 9; exec sleep 60").assert_code(9);
    assert!(done.err.ends_with("-255: not started\n"), "{}", done.err);
}

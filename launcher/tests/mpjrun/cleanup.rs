//! `mpjrun` leaves no process and no file behind, however the job ends.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::support::{
    MPJRUN, Running, command, eventually, is_suspended, pids_in, runs, script, start,
};
use rustix::process::{Pid, Signal, kill_process};

/// Starts a job of `script`s that write the numbers of their processes to a file, `count` in all.
fn start_and_list(ranks: &str, script: &str, count: usize) -> (Running, Vec<u32>) {
    start_listing(&mut command(["-n", ranks, "sh", "-c", script]), count)
}

/// Starts `command` with such a file for its last word.
fn start_listing(command: &mut Command, count: usize) -> (Running, Vec<u32>) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("pids");
    let running = start(command.arg(&file));
    let pids = pids_in(&file, count);
    (running, pids)
}

#[track_caller]
fn assert_gone(pids: Vec<u32>) {
    eventually("every process of the job is gone", || !pids.iter().copied().any(runs));
}

/// Ends a process that outlives its job.
#[track_caller]
fn end(pid: u32) {
    let process = Pid::from_raw(pid as i32).expect("a process number");
    kill_process(process, Signal::KILL).expect("it runs");
}

const WITH_CHILD: &str = "sleep 600 & echo $! >> \"$0\"; echo $$ >> \"$0\"";

#[test]
fn what_a_rank_started_goes_when_the_rank_ends() {
    let (running, pids) = start_and_list("2", WITH_CHILD, 4);
    let done = running.finish().assert_code(0);
    assert!(done.took < Duration::from_secs(5), "children held the launcher: {done:?}");
    assert_gone(pids);
}

#[test]
fn what_a_rank_started_goes_when_the_job_fails() {
    let failing = format!("{WITH_CHILD}; [ $MPJ_RANK = 1 ] && sleep 0.2 && exit 3; wait");
    let (running, pids) = start_and_list("2", &failing, 4);
    running.finish().assert_code(3);
    assert_gone(pids);
}

#[test]
fn what_a_rank_started_goes_when_the_launcher_is_asked_to_end() {
    let (running, pids) = start_and_list("2", &format!("{WITH_CHILD}; wait"), 4);
    running.signal(Signal::TERM);
    running.finish().assert_code(143);
    assert_gone(pids);
}

#[test]
fn a_daemon_ends_with_its_job_and_that_is_said() {
    let daemon = "setsid sleep 600 & echo $! >> \"$0\"; \
        until [ $(cut -d' ' -f6 /proc/$!/stat) = $! ]; do sleep 0.01; done; echo said";
    let (running, pids) = start_and_list("1", daemon, 1);
    let done = running.finish().assert_code(0);
    assert_eq!(done.text(), "said\n");
    assert!(done.took < Duration::from_secs(5), "{done:?}");
    let note =
        format!("mpjrun: ended daemons that ranks had started: sleep (process {})\n", pids[0]);
    assert_eq!(done.err, note);
    assert!(!runs(pids[0]), "the launcher has waited for it");
}

#[test]
fn the_guard_of_a_launcher_inside_a_rank_is_no_daemon() {
    let inner = "\"$1\" -n 1 sh -c 'echo $PPID >> \"$0\"; exec sleep 60' \"$0\" & \
        until [ -e \"$0.go\" ]; do sleep 0.01; done";
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("pids");
    let mut command = command(["-n", "1", "sh", "-c", inner]);
    let running = start(command.arg(&file).arg(MPJRUN));
    let launcher = pids_in(&file, 1)[0];
    let guard = || children(launcher).into_iter().find(|pid| is_called(*pid, "mpj-guard"));
    eventually("there is a guard", || guard().is_some());
    let guard = guard().expect("it stays");
    // So that it is still there when its launcher has been killed.
    let process = Pid::from_raw(guard as i32).expect("a process number");
    kill_process(process, Signal::STOP).expect("it runs");
    fs::write(folder.path().join("pids.go"), "").expect("a file");
    let done = running.finish().assert_code(0);
    assert!(done.err.is_empty() && !runs(guard), "{done:?}");
}

/// Whether a process has this name.
fn is_called(pid: u32, name: &str) -> bool {
    fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|found| found.trim_end() == name)
}

/// A command under `timeout`, which makes a group of its own, as it is in many a script.
const UNDER_TIMEOUT: &str = "echo $$ >> \"$0\"; trap : USR1; \
    timeout 60 sh -c 'echo $PPID >> \"$0\"; echo $$ >> \"$0\"; exec sleep 60' \"$0\"; exit $?";

#[test]
fn a_command_under_timeout_goes_when_the_launcher_is_asked_to_end() {
    let (running, pids) = start_and_list("2", UNDER_TIMEOUT, 6);
    running.signal(Signal::TERM);
    running.finish().assert_code(143);
    assert_gone(pids);
}

#[test]
fn a_command_under_timeout_that_ignores_sigterm_goes_when_the_job_fails() {
    let failing =
        format!("[ $MPJ_RANK = 1 ] && sleep 0.2 && exit 3; trap '' TERM; {UNDER_TIMEOUT}");
    let (running, pids) = start_and_list("2", &failing, 3);
    running.finish().assert_code(3);
    assert_gone(pids);
}

#[test]
fn a_command_under_timeout_gets_the_signals_of_its_rank() {
    let (running, pids) = start_and_list("1", UNDER_TIMEOUT, 3);
    running.signal(Signal::USR1);
    // The script traps it, and ends with the status of the command.
    running.finish().assert_code(138);
    assert_gone(pids);
}

#[test]
fn a_command_under_timeout_is_suspended_and_continued_with_its_rank() {
    // In a group of its own, as a shell would have it, so that somebody watches over it.
    let words = ["-n", "1", "sh", "-c", UNDER_TIMEOUT];
    let (running, pids) = start_listing(command(words).process_group(0), 3);
    running.signal(Signal::TSTP);
    eventually("all are suspended", || pids.iter().copied().all(is_suspended));
    eventually("the launcher too", || is_suspended(running.pid()));
    running.signal(Signal::CONT);
    eventually("all go on", || !pids.iter().copied().any(is_suspended));
    running.signal(Signal::TERM);
    running.finish().assert_code(143);
    assert_gone(pids);
}

#[test]
fn a_job_of_a_shell_with_job_control_goes_when_the_job_fails() {
    if Command::new("bash").args(["-c", ":"]).status().is_err() {
        return;
    }
    let jobs = "set -m; sleep 60 & echo $! >> \"$0\"; echo $$ >> \"$0\"";
    let failing = format!("{jobs}; [ $MPJ_RANK = 1 ] && sleep 0.2 && exit 3; wait");
    let (running, pids) = start_listing(&mut command(["-n", "2", "bash", "-c", &failing]), 4);
    running.finish().assert_code(3);
    assert_gone(pids);
}

/// Leaves an orphan behind in a group that no rank leads: `timeout` ends with the shell that it started.
const WITH_ORPHAN: &str = "timeout 60 sh -c 'sleep 60 & echo $! >> \"$0\"' \"$0\" > /dev/null 2>&1";

#[test]
fn an_orphan_in_a_group_of_its_own_goes_when_the_job_ends() {
    let (running, pids) = start_and_list("2", WITH_ORPHAN, 2);
    let done = running.finish().assert_code(0);
    assert!(!pids.iter().copied().any(runs), "the launcher has waited for them: {done:?}");
}

#[test]
fn an_orphan_in_a_group_of_its_own_gets_the_signals_of_its_job() {
    let orphan = "trap : USR1; timeout 60 sh -c '(trap \"echo 1 >> $1\" USR1; echo 1 >> $0; \
        while :; do sleep 0.02; done) &' \"$0\" \"$0.caught\"; while :; do sleep 1; done";
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("ready");
    let file_word = file.to_str().expect("text");
    let running = start(&mut command(["-n", "1", "sh", "-c", orphan, file_word]));
    pids_in(&file, 1);
    running.signal(Signal::USR1);
    pids_in(&folder.path().join("ready.caught"), 1);
    running.signal(Signal::TERM);
    running.finish().assert_code(143);
}

/// The field `at` of `/proc/PID/stat`, for a process without a space in its name.
fn field(pid: u32, at: usize) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.split(' ').nth(at).map(str::to_owned)
}

#[test]
fn a_daemon_goes_when_the_job_is_stopped() {
    let daemon = "(setsid sleep 60 & echo $! >> \"$0\"); while :; do sleep 1; done";
    let (running, pids) = start_and_list("1", daemon, 1);
    eventually("it has lost its parent", || field(pids[0], 3) == Some(running.pid().to_string()));
    running.signal(Signal::TERM);
    running.finish().assert_code(143);
    assert!(!runs(pids[0]));
}

/// A rank whose program has a session of its own, and gets no signal of its group.
const IN_A_SESSION: &[&str] = &["setsid", "--wait", "sh", "-c"];

#[test]
fn a_rank_in_a_session_of_its_own_goes_when_the_launcher_is_asked_to_end() {
    // It outlives its parent.
    let ignores = "trap '' TERM; echo $$ >> \"$0\"; exec sleep 60";
    let words = [&["-n", "2"], IN_A_SESSION, &[ignores]].concat();
    let (running, pids) = start_listing(&mut command(words), 2);
    // Not INT, which a shell's job in the background ignores.
    running.signal(Signal::TERM);
    let done = running.finish().assert_code(143);
    assert!(!pids.iter().copied().any(runs), "the launcher has waited for them: {done:?}");
}

#[test]
fn a_rank_in_a_session_of_its_own_is_suspended_and_continued() {
    let sleeps = "echo $$ >> \"$0\"; exec sleep 60";
    let words = [&["-n", "2"], IN_A_SESSION, &[sleeps]].concat();
    let (running, pids) = start_listing(command(words).process_group(0), 2);
    running.signal(Signal::TSTP);
    eventually("the launcher is suspended", || is_suspended(running.pid()));
    eventually("the ranks are too", || pids.iter().copied().all(is_suspended));
    running.signal(Signal::CONT);
    eventually("all go on", || !pids.iter().copied().any(is_suspended));
    running.signal(Signal::TERM);
    running.finish().assert_code(143);
    assert_gone(pids);
}

#[test]
fn what_an_orphan_has_started_in_another_session_goes_when_the_job_ends() {
    let orphan = "timeout 60 sh -c '(setsid sh -c \"echo \\$\\$ >> \\$0; exec sleep 60\" \"$0\"; :) &' \
        \"$0\" > /dev/null 2>&1; until [ -s \"$0\" ]; do sleep 0.01; done";
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("pids");
    let words = ["-n", "1", "sh", "-c", orphan, file.to_str().expect("text")];
    let running = start(&mut command(words));
    let pids = pids_in(&file, 1);
    let done = running.finish().assert_code(0);
    assert!(!pids.iter().copied().any(runs), "the launcher has waited for it: {done:?}");
}

#[test]
fn what_a_shell_has_left_to_the_launcher_is_not_the_jobs() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("pids");
    let run = "sleep 60 & echo $! >> \"$1\"; exec \"$0\" -n 1 sh -c 'sleep 60 & kill -9 $$'";
    let mut shell = Command::new("sh");
    shell.args(["-c", run, MPJRUN]).arg(&file).stdin(Stdio::null());
    let running = start(&mut shell);
    let pid = pids_in(&file, 1)[0];
    // The output ends only with the process that holds it.
    eventually("the job is over", || !runs(running.pid()));
    assert!(runs(pid));
    end(pid);
    running.finish().assert_code(137);
}

#[test]
fn what_a_shells_child_leaves_to_the_launcher_is_not_the_jobs() {
    let folder = tempfile::tempdir().expect("a folder");
    let [file, mark] = ["pids", "mark"].map(|name| folder.path().join(name));
    // As the first script of a container may do, whose child ends while the job runs.
    let run = "(sleep 60 > /dev/null 2>&1 & echo $! >> \"$1\"; until [ -e \"$2\" ]; do sleep 0.01; done) & \
        exec \"$0\" -n 1 sh -c 'trap \"exit 7\" USR1; : > \"$0\"; while :; do sleep 0.02; done' \"$2\"";
    let mut shell = Command::new("sh");
    shell.args(["-c", run, MPJRUN]).args([&file, &mark]).stdin(Stdio::null());
    let running = start(&mut shell);
    let pid = pids_in(&file, 1)[0];
    eventually("it is adopted", || {
        field(pid, 3) == Some(running.pid().to_string()) && mark.exists()
    });
    running.signal(Signal::USR1);
    running.finish().assert_code(7);
    assert!(runs(pid));
    end(pid);
}

#[test]
fn orphans_of_a_job_that_runs_are_reaped() {
    let orphans = "for each in 1 2 3 4 5 6 7 8 9 10; do (sleep 0.01 &); done; \
        echo $$ >> \"$0\"; exec sleep 60";
    let (running, ranks) = start_and_list("2", orphans, 2);
    eventually("there are the ranks and the guard", || children(running.pid()).len() == 3);
    assert!(ranks.into_iter().all(runs));
    running.signal(Signal::TERM);
    running.finish().assert_code(143);
}

#[test]
fn ranks_die_with_a_launcher_that_is_killed() {
    let (running, pids) = start_and_list("3", "echo $$ >> \"$0\"; exec sleep 600", 3);
    running.signal(Signal::KILL);
    assert_gone(pids);
    assert_eq!(running.finish().signal, Some(9));
}

#[test]
fn what_ranks_started_dies_with_a_launcher_that_is_killed() {
    let (running, pids) = start_and_list("2", &format!("{WITH_CHILD}; wait"), 4);
    running.signal(Signal::KILL);
    assert_gone(pids);
    assert_eq!(running.finish().signal, Some(9));
}

/// The processes that have this one for their parent.
fn children(parent: u32) -> Vec<u32> {
    let list = format!("/proc/{parent}/task/{parent}/children");
    let list = fs::read_to_string(list).expect("our process");
    list.split_whitespace().map(|pid| pid.parse().expect("a number")).collect()
}

#[test]
fn the_guard_holds_nothing_and_goes_with_the_job() {
    let (running, ranks) = start_and_list("2", "echo $$ >> \"$0\"; exec sleep 600", 2);
    let guards = || -> Vec<u32> {
        children(running.pid()).into_iter().filter(|pid| !ranks.contains(pid)).collect()
    };
    let descriptors = |pid| fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count);
    let is_ready = || matches!(guards()[..], [guard] if descriptors(guard) == 1);
    eventually("one process beside the ranks holds one descriptor", is_ready);
    let guard = guards()[0];
    running.signal(Signal::TERM);
    running.finish().assert_code(143);
    assert!(!runs(guard), "the launcher has waited for it");
    assert_gone(ranks);
}

/// Names in `/dev/shm`, and how many blocks the file system behind it has in use.
fn shared_memory() -> BTreeSet<String> {
    let names = fs::read_dir("/dev/shm").expect("it is there");
    names.map(|entry| entry.expect("readable").file_name().to_string_lossy().into()).collect()
}

#[test]
fn nothing_is_made_in_dev_shm() {
    let before = shared_memory();
    let (running, pids) = start_and_list("2", "echo $$ >> \"$0\"; exec sleep 600", 2);
    assert_eq!(shared_memory(), before, "while a job runs");
    running.signal(Signal::KILL);
    assert_gone(pids);
    script(2, "[ $MPJ_RANK = 1 ] && kill -9 $$; sleep 60").assert_code(137);
    assert_eq!(shared_memory(), before, "after a killed launcher and a killed rank");
}

/// Inodes of the TCP and UDP sockets of this host.
fn network_sockets() -> BTreeSet<u64> {
    let tables = ["tcp", "tcp6", "udp", "udp6"].map(|table| format!("/proc/net/{table}"));
    let text: String = tables.iter().filter_map(|table| fs::read_to_string(table).ok()).collect();
    text.lines().filter_map(|line| line.split_whitespace().nth(9)?.parse().ok()).collect()
}

/// Inodes of the sockets that a process holds.
fn sockets_of(pid: u32) -> Vec<u64> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).expect("our process");
    let targets = entries.filter_map(|entry| fs::metadata(entry.ok()?.path()).ok());
    let is_socket = |metadata: &fs::Metadata| metadata.mode() & 0o170_000 == 0o140_000;
    targets.filter(is_socket).map(|metadata| metadata.ino()).collect()
}

#[test]
fn no_process_of_a_job_has_a_network_socket() {
    let (running, pids) = start_and_list("2", "echo $$ >> \"$0\"; exec sleep 600", 2);
    let network = network_sockets();
    let launcher = sockets_of(running.pid());
    assert_eq!(launcher.len(), 2, "one control line per rank");
    assert!(!launcher.iter().any(|socket| network.contains(socket)));
    for pid in pids {
        let rank = sockets_of(pid);
        assert_eq!(rank.len(), 1, "the rank's own control line");
        assert!(!rank.iter().any(|socket| network.contains(socket)));
    }
    running.signal(Signal::TERM);
    running.finish().assert_code(143);
}

#[test]
fn a_low_limit_of_open_files_is_raised_for_the_launcher_alone() {
    let run = "ulimit -S -n 64; exec \"$0\" -n 40 sh -c 'ulimit -S -n'";
    let done = start(Command::new("sh").args(["-c", run, MPJRUN])).finish().assert_code(0);
    assert_eq!(done.text(), "64\n".repeat(40));
}

#[test]
fn a_hard_limit_of_open_files_is_an_error_that_leaves_no_rank() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("pids");
    let run = "ulimit -n 40; exec \"$0\" -n 40 sh -c 'echo $$ >> \"$0\"; exec sleep 600' \"$1\"";
    let mut shell = Command::new("sh");
    shell.args(["-c", run, MPJRUN]).arg(&file);
    start(&mut shell)
        .finish()
        .assert_code(125)
        .assert_says("mpjrun: cannot start rank ")
        .assert_says("ulimit -n");
    assert_gone(written(&file));
}

/// The numbers that were written before the job was given up.
fn written(file: &Path) -> Vec<u32> {
    let text = fs::read_to_string(file).unwrap_or_default();
    text.lines().filter_map(|line| line.parse().ok()).collect()
}

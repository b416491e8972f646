//! `mpjrun` leaves no process and no file behind, however the job ends.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use mpj_harness::process::{await_end, children, find, is_suspended, runs};
use mpj_harness::{Launch, Running, eventually, launch, mpjrun_path, process, shell};
use rustix::process::Signal;

use crate::{Mark, script};

/// Starts a job whose processes print their numbers, `count` in all.
#[track_caller]
fn start_and_list(job: Launch, count: usize) -> (Running, Vec<u32>) {
    let running = job.start();
    let pids = running.numbers(count);
    (running, pids)
}

/// Ends a process that outlives its job.
#[track_caller]
fn end(pid: u32) {
    process::signal(pid, Signal::KILL).expect("it runs");
}

/// Lets rank 1 fail when the test says so.
const FAILS: &str = "[ $MPJ_RANK = 1 ] && { read line; exit 3; }";

/// Starts such a job, whose processes print their numbers, and lets it fail when all have.
#[track_caller]
fn assert_gone_when_it_fails(job: Launch, count: usize) {
    let job = job.options(["--stdin", "1"]).stdin(Stdio::piped());
    let (mut running, pids) = start_and_list(job, count);
    drop(running.stdin());
    running.expect(3);
    await_end(&pids);
}

const WITH_CHILD: &str = "sleep 600 & echo $!; echo $$";

#[test]
fn what_a_rank_started_goes_when_the_rank_ends() {
    let (running, pids) = start_and_list(script(2, WITH_CHILD), 4);
    // Children that still ran would hold the launcher.
    running.expect(0);
    await_end(&pids);
}

#[test]
fn what_a_rank_started_goes_when_the_job_fails() {
    assert_gone_when_it_fails(script(2, &format!("{WITH_CHILD}; {FAILS}; wait")), 4);
}

#[test]
fn what_a_rank_started_goes_when_the_launcher_is_asked_to_end() {
    let (running, pids) = start_and_list(script(2, &format!("{WITH_CHILD}; wait")), 4);
    running.signal(Signal::TERM);
    running.expect(143);
    await_end(&pids);
}

#[test]
fn a_daemon_ends_with_its_job_and_that_is_said() {
    let daemon = "setsid sleep 600 & echo $!; \
        until [ $(cat /proc/$!/comm) = sleep ]; do sleep 0.01; done; echo said";
    let (running, pids) = start_and_list(script(1, daemon), 1);
    let done = running.expect(0);
    assert_eq!(done.stdout, format!("{}\nsaid\n", pids[0]));
    let note =
        format!("mpjrun: ended daemons that ranks had started: sleep (process {})\n", pids[0]);
    assert_eq!(done.stderr, note);
    assert!(!runs(pids[0]), "the launcher has waited for it");
}

#[test]
fn the_guard_of_a_launcher_inside_a_rank_is_no_daemon() {
    let inner = "\"$1\" -n 1 sh -c 'echo $PPID; exec sleep 60' & \
        until [ -e \"$0\" ]; do sleep 0.01; done";
    let folder = tempfile::tempdir().expect("a folder");
    let go = folder.path().join("go");
    let job = launch("sh").ranks(1).args(["-c", inner]).args([&go, &mpjrun_path()]);
    let (running, launchers) = start_and_list(job, 1);
    let is_guard = |pid| find(pid).is_some_and(|process| process.name == "mpj-guard");
    let guard = || children(launchers[0]).into_iter().find(|pid| is_guard(*pid));
    eventually("there is a guard", || guard().is_some());
    let guard = guard().expect("it stays");
    // So that it is still there when its launcher has been killed.
    process::signal(guard, Signal::STOP).expect("it runs");
    fs::write(&go, "").expect("a file");
    let done = running.expect(0);
    assert!(done.stderr.is_empty() && !runs(guard), "{done:?}");
}

/// A command under `timeout`, which makes a group of its own, as it is in many a script.
const UNDER_TIMEOUT: &str = "echo $$; trap : USR1; \
    timeout 60 sh -c 'echo $PPID; echo $$; exec sleep 600'; exit $?";

#[test]
fn a_command_under_timeout_goes_when_the_launcher_is_asked_to_end() {
    let (running, pids) = start_and_list(script(2, UNDER_TIMEOUT), 6);
    running.signal(Signal::TERM);
    running.expect(143);
    await_end(&pids);
}

#[test]
fn a_command_under_timeout_that_ignores_sigterm_goes_when_the_job_fails() {
    let failing = format!("{FAILS}; trap '' TERM; {UNDER_TIMEOUT}");
    assert_gone_when_it_fails(script(2, &failing), 3);
}

#[test]
fn a_command_under_timeout_gets_the_signals_of_its_rank() {
    let (running, pids) = start_and_list(script(1, UNDER_TIMEOUT), 3);
    running.signal(Signal::USR1);
    // The script traps it, and ends with the status of the command.
    running.expect(138);
    await_end(&pids);
}

#[test]
fn a_command_under_timeout_is_suspended_and_continued_with_its_rank() {
    // In a group of its own, as a shell would have it, so that somebody watches over it.
    let job = script(1, UNDER_TIMEOUT).set(|command| command.process_group(0));
    let (running, pids) = start_and_list(job, 3);
    running.signal(Signal::TSTP);
    eventually("all are suspended", || pids.iter().copied().all(is_suspended));
    eventually("the launcher too", || is_suspended(running.pid()));
    running.signal(Signal::CONT);
    eventually("all go on", || !pids.iter().copied().any(is_suspended));
    running.signal(Signal::TERM);
    running.expect(143);
    await_end(&pids);
}

#[test]
fn a_job_of_a_shell_with_job_control_goes_when_the_job_fails() {
    if Command::new("bash").args(["-c", ":"]).status().is_err() {
        return;
    }
    let failing = format!("set -m; {WITH_CHILD}; {FAILS}; wait");
    assert_gone_when_it_fails(launch("bash").ranks(2).args(["-c", &failing]), 4);
}

/// Leaves an orphan behind in a group that no rank leads: `timeout` ends with the shell that it started.
const WITH_ORPHAN: &str = "timeout 60 sh -c 'sleep 600 > /dev/null 2>&1 & echo $!'";

#[test]
fn an_orphan_in_a_group_of_its_own_goes_when_the_job_ends() {
    let (running, pids) = start_and_list(script(2, WITH_ORPHAN), 2);
    let done = running.expect(0);
    assert!(!pids.iter().copied().any(runs), "the launcher has waited for them: {done:?}");
}

#[test]
fn an_orphan_in_a_group_of_its_own_gets_the_signals_of_its_job() {
    let orphan = "trap : USR1; timeout 60 sh -c '(trap \"echo 2\" USR1; echo 1; \
        while :; do sleep 0.02; done) &'; while :; do sleep 1; done";
    let running = script(1, orphan).start();
    assert_eq!(running.numbers(1), [1]);
    running.signal(Signal::USR1);
    assert_eq!(running.numbers(2), [1, 2]);
    running.signal(Signal::TERM);
    running.expect(143);
}

/// Waits until the launcher is the parent of a process whose own has ended.
#[track_caller]
fn await_adoption(pid: u32, launcher: &Running) {
    let parent = || find(pid).map(|process| process.parent);
    eventually("it has lost its parent", || parent() == Some(launcher.pid()));
}

#[test]
fn a_daemon_goes_when_the_job_is_stopped() {
    let daemon = "(setsid sleep 600 & echo $!); while :; do sleep 1; done";
    let (running, pids) = start_and_list(script(1, daemon), 1);
    await_adoption(pids[0], &running);
    running.signal(Signal::TERM);
    running.expect(143);
    assert!(!runs(pids[0]));
}

/// Two ranks whose programs have sessions of their own, and get no signal of their groups.
fn in_sessions(script: &str) -> Launch {
    launch("setsid").ranks(2).args(["--wait", "sh", "-c", script])
}

#[test]
fn a_rank_in_a_session_of_its_own_goes_when_the_launcher_is_asked_to_end() {
    // It outlives its parent.
    let ignores = "trap '' TERM; echo $$; exec sleep 600";
    let (running, pids) = start_and_list(in_sessions(ignores), 2);
    // Not INT, which a shell's job in the background ignores.
    running.signal(Signal::TERM);
    let done = running.expect(143);
    assert!(!pids.iter().copied().any(runs), "the launcher has waited for them: {done:?}");
}

#[test]
fn a_rank_in_a_session_of_its_own_is_suspended_and_continued() {
    let job = in_sessions("echo $$; exec sleep 600").set(|command| command.process_group(0));
    let (running, pids) = start_and_list(job, 2);
    running.signal(Signal::TSTP);
    eventually("the launcher is suspended", || is_suspended(running.pid()));
    eventually("the ranks are too", || pids.iter().copied().all(is_suspended));
    running.signal(Signal::CONT);
    eventually("all go on", || !pids.iter().copied().any(is_suspended));
    running.signal(Signal::TERM);
    running.expect(143);
    await_end(&pids);
}

#[test]
fn what_an_orphan_has_started_in_another_session_goes_when_the_job_ends() {
    let started = "echo $$; : > \"$0\"; exec sleep 600 > /dev/null 2>&1";
    let orphan = "timeout 60 sh -c '(setsid sh -c \"$1\" \"$0\"; :) &' \"$0\" \"$1\"; \
        until [ -e \"$0\" ]; do sleep 0.01; done";
    let mark = Mark::new();
    let job = script(1, orphan).args([mark.path()]).args([started]);
    let (running, pids) = start_and_list(job, 1);
    let done = running.expect(0);
    assert!(!pids.iter().copied().any(runs), "the launcher has waited for it: {done:?}");
}

#[test]
fn what_a_shell_has_left_to_the_launcher_is_not_the_jobs() {
    let run = "sleep 600 & echo $!; exec \"$0\" -n 1 sh -c 'sleep 600 & kill -9 $$'";
    let running = shell(run).start();
    let pid = running.numbers(1)[0];
    // The output ends only with the process that holds it.
    eventually("the job is over", || !runs(running.pid()));
    assert!(runs(pid));
    end(pid);
    running.expect(137);
}

#[test]
fn what_a_shells_child_leaves_to_the_launcher_is_not_the_jobs() {
    // As the first script of a container may do, whose child ends while the job runs.
    let run = "(sleep 600 > /dev/null 2>&1 & echo $!; until [ -e \"$1\" ]; do sleep 0.01; done) & \
        exec \"$0\" -n 1 sh -c 'trap \"exit 7\" USR1; : > \"$0\"; while :; do sleep 0.02; done' \"$1\"";
    let mark = Mark::new();
    let running = shell(run).args([mark.path()]).start();
    let pid = running.numbers(1)[0];
    mark.wait();
    await_adoption(pid, &running);
    running.signal(Signal::USR1);
    running.expect(7);
    assert!(runs(pid));
    end(pid);
}

#[test]
fn orphans_of_a_job_that_runs_are_reaped() {
    let orphans = "for each in 1 2 3 4 5 6 7 8 9 10; do (sleep 0.01 &); done; \
        echo $$; exec sleep 600";
    let (running, ranks) = start_and_list(script(2, orphans), 2);
    eventually("there are the ranks and the guard", || children(running.pid()).len() == 3);
    assert!(ranks.into_iter().all(runs));
    running.signal(Signal::TERM);
    running.expect(143);
}

#[test]
fn ranks_die_with_a_launcher_that_is_killed() {
    let (running, pids) = start_and_list(script(3, "echo $$; exec sleep 600"), 3);
    running.signal(Signal::KILL);
    await_end(&pids);
    running.expect(137);
}

#[test]
fn what_ranks_started_dies_with_a_launcher_that_is_killed() {
    let (running, pids) = start_and_list(script(2, &format!("{WITH_CHILD}; wait")), 4);
    running.signal(Signal::KILL);
    await_end(&pids);
    running.expect(137);
}

#[test]
fn the_guard_holds_nothing_and_goes_with_the_job() {
    let (running, ranks) = start_and_list(script(2, "echo $$; exec sleep 600"), 2);
    let guards = || -> Vec<u32> {
        children(running.pid()).into_iter().filter(|pid| !ranks.contains(pid)).collect()
    };
    let descriptors = |pid| fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count);
    let is_ready = || matches!(guards()[..], [guard] if descriptors(guard) == 1);
    eventually("one process beside the ranks holds one descriptor", is_ready);
    let guard = guards()[0];
    running.signal(Signal::TERM);
    running.expect(143);
    assert!(!runs(guard), "the launcher has waited for it");
    await_end(&ranks);
}

/// Names in `/dev/shm`, and how many blocks the file system behind it has in use.
fn shared_memory() -> BTreeSet<String> {
    let names = fs::read_dir("/dev/shm").expect("it is there");
    names.map(|entry| entry.expect("readable").file_name().to_string_lossy().into()).collect()
}

#[test]
fn nothing_is_made_in_dev_shm() {
    let before = shared_memory();
    let (running, pids) = start_and_list(script(2, "echo $$; exec sleep 600"), 2);
    assert_eq!(shared_memory(), before, "while a job runs");
    running.signal(Signal::KILL);
    await_end(&pids);
    script(2, "[ $MPJ_RANK = 1 ] && kill -9 $$; sleep 600").expect(137);
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
    let (running, pids) = start_and_list(script(2, "echo $$; exec sleep 600"), 2);
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
    running.expect(143);
}

#[test]
fn a_low_limit_of_open_files_is_raised_for_the_launcher_alone() {
    let run = "ulimit -S -n 64; exec \"$0\" -n 40 sh -c 'ulimit -S -n'";
    assert_eq!(shell(run).expect(0).stdout, "64\n".repeat(40));
}

/// Room that nobody has asked for is no reason for a job not to start.
#[test]
fn low_limits_leave_less_room_for_ranks_that_are_spawned() {
    for (limit, words, room) in [
        ("-v 200000000", "", 2),
        ("-f 1500000", "", 18),
        ("-v 600000", "", 2),
        ("-f 200000", "", 2),
        ("-f 1500000", "--universe 9", 9),
    ] {
        let info = format!("ulimit {limit}; \"$0\" --info -n 2 {words} | grep 'ranks in all'; ");
        let done = shell(&format!("{info} exec \"$0\" -n 2 {words} echo started")).expect(0);
        let mut lines: Vec<_> = done.stdout.split_whitespace().collect();
        lines.retain(|word| word.parse::<usize>().is_ok() || *word == "started");
        assert_eq!(lines, [&room.to_string(), "started", "started"], "{limit} {words}");
    }
}

#[test]
fn a_hard_limit_of_open_files_is_an_error_that_leaves_no_rank() {
    let run = "ulimit -n 40; exec \"$0\" -n 40 sh -c 'echo $$; exec sleep 600'";
    let says = ["mpjrun: cannot start rank ", "ulimit -n"];
    let done = shell(run).expect(125).says_all(&says);
    let pids = done.stdout.lines().map(|line| line.parse().expect("a number"));
    await_end(&pids.collect::<Vec<_>>());
}

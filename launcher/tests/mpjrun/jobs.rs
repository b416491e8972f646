//! Jobs seen from outside: listed, ended, and asked about, by the library behind `mpjrun ps`, `kill` and
//! `attach`.

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use mpj_launcher::jobs::{self, JobsError};
use rustix::process::Signal;

use crate::support::{Running, command, eventually, is_suspended, pids_in, runs, start};

/// A job whose ranks sleep, with the processes of these.
fn sleeping(ranks: usize) -> (Running, Vec<u32>) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("pids");
    let file_word = file.to_str().expect("text");
    let script = "echo $$ >> \"$0\"; exec sleep 600";
    let words = ["-n", &ranks.to_string(), "sh", "-c", script, file_word];
    let running = start(&mut command(words));
    let pids = pids_in(&file, ranks);
    (running, pids)
}

/// The words of the line about the job of this launcher, if there is one.
fn line_of(launcher: u32) -> Option<Vec<String>> {
    let listed = jobs::ps().expect("processes can be listed");
    let mut lines = listed.lines().map(|line| line.split_whitespace().map(str::to_owned).collect());
    lines.find(|words: &Vec<String>| words[1] == launcher.to_string())
}

#[test]
fn a_running_job_is_listed_and_then_ended_by_its_name() {
    let (running, pids) = sleeping(3);
    let (other, _) = sleeping(1);
    let line = line_of(running.pid()).expect("it runs");
    let [job, _, ranks, seconds, rest @ ..] = &line[..] else { panic!("{line:?}") };
    assert!(job.starts_with(&format!("{}-", running.pid())), "{line:?}");
    assert_eq!(ranks, "3");
    assert!(seconds.parse::<u64>().is_ok_and(|seconds| seconds < 60), "{line:?}");
    assert!(rest.join(" ").contains("mpjrun -n 3 sh -c"), "{line:?}");
    assert_eq!(jobs::kill(job).expect("it ends"), format!("mpjrun: job {job} has ended\n"));
    running.finish().assert_code(143).assert_says("mpjrun: ended by signal 15 (SIGTERM)\n");
    assert!(!pids.into_iter().any(runs));
    let error = jobs::kill(job).expect_err("it is gone");
    assert!(matches!(error, JobsError::NotRunning { .. }), "{error}");
    assert!(line_of(other.pid()).is_some(), "the other job goes on");
    jobs::kill(&other.pid().to_string()).expect("the number of the launcher will do");
    other.finish().assert_code(143);
}

#[test]
fn a_suspended_job_is_ended_too() {
    let (running, pids) = sleeping(2);
    running.signal(Signal::STOP);
    eventually("the launcher is suspended", || is_suspended(running.pid()));
    jobs::kill(&running.pid().to_string()).expect("it ends");
    running.finish().assert_code(143);
    assert!(!pids.into_iter().any(runs));
}

#[test]
fn a_rank_is_not_taken_for_the_launcher() {
    let (running, pids) = sleeping(2);
    for rank in &pids {
        let error = jobs::kill(&rank.to_string()).expect_err("it holds the segment, no more");
        assert!(matches!(error, JobsError::NoLauncher { pid } if pid == *rank), "{error}");
        assert!(line_of(*rank).is_none());
    }
    assert!(pids.iter().copied().all(runs));
    running.signal(Signal::TERM);
    running.finish().assert_code(143);
}

/// Where the tests run as root there are other users to be; elsewhere the first process is root's.
#[test]
fn the_processes_of_other_users_are_let_alone() {
    let root = rustix::process::geteuid().is_root();
    let mut sleeper = root.then(|| {
        let mut sleep = Command::new("sleep");
        sleep.arg("600").uid(65_534).stdin(Stdio::null()).spawn().expect("it starts")
    });
    let pid = sleeper.as_ref().map_or(1, std::process::Child::id);
    let error = jobs::kill(&pid.to_string()).expect_err("it is not ours");
    assert!(matches!(error, JobsError::OtherUser { .. }), "{error}");
    if let Some(sleeper) = &mut sleeper {
        assert!(runs(pid));
        sleeper.kill().expect("our child");
        sleeper.wait().expect("our child");
    }
}

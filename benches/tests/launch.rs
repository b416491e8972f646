//! Launches of small shell scripts in the place of workers.

use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use mpj_bench::launch::{Outcome, adopt_orphans, run};

/// One launch at a time.
static TURN: Mutex<()> = Mutex::new(());

fn launch(script: &str, patience: Duration, stop: bool) -> Outcome {
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    launch_command(command, patience, stop)
}

fn launch_command(command: Command, patience: Duration, stop: bool) -> Outcome {
    // Also for a program that is missing: the end of another launch would end the process that looks for it.
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    adopt_orphans().expect("Linux has it");
    run(command, patience, &AtomicBool::new(stop))
}

const LONG: Duration = Duration::from_secs(60);

#[test]
fn a_job_that_measures_and_ends() {
    let script = r#"echo noise
        echo '[1] @mpj-bench {"library":{"ranks":2,"thresholds":[[8,"long"]],"facts":[]}}'
        echo '@mpj-bench {"sample":{"series":"latency","x":8,"values":[1.5,2.5]}}'
        echo '@mpj-bench "complete"'"#;
    let outcome = launch(script, LONG, false);
    assert_eq!(outcome.failure, None);
    assert_eq!(outcome.library.map(|library| library.ranks), Some(2));
    assert_eq!(outcome.samples.len(), 1);
    assert_eq!(outcome.samples[0].values, [1.5, 2.5]);
}

#[test]
fn what_a_job_that_crashes_has_measured_is_kept() {
    let script = r#"echo '@mpj-bench {"sample":{"series":"latency","x":8,"values":[1]}}'
        echo '----' >&2; echo 'no route to nowhere' >&2; exit 7"#;
    let outcome = launch(script, LONG, false);
    assert_eq!(outcome.failure.as_deref(), Some("exit code 7: no route to nowhere"));
    assert_eq!(outcome.samples.len(), 1);
    let killed = launch("kill -9 $$", LONG, false);
    assert_eq!(killed.failure.as_deref(), Some("signal 9"));
}

#[test]
fn a_job_that_ends_well_but_early_has_failed() {
    let outcome = launch("true", LONG, false);
    assert_eq!(outcome.failure.as_deref(), Some("ended before all was measured"));
}

#[test]
fn the_reason_of_the_worker_comes_first() {
    let outcome = launch(r#"echo '@mpj-bench {"failed":"wrong payload"}'; exit 1"#, LONG, false);
    assert_eq!(outcome.failure.as_deref(), Some("wrong payload"));
}

#[test]
fn a_silent_job_is_ended_with_all_its_processes() {
    let script = "trap '' TERM; setsid sleep 600 & sleep 600";
    let outcome = launch(script, Duration::from_millis(50), false);
    assert!(outcome.failure.is_some_and(|failure| failure.starts_with("hangs")));
}

#[test]
fn a_job_is_ended_when_the_user_wants_to_stop() {
    let outcome = launch("sleep 600", LONG, true);
    assert_eq!(outcome.failure.as_deref(), Some("interrupted"));
}

#[test]
fn damaged_answers_and_missing_programs_are_failures() {
    let outcome = launch("echo '@mpj-bench {'", LONG, false);
    assert!(outcome.failure.is_some_and(|failure| failure.contains("damaged")));
    let missing = launch_command(Command::new("/no/such/launcher"), LONG, false);
    assert!(missing.failure.is_some_and(|failure| failure.starts_with("cannot start")));
}

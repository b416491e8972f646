//! Forks of ranks: whatever a child does with what it has inherited, neither it nor the job comes to harm.

use mpj_harness::{Outcome, Shown, launch};
use tempfile::TempDir;

/// Runs a job whose rank 1 forks a child that does `what`.
#[track_caller]
fn forked(what: &str) -> Outcome {
    launch(env!("CARGO_BIN_EXE_forked")).ranks(3).args([what]).expect_quiet()
}

#[test]
fn a_fork_that_ends_as_if_it_were_the_rank_harms_nobody() {
    assert_eq!(forked("returns").stdout, "code Some(0), signal None\n");
}

#[test]
fn a_fork_that_communicates_is_told_what_it_is() {
    ["uses", "interrupts"].into_iter().for_each(a_fork_is_told);
}

fn a_fork_is_told(scene: &str) {
    let outcome = forked(scene);
    let lines: Vec<&str> = outcome.stdout.lines().collect();
    let (told, [init, finish, end]) = lines.split_at(lines.len() - 3) else {
        panic!("{outcome:?}");
    };
    assert_eq!(told.len(), 9, "{outcome:?}");
    let is_told =
        |line: &&str| line.contains("this process is a fork of rank 1 and has no part in the job");
    assert!(told.iter().chain([finish]).all(is_told), "{outcome:?}");
    assert!(init.contains("joined its job already"), "{outcome:?}");
    assert_eq!(*end, "code Some(0), signal None", "{outcome:?}");
}

/// At the addresses of the job's memory, the child has memory of its own, which stays there.
#[test]
fn a_fork_drops_what_it_has_inherited_and_goes_on() {
    assert_eq!(forked("drops").stdout, "code Some(0), signal None\n");
}

#[test]
fn a_fork_that_aborts_ends_alone() {
    assert_eq!(forked("aborts").stdout, "code Some(9), signal None\n");
}

#[test]
fn a_fork_can_have_a_job_of_its_own() {
    assert_eq!(forked("starts").stdout, "code Some(0), signal None\n");
}

#[test]
fn a_fork_records_nothing_in_the_place_of_its_parent() {
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("trace");
    let job = launch(env!("CARGO_BIN_EXE_forked")).ranks(3).options(["--trace"]).options([&file]);
    let outcome = job.args(["records"]).expect(0);
    assert_eq!(outcome.stdout, "code Some(0), signal None\n");
    let shown = Shown::read(&file);
    assert_eq!((shown.calls("around"), shown.calls("in the child")), (1, 0), "{:?}", shown.calls);
    assert_eq!((shown.calls("barrier"), shown.calls("finish")), (6, 3), "{:?}", shown.calls);
    assert_eq!(shown.unfinished, ["around"]);
}

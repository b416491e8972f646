//! `#[mpj::test]` as users see it. Samples that pass are tests of this file; samples that fail are run by other tests,
//! which check what libtest prints about them.

use std::collections::BTreeSet;

use mpj_harness::process::{await_end, find};
use mpj_harness::{Launch, Outcome, command, eventually, launch};
use rustix::process::Signal;

#[path = "user_tests/nextest.rs"]
mod nextest;
#[path = "user_tests/samples.rs"]
mod samples;

#[mpj::test(ranks = 2)]
fn at_the_root_of_a_crate(world: &mpj::World) {
    assert_eq!(world.size(), 2);
}

/// This test executable with these words.
fn tests(words: &[&str]) -> Launch {
    let test = std::env::current_exe().expect("a test knows its own path");
    command(test).args(words).env("RUST_BACKTRACE", "0")
}

/// Runs one sample under libtest.
fn run(sample: &str) -> Outcome {
    tests(&[&format!("samples::{sample}"), "--exact", "--include-ignored"]).run()
}

/// Runs a sample that has to fail, and to print all of `says` in this order.
#[track_caller]
fn fails(sample: &str, says: &[&str]) -> String {
    let Outcome { code, stdout, stderr } = run(sample);
    assert_eq!((code, &*stderr), (101, ""), "{stdout}");
    let mut rest = &*stdout;
    for words in says {
        let at = rest.find(words).unwrap_or_else(|| panic!("no {words:?} in order: {stdout}"));
        rest = &rest[at + words.len()..];
    }
    assert_eq!(stdout.matches("running 1 test").count(), 1, "libtest's words of a rank: {stdout}");
    stdout
}

const PLACE: &str = "tests/tests/user_tests/samples.rs:";

#[test]
fn a_test_that_passes_is_quiet() {
    let Outcome { code, stdout, stderr } = run("passes");
    assert_eq!((code, &*stderr), (0, ""), "{stdout}");
    assert!(stdout.contains("test samples::passes ... ok"), "{stdout}");
    assert!(!stdout.contains("rank 0 of 4"), "{stdout}");
}

#[test]
fn output_is_merged_in_whole_lines() {
    let Outcome { code, stdout, .. } = tests(&["--exact", "samples::passes", "--nocapture"]).run();
    assert_eq!(code, 0, "{stdout}");
    let lines: BTreeSet<&str> = stdout.lines().filter(|line| line.contains("rank ")).collect();
    let expected: BTreeSet<String> = (0..4)
        .flat_map(|rank| {
            [format!("[{rank}] rank {rank} of 4"), format!("[{rank}] no trouble at rank {rank}")]
        })
        .collect();
    // The first line follows libtest's name of the test.
    let lines: BTreeSet<String> =
        lines.iter().map(|line| line[line.find('[').unwrap_or(0)..].to_owned()).collect();
    assert_eq!(lines, expected, "{stdout}");
}

#[test]
fn listing_runs_nothing() {
    let Outcome { code, stdout, .. } = tests(&["--list", "--format", "terse"]).run();
    assert_eq!(code, 0);
    assert!(stdout.lines().any(|line| line == "samples::passes: test"), "{stdout}");
    assert!(!stdout.contains("[0]"), "{stdout}");
}

#[test]
fn a_panic_is_the_tests_panic() {
    let cause = "rank 2 panicked at tests/tests/user_tests/samples.rs:";
    let says = ["[2] thread ", "user_tests/samples.rs", cause, "the ranks\ndiffer"];
    let report = ["\n\nmpjrun: rank 2 (pid ", ") exited with code 101", PLACE];
    let said = fails("one_rank_panics", &[&says[..], &report].concat());
    assert!(!said.contains('\u{1e}'), "{said}");
}

#[test]
fn the_first_of_two_panics_is_told() {
    let said = fails("two_ranks_panic", &["panicked at", PLACE, "another one is wanted"]);
    let first_told = |rank| {
        said.contains(&format!("\nrank {rank} panicked at"))
            && said.contains(&format!("\n\nmpjrun: rank {rank} (pid "))
    };
    assert!(first_told(0) != first_told(2), "{said}");
}

/// The words of the last calls of a rank: call, communicator, peer, tag, bytes, and the place of the call.
fn last_calls(said: &str, rank: usize) -> Vec<Vec<&str>> {
    let title = format!("mpjrun: the last calls of rank {rank}, the latest one last:\n");
    let (_, table) = said.split_once(&title).unwrap_or_else(|| panic!("no {title}: {said}"));
    let rows = table.lines().skip(1).map_while(|line| line.strip_prefix("mpjrun:   "));
    rows.map(|row| {
        let words: Vec<&str> = row.split_whitespace().collect();
        [&words[..5], &words[words.len() - 1..]].concat()
    })
    .collect()
}

#[test]
fn the_last_calls_of_all_ranks_are_told_in_order() {
    let said = fails("fails_after_many_calls", &["all have come", "\n\nmpjrun: rank 1 (pid "]);
    for rank in 0..3 {
        let (left, right) = ((rank + 2) % 3, (rank + 1) % 3);
        let lap = |lap: usize| {
            let (send, receive) = (("send", right, lap), ("recv", left, lap));
            if rank == 0 { [send, receive] } else { [receive, send] }
        };
        let end = match rank {
            1 => [("recv", 0, 50), ("recv", 2, 50)],
            _ => [("send", 1, 50), ("recv", 1, 0)],
        };
        let made: Vec<_> = (0..30).flat_map(lap).chain(end).collect();
        let calls = last_calls(&said, rank);
        let told: Vec<_> = calls
            .iter()
            .map(|call| {
                (call[0], call[2].parse().expect("a rank"), call[3].parse().expect("a tag"))
            })
            .collect();
        // The others may not have begun their last call when rank 1 failed.
        let is_told = |end: usize| told == made[end - 20..end];
        assert!(is_told(made.len()) || rank != 1 && is_told(made.len() - 1), "{rank}: {said}");
        assert!(
            calls.iter().all(|call| call[1] == "world" && call[5].starts_with(PLACE)),
            "{said}"
        );
    }
}

#[test]
fn calls_are_told_with_what_is_known_of_them() {
    let said = fails("fails_after_calls_of_many_kinds", &["one fails"]);
    let calls = last_calls(&said, 1);
    let of = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let expected = [
        "init - - - -",
        "irecv world 0 0 -",
        "irecv world 0 1 -",
        "send world 0 0 8",
        "send world 0 1 8",
        "wait_all - - - -",
        "irecv world 0 2 -",
        "send world 0 2 6",
        "wait - 0 2 6",
        "bcast world - - 12",
        "allgather world - - 8",
        "allreduce world - - 32",
        "alltoallv world - - 24",
        "barrier world - - -",
    ];
    assert_eq!(calls.iter().map(|call| &call[..5]).collect::<Vec<_>>(), expected.map(of), "{said}");
    assert!(calls[1..].iter().all(|call| call[5].starts_with(PLACE)), "{said}");
}

#[test]
fn an_error_that_is_returned_is_told_with_the_test() {
    fails(
        "one_rank_returns_an_error",
        &["rank 1 panicked at", PLACE, "the test returned an error: \"no luck\"", "mpjrun: rank 1"],
    );
}

#[test]
fn ranks_that_exit_or_are_killed() {
    fails("one_rank_exits", &["rank 2 exited with code 3\n\nmpjrun: rank 2 (pid "]);
    fails(
        "one_rank_is_killed",
        &["rank 1 was killed by signal 6 (SIGABRT)\n\nmpjrun: rank 1 (pid "],
    );
}

#[test]
fn a_job_that_nobody_joins_fails_by_its_codes() {
    let says = ["before anybody joined", " exited with code 101: ", "\n\nmpjrun: rank "];
    fails("nobody_joins", &says);
}

#[test]
fn a_timeout_comes_with_a_report() {
    let says = ["[0] rank 0 begins", "not over after 2s, the test's timeout\n\nmpjrun: "];
    fails("takes_too_long", &says);
}

#[test]
fn a_launcher_that_does_not_end_is_killed() {
    let says = "the launcher still ran 5s after the test's timeout of 1s, and was killed";
    fails("stops_its_launcher", &[says]);
}

#[test]
fn a_deadlock_is_a_failure() {
    fails("waits_for_ever", &["\n\nmpjrun: deadlock"]);
}

#[test]
fn tests_run_inside_the_ranks_of_a_runner() {
    let test = std::env::current_exe().expect("a test knows its own path");
    let outcome = launch(test).ranks(2).args(["samples::passes", "--exact"]).expect(0);
    assert_eq!(outcome.stdout.matches("test samples::passes ... ok").count(), 2, "{outcome:?}");
}

#[test]
fn nothing_is_left_of_a_test_that_is_killed() {
    let test = tests(&["samples::sleeps", "--exact", "--include-ignored", "--nocapture"]).start();
    let ranks = || pids(test.stdout().lines().map(str::to_owned)).collect::<Vec<u32>>();
    eventually("both ranks run", || ranks().len() == 2);
    let mut processes = ranks();
    let launcher = find(processes[0]).expect("it runs").parent;
    processes.push(launcher);
    assert_ne!(launcher, test.pid(), "the launcher has a process of its own");
    test.signal(Signal::KILL);
    test.expect(137);
    await_end(&processes);
}

/// The processes of the ranks, as the sample `sleeps` prints them.
fn pids(lines: impl Iterator<Item = String>) -> impl Iterator<Item = u32> {
    lines.filter_map(|line| line.split_once("] pid ")?.1.parse().ok())
}

//! Mistakes between ranks are found in debug builds, unless a rank does not ask for it.
//!
//! `MPJ_PLANTED_PROGRAMS=1000 cargo test -p mpj-tests --test mistakes` runs more programs with a planted mistake than the
//! usual 30. Correct programs that are left alone are in `deadlocks.rs`.

use std::iter;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use mpj_harness::{example, launch, mpjrun, workspace};
use mpj_tests::faults::asked;
use mpj_tests::programs::Program;

const PROGRAM: &str = env!("CARGO_BIN_EXE_program");

/// The kinds of the example.
const KINDS: [&str; 13] = [
    "call",
    "root",
    "operation",
    "length",
    "elements",
    "form",
    "communicator",
    "omitted",
    "types",
    "unreceived",
    "dropped",
    "window",
    "blocks",
];

/// Every report stands in the documents as it is.
#[test]
fn the_documents_show_the_report_of_each_mistake() {
    let page = workspace().join("docs/running.md");
    let page = std::fs::read_to_string(page).expect("the page can be read");
    for kind in KINDS {
        let outcome = launch(example("mistakes")).ranks(2).args([kind]).expect(1);
        let report = outcome.stderr.lines().find_map(|line| {
            let after = |mark: &str| line.split_once(mark).map(|(_, report)| report);
            after("mistakes: ").or_else(|| after("it said: "))
        });
        let report = report.unwrap_or_else(|| panic!("{kind}: no report: {}", outcome.stderr));
        assert!(
            page.contains(report),
            "{kind}: the page does not show {report}\n{}",
            outcome.stderr
        );
        if ["unreceived", "dropped"].contains(&kind) {
            let first = outcome.stderr.lines().next();
            let is_told = |line: &str| line.ends_with(", and left messages that it never received");
            assert!(first.is_some_and(is_told), "{kind}: {}", outcome.stderr);
        }
    }
}

/// A program cannot make up for them at its end.
#[test]
fn messages_that_were_left_fail_a_rank_that_gets_the_error() {
    let outcome = launch(PROGRAM).ranks(2).args(["left"]).expect(1);
    let outcome = outcome.says("at the end: a message was never received: 8 bytes");
    outcome.says("and left messages that it never received\nmpjrun:   it said: a message was never received: 8");
}

/// The error of a program says why it ended, and a message that it left may be a consequence.
#[test]
fn the_error_of_a_program_stands_before_the_messages_that_it_left() {
    let script =
        "\"$0\" unreceived; [ $MPJ_RANK = 0 ] || { echo 'Error: no such file' >&2; exit 1; }";
    let job = launch("sh").ranks(2).args(["-c", script]).args([example("mistakes")]);
    let outcome = job.expect(1);
    let at =
        |part: &str| outcome.stderr.find(part).unwrap_or_else(|| panic!("{part}: {outcome:?}"));
    assert!(
        at("it printed last: Error: no such file") < at("it said: a message was never received")
    );
}

/// Ranks that differ in what they ask for agree that nothing is checked.
#[test]
fn mistakes_are_not_looked_for_unless_all_ranks_ask() {
    let program = example("mistakes");
    let program = program.to_str().expect("a path in UTF-8");
    for [first, second] in [["1", "0"], ["0", "1"], ["0", "auto"], ["0", "0"]] {
        let [first, second] = [first, second].map(|check| format!("MPJ_CHECK={check}"));
        let words = ["-n", "1", "-x", &first, program, "unreceived", ":"];
        let more = ["-n", "1", "-x", &second, program, "unreceived"];
        mpjrun(words.into_iter().chain(more)).expect_quiet();
    }
    mpjrun(["--check=no", "-n", "2", program, "unreceived"]).expect_quiet();
    mpjrun(["--check", "-n", "2", program, "unreceived"]).expect(1);
}

/// Four jobs at a time, since they sleep a part of the time.
#[test]
fn planted_mistakes_are_found() {
    let first = asked("MPJ_PROGRAMS_SEED", 1);
    let last = first + asked("MPJ_PLANTED_PROGRAMS", 30);
    let next = AtomicU64::new(first);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let seeds = iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed));
                seeds.take_while(|seed| *seed < last).for_each(planted);
            });
        }
    });
}

fn planted(seed: u64) {
    let ranks = 2 + (seed / 10) as usize % 4;
    let (_, mistake) = Program::planted(seed, ranks);
    let backend = ["auto", "eager", "rendezvous"][seed as usize % 3];
    let options = ["--backend", backend, "--look-every", "0.05"];
    let job = launch(PROGRAM).ranks(ranks).options(options);
    let outcome = job.args(["planted", &seed.to_string()]).run();
    let said = outcome.stderr.as_str();
    let is_named = mistake.words().iter().any(|words| said.contains(words));
    assert!(outcome.code != 0 && is_named, "seed {seed}: {mistake:?}: {outcome:?}");
}

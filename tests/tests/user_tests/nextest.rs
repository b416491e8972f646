//! The samples under cargo-nextest, if it is installed. There each test is a process in a process group of its own.
//! This executable is used as it is, so nothing is built.

#![allow(clippy::print_stderr, reason = "a test that cannot be made here says so")]

use std::env::consts::ARCH;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use mpj_harness::{self as harness, Launch, Outcome, mpjrun_path, workspace};
use tempfile::TempDir;

use super::{await_end, pids};

/// The exit code of nextest when a test has failed.
const FAILED: i32 = 100;

/// Files that describe this executable to nextest.
struct Nextest {
    folder: TempDir,
}

impl Nextest {
    /// Writes the files; `None`, with a message, if there is no nextest.
    fn here() -> Option<Self> {
        let version = Command::new("cargo-nextest").args(["nextest", "--version"]).output();
        if !version.is_ok_and(|output| output.status.success()) {
            eprintln!("skipped: cargo-nextest is not installed");
            return None;
        }
        let nextest = Self { folder: tempfile::tempdir().expect("a folder") };
        let metadata = cargo(&["metadata", "--offline", "--no-deps", "--format-version", "1"]);
        nextest.write("workspace.json", &metadata);
        let package = cargo(&["pkgid", "--offline", "--package", "mpj-tests"]);
        nextest.write("tests.json", &binaries(package.trim()));
        // Ends a test after a second.
        let hasty = r#"slow-timeout = { period = "1s", terminate-after = 1, grace-period = "5s" }"#;
        nextest.write("nextest.toml", &format!("[profile.hasty]\n{hasty}\n"));
        Some(nextest)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).expect("room");
    }

    /// Runs nextest on these samples, also ignored ones.
    fn command(&self, what: &str, samples: &[&str]) -> Launch {
        let mut command = harness::command("cargo-nextest");
        command = command.args(["nextest", what, "--color", "never", "--run-ignored", "all"]);
        for (option, file) in [
            ("--binaries-metadata", "tests.json"),
            ("--cargo-metadata", "workspace.json"),
            ("--config-file", "nextest.toml"),
        ] {
            command = command.args([option]).args([self.path(file)]);
        }
        command = command.args(["--user-config-file", "none", "-E"]);
        command = command.args([format!("test(/^samples::({})$/)", samples.join("|"))]);
        command = command.env("RUST_BACKTRACE", "0").env("CARGO", env!("CARGO"));
        // Variables of the nextest that may run this test, and of its user.
        for name in ["NEXTEST", "NEXTEST_PROFILE", "NEXTEST_RETRIES", "NEXTEST_NO_CAPTURE"] {
            command = command.set(|command| command.env_remove(name));
        }
        command
    }

    fn run(&self, samples: &[&str]) -> Outcome {
        self.command("run", samples).args(["--no-fail-fast"]).run()
    }
}

/// The output of cargo, which locks no target folder.
fn cargo(words: &[&str]) -> String {
    let cargo = harness::command(env!("CARGO")).args(words);
    let outcome = cargo.set(|command| command.current_dir(workspace())).expect(0);
    outcome.stdout
}

/// This executable for `--binaries-metadata`.
fn binaries(package: &str) -> String {
    let test = std::env::current_exe().expect("a test knows its own path");
    let folder = test.parent().and_then(Path::parent).and_then(Path::parent).expect("deps");
    format!(
        r#"{{"rust-build-meta": {{"target-directory": {folder:?}, "base-output-directories": [],
            "non-test-binaries": {{}}, "linked-paths": []}},
            "rust-binaries": {{"user_tests": {{"binary-id": "user_tests", "binary-name": "user_tests",
            "package-id": {package:?}, "kind": "test", "binary-path": {test:?},
            "build-platform": "target"}}}}}}"#
    )
}

#[track_caller]
fn assert_says(outcome: &Outcome, says: &[&str]) {
    for words in says {
        assert!(outcome.stderr.contains(words), "no {words:?} in:\n{}", outcome.stderr);
    }
}

#[test]
fn nextest_tells_the_samples_that_fail_with_their_reports() {
    let Some(nextest) = Nextest::here() else { return };
    let outcome = nextest.run(&["passes", "returns_a_result", "panics_as_it_should", "r#match"]);
    assert_says(&outcome, &["4 tests run: 4 passed"]);
    assert_eq!((outcome.code, outcome.stderr.contains("rank 0 of 4")), (0, false), "{outcome:?}");
    let outcome = nextest.run(&["one_rank_panics", "takes_too_long"]);
    assert_eq!(outcome.code, FAILED);
    let says = [
        "2 tests run: 0 passed, 2 failed",
        "\n    rank 2 panicked at tests/tests/user_tests/samples.rs:",
        "\n    mpjrun: rank 2 (pid ",
        "\n    not over after 2s, the test's timeout\n",
        "\n    mpjrun: the job still ran after 2 s",
    ];
    assert_says(&outcome, &says);
}

#[test]
fn a_test_that_nextest_ends_leaves_nothing() {
    let Some(nextest) = Nextest::here() else { return };
    let outcome = nextest.command("run", &["sleeps"]).args(["--profile", "hasty"]).run();
    assert_says(&outcome, &["1 test run: 0 passed, 1 timed out"]);
    let ranks: Vec<u32> = pids(outcome.stderr.lines().map(str::to_owned)).collect();
    assert_eq!(ranks.len(), 2, "{}", outcome.stderr);
    await_end(&ranks);
}

#[test]
fn nextest_lists_once_and_runs_on_ranks_with_mpjrun_as_the_runner() {
    let Some(nextest) = Nextest::here() else { return };
    let runner = format!("CARGO_TARGET_{}_UNKNOWN_LINUX_GNU_RUNNER", ARCH.to_uppercase());
    let words = format!("{} -n 2", mpjrun_path().display());
    let with_runner =
        |what| nextest.command(what, &["joins_by_itself", "at_the_root"]).env(&runner, &words);
    let listed = with_runner("list").run();
    assert_eq!(listed.stdout.matches("samples::joins_by_itself").count(), 1, "{listed:?}");
    let outcome = with_runner("run").args(["--no-capture"]).expect(0);
    let passed = "test samples::joins_by_itself ... ok";
    assert_eq!(outcome.stdout.matches(passed).count(), 2, "once by each rank: {outcome:?}");
}

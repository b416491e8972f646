//! The example programs run, as two threads and as processes under the launcher.

use std::path::PathBuf;
use std::process::Command;

use mpj_harness::{command, launch};

/// Builds the examples into the target folder of this test, and returns the path of one of them.
fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let profile = test.parent().and_then(|deps| deps.parent()).unwrap();
    let (target, folder) = (profile.parent().unwrap(), profile.file_name().unwrap());
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "--package", "am2", "--examples", "--profile"]);
    cargo.arg(if folder == "debug" { "dev".as_ref() } else { folder });
    cargo.arg("--target-dir").arg(target);
    assert!(cargo.status().unwrap().success(), "the examples cannot be built");
    profile.join("examples").join(name)
}

#[test]
fn ping_between_threads_and_between_processes() {
    let ping = example("ping");
    let rows = |outcome: mpj_harness::Outcome| outcome.stdout.lines().count();
    assert_eq!(rows(command(&ping).args(["20"]).expect(0)), 16);
    assert_eq!(rows(launch(&ping).ranks(2).args(["20"]).expect(0)), 16);
    assert_eq!(rows(launch(&ping).ranks(3).args(["20"]).expect(0)), 16);
}

#[test]
fn bulk_between_threads_and_between_processes() {
    let bulk = example("bulk");
    let rows = |outcome: mpj_harness::Outcome| outcome.stdout.lines().count();
    assert_eq!(rows(command(&bulk).args(["1"]).expect(0)), 8);
    assert_eq!(rows(launch(&bulk).ranks(2).args(["1"]).expect(0)), 8);
}

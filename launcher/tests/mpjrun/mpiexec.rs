//! `mpiexec` and `mpirun`: `mpjrun` under these names.

use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::time::Duration;

use mpj_harness::{command, mpjrun_path};
use tempfile::TempDir;

/// The launcher under this name, in a folder of its own.
fn called(name: &str) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join(name);
    symlink(mpjrun_path(), &path).expect("a link");
    (folder, path)
}

#[test]
fn a_job_that_succeeds_prints_only_its_own_output() {
    let (_folder, mpiexec) = called("mpiexec");
    let line = [
        "--oversubscribe",
        "--allow-run-as-root",
        "-usize",
        "8",
        "-genv",
        "V",
        "all",
        "-n",
        "1",
        "sh",
        "-c",
    ];
    let script = "echo $MPJ_RANK $V $W";
    let second = [":", "-env", "W", "own", "-n", "1", "sh", "-c", script];
    // Called mpjrun, it would note the unknown variable, and the options that change nothing.
    let job = command(mpiexec).env("MPJ_WAT", "1").args(line).args([script]).args(second);
    assert_eq!(job.expect_quiet().sorted_lines(), ["0 all", "1 all own"]);
}

#[test]
fn options_of_test_suites_are_taken() {
    let (folder, mpirun) = called("mpirun");
    let home = folder.path().canonicalize().expect("it is there");
    let line = ["-np", "2", "-host", "localhost", "-l", "-x", "V=a b", "-wd"];
    let job = command(&mpirun).args(line).args([&home]).args(["sh", "-c", "echo $V in $PWD"]);
    let said = |rank| format!("[{rank}] a b in {}", home.display());
    assert_eq!(job.expect_quiet().sorted_lines(), [said(0), said(1)]);
    command(mpirun)
        .args(["-hosts", "else where", "true"])
        .expect(2)
        .says("\"else where\" is no name of a host");
}

#[test]
fn a_variable_limits_the_time() {
    let (_folder, mpiexec) = called("mpiexec");
    let job =
        |limit| command(&mpiexec).env("MPIEXEC_TIMEOUT", limit).args(["-n", "2", "sleep", "600"]);
    job("0.2").limit(Duration::from_secs(20)).expect(124).says("0.2");
    job("soon").expect(2).says("MPIEXEC_TIMEOUT=soon: it must be a number of seconds");
}

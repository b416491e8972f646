//! Several programs in one job, texts that are printed without a job, and test programs of cargo.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::Command;

use crate::support::{Finished, command, mpjrun, start, start_into};

/// Prints which rank of how many this is, and a variable.
const SAY: &str = "echo $MPJ_RANK of $MPJ_SIZE: $0 $V";

#[test]
fn ranks_are_numbered_through_the_programs() {
    let line = ["-genv", "V", "all", "-n", "2", "sh", "-c", SAY, "a", ":"];
    let line = [&line[..], &["-n", "1", "-x", "V=own", "sh", "-c", SAY, "b"]].concat();
    let finished = mpjrun(line).assert_code(0);
    assert_eq!(finished.sorted_lines(), ["0 of 3: a all", "1 of 3: a all", "2 of 3: b own"]);
}

#[test]
fn a_file_of_programs_is_a_job() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("programs");
    let home = folder.path().canonicalize().expect("it is there");
    let text = format!("# two\n-n 1 pwd\n-n 1 -wdir {} pwd\n", home.display());
    std::fs::write(&file, text).expect("a file");
    let finished = mpjrun(["-l".as_ref(), "--configfile".as_ref(), file.as_os_str()]);
    let here = std::env::current_dir().expect("a folder");
    let expected = [format!("[0] {}", here.display()), format!("[1] {}", home.display())];
    assert_eq!(finished.assert_code(0).sorted_lines(), expected);
}

#[test]
fn a_missing_program_is_found_before_any_rank_starts() {
    let finished = mpjrun(["-n", "1", "echo", "started", ":", "-n", "1", "/absent/program"]);
    let finished = finished.assert_code(127).assert_says("program not found: /absent/program");
    assert_eq!(finished.text(), "");
}

#[test]
fn the_first_failure_decides_whichever_program_it_is_of() {
    let line = ["-n", "1", "sh", "-c", "sleep 20", ":", "-n", "1", "sh", "-c", "exit 7"];
    mpjrun(line).assert_code(7).assert_says("rank 1");
}

#[test]
fn a_dry_run_starts_nothing() {
    let line = ["--mca", "btl", "self", "--dry-run", "-n", "2", "-x", "A=b c", "/bin/sh", "-c"];
    let finished = mpjrun([&line[..], &["echo started"]].concat()).assert_code(0);
    let finished = finished.assert_says("--mca change nothing here");
    let rank = |rank| format!("rank {rank}: env A='b c' /bin/sh -c 'echo started'\n");
    assert_eq!(finished.text(), rank(0) + &rank(1));
    mpjrun(["--dry-run", "/absent/program"]).assert_code(127);
}

#[test]
fn a_dry_run_shows_where_ranks_would_be_bound() {
    let line = ["--dry-run", "-n", "2", "--bind-to", "hwthread", "--report-bindings", "/bin/true"];
    let (dry, real) = (mpjrun(line).assert_code(0), mpjrun(&line[1..]).assert_code(0));
    for rank in 0..2 {
        let start = format!("mpjrun: rank {rank} (pid ");
        let words =
            real.err.lines().find_map(|line| line.strip_prefix(&start)?.split_once(") is "));
        let (_, place) = words.expect("it is told");
        let expected = format!("rank {rank}: /bin/true  # {place}\n");
        assert!(dry.text().contains(&expected), "{dry:?}");
    }
    let many = mpjrun(["--dry-run", "-n", "200", "--map-by", "hwthread", "/bin/true"]);
    let many = many.assert_code(0).text();
    let usable = std::thread::available_parallelism().expect("a number").get();
    assert_eq!(many.starts_with("# 200 ranks are bound to "), usable < 200, "{many}");
    assert_eq!(many.matches("  # bound to processor ").count(), 200, "{many}");
}

#[test]
fn completions_are_printed() {
    let finished = mpjrun(["--completions", "bash"]).assert_code(0);
    assert!(finished.text().contains("--timeout"), "{finished:?}");
}

#[test]
fn a_reader_that_has_seen_enough_is_no_failure_and_a_full_disk_is() {
    let (out, reader) = UnixStream::pair().expect("a pair");
    drop(reader);
    let completions = || command(["--completions", "bash"]);
    let closed = start_into(&mut completions(), OwnedFd::from(out)).finish().assert_code(0);
    assert_eq!(closed.err, "");
    let full = File::options().write(true).open("/dev/full").expect("it is there");
    let refused = start_into(&mut completions(), full).finish().assert_code(125);
    refused.assert_says("mpjrun: cannot write standard output: No space left on device");
}

#[test]
fn unknown_variables_are_noted_and_no_error() {
    let line = ["-n", "1", "-x", "MPJ_GETT=am", "-x", "MPJ_WAT=4", "true"];
    let finished = start(command(line).env("MPJ_WAT", "3")).finish().assert_code(0);
    let note = |name: &str| {
        format!(
            "mpjrun: unknown variable {name} is ignored; mpjrun --help lists those that ranks read\n"
        )
    };
    assert_eq!(finished.err, note("MPJ_GETT") + &note("MPJ_WAT"));
}

#[test]
fn a_test_program_lists_its_tests_once() {
    let program = std::env::current_exe().expect("this test program");
    let listed = |command: &mut Command| -> Finished {
        start(command.args(["--list", "--format", "terse"])).finish().assert_code(0)
    };
    let alone = listed(&mut Command::new(&program));
    let under = listed(command(["-l", "-n", "3"]).arg(&program));
    assert!(alone.text().contains("a_test_program_lists_its_tests_once: test\n"), "{alone:?}");
    assert_eq!((under.text(), under.err), (alone.text(), alone.err));
}

//! Jobs that get less than usual: no right to read each other's memory, few open files, little memory, few processors.
//! They work in another way, or one line says what is missing.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use mpj_harness::{Outcome, Scene, command, launch, mpjrun_path};
use transport_lapi::adapters::segment_bytes;

const RANK: &str = env!("CARGO_BIN_EXE_rank");
const CONFINED: &str = env!("CARGO_BIN_EXE_confined");

/// Runs `mpjrun ARGS`, confined as `limits` say, and looks for remains.
#[track_caller]
fn confined(limits: &[&str], mpjrun: &Path, args: &[&str]) -> Outcome {
    let scene = Scene::new("");
    let job = command(CONFINED).args(limits).args(["--".as_ref(), mpjrun.as_os_str()]);
    let outcome = job.args(args).at(&scene).run();
    scene.assert_clean();
    outcome
}

/// Asserts that both ranks got their message and printed why they did not read it themselves.
#[track_caller]
fn assert_by_messages(outcome: &Outcome, why: &str) {
    assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""), "{outcome:?}");
    let lines: Vec<&str> = outcome.stdout.lines().collect();
    assert_eq!(lines.len(), 2, "{outcome:?}");
    for line in lines {
        assert!(line.starts_with("active messages (rank ") && line.contains(why), "{outcome:?}");
    }
}

const READS: [&str; 6] = ["-n", "2", "--backend", "rendezvous", RANK, "reads"];
const REFUSED: &str = "Operation not permitted";

#[test]
fn a_filter_of_system_calls_costs_speed_only() {
    let outcome = confined(&["no-reads"], &mpjrun_path(), &READS);
    assert_by_messages(&outcome, REFUSED);
}

#[test]
fn a_process_that_nobody_may_trace_costs_speed_only() {
    let words = [&READS[..5], &["unreadable"]].concat();
    let outcome = confined(&["no-ptrace"], &mpjrun_path(), &words);
    assert_by_messages(&outcome, REFUSED);
}

/// A process may change its user or forbid reads after the ranks have agreed to read.
#[test]
fn reads_that_are_refused_later_cost_speed_only() {
    for who in ["1", "all"] {
        let words = ["-n", "4", "--backend", "rendezvous", RANK, "renounced", who];
        let outcome = confined(&[], &mpjrun_path(), &words);
        assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""), "{who}: {outcome:?}");
        assert_eq!(outcome.stdout, "right\n".repeat(4), "{who}: {outcome:?}");
    }
}

#[test]
fn a_job_that_insists_is_refused_with_the_cause() {
    let words = [&["-x", "MPJ_GET=cma"], &READS[..]].concat();
    let outcome = confined(&["no-reads"], &mpjrun_path(), &words);
    assert_eq!(outcome.code, 1, "{outcome:?}");
    assert!(outcome.stderr.contains(REFUSED), "{outcome:?}");
}

#[test]
fn info_says_why_memory_is_not_read() {
    let mpjrun = mpjrun_path();
    let said = |outcome: &Outcome| {
        assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""), "{outcome:?}");
        let line = outcome.stdout.lines().find(|line| line.contains("get, as two ranks"));
        line.expect("a line about get").to_owned()
    };
    let filtered = said(&confined(&["no-reads"], &mpjrun, &["--info"]));
    assert!(
        filtered.contains("active messages (rank ") && filtered.contains(REFUSED),
        "{filtered}"
    );
    // The kernel lets nobody trace a program whose file may not be read.
    let folder = tempfile::tempdir().expect("a folder");
    let unreadable = folder.path().join("mpjrun");
    fs::copy(&mpjrun, &unreadable).expect("room for a program");
    fs::set_permissions(&unreadable, fs::Permissions::from_mode(0o111)).expect("our own file");
    let untraceable = said(&confined(&["no-ptrace"], &unreadable, &["--info"]));
    assert!(untraceable.contains(REFUSED), "{untraceable}");
    let free = said(&command(&mpjrun).args(["--info"]).run());
    assert!(!free.contains("not known"), "{free}");
}

#[test]
fn a_job_with_too_few_files_says_so() {
    for files in (4..40).step_by(3) {
        let limit = format!("files={files}");
        let outcome = confined(&[&limit], &mpjrun_path(), &["-n", "8", RANK, "well"]);
        let Outcome { code, stderr, .. } = &outcome;
        assert!([0, 1, 125].contains(code), "{limit}: {outcome:?}");
        assert!(*code == 0 || stderr.contains("ulimit -n"), "{limit}: {outcome:?}");
    }
}

#[test]
fn a_job_with_too_little_memory_says_how_much_it_wants_and_may_have() {
    let words = ["-n", "64", RANK, "well"];
    for limit in ["memory=120000000", "file-size=1000000"] {
        let outcome = confined(&[limit], &mpjrun_path(), &words);
        let (_, number) = limit.split_once('=').expect("a limit");
        assert!([1, 125].contains(&outcome.code), "{limit}: {outcome:?}");
        let wanted =
            format!("{} bytes wanted", segment_bytes(64, 1).expect("so many ranks may be"));
        for words in ["job segment", &wanted, number] {
            assert!(outcome.stderr.contains(words), "{limit}: no {words:?} in {outcome:?}");
        }
    }
}

#[test]
fn many_ranks_on_few_processors() {
    let outcome = launch(RANK).ranks(64).args(["well"]).expect(0);
    assert_eq!(outcome.stdout.lines().count(), 64, "{outcome:?}");
    for (how, code) in [("kill", 137), ("exit3", 3), ("panic", 101)] {
        let job = launch(RANK).ranks(64).args(["after", how, "17"]);
        job.expect(code).says("rank 17 (pid ");
    }
}

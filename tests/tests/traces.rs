//! `mpjrun --trace` and `--profile` of programs in Rust: what is shown of their calls, messages and parts.

use mpj_harness::{Outcome, Shown, example, launch};
use tempfile::TempDir;

const RANKS: usize = 4;

/// Runs an example program with a trace.
fn traced(program: &str, options: &[&str], args: &[&str]) -> (Outcome, Shown) {
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("trace");
    let job = launch(example(program)).ranks(RANKS).options(["--trace"]).options([&file]);
    let outcome = job.options(options).args(args).run();
    (outcome, Shown::read(&file))
}

#[test]
fn calls_messages_and_parts_are_shown() {
    let steps = 5;
    for check in ["--check", "--check=no"] {
        let (outcome, shown) = traced("uneven", &[check], &["--steps", "5", "--cells", "10"]);
        assert_eq!(outcome.code, 0, "{outcome:?}");
        assert!(outcome.stderr.contains("calls; open it at"), "{outcome:?}");
        assert_eq!(shown.tracks[1..], ["rank 0", "rank 1", "rank 2", "rank 3"]);
        for (name, count) in [
            ("init", RANKS),
            ("step", RANKS * steps),
            // One that checks the outcome comes at the end.
            ("allreduce", RANKS * (steps + 1)),
            ("finish", RANKS),
        ] {
            assert_eq!(shown.calls(name), count, "{check}, {name}: {:?}", shown.calls);
        }
        assert!(shown.calls("sendrecv") > 0, "{:?}", shown.calls);
        assert!(shown.messages.values().all(|ends| *ends == 2), "{:?}", shown.messages);
        // Each pair of neighbours exchanges two messages in a step.
        assert_eq!(shown.messages.len(), (RANKS - 1) * 2 * steps, "{check}: {:?}", shown.calls);
    }
}

#[test]
fn requests_that_are_waited_for_belong_to_their_messages() {
    for program in ["nbody", "laplace", "sort", "pipeline"] {
        let (outcome, shown) = traced(program, &[], &[]);
        assert_eq!(outcome.code, 0, "{program}: {outcome:?}");
        assert!(shown.messages.values().all(|ends| *ends == 2), "{program}: {:?}", shown.messages);
    }
    let (_, shown) = traced("nbody", &[], &["--bodies", "64", "--steps", "2"]);
    assert!(shown.calls("isend") > 0 && shown.calls("irecv") > 0, "{:?}", shown.calls);
    assert!(!shown.messages.is_empty() && shown.calls("wait") > 0, "{:?}", shown.calls);
}

#[test]
fn a_profile_names_ranks_and_lines() {
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("page.html");
    let option = format!("--profile={}", file.display());
    let job = launch(example("uneven")).ranks(RANKS).options([&option]);
    let said = job.args(["--steps", "5", "--cells", "10"]).expect(0).stderr;
    for words in ["mpjrun: 4 ranks, ", "made others wait", "allreduce", "has the whole profile"] {
        assert!(said.contains(words), "{words}: {said}");
    }
    let page = std::fs::read_to_string(&file).expect("it was written");
    for words in
        ["allreduce at mpj/examples/uneven.rs:", "step at mpj/examples/uneven.rs:", "finish"]
    {
        assert!(page.contains(words), "{words}: {page}");
    }
}

#[test]
fn what_finds_no_memory_is_said() {
    let (outcome, shown) = traced("ring", &["--trace-memory", "1M"], &["--laps", "3500"]);
    assert_eq!(outcome.code, 0, "{outcome:?}");
    assert!(outcome.stderr.contains("later calls are missing"), "{outcome:?}");
    assert!(shown.tracks[1].starts_with("rank 0 (without its last "), "{:?}", shown.tracks);
}

#[test]
fn a_file_that_cannot_be_written_is_refused_first() {
    let job = launch("true").ranks(1).options(["--trace", "/absent/file"]);
    job.expect(2).says("mpjrun: --trace /absent/file: No such file or directory");
}

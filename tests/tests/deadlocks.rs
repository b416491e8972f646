//! Deadlocks are found and named, and programs that are none are left alone.
//!
//! `MPJ_PROGRAMS=10000 MPJ_PROGRAMS_SEED=1 cargo test -p mpj-tests --test deadlocks` runs more
//! programs, and others.

use mpj_tests::faults::asked;
use mpj_tests::launch;

const PROGRAM: &str = env!("CARGO_BIN_EXE_program");

/// Jobs that the correct programs are spread over: for each number of ranks one per protocol.
const JOBS: [(&str, &str); 8] = [
    ("2", "auto"),
    ("3", "rendezvous"),
    ("4", "auto"),
    ("5", "eager"),
    ("2", "rendezvous"),
    ("3", "eager"),
    ("4", "rendezvous"),
    ("5", "auto"),
];

#[test]
fn correct_programs_are_left_alone() {
    let (count, first) = (asked("MPJ_PROGRAMS", 2_400), asked("MPJ_PROGRAMS_SEED", 1));
    let each = count.div_ceil(JOBS.len() as u64);
    for (job, (ranks, backend)) in JOBS.into_iter().enumerate() {
        let first = first + job as u64 * each;
        let (first, each) = (first.to_string(), each.to_string());
        let words = ["-n", ranks, "--backend", backend, PROGRAM, "correct", &first, &each];
        let outcome = launch::mpjrun(&words);
        let end = (outcome.code, outcome.stderr.as_str());
        assert_eq!(end, (0, ""), "mpjrun {}", words.join(" "));
    }
}

//! Random sequences of calls with freed, wrong and invented handles, and with pointers that are null or valid. Every call
//! returns a code: nothing crashes, hangs, panics or accepts a handle that names nothing.
//!
//! A sequence runs in a process of its own, which is this program again: `plays_a_sequence` reads it from standard
//! input. So a crash is a failed case, which proptest makes smaller.

use std::fs::File;
use std::io::Write;

use mpj_harness::{command, libmpi};
use proptest::prelude::*;
use tempfile::NamedTempFile;

#[path = "fuzz/choice.rs"]
mod choice;
#[path = "fuzz/player.rs"]
mod player;

/// A call: the name of the function, and one random number for each argument.
type Call = (String, Vec<u32>);

fn call() -> impl Strategy<Value = Call> {
    let numbers = prop::collection::vec(any::<u32>(), choice::MOST_ARGUMENTS);
    (prop::sample::select(choice::functions()), numbers)
}

/// Runs a sequence in a process of its own.
fn play(calls: &[Call]) {
    let mut input = NamedTempFile::new().expect("a temporary file");
    writeln!(input, "{}", libmpi().display()).expect("it is writable");
    for (name, numbers) in calls {
        let numbers: Vec<_> = numbers.iter().map(u32::to_string).collect();
        writeln!(input, "{name} {}", numbers.join(" ")).expect("it is writable");
    }
    let program = std::env::current_exe().expect("this program has a path");
    let options = ["--exact", "plays_a_sequence", "--ignored", "--nocapture"];
    let input = File::open(input.path()).expect("it was written");
    command(program).args(options).stdin(input).expect(0);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn wrong_arguments_give_errors_and_never_crash(calls in prop::collection::vec(call(), 1..400)) {
        play(&calls);
    }
}

#[test]
#[ignore = "the process that the test above starts"]
fn plays_a_sequence() {
    player::play(std::io::stdin().lines().map(|line| line.expect("the sequence is text")));
}

//! The example programs run, as threads and as processes under the launcher.

use mpj_harness::{Outcome, command, example, launch};

fn lines(outcome: &Outcome) -> usize {
    outcome.stdout.lines().count()
}

#[test]
fn a_message_with_both_handlers() {
    let handlers = example("handlers");
    for outcome in [command(&handlers).expect(0), launch(&handlers).ranks(2).expect(0)] {
        assert!(outcome.stdout.ends_with("the answer: Letters!\n"), "{}", outcome.stdout);
    }
}

#[test]
fn a_hash_table_over_all_tasks() {
    let table = example("hash_table");
    for outcome in
        [command(&table).args(["100"]).expect(0), launch(&table).ranks(3).args(["100"]).expect(0)]
    {
        assert!(outcome.stdout.contains("100 keys each: all values found"), "{}", outcome.stdout);
    }
}

/// They only measure; what they rely on has tests of its own.
#[test]
fn the_measuring_programs_run() {
    let interrupt = example("interrupt");
    assert_eq!(lines(&launch(&interrupt).ranks(2).args(["1"]).expect(0)), 2);
    let contexts = example("contexts");
    let launch = launch(&contexts).ranks(2).options(["--contexts", "2"]).args(["1000"]).expect(0);
    assert_eq!(lines(&launch), 3);
}

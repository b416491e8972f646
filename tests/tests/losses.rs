//! Jobs that go on without ranks that were lost (`--on-failure keep`): what the calls of the others do.

use mpj_harness::process::{await_end, is_suspended, signal};
use mpj_harness::{Launch, eventually, launch};
use rustix::process::Signal;

const SURVIVOR: &str = env!("CARGO_BIN_EXE_survivor");

fn kept(ranks: usize, words: &[&str]) -> Launch {
    launch(SURVIVOR).ranks(ranks).options(["--on-failure", "keep"]).args(words)
}

/// The sender has left the send by a panic and uses the buffer again: the message arrives as it was, or not at all. At
/// the panic, the receiver has read none of it, a part, or most.
#[test]
fn a_message_whose_buffer_is_used_again_is_never_received() {
    for millis in ["3", "10", "20", "40"] {
        let outcome = kept(2, &["overwritten", millis]).run();
        let told = outcome.stdout.as_str();
        let is_whole = told == "received, 0 blocks are not the sender's\n";
        let is_refused = told.starts_with("refused: rank 0 is gone");
        assert!(is_whole || is_refused, "after {millis} ms: {outcome:?}");
    }
}

/// The same behind scripts, which reap the ranks that they have started.
#[test]
fn ranks_behind_scripts_exchange_long_messages_in_a_job_that_goes_on() {
    let script = "\"$0\" \"$@\"; exit $?";
    let job = launch("sh").ranks(2).options(["--on-failure", "keep"]);
    let outcome = job.args(["-c", script, SURVIVOR, "long"]).expect(0);
    assert_eq!(outcome.stdout, "whole\n", "{outcome:?}");
}

/// Ranks pass a broadcast on. One whose fetch from the lost root has failed has nothing to pass on, and must say so.
#[test]
fn no_rank_succeeds_with_data_that_a_lost_root_has_not_sent() {
    for round in 0..10 {
        let micros = (500 + 700 * round).to_string();
        let job = kept(6, &["root-killed", &micros]).options(["--backend", "rendezvous"]);
        let outcome = job.expect(137);
        assert_eq!(outcome.stdout, "right\n".repeat(5), "{outcome:?}");
    }
}

/// A rank that has ended is lost to those who need it, also if its exit code is 0. What it had sent before can be
/// received.
#[test]
fn a_rank_that_ends_well_after_a_loss_is_lost_to_the_others() {
    let job = kept(3, &["one-ended"]).start();
    let [ended, last] = job.numbers(2)[..] else { panic!("two ranks tell their numbers") };
    eventually("the first loss is told", || job.stderr().contains("was killed by signal 9"));
    await_end(&[ended]);
    eventually("it waits", || is_suspended(last));
    signal(last, Signal::CONT).expect("it is there");
    let outcome = job.expect(137);
    assert!(!outcome.stderr.contains("rank 1 (pid"), "{outcome:?}");
    let told: Vec<&str> = outcome.stdout.lines().filter(|line| line.starts_with("2 ")).collect();
    let [received, sent, missed, finish] = told[..] else { panic!("{outcome:?}") };
    assert_eq!(received, "2 receive what the ended rank had sent: well");
    assert!(sent.starts_with("2 send to the ended rank: rank 1 is gone"), "{outcome:?}");
    assert!(missed.starts_with("2 receive what it had not sent: rank 1 is gone"), "{outcome:?}");
    assert!(finish.starts_with("2 finish: rank 0 is gone"), "{outcome:?}");
}

/// Two of four ranks are killed. What needs no waiting succeeds; the first call that would have to wait for a lost rank
/// fails and names it, and so do all that need one from then on; the others go on, and nobody waits in vain.
#[test]
fn two_of_four_ranks_are_killed() {
    // A send that is checked looks for losses first.
    let job = kept(4, &["two-lost"]).options(["--check=no"]).start();
    let losses = || job.stderr().matches("was killed by signal 9").count();
    eventually("both losses are told", || losses() == 2);
    for survivor in job.numbers(2) {
        eventually("it waits", || is_suspended(survivor));
        signal(survivor, Signal::CONT).expect("it is there");
    }
    let outcome = job.expect(137);
    for rank in ["0", "1"] {
        let told = outcome.stdout.lines().filter_map(|line| line.strip_prefix(rank)).map(str::trim);
        let told: Vec<(&str, &str)> = told.filter_map(|line| line.split_once(": ")).collect();
        let expected = [
            ("send to a living rank", true),
            ("send to a lost rank", true),
            ("receive what a living rank has sent", true),
            ("receive what a lost rank had sent", true),
            ("receive what has not come", false),
            ("send after that", false),
            ("send to the other one", false),
            ("exchange", true),
            ("receive from any", true),
            ("barrier", false),
            ("finish", false),
        ];
        let calls: Vec<(&str, bool)> =
            told.iter().map(|&(call, what)| (call, what == "well")).collect();
        assert_eq!(calls, expected, "rank {rank}: {outcome:?}");
        let is_named =
            |what: &str| what.contains("rank 2 is gone") || what.contains("rank 3 is gone");
        assert!(told.iter().all(|(_, what)| *what == "well" || is_named(what)), "{outcome:?}");
    }
}

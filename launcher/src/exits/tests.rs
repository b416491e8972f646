//! Who decides, with which code, in which words.

use super::*;

const START: u64 = 1_000_000_000;

fn ms(after_start: u64) -> u64 {
    START + after_start * 1_000_000
}

fn ledger(ranks: u32) -> Ledger {
    Ledger::new(START, ranks as usize, (0..ranks).map(|rank| 100 + rank))
}

fn join(ledger: &mut Ledger, rank: u32) {
    assert!(ledger.note(
        rank as usize,
        ControlMessage::Joined { task: rank, pid: 200 + rank },
        ms(1)
    ));
}

fn finish(ledger: &mut Ledger, rank: u32) {
    assert!(ledger.note(rank as usize, ControlMessage::Finished { task: rank }, ms(1)));
}

fn panic(ledger: &mut Ledger, rank: u32, at: u64, text: &str) {
    let (message, location) = (text.to_owned(), "src/main.rs:1:2".to_owned());
    let failed = ControlMessage::Failed { task: rank, at_nanos: at, message, location };
    assert!(ledger.note(rank as usize, failed, ms(1_000)));
}

fn fault(ledger: &Ledger) -> Option<(usize, Fault)> {
    ledger.first_failure().map(|failure| (failure.rank, failure.fault))
}

#[test]
fn the_first_failure_in_time_decides() {
    let mut job = ledger(3);
    assert_eq!(fault(&job), None);
    job.ended(2, Ending::Code(5), ms(20));
    assert_eq!(fault(&job), Some((2, Fault::Code(5))));
    job.ended(0, Ending::Signal(9), ms(30));
    assert_eq!(fault(&job), Some((2, Fault::Code(5))));
    job.ended(1, Ending::Signal(11), ms(10));
    assert_eq!(fault(&job), Some((1, Fault::Signal(11))));
}

#[test]
fn a_program_that_never_joins_is_fine_if_nobody_does() {
    let mut job = ledger(2);
    job.ended(0, Ending::Code(0), ms(5));
    job.ended(1, Ending::Code(0), ms(6));
    assert_eq!(fault(&job), None);
}

#[test]
fn a_rank_that_never_joins_fails_when_another_joins_before_or_after() {
    let mut before = ledger(2);
    join(&mut before, 0);
    before.ended(1, Ending::Code(0), ms(5));
    assert_eq!(fault(&before), Some((1, Fault::NeverJoined)));
    let mut after = ledger(2);
    after.ended(1, Ending::Code(0), ms(5));
    assert_eq!(fault(&after), None);
    join(&mut after, 0);
    assert_eq!(fault(&after), Some((1, Fault::NeverJoined)));
}

#[test]
fn exit_code_0_without_finishing_is_a_failure() {
    let mut job = ledger(1);
    join(&mut job, 0);
    job.ended(0, Ending::Code(0), ms(5));
    assert_eq!(fault(&job), Some((0, Fault::Unfinished)));
    finish(&mut job, 0);
    assert_eq!(fault(&job), None);
}

#[test]
fn an_earlier_panic_is_awaited_and_decides() {
    let mut job = ledger(2);
    panic(&mut job, 1, ms(10), "boom");
    job.ended(0, Ending::Code(1), ms(12));
    let failure = job.first_failure().expect("rank 0 failed");
    assert_eq!(failure.rank, 0);
    assert!(job.awaits_earlier(&failure));
    job.ended(1, Ending::Code(101), ms(14));
    assert_eq!(fault(&job), Some((1, Fault::Code(101))));
    assert!(!job.awaits_earlier(&failure));
}

#[test]
fn a_caught_panic_neither_fails_nor_delays() {
    let mut job = ledger(2);
    panic(&mut job, 1, ms(10), "caught");
    join(&mut job, 1);
    finish(&mut job, 1);
    job.ended(1, Ending::Code(0), ms(11));
    assert_eq!(fault(&job), None);
    job.ended(0, Ending::Code(1), ms(12));
    let failure = job.first_failure().expect("rank 0 failed");
    assert_eq!((failure.rank, job.awaits_earlier(&failure)), (0, false));
}

#[test]
fn claims_are_bounded() {
    let mut job = ledger(2);
    assert!(!job.note(0, ControlMessage::Finished { task: 1 }, ms(1)), "another rank's words");
    panic(&mut job, 0, u64::MAX, "from the future");
    panic(&mut job, 1, 0, "from before the start");
    assert_eq!(job.records[0].complained_at(), Some(ms(1_000)));
    assert_eq!(job.records[1].complained_at(), Some(START));
}

#[test]
fn exit_codes() {
    let failed = |fault| Verdict::Failed(Failure { rank: 0, fault, at: START }).exit_code();
    assert_eq!(failed(Fault::Code(3)), 3);
    assert_eq!(failed(Fault::Signal(9)), 137);
    assert_eq!(failed(Fault::Unfinished), 1);
    assert_eq!(failed(Fault::NeverJoined), 1);
    assert_eq!(Verdict::TimedOut(Duration::from_secs(1)).exit_code(), 124);
    assert_eq!(Verdict::Signalled(libc::SIGINT).exit_code(), 130);
    assert_eq!(Verdict::Signalled(libc::SIGTERM).exit_code(), 143);
    assert_eq!(Verdict::OutputClosed.exit_code(), 141);
    assert_eq!(Verdict::OutputRefused(Errno::NOSPC).exit_code(), 125);
}

#[test]
fn the_report_names_cause_panic_and_every_other_rank() {
    let mut job = ledger(5);
    (0..4).for_each(|rank| join(&mut job, rank));
    finish(&mut job, 3);
    job.ended(3, Ending::Code(0), ms(300));
    panic(&mut job, 1, ms(500), "left != right\nleft: 1");
    job.ended(1, Ending::Code(101), ms(520));
    for rank in [0, 2, 4] {
        job.ended(rank, Ending::Signal(libc::SIGTERM), ms(530));
    }
    let failure = job.first_failure().expect("rank 1 failed");
    let expected = "\
mpjrun: rank 1 (pid 201) exited with code 101 0.52 s after start
mpjrun:   it panicked at src/main.rs:1:2: left != right
mpjrun:     left: 1
mpjrun:   ranks 0, 2: joined, still running; ended by mpjrun
mpjrun:   rank 3: finished, exited with code 0
mpjrun:   rank 4: not joined, still running; ended by mpjrun
";
    assert_eq!(job.report(Verdict::Failed(failure), ms(525)), expected);
}

#[test]
fn every_fault_has_its_words() {
    let words = |fault| {
        let mut job = ledger(1);
        job.ended(0, Ending::Code(0), ms(1_250));
        job.report(Verdict::Failed(Failure { rank: 0, fault, at: ms(1_250) }), ms(1_250))
    };
    assert_eq!(
        words(Fault::Signal(9)),
        "mpjrun: rank 0 (pid 100) was killed by signal 9 (SIGKILL) 1.25 s after start\n"
    );
    assert_eq!(
        words(Fault::Unfinished),
        "mpjrun: rank 0 (pid 100) exited with code 0 without finishing: keep the World alive until \
         the end of main and let it drop (1.25 s after start)\n"
    );
    assert!(words(Fault::NeverJoined).contains("rank 0 (pid 100) ended without joining the job"));
}

#[test]
fn a_complaint_that_is_no_panic_is_told_as_such() {
    let mut job = ledger(1);
    join(&mut job, 0);
    let (message, location) = ("task 1 is gone".to_owned(), String::new());
    let failed = ControlMessage::Failed { task: 0, at_nanos: ms(10), message, location };
    assert!(job.note(0, failed, ms(11)));
    job.ended(0, Ending::Code(0), ms(20));
    let failure = job.first_failure().expect("it did not finish");
    let expected = "\
mpjrun: rank 0 (pid 200) exited with code 0 without finishing 0.02 s after start
mpjrun:   it said: task 1 is gone
";
    assert_eq!(job.report(Verdict::Failed(failure), ms(21)), expected);
}

#[test]
fn reports_of_other_verdicts() {
    let mut job = ledger(2);
    join(&mut job, 1);
    job.ended(0, Ending::Signal(libc::SIGKILL), ms(2_000));
    let timed_out = "\
mpjrun: the job still ran after 1.5 s (--timeout)
mpjrun:   rank 0: not joined, still running; ended by mpjrun
mpjrun:   rank 1: joined, still running; does not even react to SIGKILL
";
    assert_eq!(job.report(Verdict::TimedOut(Duration::from_millis(1500)), ms(1_500)), timed_out);
    let signalled = "\
mpjrun: ended by signal 15 (SIGTERM)
mpjrun:   rank 0: not joined, still running; ended by mpjrun
mpjrun:   rank 1: joined, still running; does not even react to SIGKILL
";
    assert_eq!(job.report(Verdict::Signalled(libc::SIGTERM), ms(1)), signalled);
    assert_eq!(job.report(Verdict::OutputClosed, ms(1)), "");
    assert_eq!(signal_words(40), "signal 40");
}

#[test]
fn ranges_are_short() {
    assert_eq!(ranges(&[3]), "3");
    assert_eq!(ranges(&[0, 1, 2, 5, 7, 8]), "0-2, 5, 7-8");
}

#[test]
fn of_many_complaints_the_first_and_the_latest_are_told_in_order() {
    let mut job = ledger(1);
    for turn in 1..=6 {
        panic(&mut job, 0, ms(turn), &format!("number {turn}"));
    }
    job.ended(0, Ending::Code(101), ms(7));
    let failure = job.first_failure().expect("it failed");
    let report = job.report(Verdict::Failed(failure), ms(8));
    let told: Vec<&str> =
        report.lines().filter_map(|line| line.split_once("number ")).map(|(_, n)| n).collect();
    assert_eq!(told, ["1", "4", "5", "6"]);
}

#[test]
fn complaints_are_told_where_no_rank_is_the_cause() {
    let mut job = ledger(3);
    panic(&mut job, 0, ms(5), "caught");
    finish(&mut job, 0);
    panic(&mut job, 1, ms(6), "in a thread\nof two lines");
    for verdict in [Verdict::TimedOut(Duration::from_secs(1)), Verdict::Signalled(libc::SIGINT)] {
        let report = job.report(verdict, ms(10));
        let told =
            "mpjrun:   rank 1 panicked at src/main.rs:1:2: in a thread\nmpjrun:     of two lines\n";
        assert!(report.ends_with(told), "{report}");
        assert!(!report.contains("caught"), "{report}");
    }
    (0..100).for_each(|turn| panic(&mut job, 1, ms(turn), "again"));
    (0..100).for_each(|turn| panic(&mut job, 2, ms(turn), "again"));
    assert!(!job.report(Verdict::Signalled(2), ms(200)).contains("more complaints"));
}

#[test]
fn complaints_of_many_ranks_are_counted_rather_than_told() {
    let mut job = ledger(20);
    (0..20).for_each(|rank| panic(&mut job, rank, ms(5), "boom"));
    let report = job.report(Verdict::Signalled(libc::SIGINT), ms(10));
    assert_eq!(report.matches("boom").count(), TOLD_COMPLAINTS);
    assert!(report.ends_with("mpjrun:   and 4 more complaints\n"), "{report}");
}

#[test]
fn a_rank_that_waits_for_the_others_is_told_as_such() {
    let mut job = ledger(3);
    (0..2).for_each(|rank| join(&mut job, rank));
    assert!(job.note(1, ControlMessage::Leaving { task: 1 }, ms(2)));
    let report = job.report(Verdict::TimedOut(Duration::from_secs(1)), ms(1_000));
    let waits = "rank 1: has dropped its World and waits for the others, still running; ";
    assert!(report.contains(waits), "{report}");
    finish(&mut job, 1);
    let report = job.report(Verdict::TimedOut(Duration::from_secs(1)), ms(1_000));
    assert!(report.contains("rank 1: finished, still running; "), "{report}");
}

#[test]
fn ranks_that_were_not_started_are_told_as_such() {
    let mut job = Ledger::new(START, 5, [100, 101]);
    job.ended(1, Ending::Code(9), ms(10));
    job.ended(0, Ending::Signal(libc::SIGTERM), ms(20));
    let failure = job.first_failure().expect("rank 1 failed");
    let expected = "\
mpjrun: rank 1 (pid 101) exited with code 9 0.01 s after start
mpjrun:   rank 0: not joined, still running; ended by mpjrun
mpjrun:   ranks 2-4: not started
";
    assert_eq!(job.report(Verdict::Failed(failure), ms(15)), expected);
}

#[test]
fn a_line_that_was_closed_before_the_end_is_the_fault() {
    let mut alone = ledger(1);
    join(&mut alone, 0);
    alone.line_closed(0, ms(100));
    alone.ended(0, Ending::Code(0), ms(900));
    assert_eq!(fault(&alone), Some((0, Fault::LineClosed)));
    let failure = alone.first_failure().expect("it failed");
    let report = alone.report(Verdict::Failed(failure), ms(901));
    assert!(report.contains("its control line to mpjrun was closed before"), "{report}");
    assert!(!report.contains("keep the World alive"), "{report}");
    let mut together = ledger(1);
    join(&mut together, 0);
    together.line_closed(0, ms(899));
    together.ended(0, Ending::Code(0), ms(900));
    assert_eq!(fault(&together), Some((0, Fault::Unfinished)));
}

//! The headline, the complaints of ranks, and the lines about ranks that were not blocked.

use transport_lapi::bootstrap::control::MessageCounts;

use super::*;

/// The report where nobody looked at the ranks.
fn report(job: &ExitLog, verdict: Verdict, stopped_at: u64) -> String {
    of_verdict(job, verdict, stopped_at, &Snapshot::unread(stopped_at))
}

#[test]
fn the_report_names_cause_panic_and_every_other_rank() {
    let mut job = exit_log(5);
    (0..4).for_each(|rank| join(&mut job, rank));
    finish(&mut job, 3);
    job.ended(3, Ending::Code(0), ms(300));
    panic(&mut job, 1, ms(500), "left != right\nleft: 1");
    job.ended(1, Ending::Code(101), ms(520));
    for rank in [0, 2, 4] {
        job.ended(rank, Ending::Signal(libc::SIGTERM), ms(530));
    }
    let failure = failure_of(&job);
    let expected = "\
mpjrun: rank 1 (pid 101, host box) exited with code 101, 0.52 s after start
mpjrun:   it panicked at src/main.rs:1:2: left != right
mpjrun:     left: 1
mpjrun:   ranks 0, 2: joined, still running; ended by mpjrun
mpjrun:   rank 3: finished, exited with code 0
mpjrun:   rank 4: not joined, still running; ended by mpjrun
";
    assert_eq!(report(&job, Verdict::Failed(failure), ms(525)), expected);
}

#[test]
fn every_fault_has_its_words() {
    let words = |fault| {
        let mut job = exit_log(1);
        job.ended(0, Ending::Code(0), ms(1_250));
        report(&job, Verdict::Failed(Failure { rank: 0, fault, at: ms(1_250) }), ms(1_250))
    };
    assert_eq!(
        words(Fault::Signal(9)),
        "mpjrun: rank 0 (pid 100, host box) was killed by signal 9 (SIGKILL), 1.25 s after start\n"
    );
    assert_eq!(
        words(Fault::Unfinished),
        "mpjrun: rank 0 (pid 100, host box) exited with code 0 without finishing: in C, call MPI_Finalize; in \
         Rust, keep the World alive until the end of main and let it drop (process::exit, mem::forget, and a \
         World in a static or in an Arc that is left drop none), or call World::finish first (1.25 s after start)\n"
    );
    for (fault, part) in [
        (Fault::NeverJoined, "rank 0 (pid 100, host box) ended without joining the job"),
        (Fault::GaveUp { panicked: true }, ") panicked, gave up its place in the job, and has not"),
        (
            Fault::GaveUp { panicked: false },
            ") met an error, gave up its place in the job, and has",
        ),
        (
            Fault::Gone { panicked: true },
            ") panicked and ended without finishing, 1.25 s after start, and the script that started it goes on",
        ),
        (
            Fault::Deserted,
            ") lost a thread by a panic, 1.25 s after start, and now every rank waits",
        ),
    ] {
        assert!(words(fault).contains(part), "{}", words(fault));
    }
}

#[test]
fn who_fails_before_it_joins_a_job_that_others_join() {
    let mut job = exit_log(2);
    job.ended(1, Ending::Code(101), ms(20));
    let text = report(&job, Verdict::Failed(failure_of(&job)), ms(21));
    assert!(text.contains("exited with code 101, 0.02 s after start\n"), "{text}");
    join(&mut job, 0);
    let text = report(&job, Verdict::Failed(failure_of(&job)), ms(21));
    assert!(text.contains("101, 0.02 s after start, before it joined the job\n"), "{text}");
}

/// What is said of a rank that exits with code 0 before it finishes.
fn unfinished(before: impl FnOnce(&mut ExitLog)) -> String {
    let mut job = exit_log(1);
    before(&mut job);
    join(&mut job, 0);
    job.ended(0, Ending::Code(0), ms(20));
    report(&job, Verdict::Failed(failure_of(&job)), ms(21))
}

#[test]
fn a_script_whose_code_hides_that_of_its_program() {
    let joined = ControlMessage::Joined { pid: 300 };
    let text = unfinished(|job| job.note(0, joined, ms(2)));
    assert!(text.contains("rank 0 (pid 300, host box) exited with code 0 without"), "{text}");
    assert!(text.contains("that is the script's code"), "{text}");
}

#[test]
fn an_error_that_was_dealt_with_and_not_said_so() {
    let text = unfinished(|job| {
        complain(job, 0, ms(10), "too long", "");
        job.note(0, ControlMessage::GaveUp { at_nanos: ms(10) }, ms(11));
    });
    assert!(text.contains("ends with World::finish\nmpjrun:   it said: too long\n"), "{text}");
}

/// The report on a rank that left messages, printed something, and ended with this code, and in brief.
fn left_messages(code: i32, printed: &str) -> (String, String) {
    let mut job = joined(2);
    mistake(&mut job, 1, ms(10), "a message was never received");
    job.printed_last(1, printed.to_owned());
    finish(&mut job, 0);
    job.ended(0, Ending::Code(0), ms(11));
    job.ended(1, Ending::Code(code), ms(20));
    let verdict = Verdict::Failed(failure_of(&job));
    (report(&job, verdict, ms(21)), in_brief(&job, verdict).expect("it has failed"))
}

#[test]
fn messages_that_a_rank_left_are_told_behind_why_it_ended() {
    let said = "mpjrun:   it said: a message was never received\n";
    let brief = "rank 1 said: a message was never received";
    let (text, in_brief) = left_messages(0, "");
    let first =
        "exited with code 0, 0.02 s after start, and left messages that it never received\n";
    assert!(text.contains(&[first, said].concat()), "{text}");
    assert_eq!(in_brief, brief);
    let (text, in_brief) = left_messages(1, "Error: no such file");
    let printed = "0.02 s after start\nmpjrun:   it printed last: Error: no such file\n";
    assert!(text.contains(&[printed, said].concat()), "{text}");
    assert_eq!(in_brief, "rank 1 exited with code 1: Error: no such file");
    let (text, in_brief) = left_messages(1, "Error: a message was never received");
    assert!(text.contains(&["0.02 s after start\n", said].concat()), "{text}");
    assert_eq!(in_brief, brief);
}

#[test]
fn a_complaint_that_is_no_panic_is_told_as_such() {
    let mut job = exit_log(1);
    join(&mut job, 0);
    complain(&mut job, 0, ms(10), "rank 1 is gone", "");
    job.ended(0, Ending::Code(0), ms(20));
    assert!(job.stuck());
    let failure = failure_of(&job);
    let expected = "\
mpjrun: rank 0 (pid 100, host box) exited with code 0 without finishing, 0.02 s after start
mpjrun:   it said: rank 1 is gone
";
    assert_eq!(report(&job, Verdict::Failed(failure), ms(21)), expected);
}

#[test]
fn what_ranks_say_acts_on_no_terminal_and_has_an_end() {
    let mut job = exit_log(1);
    join(&mut job, 0);
    panic(&mut job, 0, ms(5), &format!("\x1b]0;title\x07\ra{}b", "\n".repeat(32 << 10)));
    job.ended(0, Ending::Code(101), ms(7));
    let failure = failure_of(&job);
    let text = report(&job, Verdict::Failed(failure), ms(8));
    assert!(!text.contains(|char: char| char.is_control() && char != '\n'), "{text:?}");
    assert!(text.contains(r"\u{1b}]0;title\u{7}\ra"), "{text}");
    assert!(text.ends_with("mpjrun:     and 32749 more lines\n"), "{text}");
    assert_eq!(text.lines().count(), 22);
    assert!(text.lines().all(|line| line.starts_with("mpjrun:")), "{text}");
    let brief = in_brief(&job, Verdict::Failed(failure)).expect("a panic");
    assert!(!brief.contains(['\x1b', '\r']) && brief.ends_with("more lines"), "{brief}");
}

#[test]
fn a_long_line_that_a_rank_has_said_is_cut() {
    let mut job = exit_log(1);
    join(&mut job, 0);
    panic(&mut job, 0, ms(5), &"x".repeat(30_000));
    job.ended(0, Ending::Code(101), ms(7));
    let verdict = Verdict::Failed(failure_of(&job));
    let end = "xxx... (27952 bytes more)";
    let text = report(&job, verdict, ms(8));
    assert!(text.ends_with(&format!("{end}\n")) && text.len() < 2_300, "{text}");
    let brief = in_brief(&job, verdict).expect("a panic");
    assert!(brief.ends_with(end) && brief.len() < 2_300, "{brief}");
}

#[test]
fn reports_of_other_verdicts() {
    let mut job = exit_log(2);
    join(&mut job, 1);
    job.ended(0, Ending::Signal(libc::SIGKILL), ms(2_000));
    let timed_out = "\
mpjrun: the job still ran after 1.5 s, its time limit
mpjrun:   rank 0: not joined, still running; ended by mpjrun
mpjrun:   rank 1: joined, still running, even after SIGKILL
";
    assert_eq!(report(&job, Verdict::TimedOut(Duration::from_millis(1500)), ms(1_500)), timed_out);
    let signalled = "\
mpjrun: ended by signal 15 (SIGTERM)
mpjrun:   rank 0: not joined, still running; ended by mpjrun
mpjrun:   rank 1: joined, still running, even after SIGKILL
";
    assert_eq!(report(&job, Verdict::Signalled(libc::SIGTERM), ms(1)), signalled);
    assert_eq!(report(&job, Verdict::Output(Broken::Closed), ms(1)), "");
}

#[test]
fn of_many_complaints_the_first_and_the_latest_are_told_in_order() {
    let mut job = exit_log(1);
    for turn in 1..=6 {
        panic(&mut job, 0, ms(turn), &format!("number {turn}"));
    }
    job.ended(0, Ending::Code(101), ms(7));
    let failure = failure_of(&job);
    let report = report(&job, Verdict::Failed(failure), ms(8));
    let told: Vec<&str> =
        report.lines().filter_map(|line| line.split_once("number ")).map(|(_, n)| n).collect();
    assert_eq!(told, ["1", "4", "5", "6"]);
}

#[test]
fn complaints_are_told_where_no_rank_is_the_cause() {
    let mut job = exit_log(3);
    panic(&mut job, 0, ms(5), "caught");
    finish(&mut job, 0);
    panic(&mut job, 1, ms(6), "in a thread\nof two lines");
    for verdict in [Verdict::TimedOut(Duration::from_secs(1)), Verdict::Signalled(libc::SIGINT)] {
        let report = report(&job, verdict, ms(10));
        let (_, report) = report.split_once('\n').expect("a headline");
        let told =
            "mpjrun:   rank 1 panicked at src/main.rs:1:2: in a thread\nmpjrun:     of two lines\n";
        assert!(report.starts_with(told), "right below the headline: {report}");
        assert!(!report.contains("caught"), "{report}");
    }
    (0..100).for_each(|turn| panic(&mut job, 1, ms(turn), "again"));
    (0..100).for_each(|turn| panic(&mut job, 2, ms(turn), "again"));
    assert!(!report(&job, Verdict::Signalled(2), ms(200)).contains("more complaints"));
}

#[test]
fn complaints_of_many_ranks_are_counted_rather_than_told() {
    let mut job = exit_log(20);
    (0..20).for_each(|rank| panic(&mut job, rank, ms(5), "boom"));
    let report = report(&job, Verdict::Signalled(libc::SIGINT), ms(10));
    assert_eq!(report.matches("boom").count(), 16);
    assert!(
        report.contains("boom\nmpjrun:   and 4 more complaints\nmpjrun:   ranks 0-19: "),
        "{report}"
    );
}

#[test]
fn a_rank_that_waits_for_the_others_is_told_as_such() {
    let mut job = exit_log(3);
    (0..2).for_each(|rank| join(&mut job, rank));
    job.note(1, ControlMessage::Leaving { counters: MessageCounts::default() }, ms(2));
    let said = report(&job, Verdict::TimedOut(Duration::from_secs(1)), ms(1_000));
    let waits = "rank 1: leaving the job, waiting for the others, still running, ";
    assert!(said.contains(waits), "{said}");
    finish(&mut job, 1);
    let said = report(&job, Verdict::TimedOut(Duration::from_secs(1)), ms(1_000));
    assert!(said.contains("rank 1: finished, still running, "), "{said}");
}

#[test]
fn ranks_that_were_not_started_are_told_as_such() {
    let mut job = ExitLog::new(START, "box".to_owned(), 5, [100, 101]);
    job.ended(1, Ending::Code(9), ms(10));
    job.ended(0, Ending::Signal(libc::SIGTERM), ms(20));
    let failure = failure_of(&job);
    let expected = "\
mpjrun: rank 1 (pid 101, host box) exited with code 9, 0.01 s after start
mpjrun:   rank 0: not joined, still running; ended by mpjrun
mpjrun:   ranks 2-4: not started
";
    assert_eq!(report(&job, Verdict::Failed(failure), ms(15)), expected);
}

#[test]
fn a_line_that_was_closed_before_the_end_is_the_fault() {
    let mut alone = exit_log(1);
    join(&mut alone, 0);
    alone.line_closed(0, ms(100));
    alone.ended(0, Ending::Code(0), ms(900));
    let failure = failure_of(&alone);
    let report = report(&alone, Verdict::Failed(failure), ms(901));
    assert!(report.contains("its control line to mpjrun was closed before"), "{report}");
    assert!(!report.contains("keep the World alive"), "{report}");
    let mut together = exit_log(1);
    join(&mut together, 0);
    together.line_closed(0, ms(899));
    together.ended(0, Ending::Code(0), ms(900));
    assert!(together.stuck());
    assert_eq!(failure_of(&together).fault, Fault::Unfinished);
}

#[test]
fn a_success_without_finishing_is_noted_in_one_line() {
    let mut job = exit_log(3);
    (0..3).for_each(|rank| join(&mut job, rank));
    let noted = |job: &ExitLog| early_ends(&job.ended_early(ms(20)));
    assert_eq!(noted(&job), None);
    [0, 1, 2].into_iter().for_each(|rank| job.ended(rank, Ending::Code(0), ms(20)));
    finish(&mut job, 1);
    let expected = "mpjrun: ranks 0, 2 exited with code 0 without finishing, which may lose messages: in C, call \
                    MPI_Finalize; in Rust, let the World drop at the end of main\n";
    assert_eq!(noted(&job).as_deref(), Some(expected));
    assert!(job.ended_early(ms(19)).is_empty());
}

#[test]
fn a_rank_that_cannot_reach_another_says_why() {
    let mut job = exit_log(2);
    (0..2).for_each(|rank| join(&mut job, rank));
    let why = "cannot reach rank 0\non host a".to_owned();
    job.note(1, ControlMessage::Unreachable { at_nanos: ms(20), why }, ms(21));
    (0..2).for_each(|rank| job.ended(rank, Ending::Signal(libc::SIGTERM), ms(30)));
    let failure = failure_of(&job);
    let told = report(&job, Verdict::Failed(failure), ms(22));
    let expected = "mpjrun: rank 1 (pid 101, host box) cannot reach rank 0";
    assert!(
        told.starts_with(expected) && told.contains("on host a (0.02 s after start)\n"),
        "{told}"
    );
    assert_eq!(told.lines().filter(|line| line.contains("on host a")).count(), 1, "{told}");
}

#[test]
fn an_abort_explains_the_end_of_its_rank() {
    let mut job = exit_log(2);
    (0..2).for_each(|rank| join(&mut job, rank));
    let aborted = ControlMessage::Aborted { at_nanos: ms(20), code: 7 };
    job.note(1, aborted, ms(21));
    job.ended(1, Ending::Signal(libc::SIGABRT), ms(30));
    job.ended(0, Ending::Signal(libc::SIGTERM), ms(40));
    let failure = failure_of(&job);
    let expected = "\
mpjrun: rank 1 (pid 101, host box) called abort with code 7, 0.02 s after start
mpjrun:   rank 0: joined, still running; ended by mpjrun
";
    assert_eq!(report(&job, Verdict::Failed(failure), ms(31)), expected);
}

/// Its lines stand near the report, since those of other ranks may come between, and none need name a rank.
#[test]
fn what_a_rank_printed_last_is_told_if_it_has_not_complained() {
    let told = |ending, words: &str, complains: bool| {
        let mut job = exit_log(2);
        if complains {
            complain(&mut job, 1, ms(10), "too long", "");
        }
        job.printed_last(1, words.to_owned());
        job.ended(1, ending, ms(20));
        let verdict = Verdict::Failed(failure_of(&job));
        (report(&job, verdict, ms(21)), in_brief(&job, verdict).expect("it failed"))
    };
    let (text, brief) = told(Ending::Code(3), "solver: no input:\nno such file", false);
    let words = "mpjrun:   it printed last: solver: no input:\nmpjrun:     no such file\n";
    assert!(text.contains(&format!("exited with code 3, 0.02 s after start\n{words}")), "{text}");
    assert_eq!(brief, "rank 1 exited with code 3: solver: no input:\nno such file");
    assert!(
        told(Ending::Signal(libc::SIGABRT), "a.c:1: main: Assertion", false)
            .0
            .contains("Assertion")
    );
    for (ending, words, complains) in [
        (Ending::Signal(libc::SIGKILL), "step 7", false),
        (Ending::Code(1), "", false),
        (Ending::Code(1), "Error: TooLong", true),
    ] {
        let (text, _) = told(ending, words, complains);
        assert!(!text.contains("printed last"), "{text}");
    }
    // Nothing stands between the words of a rank that is alone and the report.
    let mut alone = exit_log(1);
    alone.printed_last(0, "no input".to_owned());
    alone.ended(0, Ending::Code(3), ms(20));
    let text = report(&alone, Verdict::Failed(failure_of(&alone)), ms(21));
    assert!(!text.contains("no input"), "{text}");
}

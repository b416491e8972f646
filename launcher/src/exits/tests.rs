//! Which failure decides, and with which exit code.

use super::scene::{START, complain, exit_log, finish, ms, panic};
use std::time::Duration;

use super::*;
use crate::io::output::Broken;

/// A program that a script has started.
fn join(exit_log: &mut ExitLog, rank: u32) {
    join_as(exit_log, rank, 200 + rank);
}

fn join_as(exit_log: &mut ExitLog, rank: u32, pid: u32) {
    exit_log.note(rank as usize, ControlMessage::Joined { pid }, ms(1));
}

fn miss(exit_log: &mut ExitLog, rank: u32, lost: u32, at: u64) {
    let met = ControlMessage::MetLoss { at_nanos: at, lost };
    exit_log.note(rank as usize, met, ms(100_000));
}

/// The one that decides when nothing more comes.
fn fault(exit_log: &ExitLog) -> Option<(usize, Fault)> {
    match exit_log.decide(ms(100_000)) {
        Decision::Failed(failure) => Some((failure.rank, failure.fault)),
        Decision::Nothing => None,
        Decision::Open { until } => panic!("not decided before {until}"),
    }
}

fn failed(rank: usize, fault: Fault, at: u64) -> Decision {
    Decision::Failed(Failure { rank, fault, at })
}

#[test]
fn the_first_failure_in_time_decides() {
    let mut job = exit_log(3);
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
    let mut job = exit_log(2);
    job.ended(0, Ending::Code(0), ms(5));
    job.ended(1, Ending::Code(0), ms(6));
    assert_eq!(fault(&job), None);
}

#[test]
fn a_rank_that_never_joins_fails_when_another_joins_before_or_after() {
    let mut before = exit_log(2);
    join(&mut before, 0);
    before.ended(1, Ending::Code(0), ms(5));
    assert_eq!(fault(&before), Some((1, Fault::NeverJoined)));
    let mut after = exit_log(2);
    after.ended(1, Ending::Code(0), ms(5));
    assert_eq!(fault(&after), None);
    join(&mut after, 0);
    assert_eq!(fault(&after), Some((1, Fault::NeverJoined)));
}

#[test]
fn exit_code_0_without_finishing_is_a_failure_if_others_wait_in_vain() {
    let started = || {
        let mut job = exit_log(2);
        (0..2).for_each(|rank| join_as(&mut job, rank, 100 + rank));
        job.ended(0, Ending::Code(0), ms(5));
        assert_eq!((fault(&job), job.ended_early(ms(9))), (None, vec![0]));
        job
    };
    let unfinished = Some((0, Fault::Unfinished));
    let mut at_its_end = started();
    let leaving = ControlMessage::Leaving { counters: MessageCounts::default() };
    at_its_end.note(1, leaving, ms(7));
    assert_eq!((fault(&at_its_end), at_its_end.ended_early(ms(9))), (unfinished, vec![]));
    let mut stuck = started();
    assert!(stuck.stuck());
    assert_eq!(fault(&stuck), unfinished);
    let mut after_a_loss = started();
    after_a_loss.ended(1, Ending::Code(7), ms(4));
    assert_eq!(fault(&after_a_loss), Some((1, Fault::Code(7))));
    assert!(after_a_loss.take_failed(ms(6)).is_some());
    let early = Failure { rank: 0, fault: Fault::Unfinished, at: ms(5) };
    assert_eq!(after_a_loss.take_failed(ms(6)), Some((early, false)));
    let mut all = started();
    all.ended(1, Ending::Code(0), ms(9));
    assert_eq!((fault(&all), all.ended_early(ms(9))), (None, vec![0, 1]));
    finish(&mut all, 0);
    assert_eq!((fault(&all), all.ended_early(ms(9))), (None, vec![1]));
    let mut joining = exit_log(2);
    join_as(&mut joining, 0, 100);
    joining.ended(0, Ending::Code(0), ms(5));
    assert_eq!(fault(&joining), unfinished, "rank 1 waits for it to join");
    let mut script = exit_log(1);
    join(&mut script, 0);
    script.ended(0, Ending::Code(0), ms(5));
    assert_eq!(fault(&script), unfinished, "that is not the program's code");
}

#[test]
fn an_earlier_panic_is_awaited_and_decides() {
    let mut job = exit_log(2);
    panic(&mut job, 1, ms(10), "boom");
    job.ended(0, Ending::Code(1), ms(12));
    assert_eq!(job.decide(ms(13)), Decision::Open { until: ms(262) });
    let mut slow = exit_log(2);
    panic(&mut slow, 1, ms(10), "boom");
    slow.ended(0, Ending::Code(1), ms(12));
    assert_eq!(slow.decide(ms(262)), failed(0, Fault::Code(1), ms(12)));
    job.ended(1, Ending::Code(101), ms(14));
    assert_eq!(job.decide(ms(14)), failed(1, Fault::Code(101), ms(10)));
}

#[test]
fn a_caught_panic_neither_fails_nor_delays() {
    let mut job = exit_log(2);
    panic(&mut job, 1, ms(10), "caught");
    join(&mut job, 1);
    finish(&mut job, 1);
    job.ended(1, Ending::Code(0), ms(11));
    assert_eq!(fault(&job), None);
    job.ended(0, Ending::Code(1), ms(12));
    assert_eq!(job.decide(ms(12)), failed(0, Fault::Code(1), ms(12)));
}

#[test]
fn a_rank_that_has_recovered_is_neither_awaited_nor_failed_before() {
    let mut job = exit_log(2);
    panic(&mut job, 0, ms(10), "long ago");
    job.ended(1, Ending::Code(3), ms(2_000));
    assert_eq!(job.decide(ms(2_000)), failed(1, Fault::Code(3), ms(2_000)));
    job.ended(0, Ending::Code(7), ms(2_100));
    assert_eq!(job.decide(ms(2_100)), failed(1, Fault::Code(3), ms(2_000)));
}

fn give_up(exit_log: &mut ExitLog, rank: u32, at: u64) {
    let gave_up = ControlMessage::GaveUp { at_nanos: at };
    exit_log.note(rank as usize, gave_up, ms(1_000));
}

#[test]
fn who_gives_up_has_failed_and_may_end_first() {
    for (ending, fault) in [
        (Ending::Code(101), Fault::Code(101)),
        (Ending::Code(0), Fault::Unfinished),
        (Ending::Signal(6), Fault::Signal(6)),
    ] {
        let mut job = exit_log(2);
        (0..2).for_each(|rank| join(&mut job, rank));
        panic(&mut job, 1, ms(10), "boom");
        give_up(&mut job, 1, ms(11));
        assert_eq!(job.decide(ms(12)), Decision::Open { until: ms(261) });
        job.ended(1, ending, ms(100));
        assert_eq!(job.decide(ms(100)), failed(1, fault, ms(10)));
    }
}

#[test]
fn who_gives_up_and_does_not_end_is_not_awaited_long() {
    let mut job = exit_log(2);
    panic(&mut job, 1, ms(10), "boom");
    give_up(&mut job, 1, ms(11));
    assert_eq!(job.decide(ms(261)), failed(1, Fault::GaveUp { panicked: true }, ms(10)));
    let mut error = exit_log(2);
    give_up(&mut error, 1, ms(11));
    assert_eq!(error.decide(ms(261)), failed(1, Fault::GaveUp { panicked: false }, ms(11)));
    // Nor do those that fail because of that come first.
    error.ended(0, Ending::Code(1), ms(50));
    assert_eq!(error.decide(ms(60)), Decision::Open { until: ms(261) });
    assert_eq!(error.decide(ms(261)), failed(1, Fault::GaveUp { panicked: false }, ms(11)));
}

#[test]
fn who_is_missed_by_another_failed_before_it() {
    let missed = |job: &mut ExitLog, at| miss(job, 1, 2, at);
    // Rank 1 knows of rank 2 long before the launcher does, and panics with the error of its call.
    let mut job = exit_log(3);
    missed(&mut job, ms(10));
    panic(&mut job, 1, ms(11), "rank 2 is gone");
    job.ended(1, Ending::Code(101), ms(12));
    assert_eq!(job.decide(ms(13)), Decision::Open { until: ms(5_012) });
    assert_eq!(job.next_certainty(ms(13)), Some(ms(5_012)));
    job.ended(2, Ending::Code(86), ms(3_000));
    assert_eq!(job.decide(ms(3_000)), failed(2, Fault::Code(86), ms(10)));
    // A wrong claim protects nobody, and blames nobody later.
    let mut wrong = exit_log(3);
    missed(&mut wrong, ms(10));
    wrong.ended(1, Ending::Code(1), ms(12));
    assert_eq!(wrong.decide(ms(5_012)), failed(1, Fault::Code(1), ms(12)));
    let mut later = exit_log(3);
    missed(&mut later, ms(10));
    later.ended(0, Ending::Code(7), ms(6_000));
    later.ended(2, Ending::Code(8), ms(6_001));
    assert_eq!(later.decide(ms(6_002)), failed(0, Fault::Code(7), ms(6_000)));
    // Of several claims the earliest counts, but for one that has turned out to be wrong.
    let mut several = exit_log(3);
    several.ended(0, Ending::Code(7), ms(8_040));
    [10, 8_020, 8_030].into_iter().for_each(|at| missed(&mut several, ms(at)));
    several.ended(2, Ending::Code(8), ms(8_050));
    assert_eq!(several.decide(ms(8_050)), failed(2, Fault::Code(8), ms(8_020)));
    // Numbers and times are claims.
    let mut claims = exit_log(3);
    [1, 3, u32::MAX].into_iter().for_each(|lost| miss(&mut claims, 1, lost, ms(10)));
    assert!(claims.records().iter().all(|record| record.missed.is_none()));
    missed(&mut claims, 0);
    assert_eq!(claims.records()[2].missed, Some(START));
}

/// When the others go on, a rank that gave up because it missed another one is not reported.
#[test]
fn who_misses_another_where_the_others_go_on() {
    let mut job = exit_log(3);
    (0..3).for_each(|rank| join(&mut job, rank));
    miss(&mut job, 0, 1, ms(10));
    give_up(&mut job, 0, ms(11));
    job.ended(0, Ending::Code(0), ms(12));
    assert_eq!(job.take_failed(ms(13)), None, "rank 1 may have failed before");
    assert_eq!(job.next_certainty(ms(13)), Some(ms(5_012)));
    job.ended(1, Ending::Code(7), ms(20));
    let first = Failure { rank: 1, fault: Fault::Code(7), at: ms(10) };
    assert_eq!(job.take_lost(), None, "not before the first loss");
    assert_eq!(job.take_failed(ms(20)), Some((first, true)));
    assert_eq!(job.take_failed(ms(10_000)), None);
    // Whatever its exit code, it does nothing more for the others.
    let mut lost = std::iter::from_fn(|| job.take_lost()).collect::<Vec<_>>();
    lost.sort_unstable();
    assert_eq!(lost, [0, 1]);
}

#[test]
fn who_was_let_go_is_lost_when_it_has_ended() {
    let mut job = exit_log(2);
    (0..2).for_each(|rank| join(&mut job, rank));
    job.dismissed(1);
    assert_eq!(job.take_lost(), None);
    job.ended(1, Ending::Code(0), ms(5));
    assert_eq!((job.take_lost(), job.take_lost()), (Some(1), None));
    assert_eq!(job.take_failed(ms(5)), None);
}

/// The script of a missed program may go on for a while.
#[test]
fn a_program_behind_a_script_is_missed() {
    let mut job = exit_log(2);
    join(&mut job, 1);
    job.program_ended(1, ms(10));
    panic(&mut job, 0, ms(11), "rank 1 is gone");
    job.ended(0, Ending::Code(101), ms(12));
    assert_eq!(job.decide(ms(500)), Decision::Open { until: ms(1_010) });
    assert_eq!(job.decide(ms(1_010)), failed(1, Fault::Gone { panicked: false }, ms(10)));
}

#[test]
fn a_program_that_ends_behind_its_script() {
    let mut job = exit_log(1);
    join(&mut job, 0);
    job.program_ended(0, ms(20));
    assert_eq!(job.decide(ms(21)), Decision::Open { until: ms(1_020) });
    assert_eq!(job.decide(ms(1_020)), failed(0, Fault::Gone { panicked: false }, ms(20)));
    job.ended(0, Ending::Code(4), ms(300));
    assert_eq!(job.decide(ms(300)), failed(0, Fault::Code(4), ms(20)));
}

#[test]
fn a_program_that_has_finished_may_leave_its_script_alone() {
    let mut job = exit_log(1);
    join(&mut job, 0);
    finish(&mut job, 0);
    job.program_ended(0, ms(20));
    assert_eq!(fault(&job), None);
}

#[test]
fn a_line_that_ends_alone_decides_nothing() {
    let mut job = exit_log(1);
    join(&mut job, 0);
    job.line_closed(0, ms(5));
    assert_eq!(fault(&job), None);
}

#[test]
fn claims_are_bounded() {
    let mut job = exit_log(2);
    panic(&mut job, 0, u64::MAX, "from the future");
    panic(&mut job, 1, 0, "from before the start");
    assert_eq!(job.records[0].complaints[0].at, ms(1_000));
    assert_eq!(job.records[1].complaints[0].at, START);
}

#[test]
fn exit_codes() {
    let failed = |fault| Verdict::Failed(Failure { rank: 0, fault, at: START }).exit_code();
    assert_eq!(failed(Fault::Code(3)), 3);
    assert_eq!(failed(Fault::Signal(9)), 137);
    assert_eq!(failed(Fault::Unfinished), 1);
    assert_eq!(failed(Fault::NeverJoined), 1);
    assert_eq!(failed(Fault::Gone { panicked: false }), 1);
    assert_eq!(failed(Fault::Gone { panicked: true }), 101);
    assert_eq!(failed(Fault::GaveUp { panicked: false }), 1);
    assert_eq!(failed(Fault::GaveUp { panicked: true }), 101);
    assert_eq!(failed(Fault::Deserted), 101);
    assert_eq!(failed(Fault::Aborted(7)), 7);
    assert_eq!(failed(Fault::Aborted(0x1ff)), 255);
    assert_eq!(failed(Fault::Aborted(0)), 1);
    assert_eq!(failed(Fault::Aborted(256)), 1);
    assert_eq!(Verdict::TimedOut(Duration::from_secs(1)).exit_code(), 124);
    assert_eq!(Verdict::Stalled(Duration::from_secs(1)).exit_code(), 124);
    assert_eq!(Verdict::Deadlock.exit_code(), 125);
    assert_eq!(Verdict::Signalled(libc::SIGINT).exit_code(), 130);
    assert_eq!(Verdict::Signalled(libc::SIGTERM).exit_code(), 143);
    assert_eq!(Verdict::Output(Broken::Closed).exit_code(), 141);
    assert_eq!(Verdict::Output(Broken::Refused(rustix::io::Errno::NOSPC)).exit_code(), 125);
}

fn abort(exit_log: &mut ExitLog, rank: u32, at: u64, code: i32) {
    let aborted = ControlMessage::Aborted { at_nanos: at, code };
    exit_log.note(rank as usize, aborted, ms(1_000));
}

#[test]
fn an_abort_is_a_failure_at_its_time_whatever_the_end() {
    let mut job = exit_log(2);
    abort(&mut job, 1, ms(10), 7);
    assert_eq!(job.decide(ms(10)), failed(1, Fault::Aborted(7), ms(10)));
    job.ended(0, Ending::Code(1), ms(12));
    for ending in [Ending::Code(0), Ending::Code(7), Ending::Signal(9)] {
        job.ended(1, ending, ms(20));
        assert_eq!(fault(&job), Some((1, Fault::Aborted(7))));
    }
    job.ended(0, Ending::Code(1), ms(9));
    assert_eq!(fault(&job), Some((0, Fault::Code(1))));
}

/// The job cannot go on, even where it goes on without lost ranks.
#[test]
fn a_rank_that_cannot_reach_another_has_failed_whatever_its_end() {
    let mut job = exit_log(2);
    let told = ControlMessage::Unreachable { at_nanos: ms(10), why: "cannot".to_owned() };
    job.note(1, told, ms(1_000));
    abort(&mut job, 1, ms(11), 7);
    let expected = Failure { rank: 1, fault: Fault::Unreachable, at: ms(10) };
    assert_eq!(job.demanded_end(), Some(expected));
    job.ended(0, Ending::Code(1), ms(12));
    job.ended(1, Ending::Code(0), ms(13));
    assert_eq!(job.decide(ms(14)), Decision::Failed(expected));
    assert_eq!(Verdict::Failed(expected).exit_code(), 125);
}

#[test]
fn who_has_given_up_complained_or_aborted_just_before_is_about_to_end() {
    let mut job = exit_log(5);
    panic(&mut job, 1, ms(10), "boom");
    give_up(&mut job, 2, ms(11));
    abort(&mut job, 3, ms(12), 7);
    give_up(&mut job, 4, ms(13));
    job.ended(4, Ending::Code(1), ms(14));
    assert_eq!(job.about_to_end(ms(20)), [1, 2, 3]);
    assert_eq!(job.about_to_end(ms(261)), [2, 3], "rank 1 has gone on, or hangs");
    assert_eq!(job.about_to_end(ms(300)), [0; 0]);
}

#[test]
fn of_several_aborts_the_first_decides() {
    let mut job = exit_log(2);
    abort(&mut job, 0, ms(12), 1);
    abort(&mut job, 1, ms(10), 2);
    abort(&mut job, 1, ms(11), 3);
    assert_eq!(fault(&job), Some((1, Fault::Aborted(2))));
}

#[test]
fn a_rank_that_panics_and_aborts_is_not_awaited() {
    let mut job = exit_log(2);
    panic(&mut job, 1, ms(10), "boom");
    abort(&mut job, 1, ms(11), 7);
    assert_eq!(job.decide(ms(11)), failed(1, Fault::Aborted(7), ms(11)));
}

#[test]
fn a_rank_that_was_let_go_fails_by_its_code_alone() {
    let mut job = exit_log(2);
    join(&mut job, 0);
    join(&mut job, 1);
    job.dismissed(0);
    job.dismissed(1);
    assert!(job.awaits_dismissed());
    job.ended(0, Ending::Code(0), ms(5));
    assert!(job.awaits_dismissed());
    job.ended(1, Ending::Code(4), ms(6));
    assert!(!job.awaits_dismissed());
    assert_eq!(fault(&job), Some((1, Fault::Code(4))));
}

#[test]
fn a_rank_that_was_let_go_is_not_lost_behind_its_script() {
    let mut job = exit_log(1);
    join(&mut job, 0);
    job.dismissed(0);
    job.program_ended(0, ms(5));
    assert_eq!(fault(&job), None);
}

#[test]
fn a_thread_that_is_gone_after_a_panic_has_deserted() {
    let mut job = exit_log(3);
    (0..3).for_each(|rank| join(&mut job, rank));
    panic(&mut job, 2, ms(20), "later");
    panic(&mut job, 1, ms(10), "boom");
    panic(&mut job, 0, ms(5), "of a rank that has ended");
    job.ended(0, Ending::Code(0), ms(6));
    assert_eq!(job.panicked_threads(), [(1, 0), (2, 0)]);
    assert_eq!(job.desertion(ms(1_000), |_, _, _| true), None);
    let failure = Failure { rank: 1, fault: Fault::Deserted, at: ms(10) };
    assert_eq!(job.desertion(ms(1_000), |_, _, thread| thread != 0), Some(failure));
    let failure = Failure { rank: 2, fault: Fault::Deserted, at: ms(20) };
    assert_eq!(job.desertion(ms(1_000), |_, pid, _| pid == 201), Some(failure));
}

#[test]
fn an_error_deserts_nobody() {
    let mut job = exit_log(1);
    join(&mut job, 0);
    complain(&mut job, 0, ms(2), "no luck", "");
    assert_eq!(job.desertion(ms(1_000), |_, _, _| false), None);
}

#[test]
fn queues_are_those_of_the_last_answer_of_each_context() {
    let mut job = exit_log(1);
    for (context, count) in [(0, 5), (6, 7), (0, 6), (7, 9), (u32::MAX, 9)] {
        let queues = Queues { all_unexpected: count, ..Queues::default() };
        job.note(0, ControlMessage::Queues { context, queues }, ms(1));
    }
    let told = |job: &ExitLog| {
        let queues = job.records()[0].queues.iter();
        queues.map(|(context, queues)| (*context, queues.all_unexpected)).collect::<Vec<_>>()
    };
    assert_eq!(told(&job), [(0, 6), (6, 7)]);
    job.forget_queues();
    assert_eq!(told(&job), []);
}

#[test]
fn scripts_whose_programs_have_finished_fail_by_their_own_ends() {
    let mut job = exit_log(2);
    for rank in 0..2 {
        join(&mut job, rank);
        finish(&mut job, rank);
        job.program_ended(rank as usize, ms(30));
    }
    job.ended(1, Ending::Code(11), ms(1_020));
    assert_eq!(job.decide(ms(1_021)), failed(1, Fault::Code(11), ms(1_020)));
    job.ended(0, Ending::Code(5), ms(1_170));
    assert_eq!(job.decide(ms(1_171)), failed(1, Fault::Code(11), ms(1_020)));
}

#[test]
fn a_job_that_went_on_for_long_has_dealt_with_a_lost_thread() {
    let mut job = exit_log(1);
    join(&mut job, 0);
    panic(&mut job, 0, ms(10), "handled");
    assert!(job.desertion(ms(900), |_, _, _| false).is_some());
    assert_eq!(job.desertion(ms(3_000), |_, _, _| false), None);
}

#[test]
fn a_second_program_of_a_script_is_not_the_rank() {
    let mut job = exit_log(1);
    join(&mut job, 0);
    let second = ControlMessage::Joined { pid: 999 };
    job.note(0, second, ms(2));
    assert_eq!(job.records()[0].pid, Some(200));
}

#[test]
fn who_gives_up_after_a_loss_has_no_choice() {
    let mut job = exit_log(2);
    (0..2).for_each(|rank| join(&mut job, rank));
    job.ended(1, Ending::Code(7), ms(10));
    assert_eq!(
        job.take_failed(ms(11)).map(|(failure, first)| (failure.rank, first)),
        Some((1, true))
    );
    give_up(&mut job, 0, ms(12));
    assert_eq!(job.take_failed(ms(900)), None);
    job.ended(0, Ending::Code(0), ms(20));
    assert_eq!(job.take_failed(ms(900)), None);
    job.ended(0, Ending::Code(2), ms(20));
    let told = job.take_failed(ms(900)).map(|(failure, first)| (failure.fault, first));
    assert_eq!(told, Some((Fault::Code(2), false)));
}

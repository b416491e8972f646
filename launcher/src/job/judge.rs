//! Decides when and why a job is ended (J2 of [`crate::job`]). Signals to the launcher and [`super::flush`] end it
//! as well.
//!
//! - JU1: a rank's failure is judged before a hang: the others wait in vain for a rank that has failed.
//! - JU2: a job is ended for a hang only after its ranks were asked for their queues, and after those that wait at
//!   their end were let go. A Rust `main` that returns an error first drops the World, which waits for the others,
//!   and prints the error then: that error is the cause of the hang and has to be seen.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use transport_lapi::TaskId;
use transport_lapi::bootstrap::control::agents::Order;
use transport_lapi::bootstrap::monotonic_nanos;

use super::{Job, OnFailure, Phase};
use crate::exits::{Decision, Verdict};
use crate::hang::snapshot::Snapshot;
use crate::hang::watch::Stage;
use crate::hang::watcher::Occasion;
use crate::host::process_table::has_thread;
use crate::report;

/// How long ranks that are let go have to end. A deadlock is still reported within two seconds.
const FAREWELL: Duration = Duration::from_secs(1);

/// How long after the end of a rank without MPI_Finalize the job still goes on where that is noted before its end, in
/// nanoseconds. A deadlock, whose report says the same, is found sooner.
const EARLY: u64 = 3_000_000_000;

impl Job {
    /// Passes the verdict if there is cause for one.
    pub(super) fn judge(&mut self, now: Instant) {
        if self.verdict.is_some() {
            return;
        }
        if let Some(broken) = self.printer.broken_output() {
            return self.stop(Verdict::Output(broken));
        }
        match self.phase {
            _ if self.on_failure == OnFailure::Keep => {
                // That ends the job even here, whichever rank failed before.
                if let Some(failure) = self.exit_log.demanded_end() {
                    return self.stop(Verdict::Failed(failure));
                }
                self.report_failures();
            }
            Phase::Dismissing { verdict, .. } => self.judge_dismissed(verdict),
            _ => self.judge_failures(),
        }
        if let Phase::Dismissing { until, verdict } = self.phase {
            let is_over = now >= until || !self.exit_log.awaits_dismissed();
            let is_open = matches!(self.exit_log.decide(monotonic_nanos()), Decision::Open { .. });
            if is_over && !is_open {
                self.stop(verdict);
            }
        }
    }

    /// Ends the job for a rank that has failed, if one has.
    fn judge_failures(&mut self) {
        if self.exit_log.decide(monotonic_nanos()) == Decision::Nothing {
            return;
        }
        // Another rank's panic may have been sent before the end that was noticed.
        self.take_what_has_come();
        if let Decision::Failed(failure) = self.exit_log.decide(monotonic_nanos()) {
            self.stop(Verdict::Failed(failure));
        }
    }

    /// Ends a job whose ranks were let go, if one of them fails: that rank is the cause of a deadlock, but not of a
    /// job that ran too long.
    fn judge_dismissed(&mut self, verdict: Verdict) {
        if let Decision::Failed(failure) = self.exit_log.decide(monotonic_nanos()) {
            let is_cause = verdict == Verdict::Deadlock;
            let verdict = if is_cause { Verdict::Failed(failure) } else { verdict };
            self.stop(verdict);
        }
    }

    /// Reports each rank that fails while the others go on, once, and lets their waits for it fail. So do those for a
    /// rank that has left without a failure.
    fn report_failures(&mut self) {
        while let Some((failure, is_first)) = self.exit_log.take_failed(monotonic_nanos()) {
            self.printer.say(&report::cause(&self.exit_log, failure));
            if is_first {
                self.printer.say("mpjrun: the other ranks go on (--on-failure keep)\n");
            }
            if matches!(self.phase, Phase::Dismissing { verdict: Verdict::Deadlock, .. }) {
                (self.phase, self.snapshot) = (Phase::Running, None);
            }
        }
        // What ranks do that were let go for a deadlock must not end it.
        if matches!(self.phase, Phase::Running) {
            while let Some(rank) = self.exit_log.take_lost() {
                self.ranks.order(Order::DeclareLost { task: rank as TaskId });
            }
        }
    }

    /// Passes the verdict on a job whose ranks have all ended by themselves; with `--on-failure keep` some may have
    /// failed. A success without MPI_Finalize is noted (EX3 of `exits.rs`).
    pub(super) fn judge_at_end(&mut self) {
        if self.verdict.is_some() {
            return;
        }
        if let Decision::Failed(failure) = self.exit_log.decide(u64::MAX) {
            self.verdict = Some((Verdict::Failed(failure), monotonic_nanos()));
        } else {
            self.note_early_ends(u64::MAX);
        }
    }

    /// Notes which ranks have ended until `until` without MPI_Finalize, each once (EX3 of `exits.rs`).
    fn note_early_ends(&mut self, until: u64) {
        let early = self.exit_log.ended_early(until);
        let news: Vec<_> = early.into_iter().filter(|rank| !self.noted.contains(rank)).collect();
        if let Some(note) = report::early_ends(&news) {
            self.printer.say(&note);
        }
        self.noted.extend(news);
    }

    /// The ranks that may be about to end by themselves (J2): those that seem so, and those that do not wait for others in a
    /// call. One that waits at its end may leave it at any time.
    pub(super) fn may_be_ending(&self) -> Vec<usize> {
        let waiting: HashSet<usize> = self.snapshot.iter().flat_map(Snapshot::amid_calls).collect();
        let about_to_end = self.exit_log.about_to_end(monotonic_nanos());
        let records = self.exit_log.records().iter().enumerate();
        let running = records.filter(|(_, record)| record.was_started() && record.ended.is_none());
        let running = running.map(|(rank, _)| rank);
        running.filter(|rank| about_to_end.contains(rank) || !waiting.contains(rank)).collect()
    }

    /// Whether the job is still watched for hangs.
    pub(super) fn is_overseen(&self) -> bool {
        self.verdict.is_none() && !matches!(self.phase, Phase::Dismissing { .. })
    }

    /// Ends a job that takes too long or cannot go on (JU2).
    pub(super) fn oversee(&mut self, now: Instant) {
        // Another rank may wait for one of them in a way that is no deadlock: it polls, or spins.
        self.note_early_ends(monotonic_nanos().saturating_sub(EARLY));
        let expired = self.timeout.filter(|(_, at)| now >= *at);
        let expired = expired.map(|(limit, _)| Occasion::End(Verdict::TimedOut(limit)));
        let (seats, exit_log) = (&self.seats, &self.exit_log);
        let stage = |rank: usize| match seats.get(rank) {
            Some(seat) if seat.is_gone => Stage::Ended,
            Some(_) if exit_log.records()[rank].finished => Stage::Finished,
            _ => Stage::Running,
        };
        let is_open = matches!(exit_log.decide(monotonic_nanos()), Decision::Open { .. });
        self.watcher.questions(now).into_iter().for_each(|question| self.ranks.order(question));
        let found = self.watcher.look(stage, now).filter(|_| !is_open);
        if let Some(occasion) = expired.or(found) {
            self.inquire(occasion);
        }
        match self.watcher.concluded(now) {
            Some(Occasion::Request) => {
                let snapshot = self.inquired();
                self.printer.say(&report::on_request(&self.exit_log, &snapshot));
            }
            Some(Occasion::Standstill(lasted)) => {
                let snapshot = self.inquired();
                self.printer.say(&report::on_standstill(
                    &self.exit_log,
                    &snapshot,
                    lasted,
                    std::process::id(),
                ));
            }
            Some(Occasion::End(verdict)) => self.conclude(verdict, now),
            None => {}
        }
    }

    pub(super) fn inquire(&mut self, occasion: Occasion) {
        if self.is_overseen() && !self.watcher.is_inquiring() {
            self.exit_log.forget_queues();
            let seats = &self.seats;
            let is_gone = |rank: usize| seats[rank].is_gone;
            let threads = self.exit_log.panicked_threads().into_iter();
            let threads = threads.map(|(rank, thread)| (rank as TaskId, thread)).collect();
            let order = self.watcher.inquire(occasion, is_gone, threads, Instant::now());
            order.into_iter().for_each(|order| self.ranks.order(order));
        }
    }

    /// The snapshot of the inquiry that has just been concluded.
    fn inquired(&mut self) -> Snapshot {
        self.watcher.snapshot(false).unwrap_or_else(|| Snapshot::unread(monotonic_nanos()))
    }

    /// Acts on a hang after the ranks have sent their queues.
    fn conclude(&mut self, verdict: Verdict, now: Instant) {
        let snapshot = self.inquired();
        let is_there = |rank, pid, thread| match self.watcher.sees_processes() {
            true => has_thread(pid, thread),
            false => !snapshot.gone_threads.contains(&(rank, thread)),
        };
        let deserted = self.exit_log.desertion(snapshot.last_wait(), is_there);
        let unwinding = snapshot.unwinding().filter_map(|rank| self.exit_log.unwinding(rank));
        let panic = unwinding.chain(deserted).min_by_key(|failure| failure.at);
        match panic.filter(|_| verdict == Verdict::Deadlock) {
            Some(panic) => {
                self.snapshot = Some(snapshot);
                self.stop(Verdict::Failed(panic));
            }
            // Ranks whose early end is the cause have failed by that.
            None if verdict == Verdict::Deadlock && self.exit_log.stuck() => {
                self.snapshot = Some(snapshot).filter(|_| self.on_failure == OnFailure::Kill);
                self.judge(now);
            }
            None => self.dismiss(snapshot, verdict, now + FAREWELL),
        }
    }

    /// Lets ranks go that wait at their end in `snapshot`. The job stops with `verdict` when they have ended, or at
    /// `until` (JU2).
    pub(super) fn dismiss(&mut self, snapshot: Snapshot, verdict: Verdict, until: Instant) {
        let at_end: Vec<usize> = snapshot.at_their_end().collect();
        self.snapshot = Some(snapshot);
        if at_end.is_empty() {
            return self.stop(verdict);
        }
        for rank in at_end {
            self.exit_log.dismissed(rank);
            self.ranks.order(Order::Dismiss { task: rank as TaskId });
        }
        self.phase = Phase::Dismissing { until, verdict };
    }
}

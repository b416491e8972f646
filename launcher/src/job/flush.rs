//! Writes the output that is left at the end of a job, and the report behind it (J3). Called when no rank runs.
//!
//! - F1: a reader that pauses gets everything, however the job ended. Only `--timeout` and an ending signal, before
//!   or during the flush, limit the wait for it.
//! - F2: after one of these the reader has to read something every [`GRACE_FOR_READER`]; a further signal ends the
//!   wait. Output that is not read is dropped and counted.

use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::Signal;

use super::{ENDING, Event, Job, events};
use crate::exits::Verdict;
use crate::hang::snapshot::Snapshot;
use crate::report;

/// How long a reader may pause once the job has to end.
const GRACE_FOR_READER: Duration = Duration::from_millis(500);

/// When a reader that reads nothing is given up.
fn soon() -> Option<Instant> {
    Some(Instant::now() + GRACE_FOR_READER)
}

impl Job {
    /// Writes what is left, and the report.
    pub(super) fn flush(&mut self) -> Result<(), Errno> {
        let mut until = match self.verdict {
            Some((Verdict::Signalled(_) | Verdict::TimedOut(_), _)) => soon(),
            _ => None,
        };
        let mut is_reported = false;
        loop {
            if let (Some((verdict, stopped_at)), false) = (self.verdict, is_reported) {
                self.print_report(verdict, stopped_at);
                is_reported = true;
            }
            if self.printer.left() == 0 {
                return Ok(());
            }
            if until.is_some_and(|at| Instant::now() >= at) {
                self.printer.drop_unread();
                return Ok(());
            }
            until = self.drain(until)?;
        }
    }

    fn print_report(&mut self, verdict: Verdict, stopped_at: u64) {
        let unread = || Snapshot::unread(stopped_at);
        let snapshot = self.snapshot.take().or_else(|| self.watcher.gathered());
        let snapshot = snapshot.unwrap_or_else(unread);
        let report = report::of_verdict(&self.exit_log, verdict, stopped_at, &snapshot);
        // What nobody can read has no report.
        if !report.is_empty() {
            self.printer.say(&(report + &self.last_calls));
        }
    }

    /// Waits for the reader, a signal or `until`, and returns until when the reader is waited for now.
    fn drain(&mut self, mut until: Option<Instant>) -> Result<Option<Instant>, Errno> {
        let timeout = self.timeout.filter(|_| until.is_none());
        let deadline = until.or(timeout.map(|(_, at)| at));
        let left = self.printer.left();
        for event in events(&self.writing_interests(), deadline)? {
            match event {
                Event::Printable(stream) => self.printer.write(stream),
                _ => until = self.take_late_signals(until),
            }
        }
        if let Some(broken) = self.printer.broken_output() {
            self.end_late(Verdict::Output(broken));
        }
        if let Some((limit, _)) = timeout.filter(|(_, at)| Instant::now() >= *at) {
            self.end_late(Verdict::TimedOut(limit));
            return Ok(soon());
        }
        let has_read = self.printer.left() < left && until.is_some_and(|at| Instant::now() < at);
        Ok(if has_read { soon() } else { until })
    }

    fn take_late_signals(&mut self, mut until: Option<Instant>) -> Option<Instant> {
        while let Some(signal) = self.signals.next_pending() {
            match signal {
                Signal::TSTP => {
                    self.suspend();
                    until = until.and_then(|_| soon());
                }
                Signal::QUIT => self.printer.say(&format!(
                    "mpjrun: all ranks have ended, and {} bytes of their output wait to be read\n",
                    self.printer.left()
                )),
                signal if !ENDING.contains(&signal) => {}
                signal if until.is_none() => {
                    self.end_late(Verdict::Signalled(signal.as_raw()));
                    until = soon();
                }
                _ => until = Some(Instant::now()),
            }
        }
        until
    }

    /// Passes the verdict on a job whose ranks ended without one (J2).
    fn end_late(&mut self, verdict: Verdict) {
        if self.verdict.is_none() {
            self.stop(verdict);
        }
    }
}

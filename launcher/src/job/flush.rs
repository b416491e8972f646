//! The end of a job: what is left to write, and the report behind it (J3). Called when no rank runs.
//!
//! - F1: nothing is lost for a reader that pauses, however the job ended: only `--timeout` and a signal
//!   limit how long it is waited for, those that ended the job as well as those that come now.
//! - F2: from then on the reader has to take something every [`GRACE_FOR_READER`]; a further signal ends
//!   that too. What is not taken is dropped, and counted.

use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::Signal;

use super::{ENDING, Event, Job, events};
use crate::job::exits::Verdict;
use crate::report::{self, Snapshot};

/// How long a reader may take nothing once the job has to end.
const GRACE_FOR_READER: Duration = Duration::from_millis(500);

/// How long the reader is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Patience {
    /// As long as it is there.
    Endless,
    Until(Instant),
    Over,
}

impl Patience {
    fn short() -> Self {
        Self::Until(Instant::now() + GRACE_FOR_READER)
    }

    fn is_over(self) -> bool {
        match self {
            Self::Endless => false,
            Self::Until(at) => Instant::now() >= at,
            Self::Over => true,
        }
    }
}

impl Job {
    /// Writes what is left, and the report.
    pub(super) fn flush(&mut self) -> Result<(), Errno> {
        let mut patience = match self.verdict {
            Some((Verdict::Signalled(_) | Verdict::TimedOut(_), _)) => Patience::short(),
            _ => Patience::Endless,
        };
        let mut is_told = false;
        loop {
            if let (Some((verdict, stopped_at)), false) = (self.verdict, is_told) {
                self.tell(verdict, stopped_at);
                is_told = true;
            }
            if self.printer.is_flushed() {
                return Ok(());
            }
            if patience.is_over() {
                self.printer.drop_unread();
                return Ok(());
            }
            patience = self.drain(patience)?;
        }
    }

    fn tell(&mut self, verdict: Verdict, stopped_at: u64) {
        let unread = || Snapshot::unread(stopped_at);
        let snapshot = self.snapshot.take().unwrap_or_else(unread);
        self.printer.say(&report::of_verdict(&self.ledger, verdict, stopped_at, &snapshot));
    }

    /// Waits for the reader, a signal or the end of patience, and answers what patience is left.
    fn drain(&mut self, mut patience: Patience) -> Result<Patience, Errno> {
        let timeout = self.timeout.filter(|_| patience == Patience::Endless);
        let deadline = match patience {
            Patience::Until(at) => Some(at),
            _ => timeout.map(|(_, at)| at),
        };
        let left = self.printer.left();
        for event in events(&self.writing_interests(), deadline)? {
            match event {
                Event::Printable(stream) => self.printer.write(stream),
                _ => patience = self.take_late_signals(patience),
            }
        }
        if let Some(broken) = self.printer.broken_output() {
            self.end_late(broken.into());
        }
        if let Some((limit, _)) = timeout.filter(|(_, at)| Instant::now() >= *at) {
            self.end_late(Verdict::TimedOut(limit));
            return Ok(Patience::short());
        }
        let has_read = self.printer.left() < left && matches!(patience, Patience::Until(_));
        Ok(if has_read { Patience::short() } else { patience })
    }

    fn take_late_signals(&mut self, mut patience: Patience) -> Patience {
        while let Some(signal) = self.signals.next_pending() {
            match signal {
                Signal::TSTP => {
                    self.suspend();
                    if let Patience::Until(_) = patience {
                        patience = Patience::short();
                    }
                }
                Signal::QUIT => self.printer.say(&format!(
                    "mpjrun: all ranks have ended, and {} bytes of their output wait to be read\n",
                    self.printer.left()
                )),
                signal if !ENDING.contains(&signal) => {}
                signal if patience == Patience::Endless => {
                    self.end_late(Verdict::Signalled(signal.as_raw()));
                    patience = Patience::short();
                }
                _ => patience = Patience::Over,
            }
        }
        patience
    }

    /// Passes the verdict on a job that had none when its ranks had ended (J2).
    fn end_late(&mut self, verdict: Verdict) {
        if self.verdict.is_none() {
            self.stop(verdict);
        }
    }
}

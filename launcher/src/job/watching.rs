//! Shows now and then what the ranks do (`mpjrun --watch`), also to other processes of the user that ask for it: these
//! find the job's [`Page`], send [`ASK`], and read the page when its number has changed ([`crate::cli::watch`]).
//!
//! - WA1: the ranks take no part, and are not disturbed: the launcher, or an agent, reads what they have published, and
//!   what the kernel says of their processes.
//! - WA2: a job that is being ended is not watched any more.

use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::{Job, JobSpec};
use crate::hang::snapshot::Snapshot;
use crate::io::page::Page;
use crate::report::Rates;

/// The signal that asks for a new page. A process that does not expect it ignores it.
pub(crate) const ASK: Signal = Signal::URG;

/// See the module's head.
pub(super) struct Watching {
    /// `None` if the system had no memory for it, or no descriptor.
    page: Option<Page>,
    /// The time between two blocks on standard error, if there are any, and when the next one is due.
    every: Option<(Duration, Instant)>,
    /// Whether somebody waits for a page.
    pub(super) is_asked: bool,
    /// Whether a block is to be shown.
    is_due: bool,
    rates: Rates,
}

impl Watching {
    pub(super) fn of(spec: &JobSpec) -> Self {
        let every = spec.watch.map(|every| (every, Instant::now() + every));
        let (page, rates) = (Page::new().ok(), Rates::default());
        Self { page, every, is_asked: false, is_due: false, rates }
    }

    /// When the next block is due.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.every.map(|(_, at)| at)
    }
}

impl Job {
    /// Looks at the ranks if it is time, and shows what it sees.
    pub(super) fn keep_watch(&mut self, now: Instant) {
        if self.verdict.is_some() {
            return;
        }
        let watching = &mut self.watching;
        if let Some((every, at)) = watching.every.as_mut().filter(|(_, at)| now >= *at) {
            *at = now + *every;
            watching.is_due = true;
        }
        if watching.is_due || watching.is_asked {
            let seats = &self.seats;
            let (seen, order) = self.watcher.glance(|rank| seats[rank].is_gone, now);
            order.into_iter().for_each(|order| self.ranks.order(order));
            let seen = seen.or_else(|| self.watcher.glanced(now));
            seen.into_iter().for_each(|snapshot| self.show(&snapshot));
        }
    }

    fn show(&mut self, snapshot: &Snapshot) {
        let watching = &mut self.watching;
        let block = watching.rates.block(&self.exit_log, snapshot);
        // A page that cannot be written keeps its number, and its reader says that there is no answer.
        watching.page.as_mut().map(|page| page.write(&block));
        watching.is_asked = false;
        if std::mem::take(&mut watching.is_due) {
            self.printer.show(&block);
        }
    }
}

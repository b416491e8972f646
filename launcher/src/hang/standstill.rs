//! Notes that a job seems to stand still: for a long time no rank has begun or ended a wait or taken in a
//! message, at least one has a thread asleep in a call, and no rank has used its processors for more than
//! such sleep costs. Owned by [`crate::hang::oversight`], which gives it the time.
//!
//! It is a hint, not a verdict, and ends nothing, since nothing in this says that the job cannot go on. A
//! thread that is in no call may wait for the disk, the network, another process, a timer or the user,
//! which costs no processor time, and communicate next. Where no thread can do that the job is in deadlock,
//! and [`crate::hang::watch`] says so. So this is for ranks in which some thread might, but most often does
//! not: one of a pool, of a runtime, or one that waits for Ctrl-C; and for ranks that sleep outside of all
//! calls while others wait for them: in a lock, for a channel or a child, or stopped by a signal. Where
//! nobody waits in a call nobody is kept from anything, and a job that only sleeps is not told of.
//!
//! - SS1: it is told once for each standstill. The next one, after a rank has moved or computed, has to last
//!   twice as long: a job that is slow by nature is told so a few times, and not all the time. That is what
//!   a false note costs, so it need not be ruled out.
//! - SS2: the processor time is read at both ends of the time alone, and only of a job that stood still
//!   between two looks. It is that of all threads of the process together, so each one that is asleep in a
//!   call is granted its part: it looks for messages now and then. A rank without such a thread is granted
//!   as much as one with one: its other threads may have timers. Children's time is not in it, since it
//!   only counts when they are reaped.

use std::time::{Duration, Instant};

use transport_lapi::bootstrap::board::Board;

use crate::hang::watch::{self, Look, Stage};
use crate::host::process_table::{entry, numbered};

/// How long nothing moves before that is told.
pub(crate) const SPAN: Duration = Duration::from_secs(30);
/// Looks in this time.
const LOOKS: u32 = 30;
/// How long ranks that were woken take to sleep again.
const WAKING: Duration = Duration::from_secs(1);
/// Processor time, in ticks of the kernel (100 in a second), that a thread asleep in a call may use.
const TICKS_ASLEEP: u64 = 10;

/// A rank that may stand still, as its slate shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Sleeper {
    rank: usize,
    pid: u32,
    epoch: u64,
    moves: u64,
    /// How many threads are in calls.
    threads: usize,
}

/// A job in which nothing has moved since then.
#[derive(Debug, Clone)]
struct Still {
    since: Instant,
    sleepers: Vec<Sleeper>,
    /// What each had used then; `None` before the second look.
    ticks: Option<Vec<u64>>,
}

/// See the module's head.
#[derive(Debug)]
pub(crate) struct Standstill {
    span: Duration,
    next_look: Option<Instant>,
    still: Option<Still>,
    /// Whether this standstill has been told.
    is_told: bool,
    /// Until when ranks may be awake since the launcher has woken them, which moves none.
    woken_until: Option<Instant>,
}

impl Standstill {
    /// Tells of the first that lasts for `span`.
    pub(crate) fn new(span: Duration) -> Self {
        Self { span, next_look: None, still: None, is_told: false, woken_until: None }
    }

    /// Looks if it is time, and answers for how long the job has stood still, if that is to be told.
    pub(crate) fn look(
        &mut self,
        board: &Board,
        stage: impl Fn(usize) -> Stage,
        now: Instant,
    ) -> Option<Duration> {
        if self.next_look.is_some_and(|at| now < at) {
            return None;
        }
        self.next_look = Some(now + self.span / LOOKS);
        self.judge(sleepers(&watch::look(board), stage), ticks_of_all, now)
    }

    /// What follows from a look that found these `sleepers`, if every rank may be one.
    fn judge(
        &mut self,
        sleepers: Option<Vec<Sleeper>>,
        ticks: impl Fn(&[Sleeper]) -> Option<Vec<u64>>,
        now: Instant,
    ) -> Option<Duration> {
        let before = self.still.take();
        let were_woken = self.woken_until.is_some_and(|until| now <= until);
        let Some(sleepers) = sleepers else {
            self.is_told &= were_woken;
            self.still = before.filter(|_| were_woken);
            return None;
        };
        let still = match before {
            Some(before) if were_woken || before.sleepers == sleepers => {
                Still { sleepers, ..before }
            }
            before => {
                self.is_told &= before.is_none();
                self.still = Some(Still { since: now, sleepers, ticks: None });
                return None;
            }
        };
        let lasted = now.saturating_duration_since(still.since);
        let is_over = still.ticks.is_some() && lasted >= self.span;
        if still.ticks.is_some() && !is_over {
            self.still = Some(still);
            return None;
        }
        let used = ticks(&still.sleepers);
        let is_idle = are_idle(&still, used.as_deref());
        self.still = Some(Still { since: now, ticks: used, ..still });
        self.is_told &= is_idle || !is_over;
        (is_over && is_idle && !self.is_told).then(|| {
            self.is_told = true;
            self.span *= 2;
            lasted
        })
    }

    /// The ranks are woken by the launcher.
    pub(crate) fn wake(&mut self, now: Instant) {
        self.woken_until = Some(now + WAKING);
    }

    /// The time of a suspended job does not count.
    pub(crate) fn start_anew(&mut self) {
        self.still = None;
    }
}

/// Every rank that has still to do its part; `None` if no thread of them is asleep in a call, or one cannot be
/// looked at.
fn sleepers(look: &Look, stage: impl Fn(usize) -> Stage) -> Option<Vec<Sleeper>> {
    let left = look.iter().enumerate().filter(|(rank, _)| stage(*rank) == Stage::Running);
    let mut is_waited = false;
    let sleepers: Option<Vec<Sleeper>> = left
        .map(|(rank, state)| {
            let state = state.as_ref().filter(|state| state.is_there() && state.is_here)?;
            is_waited |= state.blocked.iter().any(|thread| thread.undisturbed && !thread.failed);
            Some(Sleeper {
                rank,
                pid: state.pid,
                epoch: state.epoch,
                moves: state.moves,
                threads: state.blocked.len(),
            })
        })
        .collect();
    sleepers.filter(|_| is_waited)
}

/// Whether the ranks have used no more since then than `used` allows.
fn are_idle(still: &Still, used: Option<&[u64]>) -> bool {
    let (Some(before), Some(now)) = (&still.ticks, used) else { return false };
    let spent = before.iter().zip(now).map(|(before, now)| now.saturating_sub(*before));
    still
        .sleepers
        .iter()
        .zip(spent)
        .all(|(sleeper, spent)| spent <= TICKS_ASLEEP * sleeper.threads.max(1) as u64)
}

fn ticks_of_all(sleepers: &[Sleeper]) -> Option<Vec<u64>> {
    sleepers.iter().map(|sleeper| Some(entry(numbered(sleeper.pid)?)?.ticks)).collect()
}

#[cfg(test)]
mod tests;

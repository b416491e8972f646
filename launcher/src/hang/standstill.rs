//! Finds jobs that seem to stand still: for a long time no rank has begun or ended a wait or received a message, at
//! least one has a thread asleep in a call, and no rank has used more processor time than such sleep costs. Owned by
//! [`crate::hang::watcher`], which passes it the time.
//!
//! The note is a hint and ends nothing, since the job may still go on. A thread that is in no call may wait for the
//! disk, the network, another process, a timer or the user, which costs no processor time, and communicate next. A job
//! in which no thread can do that is in deadlock, and [`crate::hang::watch`] finds it. So the note is for ranks with a
//! thread that might communicate but most often does not: a thread of a pool or of a runtime, or one that waits for
//! Ctrl-C. It is also for ranks that sleep outside of all calls while others wait for them: in a lock, for a channel or
//! a child, or stopped by a signal. If nobody waits in a call, nobody is held up, and a job that only sleeps gets no
//! note.
//!
//! - SS1: each standstill is noted once. The next one, after a rank has moved or computed, is noted only when it has
//!   lasted twice as long. So a job that is slow by nature gets a few notes, not a stream of them. That is all that a
//!   false note costs, so false notes need not be ruled out.
//! - SS2: processor time is read only at both ends of the span, and only of a job that stood still between two looks.
//!   It is that of all threads of the process together. Each thread that is asleep in a call looks for messages now and
//!   then, so each is allowed a share. A rank without such a thread is allowed one share too, since its other threads
//!   may have timers. The time of children does not count: the kernel adds it only when they are reaped.
//!
//! In a job of several hosts each agent looks at the ranks of its host, and tells for how long they have stood still;
//! [`crate::hang::pauses`] draws the conclusion.

use std::time::{Duration, Instant};

use transport_lapi::bootstrap::waits::{JobView, TaskState};

use crate::hang::watch::{self, Look, Stage};
use crate::host::process_table::{entry, numbered};

/// How long nothing moves before the job is noted.
pub(crate) const SPAN: Duration = Duration::from_secs(30);
/// Looks in each span.
const LOOKS: u32 = 30;
/// How long ranks that were woken may take to sleep again.
const WAKING: Duration = Duration::from_secs(1);
/// Processor time, in ticks of the kernel (100 in a second), that a thread asleep in a call may use.
const TICKS_ASLEEP: u64 = 10;

/// A rank that may stand still, as its wait table shows it.
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
    /// When the span began.
    since: Instant,
    /// When the first of the spans began in which no rank has computed.
    begun: Instant,
    sleepers: Vec<Sleeper>,
    /// The ticks that each had used then; `None` before the second look.
    ticks: Option<Vec<u64>>,
}

/// See the module's head.
#[derive(Debug)]
pub(crate) struct Standstill {
    span: Duration,
    next_look: Option<Instant>,
    still: Option<Still>,
    /// Whether this standstill has been noted.
    is_reported: bool,
    /// Whether a thread was asleep in a call at the last look.
    is_waited: bool,
    /// Until when ranks may be awake because the launcher has woken them, which is no move.
    woken_until: Option<Instant>,
}

impl Standstill {
    /// Notes the first standstill that lasts for `span`.
    pub(crate) fn new(span: Duration) -> Self {
        let (next_look, still, woken_until) = (None, None, None);
        Self { span, next_look, still, is_reported: false, is_waited: false, woken_until }
    }

    /// Looks if it is time, and returns how long the job has stood still, if that is to be noted.
    pub(crate) fn look(
        &mut self,
        view: &JobView,
        stage: impl Fn(usize) -> Stage,
        now: Instant,
    ) -> Option<Duration> {
        if self.next_look.is_some_and(|at| now < at) {
            return None;
        }
        self.next_look = Some(now + self.span / LOOKS);
        self.judge(sleepers(&watch::look(view), stage), ticks_of_all, now)
    }

    /// Looks at the ranks of a host for its agent.
    pub(crate) fn look_at_host(
        &mut self,
        view: &JobView,
        stage: impl Fn(usize) -> Stage,
        now: Instant,
    ) {
        let look = watch::look(view);
        self.is_waited = is_waited(&look, &stage);
        self.follow_host(left(&look, stage), ticks_of_all, now);
    }

    /// Follows a look at a host that found these ranks; `None` if one cannot be looked at.
    fn follow_host(
        &mut self,
        left: Option<Vec<Sleeper>>,
        ticks: impl Fn(&[Sleeper]) -> Option<Vec<u64>>,
        now: Instant,
    ) {
        match self.follow(left, now) {
            Some(still) if still.ticks.is_none() => drop(self.measure(still, ticks, now)),
            still => self.still = still.or(self.still.take()),
        }
    }

    /// Whether a thread of the host was asleep in a call at the last look.
    pub(crate) fn is_waited(&self) -> bool {
        self.is_waited
    }

    /// For how long the ranks of the host have stood still, as the last look has shown them.
    pub(crate) fn lasted(&mut self, now: Instant) -> Option<Duration> {
        self.lasted_by(ticks_of_all, now)
    }

    fn lasted_by(
        &mut self,
        ticks: impl Fn(&[Sleeper]) -> Option<Vec<u64>>,
        now: Instant,
    ) -> Option<Duration> {
        let before = self.still.clone().filter(|still| still.ticks.is_some())?;
        if !self.measure(before.clone(), ticks, now) {
            return None;
        }
        let lasted = now.saturating_duration_since(before.begun);
        if now.saturating_duration_since(before.since) < self.span {
            // The span goes on, so that the same time is allowed however often this is asked.
            self.still = Some(before);
        }
        Some(lasted)
    }

    /// Judges a look that found these `sleepers`; `None` if a rank cannot be one.
    fn judge(
        &mut self,
        sleepers: Option<Vec<Sleeper>>,
        ticks: impl Fn(&[Sleeper]) -> Option<Vec<u64>>,
        now: Instant,
    ) -> Option<Duration> {
        let still = self.follow(sleepers, now)?;
        let lasted = now.saturating_duration_since(still.since);
        let is_over = still.ticks.is_some() && lasted >= self.span;
        if still.ticks.is_some() && !is_over {
            self.still = Some(still);
            return None;
        }
        let is_idle = self.measure(still, ticks, now);
        self.is_reported &= is_idle || !is_over;
        (is_over && is_idle && !self.is_reported).then(|| {
            self.is_reported = true;
            self.span *= 2;
            lasted
        })
    }

    /// Takes what stood still before a look that found these `sleepers`, if it still does.
    fn follow(&mut self, sleepers: Option<Vec<Sleeper>>, now: Instant) -> Option<Still> {
        let before = self.still.take();
        let were_woken = self.woken_until.is_some_and(|until| now <= until);
        let Some(sleepers) = sleepers else {
            self.is_reported &= were_woken;
            self.still = before.filter(|_| were_woken);
            return None;
        };
        match before {
            Some(before) if were_woken || before.sleepers == sleepers => {
                Some(Still { sleepers, ..before })
            }
            before => {
                self.is_reported &= before.is_none();
                self.still = Some(Still { since: now, begun: now, sleepers, ticks: None });
                None
            }
        }
    }

    /// Begins a span, and returns whether the ranks have used no more processor time in the one before than sleep costs.
    fn measure(
        &mut self,
        still: Still,
        ticks: impl Fn(&[Sleeper]) -> Option<Vec<u64>>,
        now: Instant,
    ) -> bool {
        let used = ticks(&still.sleepers);
        let is_idle = are_idle(&still, used.as_deref());
        let begun = if is_idle { still.begun } else { now };
        self.still = Some(Still { since: now, begun, ticks: used, ..still });
        is_idle
    }

    /// Notes that the launcher wakes the ranks.
    pub(crate) fn wake(&mut self, now: Instant) {
        self.woken_until = Some(now + WAKING);
    }

    /// Begins anew after a suspension, whose time does not count.
    pub(crate) fn start_anew(&mut self) {
        self.still = None;
    }
}

/// Every rank that has not finished; `None` if no thread of them is asleep in a call, or if one of the ranks cannot be
/// looked at.
fn sleepers(look: &Look, stage: impl Fn(usize) -> Stage) -> Option<Vec<Sleeper>> {
    left(look, &stage).filter(|_| is_waited(look, stage))
}

/// Every rank that has not finished; `None` if one of them cannot be looked at.
fn left(look: &Look, stage: impl Fn(usize) -> Stage) -> Option<Vec<Sleeper>> {
    running(look, stage)
        .map(|(rank, state)| {
            let state = state.as_ref().filter(|state| state.is_there() && state.is_here)?;
            Some(Sleeper {
                rank,
                pid: state.pid,
                epoch: state.epoch,
                moves: state.moves,
                threads: state.blocked.len(),
            })
        })
        .collect()
}

/// Whether a thread of a rank that has not finished is asleep in a call.
fn is_waited(look: &Look, stage: impl Fn(usize) -> Stage) -> bool {
    let mut threads =
        running(look, stage).filter_map(|(_, state)| state.as_ref()).flat_map(|it| &it.blocked);
    threads.any(|thread| thread.undisturbed && !thread.failed)
}

fn running(
    look: &Look,
    stage: impl Fn(usize) -> Stage,
) -> impl Iterator<Item = (usize, &Option<TaskState>)> {
    look.iter().enumerate().filter(move |(rank, _)| stage(*rank) == Stage::Running)
}

/// Whether the ranks, whose ticks are now `used`, have used no more since then than sleep costs.
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

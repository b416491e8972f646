//! The bell of a task whose frames may have to be repeated: its sleeps end when something is due.
//!
//! - RB1: the time is stored under the lock of the context, by the same poll that finds nothing before a sleep. So a
//!   thread that goes to sleep knows everything that its own poll has found out. What other threads of the task send
//!   later is repeated when one of them polls, or when the sleeper does, which looks for messages now and then.
//!   Nothing else depends on the time, so relaxed accesses suffice.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::adapter::Doorbell;

/// Tells the time. Tests replace it.
pub(super) type Clock = dyn Fn() -> Instant + Send + Sync;

/// Stands for no time.
const NEVER: u64 = u64::MAX;

/// The time at which the task must do something.
pub(super) struct Alarm {
    clock: Box<Clock>,
    start: Instant,
    /// In nanoseconds after `start`.
    due: AtomicU64,
}

impl Alarm {
    pub fn new(clock: Box<Clock>) -> Self {
        Self { start: clock(), clock, due: AtomicU64::new(NEVER) }
    }

    /// What time it is now.
    pub fn now(&self) -> Instant {
        (self.clock)()
    }

    /// Sets the time.
    pub fn set(&self, due: Option<Instant>) {
        let nanos = |due: Instant| due.saturating_duration_since(self.start).as_nanos() as u64;
        self.due.store(due.map_or(NEVER, nanos), Ordering::Relaxed);
    }

    /// Sets the time to `due`, unless it is earlier already.
    pub fn set_at_latest(&self, due: Instant) {
        if self.due().is_none_or(|before| due < before) {
            self.set(Some(due));
        }
    }

    /// The time, if one is set.
    pub fn due(&self) -> Option<Instant> {
        let nanos = Some(self.due.load(Ordering::Relaxed)).filter(|nanos| *nanos != NEVER)?;
        Some(self.start + Duration::from_nanos(nanos))
    }
}

/// A bell whose sleeps end at the time of an alarm.
pub(super) struct PunctualBell {
    pub inner: Arc<dyn Doorbell>,
    pub alarm: Arc<Alarm>,
}

impl Doorbell for PunctualBell {
    fn announce(&self) -> u32 {
        self.inner.announce()
    }

    fn sleep(&self, ticket: u32, timeout: Option<Duration>) -> bool {
        let due = self.alarm.due().map(|due| due.saturating_duration_since(self.alarm.now()));
        self.inner.sleep(ticket, due.into_iter().chain(timeout).min())
    }

    fn retract(&self) {
        self.inner.retract();
    }

    fn ring(&self) {
        self.inner.ring();
    }

    fn has_woken(&self) -> bool {
        self.inner.has_woken()
    }

    fn declare_lost(&self) {
        self.inner.declare_lost();
    }
}

//! How a waiting thread spends its time: spin, then yield, then sleep. This file only counts turns.
//!
//! A wake-up across processors costs the sleeper tens of microseconds, so a task that has a processor of its own spins
//! about that long first. If there are more tasks than processors, a spinning task keeps the task that it waits for
//! from running: then it hardly spins at all.

use crate::adapter::TaskId;
use crate::config::WaitMode;

/// With more tasks than processors: turns of polling before the first yield, and between two yields. An answer that
/// does not come within a few polls comes from a task that needs the processor.
const SHORT_SPIN: u32 = 4;
/// Yields before the sleep.
const YIELDS: u32 = 50;

/// How many turns of one wait may poll a single task only, and how many such turns of all its waits a session makes
/// before it polls all tasks once. What a wait needs may depend on further tasks, and those may need this one.
pub(crate) const ALONE: u32 = 8 * (SHORT_SPIN + 1);

/// What to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Poll again.
    Spin,
    /// Yield the processor once, then poll again.
    Yield,
    /// Sleep until the bell rings.
    Sleep,
}

/// The pace of one task's waits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    spins: u32,
    yields: u32,
    sleeps: bool,
    /// Whether there are more tasks than processors, so that they take turns.
    shares: bool,
}

impl Pace {
    /// The pace for a job of `tasks` on `cores` processors. If every task has a processor, a wait polls for `long_spin`
    /// turns before its first yield.
    pub fn new(mode: WaitMode, long_spin: u32, tasks: usize, cores: usize) -> Self {
        let shares = tasks > cores;
        let spins = if shares { SHORT_SPIN } else { long_spin };
        match mode {
            WaitMode::Spin => Self { spins, yields: YIELDS, sleeps: false, shares },
            WaitMode::Adaptive => Self { spins, yields: YIELDS, sleeps: true, shares },
            WaitMode::Block => Self { spins: 0, yields: 0, sleeps: true, shares: false },
        }
    }

    /// Returns whether tasks share processors and their waits poll.
    #[inline]
    pub fn shares(self) -> bool {
        self.shares
    }

    /// Turns of polling that a wait begins with.
    #[inline]
    pub fn spins(self) -> u32 {
        self.spins
    }

    /// The only task to poll in the next turn of a wait for frames of `origin`, after `turns` turns; `None` to poll
    /// all. If tasks share processors, a task that sends faster than this one receives thus fills its ring and must
    /// stop; otherwise it would take the processor and fill early memory.
    #[inline]
    pub fn alone(self, origin: Option<TaskId>, turns: u32) -> Option<TaskId> {
        origin.filter(|_| self.shares && turns < ALONE)
    }

    /// Whether a wait that yields after `idle` turns, and never sleeps, has lasted so long that a wait of another mode
    /// would sleep now.
    pub fn is_long(self, idle: u32) -> bool {
        !self.sleeps && idle - self.spins >= self.yields * (SHORT_SPIN + 1)
    }

    /// The step after `idle` turns without work.
    #[inline]
    pub fn step(self, idle: u32) -> Turn {
        if idle < self.spins {
            return Turn::Spin;
        }
        let turn = idle - self.spins;
        if self.sleeps && turn >= self.yields * (SHORT_SPIN + 1) {
            return Turn::Sleep;
        }
        if turn % (SHORT_SPIN + 1) == 0 { Turn::Yield } else { Turn::Spin }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG_SPIN: u32 = 4_000;

    fn steps(pace: Pace, turns: u32) -> (usize, usize, usize) {
        let count = |step| (0..turns).filter(|&idle| pace.step(idle) == step).count();
        (count(Turn::Spin), count(Turn::Yield), count(Turn::Sleep))
    }

    #[test]
    fn adaptive_spins_then_yields_then_sleeps() {
        let long = LONG_SPIN as usize;
        let yields = YIELDS as usize;
        let turns = LONG_SPIN + YIELDS * (SHORT_SPIN + 1) + 7;
        let (spin, yielded, slept) = steps(Pace::new(WaitMode::Adaptive, LONG_SPIN, 2, 2), turns);
        assert_eq!((spin, yielded, slept), (long + yields * SHORT_SPIN as usize, yields, 7));
    }

    #[test]
    fn oversubscribed_tasks_hardly_spin() {
        let pace = Pace::new(WaitMode::Adaptive, LONG_SPIN, 3, 2);
        assert_eq!(pace.step(SHORT_SPIN), Turn::Yield);
        assert_eq!(pace.step(SHORT_SPIN - 1), Turn::Spin);
    }

    #[test]
    fn oversubscribed_tasks_look_for_one_at_first() {
        let alone = |mode, tasks, turns| {
            Pace::new(mode, LONG_SPIN, tasks, 3).alone(Some(7), turns).is_some()
        };
        assert!(alone(WaitMode::Adaptive, 4, ALONE - 1) && alone(WaitMode::Spin, 4, 0));
        assert!(!alone(WaitMode::Adaptive, 4, ALONE) && !alone(WaitMode::Adaptive, 3, 0));
        assert!(!alone(WaitMode::Block, 4, 0), "its sleeps look for all");
    }

    #[test]
    fn block_sleeps_at_once_and_spin_never() {
        assert_eq!(Pace::new(WaitMode::Block, LONG_SPIN, 2, 2).step(0), Turn::Sleep);
        let (_, _, slept) = steps(Pace::new(WaitMode::Spin, LONG_SPIN, 9, 2), 100_000);
        assert_eq!(slept, 0);
    }
}

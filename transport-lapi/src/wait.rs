//! How a waiting thread spends its time: spin, then yield, then sleep. Pure counting.
//!
//! A wake-up across processors costs the sleeper tens of microseconds, so a task that has a
//! processor for itself spins about that long first. With more tasks than processors, whoever spins
//! keeps the one from running that it waits for: the spin is then almost absent.

use crate::adapter::TaskId;
use crate::config::WaitMode;

/// Turns of polling before the first yield with more tasks than processors, and between two yields: what
/// is awaited comes from a task that waits for the processor, or within a few polls.
const SHORT_SPIN: u32 = 4;
/// Yields before the sleep.
const YIELDS: u32 = 50;

/// So many turns look for the frames of one task alone: of one wait at most, and of the waits of a session before one
/// looks for all. What is awaited may depend on others, and so may what other tasks wait for.
pub(crate) const ALONE: u32 = 8 * (SHORT_SPIN + 1);

/// What to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Poll again.
    Spin,
    /// Give the processor away once, then poll again.
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
    /// Whether tasks share processors, and take turns.
    shares: bool,
}

impl Pace {
    /// The pace for a job of `tasks` on `cores` processors, with `long_spin` turns of polling before
    /// the first yield when every task has one.
    pub fn new(mode: WaitMode, long_spin: u32, tasks: usize, cores: usize) -> Self {
        let shares = tasks > cores;
        let spins = if shares { SHORT_SPIN } else { long_spin };
        match mode {
            WaitMode::Spin => Self { spins, yields: YIELDS, sleeps: false, shares },
            WaitMode::Adaptive => Self { spins, yields: YIELDS, sleeps: true, shares },
            WaitMode::Block => Self { spins: 0, yields: 0, sleeps: true, shares: false },
        }
    }

    /// Returns whether tasks share processors, and poll in turns while they wait.
    #[inline]
    pub fn shares(self) -> bool {
        self.shares
    }

    /// Turns of polling that a wait begins with.
    #[inline]
    pub fn spins(self) -> u32 {
        self.spins
    }

    /// Whose frames the next poll of a wait for those of `origin` may look for alone, after `turns` turns. Where tasks
    /// share processors, a task that sends faster than this one receives thus fills its ring and has to stop, instead
    /// of taking the processor and filling early memory.
    #[inline]
    pub fn alone(self, origin: Option<TaskId>, turns: u32) -> Option<TaskId> {
        origin.filter(|_| self.shares && turns < ALONE)
    }

    /// Whether a wait, which yields after `idle` turns, has lasted as long as one that would sleep now, though
    /// it never does.
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

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

/// With more tasks than processors, so many turns of a wait for one task look for its frames alone before one looks for
/// all: what it waits for may depend on them.
const ALONE: u32 = 8 * (SHORT_SPIN + 1) - 1;

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
}

impl Pace {
    /// The pace for a job of `tasks` on `cores` processors, with `long_spin` turns of polling before
    /// the first yield when every task has one.
    pub fn new(mode: WaitMode, long_spin: u32, tasks: usize, cores: usize) -> Self {
        let spins = if tasks <= cores { long_spin } else { SHORT_SPIN };
        match mode {
            WaitMode::Spin => Self { spins, yields: YIELDS, sleeps: false },
            WaitMode::Adaptive => Self { spins, yields: YIELDS, sleeps: true },
            WaitMode::Block => Self { spins: 0, yields: 0, sleeps: true },
        }
    }

    /// Turns of polling that a wait begins with.
    #[inline]
    pub fn spins(self) -> u32 {
        self.spins
    }

    /// Whose frames the next poll of a wait looks for after `turns` turns, if those of one task: of the one that it
    /// waits for. With more tasks than processors, who sends faster than this task receives is not let go on, as long
    /// as others hold it up: it would keep them from running, and its messages would have to be kept.
    #[inline]
    pub fn alone(self, origin: Option<TaskId>, turns: u32) -> Option<TaskId> {
        origin.filter(|_| self.spins <= SHORT_SPIN && turns % (ALONE + 1) < ALONE)
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
    fn oversubscribed_tasks_look_for_all_now_and_then() {
        let alone = |tasks| Pace::new(WaitMode::Adaptive, LONG_SPIN, tasks, 3).alone(Some(7), 0);
        assert_eq!((alone(3), alone(4)), (None, Some(7)));
        let pace = Pace::new(WaitMode::Adaptive, LONG_SPIN, 3, 2);
        assert_eq!((0..400).filter(|&turns| pace.alone(Some(7), turns).is_none()).count(), 10);
        assert_eq!(pace.alone(None, 0), None);
    }

    #[test]
    fn block_sleeps_at_once_and_spin_never() {
        assert_eq!(Pace::new(WaitMode::Block, LONG_SPIN, 2, 2).step(0), Turn::Sleep);
        let (_, _, slept) = steps(Pace::new(WaitMode::Spin, LONG_SPIN, 9, 2), 100_000);
        assert_eq!(slept, 0);
    }
}

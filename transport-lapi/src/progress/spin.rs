//! How long a waiting thread spins and yields before it sleeps. Pure: clocks are read by callers. `context.rs` sleeps,
//! and says how often a sleeper looks again.
//!
//! - [`SpinPolicy`]: how many turns a wait polls before it first yields the processor, and when it sleeps.
//! - [`AdaptiveSpin`]: how long a task with a processor of its own polls before it sleeps. A wake-up across processors
//!   costs both ends tens of microseconds, so that is a millisecond (`MPJ_SPIN`), and up to ten times as long if
//!   earlier sleeps turned out to be short.
//! - [`SpinBudget`]: a yield that takes long shows that other threads need the processor; after some the task sleeps
//!   soon.
//!
//! With more tasks than processors a spinning task keeps the one from running that it waits for, so it hardly spins.

use std::time::{Duration, Instant};

use crate::adapter::TaskId;
use crate::job::config::WaitMode;

/// Turns of polling before the first yield, if every task has a processor. They take about as long as a wake-up across
/// processors.
const LONG_SPIN: u32 = 4_000;
/// With more tasks than processors: turns of polling before the first yield, and between two yields. They take about as
/// long as a short message from a running task and its answer; what does not come meanwhile comes from a task that
/// needs the processor.
const SHORT_SPIN: u32 = 14;
/// Yields before the sleep.
const YIELDS: u32 = 50;

/// How many turns of one wait may poll a single task only, and how many such turns of all its waits a session makes
/// before it polls all tasks once. What a wait needs may depend on further tasks, and those may need this one.
pub(crate) const ALONE: u32 = 8 * (SHORT_SPIN + 1);

/// Polls of a spin between two prefetches of the memory of the next expected frames. Not at every poll of a short spin:
/// while the peer writes the awaited one, both processors compete for the same lines, and between near processors that
/// costs more than the prefetch saves.
const POLLS_PER_FETCH: u32 = 4;

/// From this turn of a spin on, every poll prefetches that memory: a near processor is about to answer, and for a
/// distant one a late transfer costs more than the competition.
const FETCHES_FROM: u32 = 12;

/// Whether a spin prefetches that memory after `turn` polls in vain.
#[inline(always)]
pub(crate) fn fetches(turn: u32) -> bool {
    turn % POLLS_PER_FETCH == 0 || turn >= FETCHES_FROM
}

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
pub(crate) struct SpinPolicy {
    spins: u32,
    yields: u32,
    sleeps: bool,
    /// Whether there are more tasks than processors, so that they take turns.
    shares: bool,
}

impl SpinPolicy {
    /// The pace for a job of `tasks` on `cores` processors.
    pub fn new(mode: WaitMode, tasks: usize, cores: usize) -> Self {
        let shares = tasks > cores;
        let spins = if shares { SHORT_SPIN } else { LONG_SPIN };
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
    /// stop; otherwise it would take the processor and fill unexpected-message memory.
    #[inline]
    pub fn alone(self, origin: Option<TaskId>, turns: u32) -> Option<TaskId> {
        origin.filter(|_| self.shares && turns < ALONE)
    }

    /// Returns whether the clock decides how many times a wait yields before it sleeps ([`SpinBudget`]).
    #[inline]
    pub fn looks_at_clock(self) -> bool {
        self.sleeps && !self.shares
    }

    /// Returns the number of idle turns from which a wait counts on if it keeps polling after a yield. It is such that
    /// the next yield comes after half as many polls as the first.
    #[inline]
    pub fn polls_on(self) -> u32 {
        self.spins / 2
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

/// A yield that takes longer has let another thread run.
const LET_RUN: Duration = Duration::from_micros(10);

/// The time that a wait has polled in vain.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SpinBudget {
    /// The first yield.
    since: Option<Instant>,
    /// Whether other threads need the processor.
    is_crowded: bool,
}

impl SpinBudget {
    /// Returns whether a wait polls on instead of preparing to sleep, after a yield from `before` until `now`: for at
    /// most `limit`, and not once a yield has let another thread run.
    pub fn polls_on(&mut self, before: Instant, now: Instant, limit: Duration) -> bool {
        let since = *self.since.get_or_insert(before);
        self.is_crowded |= now.duration_since(before) > LET_RUN;
        !self.is_crowded && now.duration_since(since) < limit
    }
}

/// The longest limit of [`AdaptiveSpin`], in shortest ones.
const MOST: u32 = 10;

/// How long waits poll before they sleep, by how long the sleeps before have lasted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AdaptiveSpin {
    limit: Duration,
    least: Duration,
}

impl AdaptiveSpin {
    /// Starts with the limit `least`, which is never shortened.
    pub fn new(least: Duration) -> Self {
        Self { limit: least, least }
    }

    /// How long a wait polls.
    pub fn limit(self) -> Duration {
        self.limit
    }

    /// Takes note of a sleep. If the longest limit would have saved it, later waits poll twice as long; otherwise
    /// polling was in vain, and they poll half as long.
    pub fn learn(&mut self, slept: Duration) {
        let most = self.least * MOST;
        self.limit = if slept < most { self.limit * 2 } else { self.limit / 2 };
        self.limit = self.limit.clamp(self.least, most);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(pace: SpinPolicy, turns: u32) -> (usize, usize, usize) {
        let count = |step| (0..turns).filter(|&idle| pace.step(idle) == step).count();
        (count(Turn::Spin), count(Turn::Yield), count(Turn::Sleep))
    }

    #[test]
    fn adaptive_spins_then_yields_then_sleeps() {
        let long = LONG_SPIN as usize;
        let yields = YIELDS as usize;
        let turns = LONG_SPIN + YIELDS * (SHORT_SPIN + 1) + 7;
        let (spin, yielded, slept) = steps(SpinPolicy::new(WaitMode::Adaptive, 2, 2), turns);
        assert_eq!((spin, yielded, slept), (long + yields * SHORT_SPIN as usize, yields, 7));
    }

    #[test]
    fn oversubscribed_tasks_hardly_spin() {
        let pace = SpinPolicy::new(WaitMode::Adaptive, 3, 2);
        assert_eq!(pace.step(SHORT_SPIN), Turn::Yield);
        assert_eq!(pace.step(SHORT_SPIN - 1), Turn::Spin);
    }

    #[test]
    fn oversubscribed_tasks_look_for_one_at_first() {
        let alone =
            |mode, tasks, turns| SpinPolicy::new(mode, tasks, 3).alone(Some(7), turns).is_some();
        assert!(alone(WaitMode::Adaptive, 4, ALONE - 1) && alone(WaitMode::Spin, 4, 0));
        assert!(!alone(WaitMode::Adaptive, 4, ALONE) && !alone(WaitMode::Adaptive, 3, 0));
        assert!(!alone(WaitMode::Block, 4, 0), "its sleeps look for all");
    }

    #[test]
    fn a_wait_polls_on_until_the_limit_or_until_another_thread_runs() {
        let (start, us) = (Instant::now(), Duration::from_micros);
        let yields = |ends: &[(u64, u64)]| {
            let mut vain = SpinBudget::default();
            let mut polls_on =
                |&(from, to)| vain.polls_on(start + us(from), start + us(to), us(100));
            ends.iter().map(&mut polls_on).collect::<Vec<_>>()
        };
        assert_eq!(yields(&[(0, 1), (50, 51), (98, 99), (99, 100)]), [true, true, true, false]);
        assert_eq!(yields(&[(0, 1), (30, 41), (42, 43)]), [true, false, false]);
    }

    #[test]
    fn only_an_adaptive_wait_with_a_processor_of_its_own_polls_on() {
        let may = |mode, tasks| SpinPolicy::new(mode, tasks, 2).looks_at_clock();
        assert!(may(WaitMode::Adaptive, 2));
        assert!(!may(WaitMode::Adaptive, 3) && !may(WaitMode::Spin, 2));
        assert_eq!(SpinPolicy::new(WaitMode::Adaptive, 2, 2).polls_on(), LONG_SPIN / 2);
    }

    #[test]
    fn short_sleeps_lengthen_the_spin_and_long_ones_shorten_it() {
        let ms = Duration::from_millis;
        let mut patience = AdaptiveSpin::new(ms(1));
        let mut after = |slept| {
            patience.learn(ms(slept));
            patience.limit()
        };
        assert_eq!([0, 9, 5, 1, 9].map(&mut after), [2, 4, 8, 10, 10].map(ms));
        assert_eq!([10, 1_000].map(&mut after), [ms(5), ms(5) / 2]);
        assert_eq!([1_000, 1_000].map(&mut after), [ms(5) / 4, ms(1)]);
        let mut never = AdaptiveSpin::new(Duration::ZERO);
        never.learn(Duration::ZERO);
        assert_eq!(never.limit(), Duration::ZERO);
    }

    #[test]
    fn block_sleeps_at_once_and_spin_never() {
        assert_eq!(SpinPolicy::new(WaitMode::Block, 2, 2).step(0), Turn::Sleep);
        let (_, _, slept) = steps(SpinPolicy::new(WaitMode::Spin, 9, 2), 100_000);
        assert_eq!(slept, 0);
    }
}

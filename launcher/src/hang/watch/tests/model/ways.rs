//! Explores all interleavings of a job of the model.

use std::collections::HashSet;
use std::hash::BuildHasherDefault;

use super::launcher::{Doing::Reading, Without};
use super::packed::Fold;
use super::*;

/// What an exploration has met.
#[derive(Default)]
pub(super) struct Outcome<const R: usize, const T: usize, const C: usize> {
    /// Whether a deadlock was ever found.
    pub(super) found: bool,
    /// The way to a false deadlock.
    pub(super) wrong: Vec<Job<R, T, C>>,
    /// A state in deadlock that is never found to be one.
    pub(super) missed: Option<Job<R, T, C>>,
}

impl<const R: usize, const T: usize, const C: usize> Job<R, T, C> {
    /// Explores all interleavings, until a false deadlock is found.
    pub(super) fn explore(self, without: Without) -> Outcome<R, T, C> {
        let mut outcome = Outcome::default();
        let mut known = HashSet::<_, BuildHasherDefault<Fold>>::from_iter([self.packed()]);
        let (mut open, mut way, mut then) = (vec![(0, self)], Vec::new(), Vec::new());
        while let Some((depth, job)) = open.pop() {
            way.truncate(depth);
            way.push(job);
            let is_found = job.watch(without, &mut then) == Finding::Deadlock;
            outcome.found |= is_found;
            if is_found && !job.is_stuck() {
                outcome.wrong = way;
                break;
            }
            if job.launcher == self.launcher
                && job.is_to_be_found()
                && !job.is_found_in_time(without)
            {
                outcome.missed = Some(job);
            }
            job.steps(without, &mut then);
            then.retain(|next| !next.is_over(without) && known.insert(next.packed()));
            open.extend(then.drain(..).map(|next| (depth + 1, next)));
        }
        outcome
    }

    /// Whether a wait table has changed since the launcher first read it. The launcher notices that when it reads it
    /// again (SL3), unless the rank is then known to have ended, which also makes it begin anew.
    fn is_over(&self, without: Without) -> bool {
        let keeps_on = matches!(
            without,
            Without::Haste | Without::Epochs | Without::ContextEpochs | Without::Ends
        );
        !keeps_on && self.ranks.iter().flat_map(|rank| rank.changed).any(|changed| changed)
    }

    /// Whether the launcher finds an existing deadlock while all threads go on looking.
    fn is_found_in_time(mut self, without: Without) -> bool {
        let mut then = Vec::new();
        loop {
            if matches!(self.launcher.doing, Reading { rank: 0, context: 0, line: 0, .. }) {
                self.let_all_look();
            }
            if self.watch(without, &mut then) == Finding::Deadlock {
                return true;
            }
            // In the last one, most ends are known.
            let Some(next) = then.pop() else { return false };
            then.clear();
            self = next;
        }
    }

    /// Lets each waiting thread go on until it has looked again at least twice.
    fn let_all_look(&mut self) {
        let mut then = Vec::new();
        for _ in 0..8 * T {
            for (rank, thread) in (0..R).flat_map(|rank| (0..T).map(move |thread| (rank, thread))) {
                if !self.ranks[rank].ended {
                    self.step(rank, thread, &mut then);
                    *self = then.pop().unwrap_or(*self);
                    then.clear();
                }
            }
        }
    }
}

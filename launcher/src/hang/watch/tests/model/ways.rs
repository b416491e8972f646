//! Goes all the ways that a job of the model can take.

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
    /// How it came to a deadlock that is none.
    pub(super) wrong: Vec<Job<R, T, C>>,
    /// A deadlock that is never found.
    pub(super) missed: Option<Job<R, T, C>>,
}

impl<const R: usize, const T: usize, const C: usize> Job<R, T, C> {
    /// Goes all ways, until a deadlock is found that is none.
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

    /// Whether a slate has changed since the launcher read it first: SL3 tells it so when it reads it again, or
    /// the rank is known to have ended by then, as it was not before.
    fn is_over(&self, without: Without) -> bool {
        let keeps_on = matches!(
            without,
            Without::Haste | Without::Epochs | Without::ContextEpochs | Without::Ends
        );
        !keeps_on && self.ranks.iter().flat_map(|rank| rank.changed).any(|changed| changed)
    }

    /// Whether the launcher finds a deadlock that is there, if all others go on meanwhile.
    fn is_found_in_time(mut self, without: Without) -> bool {
        let mut then = Vec::new();
        loop {
            if matches!(self.launcher.doing, Reading { rank: 0, context: 0, line: 0, .. }) {
                self.let_all_look();
            }
            if self.watch(without, &mut then) == Finding::Deadlock {
                return true;
            }
            // The last one is that in which most ends are known.
            let Some(next) = then.pop() else { return false };
            then.clear();
            self = next;
        }
    }

    /// Each thread that waits goes on until it has looked again twice, or more often.
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

//! The lock of a window at its target: who has it, and who waits for it.
//!
//! Locks are granted in the order in which they were asked for, so none waits forever: a shared lock waits behind an
//! exclusive one that was asked for before.

use std::collections::{HashMap, VecDeque};

/// Ranks with the lock, and those that wait, each with what the caller keeps for it.
#[derive(Debug)]
pub(super) struct Locks<W> {
    /// The ranks that have it, and whether exclusively.
    holders: HashMap<u32, bool>,
    waiting: VecDeque<(u32, bool, W)>,
}

impl<W> Default for Locks<W> {
    fn default() -> Self {
        Self { holders: HashMap::new(), waiting: VecDeque::new() }
    }
}

impl<W> Locks<W> {
    /// Asks for the lock. Returns the ranks that get it now, at most this one; `None` if the rank has it already.
    pub fn ask(&mut self, rank: u32, exclusive: bool, kept: W) -> Option<Vec<(u32, W)>> {
        let is_there = self.holders.contains_key(&rank)
            || self.waiting.iter().any(|(other, ..)| *other == rank);
        if is_there {
            return None;
        }
        self.waiting.push_back((rank, exclusive, kept));
        Some(self.grant())
    }

    /// Gives the lock of a rank back. Returns the ranks that get it now; `None` if the rank does not have it.
    pub fn give_back(&mut self, rank: u32) -> Option<Vec<(u32, W)>> {
        self.holders.remove(&rank)?;
        Some(self.grant())
    }

    fn grant(&mut self) -> Vec<(u32, W)> {
        let mut granted = Vec::new();
        while let Some((rank, exclusive, kept)) = self.waiting.pop_front() {
            // One that has it exclusively is the only one.
            let excludes = exclusive || self.holders.values().next() == Some(&true);
            if excludes && !self.holders.is_empty() {
                self.waiting.push_front((rank, exclusive, kept));
                break;
            }
            self.holders.insert(rank, exclusive);
            granted.push((rank, kept));
        }
        granted
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Each step is a rank that asks, or that gives back what it has.
        #[test]
        fn locks_exclude_and_are_granted_in_order(steps in prop::collection::vec((0..5_u32, any::<bool>()), 0..64)) {
            let (mut locks, mut holders, mut asked) = (Locks::default(), Vec::new(), VecDeque::new());
            for (rank, exclusive) in steps {
                let has = holders.iter().position(|(holder, _)| *holder == rank);
                let granted = match has {
                    Some(at) => {
                        prop_assert!(locks.ask(rank, exclusive, exclusive).is_none(), "it has the lock");
                        holders.remove(at);
                        locks.give_back(rank)
                    }
                    None if asked.contains(&(rank, true)) || asked.contains(&(rank, false)) => {
                        prop_assert!(locks.give_back(rank).is_none(), "it waits");
                        continue;
                    }
                    None => {
                        asked.push_back((rank, exclusive));
                        locks.ask(rank, exclusive, exclusive)
                    }
                };
                for next in granted.expect("a legal step") {
                    prop_assert_eq!(Some(next), asked.pop_front());
                    holders.push(next);
                }
                prop_assert!(holders.len() < 2 || holders.iter().all(|(_, exclusive)| !exclusive));
                let could_go_on = asked.front().is_some_and(|(_, exclusive)| {
                    holders.is_empty() || !exclusive && holders.iter().all(|(_, exclusive)| !exclusive)
                });
                prop_assert!(!could_go_on, "the first one waits in vain");
            }
        }
    }
}

//! The networks of ranks and the addresses of their contexts, gathered until all are known, and then told in batches: in `mpjrun` those of
//! the job, in an agent those of its branch.

use std::collections::BTreeMap;

use transport_lapi::TaskId;
use transport_lapi::adapters::MAX_CONTEXTS;
use transport_lapi::bootstrap::control::Endpoints;
use transport_lapi::bootstrap::hosts::MAX_ADDRESS;

/// Ranks whose addresses are told in one message.
const BATCH: usize = 1024;

/// See the module's head.
pub(in crate::job) struct Addresses {
    known: BTreeMap<TaskId, Endpoints>,
    /// Number of ranks whose addresses are expected.
    expected: usize,
}

impl Addresses {
    /// Expects those of so many ranks.
    pub(in crate::job) fn of(ranks: usize) -> Self {
        Self { known: BTreeMap::new(), expected: ranks }
    }

    /// Takes those of one rank, unless it has told them before. One that tells what cannot be addresses has none: others
    /// then say so when they need it.
    pub(in crate::job) fn take(&mut self, task: TaskId, told: Endpoints) {
        let lengths = told.addresses.iter().map(Vec::len).chain([told.network.len()]);
        let is_fine = told.addresses.len() <= MAX_CONTEXTS && lengths.max() <= Some(MAX_ADDRESS);
        if self.expected > 0 {
            self.known.entry(task).or_insert(if is_fine { told } else { Endpoints::default() });
        }
    }

    /// Returns the next of them, by rank, once all are known. Each is returned once.
    pub(in crate::job) fn next_batch(&mut self) -> Option<Vec<(TaskId, Endpoints)>> {
        if self.known.len() == self.expected {
            // Nothing more is taken.
            self.expected = 0;
        }
        let is_some = self.expected == 0 && !self.known.is_empty();
        is_some.then(|| std::iter::from_fn(|| self.known.pop_first()).take(BATCH).collect())
    }

    /// Whether [`Addresses::next_batch`] has returned all.
    pub(in crate::job) fn are_told(&self) -> bool {
        self.expected == 0 && self.known.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoints(addresses: Vec<Vec<u8>>) -> Endpoints {
        Endpoints { network: String::new(), addresses }
    }

    #[test]
    fn all_are_told_once_when_the_last_has_come() {
        let ranks = 2 * BATCH + 1;
        let mut addresses = Addresses::of(ranks);
        for task in (0..ranks as TaskId).rev() {
            assert_eq!(addresses.next_batch(), None);
            addresses.take(task, endpoints(vec![vec![task as u8]]));
            addresses.take(task, endpoints(vec![vec![7]]));
        }
        let told: Vec<_> = std::iter::from_fn(|| addresses.next_batch()).collect();
        assert_eq!(told.iter().map(Vec::len).collect::<Vec<_>>(), [BATCH, BATCH, 1]);
        let expected = (0..ranks as TaskId).map(|task| (task, endpoints(vec![vec![task as u8]])));
        assert!(told.concat().into_iter().eq(expected));
        addresses.take(0, endpoints(vec![vec![7]]));
        assert!(addresses.next_batch().is_none() && addresses.are_told());
    }

    #[test]
    fn what_is_too_long_for_an_address_is_none() {
        let mut addresses = Addresses::of(4);
        addresses.take(0, endpoints(vec![vec![7; MAX_ADDRESS]; MAX_CONTEXTS]));
        addresses.take(1, endpoints(vec![vec![7; MAX_ADDRESS + 1]]));
        addresses.take(2, endpoints(vec![vec![7]; MAX_CONTEXTS + 1]));
        let network = "a".repeat(MAX_ADDRESS + 1);
        addresses.take(3, Endpoints { network, addresses: vec![vec![7]] });
        let told = addresses.next_batch().expect("all are known");
        let counts: Vec<usize> = told.iter().map(|(_, its)| its.addresses.len()).collect();
        assert_eq!(counts, [MAX_CONTEXTS, 0, 0, 0]);
    }
}

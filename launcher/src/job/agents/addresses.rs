//! The networks of ranks and the addresses of their contexts, gathered until all are known, and then told in batches: in
//! `mpjrun` those of the job, in an agent those of its branch. The clients of the ranks come one after the other.

use std::collections::BTreeMap;

use transport_lapi::TaskId;
use transport_lapi::adapters::{MAX_CONTEXTS, SPARE_CONTEXTS};
use transport_lapi::bootstrap::control::Endpoints;
use transport_lapi::bootstrap::hosts::MAX_ADDRESS;

/// Ranks whose addresses are told in one message.
const BATCH: usize = 1024;

/// See the module's head.
pub(in crate::job) struct Addresses {
    known: BTreeMap<TaskId, Endpoints>,
    /// Number of ranks whose addresses are expected.
    ranks: usize,
    /// Whether those of all ranks have come, and are being told.
    are_complete: bool,
    /// The first context of the client whose addresses are expected or told.
    first: u32,
    /// The number of its contexts.
    contexts: u32,
}

/// Addresses to be told.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::job) struct Batch {
    /// The first context of the client.
    pub(in crate::job) context: u32,
    /// By rank.
    pub(in crate::job) ranks: Vec<(TaskId, Endpoints)>,
    /// Of how many contexts all addresses have been told with these, if this is the last batch of a client.
    pub(in crate::job) completes: Option<u32>,
}

impl Addresses {
    /// Expects those of so many ranks.
    pub(in crate::job) fn of(ranks: usize) -> Self {
        Self { known: BTreeMap::new(), ranks, are_complete: false, first: 0, contexts: 0 }
    }

    /// Whether these are of the client that is expected.
    pub(in crate::job) fn are_expected(&self, told: &Endpoints) -> bool {
        !self.are_complete && told.first == self.first
    }

    /// Takes those of one rank, unless it has told them before. One that tells what cannot be addresses has none: others
    /// then say so when they need it.
    pub(in crate::job) fn take(&mut self, task: TaskId, told: Endpoints) {
        if !self.are_expected(&told) {
            return;
        }
        let lengths = told.addresses.iter().map(Vec::len);
        let lengths = lengths.chain([told.network.len(), told.client.len()]);
        let most = (MAX_CONTEXTS + SPARE_CONTEXTS).saturating_sub(self.first as usize);
        let is_fine = told.addresses.len() <= most && lengths.max() <= Some(MAX_ADDRESS);
        let told = if is_fine { told } else { Endpoints::default() };
        self.contexts = self.contexts.max(told.addresses.len() as u32);
        self.known.entry(task).or_insert(told);
        self.are_complete = self.known.len() == self.ranks;
    }

    /// Returns the next of them, by rank, once all are known. Each is returned once.
    pub(in crate::job) fn next_batch(&mut self) -> Option<Batch> {
        if !self.are_complete {
            return None;
        }
        let ranks = std::iter::from_fn(|| self.known.pop_first()).take(BATCH).collect();
        let (context, next) = (self.first, self.first + self.contexts);
        let completes = self.known.is_empty().then_some(next);
        if completes.is_some() {
            (self.are_complete, self.first, self.contexts) = (false, next, 0);
        }
        Some(Batch { context, ranks, completes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoints(addresses: Vec<Vec<u8>>) -> Endpoints {
        Endpoints { addresses, ..Endpoints::default() }
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
        assert!(told.iter().all(|batch| batch.context == 0));
        let completes: Vec<_> = told.iter().map(|batch| batch.completes).collect();
        assert_eq!(completes, [None, None, Some(1)]);
        let told: Vec<_> = told.into_iter().map(|batch| batch.ranks).collect();
        assert_eq!(told.iter().map(Vec::len).collect::<Vec<_>>(), [BATCH, BATCH, 1]);
        let expected = (0..ranks as TaskId).map(|task| (task, endpoints(vec![vec![task as u8]])));
        assert!(told.concat().into_iter().eq(expected));
    }

    #[test]
    fn clients_come_one_after_the_other() {
        let mut addresses = Addresses::of(2);
        let of_client = |first, contexts| Endpoints { first, ..endpoints(vec![vec![7]; contexts]) };
        for (first, contexts) in [(0, 2), (2, 1), (3, 1)] {
            for late in [0, 1, 9].map(|context| first + context).into_iter().skip(1) {
                addresses.take(0, of_client(late, 1));
            }
            addresses.take(0, of_client(first, contexts));
            assert_eq!(addresses.next_batch(), None);
            addresses.take(1, of_client(first, contexts));
            addresses.take(1, of_client(first + contexts as u32, 1));
            let batch = addresses.next_batch().expect("both have come");
            assert_eq!((batch.context, batch.ranks.len()), (first, 2));
            assert_eq!(batch.completes, Some(first + contexts as u32));
            addresses.take(0, of_client(first, contexts));
        }
    }

    #[test]
    fn what_is_too_long_for_an_address_is_none() {
        let mut addresses = Addresses::of(4);
        let most = MAX_CONTEXTS + SPARE_CONTEXTS;
        addresses.take(0, endpoints(vec![vec![7; MAX_ADDRESS]; most]));
        addresses.take(1, endpoints(vec![vec![7; MAX_ADDRESS + 1]]));
        addresses.take(2, endpoints(vec![vec![7]; most + 1]));
        let network = "a".repeat(MAX_ADDRESS + 1);
        addresses.take(3, Endpoints { network, ..endpoints(vec![vec![7]]) });
        let told = addresses.next_batch().expect("all are known").ranks;
        let counts: Vec<usize> = told.iter().map(|(_, its)| its.addresses.len()).collect();
        assert_eq!(counts, [most, 0, 0, 0]);
    }
}

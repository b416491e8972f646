//! The addresses of the contexts of ranks, gathered until all are known: in `mpjrun` those of the job, in an agent those
//! of its branch.

use std::collections::BTreeMap;

use transport_lapi::TaskId;

/// Ranks whose addresses are told in one message.
pub(in crate::job) const BATCH: usize = 1024;

/// See the module's head.
pub(in crate::job) struct Addresses {
    known: BTreeMap<TaskId, Vec<Vec<u8>>>,
    /// Number of ranks whose addresses are expected.
    expected: usize,
}

impl Addresses {
    /// Expects those of so many ranks.
    pub(in crate::job) fn of(ranks: usize) -> Self {
        Self { known: BTreeMap::new(), expected: ranks }
    }

    /// Takes those of one rank, unless it has told them before.
    pub(in crate::job) fn take(&mut self, task: TaskId, addresses: Vec<Vec<u8>>) {
        self.known.entry(task).or_insert(addresses);
    }

    /// Returns all of them, once, when they are known.
    pub(in crate::job) fn complete(&mut self) -> Option<Vec<(TaskId, Vec<Vec<u8>>)>> {
        let is_complete = self.expected > 0 && self.known.len() == self.expected;
        is_complete.then(|| {
            self.expected = 0;
            std::mem::take(&mut self.known).into_iter().collect()
        })
    }
}

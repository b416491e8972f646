//! Losses as an endpoint knows them: those that others know, and the peers whose connections have failed.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use rustc_hash::FxHashSet;

use crate::adapter::{Losses, TaskId};

/// The losses that others know, and the peers whose connections have failed.
pub(super) struct OfiLosses {
    known: Arc<dyn Losses>,
    failed: Mutex<FxHashSet<TaskId>>,
    count: AtomicUsize,
}

impl OfiLosses {
    pub(super) fn new(known: Arc<dyn Losses>) -> Self {
        Self { known, failed: Mutex::default(), count: AtomicUsize::new(0) }
    }

    /// Notes that the connection to `task` has failed.
    pub(super) fn fail(&self, task: TaskId) {
        if self.failed.lock().insert(task) {
            self.count.fetch_add(1, Ordering::Release); // SYNC: failed connections
        }
    }
}

impl Losses for OfiLosses {
    fn count(&self) -> usize {
        self.known.count() + self.count.load(Ordering::Acquire) // SYNC: failed connections
    }

    fn is_lost(&self, task: TaskId) -> bool {
        let has_failed = self.count.load(Ordering::Acquire) > 0; // SYNC: failed connections
        (has_failed && self.failed.lock().contains(&task)) || self.known.is_lost(task)
    }

    fn declare(&self) {
        self.known.declare();
    }
}

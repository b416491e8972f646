//! Where the other tasks are, and the way to their memory.

use std::sync::Arc;

use super::Context;
use crate::adapter::{PeerMemory, TaskId};

impl<S> Context<S> {
    /// Returns whether the job has several hosts.
    pub fn has_hosts(&self) -> bool {
        self.hosts.is_some()
    }

    /// Returns the number of the host of `task` in the job; 0 in a job of one host.
    ///
    /// # Panics
    /// In a job of several hosts, if it has no such task.
    pub fn host_of(&self, task: TaskId) -> u32 {
        self.hosts.as_ref().map_or(0, |hosts| hosts.host_of(task))
    }

    /// Returns the memory of the other tasks of this host, where there is a way to it: not where the tasks are threads, the
    /// kernel refuses it, or `MPJ_GET` asks for active messages.
    pub fn peer_memory(&self) -> Option<&Arc<dyn PeerMemory>> {
        self.peer_memory.as_ref()
    }
}

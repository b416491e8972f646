//! On which hosts the ranks are, and the way to memory of those of this host.

use std::sync::Arc;

use transport_lapi::PeerMemory;

use super::Device;

impl Device {
    /// Returns whether the job has several hosts.
    pub fn has_hosts(&self) -> bool {
        self.context.has_hosts()
    }

    /// Returns the number of the host of a rank in the job; 0 in a job of one host.
    ///
    /// # Panics
    /// In a job of several hosts, if it has no such rank.
    pub fn host_of(&self, rank: u32) -> u32 {
        self.context.host_of(rank)
    }

    /// Returns the memory of the other ranks of this host, where there is a way to it: see
    /// [`Context::peer_memory`](transport_lapi::Context::peer_memory).
    pub fn peer_memory(&self) -> Option<Arc<dyn PeerMemory>> {
        self.context.peer_memory().cloned()
    }

    /// [`Device::host_of`] for this rank.
    pub fn host(&self) -> u32 {
        self.host_of(self.rank())
    }
}

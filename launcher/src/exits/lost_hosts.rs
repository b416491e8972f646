//! The hosts of a job in its exit log, and which of them were lost with which ranks.

use super::{Ending, ExitLog};

/// A host of a job.
#[derive(Debug, Clone, Default)]
pub(super) struct Host {
    pub(super) name: String,
    /// Why it is out of reach.
    pub(super) lost: Option<String>,
}

impl ExitLog {
    /// Whether the ranks run on several hosts.
    pub(crate) fn has_several_hosts(&self) -> bool {
        self.hosts.len() > 1
    }

    /// Notes why a host is out of reach.
    pub(crate) fn host_lost(&mut self, host: usize, reason: String) {
        self.hosts[host].lost.get_or_insert(reason);
    }

    /// Why the host of `rank` is out of reach.
    pub(crate) fn loss_of_host(&self, rank: usize) -> &str {
        let host = self.records.get(rank).and_then(|record| self.hosts.get(record.host));
        host.and_then(|host| host.lost.as_deref()).unwrap_or_default()
    }

    /// The ranks that were lost with the host of `rank`.
    pub(crate) fn lost_with(&self, rank: usize) -> Vec<usize> {
        let host = self.records.get(rank).map(|record| record.host);
        let records = self.records.iter().enumerate().filter(|(_, it)| Some(it.host) == host);
        let is_lost = |ended: Option<(Ending, u64)>| matches!(ended, Some((Ending::Lost, _)));
        records.filter(|(_, it)| is_lost(it.ended)).map(|(rank, _)| rank).collect()
    }

    /// The name of the host of `rank`.
    pub(crate) fn host(&self, rank: usize) -> &str {
        let host = self.records.get(rank).and_then(|record| self.hosts.get(record.host));
        host.map_or("", |host| &host.name)
    }
}

//! The memory of the tasks of this host, in a job on several hosts: that of the local adapter, whose tasks have other
//! numbers (HA2).

use std::sync::Arc;

use super::globally;
use super::table::JobTable;
use crate::adapter::{AdapterError, PeerMemory, TaskId};
use crate::memory::region::{ForeignBytes, PeerBytes, RecvPart};

/// See the head of the file.
pub(super) struct HostMemory {
    pub inner: Arc<dyn PeerMemory>,
    pub table: Arc<JobTable>,
    /// The tasks of this host, by place.
    pub here: Box<[TaskId]>,
}

impl HostMemory {
    fn place(&self, task: TaskId) -> Result<TaskId, AdapterError> {
        // What is elsewhere is not there for this task.
        self.table.local_place(task).ok_or(AdapterError::PeerLost { task })
    }
}

impl PeerMemory for HostMemory {
    fn reaches(&self, task: TaskId) -> bool {
        self.table.local_place(task).is_some_and(|place| self.inner.reaches(place))
    }

    fn read(
        &self,
        task: TaskId,
        from: &[PeerBytes],
        into: RecvPart<'_>,
    ) -> Result<(), AdapterError> {
        let read = self.inner.read(self.place(task)?, from, into);
        read.map_err(|error| globally(&self.here, error))
    }

    fn write(
        &self,
        task: TaskId,
        to: &[PeerBytes],
        from: ForeignBytes<'_>,
    ) -> Result<(), AdapterError> {
        let written = self.inner.write(self.place(task)?, to, from);
        written.map_err(|error| globally(&self.here, error))
    }
}

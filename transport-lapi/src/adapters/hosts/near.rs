//! The memory of the tasks of this host, in a job on several hosts: that of the local adapter, whose tasks have other
//! numbers (HA2).

#![expect(unsafe_code, reason = "memory of others is written")]

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
        let reason = std::io::ErrorKind::Unsupported.into();
        let elsewhere = AdapterError::AccessFailed { target: task, len: 0, reason };
        self.table.local_place(task).ok_or(elsewhere)
    }
}

impl PeerMemory for HostMemory {
    fn reaches(&self, task: TaskId) -> bool {
        self.table.local_place(task).is_some_and(|place| self.inner.reaches(place))
    }

    fn has_ended(&self, task: TaskId) -> bool {
        self.table.local_place(task).is_some_and(|place| self.inner.has_ended(place))
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

    unsafe fn write(
        &self,
        task: TaskId,
        to: &[PeerBytes],
        from: ForeignBytes<'_>,
    ) -> Result<(), AdapterError> {
        let place = self.place(task)?;
        // SAFETY: the caller's promise.
        let written = unsafe { self.inner.write(place, to, from) };
        written.map_err(|error| globally(&self.here, error))
    }
}

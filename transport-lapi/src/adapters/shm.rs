//! The adapter for ranks that are processes of one host.
//!
//! The launcher makes one sealed memfd with [`create_segment`] and every rank inherits it by
//! descriptor: there is no name to leak or to squat. [`ShmAdapter::attach`] maps it and waits for the
//! other tasks. One-sided reads are `process_vm_readv`, after a probe on which all tasks agree.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use crate::adapter::{Adapter, AdapterError, Caps, Doorbell, Frame, GetKind, Post, TaskId};
use crate::adapters::layout::Layout;
use crate::adapters::port::{Port, declare_lost};
use crate::adapters::ring::{CELL_DATA, MAX_HEAD};
use crate::config::GetMode;
use crate::region::{RecvRegion, RemoteRegion};
use crate::sys;

mod mapping;
mod wireup;

pub use mapping::create_segment;

/// One task of a job whose tasks are processes.
pub struct ShmAdapter {
    port: Port,
    /// Processes of the tasks, read once at wireup.
    pids: Vec<i32>,
    /// Why one-sided reads are not used, if they are not.
    without_get: Option<String>,
}

impl ShmAdapter {
    /// Maps the job's segment as task number `task` of `num_tasks`, waits until all tasks have done
    /// so, and agrees with them on how one-sided reads are done. Waits as long as it takes: whoever
    /// started the tasks watches over that.
    ///
    /// # Errors
    /// [`AdapterError::TaskCount`]; [`AdapterError::BadSegment`] when `fd` is not a segment for this
    /// job or the number is taken; [`AdapterError::System`] when it cannot be mapped;
    /// [`AdapterError::PeerLost`] when another task gave up meanwhile; [`AdapterError::GetRefused`]
    /// when `get` demands what the kernel refuses.
    pub fn attach(
        fd: OwnedFd,
        task: TaskId,
        num_tasks: usize,
        get: GetMode,
    ) -> Result<Self, AdapterError> {
        let layout = Layout::new(num_tasks)?;
        if task as usize >= num_tasks {
            let what = format!("task {task} does not exist in a job of {num_tasks} tasks");
            return Err(AdapterError::BadSegment { what });
        }
        let segment = Arc::new(mapping::map(&fd, layout)?);
        mapping::populate(&segment, task as usize);
        wireup::claim(&segment, task)?;
        segment.set_up(task as usize);
        let agreed =
            wireup::agree(&segment, task, get).inspect_err(|_| declare_lost(&segment, task))?;
        let port = Port::new(segment, task, agreed.fences);
        Ok(Self { port, pids: agreed.pids, without_get: agreed.without_get })
    }

    /// How one-sided reads are done, and why, for reports.
    pub fn get_report(&self) -> String {
        match &self.without_get {
            None => "process_vm_readv".to_owned(),
            Some(reason) => format!("active messages ({reason})"),
        }
    }
}

impl Adapter for ShmAdapter {
    fn caps(&self) -> Caps {
        Caps {
            name: "shm",
            max_head: MAX_HEAD,
            max_inline: CELL_DATA,
            max_body: self.port.max_body(),
            get: self.without_get.is_none().then_some(GetKind::CrossMemoryAttach),
        }
    }

    fn task(&self) -> TaskId {
        self.port.task()
    }

    fn num_tasks(&self) -> usize {
        self.port.num_tasks()
    }

    #[inline]
    fn try_send(&mut self, target: TaskId, head: &[u8], body: &[u8]) -> Result<Post, AdapterError> {
        self.port.try_send(target, head, body)
    }

    #[inline]
    fn poll<F>(&mut self, budget: usize, sink: &mut F) -> Result<usize, AdapterError>
    where
        F: FnMut(Frame<'_>),
    {
        self.port.poll(budget, sink)
    }

    fn get(
        &mut self,
        target: TaskId,
        remote: RemoteRegion,
        offset: u64,
        into: RecvRegion,
    ) -> Result<(), AdapterError> {
        let failed = |reason| AdapterError::GetFailed { target, len: into.len(), reason };
        let pid = self.pids[target as usize];
        let mut done = 0;
        while done < into.len() {
            let rest = into.part(done, into.len() - done);
            let addr = remote.addr.wrapping_add(offset).wrapping_add(done as u64);
            match sys::process_vm_readv(pid, addr, rest) {
                Ok(read) => done += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(failed(error)),
            }
        }
        Ok(())
    }

    fn doorbell(&self) -> Arc<dyn Doorbell> {
        self.port.doorbell()
    }

    fn lost(&self) -> Option<TaskId> {
        self.port.lost()
    }
}

#[cfg(test)]
#[allow(unsafe_code, reason = "the tests describe buffers of their own as regions")]
mod tests;

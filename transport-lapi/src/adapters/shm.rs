//! The adapter for ranks that are processes of one host.
//!
//! The launcher makes one sealed memfd with [`create_segment`] and every rank inherits it by
//! descriptor: there is no name to leak or to squat. [`ShmAdapter::attach`] maps it and waits for the
//! other tasks. One-sided reads are `process_vm_readv`, after a probe on which all tasks agree; in long
//! ones the target helps with `process_vm_writev`, for which the kernel asks for the same rights. Where
//! a filter of system calls refuses it all the same, the origin reads everything.
//!
//! What is read of another process, and when it is gone, is in `peer.rs`.

#![allow(unsafe_code, reason = "an adapter promises its contract")]

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use crate::adapter::{
    Adapter, AdapterError, Advance, Caps, Doorbell, GetKind, Post, SHORT_HEAD, Sink, TaskId,
};
use crate::adapters::layout::Layout;
use crate::adapters::port::{Port, declare_lost};
use crate::adapters::ring::{CELL_DATA, MAX_HEAD};
use crate::adapters::share::Shares;
use crate::config::GetMode;
use crate::region::{RecvPart, RecvRegion, RemoteRegion, SendRegion};

mod mapping;
mod memory;
mod peer;
mod wireup;

pub(crate) use mapping::open_segment;
pub use mapping::{SEGMENT_NAME, create_segment};
use peer::Peer;
pub(crate) use wireup::pid_namespace;

/// One task of a job whose tasks are processes.
pub struct ShmAdapter {
    port: Port,
    shares: Shares,
    /// Processes of the tasks, read once at wireup.
    peers: Vec<Peer>,
    /// Whether this task's own number may be given to a stranger while others hold it (PE2).
    may_be_reaped: bool,
    /// By what it holds, the others know this process again; they read it as long as the task lives (PE1).
    #[cfg_attr(not(test), expect(dead_code, reason = "others read it"))]
    cell: Box<AtomicU64>,
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
    /// job; [`AdapterError::AlreadyAttached`]; [`AdapterError::System`] when it cannot be mapped;
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
            let what = format!("rank {task} does not exist in a job of {num_tasks} ranks");
            return Err(AdapterError::BadSegment { what });
        }
        let segment = Arc::new(mapping::map(&fd, layout)?);
        mapping::populate(&segment, task as usize);
        wireup::claim(&segment, task)?;
        segment.set_up(task as usize);
        let agreed =
            wireup::agree(&segment, task, get).inspect_err(|_| declare_lost(&segment, task))?;
        let port = Port::new(Arc::clone(&segment), task, agreed.fences);
        let shares = Shares::new(segment, task, agreed.fences);
        Ok(Self {
            port,
            shares,
            may_be_reaped: agreed.peers[task as usize].may_be_reaped(),
            peers: agreed.peers,
            cell: agreed.cell,
            without_get: agreed.without_get,
        })
    }

    /// How one-sided reads are done, and why, for reports.
    pub fn get_report(&self) -> String {
        match &self.without_get {
            None => "process_vm_readv".to_owned(),
            Some(reason) => format!("active messages ({reason})"),
        }
    }
}

impl ShmAdapter {
    #[inline(always)]
    pub(crate) fn port(&mut self) -> &mut Port {
        &mut self.port
    }
}

/// What the adapter of a job of `num_tasks` tasks can do, as far as it is known before the tasks have
/// agreed on how one-sided reads are done.
///
/// # Errors
/// [`AdapterError::TaskCount`].
pub fn caps_of(num_tasks: usize) -> Result<Caps, AdapterError> {
    let max_body = Layout::new(num_tasks)?.max_body();
    Ok(Caps { name: "shm", max_head: MAX_HEAD, max_inline: CELL_DATA, max_body, get: None })
}

// SAFETY: A7 is that of `crate::adapters::share`; the kernel copies inside of the calls only (SC1 of
// `crate::sys`). A8: after each read the word of WI1 is looked at, and the process where PE2 asks for it.
unsafe impl Adapter for ShmAdapter {
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

    #[inline(always)]
    fn try_send_short(&mut self, target: TaskId, head: [u8; SHORT_HEAD], body: &[u8]) -> bool {
        self.port.try_send_short(target, head, body)
    }

    #[inline(always)]
    fn poll<K: Sink>(&mut self, budget: usize, sink: &mut K) -> Result<usize, AdapterError> {
        self.port.poll(budget, sink)
    }

    fn is_far(&mut self, target: TaskId) -> bool {
        self.port.is_far(target)
    }

    fn withdraw(&mut self) {
        self.port.withdraw();
    }

    fn get(
        &mut self,
        target: TaskId,
        remote: RemoteRegion,
        offset: u64,
        into: RecvPart<'_>,
    ) -> Result<(), AdapterError> {
        self.port.moved();
        let peer = &self.peers[target as usize];
        let copied = peer.read(target, remote.addr.wrapping_add(offset), into);
        self.port.unless_withdrawn(target, copied)
    }

    fn share(
        &mut self,
        target: TaskId,
        remote: RemoteRegion,
        offset: u64,
        into: RecvRegion,
    ) -> Result<u32, RecvRegion> {
        if self.without_get.is_some() || self.may_be_reaped {
            return Err(into);
        }
        self.shares.begin(target, remote, offset, into)
    }

    fn advance(&mut self, target: TaskId) -> Result<Advance, AdapterError> {
        let (port, peer) = (&self.port, &self.peers[target as usize]);
        let read = |remote: RemoteRegion, offset: u64, into: RecvPart<'_>| {
            let copied = peer.read(target, remote.addr.wrapping_add(offset), into);
            port.unless_withdrawn(target, copied)
        };
        port.moved();
        self.shares.advance(target, read, || peer.is_gone())
    }

    fn unshare(&mut self, target: TaskId) -> bool {
        let peer = &self.peers[target as usize];
        self.shares.end(target, || peer.is_gone())
    }

    fn help(&mut self, origin: TaskId, number: u32, from: SendRegion) -> bool {
        let peer = &self.peers[origin as usize];
        let write = |addr: u64, at, from| peer.write(addr.wrapping_add(at as u64), from);
        self.port.moved();
        self.without_get.is_none() && self.shares.help(origin, number, from, write)
    }

    fn doorbell(&self) -> Arc<dyn Doorbell> {
        self.port.doorbell()
    }

    fn lost(&self) -> Option<TaskId> {
        self.port.lost()
    }
}

#[cfg(test)]
impl ShmAdapter {
    /// From now on, task `target` is this process.
    pub(crate) fn set_process(&mut self, target: TaskId, pid: i32) {
        self.peers[target as usize].pid = pid;
    }

    /// Claims a slice of get `number` as `target` would, and never counts it.
    pub(crate) fn claim_in_the_name_of_target(&self, target: TaskId, number: u32) {
        self.shares.claim_in_the_name_of_target(target, number);
    }
}

#[cfg(test)]
#[allow(unsafe_code, reason = "the tests describe buffers of their own as regions")]
mod tests;

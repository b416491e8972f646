//! The adapter for ranks that are threads of one process.
//!
//! The rings are those of [`crate::adapters::shm`], on heap memory, so that doc tests, unit tests
//! and Miri run the same code as a job of processes. One-sided reads copy out of regions that their
//! owners have exposed in a table; whoever helps with one finds in another table where the bytes go.

#![allow(
    unsafe_code,
    reason = "an adapter promises its contract; both ends of a get write one region"
)]

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};

use crate::adapter::{
    Adapter, AdapterError, Advance, Caps, Doorbell, GetKind, Post, SHORT_HEAD, Sink, TaskId,
};
use crate::adapters::doorbell::Fences;
use crate::adapters::layout::Layout;
use crate::adapters::port::Port;
use crate::adapters::ring::{CELL_DATA, MAX_HEAD};
use crate::adapters::segment::Segment;
use crate::adapters::share::Shares;
use crate::fork::ProcessMark;
use crate::region::{ForeignBytes, RecvPart, RecvRegion, RemoteRegion, SendRegion};
use crate::sync::register_light_fences_in_process;

/// What one task has exposed, by key. A reader copies under the lock, so a region that was taken out
/// is not read any more.
type Exposed = RwLock<HashMap<u64, SendRegion>>;

/// Where the bytes of one pair's shared get go. The last one stays there: who may write into it, and
/// when, the words of the get say.
type Landing = Mutex<RecvRegion>;

/// One task of a job whose tasks are threads.
pub struct ThreadsAdapter {
    port: Port,
    shares: Shares,
    /// By owner.
    exposed: Arc<[Exposed]>,
    /// By origin, then target.
    landings: Arc<[Landing]>,
    process: ProcessMark,
}

/// Makes a job of `num_tasks` threads: one adapter for each, in the order of their numbers.
///
/// # Errors
/// [`AdapterError::TaskCount`], or [`AdapterError::System`] when there is no memory.
pub fn job(num_tasks: usize) -> Result<Vec<ThreadsAdapter>, AdapterError> {
    let segment = Arc::new(Segment::on_heap(Layout::new(num_tasks)?)?);
    let fences = match register_light_fences_in_process() {
        Ok(()) => Fences::InProcess,
        Err(_) => Fences::Symmetric,
    };
    let exposed: Arc<[Exposed]> = (0..num_tasks).map(|_| Exposed::default()).collect();
    let landing = |_| Landing::new(RecvRegion::EMPTY);
    let landings: Arc<[Landing]> = (0..num_tasks * num_tasks).map(landing).collect();
    let adapter = |task| ThreadsAdapter {
        port: Port::new(Arc::clone(&segment), task, fences),
        shares: Shares::new(Arc::clone(&segment), task, fences),
        exposed: Arc::clone(&exposed),
        landings: Arc::clone(&landings),
        process: ProcessMark::new(),
    };
    Ok((0..num_tasks as TaskId).map(adapter).collect())
}

impl ThreadsAdapter {
    #[inline(always)]
    pub(crate) fn port(&mut self) -> &mut Port {
        &mut self.port
    }

    fn mine(&self) -> &Exposed {
        &self.exposed[self.port.task() as usize]
    }
}

/// Copies out of a region that `target` has exposed.
fn read(
    exposed: &Exposed,
    target: TaskId,
    remote: RemoteRegion,
    offset: u64,
    mut into: RecvPart<'_>,
) -> Result<(), AdapterError> {
    let len = into.len();
    let refused = |reason| AdapterError::GetFailed {
        target,
        len,
        reason: io::Error::new(io::ErrorKind::InvalidInput, reason),
    };
    let exposed = exposed.read();
    let region = exposed
        .get(&remote.key)
        .ok_or_else(|| refused("the rank has exposed no region under this key"))?;
    let end = offset.checked_add(len as u64);
    if region.is_null() || end.is_none_or(|end| end > region.len() as u64) {
        return Err(refused("the range does not lie inside the exposed region"));
    }
    into.store(ForeignBytes::from_slice(region.part(offset as usize, len).bytes()));
    Ok(())
}

/// Threads are not gone in the middle of a copy.
fn is_gone() -> bool {
    false
}

// SAFETY: exposed regions are read under the lock of their table, which `conceal` takes; the rest of A7 is
// that of `crate::adapters::share`. A8: after each read the word of WI1 is looked at.
unsafe impl Adapter for ThreadsAdapter {
    fn caps(&self) -> Caps {
        Caps {
            name: "threads",
            max_head: MAX_HEAD,
            max_inline: CELL_DATA,
            max_body: self.port.max_body(),
            get: Some(GetKind::Memcpy),
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

    fn expose(&mut self, key: u64, region: SendRegion) {
        self.mine().write().insert(key, region);
    }

    fn conceal(&mut self, key: u64) {
        self.mine().write().remove(&key);
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
        let copied = read(&self.exposed[target as usize], target, remote, offset, into);
        self.port.unless_withdrawn(target, copied)
    }

    fn share(
        &mut self,
        target: TaskId,
        remote: RemoteRegion,
        offset: u64,
        into: RecvRegion,
    ) -> Result<u32, RecvRegion> {
        let tasks = self.port.num_tasks();
        // Locked until it is right: who knows the number finds the region.
        let mut landing = self.landings[self.port.task() as usize * tasks + target as usize].lock();
        // SAFETY: U1 and U2 of `crate::adapters::share` divide the bytes between the two, and say how long.
        let second = unsafe { into.second_hold() };
        let number = self.shares.begin(target, remote, offset, into)?;
        *landing = second;
        Ok(number)
    }

    fn advance(&mut self, target: TaskId) -> Result<Advance, AdapterError> {
        let exposed = &self.exposed[target as usize];
        let read = |remote: RemoteRegion, offset: u64, into: RecvPart<'_>| {
            let copied = read(exposed, target, remote, offset, into);
            self.port.unless_withdrawn(target, copied)
        };
        self.shares.advance(target, read, is_gone)
    }

    fn unshare(&mut self, target: TaskId) -> bool {
        self.shares.end(target, is_gone)
    }

    fn help(&mut self, origin: TaskId, number: u32, from: SendRegion) -> bool {
        let tasks = self.port.num_tasks();
        let landing = &self.landings[origin as usize * tasks + self.port.task() as usize];
        let write = |_, at: usize, from: SendRegion| {
            landing.lock().store(at, ForeignBytes::from_slice(from.bytes()));
            Ok(())
        };
        self.shares.help(origin, number, from, write)
    }

    fn doorbell(&self) -> Arc<dyn Doorbell> {
        self.port.doorbell()
    }

    fn lost(&self) -> Option<TaskId> {
        self.port.lost()
    }
}

impl Drop for ThreadsAdapter {
    /// What the task exposed ends with it. In a fork, whoever held a lock does not exist.
    fn drop(&mut self) {
        if !self.process.is_fork() {
            self.mine().write().clear();
        }
    }
}

#[cfg(test)]
#[allow(unsafe_code, reason = "the tests describe buffers of their own as regions")]
mod tests;

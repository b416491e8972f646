//! Jobs whose ranks are threads of one process, and how these access each other's memory (their [`Reach`]).
//!
//! The rings are those of `adapters/local.rs`, in memory of this process, so that doc tests, unit tests and Miri
//! run the same code as a job of processes. One-sided reads copy from regions that their owners have registered in a
//! table. A task that helps with a get finds the destination in another table.

#![expect(unsafe_code, reason = "both ends of a get write one region")]

use std::io;
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use rustc_hash::FxHashMap;

use crate::adapter::{AdapterError, GetKind, Registered, TaskId};
use crate::adapters::local::doorbell::Fences;
use crate::adapters::local::layout::{Layout, MAX_TASKS_PER_HOST};
use crate::adapters::local::segment::Segment;
use crate::adapters::local::{LocalAdapter, Reach};
use crate::memory::region::{RecvPart, RecvRegion, RemoteKey, SendRegion};
use crate::platform::fork::ProcessMark;

/// One context of a task of a job whose tasks are threads.
pub type ThreadsAdapter = LocalAdapter<Tables>;

/// The regions that one context of a task has registered. A reader copies under the lock, so a region that was removed
/// is not read any more.
type Table = RwLock<Regions>;

#[derive(Default)]
struct Regions {
    by_number: FxHashMap<u64, SendRegion>,
    /// The number that was given last.
    last: u64,
}

/// The destination of one pair's shared get. The last one stays here; the words of the get determine who may write into
/// it, and when.
type Landing = Mutex<RecvRegion>;

/// The tables by which tasks that are threads find each other's memory, in one context.
pub struct Tables {
    task: TaskId,
    num_tasks: usize,
    /// The registered regions, by owner.
    registered: Arc<[Table]>,
    /// The destinations, by origin and then target.
    landings: Arc<[Landing]>,
    process: ProcessMark,
}

/// Makes a job of `num_tasks` threads with one context each, and returns one adapter for each in the order of their
/// numbers.
///
/// # Errors
/// [`AdapterError::HostTaskCount`], or [`AdapterError::System`] if there is not enough memory.
pub fn job(num_tasks: usize) -> Result<Vec<ThreadsAdapter>, AdapterError> {
    Ok(job_with_contexts(num_tasks, 1)?.into_iter().flatten().collect())
}

/// Makes a job of `num_tasks` threads with `contexts` contexts each. Returns, for each task in order, the adapters of
/// its contexts in order.
///
/// # Errors
/// As [`job`]; [`AdapterError::ContextCount`].
pub fn job_with_contexts(
    num_tasks: usize,
    contexts: usize,
) -> Result<Vec<Vec<ThreadsAdapter>>, AdapterError> {
    // They all start with the job.
    if !(1..=MAX_TASKS_PER_HOST).contains(&num_tasks) {
        return Err(AdapterError::HostTaskCount { asked: num_tasks, max: MAX_TASKS_PER_HOST });
    }
    let layout = Layout::new(num_tasks, contexts)?;
    // AR1.
    let layout = if num_tasks == 1 { layout } else { layout.without_areas() };
    let segment = Segment::in_process(layout)?;
    let fences = match Fences::InProcess.register() {
        Ok(()) => Fences::InProcess,
        Err(_) => Fences::Symmetric,
    };
    let mut tasks: Vec<_> = (0..num_tasks).map(|_| Vec::with_capacity(contexts)).collect();
    for context in segment.contexts() {
        let adapters = in_context(context, fences);
        tasks.iter_mut().zip(adapters).for_each(|(task, adapter)| task.push(adapter));
    }
    Ok(tasks)
}

/// Makes the adapters of one context, one for each task.
fn in_context(segment: Segment, fences: Fences) -> impl Iterator<Item = ThreadsAdapter> {
    let (num_tasks, segment) = (segment.layout().tasks(), Arc::new(segment));
    let registered: Arc<[Table]> = (0..num_tasks).map(|_| Table::default()).collect();
    let landing = |_| Landing::new(RecvRegion::EMPTY);
    let landings: Arc<[Landing]> = (0..num_tasks * num_tasks).map(landing).collect();
    (0..num_tasks as TaskId).map(move |task| {
        let (registered, landings) = (Arc::clone(&registered), Arc::clone(&landings));
        let reach = Tables { task, num_tasks, registered, landings, process: ProcessMark::new() };
        LocalAdapter::new(Arc::clone(&segment), task, fences, reach)
    })
}

impl Tables {
    fn mine(&self) -> &Table {
        &self.registered[self.task as usize]
    }

    fn landing(&self, origin: TaskId, target: TaskId) -> &Landing {
        &self.landings[origin as usize * self.num_tasks + target as usize]
    }
}

impl Reach for Tables {
    fn name(&self) -> &'static str {
        "threads"
    }

    fn kind(&self) -> Option<GetKind> {
        Some(GetKind::Memcpy)
    }

    /// Memory that may be written is not registered: a thread that copies it would not see a put of the owner's
    /// dispatcher as a whole.
    fn register(&self, memory: Registered) -> Option<RemoteKey> {
        let Registered::Constant(region) = memory else { return None };
        let mut table = self.mine().write();
        table.last += 1;
        let number = table.last;
        table.by_number.insert(number, region);
        Some(number.into())
    }

    fn deregister(&self, key: RemoteKey) {
        if let Some(number) = key.number() {
            self.mine().write().by_number.remove(&number);
        }
    }

    fn read(
        &self,
        target: TaskId,
        key: RemoteKey,
        offset: u64,
        mut into: RecvPart<'_>,
    ) -> Result<(), AdapterError> {
        let len = into.len();
        let refused = |reason| AdapterError::AccessFailed {
            target,
            len,
            reason: io::Error::new(io::ErrorKind::InvalidInput, reason),
        };
        let registered = self.registered[target as usize].read();
        let region = key
            .number()
            .and_then(|number| registered.by_number.get(&number))
            .ok_or_else(|| refused("the rank has registered no region under this key"))?;
        let end = offset.checked_add(len as u64);
        if region.is_null() || end.is_none_or(|end| end > region.len() as u64) {
            return Err(refused("the range does not lie inside the registered region"));
        }
        into.store(0, region.part(offset as usize, len).foreign());
        Ok(())
    }

    fn has_areas(&self) -> bool {
        self.num_tasks == 1
    }

    fn may_be_written(&self) -> bool {
        true
    }

    fn land(&self, target: TaskId, into: &RecvRegion) {
        // SAFETY: U1 and U2 of `crate::adapters::local::share` divide the bytes between the two holders, and bound the
        // time.
        *self.landing(self.task, target).lock() = unsafe { into.second_hold() };
    }

    fn write(&self, origin: TaskId, _: u64, at: usize, from: SendRegion) -> io::Result<()> {
        self.landing(origin, self.task).lock().store(at, from.foreign());
        Ok(())
    }

    /// A thread cannot vanish in the middle of a copy.
    fn is_gone(&self, _: TaskId) -> bool {
        false
    }
}

impl Drop for Tables {
    /// Deregisters what the context has registered. Not in a fork, where the thread that holds a lock may not exist.
    fn drop(&mut self) {
        if !self.process.is_fork() {
            self.mine().write().by_number.clear();
        }
    }
}

#[cfg(test)]
#[expect(unsafe_code, reason = "the tests describe buffers of their own as regions")]
mod tests;

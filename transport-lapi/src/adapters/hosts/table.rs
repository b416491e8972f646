//! The job table: what the tasks of one host know of a job of several hosts. Which task runs where, under which address
//! its endpoints are found, and which tasks are lost.
//!
//! There is one table for each host. Whoever starts the tasks of a host writes it ([`TableWriter`]); they read it.
//! All of it is words, which are loaded and stored one by one:
//!
//! ```text
//!  facts       magic number, version, tasks, hosts, contexts, number of this host
//!  state       of how many contexts the addresses are known, number of losses
//!  secret      of the job
//!  hosts       of each task; their names
//!  places      number of each task on its host
//!  lost        of each task, whether it is lost
//!  addresses   of each endpoint, by context and then by task: length and bytes
//! ```
//!
//! - JT1: a table is as long as its facts say, and can neither shrink nor grow, so no access goes past its end. The
//!   tasks cannot write it.
//! - JT2: the addresses of a context are read only after they were found complete, and nobody writes one after that. The
//!   store that says so releases the addresses, the load that finds it acquires them.
//! - JT3: what the table says was written by the launcher of this host. It is checked all the same where it is an index
//!   or a length, since the launchers of other hosts have a part in it.

use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering, fence};
use std::time::Duration;

use rustix::thread::futex;

use crate::adapter::{AdapterError, MAX_TASKS, TaskId};
use crate::adapters::hosts::memory::Words;
use crate::adapters::{MAX_CONTEXTS, SPARE_CONTEXTS};

/// Greatest length of the address of an endpoint, in bytes.
pub const MAX_ADDRESS: usize = 64;
/// Greatest length of the name of a host, in bytes; longer ones are cut.
pub const MAX_HOST_NAME: usize = 64;
/// Length of a job's secret, in bytes.
pub const SECRET_BYTES: usize = 32;

const MAGIC: u32 = u32::from_be_bytes(*b"MPJH");
/// Changes whenever the meaning of a word changes.
const VERSION: u32 = 2;
/// Words for a length and up to 64 bytes.
const TEXT: usize = 1 + MAX_ADDRESS / 4;
/// Longest sleep of a task that waits for the addresses, before it looks for losses.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// Which hosts a job has, and on which of them each task runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPlan {
    /// The names of the hosts.
    pub names: Vec<String>,
    /// For each task, the number of its host.
    pub host_of: Vec<u32>,
}

impl HostPlan {
    /// Returns the tasks of a host, in order.
    pub fn tasks_of(&self, host: usize) -> Vec<TaskId> {
        let tasks = (0..).zip(&self.host_of);
        tasks.filter(|&(_, &of)| of as usize == host).map(|(task, _)| task).collect()
    }
}

/// The sizes of a table, by which each word has its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Shape {
    tasks: usize,
    hosts: usize,
    contexts: usize,
}

/// Words of the facts.
const FACTS: usize = 6;
const KNOWN: usize = FACTS;
const LOSSES: usize = FACTS + 1;
const SECRET: usize = FACTS + 2;
const NAMES: usize = SECRET + SECRET_BYTES / 4;

impl Shape {
    fn new(tasks: usize, hosts: usize, contexts: usize) -> Result<Self, AdapterError> {
        if !(1..=MAX_TASKS).contains(&tasks) {
            return Err(AdapterError::TaskCount { asked: tasks });
        }
        if !(1..=MAX_CONTEXTS).contains(&contexts) {
            return Err(AdapterError::ContextCount { asked: contexts, max: MAX_CONTEXTS });
        }
        if !(1..=tasks).contains(&hosts) {
            let what = format!("a job of {tasks} ranks cannot have {hosts} hosts");
            return Err(AdapterError::BadSegment { what });
        }
        Ok(Self { tasks, hosts, contexts: contexts + SPARE_CONTEXTS })
    }

    /// The facts of the table of `host`.
    fn facts(self, host: u32) -> [u32; FACTS] {
        let Self { tasks, hosts, contexts } = self;
        [MAGIC, VERSION, tasks as u32, hosts as u32, contexts as u32, host]
    }

    fn name(self, host: usize) -> Range<usize> {
        text_at(NAMES, host)
    }

    fn host_of(self, task: usize) -> usize {
        NAMES + self.hosts * TEXT + task
    }

    fn place(self, task: usize) -> usize {
        self.host_of(self.tasks) + task
    }

    fn lost(self, task: usize) -> usize {
        self.place(self.tasks) + task
    }

    fn address(self, task: usize, context: usize) -> Range<usize> {
        text_at(self.lost(self.tasks), context * self.tasks + task)
    }

    /// Length of the table in words.
    fn words(self) -> usize {
        self.address(0, self.contexts).start
    }

    /// Length of the part that every job uses: without the addresses of further clients.
    fn reserved(self) -> usize {
        self.address(0, self.contexts - SPARE_CONTEXTS).start
    }
}

fn text_at(start: usize, index: usize) -> Range<usize> {
    let at = start + index * TEXT;
    at..at + TEXT
}

/// Returns the size of the table of a job whose tasks have `contexts` contexts each, and [`SPARE_CONTEXTS`] more, in bytes.
///
/// ```
/// let bytes = transport_lapi::bootstrap::hosts::table_bytes(100_000, 1_000, 1)?;
/// assert!(bytes < 29_000_000);
/// # Ok::<(), transport_lapi::adapter::AdapterError>(())
/// ```
///
/// # Errors
/// [`AdapterError::TaskCount`], [`AdapterError::ContextCount`], [`AdapterError::BadSegment`] for more hosts than tasks.
pub fn table_bytes(tasks: usize, hosts: usize, contexts: usize) -> Result<usize, AdapterError> {
    Ok(Shape::new(tasks, hosts, contexts)?.words() * 4)
}

/// The table of one host, as its tasks read it.
pub struct JobTable {
    words: Words,
    shape: Shape,
    host: u32,
}

impl JobTable {
    /// Maps the table behind `fd`, which may be closed afterwards.
    ///
    /// # Errors
    /// [`AdapterError::BadSegment`] if it is no table; [`AdapterError::System`] if it cannot be mapped.
    pub fn open(fd: impl AsFd) -> Result<Self, AdapterError> {
        Self::over(Words::map(fd, FACTS)?)
    }

    /// Checks the facts and the length (JT1).
    fn over(words: Words) -> Result<Self, AdapterError> {
        let bad = |what: String| AdapterError::BadSegment { what };
        let facts: Vec<u32> = words.all()[..FACTS].iter().map(load).collect();
        let &[magic, version, tasks, hosts, contexts, host] = &facts[..] else {
            return Err(bad("it is too short for a job table".to_owned()));
        };
        if (magic, version) != (MAGIC, VERSION) {
            return Err(bad(format!("it is no job table of version {VERSION}")));
        }
        let contexts = (contexts as usize).saturating_sub(SPARE_CONTEXTS);
        let shape = Shape::new(tasks as usize, hosts as usize, contexts)?;
        let (found, needed) = (words.all().len(), shape.words());
        if found < needed {
            return Err(bad(format!("its job table has {found} words instead of {needed}")));
        }
        let table = Self { words, shape, host };
        let all = (0..shape.tasks).map(|task| table.host_of(task as TaskId));
        match all.chain([host as usize]).find(|&host| host >= shape.hosts) {
            Some(stranger) => Err(bad(format!("its job table names a host {stranger}"))),
            None => Ok(table),
        }
    }

    /// Returns the number of tasks of the job.
    pub fn num_tasks(&self) -> usize {
        self.shape.tasks
    }

    /// Returns the number of hosts of the job.
    pub fn num_hosts(&self) -> usize {
        self.shape.hosts
    }

    /// Returns the number of contexts of each task, without those for further clients.
    pub fn contexts(&self) -> usize {
        self.shape.contexts - SPARE_CONTEXTS
    }

    /// Returns the number of this host.
    pub fn host(&self) -> usize {
        self.host as usize
    }

    /// Returns the name of a host.
    ///
    /// # Panics
    /// If the job has no such host; so do the following for a task that the job does not have.
    pub fn host_name(&self, host: usize) -> String {
        assert!(host < self.shape.hosts, "hosts are numbered below their number");
        String::from_utf8_lossy(&self.text(self.shape.name(host))).into_owned()
    }

    /// Returns the number of the host of `task`.
    #[inline]
    pub fn host_of(&self, task: TaskId) -> usize {
        load(self.word(task, Shape::host_of)) as usize
    }

    /// Returns the number of `task` among the tasks of its host.
    #[inline]
    pub fn place(&self, task: TaskId) -> u32 {
        load(self.word(task, Shape::place))
    }

    /// Returns the number of `task` on this host, if it runs here.
    #[inline]
    pub fn local_place(&self, task: TaskId) -> Option<u32> {
        (self.host_of(task) == self.host()).then(|| self.place(task))
    }

    /// Returns the tasks of this host by their places.
    pub fn local_tasks(&self) -> Vec<TaskId> {
        let tasks = 0..self.shape.tasks as TaskId;
        let mut here: Vec<_> =
            tasks.filter_map(|task| Some((self.local_place(task)?, task))).collect();
        here.sort_unstable();
        here.into_iter().map(|(_, task)| task).collect()
    }

    /// Returns the secret that the tasks of the job share, and nobody else.
    pub fn secret(&self) -> [u8; SECRET_BYTES] {
        let mut secret = [0; SECRET_BYTES];
        for (bytes, word) in secret.chunks_exact_mut(4).zip(&self.words.all()[SECRET..]) {
            bytes.copy_from_slice(&load(word).to_ne_bytes());
        }
        secret
    }

    /// Returns the address of the endpoint of `task` for `context`; `None` before those of all tasks are known, and for one
    /// that the task does not have.
    pub fn address(&self, task: TaskId, context: usize) -> Option<Vec<u8>> {
        let is_there = (task as usize) < self.shape.tasks && context < self.known_contexts();
        let address = is_there.then(|| self.text(self.shape.address(task as usize, context)))?;
        (!address.is_empty()).then_some(address)
    }

    /// Waits until the addresses of all tasks are known for so many contexts.
    ///
    /// # Errors
    /// [`AdapterError::PeerLost`] if a task is lost meanwhile.
    pub fn wait_for_addresses(&self, contexts: usize) -> Result<(), AdapterError> {
        let word = &self.words.all()[KNOWN];
        let timeout = futex::Timespec { tv_sec: 0, tv_nsec: LOOK_AGAIN.subsec_nanos().into() };
        loop {
            let known = self.known_contexts();
            if known >= contexts {
                return Ok(());
            }
            if self.losses() > 0 {
                let mut tasks = 0..self.shape.tasks as TaskId;
                let task = tasks.find(|&task| self.is_lost(task)).unwrap_or_default();
                return Err(AdapterError::PeerLost { task });
            }
            // However the call returns, the loop looks again.
            let _ = futex::wait(word, futex::Flags::empty(), known as u32, Some(&timeout));
        }
    }

    /// Of how many contexts the addresses are known.
    fn known_contexts(&self) -> usize {
        let known = load(&self.words.all()[KNOWN]) as usize;
        fence(Ordering::Acquire); // SYNC: addresses of a job table
        known.min(self.shape.contexts)
    }

    /// Returns how many times a task was declared lost.
    #[inline]
    pub fn losses(&self) -> usize {
        loss(&self.words.all()[LOSSES]) as usize
    }

    /// Returns whether `task` was declared lost.
    pub fn is_lost(&self, task: TaskId) -> bool {
        loss(self.word(task, Shape::lost)) != 0
    }

    #[inline]
    fn word(&self, task: TaskId, place: fn(Shape, usize) -> usize) -> &AtomicU32 {
        assert!((task as usize) < self.shape.tasks, "tasks are numbered below the job's size");
        &self.words.all()[place(self.shape, task as usize)]
    }

    fn text(&self, at: Range<usize>) -> Vec<u8> {
        let (len, words) = self.words.all()[at].split_first().expect("a text has a length");
        let bytes = words.iter().flat_map(|word| load(word).to_ne_bytes());
        bytes.take(load(len) as usize).collect()
    }
}

#[inline]
fn load(word: &AtomicU32) -> u32 {
    // Relaxed: written before the tasks start, or JT2.
    word.load(Ordering::Relaxed)
}

/// A word about losses. Memory that is mapped for reading allows relaxed loads only, so fences follow them, here and for
/// the addresses.
#[inline]
fn loss(word: &AtomicU32) -> u32 {
    let value = word.load(Ordering::Relaxed);
    fence(Ordering::Acquire); // SYNC: losses of a job table
    value
}

/// The table of one host, as whoever starts its tasks writes it.
pub struct TableWriter {
    table: JobTable,
}

impl TableWriter {
    /// Makes the table of `host` for the job called `job`. Returns the writer, and a descriptor for the tasks of the
    /// host, which is close-on-exec.
    ///
    /// # Errors
    /// As [`table_bytes`]; [`AdapterError::System`] if the memory is not available.
    pub fn create(
        job: &str,
        plan: &HostPlan,
        host: usize,
        contexts: usize,
        secret: [u8; SECRET_BYTES],
    ) -> Result<(Self, OwnedFd), AdapterError> {
        let shape = Shape::new(plan.host_of.len(), plan.names.len(), contexts)?;
        let (words, fd) = Words::create(job, shape.words(), shape.reserved())?;
        Ok((Self::fill(words, shape, plan, host, secret)?, fd))
    }

    /// Likewise in memory of this process, for tasks that are its threads.
    ///
    /// # Errors
    /// As [`table_bytes`].
    pub fn in_process(
        plan: &HostPlan,
        host: usize,
        contexts: usize,
        secret: [u8; SECRET_BYTES],
    ) -> Result<Self, AdapterError> {
        let shape = Shape::new(plan.host_of.len(), plan.names.len(), contexts)?;
        Self::fill(Words::in_process(shape.words()), shape, plan, host, secret)
    }

    fn fill(
        words: Words,
        shape: Shape,
        plan: &HostPlan,
        host: usize,
        secret: [u8; SECRET_BYTES],
    ) -> Result<Self, AdapterError> {
        let all = words.all();
        let store = |at: usize, value: u32| all[at].store(value, Ordering::Relaxed);
        (0..).zip(shape.facts(host as u32)).for_each(|(at, fact)| store(at, fact));
        for (at, bytes) in (SECRET..).zip(secret.chunks_exact(4)) {
            store(at, u32::from_ne_bytes(bytes.try_into().expect("chunks of four")));
        }
        for (host, name) in plan.names.iter().enumerate() {
            let end = (0..=name.len().min(MAX_HOST_NAME)).rfind(|&end| name.is_char_boundary(end));
            store_text(&all[shape.name(host)], &name.as_bytes()[..end.unwrap_or(0)]);
        }
        let mut places = vec![0; shape.hosts];
        for (task, &host) in plan.host_of.iter().enumerate() {
            store(shape.host_of(task), host);
            if let Some(place) = places.get_mut(host as usize) {
                store(shape.place(task), *place);
                *place += 1;
            }
        }
        Ok(Self { table: JobTable::over(words)? })
    }

    /// Returns the table as its readers see it.
    pub fn table(&self) -> &JobTable {
        &self.table
    }

    /// Returns the table for tasks that are threads of this process.
    pub fn into_table(self) -> JobTable {
        self.table
    }

    /// Stores the address of the endpoint of `task` for `context`.
    ///
    /// # Errors
    /// [`AdapterError::BadAddress`] if the address is longer than [`MAX_ADDRESS`], if there is no such endpoint, or if
    /// the addresses of the context are complete (JT2).
    pub fn set_address(
        &self,
        task: TaskId,
        context: usize,
        address: &[u8],
    ) -> Result<(), AdapterError> {
        let JobTable { words, shape, .. } = &self.table;
        let may_be_told = self.table.known_contexts()..shape.contexts;
        let exists = (task as usize) < shape.tasks && may_be_told.contains(&context);
        if !exists || address.len() > MAX_ADDRESS {
            return Err(AdapterError::BadAddress { task, context, len: address.len() });
        }
        store_text(&words.all()[shape.address(task as usize, context)], address);
        Ok(())
    }

    /// Says that the addresses of so many contexts are there, and wakes those who wait for them.
    pub fn complete(&self, contexts: usize) {
        let word = &self.table.words.all()[KNOWN];
        word.store(contexts as u32, Ordering::Release); // SYNC: addresses of a job table
        let _ = futex::wake(word, futex::Flags::empty(), i32::MAX as u32);
    }

    /// Declares `task` lost. Wake the tasks of this host afterwards ([`crate::bootstrap::waits::JobView::ring`]).
    ///
    /// # Panics
    /// If the job has no such task.
    pub fn declare_lost(&self, task: TaskId) {
        self.table.word(task, Shape::lost).store(1, Ordering::Release); // SYNC: losses of a job table
        // Counted each time, as in the segment of a host.
        self.table.words.all()[LOSSES].fetch_add(1, Ordering::Release); // SYNC: losses of a job table
    }
}

fn store_text(words: &[AtomicU32], text: &[u8]) {
    words[0].store(text.len() as u32, Ordering::Relaxed);
    for (word, bytes) in words[1..].iter().zip(text.chunks(4)) {
        let mut whole = [0; 4];
        whole[..bytes.len()].copy_from_slice(bytes);
        word.store(u32::from_ne_bytes(whole), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;

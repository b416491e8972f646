//! Jobs whose ranks are processes of one host: how they attach to the segment, and how they access each other's memory
//! (their [`Reach`]).
//!
//! The launcher makes one sealed memfd with [`create_segment`], and every rank inherits its descriptor: there is no
//! name that could be leaked or taken by another process. [`LocalAdapter::attach`] maps it and waits for the other
//! tasks. One-sided reads are `process_vm_readv`, after a probe on which all tasks agree. In long ones the target helps
//! with `process_vm_writev`, for which the kernel asks for the same rights. If a filter of system calls refuses it
//! nevertheless, the origin reads everything.
//!
//! Several clients of one process share its place in the job ([`Member`], `clients.rs`).
//!
//! `peer.rs` reads and writes the memory of another process, and finds out whether it is gone.

#![expect(unsafe_code, reason = "memory of others is written")]

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use crate::adapter::{AdapterError, Caps, GetKind, PeerMemory, Registered, TaskId};
use crate::adapters::local::doorbell::Fences;
use crate::adapters::local::layout::Layout;
use crate::adapters::local::port::declare_lost;
use crate::adapters::local::segment::Segment;
use crate::adapters::local::{self, LocalAdapter, Reach};
use crate::memory::region::{ForeignBytes, PeerBytes, RecvPart, RemoteKey, SendRegion};

mod clients;
mod mapped;
mod mapping;
mod memory;
mod peer;
mod placement;
mod wireup;
mod world;

pub use clients::{Client, MAX_CLIENT_NAME};
pub use mapped::{MappedMemory, Offered};
pub(crate) use mapping::open_segment;
pub use mapping::{create_segment, create_segment_with_room, room_for};
use peer::{Peer, Peers};
pub use world::World;

/// `MPJ_GET`: how a one-sided read of another process is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum GetMode {
    /// `process_vm_readv` if every rank can use it, otherwise active messages.
    #[default]
    Auto,
    /// `process_vm_readv`; start-up fails if the kernel refuses it.
    Cma,
    /// A get built from active messages.
    Am,
}

/// One context of a task of a job whose tasks are processes.
pub type ShmAdapter = LocalAdapter<Processes>;

/// The processes of a job's tasks, and what the kernel allows them with each other's memory. It is the same for all
/// contexts of a task.
#[derive(Clone)]
pub struct Processes {
    /// The tasks' processes.
    peers: Arc<Peers>,
    /// Whether another process may get this task's process number while the job goes on (PE2).
    may_be_reaped: bool,
    /// The other tasks identify this process by the value of this cell, and read it as long as the task lives (PE1,
    /// W1).
    #[expect(dead_code, reason = "others read it")]
    cell: Arc<AtomicU64>,
    /// Why one-sided reads are not used, if they are not.
    without_get: Option<String>,
}

impl LocalAdapter<Processes> {
    /// [`LocalAdapter::attach_contexts`] for a job of one context.
    ///
    /// # Errors
    /// As there.
    pub fn attach(
        fd: OwnedFd,
        task: TaskId,
        num_tasks: usize,
        get: GetMode,
    ) -> Result<Self, AdapterError> {
        let mut contexts = Self::attach_contexts(fd, task, num_tasks, 1, get)?;
        Ok(contexts.pop().expect("a job of one context has an adapter for it"))
    }

    /// Maps the job's segment as task `task` of `num_tasks`, waits until all tasks have done so, and agrees with them
    /// how one-sided reads are done. There is no time limit: whoever started the tasks must watch them. Returns an
    /// adapter for each of the task's `contexts`, in order.
    ///
    /// # Errors
    /// [`AdapterError::ContextCount`]; [`AdapterError::HostTaskCount`]; [`AdapterError::BadSegment`] if `fd` is not a
    /// segment for this job; [`AdapterError::AlreadyAttached`]; [`AdapterError::System`] if it cannot be mapped;
    /// [`AdapterError::PeerLost`] if another task gave up meanwhile; [`AdapterError::GetRefused`] if `get` demands what
    /// the kernel refuses.
    pub fn attach_contexts(
        fd: OwnedFd,
        task: TaskId,
        num_tasks: usize,
        contexts: usize,
        get: GetMode,
    ) -> Result<Vec<Self>, AdapterError> {
        let client = Client { name: "a client", contexts, asks: false, spans_worlds: false };
        let world = World::whole(task, num_tasks);
        Member::attach(fd, world, contexts, get, client).map(|(_, adapters)| adapters)
    }

    /// Describes how one-sided reads are done, and why, for reports.
    pub fn one_sided_path(&self) -> String {
        self.reach.one_sided_path()
    }
}

impl Processes {
    fn one_sided_path(&self) -> String {
        match &self.without_get {
            None => "process_vm_readv".to_owned(),
            Some(reason) => format!("active messages ({reason})"),
        }
    }
}

/// A task that has attached to the segment of its host. The clients of its process take their contexts from it, one
/// after the other.
pub struct Member {
    segment: Segment,
    world: World,
    fences: Fences,
    reach: Processes,
    /// How many contexts the task has beyond those that were asked for when the job started.
    spare: usize,
}

impl Member {
    /// Attaches as [`LocalAdapter::attach_contexts`] does, for the first client, and returns the adapters of its contexts.
    /// It waits for the tasks of its world. Each task of the job has so many `contexts`, and
    /// [`SPARE_CONTEXTS`](crate::adapters::SPARE_CONTEXTS) more.
    ///
    /// # Errors
    /// As there; those of [`Member::join`].
    pub fn attach(
        fd: OwnedFd,
        world: World,
        contexts: usize,
        get: GetMode,
        client: Client<'_>,
    ) -> Result<(Self, Vec<ShmAdapter>), AdapterError> {
        // For its errors about arguments.
        Layout::new(world.universe, contexts)?;
        world.check()?;
        let task = world.task;
        let segment = mapping::map_as_task(&fd, &world, contexts)?;
        let spare = segment.layout().contexts() - contexts;
        clients::check_room(&segment, 0, client, spare)?;
        mapping::populate(&segment, task as usize, 0..client.contexts);
        wireup::claim(&segment, task)?;
        clients::publish(&segment, &world, 0, client);
        let (reach, fences) =
            wireup::agree(&segment, &world, get).inspect_err(|_| declare_lost(&segment, task))?;
        clients::compare(&segment, &world, 0)?;
        let member = Self { segment, world, fences, reach, spare };
        let adapters = member.adapters(0, client);
        Ok((member, adapters))
    }

    /// Checks that the contexts from `first` on suffice for a client: those before it have the others.
    ///
    /// # Errors
    /// [`AdapterError::ContextsTaken`].
    pub fn check_room(&self, first: usize, client: Client<'_>) -> Result<(), AdapterError> {
        clients::check_room(&self.segment, first, client, self.spare)
    }

    /// Waits until all tasks have joined with this client, and returns the adapters of its contexts, of which `first` is
    /// the first one. After an error nobody knows which contexts are free.
    ///
    /// # Errors
    /// [`AdapterError::ContextsTaken`]; [`AdapterError::OtherClient`] if tasks join with different clients;
    /// [`AdapterError::PeerLost`] if a task gave up meanwhile.
    pub fn join(&self, first: usize, client: Client<'_>) -> Result<Vec<ShmAdapter>, AdapterError> {
        self.check_room(first, client)?;
        let (segment, world) = (&self.segment, &self.world);
        mapping::populate(segment, world.task as usize, first..first + client.contexts);
        clients::publish(segment, world, first, client);
        clients::meet(&segment.of_context(first), world)?;
        clients::compare(segment, world, first)?;
        Ok(self.adapters(first, client))
    }

    /// Returns whether all tasks of this host ask for checks of mistakes between them, as the client does whose first
    /// context is `first`.
    pub fn all_check(&self, first: usize) -> bool {
        clients::all_ask(&self.segment, self.world.places(), first)
    }

    /// Returns the task of this process with its world.
    pub fn world(&self) -> &World {
        &self.world
    }

    /// As [`LocalAdapter::one_sided_path`].
    pub fn one_sided_path(&self) -> String {
        self.reach.one_sided_path()
    }

    fn adapters(&self, first: usize, client: Client<'_>) -> Vec<ShmAdapter> {
        let World { task, tasks, universe, parent } = &self.world;
        let contexts = first..first + client.contexts;
        let running = tasks.end as usize;
        let seen = if client.spans_worlds { *universe } else { running };
        let world = tasks.start as usize..running;
        let adapter = |context| {
            let segment = Arc::new(self.segment.of_context(context));
            let reach = self.reach.clone();
            let mut adapter =
                LocalAdapter::among(seen, world.clone(), segment, *task, self.fences, reach);
            // A client that sees its own world only has no frames of it.
            parent.iter().filter(|_| client.spans_worlds).for_each(|task| adapter.expect(*task));
            adapter
        };
        contexts.map(adapter).collect()
    }
}

/// Returns the capabilities of the adapter of a job of `num_tasks` tasks.
///
/// # Errors
/// [`AdapterError::HostTaskCount`].
pub fn caps_of(num_tasks: usize) -> Result<Caps, AdapterError> {
    Ok(local::caps("shm", Layout::new(num_tasks, 1)?.max_body(0, 0), None))
}

/// The kernel copies only inside the calls (SC1 of `crate::platform::sys`).
impl Reach for Processes {
    fn name(&self) -> &'static str {
        "shm"
    }

    fn kind(&self) -> Option<GetKind> {
        self.without_get.is_none().then_some(GetKind::CrossMemoryAttach)
    }

    /// The key is the address, since the kernel finds the memory by it.
    fn register(&self, memory: Registered) -> Option<RemoteKey> {
        let addr = match memory {
            Registered::Constant(region) => region.addr(),
            Registered::Writable(region) => region.addr(),
        };
        self.kind().map(|_| addr.into())
    }

    fn read(
        &self,
        target: TaskId,
        key: RemoteKey,
        offset: u64,
        into: RecvPart<'_>,
    ) -> Result<(), AdapterError> {
        // What is no address lies nowhere.
        let addr = key.number().unwrap_or_default();
        self.peers.of(target)?.read(target, addr.wrapping_add(offset), into)
    }

    fn has_areas(&self) -> bool {
        true
    }

    fn peer_memory(&self) -> Option<Arc<dyn PeerMemory>> {
        self.kind().map(|_| Arc::new(self.clone()) as _)
    }

    fn may_be_written(&self) -> bool {
        !self.may_be_reaped
    }

    fn write(&self, origin: TaskId, addr: u64, at: usize, from: SendRegion) -> io::Result<()> {
        let origin = self.peers.of(origin).map_err(io::Error::other)?;
        origin.write(addr.wrapping_add(at as u64), from)
    }

    fn is_gone(&self, target: TaskId) -> bool {
        self.peers.of(target).is_ok_and(Peer::is_gone)
    }
}

impl PeerMemory for Processes {
    fn reaches(&self, task: TaskId) -> bool {
        self.kind().is_some() && self.peers.of(task).is_ok_and(Peer::is_reached)
    }

    fn has_ended(&self, task: TaskId) -> bool {
        self.peers.of(task).is_ok_and(Peer::is_gone)
    }

    fn read(
        &self,
        task: TaskId,
        from: &[PeerBytes],
        into: RecvPart<'_>,
    ) -> Result<(), AdapterError> {
        self.peers.of(task)?.read_bytes(task, from, &into)
    }

    unsafe fn write(
        &self,
        task: TaskId,
        to: &[PeerBytes],
        from: ForeignBytes<'_>,
    ) -> Result<(), AdapterError> {
        // SAFETY: the caller's promise.
        unsafe { self.peers.of(task)?.write_bytes(task, to, from) }
    }
}

#[cfg(test)]
impl LocalAdapter<Processes> {
    /// Makes this adapter believe that `pid` is the process of task `target`.
    pub(crate) fn set_process(&mut self, target: TaskId, pid: i32) {
        self.peer_mut(target).pid = pid;
    }

    /// The entry for `target`'s process.
    fn peer_mut(&mut self, target: TaskId) -> &mut Peer {
        let peers = Arc::get_mut(&mut self.reach.peers);
        peers.expect("no other context knows the processes").known(target)
    }
}

#[cfg(test)]
#[expect(unsafe_code, reason = "the tests describe buffers of their own as regions")]
mod tests;

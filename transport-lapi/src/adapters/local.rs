//! The adapter for jobs whose tasks share a segment: it has rings and bells in the segment, and a way to read and write
//! other tasks' memory.
//!
//! Tasks that are threads and tasks that are processes differ only in that way, which is a [`Reach`]:
//! [`crate::adapters::threads`] and [`crate::adapters::shm`] each have one. Frames go through the [`Port`] in either
//! case: it knows the rings (`ring`, `data_ring`) and the bells (`doorbell`, `arrivals`) of a `segment`, laid out by
//! `layout`. In long gets both ends copy (`share`). Tasks that are processes can access memory in each other's shared
//! areas, and a task that is alone in its job in its own (`area`). A task that gives up announces it before its buffers
//! change (`detachment`). The waits of a task's threads are published on its `wait_table`, which `job_view` reads for
//! the launcher. Loom models cover the rings, the bells, shared gets and detachments without a segment.

#![expect(unsafe_code, reason = "an adapter promises its contract")]

mod area;
mod arrivals;
mod data_ring;
mod detachment;
mod distance;
pub(crate) mod doorbell;
pub(crate) mod header;
pub(crate) mod job_view;
pub(crate) mod layout;
pub(crate) mod port;
mod recycled;
mod ring;
pub(crate) mod segment;
mod share;
pub(crate) mod wait_table;

use std::io;
use std::ops::Range;
use std::sync::Arc;

use crate::adapter::{
    Adapter, AdapterError, Advance, Begun, Caps, CooperativeCopy, Endpoint, Events, GetKind,
    OneSided, Parts, PeerMemory, Pieces, Post, Registered, SHORT_HEAD, SharedArea, Stats, TaskId,
    Ticket, Transfer,
};
use crate::adapters::local::doorbell::Fences;
use crate::adapters::local::port::Port;
use crate::adapters::local::ring::{MAX_HEAD, SLOT_DATA};
use crate::adapters::local::segment::Segment;
use crate::adapters::local::share::Shares;
use crate::memory::body::Piece;
use crate::memory::region::{RecvPart, RecvRegion, RemoteKey, RemoteRegion, SendRegion};

pub(crate) use wait_table::Traffic;

/// How the tasks of a segment access each other's memory.
pub trait Reach: Send + Sync + 'static {
    /// Returns the name of the adapter with this reach.
    fn name(&self) -> &'static str;

    /// Returns how memory is read; `None` if it cannot be read.
    fn kind(&self) -> Option<GetKind>;

    /// See [`Adapter::register`].
    fn register(&self, memory: Registered) -> Option<RemoteKey>;

    /// See [`Adapter::deregister`].
    fn deregister(&self, key: RemoteKey) {
        let _ = key;
    }

    /// Fills `into` from memory that `target` has registered under `key`, beginning at `offset`.
    ///
    /// # Errors
    /// As [`Adapter::start`].
    fn read(
        &self,
        target: TaskId,
        key: RemoteKey,
        offset: u64,
        into: RecvPart<'_>,
    ) -> Result<(), AdapterError>;

    /// Returns whether the tasks can use each other's shared areas (AR1).
    fn has_areas(&self) -> bool;

    /// Returns the way to memory of other tasks that was not registered, if there is one.
    fn peer_memory(&self) -> Option<Arc<dyn PeerMemory>> {
        None
    }

    /// Returns whether other tasks may be allowed to write into this task's memory.
    fn may_be_written(&self) -> bool;

    /// Makes `into` the destination of this task's get from `target`, until the next call for that target. The words of
    /// the shared get determine which bytes of it the target may write, and for how long.
    fn land(&self, target: TaskId, into: &RecvRegion) {
        let _ = (target, into);
    }

    /// Writes `from` into the destination of the get of `origin` from this task, at offset `at`. The origin claims that
    /// the destination begins at `addr`.
    ///
    /// # Errors
    /// The error of the system.
    fn write(&self, origin: TaskId, addr: u64, at: usize, from: SendRegion) -> io::Result<()>;

    /// Returns whether `target` will never write again. A task that is merely slow may still write.
    fn is_gone(&self, target: TaskId) -> bool;
}

macro_rules! pass_on {
    ($($name:ident($($argument:ident: $kind:ty),*) $(-> $answer:ty)?;)+) => {
        $(fn $name(&self, $($argument: $kind),*) $(-> $answer)? {
            (**self).$name($($argument),*)
        })+
    };
}

#[cfg(test)]
pub(crate) use pass_on;

impl Reach for Box<dyn Reach> {
    pass_on! {
        name() -> &'static str;
        kind() -> Option<GetKind>;
        register(memory: Registered) -> Option<RemoteKey>;
        deregister(key: RemoteKey);
        read(target: TaskId, key: RemoteKey, offset: u64, into: RecvPart<'_>)
            -> Result<(), AdapterError>;
        has_areas() -> bool;
        peer_memory() -> Option<Arc<dyn PeerMemory>>;
        may_be_written() -> bool;
        land(target: TaskId, into: &RecvRegion);
        write(origin: TaskId, addr: u64, at: usize, from: SendRegion) -> io::Result<()>;
        is_gone(target: TaskId) -> bool;
    }
}

/// One context of a task of a job in a segment.
pub struct LocalAdapter<R> {
    port: Port,
    /// How many tasks were there when this one started: they share the processors of this host.
    neighbours: usize,
    pub(crate) shares: Shares,
    pub(crate) reach: R,
}

impl<R: Reach> LocalAdapter<R> {
    /// Makes the adapter of `task` in `segment`. Called once for each task and context (P2 of
    /// [`crate::adapters::local::port`]).
    pub(crate) fn new(segment: Arc<Segment>, task: TaskId, fences: Fences, reach: R) -> Self {
        let (tasks, shares) = (segment.layout().tasks(), Arc::clone(&segment));
        let port = Port::new(segment, task, fences);
        Self { port, neighbours: tasks, shares: Shares::new(shares, task, fences), reach }
    }

    /// [`LocalAdapter::new`] for a client that sees only the first `tasks` tasks, and was started with those of `world`.
    pub(crate) fn among(
        tasks: usize,
        world: Range<usize>,
        segment: Arc<Segment>,
        task: TaskId,
        fences: Fences,
        reach: R,
    ) -> Self {
        let shares = Shares::new(Arc::clone(&segment), task, fences);
        let neighbours = world.end;
        Self { port: Port::among(segment, task, fences, tasks, world), neighbours, shares, reach }
    }

    /// Makes the task look once for frames that `origin` has sent before this task was set up.
    pub(crate) fn expect(&mut self, origin: TaskId) {
        self.port.expect(origin);
    }

    /// Erases the type of the reach, so that programs are compiled for one type of adapter.
    pub(crate) fn into_any(self) -> LocalAdapter<Box<dyn Reach>> {
        self.with_reach(|reach| Box::new(reach) as Box<dyn Reach>)
    }

    /// Publishes, for the launcher, the traffic of this task over another adapter with tasks beyond the segment.
    pub(crate) fn count(&self, traffic: Traffic) {
        let task = self.port.endpoint().task;
        self.port.segment().wait_table(task as usize).count(traffic);
    }

    /// Replaces the reach by what `wrap` makes of it.
    pub(crate) fn with_reach<W>(self, wrap: impl FnOnce(R) -> W) -> LocalAdapter<W> {
        let Self { port, neighbours, shares, reach } = self;
        LocalAdapter { port, neighbours, shares, reach: wrap(reach) }
    }
}

impl<R: Reach> LocalAdapter<R> {
    /// [`Adapter::poll`] for events of one type, so that what handles frames is inlined. The error is in a box, so that
    /// the result is in registers.
    #[inline(always)]
    pub(crate) fn poll_into<E: Events + ?Sized>(
        &mut self,
        origin: Option<TaskId>,
        budget: usize,
        events: &mut E,
    ) -> Result<usize, Box<AdapterError>> {
        self.port.poll(origin, budget, events).map_err(Box::new)
    }

    /// [`Adapter::try_send`] of a frame with a short head and a body of one span. Returns whether it was
    /// [`Post::Taken`].
    #[inline(always)]
    pub(crate) fn takes(
        &mut self,
        target: TaskId,
        head: &[u8; SHORT_HEAD],
        body: SendRegion,
    ) -> bool {
        matches!(self.port.try_send(target, head, Piece::Span(body)), Ok(Post::Taken))
    }
}

/// The capabilities of the adapter of a segment.
pub(crate) fn caps(name: &'static str, max_body: usize, gets: Option<GetKind>) -> Caps {
    let (max_head, max_inline) = (MAX_HEAD, SLOT_DATA);
    let pieces = Pieces::new(16 << 10, [16 << 10, 32 << 10, 64 << 10]);
    let (puts, atomics) = (false, false);
    Caps { name, max_head, max_inline, max_body, pieces, copies_bodies: true, gets, puts, atomics }
}

// SAFETY: bodies are copied inside the call. `crate::adapters::local::share` keeps A7; a reach reads and writes only
// inside its calls. A8: the word of WI1 is checked after each read.
unsafe impl<R: Reach> Adapter for LocalAdapter<R> {
    fn endpoint(&self) -> Endpoint {
        self.port.endpoint()
    }

    fn caps(&self, target: TaskId) -> Caps {
        let own = self.port.endpoint().task;
        let max_body = self.port.segment().layout().max_body(own as usize, target as usize);
        caps(self.reach.name(), max_body, self.reach.kind())
    }

    fn parts(&self) -> Parts {
        let handle = self.port.handle();
        let segment = || Arc::clone(self.port.segment()) as Arc<dyn SharedArea>;
        let area = self.reach.has_areas().then(segment);
        Parts {
            bell: handle.clone(),
            losses: handle.clone(),
            area,
            peer_memory: self.reach.peer_memory(),
            wait_records: Some(handle),
            near: 0..self.neighbours as TaskId,
            neighbours: self.neighbours,
            hosts: None,
        }
    }

    #[inline(always)]
    fn try_send(
        &mut self,
        target: TaskId,
        head: &[u8],
        body: Piece<'_>,
        _: Ticket,
    ) -> Result<Post, AdapterError> {
        self.port.try_send(target, head, body)
    }

    fn poll(
        &mut self,
        origin: Option<TaskId>,
        budget: usize,
        events: &mut dyn Events,
    ) -> Result<usize, AdapterError> {
        self.port.poll(origin, budget, events)
    }

    #[inline]
    fn while_waiting(&mut self) {
        self.port.prefetch_expected();
    }

    fn register(
        &mut self,
        memory: Registered,
        _: Option<TaskId>,
    ) -> Result<Option<RemoteKey>, AdapterError> {
        Ok(self.reach.register(memory))
    }

    fn deregister(&mut self, key: RemoteKey) {
        self.reach.deregister(key);
    }

    fn start(
        &mut self,
        target: TaskId,
        operation: OneSided<'_>,
        _: Ticket,
    ) -> Result<Transfer, AdapterError> {
        let OneSided::Get { remote, offset, into } = operation else {
            return Err(operation.unsupported(target));
        };
        self.port.moved();
        let read = self.reach.read(target, remote.direct, offset, into);
        self.port.unless_detached(target, read).map(|()| Transfer::Done(0))
    }

    fn cooperative_copy(&mut self) -> Option<&mut dyn CooperativeCopy> {
        self.reach.kind().is_some().then_some(self)
    }

    fn detach(&mut self) -> bool {
        self.port.detach();
        let Self { shares, reach, port, .. } = self;
        let end = |target| shares.end(target, || reach.is_gone(target));
        // Not short-circuited: every get is ended, even after one that is not over.
        (0..port.endpoint().num_tasks as TaskId).map(end).fold(true, |all, one| all & one)
    }

    fn stats(&self) -> Option<Stats> {
        Some(self.port.stats())
    }
}

impl<R: Reach> CooperativeCopy for LocalAdapter<R> {
    fn begin(
        &mut self,
        target: TaskId,
        remote: RemoteRegion,
        offset: u64,
        into: RecvRegion,
    ) -> Begun {
        if !self.reach.may_be_written() || !self.shares.can_divide(target, into.len()) {
            return Begun::Alone(into);
        }
        if self.shares.is_busy(target) {
            return Begun::Busy(into);
        }
        // Before the get has a number: a task that knows the number must find the region.
        self.reach.land(target, &into);
        Begun::Shared(self.shares.begin(target, remote, offset, into))
    }

    fn advance(&mut self, target: TaskId) -> Result<Advance, AdapterError> {
        let Self { port, shares, reach, .. } = self;
        port.moved();
        let read = |remote: RemoteRegion, offset: u64, into: RecvPart<'_>| {
            port.unless_detached(target, reach.read(target, remote.direct, offset, into))
        };
        shares.advance(target, read, || reach.is_gone(target))
    }

    fn end(&mut self, target: TaskId) -> bool {
        let Self { shares, reach, .. } = self;
        shares.end(target, || reach.is_gone(target))
    }

    fn assist(&mut self, origin: TaskId, number: u32, from: SendRegion) -> bool {
        let reach = &self.reach;
        let write = |addr, at, from: SendRegion| reach.write(origin, addr, at, from);
        let helped = self.shares.help(origin, number, from, write);
        if helped {
            self.port.moved();
        }
        helped
    }
}

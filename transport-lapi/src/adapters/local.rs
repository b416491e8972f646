//! The adapter for jobs whose tasks share a segment: it has rings and bells in the segment, and a way to read and write
//! other tasks' memory.
//!
//! Tasks that are threads and tasks that are processes differ only in that way, which is a [`Reach`]:
//! [`crate::adapters::threads`] and [`crate::adapters::shm`] each have one. Frames go through the [`Port`] in either
//! case.

#![expect(unsafe_code, reason = "an adapter promises its contract")]

use std::io;
use std::sync::Arc;

use crate::adapter::{
    Adapter, AdapterError, Advance, Begun, Caps, Doorbell, Events, GetKind, OneSided, Post,
    SharedArea, SharedGets, TaskId, Ticket, Transfer, WaitBoard,
};
use crate::adapters::area::Areas;
use crate::adapters::doorbell::Fences;
use crate::adapters::port::Port;
use crate::adapters::ring::{MAX_HEAD, SLOT_DATA};
use crate::adapters::segment::Segment;
use crate::adapters::share::Shares;
use crate::memory::body::Piece;
use crate::memory::region::{RecvPart, RecvRegion, RemoteRegion, SendRegion};

/// How the tasks of a segment access each other's memory.
pub trait Reach: Send + Sync + 'static {
    /// Returns the name of the adapter with this reach.
    fn name(&self) -> &'static str;

    /// Returns how memory is read; `None` if it cannot be read.
    fn kind(&self) -> Option<GetKind>;

    /// See [`OneSided::expose`].
    fn expose(&self, key: u64, region: SendRegion) {
        let _ = (key, region);
    }

    /// See [`OneSided::conceal`].
    fn conceal(&self, key: u64) {
        let _ = key;
    }

    /// Fills `into` from a region that `target` has exposed, beginning at `offset`.
    ///
    /// # Errors
    /// As [`OneSided::get`].
    fn read(
        &self,
        target: TaskId,
        remote: RemoteRegion,
        offset: u64,
        into: RecvPart<'_>,
    ) -> Result<(), AdapterError>;

    /// Returns whether the tasks can use each other's shared areas (AR1).
    fn has_areas(&self) -> bool;

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
        expose(key: u64, region: SendRegion);
        conceal(key: u64);
        read(target: TaskId, remote: RemoteRegion, offset: u64, into: RecvPart<'_>)
            -> Result<(), AdapterError>;
        has_areas() -> bool;
        may_be_written() -> bool;
        land(target: TaskId, into: &RecvRegion);
        write(origin: TaskId, addr: u64, at: usize, from: SendRegion) -> io::Result<()>;
        is_gone(target: TaskId) -> bool;
    }
}

/// One context of a task of a job in a segment.
pub struct LocalAdapter<R> {
    port: Port,
    pub(crate) shares: Shares,
    pub(crate) reach: R,
}

impl<R: Reach> LocalAdapter<R> {
    /// Makes the adapter of `task` on the plane of `segment`. Called once per task and plane (P2 of
    /// [`crate::adapters::port`]).
    pub(crate) fn new(segment: Arc<Segment>, task: TaskId, fences: Fences, reach: R) -> Self {
        let port = Port::new(Arc::clone(&segment), task, fences);
        Self { port, shares: Shares::new(segment, task, fences), reach }
    }

    /// Erases the type of the reach, so that programs are compiled for one type of adapter.
    pub(crate) fn into_any(self) -> LocalAdapter<Box<dyn Reach>> {
        self.with_reach(|reach| Box::new(reach) as Box<dyn Reach>)
    }

    /// Replaces the reach by what `wrap` makes of it.
    pub(crate) fn with_reach<W>(self, wrap: impl FnOnce(R) -> W) -> LocalAdapter<W> {
        let Self { port, shares, reach } = self;
        LocalAdapter { port, shares, reach: wrap(reach) }
    }
}

/// The capabilities of the adapter of a segment.
pub(crate) fn caps(name: &'static str, max_body: usize) -> Caps {
    let (max_head, max_inline) = (MAX_HEAD, SLOT_DATA);
    Caps { name, max_head, max_inline, max_body, copies_bodies: true }
}

// SAFETY: bodies are copied inside the call. `crate::adapters::share` keeps A7; a reach reads and writes only inside
// its calls. A8: the word of WI1 is checked after each read.
unsafe impl<R: Reach> Adapter for LocalAdapter<R> {
    fn caps(&self) -> Caps {
        caps(self.reach.name(), self.port.max_body())
    }

    fn task(&self) -> TaskId {
        self.port.task()
    }

    fn context(&self) -> usize {
        self.port.context()
    }

    fn num_tasks(&self) -> usize {
        self.port.num_tasks()
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
        mut events: &mut dyn Events,
    ) -> Result<usize, AdapterError> {
        self.poll_into(origin, budget, &mut events).map_err(|error| *error)
    }

    #[inline(always)]
    fn poll_into<E: Events>(
        &mut self,
        origin: Option<TaskId>,
        budget: usize,
        events: &mut E,
    ) -> Result<usize, Box<AdapterError>> {
        self.port.poll(origin, budget, events).map_err(Box::new)
    }

    #[inline]
    fn prefetch_expected(&mut self) {
        self.port.prefetch_expected();
    }

    fn withdraw(&mut self) -> bool {
        self.port.withdraw();
        let Self { shares, reach, port } = self;
        let end = |target| shares.end(target, || reach.is_gone(target));
        // Not short-circuited: every get is ended, even after one that is not over.
        (0..port.num_tasks() as TaskId).map(end).fold(true, |all, one| all & one)
    }

    fn doorbell(&self) -> Arc<dyn Doorbell> {
        self.port.handle()
    }

    #[inline]
    fn losses(&self) -> usize {
        self.port.losses()
    }

    fn is_lost(&self, task: TaskId) -> bool {
        self.port.is_lost(task)
    }

    fn packets(&self) -> Option<(u64, u64)> {
        Some(self.port.packets())
    }

    fn one_sided(&mut self) -> Option<&mut dyn OneSided> {
        self.reach.kind().is_some().then_some(self)
    }

    fn shared_gets(&mut self) -> Option<&mut dyn SharedGets> {
        self.reach.kind().is_some().then_some(self)
    }

    fn shared_area(&self) -> Option<Arc<dyn SharedArea>> {
        let segment =
            || Arc::new(Areas::new(self.port.segment(), self.port.task())) as Arc<dyn SharedArea>;
        self.reach.has_areas().then(segment)
    }

    fn wait_board(&self) -> Option<Arc<dyn WaitBoard>> {
        Some(self.port.handle())
    }
}

impl<R: Reach> OneSided for LocalAdapter<R> {
    fn kind(&mut self) -> GetKind {
        self.reach.kind().expect("the capability is given out only where there is one")
    }

    fn expose(&mut self, key: u64, region: SendRegion) -> Result<(), AdapterError> {
        self.reach.expose(key, region);
        Ok(())
    }

    fn conceal(&mut self, key: u64) {
        self.reach.conceal(key);
    }

    fn get(
        &mut self,
        target: TaskId,
        remote: RemoteRegion,
        offset: u64,
        into: RecvPart<'_>,
        _: Ticket,
    ) -> Result<Transfer, AdapterError> {
        self.port.moved();
        let read = self.reach.read(target, remote, offset, into);
        self.port.unless_withdrawn(target, read).map(|()| Transfer::Done)
    }
}

impl<R: Reach> SharedGets for LocalAdapter<R> {
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
        let Self { port, shares, reach } = self;
        port.moved();
        let read = |remote: RemoteRegion, offset: u64, into: RecvPart<'_>| {
            port.unless_withdrawn(target, reach.read(target, remote, offset, into))
        };
        shares.advance(target, read, || reach.is_gone(target))
    }

    fn end(&mut self, target: TaskId) -> bool {
        let Self { shares, reach, .. } = self;
        shares.end(target, || reach.is_gone(target))
    }

    fn help(&mut self, origin: TaskId, number: u32, from: SendRegion) -> bool {
        let reach = &self.reach;
        let write = |addr, at, from: SendRegion| reach.write(origin, addr, at, from);
        let helped = self.shares.help(origin, number, from, write);
        if helped {
            self.port.moved();
        }
        helped
    }
}

//! The adapter that programs are compiled for: the one of jobs on this host, or one that the caller brings.
//!
//! A message over the local adapter costs one branch more than over [`LocalAdapter`] itself: what the two adapters
//! return on its path fits into registers, so that it need not go through memory where the branches join.

#![expect(unsafe_code, reason = "an adapter is made of others")]

use std::ops::{Deref, DerefMut};

use crate::adapter::{
    Adapter, AdapterError, Caps, CooperativeCopy, Endpoint, Events, OneSided, Parts, Post,
    Registered, SHORT_HEAD, Stats, TaskId, Ticket, Transfer,
};
use crate::adapters::{LocalAdapter, Reach};
use crate::memory::body::Piece;
use crate::memory::region::{RemoteKey, SendRegion};

/// The adapter of a job.
// With a tag of its own, which takes one instruction less than a value that no adapter has.
#[repr(u8)]
pub enum AnyAdapter {
    /// The tasks share a segment, as threads or as processes.
    Local(LocalAdapter<Box<dyn Reach>>),
    /// The tasks communicate as the caller chose.
    Brought(Brought),
}

/// An adapter of any type.
pub struct Brought(Box<dyn Adapter>);

impl AnyAdapter {
    /// Makes an adapter of jobs of any adapter.
    pub fn brought(adapter: impl Adapter) -> Self {
        Self::Brought(Brought(Box::new(adapter)))
    }
}

impl<R: Reach> From<LocalAdapter<R>> for AnyAdapter {
    fn from(adapter: LocalAdapter<R>) -> Self {
        Self::Local(adapter.into_any())
    }
}

impl Deref for Brought {
    type Target = dyn Adapter;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

impl DerefMut for Brought {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut *self.0
    }
}

impl Brought {
    #[inline(always)]
    fn takes(&mut self, target: TaskId, head: &[u8; SHORT_HEAD], body: SendRegion) -> bool {
        self.takes_cold(target, *head, body)
    }

    /// Its head comes in registers, so that it need not lie in memory before the branch.
    #[cold]
    #[inline(never)]
    fn takes_cold(&mut self, target: TaskId, head: [u8; SHORT_HEAD], body: SendRegion) -> bool {
        matches!(self.0.try_send(target, &head, Piece::Span(body), Ticket(0)), Ok(Post::Taken))
    }

    #[cold]
    fn poll_into(
        &mut self,
        origin: Option<TaskId>,
        budget: usize,
        events: &mut dyn Events,
    ) -> Result<usize, Box<AdapterError>> {
        self.0.poll(origin, budget, events).map_err(Box::new)
    }
}

/// The call of the adapter inside.
macro_rules! each {
    ($native:expr, $adapter:ident => $call:expr) => {
        match $native {
            AnyAdapter::Local($adapter) => $call,
            AnyAdapter::Brought($adapter) => $call,
        }
    };
}

impl AnyAdapter {
    /// [`Adapter::poll`] for events of one type, so that what handles frames is inlined. The error is in a box, so that
    /// the result is in registers.
    #[inline(always)]
    pub(crate) fn poll_into<E: Events>(
        &mut self,
        origin: Option<TaskId>,
        budget: usize,
        events: &mut E,
    ) -> Result<usize, Box<AdapterError>> {
        each!(self, adapter => adapter.poll_into(origin, budget, events))
    }

    /// [`Adapter::try_send`] of a frame with a short head and a body of one span. Returns whether it was
    /// [`Post::Taken`]; otherwise the caller offers it again. The target copies every body.
    #[inline(always)]
    pub(crate) fn takes(
        &mut self,
        target: TaskId,
        head: &[u8; SHORT_HEAD],
        body: SendRegion,
    ) -> bool {
        each!(self, adapter => adapter.takes(target, head, body))
    }
}

// SAFETY: every call is passed on to an adapter that keeps the contract.
unsafe impl Adapter for AnyAdapter {
    fn endpoint(&self) -> Endpoint {
        each!(self, adapter => adapter.endpoint())
    }

    fn caps(&self, target: TaskId) -> Caps {
        each!(self, adapter => adapter.caps(target))
    }

    fn parts(&self) -> Parts {
        each!(self, adapter => adapter.parts())
    }

    #[inline(always)]
    fn try_send(
        &mut self,
        target: TaskId,
        head: &[u8],
        body: Piece<'_>,
        ticket: Ticket,
    ) -> Result<Post, AdapterError> {
        each!(self, adapter => adapter.try_send(target, head, body, ticket))
    }

    fn poll(
        &mut self,
        origin: Option<TaskId>,
        budget: usize,
        events: &mut dyn Events,
    ) -> Result<usize, AdapterError> {
        each!(self, adapter => adapter.poll(origin, budget, events))
    }

    #[inline]
    fn while_waiting(&mut self) {
        each!(self, adapter => adapter.while_waiting());
    }

    fn register(&mut self, memory: Registered) -> Result<Option<RemoteKey>, AdapterError> {
        each!(self, adapter => adapter.register(memory))
    }

    fn deregister(&mut self, key: RemoteKey) {
        each!(self, adapter => adapter.deregister(key));
    }

    fn start(
        &mut self,
        target: TaskId,
        operation: OneSided<'_>,
        ticket: Ticket,
    ) -> Result<Transfer, AdapterError> {
        each!(self, adapter => adapter.start(target, operation, ticket))
    }

    fn cooperative_copy(&mut self) -> Option<&mut dyn CooperativeCopy> {
        each!(self, adapter => adapter.cooperative_copy())
    }

    fn detach(&mut self) -> bool {
        each!(self, adapter => adapter.detach())
    }

    fn stats(&self) -> Option<Stats> {
        each!(self, adapter => adapter.stats())
    }
}

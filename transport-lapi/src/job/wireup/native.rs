//! The adapter that programs are compiled for: the one of jobs on this host, or one that the caller brings.
//!
//! A message over the local adapter costs one branch more than over [`LocalAdapter`] itself: what the two adapters
//! return on its path fits into registers, so that it need not go through memory where the branches join.

#![expect(unsafe_code, reason = "an adapter is made of others")]

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use crate::adapter::{
    Adapter, AdapterError, Caps, Doorbell, Events, OneSided, Post, SHORT_HEAD, SharedArea,
    SharedGets, TaskId, Ticket, WaitBoard,
};
use crate::adapters::{LocalAdapter, Reach};
use crate::memory::body::Piece;
use crate::memory::region::SendRegion;

/// The adapter of a job.
// With a tag of its own, which takes one instruction less than a value that no adapter has.
#[repr(u8)]
pub enum Native {
    /// The tasks share a segment, as threads or as processes.
    Local(LocalAdapter<Box<dyn Reach>>),
    /// The tasks communicate as the caller chose.
    Brought(Brought),
}

/// An adapter of any type.
pub struct Brought(Box<dyn Adapter>);

impl Native {
    /// Makes an adapter of jobs of any adapter.
    pub fn brought(adapter: impl Adapter) -> Self {
        Self::Brought(Brought(Box::new(adapter)))
    }
}

impl<R: Reach> From<LocalAdapter<R>> for Native {
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
    /// [`Adapter::takes`].
    #[inline(always)]
    fn takes(&mut self, target: TaskId, head: &[u8; SHORT_HEAD], body: SendRegion) -> bool {
        self.takes_cold(target, *head, body)
    }

    /// Its head comes in registers, so that it need not lie in memory before the branch.
    #[cold]
    #[inline(never)]
    fn takes_cold(&mut self, target: TaskId, head: [u8; SHORT_HEAD], body: SendRegion) -> bool {
        self.0.takes(target, &head, body)
    }

    /// [`Adapter::poll_into`], which has no form for adapters of any type.
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
            Native::Local($adapter) => $call,
            Native::Brought($adapter) => $call,
        }
    };
}

// SAFETY: every call is passed on to an adapter that keeps the contract.
unsafe impl Adapter for Native {
    fn caps(&self) -> Caps {
        each!(self, adapter => adapter.caps())
    }

    fn task(&self) -> TaskId {
        each!(self, adapter => adapter.task())
    }

    fn context(&self) -> usize {
        each!(self, adapter => adapter.context())
    }

    fn num_tasks(&self) -> usize {
        each!(self, adapter => adapter.num_tasks())
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

    #[inline(always)]
    fn poll_into<E: Events>(
        &mut self,
        origin: Option<TaskId>,
        budget: usize,
        events: &mut E,
    ) -> Result<usize, Box<AdapterError>> {
        each!(self, adapter => adapter.poll_into(origin, budget, events))
    }

    #[inline(always)]
    fn takes(&mut self, target: TaskId, head: &[u8; SHORT_HEAD], body: SendRegion) -> bool {
        each!(self, adapter => adapter.takes(target, head, body))
    }

    #[inline]
    fn prefetch_expected(&mut self) {
        each!(self, adapter => adapter.prefetch_expected());
    }

    fn withdraw(&mut self) -> bool {
        each!(self, adapter => adapter.withdraw())
    }

    fn doorbell(&self) -> Arc<dyn Doorbell> {
        each!(self, adapter => adapter.doorbell())
    }

    #[inline]
    fn losses(&self) -> usize {
        each!(self, adapter => adapter.losses())
    }

    fn is_lost(&self, task: TaskId) -> bool {
        each!(self, adapter => adapter.is_lost(task))
    }

    fn packets(&self) -> Option<(u64, u64)> {
        each!(self, adapter => adapter.packets())
    }

    fn one_sided(&mut self) -> Option<&mut dyn OneSided> {
        each!(self, adapter => adapter.one_sided())
    }

    fn shared_gets(&mut self) -> Option<&mut dyn SharedGets> {
        each!(self, adapter => adapter.shared_gets())
    }

    fn shared_area(&self) -> Option<Arc<dyn SharedArea>> {
        each!(self, adapter => adapter.shared_area())
    }

    fn wait_board(&self) -> Option<Arc<dyn WaitBoard>> {
        each!(self, adapter => adapter.wait_board())
    }
}

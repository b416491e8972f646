//! The adapter that programs are compiled for: that of jobs on this host, that of jobs on several, or one that the
//! caller brings.
//!
//! A message over the local adapter costs one branch more than over [`LocalAdapter`] itself: what the two adapters
//! return on its path fits into registers, so that it need not go through memory where the branches join.

use std::ops::{Deref, DerefMut};

use crate::adapter::{Adapter, AdapterError, Events, Post, SHORT_HEAD, TaskId, Ticket};
use crate::adapters::hosts::HostsAdapter;
use crate::adapters::{LocalAdapter, Reach};
use crate::memory::body::Piece;
use crate::memory::region::SendRegion;

/// The adapter of a job.
// With a tag of its own, which takes one instruction less than a value that no adapter has.
#[repr(u8)]
pub enum AnyAdapter {
    /// The tasks share a segment, as threads or as processes.
    Local(LocalAdapter<Box<dyn Reach>>),
    /// Tasks of this host share a segment, and reach others over a network.
    Hosts(Box<HostsAdapter>),
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

impl From<HostsAdapter> for AnyAdapter {
    fn from(adapter: HostsAdapter) -> Self {
        Self::Hosts(Box::new(adapter))
    }
}

/// All calls but those on the path of a short message.
impl Deref for AnyAdapter {
    type Target = dyn Adapter;

    fn deref(&self) -> &Self::Target {
        match self {
            Self::Local(adapter) => adapter,
            Self::Hosts(adapter) => &**adapter,
            Self::Brought(Brought(adapter)) => &**adapter,
        }
    }
}

impl DerefMut for AnyAdapter {
    fn deref_mut(&mut self) -> &mut Self::Target {
        match self {
            Self::Local(adapter) => adapter,
            Self::Hosts(adapter) => &mut **adapter,
            Self::Brought(Brought(adapter)) => &mut **adapter,
        }
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
    fn while_waiting(&mut self) {
        self.0.while_waiting();
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
            AnyAdapter::Hosts($adapter) => $call,
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

    /// [`Adapter::while_waiting`]: many turns of a spin call it.
    #[inline(always)]
    pub(crate) fn while_waiting(&mut self) {
        each!(self, adapter => adapter.while_waiting());
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

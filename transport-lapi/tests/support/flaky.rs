//! An adapter that fails on one frame, like an adapter with a damaged ring.

#![expect(unsafe_code, reason = "an adapter promises its contract")]

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use transport_lapi::adapter::{
    Adapter, AdapterError, Caps, Doorbell, Events, OneSided, Post, Ticket,
};
use transport_lapi::wireup::Native;
use transport_lapi::{Piece, TaskId};

/// An adapter that fails once, when no more frames may pass.
pub struct Flaky {
    inner: Native,
    passes: Arc<AtomicI64>,
}

impl Flaky {
    /// Wraps `inner`. Returns the adapter, and the number of frames that it still lets pass; a negative number means
    /// all.
    pub fn new(inner: Native) -> (Self, Arc<AtomicI64>) {
        let passes = Arc::new(AtomicI64::new(-1));
        (Self { inner, passes: Arc::clone(&passes) }, passes)
    }
}

// SAFETY: everything that is not refused is passed to the inner adapter, which keeps the contract.
unsafe impl Adapter for Flaky {
    fn caps(&self) -> Caps {
        self.inner.caps()
    }

    fn task(&self) -> TaskId {
        self.inner.task()
    }

    fn num_tasks(&self) -> usize {
        self.inner.num_tasks()
    }

    fn try_send(
        &mut self,
        to: TaskId,
        head: &[u8],
        body: Piece<'_>,
        ticket: Ticket,
    ) -> Result<Post, AdapterError> {
        if self.passes.load(Ordering::Relaxed) >= 0
            && self.passes.fetch_sub(1, Ordering::Relaxed) == 0
        {
            return Err(AdapterError::Corrupt { origin: to, what: "made up by the test" });
        }
        self.inner.try_send(to, head, body, ticket)
    }

    fn poll(
        &mut self,
        origin: Option<TaskId>,
        budget: usize,
        events: &mut dyn Events,
    ) -> Result<usize, AdapterError> {
        self.inner.poll(origin, budget, events)
    }

    fn withdraw(&mut self) -> bool {
        self.inner.withdraw()
    }

    fn doorbell(&self) -> Arc<dyn Doorbell> {
        self.inner.doorbell()
    }

    fn losses(&self) -> usize {
        self.inner.losses()
    }

    fn is_lost(&self, task: TaskId) -> bool {
        self.inner.is_lost(task)
    }

    fn one_sided(&mut self) -> Option<&mut dyn OneSided> {
        self.inner.one_sided()
    }
}

//! An adapter that fails on one frame, like an adapter with a damaged ring.

#![expect(unsafe_code, reason = "an adapter promises its contract")]

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use transport_lapi::AnyAdapter;
use transport_lapi::adapter::{
    Adapter, AdapterError, Caps, Endpoint, Events, OneSided, Parts, Post, Registered, Ticket,
    Transfer,
};
use transport_lapi::{Piece, RemoteKey, TaskId};

/// An adapter that fails once, when no more frames may pass.
pub struct Flaky {
    inner: AnyAdapter,
    passes: Arc<AtomicI64>,
}

impl Flaky {
    /// Wraps `inner`. Returns the adapter, and the number of frames that it still lets pass; a negative number means
    /// all.
    pub fn new(inner: AnyAdapter) -> (Self, Arc<AtomicI64>) {
        let passes = Arc::new(AtomicI64::new(-1));
        (Self { inner, passes: Arc::clone(&passes) }, passes)
    }
}

// SAFETY: everything that is not refused is passed to the inner adapter, which keeps the contract.
unsafe impl Adapter for Flaky {
    fn endpoint(&self) -> Endpoint {
        self.inner.endpoint()
    }

    fn caps(&self, target: TaskId) -> Caps {
        self.inner.caps(target)
    }

    fn parts(&self) -> Parts {
        self.inner.parts()
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

    fn detach(&mut self) -> bool {
        self.inner.detach()
    }

    fn register(
        &mut self,
        memory: Registered,
        user: Option<TaskId>,
    ) -> Result<Option<RemoteKey>, AdapterError> {
        self.inner.register(memory, user)
    }

    fn deregister(&mut self, key: RemoteKey) {
        self.inner.deregister(key);
    }

    fn start(
        &mut self,
        target: TaskId,
        operation: OneSided<'_>,
        ticket: Ticket,
    ) -> Result<Transfer, AdapterError> {
        self.inner.start(target, operation, ticket)
    }
}

impl From<Flaky> for AnyAdapter {
    fn from(adapter: Flaky) -> Self {
        Self::brought(adapter)
    }
}

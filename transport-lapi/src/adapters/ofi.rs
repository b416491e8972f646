//! The adapter of networks between hosts, by libfabric: reliable datagrams (FI_EP_RDM) with messages, and accesses to other
//! tasks' memory (fi_read, fi_write) where the provider has them.
//!
//! Frames travel in packets. A frame to a peer to whom nothing is on its way goes at once, in a packet of its own. A frame
//! that finds a packet on its way, or one that was sent since the last poll, is added to a packet that waits: it goes when
//! the owner polls, when it is full, or when its service thread finds it, after 0.2 to 1.2 ms. So a burst costs
//! two system calls instead of one for each frame, and no frame waits for a later call of the program.
//!
//! ```text
//!  library    loads libfabric           bindings   its structures         choice   provider and domain
//!  fabric     a process's access        endpoint   its objects, safe      memory   buffers, registrations
//!  packet     the codec                 peer       numbers, waiting packets
//!  accesses   reads, writes, flushes    state      what is done under the lock
//!  service    progress while the program computes, and sleep              losses   who is gone
//!  contacts   who cannot be reached
//!  bare       a provider without the adapter, for measurements
//! ```
//!
//! - OA1: the parts of an endpoint are used under one lock, by the owner's calls and by the service thread, which ends
//!   before the endpoint is closed. Nobody else waits for that lock, so it is free nearly always.
//! - OA2: a packet is delivered only if its token proves that its sender knows the secret of the job, and if its number
//!   is the next one of its origin. All others are counted and dropped. So frames arrive once and in order (A1), and a
//!   stranger can neither add a frame nor end the job.
//! - OA3: bodies are copied into packets inside the call. Memory of the program is accessed by the provider while a read
//!   or a write lasts; if its target is lost, the endpoint for them is closed, and others are refused (A9, A10). Memory
//!   that is registered is read by the provider, and written if it is registered for that, for whoever knows a key that
//!   nobody guesses. A read that is on its way when the registration ends goes on, as reads by the kernel do on one host;
//!   `detach` ends it by closing the endpoint (A8).
//! - OA4: what was taken is sent by the service thread if its owner does not poll (A4), and before `detach` answers
//!   `true`, unless that takes longer than five seconds; if the adapter is dropped, by the dropping thread, for at most
//!   five seconds, and afterwards by a thread of its own.
//! - OA5: nothing more is taken for a lost task ([`Post::Full`], so that the caller learns of the loss), and what waits
//!   for it is dropped (A10). A peer whose connection fails counts as lost.

mod accesses;
mod bare;
#[expect(non_camel_case_types, dead_code, reason = "generated from headers of C")]
mod bindings;
mod choice;
mod contacts;
mod endpoint;
mod fabric;
mod library;
mod losses;
mod memory;
mod object;
mod packet;
mod peer;
mod service;
mod state;

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::adapter::{
    Adapter, AdapterError, Caps, Doorbell, Endpoint, Events, Losses, OneSided, Parts, Post,
    Registered, Stats, TaskId, Ticket, Transfer,
};
use crate::adapters::hosts::table::SECRET_BYTES;
use crate::adapters::noted_bell::{NotedBell, Notes};
use crate::memory::body::Piece;
use crate::memory::region::{RemoteKey, RemoteRegion};
use crate::platform::fork::ProcessMark;

use accesses::{Kind, Place};
use losses::OfiLosses;
use service::{Served, Service, Signals};
use state::State;

pub use bare::Bare;
pub use choice::FabricChoice;
pub use endpoint::OfiEndpoint;
pub use fabric::Fabric;

/// Largest head of a frame, in bytes.
const MAX_HEAD: usize = 512;
/// Largest body of a frame, in bytes.
const MAX_BODY: usize = 64 << 10;
/// Length of the pieces of longer messages, in bytes: three fill a packet. Messages of one frame take the fewest steps
/// when nothing else is under way, and these, which leave no packet half empty, move most in a stream.
const THIRD: u32 = 21 << 10;
/// How long an adapter that is detached or dropped tries to send what was taken.
const LINGER: Duration = Duration::from_secs(5);
/// How long it waits for a peer to take one more packet behind those whose end it does not know.
const PATIENCE: Duration = Duration::from_millis(50);
/// How long a thread of its own tries that afterwards, while the process goes on.
const LINGER_ON: Duration = Duration::from_secs(20);

/// What the adapter knows of the other tasks, and to whom it tells what it finds.
pub trait Peers: Send + Sync {
    /// Returns the address of the endpoint of `task` for `context`.
    fn address(&self, task: TaskId, context: usize) -> Option<Vec<u8>>;

    /// Returns the secret of the job.
    fn secret(&self) -> [u8; SECRET_BYTES];

    /// Takes note that packets for `task` cannot be sent, and never could, and of the reason: a phrase with the addresses. The
    /// adapter goes on trying, and tells it again.
    fn unreachable(&self, task: TaskId, why: &str);
}

/// One context of a task, connected to tasks of other hosts.
pub struct OfiAdapter {
    // Ends before the endpoint (OA1).
    service: Option<Service>,
    shared: Arc<Shared>,
    sleeps: Arc<Notes>,
    me: Endpoint,
    caps: Caps,
    parts: Parts,
    process: ProcessMark,
    /// When it was first asked to detach.
    detaching: Option<Instant>,
}

struct Shared {
    state: Mutex<State>,
    signals: Arc<Signals>,
    losses: Arc<OfiLosses>,
}

impl OfiAdapter {
    /// Makes the adapter of one context. `bell` is the task's bell, which is shared with other adapters of the task; `losses`
    /// are those that are known without this adapter. A peer counts as unreachable if nothing could be sent to it for
    /// `limit` ([`Peers::unreachable`]).
    ///
    /// # Errors
    /// [`AdapterError::System`] if the system has no thread or descriptor.
    pub fn new(
        endpoint: OfiEndpoint,
        me: Endpoint,
        directory: Arc<dyn Peers>,
        bell: Arc<dyn Doorbell>,
        losses: Arc<dyn Losses>,
        limit: Duration,
    ) -> Result<Self, AdapterError> {
        let caps = endpoint.caps();
        let signals = Signals::new(endpoint.descriptor(), Arc::clone(&bell))?;
        let losses = Arc::new(OfiLosses::new(losses));
        let state = State::new(endpoint, me, directory, Arc::clone(&losses), limit);
        let shared =
            Arc::new(Shared { state: Mutex::new(state), signals: Arc::clone(&signals), losses });
        let service = Service::start(signals, Arc::clone(&shared))?;
        let (bell, sleeps) = NotedBell::over(bell);
        let parts = Parts {
            bell,
            losses: Arc::clone(&shared.losses) as _,
            area: None,
            peer_memory: None,
            wait_records: None,
            near: 0..0,
            neighbours: 1,
            hosts: None,
        };
        let (service, process) = (Some(service), ProcessMark::new());
        Ok(Self { service, shared, sleeps, me, caps, parts, process, detaching: None })
    }
}

// SAFETY: OA3.
#[expect(unsafe_code, reason = "an adapter promises its contract")]
unsafe impl Adapter for OfiAdapter {
    fn endpoint(&self) -> Endpoint {
        self.me
    }

    fn caps(&self, _: TaskId) -> Caps {
        self.caps
    }

    fn parts(&self) -> Parts {
        self.parts.clone()
    }

    fn try_send(
        &mut self,
        target: TaskId,
        head: &[u8],
        body: Piece<'_>,
        _: Ticket,
    ) -> Result<Post, AdapterError> {
        if self.shared.losses.is_lost(target) {
            return Ok(Post::Full);
        }
        let mut state = self.shared.state.lock();
        let post = state.send(target, head, &body);
        self.shared.signals.set_work(state.work());
        post
    }

    fn poll(
        &mut self,
        _: Option<TaskId>,
        budget: usize,
        events: &mut dyn Events,
    ) -> Result<usize, AdapterError> {
        let Shared { state, signals, .. } = &*self.shared;
        let mut state = state.lock();
        signals.polled(state.begin_poll());
        state.progress();
        state.send_waiting();
        let delivered = state.deliver(budget, events);
        state.forgets_refusals();
        signals.set_work(state.work());
        if self.sleeps.takes_announcement() && matches!(delivered, Ok(0)) {
            state.prepare_sleep(signals, &self.parts.bell);
        }
        delivered
    }

    fn register(
        &mut self,
        memory: Registered,
        _: Option<TaskId>,
    ) -> Result<Option<RemoteKey>, AdapterError> {
        let (memory, is_writable) = match memory {
            Registered::Constant(memory) => (memory, false),
            Registered::Writable(memory) if self.caps.puts => (memory.to_read(), true),
            Registered::Writable(_) => return Ok(None),
        };
        if self.caps.gets.is_none() || memory.is_empty() {
            return Ok(None);
        }
        let mut state = self.shared.state.lock();
        let place = state.expose(memory, is_writable);
        self.shared.signals.set_work(state.work());
        Ok(place.map(Place::to_key))
    }

    fn deregister(&mut self, key: RemoteKey) {
        if let Some(place) = Place::of_key(key) {
            self.shared.state.lock().hide(place);
        }
    }

    fn start(
        &mut self,
        target: TaskId,
        operation: OneSided<'_>,
        ticket: Ticket,
    ) -> Result<Transfer, AdapterError> {
        if self.shared.losses.is_lost(target) {
            return Err(AdapterError::PeerLost { task: target });
        }
        let (place, kind) = match operation {
            OneSided::Get { remote, offset, into } => {
                // SAFETY: OA3: the destination is written only until the event is reported, or no more after `detach`.
                let into = unsafe { into.hold() };
                (place_of(remote, offset), Kind::Read(into))
            }
            OneSided::Put { remote, offset, from } if self.caps.puts => {
                (place_of(remote, offset), Kind::write(from))
            }
            OneSided::Flush if self.caps.puts => (Some(Place::NONE), Kind::Flush),
            operation => return Err(operation.unsupported(target)),
        };
        let Some(place) = place else {
            let reason = io::ErrorKind::InvalidInput.into();
            return Err(AdapterError::AccessFailed { target, len: kind.len(), reason });
        };
        let mut state = self.shared.state.lock();
        state.access(target, place, kind, ticket)?;
        self.shared.signals.set_work(state.work());
        Ok(Transfer::Started)
    }

    fn detach(&mut self) -> bool {
        let begin = *self.detaching.get_or_insert_with(Instant::now);
        let past = begin.elapsed();
        self.shared.state.lock().detach(past > PATIENCE, past > LINGER)
    }

    fn stats(&self) -> Option<Stats> {
        Some(self.shared.state.lock().stats())
    }
}

/// The place that a task claims; `None` for what is none. What it claims may wrap, and then names none of its memory.
fn place_of(remote: &RemoteRegion, offset: u64) -> Option<Place> {
    let place = Place::of_key(remote.direct)?;
    Some(Place { start: place.start.wrapping_add(offset), ..place })
}

impl Drop for OfiAdapter {
    /// OA4. A fork has no such thread, and its connections are those of the parent: it leaves all as it is.
    fn drop(&mut self) {
        let service = self.service.take();
        if self.process.is_fork() {
            std::mem::forget((service, Arc::clone(&self.shared)));
            return;
        }
        drop(service);
        let begin = Instant::now();
        while self.shared.state.lock().finish(begin.elapsed() > PATIENCE) {
            if begin.elapsed() > LINGER {
                let shared = Arc::clone(&self.shared);
                return service::finish_later(LINGER_ON, move || shared.state.lock().finish(true));
            }
            std::thread::yield_now();
        }
    }
}

impl Served for Shared {
    fn serve(&self) -> bool {
        let mut state = self.state.lock();
        let wakes = state.serve();
        self.signals.set_work(state.work());
        wakes
    }
}

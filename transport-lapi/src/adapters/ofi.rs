//! The adapter of networks between hosts, by libfabric: reliable datagrams (FI_EP_RDM), messages only.
//!
//! Frames travel in packets. A frame to a peer to whom nothing is on its way goes at once, in a packet of its own. A frame
//! that finds a packet on its way, or one that was sent since the last poll, is added to a packet that waits: it goes when
//! the owner polls, when it is full, or when the thread of [`service`] finds it, after 50 to 100 µs. So a burst costs
//! two system calls instead of one for each frame, and no frame waits for a later call of the program.
//!
//! ```text
//!  library    loads libfabric      bindings   its structures      choice   provider and domain
//!  endpoint   its objects, safe    packet     the codec           peer     numbers, waiting packets
//!  service    progress while the program computes, and sleep
//! ```
//!
//! - OA1: the parts of an endpoint are used under one lock, by the owner's calls and by the service thread, which ends
//!   before the endpoint is closed. Nobody else waits for that lock, so it is free nearly always.
//! - OA2: a packet is delivered only if its token proves that its sender knows the secret of the job, and if its number
//!   is the next one of its origin. All others are counted and dropped. So frames arrive once and in order (A1), and a
//!   stranger can neither add a frame nor end the job.
//! - OA3: bodies are copied into packets inside the call, and no memory of the program is known to the provider (A9).
//! - OA4: what was taken is sent by the service thread if its owner does not poll (A4); if the adapter is dropped, by
//!   the dropping thread, for at most [`LINGER`].
//! - OA5: nothing more is taken for a lost task ([`Post::Full`], so that the caller learns of the loss), and what waits
//!   for it is dropped (A10). A peer whose connection fails counts as lost.

#[expect(non_camel_case_types, dead_code, reason = "generated from headers of C")]
mod bindings;
mod choice;
mod endpoint;
mod library;
mod packet;
mod peer;
mod service;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::adapter::{
    Adapter, AdapterError, Caps, Doorbell, Endpoint, Events, Frame, Losses, Parts, Post,
    SHORT_HEAD, Stats, TaskId, Ticket,
};
use crate::adapters::hosts::TableLosses;
use crate::adapters::hosts::table::{JobTable, SECRET_BYTES};
use crate::memory::body::Piece;
use crate::memory::region::{ForeignBytes, RecvPart};

use endpoint::{Completion, Offered, PACKET};
pub use endpoint::{Fabric, OfiEndpoint};
use packet::{HEADER, Header, frame_at, frame_bytes, frame_header};
use peer::{Peer, Waiting};
use service::{Served, Service, Signals};

/// Largest head of a frame, in bytes.
const MAX_HEAD: usize = 512;
/// Largest body of a frame: a whole number of cache lines, such that a frame with the largest head fits into a packet.
const MAX_BODY: usize = PACKET - 1024;
/// Most packets that wait for one peer.
const MOST_WAITING: usize = 4;
/// How long a dropped adapter tries to send what was taken.
const LINGER: Duration = Duration::from_secs(2);
/// Room for a packet that is injected.
const INJECTED: usize = 512;

/// What the adapter knows of the other tasks.
pub trait Peers: Send + Sync {
    /// Returns the address of the endpoint of `task` for `context`.
    fn address(&self, task: TaskId, context: usize) -> Option<Vec<u8>>;

    /// Returns the secret of the job.
    fn secret(&self) -> [u8; SECRET_BYTES];
}

/// One context of a task, connected to tasks of other hosts.
pub struct OfiAdapter {
    // Ends before the endpoint (OA1).
    service: Option<Service>,
    shared: Arc<Shared>,
    me: Endpoint,
    caps: Caps,
    parts: Parts,
}

struct Shared {
    state: Mutex<State>,
    signals: Arc<Signals>,
    /// Whether a thread has announced a sleep since the last poll.
    announced: AtomicBool,
    losses: Arc<OfiLosses>,
}

struct State {
    endpoint: OfiEndpoint,
    me: Endpoint,
    directory: Arc<dyn Peers>,
    secret: [u8; SECRET_BYTES],
    peers: FxHashMap<TaskId, Peer>,
    /// Polls of the owner.
    polls: u64,
    /// Peers for whom packets wait.
    listed: Vec<TaskId>,
    /// For each send buffer that the provider has, the peer.
    targets: FxHashMap<usize, TaskId>,
    /// Packets that have come, and were not delivered whole.
    inbox: VecDeque<Arrived>,
    /// Receive buffers that the provider had no room for.
    unposted: Vec<usize>,
    /// Whether a frame was refused for lack of room.
    has_refused: bool,
    losses: Arc<OfiLosses>,
    losses_seen: usize,
    stats: Stats,
    /// Packets that were dropped (OA2).
    dropped: u64,
}

/// A packet in a receive buffer.
struct Arrived {
    buffer: usize,
    len: usize,
    origin: TaskId,
    /// Where the next frame begins.
    at: usize,
}

impl OfiAdapter {
    /// Makes the adapter of one context. `bell` is the task's bell, which is shared with other adapters of the task; `losses`
    /// are those that are known without this adapter.
    ///
    /// # Errors
    /// [`AdapterError::System`] if the system has no thread or descriptor.
    pub fn new(
        endpoint: OfiEndpoint,
        me: Endpoint,
        directory: Arc<dyn Peers>,
        bell: Arc<dyn Doorbell>,
        losses: Arc<dyn Losses>,
    ) -> Result<Self, AdapterError> {
        let caps = Caps {
            name: endpoint.provider(),
            max_head: MAX_HEAD,
            max_inline: 1024,
            max_body: MAX_BODY,
            copies_bodies: true,
            gets: None,
            puts: false,
            atomics: false,
        };
        let signals = Signals::new(endpoint.descriptor(), Arc::clone(&bell))?;
        let failed = Mutex::default();
        let losses = Arc::new(OfiLosses { known: losses, failed, count: AtomicUsize::new(0) });
        let state = State {
            endpoint,
            me,
            secret: directory.secret(),
            directory,
            peers: FxHashMap::default(),
            polls: 0,
            listed: Vec::new(),
            targets: FxHashMap::default(),
            inbox: VecDeque::new(),
            unposted: Vec::new(),
            has_refused: false,
            losses: Arc::clone(&losses),
            losses_seen: 0,
            stats: Stats::default(),
            dropped: 0,
        };
        let shared = Arc::new(Shared {
            state: Mutex::new(state),
            signals: Arc::clone(&signals),
            announced: AtomicBool::new(false),
            losses,
        });
        let service = Service::start(signals, Arc::clone(&shared))?;
        let parts = Parts {
            bell: Arc::new(OfiBell { bell, shared: Arc::clone(&shared) }),
            losses: Arc::clone(&shared.losses) as _,
            area: None,
            wait_records: None,
            neighbours: 1,
        };
        Ok(Self { service: Some(service), shared, me, caps, parts })
    }

    /// Returns how many packets were dropped because they were not of this job, or not the next one of their origin.
    pub fn dropped_packets(&self) -> u64 {
        self.shared.state.lock().dropped
    }
}

/// Makes the adapter that reaches the tasks of other hosts, for the task whose adapter on its own host is `local`.
///
/// # Errors
/// As [`OfiAdapter::new`]; [`AdapterError::BadSegment`] if `table` does not know the task.
pub fn between_hosts(
    endpoint: OfiEndpoint,
    local: &impl Adapter,
    table: &Arc<JobTable>,
) -> Result<OfiAdapter, AdapterError> {
    let Endpoint { task: place, context, .. } = local.endpoint();
    let task = table.local_tasks().get(place as usize).copied();
    let what = || format!("its job table has no rank {place} of this host");
    let task = task.ok_or_else(|| AdapterError::BadSegment { what: what() })?;
    let me = Endpoint { task, num_tasks: table.num_tasks(), context };
    let losses = Arc::new(TableLosses(Arc::clone(table)));
    OfiAdapter::new(endpoint, me, Arc::clone(table) as _, local.parts().bell, losses)
}

impl Peers for JobTable {
    fn address(&self, task: TaskId, context: usize) -> Option<Vec<u8>> {
        Self::address(self, task, context)
    }

    fn secret(&self) -> [u8; SECRET_BYTES] {
        Self::secret(self)
    }
}

// SAFETY: OA3: no memory of the program is known to the provider, nothing is registered, and there are no one-sided
// operations.
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
        let busy = state.is_busy();
        if busy {
            self.shared.signals.set_busy(true);
        }
        post
    }

    fn poll(
        &mut self,
        _: Option<TaskId>,
        budget: usize,
        events: &mut dyn Events,
    ) -> Result<usize, AdapterError> {
        let Shared { state, signals, announced, .. } = &*self.shared;
        let mut state = state.lock();
        state.polls = state.polls.wrapping_add(1);
        signals.polled(state.polls);
        state.progress();
        state.send_waiting();
        let delivered = state.deliver(budget, events);
        signals.set_busy(state.is_busy());
        if announced.load(Ordering::Relaxed) {
            announced.store(false, Ordering::Relaxed);
            if matches!(delivered, Ok(0)) {
                state.prepare_sleep(signals, &self.parts.bell);
            }
        }
        delivered
    }

    /// There are no operations on memory of the program.
    fn detach(&mut self) -> bool {
        true
    }

    fn stats(&self) -> Option<Stats> {
        Some(self.shared.state.lock().stats)
    }
}

impl Drop for OfiAdapter {
    /// OA4.
    fn drop(&mut self) {
        self.service = None;
        let mut state = self.shared.state.lock();
        let until = Instant::now() + LINGER;
        while state.finish() && Instant::now() < until {
            std::thread::yield_now();
        }
    }
}

impl Served for Shared {
    fn serve(&self) -> bool {
        let mut state = self.state.lock();
        state.progress();
        state.send_waiting();
        let has_room = state.has_refused && state.has_room();
        if has_room {
            state.has_refused = false;
        }
        self.signals.set_busy(state.is_busy());
        has_room || !state.inbox.is_empty()
    }
}

impl State {
    fn peer(&mut self, task: TaskId) -> &mut Peer {
        let Endpoint { task: own, context, .. } = self.me;
        let secret = &self.secret;
        self.peers.entry(task).or_insert_with(|| Peer::new(secret, own, task, context))
    }

    /// The provider's number of the address of `target`.
    fn address(&mut self, target: TaskId) -> Result<u64, AdapterError> {
        if let Some(address) = self.peer(target).address {
            return Ok(address);
        }
        let context = self.me.context;
        let told = self.directory.address(target, context).unwrap_or_default();
        let bad = AdapterError::BadAddress { task: target, context, len: told.len() };
        let address = self.endpoint.insert(&told).ok_or(bad)?;
        self.peer(target).address = Some(address);
        Ok(address)
    }

    fn send(
        &mut self,
        target: TaskId,
        head: &[u8],
        body: &Piece<'_>,
    ) -> Result<Post, AdapterError> {
        let (to, own, polls) = (self.address(target)?, self.me.task, self.polls);
        let len = frame_bytes(head.len(), body.len());
        let at_once = self.peer(target).is_idle(polls);
        if at_once && HEADER + len <= self.endpoint.inject_size().min(INJECTED) {
            let mut bytes = [0; INJECTED];
            let packet = &mut bytes[..HEADER + len];
            let header = self.peer(target).next_header(own);
            packet[..HEADER].copy_from_slice(&header.encode());
            put_frame(&mut packet[HEADER..], head, body);
            let offered = self.endpoint.inject(to, packet);
            let peer = self.peer(target);
            if offered == Offered::Taken {
                (peer.sent_at, peer.injected) = (Some(polls), true);
                self.stats.frames_sent += 1;
                return Ok(Post::Taken);
            }
            peer.take_back_header();
        }
        let fits = |waiting: &Waiting| waiting.len + len <= PACKET;
        if !self.peer(target).waiting.back().is_some_and(fits) {
            self.send_to(target);
            if !self.begin_packet(target) {
                self.progress();
                if !self.begin_packet(target) {
                    self.has_refused = true;
                    return Ok(Post::Full);
                }
            }
        }
        let peer = self.peers.get_mut(&target).expect("it was made");
        let packet = peer.waiting.back_mut().expect("a packet was begun");
        let place = packet.len..packet.len + len;
        packet.len = place.end;
        put_frame(&mut self.endpoint.buffer(packet.buffer)[place], head, body);
        self.stats.frames_sent += 1;
        if at_once {
            self.send_to(target);
        }
        self.list(target);
        Ok(Post::Taken)
    }

    /// Begins a packet for `target`, if there is room.
    fn begin_packet(&mut self, target: TaskId) -> bool {
        let own = self.me.task;
        if self.peer(target).waiting.len() >= MOST_WAITING {
            return false;
        }
        let Some(buffer) = self.endpoint.take_buffer() else { return false };
        let header = self.peer(target).next_header(own);
        self.endpoint.buffer(buffer)[..HEADER].copy_from_slice(&header.encode());
        self.peer(target).waiting.push_back(Waiting { buffer, len: HEADER });
        true
    }

    /// Offers the provider the packets that wait for `target`, in order, as long as it takes them.
    fn send_to(&mut self, target: TaskId) {
        let Self { endpoint, peers, polls, targets, .. } = self;
        let Some(peer) = peers.get_mut(&target) else { return };
        let Some(to) = peer.address else { return };
        while let Some(&Waiting { buffer, len }) = peer.waiting.front() {
            let is_short = len <= endpoint.inject_size();
            let offered = match is_short {
                true => endpoint.inject_buffer(to, buffer, len),
                false => endpoint.send(to, buffer, len),
            };
            if offered != Offered::Taken {
                return;
            }
            peer.waiting.pop_front();
            peer.sent_at = Some(*polls);
            if is_short {
                endpoint.give_back(buffer);
                peer.injected = true;
            } else {
                targets.insert(buffer, target);
                peer.under_way += 1;
                peer.injected = false;
            }
        }
    }

    /// Notes that packets wait for `target`, if they do.
    fn list(&mut self, target: TaskId) {
        let peer = self.peer(target);
        if !peer.waiting.is_empty() && !peer.is_listed {
            peer.is_listed = true;
            self.listed.push(target);
        }
    }

    /// Offers the provider all packets that wait, and drops those for lost tasks (A10).
    fn send_waiting(&mut self) {
        let losses = self.losses.count();
        if losses != self.losses_seen {
            self.losses_seen = losses;
            self.drop_for_lost();
        }
        let mut listed = std::mem::take(&mut self.listed);
        listed.retain(|&target| {
            self.send_to(target);
            let peer = self.peer(target);
            peer.is_listed = !peer.waiting.is_empty();
            peer.is_listed
        });
        self.listed = listed;
    }

    #[cold]
    fn drop_for_lost(&mut self) {
        let Self { peers, endpoint, losses, .. } = self;
        for (task, peer) in peers.iter_mut().filter(|(task, _)| losses.is_lost(**task)) {
            debug_assert!(losses.is_lost(*task));
            for Waiting { buffer, .. } in peer.waiting.drain(..) {
                endpoint.give_back(buffer);
            }
            peer.injected = false;
        }
    }

    /// Takes what the provider has completed.
    fn progress(&mut self) {
        let Self { endpoint, unposted, .. } = self;
        unposted.retain(|&buffer| !endpoint.release(buffer));
        let mut some = true;
        while some {
            let Self {
                endpoint, me, secret, peers, targets, inbox, unposted, losses, dropped, ..
            } = self;
            let count = endpoint.complete(|endpoint, completion| match completion {
                Completion::Sent(buffer) | Completion::NotSent(buffer) => {
                    endpoint.give_back(buffer);
                    let target = targets.remove(&buffer);
                    if let Some(peer) = target.and_then(|target| peers.get_mut(&target)) {
                        peer.under_way -= 1;
                    }
                    if let (Completion::NotSent(_), Some(target)) = (completion, target) {
                        losses.fail(target);
                    }
                }
                Completion::Received(buffer, len) => {
                    let header = Header::decode(endpoint.packet(buffer, len));
                    let origin = header.filter(|header| accepts(*me, secret, peers, *header));
                    match origin {
                        Some(Header { origin, .. }) => {
                            inbox.push_back(Arrived { buffer, len, origin, at: HEADER });
                        }
                        None => {
                            *dropped += 1;
                            if !endpoint.release(buffer) {
                                unposted.push(buffer);
                            }
                        }
                    }
                }
                Completion::NotReceived => {}
            });
            some = count > 0;
        }
    }

    /// Delivers frames of packets that have come.
    fn deliver(&mut self, budget: usize, events: &mut dyn Events) -> Result<usize, AdapterError> {
        let mut delivered = 0;
        while delivered < budget {
            let Some(arrived) = self.inbox.front_mut() else { break };
            let packet = self.endpoint.packet(arrived.buffer, arrived.len);
            if let Some((head, body, next)) = frame_at(packet, arrived.at) {
                let body = ForeignBytes::from_slice(body);
                match <[u8; SHORT_HEAD]>::try_from(head) {
                    Ok(short) => events.short(arrived.origin, short, body),
                    Err(_) => events.frame(Frame { origin: arrived.origin, head, body }),
                }
                arrived.at = next;
                delivered += 1;
                if next < arrived.len {
                    continue;
                }
            }
            let Arrived { buffer, len, origin, at } = *arrived;
            self.inbox.pop_front();
            if !self.endpoint.release(buffer) {
                self.unposted.push(buffer);
            }
            if at != len {
                let what = "a packet holds something that is no frame";
                return Err(AdapterError::Corrupt { origin, what });
            }
        }
        self.stats.frames_received += delivered as u64;
        Ok(delivered)
    }

    /// Whether the service thread has something to do if the owner does not poll.
    fn is_busy(&self) -> bool {
        !self.listed.is_empty() || !self.targets.is_empty() || self.has_refused
    }

    fn has_room(&self) -> bool {
        self.endpoint.free_buffers() > 0
            && self.listed.iter().all(|task| self.peers[task].waiting.len() < MOST_WAITING)
    }

    /// Prepares the sleep of a thread that has announced it and found nothing (SV2 of [`service`]).
    #[cold]
    fn prepare_sleep(&mut self, signals: &Signals, bell: &Arc<dyn Doorbell>) {
        for _ in 0..3 {
            if self.endpoint.may_sleep() {
                if !signals.watch() {
                    // Nothing tells of arrivals, so the thread looks for them.
                    signals.set_busy(true);
                }
                return;
            }
            self.progress();
            if !self.inbox.is_empty() {
                break;
            }
        }
        // There is something to do: the sleep ends at once.
        bell.ring();
    }

    /// Goes on with what is left when the adapter is dropped. Returns whether something is.
    fn finish(&mut self) -> bool {
        self.progress();
        while let Some(Arrived { buffer, .. }) = self.inbox.pop_front() {
            if !self.endpoint.release(buffer) {
                self.unposted.push(buffer);
            }
        }
        self.send_waiting();
        // Behind injected packets goes one whose completion tells that they have left.
        let unsure: Vec<TaskId> = (self.peers.iter())
            .filter(|(_, peer)| peer.injected && peer.waiting.is_empty())
            .map(|(task, _)| *task)
            .collect();
        for target in unsure {
            self.send_last(target);
        }
        self.peers.iter().any(|(task, peer)| {
            let left = peer.under_way > 0 || peer.injected || !peer.waiting.is_empty();
            left && !self.losses.is_lost(*task)
        })
    }

    /// Sends an empty packet that is not injected.
    fn send_last(&mut self, target: TaskId) {
        let own = self.me.task;
        let Some(buffer) = self.endpoint.take_buffer() else { return };
        let header = self.peer(target).next_header(own);
        self.endpoint.buffer(buffer)[..HEADER].copy_from_slice(&header.encode());
        let to = self.peer(target).address;
        let offered = to.map(|to| self.endpoint.send(to, buffer, HEADER));
        if offered == Some(Offered::Taken) {
            self.targets.insert(buffer, target);
            let peer = self.peer(target);
            (peer.under_way, peer.injected) = (peer.under_way + 1, false);
        } else {
            self.peer(target).take_back_header();
            self.endpoint.give_back(buffer);
        }
    }
}

/// Whether a packet with this header is of this job, and the next one of its origin (OA2). A peer is remembered only
/// once it has proved itself.
fn accepts(
    me: Endpoint,
    secret: &[u8; SECRET_BYTES],
    peers: &mut FxHashMap<TaskId, Peer>,
    header: Header,
) -> bool {
    let Endpoint { task: own, num_tasks, context } = me;
    let origin = header.origin;
    if let Some(peer) = peers.get_mut(&origin) {
        return peer.accepts(header);
    }
    if origin == own || origin as usize >= num_tasks {
        return false;
    }
    let mut peer = Peer::new(secret, own, origin, context);
    let accepted = peer.accepts(header);
    if accepted {
        peers.insert(origin, peer);
    }
    accepted
}

/// Writes a frame, which fills `place`.
fn put_frame(place: &mut [u8], head: &[u8], body: &Piece<'_>) {
    let (header, rest) = place.split_at_mut(packet::FRAME_HEADER);
    header.copy_from_slice(&frame_header(head.len(), body.len()));
    let (start, rest) = rest.split_at_mut(head.len());
    start.copy_from_slice(head);
    body.copy_to(RecvPart::of_slice(rest));
}

/// The bell of the task, which tells the adapter of announcements.
struct OfiBell {
    bell: Arc<dyn Doorbell>,
    shared: Arc<Shared>,
}

impl Doorbell for OfiBell {
    fn announce(&self) -> u32 {
        let ticket = self.bell.announce();
        // Relaxed: the thread that polls for its own sleep has stored it itself.
        self.shared.announced.store(true, Ordering::Relaxed);
        ticket
    }

    fn sleep(&self, ticket: u32, timeout: Option<Duration>) -> bool {
        self.bell.sleep(ticket, timeout)
    }

    fn retract(&self) {
        self.bell.retract();
    }

    fn ring(&self) {
        self.bell.ring();
    }

    fn has_woken(&self) -> bool {
        self.bell.has_woken()
    }
}

/// The losses that others know, and the peers whose connections have failed.
struct OfiLosses {
    known: Arc<dyn Losses>,
    failed: Mutex<FxHashSet<TaskId>>,
    count: AtomicUsize,
}

impl OfiLosses {
    fn fail(&self, task: TaskId) {
        if self.failed.lock().insert(task) {
            self.count.fetch_add(1, Ordering::Release); // SYNC: failed connections
        }
    }
}

impl Losses for OfiLosses {
    fn count(&self) -> usize {
        self.known.count() + self.count.load(Ordering::Acquire) // SYNC: failed connections
    }

    fn is_lost(&self, task: TaskId) -> bool {
        let has_failed = self.count.load(Ordering::Acquire) > 0; // SYNC: failed connections
        (has_failed && self.failed.lock().contains(&task)) || self.known.is_lost(task)
    }

    fn declare(&self) {
        self.known.declare();
    }
}

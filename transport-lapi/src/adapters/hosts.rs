//! The adapter of a job on several hosts: shared memory between tasks of one host, a network between all others.
//!
//! Each host has a segment, in which its tasks are numbered by their *places*; the [`table`] says which task has which
//! place. The network's adapter numbers tasks as the job does. Both share one bell.
//!
//! - HA1: a task of this host is reached through the segment only, and any other one through the network only, so the
//!   order of frames between two tasks is that of one adapter (A1).
//! - HA2: numbers of the local adapter do not leave this file: origins of frames and tasks of errors are replaced.
//! - HA3: a poll for all origins looks into the segment each time, and first into the network if the last look there is
//!   `NETWORK_PAUSE` ago, has found something, or if a thread is about to sleep, has slept, or a task was lost. So
//!   neither starves the other, and a wait for a task of this host costs little more than it does in a job of one host.
//!   A task that is alone on its host looks there each time.
//! - HA4: what is published of the network tells whether any of its events is still to come, for launchers that look for
//!   deadlocks. The thread that sends or polls counts an offer before it makes it; as sent, when the network has taken it,
//!   a frame, a body that is still read, or an operation; and as received each event, when it was delivered: a frame or an
//!   end. It does so under the lock of the context, so before it publishes a wait. What was refused is offered again in
//!   each look for messages.

#![expect(unsafe_code, reason = "an adapter promises its contract")]

mod memory;
mod near;
pub mod network;
pub mod table;

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::adapter::{
    Adapter, AdapterError, Advance, Begun, Caps, CooperativeCopy, Endpoint, Events, Frame, Hosts,
    Losses, OneSided, Parts, Post, Registered, SHORT_HEAD, Stats, TaskId, Ticket, Transfer,
};
use crate::adapters::local::{LocalAdapter, Reach, Traffic};
use crate::adapters::noted_bell::{NotedBell, Notes};
use crate::memory::body::Piece;
use crate::memory::region::{ForeignBytes, RecvRegion, RemoteKey, RemoteRegion, SendRegion};

use near::HostMemory;
use table::JobTable;

/// Time between two looks into the network that find nothing. A look is a system call of about half a microsecond.
const NETWORK_PAUSE: Duration = Duration::from_micros(2);

/// One context of a task of a job on several hosts.
pub struct HostsAdapter {
    me: Endpoint,
    local: LocalAdapter<Box<dyn Reach>>,
    network: Box<dyn Adapter>,
    table: Arc<JobTable>,
    /// The tasks of this host, by place.
    here: Box<[TaskId]>,
    /// When the network was looked at last, if it had nothing.
    looked: Option<Instant>,
    traffic: Traffic,
    losses: Arc<AllLosses>,
    losses_seen: usize,
    bell: Arc<NotedBell>,
    sleeps: Arc<Notes>,
}

impl HostsAdapter {
    /// Joins the adapter of the tasks of this host with that of a network. The network's bell is the local one, or wraps
    /// it.
    ///
    /// # Errors
    /// [`AdapterError::BadSegment`] if `table` does not describe the tasks of `local`.
    pub fn new<R: Reach>(
        local: LocalAdapter<R>,
        network: impl Adapter,
        table: Arc<JobTable>,
    ) -> Result<Self, AdapterError> {
        let Endpoint { task: place, num_tasks, context } = local.endpoint();
        let here: Box<[TaskId]> = table.local_tasks().into();
        let me = here.get(place as usize).filter(|_| here.len() == num_tasks);
        let me = *me.ok_or_else(|| AdapterError::BadSegment {
            what: format!("it is for {num_tasks} ranks, and its job table for {}", here.len()),
        })?;
        let Parts { bell, losses: elsewhere, .. } = network.parts();
        let (bell, sleeps) = NotedBell::over(bell);
        let of_losses = Arc::clone(&table);
        let losses = AllLosses { here: local.parts().losses, elsewhere, table: of_losses };
        Ok(Self {
            me: Endpoint { task: me, num_tasks: table.num_tasks(), context },
            local: local.into_any(),
            network: Box::new(network),
            table,
            here,
            looked: None,
            traffic: Traffic::default(),
            losses: Arc::new(losses),
            losses_seen: 0,
            bell,
            sleeps,
        })
    }

    /// [`Adapter::poll`] for events of one type. The error is in a box, so that the result is in registers.
    #[inline]
    pub(crate) fn poll_into<E: Events + ?Sized>(
        &mut self,
        origin: Option<TaskId>,
        budget: usize,
        events: &mut E,
    ) -> Result<usize, Box<AdapterError>> {
        match origin.map(|origin| self.table.local_place(origin)) {
            Some(Some(place)) => self.poll_here(Some(place), budget, events),
            Some(None) => self.poll_network(origin, budget, events),
            None => {
                let found = match self.is_network_due() {
                    true => self.poll_network(None, budget, events)?,
                    false => 0,
                };
                if found >= budget {
                    return Ok(found);
                }
                Ok(found + self.poll_here(None, budget - found, events)?)
            }
        }
    }

    #[inline]
    fn poll_here<E: Events + ?Sized>(
        &mut self,
        place: Option<TaskId>,
        budget: usize,
        events: &mut E,
    ) -> Result<usize, Box<AdapterError>> {
        let mut renumbered = Renumbered { events, here: &self.here };
        let polled = self.local.poll_into(place, budget, &mut renumbered);
        polled.map_err(|error| Box::new(self.globally(*error)))
    }

    #[cold]
    fn poll_network<E: Events + ?Sized>(
        &mut self,
        origin: Option<TaskId>,
        budget: usize,
        events: &mut E,
    ) -> Result<usize, Box<AdapterError>> {
        let mut counted = Counted { events, ended: 0 };
        let found = self.network.poll(origin, budget, &mut counted);
        if counted.ended > 0 {
            self.traffic.received = self.traffic.received.wrapping_add(counted.ended);
            self.local.count(self.traffic);
        }
        let found = found?;
        if self.here.len() > 1 {
            self.looked = (found == 0).then(Instant::now);
        }
        Ok(found)
    }

    /// Offers a frame to the network (HA4).
    fn send_over_network(
        &mut self,
        target: TaskId,
        head: &[u8],
        body: Piece<'_>,
        ticket: Ticket,
    ) -> Result<Post, AdapterError> {
        self.count_offer();
        let post = self.network.try_send(target, head, body, ticket);
        match post {
            Ok(Post::Taken) => self.count_sent(1),
            Ok(Post::InFlight) => self.count_sent(2),
            Ok(Post::Full) | Err(_) => {}
        }
        post
    }

    fn count_offer(&mut self) {
        self.traffic.offered = self.traffic.offered.wrapping_add(1);
        self.local.count(self.traffic);
    }

    /// Counts what will cause so many events.
    fn count_sent(&mut self, events: u64) {
        self.traffic.sent = self.traffic.sent.wrapping_add(events);
        self.local.count(self.traffic);
    }

    /// Whether a poll of all origins looks into the network (HA3).
    #[inline]
    fn is_network_due(&mut self) -> bool {
        let losses = self.losses.count();
        let is_news = std::mem::replace(&mut self.losses_seen, losses) != losses;
        let is_over = |looked: Instant| looked.elapsed() >= NETWORK_PAUSE;
        let is_due = self.here.len() == 1 || self.looked.is_none_or(is_over);
        // All are asked, so that none is left noted.
        is_due | is_news | self.sleeps.takes_announcement() | self.sleeps.takes_sleep()
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
        match self.table.local_place(target) {
            Some(place) => self.local.takes(place, head, body),
            None => {
                let post = self.send_over_network(target, head, Piece::Span(body), Ticket(0));
                matches!(post, Ok(Post::Taken))
            }
        }
    }

    /// Ends registrations.
    fn end(&mut self, Keys { here, there }: Keys) {
        if let Some(key) = here {
            self.local.deregister(key);
        }
        if let Some(key) = there {
            self.network.deregister(key);
        }
    }

    /// An error of the local adapter, with the numbers of the job (HA2).
    #[cold]
    fn globally(&self, error: AdapterError) -> AdapterError {
        globally(&self.here, error)
    }
}

/// These tasks, if their numbers follow one another; none otherwise.
fn consecutive(tasks: &[TaskId]) -> Range<TaskId> {
    let follow = tasks.windows(2).all(|pair| pair[0].checked_add(1) == Some(pair[1]));
    match tasks.first() {
        Some(first) if follow => *first..first + tasks.len() as TaskId,
        _ => 0..0,
    }
}

/// An error of the adapter of a host, whose tasks `here` lists by place, with the numbers of the job (HA2).
pub(crate) fn globally(here: &[TaskId], error: AdapterError) -> AdapterError {
    let global = |place: TaskId| here.get(place as usize).copied().unwrap_or(place);
    match error {
        AdapterError::AlreadyAttached { task, pid } => {
            AdapterError::AlreadyAttached { task: global(task), pid }
        }
        AdapterError::OtherClient { task, client, first, expected } => {
            let (task, first) = (global(task), global(first));
            AdapterError::OtherClient { task, client, first, expected }
        }
        AdapterError::PeerLost { task } => AdapterError::PeerLost { task: global(task) },
        AdapterError::Corrupt { origin, what } => {
            AdapterError::Corrupt { origin: global(origin), what }
        }
        AdapterError::AccessFailed { target, len, reason } => {
            AdapterError::AccessFailed { target: global(target), len, reason }
        }
        other => other,
    }
}

// SAFETY: A7 to A9 and A11: each operation is one of the adapter that reaches its target (HA1), which keeps them, and
// memory is registered with each adapter by its rules. `detach` asks both.
unsafe impl Adapter for HostsAdapter {
    fn endpoint(&self) -> Endpoint {
        self.me
    }

    fn caps(&self, target: TaskId) -> Caps {
        match self.table.local_place(target) {
            Some(place) => self.local.caps(place),
            // Tasks of one host carry out atomic operations in another way (A13).
            None => Caps { atomics: false, ..self.network.caps(target) },
        }
    }

    fn parts(&self) -> Parts {
        let local = self.local.parts();
        Parts {
            bell: Arc::clone(&self.bell) as _,
            losses: Arc::clone(&self.losses) as _,
            // It would have to be of all tasks.
            area: None,
            peer_memory: local.peer_memory.map(|inner| {
                let (table, here) = (Arc::clone(&self.table), self.here.clone());
                Arc::new(HostMemory { inner, table, here }) as _
            }),
            wait_records: local.wait_records,
            near: consecutive(&self.here),
            neighbours: local.neighbours,
            hosts: Some(Arc::clone(&self.table) as _),
        }
    }

    #[inline]
    fn try_send(
        &mut self,
        target: TaskId,
        head: &[u8],
        body: Piece<'_>,
        ticket: Ticket,
    ) -> Result<Post, AdapterError> {
        match self.table.local_place(target) {
            Some(place) => {
                let post = self.local.try_send(place, head, body, ticket);
                post.map_err(|error| self.globally(error))
            }
            None => self.send_over_network(target, head, body, ticket),
        }
    }

    fn poll(
        &mut self,
        origin: Option<TaskId>,
        budget: usize,
        events: &mut dyn Events,
    ) -> Result<usize, AdapterError> {
        self.poll_into(origin, budget, events).map_err(|error| *error)
    }

    #[inline]
    fn while_waiting(&mut self) {
        self.local.while_waiting();
    }

    /// With the adapters that reach its users. Memory that is written is registered with the network only if that writes
    /// it, and then with both or none: so whoever has a key, whose parts only the adapters know, can use it.
    fn register(
        &mut self,
        memory: Registered,
        user: Option<TaskId>,
    ) -> Result<Option<RemoteKey>, AdapterError> {
        let place = user.map(|user| self.table.local_place(user));
        let for_network = match (&memory, place) {
            (_, Some(Some(_))) => None,
            (Registered::Constant(memory), _) => Some(Registered::Constant(*memory)),
            // SAFETY: RG1 of the registry: each adapter writes what its tasks put, until the one registration ends.
            (Registered::Writable(memory), _) => (self.network.caps(self.me.task).puts)
                .then(|| Registered::Writable(unsafe { memory.second_hold() })),
        };
        // What one of them refuses is accessed over frames.
        let here = match place {
            Some(None) => None,
            _ => self.local.register(memory, place.flatten()).ok().flatten(),
        };
        let is_needed = matches!(&for_network, Some(Registered::Writable(_)));
        let register = |memory| self.network.register(memory, user).ok();
        let there = for_network.and_then(register).flatten();
        let keys = Keys { here, there };
        let joined = keys.joined().filter(|_| !is_needed || keys.there.is_some());
        if joined.is_none() {
            self.end(keys);
        }
        Ok(joined)
    }

    fn deregister(&mut self, key: RemoteKey) {
        self.end(Keys::of(key));
    }

    fn start(
        &mut self,
        target: TaskId,
        operation: OneSided<'_>,
        ticket: Ticket,
    ) -> Result<Transfer, AdapterError> {
        let place = self.table.local_place(target);
        let remote = operation.remote().map(|remote| Keys::divide(remote, place.is_some()));
        let operation = match &remote {
            Some(remote) => operation.of(remote),
            None => operation,
        };
        match place {
            Some(place) => {
                let started = self.local.start(place, operation, ticket);
                started.map_err(|error| self.globally(error))
            }
            None => {
                self.count_offer();
                let started = self.network.start(target, operation, ticket);
                if matches!(started, Ok(Transfer::Started)) {
                    self.count_sent(1);
                }
                started
            }
        }
    }

    fn cooperative_copy(&mut self) -> Option<&mut dyn CooperativeCopy> {
        if self.local.cooperative_copy().is_some() { Some(self) } else { None }
    }

    fn detach(&mut self) -> bool {
        // Both, even if the first is not over.
        self.local.detach() & self.network.detach()
    }

    fn stats(&self) -> Option<Stats> {
        let (here, elsewhere) = (self.local.stats()?, self.network.stats().unwrap_or_default());
        Some(Stats {
            frames_sent: here.frames_sent + elsewhere.frames_sent,
            frames_received: here.frames_received + elsewhere.frames_received,
            dropped: elsewhere.dropped,
        })
    }
}

impl CooperativeCopy for HostsAdapter {
    fn begin(
        &mut self,
        target: TaskId,
        remote: RemoteRegion,
        offset: u64,
        into: RecvRegion,
    ) -> Begun {
        match self.table.local_place(target) {
            Some(place) => self.local.begin(place, Keys::divide(&remote, true), offset, into),
            None => Begun::Alone(into),
        }
    }

    fn advance(&mut self, target: TaskId) -> Result<Advance, AdapterError> {
        let place =
            self.table.local_place(target).ok_or(AdapterError::PeerLost { task: target })?;
        self.local.advance(place).map_err(|error| self.globally(error))
    }

    fn end(&mut self, target: TaskId) -> bool {
        self.table.local_place(target).is_none_or(|place| self.local.end(place))
    }

    fn assist(&mut self, origin: TaskId, number: u32, from: SendRegion) -> bool {
        let place = self.table.local_place(origin);
        place.is_some_and(|place| self.local.assist(place, number, from))
    }
}

/// The keys of memory that both adapters may have registered, which travel as one: the length of the first, and both.
struct Keys {
    here: Option<RemoteKey>,
    there: Option<RemoteKey>,
}

impl Keys {
    /// `None` if the memory is not registered, or the keys are too long.
    fn joined(&self) -> Option<RemoteKey> {
        let [here, there] =
            [&self.here, &self.there].map(|key| key.as_ref().map_or(&[][..], RemoteKey::as_bytes));
        let middle = 1 + here.len();
        let mut joined = [0; RemoteKey::MOST];
        joined[0] = here.len() as u8;
        joined.get_mut(1..middle)?.copy_from_slice(here);
        joined.get_mut(middle..middle + there.len())?.copy_from_slice(there);
        let joined = &joined[..middle + there.len()];
        (joined.len() > 1).then(|| RemoteKey::new(joined))
    }

    /// The keys that a task claims.
    fn of(key: RemoteKey) -> Self {
        let divided = key.as_bytes().split_first();
        let divided = divided.and_then(|(len, keys)| keys.split_at_checked((*len).into()));
        let (here, there) = divided.unwrap_or_default();
        let one = |bytes: &[u8]| Some(RemoteKey::new(bytes)).filter(|key| !key.is_none());
        Self { here: one(here), there: one(there) }
    }

    /// A task's memory as the local adapter knows it, or that of the network.
    fn divide(remote: &RemoteRegion, is_here: bool) -> RemoteRegion {
        let Self { here, there } = Self::of(remote.direct);
        let direct = if is_here { here } else { there }.unwrap_or(RemoteKey::NONE);
        RemoteRegion { direct, ..*remote }
    }
}

/// Passes on the events of the local adapter with the numbers of the job (HA2).
struct Renumbered<'a, E: ?Sized> {
    events: &'a mut E,
    here: &'a [TaskId],
}

impl<E: Events + ?Sized> Events for Renumbered<'_, E> {
    #[inline]
    fn frame(&mut self, Frame { origin, head, body }: Frame<'_>) {
        self.events.frame(Frame { origin: self.here[origin as usize], head, body });
    }

    #[inline]
    fn short(&mut self, origin: TaskId, head: [u8; SHORT_HEAD], body: ForeignBytes<'_>) {
        self.events.short(self.here[origin as usize], head, body);
    }

    fn send_complete(&mut self, ticket: Ticket) {
        self.events.send_complete(ticket);
    }

    fn got(&mut self, ticket: Ticket, outcome: Result<(), AdapterError>) {
        self.events.got(ticket, outcome);
    }

    fn ended(&mut self, ticket: Ticket, outcome: Result<i64, AdapterError>) {
        self.events.ended(ticket, outcome);
    }
}

/// Events of any type for the network. What has ended by them is counted (HA4).
struct Counted<'a, E: ?Sized> {
    events: &'a mut E,
    ended: u64,
}

impl<E: Events + ?Sized> Events for Counted<'_, E> {
    fn frame(&mut self, frame: Frame<'_>) {
        self.events.frame(frame);
        self.ended += 1;
    }

    fn short(&mut self, origin: TaskId, head: [u8; SHORT_HEAD], body: ForeignBytes<'_>) {
        self.events.short(origin, head, body);
        self.ended += 1;
    }

    fn send_complete(&mut self, ticket: Ticket) {
        self.events.send_complete(ticket);
        self.ended += 1;
    }

    fn got(&mut self, ticket: Ticket, outcome: Result<(), AdapterError>) {
        self.events.got(ticket, outcome);
        self.ended += 1;
    }

    fn ended(&mut self, ticket: Ticket, outcome: Result<i64, AdapterError>) {
        self.events.ended(ticket, outcome);
        self.ended += 1;
    }
}

/// Losses on this host, by place, and elsewhere, by task.
struct AllLosses {
    here: Arc<dyn Losses>,
    elsewhere: Arc<dyn Losses>,
    table: Arc<JobTable>,
}

impl Losses for AllLosses {
    fn count(&self) -> usize {
        self.here.count() + self.elsewhere.count()
    }

    fn is_lost(&self, task: TaskId) -> bool {
        let here = self.table.local_place(task);
        here.is_some_and(|place| self.here.is_lost(place)) || self.elsewhere.is_lost(task)
    }

    fn declare(&self) {
        self.here.declare();
        self.elsewhere.declare();
    }
}

impl Hosts for JobTable {
    fn host_of(&self, task: TaskId) -> u32 {
        JobTable::host_of(self, task) as u32
    }
}

/// The losses that the launcher enters into the job table.
pub(crate) struct TableLosses(pub(crate) Arc<JobTable>);

impl Losses for TableLosses {
    fn count(&self) -> usize {
        self.0.losses()
    }

    fn is_lost(&self, task: TaskId) -> bool {
        self.0.is_lost(task)
    }

    /// The tasks of this host see it in their segment, and the launcher, which the task has told, tells other hosts.
    fn declare(&self) {}
}

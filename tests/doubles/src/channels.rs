//! An adapter for tests that behaves like a network: ranks are threads that exchange owned frames through channels.
//!
//! It has the core of [`Adapter`], no shared memory and no wait records. Each task has a courier, a thread that plays
//! the network card: it reads a body some time after the frame was offered, and then reports that the body has left. So
//! a caller that releases a buffer too early sends wrong bytes. Channels and queues are short, and often full.
//!
//! With [`Cards::OneSided`] couriers access registered memory, too, without its owner and after the call that starts
//! the access. The bytes of the last puts are not in place before a flush asks for them, and then the later ones come
//! first.

#![expect(unsafe_code, reason = "an adapter promises its contract")]

mod memory;

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, bounded, unbounded};
use parking_lot::{Condvar, Mutex, MutexGuard};
use transport_lapi::adapter::{
    Adapter, AdapterError, Caps, Doorbell, Endpoint, Events, Frame, GetKind, Losses, MAX_TASKS,
    OneSided, Parts, Pieces, Post, Registered, SHORT_HEAD, TaskId, Ticket, Transfer,
};
use transport_lapi::{
    AnyAdapter, ForeignBytes, Operation, Piece, RecvRegion, RemoteKey, RemoteRegion, Source,
};

use memory::Memory;

/// Capacity of the channel of an ordered pair, in frames.
const IN_CHANNEL: usize = 16;
/// Most frames from a sender to one target whose bodies are still to be read.
const LEAVING: usize = 4;
/// Most one-sided operations from a task to one target that are still to be carried out.
const ACCESSES: usize = 3;
/// Most puts of a task whose bytes are kept from their places although nobody asks for a flush.
const IN_FLIGHT: usize = 5;
/// Largest body: small, so that long messages take many frames.
const MAX_BODY: usize = 4 << 10;

/// What the network cards of a job do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cards {
    /// They move frames.
    Frames,
    /// They also access registered memory: get, put, atomic operations, flush.
    OneSided,
}

/// A frame in a channel.
struct Parcel {
    head: Vec<u8>,
    body: Vec<u8>,
}

/// A frame whose body has not been read yet.
struct Leaving {
    head: Vec<u8>,
    body: Source,
    offset: usize,
    len: usize,
    ticket: Ticket,
}

/// A one-sided operation that has not been carried out.
enum Access {
    Get { remote: RemoteRegion, offset: u64, into: RecvRegion },
    Put { remote: RemoteRegion, offset: u64, from: Source, start: usize, len: usize },
    Atomic { remote: RemoteRegion, offset: u64, operation: Operation },
    Flush,
}

/// The bytes of a put on their way.
struct InFlight {
    target: usize,
    remote: RemoteRegion,
    offset: u64,
    bytes: Vec<u8>,
}

/// The end of an operation that a courier reports.
enum End {
    Left(Ticket),
    Got(Ticket, Result<(), AdapterError>),
    Ended(Ticket, Result<i64, AdapterError>),
}

/// The queues in which a task leaves its frames and accesses for its courier.
#[derive(Default)]
struct Desk {
    leaving: Mutex<Frames>,
    /// Signalled when something was added, a channel has room again, or the task has ended.
    changed: Condvar,
}

/// See [`Desk`].
#[derive(Default)]
struct Frames {
    /// By target.
    queues: Vec<VecDeque<Leaving>>,
    /// By target.
    accesses: Vec<VecDeque<(Access, Ticket)>>,
    /// Whether the courier is accessing memory of the task now.
    is_read: bool,
    /// Whether the task has ended.
    is_closed: bool,
}

/// The state that all tasks of a job share.
struct Network {
    bells: Vec<Arc<dyn Doorbell>>,
    desks: Vec<Desk>,
    cards: Cards,
    memory: Mutex<Memory>,
    /// Whether each task was declared lost.
    lost: Box<[AtomicBool]>,
    /// How many times a task was declared lost.
    losses: AtomicUsize,
}

impl Network {
    fn is_lost(&self, task: usize) -> bool {
        self.lost[task].load(Ordering::Acquire) // SYNC: loss of a task of channels
    }

    fn declare_lost(&self, task: TaskId) {
        self.lost[task as usize].store(true, Ordering::Release); // SYNC: loss of a task of channels
        self.losses.fetch_add(1, Ordering::Release); // SYNC: losses of channels
        // Couriers discard the frames that they have for the task (A10).
        self.desks.iter().for_each(Desk::has_changed);
        self.bells.iter().for_each(|bell| bell.ring());
    }
}

/// One task of a job whose tasks are connected by channels.
pub struct ChannelAdapter {
    task: TaskId,
    context: usize,
    network: Arc<Network>,
    ends: Receiver<End>,
    /// By origin.
    incoming: Vec<Receiver<Parcel>>,
    /// The origin that is polled first next time, so that none starves.
    first: usize,
}

/// Makes a job of `num_tasks` threads: one adapter for each, in the order of their numbers.
///
/// # Errors
/// [`AdapterError::TaskCount`]; [`AdapterError::System`] if the system provides no thread.
pub fn job(num_tasks: usize, cards: Cards) -> Result<Vec<ChannelAdapter>, AdapterError> {
    in_context(0, own_bells(num_tasks), cards)
}

/// Makes a bell for each of `num_tasks` tasks.
pub fn own_bells(num_tasks: usize) -> Vec<Arc<dyn Doorbell>> {
    (0..num_tasks).map(|_| Arc::new(EventCount::default()) as _).collect()
}

/// Likewise for tasks with `contexts` contexts each. Returns, for each task in order, the adapters of its contexts in
/// order.
///
/// # Errors
/// As [`job`].
pub fn job_with_contexts(
    num_tasks: usize,
    contexts: usize,
    cards: Cards,
) -> Result<Vec<Vec<ChannelAdapter>>, AdapterError> {
    let mut tasks: Vec<Vec<_>> = Vec::new();
    for context in 0..contexts {
        tasks.resize_with(num_tasks, Vec::new);
        let adapters = in_context(context, own_bells(num_tasks), cards)?;
        tasks.iter_mut().zip(adapters).for_each(|(task, adapter)| task.push(adapter));
    }
    Ok(tasks)
}

/// Makes the adapters of one context, for tasks that have a bell already.
///
/// # Errors
/// As [`job`].
pub fn in_context(
    context: usize,
    bells: Vec<Arc<dyn Doorbell>>,
    cards: Cards,
) -> Result<Vec<ChannelAdapter>, AdapterError> {
    let num_tasks = bells.len();
    if !(1..=MAX_TASKS).contains(&num_tasks) {
        return Err(AdapterError::TaskCount { asked: num_tasks });
    }
    let desk = || {
        let queues = std::iter::repeat_with(VecDeque::new).take(num_tasks).collect();
        let accesses = std::iter::repeat_with(VecDeque::new).take(num_tasks).collect();
        let leaving = Mutex::new(Frames { queues, accesses, ..Frames::default() });
        Desk { leaving, ..Desk::default() }
    };
    let desks = std::iter::repeat_with(desk).take(num_tasks).collect();
    let lost = std::iter::repeat_with(AtomicBool::default).take(num_tasks).collect();
    let (memory, losses) = (Mutex::new(Memory::new(num_tasks)), AtomicUsize::new(0));
    let network = Arc::new(Network { bells, desks, cards, memory, lost, losses });
    let mut incoming: Vec<Vec<_>> = std::iter::repeat_with(Vec::new).take(num_tasks).collect();
    let mut ends = Vec::new();
    for origin in 0..num_tasks {
        let (reports, reported) = unbounded();
        ends.push(reported);
        let to_target = |incoming: &mut Vec<Receiver<Parcel>>| {
            let (sender, receiver) = bounded(IN_CHANNEL);
            incoming.push(receiver);
            sender
        };
        let outgoing = incoming.iter_mut().map(to_target).collect();
        let courier =
            Courier { origin, network: network.clone(), outgoing, in_flight: Vec::new(), reports };
        let thread = thread::Builder::new().name(format!("courier {origin}"));
        thread
            .spawn(move || courier.run())
            .map_err(|source| AdapterError::System { action: "start a thread", source })?;
    }
    let tasks = incoming.into_iter().zip(ends).zip(0..);
    let adapter = |((incoming, ends), task)| ChannelAdapter {
        task,
        context,
        network: network.clone(),
        ends,
        incoming,
        first: 0,
    };
    Ok(tasks.map(adapter).collect())
}

/// Carries the frames of one task to the others, and accesses their memory for it.
struct Courier {
    origin: usize,
    network: Arc<Network>,
    /// By target.
    outgoing: Vec<Sender<Parcel>>,
    /// The bytes of puts that have ended.
    in_flight: Vec<InFlight>,
    reports: Sender<End>,
}

/// What a courier does next.
enum Task {
    Carry(Leaving),
    CarryOut(Access, Ticket),
}

impl Courier {
    /// Carries frames until the task has ended and none are left.
    fn run(mut self) {
        let network = Arc::clone(&self.network);
        let Desk { leaving, changed } = &network.desks[self.origin];
        let mut frames = leaving.lock();
        loop {
            if let Some((target, task)) = self.next(&mut frames) {
                frames.is_read = true;
                let work = || match task {
                    Task::Carry(frame) => self.carry(target, frame),
                    Task::CarryOut(access, ticket) => self.carry_out(target, access, ticket),
                };
                let unlocked = || MutexGuard::unlocked(&mut frames, work);
                let done = catch_unwind(AssertUnwindSafe(unlocked));
                frames.is_read = false;
                if done.is_err() {
                    // A layout has panicked: its message never arrives.
                    drop(frames);
                    return network.declare_lost(self.origin as TaskId);
                }
            } else if frames.is_closed && frames.queues.iter().all(VecDeque::is_empty) {
                drop(frames);
                return self.in_flight.iter().for_each(|put| self.put_in_place(put));
            } else {
                changed.wait(&mut frames);
            }
        }
    }

    /// Takes what is to be done next, with its target.
    fn next(&self, frames: &mut Frames) -> Option<(usize, Task)> {
        let mut leaving = frames.queues.iter_mut().enumerate().filter_map(|(target, queue)| {
            let has_room = !self.outgoing[target].is_full() || self.network.is_lost(target);
            let frame = has_room.then(|| queue.pop_front()).flatten()?;
            Some((target, Task::Carry(frame)))
        });
        leaving.next().or_else(|| {
            let mut accesses = frames.accesses.iter_mut().enumerate();
            accesses.find_map(|(target, queue)| {
                let (access, ticket) = queue.pop_front()?;
                Some((target, Task::CarryOut(access, ticket)))
            })
        })
    }

    /// Carries out a one-sided operation and reports its end. A put ends when its bytes are on their way.
    fn carry_out(&mut self, target: usize, access: Access, ticket: Ticket) {
        let (network, task) = (Arc::clone(&self.network), target as TaskId);
        let lost = || AdapterError::PeerLost { task };
        let is_lost = network.is_lost(target);
        let end = match access {
            Access::Get { remote, offset, mut into } => {
                let read = || network.memory.lock().read(task, &remote, offset, into.len());
                let got = if is_lost { Err(lost()) } else { read() };
                End::Got(
                    ticket,
                    got.map(|bytes| {
                        into.store(0, ForeignBytes::from_slice(&bytes));
                    }),
                )
            }
            _ if is_lost => End::Ended(ticket, Err(lost())),
            Access::Put { remote, offset, from, start, len } => {
                let may = network.memory.lock().writable(task, &remote, offset, len).map(drop);
                if may.is_ok() {
                    let bytes = from.piece(start, len).to_vec();
                    self.in_flight.push(InFlight { target, remote, offset, bytes });
                    if self.in_flight.len() > IN_FLIGHT {
                        let oldest = self.in_flight.remove(0);
                        self.put_in_place(&oldest);
                    }
                }
                End::Ended(ticket, may.map(|()| 0))
            }
            Access::Atomic { remote, offset, operation } => {
                let modified = network.memory.lock().modify(task, &remote, offset, operation);
                End::Ended(ticket, modified)
            }
            Access::Flush => {
                let puts = std::mem::take(&mut self.in_flight).into_iter();
                let (due, later): (Vec<_>, _) = puts.partition(|put| put.target == target);
                self.in_flight = later;
                due.iter().rev().for_each(|put| self.put_in_place(put));
                End::Ended(ticket, Ok(0))
            }
        };
        let _ = self.reports.send(end);
        network.bells[self.origin].ring();
    }

    /// Stores the bytes of a put, unless the target has ended the registration, or itself, meanwhile.
    fn put_in_place(&self, put: &InFlight) {
        let InFlight { target, remote, offset, bytes } = put;
        let _ = self.network.memory.lock().write(*target as TaskId, remote, *offset, bytes);
    }

    /// Reads the body of a frame and sends it on. The channel has room, since nobody else sends there, or nobody
    /// receives from it any more.
    fn carry(&self, target: usize, frame: Leaving) {
        let Leaving { head, body, offset, len, ticket } = frame;
        // If the target has ended or is lost, the parcel is dropped.
        let parcel = Parcel { head, body: body.piece(offset, len).to_vec() };
        let _ = self.outgoing[target].try_send(parcel);
        self.network.bells[target].ring();
        if len > 0 {
            let _ = self.reports.send(End::Left(ticket));
        }
        // A thread that sleeps because there was no room, or until the body has left, polls again.
        self.network.bells[self.origin].ring();
    }
}

impl Desk {
    /// Wakes the courier.
    fn has_changed(&self) {
        // With the lock, so that this comes before or after the courier's check, but not between that and its sleep.
        let _leaving = self.leaving.lock();
        self.changed.notify_one();
    }
}

// SAFETY: A9: a courier accesses memory of its task before it reports the ticket, or never, if `detach` removes the
// frame or the access first. While it works on one that it has taken, `detach` returns `false`. Registered memory is
// accessed by `Memory` only, which keeps A8 and A11.
unsafe impl Adapter for ChannelAdapter {
    fn endpoint(&self) -> Endpoint {
        Endpoint { task: self.task, num_tasks: self.incoming.len(), context: self.context }
    }

    fn caps(&self, _: TaskId) -> Caps {
        let (max_head, max_inline, max_body) = (256, 256, MAX_BODY);
        let one_sided = self.network.cards == Cards::OneSided;
        let pieces = Pieces::new(MAX_BODY as u32, [MAX_BODY as u32; 3]);
        let gets = one_sided.then_some(GetKind::RemoteDirect);
        let (name, copies_bodies, puts, atomics) = ("channels", false, one_sided, one_sided);
        Caps { name, max_head, max_inline, max_body, pieces, copies_bodies, gets, puts, atomics }
    }

    fn parts(&self) -> Parts {
        let bell = self.network.bells[self.task as usize].clone();
        let losses = Arc::new(Handle { network: self.network.clone(), task: self.task });
        let neighbours = self.incoming.len();
        let (area, peer_memory, wait_records, hosts) = (None, None, None, None);
        Parts { bell, losses, area, peer_memory, wait_records, near: 0..0, neighbours, hosts }
    }

    fn try_send(
        &mut self,
        target: TaskId,
        head: &[u8],
        body: Piece<'_>,
        ticket: Ticket,
    ) -> Result<Post, AdapterError> {
        if self.network.is_lost(target as usize) {
            // Nothing more is taken: the caller learns of the loss before the rest of a message seems to have left.
            return Ok(Post::Full);
        }
        let Desk { leaving, changed } = &self.network.desks[self.task as usize];
        let queue = &mut leaving.lock().queues[target as usize];
        if queue.len() == LEAVING {
            return Ok(Post::Full);
        }
        let (len, (body, offset)) = (body.len(), body.to_source());
        queue.push_back(Leaving { head: head.to_vec(), body, offset, len, ticket });
        changed.notify_one();
        Ok(if len == 0 { Post::Taken } else { Post::InFlight })
    }

    fn poll(
        &mut self,
        _: Option<TaskId>,
        budget: usize,
        events: &mut dyn Events,
    ) -> Result<usize, AdapterError> {
        let mut done = 0;
        while let Ok(end) = self.ends.try_recv() {
            done += 1;
            match end {
                End::Left(ticket) => events.send_complete(ticket),
                End::Got(ticket, outcome) => events.got(ticket, outcome),
                End::Ended(ticket, outcome) => events.ended(ticket, outcome),
            }
        }
        let (tasks, mut delivered) = (self.incoming.len(), 0);
        for turn in 0..tasks {
            let from = (self.first + turn) % tasks;
            while delivered < budget {
                let Ok(Parcel { head, body }) = self.incoming[from].try_recv() else { break };
                self.network.desks[from].has_changed();
                delivered += 1;
                let (origin, body) = (from as TaskId, ForeignBytes::from_slice(&body));
                match <[u8; SHORT_HEAD]>::try_from(&head[..]) {
                    Ok(short) => events.short(origin, short, body),
                    Err(_) => events.frame(Frame { origin, head: &head, body }),
                }
            }
        }
        self.first = (self.first + 1) % tasks;
        Ok(done + delivered)
    }

    fn register(
        &mut self,
        memory: Registered,
        _: Option<TaskId>,
    ) -> Result<Option<RemoteKey>, AdapterError> {
        let Network { cards, memory: registered, .. } = &*self.network;
        let register = || registered.lock().register(self.task, memory);
        Ok((*cards == Cards::OneSided).then(register))
    }

    fn deregister(&mut self, key: RemoteKey) {
        self.network.memory.lock().deregister(self.task, key);
    }

    fn start(
        &mut self,
        target: TaskId,
        operation: OneSided<'_>,
        ticket: Ticket,
    ) -> Result<Transfer, AdapterError> {
        let Desk { leaving, changed } = &self.network.desks[self.task as usize];
        let queue = &mut leaving.lock().accesses[target as usize];
        if queue.len() == ACCESSES {
            return Ok(Transfer::Full);
        }
        let access = match operation {
            OneSided::Get { remote, offset, into } => {
                // SAFETY: A9.
                Access::Get { remote: *remote, offset, into: unsafe { into.hold() } }
            }
            OneSided::Put { remote, offset, from } => {
                let (len, (from, start)) = (from.len(), from.to_source());
                Access::Put { remote: *remote, offset, from, start, len }
            }
            OneSided::Atomic { remote, offset, operation } => {
                Access::Atomic { remote: *remote, offset, operation }
            }
            OneSided::Flush => Access::Flush,
        };
        queue.push_back((access, ticket));
        changed.notify_one();
        Ok(Transfer::Started)
    }

    fn detach(&mut self) -> bool {
        self.network.memory.lock().detach(self.task);
        let mut frames = self.network.desks[self.task as usize].leaving.lock();
        frames.accesses.iter_mut().for_each(VecDeque::clear);
        // A frame without a body was taken, so it stays (A4).
        frames.queues.iter_mut().for_each(|queue| queue.retain(|frame| frame.len == 0));
        !frames.is_read
    }
}

impl From<ChannelAdapter> for AnyAdapter {
    fn from(adapter: ChannelAdapter) -> Self {
        Self::brought(adapter)
    }
}

impl Drop for ChannelAdapter {
    /// Frames that were offered are still carried; the couriers of the others discard frames for this task.
    fn drop(&mut self) {
        self.incoming.clear();
        self.network.desks[self.task as usize].leaving.lock().is_closed = true;
        self.network.desks.iter().for_each(Desk::has_changed);
    }
}

/// The bell of a task: an event count.
#[derive(Default)]
struct EventCount {
    rung: Mutex<u32>,
    sleepers: Condvar,
}

/// The losses of a job, for one task.
struct Handle {
    network: Arc<Network>,
    task: TaskId,
}

impl Doorbell for EventCount {
    fn announce(&self) -> u32 {
        *self.rung.lock()
    }

    fn sleep(&self, ticket: u32, timeout: Option<Duration>) -> bool {
        let Self { rung, sleepers } = self;
        let mut rung = rung.lock();
        match timeout {
            Some(timeout) => {
                let _ = sleepers.wait_while_for(&mut rung, |rung| *rung == ticket, timeout);
            }
            None => sleepers.wait_while(&mut rung, |rung| *rung == ticket),
        }
        *rung != ticket
    }

    fn retract(&self) {}

    fn ring(&self) {
        let mut rung = self.rung.lock();
        *rung = rung.wrapping_add(1);
        self.sleepers.notify_all();
    }
}

impl Losses for Handle {
    fn count(&self) -> usize {
        self.network.losses.load(Ordering::Acquire) // SYNC: losses of channels
    }

    fn is_lost(&self, task: TaskId) -> bool {
        self.network.is_lost(task as usize)
    }

    fn declare(&self) {
        self.network.declare_lost(self.task);
    }
}

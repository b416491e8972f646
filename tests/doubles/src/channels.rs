//! An adapter for tests that behaves like a network: ranks are threads that exchange owned frames through channels.
//!
//! It has the core of [`Adapter`] and no capability: no shared memory, no one-sided reads, no board. Each task has a
//! courier, a thread that plays the network card: it reads a body some time after the frame was offered, and then
//! reports that the body has left. So a caller that releases a buffer too early sends wrong bytes. Channels and
//! queues are short, and often full.

#![expect(unsafe_code, reason = "an adapter promises its contract")]

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, bounded, unbounded};
use parking_lot::{Condvar, Mutex, MutexGuard};
use transport_lapi::adapter::{
    Adapter, AdapterError, Caps, Doorbell, Endpoint, Events, Frame, Losses, Parts, Post,
    SHORT_HEAD, TaskId, Ticket,
};
use transport_lapi::adapters::MAX_TASKS;
use transport_lapi::{AnyAdapter, ForeignBytes, Piece, Source};

/// Capacity of the channel of an ordered pair, in frames.
const IN_CHANNEL: usize = 16;
/// Most frames from a sender to one target whose bodies are still to be read.
const LEAVING: usize = 4;
/// Largest body: small, so that long messages take many frames.
const MAX_BODY: usize = 4 << 10;

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

/// The queues in which a task leaves its frames for its courier.
#[derive(Default)]
struct Desk {
    leaving: Mutex<Frames>,
    /// Signalled when a frame was added, a channel has room again, or the task has ended.
    changed: Condvar,
}

/// See [`Desk`].
#[derive(Default)]
struct Frames {
    /// By target.
    queues: Vec<VecDeque<Leaving>>,
    /// Whether the courier is reading a body now.
    is_read: bool,
    /// Whether the task has ended.
    is_closed: bool,
}

/// The state that all tasks of a job share.
struct Network {
    bells: Vec<EventCount>,
    desks: Vec<Desk>,
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
        self.bells.iter().for_each(EventCount::ring);
    }
}

/// One task of a job whose tasks are connected by channels.
pub struct ChannelAdapter {
    task: TaskId,
    context: usize,
    network: Arc<Network>,
    /// Receives the tickets of bodies that have left.
    left: Receiver<Ticket>,
    /// By origin.
    incoming: Vec<Receiver<Parcel>>,
    /// The origin that is polled first next time, so that none starves.
    first: usize,
}

/// Makes a job of `num_tasks` threads: one adapter for each, in the order of their numbers.
///
/// # Errors
/// [`AdapterError::TaskCount`]; [`AdapterError::System`] if the system provides no thread.
pub fn job(num_tasks: usize) -> Result<Vec<ChannelAdapter>, AdapterError> {
    in_context(0, num_tasks)
}

/// Likewise for tasks with `contexts` contexts each. Returns, for each task in order, the adapters of its contexts in
/// order.
///
/// # Errors
/// As [`job`].
pub fn job_with_contexts(
    num_tasks: usize,
    contexts: usize,
) -> Result<Vec<Vec<ChannelAdapter>>, AdapterError> {
    let mut tasks: Vec<Vec<_>> = Vec::new();
    for context in 0..contexts {
        tasks.resize_with(num_tasks, Vec::new);
        let adapters = in_context(context, num_tasks)?;
        tasks.iter_mut().zip(adapters).for_each(|(task, adapter)| task.push(adapter));
    }
    Ok(tasks)
}

/// Makes the adapters of one context.
fn in_context(context: usize, num_tasks: usize) -> Result<Vec<ChannelAdapter>, AdapterError> {
    if !(1..=MAX_TASKS).contains(&num_tasks) {
        return Err(AdapterError::TaskCount { asked: num_tasks, max: MAX_TASKS });
    }
    let desk = || {
        let queues = std::iter::repeat_with(VecDeque::new).take(num_tasks).collect();
        Desk { leaving: Mutex::new(Frames { queues, ..Frames::default() }), ..Desk::default() }
    };
    let bells = std::iter::repeat_with(EventCount::default).take(num_tasks).collect();
    let desks = std::iter::repeat_with(desk).take(num_tasks).collect();
    let lost = std::iter::repeat_with(AtomicBool::default).take(num_tasks).collect();
    let network = Arc::new(Network { bells, desks, lost, losses: AtomicUsize::new(0) });
    let mut incoming: Vec<Vec<_>> = std::iter::repeat_with(Vec::new).take(num_tasks).collect();
    let mut lefts = Vec::new();
    for origin in 0..num_tasks {
        let (left, has_left) = unbounded();
        lefts.push(has_left);
        let to_target = |incoming: &mut Vec<Receiver<Parcel>>| {
            let (sender, receiver) = bounded(IN_CHANNEL);
            incoming.push(receiver);
            sender
        };
        let outgoing = incoming.iter_mut().map(to_target).collect();
        let courier = Courier { origin, network: network.clone(), outgoing, left };
        let thread = thread::Builder::new().name(format!("courier {origin}"));
        thread
            .spawn(move || courier.run())
            .map_err(|source| AdapterError::System { action: "start a thread", source })?;
    }
    let tasks = incoming.into_iter().zip(lefts).zip(0..);
    let adapter = |((incoming, left), task)| ChannelAdapter {
        task,
        context,
        network: network.clone(),
        left,
        incoming,
        first: 0,
    };
    Ok(tasks.map(adapter).collect())
}

/// Carries the frames of one task to the others.
struct Courier {
    origin: usize,
    network: Arc<Network>,
    /// By target.
    outgoing: Vec<Sender<Parcel>>,
    left: Sender<Ticket>,
}

impl Courier {
    /// Carries frames until the task has ended and none are left.
    fn run(self) {
        let Desk { leaving, changed } = &self.network.desks[self.origin];
        let mut frames = leaving.lock();
        loop {
            let mut next = frames.queues.iter_mut().enumerate().filter_map(|(target, queue)| {
                let has_room = !self.outgoing[target].is_full() || self.network.is_lost(target);
                has_room.then(|| queue.pop_front()).flatten().map(|frame| (target, frame))
            });
            if let Some((target, frame)) = next.next() {
                frames.is_read = true;
                let carry = || MutexGuard::unlocked(&mut frames, || self.carry(target, frame));
                let carried = catch_unwind(AssertUnwindSafe(carry));
                frames.is_read = false;
                if carried.is_err() {
                    // A layout has panicked: its message never arrives.
                    drop(frames);
                    return self.network.declare_lost(self.origin as TaskId);
                }
            } else if frames.is_closed && frames.queues.iter().all(VecDeque::is_empty) {
                return;
            } else {
                changed.wait(&mut frames);
            }
        }
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
            let _ = self.left.send(ticket);
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

// SAFETY: A9: a body is read before `left` reports its ticket, or never, if `withdraw` removes its frame first. While
// the courier reads one that it has taken, `withdraw` returns `false`. Nothing else accesses memory of users.
unsafe impl Adapter for ChannelAdapter {
    fn endpoint(&self) -> Endpoint {
        Endpoint { task: self.task, num_tasks: self.incoming.len(), context: self.context }
    }

    fn caps(&self, _: TaskId) -> Caps {
        let (max_head, max_inline, max_body) = (256, 256, MAX_BODY);
        let (name, copies_bodies, gets) = ("channels", false, None);
        Caps { name, max_head, max_inline, max_body, copies_bodies, gets }
    }

    fn parts(&self) -> Parts {
        let handle = Arc::new(Handle { network: self.network.clone(), task: self.task });
        Parts { bell: handle.clone(), losses: handle, area: None, board: None }
    }

    fn try_send(
        &mut self,
        target: TaskId,
        head: &[u8],
        body: Piece<'_>,
        ticket: Ticket,
    ) -> Result<Post, AdapterError> {
        let Desk { leaving, changed } = &self.network.desks[self.task as usize];
        let queue = &mut leaving.lock().queues[target as usize];
        if queue.len() == LEAVING {
            return Ok(Post::Full);
        }
        let (len, (body, offset)) = (body.len(), body.to_source());
        queue.push_back(Leaving { head: head.to_vec(), body, offset, len, ticket });
        changed.notify_one();
        Ok(if len == 0 { Post::Taken } else { Post::Leaving })
    }

    fn poll(
        &mut self,
        _: Option<TaskId>,
        budget: usize,
        events: &mut dyn Events,
    ) -> Result<usize, AdapterError> {
        let mut done = 0;
        while let Ok(ticket) = self.left.try_recv() {
            done += 1;
            events.left(ticket);
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

    fn withdraw(&mut self) -> bool {
        let mut frames = self.network.desks[self.task as usize].leaving.lock();
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

/// An event count.
#[derive(Default)]
struct EventCount {
    rung: Mutex<u32>,
    sleepers: Condvar,
}

impl EventCount {
    fn ring(&self) {
        let mut rung = self.rung.lock();
        *rung = rung.wrapping_add(1);
        self.sleepers.notify_all();
    }
}

/// The bell of one task, and which tasks are lost.
struct Handle {
    network: Arc<Network>,
    task: TaskId,
}

impl Handle {
    fn bell(&self) -> &EventCount {
        &self.network.bells[self.task as usize]
    }
}

impl Doorbell for Handle {
    fn announce(&self) -> u32 {
        *self.bell().rung.lock()
    }

    fn sleep(&self, ticket: u32, timeout: Option<Duration>) -> bool {
        let EventCount { rung, sleepers } = self.bell();
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
        self.bell().ring();
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

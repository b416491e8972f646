//! The unfinished operations of a task: a send queue of outgoing operations for each target, gets, registered sources,
//! counters, and what follows operations that have ended. Handlers start communication through it; the session sends
//! from it. It also registers memory, here (`registry.rs`) and with the adapter, and ends both.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::adapter::{Caps, Endpoint, Parts, Pieces, Registered, SharedArea, TaskId};
use crate::adapters::AnyAdapter;
use crate::error::LapiError;
use crate::memory::body::Source;
use crate::memory::region::{RecvRegion, RemoteKey, RemoteRegion};
use crate::progress::access::Access;
use crate::progress::amsend::{
    FrameSent, InFlight, Message, Outgoing, check_handler, check_target, check_uhdr,
};
use crate::progress::area::Shared;
use crate::progress::connection::Connection;
use crate::progress::counter::{CounterId, Counters};
use crate::progress::get::{self, Gets};
use crate::progress::handler::{Continuation, Next};
use crate::progress::hooks::Position;
use crate::progress::per_task::{PerTask, Tasks};
use crate::progress::registry::Regions;
use crate::progress::slots::Slots;
use crate::wire;

/// Communication that has been accepted but not carried out. Calls on it never block: they queue operations, and the
/// dispatcher sends them.
pub struct Outbox<S> {
    pub(crate) send_queues: PerTask<SendQueue>,
    /// Number of operations in all send queues together.
    pub(crate) queued: usize,
    /// The messages that wait in send queues.
    pub(crate) messages: Slots<Message<S>>,
    /// How many messages that were no short ones have been sent, or given up.
    pub(crate) closed: u64,
    /// Messages and answers with frames on their way whose bodies are still read, by the adapter or the target.
    pub(crate) in_flight: Slots<InFlight<S>>,
    pub(crate) counters: Counters,
    pub(crate) gets: Gets<S>,
    pub(crate) regions: Regions<S>,
    /// The shared areas, if the adapter has them.
    pub(crate) shared: Option<Shared>,
    /// The puts of the adapter, its flushes, and the read-modify-writes that have not ended.
    pub(crate) accesses: Slots<Access<S>>,
    /// The adapter's keys of ended registrations, which it has still to end.
    pub(crate) deregistered: Vec<RemoteKey>,
    /// What follows operations that have ended, to be performed in this round.
    pub(crate) ready: VecDeque<Ready<S>>,
    /// Functions that run when the lock is free.
    pub(crate) continuations: VecDeque<Continuation>,
}

/// What follows an operation that has ended, and the outcome of that operation.
pub(crate) type Ready<S> = (Next<S>, Result<(), Box<LapiError>>);

/// The operations queued for one target.
pub(crate) struct SendQueue {
    pub waiting: VecDeque<Outgoing>,
    /// Whether a frame may go at once: nothing is queued, and the connection is open.
    pub is_free: bool,
    /// Whether operations may go there.
    pub connection: Connection,
    /// Whether the target has reopened its connection to this task, since it was last opened here (PU2 of
    /// `connection.rs`).
    pub peer_has_reopened: bool,
    /// How many bytes of its memory the adapter reads at once; 0 if it does not, or not any more because the system has
    /// refused that. Then memory is read over frames.
    pub reads: usize,
    /// Whether the adapter stores to its memory.
    pub puts: bool,
    /// Whether the adapter carries out atomic operations on its memory.
    pub atomics: bool,
    /// How long messages to it are divided.
    pub pieces: Pieces,
    /// Bodies shorter than this are reusable as soon as the adapter has taken their frame: they fit in one frame, and
    /// the adapter copies them. 0 if the adapter reads bodies later.
    pub at_once: usize,
    /// Number of operations that have been sent.
    pub gone: u64,
    /// Number of the next message that takes several packets.
    pub next_msg: u32,
    /// Whether anything may have been sent since the last fence.
    pub dirty: bool,
    /// Whether the adapter may have changed its memory since the last fence.
    pub unflushed: bool,
    /// Number of fence answers that are outstanding.
    pub fences: u32,
    /// Number of flushes for fences that have not ended.
    pub flushes: u32,
    /// How often the program has closed the connection.
    pub closed: u32,
}

impl SendQueue {
    /// That of a target with these capabilities, for frames with bodies of at most `max_body` bytes.
    fn new(caps: Caps, max_body: usize) -> Self {
        let pieces = caps.pieces.within(caps.max_body.min(max_body));
        Self {
            waiting: VecDeque::new(),
            is_free: true,
            connection: Connection::default(),
            peer_has_reopened: false,
            reads: get::at_once(caps.gets),
            puts: caps.puts,
            atomics: caps.atomics,
            pieces,
            at_once: if caps.copies_bodies { pieces.whole() + 1 } else { 0 },
            gone: 0,
            next_msg: 0,
            dirty: false,
            unflushed: false,
            fences: 0,
            flushes: 0,
            closed: 0,
        }
    }

    /// Another one like this, which is unused.
    fn unused(&self) -> Self {
        Self { waiting: VecDeque::new(), ..*self }
    }

    /// Whether a fence waits for it.
    pub fn has_fences(&self) -> bool {
        self.fences > 0 || self.flushes > 0
    }

    /// Whether the adapter copies the bodies of frames to the target.
    pub fn copies_bodies(&self) -> bool {
        self.at_once > 0
    }
}

impl<S> Outbox<S> {
    pub(crate) fn new(
        adapter: &AnyAdapter,
        tasks: &Tasks,
        area: Option<Arc<dyn SharedArea>>,
        max_body: usize,
    ) -> Self {
        let Endpoint { task, num_tasks, .. } = adapter.endpoint();
        let Parts { hosts, near, .. } = adapter.parts();
        let send_queue = |target| SendQueue::new(adapter.caps(target), max_body);
        let is_here = |other| match &hosts {
            Some(hosts) => hosts.host_of(other) == hosts.host_of(task),
            None => near.contains(&other),
        };
        // Queues that are made later are for tasks of other hosts, or of later worlds.
        let far = (0..num_tasks as TaskId).find(|task| !is_here(*task)).unwrap_or(0);
        let mut send_queues = PerTask::new(tasks, send_queue(far), SendQueue::unused);
        let have_all = send_queues.in_use() == num_tasks;
        for target in (0..num_tasks as TaskId).filter(|task| have_all || is_here(*task)) {
            send_queues[target] = send_queue(target);
        }
        Self {
            send_queues,
            queued: 0,
            messages: Slots::default(),
            closed: 0,
            in_flight: Slots::default(),
            counters: Counters::default(),
            gets: Gets::default(),
            regions: Regions::default(),
            shared: area.map(|area| Shared::new(area, task, num_tasks)),
            accesses: Slots::default(),
            deregistered: Vec::new(),
            ready: VecDeque::new(),
            continuations: VecDeque::new(),
        }
    }

    /// Queues an active message that owns its data, for example a reply from a completion handler.
    ///
    /// # Errors
    /// As [`crate::Session::amsend`].
    pub fn amsend(
        &mut self,
        target: TaskId,
        handler: u8,
        uhdr: &[u8],
        udata: Vec<u8>,
    ) -> Result<(), LapiError> {
        check_target(target, self.send_queues.num_tasks())?;
        check_handler(handler)?;
        check_uhdr(uhdr)?;
        self.check_lost(target)?;
        let operation = match <[u8; 8]>::try_from(uhdr) {
            Ok(word) if udata.is_empty() => {
                Outgoing::Short(wire::short_head(handler, u64::from_le_bytes(word)))
            }
            _ => {
                let message = Message::new(handler, uhdr, Source::from(udata));
                Outgoing::Message(self.messages.insert(message))
            }
        };
        self.push(target, operation);
        Ok(())
    }

    /// Makes a source readable by the gets of `user`, or of all tasks, until [`crate::Session::deregister`].
    pub(crate) fn register(
        &mut self,
        adapter: &mut AnyAdapter,
        source: Source,
        user: Option<TaskId>,
    ) -> RemoteRegion {
        let (len, span) = (source.len() as u64, source.span());
        let direct = span.map_or(RemoteKey::NONE, |span| {
            Self::register_directly(adapter, Registered::Constant(span), user)
        });
        let key = self.regions.add(source, direct);
        let addr = span.map_or(RemoteRegion::NO_ADDRESS, |span| span.addr());
        RemoteRegion { addr, len, key, direct }
    }

    /// Registers memory with the adapter. What the adapter or the system refuses is read over frames.
    fn register_directly(
        adapter: &mut AnyAdapter,
        memory: Registered,
        user: Option<TaskId>,
    ) -> RemoteKey {
        adapter.register(memory, user).ok().flatten().unwrap_or(RemoteKey::NONE)
    }

    /// Makes memory readable and writable by other tasks' operations, until [`crate::Session::deregister`].
    /// The adapter of threads does not read it: it would not see a put of the dispatcher as a whole.
    pub(crate) fn register_writable(
        &mut self,
        adapter: &mut AnyAdapter,
        memory: RecvRegion,
    ) -> RemoteRegion {
        let (len, addr) = (memory.len() as u64, memory.addr());
        let register = |hold| Self::register_directly(adapter, Registered::Writable(hold), None);
        let (key, direct) = self.regions.add_writable(memory, register);
        let addr = if direct.is_none() { RemoteRegion::NO_ADDRESS } else { addr };
        RemoteRegion { addr, len, key, direct }
    }

    /// Ends a registration: [`crate::Session::deregister`] for handlers. It takes effect before the dispatcher's round
    /// ends, so no other thread sees the source's owner continue earlier. `next` is performed when the source is not
    /// read any more. If it is a handler and due at once, it is returned instead, and the caller must run it; as the
    /// adapter's registration still lasts then, the handler leaves the memory alone. For a region that is not
    /// registered, `next` is not performed.
    #[must_use = "the caller must run the returned handler"]
    pub fn deregister(&mut self, region: RemoteRegion, next: Next<S>) -> Option<Next<S>> {
        self.deregistered.extend(self.regions.direct(region.key));
        match self.regions.remove(region.key, next)? {
            handler @ (Next::Inline(..) | Next::Outcome(..)) => Some(handler),
            next => {
                self.follow(next);
                None
            }
        }
    }

    /// Performs what follows an operation that has ended: handlers in this round, or in the next one if none is in
    /// progress.
    #[inline]
    pub(crate) fn follow(&mut self, next: Next<S>) {
        match next {
            Next::Nothing => {}
            Next::Counter(id) => {
                self.counters.count_on_wire(CounterId::on_wire(Some(id)));
            }
            Next::Unlocked(continuation) => self.continuations.push_back(continuation),
            Next::Inline(..) | Next::Outcome(..) | Next::Thread(_) => {
                self.ready.push_back((next, Ok(())));
            }
        }
    }

    /// [`Outbox::follow`] for an operation with `peer`, which is marked if it is a destination of the counter.
    pub(crate) fn follow_from(&mut self, peer: TaskId, next: Next<S>) {
        if let Next::Counter(id) = next {
            self.counters.mark(CounterId::on_wire(Some(id)), peer);
        }
        self.follow(next);
    }

    /// Reports the failure of an operation to its handler, at the time that [`Outbox::follow`] defines.
    #[cold]
    pub(crate) fn fail(&mut self, next: Next<S>, error: LapiError) {
        self.ready.push_back((next, Err(Box::new(error))));
    }

    /// Whether there is no unfinished work that progress must continue.
    #[inline(always)]
    pub(crate) fn is_idle(&self) -> bool {
        self.queued == 0 && !self.gets.has_turns() && self.ready.is_empty()
    }

    /// How far the send queue has come, if operations are queued there.
    pub(crate) fn position(&mut self, target: TaskId) -> Option<Position> {
        let Self { send_queues, messages, .. } = self;
        let send_queue = &send_queues[target];
        let sent = match send_queue.waiting.front()? {
            Outgoing::Message(number) => messages.get_mut(*number).map_or(0, |one| one.sent as u64),
            Outgoing::GetReply { sent, .. } => *sent,
            Outgoing::Short(_) | Outgoing::Control(_) | Outgoing::Access(_) => 0,
        };
        Some((send_queue.gone, sent))
    }

    /// Checks what is the same for all one-sided operations: the target, and what follows at the origin.
    pub(crate) fn check_operation(
        &mut self,
        target: TaskId,
        next: &Next<S>,
    ) -> Result<(), LapiError> {
        check_target(target, self.send_queues.num_tasks())?;
        self.check_lost(target)?;
        next.check(&mut self.counters)
    }

    /// Runs `continuation` as soon as the lock is free, in a thread that is in a call of the context (H4 of [`Next`]).
    pub fn when_unlocked(&mut self, continuation: Continuation) {
        self.continuations.push_back(continuation);
    }

    /// Ends the adapter's registrations of memory whose registration here has ended.
    pub(crate) fn deregister_directly(&mut self, adapter: &mut AnyAdapter) {
        self.deregistered.drain(..).for_each(|key| adapter.deregister(key));
    }

    /// Abandons all unfinished operations. No peer begins to use memory of this task afterwards; [`Adapter::detach`]
    /// returns `true` when none uses it any more.
    pub(crate) fn abandon(&mut self, adapter: &mut AnyAdapter) {
        // Detach before memory that peers may be reading is released. Another place waits for writes in progress.
        // What was to follow the operations may own memory, so it is kept as long as the outbox.
        let _ = adapter.detach();
        self.deregistered.extend(self.regions.all_direct());
        self.deregister_directly(adapter);
    }

    /// Appends an operation to the send queue of its target, unless the target is lost or purged.
    pub(crate) fn push(&mut self, target: TaskId, operation: Outgoing) {
        let send_queue = &mut self.send_queues[target];
        if !matches!(operation, Outgoing::Access(_)) {
            send_queue.dirty = !send_queue.is_closed();
        }
        if send_queue.is_open() {
            send_queue.is_free = false;
            send_queue.waiting.push_back(operation);
            self.queued += 1;
        } else {
            self.end_outgoing(operation);
        }
    }

    /// Ends an operation's use of registered memory, and performs what follows if it was the last one of an ended
    /// registration.
    #[inline]
    pub(crate) fn end_use(&mut self, key: u64) {
        if let Some(next) = self.regions.end_use(key) {
            self.follow(next);
        }
    }

    /// Ends an operation of which nothing more is sent.
    #[inline]
    pub(crate) fn end_outgoing(&mut self, operation: Outgoing) {
        match operation {
            Outgoing::Message(number) => {
                let next = self.messages.remove(number).and_then(|message| self.close(message));
                next.into_iter().for_each(|next| self.follow(next));
            }
            Outgoing::Access(number) => self.give_up_access(number),
            Outgoing::GetReply { .. } | Outgoing::Short(_) | Outgoing::Control(_) => {}
        }
    }

    /// Offers frames of one send queue until the adapter is full or the send queue is empty. Returns how many frames
    /// were sent.
    pub(crate) fn flush_send_queue(
        &mut self,
        adapter: &mut AnyAdapter,
        target: TaskId,
    ) -> Result<usize, LapiError> {
        let mut frames = 0;
        while !self.send_queues[target].waiting.is_empty() {
            match self.send_frame(adapter, target)? {
                FrameSent::Full => break,
                FrameSent::Part => frames += 1,
                FrameSent::Last => {
                    frames += 1;
                    self.queued -= 1;
                    let send_queue = &mut self.send_queues[target];
                    send_queue.gone += 1;
                    send_queue.is_free = send_queue.waiting.len() == 1 && send_queue.is_open();
                    match send_queue.waiting.pop_front() {
                        // Its own event ends it.
                        None | Some(Outgoing::Access(_)) => {}
                        Some(operation) => self.end_outgoing(operation),
                    }
                }
            }
        }
        Ok(frames)
    }

    /// [`Self::flush_send_queue`] for every send queue with queued operations. A send queue that fails does not delay
    /// the others; the first error is returned.
    pub(crate) fn flush(&mut self, adapter: &mut AnyAdapter) -> Result<usize, LapiError> {
        let (mut frames, mut first_error) = (0, None);
        for place in 0.. {
            let Some(target) = self.send_queues.task_at(place).filter(|_| self.queued > 0) else {
                break;
            };
            match self.flush_send_queue(adapter, target) {
                Ok(went) => frames += went,
                Err(error) => {
                    first_error.get_or_insert(error);
                }
            }
        }
        first_error.map_or(Ok(frames), Err)
    }
}

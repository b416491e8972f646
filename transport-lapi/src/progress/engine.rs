//! What happens to a frame that arrives: its packet is decoded and acted on by kind, and long messages are
//! reassembled. `round.rs` passes the frames on (E1, E3).
//!
//! - E2: at most one message per origin is being reassembled, since a send queue sends one message after another. Until
//!   its completion nobody else writes to its destination region.

use std::sync::Arc;

use crate::adapter::{Doorbell, Frame, MAX_TASKS, Parts, TaskId};
use crate::adapters::AnyAdapter;
use crate::error::{LapiError, Violation};
use crate::memory::body::Sink;
use crate::memory::region::ForeignBytes;
use crate::progress::addresses::Addresses;
use crate::progress::amsend::Outgoing;
use crate::progress::completion::{CompletionThread, Due};
use crate::progress::connection::Connections;
use crate::progress::get::SharedGet;
use crate::progress::handler::{Arrival, HeaderAction, HeaderHandler, Next, ShortHandler};
use crate::progress::outbox::Outbox;
use crate::progress::per_task::{PerTask, Tasks};
use crate::progress::places::Places;
use crate::progress::serve::request::OWN;
use crate::progress::serve::{Ahead, Destination};
use crate::wire::{self, MAX_HANDLERS, Packet, RemoteCounters};

/// Rounds of the dissemination barrier in the largest job.
pub(crate) const BARRIER_ROUNDS: usize = MAX_TASKS.ilog2() as usize;

/// The state of a task apart from its adapter and its client's state.
pub(crate) struct Engine<S> {
    pub task: TaskId,
    pub outbox: Outbox<S>,
    pub handlers: Box<[Option<HeaderHandler<S>>; MAX_HANDLERS]>,
    pub short: Box<[Option<ShortHandler<S>>; MAX_HANDLERS]>,
    /// Barrier messages received minus those consumed, per round.
    pub barrier: [u32; BARRIER_ROUNDS],
    pub connections: Connections<S>,
    /// Values of a collective exchange that have arrived.
    pub addresses: Addresses,
    /// How many frames have been dispatched that did not complete a message.
    pub partial: u64,
    /// How many things rounds have done besides dispatching frames.
    pub rest: u64,
    /// Vectors that origins have sent ahead of their requests.
    pub ahead: Ahead,
    open: PerTask<Option<Reassembly<S>>>,
    places: Places,
    bell: Arc<dyn Doorbell>,
    thread: Option<CompletionThread>,
}

/// A message of several packets, partly received (E2).
struct Reassembly<S> {
    msg: u32,
    total: u64,
    received: u64,
    into: Sink,
    /// Whether the message before it from the same task went to the same place.
    is_repeated: bool,
    next: Next<S>,
    counters: RemoteCounters,
    /// The registration that a put writes into.
    held: Option<u64>,
}

impl<S> Engine<S> {
    pub fn new(adapter: &AnyAdapter, parts: &Parts, max_body: usize) -> Self {
        let (task, tasks) = (adapter.endpoint().task, Tasks::of(&**adapter));
        let outbox = Outbox::new(adapter, &tasks, parts.area.clone(), max_body);
        Self {
            task,
            outbox,
            handlers: Box::new([None; MAX_HANDLERS]),
            short: Box::new([None; MAX_HANDLERS]),
            barrier: [0; BARRIER_ROUNDS],
            connections: Connections::default(),
            addresses: Addresses::new(&tasks),
            partial: 0,
            rest: 0,
            ahead: Ahead::default(),
            open: PerTask::new(&tasks, None, |_| None),
            places: Places::new(&tasks),
            bell: parts.bell.clone(),
            thread: None,
        }
    }

    /// Dispatches one frame (E1, E3).
    pub fn dispatch(&mut self, state: &mut S, frame: Frame<'_>) -> Result<(), LapiError> {
        let Frame { origin, head, body } = frame;
        if self.comes_too_late(origin) {
            if let Ok(Packet::Resume) = wire::decode(head, body.len()) {
                self.reopened_by(origin);
            }
            return Ok(());
        }
        let peer = |violation| LapiError::Peer { origin, violation };
        let packet = wire::decode(head, body.len()).map_err(|error| peer(error.into()))?;
        match packet {
            Packet::Single { handler, counters, uhdr } => {
                self.single(state, handler, uhdr, body, Due { origin, counters })
            }
            Packet::Placed { handler, counters, ticket, place, total, uhdr } => {
                let shared = self.outbox.shared.as_ref();
                // Kept for the body, while handlers change the outbox.
                let area = shared.map(|shared| Arc::clone(&shared.area));
                let body = shared
                    .zip(area.as_deref())
                    .and_then(|(shared, area)| shared.direct.foreign(area, origin, place, total));
                let body = body.ok_or(peer(Violation::OutsideArea { place, len: total }))?;
                // Sent after this round, so when the bytes have been copied, also if a handler fails or panics.
                self.outbox.push(origin, Outgoing::Control(Packet::Copied { ticket }));
                self.single(state, handler, uhdr, body, Due { origin, counters })
            }
            Packet::First { handler, counters, msg, total, uhdr } => {
                let (into, next, held) = (Sink::EMPTY, Next::Nothing, None);
                let begin = Reassembly {
                    msg,
                    total,
                    received: 0,
                    into,
                    is_repeated: false,
                    next,
                    counters,
                    held,
                };
                self.first(state, origin, handler, uhdr, body, begin)
            }
            Packet::Body { msg, offset } => self.body(state, origin, msg, offset, body),
            other => {
                self.partial += 1;
                self.control(origin, other, body).map_err(peer)
            }
        }
    }

    /// Handles a message of which all bytes are there.
    #[inline]
    fn single(
        &mut self,
        state: &mut S,
        handler: u8,
        uhdr: &[u8],
        body: ForeignBytes<'_>,
        due: Due,
    ) -> Result<(), LapiError> {
        let Due { origin, counters } = due;
        if handler == OWN {
            return self.single_request(state, uhdr, body, due);
        }
        let short = self.short[usize::from(handler)].filter(|_| counters.is_none());
        let action = match (short, uhdr.try_into()) {
            (Some(short), Ok(word)) => short(state, origin, u64::from_le_bytes(word), body)
                .map_or(HeaderAction::Consumed, |(follow_up, info)| {
                    HeaderAction::Then(Next::Inline(follow_up, info))
                }),
            _ => {
                let handler = self.header_handler(origin, handler)?;
                let len = body.len() as u64;
                handler(state, Arrival { origin, uhdr, len, data: Some(body) })
            }
        };
        self.act(state, action, body, due)
    }

    #[inline]
    fn header_handler(&self, origin: TaskId, index: u8) -> Result<HeaderHandler<S>, LapiError> {
        let handler = self.handlers[usize::from(index)];
        handler.ok_or_else(|| match self.short[usize::from(index)] {
            Some(_) => LapiError::Peer { origin, violation: Violation::NotShort { index } },
            None => LapiError::HdrHndlrNull { origin, index },
        })
    }

    /// Carries out the decision of a header handler on a message of which all bytes have arrived.
    fn act(
        &mut self,
        state: &mut S,
        action: HeaderAction<S>,
        body: ForeignBytes<'_>,
        due: Due,
    ) -> Result<(), LapiError> {
        let (mut into, next) = action.parts();
        into.store(0, body);
        self.complete(state, next, due)
    }

    fn first(
        &mut self,
        state: &mut S,
        origin: TaskId,
        handler: u8,
        uhdr: &[u8],
        body: ForeignBytes<'_>,
        begin: Reassembly<S>,
    ) -> Result<(), LapiError> {
        // A message that broke off is abandoned: its completion handler never runs.
        let broken_off = self.break_off(origin);
        let next = begin.msg;
        let begun = self.begin(state, origin, handler, uhdr, body, begin);
        match broken_off {
            None => begun,
            Some(open) => {
                let violation = Violation::Interleaved { open, next };
                Err(LapiError::Peer { origin, violation })
            }
        }
    }

    fn begin(
        &mut self,
        state: &mut S,
        origin: TaskId,
        handler: u8,
        uhdr: &[u8],
        body: ForeignBytes<'_>,
        begin: Reassembly<S>,
    ) -> Result<(), LapiError> {
        if handler == OWN {
            return self.long_request(state, origin, uhdr, body, begin);
        }
        let handler = self.header_handler(origin, handler)?;
        let arrival = Arrival { origin, uhdr, len: begin.total, data: None };
        let (into, next) = handler(state, arrival).parts();
        let msg = begin.msg;
        self.open[origin] = Some(Reassembly { into, next, ..begin });
        self.body(state, origin, msg, 0, body)
    }

    /// Handles a request for a one-sided operation that came in one packet.
    #[inline(never)]
    fn single_request(
        &mut self,
        state: &mut S,
        uhdr: &[u8],
        body: ForeignBytes<'_>,
        due: Due,
    ) -> Result<(), LapiError> {
        let destination = self.request(due.origin, uhdr, body.len() as u64, Some(body))?;
        if let Some(mut destination) = destination {
            destination.into.store(0, body);
        }
        self.complete(state, Next::Nothing, due)
    }

    /// Handles the beginning of a request with data of several packets. The data of a refused one is discarded.
    fn long_request(
        &mut self,
        state: &mut S,
        origin: TaskId,
        uhdr: &[u8],
        body: ForeignBytes<'_>,
        mut begin: Reassembly<S>,
    ) -> Result<(), LapiError> {
        let requested = self.request(origin, uhdr, begin.total, None);
        let outcome = match requested {
            Ok(destination) => {
                if let Some(Destination { into, key }) = destination {
                    self.outbox.regions.begin_use(key);
                    (begin.into, begin.held) = (into, Some(key));
                }
                Ok(())
            }
            Err(error) => {
                begin.counters = RemoteCounters::default();
                Err(error)
            }
        };
        let msg = begin.msg;
        self.open[origin] = Some(begin);
        self.body(state, origin, msg, 0, body)?;
        outcome
    }

    /// Gives up the message of `origin` that is being reassembled, if there is one, and returns its number.
    pub fn break_off(&mut self, origin: TaskId) -> Option<u32> {
        let Reassembly { msg, held, .. } = self.open[origin].take()?;
        held.into_iter().for_each(|key| self.outbox.end_use(key));
        Some(msg)
    }

    fn body(
        &mut self,
        state: &mut S,
        origin: TaskId,
        msg: u32,
        offset: u64,
        body: ForeignBytes<'_>,
    ) -> Result<(), LapiError> {
        let slot = &mut self.open[origin];
        let peer = |violation| LapiError::Peer { origin, violation };
        let Some(open) = slot.as_mut().filter(|open| open.msg == msg) else {
            return Err(peer(Violation::StrayBody { msg }));
        };
        let fits = body.len() as u64 <= open.total - open.received;
        if offset != open.received || !fits {
            return Err(peer(Violation::BodyOffset { offset, expected: open.received }));
        }
        if offset == 0 {
            open.is_repeated = self.places.repeats(origin, open.into.address());
        }
        if offset < open.into.len() as u64 {
            if open.is_repeated {
                open.into.store_piece(offset as usize, body);
            } else {
                open.into.store(offset as usize, body);
            }
        }
        open.received += body.len() as u64;
        if open.received < open.total {
            self.partial += 1;
            return Ok(());
        }
        match slot.take() {
            Some(Reassembly { next, counters, held, .. }) => {
                held.into_iter().for_each(|key| self.outbox.end_use(key));
                self.complete(state, next, Due { origin, counters })
            }
            None => Ok(()),
        }
    }

    /// Completes a message whose last byte is stored, or an operation of this task that has ended: performs `next`,
    /// then updates counters.
    #[inline]
    pub fn complete(&mut self, state: &mut S, next: Next<S>, due: Due) -> Result<(), LapiError> {
        match next {
            Next::Inline(handler, info) => handler(state, &mut self.outbox, info),
            Next::Outcome(handler, info) => handler(state, &mut self.outbox, info, Ok(())),
            Next::Nothing | Next::Counter(_) | Next::Unlocked(_) => self.outbox.follow(next),
            Next::Thread(run) => {
                if self.thread.is_none() {
                    self.thread = Some(CompletionThread::start(self.task, self.bell.clone())?);
                }
                if let Some(thread) = &mut self.thread {
                    thread.run(run, due);
                }
                return Ok(());
            }
        }
        self.count(due)
    }

    /// Adds one to the target counter here, and sends for the completion counter at the origin.
    #[inline]
    fn count(&mut self, due: Due) -> Result<(), LapiError> {
        let Due { origin, counters } = due;
        if counters.is_none() {
            return Ok(());
        }
        if counters.completion != 0 {
            let news = Packet::Complete { counter: counters.completion };
            self.outbox.push(origin, Outgoing::Control(news));
        }
        if !self.outbox.counters.count_from(counters.target, origin) {
            let violation = Violation::UnknownCounter { index: counters.target - 1 };
            return Err(LapiError::Peer { origin, violation });
        }
        Ok(())
    }

    /// Whether there is no unfinished work that progress must continue.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.outbox.is_idle() && self.thread.is_none()
    }

    /// Runs all due follow-up actions and returns their number.
    pub fn run_ready(
        &mut self,
        state: &mut S,
        adapter: &mut AnyAdapter,
    ) -> Result<usize, LapiError> {
        let (mut done, mut first_error) = (0, None);
        let due = Due { origin: self.task, counters: RemoteCounters::default() };
        while let Some(ready) = self.outbox.ready.pop_front() {
            done += 1;
            // What follows the end of a registration may release its memory.
            self.outbox.deregister_directly(adapter);
            let outcome = match ready {
                (next, Ok(())) => self.complete(state, next, due),
                (Next::Outcome(handler, info), Err(error)) => {
                    handler(state, &mut self.outbox, info, Err(*error));
                    Ok(())
                }
                (_, Err(error)) => Err(*error),
            };
            if let Err(error) = outcome {
                first_error.get_or_insert(error);
            }
        }
        first_error.map_or(Ok(done), Err)
    }

    /// Updates counters for the completion handlers that have returned on the thread; returns how many those were.
    pub fn collect(&mut self) -> Result<usize, LapiError> {
        let mut finished = 0;
        while let Some(news) = self.thread.as_mut().and_then(CompletionThread::finished) {
            finished += 1;
            self.count(news?)?;
        }
        Ok(finished)
    }

    /// Ends the completion thread once it has run the handlers queued there.
    pub fn join_thread(&mut self) {
        self.thread = None;
    }

    /// Forgets the completion thread, for a fork, which has no such thread to wait for.
    pub fn forget_thread(&mut self) {
        std::mem::forget(self.thread.take());
    }

    /// Abandons the unfinished operations in both directions.
    pub fn abandon(&mut self, adapter: &mut AnyAdapter) {
        self.outbox.abandon(adapter);
    }

    fn control(
        &mut self,
        origin: TaskId,
        packet: Packet<'_>,
        body: ForeignBytes<'_>,
    ) -> Result<(), Violation> {
        match packet {
            Packet::Complete { counter } => {
                if counter == 0 || !self.outbox.counters.count_from(counter, origin) {
                    return Err(Violation::UnknownCounter { index: counter.wrapping_sub(1) });
                }
            }
            Packet::Copied { ticket } => self.outbox.copied(ticket, origin)?,
            Packet::GetRequest { ticket, key, offset, len } => {
                if len == 0 || self.outbox.regions.part(key, offset, len).is_none() {
                    let refusal = Packet::GetRefused { ticket };
                    self.outbox.push(origin, Outgoing::Control(refusal));
                    return Err(Violation::UnregisteredGet { offset, len });
                }
                let reply = Outgoing::GetReply { ticket, key, offset, len, sent: 0, blocks: None };
                self.outbox.push(origin, reply);
            }
            Packet::GetData { ticket, offset } => {
                self.outbox.get_data(ticket, origin, offset, body)?;
            }
            Packet::GetShare { number, key, offset, len } => {
                self.outbox.shared_by(SharedGet { origin, number, key, offset, len })?;
            }
            Packet::GetRefused { ticket } => self.outbox.get_refused(ticket, origin)?,
            Packet::PutRefused => return Err(Violation::PutRefused),
            Packet::Rmw { ticket, operation, key, offset, operands } => {
                let operation = (operation, operands);
                self.outbox.serve_rmw(origin, ticket, operation, key, offset)?;
            }
            Packet::RmwDone { ticket, value } => {
                self.outbox.rmw_answered(ticket, origin, Some(value))?;
            }
            Packet::RmwRefused { ticket } => self.outbox.rmw_answered(ticket, origin, None)?,
            Packet::Fence => {
                self.outbox.push(origin, Outgoing::Control(Packet::FenceAck));
            }
            Packet::FenceAck => {
                let send_queue = &mut self.outbox.send_queues[origin];
                send_queue.fences =
                    send_queue.fences.checked_sub(1).ok_or(Violation::StrayFence)?;
            }
            Packet::Barrier { round } => {
                let seen = self.barrier.get_mut(usize::from(round));
                let seen = seen.ok_or(Violation::BarrierRound { round })?;
                *seen = seen.saturating_add(1);
            }
            Packet::Address { value } => self.addresses.arrived(origin, value)?,
            Packet::Resume => self.reopened_by(origin),
            Packet::Single { .. }
            | Packet::Placed { .. }
            | Packet::First { .. }
            | Packet::Body { .. } => {}
        }
        Ok(())
    }
}

//! An adapter around another one that injects faults, from a seed.
//!
//! Frames can be refused as if there were no room, held back (in order per pair), truncated, or have a bit flipped; a
//! task can be declared lost. One-sided operations can be refused in the same way, and the ends of those that were
//! started can be held back, so that they come in another order than the operations; but a flush ends after the puts
//! and atomic operations before it (A12). These faults stay within what the transport copes with, or reports.
//!
//! The same seed, plan and sequence of calls give the same faults. Held-back frames are sent when the sender polls, so
//! contract A4 holds only for senders that poll. As long as anything is held back, each poll rings the task's own bell,
//! so that a thread that sleeps polls again. Shared areas are those of the adapter inside, where nothing goes wrong.

#![expect(unsafe_code, reason = "an adapter is made of another one")]

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use transport_lapi::adapter::{
    Adapter, AdapterError, Advance, Begun, Caps, CooperativeCopy, Doorbell, Endpoint, Events,
    Frame, GetKind, Losses, OneSided, Parts, Post, Registered, Stats, TaskId, Ticket, Transfer,
};
use transport_lapi::{
    AnyAdapter, ForeignBytes, Piece, RecvRegion, RemoteKey, RemoteRegion, SendRegion, Source,
};

use crate::numbers::Numbers;

/// The frequency of each fault, per thousand frames or one-sided operations.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FaultPlan {
    /// A frame is refused as full.
    pub full: u16,
    /// A frame is held back for some polls. Later frames of the same pair wait behind it.
    pub delay: u16,
    /// A one-sided operation is refused as full.
    pub refused: u16,
    /// The end of a one-sided operation is held back for some polls.
    pub late: u16,
    /// A put is refused for good, as one of memory that is not registered.
    pub denied: u16,
    /// A flush fails although its target is there.
    pub unflushed: u16,
    /// The head or the body of an arriving frame is truncated.
    pub truncate: u16,
    /// A bit of an arriving frame's head or body is flipped.
    pub corrupt: u16,
    /// What software of a network does counts as done by hardware: not a fault, but a way to test what is meant for it.
    pub as_hardware: bool,
    /// The task that is declared lost, and after how many offered frames.
    pub lose: Option<(TaskId, u64)>,
}

impl FaultPlan {
    /// A plan without faults.
    pub const NONE: Self = Self {
        full: 0,
        delay: 0,
        refused: 0,
        late: 0,
        denied: 0,
        unflushed: 0,
        truncate: 0,
        corrupt: 0,
        as_hardware: false,
        lose: None,
    };
    /// Faults of one-sided operations only, within the contract.
    pub const ONE_SIDED: Self = Self { refused: 300, late: 300, ..Self::NONE };
}

/// The error for a put that is refused for good.
fn denied(target: TaskId, operation: &OneSided<'_>) -> AdapterError {
    let len = if let OneSided::Put { from, .. } = operation { from.len() } else { 0 };
    let reason = std::io::ErrorKind::InvalidInput.into();
    AdapterError::AccessFailed { target, len, reason }
}

/// Whether a fault of this frequency happens.
fn falls(dice: &mut Numbers, per_mille: u16) -> bool {
    per_mille > 0 && dice.below(1000) < usize::from(per_mille)
}

/// The number of injected faults, to compare with those that were noticed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FaultCount {
    /// Frames and one-sided operations refused.
    pub full: u64,
    /// Frames held back.
    pub delayed: u64,
    /// Frames truncated.
    pub truncated: u64,
    /// Frames with a flipped bit.
    pub corrupted: u64,
}

/// An adapter that misbehaves according to a plan.
pub struct FaultAdapter<A> {
    inner: A,
    plan: FaultPlan,
    dice: Numbers,
    losses: Arc<FaultyLosses>,
    /// Held-back frames by target, in order.
    held: Vec<VecDeque<Held>>,
    /// The one-sided operations whose ends have not been reported, in the order of their starts.
    started: Vec<Started>,
    bell: Arc<dyn Doorbell>,
    count: Arc<Mutex<FaultCount>>,
}

/// The losses of the adapter inside, and the one that the plan makes.
struct FaultyLosses {
    inner: Arc<dyn Losses>,
    lose: Option<(TaskId, u64)>,
    /// How many frames were offered.
    offered: AtomicU64,
}

/// A one-sided operation whose end has not been reported.
struct Started {
    kind: Kind,
    target: TaskId,
    ticket: Ticket,
    /// How it has ended in the adapter inside.
    outcome: Option<Result<i64, AdapterError>>,
    /// Polls after its end until that is reported.
    wait: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Get,
    /// A put or an atomic operation.
    Change,
    Flush,
}

impl Started {
    /// Whether its end may be reported although these operations, started before it, have not ended (A12).
    fn may_overtake(&self, earlier: &[Self]) -> bool {
        let holds_up = |one: &Self| one.kind == Kind::Change && one.target == self.target;
        self.kind != Kind::Flush || !earlier.iter().any(holds_up)
    }

    fn report(self, outcome: Result<i64, AdapterError>, events: &mut dyn Events) {
        match self.kind {
            Kind::Get => events.got(self.ticket, outcome.map(drop)),
            Kind::Change | Kind::Flush => events.ended(self.ticket, outcome),
        }
    }
}

/// The ticket of held-back bodies: they are copies, so nobody waits for them to leave.
const HELD: Ticket = Ticket(u32::MAX);

/// A frame that is held back.
struct Held {
    /// Polls until it is released.
    wait: u64,
    head: Vec<u8>,
    body: Source,
    len: usize,
}

impl Held {
    /// Copies a frame.
    fn new(wait: u64, head: &[u8], body: Piece<'_>) -> Self {
        Self { wait, head: head.to_vec(), body: Source::from(body.to_vec()), len: body.len() }
    }

    /// Counts a poll, and sends the frame if it is due. Returns whether it was sent.
    fn release<A: Adapter>(&mut self, inner: &mut A, to: TaskId) -> Result<bool, AdapterError> {
        self.wait = self.wait.saturating_sub(1);
        if self.wait > 0 {
            return Ok(false);
        }
        let body = self.body.piece(0, self.len);
        Ok(inner.try_send(to, &self.head, body, HELD)? != Post::Full)
    }
}

impl FaultyLosses {
    /// The task that the plan has declared lost by now.
    fn gone(&self) -> Option<TaskId> {
        let (task, after) = self.lose?;
        (self.offered.load(Ordering::Relaxed) >= after).then_some(task)
    }
}

impl Losses for FaultyLosses {
    fn count(&self) -> usize {
        let is_news = self.gone().is_some_and(|task| !self.inner.is_lost(task));
        self.inner.count() + usize::from(is_news)
    }

    fn is_lost(&self, task: TaskId) -> bool {
        self.gone() == Some(task) || self.inner.is_lost(task)
    }

    fn declare(&self) {
        self.inner.declare();
    }
}

impl<A: Adapter> From<FaultAdapter<A>> for AnyAdapter {
    fn from(adapter: FaultAdapter<A>) -> Self {
        Self::brought(adapter)
    }
}

impl<A: Adapter> FaultAdapter<A> {
    /// Wraps the adapters of a job, each with a seed of its own.
    pub fn job(tasks: Vec<A>, seed: u64, plan: FaultPlan) -> Vec<Self> {
        let seeds = seed << 8..;
        tasks.into_iter().zip(seeds).map(|(task, seed)| Self::new(task, seed, plan)).collect()
    }

    /// Wraps `inner`.
    pub fn new(inner: A, seed: u64, plan: FaultPlan) -> Self {
        let num_tasks = inner.endpoint().num_tasks;
        let held = std::iter::repeat_with(VecDeque::new).take(num_tasks).collect();
        let (dice, count) = (Numbers(seed), Arc::default());
        let lose = plan.lose.filter(|(task, _)| (*task as usize) < num_tasks);
        let Parts { losses, bell, .. } = inner.parts();
        let losses = Arc::new(FaultyLosses { inner: losses, lose, offered: AtomicU64::new(0) });
        Self { inner, plan, dice, losses, held, started: Vec::new(), bell, count }
    }

    /// Returns where the number of faults is counted.
    pub fn count(&self) -> Arc<Mutex<FaultCount>> {
        self.count.clone()
    }

    fn gone(&self) -> Option<TaskId> {
        self.losses.gone()
    }

    /// Sends the held-back frames that are due.
    fn release(&mut self) -> Result<(), AdapterError> {
        let Self { inner, held, .. } = self;
        for (target, held) in (0..).zip(held) {
            while let Some(first) = held.front_mut() {
                if !first.release(inner, target)? {
                    break;
                }
                held.pop_front();
            }
        }
        Ok(())
    }

    /// Decides how many polls something is held back.
    fn wait(&mut self) -> u64 {
        1 + self.dice.next_number() % 8
    }

    /// Whether something is refused as full; if so, the caller is woken to try again (A6).
    fn refuses(&mut self, per_mille: u16) -> bool {
        let refuses = falls(&mut self.dice, per_mille);
        if refuses {
            self.count.lock().full += 1;
            self.bell.ring();
        }
        refuses
    }

    /// Reports the ends that are due; returns how many.
    fn report(&mut self, events: &mut dyn Events) -> usize {
        let (mut kept, mut reported) = (Vec::new(), 0);
        for mut one in self.started.drain(..) {
            match one.outcome.take() {
                Some(outcome) if one.wait == 0 && one.may_overtake(&kept) => {
                    let fails =
                        one.kind == Kind::Flush && falls(&mut self.dice, self.plan.unflushed);
                    let outcome = if fails { Err(made_up(one.target)) } else { outcome };
                    one.report(outcome, events);
                    reported += 1;
                }
                outcome => {
                    one.wait = one.wait.saturating_sub(u64::from(outcome.is_some()));
                    kept.push(Started { outcome, ..one });
                }
            }
        }
        self.started = kept;
        reported
    }
}

/// The error of a flush that fails.
fn made_up(target: TaskId) -> AdapterError {
    AdapterError::AccessFailed { target, len: 0, reason: io::Error::other("made up by the plan") }
}

// SAFETY: frames are copied when they are held back, and ends are reported later than by the inner adapter (A9), to
// which every access to regions is passed.
unsafe impl<A: Adapter> Adapter for FaultAdapter<A> {
    fn endpoint(&self) -> Endpoint {
        self.inner.endpoint()
    }

    fn caps(&self, target: TaskId) -> Caps {
        let caps = self.inner.caps(target);
        let is_software = caps.gets == Some(GetKind::RemoteSoftware);
        match self.plan.as_hardware && is_software {
            true => Caps { gets: Some(GetKind::RemoteDirect), ..caps },
            false => caps,
        }
    }

    fn parts(&self) -> Parts {
        Parts { losses: self.losses.clone(), ..self.inner.parts() }
    }

    fn try_send(
        &mut self,
        target: TaskId,
        head: &[u8],
        body: Piece<'_>,
        ticket: Ticket,
    ) -> Result<Post, AdapterError> {
        self.losses.offered.fetch_add(1, Ordering::Relaxed);
        if self.gone() == Some(target) {
            return Ok(Post::Full);
        }
        if self.refuses(self.plan.full) {
            return Ok(Post::Full);
        }
        let behind = !self.held[target as usize].is_empty();
        if behind || falls(&mut self.dice, self.plan.delay) {
            self.count.lock().delayed += 1;
            let held = Held::new(self.wait(), head, body);
            self.held[target as usize].push_back(held);
            return Ok(Post::Taken);
        }
        self.inner.try_send(target, head, body, ticket)
    }

    fn poll(
        &mut self,
        origin: Option<TaskId>,
        budget: usize,
        events: &mut dyn Events,
    ) -> Result<usize, AdapterError> {
        self.release()?;
        let Self { inner, plan, dice, count, started, .. } = self;
        let mut count = count.lock();
        let mut harm = Harm { plan, dice, count: &mut count, started, ended: 0, events };
        let polled = inner.poll(origin, budget, &mut harm);
        let ended = harm.ended;
        drop(count);
        let reported = self.report(events);
        let is_held = |one: &Started| one.outcome.is_some();
        if self.started.iter().any(is_held) || self.held.iter().any(|held| !held.is_empty()) {
            self.bell.ring();
        }
        Ok(polled? - ended + reported)
    }

    fn while_waiting(&mut self) {
        self.inner.while_waiting();
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
        if self.gone() == Some(target) {
            return Err(AdapterError::PeerLost { task: target });
        }
        if self.refuses(self.plan.refused) {
            return Ok(Transfer::Full);
        }
        if matches!(operation, OneSided::Put { .. }) && falls(&mut self.dice, self.plan.denied) {
            return Err(denied(target, &operation));
        }
        let kind = match &operation {
            OneSided::Get { .. } => Kind::Get,
            OneSided::Put { .. } | OneSided::Atomic { .. } => Kind::Change,
            OneSided::Flush => Kind::Flush,
        };
        let is_late = falls(&mut self.dice, self.plan.late);
        let outcome = match self.inner.start(target, operation, ticket)? {
            Transfer::Started => None,
            Transfer::Done(result) if is_late || kind == Kind::Flush => Some(Ok(result)),
            over => return Ok(over),
        };
        let wait = if is_late { self.wait() } else { 0 };
        self.started.push(Started { kind, target, ticket, outcome, wait });
        Ok(Transfer::Started)
    }

    fn cooperative_copy(&mut self) -> Option<&mut dyn CooperativeCopy> {
        self.inner.cooperative_copy().is_some().then_some(self)
    }

    fn detach(&mut self) -> bool {
        self.held.iter_mut().for_each(VecDeque::clear);
        self.inner.detach()
    }

    fn stats(&self) -> Option<Stats> {
        self.inner.stats()
    }
}

impl<A: Adapter> FaultAdapter<A> {
    fn copies(&mut self) -> &mut dyn CooperativeCopy {
        self.inner.cooperative_copy().expect("given out only where the adapter inside has it")
    }
}

impl<A: Adapter> CooperativeCopy for FaultAdapter<A> {
    fn begin(
        &mut self,
        target: TaskId,
        remote: RemoteRegion,
        offset: u64,
        into: RecvRegion,
    ) -> Begun {
        self.copies().begin(target, remote, offset, into)
    }

    fn advance(&mut self, target: TaskId) -> Result<Advance, AdapterError> {
        if self.gone() != Some(target) {
            return self.copies().advance(target);
        }
        if !self.copies().end(target) {
            return Ok(Advance::Waiting);
        }
        Err(AdapterError::PeerLost { task: target })
    }

    fn end(&mut self, target: TaskId) -> bool {
        self.copies().end(target)
    }

    fn assist(&mut self, origin: TaskId, number: u32, from: SendRegion) -> bool {
        self.copies().assist(origin, number, from)
    }
}

/// Damages frames on their way from the inner adapter.
struct Harm<'a> {
    plan: &'a FaultPlan,
    dice: &'a mut Numbers,
    count: &'a mut FaultCount,
    started: &'a mut Vec<Started>,
    /// How many of these have ended in this poll.
    ended: usize,
    events: &'a mut dyn Events,
}

impl Harm<'_> {
    /// Keeps the end of an operation.
    fn end(&mut self, is_get: bool, ticket: Ticket, outcome: Result<i64, AdapterError>) {
        self.ended += 1;
        let is_its = |one: &&mut Started| {
            (one.kind == Kind::Get) == is_get && one.ticket == ticket && one.outcome.is_none()
        };
        let one = self.started.iter_mut().find(is_its).expect("it was started, and ends once");
        one.outcome = Some(outcome);
    }
}

impl Events for Harm<'_> {
    fn frame(&mut self, frame: Frame<'_>) {
        let Self { plan, dice, count, events, .. } = self;
        let mut head = frame.head.to_vec();
        let mut body = frame.body;
        let mut damaged = Vec::new();
        if falls(dice, plan.corrupt) && !head.is_empty() {
            let bit = dice.below((head.len() + body.len()) * 8);
            match head.get_mut(bit / 8) {
                Some(byte) => *byte ^= 1 << (bit % 8),
                None => {
                    damaged = body.to_vec();
                    damaged[bit / 8 - head.len()] ^= 1 << (bit % 8);
                }
            }
            count.corrupted += 1;
        }
        if !damaged.is_empty() {
            body = ForeignBytes::from_slice(&damaged);
        }
        if falls(dice, plan.truncate) {
            if body.is_empty() {
                head.truncate(dice.below(head.len() + 1));
            } else {
                body = body.part(0, dice.below(body.len()));
            }
            count.truncated += 1;
        }
        match head[..].try_into() {
            Ok(short) => events.short(frame.origin, short, body),
            Err(_) => events.frame(Frame { origin: frame.origin, head: &head, body }),
        }
    }

    fn send_complete(&mut self, ticket: Ticket) {
        if ticket != HELD {
            self.events.send_complete(ticket);
        }
    }

    fn got(&mut self, ticket: Ticket, outcome: Result<(), AdapterError>) {
        self.end(true, ticket, outcome.map(|()| 0));
    }

    fn ended(&mut self, ticket: Ticket, outcome: Result<i64, AdapterError>) {
        self.end(false, ticket, outcome);
    }
}

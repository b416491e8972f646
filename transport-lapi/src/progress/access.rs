//! One-sided operations other than gets, from their start to their end: puts and atomic operations that the adapter
//! carries out without the target ([`crate::adapter::OneSided`]), the flushes that tell when puts are in place, and
//! atomic operations that the target carries out, which is asked for them by packets.
//!
//! Each of them is an [`Access`]. One for the adapter waits in the send queue of its target, like a message, until the
//! adapter has room; so they start in the order of the calls. A put that something follows when it is in place is
//! followed by a flush. A put that the adapter refuses goes over frames, and the target reports what is wrong, unless its
//! caller is told of all that happens to it. An atomic operation that it refuses fails, since the target would carry it
//! out in another way (A13 of [`crate::adapter`]).

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use crate::adapter::atomic::Operation;
use crate::adapter::{AdapterError, OneSided, TaskId, Ticket, Transfer};
use crate::adapters::AnyAdapter;
use crate::error::{LapiError, Violation};
use crate::memory::body::Source;
use crate::memory::region::RemoteRegion;
use crate::progress::amsend::{FrameSent, Message, Outgoing};
use crate::progress::handler::Next;
use crate::progress::outbox::Outbox;
use crate::progress::serve::request::{OWN, Request};
use crate::wire::{Packet, RemoteCounters};

/// A one-sided operation that has not ended.
pub(crate) struct Access<S> {
    target: TaskId,
    /// Whether the target was asked for it, over frames.
    is_requested: bool,
    /// How often the connection had been closed when it began.
    closed: u32,
    kind: Kind<S>,
}

enum Kind<S> {
    Put(PutAccess<S>),
    Atomic(AtomicAccess<S>),
    /// What follows when the puts before it are in place; `None` for a flush of a fence.
    Flush(Option<Placed<S>>),
}

/// What follows when the bytes of a put are in place.
pub(crate) enum Placed<S> {
    /// Counters count it, if there are any.
    Count(RemoteCounters),
    /// This, which is also told if the bytes will never be there.
    Then(Next<S>),
}

/// A put of the adapter.
pub(crate) struct PutAccess<S> {
    pub remote: RemoteRegion,
    pub offset: u64,
    pub from: Source,
    /// What follows when the source is read no more.
    pub next: Next<S>,
    pub placed: Placed<S>,
}

/// An atomic operation.
pub(crate) struct AtomicAccess<S> {
    pub remote: RemoteRegion,
    pub offset: u64,
    pub operation: Operation,
    /// Where the result goes.
    pub prev: Option<Arc<AtomicI64>>,
    /// What follows when it is there.
    pub next: Next<S>,
}

impl<S> Kind<S> {
    fn operation(&self) -> OneSided<'_> {
        match self {
            Self::Put(PutAccess { remote, offset, from, .. }) => {
                OneSided::Put { remote, offset: *offset, from: from.piece(0, from.len()) }
            }
            Self::Atomic(AtomicAccess { remote, offset, operation, .. }) => {
                OneSided::Atomic { remote, offset: *offset, operation: *operation }
            }
            Self::Flush(_) => OneSided::Flush,
        }
    }
}

impl<S> Outbox<S> {
    /// Queues a put for the adapter. The caller has checked the arguments.
    pub(crate) fn queue_put(&mut self, target: TaskId, put: PutAccess<S>) {
        self.send_queues[target].unflushed = true;
        self.queue_access(target, Kind::Put(put));
    }

    /// Queues an atomic operation: for the adapter if it can carry it out, otherwise for the target. The caller has
    /// checked the arguments.
    pub(crate) fn queue_atomic(&mut self, target: TaskId, atomic: AtomicAccess<S>) {
        if self.send_queues[target].atomics && !atomic.remote.direct.is_none() {
            self.send_queues[target].unflushed = true;
            self.queue_access(target, Kind::Atomic(atomic));
        } else {
            self.request_atomic(target, atomic);
        }
    }

    /// Queues a flush of the puts to `target` that were queued before; see [`Kind::Flush`].
    pub(crate) fn queue_flush(&mut self, target: TaskId, placed: Option<Placed<S>>) {
        self.queue_access(target, Kind::Flush(placed));
    }

    fn queue_access(&mut self, target: TaskId, kind: Kind<S>) {
        let number = self.insert_access(target, false, kind);
        self.push(target, Outgoing::Access(number));
    }

    fn insert_access(&mut self, target: TaskId, is_requested: bool, kind: Kind<S>) -> u32 {
        let closed = self.send_queues[target].closed;
        self.accesses.insert(Access { target, is_requested, closed, kind })
    }

    /// Asks the target for a put that the adapter has refused, or tells the caller.
    fn put_refused(&mut self, target: TaskId, put: PutAccess<S>, error: AdapterError) {
        let PutAccess { remote, offset, from, next, placed } = put;
        let counters = match placed {
            Placed::Count(counters) => counters,
            Placed::Then(then) => {
                self.follow(next);
                return self.fail(then, error.into());
            }
        };
        let header = Request::Put { key: remote.key, offset }.encode();
        let message = Message::new(OWN, header.bytes(), from);
        let number = self.messages.insert(Message { next, counters, ..message });
        self.push(target, Outgoing::Message(number));
        if self.send_queues[target].flushes > 0 {
            // The flush of a fence that has begun says nothing about the message.
            self.push(target, Outgoing::Control(Packet::Fence));
            self.send_queues[target].fences += 1;
        }
    }

    /// Asks the target for an atomic operation.
    fn request_atomic(&mut self, target: TaskId, atomic: AtomicAccess<S>) {
        let AtomicAccess { remote: RemoteRegion { key, .. }, offset, .. } = atomic;
        let (operation, operands) = atomic.operation.encode();
        let kind = Kind::Atomic(atomic);
        let ticket = self.insert_access(target, true, kind);
        let request = Packet::Rmw { ticket, operation, key, offset, operands };
        self.push(target, Outgoing::Control(request));
    }

    /// Offers the access at the front of a send queue to the adapter.
    pub(crate) fn start_access(
        &mut self,
        adapter: &mut AnyAdapter,
        target: TaskId,
        number: u32,
    ) -> FrameSent {
        let access = self.accesses.get_mut(number).expect("it lasts until it has ended");
        match adapter.start(target, access.kind.operation(), Ticket(number)) {
            Ok(Transfer::Full) => return FrameSent::Full,
            Ok(Transfer::Started) => {}
            Ok(Transfer::Done(result)) => self.access_ended(number, Ok(result)),
            Err(error) => self.access_ended(number, Err(error)),
        }
        FrameSent::Last
    }

    /// Handles the end of an access that the adapter had started.
    pub(crate) fn access_ended(&mut self, number: u32, outcome: Result<i64, AdapterError>) {
        let is_started = self.accesses.get_mut(number).is_some_and(|access| !access.is_requested);
        let access = if is_started { self.accesses.remove(number) } else { None };
        let Some(Access { target, closed, kind, .. }) = access else { return };
        let send_queue = &mut self.send_queues[target];
        if closed != send_queue.closed {
            // What began before the connection was closed has no effect after it was opened again (PU1).
            return self.give_up(target, kind, LapiError::TgtPurged { target }, true);
        }
        match (kind, outcome) {
            (Kind::Put(PutAccess { next, placed, .. }), Ok(_)) => {
                self.follow(next);
                if !matches!(&placed, Placed::Count(counters) if counters.is_none()) {
                    self.queue_flush(target, Some(placed));
                }
            }
            (Kind::Atomic(AtomicAccess { prev, next, .. }), Ok(result)) => {
                self.modified(target, prev, next, result);
            }
            (Kind::Flush(Some(Placed::Count(counters))), Ok(_)) => self.stored(target, counters),
            (Kind::Flush(Some(Placed::Then(next))), Ok(_)) => self.follow(next),
            (Kind::Flush(None), Ok(_)) => {
                send_queue.flushes = send_queue.flushes.saturating_sub(1);
            }
            (Kind::Put(put), Err(error @ AdapterError::AccessFailed { .. })) => {
                self.put_refused(target, put, error);
            }
            (kind, Err(error)) => match self.check_lost(target) {
                Err(lost) => self.give_up(target, kind, lost, true),
                Ok(()) => self.give_up(target, kind, error.into(), false),
            },
        }
    }

    /// Ends an access that the adapter will not start, or of which the target tells nothing more, since the target is
    /// lost or purged.
    pub(crate) fn give_up_access(&mut self, number: u32) {
        if let Some(Access { target, kind, .. }) = self.accesses.remove(number) {
            let lost = self.check_lost(target).err();
            let lost = lost.unwrap_or(AdapterError::PeerLost { task: target }.into());
            self.give_up(target, kind, lost, true);
        }
    }

    /// Ends the atomic operations that the lost task was asked for. The adapter reports the ends of others (A10).
    pub(crate) fn lose_accesses(&mut self, lost: TaskId) {
        let is_over = |access: &Access<S>| access.target == lost && access.is_requested;
        for number in self.accesses.numbers(is_over) {
            self.give_up_access(number);
        }
    }

    /// Ends an access without its effect. As after a message, the source of a put is reusable. If the target `is_gone`,
    /// as is known, or was purged, a fence that needs the flush fails; otherwise nothing else says that bytes are not in
    /// place, so the error is reported.
    fn give_up(&mut self, target: TaskId, kind: Kind<S>, error: LapiError, is_gone: bool) {
        match kind {
            Kind::Atomic(AtomicAccess { next, .. }) => return self.fail(next, error),
            Kind::Put(PutAccess { next, placed: Placed::Then(then), .. }) => {
                self.follow(next);
                return self.fail(then, error);
            }
            Kind::Flush(Some(Placed::Then(then))) => return self.fail(then, error),
            Kind::Put(PutAccess { next, .. }) => self.follow(next),
            Kind::Flush(None) if !is_gone => {
                let flushes = &mut self.send_queues[target].flushes;
                *flushes = flushes.saturating_sub(1);
            }
            Kind::Flush(_) => {}
        }
        if !is_gone {
            self.fail(Next::Nothing, error);
        }
    }

    /// Counts a put whose bytes are in place, here and at the target.
    pub(crate) fn stored(&mut self, target: TaskId, counters: RemoteCounters) {
        self.counters.count_from(counters.completion, target);
        if counters.target != 0 {
            let counter = counters.target;
            self.push(target, Outgoing::Control(Packet::Complete { counter }));
        }
    }

    /// Handles the target's answer to an atomic operation: the result, or `None` if it has refused it.
    pub(crate) fn rmw_answered(
        &mut self,
        ticket: u32,
        target: TaskId,
        value: Option<u64>,
    ) -> Result<(), Violation> {
        let access = self.accesses.get_mut(ticket);
        let is_its = access.is_some_and(|access| access.target == target && access.is_requested);
        let access = if is_its { self.accesses.remove(ticket) } else { None };
        match (access.map(|access| access.kind), value) {
            (Some(Kind::Atomic(AtomicAccess { prev, next, .. })), Some(value)) => {
                self.modified(target, prev, next, value as i64);
            }
            (Some(Kind::Atomic(AtomicAccess { next, .. })), None) => {
                let violation = Violation::RmwRefused;
                self.fail(next, LapiError::Peer { origin: target, violation });
            }
            _ => return Err(Violation::StrayRmw { ticket }),
        }
        Ok(())
    }

    /// Ends an atomic operation with its result.
    fn modified(
        &mut self,
        target: TaskId,
        prev: Option<Arc<AtomicI64>>,
        next: Next<S>,
        result: i64,
    ) {
        if let Some(prev) = prev {
            // The action, or the lock, orders a load of it.
            prev.store(result, Ordering::Relaxed);
        }
        self.follow_from(target, next);
    }
}

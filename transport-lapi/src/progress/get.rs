//! LAPI_Get at its origin, and the gets of other tasks that this task helps with.
//!
//! A get is carried out in one of three ways:
//!
//! - *Direct*: if the adapter reads the target's memory itself ([`OneSided::Get`]), progress reads slice after slice,
//!   so that a long get does not keep the task from its other messages.
//! - *Shared*: a long direct get, if the adapter can share it ([`CooperativeCopy`], A7 of [`crate::adapter`]). The
//!   target gets a message; if it makes progress meanwhile, and has no get of its own to copy, both ends copy slices
//!   until none is left. A target that has such gets to copy from this task is not asked.
//! - *Messages*: otherwise the transport builds the get from frames: a request, and data packets that the target fills
//!   from the registered source. This is also the way for sources that do not lie in one span, which only their owner
//!   can pack, and for those of a task whose memory the kernel does not let this one read. If it refuses in the middle
//!   of a get, since a process has changed its user for example, the get begins again in this way.
//!
//! [`Get`] contains the whole state of a get, under its ticket, from its start to its end.

use std::collections::{BTreeMap, VecDeque};

use crate::adapter::{
    AdapterError, Advance, Begun, CooperativeCopy, GetKind, OneSided, TaskId, Ticket, Transfer,
};
use crate::adapters::AnyAdapter;
use crate::error::{LapiError, Violation};
use crate::memory::body::{Piece, Sink};
use crate::memory::region::{ForeignBytes, RecvPart, RemoteRegion};
use crate::progress::amsend::Outgoing;
use crate::progress::counter::CounterId;
use crate::progress::handler::Next;
use crate::progress::outbox::Outbox;
use crate::progress::slots::Slots;
use crate::wire::Packet;

/// Bytes that one turn of progress reads for one get.
const SLICE: usize = 256 << 10;
/// Bytes that a network, which needs no turns, is asked for at once.
const LONG_SLICE: usize = 256 << 20;

/// Gets of at least this many bytes are shared, unless the target itself copies such gets from this task: below it, the
/// messages between the ends cost more than the help saves. One get from each target is shared at a time; the others
/// wait for it, since the target can help with only one.
const SHARED_FROM: usize = 128 << 10;

/// The unfinished gets of this task, and those of others that it helps with.
pub(crate) struct Gets<S> {
    own: Slots<Get<S>>,
    /// Tickets of this task's gets that progress continues, in turn.
    turns: VecDeque<u32>,
    /// Those that have no turn, since another get from their target is being shared: by target, from the oldest on. The
    /// end of the one that leads gives the next one a turn, which then leads.
    waiting: BTreeMap<TaskId, VecDeque<u32>>,
    /// Gets of other tasks, at most one for each origin.
    helped: VecDeque<SharedGet>,
}

/// A get of another task that this one may help with, as described by its origin (untrusted).
#[derive(Debug, Clone, Copy)]
pub(crate) struct SharedGet {
    pub origin: TaskId,
    pub number: u32,
    pub key: u64,
    pub offset: u64,
    pub len: u64,
}

struct Get<S> {
    target: TaskId,
    remote: RemoteRegion,
    offset: u64,
    len: usize,
    into: Sink,
    /// Bytes that have been stored.
    stored: usize,
    /// Bytes after those that the adapter is reading now.
    reading: usize,
    /// Buffer for the slice being read, if its destination is a layout.
    buffer: Vec<u8>,
    way: Way,
    /// Whether others may wait for its end.
    leads: bool,
    next: Next<S>,
    /// Counter of the target that is incremented when its memory has been read.
    tgt_cntr: Option<CounterId>,
}

/// Who carries a get out.
enum Way {
    /// The target, with data packets.
    Messages,
    /// This task.
    Direct,
    /// Both ends.
    Shared,
}

/// How many bytes are read at once of the memory of a target that is read in this way.
pub(crate) fn at_once(kind: Option<GetKind>) -> usize {
    match kind {
        None => 0,
        Some(GetKind::Memcpy | GetKind::CrossMemoryAttach) => SLICE,
        Some(GetKind::RemoteDirect | GetKind::RemoteSoftware) => LONG_SLICE,
    }
}

impl<S> Default for Gets<S> {
    fn default() -> Self {
        let (turns, waiting, helped) = Default::default();
        Self { own: Slots::default(), turns, waiting, helped }
    }
}

impl<S> Gets<S> {
    /// Number of gets that are not complete.
    pub fn under_way(&self) -> usize {
        self.own.len()
    }

    /// Whether progress has something to copy.
    #[inline]
    pub fn has_turns(&self) -> bool {
        !self.turns.is_empty() || !self.helped.is_empty()
    }

    /// The get with this ticket, if `target` is to send its data packets.
    fn of_messages(&mut self, ticket: u32, target: TaskId) -> Result<&mut Get<S>, Violation> {
        let get = self.own.get_mut(ticket);
        let asked = get.filter(|get| get.target == target && matches!(get.way, Way::Messages));
        asked.ok_or(Violation::StrayGet { ticket })
    }
}

impl<S> Get<S> {
    fn new(
        target: TaskId,
        remote: RemoteRegion,
        offset: u64,
        into: Sink,
        next: Next<S>,
        tgt_cntr: Option<CounterId>,
    ) -> Self {
        let (len, stored, reading) = (into.len(), 0, 0);
        let (way, leads, buffer) = (Way::Messages, false, Vec::new());
        Self {
            target,
            remote,
            offset,
            len,
            into,
            stored,
            reading,
            buffer,
            way,
            leads,
            next,
            tgt_cntr,
        }
    }

    /// Starts to read the next slice, of at most so many bytes. `Full` means that the adapter has no room for it now.
    fn read(
        &mut self,
        ticket: u32,
        adapter: &mut AnyAdapter,
        most: usize,
    ) -> Result<Transfer, AdapterError> {
        let (offset, mut len) =
            (self.offset + self.stored as u64, most.min(self.len - self.stored));
        let into = match &mut self.into {
            Sink::Span(region) => region.part(self.stored, len),
            Sink::Layout { .. } => {
                len = len.min(SLICE);
                self.buffer.resize(len, 0);
                RecvPart::of_slice(&mut self.buffer)
            }
        };
        let get = OneSided::Get { remote: &self.remote, offset, into };
        let transfer = adapter.start(self.target, get, Ticket(ticket))?;
        if transfer != Transfer::Full {
            self.reading = len;
        }
        if matches!(transfer, Transfer::Done(_)) {
            self.has_read();
        }
        Ok(transfer)
    }

    /// Stores the slice that was being read.
    fn has_read(&mut self) {
        let len = std::mem::take(&mut self.reading);
        self.stored += match &mut self.into {
            Sink::Span(_) => len,
            layout => layout.store(self.stored, ForeignBytes::from_slice(&self.buffer[..len])),
        };
    }

    fn is_complete(&self) -> bool {
        self.stored == self.len
    }
}

impl<S> Outbox<S> {
    /// Starts a one-sided read of `into.len()` bytes at `offset` of another task's region (LAPI_Get). `next` is
    /// performed when the bytes have arrived; if there are none, in the next round of progress.
    ///
    /// # Errors
    /// [`LapiError::Tgt`]; [`LapiError::TgtAddrNull`] and [`LapiError::OrgAddrNull`] for a null address with a length;
    /// [`LapiError::DataLen`] if the range is not inside the region; [`LapiError::CntrNull`] for an origin counter that
    /// does not exist; [`AdapterError::PeerLost`] for a target whose loss has been noticed.
    pub fn get(
        &mut self,
        target: TaskId,
        remote: RemoteRegion,
        offset: u64,
        into: impl Into<Sink>,
        next: Next<S>,
    ) -> Result<(), LapiError> {
        self.get_counted(target, remote, offset, into.into(), next, None)
    }

    /// [`Outbox::get`] with a counter of the target that is incremented when its memory has been read.
    pub(crate) fn get_counted(
        &mut self,
        target: TaskId,
        remote: RemoteRegion,
        offset: u64,
        mut into: Sink,
        next: Next<S>,
        tgt_cntr: Option<CounterId>,
    ) -> Result<(), LapiError> {
        let len = into.len();
        self.check_get(target, &into, &next)?;
        remote.check(offset, len as u64)?;
        if let Some(place) = remote.area_place(offset) {
            self.get_shared(target, [(place, len as u64)], &mut into)?;
            self.has_got(target, next, tgt_cntr);
            return Ok(());
        }
        let reads = self.send_queues[target].reads;
        let get = Get::new(target, remote, offset, into, next, tgt_cntr);
        if len == 0 || (reads > 0 && !remote.direct.is_none()) {
            let ticket = self.gets.own.insert(Get { way: Way::Direct, ..get });
            self.gets.turns.push_back(ticket);
        } else {
            let ticket = self.gets.own.insert(get);
            self.request(ticket);
        }
        Ok(())
    }

    /// Has the target send all bytes of a get.
    fn request(&mut self, ticket: u32) {
        let Some(get) = self.gets.own.get_mut(ticket) else { return };
        (get.way, get.stored) = (Way::Messages, 0);
        let Get { target, offset, remote: RemoteRegion { key, .. }, len, .. } = *get;
        let request = Packet::GetRequest { ticket, key, offset, len: len as u64 };
        self.push(target, Outgoing::Control(request));
    }

    /// Checks what is the same for all gets.
    pub(crate) fn check_get(
        &mut self,
        target: TaskId,
        into: &Sink,
        next: &Next<S>,
    ) -> Result<(), LapiError> {
        self.check_operation(target, next)?;
        match into.is_null() {
            true => Err(LapiError::OrgAddrNull { len: into.len() }),
            false => Ok(()),
        }
    }

    /// Starts a get whose data the target sends after it has received a request of its own kind. Returns the ticket
    /// that the request names.
    pub(crate) fn get_by_request(
        &mut self,
        target: TaskId,
        remote: RemoteRegion,
        into: Sink,
        next: Next<S>,
        tgt_cntr: Option<CounterId>,
    ) -> Result<u32, LapiError> {
        self.check_get(target, &into, &next)?;
        Ok(self.gets.own.insert(Get::new(target, remote, 0, into, next, tgt_cntr)))
    }

    /// Forgets a get whose request was not sent; nothing follows.
    pub(crate) fn take_back_get(&mut self, ticket: u32) {
        self.gets.own.remove(ticket);
    }

    /// Copies one slice of every get of this task that it carries out; if that did nothing, one slice of each get that
    /// it helps with. Returns the number of slices.
    pub(crate) fn advance_gets(&mut self, adapter: &mut AnyAdapter) -> usize {
        let mut done = 0;
        for _ in 0..self.gets.turns.len() {
            let Some(ticket) = self.gets.turns.pop_front() else { break };
            done += usize::from(self.advance(adapter, ticket));
        }
        // If two tasks read from each other, both are busy: help would only move the work.
        let helped = if done == 0 { self.gets.helped.len() } else { 0 };
        for _ in 0..helped {
            let Some(shared) = self.gets.helped.pop_front() else { break };
            if self.help(adapter, &shared) {
                self.gets.helped.push_back(shared);
                done += 1;
            }
        }
        done
    }

    /// Takes one turn of a get of this task. Returns whether that did anything.
    fn advance(&mut self, adapter: &mut AnyAdapter, ticket: u32) -> bool {
        let Some(get) = self.gets.own.get_mut(ticket) else { return false };
        let target = get.target;
        if let (Way::Direct, 0, SHARED_FROM.., Sink::Span(into)) =
            (&get.way, get.stored, get.len, &mut get.into)
        {
            // A target that has gets of this task's memory to copy would not help. Those of memory that is no longer
            // registered are over.
            let is_busy = self.gets.helped.iter().any(|shared| {
                let SharedGet { origin, key, offset, len, .. } = *shared;
                origin == target && self.regions.part(key, offset, len).is_some()
            });
            let share = |shared: &mut dyn CooperativeCopy| {
                shared.begin(target, get.remote, get.offset, into.take())
            };
            match adapter.cooperative_copy().filter(|_| !is_busy).map(share) {
                Some(Begun::Shared(number)) => {
                    (get.way, get.leads) = (Way::Shared, true);
                    let (key, offset, len) = (get.remote.key, get.offset, get.len as u64);
                    let offer = Packet::GetShare { number, key, offset, len };
                    // The offer is sent in this round, so the first slice waits for the next one.
                    self.push(target, Outgoing::Control(offer));
                    self.gets.turns.push_back(ticket);
                    return true;
                }
                Some(Begun::Busy(region)) => {
                    *into = region;
                    let waiting = self.gets.waiting.entry(target).or_default();
                    match std::mem::take(&mut get.leads) {
                        true => waiting.push_front(ticket),
                        false => waiting.push_back(ticket),
                    }
                    return false;
                }
                Some(Begun::Alone(region)) => *into = region,
                None => {}
            }
        }
        let advanced = match get.way {
            Way::Shared => {
                let shared = adapter.cooperative_copy().expect("an adapter keeps its capabilities");
                match self.send_queues[target].is_open() {
                    true => shared.advance(target),
                    false if shared.end(target) => Err(AdapterError::PeerLost { task: target }),
                    false => Ok(Advance::Waiting),
                }
            }
            _ if get.is_complete() => Ok(Advance::Complete),
            _ => {
                let most = self.send_queues[target].reads.max(SLICE);
                match get.read(ticket, adapter, most) {
                    // The event `got` continues it.
                    Ok(Transfer::Started) => return true,
                    Ok(Transfer::Full) => Ok(Advance::Waiting),
                    Ok(Transfer::Done(_)) if get.is_complete() => Ok(Advance::Complete),
                    Ok(Transfer::Done(_)) => Ok(Advance::Copied),
                    Err(error) => Err(error),
                }
            }
        };
        match advanced {
            Ok(Advance::Complete) => self.end_get(ticket, Ok(())),
            Ok(Advance::Refused(region)) => {
                get.into = region.into();
                self.get_failed(ticket, target, None);
            }
            Err(error) => self.get_failed(ticket, target, Some(error)),
            Ok(advance) => {
                self.gets.turns.push_back(ticket);
                return advance == Advance::Copied;
            }
        }
        true
    }

    /// Ends a get that could not be read, because of an error or because the kernel refused it. In the latter case it
    /// begins again over frames, and all later ones from `target` take that way.
    #[cold]
    fn get_failed(&mut self, ticket: u32, target: TaskId, error: Option<AdapterError>) {
        match (self.check_lost(target), error.filter(|error| !error.is_refusal())) {
            (Ok(()), None) => {
                self.send_queues[target].reads = 0;
                self.request(ticket);
            }
            (Ok(()), Some(error)) => self.end_get(ticket, Err(error.into())),
            (lost, _) => self.end_get(ticket, lost),
        }
    }

    /// Continues a get whose slice the adapter has read, or has failed to read.
    pub(crate) fn got(&mut self, ticket: Ticket, outcome: Result<(), AdapterError>) {
        let Ticket(ticket) = ticket;
        let Some(get) = self.gets.own.get_mut(ticket) else { return };
        let target = get.target;
        if let Err(error) = outcome {
            get.reading = 0;
            return self.get_failed(ticket, target, Some(error));
        }
        get.has_read();
        let is_complete = get.is_complete();
        match self.check_lost(target) {
            Ok(()) if !is_complete => self.gets.turns.push_back(ticket),
            Err(error) if !is_complete => self.end_get(ticket, Err(error)),
            _ => self.end_get(ticket, Ok(())),
        }
    }

    /// Ends a get that the target has refused.
    pub(crate) fn get_refused(&mut self, ticket: u32, target: TaskId) -> Result<(), Violation> {
        self.gets.of_messages(ticket, target)?;
        let violation = Violation::GetRefused { ticket };
        self.end_get(ticket, Err(LapiError::Peer { origin: target, violation }));
        Ok(())
    }

    /// Ends the gets of the lost task's memory, except those whose end comes by another way: a slice that is being read
    /// ends by itself, and a shared get ends in its next turn. Drops the gets of that task that this one helps with.
    pub(crate) fn lose_gets(&mut self, lost: TaskId) {
        self.gets.helped.retain(|shared| shared.origin != lost);
        let is_over = |get: &Get<S>| {
            get.target == lost && get.reading == 0 && !matches!(get.way, Way::Shared)
        };
        let over = self.gets.own.numbers(is_over);
        self.gets.turns.retain(|ticket| !over.contains(ticket));
        self.gets.waiting.remove(&lost);
        for ticket in over {
            self.end_get(ticket, self.check_lost(lost));
        }
    }

    /// Takes one turn of a get of another task. Returns whether a slice was copied.
    fn help(&mut self, adapter: &mut AnyAdapter, shared: &SharedGet) -> bool {
        let SharedGet { origin, number, key, offset, len } = *shared;
        // The registration may have ended since the last turn.
        match (self.regions.part(key, offset, len), adapter.cooperative_copy()) {
            (Some(Piece::Span(region)), Some(shared)) => shared.assist(origin, number, region),
            _ => false,
        }
    }

    /// Accepts another task's offer to help with a get. A task offers one get at a time, so an older offer is over.
    pub(crate) fn shared_by(&mut self, shared: SharedGet) -> Result<(), Violation> {
        let SharedGet { origin, key, offset, len, .. } = shared;
        if len == 0 || self.regions.part(key, offset, len).is_none() {
            return Err(Violation::UnregisteredGet { offset, len });
        }
        match self.gets.helped.iter_mut().find(|older| older.origin == origin) {
            Some(older) => *older = shared,
            None => self.gets.helped.push_back(shared),
        }
        Ok(())
    }

    /// Stores a data packet of a get over messages.
    pub(crate) fn get_data(
        &mut self,
        ticket: u32,
        target: TaskId,
        offset: u64,
        data: ForeignBytes<'_>,
    ) -> Result<(), Violation> {
        let get = self.gets.of_messages(ticket, target)?;
        let fits = data.len() <= get.len - get.stored;
        if offset != get.stored as u64 || !fits || data.is_empty() {
            return Err(Violation::BodyOffset { offset, expected: get.stored as u64 });
        }
        get.stored += get.into.store(get.stored, data);
        if get.is_complete() {
            self.end_get(ticket, Ok(()));
        }
        Ok(())
    }

    /// Performs what follows a get whose bytes have been stored.
    pub(crate) fn has_got(&mut self, target: TaskId, next: Next<S>, tgt_cntr: Option<CounterId>) {
        if tgt_cntr.is_some() {
            let counter = CounterId::on_wire(tgt_cntr);
            self.push(target, Outgoing::Control(Packet::Complete { counter }));
        }
        self.follow_from(target, next);
    }

    fn end_get(&mut self, ticket: u32, outcome: Result<(), LapiError>) {
        let Some(get) = self.gets.own.remove(ticket) else { return };
        let Get { target, next, tgt_cntr, leads, .. } = get;
        let waiting = self.gets.waiting.get_mut(&target).filter(|_| leads);
        if let Some(ticket) = waiting.and_then(VecDeque::pop_front) {
            self.gets.own.get_mut(ticket).expect("it waits").leads = true;
            self.gets.turns.push_back(ticket);
        }
        match outcome {
            Ok(()) => self.has_got(target, next, tgt_cntr),
            Err(error) => self.fail(next, error),
        }
    }
}

#[cfg(test)]
#[expect(unsafe_code, reason = "the tests describe buffers of their own as regions")]
mod tests;

//! LAPI_Get at its origin, and the regions that a task lets others read.
//!
//! Where the adapter reads another task's memory itself, a get is carried out in slices by
//! progress, so that a long one does not keep the task from its other messages. A target that makes
//! progress meanwhile, and has no get of its own to copy, helps with long ones: it is told of them, and
//! both ends copy slices until none is left (the *shared get*; A7 of [`crate::adapter`]). Elsewhere the
//! transport builds it from active messages: a request, and data packets that the target sends out of
//! the registered region (the *reference get*).

use std::collections::VecDeque;

use crate::adapter::{Adapter, AdapterError, Advance, TaskId};
use crate::amsend::{OnOrigin, Outgoing};
use crate::error::{LapiError, Violation};
use crate::outbox::Outbox;
use crate::region::{ForeignBytes, RecvRegion, RemoteRegion, SendRegion};
use crate::wire::Packet;

/// Bytes that one turn of progress reads for one get.
const SLICE: usize = 256 << 10;

/// Gets of at least this many bytes are shared: below, what the ends tell each other costs more than
/// the help brings. One at a time from each target; the others wait for it, since the target can help
/// with one only.
const SHARED_FROM: usize = 128 << 10;

/// The gets under way at their origin, and those of others that this task helps with.
pub(crate) struct Gets<S> {
    slots: Vec<Option<Get<S>>>,
    free: Vec<u32>,
    /// What this task has to copy, in turn.
    turns: VecDeque<Turn>,
}

/// One of the gets that progress carries on.
enum Turn {
    /// A get of this task, by its ticket.
    Own(u32),
    /// The get that this task has offered; its [`Lane`](crate::outbox::Lane) has the offer.
    Help(TaskId),
}

/// A get of another task with which this one may help, as its origin claims it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Offered {
    pub number: u32,
    pub key: u64,
    pub offset: u64,
    pub len: u64,
}

struct Get<S> {
    target: TaskId,
    remote: RemoteRegion,
    offset: u64,
    into: RecvRegion,
    stored: usize,
    on_origin: OnOrigin<S>,
    way: Way,
}

/// Who carries a get out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// The target, with data packets.
    Messages,
    /// This task. No peer has anything to say about it.
    Direct,
    /// Both.
    Shared,
}

impl<S> Default for Gets<S> {
    fn default() -> Self {
        Self { slots: Vec::new(), free: Vec::new(), turns: VecDeque::new() }
    }
}

impl<S> Gets<S> {
    /// Notes a get and returns its ticket.
    pub fn add(
        &mut self,
        target: TaskId,
        remote: RemoteRegion,
        offset: u64,
        into: RecvRegion,
        on_origin: OnOrigin<S>,
        way: Way,
    ) -> u32 {
        let get = Get { target, remote, offset, into, stored: 0, on_origin, way };
        let ticket = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() as u32 - 1
        });
        self.slots[ticket as usize] = Some(get);
        if way != Way::Messages {
            self.turns.push_back(Turn::Own(ticket));
        }
        ticket
    }

    /// Gets that are not complete.
    pub fn under_way(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Whether progress has something to copy.
    #[inline]
    pub fn has_turns(&self) -> bool {
        !self.turns.is_empty()
    }

    fn remove(&mut self, ticket: u32) -> Option<Get<S>> {
        let get = self.slots.get_mut(ticket as usize)?.take()?;
        self.free.push(ticket);
        Some(get)
    }

    fn slot(&mut self, ticket: u32, target: TaskId) -> Result<&mut Get<S>, Violation> {
        let slot = self.slots.get_mut(ticket as usize).and_then(Option::as_mut);
        let asked = slot.filter(|get| get.target == target && get.way == Way::Messages);
        asked.ok_or(Violation::StrayGet { ticket })
    }

    /// Stores a data packet of a reference get. Says whether that was the last one.
    fn store(
        &mut self,
        ticket: u32,
        target: TaskId,
        offset: u64,
        data: ForeignBytes<'_>,
    ) -> Result<bool, Violation> {
        let get = self.slot(ticket, target)?;
        let fits = data.len() <= get.into.len() - get.stored;
        if offset != get.stored as u64 || !fits || data.is_empty() {
            return Err(Violation::BodyOffset { offset, expected: get.stored as u64 });
        }
        get.stored += get.into.store(get.stored, data);
        Ok(get.stored == get.into.len())
    }

    /// Takes note of a refusal.
    pub fn refused(&mut self, ticket: u32, target: TaskId) -> Violation {
        match self.slot(ticket, target) {
            Err(violation) => violation,
            Ok(_) => {
                self.remove(ticket);
                Violation::GetRefused { ticket }
            }
        }
    }
}

impl<S> Get<S> {
    /// Reads the next slice of a get that this task carries out alone.
    fn read_slice<A: Adapter>(&mut self, adapter: &mut A) -> Result<Advance, AdapterError> {
        let slice = self.into.part(self.stored, SLICE);
        let len = slice.len();
        if len > 0 {
            let offset = self.offset + self.stored as u64;
            adapter.get(self.target, self.remote, offset, slice)?;
            self.stored += len;
        }
        let complete = self.stored == self.into.len();
        Ok(if complete { Advance::Complete } else { Advance::Copied })
    }
}

impl<S> Outbox<S> {
    /// Copies a slice of every get that this task carries out or helps with; returns how many.
    pub(crate) fn advance_gets<A: Adapter>(
        &mut self,
        adapter: &mut A,
        state: &mut S,
    ) -> Result<usize, LapiError> {
        let (mut done, mut offers) = (0, 0);
        for _ in 0..self.gets.turns.len() {
            match self.gets.turns.pop_front() {
                Some(Turn::Own(ticket)) => {
                    done += usize::from(self.advance_own(adapter, state, ticket)?);
                }
                Some(Turn::Help(origin)) => {
                    self.gets.turns.push_back(Turn::Help(origin));
                    offers += 1;
                }
                None => break,
            }
        }
        // Two tasks that read from each other have enough to do: help would only move the work.
        if done == 0 && offers > 0 {
            done = self.help_others(adapter);
        }
        Ok(done)
    }

    /// Copies a slice of every get that this task helps with; returns how many.
    fn help_others<A: Adapter>(&mut self, adapter: &mut A) -> usize {
        let mut done = 0;
        for _ in 0..self.gets.turns.len() {
            match self.gets.turns.pop_front() {
                Some(Turn::Help(origin)) if self.help(adapter, origin) => {
                    self.gets.turns.push_back(Turn::Help(origin));
                    done += 1;
                }
                Some(Turn::Help(origin)) => self.lanes[origin as usize].offer = None,
                Some(own) => self.gets.turns.push_back(own),
                None => break,
            }
        }
        done
    }

    /// One turn of a get of this task. Returns whether anything was done.
    fn advance_own<A: Adapter>(
        &mut self,
        adapter: &mut A,
        state: &mut S,
        ticket: u32,
    ) -> Result<bool, LapiError> {
        let Some(get) = self.gets.slots[ticket as usize].as_mut() else {
            return Ok(false);
        };
        let lane = &mut self.lanes[get.target as usize];
        if get.way == Way::Direct && get.stored == 0 && get.into.len() >= SHARED_FROM {
            if lane.shares_get {
                self.gets.turns.push_back(Turn::Own(ticket));
                return Ok(false);
            }
            let (target, key, offset) = (get.target, get.remote.key, get.offset);
            let len = get.into.len() as u64;
            match adapter.share(target, get.remote, offset, get.into.take()) {
                Ok(number) => {
                    (get.way, lane.shares_get) = (Way::Shared, true);
                    let offer = Packet::GetShare { number, key, offset, len };
                    // It goes out in this round, so the first slice waits for the next one.
                    self.push(target, Outgoing::Control(offer));
                    self.gets.turns.push_back(Turn::Own(ticket));
                    return Ok(true);
                }
                Err(into) => get.into = into,
            }
        }
        let advanced = match get.way {
            Way::Shared => adapter.advance(get.target),
            Way::Direct | Way::Messages => get.read_slice(adapter),
        };
        if !matches!(advanced, Ok(Advance::Copied | Advance::Waiting)) && get.way == Way::Shared {
            lane.shares_get = false;
        }
        match advanced {
            Ok(Advance::Complete) => {
                self.complete_get(ticket, state);
                Ok(true)
            }
            Ok(advance) => {
                self.gets.turns.push_back(Turn::Own(ticket));
                Ok(advance == Advance::Copied)
            }
            Err(error) => {
                self.gets.remove(ticket);
                Err(error.into())
            }
        }
    }

    /// One turn of a get of another task. Returns whether a slice was copied.
    fn help<A: Adapter>(&mut self, adapter: &mut A, origin: TaskId) -> bool {
        let Some(Offered { number, key, offset, len }) = self.lanes[origin as usize].offer else {
            return false;
        };
        // The registration may have ended since the last turn.
        let region = self.regions.part(key, offset, len);
        region.is_some_and(|region| adapter.help(origin, number, region))
    }

    /// Another task has begun a get with which this one may help. A task offers one at a time, so an
    /// older offer is over.
    pub(crate) fn offered(&mut self, origin: TaskId, offer: Offered) -> Result<(), Violation> {
        let Offered { key, offset, len, .. } = offer;
        if len == 0 || self.regions.part(key, offset, len).is_none() {
            return Err(Violation::UnregisteredGet { offset, len });
        }
        if self.lanes[origin as usize].offer.replace(offer).is_none() {
            self.gets.turns.push_back(Turn::Help(origin));
        }
        Ok(())
    }

    /// Ends this task's part in shared gets. Answers whether nobody writes into the regions of its own any
    /// more; else it is to be asked again.
    pub(crate) fn end_shared<A: Adapter>(&mut self, adapter: &mut A) -> bool {
        let mut is_over = true;
        for (target, lane) in self.lanes.iter_mut().enumerate() {
            lane.offer = None;
            lane.shares_get = lane.shares_get && !adapter.unshare(target as TaskId);
            is_over &= !lane.shares_get;
        }
        is_over
    }

    /// A data packet of a reference get has come.
    pub(crate) fn get_data(
        &mut self,
        state: &mut S,
        ticket: u32,
        target: TaskId,
        offset: u64,
        data: ForeignBytes<'_>,
    ) -> Result<(), Violation> {
        if self.gets.store(ticket, target, offset, data)? {
            self.complete_get(ticket, state);
        }
        Ok(())
    }

    fn complete_get(&mut self, ticket: u32, state: &mut S) {
        if let Some(get) = self.gets.remove(ticket) {
            get.on_origin.fire(state, self);
        }
    }
}

/// The memory that this task lets others read, by key. A key is a slot and its generation, so that
/// a key of a region that is gone never names another one.
#[derive(Debug, Default)]
pub(crate) struct Regions {
    slots: Vec<(u32, Option<SendRegion>)>,
    free: Vec<u32>,
}

impl Regions {
    /// Registers a region and returns its key.
    pub fn add(&mut self, region: SendRegion) -> u64 {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push((0, None));
            self.slots.len() as u32 - 1
        });
        let (generation, place) = &mut self.slots[slot as usize];
        *place = Some(region);
        u64::from(*generation) << 32 | u64::from(slot)
    }

    /// Ends a registration. An unknown key changes nothing.
    pub fn remove(&mut self, key: u64) {
        let slot = key as u32;
        if let Some((generation, place)) = self.slots.get_mut(slot as usize) {
            if u64::from(*generation) == key >> 32 && place.take().is_some() {
                *generation = generation.wrapping_add(1);
                self.free.push(slot);
            }
        }
    }

    /// Ends every registration; returns the keys.
    pub fn clear(&mut self) -> Vec<u64> {
        let live = self.slots.iter().enumerate().filter(|(_, (_, region))| region.is_some());
        let key = |(slot, (generation, _)): (usize, &(u32, _))| {
            u64::from(*generation) << 32 | slot as u64
        };
        let keys: Vec<u64> = live.map(key).collect();
        keys.iter().for_each(|&key| self.remove(key));
        keys
    }

    /// The bytes `offset..offset + len` of the region, if it is registered and has them.
    pub fn part(&self, key: u64, offset: u64, len: u64) -> Option<SendRegion> {
        let (generation, region) = self.slots.get(key as u32 as usize)?;
        let region = region.filter(|_| u64::from(*generation) == key >> 32)?;
        let end = offset.checked_add(len)?;
        (end <= region.len() as u64).then(|| region.part(offset as usize, len as usize))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_do_not_outlive_their_region() {
        let region = SendRegion::lasting(&[7; 16]);
        let mut regions = Regions::default();
        let first = regions.add(region);
        assert_eq!(regions.part(first, 4, 12).map(|part| part.len()), Some(12));
        assert_eq!(regions.part(first, 4, 13), None);
        assert_eq!(regions.part(first, u64::MAX, 2), None);
        regions.remove(first);
        assert_eq!(regions.part(first, 0, 1), None);
        let second = regions.add(region);
        assert_ne!(first, second);
        regions.remove(first);
        assert!(regions.part(second, 0, 16).is_some());
    }
}

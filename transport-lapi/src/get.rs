//! LAPI_Get at its origin, and the regions that a task lets others read.
//!
//! Where the adapter reads another task's memory itself, a get is carried out in slices by
//! progress, so that a long one does not keep the task from its other messages. Elsewhere the
//! transport builds it from active messages: a request, and data packets that the target sends out
//! of the registered region (the *reference get*).

use std::collections::VecDeque;

use crate::adapter::{Adapter, TaskId};
use crate::amsend::OnOrigin;
use crate::error::{LapiError, Violation};
use crate::outbox::Outbox;
use crate::region::{ForeignBytes, RecvRegion, RemoteRegion, SendRegion};

/// Bytes that one turn of progress reads for one get.
const SLICE: usize = 256 << 10;

/// The gets under way at their origin.
pub(crate) struct Gets<S> {
    slots: Vec<Option<Get<S>>>,
    free: Vec<u32>,
    /// Gets that this task carries out itself, in turn.
    direct: VecDeque<u32>,
}

struct Get<S> {
    target: TaskId,
    remote: RemoteRegion,
    offset: u64,
    into: RecvRegion,
    stored: usize,
    on_origin: OnOrigin<S>,
    /// Carried out here: no peer has anything to say about it.
    direct: bool,
}

impl<S> Default for Gets<S> {
    fn default() -> Self {
        Self { slots: Vec::new(), free: Vec::new(), direct: VecDeque::new() }
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
        direct: bool,
    ) -> u32 {
        let get = Get { target, remote, offset, into, stored: 0, on_origin, direct };
        let ticket = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() as u32 - 1
        });
        self.slots[ticket as usize] = Some(get);
        if direct {
            self.direct.push_back(ticket);
        }
        ticket
    }

    /// Gets that are not complete.
    pub fn under_way(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Whether progress has something to read.
    #[inline]
    pub fn has_direct(&self) -> bool {
        !self.direct.is_empty()
    }

    fn remove(&mut self, ticket: u32) -> Option<Get<S>> {
        let get = self.slots.get_mut(ticket as usize)?.take()?;
        self.free.push(ticket);
        Some(get)
    }

    fn slot(&mut self, ticket: u32, target: TaskId) -> Result<&mut Get<S>, Violation> {
        let slot = self.slots.get_mut(ticket as usize).and_then(Option::as_mut);
        slot.filter(|get| get.target == target && !get.direct).ok_or(Violation::StrayGet { ticket })
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

impl<S> Outbox<S> {
    /// Carries out a slice of every get that the adapter can read itself; returns how many.
    pub(crate) fn advance_gets<A: Adapter>(
        &mut self,
        adapter: &mut A,
        state: &mut S,
    ) -> Result<usize, LapiError> {
        let turns = self.gets.direct.len();
        for _ in 0..turns {
            let Some(ticket) = self.gets.direct.pop_front() else {
                break;
            };
            let Some(get) = self.gets.slots[ticket as usize].as_mut() else {
                continue;
            };
            let slice = get.into.part(get.stored, SLICE);
            if !slice.is_empty() {
                let offset = get.offset + get.stored as u64;
                if let Err(error) = adapter.get(get.target, get.remote, offset, slice) {
                    self.gets.remove(ticket);
                    return Err(error.into());
                }
                get.stored += slice.len();
            }
            if get.stored == get.into.len() {
                self.complete_get(ticket, state);
            } else {
                self.gets.direct.push_back(ticket);
            }
        }
        Ok(turns)
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

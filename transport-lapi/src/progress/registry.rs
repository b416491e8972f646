//! The memory of a task that other tasks may read, or read and write, by key.
//!
//! A key consists of an index and a generation, so that the key of an ended registration does not name a later one. A
//! source that is not one span, or that the adapter has not registered, is read over frames: its owner packs it.
//! `outbox.rs` registers memory here and with the adapter.
//!
//! - RG1: memory registered for writing is written by its owner's dispatcher, under the context's lock, and by the
//!   adapter for other tasks (A11 of [`crate::adapter`]). So the operations of several origins may each hold a part of
//!   it at the same time. That no two of them store to one byte at the same time, unless both are atomic, is promised
//!   with the region (G2).
//! - RG2: what follows the end of a registration happens when no operation that began before holds its memory any
//!   more.
//! - RG3: of memory registered for writing, bodies of frames are read by its owner's thread only, at the moment when a
//!   frame is offered. An adapter that reads bodies later gets a copy.

#![expect(unsafe_code, reason = "gives parts of registered memory to operations")]

use crate::memory::body::{Piece, Source};
use crate::memory::region::{RecvRegion, RemoteKey, SendRegion};
use crate::progress::handler::Next;

/// The registered memory.
pub(crate) struct Regions<S> {
    places: Vec<Place<S>>,
    free: Vec<u32>,
}

struct Place<S> {
    generation: u32,
    memory: Option<Memory>,
    /// Length of the memory, so that a layout's size is computed once.
    len: u64,
    /// The key under which the adapter has registered the memory, if it has.
    direct: RemoteKey,
    /// Number of frames whose bodies are still read from the memory, and of other operations that hold it.
    users: u32,
    /// The action for the moment when nobody uses the memory any more, once its registration has ended.
    next: Option<Next<S>>,
}

enum Memory {
    ReadOnly(Source),
    Writable(RecvRegion),
}

impl<S> Place<S> {
    fn direct(&self) -> Option<RemoteKey> {
        self.memory.as_ref().map(|_| self.direct).filter(|direct| !direct.is_none())
    }
}

impl<S> Default for Regions<S> {
    fn default() -> Self {
        Self { places: Vec::new(), free: Vec::new() }
    }
}

impl<S> Regions<S> {
    /// Registers a source for reading and returns its key.
    pub fn add(&mut self, source: Source, direct: RemoteKey) -> u64 {
        let len = source.len() as u64;
        self.insert(Memory::ReadOnly(source), len, direct)
    }

    /// Registers memory for reading and writing, here and with the adapter by `register`, and returns both keys.
    pub fn add_writable(
        &mut self,
        memory: RecvRegion,
        register: impl FnOnce(RecvRegion) -> RemoteKey,
    ) -> (u64, RemoteKey) {
        let len = memory.len() as u64;
        // SAFETY: RG1; the adapter stops writing when its registration ends (A11), before the owner gets the memory back.
        let direct = register(unsafe { memory.second_hold() });
        (self.insert(Memory::Writable(memory), len, direct), direct)
    }

    fn insert(&mut self, memory: Memory, len: u64, direct: RemoteKey) -> u64 {
        let number = self.free.pop().unwrap_or_else(|| {
            let (memory, next) = (None, None);
            self.places.push(Place { generation: 0, memory, len, direct, users: 0, next });
            self.places.len() as u32 - 1
        });
        let place = &mut self.places[number as usize];
        (place.memory, place.len, place.direct) = (Some(memory), len, direct);
        u64::from(place.generation) << 32 | u64::from(number)
    }

    fn place(&self, key: u64) -> Option<&Place<S>> {
        let place = self.places.get(key as u32 as usize)?;
        (u64::from(place.generation) == key >> 32).then_some(place)
    }

    fn place_mut(&mut self, key: u64) -> Option<&mut Place<S>> {
        let place = self.places.get_mut(key as u32 as usize)?;
        (u64::from(place.generation) == key >> 32).then_some(place)
    }

    /// Ends a registration: no more operations begin. Returns what is due now. Otherwise returns `None`: `next` is due
    /// when the last user has left (RG2), or never if the key is unknown.
    pub fn remove(&mut self, key: u64, next: Next<S>) -> Option<Next<S>> {
        let place = self.place_mut(key)?;
        place.memory.take()?;
        place.next = Some(next);
        match place.users {
            0 => self.release(key),
            _ => None,
        }
    }

    /// Makes the place available again, with a new generation. Returns what is due.
    fn release(&mut self, key: u64) -> Option<Next<S>> {
        let number = key as u32;
        let place = &mut self.places[number as usize];
        // The highest bit of a key is set for memory in shared areas only.
        place.generation = place.generation.wrapping_add(1) & (u32::MAX >> 1);
        self.free.push(number);
        place.next.take()
    }

    /// Counts an operation that holds this memory from now on.
    pub fn begin_use(&mut self, key: u64) {
        if let Some(place) = self.place_mut(key) {
            place.users += 1;
        }
    }

    /// Counts such an operation as ended. Returns the action that is due if it was the last one of an ended
    /// registration.
    pub fn end_use(&mut self, key: u64) -> Option<Next<S>> {
        let place = self.place_mut(key)?;
        place.users -= 1;
        if place.users > 0 || place.next.is_none() {
            return None;
        }
        self.release(key)
    }

    /// Whether the registration has not ended.
    pub fn contains(&self, key: u64) -> bool {
        self.place(key).is_some_and(|place| place.memory.is_some())
    }

    /// Whether operations of other tasks may change this memory.
    pub fn may_change(&self, key: u64) -> bool {
        self.place(key).is_some_and(|place| matches!(place.memory, Some(Memory::Writable(_))))
    }

    /// The adapter's key of a registration that has not ended, if it has one.
    pub fn direct(&self, key: u64) -> Option<RemoteKey> {
        self.place(key).and_then(Place::direct)
    }

    /// The adapter's keys of all registrations.
    pub fn all_direct(&self) -> impl Iterator<Item = RemoteKey> {
        self.places.iter().filter_map(Place::direct)
    }

    /// The bytes `offset..offset + len`, to be read, if they are registered.
    pub fn part(&self, key: u64, offset: u64, len: u64) -> Option<Piece<'_>> {
        let place = self.place(key)?;
        let memory = place.memory.as_ref()?;
        if offset.checked_add(len)? > place.len {
            return None;
        }
        let (offset, len) = (offset as usize, len as usize);
        Some(match memory {
            Memory::ReadOnly(source) => source.piece(offset, len),
            Memory::Writable(region) => Piece::Span(region.to_read().part(offset, len)),
        })
    }

    /// The whole memory of a registration, to be read, if it is one span.
    pub fn span(&self, key: u64) -> Option<SendRegion> {
        match self.place(key)?.memory.as_ref()? {
            Memory::ReadOnly(source) => source.span(),
            Memory::Writable(region) => Some(region.to_read()),
        }
    }

    /// The bytes from `offset` on, at least `len`, to be written by one operation, if they are registered for that. The
    /// caller counts the operation as a user if it lasts longer than the dispatch of one frame.
    pub fn hold(&self, key: u64, offset: u64, len: u64) -> Option<RecvRegion> {
        let place = self.place(key)?;
        let Memory::Writable(region) = place.memory.as_ref()? else { return None };
        if offset.checked_add(len)? > place.len {
            return None;
        }
        // SAFETY: RG1 and RG2: no two holders store to one byte at the same time, and none is left when the owner gets its
        // memory back.
        let hold = unsafe { region.second_hold() };
        Some(hold.behind(offset as usize))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_do_not_outlive_their_region() {
        let region = SendRegion::of_test(&[7; 16]);
        let mut regions = Regions::<()>::default();
        let first = regions.add(region.into(), RemoteKey::NONE);
        assert_eq!(regions.part(first, 4, 12).map(|part| part.len()), Some(12));
        assert!(regions.part(first, 4, 13).is_none());
        assert!(regions.part(first, u64::MAX, 2).is_none());
        assert!(regions.hold(first, 0, 1).is_none(), "it may be read only");
        assert!(regions.remove(first, Next::Nothing).is_some());
        assert!(regions.part(first, 0, 1).is_none());
        let second = regions.add(region.into(), RemoteKey::NONE);
        assert_ne!(first, second);
        assert!(regions.remove(first, Next::Nothing).is_none());
        assert!(regions.part(second, 0, 16).is_some());
    }

    #[test]
    fn what_follows_the_end_waits_for_the_last_user() {
        let mut regions = Regions::<()>::default();
        let key = regions.add(SendRegion::of_test(&[7; 16]).into(), RemoteKey::NONE);
        regions.begin_use(key);
        regions.begin_use(key);
        assert!(regions.remove(key, Next::Nothing).is_none());
        assert!(
            regions.part(key, 0, 1).is_none() && !regions.contains(key),
            "nothing more is read"
        );
        assert!(regions.end_use(key).is_none());
        assert!(matches!(regions.end_use(key), Some(Next::Nothing)));
        assert_ne!(regions.add(SendRegion::EMPTY.into(), RemoteKey::NONE), key);
    }

    #[test]
    fn writable_memory_is_held_within_its_bounds() {
        let mut bytes = [0; 16];
        // SAFETY: the array outlives the registry, and nobody else uses it.
        let memory = unsafe { RecvRegion::new(bytes.as_mut_ptr(), bytes.len()) };
        let mut regions = Regions::<()>::default();
        let (key, _) = regions.add_writable(memory, |_| RemoteKey::NONE);
        assert_eq!(regions.hold(key, 4, 12).map(|held| held.len()), Some(12));
        assert_eq!(regions.hold(key, 16, 0).map(|held| held.len()), Some(0));
        assert!(regions.hold(key, 4, 13).is_none());
        assert!(regions.hold(key, u64::MAX, 2).is_none());
        assert_eq!(regions.part(key, 8, 8).map(|part| part.len()), Some(8));
    }
}

//! The memory of a task that other tasks may read, by key.
//!
//! A key consists of an index and a generation, so that the key of an ended registration does not name a later one. A
//! source that is not one span, or that the adapter could not expose, is read over frames: its owner packs it.

use crate::body::{Piece, Source};
use crate::handler::Next;

/// The registered sources.
pub(crate) struct Regions<S> {
    places: Vec<Place<S>>,
    free: Vec<u32>,
}

struct Place<S> {
    generation: u32,
    source: Option<Source>,
    /// Length of the source, so that a layout's size is computed once.
    len: u64,
    /// Number of frames whose bodies are still read from the source.
    readers: u32,
    /// The action for the moment when nobody reads the source any more, once its registration has ended.
    next: Option<Next<S>>,
}

impl<S> Default for Regions<S> {
    fn default() -> Self {
        Self { places: Vec::new(), free: Vec::new() }
    }
}

impl<S> Regions<S> {
    /// Registers a source and returns its key.
    pub fn add(&mut self, source: Source) -> u64 {
        let number = self.free.pop().unwrap_or_else(|| {
            self.places.push(Place { generation: 0, source: None, len: 0, readers: 0, next: None });
            self.places.len() as u32 - 1
        });
        let place = &mut self.places[number as usize];
        place.len = source.len() as u64;
        place.source = Some(source);
        u64::from(place.generation) << 32 | u64::from(number)
    }

    fn place(&mut self, key: u64) -> Option<&mut Place<S>> {
        let place = self.places.get_mut(key as u32 as usize)?;
        (u64::from(place.generation) == key >> 32).then_some(place)
    }

    /// Ends a registration: no more reads begin. Returns `next` if it is due now. Otherwise returns `None`: `next` is
    /// due when the last reader has left, or never if the key is unknown.
    pub fn remove(&mut self, key: u64, next: Next<S>) -> Option<Next<S>> {
        let place = self.place(key)?;
        place.source.take()?;
        if place.readers > 0 {
            place.next = Some(next);
            return None;
        }
        self.release(key);
        Some(next)
    }

    /// Makes the place available again, with a new generation.
    fn release(&mut self, key: u64) {
        let number = key as u32;
        let place = &mut self.places[number as usize];
        place.generation = place.generation.wrapping_add(1);
        self.free.push(number);
    }

    /// Counts a frame that is on its way while its body is still read from this source.
    pub fn begin_reading(&mut self, key: u64) {
        if let Some(place) = self.place(key) {
            place.readers += 1;
        }
    }

    /// Counts the body of such a frame as left. Returns the action that is due if it was the last one of an ended
    /// registration.
    pub fn end_reading(&mut self, key: u64) -> Option<Next<S>> {
        let place = self.place(key)?;
        place.readers -= 1;
        if place.readers > 0 {
            return None;
        }
        let next = place.next.take()?;
        self.release(key);
        Some(next)
    }

    /// The keys of all registered sources.
    pub fn keys(&self) -> impl Iterator<Item = u64> {
        let live = self.places.iter().enumerate().filter(|(_, place)| place.source.is_some());
        live.map(|(number, place)| u64::from(place.generation) << 32 | number as u64)
    }

    /// The bytes `offset..offset + len` of the source, if it is registered and contains them.
    pub fn part(&self, key: u64, offset: u64, len: u64) -> Option<Piece<'_>> {
        let place = self.places.get(key as u32 as usize)?;
        let source = place.source.as_ref().filter(|_| u64::from(place.generation) == key >> 32)?;
        let end = offset.checked_add(len)?;
        (end <= place.len).then(|| source.piece(offset as usize, len as usize))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::region::SendRegion;

    #[test]
    fn keys_do_not_outlive_their_region() {
        let region = SendRegion::of_test(&[7; 16]);
        let mut regions = Regions::<()>::default();
        let first = regions.add(region.into());
        assert_eq!(regions.part(first, 4, 12).map(|part| part.len()), Some(12));
        assert!(regions.part(first, 4, 13).is_none());
        assert!(regions.part(first, u64::MAX, 2).is_none());
        assert!(regions.remove(first, Next::Nothing).is_some());
        assert!(regions.part(first, 0, 1).is_none());
        let second = regions.add(region.into());
        assert_ne!(first, second);
        assert!(regions.remove(first, Next::Nothing).is_none());
        assert!(regions.part(second, 0, 16).is_some());
    }

    #[test]
    fn what_follows_the_end_waits_for_the_last_reader() {
        let mut regions = Regions::<()>::default();
        let key = regions.add(SendRegion::of_test(&[7; 16]).into());
        regions.begin_reading(key);
        regions.begin_reading(key);
        assert!(regions.remove(key, Next::Nothing).is_none());
        assert!(regions.part(key, 0, 1).is_none(), "nothing more is read");
        assert!(regions.end_reading(key).is_none());
        assert!(matches!(regions.end_reading(key), Some(Next::Nothing)));
        assert_ne!(regions.add(SendRegion::EMPTY.into()), key);
    }
}

//! Values in reusable slots, named by keys that are never used again.
//!
//! A key consists of a slot and the slot's generation. Keys travel in packets and in users' hands, so a key that is
//! stale, or that was never handed out, names nothing. There is no allocation once the slab has its size.

/// Values by key.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    slots: Vec<Slot<T>>,
    /// The free slot that is used next, or [`NIL`].
    first_free: u32,
}

/// The generation comes first, so that the beginning of the value is in the same cache line.
#[derive(Debug)]
#[repr(C)]
struct Slot<T> {
    generation: u32,
    /// In a free slot, the next free slot.
    next_free: u32,
    value: Option<T>,
}

/// Most values of a slab. The two bits above the number of a slot are clear in every key.
pub(crate) const MOST: u32 = 1 << 30;

/// Stands for no slot.
const NIL: u32 = u32::MAX;

/// Returns the bytes that a value takes in a slab.
pub(crate) const fn place<T>() -> usize {
    size_of::<Slot<T>>()
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self { slots: Vec::new(), first_free: NIL }
    }
}

impl<T> Slab<T> {
    /// Stores a value and returns its key.
    #[inline(always)]
    pub fn insert(&mut self, value: T) -> u64 {
        self.insert_with(|| value)
    }

    /// Stores a value that is constructed in place, and returns its key. This avoids copying a large type of which a
    /// value uses little.
    #[inline(always)]
    pub fn insert_with(&mut self, make: impl FnOnce() -> T) -> u64 {
        if self.first_free == NIL {
            self.grow();
        }
        let index = self.first_free;
        let slot = &mut self.slots[index as usize];
        self.first_free = slot.next_free;
        // A free slot has no value to drop; `forget` tells the compiler so.
        std::mem::forget(slot.value.replace(make()));
        key(index, slot.generation)
    }

    /// Adds a free slot when there is none.
    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        let index = u32::try_from(self.slots.len()).ok().filter(|&index| index < MOST);
        self.first_free = index.expect("2^30 requests do not fit in memory");
        self.slots.push(Slot { generation: 1, next_free: NIL, value: None });
    }

    /// Returns the value of a key.
    #[inline]
    pub fn get(&self, key: u64) -> Option<&T> {
        let slot = self.slots.get(key as u32 as usize)?;
        if slot.generation == (key >> 32) as u32 { slot.value.as_ref() } else { None }
    }

    /// Returns the value of a key for writing.
    #[inline]
    pub fn get_mut(&mut self, key: u64) -> Option<&mut T> {
        let slot = self.slots.get_mut(key as u32 as usize)?;
        if slot.generation == (key >> 32) as u32 { slot.value.as_mut() } else { None }
    }

    /// Removes the value of a key; the key is then stale.
    #[inline]
    pub fn remove(&mut self, key: u64) -> Option<T> {
        self.take_if(key, Option::take)
    }

    /// Removes the value of a key if `take` returns something for it, and returns that; the key is then stale. What
    /// `take` leaves in the place must own nothing, since it is not dropped.
    #[inline(always)]
    pub fn take_if<R>(
        &mut self,
        key: u64,
        take: impl FnOnce(&mut Option<T>) -> Option<R>,
    ) -> Option<R> {
        let slot = self.slots.get_mut(key as u32 as usize)?;
        if slot.generation != (key >> 32) as u32 {
            return None;
        }
        let taken = take(&mut slot.value)?;
        std::mem::forget(slot.value.take());
        slot.generation = next(slot.generation);
        slot.next_free = self.first_free;
        self.first_free = key as u32;
        Some(taken)
    }

    /// Returns the key of the value in a slot, or of the value that the slot will have next.
    pub fn key(&self, index: u32) -> Option<u64> {
        self.slots.get(index as usize).map(|slot| key(index, slot.generation))
    }

    /// Returns the contents of a slot, to change one value into another.
    #[inline(always)]
    pub fn at_mut(&mut self, index: u32) -> Option<&mut Option<T>> {
        self.slots.get_mut(index as usize).map(|slot| &mut slot.value)
    }

    /// Returns the value in a slot, if it has one.
    pub fn at(&self, index: u32) -> Option<&T> {
        self.slots.get(index as usize)?.value.as_ref()
    }

    /// Returns the bytes of memory that the values take, without spare capacity.
    #[cfg(test)]
    pub fn bytes(&self) -> usize {
        self.slots.len() * place::<T>()
    }

    /// Iterates over all values with their keys.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &T)> {
        #[cfg(test)]
        crate::matching::tests::count_steps(self.slots.len());
        (0u32..).zip(&self.slots).filter_map(|(index, slot)| {
            slot.value.as_ref().map(|value| (key(index, slot.generation), value))
        })
    }
}

/// Returns the generation after this one. Generations are odd, so no key is 0.
#[inline(always)]
fn next(generation: u32) -> u32 {
    generation.wrapping_add(2)
}

#[inline]
fn key(index: u32, generation: u32) -> u64 {
    u64::from(generation) << 32 | u64::from(index)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stale_keys_name_nothing() {
        let mut slab = Slab::default();
        let first = slab.insert('a');
        assert_eq!(slab.remove(first), Some('a'));
        let second = slab.insert('b');
        assert_eq!(first as u32, second as u32, "the slot is used again");
        assert_eq!(slab.get(first), None);
        assert_eq!(slab.remove(first), None);
        assert_eq!(slab.get_mut(second), Some(&mut 'b'));
        assert_eq!(slab.get(7), None);
    }
}

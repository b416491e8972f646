//! Values in slots that are used again, named by keys that are not.
//!
//! A key is a slot and the slot's generation; it goes through packets and user hands, so a key that
//! has become stale, or was never given out, names nothing. No allocation once the slab has its size.

/// Values by key.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    slots: Vec<Slot<T>>,
    /// The free slot that is used next, or [`NIL`].
    first_free: u32,
}

/// Generation first: the beginning of the value is then in the same cache line.
#[derive(Debug)]
#[repr(C)]
struct Slot<T> {
    generation: u32,
    /// Of a free slot, the free one after it.
    next_free: u32,
    value: Option<T>,
}

/// No slot.
const NIL: u32 = u32::MAX;

/// Bytes that a value takes in a slab.
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

    /// Stores a value that is made in its place, which spares copying one that is large for the little that is in
    /// it, and returns its key.
    #[inline(always)]
    pub fn insert_with(&mut self, make: impl FnOnce() -> T) -> u64 {
        if self.first_free == NIL {
            self.grow();
        }
        let index = self.first_free;
        let slot = &mut self.slots[index as usize];
        self.first_free = slot.next_free;
        // A free slot has no value; said in this way, none is dropped.
        std::mem::forget(slot.value.replace(make()));
        key(index, slot.generation)
    }

    /// A free slot, when there is none.
    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        let index = u32::try_from(self.slots.len()).ok().filter(|&index| index != NIL);
        self.first_free = index.expect("2^32 requests do not fit in memory");
        self.slots.push(Slot { generation: 1, next_free: NIL, value: None });
    }

    /// The value of a key.
    #[inline]
    pub fn get(&self, key: u64) -> Option<&T> {
        let slot = self.slots.get(key as u32 as usize)?;
        if slot.generation == (key >> 32) as u32 { slot.value.as_ref() } else { None }
    }

    /// The value of a key, to change.
    #[inline]
    pub fn get_mut(&mut self, key: u64) -> Option<&mut T> {
        let slot = self.slots.get_mut(key as u32 as usize)?;
        if slot.generation == (key >> 32) as u32 { slot.value.as_mut() } else { None }
    }

    /// Takes the value of a key out; the key is stale from then on.
    #[inline]
    pub fn remove(&mut self, key: u64) -> Option<T> {
        let value = match self.slots.get_mut(key as u32 as usize) {
            Some(slot) if slot.generation == (key >> 32) as u32 => slot.value.take()?,
            _ => return None,
        };
        self.free(key as u32);
        Some(value)
    }

    /// Takes the value of a key out if `look` finds something in it, and returns that; the key is stale
    /// from then on. A value in which something is found must own nothing: it is not dropped.
    #[inline(always)]
    pub fn take_if<R>(
        &mut self,
        key: u64,
        look: impl FnOnce(&Option<T>) -> Option<R>,
    ) -> Option<R> {
        let index = key as u32;
        let slot = self.slots.get_mut(index as usize)?;
        if slot.generation != (key >> 32) as u32 {
            return None;
        }
        let found = look(&slot.value)?;
        std::mem::forget(slot.value.take());
        self.free(index);
        Some(found)
    }

    /// Notes that a slot is empty.
    #[inline(always)]
    fn free(&mut self, index: u32) {
        let slot = &mut self.slots[index as usize];
        slot.generation = next(slot.generation);
        slot.next_free = self.first_free;
        self.first_free = index;
    }

    /// The key of the value that a slot has, or will have next.
    pub fn key(&self, index: u32) -> Option<u64> {
        self.slots.get(index as usize).map(|slot| key(index, slot.generation))
    }

    /// What is in a slot, to change a value into another one.
    #[inline(always)]
    pub fn at_mut(&mut self, index: u32) -> Option<&mut Option<T>> {
        self.slots.get_mut(index as usize).map(|slot| &mut slot.value)
    }

    /// The value in a slot, if it has one.
    pub fn at(&self, index: u32) -> Option<&T> {
        self.slots.get(index as usize)?.value.as_ref()
    }

    /// Bytes of memory that the values take, without what their list has in reserve.
    #[cfg(test)]
    pub fn bytes(&self) -> usize {
        self.slots.len() * place::<T>()
    }

    /// All values with their keys.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &T)> {
        (0u32..).zip(&self.slots).filter_map(|(index, slot)| {
            slot.value.as_ref().map(|value| (key(index, slot.generation), value))
        })
    }
}

/// Generations are odd, so that no key is 0.
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

//! Values in slots that are used again, named by keys that are not.
//!
//! A key is a slot and the slot's generation; it goes through packets and user hands, so a key that
//! has become stale, or was never given out, names nothing. No allocation once the slab has its size.

/// Values by key.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    slots: Vec<Slot<T>>,
    free: Vec<u32>,
}

#[derive(Debug)]
struct Slot<T> {
    generation: u32,
    value: Option<T>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self { slots: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slab<T> {
    /// Stores a value and returns its key.
    #[inline]
    pub fn insert(&mut self, value: T) -> u64 {
        self.insert_with(|_| value)
    }

    /// Stores the value that `make` makes of its key, and returns the key.
    #[inline]
    pub fn insert_with(&mut self, make: impl FnOnce(u64) -> T) -> u64 {
        let index = match self.free.pop() {
            Some(index) => index,
            None => self.grow(),
        };
        let slot = &mut self.slots[index as usize];
        let key = key(index, slot.generation);
        slot.value = Some(make(key));
        key
    }

    /// A slot more, and room to note all of them as free.
    #[cold]
    fn grow(&mut self) -> u32 {
        let index = u32::try_from(self.slots.len()).expect("2^32 requests do not fit in memory");
        self.slots.push(Slot { generation: 1, value: None });
        self.free.reserve(self.slots.len());
        index
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
        let slot = self.slots.get_mut(key as u32 as usize)?;
        if slot.generation != (key >> 32) as u32 {
            return None;
        }
        let value = slot.value.take()?;
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(key as u32);
        Some(value)
    }

    /// Drops the value of a key where it is; the key is stale from then on.
    #[inline]
    pub fn discard(&mut self, key: u64) {
        let Some(slot) = self.slots.get_mut(key as u32 as usize) else { return };
        if slot.generation == (key >> 32) as u32 && slot.value.is_some() {
            slot.value = None;
            slot.generation = slot.generation.wrapping_add(1);
            self.free.push(key as u32);
        }
    }

    /// All values with their keys.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &T)> {
        (0u32..).zip(&self.slots).filter_map(|(index, slot)| {
            slot.value.as_ref().map(|value| (key(index, slot.generation), value))
        })
    }
}

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

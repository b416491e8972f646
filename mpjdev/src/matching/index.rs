//! All queues of one class of patterns: a map from key to a first-in, first-out queue.
//!
//! Used by [`super::Matcher`], whose invariants M2 and M3 it maintains. A queue is doubly linked through the entries,
//! so removing an entry from any place costs a constant.

use std::cell::Cell;

use rustc_hash::FxHashMap;

use super::entries::{Link, Links, NIL};

/// Empty queues are not removed before an index has this many queues.
const SWEEP_FLOOR: usize = 64;

/// Context, source and tag; a wildcard of the index's class is 0 in every key of that index. It has only two words,
/// since keys are compared and hashed on the path of every message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Key {
    /// Source in the upper half, tag in the lower one.
    from: u64,
    context: u32,
}

impl Key {
    #[inline(always)]
    pub fn new(context: u32, source: u32, tag: i32) -> Self {
        Self { from: u64::from(source) << 32 | u64::from(tag as u32), context }
    }

    /// Returns context, source and tag.
    pub fn parts(self) -> (u32, u32, i32) {
        (self.context, (self.from >> 32) as u32, self.from as u32 as i32)
    }
}

impl std::hash::Hash for Key {
    #[inline]
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        state.write_u64(self.from);
        state.write_u32(self.context);
    }
}

/// A queue: its key, and its first and last slot, or [`NIL`] if it is empty.
#[derive(Debug, Clone, Copy)]
struct Queue {
    key: Key,
    head: u32,
    tail: u32,
}

/// Bytes that a queue takes: its place in the list, and its entry in the map. The map has one more byte for each of its
/// places, and uses at least 7 of 16 places once it has grown.
pub(super) const QUEUE: usize =
    size_of::<Queue>() + ((size_of::<(Key, u32)>() + 1) * 16).div_ceil(7);

/// The queues of one class.
#[derive(Debug)]
pub(super) struct Index {
    queues: Vec<Queue>,
    /// The place of a key's queue in the list.
    places: FxHashMap<Key, u32>,
    /// The place of the queue that was looked up last, since the next look-up is often for the same one.
    last: Cell<u32>,
    sweep_at: usize,
}

impl Default for Index {
    fn default() -> Self {
        let places = FxHashMap::default();
        Self { queues: Vec::new(), places, last: Cell::new(0), sweep_at: SWEEP_FLOOR }
    }
}

impl Index {
    /// Adds `slot` to the end of the queue of `key`, through its link number `which` (M2).
    #[inline(always)]
    pub fn append(&mut self, key: Key, slot: u32, which: usize, entries: &mut impl Links) {
        let place = self.place(&key).unwrap_or_else(|| self.open(key));
        let queue = &mut self.queues[place];
        *entries.link(slot, which) = Link { prev: queue.tail, next: NIL };
        if queue.tail == NIL {
            queue.head = slot;
        } else {
            entries.link(queue.tail, which).next = slot;
        }
        queue.tail = slot;
    }

    /// Returns the earliest entry of the queue of `key` (M2).
    #[inline]
    pub fn head(&self, key: &Key) -> Option<u32> {
        #[cfg(test)]
        super::tests::count_steps(1);
        let head = self.queues[self.place(key)?].head;
        (head != NIL).then_some(head)
    }

    /// Returns the place of the queue of `key`.
    #[inline(always)]
    fn place(&self, key: &Key) -> Option<usize> {
        let last = self.last.get();
        match self.queues.get(last as usize) {
            Some(queue) if queue.key == *key => Some(last as usize),
            _ => self.look_up(key),
        }
    }

    #[inline(never)]
    fn look_up(&self, key: &Key) -> Option<usize> {
        let place = *self.places.get(key)?;
        self.last.set(place);
        Some(place as usize)
    }

    /// Makes a queue for a new key. First removes the empty queues if there are many.
    #[cold]
    fn open(&mut self, key: Key) -> usize {
        if self.queues.len() >= self.sweep_at {
            self.sweep();
        }
        let place = self.queues.len();
        self.queues.push(Queue { key, head: NIL, tail: NIL });
        self.places.insert(key, place as u32);
        place
    }

    /// Removes the earliest entry from the queue of `key`, with a single look-up.
    #[inline(always)]
    pub fn pop(&mut self, key: &Key, which: usize, entries: &mut impl Links) -> Option<u32> {
        let place = self.place(key)?;
        let queue = &mut self.queues[place];
        let slot = queue.head;
        if slot == NIL {
            return None;
        }
        queue.head = entries.link(slot, which).next;
        if queue.head == NIL {
            queue.tail = NIL;
        } else {
            entries.link(queue.head, which).prev = NIL;
        }
        Some(slot)
    }

    /// Removes `slot` from the queue of `key`, from any place in it.
    pub fn unlink(&mut self, key: &Key, slot: u32, which: usize, entries: &mut impl Links) {
        let Link { prev, next } = *entries.link(slot, which);
        if prev != NIL {
            entries.link(prev, which).next = next;
        }
        if next != NIL {
            entries.link(next, which).prev = prev;
        }
        if prev != NIL && next != NIL {
            return;
        }
        let place = self.place(key).expect("M3: a queue with entries is in the map");
        let queue = &mut self.queues[place];
        if prev == NIL {
            queue.head = next;
        }
        if next == NIL {
            queue.tail = prev;
        }
    }

    /// Removes the empty queues. Between two sweeps there are at least half as many new keys as queues remain, and at
    /// least half the floor. So the cost per entry is constant even if no key occurs twice, and the map never stays
    /// much larger than twice the number of queues in use.
    #[cold]
    fn sweep(&mut self) {
        self.queues.retain(|queue| queue.head != NIL);
        self.places.clear();
        self.places.extend((0..).zip(&self.queues).map(|(place, queue)| (queue.key, place)));
        self.sweep_at = SWEEP_FLOOR.max(2 * self.queues.len());
        // Leave room for twice the limit; otherwise a map near the limit would shrink and grow in turns.
        self.queues.shrink_to(2 * self.sweep_at);
        self.places.shrink_to(2 * self.sweep_at);
    }

    /// Returns the bytes of memory that the queues take, without spare capacity.
    #[cfg(test)]
    pub fn bytes(&self) -> usize {
        // The map has a power of two of places, and uses up to 7 of 8.
        let places = (self.places.capacity() * 8 / 7).next_power_of_two();
        self.queues.len() * size_of::<Queue>() + places * (size_of::<(Key, u32)>() + 1)
    }

    /// Returns how many queues the map contains, including empty ones, and how many it has room for.
    #[cfg(test)]
    pub fn footprint(&self) -> (usize, usize) {
        (self.places.len(), self.places.capacity().max(self.queues.capacity()))
    }
}

//! All queues of one class of keys: a map from key to a first-in, first-out queue.
//!
//! Called by [`super::Matcher`], whose invariants M2 and M3 it keeps. A queue is doubly linked
//! through the slab, so an entry leaves it from anywhere at constant cost.

use rustc_hash::FxHashMap;

use super::slab::{Link, NIL, Slab};

/// Empty queues are not looked for before a lane has this many queues.
const SWEEP_FLOOR: usize = 64;

/// Context, source and tag; a wildcard of the lane's class is 0 in every key of that lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Key {
    pub context: u32,
    pub source: u32,
    pub tag: i32,
}

impl std::hash::Hash for Key {
    /// Two words instead of three fields: the hash is on the path of every message.
    #[inline]
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        state.write_u64(u64::from(self.source) << 32 | u64::from(self.tag as u32));
        state.write_u32(self.context);
    }
}

/// First and last slot of a queue, [`NIL`] when it is empty.
#[derive(Debug, Clone, Copy)]
struct Ends {
    head: u32,
    tail: u32,
}

/// The queues of one class.
#[derive(Debug)]
pub(super) struct Lane {
    queues: FxHashMap<Key, Ends>,
    sweep_at: usize,
}

impl Default for Lane {
    fn default() -> Self {
        Self { queues: FxHashMap::default(), sweep_at: SWEEP_FLOOR }
    }
}

impl Lane {
    /// Puts `slot` at the end of the queue of `key`, through its link number `which` (M2).
    #[inline]
    pub fn append<T, const LINKS: usize>(
        &mut self,
        key: Key,
        slot: u32,
        which: usize,
        slab: &mut Slab<T, LINKS>,
    ) {
        let ends = self.queues.entry(key).or_insert(Ends { head: NIL, tail: NIL });
        *slab.link(slot, which) = Link { prev: ends.tail, next: NIL };
        if ends.tail == NIL {
            ends.head = slot;
        } else {
            slab.link(ends.tail, which).next = slot;
        }
        ends.tail = slot;
        if self.queues.len() > self.sweep_at {
            self.sweep();
        }
    }

    /// The earliest entry of the queue of `key` (M2).
    #[inline]
    pub fn head(&self, key: &Key) -> Option<u32> {
        #[cfg(test)]
        super::tests::count_steps(1);
        self.queues.get(key).map(|ends| ends.head).filter(|&head| head != NIL)
    }

    /// Takes the earliest entry out of the queue of `key`, with a single look-up.
    #[inline]
    pub fn pop<T, const LINKS: usize>(
        &mut self,
        key: &Key,
        which: usize,
        slab: &mut Slab<T, LINKS>,
    ) -> Option<u32> {
        let ends = self.queues.get_mut(key).filter(|ends| ends.head != NIL)?;
        let slot = ends.head;
        ends.head = slab.link(slot, which).next;
        if ends.head == NIL {
            ends.tail = NIL;
        } else {
            slab.link(ends.head, which).prev = NIL;
        }
        Some(slot)
    }

    /// Takes `slot` out of the queue of `key`, wherever in it that is.
    pub fn unlink<T, const LINKS: usize>(
        &mut self,
        key: &Key,
        slot: u32,
        which: usize,
        slab: &mut Slab<T, LINKS>,
    ) {
        let Link { prev, next } = *slab.link(slot, which);
        if prev != NIL {
            slab.link(prev, which).next = next;
        }
        if next != NIL {
            slab.link(next, which).prev = prev;
        }
        if prev != NIL && next != NIL {
            return;
        }
        let ends = self.queues.get_mut(key).expect("M3: a queue with entries is in the map");
        if prev == NIL {
            ends.head = next;
        }
        if next == NIL {
            ends.tail = prev;
        }
    }

    /// Forgets the empty queues. At least half as many new keys as remain, or half the floor, pass
    /// between two sweeps, so the cost per entry is constant even when no key comes twice; and the
    /// map never stays much larger than twice the number of queues in use.
    #[cold]
    fn sweep(&mut self) {
        self.queues.retain(|_, ends| ends.head != NIL);
        self.sweep_at = SWEEP_FLOOR.max(2 * self.queues.len());
        // Room for twice the limit, or a map that hovers about it would grow and shrink in turns.
        self.queues.shrink_to(2 * self.sweep_at);
    }

    /// How many queues the map holds, empty ones included, and how many it has room for.
    #[cfg(test)]
    pub fn footprint(&self) -> (usize, usize) {
        (self.queues.len(), self.queues.capacity())
    }
}

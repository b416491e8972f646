//! The entries of the unexpected queue, in reusable slots, with their links in the indexes.
//!
//! Used by [`super::Matcher`] and [`super::index`]. M1 is an invariant of `matching.rs`. The memory stays at the
//! largest number of entries that ever waited at once.

use super::UnexpectedTicket;

/// Stands for no slot.
pub(super) const NIL: u32 = u32::MAX;
/// Serial of a free slot; serials of entries start at 1.
pub(super) const FREE: u64 = 0;

/// The neighbours of an entry in one of its queues, or [`NIL`] at the ends.
#[derive(Debug, Clone, Copy)]
pub(super) struct Link {
    pub prev: u32,
    pub next: u32,
}

impl Link {
    pub(super) const NONE: Self = Self { prev: NIL, next: NIL };
}

/// Access to the links of entries.
pub(super) trait Links {
    /// Returns link number `which` of the entry in `slot`.
    fn link(&mut self, slot: u32, which: usize) -> &mut Link;
}

impl<T: Copy, const LINKS: usize> Links for Entries<T, LINKS> {
    #[inline]
    fn link(&mut self, slot: u32, which: usize) -> &mut Link {
        #[cfg(test)]
        super::tests::count_steps(1);
        &mut self.slots[slot as usize].links[which]
    }
}

/// Slots for entries that are each in up to `LINKS` queues. Entries are copied in and out. A free slot keeps its old
/// value, and only its serial shows that it is free.
#[derive(Debug)]
pub(super) struct Entries<T, const LINKS: usize> {
    slots: Vec<EntrySlot<T, LINKS>>,
    first_free: u32,
    len: usize,
}

/// One slot. A free slot stores the next free slot in its first link.
#[derive(Debug)]
struct EntrySlot<T, const LINKS: usize> {
    serial: u64,
    links: [Link; LINKS],
    value: T,
}

impl<T: Copy, const LINKS: usize> Entries<T, LINKS> {
    /// Bytes that an entry takes.
    pub const PLACE: usize = size_of::<EntrySlot<T, LINKS>>();

    pub fn new() -> Self {
        Self { slots: Vec::new(), first_free: NIL, len: 0 }
    }

    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns the bytes of memory that the entries take, without spare capacity.
    #[cfg(test)]
    pub fn bytes(&self) -> usize {
        self.slots.len() * Self::PLACE
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Stores an entry that is in no queue yet, and returns its slot. Its links have no meaning until it joins a queue.
    #[inline]
    pub fn insert(&mut self, serial: u64, value: T) -> u32 {
        self.len += 1;
        let slot = self.first_free;
        let Some(place) = self.slots.get_mut(slot as usize) else {
            return self.grow(serial, value);
        };
        self.first_free = place.links[0].next;
        place.serial = serial;
        place.value = value;
        slot
    }

    #[cold]
    fn grow(&mut self, serial: u64, value: T) -> u32 {
        let slot = u32::try_from(self.slots.len())
            .ok()
            .filter(|&slot| slot != NIL)
            .expect("2^32 entries need more memory than a task has");
        self.slots.push(EntrySlot { serial, links: [Link::NONE; LINKS], value });
        slot
    }

    /// Frees a slot whose entry has been removed from all its queues, and returns the value.
    #[inline]
    pub fn remove(&mut self, slot: u32) -> T {
        let place = &mut self.slots[slot as usize];
        place.serial = FREE;
        place.links[0].next = self.first_free;
        self.first_free = slot;
        self.len -= 1;
        place.value
    }

    /// Returns the entry that a ticket names, unless it has left (M1).
    pub fn get(&self, ticket: UnexpectedTicket) -> Option<&T> {
        let slot = self.slots.get(ticket.slot as usize)?;
        (slot.serial == ticket.serial).then_some(&slot.value)
    }

    /// Returns the entry in an occupied slot.
    #[inline]
    pub fn value(&self, slot: u32) -> &T {
        &self.slots[slot as usize].value
    }

    /// Iterates over all entries with their tickets, earliest first.
    pub fn in_order(&self) -> impl Iterator<Item = (UnexpectedTicket, &T)> {
        #[cfg(test)]
        super::tests::count_steps(self.slots.len());
        let occupied = (0..).zip(&self.slots).filter_map(|(slot, place): (u32, _)| {
            let ticket = UnexpectedTicket { slot, serial: place.serial };
            (place.serial != FREE).then_some((ticket, &place.value))
        });
        let mut entries: Vec<_> = occupied.collect();
        entries.sort_unstable_by_key(|(ticket, _)| ticket.serial);
        entries.into_iter()
    }
}

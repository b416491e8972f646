//! Entries of one matching queue in slots that are used again, with the links of their lanes.
//!
//! Called by [`super::Matcher`] and by [`super::lane`]. M1 is the invariant of the file above.
//! Memory stays at the largest number of entries that ever waited at once.

use super::Ticket;

/// No slot.
pub(super) const NIL: u32 = u32::MAX;
/// Serial of a free slot; entries start at 1.
const FREE: u64 = 0;

/// Neighbours of an entry in one of its queues, [`NIL`] at the ends.
#[derive(Debug, Clone, Copy)]
pub(super) struct Link {
    pub prev: u32,
    pub next: u32,
}

impl Link {
    const NONE: Self = Self { prev: NIL, next: NIL };
}

/// Slots for entries that each sit in up to `LINKS` queues.
#[derive(Debug)]
pub(super) struct Slab<T, const LINKS: usize> {
    slots: Vec<Slot<T, LINKS>>,
    first_free: u32,
    len: usize,
}

/// One slot. A free one keeps the next free slot in its first link.
#[derive(Debug)]
struct Slot<T, const LINKS: usize> {
    serial: u64,
    links: [Link; LINKS],
    value: Option<T>,
}

impl<T, const LINKS: usize> Slab<T, LINKS> {
    pub fn new() -> Self {
        Self { slots: Vec::new(), first_free: NIL, len: 0 }
    }

    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Stores an entry that is in no queue yet, and returns its slot.
    #[inline]
    pub fn insert(&mut self, serial: u64, value: T) -> u32 {
        self.len += 1;
        let entry = Slot { serial, links: [Link::NONE; LINKS], value: Some(value) };
        let slot = self.first_free;
        if slot == NIL {
            return self.grow(entry);
        }
        let place = &mut self.slots[slot as usize];
        self.first_free = place.links[0].next;
        *place = entry;
        slot
    }

    #[cold]
    fn grow(&mut self, entry: Slot<T, LINKS>) -> u32 {
        let slot = u32::try_from(self.slots.len())
            .ok()
            .filter(|&slot| slot != NIL)
            .expect("2^32 entries need more memory than a task has");
        self.slots.push(entry);
        slot
    }

    /// Frees an occupied slot whose entry has been taken out of all its queues.
    #[inline]
    pub fn remove(&mut self, slot: u32) -> T {
        let place = &mut self.slots[slot as usize];
        let value = place.value.take().expect("only occupied slots are in a queue");
        place.serial = FREE;
        place.links[0].next = self.first_free;
        self.first_free = slot;
        self.len -= 1;
        value
    }

    /// The entry that a ticket names, unless it has left (M1).
    pub fn get_mut(&mut self, ticket: Ticket) -> Option<&mut T> {
        let slot = self.slots.get_mut(ticket.slot as usize)?;
        slot.value.as_mut().filter(|_| slot.serial == ticket.serial)
    }

    /// The entry in an occupied slot.
    pub fn value(&self, slot: u32) -> &T {
        let value = self.slots[slot as usize].value.as_ref();
        value.expect("only occupied slots are in a queue")
    }

    #[inline]
    pub fn serial(&self, slot: u32) -> u64 {
        self.slots[slot as usize].serial
    }

    #[inline]
    pub fn link(&mut self, slot: u32, which: usize) -> &mut Link {
        #[cfg(test)]
        super::tests::count_steps(1);
        &mut self.slots[slot as usize].links[which]
    }

    /// All entries with their slots, earliest first.
    pub fn in_order(&self) -> impl Iterator<Item = (u32, &T)> {
        #[cfg(test)]
        super::tests::count_steps(self.slots.len());
        let occupied = (0..).zip(&self.slots).filter_map(|(index, slot): (u32, _)| {
            slot.value.as_ref().map(|value| (slot.serial, index, value))
        });
        let mut entries: Vec<_> = occupied.collect();
        entries.sort_unstable_by_key(|&(serial, ..)| serial);
        entries.into_iter().map(|(_, slot, value)| (slot, value))
    }
}

//! The posted-receive queue. While all receives have the same pattern, they are in one array, the *row*, without links
//! or look-ups; otherwise each is in the index of its class.
//!
//! Most programs post receives of one pattern at a time, or one receive. Used by [`super::Matcher`], whose invariants
//! M4 and M5 it maintains.

use super::entries::{FREE, Link, Links};
use super::index::{Index, Key};
use super::{CLASSES, EXACT, Envelope, Pattern, classify, key_of, pattern_of};

/// The posted-receive queue: all receives in a row, or each in the index of its class (M4, M5).
#[derive(Debug)]
pub(super) struct PostedQueue {
    row: Row,
    next_serial: u64,
    receives: Receives,
    pub indexes: [Index; CLASSES],
    /// Number of receives in the indexes, for each class, and in total.
    waiting: [usize; CLASSES],
    indexed: usize,
}

/// The state of each receive in an index, by the caller's number. Serial [`FREE`] means that no receive with this
/// number is in an index.
#[derive(Debug, Default)]
struct Receives(Vec<Receive>);

#[derive(Debug, Clone, Copy)]
struct Receive {
    serial: u64,
    link: Link,
    /// The key of the pattern in its class.
    key: Key,
    class: u32,
}

impl Receive {
    fn pattern(&self) -> Pattern {
        pattern_of(self.class as usize, self.key)
    }
}

impl Links for Receives {
    #[inline(always)]
    fn link(&mut self, slot: u32, _which: usize) -> &mut Link {
        #[cfg(test)]
        super::tests::count_steps(1);
        &mut self.0[slot as usize].link
    }
}

impl Receives {
    #[inline(always)]
    fn set(&mut self, number: u32, serial: u64, class: usize, key: Key) {
        if number as usize >= self.0.len() {
            self.grow(number, key);
        }
        let place = &mut self.0[number as usize];
        place.serial = serial;
        place.key = key;
        place.class = class as u32;
    }

    /// Makes room for this number. The new places are marked as free.
    #[cold]
    #[inline(never)]
    fn grow(&mut self, number: u32, key: Key) {
        let nothing = Receive { serial: FREE, link: Link::NONE, key, class: 0 };
        self.0.resize(number as usize + 1, nothing);
    }

    fn in_order(&self) -> impl Iterator<Item = (u32, Pattern)> {
        #[cfg(test)]
        super::tests::count_steps(self.0.len());
        let numbered = (0..).zip(&self.0).filter(|(_, receive)| receive.serial != FREE);
        let mut waiting: Vec<(u32, &Receive)> = numbered.collect();
        waiting.sort_unstable_by_key(|(_, receive)| receive.serial);
        waiting.into_iter().map(|(number, receive)| (number, receive.pattern()))
    }
}

impl PostedQueue {
    pub fn new() -> Self {
        let (receives, indexes) = (Receives::default(), Default::default());
        let row = Row::new();
        Self { row, next_serial: FREE + 1, receives, indexes, waiting: [0; CLASSES], indexed: 0 }
    }

    pub fn len(&self) -> usize {
        self.row.len() + self.indexed
    }

    #[inline(always)]
    pub fn push(&mut self, pattern: Pattern, number: u32) {
        let (class, key) = classify(&pattern);
        if self.indexed == 0 && self.row.push(class, key, number) {
            return;
        }
        self.push_to_index(class, key, number);
    }

    /// Adds a receive to its index, after moving those of the row.
    #[inline(never)]
    fn push_to_index(&mut self, class: usize, key: Key, number: u32) {
        self.settle_row();
        self.join_index(class, key, number);
    }

    /// Moves the receives of the row into their index. Each receive is in the row at most once, so this costs a
    /// constant for each.
    fn settle_row(&mut self) {
        let (class, key) = (self.row.class(), self.row.key());
        while let Some(number) = self.row.pop() {
            self.join_index(class, key, number);
        }
    }

    fn join_index(&mut self, class: usize, key: Key, number: u32) {
        let serial = self.next_serial;
        self.next_serial += 1;
        self.receives.set(number, serial, class, key);
        self.indexes[class].append(key, number, 0, &mut self.receives);
        self.waiting[class] += 1;
        self.indexed += 1;
    }

    #[inline(always)]
    pub fn take(&mut self, envelope: Envelope) -> Option<u32> {
        if self.indexed > 0 || self.row.class() != EXACT {
            return self.take_otherwise(envelope.context, envelope.source, envelope.tag);
        }
        // Most receives are in a row with an exact pattern; its key is made from the envelope as it is.
        let Envelope { context, source, tag } = envelope;
        self.row.take(Key::new(context, source, tag))
    }

    // The envelope is passed in parts, which are in registers when a message arrives.
    #[inline(never)]
    fn take_otherwise(&mut self, context: u32, source: u32, tag: i32) -> Option<u32> {
        let envelope = Envelope { context, source, tag };
        if self.indexed == 0 {
            return self.row.take(key_of(&envelope, self.row.class()));
        }
        let only_exact = self.waiting[EXACT] == self.indexed;
        let class = if only_exact { EXACT } else { self.earliest_class(&envelope)? };
        let number = self.indexes[class].pop(&key_of(&envelope, class), 0, &mut self.receives)?;
        self.leave(number, class);
        Some(number)
    }

    /// Notes that a receive has been removed from its index.
    fn leave(&mut self, number: u32, class: usize) {
        self.receives.0[number as usize].serial = FREE;
        self.waiting[class] -= 1;
        self.indexed -= 1;
    }

    /// Returns the class whose queue for this envelope has the earliest head.
    #[inline(never)]
    fn earliest_class(&self, envelope: &Envelope) -> Option<usize> {
        let heads = (0..CLASSES).filter(|&class| self.waiting[class] > 0).filter_map(|class| {
            let number = self.indexes[class].head(&key_of(envelope, class))?;
            Some((self.receives.0[number as usize].serial, class))
        });
        heads.min().map(|(_, class)| class)
    }

    pub fn cancel(&mut self, number: u32) -> bool {
        self.settle_row();
        let receive = self.receives.0.get(number as usize).filter(|receive| receive.serial != FREE);
        let Some(&Receive { key, class, .. }) = receive else { return false };
        self.indexes[class as usize].unlink(&key, number, 0, &mut self.receives);
        self.leave(number, class as usize);
        true
    }

    pub fn pattern_of(&self, number: u32) -> Option<Pattern> {
        match self.receives.0.get(number as usize) {
            Some(receive) if receive.serial != FREE => Some(receive.pattern()),
            // A receive that is in no index is in the row, where all have the same pattern.
            _ => (self.row.len() > 0).then(|| pattern_of(self.row.class(), self.row.key())),
        }
    }

    pub fn in_order(&self) -> impl Iterator<Item = (u32, Pattern)> {
        let wanted = pattern_of(self.row.class(), self.row.key());
        let row = self.row.numbers().map(move |number| (number, wanted));
        row.chain(self.receives.in_order())
    }
}

/// Receives of one pattern, in the order in which they were posted.
#[derive(Debug)]
struct Row {
    class: usize,
    key: Key,
    numbers: Vec<u32>,
    /// How many of `numbers`, from the front, have been taken; 0 if all have, since `numbers` is then empty.
    taken: usize,
}

impl Row {
    fn new() -> Self {
        Self { class: 0, key: Key::new(0, 0, 0), numbers: Vec::new(), taken: 0 }
    }

    /// Adds a receive at the end if it has the same pattern as the others. Returns whether it has.
    #[inline(always)]
    fn push(&mut self, class: usize, key: Key, number: u32) -> bool {
        if self.numbers.is_empty() {
            (self.class, self.key) = (class, key);
        }
        let fits = self.class == class && self.key == key;
        if fits {
            if self.numbers.len() == self.numbers.capacity() {
                self.drop_taken();
            }
            self.numbers.push(number);
        }
        fits
    }

    /// Removes the taken numbers if they are at least half of all, so that the cost for each receive is constant.
    #[cold]
    #[inline(never)]
    fn drop_taken(&mut self) {
        if 2 * self.taken >= self.numbers.len() {
            self.numbers.drain(..self.taken);
            self.taken = 0;
        }
    }

    /// Returns the class of the row's pattern.
    #[inline(always)]
    fn class(&self) -> usize {
        self.class
    }

    /// Returns the key of the row's pattern in its class.
    fn key(&self) -> Key {
        self.key
    }

    /// Removes the first receive if `key`, which belongs to the row's class, is the key of its pattern.
    #[inline(always)]
    fn take(&mut self, key: Key) -> Option<u32> {
        if self.key == key { self.pop() } else { None }
    }

    /// Removes the first receive.
    #[inline(always)]
    fn pop(&mut self) -> Option<u32> {
        let number = *self.numbers.get(self.taken)?;
        self.taken += 1;
        if self.taken == self.numbers.len() {
            self.numbers.clear();
            self.taken = 0;
        }
        Some(number)
    }

    fn len(&self) -> usize {
        self.numbers.len() - self.taken
    }

    /// Iterates over the waiting receives, first to last.
    fn numbers(&self) -> impl Iterator<Item = u32> {
        self.numbers[self.taken..].iter().copied()
    }
}

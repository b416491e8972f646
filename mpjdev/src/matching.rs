//! Matches messages with receives by context, source and tag. Pure: without I/O or clock.
//!
//! The device calls it under its lock. A receive first searches the unexpected messages, and is posted if none fits. An
//! arrival first searches the posted receives, and becomes an unexpected message if none fits. The queue of unexpected
//! messages is the *early-send queue* of HPJava's design.
//!
//! A match costs at most one hash look-up in each class in use, however long the queues are. Patterns fall into four
//! classes (exact, any source, any tag, both). Each class has an *index*, which maps a key to a first-in, first-out
//! queue that is linked through the entries.
//!
//! * A posted receive is in the one queue of its own pattern. An arrival looks into each class that has receives
//!   waiting, and takes the earliest of at most four queue heads.
//! * An unexpected message is in the exact index, and in the index of every wildcard class that was searched while
//!   unexpected messages waited. Such an index is filled when it is first needed and maintained from then on, so
//!   programs without wildcards never pay for it.
//!
//! Nothing is allocated once the entries and the maps have grown to what the program needs. An empty queue keeps its
//! place in the map, because most programs use the same keys again; the indexes remove empty queues when there are
//! many.
//!
//! Invariants:
//!
//! - M1: serials of a queue increase with every entry and are never used twice. So the earlier of two entries is the
//!   one with the lower serial, and a ticket is stale if its serial is not that of its slot. Receives are named by the
//!   caller's numbers, each of which names at most one waiting receive.
//! - M2: entries join a queue at its tail in serial order, so its head is its earliest entry.
//! - M3: a queue with entries is in the map of its index; only empty queues are removed.
//! - M4: a posted receive is either in the row or in exactly the index of its class. An unexpected message is in every
//!   active index, and the exact index is always active.
//! - M5: while all waiting receives have one pattern, they are in the row and the indexes are empty, so a program that
//!   posts one kind of receive at a time never needs a look-up. A receive with another pattern, or a cancellation,
//!   moves the row into its index. From then on receives join the indexes until these are empty.

use entries::{Entries, FREE};
use index::{Index, Key};
use posted::PostedQueue;

mod entries;
mod index;
mod posted;
#[cfg(test)]
pub(crate) mod tests;

/// Number that separates the messages of one communicator from those of all others (MPI's context id).
pub type ContextId = u32;

/// The envelope of a message: everything that matching uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Envelope {
    /// Context of the communicator that the message was sent on.
    pub context: ContextId,
    /// Rank of the sender.
    pub source: u32,
    /// The sender's tag.
    pub tag: i32,
}

/// The messages that a receive or a probe accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pattern {
    /// Context of the communicator to receive on; it has no wildcard.
    pub context: ContextId,
    /// Rank of the sender, or `None` for `MPI_ANY_SOURCE`.
    pub source: Option<u32>,
    /// Tag of the message, or `None` for `MPI_ANY_TAG`.
    pub tag: Option<i32>,
}

impl Pattern {
    /// Returns whether a message with this envelope fits.
    #[inline]
    pub fn matches(&self, envelope: &Envelope) -> bool {
        self.context == envelope.context
            && self.source.unwrap_or(envelope.source) == envelope.source
            && self.tag.unwrap_or(envelope.tag) == envelope.tag
    }
}

/// Names one unexpected message of a [`Matcher`]. Once the message has left the queue, the ticket is stale and names
/// nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct UnexpectedTicket {
    slot: u32,
    serial: u64,
}

/// The class of patterns without wildcards.
const EXACT: usize = 0;
/// Bit of a class: any source.
const ANY_SOURCE: usize = 1;
/// Bit of a class: any tag.
const ANY_TAG: usize = 2;
/// The class in which only the context counts.
const ANY_BOTH: usize = ANY_SOURCE | ANY_TAG;
/// Number of classes.
const CLASSES: usize = ANY_BOTH + 1;

/// Bytes that an unexpected message takes in a [`Matcher`]: its entry, and two queues, since the indexes of exact
/// patterns and of patterns with any source may have a queue for each tag. The other two indexes have few queues.
pub(crate) const UNEXPECTED_ENTRY: usize =
    Entries::<(Envelope, u64), CLASSES>::PLACE + 2 * index::QUEUE;

/// The posted-receive queue and the unexpected queue of one device.
///
/// The caller numbers its receives; `E` is the caller's value for an unexpected message. If the caller always searches
/// before it pushes, under one lock, MPI's rules hold (MPI chapter 3.5): messages do not overtake each other, a receive
/// takes the earliest message that fits, and a message takes the earliest receive that it fits.
#[derive(Debug)]
pub struct Matcher<E> {
    posted: PostedQueue,
    unexpected: UnexpectedQueue<E>,
}

impl<E: Copy> Matcher<E> {
    /// Makes a matcher with empty queues.
    pub fn new() -> Self {
        Self { posted: PostedQueue::new(), unexpected: UnexpectedQueue::new() }
    }

    /// Returns whether there is no unexpected message.
    #[inline]
    pub fn is_unexpected_empty(&self) -> bool {
        self.unexpected.entries.is_empty()
    }

    /// Removes the earliest unexpected message that fits `pattern`.
    #[inline]
    pub fn take_unexpected(&mut self, pattern: &Pattern) -> Option<(Envelope, E)> {
        if self.unexpected.entries.is_empty() {
            return None;
        }
        self.unexpected.take(pattern)
    }

    /// Returns the earliest unexpected message that fits `pattern`, without removing it (`MPI_Iprobe`).
    ///
    /// Takes `&mut self` because the first use of a class of wildcards fills its index.
    pub fn peek_unexpected(&mut self, pattern: &Pattern) -> Option<(Envelope, &E)> {
        if self.unexpected.entries.is_empty() {
            return None;
        }
        self.unexpected.peek(pattern)
    }

    /// Removes the unexpected message that `ticket` names, if it still waits.
    pub fn remove_unexpected(&mut self, ticket: UnexpectedTicket) -> Option<(Envelope, E)> {
        self.unexpected.remove(ticket)
    }

    /// Queues a receive after all others. The caller has found no unexpected message for it, and gives it a number that
    /// no waiting receive has. The memory grows with the largest number.
    #[inline(always)]
    pub fn push_posted(&mut self, pattern: Pattern, number: u32) {
        self.posted.push(pattern, number);
    }

    /// Removes the earliest posted receive that fits a message with this envelope.
    #[inline(always)]
    pub fn take_posted(&mut self, envelope: Envelope) -> Option<u32> {
        self.posted.take(envelope)
    }

    /// Queues an arrived message after all others. The caller has found no receive for it.
    #[inline]
    pub fn push_unexpected(&mut self, envelope: Envelope, unexpected: E) -> UnexpectedTicket {
        self.unexpected.push(envelope, unexpected)
    }

    /// Returns the pattern of the posted receive with this number, which must still wait.
    pub fn pattern_of(&self, number: u32) -> Option<Pattern> {
        self.posted.pattern_of(number)
    }

    /// Removes the posted receive with this number, if it still waits (`MPI_Cancel`).
    pub fn cancel_posted(&mut self, number: u32) -> bool {
        self.posted.cancel(number)
    }

    /// Returns the number of receives that wait.
    pub fn posted_len(&self) -> usize {
        self.posted.len()
    }

    /// Returns the number of unexpected messages that wait.
    pub fn unexpected_len(&self) -> usize {
        self.unexpected.entries.len()
    }

    /// Bytes of memory that the unexpected messages take here.
    #[cfg(test)]
    pub(crate) fn unexpected_bytes(&self) -> usize {
        self.unexpected.entries.bytes()
            + self.unexpected.indexes.iter().map(Index::bytes).sum::<usize>()
    }

    /// Iterates over the waiting receives in the order in which they were posted. It sorts them, so use it only for
    /// reports.
    pub fn posted(&self) -> impl Iterator<Item = (Pattern, u32)> {
        self.posted.in_order().map(|(number, pattern)| (pattern, number))
    }

    /// Iterates over the waiting unexpected messages in the order in which they arrived. It sorts them, like
    /// [`Matcher::posted`].
    pub fn unexpected(&self) -> impl Iterator<Item = (&Envelope, &E)> {
        self.unexpected.entries.in_order().map(|(_, (envelope, unexpected))| (envelope, unexpected))
    }

    /// Returns the tickets of the waiting unexpected messages, in the order of [`Matcher::unexpected`].
    pub fn unexpected_tickets(&self) -> impl Iterator<Item = (UnexpectedTicket, E)> {
        self.unexpected.entries.in_order().map(|(ticket, (_, unexpected))| (ticket, *unexpected))
    }
}

impl<E: Copy> Default for Matcher<E> {
    fn default() -> Self {
        Self::new()
    }
}

/// The unexpected queue: each message is in every active index (M4).
#[derive(Debug)]
struct UnexpectedQueue<E> {
    next_serial: u64,
    entries: Entries<(Envelope, E), CLASSES>,
    indexes: [Index; CLASSES],
    active: [bool; CLASSES],
}

impl<E: Copy> UnexpectedQueue<E> {
    fn new() -> Self {
        let mut active = [false; CLASSES];
        active[EXACT] = true;
        let (entries, indexes) = (Entries::new(), Default::default());
        Self { next_serial: FREE + 1, entries, indexes, active }
    }

    fn push(&mut self, envelope: Envelope, unexpected: E) -> UnexpectedTicket {
        let serial = self.next_serial;
        self.next_serial += 1;
        let slot = self.entries.insert(serial, (envelope, unexpected));
        for class in (0..CLASSES).filter(|&class| self.active[class]) {
            self.indexes[class].append(key_of(&envelope, class), slot, class, &mut self.entries);
        }
        UnexpectedTicket { slot, serial }
    }

    fn take(&mut self, pattern: &Pattern) -> Option<(Envelope, E)> {
        let (class, key) = classify(pattern);
        self.activate(class);
        let slot = self.indexes[class].pop(&key, class, &mut self.entries)?;
        let envelope = self.entries.value(slot).0;
        for other in (0..CLASSES).filter(|&other| other != class && self.active[other]) {
            self.indexes[other].unlink(&key_of(&envelope, other), slot, other, &mut self.entries);
        }
        Some(self.entries.remove(slot))
    }

    fn remove(&mut self, ticket: UnexpectedTicket) -> Option<(Envelope, E)> {
        let (envelope, _) = *self.entries.get(ticket)?;
        for class in (0..CLASSES).filter(|&class| self.active[class]) {
            let key = key_of(&envelope, class);
            self.indexes[class].unlink(&key, ticket.slot, class, &mut self.entries);
        }
        Some(self.entries.remove(ticket.slot))
    }

    fn peek(&mut self, pattern: &Pattern) -> Option<(Envelope, &E)> {
        let (class, key) = classify(pattern);
        self.activate(class);
        let slot = self.indexes[class].head(&key)?;
        let (envelope, unexpected) = self.entries.value(slot);
        Some((*envelope, unexpected))
    }

    #[inline]
    fn activate(&mut self, class: usize) {
        if !self.active[class] {
            self.fill(class);
        }
    }

    /// Adds every waiting message to the index of a class that is searched for the first time.
    #[cold]
    fn fill(&mut self, class: usize) {
        self.active[class] = true;
        let waiting: Vec<_> = self
            .entries
            .in_order()
            .map(|(ticket, (envelope, _))| (ticket.slot, *envelope))
            .collect();
        for (slot, envelope) in waiting {
            self.indexes[class].append(key_of(&envelope, class), slot, class, &mut self.entries);
        }
    }
}

/// Returns the class of a pattern, and its key in the index of that class.
#[inline(always)]
fn classify(pattern: &Pattern) -> (usize, Key) {
    let any_source = if pattern.source.is_none() { ANY_SOURCE } else { EXACT };
    let any_tag = if pattern.tag.is_none() { ANY_TAG } else { EXACT };
    let key = Key::new(pattern.context, pattern.source.unwrap_or(0), pattern.tag.unwrap_or(0));
    (any_source | any_tag, key)
}

/// Returns the pattern for a class and a key in it.
fn pattern_of(class: usize, key: Key) -> Pattern {
    let (context, source, tag) = key.parts();
    Pattern {
        context,
        source: (class & ANY_SOURCE == 0).then_some(source),
        tag: (class & ANY_TAG == 0).then_some(tag),
    }
}

/// Returns the key for the patterns of `class` that fit this envelope.
#[inline(always)]
fn key_of(envelope: &Envelope, class: usize) -> Key {
    let source = if class & ANY_SOURCE == 0 { envelope.source } else { 0 };
    let tag = if class & ANY_TAG == 0 { envelope.tag } else { 0 };
    Key::new(envelope.context, source, tag)
}

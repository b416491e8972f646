//! The queue of an endpoint: messages that were accepted and whose handlers have not run yet.
//!
//! Header handlers append to it, completions mark its entries ready, and bundles take the first ready entry, so a long
//! message that is still arriving does not hold up those behind it. All three do so with the session's lock held, which
//! a thread that uses the context alone gets without waiting; so the queue has no lock and no atomic of its own, and it
//! does not matter which thread, or that one thread at once, plays which part.

use std::collections::VecDeque;

use transport_lapi::ForeignBytes;

use crate::memory::Place;
use crate::name::EndpointName;
use crate::packet::{Args, Header};

/// An accepted message. It stays where it is from its arrival to the end of its handler, and is used again for another
/// message then, so nothing of it is moved or allocated for each message.
#[derive(Debug)]
pub(crate) struct Entry {
    /// Ascending within a queue.
    id: u64,
    /// Whether the whole payload is in its place.
    ready: bool,
    pub from: EndpointName,
    pub header: Header,
    pub args: Args,
    pub place: Place,
    /// The payload of a medium message that arrived in one packet: [`Place::Entry`].
    pub words: Vec<u64>,
}

impl Entry {
    /// Makes an entry without contents.
    pub fn new() -> Box<Self> {
        let from = EndpointName { task: 0, number: 0 };
        let (header, args, place, words) =
            (Header::EMPTY, Args::default(), Place::Nothing, Vec::new());
        Box::new(Self { id: 0, ready: false, from, header, args, place, words })
    }

    /// Copies the payload into the entry.
    pub fn keep(&mut self, bytes: ForeignBytes<'_>) {
        let len = bytes.len().div_ceil(size_of::<u64>());
        if self.words.len() < len {
            self.words.resize(len, 0);
        }
        bytes.copy_to(bytemuck::cast_slice_mut(&mut self.words));
        self.place = Place::Entry;
    }
}

/// The accepted messages of an endpoint, in the order of arrival.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    entries: VecDeque<Box<Entry>>,
    next: u64,
}

impl Queue {
    /// Appends a message. Returns its number, for [`Queue::finish`].
    pub fn push(&mut self, mut entry: Box<Entry>, ready: bool) -> u64 {
        let id = self.next;
        self.next += 1;
        (entry.id, entry.ready) = (id, ready);
        self.entries.push_back(entry);
        id
    }

    /// Where the payload of a message goes.
    pub fn place_of(&self, id: u64) -> Option<&Place> {
        self.place(id).map(|place| &self.entries[place].place)
    }

    /// Marks a message as ready.
    pub fn finish(&mut self, id: u64) {
        if let Some(place) = self.place(id) {
            self.entries[place].ready = true;
        }
    }

    /// Removes a message that will never be complete.
    pub fn remove(&mut self, id: u64) -> Option<Box<Entry>> {
        let place = self.place(id)?;
        self.entries.remove(place)
    }

    fn place(&self, id: u64) -> Option<usize> {
        self.entries.binary_search_by_key(&id, |entry| entry.id).ok()
    }

    /// Takes the first ready message.
    #[inline]
    pub fn take_ready(&mut self) -> Option<Box<Entry>> {
        if self.entries.front()?.ready {
            return self.entries.pop_front();
        }
        let place = self.entries.iter().position(|entry| entry.ready)?;
        self.entries.remove(place)
    }

    /// Takes the message that was appended last.
    pub fn take_last(&mut self) -> Option<Box<Entry>> {
        self.entries.pop_back()
    }

    /// Whether a message is ready.
    pub fn has_ready(&self) -> bool {
        self.entries.iter().any(|entry| entry.ready)
    }

    /// How many messages there are, ready or not.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Removes all messages, ready or not.
    pub fn drain(&mut self) -> impl Iterator<Item = Box<Entry>> {
        std::mem::take(&mut self.entries).into_iter()
    }

    /// Removes the messages of a task that are not complete, and never will be.
    pub fn forget_unfinished(&mut self, lost: transport_lapi::TaskId) -> VecDeque<Box<Entry>> {
        let (kept, gone) = self.drain().partition(|entry| entry.ready || entry.from.task != lost);
        self.entries = kept;
        gone
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name::Tag;
    use crate::packet::{Kind, Ticket};
    use crate::status::Opcode;

    fn push(queue: &mut Queue, task: u32, handler: u8, ready: bool) -> u64 {
        let header = Header {
            kind: Kind::Message(Opcode::RequestShort),
            handler,
            source: 0,
            dest: 0,
            ticket: Ticket::default(),
            len: 0,
            tag: Tag::ALL,
            offset: 0,
        };
        let from = EndpointName { task, number: 0 };
        let mut entry = Entry::new();
        (entry.from, entry.header) = (from, header);
        queue.push(entry, ready)
    }

    fn take(queue: &mut Queue) -> Option<u8> {
        queue.take_ready().map(|entry| entry.header.handler)
    }

    #[test]
    fn the_first_ready_message_is_taken() {
        let mut queue = Queue::default();
        let first = push(&mut queue, 0, 1, false);
        push(&mut queue, 0, 2, true);
        let third = push(&mut queue, 0, 3, false);
        push(&mut queue, 0, 4, true);
        assert_eq!(take(&mut queue), Some(2), "the first one does not hold up the second");
        queue.finish(third);
        assert_eq!(take(&mut queue), Some(3));
        queue.finish(first);
        assert_eq!(take(&mut queue), Some(1));
        assert_eq!(take(&mut queue), Some(4));
        assert_eq!(take(&mut queue), None);
        queue.finish(first);
        assert!(queue.remove(first).is_none(), "numbers of taken messages name nothing");
    }

    #[test]
    fn a_lost_task_leaves_only_what_was_complete() {
        let mut queue = Queue::default();
        push(&mut queue, 1, 1, true);
        push(&mut queue, 1, 2, false);
        let other = push(&mut queue, 2, 3, false);
        let gone: Vec<_> = queue.forget_unfinished(1).iter().map(|e| e.header.handler).collect();
        assert_eq!(gone, [2]);
        queue.finish(other);
        assert_eq!(
            (take(&mut queue), take(&mut queue), take(&mut queue)),
            (Some(1), Some(3), None)
        );
    }
}

//! Reads of other tasks' memory that have not ended.
//!
//! - OR1: the provider has at most [`READS`] of them, each under a number. The others wait.
//! - OR2: a read changes nothing at its target, so it may be carried out twice. When a task is lost, the endpoint that
//!   reads is closed, which ends the reads of that task's memory (A10); those of others begin again.
//! - OR3: what the provider refuses, or fails to read, ends as if the system had refused it: the transport then reads
//!   over frames, and the target says what is wrong if the memory is not there.

use std::collections::VecDeque;
use std::io;

use super::endpoint::{Offered, OfiEndpoint, READS};
use crate::adapter::{AdapterError, Events, TaskId, Ticket};
use crate::memory::region::{RecvRegion, RemoteKey};

/// How a network finds memory: the provider's key, and the address from which it counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) key: u64,
    pub(super) start: u64,
}

impl Place {
    pub(super) fn to_key(self) -> RemoteKey {
        RemoteKey::new([self.key, self.start].map(u64::to_le_bytes).as_flattened())
    }

    /// The place that a task claims; `None` for what is none.
    pub(super) fn of_key(key: RemoteKey) -> Option<Self> {
        let (key, start) = key.as_bytes().split_at_checked(8)?;
        let word = |bytes: &[u8]| Some(u64::from_le_bytes(bytes.try_into().ok()?));
        Some(Self { key: word(key)?, start: word(start)? })
    }
}

/// A read of another task's memory.
pub(super) struct Read {
    pub(super) target: TaskId,
    /// The provider's number of the target's address.
    pub(super) to: u64,
    pub(super) ticket: Ticket,
    /// Where the bytes begin.
    pub(super) place: Place,
    pub(super) into: RecvRegion,
}

impl Read {
    fn refused(&self) -> AdapterError {
        let reason = io::Error::from_raw_os_error(libc::EACCES);
        AdapterError::AccessFailed { target: self.target, len: self.into.len(), reason }
    }
}

/// See the head of this file.
pub(super) struct Reads {
    waiting: VecDeque<Read>,
    /// Those that the provider has, by number.
    under_way: [Option<Read>; READS],
    free: Vec<usize>,
    /// Those whose ends have not been reported.
    ended: Vec<(Ticket, Result<(), AdapterError>)>,
}

impl Default for Reads {
    fn default() -> Self {
        Self {
            waiting: VecDeque::new(),
            under_way: [const { None }; READS],
            free: (0..READS).collect(),
            ended: Vec::new(),
        }
    }
}

impl Reads {
    pub(super) fn add(&mut self, read: Read) {
        self.waiting.push_back(read);
    }

    /// Whether there are none that the provider has or will have.
    pub(super) fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.free.len() == READS
    }

    /// Whether ends have not been reported.
    pub(super) fn has_ended(&self) -> bool {
        !self.ended.is_empty()
    }

    /// Offers those that wait to the provider, each once.
    pub(super) fn offer(&mut self, endpoint: &mut OfiEndpoint) {
        for _ in 0..self.waiting.len() {
            let Some(&number) = self.free.last() else { return };
            let Some(read) = self.waiting.pop_front() else { return };
            let Place { key, start } = read.place;
            match endpoint.read(number, read.to, (key, start), &read.into) {
                Offered::Taken => {
                    self.free.pop();
                    self.under_way[number] = Some(read);
                }
                Offered::Again => self.waiting.push_back(read),
                Offered::Refused => self.ended.push((read.ticket, Err(read.refused()))),
            }
        }
    }

    /// The provider has ended a read, successfully or not. It may be one that was begun again (OR2).
    pub(super) fn end(&mut self, endpoint: &mut OfiEndpoint, number: usize, is_done: bool) {
        let Some(read) = self.under_way[number].take() else { return };
        endpoint.has_read(number);
        self.free.push(number);
        let outcome = if is_done { Ok(()) } else { Err(read.refused()) };
        self.ended.push((read.ticket, outcome));
    }

    /// Ends the reads of lost tasks (OR2). Returns whether the endpoint that reads was closed: the caller takes all
    /// completions before it offers again.
    pub(super) fn lose(
        &mut self,
        endpoint: &mut OfiEndpoint,
        is_lost: impl Fn(TaskId) -> bool,
    ) -> bool {
        let is_over = self.under_way.iter().flatten().any(|read| is_lost(read.target));
        if is_over {
            self.end_all(endpoint);
        }
        let Self { waiting, ended, .. } = self;
        waiting.retain(|&Read { target, ticket, .. }| {
            if is_lost(target) {
                ended.push((ticket, Err(AdapterError::PeerLost { task: target })));
            }
            !is_lost(target)
        });
        is_over
    }

    /// Closes the endpoint that reads. What it had to read waits again.
    fn end_all(&mut self, endpoint: &mut OfiEndpoint) {
        endpoint.end_reads();
        for (number, read) in self.under_way.iter_mut().enumerate() {
            if let Some(read) = read.take() {
                endpoint.has_read(number);
                self.free.push(number);
                self.waiting.push_back(read);
            }
        }
    }

    /// Forgets all, once no destination is written any more.
    pub(super) fn forget(&mut self, endpoint: &mut OfiEndpoint) {
        self.end_all(endpoint);
        self.waiting.clear();
        self.ended.clear();
    }

    /// Reports ends, and returns how many.
    pub(super) fn report(&mut self, events: &mut dyn Events) -> usize {
        let count = self.ended.len();
        self.ended.drain(..).for_each(|(ticket, outcome)| events.got(ticket, outcome));
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_travel_as_keys() {
        let place = Place { key: 7, start: u64::MAX };
        assert_eq!(Place::of_key(place.to_key()), Some(place));
        for len in [0, 1, 8, 15, 17, 32] {
            assert_eq!(Place::of_key(RemoteKey::new(&vec![1; len])), None);
        }
    }
}

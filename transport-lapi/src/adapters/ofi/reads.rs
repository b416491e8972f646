//! Reads of other tasks' memory that have not ended.
//!
//! - NR1: a read is divided into pieces, of which the provider has a few at a time. So both ends copy at the same time,
//!   and what the kernel stores between them stays in the caches: 1 MiB at once takes twice as long over TCP. The
//!   provider has at most [`READS`] pieces of all reads, each under a number.
//! - NR2: when a task is lost whose memory is being read, the endpoint that reads is closed, which ends these reads (A10).
//!   It is not opened again: reads of other tasks' memory, and all later ones, end as NR3 says.
//! - NR3: what the provider refuses, fails to read, or does not begin in time, as behind a firewall that lets connections
//!   pass in one direction only, ends as if the system had refused it: the transport then reads over frames, and the
//!   target says what is wrong if the memory is not there.

use std::collections::VecDeque;
use std::io;
use std::time::{Duration, Instant};

use super::endpoint::{Offered, OfiEndpoint, READS};
use crate::adapter::{AdapterError, Events, TaskId, Ticket};
use crate::memory::region::{RecvRegion, RemoteKey};

/// Bytes of a piece (NR1).
pub(super) const PIECE: usize = 128 << 10;
/// Pieces of a read that the provider has at a time (NR1).
const AHEAD: usize = 2;
/// How long a read is offered before the provider takes its first piece (NR3): it needs a connection for that.
const PATIENCE: Duration = Duration::from_secs(5);

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
    target: TaskId,
    /// The provider's number of the target's address.
    to: u64,
    ticket: Ticket,
    /// Where the bytes begin.
    place: Place,
    into: RecvRegion,
    /// Bytes of pieces that were offered and taken.
    taken: usize,
    /// Pieces that the provider has.
    under_way: usize,
    /// When its first piece was not taken.
    delayed: Option<Instant>,
    has_failed: bool,
}

impl Read {
    pub(super) fn new(
        target: TaskId,
        to: u64,
        ticket: Ticket,
        place: Place,
        into: RecvRegion,
    ) -> Self {
        let (taken, under_way, delayed, has_failed) = (0, 0, None, false);
        Self { target, to, ticket, place, into, taken, under_way, delayed, has_failed }
    }

    /// Whether there is something to offer.
    fn is_left(&self) -> bool {
        self.taken < self.into.len() && !self.has_failed
    }

    /// Offers the next piece under this number.
    fn offer(&mut self, endpoint: &mut OfiEndpoint, number: usize) -> Offered {
        let Place { key, start } = self.place;
        let into = self.into.part(self.taken, PIECE);
        let place = (key, start.wrapping_add(self.taken as u64));
        let offered = endpoint.read(number, self.to, place, &into);
        match offered {
            Offered::Taken => {
                self.taken += into.len();
                self.under_way += 1;
            }
            Offered::Again if self.taken > 0 => {}
            Offered::Again => {
                let delayed = self.delayed.get_or_insert_with(Instant::now);
                self.has_failed = delayed.elapsed() > PATIENCE;
            }
            Offered::Refused => self.has_failed = true,
        }
        offered
    }

    fn outcome(&self) -> Result<(), AdapterError> {
        let reason = || io::Error::from_raw_os_error(libc::EACCES);
        let (target, len) = (self.target, self.into.len());
        match self.has_failed {
            true => Err(AdapterError::AccessFailed { target, len, reason: reason() }),
            false => Ok(()),
        }
    }
}

/// See the head of this file.
pub(super) struct Reads {
    /// Those that have not ended, the oldest first.
    all: VecDeque<Read>,
    /// For each number under which the provider has a piece, the ticket of the read.
    pieces: [Option<Ticket>; READS],
    free: Vec<usize>,
    /// Those whose ends have not been reported.
    ended: Vec<(Ticket, Result<(), AdapterError>)>,
}

impl Default for Reads {
    fn default() -> Self {
        Self {
            all: VecDeque::new(),
            pieces: [None; READS],
            free: (0..READS).collect(),
            ended: Vec::new(),
        }
    }
}

impl Reads {
    pub(super) fn add(&mut self, read: Read) {
        self.all.push_back(read);
    }

    /// Whether all have ended.
    pub(super) fn is_idle(&self) -> bool {
        self.all.is_empty()
    }

    /// Whether ends have not been reported.
    pub(super) fn has_ended(&self) -> bool {
        !self.ended.is_empty()
    }

    /// Offers pieces to the provider (NR1).
    pub(super) fn offer(&mut self, endpoint: &mut OfiEndpoint) {
        let Self { all, pieces, free, ended } = self;
        all.retain_mut(|read| {
            while read.is_left() && read.under_way < AHEAD {
                let Some(&number) = free.last() else { return true };
                if read.offer(endpoint, number) != Offered::Taken {
                    break;
                }
                free.pop();
                pieces[number] = Some(read.ticket);
            }
            let is_over = !read.is_left() && read.under_way == 0;
            if is_over {
                ended.push((read.ticket, read.outcome()));
            }
            !is_over
        });
    }

    /// The provider has ended a piece, successfully or not. It may be one that was given up (NR2).
    pub(super) fn end(&mut self, endpoint: &mut OfiEndpoint, number: usize, is_done: bool) {
        let Some(ticket) = self.pieces[number].take() else { return };
        endpoint.has_read(number);
        self.free.push(number);
        if let Some(read) = self.all.iter_mut().find(|read| read.ticket == ticket) {
            read.under_way -= 1;
            read.has_failed |= !is_done;
        }
    }

    /// Ends the reads of lost tasks (NR2).
    pub(super) fn lose(&mut self, endpoint: &mut OfiEndpoint, is_lost: impl Fn(TaskId) -> bool) {
        let is_over = self.all.iter().any(|read| read.under_way > 0 && is_lost(read.target));
        if is_over {
            self.end_all(endpoint);
        }
        let Self { all, ended, .. } = self;
        all.retain_mut(|read| {
            let &mut Read { target: task, ticket, .. } = read;
            let is_lost = is_lost(task);
            if is_lost {
                ended.push((ticket, Err(AdapterError::PeerLost { task })));
            } else if is_over {
                read.has_failed = true;
                ended.push((ticket, read.outcome()));
            }
            !is_lost && !is_over
        });
    }

    /// Closes the endpoint that reads. Completions of its pieces name none any more.
    fn end_all(&mut self, endpoint: &mut OfiEndpoint) {
        endpoint.end_reads();
        for number in 0..READS {
            if self.pieces[number].take().is_some() {
                endpoint.has_read(number);
            }
        }
    }

    /// Forgets all, once no destination is written any more.
    pub(super) fn forget(&mut self, endpoint: &mut OfiEndpoint) {
        self.end_all(endpoint);
        self.all.clear();
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

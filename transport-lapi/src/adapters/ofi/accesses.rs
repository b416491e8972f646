//! Reads and writes of other tasks' memory that have not ended.
//!
//! - NR1: an access is divided into pieces, of which the provider has a few at a time. So both ends copy at the same time,
//!   and what the kernel stores between them stays in the caches: 1 MiB at once takes twice as long over TCP. The
//!   provider has at most [`PIECES`] pieces of all accesses, each under a number.
//! - NR2: when a task is lost whose memory is being accessed, the endpoint that accesses is closed, which ends all of them
//!   (A10). It is not opened again: accesses to other tasks' memory, and all later ones, end as NR3 says.
//! - NR3: what the provider refuses, fails to do, or does not begin in time, as behind a firewall that lets connections
//!   pass in one direction only, ends as if the system had refused it: the transport then uses frames, and the
//!   target says what is wrong if the memory is not there.
//! - NR4: the provider completes a write when the bytes are in place (FI_DELIVERY_COMPLETE). So a flush ends when no write
//!   for its target is left that began before it (A12).

use std::collections::VecDeque;
use std::io;
use std::time::{Duration, Instant};

use super::endpoint::{Offered, OfiEndpoint, PIECES, Span};
use crate::adapter::{AdapterError, Events, TaskId, Ticket};
use crate::memory::body::Piece;
use crate::memory::region::{RecvPart, RecvRegion, RemoteKey, SendRegion};

/// Bytes of a piece (NR1).
pub(super) const PIECE: usize = 128 << 10;
/// Pieces of an access that the provider has at a time (NR1).
const AHEAD: usize = 2;
/// How long an access is offered before the provider takes its first piece (NR3): it needs a connection for that.
const PATIENCE: Duration = Duration::from_secs(5);

/// How a network finds memory: the provider's key, and the address from which it counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) key: u64,
    pub(super) start: u64,
}

impl Place {
    /// That of a flush.
    pub(super) const NONE: Self = Self { key: 0, start: 0 };

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

/// What an access does with memory of this task.
pub(super) enum Kind {
    /// It is filled.
    Read(RecvRegion),
    /// It is stored at the target.
    Write(SendRegion),
    /// As above, of bytes that lay scattered.
    WriteCopy(Vec<u8>),
    /// Nothing: writes that began before are waited for (NR4).
    Flush,
}

impl Kind {
    /// The write of these bytes, which their owner keeps until it has ended.
    pub(super) fn write(from: Piece<'_>) -> Self {
        match from {
            Piece::Span(region) => Self::Write(region),
            Piece::Layout { len, .. } => {
                let mut bytes = vec![0; len];
                from.copy_to(RecvPart::of_slice(&mut bytes));
                Self::WriteCopy(bytes)
            }
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::Read(into) => into.len(),
            Self::Write(from) => from.len(),
            Self::WriteCopy(bytes) => bytes.len(),
            Self::Flush => 0,
        }
    }

    fn writes(&self) -> bool {
        matches!(self, Self::Write(_) | Self::WriteCopy(_))
    }

    /// The piece at `at`.
    fn piece(&mut self, at: usize) -> Span {
        match self {
            Self::Read(into) => {
                Span::Into(into.part(at, PIECE).as_mut_ptr(), PIECE.min(into.len() - at))
            }
            Self::Write(from) => {
                Span::From(from.part(at, PIECE).as_ptr(), PIECE.min(from.len() - at))
            }
            Self::WriteCopy(bytes) => {
                let piece = &bytes[at..bytes.len().min(at + PIECE)];
                Span::From(piece.as_ptr(), piece.len())
            }
            Self::Flush => Span::From(std::ptr::null(), 0),
        }
    }
}

/// An access to another task's memory.
pub(super) struct Access {
    target: TaskId,
    /// The provider's number of the target's address.
    to: u64,
    ticket: Ticket,
    /// Where the bytes begin.
    place: Place,
    kind: Kind,
    /// Bytes of pieces that were offered and taken.
    taken: usize,
    /// Pieces that the provider has.
    under_way: usize,
    /// When its first piece was not taken.
    delayed: Option<Instant>,
    has_failed: bool,
}

impl Access {
    pub(super) fn new(
        (target, to): (TaskId, u64),
        ticket: Ticket,
        place: Place,
        kind: Kind,
    ) -> Self {
        let (taken, under_way, delayed, has_failed) = (0, 0, None, false);
        Self { target, to, ticket, place, kind, taken, under_way, delayed, has_failed }
    }

    /// Whether there is something to offer.
    fn is_left(&self) -> bool {
        self.taken < self.kind.len() && !self.has_failed
    }

    /// Offers the next piece under this number.
    fn offer(&mut self, endpoint: &mut OfiEndpoint, number: usize) -> Offered {
        let Place { key, start } = self.place;
        let piece = self.kind.piece(self.taken);
        let place = (key, start.wrapping_add(self.taken as u64));
        let offered = endpoint.access(number, self.to, place, piece);
        match offered {
            Offered::Taken => {
                self.taken += piece.len();
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

    fn end(&self) -> End {
        let outcome = self.outcome();
        End { ticket: self.ticket, reads: matches!(self.kind, Kind::Read(_)), outcome }
    }

    fn outcome(&self) -> Result<(), AdapterError> {
        let reason = || io::Error::from_raw_os_error(libc::EACCES);
        let (target, len) = (self.target, self.kind.len());
        match self.has_failed {
            true => Err(AdapterError::AccessFailed { target, len, reason: reason() }),
            false => Ok(()),
        }
    }
}

/// The end of an access.
struct End {
    ticket: Ticket,
    reads: bool,
    outcome: Result<(), AdapterError>,
}

/// See the head of this file.
pub(super) struct Accesses {
    /// Those that have not ended, the oldest first.
    all: VecDeque<Access>,
    /// For each number under which the provider has a piece, the ticket of the access, and whether that reads.
    pieces: [Option<(Ticket, bool)>; PIECES],
    free: Vec<usize>,
    /// Those whose ends have not been reported.
    ended: Vec<End>,
}

impl Default for Accesses {
    fn default() -> Self {
        Self {
            all: VecDeque::new(),
            pieces: [None; PIECES],
            free: (0..PIECES).collect(),
            ended: Vec::new(),
        }
    }
}

impl Accesses {
    pub(super) fn add(&mut self, access: Access) {
        self.all.push_back(access);
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
        // The targets of writes that have not ended (NR4).
        let mut written = Vec::new();
        all.retain_mut(|access| {
            while access.is_left() && access.under_way < AHEAD {
                let Some(&number) = free.last() else { break };
                if access.offer(endpoint, number) != Offered::Taken {
                    break;
                }
                free.pop();
                pieces[number] = Some((access.ticket, matches!(access.kind, Kind::Read(_))));
            }
            let waits = matches!(access.kind, Kind::Flush) && written.contains(&access.target);
            let is_over = !access.is_left() && access.under_way == 0 && !waits;
            if is_over {
                ended.push(access.end());
            } else if access.kind.writes() {
                written.push(access.target);
            }
            !is_over
        });
    }

    /// The provider has ended a piece, successfully or not. It may be one that was given up (NR2).
    pub(super) fn end(&mut self, endpoint: &mut OfiEndpoint, number: usize, is_done: bool) {
        let Some((ticket, reads)) = self.pieces[number].take() else { return };
        endpoint.has_accessed(number);
        self.free.push(number);
        // Gets and other operations are numbered separately.
        let is_its = |access: &&mut Access| {
            access.ticket == ticket
                && access.under_way > 0
                && reads == matches!(access.kind, Kind::Read(_))
        };
        if let Some(access) = self.all.iter_mut().find(is_its) {
            access.under_way -= 1;
            access.has_failed |= !is_done;
        }
    }

    /// Ends the accesses to lost tasks (NR2).
    pub(super) fn lose(&mut self, endpoint: &mut OfiEndpoint, is_lost: impl Fn(TaskId) -> bool) {
        let is_over = self.all.iter().any(|access| access.under_way > 0 && is_lost(access.target));
        if is_over {
            self.end_all(endpoint);
        }
        let Self { all, ended, .. } = self;
        all.retain_mut(|access| {
            let task = access.target;
            let is_lost = is_lost(task);
            let is_over = is_over && !matches!(access.kind, Kind::Flush);
            access.has_failed |= is_over;
            if is_lost {
                ended.push(End { outcome: Err(AdapterError::PeerLost { task }), ..access.end() });
            } else if is_over {
                ended.push(access.end());
            }
            !is_lost && !is_over
        });
    }

    /// Closes the endpoint that accesses. Completions of its pieces name none any more.
    fn end_all(&mut self, endpoint: &mut OfiEndpoint) {
        endpoint.end_accesses();
        for number in 0..PIECES {
            if self.pieces[number].take().is_some() {
                endpoint.has_accessed(number);
            }
        }
    }

    /// Forgets all, once no memory of this task is accessed any more.
    pub(super) fn forget(&mut self, endpoint: &mut OfiEndpoint) {
        self.end_all(endpoint);
        self.all.clear();
        self.ended.clear();
    }

    /// Reports ends, and returns how many.
    pub(super) fn report(&mut self, events: &mut dyn Events) -> usize {
        let count = self.ended.len();
        for End { ticket, reads, outcome } in self.ended.drain(..) {
            match reads {
                true => events.got(ticket, outcome),
                false => events.ended(ticket, outcome.map(|()| 0)),
            }
        }
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

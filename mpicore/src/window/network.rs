//! Puts and gets that a network carries out, in windows whose other operations are messages: hardware of the network reads
//! and writes the target's memory, while the target computes.
//!
//! The ranks of such a window register their memory with the network when it is made, and tell each other where it is.
//! What the network is asked for is decided for each operation: one block of a target that it reaches, of memory that it
//! has taken. All else are messages: accumulates above all, since one serialiser, the target's, carries them out.
//!
//! - NW1: an operation goes by the network only while the target is known to have carried out all messages of this rank.
//!   So the target has granted the lock, or has exposed its window, before it is accessed; and an access never overtakes a
//!   message. While that is not known the operation is a message, too, and the target answers when the lock is there, for
//!   which long ones wait: their data would wait for it, too.
//!   After a start, a target's post says that it has carried out the epoch before.
//! - NW2: a message to a target is sent when all accesses to it by the network have ended, which for puts means that their
//!   bytes are in place (DR1). So flush, unlock, complete and fence, which send a message or wait for the same, and
//!   operations by message come after them. An access that meets one under way waits for it, unless both only read. So
//!   operations on the same place keep their order (OW1). Nobody waits for the target's progress here.
//! - NW3: the end of an access frees its buffers. They count as transfers of long data, for which a rank waits that gives
//!   up (OW4); accesses to a lost rank end by its loss. A put that the network refuses becomes a message, which has a number
//!   before its access has ended; so whoever waits for the access flushes the message. What a loss has ended makes all later
//!   waits for operations fail, unless a request tells of it.
//! - NW4: places are checked against the length that the target has told, and what it has told of its memory is for the
//!   network to check: it can spoil accesses to its own memory only.

use std::ops::Range;

use mpjdev::{Call, Device, Ending, RecvRegion, RemoteRegion, Sink, Source, Status};

use super::Inner;
use super::head::{Head, Kind};
use super::memory::append;
use super::operation::{Form, LONG};
use crate::communicator::Communicator;
use crate::error::{Error, WindowError};

/// How the network finds the memory of the ranks.
pub(super) struct Network {
    own: Option<RemoteRegion>,
    /// By rank, where it reaches it.
    others: Vec<Option<RemoteRegion>>,
}

/// The number of words by which a rank tells of its memory.
pub(super) const WORDS: usize = 8;

/// The most accesses to a target that are under way.
const MOST: usize = 64;

/// An access that has not ended.
#[derive(Debug, Clone)]
pub(super) struct Access {
    number: u64,
    place: Range<i64>,
    writes: bool,
}

impl Access {
    fn meets(&self, other: &Self) -> bool {
        let overlap = self.place.start < other.place.end && other.place.start < self.place.end;
        overlap && (self.writes || other.writes)
    }
}

/// The buffers of a put or a get.
pub(super) enum Buffers {
    Put(Source),
    Get(Sink),
}

/// Registers memory of this rank with the network, if it reaches another one by it. A device that has failed says so later.
pub(super) fn expose(
    communicator: &Communicator,
    memory: Option<RecvRegion>,
) -> Option<RemoteRegion> {
    let device = communicator.device();
    let memory = memory.filter(|memory| !memory.is_empty() && !memory.is_null())?;
    (0..communicator.size()).find(|rank| reaches(communicator, *rank).unwrap_or(false))?;
    let region = device.expose(memory).ok()?;
    if region.direct.is_none() {
        device.end_exposure(region);
        return None;
    }
    Some(region)
}

/// The words by which a rank tells of its memory.
pub(super) fn words_of(own: Option<RemoteRegion>) -> [u64; WORDS] {
    own.unwrap_or(RemoteRegion::over_frames(RemoteRegion::NO_ADDRESS, 0, 0)).to_words()
}

/// Whether the network reads and writes memory of a rank. Its own is not meant.
fn reaches(communicator: &Communicator, rank: u32) -> Result<bool, Error> {
    let peer = communicator.group().job_rank(rank)? as usize;
    Ok(rank != communicator.rank() && communicator.device().reaches_memory(peer)?)
}

impl Network {
    /// Takes what the ranks have told, each with the length of its memory.
    pub fn new<'w>(
        communicator: &Communicator,
        own: Option<RemoteRegion>,
        told: impl Iterator<Item = (u64, &'w [u64])>,
    ) -> Self {
        let other = |(rank, (size, words)): (u32, (u64, &[u64]))| {
            let region = RemoteRegion::from_words(words.try_into().ok()?);
            let is_there = size > 0 && region.len == size && !region.direct.is_none();
            // A device that has failed reaches nothing.
            (is_there && reaches(communicator, rank).unwrap_or(false)).then_some(region)
        };
        Self { own, others: (0..).zip(told).map(other).collect() }
    }

    /// Returns how the network finds the memory of a rank, if it does.
    pub fn region(&self, rank: u32) -> Option<RemoteRegion> {
        self.others.get(rank as usize).copied().flatten()
    }

    /// Ends the registration. The network accesses the memory of this rank no more.
    pub fn close(&self, device: &Device) {
        self.own.into_iter().for_each(|own| device.end_exposure(own));
    }
}

impl Inner {
    /// Returns whether the network reads and writes the memory of a rank.
    pub(super) fn reaches(&self, rank: u32) -> bool {
        self.network.get().is_some_and(|network| network.region(rank).is_some())
    }

    /// Waits until all accesses to a rank by the network that have begun before have ended (NW2).
    pub(super) fn end_accesses(&self, call: Call, rank: u32) -> Result<(), Error> {
        if !self.reaches(rank) {
            return Ok(());
        }
        let last = self.state().peers[rank as usize].next_access;
        self.wait_until(call, rank, |state| {
            let mut under_way = state.peers[rank as usize].accesses_under_way.iter();
            under_way.all(|access| access.number > last).then_some(())
        })
    }

    /// Begins a put or a get of one block by the network. The buffers come back if it is to be a message (NW1).
    pub(super) fn begin_by_network(
        self: &std::sync::Arc<Self>,
        form: Form,
        buffers: Buffers,
        rank: u32,
        place: Range<i64>,
    ) -> Result<Result<Option<mpjdev::Request>, Buffers>, Error> {
        let Some(region) = self.network.get().and_then(|network| network.region(rank)) else {
            return Ok(Err(buffers));
        };
        if place.end - place.start >= LONG as i64 {
            let locked = self.state().peers[rank as usize].locked;
            self.settle_up_to(Call::WinLock, rank, locked)?;
        }
        let offset = place.start as u64;
        let writes = matches!(buffers, Buffers::Put(_));
        let mut access = Access { number: 0, place, writes };
        let begun = self.wait_until(Call::WinFlush, rank, |state| {
            let is_asked = state.epochs.is_asked(rank);
            let peer = &mut state.peers[rank as usize];
            if !is_asked || peer.done < peer.sent || peer.refuses_accesses {
                return Some(None);
            }
            let under_way = &mut peer.accesses_under_way;
            if under_way.len() == MOST || under_way.iter().any(|other| other.meets(&access)) {
                return None;
            }
            peer.next_access += 1;
            access.number = peer.next_access;
            under_way.push(access.clone());
            state.transfers += 1;
            Some(Some(state.epochs.operate(form.call, rank, form.has_request)))
        })?;
        let Some(begun) = begun else { return Ok(Err(buffers)) };
        begun.inspect_err(|_| self.access_ended(rank, access.number))?;
        let (device, context) = (self.communicator.device(), self.communicator.context());
        let started = (|| {
            let request = match form.has_request {
                true => Some(device.begin(Call::Other, context, 0)?),
                false => None,
            };
            let peer = self.communicator.group().job_rank(rank)? as usize;
            let (kept, begun) = match buffers {
                Buffers::Put(from) => {
                    // The network reads one span.
                    let from = match from.span() {
                        Some(_) => from,
                        None => from.piece(0, from.len()).to_vec().into(),
                    };
                    (Some(from.clone()), device.put_to(peer, (region, offset), from)?)
                }
                Buffers::Get(into) => (None, device.get_from(peer, (region, offset), into)?),
            };
            Ok::<_, Error>((request.unzip(), kept, begun))
        })();
        let ((request, ending), kept, begun) =
            started.inspect_err(|_| self.access_ended(rank, access.number))?;
        let window = self.clone();
        device.then(begun, move |outcome| {
            window.end_access(rank, &access, outcome, (kept, ending));
        })?;
        Ok(Ok(request))
    }

    /// Handles the end of an access: what the network has refused becomes a message if it is a put (NW3).
    fn end_access(
        &self,
        rank: u32,
        access: &Access,
        outcome: Result<Status, mpjdev::Error>,
        (kept, ending): (Option<Source>, Option<Ending>),
    ) {
        let is_refused = outcome.as_ref().is_err_and(|error| error.lost_rank().is_none());
        // Each further one might take as long to be refused.
        self.state().peers[rank as usize].refuses_accesses |= is_refused;
        let mut ended = outcome;
        let kept = kept.filter(|_| is_refused);
        let message = kept.and_then(|from| {
            let head = Head::new(Kind::Put, 0, access.place.start);
            let mut message = head.message(&[from.len() as u64], from.len());
            append(&mut message, &from).ok().map(|()| message)
        });
        if let Some(mut message) = message {
            let mut state = self.state();
            let peer = &mut state.peers[rank as usize];
            let number = peer.next();
            peer.is_open = true;
            drop(state);
            Head::set_number(&mut message, number, false);
            // What is wrong with the memory, the target says.
            let posted = self.post(rank, message);
            ended = posted.map(|()| Status::new(0, 0, 0)).map_err(Error::into_device);
        } else if is_refused {
            let refused = || Error::from(WindowError::Refused { rank }).into_device();
            self.state().peers[rank as usize].is_refused |= ending.is_none();
            ended = ended.map_err(|_| refused());
        }
        match ending {
            Some(ending) => {
                self.access_ended(rank, access.number);
                self.communicator.device().end(ending, ended);
            }
            None => {
                let lost = ended.err().filter(|error| error.lost_rank().is_some());
                lost.into_iter().for_each(|lost| {
                    self.state().given_up.get_or_insert(lost.into());
                });
                self.access_ended(rank, access.number);
            }
        }
    }

    /// Notes the end of an access.
    fn access_ended(&self, rank: u32, number: u64) {
        let mut state = self.state();
        state.peers[rank as usize].accesses_under_way.retain(|access| access.number != number);
        drop(state);
        self.ended_transfer(None);
    }
}

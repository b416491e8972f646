//! Partitioned point-to-point communication (MPI-4.1 chapter 4).
//!
//! Each partition of the sender travels as a message of its own, as soon as it is ready. The sender chooses one tag for
//! each partition and tells them to the receiver once, in a message with the tag of the program: so the device matches
//! the initialisations of both sides in their order. The receiver posts one receive for each partition of the sender
//! when it has been started and knows the tags. Both kinds of messages have contexts of their own.
//!
//! - PA1: no lock of this file is held while the device is called, since functions that follow other operations may run
//!   in that call.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mpjdev::{Call, Ending, Mode, Request, Sink, Source, Status};
use transport_lapi::{ForeignBytes, Unpack};

use crate::communicator::Communicator;
use crate::error::Error;
use crate::memory::{Input, Memory, Output};
use crate::request::PROC_NULL;

/// What the sender tells the receiver: the tag of its first partition, the number of its partitions, and the bytes of
/// each, as little-endian numbers.
const OFFER_LEN: usize = 24;
/// Most partitions of a message without bytes.
const MOST_EMPTY: usize = 1 << 16;

/// A send in partitions: MPI_Psend_init. It can be started many times.
#[derive(Clone)]
pub struct PartitionedSend(Arc<Sending>);

/// A receive in partitions: MPI_Precv_init. It can be started many times.
#[derive(Clone)]
pub struct PartitionedReceive(Arc<Receiving>);

struct Sending {
    communicator: Communicator,
    dest: usize,
    tag: i32,
    /// The tag of the first partition.
    base: i32,
    /// Number of elements in each partition.
    count: u64,
    round: Mutex<Round>,
}

impl Drop for Sending {
    fn drop(&mut self) {
        if self.dest != PROC_NULL && !self.round().done.is_empty() {
            self.communicator.partition_tags().give_back(self.base);
        }
    }
}

struct Receiving {
    communicator: Communicator,
    source: usize,
    tag: i32,
    partitions: usize,
    /// Number of elements in each partition.
    count: u64,
    /// Bytes of each partition.
    len: usize,
    state: Mutex<State>,
}

struct State {
    /// What the sender has told, once it has come, or why it cannot come.
    offer: Option<Result<Offer, mpjdev::Error>>,
    /// Whether the receives of the present start have been posted.
    is_posted: bool,
    round: Round,
}

#[derive(Clone, Copy)]
struct Offer {
    base: i32,
    partitions: usize,
    len: usize,
}

/// The state between a start and its completion. The partitions are those of the sender.
struct Round {
    memory: Memory,
    /// `None` if no operation is under way.
    ending: Option<Ending>,
    /// Which partitions are ready, at the sender, or have arrived, at the receiver.
    done: Vec<bool>,
    /// How many messages have not ended.
    open: usize,
    failure: Option<mpjdev::Error>,
}

impl Communicator {
    /// Makes a send of `partitions` partitions of `count` elements each, to the job rank `dest` or to [`PROC_NULL`]:
    /// MPI_Psend_init. Sends and receives of the same ranks and tag match in the order in which they are made.
    ///
    /// # Errors
    /// As [`Communicator::send_init`]; [`Error::PartitionTags`] if the communicator has no tags left for partitions.
    pub fn psend_init(
        &self,
        data: Input,
        partitions: u32,
        count: u64,
        dest: usize,
        tag: i32,
    ) -> Result<PartitionedSend, Error> {
        self.check_peer(Some(dest), Some(tag))?;
        let memory = Memory::of_input(data);
        let len = memory.input_from(0, count)?.len();
        memory.input_from(0, elements(partitions, count)?)?;
        let own = if dest == PROC_NULL { 0 } else { partitions };
        let base = self.partition_tags().take(own).ok_or(Error::PartitionTags)?;
        let partitions = partitions as usize;
        let round = Mutex::new(Round::new(memory, partitions));
        let sending = Sending { communicator: self.clone(), dest, tag, base, count, round };
        if dest != PROC_NULL {
            let offer = Offer { base, partitions, len }.encode();
            let device = self.device();
            let (data, context) = (Source::from(offer), self.partition_contexts()[0]);
            let told = device.isend(data, dest, tag, context, Mode::Standard)?;
            device.detach(told, Box::new(()));
        }
        Ok(PartitionedSend(Arc::new(sending)))
    }

    /// Makes a receive of `partitions` partitions of `count` elements each, from the job rank `source` or from
    /// [`PROC_NULL`]: MPI_Precv_init. The sender may have other partitions, with as many bytes in all.
    ///
    /// # Errors
    /// As [`Communicator::recv_init`].
    pub fn precv_init(
        &self,
        into: Output,
        partitions: u32,
        count: u64,
        source: usize,
        tag: i32,
    ) -> Result<PartitionedReceive, Error> {
        self.check_peer(Some(source), Some(tag))?;
        let memory = Memory::of_output(into);
        let len = memory.output_from(0, count)?.len();
        memory.output_from(0, elements(partitions, count)?)?;
        let round = Round::new(memory, 0);
        let state = Mutex::new(State { offer: None, is_posted: false, round });
        let (communicator, partitions) = (self.clone(), partitions as usize);
        let receiving =
            Arc::new(Receiving { communicator, source, tag, partitions, count, len, state });
        if source == PROC_NULL {
            let nothing = Offer { base: 0, partitions: 0, len: 0 };
            receiving.state().offer = Some(Ok(nothing));
        } else {
            let told = Told(Arc::new(Mutex::new([0; OFFER_LEN])));
            let (sink, context) = (Sink::layout(told.clone()), self.partition_contexts()[0]);
            let request = self.device().irecv(sink, Some(source), Some(tag), context)?;
            let waiting = receiving.clone();
            self.device().then(request, move |outcome| waiting.told(outcome, &told))?;
        }
        Ok(PartitionedReceive(receiving))
    }
}

/// Returns the number of elements in all partitions.
fn elements(partitions: u32, count: u64) -> Result<u64, Error> {
    let all = u64::from(partitions).checked_mul(count);
    all.ok_or(Error::Buffer { first: 0, count: u64::MAX, len: 0 })
}

impl Round {
    fn new(memory: Memory, partitions: usize) -> Self {
        Self { memory, ending: None, done: vec![false; partitions], open: 0, failure: None }
    }

    fn begin(&mut self, ending: Ending, partitions: usize) {
        (self.ending, self.open, self.failure) = (Some(ending), partitions, None);
        self.done = vec![false; partitions];
    }

    /// Notes the end of a message. Returns what the end of the last one completes.
    fn ended(&mut self, outcome: Result<Status, mpjdev::Error>) -> Option<Completed> {
        self.open -= 1;
        if let Err(error) = outcome {
            self.failure.get_or_insert(error);
        }
        self.completed()
    }

    /// Returns what is completed, if no message is under way any more.
    fn completed(&mut self) -> Option<Completed> {
        if self.open > 0 {
            return None;
        }
        self.ending.take().map(|ending| (ending, self.failure.take()))
    }
}

/// An operation that is complete, and why it has failed, if it has.
type Completed = (Ending, Option<mpjdev::Error>);

/// Ends the request of an operation that is complete.
fn end(over: &Communicator, completed: Option<Completed>, status: Status) {
    if let Some((ending, failure)) = completed {
        over.device().end(ending, failure.map_or(Ok(status), Err));
    }
}

impl PartitionedSend {
    /// Starts the send; no partition is ready then: MPI_Start. The request is complete when all partitions are ready
    /// and have left.
    ///
    /// # Errors
    /// [`mpjdev::Error::Request`] if it is under way; what made the device unusable.
    pub fn start(&self) -> Result<Request, Error> {
        let Sending { communicator, .. } = &*self.0;
        if self.0.round().ending.is_some() {
            return Err(mpjdev::Error::Request.into());
        }
        let (request, ending) =
            communicator.device().begin(Call::Other, communicator.context(), self.0.tag)?;
        let mut round = self.0.round();
        let partitions = round.done.len();
        round.begin(ending, partitions);
        let completed = round.completed();
        drop(round);
        end(communicator, completed, self.0.status());
        Ok(request)
    }

    /// Sends partitions `partitions`, whose data are ready: MPI_Pready, MPI_Pready_range, MPI_Pready_list. Several
    /// threads may call it at once.
    ///
    /// # Errors
    /// [`Error::Partition`] if there is no such partition or if it is ready already; [`mpjdev::Error::Request`] if the
    /// send was not started. The partitions before it are sent. An error of a message is the outcome of the request.
    pub fn ready(&self, partitions: impl IntoIterator<Item = usize>) -> Result<(), Error> {
        partitions.into_iter().try_for_each(|partition| self.ready_one(partition))
    }

    fn ready_one(&self, partition: usize) -> Result<(), Error> {
        let Sending { communicator, dest, base, count, .. } = &*self.0;
        let mut round = self.0.round();
        let partitions = round.done.len();
        if round.ending.is_none() {
            return Err(mpjdev::Error::Request.into());
        }
        match round.done.get_mut(partition) {
            Some(done) if !*done => *done = true,
            place => {
                let is_ready = place.is_some();
                return Err(Error::Partition { partition, partitions, is_ready });
            }
        }
        let data = round.memory.input_from((partition as u64 * count) as i64, *count)?;
        drop(round);
        if *dest == PROC_NULL {
            self.0.ended(Ok(Status::new(PROC_NULL as u32, -1, 0)));
            return Ok(());
        }
        let (tag, context) = (base + partition as i32, communicator.partition_contexts()[1]);
        let sending = self.0.clone();
        let device = communicator.device();
        match device.isend(data, *dest, tag, context, Mode::Standard) {
            Ok(request) => match request.completed() {
                Some(status) => sending.ended(Ok(status)),
                None => device.then(request, move |outcome| sending.ended(outcome))?,
            },
            Err(error) => sending.ended(Err(error)),
        }
        Ok(())
    }
}

impl Sending {
    fn round(&self) -> MutexGuard<'_, Round> {
        self.round.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn status(&self) -> Status {
        Status::new(self.dest as u32, self.tag, 0)
    }

    fn ended(&self, outcome: Result<Status, mpjdev::Error>) {
        let completed = self.round().ended(outcome);
        end(&self.communicator, completed, self.status());
    }
}

impl PartitionedReceive {
    /// Starts the receive: MPI_Start. The request is complete when all partitions have arrived.
    ///
    /// # Errors
    /// As [`PartitionedSend::start`].
    pub fn start(&self) -> Result<Request, Error> {
        let Receiving { communicator, tag, .. } = &*self.0;
        if self.0.state().round.ending.is_some() {
            return Err(mpjdev::Error::Request.into());
        }
        let (request, ending) =
            communicator.device().begin(Call::Other, communicator.context(), *tag)?;
        let mut state = self.0.state();
        state.round.ending = Some(ending);
        state.is_posted = false;
        drop(state);
        self.0.post();
        Ok(request)
    }

    /// Takes the words of a buffer that belongs to the receive.
    #[cfg(test)]
    pub(crate) fn words(&self) -> Vec<u64> {
        self.0.state().round.memory.take_kept()
    }

    /// Returns whether a partition has arrived, and makes progress: MPI_Parrived. If the receive is not under way, all
    /// partitions have.
    ///
    /// # Errors
    /// [`Error::Partition`] if there is no such partition; what made the device unusable.
    pub fn has_arrived(&self, partition: usize) -> Result<bool, Error> {
        let Receiving { communicator, partitions, len, .. } = &*self.0;
        if partition >= *partitions {
            let partitions = *partitions;
            return Err(Error::Partition { partition, partitions, is_ready: false });
        }
        communicator.device().progress()?;
        let state = self.0.state();
        if state.round.ending.is_none() {
            return Ok(true);
        }
        let Some(Ok(offer)) = state.offer.as_ref().filter(|_| state.is_posted) else {
            return Ok(false);
        };
        // Without bytes, a partition has its share of the sender's partitions.
        let (ours, theirs) = match len {
            0 => (offer.partitions, *partitions),
            len => (*len, offer.len),
        };
        // The partitions of the sender that have bytes of this one.
        let (first, end) = (partition * ours, (partition + 1) * ours);
        let mut theirs = state
            .round
            .done
            .iter()
            .enumerate()
            .filter(|(index, _)| index * theirs < end && (index + 1) * theirs > first);
        Ok(theirs.all(|(_, has_arrived)| *has_arrived))
    }
}

impl Receiving {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes what the sender tells.
    fn told(self: &Arc<Self>, outcome: Result<Status, mpjdev::Error>, told: &Told) {
        let offer = outcome.and_then(|status| {
            let bytes = *told.0.lock().unwrap_or_else(PoisonError::into_inner);
            let whole = Some(bytes).filter(|_| status.bytes == OFFER_LEN);
            let offer = whole.and_then(Offer::decode).ok_or_else(|| {
                let (rank, bytes) = (status.source, status.bytes);
                Error::Short { call: "psend_init", rank, bytes, expected: OFFER_LEN }.into_device()
            })?;
            self.check(offer, status.source).map_err(Error::into_device)
        });
        self.state().offer = Some(offer);
        self.post();
    }

    /// Refuses what does not fill this receive exactly, and more empty partitions than programs have.
    fn check(&self, offer: Offer, rank: u32) -> Result<Offer, Error> {
        let Offer { partitions, len, .. } = offer;
        let expected = self.partitions.saturating_mul(self.len);
        let fits = partitions.checked_mul(len) == Some(expected);
        if fits && (len > 0 || partitions <= MOST_EMPTY) {
            return Ok(offer);
        }
        Err(Error::Partitions { rank, partitions, len, expected })
    }

    /// Posts the receives, once the receive was started and the sender has told its partitions.
    fn post(self: &Arc<Self>) {
        let mut state = self.state();
        let State { offer: Some(offer), is_posted: is_posted @ false, round } = &mut *state else {
            return;
        };
        let Some(ending) = round.ending.take() else { return };
        *is_posted = true;
        let (offer, failure) = match offer {
            Ok(offer) => (*offer, None),
            Err(error) => (Offer { base: 0, partitions: 0, len: 0 }, Some(error.clone())),
        };
        round.begin(ending, offer.partitions);
        round.failure = failure;
        let sinks: Vec<_> =
            (0..offer.partitions).map(|index| self.sink(round, offer, index)).collect();
        let completed = round.completed();
        drop(state);
        end(&self.communicator, completed, self.status());
        let (device, context) =
            (self.communicator.device(), self.communicator.partition_contexts()[1]);
        for (index, sink) in sinks.into_iter().enumerate() {
            let started = sink.map_err(Error::into_device).and_then(|sink| {
                let tag = offer.base + index as i32;
                let request = device.irecv(sink, Some(self.source), Some(tag), context)?;
                let receiving = self.clone();
                device.then(request, move |outcome| receiving.ended(index, outcome))
            });
            if let Err(error) = started {
                self.ended(index, Err(error));
            }
        }
    }

    /// Returns the place of a partition of the sender.
    fn sink(&self, round: &Round, offer: Offer, index: usize) -> Result<Sink, Error> {
        if offer.len == self.len && index < self.partitions {
            return round.memory.output_from((index as u64 * self.count) as i64, self.count);
        }
        let whole = round.memory.output_from(0, self.partitions as u64 * self.count)?;
        let offset = index.saturating_mul(offer.len).min(whole.len());
        let len = offer.len.min(whole.len() - offset);
        Ok(Sink::layout(Section { whole, offset, len }))
    }

    fn status(&self) -> Status {
        let tag = if self.source == PROC_NULL { -1 } else { self.tag };
        let bytes = if self.source == PROC_NULL { 0 } else { self.partitions * self.len };
        Status::new(self.source as u32, tag, bytes)
    }

    fn ended(&self, index: usize, outcome: Result<Status, mpjdev::Error>) {
        let mut state = self.state();
        state.round.done[index] = outcome.is_ok();
        let completed = state.round.ended(outcome);
        drop(state);
        end(&self.communicator, completed, self.status());
    }
}

impl Offer {
    fn encode(self) -> Vec<u8> {
        let numbers = [self.base as u64, self.partitions as u64, self.len as u64];
        numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
    }

    /// Returns `None` if the bytes are not those of an offer.
    fn decode(bytes: [u8; OFFER_LEN]) -> Option<Self> {
        let number = |at: usize| {
            let bytes = bytes[at..at + 8].try_into().expect("a number has 8 bytes");
            u64::from_le_bytes(bytes)
        };
        let base = i32::try_from(number(0)).ok()?;
        let partitions =
            i32::try_from(number(8)).ok().filter(|&count| base.checked_add(count).is_some())?;
        let len = usize::try_from(number(16)).ok()?;
        len.checked_mul(partitions as usize)?;
        Some(Self { base, partitions: partitions as usize, len })
    }
}

/// The bytes of an [`Offer`] that is received.
#[derive(Clone)]
struct Told(Arc<Mutex<[u8; OFFER_LEN]>>);

impl Unpack for Told {
    fn size(&self) -> usize {
        OFFER_LEN
    }

    fn unpack(&mut self, offset: usize, from: ForeignBytes<'_>) {
        let mut bytes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        from.copy_to(&mut bytes[offset..]);
    }
}

/// A part of the bytes of a sink.
struct Section {
    whole: Sink,
    offset: usize,
    len: usize,
}

impl Unpack for Section {
    fn size(&self) -> usize {
        self.len
    }

    fn unpack(&mut self, offset: usize, from: ForeignBytes<'_>) {
        self.whole.store(self.offset + offset, from);
    }
}

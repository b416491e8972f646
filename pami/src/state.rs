//! What a context keeps: dispatches, messages whose dispatch functions have not run, and operations that have not ended.
//!
//! Handlers of the transport change it, and never run code of the program; whoever advances the context does that.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use transport_lapi::{
    Arrival, CounterId, ForeignBytes, HeaderAction, InlineHandler, LapiError, Next, Outbox,
    RemoteRegion, TaskId,
};

use crate::COLLECTIVES;
use crate::context::{Callback, CallbackOf, Section};
use crate::dispatch::Dispatch;
use crate::error::{Error, Violation};
use crate::geometry::agreement::Agreements;
use crate::geometry::engine::Engine;
use crate::packet::{Head, Packet};
use crate::types::{Access, Association, Protocol, Value};

/// Bytes that are kept for packets that come later, at most.
const MOST_KEPT: usize = 1 << 20;

/// The state of a context.
#[derive(Default)]
pub(crate) struct State {
    pub dispatches: Vec<Option<Dispatch>>,
    /// Packets that have arrived since the last advance.
    pub arrived: Packets,
    /// Packets that come before those: messages whose dispatch has been set since, and what a panic has left.
    pub released: Packets,
    /// Messages for dispatches that are not set yet, and their number.
    pub early: Packets,
    pub num_early: usize,
    /// What has begun and not ended, by numbers that are never used again.
    pub operations: BTreeMap<u64, Operation>,
    /// The next of these numbers.
    next_operation: u64,
    /// What is to be called, and what it is told.
    pub due: VecDeque<(End, Result<(), Error>)>,
    /// Puts of which the end at the target is wanted: the counter of each and its operation.
    pub counted: Vec<(CounterId, u64)>,
    /// Counters that no put uses.
    pub free_counters: Vec<CounterId>,
    /// Places for results of read-modify-writes that no operation uses.
    pub free_results: Vec<Arc<AtomicI64>>,
    /// Memory of the process that other tasks access.
    pub registered: Vec<(RemoteRegion, Arc<[AtomicU64]>)>,
    pub sends: Association<Protocol>,
    pub puts: Association<Access>,
    pub gets: Association<Access>,
    /// Whether a fence region is open.
    pub in_region: bool,
    /// Fences that have not ended.
    pub fences: Vec<Fence>,
    pub collectives: Engine,
    pub agreements: Agreements,
    /// How many frames the next look takes.
    pub frames: usize,
    /// What went wrong, and no call was there to report it.
    pub first_error: Option<Error>,
    task: TaskId,
}

/// Packets in the order of arrival, one behind the other in one piece of memory: no packet has memory of its own, and none
/// is moved.
#[derive(Default)]
pub(crate) struct Packets {
    /// At least the packets; what is behind them is not cleared.
    bytes: Vec<u8>,
    /// Where the first one begins, and where the last one ends.
    begin: usize,
    end: usize,
}

/// A packet that has arrived.
#[derive(Clone, Copy)]
pub(crate) struct Arrived<'a> {
    pub origin: TaskId,
    pub word: u64,
    /// What follows the word.
    pub bytes: &'a [u8],
}

/// Bytes of what is kept before a packet: its word, its origin, and how many bytes follow.
const PREFIX: usize = 24;

impl Packets {
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.begin == self.end
    }

    /// Appends a packet, of which the bytes `before` come before the others.
    #[inline(always)]
    pub fn push(&mut self, origin: TaskId, word: u64, before: &[u8], body: ForeignBytes<'_>) {
        let len = before.len() + body.len();
        let (start, end) = (self.end, self.end + (PREFIX + len).next_multiple_of(8));
        if end > self.bytes.len() {
            self.grow(end);
        }
        let (prefix, room) = self.bytes[start..end].split_at_mut(PREFIX);
        let words = [word, origin.into(), len as u64];
        for (into, word) in prefix.chunks_exact_mut(8).zip(words) {
            into.copy_from_slice(&word.to_le_bytes());
        }
        room[..before.len()].copy_from_slice(before);
        body.copy_to(&mut room[before.len()..]);
        self.end = end;
    }

    #[cold]
    fn grow(&mut self, end: usize) {
        self.bytes.resize(end.next_power_of_two().max(4096), 0);
    }

    /// Takes the first packet, if there is one.
    #[inline(always)]
    pub fn next(&mut self) -> Option<Arrived<'_>> {
        let rest = &self.bytes[self.begin..self.end];
        let (prefix, rest) = rest.split_first_chunk::<PREFIX>()?;
        let word = |at| u64::from_le_bytes(prefix[at..at + 8].try_into().unwrap_or_default());
        let (origin, len) = (word(8) as TaskId, word(16) as usize);
        self.begin += (PREFIX + len).next_multiple_of(8);
        Some(Arrived { origin, word: word(0), bytes: &rest[..len] })
    }

    /// Appends a packet of another queue.
    pub fn append_one(&mut self, Arrived { origin, word, bytes }: Arrived<'_>) {
        self.push(origin, word, bytes, ForeignBytes::from_slice(&[]));
    }

    /// Appends all packets of another queue, which is empty then.
    pub fn append(&mut self, other: &mut Self) {
        while let Some(packet) = other.next() {
            self.append_one(packet);
        }
    }

    /// Gets back the memory of packets that were taken, unless it has much already.
    #[inline]
    pub fn recycle(&mut self, taken: Self) {
        if self.bytes.is_empty() && taken.bytes.len() <= MOST_KEPT {
            *self = Self { begin: 0, end: 0, ..taken };
        }
    }
}

impl State {
    pub fn new(task: TaskId) -> Self {
        let dispatches = (0..=COLLECTIVES).map(|_| None).collect();
        Self { dispatches, frames: 1, task, ..Self::default() }
    }

    /// Releases the messages whose dispatch is set meanwhile.
    pub fn release(&mut self) {
        let mut early = std::mem::take(&mut self.early);
        self.num_early = 0;
        while let Some(packet) = early.next() {
            match Packet::decode(packet.word) {
                Ok(Packet::Message(Head { dispatch, .. }))
                    if self.dispatches[usize::from(dispatch)].is_none() =>
                {
                    self.num_early += 1;
                    self.early.append_one(packet);
                }
                _ => self.released.append_one(packet),
            }
        }
    }

    /// Ends the operation of this task that an answer of `origin` is for.
    pub fn answered(&mut self, origin: TaskId, number: u64, is_good: bool) {
        let waits = |one: &Operation| one.awaits_target && one.target == origin;
        match self.operations.get(&number).is_some_and(waits) {
            // The loss or the purge has ended it, after the answer had arrived.
            false if self.collectives.lost.contains(&origin) => {}
            false => self.blame(origin, Violation::StrayAnswer { number }),
            true if is_good => self.end(number, Ok(())),
            true => self.end(number, Err(Error::Refused { task: origin })),
        }
    }

    pub fn blame(&mut self, origin: TaskId, violation: Violation) {
        self.note(Error::Peer { origin, violation });
    }

    /// Keeps an error for an advance to report, if it is the first one.
    pub fn note(&mut self, error: Error) {
        self.first_error.get_or_insert(error);
    }

    /// Lets an advance call a callback.
    pub fn tell(&mut self, callback: Callback, result: Result<(), Error>) {
        self.due.push_back((End::Plain(callback), result));
    }

    /// Notes an operation that begins, and returns its number.
    pub fn begin(&mut self, operation: Operation) -> u64 {
        let number = self.next_operation;
        self.next_operation += 1;
        self.operations.insert(number, operation);
        number
    }

    /// The numbers of the operations that end only when their target has done something: `target`, if it is given.
    pub fn awaiting(&self, target: Option<TaskId>) -> Vec<u64> {
        let is_its = |one: &Operation| target.is_none_or(|target| one.target == target);
        let waits = |one: &Operation| one.awaits_target && is_its(one);
        self.operations.iter().filter(|(_, one)| waits(one)).map(|(number, _)| *number).collect()
    }

    /// Ends an operation, if it has not ended.
    pub fn end(&mut self, number: u64, result: Result<(), Error>) {
        let ended = self.operations.remove(&number);
        self.due.extend(ended.map(|operation| (operation.on_end, result)));
    }

    /// Ends what waits for a task that is lost or purged.
    pub fn lose(&mut self, lost: TaskId) {
        let error = || Err(Error::Lost { task: lost });
        for number in self.awaiting(Some(lost)) {
            self.end(number, error());
        }
        let told = self.collectives.lose(lost).into_iter().chain(self.agreements.lose(lost));
        told.for_each(|tell| self.tell(tell, error()));
        let Self { operations, counted, .. } = self;
        counted.retain(|&(_, number)| operations.contains_key(&number));
    }
}

/// The transport's handler of packets with one word of user header that arrive whole.
pub(crate) fn arrive_short(
    state: &mut State,
    origin: TaskId,
    word: u64,
    body: ForeignBytes<'_>,
) -> Option<(InlineHandler<State>, u64)> {
    state.arrived.push(origin, word, &[], body);
    None
}

/// The transport's handler of all others.
pub(crate) fn arrive(state: &mut State, message: Arrival<'_>) -> HeaderAction<State> {
    let Arrival { origin, uhdr, len, data, .. } = message;
    match (uhdr.split_first_chunk(), data) {
        (_, None) => state.blame(origin, Violation::Parts { len }),
        (None, _) => state.blame(origin, Violation::Length { len: uhdr.len() }),
        (Some((word, padded)), Some(body)) => {
            let word = u64::from_le_bytes(*word);
            let before = match Packet::decode(word) {
                Ok(Packet::Message(head)) => head.len_before_data().min(padded.len()),
                _ => 0,
            };
            state.arrived.push(origin, word, &padded[..before], body);
        }
    }
    HeaderAction::Consumed
}

/// The transport runs it for each task that is lost or purged.
pub(crate) fn on_loss(state: &mut State, _: &mut Outbox<State>, lost: TaskId) {
    state.lose(lost);
    state.note(Error::Lost { task: lost });
}

/// What the transport does when it has done its part of an operation: that ends, if it is one whose end is noted.
pub(crate) fn at_end(number: Option<u64>) -> Next<State> {
    number.map_or(Next::Nothing, |number| Next::Outcome(ended, number))
}

fn ended(state: &mut State, _: &mut Outbox<State>, number: u64, outcome: Result<(), LapiError>) {
    let result = outcome.map_err(|cause| Error::of(state.task, cause));
    state.end(number, result);
}

/// A fence that has not ended.
pub(crate) struct Fence {
    /// The task whose transfers it waits for, if not those of all.
    pub target: Option<TaskId>,
    /// Transfers of which the transport's fence knows nothing, such as data that a receiver still fetches.
    pub awaited: Vec<u64>,
    pub on_done: Callback,
}

/// What is called at the end of an operation.
pub(crate) enum End {
    Plain(Callback),
    /// That of a read-modify-write: it gets the value, or one of its type that is stored here.
    Value(CallbackOf<Value>, Value, Option<Arc<AtomicI64>>),
}

impl End {
    /// Calls it.
    pub fn call(self, section: &mut Section<'_>, result: Result<(), Error>) {
        match self {
            Self::Plain(callback) => callback(section, result),
            Self::Value(callback, value, None) => callback(section, result.map(|()| value)),
            Self::Value(callback, value, Some(mut bits)) => {
                let value = value.with(bits.load(Ordering::Relaxed));
                // Nobody stores there any more.
                if Arc::get_mut(&mut bits).is_some() {
                    section.session.state.free_results.push(bits);
                }
                callback(section, result.map(|()| value));
            }
        }
    }
}

/// What has begun and not ended.
pub(crate) struct Operation {
    pub target: TaskId,
    /// Whether it ends only when the target has done something.
    pub awaits_target: bool,
    pub on_end: End,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Packets of several queues come out as they went in, whatever was taken and recycled before.
        #[test]
        fn packets_come_out_in_order(
            rounds in prop::collection::vec(prop::collection::vec((any::<u64>(), any::<u32>(), 0_usize..3000), 0..8), 1..6),
            cut in 0_usize..8,
        ) {
            let mut queue = Packets::default();
            for packets in rounds {
                let bytes = |&(word, _, len): &(u64, u32, usize)| vec![word as u8; len];
                for packet in &packets {
                    let bytes = bytes(packet);
                    let (before, body) = bytes.split_at(bytes.len() / 3);
                    queue.push(packet.1, packet.0, before, ForeignBytes::from_slice(body));
                }
                let (mut taken, mut left) = (std::mem::take(&mut queue), Packets::default());
                for (at, packet) in packets.iter().enumerate() {
                    if at == cut {
                        left.append(&mut taken);
                        prop_assert!(taken.is_empty());
                        std::mem::swap(&mut taken, &mut left);
                    }
                    let Some(Arrived { origin, word, bytes: came }) = taken.next() else {
                        return Err(TestCaseError::fail("a packet is missing"));
                    };
                    prop_assert_eq!((word, origin, came), (packet.0, packet.1, &bytes(packet)[..]));
                }
                prop_assert!(taken.next().is_none());
                queue.recycle(taken);
                prop_assert!(queue.is_empty());
            }
        }
    }
}

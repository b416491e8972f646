//! What a context keeps: dispatches, messages whose dispatch functions have not run, and operations that have not ended.
//!
//! Handlers of the transport change it, and never run code of the program; whoever advances the context does that.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use transport_lapi::{
    Arrival, CounterId, ForeignBytes, HeaderAction, InlineHandler, LapiError, Next, Outbox,
    RemoteRegion, TaskId,
};

use crate::COLLECTIVES;
use crate::context::Callback;
use crate::dispatch::Dispatch;
use crate::error::{Error, Violation};
use crate::geometry::agreement::Agreements;
use crate::geometry::engine::Engine;
use crate::packet::{Head, Packet};
use crate::types::{Access, Association, Endpoint, Protocol};

/// Buffers of long messages that are kept for later ones, at most.
const MOST_SPARES: usize = 64;
/// Bytes of a message that has a place of its own, at most: header and data of what programs send immediately, mostly.
const SHORT: usize = 48;

/// The state of a context.
#[derive(Default)]
pub(crate) struct State {
    pub dispatches: Vec<Option<Dispatch>>,
    /// Messages in the order of arrival.
    pub arrived: VecDeque<Entry>,
    /// Messages for dispatches that are not set yet.
    pub early: Vec<Entry>,
    pub operations: Operations,
    /// What is to be called, and what it is told.
    pub due: VecDeque<(Callback, Result<(), Error>)>,
    /// Puts of which the end at the target is wanted: the counter of each and its operation.
    pub counted: Vec<(CounterId, u64)>,
    /// Counters that no put uses.
    pub free_counters: Vec<CounterId>,
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
    /// What went wrong, and no call was there to report it.
    pub first_error: Option<Error>,
    task: TaskId,
    spares: Vec<Vec<u8>>,
}

/// A message that has arrived.
pub(crate) struct Entry {
    pub from: Endpoint,
    pub head: Head,
    len: usize,
    /// Its bytes, if they are few.
    short: [u8; SHORT],
    /// Otherwise at least its bytes, so that the buffer is not cleared for each message.
    long: Vec<u8>,
}

impl Entry {
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        let Self { len, short, long, .. } = self;
        if *len <= SHORT { &short[..*len] } else { &long[..*len] }
    }
}

impl State {
    pub fn new(task: TaskId) -> Self {
        let dispatches = (0..=COLLECTIVES).map(|_| None).collect();
        Self { dispatches, task, ..Self::default() }
    }

    /// Takes a packet: keeps a message, or ends the operation that it answers.
    #[inline(always)]
    fn take(&mut self, origin: TaskId, word: u64, before: &[u8], body: ForeignBytes<'_>) {
        match Packet::decode(word) {
            Ok(Packet::Message(head)) => {
                let from = Endpoint::new(origin, head.offset.into());
                let len = before.len() + body.len();
                let mut entry = Entry { from, head, len, short: [0; SHORT], long: Vec::new() };
                let bytes = if len <= SHORT { &mut entry.short[..] } else { self.room(&mut entry) };
                bytes[..before.len()].copy_from_slice(before);
                body.copy_to(&mut bytes[before.len()..len]);
                self.arrived.push_back(entry);
            }
            Ok(Packet::Answer { number, is_good }) => {
                let waits = |one: &Operation| one.awaits_target && one.target == origin;
                match self.operations.get(number).is_some_and(waits) {
                    false => self.blame(origin, Violation::StrayAnswer { number }),
                    true if is_good => self.end(number, Ok(())),
                    true => self.end(number, Err(Error::Refused { task: origin })),
                }
            }
            Err(violation) => self.blame(origin, violation),
        }
    }

    pub fn blame(&mut self, origin: TaskId, violation: Violation) {
        self.note(Error::Peer { origin, violation });
    }

    /// Keeps an error for an advance to report, if it is the first one.
    pub fn note(&mut self, error: Error) {
        self.first_error.get_or_insert(error);
    }

    /// Makes room for the bytes of a long message.
    #[inline(never)]
    fn room<'a>(&mut self, entry: &'a mut Entry) -> &'a mut [u8] {
        entry.long = self.spares.pop().unwrap_or_default();
        if entry.long.len() < entry.len {
            entry.long.resize(entry.len, 0);
        }
        &mut entry.long
    }

    /// Gives the buffer of a message back.
    #[inline]
    pub fn recycle(&mut self, entry: Entry) {
        if entry.len > SHORT && self.spares.len() < MOST_SPARES {
            self.spares.push(entry.long);
        }
    }

    /// Ends an operation, if it has not ended.
    pub fn end(&mut self, number: u64, result: Result<(), Error>) {
        let ended = self.operations.remove(number);
        self.due.extend(ended.map(|operation| (operation.on_end, result)));
    }

    /// Ends what waits for a task that is lost or purged.
    pub fn lose(&mut self, lost: TaskId) {
        let error = || Err(Error::Lost { task: lost });
        for number in self.operations.awaiting(Some(lost)) {
            self.end(number, error());
        }
        let told = self.collectives.lose(lost).into_iter().chain(self.agreements.lose(lost));
        self.due.extend(told.map(|tell| (tell, error())));
        let Self { operations, counted, .. } = self;
        counted.retain(|&(_, number)| operations.get(number).is_some());
    }
}

/// The transport's handler of packets with one word of user header that arrive whole.
pub(crate) fn arrive_short(
    state: &mut State,
    origin: TaskId,
    word: u64,
    body: ForeignBytes<'_>,
) -> Option<(InlineHandler<State>, u64)> {
    state.take(origin, word, &[], body);
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
            state.take(origin, word, &padded[..before], body);
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

/// What has begun and not ended.
pub(crate) struct Operation {
    pub target: TaskId,
    /// Whether it ends only when the target has done something.
    pub awaits_target: bool,
    pub on_end: Callback,
}

/// The operations, by numbers that are never used again.
#[derive(Default)]
pub(crate) struct Operations {
    begun: u64,
    under_way: BTreeMap<u64, Operation>,
}

impl Operations {
    pub fn insert(&mut self, operation: Operation) -> u64 {
        let number = self.begun;
        self.begun += 1;
        self.under_way.insert(number, operation);
        number
    }

    pub fn get(&self, number: u64) -> Option<&Operation> {
        self.under_way.get(&number)
    }

    pub fn remove(&mut self, number: u64) -> Option<Operation> {
        self.under_way.remove(&number)
    }

    /// The numbers of those that end only when their target has done something: `target`, if it is given.
    pub fn awaiting(&self, target: Option<TaskId>) -> Vec<u64> {
        let is_its = |one: &Operation| target.is_none_or(|target| one.target == target);
        let waits = |one: &Operation| one.awaits_target && is_its(one);
        self.under_way.iter().filter(|(_, one)| waits(one)).map(|(number, _)| *number).collect()
    }
}

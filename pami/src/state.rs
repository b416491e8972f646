//! What a context keeps: dispatches, messages whose dispatch functions have not run, and operations that have not ended.
//!
//! Handlers of the transport change it, and never run code of the program; whoever advances the context does that.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use transport_lapi::{
    Arrival, CounterId, ForeignBytes, HeaderAction, InlineHandler, LapiError, Outbox, RemoteRegion,
    TaskId,
};

use crate::agreement::Agreements;
use crate::association::{Access, Association};
use crate::context::{Callback, CallbackOf};
use crate::dispatch::Dispatch;
use crate::endpoint::Endpoint;
use crate::engine::{Engine, Running};
use crate::error::{Error, Violation};
use crate::packet::{Answer, Head, Packet, Protocol};
use crate::types::Value;

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
    /// Operations that have ended, and how.
    pub ended: VecDeque<(u64, Result<(), Error>)>,
    /// What is to be called.
    pub due: VecDeque<Due>,
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

/// A callback of the program, and what it is told.
pub(crate) enum Due {
    Event(Callback, Result<(), Error>),
    Value(CallbackOf<Value>, Result<Value, Error>),
    Collective(Box<Running>, Result<(), Error>),
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
    pub fn new(task: TaskId, dispatches: usize) -> Self {
        let dispatches = (0..dispatches).map(|_| None).collect();
        Self { dispatches, task, ..Self::default() }
    }

    /// Takes a packet: keeps a message, or ends the operation that it answers.
    #[inline(always)]
    fn take(&mut self, origin: TaskId, word: u64, before: &[u8], body: ForeignBytes<'_>) {
        match Packet::decode(word) {
            Ok(Packet::Message(head)) => {
                let from = Endpoint::new(origin, head.offset());
                let len = before.len() + body.len();
                let mut entry = Entry { from, head, len, short: [0; SHORT], long: Vec::new() };
                let bytes = if len <= SHORT { &mut entry.short[..] } else { self.room(&mut entry) };
                bytes[..before.len()].copy_from_slice(before);
                body.copy_to(&mut bytes[before.len()..len]);
                self.arrived.push_back(entry);
            }
            Ok(Packet::Answer { number, is_good }) => {
                let waits = self
                    .operations
                    .get(number)
                    .is_some_and(|operation| operation.target == origin && operation.awaits_target);
                let refused = || Error::Refused { task: origin };
                match waits {
                    true => {
                        self.ended.push_back((number, is_good.then_some(()).ok_or_else(refused)))
                    }
                    false => self.blame(origin, Violation::StrayAnswer { number }),
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

    /// Ends what waits for a task that is lost or purged.
    pub fn lose(&mut self, lost: TaskId) {
        let Self { operations, ended, counted, due, .. } = self;
        let awaiting = operations.awaiting(Some(lost)).into_iter();
        let error = || Err(Error::Lost { task: lost });
        ended.extend(awaiting.map(|number| (number, error())));
        let running = self.collectives.lose(lost).into_iter();
        due.extend(running.map(|running| Due::Collective(running.into(), error())));
        let told = self.agreements.lose(lost).into_iter();
        due.extend(told.map(|tell| Due::Event(tell, error())));
        counted.retain(|&(_, number)| operations.get(number).is_none_or(|one| one.target != lost));
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

/// The end of an operation of the transport.
pub(crate) fn ended(
    state: &mut State,
    _: &mut Outbox<State>,
    number: u64,
    outcome: Result<(), LapiError>,
) {
    let result = outcome.map_err(|cause| Error::of(state.task, cause));
    state.ended.push_back((number, result));
}

/// A fence that has not ended.
pub(crate) struct Fence {
    /// The task whose transfers it waits for, if not those of all.
    pub target: Option<TaskId>,
    /// Transfers of which the transport's fence knows nothing, such as data that a receiver still fetches.
    pub awaited: Vec<u64>,
    /// Its operation.
    pub number: u64,
}

/// What has begun and not ended.
pub(crate) struct Operation {
    pub target: TaskId,
    /// Whether it ends only when the target has done something.
    pub awaits_target: bool,
    /// Memory that is registered for it.
    pub region: Option<RemoteRegion>,
    /// Whom to tell.
    pub callbacks: [Option<Callback>; 2],
    /// Whose operation ends with it.
    pub answer: Option<Answer>,
    /// How it has ended, if its registration has not.
    pub result: Option<Result<(), Error>>,
}

impl Operation {
    /// One with `target`, at whose end this is called.
    pub fn new(target: TaskId, callback: Option<Callback>) -> Self {
        let callbacks = [callback, None];
        let (region, answer, result) = (None, None, None);
        Self { target, awaits_target: false, region, callbacks, answer, result }
    }
}

/// The operations, by number: an index, and above it how often that was used.
#[derive(Default)]
pub(crate) struct Operations {
    places: Vec<(u64, Option<Operation>)>,
    free: Vec<usize>,
}

/// Bits of the index in a number.
const INDEX_BITS: u32 = 32;

impl Operations {
    pub fn insert(&mut self, operation: Operation) -> u64 {
        let index = self.free.pop().unwrap_or_else(|| {
            self.places.push((0, None));
            self.places.len() - 1
        });
        let place = &mut self.places[index];
        place.1 = Some(operation);
        place.0 << INDEX_BITS | index as u64
    }

    fn index(&self, number: u64) -> Option<usize> {
        let index = (number & ((1 << INDEX_BITS) - 1)) as usize;
        let (uses, _) = self.places.get(index)?;
        (*uses == number >> INDEX_BITS).then_some(index)
    }

    /// Notes that an operation ends only when its target has done something.
    pub fn wait_for_target(&mut self, number: u64) {
        let place = self.index(number).map(|index| &mut self.places[index]);
        if let Some((_, Some(operation))) = place {
            operation.awaits_target = true;
        }
    }

    pub fn get(&self, number: u64) -> Option<&Operation> {
        self.places[self.index(number)?].1.as_ref()
    }

    pub fn remove(&mut self, number: u64) -> Option<Operation> {
        let index = self.index(number)?;
        let place = &mut self.places[index];
        let operation = place.1.take()?;
        place.0 = (place.0 + 1) & ((1 << (crate::packet::NUMBER_BITS - INDEX_BITS)) - 1);
        self.free.push(index);
        Some(operation)
    }

    /// The numbers of those that end only when their target has done something: `target`, if it is given.
    pub fn awaiting(&self, target: Option<TaskId>) -> Vec<u64> {
        let numbered = self.places.iter().enumerate();
        let waits = numbered.filter_map(|(index, (uses, operation))| {
            let operation = operation.as_ref().filter(|operation| operation.awaits_target)?;
            let is_its = target.is_none_or(|target| operation.target == target);
            is_its.then_some(uses << INDEX_BITS | index as u64)
        });
        waits.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_ended_operations_name_nothing() {
        let mut operations = Operations::default();
        let first = operations.insert(Operation::new(1, None));
        let second = operations.insert(Operation::new(2, None));
        assert!(operations.remove(first).is_some_and(|operation| operation.target == 1));
        assert!(operations.remove(first).is_none() && operations.get(first).is_none());
        let third = operations.insert(Operation::new(3, None));
        assert!(third != first && third as u32 == first as u32, "the place is used again");
        assert!(operations.get(second).is_some_and(|operation| operation.target == 2));
        assert!(operations.get(u64::MAX).is_none());
        operations.wait_for_target(second);
        assert_eq!(operations.awaiting(None), [second]);
        assert_eq!(operations.awaiting(Some(3)), []);
    }
}

//! The collectives of a context that have begun. It says what is to be sent, and takes what has arrived; `collective.rs`
//! has the calls.
//!
//! - CE1: messages from one endpoint to another arrive in the order of sending, and the members of a geometry begin its
//!   collectives in the same order. So a message belongs to the receive with the same key, and with the same place among
//!   the messages of its sender with that key.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use mpicore::collective::{Local, Message, Part, Place};
use parking_lot::Mutex;
use transport_lapi::{Ranges, TaskId};

use super::Geometry;
use super::call::{Plan, Reduction};
use crate::algorithm::{Algorithm, Xfer};
use crate::context::{Callback, CallbackOf};
use crate::error::Error;
use crate::packet::{bytes_of, words_of};
use crate::types::Endpoint;

/// What is called when a collective has ended on this member.
pub type CollectiveCallback = CallbackOf<Finished>;

/// What a collective has brought.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// The results; bytes between blocks are zeros.
    pub output: Vec<u8>,
    /// The algorithm that was chosen.
    pub algorithm: Algorithm,
}

/// Identifies a collective.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    /// The geometry whose members take part.
    pub geometry: u32,
    /// The generation of the geometry; `None` for answers to an active-message collective, which never has the number of
    /// another one.
    pub generation: Option<u32>,
    /// Its number: among those that all members begin, or those that its initiator has begun.
    pub instance: u32,
}

/// What each message of a collective begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    pub key: Key,
    pub algorithm: Algorithm,
    /// The rank of the initiator of an active-message collective, otherwise 0.
    pub root: u32,
}

impl Head {
    /// Its length in bytes.
    pub const BYTES: usize = 16;

    pub fn to_bytes(self) -> Vec<u8> {
        let Key { geometry, generation, instance } = self.key;
        let first = u32::from(self.algorithm.code()) << 8 | u32::from(generation.is_none());
        bytes_of(&[first, geometry, instance, generation.unwrap_or(self.root)])
    }

    /// Decodes what a peer has sent.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let [first, geometry, instance, last] = words_of(bytes)?;
        let algorithm = Algorithm::from_code(u8::try_from(first >> 8).ok()?)?;
        let is_active = first & 0xFF != 0;
        let generation = (!is_active).then_some(last);
        let key = Key { geometry, generation, instance };
        Some(Self { key, algorithm, root: if is_active { last } else { 0 } })
    }
}

/// The collectives of a context.
#[derive(Default)]
pub(crate) struct Engine {
    pub running: HashMap<Key, Running>,
    pub inbox: Inbox,
    /// How many active-message collectives were begun.
    pub initiated: u32,
    /// Tasks that are lost or purged.
    pub lost: BTreeSet<TaskId>,
    /// What this context has associated with sizes.
    pub associations: HashMap<Xfer, Ranges<Algorithm>>,
}

impl Engine {
    /// Notes that a task is lost or purged. Returns whom to tell.
    pub fn lose(&mut self, lost: TaskId) -> Vec<Callback> {
        self.lost.insert(lost);
        let needs = |(_, running): &(&Key, &Running)| running.needs(lost);
        let keys: Vec<_> = self.running.iter().filter(needs).map(|(key, _)| *key).collect();
        keys.iter().for_each(|key| self.inbox.drop_all(*key));
        keys.iter().filter_map(|key| self.running.remove(key)).map(Running::into_end).collect()
    }
}

/// How many messages wait for their receives at most. Collectives without a barrier may be far ahead.
const MOST_WAITING: usize = 1 << 20;

/// The data of a message, once they are here.
pub(crate) type Landing = Arc<Mutex<Option<Result<Vec<u8>, Error>>>>;

/// What has arrived for the next receives from an endpoint.
#[derive(Default)]
pub(crate) struct Inbox {
    queues: HashMap<(Key, Endpoint), VecDeque<(Algorithm, Landing)>>,
    waiting: usize,
}

impl Inbox {
    /// Notes that a message has arrived, unless too many wait. Returns where its data go.
    pub fn arrive(&mut self, head: Head, from: Endpoint) -> Option<Landing> {
        let landing = Landing::default();
        let queue = self.queues.entry((head.key, from)).or_default();
        queue.push_back((head.algorithm, Arc::clone(&landing)));
        self.waiting += 1;
        (self.waiting <= MOST_WAITING).then_some(landing)
    }

    /// Takes the first message from an endpoint, if its data are here.
    fn take(&mut self, key: Key, from: Endpoint) -> Option<(Algorithm, Result<Vec<u8>, Error>)> {
        let queue = self.queues.get_mut(&(key, from))?;
        let data = queue.front()?.1.lock().take()?;
        let (algorithm, _) = queue.pop_front()?;
        if queue.is_empty() {
            self.queues.remove(&(key, from));
        }
        self.waiting -= 1;
        Some((algorithm, data))
    }

    /// Drops all messages with a key.
    pub fn drop_all(&mut self, key: Key) {
        self.queues.retain(|(other, _), _| *other != key);
        self.waiting = self.queues.values().map(VecDeque::len).sum();
    }
}

/// A collective that has begun.
pub(crate) struct Running {
    pub key: Key,
    pub geometry: Geometry,
    pub algorithm: Algorithm,
    pub plan: Plan,
    pub op: Option<Reduction>,
    /// The input, the output, and temporary memory.
    pub buffers: [Vec<u8>; 3],
    /// Receives of the round that has begun.
    pub awaited: Vec<(u32, Place)>,
    /// What follows them.
    pub local: Vec<Local>,
    /// What gets the output.
    pub on_end: CallbackOf<(Algorithm, Vec<u8>)>,
}

impl Running {
    /// What is called when it has ended.
    pub fn into_end(self) -> Callback {
        let Self { algorithm, buffers: [_, output, _], on_end, .. } = self;
        Box::new(move |section, result| on_end(section, result.map(|()| (algorithm, output))))
    }

    /// Whether a task has a member.
    pub fn needs(&self, task: TaskId) -> bool {
        self.geometry.leader_of(task).is_some()
    }

    /// Where a place is in its buffer.
    fn bytes(&self, place: Place) -> (usize, Range<usize>) {
        let Part::Elements { first, count } = place.part else {
            unreachable!("no block has a datatype of its own")
        };
        let (first, count) = (first as usize * self.plan.unit, count as usize * self.plan.unit);
        (place.buffer as usize, first..first + count)
    }

    fn read(&self, place: Place) -> &[u8] {
        let (buffer, range) = self.bytes(place);
        &self.buffers[buffer][range]
    }

    fn step(&mut self, step: Local) {
        let (Local::Copy { from, into } | Local::Reduce { from, into }) = step;
        let (buffer, range) = self.bytes(into);
        // Both may be in one buffer.
        let mut result = std::mem::take(&mut self.buffers[buffer]);
        let other;
        let (from, into) = if from.buffer == into.buffer {
            other = result[self.bytes(from).1].to_vec();
            (&other[..], &mut result[range])
        } else {
            (self.read(from), &mut result[range])
        };
        match (step, &self.op) {
            (Local::Reduce { .. }, Some(op)) => op.combine(from, into),
            _ => into.copy_from_slice(from),
        }
        self.buffers[buffer] = result;
    }

    /// Takes steps until a message is not here, and appends what it sends. Returns whether all are done.
    pub fn advance(
        &mut self,
        inbox: &mut Inbox,
        sends: &mut Vec<(Endpoint, Vec<u8>)>,
    ) -> Result<bool, Error> {
        loop {
            for next in std::mem::take(&mut self.awaited) {
                if !self.receive(inbox, next)? {
                    self.awaited.push(next);
                }
            }
            if !self.awaited.is_empty() {
                return Ok(false);
            }
            std::mem::take(&mut self.local).into_iter().for_each(|step| self.step(step));
            let Some((messages, local)) = self.plan.rounds.pop_front() else { return Ok(true) };
            self.local = local;
            for message in messages {
                match message {
                    Message::Receive { peer, into } => self.awaited.push((peer, into)),
                    Message::Send { peer, from } => {
                        sends.push((self.member(peer), self.read(from).to_vec()));
                    }
                }
            }
        }
    }

    fn member(&self, rank: u32) -> Endpoint {
        self.geometry.members()[rank as usize]
    }

    /// Takes the next message for a receive, if it is here.
    fn receive(&mut self, inbox: &mut Inbox, (peer, into): (u32, Place)) -> Result<bool, Error> {
        let from = self.member(peer);
        let Some((theirs, data)) = inbox.take(self.key, from) else { return Ok(false) };
        let (data, (buffer, range)) = (data?, self.bytes(into));
        let [theirs, ours] = match (theirs == self.algorithm, data.len(), range.len()) {
            (true, theirs, ours) if theirs == ours => {
                self.buffers[buffer][range].copy_from_slice(&data);
                return Ok(true);
            }
            (true, theirs, ours) => [theirs, ours].map(|len| format!("{len} bytes")),
            _ => [theirs, self.algorithm].map(|algorithm| algorithm.to_string()),
        };
        Err(Error::Disagree { geometry: self.key.geometry, from, theirs, ours })
    }
}

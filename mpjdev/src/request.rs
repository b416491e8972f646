//! Requests: operations that have been started and not yet waited for (MPI-4 section 3.7).

pub(crate) mod slab;
mod status;

pub use status::Status;

use std::collections::HashMap;
use std::num::{NonZeroU32, NonZeroU64};

use rustc_hash::FxBuildHasher;
use transport_lapi::{ForeignBytes, RemoteRegion, Sink};

use crate::call_names::Call;
use crate::error::Error;
use crate::request::slab::Slab;

/// An operation that was started. Pass it to one of the wait or test calls of its device.
///
/// If a request is dropped, its buffer stays in use until the operation ends by itself. Wait for the request, cancel
/// it, or [`crate::Device::detach`] it together with the buffer.
#[derive(Debug)]
#[must_use = "the buffer is in use until the request was waited for"]
pub struct Request(Handle);

/// What a request refers to.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Handle {
    /// A send that was complete when it was made: its destination, tag and length. They are plain numbers, since lists
    /// of requests are written and read on the path of messages.
    Complete { dest: u32, tag: i32, bytes: usize },
    /// The operation `key` in the [`Requests`] of the device with this number; a key has no meaning for another device.
    Pending { key: u64, device: NonZeroU32 },
}

/// The key of a send that was complete when it was made. No slab has so many slots.
pub(crate) const COMPLETE: u64 = u64::MAX;

impl Request {
    /// Makes the request of an operation under way on the device with this number.
    #[inline(always)]
    pub(crate) fn pending(key: u64, device: NonZeroU32) -> Self {
        Self(Handle::Pending { key, device })
    }

    /// Makes the request of a send, which is under way unless its key is [`COMPLETE`].
    #[inline(always)]
    pub(crate) fn of_send(key: u64, device: NonZeroU32, dest: u32, tag: i32, bytes: usize) -> Self {
        match key {
            COMPLETE => Self(Handle::Complete { dest, tag, bytes }),
            _ => Self::pending(key, device),
        }
    }

    /// Returns what the request refers to.
    #[inline(always)]
    pub(crate) fn handle(&self) -> Handle {
        self.0
    }

    /// Returns the outcome if the operation was complete when it was started. Then there is nothing to wait for, and
    /// the buffer is not in use.
    #[inline(always)]
    pub fn completed(&self) -> Option<Status> {
        match self.0 {
            Handle::Complete { dest, tag, bytes } => Some(Status::new(dest, tag, bytes)),
            Handle::Pending { .. } => None,
        }
    }

    /// Returns the key if the operation is under way on the device with this number.
    #[inline(always)]
    pub(crate) fn pending_on(&self, number: NonZeroU32) -> Option<u64> {
        match self.0 {
            Handle::Pending { key, device } if device == number => Some(key),
            _ => None,
        }
    }

    /// Returns the number by which [`crate::Device::request_of`] finds the operation. No operation has a number below
    /// 2^32.
    #[inline(always)]
    pub fn number(&self) -> u64 {
        match self.0 {
            Handle::Complete { .. } => COMPLETE,
            Handle::Pending { key, .. } => key,
        }
    }
}

/// An operation under way, or its outcome.
#[derive(Debug)]
pub(crate) enum Operation {
    /// A send.
    Send(Sending),
    /// A receive that has not matched a message.
    Posted(Posted),
    /// A receive that has matched a message, which is arriving.
    Receiving(Receiving),
    /// An operation that a client of the device ends, not a message; it belongs to a call of this kind, and may need
    /// what a peer does.
    Client { call: Call, context: u32, tag: i32, peer: Option<u32> },
    /// Ended, with source, tag and length. A status is made from these numbers where it is needed, not copied as a
    /// whole: they were mostly written just before they are read one by one.
    Done { from: SourceTag, bytes: usize },
    /// Cancelled.
    Cancelled,
    /// Ended with an error, which is boxed to keep the other variants small.
    Failed(Box<Error>),
}

impl Operation {
    /// Returns whether the operation is under way.
    #[inline(always)]
    pub fn is_open(&self) -> bool {
        match self {
            Self::Send(_) | Self::Posted(_) | Self::Receiving(_) | Self::Client { .. } => true,
            Self::Done { .. } | Self::Cancelled | Self::Failed(_) => false,
        }
    }
}

/// Source and tag of a message, in one word, as they are read: a load of both just behind two stores would wait until
/// these have left the processor's buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SourceTag(u64);

impl SourceTag {
    #[inline(always)]
    pub fn new(source: u32, tag: i32) -> Self {
        // As the queue of posted receives computes it, so that it is computed once.
        Self(u64::from(source) << 32 | u64::from(tag as u32))
    }

    /// Returns the status of a message of `bytes` bytes.
    #[inline(always)]
    pub fn status(self, bytes: usize) -> Status {
        Status::new((self.0 >> 32) as u32, self.0 as i32, bytes)
    }
}

/// A send that is not complete.
#[derive(Debug)]
pub(crate) struct Sending {
    pub dest: u32,
    pub tag: i32,
    pub context: u32,
    pub len: usize,
    /// Whether the data of an eager message still have to leave.
    pub in_flight: bool,
    /// Whether the receiver still has to answer.
    pub unanswered: bool,
    /// The region that the receiver may read until then.
    pub registered: Option<RemoteRegion>,
    /// Why the send fails once its data are not in use any more. A send that was withdrawn fails only if the receiver
    /// has not taken the message.
    pub failed: Option<Box<Error>>,
}

impl Sending {
    /// Returns the outcome of the send.
    pub fn ended(&mut self) -> Operation {
        match self.failed.take() {
            Some(error) => Operation::Failed(error),
            None => Operation::Done { from: SourceTag::new(self.dest, self.tag), bytes: self.len },
        }
    }
}

/// A receive that has not matched a message. Its pattern is in the posted-receive queue, under the number of the
/// request.
#[derive(Debug)]
pub(crate) struct Posted {
    pub into: Sink,
}

/// Returns the number under which the receive with this key is in the posted-receive queue.
#[inline(always)]
pub(crate) fn number(key: u64) -> u32 {
    key as u32
}

/// A receive that has matched a message, which is arriving.
#[derive(Debug)]
pub(crate) struct Receiving {
    /// The destination of the bytes, until it is passed to the transport.
    pub into: Sink,
    /// Length of the buffer.
    pub capacity: usize,
    pub matched: Matched,
}

/// A message that has matched a receive.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Matched {
    pub source: u32,
    pub tag: i32,
    pub context: u32,
    pub len: usize,
    /// The sender's request, if it asks for an answer. No valid key is 0; a peer that claims 0 gets no answer.
    pub sender: Option<NonZeroU64>,
    /// The place of the data at the sender, for a rendezvous.
    pub data: Option<RemoteRegion>,
}

/// Returns the outcome of receiving a message of `len` bytes into `capacity` bytes.
#[inline]
pub(crate) fn received(source: u32, tag: i32, len: usize, capacity: usize) -> Operation {
    if len > capacity {
        return truncated(source, tag, len, capacity);
    }
    Operation::Done { from: SourceTag::new(source, tag), bytes: len }
}

#[cold]
#[inline(never)]
fn truncated(source_rank: u32, tag: i32, sent: usize, capacity: usize) -> Operation {
    Operation::Failed(Box::new(Error::Truncate { source_rank, tag, sent, capacity }))
}

/// The operations of a device.
#[derive(Default)]
pub(crate) struct Requests {
    slab: Slab<Operation>,
    /// How many operations have ended since the device was made.
    ended: u64,
    /// What follows operations that are under way.
    followed: HashMap<u64, Next, FxBuildHasher>,
    /// How many operations each operation still waits for that ends with others.
    joint: HashMap<u64, usize, FxBuildHasher>,
    /// Functions whose operations have ended, with the outcomes, until the round of progress is over.
    due: Vec<(FollowUp, Result<Status, Error>)>,
}

/// A function that runs after an operation, with its outcome.
pub(crate) type FollowUp = Box<dyn FnOnce(Result<Status, Error>) + Send>;

/// What follows an operation.
#[derive(Default)]
struct Next {
    /// A function, for an operation for which nobody waits.
    function: Option<FollowUp>,
    /// The operations that end with this one and others.
    joint: Vec<u64>,
}

impl Requests {
    /// The value of `looked_at` for a waiter that has not looked yet.
    pub const NEVER: u64 = u64::MAX;

    /// Returns how many operations have ended, if that has changed since a waiter's last look. While it has not, there
    /// is nothing to find, and nothing is stored: a store in every turn of a spin makes short messages slower by a
    /// third.
    #[inline(always)]
    pub fn news_since(&self, looked_at: u64) -> Option<u64> {
        (self.ended != looked_at).then_some(self.ended)
    }

    /// Adds an operation, which is constructed in place, and returns its key.
    #[inline(always)]
    pub fn insert(&mut self, make: impl FnOnce() -> Operation) -> u64 {
        self.slab.insert_with(make)
    }

    /// Removes an operation that has not begun after all.
    #[cold]
    pub fn forget(&mut self, key: u64) {
        self.slab.remove(key);
    }

    pub fn sending(&mut self, key: u64) -> Option<&mut Sending> {
        match self.slab.get_mut(key) {
            Some(Operation::Send(sending)) => Some(sending),
            _ => None,
        }
    }

    /// Returns the receive `key` if it has matched a message that is arriving.
    pub fn receiving(&mut self, key: u64) -> Option<&mut Receiving> {
        match self.slab.get_mut(key) {
            Some(Operation::Receiving(receiving)) => Some(receiving),
            _ => None,
        }
    }

    /// Returns the key of the posted receive with this number and its region, which the caller takes over.
    pub fn take_posted(&mut self, number: u32) -> Option<(u64, Sink)> {
        let key = self.slab.key(number)?;
        match self.slab.at_mut(number) {
            Some(Some(Operation::Posted(posted))) => Some((key, posted.into.take())),
            _ => None,
        }
    }

    /// Returns the operation, unless it was removed.
    pub fn get(&self, key: u64) -> Option<&Operation> {
        self.slab.get(key)
    }

    /// Returns whether the operation is under way.
    pub fn is_open(&self, key: u64) -> bool {
        self.slab.get(key).is_some_and(Operation::is_open)
    }

    /// Returns whether the operation has failed because a rank was lost.
    pub fn has_lost_peer(&self, key: u64) -> bool {
        let failed = |error: &Error| error.lost_rank().is_some();
        matches!(self.slab.get(key), Some(Operation::Failed(error)) if failed(error))
    }

    /// Returns whether the operation is a receive that has not matched a message.
    pub fn is_posted(&self, key: u64) -> bool {
        matches!(self.slab.get(key), Some(Operation::Posted(_)))
    }

    /// Returns whether the operation is one that a client ends.
    pub fn is_client(&self, key: u64) -> bool {
        matches!(self.slab.get(key), Some(Operation::Client { .. }))
    }

    /// Returns the length of the buffer of the posted receive with this number.
    pub fn capacity(&self, number: u32) -> Option<usize> {
        match self.slab.at(number) {
            Some(Operation::Posted(posted)) => Some(posted.into.len()),
            _ => None,
        }
    }

    /// Moves the operation on to its next phase.
    pub fn change(&mut self, key: u64, operation: Operation) {
        if let Some(place) = self.slab.get_mut(key) {
            *place = operation;
        }
    }

    /// Ends the posted receive with this number by a message that has arrived in full: copies its bytes.
    #[inline(always)]
    pub fn receive(&mut self, number: u32, source: u32, tag: i32, body: ForeignBytes<'_>) {
        let Some(place) = self.slab.at_mut(number) else { return };
        let bytes = body.len();
        match place {
            Some(Operation::Posted(Posted { into: Sink::Span(region) }))
                if bytes <= region.len() =>
            {
                region.store(0, body);
                // A receive into one span owns nothing that would have to be dropped.
                let from = SourceTag::new(source, tag);
                std::mem::forget(place.replace(Operation::Done { from, bytes }));
            }
            Some(Operation::Posted(Posted { into })) => {
                into.store(0, body);
                *place = Some(received(source, tag, bytes, into.len()));
            }
            _ => return,
        }
        self.ended += 1;
        if !self.followed.is_empty() {
            self.slab.key(number).into_iter().for_each(|key| self.end_followed(key));
        }
    }

    /// Ends the operation with this outcome.
    #[inline]
    pub fn end(&mut self, key: u64, outcome: Operation) {
        self.ended += 1;
        if let Some(place) = self.slab.get_mut(key) {
            *place = outcome;
            if !self.followed.is_empty() {
                self.end_followed(key);
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn end_followed(&mut self, key: u64) {
        let Some(next) = self.followed.remove(&key) else { return };
        if let Some(function) = next.function {
            let outcome = self.take_ended(key).unwrap_or(Err(Error::Request));
            self.due.push((function, outcome));
        }
        next.joint.into_iter().for_each(|joint| self.count_down(joint));
    }

    /// Counts one of the operations that end a joint operation.
    fn count_down(&mut self, joint: u64) {
        if let Some(count) = self.joint.get_mut(&joint) {
            *count -= 1;
            if *count == 0 {
                self.joint.remove(&joint);
                self.end(joint, Operation::Done { from: SourceTag::new(0, 0), bytes: 0 });
            }
        }
    }

    /// Removes an operation that has succeeded, and returns its status.
    #[inline(always)]
    pub fn take_done(&mut self, key: u64) -> Option<Status> {
        self.take_numbers(key).map(|(from, bytes)| from.status(bytes))
    }

    /// Like [`Self::take_done`], but returns the numbers of the status.
    #[inline(always)]
    pub fn take_numbers(&mut self, key: u64) -> Option<(SourceTag, usize)> {
        self.slab.take_if(key, |operation| match *operation {
            Some(Operation::Done { from, bytes }) => Some((from, bytes)),
            _ => None,
        })
    }

    /// Removes an operation that has ended, and returns its outcome. An unknown key counts as ended, with an error.
    #[inline(always)]
    pub fn take_ended(&mut self, key: u64) -> Option<Result<Status, Error>> {
        match self.take_done(key) {
            Some(status) => Some(Ok(status)),
            None => self.take_otherwise(key),
        }
    }

    /// Like [`Self::take_ended`], but does not remove the operation.
    pub fn outcome(&self, key: u64) -> Option<Result<Status, Error>> {
        match self.slab.get(key) {
            Some(&Operation::Done { from, bytes }) => Some(Ok(from.status(bytes))),
            Some(Operation::Cancelled) => Some(Ok(Status::CANCELLED)),
            Some(Operation::Failed(error)) => Some(Err((**error).clone())),
            Some(_) => None,
            None => Some(Err(Error::Request)),
        }
    }

    #[cold]
    #[inline(never)]
    fn take_otherwise(&mut self, key: u64) -> Option<Result<Status, Error>> {
        match self.slab.get(key) {
            Some(Operation::Failed(_) | Operation::Cancelled) | None => {}
            Some(_) => return None,
        }
        match self.slab.remove(key) {
            Some(Operation::Failed(error)) => Some(Err(*error)),
            Some(Operation::Cancelled) => Some(Ok(Status::CANCELLED)),
            _ => Some(Err(Error::Request)),
        }
    }

    /// Runs `next` when the operation ends, for which nobody waits any more.
    pub fn follow(&mut self, key: u64, next: FollowUp) {
        self.followed.entry(key).or_default().function = Some(next);
        if !self.is_open(key) {
            self.end_followed(key);
        }
    }

    /// Takes the functions that were to follow operations, none of which ends any more.
    pub fn take_followed(&mut self) -> impl Sized + use<> {
        std::mem::take(&mut self.followed)
    }

    /// Ends the operation `joint` as soon as all of these operations have ended, whatever their outcomes.
    pub fn join(&mut self, joint: u64, keys: impl Iterator<Item = u64>) {
        // One more, so that it does not end before all are counted.
        let mut count = 1;
        for key in keys.filter(|key| self.slab.get(*key).is_some_and(Operation::is_open)) {
            self.followed.entry(key).or_default().joint.push(joint);
            count += 1;
        }
        self.joint.insert(joint, count);
        self.count_down(joint);
    }

    /// Returns an operation under way that has to end before this joint operation does.
    pub fn awaited_by(&self, joint: u64) -> Option<u64> {
        let mut followed = self.followed.iter();
        followed.find(|(_, next)| next.joint.contains(&joint)).map(|(key, _)| *key)
    }

    /// Takes the functions that are due, with the outcomes.
    #[inline]
    pub fn take_due(&mut self) -> impl Iterator<Item = (FollowUp, Result<Status, Error>)> {
        self.due.drain(..)
    }

    pub fn iter(&self) -> impl Iterator<Item = (u64, &Operation)> {
        self.slab.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The operations that messages end.
    #[expect(dead_code, reason = "only its size counts")]
    enum OfMessages {
        Send(Sending),
        Posted(Posted),
        Receiving(Receiving),
        Done { from: SourceTag, bytes: usize },
        Cancelled,
        Failed(Box<Error>),
    }

    /// The variant for operations of clients does not make the type larger.
    #[test]
    fn operations_of_clients_make_no_operation_larger() {
        assert_eq!(size_of::<Operation>(), size_of::<OfMessages>());
    }
}

//! Requests: operations that have been started and not yet waited for (MPI-4 section 3.7).

use std::any::Any;

use transport_lapi::{RecvRegion, RemoteRegion};

use crate::error::Error;
use crate::matching::{Pattern, Ticket};
use crate::slab::Slab;
use crate::status::Status;

/// An operation that was started. Hand it to one of the wait or test calls of its device.
///
/// A request that is dropped keeps its buffer in use until the operation ends by itself: wait for it,
/// cancel it, or [`crate::Device::detach`] it together with the buffer.
#[derive(Debug)]
#[must_use = "the buffer is in use until the request was waited for"]
pub struct Request {
    pub(crate) handle: Handle,
    /// Number of the device that made it: keys mean nothing to another one.
    pub(crate) device: u32,
}

/// What a request is to its device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Handle {
    /// Complete when it was made.
    Done(Status),
    /// Key into [`Requests`].
    Pending(u64),
}

/// One operation under way, or its outcome.
#[derive(Debug)]
pub(crate) enum Operation {
    /// A send.
    Send(Sending),
    /// A receive without a message.
    Posted(Posted),
    /// A receive whose message is coming.
    Taking(Taking),
    /// Ended.
    Done(Status),
    /// Ended with an error; the box keeps the other cases small.
    Failed(Box<Error>),
}

/// A send that is not complete.
#[derive(Debug)]
pub(crate) struct Sending {
    pub dest: u32,
    pub tag: i32,
    pub context: u32,
    pub len: usize,
    /// The data still have to leave.
    pub leaving: bool,
    /// The receiver still has to answer.
    pub unanswered: bool,
    /// The receiver may read this until then.
    pub exposed: Option<RemoteRegion>,
}

impl Sending {
    pub fn status(&self) -> Status {
        Status::new(self.dest, self.tag, self.len)
    }
}

/// What the posted-receive queue holds: which receive, and where its bytes go.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted {
    pub key: u64,
    pub into: RecvRegion,
}

/// A receive without a message.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Posted {
    pub pattern: Pattern,
    pub len: usize,
    /// Its place in the posted-receive queue.
    pub ticket: Ticket,
}

/// A receive whose message is coming.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Taking {
    pub into: RecvRegion,
    pub matched: Matched,
}

/// A message that has met its receive.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Matched {
    pub source: u32,
    pub tag: i32,
    pub len: usize,
    /// The sender's request, if it waits for an answer.
    pub sender: Option<u64>,
    /// Where the data lie, for a rendezvous.
    pub data: Option<RemoteRegion>,
}

impl Matched {
    /// The outcome of receiving this message into `capacity` bytes.
    #[inline]
    pub fn outcome(&self, capacity: usize) -> Operation {
        let Self { source, tag, len, .. } = *self;
        if len > capacity {
            return truncated(source, tag, len, capacity);
        }
        Operation::Done(Status::new(source, tag, len))
    }
}

#[cold]
fn truncated(source_rank: u32, tag: i32, sent: usize, capacity: usize) -> Operation {
    Operation::Failed(Box::new(Error::Truncate { source_rank, tag, sent, capacity }))
}

/// The operations of a device.
#[derive(Default)]
pub(crate) struct Requests {
    slab: Slab<Entry>,
    /// Operations that have ended since the beginning: tells a waiter whether to look again.
    pub ended: u64,
}

struct Entry {
    operation: Operation,
    /// A buffer that nobody waits for any more; it goes when the operation ends.
    detached: Option<Box<dyn Any + Send>>,
}

impl Requests {
    #[inline]
    pub fn insert(&mut self, operation: Operation) -> u64 {
        self.insert_with(|_| operation)
    }

    /// The operation that `make` makes of its key.
    #[inline]
    pub fn insert_with(&mut self, make: impl FnOnce(u64) -> Operation) -> u64 {
        self.slab.insert_with(|key| Entry { operation: make(key), detached: None })
    }

    pub fn sending(&mut self, key: u64) -> Option<&mut Sending> {
        match self.slab.get_mut(key).map(|entry| &mut entry.operation) {
            Some(Operation::Send(sending)) => Some(sending),
            _ => None,
        }
    }

    /// The receive whose message is coming.
    pub fn taking(&mut self, key: u64) -> Option<Taking> {
        match self.slab.get(key).map(|entry| &entry.operation) {
            Some(Operation::Taking(taking)) => Some(*taking),
            _ => None,
        }
    }

    /// The receive that is posted.
    pub fn posted(&self, key: u64) -> Option<Posted> {
        match self.slab.get(key).map(|entry| &entry.operation) {
            Some(Operation::Posted(posted)) => Some(*posted),
            _ => None,
        }
    }

    /// The operation goes on to its next phase.
    #[inline]
    pub fn change(&mut self, key: u64, operation: Operation) {
        if let Some(entry) = self.slab.get_mut(key) {
            entry.operation = operation;
        }
    }

    /// The operation has ended.
    #[inline]
    pub fn end(&mut self, key: u64, outcome: Operation) {
        self.ended += 1;
        if let Some(entry) = self.slab.get_mut(key) {
            entry.operation = outcome;
            if entry.detached.is_some() {
                self.slab.discard(key);
            }
        }
    }

    /// The outcome of an operation that has ended; it is forgotten. An unknown key is an outcome
    /// too.
    #[inline]
    pub fn take_ended(&mut self, key: u64) -> Option<Result<Status, Error>> {
        let Some(entry) = self.slab.get_mut(key) else { return Some(Err(Error::Request)) };
        let outcome = match &mut entry.operation {
            Operation::Done(status) => Ok(*status),
            Operation::Failed(error) => Err((**error).clone()),
            _ => return None,
        };
        self.slab.discard(key);
        Some(outcome)
    }

    /// Keeps `buffer` until the operation ends, then forgets both.
    pub fn detach(&mut self, key: u64, buffer: Box<dyn Any + Send>) {
        match self.slab.get_mut(key) {
            Some(Entry { operation: Operation::Done(_) | Operation::Failed(_), .. }) => {
                self.slab.discard(key);
            }
            Some(entry) => entry.detached = Some(buffer),
            None => {}
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = (u64, &Operation)> {
        self.slab.iter().map(|(key, entry)| (key, &entry.operation))
    }
}

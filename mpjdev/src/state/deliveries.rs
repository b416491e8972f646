//! Contexts whose messages go to a function of the client at once, instead of waiting for a receive.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::request::Status;

/// A message of such a context.
#[derive(Debug)]
pub(crate) enum Content {
    /// All of it was in one packet.
    Bytes(Vec<u8>),
    /// The key of an unexpected message, which is not in the queue.
    Unexpected(u64),
}

/// Gets a message and its status. Runs when the lock is free.
pub(crate) type Taker = Arc<dyn Fn(Content, Status) + Send + Sync>;

/// The functions, and the messages that have come for them since the last round of progress.
#[derive(Default)]
pub(crate) struct Deliveries {
    takers: FxHashMap<u32, Taker>,
    due: VecDeque<(Taker, Content, Status)>,
}

impl Deliveries {
    /// Passes the messages of `context` to `taker` from now on.
    pub fn begin(&mut self, context: u32, taker: Taker) {
        self.takers.insert(context, taker);
    }

    /// Ends this. Returns the function, which the caller drops without the lock.
    pub fn end(&mut self, context: u32) -> Option<Taker> {
        self.takers.remove(&context)
    }

    /// Delivers the unexpected message `key` of `context`, if the context has a function. Returns whether it has.
    #[inline]
    pub fn deliver(&mut self, context: u32, key: u64, status: Status) -> bool {
        let Some(taker) = self.taker(context) else { return false };
        self.due.push_back((taker, Content::Unexpected(key), status));
        true
    }

    /// Returns the function of `context`, if it has one.
    #[inline]
    pub fn taker(&self, context: u32) -> Option<Taker> {
        if self.takers.is_empty() { None } else { self.takers.get(&context).cloned() }
    }

    /// Delivers a message of which all bytes are here.
    #[inline]
    pub fn deliver_bytes(&mut self, taker: Taker, bytes: Vec<u8>, status: Status) {
        self.due.push_back((taker, Content::Bytes(bytes), status));
    }

    /// Takes what is due next.
    #[inline]
    pub fn take_due(&mut self) -> Option<(Taker, Content, Status)> {
        self.due.pop_front()
    }
}

impl fmt::Debug for Deliveries {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_set().entries(self.takers.keys()).finish()
    }
}

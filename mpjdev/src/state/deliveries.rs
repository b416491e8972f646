//! Contexts whose messages go to a function of the client at once, instead of waiting for a receive.

use std::fmt;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::request::Status;

/// Gets the key and the status of an unexpected message, which is not in the queue. Runs when the lock is free.
pub(crate) type Taker = Arc<dyn Fn(u64, Status) + Send + Sync>;

/// The functions, and the messages that have come for them since the last round of progress.
#[derive(Default)]
pub(crate) struct Deliveries {
    takers: FxHashMap<u32, Taker>,
    due: Vec<(Taker, u64, Status)>,
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
        let taker = if self.takers.is_empty() { None } else { self.takers.get(&context) };
        self.due.extend(taker.map(|taker| (taker.clone(), key, status)));
        taker.is_some()
    }

    /// Takes what is due.
    #[inline]
    pub fn take_due(&mut self) -> impl Iterator<Item = (Taker, u64, Status)> {
        self.due.drain(..)
    }
}

impl fmt::Debug for Deliveries {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_set().entries(self.takers.keys()).finish()
    }
}

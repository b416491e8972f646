//! The early messages that their senders may withdraw.

use rustc_hash::FxHashMap;

use crate::matching::{EarlyTicket, Matcher};
use crate::request::slab::Slab;
use crate::state::early::Early;

/// Finds early messages by their senders and the senders' requests. It is empty until the first message is withdrawn, so
/// programs without withdrawals do not pay for it. It may contain messages that have left: their tickets and keys are
/// stale.
#[derive(Debug, Default)]
pub(crate) struct Withdrawable {
    has_begun: bool,
    places: FxHashMap<(u32, u64), (EarlyTicket, u64)>,
}

/// The map has room for this many messages at least.
const FEW: usize = 64;

impl Withdrawable {
    /// Adds the messages that are in the queue already, once.
    pub fn begin(&mut self, matcher: &Matcher<u64>, early: &Slab<Early>) {
        if std::mem::replace(&mut self.has_begun, true) {
            return;
        }
        let queued = matcher.early_tickets().filter_map(|(ticket, key)| {
            let Early { source, body, .. } = early.get(key)?;
            Some(((*source, body.awaited()?), (ticket, key)))
        });
        self.places.extend(queued);
    }

    /// Adds a message that has just joined the queue, one of those in `early`.
    pub fn add(&mut self, of: (u32, u64), place: (EarlyTicket, u64), early: &Slab<Early>) {
        if !self.has_begun {
            return;
        }
        if self.places.len() == self.places.capacity() {
            // At least half of the map is free after a pass, so its cost is spread over as many additions.
            self.places.retain(|_, (_, key)| early.get(*key).is_some());
            self.places.reserve(self.places.len().max(FEW));
        }
        self.places.insert(of, place);
    }

    pub fn find(&self, of: (u32, u64)) -> Option<(EarlyTicket, u64)> {
        self.places.get(&of).copied()
    }
}

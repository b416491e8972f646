//! The unexpected messages that their senders may withdraw.

use rustc_hash::FxHashMap;

use crate::matching::{Matcher, UnexpectedTicket};
use crate::request::slab::Slab;
use crate::state::unexpected::Unexpected;

/// Finds unexpected messages by their senders and the senders' requests. It is empty until the first message is
/// withdrawn, so programs without withdrawals do not pay for it. It may contain messages that have left: their tickets
/// and keys are stale.
#[derive(Debug, Default)]
pub(crate) struct Withdrawable {
    has_begun: bool,
    places: FxHashMap<(u32, u64), (UnexpectedTicket, u64)>,
}

/// The map has room for this many messages at least.
const FEW: usize = 64;

impl Withdrawable {
    /// Adds the messages that are in the queue already, once.
    pub fn begin(&mut self, matcher: &Matcher<u64>, unexpected: &Slab<Unexpected>) {
        if std::mem::replace(&mut self.has_begun, true) {
            return;
        }
        let queued = matcher.unexpected_tickets().filter_map(|(ticket, key)| {
            let Unexpected { source, body, .. } = unexpected.get(key)?;
            Some(((*source, body.awaited()?), (ticket, key)))
        });
        self.places.extend(queued);
    }

    /// Adds a message that has just joined the queue, one of those in `unexpected`.
    pub fn add(
        &mut self,
        of: (u32, u64),
        place: (UnexpectedTicket, u64),
        unexpected: &Slab<Unexpected>,
    ) {
        if !self.has_begun {
            return;
        }
        if self.places.len() == self.places.capacity() {
            // At least half of the map is free after a pass, so its cost is spread over as many additions.
            self.places.retain(|_, (_, key)| unexpected.get(*key).is_some());
            self.places.reserve(self.places.len().max(FEW));
        }
        self.places.insert(of, place);
    }

    pub fn find(&self, of: (u32, u64)) -> Option<(UnexpectedTicket, u64)> {
        self.places.get(&of).copied()
    }
}

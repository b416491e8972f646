//! The state of a device under its lock, which calls and handlers change: queues, requests, credit, losses, statistics.
//!
//! - DS1: a number in the posted-receive queue is the slot of a posted receive in [`Requests`], and each posted receive
//!   is in the queue. Both change in one handler or call, under the session's lock.
//! - DS2: the region of a receive is written only between its match and its end; after the end it belongs to the caller
//!   again.
//! - DS3: `first_error` is the first violation that a handler found. The next call of the device that makes progress or
//!   ends the device finds it, abandons the context and fails.

mod checks;
pub(crate) mod credit;
pub(crate) mod deliveries;
pub(crate) mod losses;
pub(crate) mod members;
pub(crate) mod recording;
mod stats;
pub(crate) mod unexpected;
pub(crate) mod unexpected_buffer;
mod vain_polls;
mod withdrawable;

pub use members::Members;
pub use stats::{COUNTERS, Counter, CounterKind, ProtocolStats, Stats};

use std::num::NonZeroU32;
use transport_lapi::{Outbox, Sink, Tasks};

use crate::envelope::{CREDIT, DONE, PeerError};
use crate::error::Error;
use crate::matching::{Envelope, Matcher, UnexpectedTicket};
use crate::request::slab::Slab;
use crate::request::{Matched, Operation, Receiving, Requests, Status, received};
use crate::state::checks::Checks;
use crate::state::credit::Credits;
use crate::state::deliveries::{Content, Deliveries};
use crate::state::losses::Losses;
use crate::state::recording::{Levels, Phases};
use crate::state::unexpected::{Unexpected, UnexpectedBody};
use crate::state::vain_polls::VainPolls;
use crate::state::withdrawable::Withdrawable;

/// The state of one rank's device in its transport context; opaque to other crates.
pub struct State {
    pub(crate) matcher: Matcher<u64>,
    pub(crate) requests: Requests,
    pub(crate) unexpected: Slab<Unexpected>,
    pub(crate) deliveries: Deliveries,
    /// The unexpected messages that their senders may withdraw.
    pub(crate) withdrawable: Withdrawable,
    pub(crate) credits: Credits,
    pub(crate) stats: Stats,
    /// In jobs that find mistakes between ranks.
    pub(crate) checks: Option<Box<Checks>>,
    /// Where calls are recorded: the number of the device.
    pub(crate) records: Option<NonZeroU32>,
    pub(crate) phases: Phases,
    /// How long its queues were.
    pub(crate) levels: Levels,
    /// This rank.
    pub(crate) rank: u32,
    /// Number of ranks.
    pub(crate) size: usize,
    pub(crate) losses: Losses,
    /// Whether a rank is lost, the job finds mistakes, or calls are recorded.
    pub(crate) is_cautious: bool,
    pub(crate) first_error: Option<Error>,
    /// Of tests and probes.
    pub(crate) vain_polls: VainPolls,
}

impl State {
    pub(crate) fn new(rank: u32, ranks: &Tasks, early_limit: usize) -> Self {
        Self {
            matcher: Matcher::new(),
            requests: Requests::default(),
            unexpected: Slab::default(),
            deliveries: Deliveries::default(),
            withdrawable: Withdrawable::default(),
            credits: Credits::new(ranks, early_limit),
            stats: Stats::default(),
            checks: None,
            records: None,
            phases: Phases::default(),
            levels: Levels::default(),
            rank,
            size: ranks.number(),
            losses: Losses::default(),
            is_cautious: false,
            first_error: None,
            vain_polls: VainPolls::default(),
        }
    }

    /// Notes a violation (DS3).
    #[cold]
    pub(crate) fn violation(&mut self, rank: u32, violation: PeerError) {
        self.note_error(Error::Peer { rank, violation });
    }

    /// Notes what ends the device, unless something else ends it already.
    #[cold]
    fn note_error(&mut self, error: Error) {
        self.first_error.get_or_insert(error);
    }

    /// Returns whether a handler has found a violation (DS3).
    #[inline(always)]
    pub(crate) fn has_failed(&self) -> bool {
        self.first_error.is_some()
    }

    /// Finds mistakes between ranks from now on.
    pub(crate) fn check(&mut self) {
        self.checks = Some(Box::default());
        self.have_described();
    }

    /// Records from now on, for the device with this number: the calls, or only what they consist of.
    pub(crate) fn record(&mut self, device: NonZeroU32, calls: bool) {
        self.records = Some(device);
        if calls {
            self.have_described();
        }
        self.is_cautious = true;
    }

    /// Records how long the queues are, now and then.
    #[cold]
    pub(crate) fn note_levels(&mut self) {
        let Some(device) = self.records else { return };
        let (posted, unexpected) = (self.matcher.posted_len(), self.matcher.unexpected_len());
        self.levels.note(device, (posted, unexpected, self.stats.unexpected_bytes));
    }

    /// Messages take the path on which they are described.
    fn have_described(&mut self) {
        self.is_cautious = true;
        self.credits.call_short(0);
    }

    /// Returns whether a receive can be posted without further checks: there is no unexpected message, no rank is lost,
    /// the job does not find mistakes, and calls are not recorded.
    #[inline(always)]
    pub(crate) fn is_clear(&self) -> bool {
        self.matcher.is_unexpected_empty() && !self.is_cautious
    }

    /// Takes the receive that an arriving envelope of `len` bytes matches out of the queue, and returns its key and
    /// region (DS1).
    #[inline]
    pub(crate) fn match_posted(&mut self, envelope: Envelope, len: usize) -> Option<(u64, Sink)> {
        let number = self.matcher.take_posted(envelope)?;
        let posted = self.requests.take_posted(number);
        let posted = posted.expect("DS1: the queue names posted receives");
        Some(match self.checks {
            None => posted,
            Some(_) => self.check_posted(posted, envelope, len),
        })
    }

    /// Notes that a receive has matched a message that is not in its buffer yet. The region is kept for whoever fills
    /// it.
    pub(crate) fn begin_receiving(&mut self, key: u64, into: Sink, matched: Matched) {
        let capacity = into.len();
        self.requests.change(key, Operation::Receiving(Receiving { into, capacity, matched }));
    }

    /// Ends a receive into `capacity` bytes whose message is in its buffer.
    #[inline]
    pub(crate) fn end_receive(
        &mut self,
        key: u64,
        source: u32,
        tag: i32,
        len: usize,
        capacity: usize,
    ) {
        self.stats.received += 1;
        self.requests.end(key, received(source, tag, len, capacity));
    }

    /// Removes the unexpected message with this key.
    pub(crate) fn forget_unexpected(&mut self, key: u64) -> Option<Unexpected> {
        let unexpected = self.unexpected.remove(key)?;
        if matches!(unexpected.body, UnexpectedBody::Eager { .. }) {
            self.stats.unexpected_bytes -= unexpected.len as u64;
        }
        Some(unexpected)
    }

    /// Stores an unexpected message, and puts it into the queue, or delivers it. Returns its key.
    pub(crate) fn keep_unexpected(&mut self, mut unexpected: Unexpected) -> u64 {
        let Unexpected { context, source, tag, len, .. } = unexpected;
        unexpected.told = self.take_told(source).map(Box::new);
        let request = unexpected.body.awaited();
        let key = self.unexpected.insert(unexpected);
        if self.deliveries.deliver(context, key, Status::new(source, tag, len)) {
            return key;
        }
        let ticket = self.matcher.push_unexpected(Envelope { context, source, tag }, key);
        if let Some(request) = request {
            self.withdrawable.add((source, request), (ticket, key), &self.unexpected);
        }
        key
    }

    /// Removes those unexpected messages that `is_over` selects, also from the queue.
    pub(crate) fn drop_unexpected(&mut self, is_over: impl Fn(&Unexpected) -> bool) {
        let is_over =
            |(_, key): &(UnexpectedTicket, u64)| self.unexpected.get(*key).is_some_and(&is_over);
        let over: Vec<_> = self.matcher.unexpected_tickets().filter(is_over).collect();
        for (ticket, key) in over {
            self.matcher.remove_unexpected(ticket);
            self.forget_unexpected(key);
        }
    }

    /// Notes that a message of `len` bytes from `source` needs no unexpected-message memory, or no longer needs it.
    pub(crate) fn release_credit(&mut self, outbox: &mut Outbox<Self>, source: u32, len: usize) {
        if self.credits.release(source, len) {
            self.settle_credit(outbox, u64::from(source));
        }
    }

    /// Returns the credit that is owed to the rank `info`.
    pub(crate) fn settle_credit(&mut self, outbox: &mut Outbox<Self>, info: u64) {
        let bytes = self.credits.settle(info as u32);
        self.post(outbox, info as u32, CREDIT, bytes);
    }

    /// Passes the functions that follow operations which have ended, and those for messages that are delivered, to the
    /// transport, which runs them when the lock is free.
    #[cold]
    pub(crate) fn follow_up(&mut self, outbox: &mut Outbox<Self>) {
        while let Some((take, content, status)) = self.deliveries.take_due() {
            if let Content::Bytes(bytes) = &content {
                self.stats.received += 1;
                self.release_credit(outbox, status.source, bytes.len());
            }
            outbox.when_unlocked(Box::new(move || take(content, status)));
        }
        for (next, outcome) in self.requests.take_due() {
            outbox.when_unlocked(Box::new(move || next(outcome)));
        }
    }

    /// Tells the sender of a message that all of it is here, if the sender asks for that.
    pub(crate) fn answer(&mut self, outbox: &mut Outbox<Self>, matched: &Matched) {
        if let Some(request) = matched.sender {
            self.post(outbox, matched.source, DONE, request.get());
        }
    }

    /// Sends one word to a rank, unless the rank is lost.
    pub(crate) fn post(&mut self, outbox: &mut Outbox<Self>, rank: u32, handler: u8, value: u64) {
        if self.losses.contain(rank) {
            return;
        }
        if let Err(error) = outbox.amsend(rank, handler, &value.to_le_bytes(), Vec::new()) {
            self.note_error(error.into());
        }
    }
}

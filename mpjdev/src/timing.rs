//! Times long messages, one at a time, for `cost.rs`.
//!
//! The time is from the call until the receiver's answer that it has all bytes. A rendezvous has an answer anyway; a timed
//! eager message asks for one like a synchronous message does, but nobody waits for it: the send ends when its data have
//! left. If the answer does not come, the message is given up after [`LONGEST`], or for the next timed one.
//!
//! A time counts only if
//! - TI1: the receive was posted when the message came, which the answer says ([`envelope::Answer`]);
//! - TI2: this rank was polling when the answer came, not computing: a wait has looked at the clock just before;
//! - TI3: no message came meanwhile, whose handling would be part of the time.

use std::time::{Duration, Instant};

use transport_lapi::config::Protocol;

use crate::envelope;
use crate::state::State;

/// A message that is being timed.
#[derive(Debug)]
pub(crate) struct Timing {
    dest: u32,
    len: usize,
    protocol: Protocol,
    /// What the receiver answers: the request of a rendezvous, or a number of its own for an eager message.
    key: u64,
    since: Instant,
    /// When a wait last looked at the clock.
    looked: Option<Instant>,
    /// Messages received before it.
    received: u64,
}

/// After this time a message is not timed any more, so that waits need not look at the clock.
const LONGEST: Duration = Duration::from_millis(10);
/// A pause between two looks of a wait that polls, at most; part of the time of a message, one in so many.
const BETWEEN_LOOKS: Duration = Duration::from_nanos(500);
const PART: u32 = 16;

impl State {
    /// Makes the key by which the receiver answers the next timed eager message.
    pub(crate) fn next_timed(&mut self) -> u64 {
        self.timed += 1;
        envelope::timed(self.timed)
    }

    /// Returns whether this is the key of a timed eager message, of the present one or of one before. The answer may
    /// come when nobody waits for it any more.
    pub(crate) fn was_timed(&self, key: u64) -> bool {
        (key >> 32) <= self.timed && key == envelope::timed(key >> 32)
    }

    /// Begins to time a message that was sent at `since` and is answered by `key`.
    pub(crate) fn time(
        &mut self,
        dest: u32,
        len: usize,
        protocol: Protocol,
        key: u64,
        since: Instant,
    ) {
        let received = self.stats.received;
        self.timing = Some(Timing { dest, len, protocol, key, since, looked: None, received });
        self.needs_attention = true;
    }

    /// Takes note of an answer of `origin`, of a message that was timed or not.
    #[inline]
    pub(crate) fn time_is_up(&mut self, origin: u32, answer: envelope::Answer) {
        let Some(timing) = &self.timing else { return };
        if timing.key == answer.request && timing.dest == origin {
            self.learn(answer.was_late);
        }
    }

    #[cold]
    #[inline(never)]
    fn learn(&mut self, was_late: bool) {
        self.needs_attention = self.trouble.is_some();
        let Some(timing) = self.timing.take() else { return };
        let Timing { dest, len, protocol, since, looked, received, .. } = timing;
        let now = Instant::now();
        let took = now.duration_since(since);
        let polled = looked
            .is_some_and(|looked| now.duration_since(looked) < (took / PART).max(BETWEEN_LOOKS));
        if polled && !was_late && received == self.stats.received {
            self.stats.timed += 1;
            self.costs.learn(dest, len, protocol, took);
        }
    }

    /// What a wait does at each of its looks while something needs attention: it notes the time for a message that is
    /// timed. Returns whether a handler has found a violation.
    #[cold]
    #[inline(never)]
    pub(crate) fn attend(&mut self) -> bool {
        if let Some(timing) = &mut self.timing {
            let now = Instant::now();
            timing.looked = Some(now);
            if now.duration_since(timing.since) > LONGEST {
                self.timing = None;
                self.needs_attention = self.trouble.is_some();
            }
        }
        self.trouble.is_some()
    }
}

//! Times long messages, one at a time, for `cost.rs`.
//!
//! The time is from the call until the receiver's answer that it has all bytes. A rendezvous has an answer anyway, for
//! which the send waits; a timed eager message asks for one like a synchronous message does, but its send ends when its
//! data have left. If the answer does not come, the message is given up after [`LONGEST`], or for the next one.
//!
//! A time counts only if
//! - TI1: the receiver was not late, which the answer says ([`envelope::Answer`]): the receive was posted when the
//!   message came and, for an eager message, the receiver was already polling. A message that nobody awaits may lie in
//!   its ring for a long time, as where one rank only sends and the other only receives;
//! - TI2: this rank was polling when the answer came, not computing: a wait has looked at the clock just before;
//! - TI3: no other message came meanwhile, whose handling would be part of the time, except for parts of a longer one.
//!
//! Where only TI2 does not hold, no time is known, but the answer still shows that the receive was posted ahead. That
//! does not count while an early message waits here: this rank may always send first and then receive.
//!
//! A receiver that computes although its receive is posted makes a time longer, as does anything that interrupts either
//! end. `cost.rs` allows for that.

use std::time::{Duration, Instant};

use crate::cost::Timed;
use crate::envelope;
use crate::state::State;
use crate::stats::Stats;

/// A message that is being timed.
#[derive(Debug)]
pub(crate) struct Timing {
    dest: u32,
    timed: Timed,
    /// What the receiver answers: the request of a rendezvous, or a number of its own for an eager message.
    key: u64,
    /// When a wait last looked at the clock.
    looked: Option<Instant>,
    /// Messages that had come before it.
    arrived: u64,
}

/// After this time a message is not timed any more, so that waits need not look at the clock.
const LONGEST: Duration = Duration::from_millis(10);
/// A pause between two looks of a wait that polls, at most; part of the time of a message, one in so many.
const BETWEEN_LOOKS: Duration = Duration::from_nanos(500);
const PART: u32 = 16;

impl State {
    /// Begins to time an eager message. Returns the key by which the receiver answers it.
    pub(crate) fn time_eager(&mut self, dest: u32, timed: Timed) -> u64 {
        self.timed += 1;
        let key = envelope::timed(self.timed);
        self.time(dest, timed, key);
        key
    }

    /// Returns whether this is the key of a timed eager message, of the present one or of one before. The answer may
    /// come when nobody waits for it any more.
    pub(crate) fn was_timed(&self, key: u64) -> bool {
        let number = key >> 32;
        self.timed > 0 && number <= self.timed && key == envelope::timed(number)
    }

    /// Returns how many messages have come, received or early.
    pub(crate) fn arrived(&self) -> u64 {
        let Stats { eager, rendezvous, received, .. } = self.stats;
        received + eager.early + rendezvous.early
    }

    /// Gives up a message that is timed on its way to `dest`, if there is one.
    pub(crate) fn stop_timing(&mut self, dest: u32) {
        if self.timing.as_ref().is_some_and(|timing| timing.dest == dest) {
            self.give_up_timing();
        }
    }

    #[cold]
    fn give_up_timing(&mut self) -> Option<Timing> {
        self.needs_attention = self.trouble.is_some();
        self.timing.take()
    }

    /// Begins to time a message that is answered by `key`.
    pub(crate) fn time(&mut self, dest: u32, timed: Timed, key: u64) {
        let arrived = self.arrived();
        self.timing = Some(Timing { dest, timed, key, looked: None, arrived });
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
        let Some(timing) = self.give_up_timing() else { return };
        let Timing { dest, timed, looked, arrived, .. } = timing;
        let is_undisturbed = !was_late && arrived == self.arrived();
        self.costs.hear(dest);
        let now = Instant::now();
        let took = now.duration_since(timed.since);
        let polled = looked
            .is_some_and(|looked| now.duration_since(looked) < (took / PART).max(BETWEEN_LOOKS));
        if is_undisturbed && (polled || self.matcher.is_early_empty()) {
            self.stats.timed += u64::from(polled);
            self.costs.learn(dest, timed, polled.then_some(took));
        }
    }

    /// Returns whether a handler has found a violation. Each look of a wait asks this, and so notes the time for a
    /// message that is timed.
    #[inline(always)]
    pub(crate) fn has_trouble(&mut self) -> bool {
        self.needs_attention && self.attend()
    }

    #[cold]
    #[inline(never)]
    fn attend(&mut self) -> bool {
        let arrived = self.arrived();
        if let Some(timing) = &mut self.timing {
            let now = Instant::now();
            timing.looked = Some(now);
            let is_disturbed = timing.arrived != arrived;
            if is_disturbed || now.duration_since(timing.timed.since) > LONGEST {
                self.give_up_timing();
            }
        }
        self.trouble.is_some()
    }
}

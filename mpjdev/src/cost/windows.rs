//! Learns by which protocol windows are faster: messages of one size that follow one another to one destination.
//!
//! - WC1: in a trial, two windows go by eager and three by rendezvous, which finds the caches as eager left them. The
//!   periods of the last ones are compared: the time until the next window begins, which contains what the other end
//!   sends meanwhile. Rendezvous is taken once it is clearly faster. If it is not taken yet and an earlier one of its
//!   windows takes much longer than eager, the trial ends with that. Before the first trial has ended, windows go by it
//!   only if it takes less than half of the time for single messages, since eager keeps both ends busy.
//! - WC2: trials become so rare that they cost about one part in a hundred. One follows soon, and others more often
//!   again, once the periods have changed, since the program may do something else now.
//! - WC3: trials are planned for multiples of a power of two on a clock that all ranks share. Where both ends send, both
//!   thus mostly change the protocol at the same time, whatever each has sent before. If only one did, its own messages
//!   would arrive sooner, and those of the other end later. A trial that ends early at one end only does that for two
//!   windows.
//! - WC4: a program may compute between two windows. So the windows of a trial are not compared if one took more than
//!   [`NOT_ALIKE`] times as long as the other.
//! - WC5: a size begins with what is known of a similar one, and its first trial comes later. So a program that sends a
//!   few windows of each size does not try both protocols for every one.

use std::time::Duration;

use transport_lapi::config::Protocol;

use super::{CLEARLY, DOUBTS, per_byte, protocol, saving};

/// The most messages of a window, and the fewest of one whose period counts.
pub(super) const WINDOW: u8 = 64;
const PACED: u8 = 8;
/// The least and the greatest distance between two trials, in windows.
const BETWEEN_TRIALS: [u8; 2] = [16, 128];
/// About how many windows after a change the next trial begins.
const SOON: u8 = 8;
/// By what the difference is divided that a trial makes, except for the first one and the first after a change.
const DIVISOR: i8 = 2;
/// Two windows of a trial are not compared if one takes so many times as long as the other.
const NOT_ALIKE: u32 = 4;
/// By how many hundredths of its length a window by rendezvous must be longer than eager to end a trial before its last
/// window. On a Xeon, the first windows after a change of protocol were longer by 26 hundredths than later ones.
const MUCH_LONGER: i8 = 38;
/// How long no trial follows one whose windows could not be compared.
const NOT_COMPARED: Duration = Duration::from_secs(1);
/// Periods that differ by more hundredths show that the program does something else.
const CHANGED: u8 = 20;

/// Messages of one class that follow one another.
#[derive(Debug, Clone, Copy)]
pub(super) struct Window {
    pub class: usize,
    pub protocol: Protocol,
    part: Part,
    pub messages: u8,
    pub bytes: usize,
    /// When the first one was sent, on the clock that all ranks share.
    since: Duration,
    /// Whether something has come since the last message.
    pub has_ended: bool,
}

/// The windows of one size to one destination.
#[derive(Debug, Clone, Copy)]
pub(super) struct Windows {
    /// By how many hundredths rendezvous shortens windows, if that is known.
    saving: Option<i8>,
    /// By what the difference is divided that the next trial makes to `saving`: 1 or [`DIVISOR`].
    divisor: i8,
    takes_rendezvous: bool,
    /// The period of the eager window of a trial, per byte; 0 if it is not known.
    eager: u32,
    /// The period, in the last trial, of the window by the protocol that was then taken; 0 if it is not known.
    own: u32,
    /// How many windows in a row have had clearly different periods.
    changed: u8,
    /// Windows of the present trial so far; 0 between trials.
    tried: u8,
    /// Windows from the end of the next trial to the one after it, rounded up to a power of two in time.
    distance: u8,
    /// When the next trial begins, in units of [`TICK`].
    next_trial: u32,
}

/// The part of a window in a trial (WC1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// None.
    BetweenTrials,
    /// A window by its protocol before the last one.
    NotLast,
    Last,
}

impl Default for Windows {
    fn default() -> Self {
        Self {
            saving: None,
            divisor: 1,
            takes_rendezvous: false,
            eager: 0,
            own: 0,
            changed: 0,
            tried: 0,
            distance: BETWEEN_TRIALS[0],
            next_trial: 0,
        }
    }
}

impl Windows {
    /// What another destination begins with.
    pub(super) fn between_trials(self) -> Self {
        Self { tried: 0, eager: 0, changed: 0, ..self }
    }

    /// What windows of a similar size and of so many bytes begin with at the time `now`, if anything is known (WC5).
    pub(super) fn for_similar(&self, bytes: usize, now: Duration) -> Option<Self> {
        let Self { takes_rendezvous, own, .. } = *self;
        if self.saving.is_none() || own == 0 {
            return None;
        }
        let mut similar = Self { saving: self.saving, takes_rendezvous, ..Self::default() };
        let period = Duration::from_nanos(u64::from(own).saturating_mul(bytes as u64) / 1_000_000);
        similar.try_after(similar.distance, period, now);
        Some(similar)
    }

    /// Whether nothing has been learned or [taken over](Windows::for_similar) yet, and no trial has begun.
    pub(super) fn is_new(&self) -> bool {
        self.next_trial == 0 && self.tried == 0
    }

    /// Begins a window of the class `class` after the one `before`, if nothing else was sent in between. `guess` is
    /// whether it goes by rendezvous as long as nothing is known.
    pub(super) fn begin(
        &mut self,
        class: usize,
        before: Option<Window>,
        guess: bool,
        now: Duration,
    ) -> Window {
        if let Some(before) = before.filter(|before| before.messages >= PACED) {
            self.learn(before, now);
        }
        let (protocol, part) = self.next(now, guess);
        Window { class, protocol, part, messages: 0, bytes: 0, since: now, has_ended: false }
    }

    /// Returns the protocol of the next window, and its part in a trial.
    fn next(&mut self, now: Duration, guess: bool) -> (Protocol, Part) {
        // Ticks wrap around, and clocks are set. No plan is ever farther ahead than `FARTHEST`.
        let ahead = self.next_trial.wrapping_sub(ticks(now));
        let is_due = self.next_trial == 0 || ahead == 0 || ahead > 2 * FARTHEST;
        self.tried = match self.tried {
            0 if !is_due => {
                let takes_rendezvous = self.saving.map_or(guess, |_| self.takes_rendezvous);
                return (protocol(takes_rendezvous), Part::BetweenTrials);
            }
            tried => (tried + 1) % 5,
        };
        match self.tried {
            1 => (Protocol::Eager, Part::NotLast),
            2 => {
                self.eager = 0;
                (Protocol::Eager, Part::Last)
            }
            3 | 4 => (Protocol::Rendezvous, Part::NotLast),
            _ => {
                // As long as nobody has said how long these windows were.
                self.next_trial = ticks(now + NOT_COMPARED);
                (Protocol::Rendezvous, Part::Last)
            }
        }
    }

    /// Takes note of the period of a window that ends `now`.
    fn learn(&mut self, window: Window, now: Duration) {
        let took = now.saturating_sub(window.since);
        let period = per_byte(took, window.bytes);
        match (window.part, window.protocol) {
            (Part::NotLast, Protocol::Rendezvous) if self.ends_early(period) => {
                self.end_trial(period, took, now);
            }
            (Part::NotLast, _) => {}
            (Part::Last, Protocol::Eager) => self.eager = period,
            (Part::Last, Protocol::Rendezvous) => self.end_trial(period, took, now),
            (Part::BetweenTrials, ..) => {
                let is_other = saving(self.own, period).unsigned_abs() > CHANGED;
                self.changed = if is_other && self.own != 0 { self.changed + 1 } else { 0 };
                if self.changed == DOUBTS {
                    (self.changed, self.own, self.divisor) = (0, 0, 1);
                    self.distance = BETWEEN_TRIALS[0].max(self.distance / 8);
                    self.try_after(SOON, took, now);
                }
            }
        }
    }

    /// Whether a window of this period can be compared with the eager one of the trial (WC4), whose period is known.
    fn is_alike(&self, period: u32) -> bool {
        self.eager / NOT_ALIKE < period && period / NOT_ALIKE < self.eager
    }

    /// Whether a window by rendezvous of this period decides a trial before its last one (WC1).
    fn ends_early(&self, period: u32) -> bool {
        !self.takes_rendezvous && saving(self.eager, period) < -MUCH_LONGER
    }

    /// Ends a trial, of which this was the period of the window by rendezvous that counts. Rendezvous is taken once it is
    /// clearly faster.
    fn end_trial(&mut self, period: u32, took: Duration, now: Duration) {
        if self.is_alike(period) {
            let old = self.saving.unwrap_or(0);
            let saving = old + (saving(self.eager, period) - old) / self.divisor;
            (self.saving, self.divisor) = (Some(saving), DIVISOR);
            self.takes_rendezvous = saving > if self.takes_rendezvous { -CLEARLY } else { CLEARLY };
            self.own = if self.takes_rendezvous { period } else { self.eager };
        }
        (self.tried, self.eager, self.changed) = (0, 0, 0);
        self.try_after(self.distance, took, now);
        self.distance = BETWEEN_TRIALS[1].min(self.distance.saturating_mul(2));
    }

    /// Plans the next trial after `windows` of this period, rounded so that it begins at the same time at other ranks.
    fn try_after(&mut self, windows: u8, period: Duration, now: Duration) {
        let distance = (period.as_nanos() / TICK).min(FARTHEST.into()) as u32 * u32::from(windows);
        let distance = distance.clamp(1, FARTHEST).next_power_of_two();
        self.next_trial = (ticks(now) & !(distance - 1)).wrapping_add(distance).max(1);
    }
}

/// The unit of time of plans, about a microsecond, in nanoseconds.
const TICK: u128 = 1024;

/// The longest time between two trials, in units of [`TICK`]: about 17 seconds.
const FARTHEST: u32 = 1 << 24;

/// A time in units of [`TICK`], which wraps around.
fn ticks(time: Duration) -> u32 {
    (time.as_nanos() / TICK) as u32
}

#[cfg(test)]
mod tests;

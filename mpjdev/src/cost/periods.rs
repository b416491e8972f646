//! Measures how long the program takes from one message to the next, for the messages of one size to one destination.
//!
//! - PM1: periods are measured in pairs just before a burst and at its end (PC3). The shorter one of each pair counts,
//!   since one may be interrupted.
//! - PM2: outside of bursts the mean period of [some](every) messages is measured. What was steady, and is then clearly
//!   longer or shorter several times in a row, shows that the program does something else. One interrupted message
//!   changes one mean, and a program whose periods always differ is never steady.

use std::time::Instant;

use super::{every, per_byte};

/// What the call for a message is to the periods that are measured around bursts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Period {
    /// The beginning of the first one before a burst.
    Begins,
    /// The end of one, before a burst or within it.
    GoesOn { is_burst: bool },
    /// The end of the last one.
    Ends,
    /// None of these, but perhaps the beginning of the first one within a burst.
    Other,
}

/// Periods before a burst and within it (PM1).
#[derive(Debug, Default)]
pub(super) struct AroundBurst {
    /// The beginning of the present one, if they are being measured.
    since: Option<Instant>,
    class: u8,
    /// The shortest before the burst, and within it, per byte of one message; 0 if not known.
    before: u32,
    within: u32,
}

impl AroundBurst {
    /// Takes note of a message of a class. After the last one of a burst, returns the shortest period before the burst
    /// and within it, per byte of one message.
    pub(super) fn measure(
        &mut self,
        class: u8,
        len: usize,
        period: Period,
        now: Instant,
    ) -> Option<[u32; 2]> {
        if period == Period::Begins {
            *self = Self { since: Some(now), class, ..Self::default() };
            return None;
        }
        let since = self.since.as_mut().filter(|_| self.class == class)?;
        let took = per_byte(now - *since, len);
        *since = now;
        let place = match period {
            Period::GoesOn { is_burst: false } => &mut self.before,
            Period::GoesOn { is_burst: true } | Period::Ends => &mut self.within,
            Period::Begins | Period::Other => return None,
        };
        *place = if *place == 0 { took } else { took.min(*place) };
        if period != Period::Ends {
            return None;
        }
        self.since = None;
        Some([self.before, self.within]).filter(|both| !both.contains(&0))
    }
}

/// The beginning of the messages outside of bursts whose mean period is being measured (PM2).
#[derive(Debug, Default)]
pub(super) struct BetweenBursts {
    /// When the first one was sent.
    since: Option<Instant>,
    class: u8,
    /// How many of its class were then to follow until the next burst.
    pause: u16,
}

impl BetweenBursts {
    /// Takes note of [one message of some](every) of a class, after which `pause` more are to follow until the next
    /// burst. Returns the mean period since the one before, per byte of one message, if no others have come in between.
    pub(super) fn measure(
        &mut self,
        class: u8,
        len: usize,
        pause: u16,
        now: Instant,
    ) -> Option<u32> {
        let messages = every(len);
        let goes_on = self.class == class && self.pause == pause + messages;
        let before = std::mem::replace(self, Self { since: Some(now), class, pause });
        let since = before.since.filter(|_| goes_on)?;
        Some(per_byte((now - since) / u32::from(messages), len))
    }
}

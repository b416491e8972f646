//! The values that one can set in the reliable layer, and what it counts.

use std::time::Duration;

/// The largest ACK_THRESHOLD, as in LAPI.
const MOST_UNACKNOWLEDGED: u32 = 30;
/// The longest time before a frame is repeated for the first time.
const LONGEST_RESEND: Duration = Duration::from_secs(60);
/// LAPI's MAX_TIMEOUT: the longest time that a peer may be silent, and that a task may stay at its end.
const MAX_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);

/// How the layer behaves. All tasks of a job may use different values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReliableOptions {
    /// After how many frames a receipt is sent at the latest: LAPI's ACK_THRESHOLD, 1 to 30. One is sent earlier when
    /// a poll finds nothing, when a frame goes to the same task, and after a quarter of `resend`.
    pub ack_threshold: u32,
    /// How long the layer waits for a receipt before it repeats a frame: up to 60 s. It waits twice as long after each
    /// repetition, up to 64 times.
    pub resend: Duration,
    /// LAPI's TIMEOUT: a task whose receipts bring no news for so long, while frames are under way to it, counts as
    /// lost. A task sends receipts only while it is in a call, so this must be longer than any task computes between
    /// two calls: up to a day.
    pub timeout: Duration,
    /// How long a task that leaves waits for receipts of its last frames: up to a day.
    pub linger: Duration,
}

impl Default for ReliableOptions {
    /// LAPI's threshold; 10 ms before the first repetition; 15 minutes of silence; 1 s at the end.
    fn default() -> Self {
        Self {
            ack_threshold: MOST_UNACKNOWLEDGED,
            resend: Duration::from_millis(10),
            timeout: Duration::from_secs(15 * 60),
            linger: Duration::from_secs(1),
        }
    }
}

/// A value of [`ReliableOptions`] that is not legal: LAPI's SET_VAL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OptionsError {
    /// The threshold is not legal.
    #[error("ack_threshold is {asked}: it must be 1 to {MOST_UNACKNOWLEDGED} frames")]
    AckThreshold {
        /// The value.
        asked: u32,
    },
    /// A frame would be repeated at once, or hardly ever.
    #[error("resend is {asked:?}: it must be longer than 0, and at most {LONGEST_RESEND:?}")]
    Resend {
        /// The value.
        asked: Duration,
    },
    /// A task would count as lost at once, or never.
    #[error(
        "timeout is {asked:?}: it must be longer than resend, {resend:?}, and at most {MAX_TIMEOUT:?}"
    )]
    Timeout {
        /// The value.
        asked: Duration,
        /// The time before the first repetition.
        resend: Duration,
    },
    /// The end of a task would take too long.
    #[error("linger is {asked:?}: it must be at most {MAX_TIMEOUT:?}")]
    Linger {
        /// The value.
        asked: Duration,
    },
}

impl ReliableOptions {
    /// Returns the first value that is not legal as an error.
    pub(super) fn check(&self) -> Result<(), OptionsError> {
        let Self { ack_threshold, resend, timeout, linger } = *self;
        if !(1..=MOST_UNACKNOWLEDGED).contains(&ack_threshold) {
            return Err(OptionsError::AckThreshold { asked: ack_threshold });
        }
        if resend.is_zero() || resend > LONGEST_RESEND {
            return Err(OptionsError::Resend { asked: resend });
        }
        if timeout <= resend || timeout > MAX_TIMEOUT {
            return Err(OptionsError::Timeout { asked: timeout, resend });
        }
        if linger > MAX_TIMEOUT {
            return Err(OptionsError::Linger { asked: linger });
        }
        Ok(())
    }

    /// How long a receipt may be put off, and a frame for which there was no room. Well below `resend`, so that the
    /// receipt comes before the frame is repeated.
    pub(super) fn short_delay(&self) -> Duration {
        self.resend / 4
    }
}

/// What the layer has sent and received so far: LAPI's `lapi_statistics_t`. Bytes are those of the callers' heads and
/// bodies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Frames sent, repetitions not included.
    pub packets_sent: u64,
    /// Frames received for the first time.
    pub packets_received: u64,
    /// Bytes in the frames sent, repetitions not included.
    pub bytes_sent: u64,
    /// Bytes in the frames received for the first time.
    pub bytes_received: u64,
    /// Frames repeated because no receipt came in time, or sent late because there was no room.
    pub retransmitted: u64,
    /// Frames received again.
    pub duplicates: u64,
    /// Receipts sent without data. Those that travel with data are not counted.
    pub acks_sent: u64,
    /// Receipts received without data.
    pub acks_received: u64,
    /// Frames refused because they broke the protocol.
    pub refused: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_are_not_legal_are_refused() {
        let legal = ReliableOptions::default();
        assert_eq!(legal.check(), Ok(()));
        for asked in [0, 31] {
            let options = ReliableOptions { ack_threshold: asked, ..legal };
            assert_eq!(options.check(), Err(OptionsError::AckThreshold { asked }));
        }
        for asked in [Duration::ZERO, Duration::MAX] {
            let options = ReliableOptions { resend: asked, ..legal };
            assert_eq!(options.check(), Err(OptionsError::Resend { asked }));
        }
        for asked in [legal.resend, Duration::MAX] {
            let (options, resend) = (ReliableOptions { timeout: asked, ..legal }, legal.resend);
            assert_eq!(options.check(), Err(OptionsError::Timeout { asked, resend }));
        }
        let options = ReliableOptions { linger: Duration::MAX, ..legal };
        assert_eq!(options.check(), Err(OptionsError::Linger { asked: Duration::MAX }));
        let refusal = OptionsError::AckThreshold { asked: 31 }.to_string();
        assert_eq!(refusal, "ack_threshold is 31: it must be 1 to 30 frames");
    }
}

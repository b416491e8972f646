//! TIMEOUT of LAPI_Senv: reports messages that wait in a send queue because their target takes nothing.
//!
//! Hangs on rounds of progress with unfinished work, of which one in [`ROUNDS`] reads the clock, and on threads that
//! sleep, each time they have woken. At the end of a round the send queue has sent what it could, so a program that made
//! no progress for a long time itself is not told that its target has made none. What moves is the number of operations
//! that the send queue has sent, or the part of the first one that has gone.

use std::time::{Duration, Instant};

use crate::error::LapiError;
use crate::progress::hooks::{Position, Positions};

/// Rounds with unfinished work between two looks at the clock.
const ROUNDS: u32 = 256;

/// What is known about the send queues, in the order of their positions.
#[derive(Debug, Default)]
pub(super) struct Timer {
    /// Where a send queue with queued operations stood, and since when.
    stands: Vec<Option<(Position, Instant)>>,
    rounds: u32,
}

impl Timer {
    /// Whether one more round is one after which the clock is read.
    pub fn is_due(&mut self) -> bool {
        self.rounds = self.rounds.wrapping_add(1);
        self.rounds % ROUNDS == 0
    }

    /// Looks for messages that have not moved for `limit`.
    ///
    /// # Errors
    /// [`LapiError::Timeout`] for the first of them.
    pub fn look(
        &mut self,
        send_queues: &mut Positions<'_>,
        limit: Duration,
    ) -> Result<(), LapiError> {
        let (now, mut late) = (Instant::now(), Ok(()));
        for (place, (target, position)) in send_queues.enumerate() {
            if let (Some(lasted), Ok(())) = (self.stands(place, position, now, limit), &late) {
                let seconds = lasted.as_secs();
                late = Err(LapiError::Timeout { target, seconds });
            }
        }
        late
    }

    /// Takes note of where a send queue stands at `now`; `None` if nothing is queued there. Returns for how long it has
    /// stood there, if that is at least `limit`; its time then begins anew.
    fn stands(
        &mut self,
        send_queue: usize,
        position: Option<Position>,
        now: Instant,
        limit: Duration,
    ) -> Option<Duration> {
        if self.stands.len() <= send_queue {
            self.stands.resize(send_queue + 1, None);
        }
        let stands = &mut self.stands[send_queue];
        match (position, *stands) {
            (Some(position), Some((before, since))) if before == position => {
                let lasted = now.saturating_duration_since(since);
                if lasted < limit {
                    return None;
                }
                *stands = Some((position, now));
                Some(lasted)
            }
            (position, _) => {
                *stands = position.map(|position| (position, now));
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lane_that_stands_for_the_limit_is_reported_once_per_limit() {
        let (start, limit) = (Instant::now(), Duration::from_secs(10));
        let mut timer = Timer::default();
        let mut look = |position, second| {
            let now = start + Duration::from_secs(second);
            timer.stands(1, position, now, limit).map(|lasted| lasted.as_secs())
        };
        assert_eq!(look(Some((0, 0)), 0), None);
        assert_eq!(look(Some((0, 0)), 9), None);
        assert_eq!(look(Some((0, 8)), 10), None, "bytes have gone");
        assert_eq!(look(Some((0, 8)), 19), None);
        assert_eq!(look(Some((0, 8)), 21), Some(11));
        assert_eq!(look(Some((0, 8)), 30), None, "the time begins anew");
        assert_eq!(look(Some((1, 8)), 31), None, "an operation has gone");
        assert_eq!(look(None, 41), None, "nothing is queued");
        assert_eq!(look(Some((1, 8)), 50), None);
        assert_eq!(look(Some((1, 8)), 60), Some(10));
    }
}

//! TIMEOUT of LAPI_Senv: reports messages that wait in a lane because their target takes nothing.
//!
//! Called by the session at the end of rounds of progress with unfinished work, of which one in [`ROUNDS`] reads the
//! clock, and by threads that sleep, each time they have woken. At the end of a round the lane has sent what it could,
//! so a program that made no progress for a long time itself is not told that its target has made none. What moves is
//! the number of operations that the lane has sent, or the part of the first one that has gone.

use std::time::{Duration, Instant};

use crate::adapter::{Adapter, Standing, TaskId};
use crate::amsend::Outgoing;
use crate::error::LapiError;
use crate::outbox::Outbox;
use crate::session::{Session, keep_first};

/// Rounds with unfinished work between two looks at the clock.
const ROUNDS: u32 = 256;

/// How far a lane has come: operations that it has sent, and bytes of the next one.
type Position = (u64, u64);

/// What is known about the lanes, by target.
#[derive(Debug, Default)]
pub(crate) struct Timer {
    /// Where a lane with queued operations stood, and since when.
    stands: Vec<Option<(Position, Instant)>>,
    rounds: u32,
}

impl Timer {
    /// Takes note of where a lane stands at `now`; `None` if nothing is queued there. Returns for how long it has stood
    /// there, if that is at least `limit`; its time then begins anew.
    fn look(
        &mut self,
        lane: usize,
        position: Option<Position>,
        now: Instant,
        limit: Duration,
    ) -> Option<Duration> {
        if self.stands.len() <= lane {
            self.stands.resize(lane + 1, None);
        }
        let stands = &mut self.stands[lane];
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

impl<S> Outbox<S> {
    /// How far the lane has come, if operations are queued there.
    fn position(&mut self, target: usize) -> Option<Position> {
        let Self { lanes, messages, .. } = self;
        let lane = &lanes[target];
        let sent = match lane.queue.front()? {
            Outgoing::Message(number) => messages.get_mut(*number).map_or(0, |one| one.sent as u64),
            Outgoing::GetReply { sent, .. } => *sent,
            Outgoing::Short(_) | Outgoing::Control(_) => 0,
        };
        Some((lane.gone, sent))
    }
}

impl<A: Adapter, S> Session<A, S> {
    /// Counts a round with unfinished work, and now and then looks for messages that do not move.
    #[cold]
    pub(crate) fn count_for_timeouts(&mut self) {
        self.timer.rounds = self.timer.rounds.wrapping_add(1);
        if self.timer.rounds % ROUNDS == 0 {
            self.find_timeouts();
        }
    }

    /// How a thread that sleeps with this ticket is published. If TIMEOUT may end its sleep, it may go on although nothing
    /// arrives, so an observer must not take it for blocked.
    pub(crate) fn standing(&self, ticket: u32) -> Standing {
        match self.environment.timeout {
            Some(_) if self.engine.outbox.queued > 0 => Standing::Awake,
            _ => Standing::Asleep { ticket },
        }
    }

    /// Looks for messages that have not moved for the time that TIMEOUT allows, and keeps an error for the first.
    pub(crate) fn find_timeouts(&mut self) {
        let Some(limit) = self.environment.timeout else { return };
        let Self { engine, timer, trouble, .. } = self;
        let now = Instant::now();
        for target in 0..engine.outbox.lanes.len() {
            let position = engine.outbox.position(target);
            if let Some(lasted) = timer.look(target, position, now, limit) {
                let (target, seconds) = (target as TaskId, lasted.as_secs());
                keep_first(trouble, LapiError::Timeout { target, seconds });
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
            timer.look(1, position, now, limit).map(|lasted| lasted.as_secs())
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

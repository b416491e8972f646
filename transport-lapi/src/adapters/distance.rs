//! Estimates whether a peer's processor is near, from the time to load a cache line that the peer has written.
//!
//! Two tasks may run on processors that share a cache or not, and on a virtual machine that changes without notice.
//! What is fast in one case is slow in the other: how long bodies are stored into a ring, and whether both ends of a
//! message copy parts of it. So the producer of a ring times a load of the consumer's line now and then, if the line
//! has been written since the previous load.

use std::time::Duration;

/// One of so many questions may time a load, which takes some 50 ns.
const EVERY: u32 = 8;

/// Least time, including reading the clock, of a load from a distant processor. Measured on AMD EPYC: 30 to 60 ns from
/// a near one, 130 to 180 ns from others.
const FAR: Duration = Duration::from_nanos(100);

/// How many loads in a row must contradict the estimate before it changes: one may have been interrupted.
const DOUBTS: u32 = 2;

/// The estimate for one peer: near, until it is known to be far.
#[derive(Debug, Default)]
pub(crate) struct Distance {
    is_far: bool,
    doubts: u32,
    questions: u32,
}

impl Distance {
    /// Returns whether the peer is far, after timing a load if one is due. `look` returns how long it took, or `None`
    /// if the line had not been written.
    pub(crate) fn ask(&mut self, look: impl FnOnce() -> Option<Duration>) -> bool {
        self.questions = self.questions.wrapping_add(1);
        if self.questions % EVERY == 0 {
            if let Some(took) = look() {
                self.heed(took);
            }
        }
        self.is_far
    }

    fn heed(&mut self, took: Duration) {
        if (took > FAR) == self.is_far {
            self.doubts = 0;
            return;
        }
        self.doubts += 1;
        if self.doubts == DOUBTS {
            *self = Self { is_far: !self.is_far, questions: self.questions, doubts: 0 };
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const NEAR_LOOK: Option<Duration> = Some(Duration::from_nanos(70));
    const FAR_LOOK: Option<Duration> = Some(Duration::from_nanos(300));

    /// Asks until one load has been timed.
    fn ask(distance: &mut Distance, look: Option<Duration>) -> bool {
        let mut looks = 0;
        for _ in 0..EVERY {
            distance.ask(|| {
                looks += 1;
                look
            });
        }
        assert_eq!(looks, 1);
        distance.is_far
    }

    #[test]
    fn a_peer_is_near_until_looks_say_otherwise() {
        let mut distance = Distance::default();
        assert!(!ask(&mut distance, None));
        assert!(!ask(&mut distance, FAR_LOOK));
        assert!(ask(&mut distance, FAR_LOOK));
        assert!(ask(&mut distance, NEAR_LOOK));
        assert!(!ask(&mut distance, NEAR_LOOK));
    }

    #[test]
    fn one_interrupted_look_changes_nothing() {
        let mut distance = Distance::default();
        for _ in 0..10 {
            assert!(!ask(&mut distance, Some(Duration::from_millis(3))));
            assert!(!ask(&mut distance, NEAR_LOOK));
        }
    }

    #[test]
    fn an_unwritten_line_says_nothing() {
        let mut distance = Distance::default();
        assert!(!ask(&mut distance, FAR_LOOK));
        assert!(!ask(&mut distance, None));
        assert!(ask(&mut distance, FAR_LOOK));
        assert!(ask(&mut distance, None));
    }
}

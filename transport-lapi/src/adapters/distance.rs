//! How far away a peer's processor is: what a cache line takes that the peer has written.
//!
//! Two tasks may run on processors that share a cache, or not, and on a virtual machine that changes
//! without notice. What is fast between the ones is slow between the others: how long bodies are stored into a ring,
//! and whether both ends copy a part of them. So the producer of a ring times a look at a line of the consumer's now
//! and then, where the line was written since it was looked at before.

use std::time::Duration;

/// One of so many questions is worth a look: it takes some 50 ns.
const EVERY: u32 = 8;

/// What a look takes at least, reading the clock included, at a line from far away. Measured on AMD EPYC: 30 to 60 ns
/// beside each other, 130 to 180 ns else.
const FAR: Duration = Duration::from_nanos(100);

/// Looks in a row that have to contradict what is believed: one may have been interrupted.
const DOUBTS: u32 = 2;

/// What is believed of one peer. Near, before anything is known.
#[derive(Debug, Default)]
pub(crate) struct Distance {
    is_far: bool,
    doubts: u32,
    questions: u32,
}

impl Distance {
    /// Whether the peer is far, after a look if one is due. `look` answers how long it took, or nothing
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

    /// Asks as often as it takes for one look.
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

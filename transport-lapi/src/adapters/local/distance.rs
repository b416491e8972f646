//! Estimates whether a peer's processor is near, from the time to load a cache line that the peer has written.
//!
//! Two tasks may run on processors that share a cache or not, and on a virtual machine that changes without notice.
//! What is fast in one case is slow in the other: how long bodies are stored into a ring, and whether both ends of a
//! message copy parts of it. So the producer of a ring times a load of the consumer's line now and then, if the line
//! has been written since the previous load.

use std::time::Duration;

use crate::memory::copy::checks::Checks;

/// One of so many questions may time a load. A load and two looks at the clock take 100 to 300 ns, and the peer has to
/// fetch its line back. So the interval starts short, doubles with each load that confirms the estimate, and is short
/// again after one that contradicts it. At its longest, the loads take less than a hundredth of the time of a stream,
/// even of short bodies. After a move to other processors, so many frames may go the slower way.
const SHORTEST: u32 = 8;
const LONGEST: u32 = 1024;

/// Least time, including reading the clock, of a load from a distant processor. Measured on AMD EPYC: 30 to 60 ns from
/// a near one, 130 to 180 ns from others.
const FAR: Duration = Duration::from_nanos(100);

/// The estimate for one peer: near, until it is known to be far.
#[derive(Debug)]
pub(crate) struct Distance {
    is_far: bool,
    /// Questions until the next load.
    left: u32,
    loads: Checks,
}

impl Default for Distance {
    fn default() -> Self {
        Self { is_far: false, left: SHORTEST, loads: Checks::new(SHORTEST, LONGEST) }
    }
}

impl Distance {
    /// Returns whether the peer is far, as far as is known.
    pub(crate) fn is_far(&self) -> bool {
        self.is_far
    }

    /// Times a load if one is due. `look` returns how long it took, or `None` if the line had not been written.
    #[inline(always)]
    pub(crate) fn ask(&mut self, look: impl FnOnce() -> Option<Duration>) {
        self.left -= 1;
        if self.left == 0 {
            self.look(look);
        }
    }

    #[cold]
    fn look(&mut self, look: impl FnOnce() -> Option<Duration>) {
        self.left = match look() {
            Some(took) => {
                self.is_far ^= self.loads.record((took > FAR) == self.is_far);
                self.loads.interval
            }
            None => SHORTEST,
        };
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const NEAR_LOOK: Option<Duration> = Some(Duration::from_nanos(70));
    const FAR_LOOK: Option<Duration> = Some(Duration::from_nanos(300));

    /// Asks until one load has been timed.
    fn ask(distance: &mut Distance, look: Option<Duration>) -> bool {
        questions(distance, look);
        distance.is_far
    }

    /// Asks until one load has been timed, and returns how often.
    fn questions(distance: &mut Distance, look: Option<Duration>) -> u32 {
        let mut timed = false;
        let mut asked = 0;
        while !timed {
            asked += 1;
            distance.ask(|| {
                timed = true;
                look
            });
        }
        asked
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
    fn what_is_confirmed_is_asked_less_often() {
        let mut distance = Distance::default();
        let asked = [NEAR_LOOK; 9].map(|look| questions(&mut distance, look));
        assert_eq!(asked, [8, 16, 32, 64, 128, 256, 512, 1024, 1024]);
        assert_eq!(questions(&mut distance, FAR_LOOK), LONGEST);
        assert_eq!(questions(&mut distance, FAR_LOOK), SHORTEST);
        assert!(distance.is_far);
        assert_eq!([FAR_LOOK; 2].map(|look| questions(&mut distance, look)), [8, 16]);
    }

    #[test]
    fn an_unwritten_line_says_nothing() {
        let mut distance = Distance::default();
        assert!(!ask(&mut distance, FAR_LOOK));
        assert!(!ask(&mut distance, None));
        assert!(ask(&mut distance, FAR_LOOK));
        assert!(ask(&mut distance, None));
        // The next question that may say something comes soon.
        for _ in 0..9 {
            questions(&mut distance, FAR_LOOK);
        }
        assert_eq!(questions(&mut distance, None), LONGEST);
        assert_eq!(questions(&mut distance, FAR_LOOK), SHORTEST);
    }
}

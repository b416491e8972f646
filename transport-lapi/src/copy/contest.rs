//! Which of two ways to copy long bodies is faster here, from the times of copies that have to be made anyway.
//!
//! Processors differ in how their string instruction fetches lines: it is faster than any loop of vector moves on some,
//! and slower on others. Whether the lines come from a near or a distant processor matters, too, and that changes
//! without notice on a virtual machine. So now and then the two ways take turns for a few copies.

use std::time::Duration;

/// A way to copy a long body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// A loop of vector moves with prefetches.
    Vectors,
    /// The C library's copy, which for such lengths is the string instruction on most processors.
    Library,
}

impl Way {
    const fn other(self) -> Self {
        match self {
            Self::Vectors => Self::Library,
            Self::Library => Self::Vectors,
        }
    }
}

/// How many copies of each way a trial times.
const SAMPLES: usize = 8;

/// Copies from one trial to the next: few at first and after a trial that contradicts the present choice, and twice as
/// many after each one that confirms it. At most so many, trials cost less than a hundredth of the time.
const SHORTEST: u32 = 64;
const LONGEST: u32 = 2048;

/// How many trials in a row must contradict the choice before it changes.
const DOUBTS: u32 = 2;

/// The present choice, and the trial that may change it.
#[derive(Debug)]
pub(super) struct Contest {
    choice: Way,
    doubts: u32,
    /// Copies until the next trial.
    left: u32,
    /// Copies from one trial to the next.
    interval: u32,
    /// Bytes of each copy that the trial times.
    len: usize,
    /// How many copies it has timed.
    timed: usize,
    /// Their times, of the present choice and of the other way.
    times: [[Duration; SAMPLES]; 2],
}

impl Contest {
    pub(super) const fn new() -> Self {
        Self {
            choice: Way::Vectors,
            doubts: 0,
            left: SHORTEST,
            interval: SHORTEST,
            len: 0,
            timed: 0,
            times: [[Duration::ZERO; SAMPLES]; 2],
        }
    }

    /// Returns the way for a copy of `len` bytes, and whether the caller has to time it and to call [`Contest::heed`].
    pub(super) fn choose(&mut self, len: usize) -> (Way, bool) {
        if self.left > 0 {
            self.left -= 1;
            return (self.choice, false);
        }
        if self.len != len {
            (self.len, self.timed) = (len, 0);
        }
        let way = if self.is_others_turn() { self.choice.other() } else { self.choice };
        (way, true)
    }

    /// Whether the next copy of a trial takes the other way. The sequence of turns (Thue and Morse's) favours neither
    /// way if every second or fourth copy takes longer, such as the first piece of each message.
    const fn is_others_turn(&self) -> bool {
        self.timed.count_ones() % 2 == 1
    }

    /// Notes how long the copy took that [`Contest::choose`] wanted to be timed.
    pub(super) fn heed(&mut self, took: Duration) {
        self.times[usize::from(self.is_others_turn())][self.timed / 2] = took;
        self.timed += 1;
        if self.timed == 2 * SAMPLES {
            self.decide();
        }
    }

    /// Ends a trial.
    fn decide(&mut self) {
        self.timed = 0;
        let [present, other] = self.times.map(median);
        // By a sixteenth at least, so that equal ways do not take turns.
        if other + other / 16 >= present {
            self.doubts = 0;
            self.interval = LONGEST.min(2 * self.interval);
        } else {
            self.interval = SHORTEST;
            self.doubts += 1;
            if self.doubts == DOUBTS {
                self.choice = self.choice.other();
                self.doubts = 0;
            }
        }
        self.left = self.interval;
    }
}

/// The lower one of the two in the middle: interrupts only lengthen times.
fn median(mut times: [Duration; SAMPLES]) -> Duration {
    times.sort_unstable();
    times[(SAMPLES - 1) / 2]
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEN: usize = 16 << 10;

    fn ns(time: u64) -> Duration {
        Duration::from_nanos(time)
    }

    /// Makes copies that take `cost`, which is told the way and the number of the copy, and returns how many were timed.
    fn copy(contest: &mut Contest, copies: u64, cost: impl Fn(Way, u64) -> u64) -> u32 {
        let mut timed = 0;
        for number in 0..copies {
            let (way, is_timed) = contest.choose(LEN);
            if is_timed {
                contest.heed(ns(cost(way, number)));
                timed += 1;
            }
        }
        timed
    }

    #[test]
    fn the_faster_way_is_chosen_and_kept() {
        for (vectors, library, best) in [(300, 250, Way::Library), (250, 300, Way::Vectors)] {
            let mut contest = Contest::new();
            let cost = |way, _| if way == Way::Vectors { vectors } else { library };
            copy(&mut contest, 400, cost);
            assert_eq!(contest.choice, best);
            copy(&mut contest, 100_000, cost);
            assert_eq!(contest.choice, best);
        }
    }

    #[test]
    fn a_change_is_noticed() {
        let mut contest = Contest::new();
        copy(&mut contest, 100_000, |way, _| if way == Way::Vectors { 300 } else { 250 });
        copy(&mut contest, 2600, |way, _| if way == Way::Vectors { 250 } else { 300 });
        assert_eq!(contest.choice, Way::Vectors);
    }

    #[test]
    fn equal_ways_do_not_take_turns_and_trials_become_rare() {
        let mut contest = Contest::new();
        copy(&mut contest, 10_000, |way, _| if way == Way::Vectors { 260 } else { 250 });
        assert_eq!(contest.choice, Way::Vectors);
        let timed = copy(&mut contest, 100_000, |_, _| 250);
        assert_eq!(contest.choice, Way::Vectors);
        assert!(timed < 1000, "{timed} of 100000 copies were timed");
    }

    #[test]
    fn slow_pieces_at_fixed_places_favour_neither_way() {
        for every in [2, 4, 8] {
            for slow in 0..every {
                let mut contest = Contest::new();
                copy(
                    &mut contest,
                    100_000,
                    |_, number| {
                        if number % every == slow { 1000 } else { 250 }
                    },
                );
                assert_eq!(contest.choice, Way::Vectors, "every {every}th, from {slow} on");
                assert_eq!(contest.doubts, 0, "every {every}th, from {slow} on");
            }
        }
    }

    #[test]
    fn interrupts_change_nothing() {
        let mut contest = Contest::new();
        copy(&mut contest, 100_000, |_, number| if number % 5 == 0 { 40_000 } else { 250 });
        assert_eq!(contest.choice, Way::Vectors);
    }

    #[test]
    fn copies_of_other_lengths_are_not_compared() {
        let mut contest = Contest::new();
        contest.left = 0;
        for _ in 0..100 {
            for (len, time) in [(LEN, 100), (2 * LEN, 200)] {
                assert!(contest.choose(len).1);
                contest.heed(ns(time));
            }
        }
        assert_eq!((contest.choice, contest.interval), (Way::Vectors, SHORTEST));
    }
}

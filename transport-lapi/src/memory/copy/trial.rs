//! Which of two ways to copy long bodies is faster here, from the times of copies that have to be made anyway.
//!
//! Processors differ in how their string instruction fetches lines: it is faster than any loop of vector moves on some,
//! and slower on others. Whether the lines come from a near or a distant processor matters, too, and that changes
//! without notice on a virtual machine. So now and then the two ways take turns for a few copies of one length, and the
//! shortest times are compared, since interrupts and lines that come from farther away only lengthen them.
//!
//! While a piece is copied, the processor prefetches lines of the next one, and how many depends on the way. If each
//! copy went another way than the one before, one way would be credited with what the other has prefetched. So a turn
//! is a run of copies, the first ones of a run do not count, and copies of other lengths go the same way meanwhile.

use std::time::Duration;

use crate::memory::copy::checks::Checks;

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

/// How many copies a trial times: half of them go each way.
const TIMED: u32 = 32;

/// The length of a run, at least: a trial changes ways only after a multiple of so many timed copies.
const RUN: u32 = 8;
/// So many copies at the beginning of each run are timed, but do not count.
const UNCOUNTED: u32 = 2;

/// How many copies of other lengths may come between those of a trial; then it is given up.
const OTHERS: u32 = 64;

/// Copies from one trial to the next: few at first and after a trial that contradicts the present choice, and twice as
/// many after each one that does not. At most so many, trials cost less than a hundredth of the time.
const SHORTEST: u32 = 64;
const LONGEST: u32 = 4096;

/// The present choice, and the trial that may change it.
#[derive(Debug)]
pub(super) struct Trial {
    choice: Way,
    /// Copies until the next trial.
    left: u32,
    checks: Checks,
    /// Bytes of each copy that the trial times.
    len: usize,
    /// How many copies it has timed, and how many of other lengths have come meanwhile.
    timed: u32,
    others: u32,
    /// The shortest times of the present choice and of the other way.
    shortest: [Duration; 2],
}

impl Trial {
    pub(super) const fn new() -> Self {
        Self {
            choice: Way::Vectors,
            left: SHORTEST,
            checks: Checks::new(SHORTEST, LONGEST),
            len: 0,
            timed: 0,
            others: 0,
            shortest: [Duration::MAX; 2],
        }
    }

    /// Returns the way for a copy of `len` bytes, and whether the caller has to time it and to call [`Trial::record`].
    pub(super) fn choose(&mut self, len: usize) -> (Way, bool) {
        if self.left > 0 {
            self.left -= 1;
            return (self.choice, false);
        }
        let way = if self.is_others_turn() { self.choice.other() } else { self.choice };
        if self.timed == 0 {
            self.len = len;
        } else if self.len != len {
            self.others += 1;
            if self.others == OTHERS {
                self.end_trial();
            }
            return (way, false);
        }
        (way, true)
    }

    /// Whether the next copy of a trial takes the other way. Neither way is favoured if every second, fourth or eighth
    /// copy takes longer, such as the first piece of each message, since the runs begin at the same place of such a
    /// pattern. Where one is favoured, a second trial in which the ways have changed places does not agree.
    const fn is_others_turn(&self) -> bool {
        ((self.timed / RUN).count_ones() + self.checks.contradictions) % 2 == 1
    }

    /// Notes how long the copy took that [`Trial::choose`] wanted to be timed.
    pub(super) fn record(&mut self, took: Duration) {
        if self.timed % RUN >= UNCOUNTED {
            let shortest = &mut self.shortest[usize::from(self.is_others_turn())];
            *shortest = took.min(*shortest);
        }
        self.timed += 1;
        if self.timed == TIMED {
            self.decide();
            self.end_trial();
        }
    }

    fn decide(&mut self) {
        let [present, other] = self.shortest;
        // By a sixteenth at least, so that equal ways do not take turns.
        if self.checks.record(other + other / 16 >= present) {
            self.choice = self.choice.other();
        }
    }

    fn end_trial(&mut self) {
        (self.timed, self.others, self.left) = (0, 0, self.checks.interval);
        self.shortest = [Duration::MAX; 2];
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    const LEN: usize = 16 << 10;

    /// Makes copies that take `cost` nanoseconds, which is told the way and the number of the copy. Returns how many
    /// were timed and how many took each way.
    fn copy(
        trial: &mut Trial,
        copies: u64,
        len: impl Fn(u64) -> usize,
        cost: impl Fn(Way, u64) -> u64,
    ) -> (u64, [u64; 2]) {
        let (mut timed, mut ways) = (0, [0; 2]);
        for number in 0..copies {
            let (way, is_timed) = trial.choose(len(number));
            ways[way as usize] += 1;
            let took = Duration::from_nanos(cost(way, number));
            if is_timed {
                trial.record(took);
                timed += 1;
            }
        }
        (timed, ways)
    }

    /// Costs of a copy by each way.
    fn costs(vectors: u64, library: u64) -> impl Fn(Way, u64) -> u64 {
        move |way, _| if way == Way::Vectors { vectors } else { library }
    }

    #[test]
    fn the_faster_way_is_chosen_and_kept() {
        for (vectors, library, best) in [(300, 250, Way::Library), (250, 300, Way::Vectors)] {
            let mut trial = Trial::new();
            copy(&mut trial, 400, |_| LEN, costs(vectors, library));
            assert_eq!(trial.choice, best);
            let (timed, ways) = copy(&mut trial, 100_000, |_| LEN, costs(vectors, library));
            assert_eq!(trial.choice, best);
            assert!(timed < 1000 && ways[best.other() as usize] < 500, "{timed}, {ways:?}");
        }
    }

    #[test]
    fn a_change_is_noticed() {
        let mut trial = Trial::new();
        copy(&mut trial, 100_000, |_| LEN, costs(300, 250));
        copy(&mut trial, 5000, |_| LEN, costs(250, 300));
        assert_eq!(trial.choice, Way::Vectors);
    }

    #[test]
    fn nearly_equal_ways_do_not_take_turns() {
        let mut trial = Trial::new();
        let (_, ways) = copy(&mut trial, 100_000, |_| LEN, costs(260, 250));
        assert!(ways[Way::Library as usize] < 500, "{ways:?}");
    }

    /// Some of the copies take twice as long: every pattern that repeats after up to eight of them. Equal ways may
    /// change then, but rarely, and the slower one of two is mostly not taken.
    #[test]
    fn slow_copies_at_fixed_places_decide_little() {
        let (mut restless, mut wrong, mut patterns) = (0, 0, 0);
        for period in 2..=8 {
            for slow in 0..(1_u64 << period) - 1 {
                let time = |number: u64| 250 * (1 + (slow >> (number % period) & 1));
                let mut trial = Trial::new();
                let (timed, _) = copy(&mut trial, 20_000, |_| LEN, |_, number| time(number));
                restless += u32::from(timed > 1000);
                let cost = |way, number| time(number) * if way == Way::Vectors { 5 } else { 4 };
                let mut trial = Trial::new();
                let (_, ways) = copy(&mut trial, 20_000, |_| LEN, cost);
                wrong += u32::from(ways[Way::Vectors as usize] > 5000);
                patterns += 1;
            }
        }
        assert!(patterns > 500 && restless <= 5 && wrong <= 5, "{restless}, {wrong} of {patterns}");
    }

    /// While the C library copies a piece, the processor prefetches the next one, whichever way that is then copied.
    /// All pieces have one length, or every third is shorter.
    #[test]
    fn no_way_is_credited_with_what_the_other_one_prefetches() {
        for is_mixed in [false, true] {
            let len = |number: u64| LEN << u32::from(is_mixed && number % 3 > 0);
            let before = Cell::new(Way::Vectors);
            let cost = |way, _| match (before.replace(way), way) {
                (Way::Vectors, _) => 600,
                (Way::Library, Way::Vectors) => 290,
                (Way::Library, Way::Library) => 320,
            };
            let (_, ways) = copy(&mut Trial::new(), 20_000, len, cost);
            assert!(ways[Way::Vectors as usize] < 1000, "{ways:?}, mixed: {is_mixed}");
        }
    }

    #[test]
    fn interrupts_change_nothing() {
        let mut trial = Trial::new();
        let often = |_, number| if number % 5 == 0 { 40_000 } else { 250 };
        let (_, ways) = copy(&mut trial, 100_000, |_| LEN, often);
        assert!(ways[Way::Library as usize] < 500, "{ways:?}");
    }

    /// Messages whose last piece is shorter, and two lengths in turn.
    #[test]
    fn other_lengths_neither_prevent_a_trial_nor_count_in_it() {
        for period in [2, 3, 8, 13] {
            let len = |number: u64| LEN << u32::from(number % period != period - 1);
            let cost = |way, number: u64| {
                let time = len(number) as u64 / 64;
                if way == Way::Vectors { time } else { time * 4 / 5 }
            };
            let mut trial = Trial::new();
            let (timed, ways) = copy(&mut trial, 20_000, len, cost);
            assert_eq!(trial.choice, Way::Library, "every {period}th is shorter");
            assert!(timed < 1000 && ways[Way::Vectors as usize] < 2000, "{timed}, {ways:?}");
        }
    }

    #[test]
    fn a_trial_whose_length_does_not_come_again_is_given_up() {
        let mut trial = Trial::new();
        let len = |number: u64| if number == 64 { LEN + 1 } else { LEN };
        copy(&mut trial, 1000, len, costs(300, 250));
        assert_eq!(trial.choice, Way::Library);
    }
}

//! How the clock of another host is read on this one: questions that cross a line, their answers, and what follows from
//! them. Pure; `job` sends the questions.
//!
//! - CH1: what the clock there showed belongs to a moment between the question and the answer. So half of a round trip
//!   bounds the error of its middle, however much one way differs from the other. Of several round trips the shortest
//!   counts.
//! - CH2: clocks are compared before the ranks of the job start, and when all are gone. Both run evenly in between, so
//!   what lies on the straight line between both comparisons has no larger error than the worse of them.

use std::collections::{BTreeMap, VecDeque};

/// Round trips of a comparison.
const ROUNDS: u64 = 12;
/// Hosts that are asked at the same time: answers that wait for each other are longer under way.
const AT_ONCE: usize = 8;

/// A question to a host, and its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RoundTrip {
    /// What the clock here showed when the question left.
    pub(crate) left: u64,
    /// What the clock there showed.
    pub(crate) there: u64,
    /// What the clock here showed when the answer came.
    pub(crate) came: u64,
}

impl RoundTrip {
    fn duration(self) -> u64 {
        self.came.saturating_sub(self.left)
    }

    /// What the clock here showed at the moment of the answer, with an error of at most half of the duration (CH1).
    fn here(self) -> u64 {
        self.left.saturating_add(self.duration() / 2)
    }
}

/// The clock of another host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HostClock {
    begun: RoundTrip,
    ended: RoundTrip,
}

impl HostClock {
    /// Takes two comparisons. `None` if the clock there did not go on between them.
    pub(crate) fn of(begun: RoundTrip, ended: RoundTrip) -> Option<Self> {
        (begun.there < ended.there).then_some(Self { begun, ended })
    }

    /// Returns what the clock here showed when that there showed `there`; for times before the first comparison, that of
    /// the comparison.
    pub(crate) fn here(&self, there: u64) -> u64 {
        let passed = u128::from(there.saturating_sub(self.begun.there));
        let (from, to) = (self.begun.here(), self.ended.here());
        let (all_here, all_there) = (to.saturating_sub(from), self.ended.there - self.begun.there);
        let here = u128::from(from) + passed * u128::from(all_here) / u128::from(all_there);
        u64::try_from(here).unwrap_or(u64::MAX)
    }

    /// Returns how wrong [`HostClock::here`] can be between the comparisons (CH2).
    pub(crate) fn error(&self) -> u64 {
        // One more for the division.
        self.begun.duration().max(self.ended.duration()).div_ceil(2).saturating_add(1)
    }
}

/// The questions of a comparison.
#[derive(Debug, Default)]
pub(crate) struct Questions {
    /// Hosts that have not been asked.
    waiting: VecDeque<u32>,
    /// Hosts that are being asked.
    open: BTreeMap<u32, Asked>,
    /// The shortest round trips of those that have answered all questions.
    answers: BTreeMap<u32, RoundTrip>,
}

#[derive(Debug, Default)]
struct Asked {
    /// The number of the last question.
    round: u64,
    /// When it left, while its answer has not come.
    left: Option<u64>,
    best: Option<RoundTrip>,
}

impl Questions {
    /// Begins a comparison with these hosts.
    pub(crate) fn to(hosts: impl IntoIterator<Item = u32>) -> Self {
        Self { waiting: hosts.into_iter().collect(), ..Self::default() }
    }

    /// Returns the next question, a host and a number, if one is due. It leaves `now`, by the clock here.
    pub(crate) fn next(&mut self, now: u64) -> Option<(u32, u64)> {
        let answered = self.open.iter().find(|(_, asked)| asked.left.is_none());
        let host = match answered {
            Some((host, _)) => *host,
            None if self.open.len() < AT_ONCE => self.waiting.pop_front()?,
            None => return None,
        };
        let asked = self.open.entry(host).or_default();
        asked.round += 1;
        asked.left = Some(now);
        Some((host, asked.round))
    }

    /// Takes an answer, which has come `now`. Returns whether it is one: answers to other questions than the last one mean
    /// nothing.
    pub(crate) fn answered(&mut self, host: u32, round: u64, there: u64, now: u64) -> bool {
        let asked = self.open.get_mut(&host).filter(|asked| asked.round == round);
        let Some((asked, left)) =
            asked.and_then(|asked| asked.left.take().map(|left| (asked, left)))
        else {
            return false;
        };
        let trip = RoundTrip { left, there, came: now };
        let best = asked.best.filter(|best| best.duration() <= trip.duration()).unwrap_or(trip);
        asked.best = Some(best);
        if round == ROUNDS {
            self.open.remove(&host);
            self.answers.insert(host, best);
        }
        true
    }

    /// Asks a host no more.
    pub(crate) fn lost(&mut self, host: u32) {
        self.waiting.retain(|waiting| *waiting != host);
        self.open.remove(&host);
    }

    /// The hosts that have not answered, but for those that are lost.
    pub(crate) fn unanswered(&self) -> Vec<u32> {
        self.open.keys().chain(&self.waiting).copied().collect()
    }

    /// Whether all hosts have answered, but for those that are lost.
    pub(crate) fn are_over(&self) -> bool {
        self.waiting.is_empty() && self.open.is_empty()
    }

    /// The outcome for a host that has answered.
    pub(crate) fn of(&self, host: u32) -> Option<RoundTrip> {
        self.answers.get(&host).copied()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A host whose clock shows other times and runs at another rate, in a world with a time of its own.
    #[derive(Debug, Clone)]
    struct Host {
        offset: u64,
        /// Its ticks in 1,000 ticks of the world.
        rate: u64,
    }

    impl Host {
        fn shows(&self, at: u64) -> u64 {
            self.offset + at * self.rate / 1000
        }
    }

    fn host() -> impl Strategy<Value = Host> {
        (0_u64..1 << 40, 900_u64..1100).prop_map(|(offset, rate)| Host { offset, rate })
    }

    /// The times that a question and its answer are under way.
    fn ways() -> impl Strategy<Value = Vec<(u64, u64)>> {
        prop::collection::vec((1_u64..5000, 1_u64..5000), ROUNDS as usize)
    }

    /// Compares the clocks from this moment of the world on. Returns the outcome, and the moment at which it was there.
    fn compare(here: &Host, there: &Host, mut at: u64, ways: &[(u64, u64)]) -> (RoundTrip, u64) {
        let mut questions = Questions::to([7]);
        let mut shortest = u64::MAX;
        for (way, back) in ways {
            let (host, round) = questions.next(here.shows(at)).expect("not all were answered");
            assert_eq!(questions.next(0), None, "it is under way");
            let (asked, came) = (at + way, at + way + back);
            questions.answered(host, round, there.shows(asked), here.shows(came));
            shortest = shortest.min(here.shows(came) - here.shows(at));
            // An answer that is repeated means nothing.
            questions.answered(host, round, 0, here.shows(at));
            at = came + 3;
        }
        assert!(questions.are_over() && questions.next(0).is_none());
        let trip = questions.of(7).expect("it has answered");
        assert_eq!(trip.duration(), shortest);
        (trip, at)
    }

    proptest! {
        /// Whatever the ways of questions and answers, times of other hosts are as exact as is said, and what happened
        /// before on one host and after that on another one is never the other way round by more than both errors.
        #[test]
        fn times_are_as_exact_as_is_said(
            (here, hosts) in (host(), [host(), host()]),
            (begin, end) in (prop::array::uniform2(ways()), prop::array::uniform2(ways())),
            len in 0_u64..1 << 32,
            events in prop::collection::vec((0_u64..1 << 32, 0_u64..3000), 1..20),
        ) {
            let mut start = 1_000_000;
            let mut begun = Vec::new();
            for (host, ways) in hosts.iter().zip(&begin) {
                let (trip, at) = compare(&here, host, start, ways);
                begun.push(trip);
                start = at;
            }
            let mut at = start + len;
            let mut clocks = Vec::new();
            for ((host, ways), begun) in hosts.iter().zip(&end).zip(begun) {
                let (ended, next) = compare(&here, host, at, ways);
                clocks.push(HostClock::of(begun, ended).expect("its clock goes on"));
                at = next;
            }
            // Clocks of this world show whole numbers, one of which is up to 2 ticks here.
            let exact = |clock: &HostClock| clock.error() + 3;
            for (event, later) in events {
                let event = start + event.min(len);
                let later = (event + later).min(start + len);
                for (host, clock) in hosts.iter().zip(&clocks) {
                    let said = clock.here(host.shows(event));
                    prop_assert!(said.abs_diff(here.shows(event)) <= exact(clock));
                }
                let [from, to] = [0, 1].map(|place| &clocks[place]);
                let (sent, received) =
                    (from.here(hosts[0].shows(event)), to.here(hosts[1].shows(later)));
                prop_assert!(sent <= received + exact(from) + exact(to));
            }
        }

        /// The straight line against one that is drawn tick by tick.
        #[test]
        fn times_lie_on_a_straight_line(
            (left, way) in (0_u64..1000, 0_u64..100),
            (there, ticks, here) in (0_u64..1000, 1_u64..300, 0_u64..300),
        ) {
            let begun = RoundTrip { left, there, came: left + way };
            let (left, there) = (left + here, there + ticks);
            let ended = RoundTrip { left, there, came: left + way };
            let clock = HostClock::of(begun, ended).expect("its clock goes on");
            // Of `ticks` steps there `here` are also taken on this host, as evenly as they can be.
            let (mut now, mut owed) = (begun.left + way / 2, 0);
            for there in begun.there..=begun.there + 2 * ticks {
                prop_assert_eq!(clock.here(there), now);
                owed += here;
                while owed >= ticks {
                    (now, owed) = (now + 1, owed - ticks);
                }
            }
            prop_assert_eq!(clock.here(0), clock.here(begun.there));
            prop_assert_eq!(HostClock::of(ended, begun), None);
        }
    }

    #[test]
    fn few_hosts_are_asked_at_once_and_lost_ones_no_more() {
        let mut questions = Questions::to(0..20);
        let mut asked: Vec<u32> = std::iter::from_fn(|| Some(questions.next(5)?.0)).collect();
        assert_eq!(asked, (0..AT_ONCE as u32).collect::<Vec<_>>());
        questions.lost(3);
        questions.lost(19);
        let left = questions.unanswered();
        assert_eq!(left, (0..19).filter(|host| *host != 3).collect::<Vec<_>>());
        asked.push(questions.next(6).expect("there is room").0);
        assert_eq!(asked.last(), Some(&(AT_ONCE as u32)));
        let mut rounds = [1; 20];
        while !questions.are_over() {
            for host in 0..20 {
                questions.answered(host, rounds[host as usize], 1, 9);
            }
            while let Some((host, round)) = questions.next(7) {
                rounds[host as usize] = round;
            }
        }
        let answered: Vec<u32> = (0..20).filter(|host| questions.of(*host).is_some()).collect();
        assert_eq!((answered, questions.unanswered()), (left, Vec::new()));
    }

    #[test]
    fn anything_can_be_claimed() {
        let trip = |left, there, came| RoundTrip { left, there, came };
        let clock = HostClock::of(trip(9, 0, 3), trip(u64::MAX, u64::MAX, u64::MAX));
        let clock = clock.expect("it goes on");
        assert_eq!(clock.here(0), 9);
        assert_eq!(clock.here(u64::MAX), u64::MAX);
        assert_eq!(clock.error(), 1);
    }
}

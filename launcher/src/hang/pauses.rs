//! For how long a job of several hosts has paused, from what its agents tell: whether it stalls
//! ([`crate::hang::watch`]), or stands still ([`crate::hang::standstill`]). Pure: times are arguments. Owned by
//! [`crate::hang::watcher`].
//!
//! - PS1: all agents are asked in rounds. Each looks at its ranks then, and tells for how long they have paused until that
//!   look, which was after the question and before the answer was read. So at the time of the question the pause of a
//!   host had lasted for what it tells, less the time that its answer took; that of the job is the shortest of them.
//!   Clocks of hosts are not compared.
//! - PS2: the next round begins when a pause that was going on may have lasted long enough. So a job without pauses costs
//!   a question to each host, and an answer, in each time that would be too long.
//! - PS3: hosts whose ranks have no progress to make do not count for a stall, as long as others have. A job stands still
//!   if all its hosts do, and somebody waits in a call on one of them.

use std::time::{Duration, Instant};

use transport_lapi::bootstrap::control::agents::Pause;

use crate::exits::Verdict;
use crate::hang::watcher::{Occasion, Vigilance};

/// See the module's head.
#[derive(Debug)]
pub(crate) struct Pauses {
    /// How long a stall lasts that ends the job.
    stall: Option<Duration>,
    /// How long a standstill lasts that is noted (SS1 of `standstill`).
    standstill: Option<Duration>,
    /// How long the standstill that was noted had lasted in the last round.
    noted: Option<Duration>,
    /// Time between two rounds at the least.
    interval: Duration,
    round: u64,
    /// When the agents were asked that have not all answered.
    asked: Option<Instant>,
    next: Instant,
    hosts: Vec<Host>,
}

/// What is known of a host.
#[derive(Debug, Clone, Copy, Default)]
struct Host {
    is_lost: bool,
    /// Its pause at the time of the question.
    pause: Option<Pause>,
}

impl Pauses {
    /// For a job on so many hosts; `now` it begins.
    pub(crate) fn new(hosts: usize, vigilance: &Vigilance, now: Instant) -> Self {
        let standstill = vigilance.ends_deadlocks.then_some(vigilance.standstill);
        let mut pauses = Self {
            stall: vigilance.stall,
            standstill,
            noted: None,
            interval: vigilance.interval,
            round: 0,
            asked: None,
            next: now,
            hosts: vec![Host::default(); hosts],
        };
        pauses.start_anew(now);
        pauses
    }

    /// Begins anew, after a suspension whose time does not count.
    pub(crate) fn start_anew(&mut self, now: Instant) {
        self.asked = None;
        self.next = now + self.limit().unwrap_or_default();
    }

    /// The shortest pause that is looked for, if any is.
    fn limit(&self) -> Option<Duration> {
        self.stall.into_iter().chain(self.standstill).min()
    }

    /// When agents are to be asked.
    pub(crate) fn next_question(&self) -> Option<Instant> {
        (self.asked.is_none() && self.limit().is_some()).then_some(self.next)
    }

    /// Returns the number of a round in which all agents are to be asked now.
    pub(crate) fn ask(&mut self, now: Instant) -> Option<u64> {
        self.next_question().filter(|at| now >= *at)?;
        self.round += 1;
        self.asked = Some(now);
        self.hosts.iter_mut().for_each(|host| host.pause = None);
        Some(self.round)
    }

    /// Notes the answer of a host (PS1).
    pub(crate) fn answered(&mut self, host: usize, round: u64, pause: Pause, now: Instant) {
        let Some(asked) = self.asked.filter(|_| round == self.round) else { return };
        let late = now.saturating_duration_since(asked).as_nanos() as u64;
        let at_question = |nanos: u64| nanos.saturating_sub(late);
        let (stalled, stood) = (pause.stalled.map(at_question), pause.stood.map(at_question));
        self.hosts[host].pause = Some(Pause { stalled, stood, ..pause });
    }

    /// Notes that a host is out of reach.
    pub(crate) fn lost(&mut self, host: usize) {
        self.hosts[host].is_lost = true;
    }

    /// Returns what a round has found whose answers have all come.
    pub(crate) fn found(&mut self, now: Instant) -> Option<Occasion> {
        let asked = self.asked?;
        if self.hosts.iter().any(|host| !host.is_lost && host.pause.is_none()) {
            return None;
        }
        self.asked = None;
        let stalled = self.stalled();
        let stood = self.stood();
        // A standstill that is shorter than before is another one.
        self.noted = self.noted.filter(|before| stood.is_some_and(|it| it >= *before)).and(stood);
        let due = |limit: Option<Duration>, lasted: Option<Duration>| {
            limit.map(|limit| limit.saturating_sub(lasted.unwrap_or_default()))
        };
        let is_stall = self.stall.zip(stalled).is_some_and(|(limit, lasted)| lasted >= limit);
        let is_standstill =
            self.standstill.zip(stood).is_some_and(|(limit, lasted)| lasted >= limit);
        let is_news = is_standstill && self.noted.is_none();
        if is_news && !is_stall {
            self.noted = stood;
            self.standstill = self.standstill.map(|limit| 2 * limit);
        }
        let next_note = due(self.standstill, stood.filter(|_| self.noted.is_none()));
        let wait = due(self.stall, stalled).into_iter().chain(next_note).min();
        self.next = (asked + wait.unwrap_or_default()).max(now + self.interval);
        match (is_stall, is_news) {
            (true, _) => stalled.map(|lasted| Occasion::End(Verdict::Stalled(lasted))),
            (false, true) => stood.map(Occasion::Standstill),
            (false, false) => None,
        }
    }

    fn answers(&self) -> impl Iterator<Item = Pause> {
        self.hosts.iter().filter(|host| !host.is_lost).filter_map(|host| host.pause)
    }

    fn stalled(&self) -> Option<Duration> {
        self.answers().filter_map(|pause| pause.stalled).min().map(Duration::from_nanos)
    }

    fn stood(&self) -> Option<Duration> {
        let is_waited = self.answers().any(|pause| pause.is_waited);
        let shortest = self.answers().map(|pause| pause.stood).min().flatten();
        shortest.filter(|_| is_waited).map(Duration::from_nanos)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A job of two hosts, which ends after a stall of 9 s, and is noted after a standstill of 30 s.
    struct Job {
        pauses: Pauses,
        start: Instant,
    }

    impl Job {
        fn new(stall: Option<u64>) -> Self {
            let start = Instant::now();
            let stall = stall.map(Duration::from_secs);
            let vigilance = Vigilance { stall, ..Vigilance::default() };
            Self { pauses: Pauses::new(2, &vigilance, start), start }
        }

        /// Asks at this second, and returns what follows from these answers, which are read a second later.
        fn round(&mut self, second: u64, answers: [Pause; 2]) -> Option<Occasion> {
            let at = self.start + Duration::from_secs(second);
            let next = self.pauses.next_question().expect("nothing is open");
            assert!(next <= at, "{next:?} is later than {second} s");
            let round = self.pauses.ask(at).expect("it is time");
            let read = at + Duration::from_secs(1);
            for (host, pause) in answers.into_iter().enumerate() {
                assert_eq!(self.pauses.found(read), None, "an answer is missing");
                self.pauses.answered(host, round, pause, read);
            }
            self.pauses.found(read)
        }

        /// In which second agents are asked next.
        fn next(&self) -> u64 {
            let next = self.pauses.next_question().expect("nothing is open");
            next.duration_since(self.start).as_secs()
        }
    }

    /// A host that paused for so many seconds when it was asked.
    fn paused(stalled: Option<u64>, stood: Option<u64>, is_waited: bool) -> Pause {
        let nanos = |seconds: u64| (seconds + 1) * 1_000_000_000;
        Pause { stalled: stalled.map(nanos), stood: stood.map(nanos), is_waited }
    }

    fn noted(seconds: u64) -> Option<Occasion> {
        Some(Occasion::Standstill(Duration::from_secs(seconds)))
    }

    #[test]
    fn the_shortest_pause_counts() {
        let mut job = Job::new(Some(9));
        assert_eq!(job.next(), 9);
        let host = |seconds| paused(Some(seconds), None, true);
        assert_eq!(job.round(9, [host(9), host(3)]), None);
        assert_eq!(job.next(), 15, "the pause that was going on may be long enough then");
        assert_eq!(job.round(15, [host(1), host(9)]), None);
        let stall = Occasion::End(Verdict::Stalled(Duration::from_secs(9)));
        assert_eq!(job.round(23, [host(9), host(17)]), Some(stall));
    }

    #[test]
    fn hosts_without_progress_to_make_do_not_count_for_a_stall() {
        let mut job = Job::new(Some(9));
        assert_eq!(job.round(9, [Pause::OVER; 2]), None);
        assert_eq!(job.next(), 18);
        let host = paused(Some(9), None, true);
        let stall = Occasion::End(Verdict::Stalled(Duration::from_secs(9)));
        assert_eq!(job.round(18, [Pause::OVER, host]), Some(stall));
    }

    #[test]
    fn a_standstill_is_noted_once_and_the_next_one_later() {
        let mut job = Job::new(None);
        let host = |seconds| paused(None, Some(seconds), true);
        assert_eq!(job.next(), 30);
        assert_eq!(job.round(30, [host(20), host(29)]), None);
        assert_eq!(job.round(40, [host(30), host(39)]), noted(30));
        assert_eq!(job.next(), 100);
        assert_eq!(job.round(100, [host(90), host(99)]), None, "it was noted");
        assert_eq!(job.round(160, [host(20), host(159)]), None, "it is another one");
        assert_eq!(job.round(200, [host(60), host(199)]), noted(60));
    }

    #[test]
    fn a_standstill_is_one_of_all_hosts_on_one_of_which_somebody_waits() {
        let mut job = Job::new(None);
        let nobody = paused(None, Some(40), false);
        let somebody = paused(None, Some(40), true);
        assert_eq!(job.round(40, [nobody; 2]), None);
        assert_eq!(job.round(80, [somebody, paused(None, None, true)]), None);
        assert_eq!(job.round(120, [somebody, Pause::OVER]), noted(40));
        let mut job = Job::new(None);
        assert_eq!(job.round(40, [nobody, somebody]), noted(40));
    }

    #[test]
    fn a_lost_host_is_not_waited_for_and_old_answers_do_not_count() {
        let job = Job::new(Some(9));
        let at = |second| job.start + Duration::from_secs(second);
        let (mut pauses, host) = (job.pauses, paused(Some(20), None, true));
        let old = pauses.ask(at(9)).expect("it is time");
        pauses.start_anew(at(10));
        assert_eq!(pauses.ask(at(18)), None);
        pauses.answered(0, old, host, at(18));
        let new = pauses.ask(at(19)).expect("it is time");
        pauses.answered(0, old, host, at(19));
        pauses.lost(1);
        assert_eq!(pauses.found(at(19)), None);
        pauses.answered(0, new, host, at(19));
        let stall = Occasion::End(Verdict::Stalled(Duration::from_secs(21)));
        assert_eq!(pauses.found(at(19)), Some(stall));
    }
}

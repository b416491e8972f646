//! The records of a job on several hosts, as `mpjrun` gets them from the agents: it compares the clocks of the hosts before
//! the ranks start and when all are gone, and then has the records sent. It waits for no rank, and ranks for none of this.
//! Called by [`super`].
//!
//! - RF1: the records of a host count if all of them have come, and both comparisons with its clock. Otherwise they are
//!   missing, and why is said; those of other hosts count.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use transport_lapi::bootstrap::control::agents::{News, Order};
use transport_lapi::bootstrap::trace::{Clock, Keep, ticks};

use crate::trace::clocks::{HostClock, Questions};
use crate::trace::{HostRecords, Incoming, Memories};

/// What has come from all hosts.
#[derive(Debug)]
pub(crate) struct Fetched {
    pub(crate) hosts: Vec<HostRecords>,
    /// The hosts whose records are missing, and why.
    pub(crate) missing: Vec<(String, String)>,
}

/// What has come from a host.
enum FromHost {
    /// Nothing yet.
    Nothing,
    /// Some records; all, if they were told.
    Some { incoming: Incoming, are_told: bool },
    /// What has come does not count.
    Missing { why: String },
}

/// See the module's head.
pub(super) struct Records {
    clock: Clock,
    /// What ranks keep of their records.
    keep: Keep,
    /// After how long without any news hosts that owe some count as silent.
    silence: Duration,
    /// When news came last.
    heard: Instant,
    hosts: Vec<FromHost>,
    /// The comparison that is under way, or the last one.
    questions: Questions,
    /// The first comparison, once the second one has begun.
    begun: Option<Questions>,
    /// The clocks of hosts that do not have the same as this one.
    clocks: BTreeMap<u32, Clock>,
}

impl Records {
    /// Begins the first comparison, with this number of `hosts`, for a job whose ranks record as these `memories` say.
    pub(super) fn begin(memories: &Memories, hosts: usize, silence: Duration) -> Self {
        Self {
            clock: memories.clock(),
            keep: memories.keep(),
            silence,
            heard: Instant::now(),
            hosts: (0..hosts).map(|_| FromHost::Nothing).collect(),
            questions: Questions::to(0..hosts as u32),
            begun: None,
            clocks: BTreeMap::new(),
        }
    }

    /// Begins the second comparison, with the hosts that are left.
    pub(super) fn compare_again(&mut self) {
        let left = self.hosts.iter().zip(0..).filter(|(host, _)| host.is_awaited());
        let questions = Questions::to(left.map(|(_, place)| place));
        self.begun = Some(std::mem::replace(&mut self.questions, questions));
        self.heard = Instant::now();
    }

    /// The next question, and the host that it is for.
    pub(super) fn next_question(&mut self) -> Option<(u32, Order)> {
        let (host, round) = self.questions.next(ticks(self.clock))?;
        Some((host, Order::AskClock { host, round }))
    }

    /// Whether all hosts have answered in this comparison.
    pub(super) fn are_compared(&self) -> bool {
        self.questions.are_over()
    }

    /// Whether nothing more is waited for.
    pub(super) fn have_come(&self) -> bool {
        !self.hosts.iter().any(FromHost::is_awaited)
    }

    /// Takes news of a host, that of a rank if they are about one, if they are about this. Returns others.
    pub(super) fn hear(&mut self, told: News, host_of: &[usize]) -> Option<News> {
        let is_awaited = match told {
            News::Clock { host, round, ticks: there, is_counter } => {
                let clock = if is_counter { Clock::Counter } else { Clock::System };
                self.clocks.insert(host, clock);
                self.questions.answered(host, round, there, ticks(self.clock))
            }
            News::Records { task, at, bytes } => {
                let host = host_of.get(task as usize);
                host.is_some_and(|host| self.take(*host, |to| to.take(task, at, &bytes)))
            }
            News::RecordsTold { host } => {
                let is_awaited = self.take(host as usize, |_| Ok(()));
                if let Some(FromHost::Some { are_told, .. }) = self.hosts.get_mut(host as usize) {
                    *are_told = true;
                }
                is_awaited
            }
            others => return Some(others),
        };
        // What means nothing puts nothing off: there are so many parts and so many questions.
        if is_awaited {
            self.heard = Instant::now();
        }
        None
    }

    /// Adds to the records of a host. Returns whether they are awaited.
    fn take(
        &mut self,
        place: usize,
        add: impl FnOnce(&mut Incoming) -> Result<(), String>,
    ) -> bool {
        let clock = self.clocks.get(&(place as u32)).copied().unwrap_or(self.clock);
        let Some(host) = self.hosts.get_mut(place) else { return false };
        if matches!(host, FromHost::Nothing) {
            let incoming = Incoming::new(self.keep, clock);
            *host = FromHost::Some { incoming, are_told: false };
        }
        let FromHost::Some { incoming, are_told: false } = host else { return false };
        if let Err(why) = add(incoming) {
            *host = FromHost::Missing { why };
        }
        true
    }

    /// Waits no more for a host.
    pub(super) fn lost(&mut self, host: u32, why: &str) {
        self.questions.lost(host);
        if let Some(host) = self.hosts.get_mut(host as usize).filter(|host| host.is_awaited()) {
            *host = FromHost::Missing { why: why.to_owned() };
        }
    }

    /// Begins to wait for what was recorded.
    pub(super) fn ask(&mut self) {
        self.heard = Instant::now();
    }

    /// Waits no more for hosts that say nothing: in a comparison for those that have not answered.
    pub(super) fn lose_silent(&mut self, why: &str) {
        match self.are_compared() {
            true => self.give_up(why),
            false => self.questions.unanswered().into_iter().for_each(|host| self.lost(host, why)),
        }
    }

    /// Waits no more for anything.
    pub(super) fn give_up(&mut self, why: &str) {
        (0..self.hosts.len() as u32).for_each(|host| self.lost(host, why));
    }

    /// When hosts count as silent if nothing comes, and in which words.
    pub(super) fn deadline(&self) -> (Instant, String) {
        let silence = self.silence.as_secs_f64();
        let why = format!("nothing has come from it for {silence:.0} s (--host-timeout)");
        (self.heard + self.silence, why)
    }

    /// Returns what has come from hosts with these names (RF1).
    pub(super) fn finish(self, names: &[String]) -> Fetched {
        let mut fetched = Fetched { hosts: Vec::new(), missing: Vec::new() };
        let begun = self.begun.unwrap_or_default();
        let clock = |host| HostClock::of(begun.of(host)?, self.questions.of(host)?);
        for ((from, place), name) in self.hosts.into_iter().zip(0..).zip(names) {
            let host = name.clone();
            match (from, clock(place)) {
                (FromHost::Some { incoming, are_told: true }, Some(clock)) => {
                    fetched.hosts.push(HostRecords { host, clock, ranks: incoming.finish() });
                }
                (FromHost::Missing { why }, _) => fetched.missing.push((host, why)),
                _ => {
                    let why = "its clock cannot be compared with that of this host".to_owned();
                    fetched.missing.push((host, why));
                }
            }
        }
        fetched
    }
}

impl FromHost {
    /// Whether more is to come.
    fn is_awaited(&self) -> bool {
        matches!(self, Self::Nothing | Self::Some { are_told: false, .. })
    }
}

#[cfg(test)]
mod tests {
    use crate::trace::TraceChoice;

    use super::*;

    /// The records of hosts `a` to `d`, each with a rank.
    fn records() -> Records {
        let choice = TraceChoice { file: None, memory: 1 << 20, newest: false, details: false };
        let memories = Memories::begin(&choice).expect("no file is opened");
        Records::begin(&memories, 4, Duration::from_secs(5))
    }

    /// Answers all questions but those to some hosts.
    fn compare(records: &mut Records, silent: &[u32], clock: &mut u64) {
        while let Some((host, Order::AskClock { round, .. })) = records.next_question() {
            *clock += 1;
            let told = News::Clock { host, round, ticks: *clock, is_counter: true };
            if !silent.contains(&host) {
                assert_eq!(records.hear(told, &[0, 1, 2, 3]), None);
            }
        }
    }

    fn names() -> [String; 4] {
        ["a", "b", "c", "d"].map(str::to_owned)
    }

    #[test]
    fn records_count_if_all_have_come_and_the_clock_is_known() {
        let (mut records, mut clock) = (records(), 0);
        compare(&mut records, &[], &mut clock);
        assert!(records.are_compared());
        records.lost(3, "its line has ended");
        records.compare_again();
        compare(&mut records, &[2], &mut clock);
        assert!(!records.are_compared());
        records.lose_silent("it is silent");
        assert!(records.are_compared() && !records.have_come());
        for told in [
            News::Records { task: 0, at: 0, bytes: vec![0; 64] },
            News::RecordsTold { host: 0 },
            News::Records { task: 1, at: 0, bytes: vec![0; 64] },
            // What comes behind the end, from nowhere, or too late means nothing.
            News::Records { task: 0, at: 0, bytes: vec![1; 64] },
            News::Records { task: 9, at: 0, bytes: vec![1; 64] },
            News::RecordsTold { host: 9 },
            News::Records { task: 3, at: 0, bytes: vec![1; 64] },
            News::RecordsTold { host: 3 },
        ] {
            assert_eq!(records.hear(told, &[0, 1, 2, 3]), None);
        }
        assert!(!records.have_come());
        records.lose_silent("no more");
        assert!(records.have_come());
        assert_eq!(records.hear(News::Alive, &[]), Some(News::Alive));
        let Fetched { hosts, missing } = records.finish(&names());
        let [host] = &hosts[..] else { panic!("one host: {hosts:?}") };
        assert_eq!((host.host.as_str(), host.ranks.len()), ("a", 1));
        let of = |host: &str, why: &str| (host.to_owned(), why.to_owned());
        assert_eq!(
            missing,
            [of("b", "no more"), of("c", "it is silent"), of("d", "its line has ended")]
        );
    }

    #[test]
    fn a_clock_that_stands_still_cannot_be_compared() {
        let mut records = records();
        (1..4).for_each(|host| records.lost(host, "gone"));
        compare(&mut records, &[], &mut 7);
        records.compare_again();
        while let Some((host, Order::AskClock { round, .. })) = records.next_question() {
            records.hear(News::Clock { host, round, ticks: 3, is_counter: true }, &[0]);
        }
        records.hear(News::RecordsTold { host: 0 }, &[0]);
        let Fetched { hosts, missing } = records.finish(&names());
        assert!(hosts.is_empty() && missing[0].1.contains("cannot be compared"), "{missing:?}");
    }
}

//! A model of a small job with one rank on each host: every interleaving of its ranks, its agents and `mpjrun`, for every
//! program. The one-host model (`watch/tests/model.rs`) shows what an agent may conclude of its own ranks; here an agent
//! compares two looks and no more.
//!
//! A rank that is not in a call may send, take in a frame, go to sleep in a wait, or end. Asleep, it takes in a frame, or
//! offers one again that the network had refused, and may send an answer before it unpublishes its wait. Each frame and
//! each count is a step of its own. News and orders are read in the order in which they were told, at any time later.

use std::collections::HashSet;

use super::*;

/// Which rule is left out, to show that it is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Without {
    Nothing,
    /// Hosts are asked before a deadlock is declared.
    SecondRound,
    /// A host that has moved since answers so.
    Comparison,
    /// The sums of frames are compared.
    Sums,
    /// Offers are counted before they are made.
    Offers,
    /// A rank looks for messages twice between the looks of its agent.
    Looks,
    /// A new stillness voids the round.
    Voiding,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum At {
    Free,
    /// Asleep in a published wait.
    Asleep,
    /// Its wait is still published, but it has found something.
    Found,
    Ended,
}

/// What has happened and is not counted yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Uncounted {
    Nothing,
    Sent,
    Received,
    /// An offer to that rank was counted and has still to be made.
    Offer(u8),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Rank {
    at: At,
    uncounted: Uncounted,
    /// Frames on their way to it.
    frames: u8,
    sent: u8,
    received: u8,
    /// The rank for which a frame was refused.
    refused: Option<u8>,
    /// Whether a wait or a count has changed since its agent looked first.
    changed: bool,
    /// How often it has looked for messages in vain since then, at most twice. The first of these looks may have begun
    /// before.
    looks: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Agent {
    Nothing,
    /// Has looked once.
    Looked,
    /// Has told that its rank is still.
    Told,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Told {
    Still(u8, u8),
    Answer(u64, bool),
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Job {
    ranks: Vec<Rank>,
    agents: Vec<Agent>,
    news: Vec<Vec<Told>>,
    orders: Vec<Vec<u64>>,
    agreement: Agreement,
    /// Frames that may still be sent, offers that may be refused, and ranks that may end.
    sends: u8,
    refusals: u8,
    ends: u8,
}

impl Rank {
    fn is_published(&self) -> bool {
        matches!(self.at, At::Asleep | At::Found)
    }

    /// What its agent sees; a host whose rank has ended is still.
    fn seems_still(&self) -> bool {
        self.is_published() || self.at == At::Ended
    }

    fn changed(&mut self) {
        self.changed = true;
    }
}

impl Job {
    /// A job with these numbers of frames, refusals and ends, whose first rank is awake. The others are too, or sleep.
    fn new(hosts: usize, awake: bool, [sends, refusals, ends]: [u8; 3]) -> Self {
        let rank = |number: usize| Rank {
            at: if awake || number == 0 { At::Free } else { At::Asleep },
            uncounted: Uncounted::Nothing,
            frames: 0,
            sent: 0,
            received: 0,
            refused: None,
            changed: false,
            looks: 0,
        };
        Self {
            ranks: (0..hosts).map(rank).collect(),
            agents: vec![Agent::Nothing; hosts],
            news: vec![Vec::new(); hosts],
            orders: vec![Vec::new(); hosts],
            agreement: Agreement::new(hosts),
            sends,
            refusals,
            ends,
        }
    }

    fn with(&self, rank: usize, change: impl FnOnce(&mut Rank)) -> Self {
        let mut job = self.clone();
        change(&mut job.ranks[rank]);
        job
    }

    /// Appends the job after each step that a rank may take next.
    fn rank_steps(&self, me: usize, without: Without, then: &mut Vec<Self>) {
        let Rank { at, uncounted, frames, refused, looks, .. } = self.ranks[me];
        match uncounted {
            Uncounted::Nothing => {}
            Uncounted::Offer(to) => return self.offer(me, to, then),
            Uncounted::Sent => {
                return then.push(self.with(me, |rank| {
                    (rank.sent, rank.uncounted) = (rank.sent + 1, Uncounted::Nothing);
                    rank.changed();
                }));
            }
            Uncounted::Received => {
                return then.push(self.with(me, |rank| {
                    (rank.received, rank.uncounted) = (rank.received + 1, Uncounted::Nothing);
                    rank.changed();
                }));
            }
        }
        if at == At::Ended {
            return;
        }
        let found = if at == At::Free { At::Free } else { At::Found };
        if frames > 0 {
            then.push(self.with(me, |rank| {
                (rank.frames, rank.at, rank.uncounted) = (frames - 1, found, Uncounted::Received);
            }));
        }
        if let Some(to) = refused {
            self.with(me, |rank| rank.refused = None).begin_offer(me, to, without, then);
        } else if at != At::Asleep && self.sends > 0 {
            for to in (0..self.ranks.len()).filter(|to| *to != me) {
                let job = Self { sends: self.sends - 1, ..self.clone() };
                job.begin_offer(me, to as u8, without, then);
            }
        }
        match at {
            At::Asleep if frames == 0 && refused.is_none() && looks < 2 => {
                then.push(self.with(me, |rank| rank.looks += 1));
            }
            At::Free => {
                then.push(self.with(me, |rank| {
                    rank.at = At::Asleep;
                    rank.changed();
                }));
                if self.ends > 0 {
                    let job = Self { ends: self.ends - 1, ..self.clone() };
                    then.push(job.with(me, |rank| {
                        rank.at = At::Ended;
                        rank.changed();
                    }));
                }
            }
            At::Found => then.push(self.with(me, |rank| {
                rank.at = At::Free;
                rank.changed();
            })),
            At::Asleep | At::Ended => {}
        }
    }

    /// Counts an offer, and makes it later.
    fn begin_offer(&self, me: usize, to: u8, without: Without, then: &mut Vec<Self>) {
        let counted = self.with(me, |rank| rank.uncounted = Uncounted::Offer(to));
        match without {
            Without::Offers => counted.offer(me, to, then),
            _ => then.push(counted.with(me, Rank::changed)),
        }
    }

    /// The network takes a frame or refuses it.
    fn offer(&self, me: usize, to: u8, then: &mut Vec<Self>) {
        let found = if self.ranks[me].at == At::Free { At::Free } else { At::Found };
        let mut taken = self.with(me, |rank| (rank.uncounted, rank.at) = (Uncounted::Sent, found));
        taken.ranks[usize::from(to)].frames += 1;
        then.push(taken);
        if self.refusals == 0 {
            return;
        }
        let job = Self { refusals: self.refusals - 1, ..self.clone() };
        then.push(job.with(me, |rank| {
            (rank.uncounted, rank.refused) = (Uncounted::Nothing, Some(to));
            rank.looks = (rank.looks + u8::from(rank.at == At::Asleep)).min(2);
        }));
    }

    /// Appends the job after each step that the agent of a host may take next.
    fn agent_steps(&self, host: usize, without: Without, then: &mut Vec<Self>) {
        let Rank { at, changed, looks, sent, received, .. } = self.ranks[host];
        let is_still = self.ranks[host].seems_still() && !changed;
        let has_looked = looks == 2 || at == At::Ended || without == Without::Looks;
        let mut job = self.clone();
        match self.agents[host] {
            Agent::Nothing if self.ranks[host].seems_still() => {
                job.agents[host] = Agent::Looked;
                (job.ranks[host].changed, job.ranks[host].looks) = (false, 0);
            }
            Agent::Nothing => {}
            _ if !is_still => job.agents[host] = Agent::Nothing,
            Agent::Looked if !has_looked => {}
            Agent::Looked => {
                job.agents[host] = Agent::Told;
                job.news[host].push(Told::Still(sent, received));
            }
            Agent::Told => {}
        }
        if job != *self {
            then.push(job);
        }
        if let Some(&round) = self.orders[host].first() {
            let mut job = self.clone();
            job.orders[host].remove(0);
            let answer = self.agents[host] == Agent::Told && is_still;
            if !is_still {
                job.agents[host] = Agent::Nothing;
            }
            job.news[host].push(Told::Answer(round, answer || without == Without::Comparison));
            then.push(job);
        }
    }

    /// Appends the job after each step that `mpjrun` may take next. Returns whether it has found a deadlock.
    fn launcher_steps(&self, without: Without, then: &mut Vec<Self>) -> bool {
        for host in 0..self.news.len() {
            let Some(&told) = self.news[host].first() else { continue };
            let mut job = self.clone();
            job.news[host].remove(0);
            match told {
                Told::Still(sent, received) => {
                    let (sent, received) = match without {
                        Without::Sums => (0, 0),
                        _ => (sent.into(), received.into()),
                    };
                    let before = job.agreement.clone();
                    job.agreement.still(host, sent, received);
                    if without == Without::Voiding {
                        let still = job.agreement.hosts[host].still;
                        job.agreement = before;
                        job.agreement.hosts[host].still = still;
                    }
                }
                Told::Answer(round, is_still) => job.agreement.answered(host, round, is_still),
            }
            then.push(job);
        }
        let mut job = self.clone();
        if let Some(round) = job.agreement.ask() {
            if without == Without::SecondRound {
                return true;
            }
            job.orders.iter_mut().for_each(|orders| orders.push(round));
            then.push(job);
        }
        self.agreement.clone().is_reached()
    }

    /// Whether no rank can ever get further. A job whose ranks have all ended is over before it is judged.
    fn is_stuck(&self) -> bool {
        let is_stuck = |rank: &Rank| match rank.at {
            At::Ended => true,
            At::Asleep => rank.frames == 0 && rank.refused.is_none(),
            At::Free | At::Found => false,
        };
        self.ranks.iter().all(is_stuck)
    }

    /// Whether `mpjrun` has to find that: no frame went to or stayed with a rank that has ended (DH6).
    fn is_to_be_found(&self) -> bool {
        self.is_stuck() && self.ranks.iter().all(|rank| rank.frames == 0 && rank.refused.is_none())
    }
}

/// What an exploration has come to.
#[derive(Default)]
struct Outcome {
    found: bool,
    /// A job in which a deadlock was found although a rank gets further.
    wrong: Option<Job>,
    /// A job in deadlock in which that is never found.
    missed: Option<Job>,
}

fn explore(first: Job, without: Without) -> Outcome {
    let mut outcome = Outcome::default();
    let mut seen = HashSet::from([first.clone()]);
    let mut open = vec![first];
    while let Some(job) = open.pop() {
        let mut then = Vec::new();
        let found = job.launcher_steps(without, &mut then);
        if found {
            outcome.found = true;
            if !job.is_stuck() {
                outcome.wrong = Some(job);
                return outcome;
            }
            continue;
        }
        for host in 0..job.ranks.len() {
            job.rank_steps(host, without, &mut then);
            job.agent_steps(host, without, &mut then);
        }
        if then.is_empty() && job.is_to_be_found() {
            outcome.missed = Some(job);
        } else {
            open.extend(then.into_iter().filter(|next| seen.insert(next.clone())));
        }
    }
    outcome
}

#[track_caller]
fn check(job: Job) {
    let Outcome { found, wrong, missed } = explore(job, Without::Nothing);
    assert!(wrong.is_none(), "a rank gets further: {wrong:#?}");
    assert!(missed.is_none(), "never found: {missed:#?}");
    assert!(found, "no deadlock at all");
}

#[test]
fn two_hosts() {
    check(Job::new(2, true, [1, 0, 1]));
    check(Job::new(2, false, [1, 2, 0]));
    check(Job::new(2, false, [2, 0, 0]));
}

#[test]
fn three_hosts() {
    check(Job::new(3, false, [1, 0, 0]));
}

#[test]
#[ignore = "a quarter of a minute without optimisation"]
fn larger_jobs() {
    check(Job::new(2, true, [2, 2, 1]));
    check(Job::new(3, false, [2, 0, 0]));
}

/// The model finds an error where any one of these rules is left out.
#[test]
fn each_part_of_the_protocol_is_needed() {
    let rules = [
        (Without::Sums, Job::new(2, false, [1, 0, 0])),
        (Without::Looks, Job::new(2, false, [1, 1, 0])),
        (Without::Offers, Job::new(2, false, [1, 3, 0])),
        (Without::Comparison, Job::new(2, false, [2, 0, 0])),
        (Without::SecondRound, Job::new(2, false, [2, 0, 0])),
        (Without::Voiding, Job::new(2, false, [3, 0, 0])),
    ];
    for (without, job) in rules {
        assert!(explore(job, without).wrong.is_some(), "{without:?}");
    }
}

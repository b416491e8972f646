//! Whose computation is behind each wait, in the end.
//!
//! A rank that comes late to a message has computed longer than the one that waits, or has itself waited longer, for a
//! third one; then that one is behind it. What two ranks have done is compared from the time on at which they met last,
//! so that a delay is followed over ranks and iterations:
//!
//! ```text
//!  rank 0   compute | recv from 1 ················|            waited, for rank 1, since it had waited for rank 2
//!  rank 1   compute | recv from 2 ·····| compute | send to 0
//!  rank 2   compute, much longer       | send to 1
//!  rank 0 met rank 1 last ^ here
//! ```
//!
//! The length of a wait is the sum of three differences between the late rank and the waiting one: of times outside of
//! calls, of waits, and of times in calls that were no waits. Those that are above 0 share the wait. The part for
//! waits goes to those who caused them, the rest to the late rank.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::meetings::Meetings;
use super::sites::SiteKey;
use super::timeline::{At, Timelines};
use super::waits::Wait;

/// How many earlier waits of a late rank are considered, the last ones.
const MOST_FOLLOWED: usize = 32;
/// How many waits that ended at the same time are followed.
const MOST_DEPTH: usize = 32;
/// How many ranks are kept as causes of one wait; the first of them gets the share of those left out.
const MOST_CAUSES: usize = 8;

/// What one rank has made others wait in the calls of one place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Charge {
    /// The rank that waited.
    pub(super) waiting: usize,
    /// The rank that it waited for.
    pub(super) cause: usize,
    pub(super) site: SiteKey,
    pub(super) nanos: u64,
}

/// What a thread did in some time.
#[derive(Debug, Clone, Copy)]
struct Spent {
    computing: u64,
    waiting: u64,
    moving: u64,
}

/// The waits of one timeline, in their order.
#[derive(Debug, Default)]
struct Line {
    /// Places in the list of all waits.
    waits: Vec<usize>,
    /// The time of the waits before each.
    before: Vec<u64>,
}

/// The ranks behind a wait, with the part of each, which come to the length of the wait.
type Shares = Vec<(usize, u64)>;

struct Search<'a> {
    timelines: &'a Timelines<'a>,
    waits: &'a [Wait],
    /// When the two ranks of each wait had met last.
    met: Vec<u64>,
    lines: Vec<Line>,
}

/// Who is charged in the end: the ranks behind each wait. `waits` are in the order in which they ended.
pub(super) fn roots(timelines: &Timelines<'_>, meetings: &Meetings, waits: &[Wait]) -> Vec<Charge> {
    let met = last_meetings(timelines, meetings, waits);
    let search = Search { timelines, waits, met, lines: lines(timelines, waits) };
    let mut known = vec![None; waits.len()];
    let mut charges = Charges::default();
    for (place, wait) in waits.iter().enumerate() {
        let causes = search.resolve(place, &mut known, 0);
        causes.iter().for_each(|(cause, nanos)| charges.add(timelines, wait.at, *cause, *nanos));
    }
    charges.listed(timelines)
}

/// Who is charged directly: the rank whose call was waited for.
pub(super) fn direct(timelines: &Timelines<'_>, waits: &[Wait]) -> Vec<Charge> {
    let mut charges = Charges::default();
    for wait in waits {
        charges.add(timelines, wait.at, timelines.rank(wait.by), wait.lasted());
    }
    charges.listed(timelines)
}

/// Charges, by the waiting rank, the cause and the number of the site.
#[derive(Debug, Default)]
struct Charges(HashMap<(usize, usize, usize), u64>);

impl Charges {
    fn add(&mut self, timelines: &Timelines<'_>, waiting: At, cause: usize, nanos: u64) {
        let key = (timelines.rank(waiting), cause, timelines.step(waiting).site);
        let sum = self.0.entry(key).or_default();
        *sum = sum.saturating_add(nanos);
    }

    fn listed(self, timelines: &Timelines<'_>) -> Vec<Charge> {
        let charge = |((waiting, cause, site), nanos): ((usize, usize, usize), u64)| {
            let site = timelines.sites[site].clone();
            Charge { waiting, cause, site, nanos }
        };
        let mut charges: Vec<Charge> = self.0.into_iter().map(charge).collect();
        charges.sort_by(|one, other| {
            let key = |charge: &Charge| (charge.waiting, charge.cause);
            key(one).cmp(&key(other)).then_with(|| one.site.cmp(&other.site))
        });
        charges
    }
}

impl Search<'_> {
    /// The ranks behind a wait, which are `known` then. Those of most earlier waits are known already; waits that ended at
    /// the same time are followed to some depth.
    fn resolve<'k>(
        &self,
        place: usize,
        known: &'k mut [Option<Shares>],
        depth: usize,
    ) -> &'k Shares {
        if known[place].is_none() {
            let wait = &self.waits[place];
            // What holds if it is met again on the way, as can be in a trace that is wrong.
            known[place] = Some(vec![(self.timelines.rank(wait.by), wait.lasted())]);
            let earlier = self.earlier(place);
            for (other, _) in &earlier {
                if depth < MOST_DEPTH {
                    self.resolve(*other, known, depth + 1);
                }
            }
            known[place] = Some(self.shares(place, &earlier, known));
        }
        known[place].as_ref().expect("it has just been found")
    }

    /// Divides a wait among those who are behind it.
    fn shares(&self, place: usize, earlier: &[(usize, u64)], known: &[Option<Shares>]) -> Shares {
        let (wait, met) = (&self.waits[place], self.met[place]);
        let late = self.spent(wait.by.timeline, met, wait.until);
        let punctual = self.spent(wait.at.timeline, met, wait.from);
        let excess = |of: fn(&Spent) -> u64| of(&late).saturating_sub(of(&punctual));
        let waiting = excess(|spent| spent.waiting);
        let own = [excess(|spent| spent.computing), excess(|spent| spent.moving)];
        let all = own.iter().fold(waiting, |sum, part| sum.saturating_add(*part));
        let inherited = part(wait.lasted(), waiting, all);
        let mut shares: BTreeMap<usize, u64> = BTreeMap::new();
        let overlaps = earlier.iter().fold(0, |sum: u64, (_, it)| sum.saturating_add(*it));
        let mut given = 0;
        for (other, overlap) in earlier {
            let of_other = part(inherited, *overlap, overlaps);
            for (cause, nanos) in known[*other].iter().flatten() {
                let of_cause = part(of_other, *nanos, self.waits[*other].lasted());
                *shares.entry(*cause).or_default() += of_cause;
                given += of_cause;
            }
        }
        // What is lost by rounding belongs to the others, too.
        let most = shares.iter().max_by_key(|(_, nanos)| **nanos).map(|(cause, _)| *cause);
        let late = self.timelines.rank(wait.by);
        *shares.entry(most.unwrap_or(late)).or_default() += inherited - given;
        *shares.entry(late).or_default() += wait.lasted() - inherited;
        strongest(shares)
    }

    /// The last waits of the late rank since the two had met, each with the time since then.
    fn earlier(&self, place: usize) -> Vec<(usize, u64)> {
        let (wait, met) = (&self.waits[place], self.met[place]);
        let line = &self.lines[wait.by.timeline];
        let end = line.waits.partition_point(|other| self.waits[*other].from < wait.until);
        let overlap = |other: &usize| {
            let earlier = &self.waits[*other];
            (*other, earlier.until.min(wait.until).saturating_sub(earlier.from.max(met)))
        };
        let recent = line.waits[..end].iter().rev().take(MOST_FOLLOWED);
        recent.map(overlap).take_while(|(_, overlap)| *overlap > 0).collect()
    }

    /// What a thread did from one time to another one.
    fn spent(&self, timeline: usize, from: u64, until: u64) -> Spent {
        let line = &self.timelines.all[timeline];
        let from = from.max(line.begin).min(until);
        let calls = line.in_calls(until) - line.in_calls(from);
        let waited = |time| self.waited(timeline, time);
        let waiting = (waited(until) - waited(from)).min(calls);
        Spent { computing: until - from - calls, waiting, moving: calls - waiting }
    }

    /// How long a thread has waited until `time`.
    fn waited(&self, timeline: usize, time: u64) -> u64 {
        let line = &self.lines[timeline];
        let begun = line.waits.partition_point(|place| self.waits[*place].from < time);
        let Some(last) = begun.checked_sub(1) else { return 0 };
        let wait = &self.waits[line.waits[last]];
        line.before[last] + (time.min(wait.until) - wait.from)
    }
}

/// The waits of each timeline. They do not overlap, since steps do not (PF4).
fn lines(timelines: &Timelines<'_>, waits: &[Wait]) -> Vec<Line> {
    let mut lines: Vec<Line> = timelines.all.iter().map(|_| Line::default()).collect();
    for (place, wait) in waits.iter().enumerate() {
        let line = &mut lines[wait.at.timeline];
        let before = match line.waits.last() {
            Some(last) => line.before[line.before.len() - 1] + waits[*last].lasted(),
            None => 0,
        };
        line.waits.push(place);
        line.before.push(before);
    }
    lines
}

/// `amount * of / all`, rounded down; 0 of nothing.
fn part(amount: u64, of: u64, all: u64) -> u64 {
    if all == 0 {
        return 0;
    }
    u64::try_from(u128::from(amount) * u128::from(of.min(all)) / u128::from(all)).unwrap_or(amount)
}

/// At most [`MOST_CAUSES`] of these, which come to the same sum.
fn strongest(causes: BTreeMap<usize, u64>) -> Shares {
    let mut causes: Vec<(usize, u64)> =
        causes.into_iter().filter(|(_, nanos)| *nanos > 0).collect();
    causes.sort_by_key(|(rank, nanos)| (std::cmp::Reverse(*nanos), *rank));
    let rest = causes.split_off(causes.len().min(MOST_CAUSES));
    if let Some(first) = causes.first_mut() {
        first.1 += rest.iter().map(|(_, nanos)| nanos).sum::<u64>();
    }
    causes
}

/// Who met whom: a rank heard of another one, or those of a collective call of each other.
#[derive(Debug, Clone, Copy)]
enum Who {
    Heard { rank: usize, of: usize },
    Gathered(usize),
}

/// For each wait, when the rank that waits had heard last of the late one before: when both had come to a message from
/// that, to a collective call, or to anything else for which it waited. The beginning of the job if it never had.
///
/// Messages in the other direction do not count: the late rank can receive them at a time when the other one has
/// computed what it has still to compute.
fn last_meetings(timelines: &Timelines<'_>, meetings: &Meetings, waits: &[Wait]) -> Vec<u64> {
    let start = |at: At| timelines.step(at).start;
    let heard = |at, of| Who::Heard { rank: timelines.rank(at), of: timelines.rank(of) };
    let messages = meetings.messages.iter().map(|message| {
        let time = start(message.send).max(start(message.receive));
        (time, heard(message.receive, message.send))
    });
    let waited = waits.iter().map(|wait| (wait.until, heard(wait.at, wait.by)));
    let gatherings = meetings.gatherings.iter().enumerate().filter_map(|(place, gathering)| {
        Some((start(*gathering.steps.last()?), Who::Gathered(place)))
    });
    let mut met: Vec<(u64, Who)> = messages.chain(waited).chain(gatherings).collect();
    met.sort_by_key(|(time, _)| *time);
    let mut order: Vec<usize> = (0..waits.len()).collect();
    order.sort_by_key(|place| waits[*place].from);
    let mut last = Last::default();
    let mut met = met.into_iter().peekable();
    let mut times = vec![0; waits.len()];
    for place in order {
        let wait = &waits[place];
        while let Some((time, who)) = met.next_if(|(time, _)| *time <= wait.from) {
            match who {
                Who::Heard { rank, of } => {
                    last.heard.insert((rank, of), time);
                }
                Who::Gathered(gathering) => {
                    let gathering = &meetings.gatherings[gathering];
                    let members = gathering.steps.iter().map(|at| timelines.rank(*at));
                    if let Some(communicator) = gathering.communicator {
                        last.all(communicator, members, time);
                    }
                }
            }
        }
        times[place] = last.of(timelines.rank(wait.at), timelines.rank(wait.by));
    }
    times
}

/// When ranks have met last.
#[derive(Debug, Default)]
struct Last {
    /// When the first rank has heard of the second one.
    heard: HashMap<(usize, usize), u64>,
    communicators: HashMap<u32, u64>,
    /// The communicators of each rank.
    memberships: HashMap<usize, HashSet<u32>>,
}

impl Last {
    fn all(&mut self, communicator: u32, members: impl Iterator<Item = usize>, time: u64) {
        self.communicators.insert(communicator, time);
        for member in members {
            self.memberships.entry(member).or_default().insert(communicator);
        }
    }

    fn of(&self, one: usize, other: usize) -> u64 {
        let heard = self.heard.get(&(one, other));
        let shared = match (self.memberships.get(&one), self.memberships.get(&other)) {
            (Some(one), Some(other)) => one
                .iter()
                .filter(|communicator| other.contains(*communicator))
                .filter_map(|communicator| self.communicators.get(communicator))
                .max(),
            _ => None,
        };
        heard.max(shared).copied().unwrap_or(0)
    }
}

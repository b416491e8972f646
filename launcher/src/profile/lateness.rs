//! Waits, added up by pairs of ranks for messages and by sites for collective calls.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use super::meetings::Meetings;
use super::sites::SiteKey;
use super::timeline::Timelines;
use super::waits::{Wait, Why};

/// Waits for messages of one rank, in the calls of one site of another rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Late {
    /// The rank that was late.
    pub(super) late: usize,
    /// The rank that waited.
    pub(super) waiting: usize,
    /// Where it waited.
    pub(super) site: SiteKey,
    pub(super) times: u64,
    pub(super) waited: u64,
    pub(super) longest: u64,
}

/// The collective calls of one site.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CollectiveSite {
    /// Where the ranks that came last have called.
    pub(super) key: SiteKey,
    pub(super) calls: u64,
    /// How long ranks waited for others in these calls, in all.
    pub(super) waited: u64,
    pub(super) longest: u64,
    /// How long each rank waited that did.
    pub(super) by_rank: BTreeMap<usize, u64>,
    /// How often each rank came last.
    pub(super) last: BTreeMap<usize, u64>,
}

impl CollectiveSite {
    /// The rank that came last most often, and how often it did.
    pub(super) fn usual_last(&self) -> Option<(usize, u64)> {
        let last = self.last.iter().map(|(rank, times)| (*rank, *times));
        last.max_by_key(|(rank, times)| (*times, Reverse(*rank)))
    }

    /// The rank that waited longest in all, and how long.
    pub(super) fn longest_waiting(&self) -> Option<(usize, u64)> {
        let waited = self.by_rank.iter().map(|(rank, nanos)| (*rank, *nanos));
        waited.max_by_key(|(rank, nanos)| (*nanos, Reverse(*rank)))
    }
}

/// Waits for messages, one row for each pair of ranks and site, the longest first.
pub(super) fn of_messages(timelines: &Timelines<'_>, waits: &[Wait], why: Why) -> Vec<Late> {
    let mut sums: HashMap<(usize, usize, usize), Late> = HashMap::new();
    for wait in waits.iter().filter(|wait| wait.why == why) {
        let (late, waiting) = (timelines.rank(wait.by), timelines.rank(wait.at));
        let site = timelines.step(wait.at).site;
        let sum = sums.entry((late, waiting, site)).or_insert_with(|| {
            let site = timelines.sites[site].clone();
            Late { late, waiting, site, times: 0, waited: 0, longest: 0 }
        });
        sum.times += 1;
        sum.waited = sum.waited.saturating_add(wait.lasted());
        sum.longest = sum.longest.max(wait.lasted());
    }
    let mut sums: Vec<Late> = sums.into_values().collect();
    sums.sort_by(|one, other| {
        let order = |late: &Late| (Reverse(late.waited), late.late, late.waiting);
        order(one).cmp(&order(other)).then_with(|| one.site.cmp(&other.site))
    });
    sums
}

/// Collective calls by site, those with the longest waits first.
pub(super) fn of_collectives(
    timelines: &Timelines<'_>,
    meetings: &Meetings,
    waits: &[Wait],
) -> Vec<CollectiveSite> {
    let mut sites: HashMap<usize, CollectiveSite> = HashMap::new();
    let site = |number: usize| {
        let key = timelines.sites[number].clone();
        let (by_rank, last) = (BTreeMap::new(), BTreeMap::new());
        CollectiveSite { key, calls: 0, waited: 0, longest: 0, by_rank, last }
    };
    for gathering in &meetings.gatherings {
        let Some(last) = gathering.steps.last() else { continue };
        let number = timelines.step(*last).site;
        let site = sites.entry(number).or_insert_with(|| site(number));
        site.calls += 1;
        // Who is alone in a call is not late.
        if gathering.steps.len() > 1 {
            *site.last.entry(timelines.rank(*last)).or_default() += 1;
        }
    }
    for wait in waits.iter().filter(|wait| wait.why == Why::Collective) {
        let number = timelines.step(wait.by).site;
        let site = sites.entry(number).or_insert_with(|| site(number));
        site.waited = site.waited.saturating_add(wait.lasted());
        site.longest = site.longest.max(wait.lasted());
        let of_rank = site.by_rank.entry(timelines.rank(wait.at)).or_default();
        *of_rank = of_rank.saturating_add(wait.lasted());
    }
    let mut sites: Vec<CollectiveSite> = sites.into_values().collect();
    sites.sort_by(|one, other| {
        Reverse(one.waited).cmp(&Reverse(other.waited)).then_with(|| one.key.cmp(&other.key))
    });
    sites
}

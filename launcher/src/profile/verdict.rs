//! What dominates a job's time, in a sentence.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::sites::{Site, SiteKey};
use super::words::{bytes, count, fitted, percent, time};
use super::{Charge, Profile, share};
use crate::report::of_ranks;

/// Below this share of time in calls nothing can be gained there.
const LITTLE: f64 = 0.05;
/// Most characters of the name and place of a call.
const MOST_OF_SITE: usize = 70;
/// The share of all waits that the ranks named as their cause come to, at least.
const MOST: f64 = 0.6;

impl Profile {
    /// What dominates, in a sentence.
    pub(super) fn verdict(&self) -> String {
        let [whole, in_calls, waited] =
            [self.sum(|rank| rank.whole), self.sum(|rank| rank.in_calls), self.waited()];
        let calls = share(in_calls, whole);
        if self.sites.is_empty() {
            return "No rank has made a call that was recorded.".to_owned();
        }
        if calls < LITTLE {
            let computing = percent(1.0 - calls);
            return format!("Ranks compute during {computing} of their time: calls cost little.");
        }
        if waited < in_calls / 2 {
            return self.moving(share(in_calls.saturating_sub(waited), whole));
        }
        match self.culprits(waited) {
            Some(culprits) => self.waited_for(&culprits, whole),
            None => self.in_turn(waited, whole),
        }
    }

    /// The fewest ranks that are behind most waits; `None` if these are more than half of all ranks.
    fn culprits(&self, waited: u64) -> Option<Vec<usize>> {
        let mut order: Vec<usize> = (0..self.ranks.len()).collect();
        order.sort_by_key(|rank| Reverse(self.ranks[*rank].caused));
        let mut sum = 0;
        for (place, rank) in order.iter().enumerate() {
            sum = self.ranks[*rank].caused.saturating_add(sum);
            if share(sum, waited) >= MOST {
                let mut culprits = order[..=place].to_vec();
                culprits.sort_unstable();
                return Some(culprits).filter(|culprits| culprits.len() * 2 <= self.ranks.len());
            }
        }
        None
    }

    /// The sentence about a job in which most waits are for these ranks.
    fn waited_for(&self, culprits: &[usize], whole: u64) -> String {
        let names: Vec<usize> =
            culprits.iter().map(|rank| self.ranks[*rank].rank as usize).collect();
        let names = of_ranks(&names);
        let is_meant = |charge: &&Charge| culprits.contains(&charge.cause);
        let waited = self.causes.iter().filter(is_meant).map(|charge| charge.nanos);
        let waited = waited.fold(0, u64::saturating_add);
        let of_all = percent(share(waited, whole));
        let place = self.main_site(|charge| is_meant(&charge)).map_or(String::new(), site);
        let it = if culprits.len() == 1 { "it" } else { "them" };
        let figures = format!("{} in all, {of_all} of the ranks' time", time(waited));
        let computed = match self.excess(culprits) {
            0 => return format!("Most waits were for {names}, longest in {place} ({figures})."),
            excess => format!("{} computed {} longer than", capitalized(&names), time(excess)),
        };
        let whom = match self.ranks.iter().enumerate().find(|(rank, _)| !culprits.contains(rank)) {
            Some((_, other)) if self.ranks.len() == 2 => format!("rank {}, which", other.rank),
            _ => "the others; they".to_owned(),
        };
        format!("{computed} {whom} waited for {it} in {place} ({figures}).")
    }

    /// How much longer than the others these ranks have computed, on average.
    fn excess(&self, culprits: &[usize]) -> u64 {
        let (mut inside, mut outside) = ((0_u128, 0_u128), (0_u128, 0_u128));
        for (place, rank) in self.ranks.iter().enumerate() {
            let sum = if culprits.contains(&place) { &mut inside } else { &mut outside };
            *sum = (sum.0 + u128::from(rank.computing), sum.1 + 1);
        }
        let mean = |(sum, number): (u128, u128)| (sum / number.max(1)) as u64;
        mean(inside).saturating_sub(mean(outside))
    }

    fn in_turn(&self, waited: u64, whole: u64) -> String {
        let place = self.main_site(|_| true).map_or(String::new(), site);
        let most = self.ranks.iter().max_by_key(|rank| (rank.caused, Reverse(rank.rank)));
        let most = most.map_or(String::new(), |rank| {
            let part = percent(share(rank.caused, waited));
            format!("; the most, {part} of it, for rank {}", rank.rank)
        });
        let part = percent(share(waited, whole));
        format!(
            "Ranks wait for each other in turn, {part} of their time, longest in {place}{most}."
        )
    }

    fn moving(&self, part: f64) -> String {
        let moved = |site: &&Site| site.total.saturating_sub(site.waited);
        let Some(most) = self.sites.iter().max_by_key(moved) else { return String::new() };
        let each = match most.bytes / most.calls.max(1) {
            0 => String::new(),
            each => format!(", {} each", bytes(each)),
        };
        format!(
            "Ranks spend {} of their time in calls without waiting for others, most in {} ({}{each}).",
            percent(part),
            site(&most.key),
            count(most.calls, "call", "calls"),
        )
    }

    /// Where ranks waited longest, of the waits that count.
    fn main_site(&self, counts: impl Fn(&Charge) -> bool) -> Option<&SiteKey> {
        let mut sums: HashMap<&SiteKey, u64> = HashMap::new();
        for charge in self.causes.iter().filter(|charge| counts(charge)) {
            let sum = sums.entry(&charge.site).or_default();
            *sum = sum.saturating_add(charge.nanos);
        }
        let most = sums.into_iter().max_by_key(|(site, nanos)| (*nanos, Reverse(*site)));
        most.map(|(site, _)| site)
    }
}

/// The name and place of a call, of a length that suits a sentence.
fn site(key: &SiteKey) -> String {
    fitted(&super::words::site(key), MOST_OF_SITE)
}

fn capitalized(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |first| first.to_uppercase().chain(chars).collect())
}

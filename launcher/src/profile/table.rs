//! The text of a profile for a terminal. It fits a screen of 80 columns and 24 lines: what is left out is on the page.

use std::cmp::Reverse;

use super::words::{bytes, count, fitted, percent, site, time, wrapped};
use super::{Charge, Profile, RankShare, share};
use crate::report::aligned;

/// How every line begins.
const START: &str = "mpjrun: ";
/// Columns behind that.
const WIDTH: usize = 80 - START.len();
/// Most rows about ranks.
const MOST_RANKS: usize = 6;
/// Most rows about calls.
const MOST_SITES: usize = 5;
/// Columns of the name and place of a call, whatever its numbers need.
const LEAST_SITE_WIDTH: usize = 12;
/// Columns between two others.
const GAP: usize = 2;
/// Most lines about who waited because of whom.
const MOST_WAITS: usize = 3;

impl Profile {
    /// The text, which ends with a newline.
    pub(crate) fn text(&self) -> String {
        let mut text = self.headline();
        for line in wrapped(&self.verdict(), WIDTH) {
            text += &format!("{START}{line}\n");
        }
        if self.sites.is_empty() {
            return text;
        }
        text += &aligned(START, &self.rank_rows(), |_| true);
        text += &aligned(START, &self.site_rows(), |column| column > 0);
        text += &self.longest_waits();
        match self.sum(|rank| rank.lost) {
            0 => text,
            lost => {
                let calls = count(lost, "call", "calls");
                text + &format!("{START}not recorded for want of memory: {calls}\n")
            }
        }
    }

    fn headline(&self) -> String {
        let whole = self.sum(|rank| rank.whole);
        let parts = [self.sum(|rank| rank.computing), self.waited(), self.sum(RankShare::moving)];
        let [computing, waiting, moving] = parts.map(|part| percent(share(part, whole)));
        let ranks = count(self.ranks.len() as u64, "rank", "ranks");
        let lasted = time(self.end);
        format!(
            "{START}{ranks}, {lasted}: {computing} computing, {waiting} waiting, {moving} in other calls\n"
        )
    }

    fn rank_rows(&self) -> Vec<Vec<String>> {
        let mut order: Vec<usize> = (0..self.ranks.len()).collect();
        let mut rest = Vec::new();
        if order.len() > MOST_RANKS {
            order.sort_by_key(|rank| Reverse(self.ranks[*rank].caused));
            rest = order.split_off(MOST_RANKS - 1);
            order.sort_unstable();
        }
        let head = ["rank", "computing", "waiting", "other calls", "made others wait"];
        let mut rows = vec![head.map(str::to_owned).to_vec()];
        let row = |name: String, nanos: [u64; 4]| {
            std::iter::once(name).chain(nanos.map(time)).collect::<Vec<String>>()
        };
        rows.extend(order.iter().map(|rank| {
            let share = &self.ranks[*rank];
            row(share.rank.to_string(), numbers(share))
        }));
        if !rest.is_empty() {
            let sum = |sums: [u64; 4], rank: &usize| {
                let more = numbers(&self.ranks[*rank]);
                std::array::from_fn(|column| sums[column].saturating_add(more[column]))
            };
            let means = rest.iter().fold([0; 4], sum).map(|sum| sum / rest.len() as u64);
            rows.push(row(format!("mean of {} others", rest.len()), means));
        }
        rows
    }

    fn site_rows(&self) -> Vec<Vec<String>> {
        let shown = &self.sites[..self.sites.len().min(MOST_SITES)];
        let numbers = shown.iter().map(|site| {
            let [total, waited, longest] = [site.total, site.waited, site.longest].map(time);
            [site.calls.to_string(), total, waited, longest, bytes(site.bytes)]
        });
        let head = ["calls", "total", "waiting", "longest", "bytes"].map(str::to_owned);
        let numbers: Vec<[String; 5]> = std::iter::once(head).chain(numbers).collect();
        let widths = (0..5)
            .filter_map(|column| numbers.iter().map(|row| row[column].chars().count() + GAP).max());
        let left = WIDTH.saturating_sub(widths.sum()).max(LEAST_SITE_WIDTH);
        let names = shown.iter().map(|one| fitted(&site(&one.key), left));
        let names = std::iter::once("call".to_owned()).chain(names);
        names.zip(numbers).map(|(name, row)| std::iter::once(name).chain(row).collect()).collect()
    }

    /// Who waited longest because of whom.
    fn longest_waits(&self) -> String {
        let others = self.causes.iter().filter(|charge| charge.waiting != charge.cause);
        let mut charges: Vec<&Charge> = others.collect();
        charges.sort_by_key(|charge| Reverse(charge.nanos));
        let line = |charge: &&Charge| {
            let [waiting, cause] = [charge.waiting, charge.cause].map(|rank| self.ranks[rank].rank);
            let nanos = time(charge.nanos);
            let start = format!("rank {waiting} waited {nanos} because of rank {cause}, in ");
            let left = WIDTH.saturating_sub(start.chars().count()).max(LEAST_SITE_WIDTH);
            format!("{START}{start}{}\n", fitted(&site(&charge.site), left))
        };
        charges.iter().take(MOST_WAITS).map(line).collect()
    }
}

/// The numbers of a row about a rank.
fn numbers(share: &RankShare) -> [u64; 4] {
    [share.computing, share.waited, share.moving(), share.caused]
}

//! The page of a profile: one HTML file that needs nothing else. maud escapes all texts of the program.

mod matrix;

use std::cmp::Reverse;
use std::collections::BTreeMap;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::lateness::Late;
use super::shares::{PARTS, Part};
use super::sites::Site;
use super::traffic::Amount;
use super::words::{bytes, count, percent, site, time};
use super::{Charge, Profile, RankShare, share};
use matrix::Matrix;

/// The style sheet of the page.
const STYLE: &str = include_str!("page.css");
/// Most rows of a table; those that would follow are counted.
const MOST_ROWS: usize = 40;
/// Most rows about ranks.
const MOST_RANKS: usize = 16;
/// Most rows of the picture of what ranks do when.
const MOST_LINES: usize = 64;

impl Profile {
    /// The page about the job of these commands.
    pub(crate) fn page(&self, command: &str) -> String {
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    title { "Profile of " (command) }
                    style { (PreEscaped(STYLE)) }
                }
                body {
                    header {
                        h1 { "Profile of " (command) }
                        p { (count(self.ranks.len() as u64, "rank", "ranks")) ", " (time(self.end)) }
                    }
                    main {
                        p class="verdict" { (self.verdict()) }
                        (self.lost())
                        @if !self.sites.is_empty() {
                            (self.whole())
                            (self.ranks())
                            (self.course())
                            (self.who_waits())
                            (calls(&self.sites))
                            @if !self.spans.is_empty() { (spans(&self.spans)) }
                            (self.collectives())
                            (self.late("Late senders", "sender", &self.late_senders))
                            (self.late("Late receivers", "receiver", &self.late_receivers))
                            (self.messages())
                        }
                    }
                }
            }
        };
        page.into_string() + "\n"
    }

    fn lost(&self) -> Markup {
        let lost = self.sum(|rank| rank.lost);
        html! {
            @if lost > 0 {
                p { (count(lost, "call was", "calls were")) " not recorded for want of memory." }
            }
        }
    }

    fn whole(&self) -> Markup {
        let parts = [self.sum(|rank| rank.computing), self.waited(), self.sum(RankShare::moving)];
        let whole = self.sum(|rank| rank.whole);
        let [computing, waiting, moving] = parts.map(|part| percent(share(part, whole)));
        html! {
            (bar("bar whole", parts, whole))
            div class="keys" {
                span class="computing" { (computing) " computing (outside of calls)" }
                span class="waiting" { (waiting) " waiting for other ranks" }
                span class="moving" { (moving) " in calls without waiting for others" }
            }
        }
    }

    fn ranks(&self) -> Markup {
        let computing = || self.ranks.iter().map(|rank| rank.computing);
        let most = computing().max().unwrap_or(0);
        let mean = computing().fold(0, u64::saturating_add) / (self.ranks.len() as u64).max(1);
        let longest = self.ranks.iter().map(|rank| rank.whole).max().unwrap_or(0);
        let mut order: Vec<&RankShare> = self.ranks.iter().collect();
        order.sort_by_key(|rank| Reverse(rank.caused));
        let left = order.len().saturating_sub(MOST_RANKS);
        order.truncate(MOST_RANKS);
        order.sort_by_key(|rank| rank.rank);
        html! {
            section {
                h2 { "Ranks" }
                p class="note" {
                    "Imbalance: the rank that computes longest does so " (format!("{:.2}", share(most, mean)))
                    " times as long as ranks do on average (" (time(most)) ", " (time(mean)) ")."
                }
                div class="scroll" { table {
                    thead { tr {
                        th { "rank" } th { "computing" } th { "waiting" } th { "other calls" }
                        th { "in calls" } th { "made others wait" } th {}
                    } }
                    tbody { @for rank in order {
                        @let parts = [rank.computing, rank.waited, rank.moving()];
                        tr {
                            th title=(rank.host) { (rank.rank) }
                            @for part in parts { td { (time(part)) } }
                            td { (percent(share(rank.in_calls, rank.whole))) }
                            td { (time(rank.caused)) }
                            td class="fill" { (bar("bar", parts, longest)) }
                        }
                    } }
                } }
                (more(left, "ranks that made others wait less"))
            }
        }
    }

    /// What the first threads of the ranks do in each part of the time.
    fn course(&self) -> Markup {
        let block = self.ranks.len().div_ceil(MOST_LINES).max(1);
        let width = self.end as f64 / PARTS as f64;
        let row = if self.ranks.len() > 16 { ".7rem" } else { "1.4rem" };
        html! {
            section {
                h2 { "Course of the job" }
                p class="note" { "From left to right: which share of each part of the time a rank waits, and is in other calls." }
                div class="time" style={ "--row: " (row) } {
                    @for ranks in self.ranks.chunks(block) {
                        span { (label(ranks)) }
                        (picture(ranks, width))
                    }
                    span {}
                    div class="axis" { span { "0" } span { (time(self.end)) } }
                }
            }
        }
    }

    fn who_waits(&self) -> Markup {
        let charges = |of: &[Charge]| {
            let mut cells: BTreeMap<(usize, usize), u64> = BTreeMap::new();
            for charge in of {
                let sum = cells.entry((charge.waiting, charge.cause)).or_default();
                *sum = sum.saturating_add(charge.nanos);
            }
            cells
        };
        html! {
            section {
                h2 { "Who waits because of whom" }
                @if self.causes.is_empty() { p { "No rank waited for another one." } }
                @else {
                    p class="note" {
                        "Rows wait, columns are the cause: a rank that is late since it had waited itself passes that on to the rank that it had waited for."
                    }
                    (Matrix::new(&self.ranks, &charges(&self.causes)).html("of-waits", time))
                    details {
                        summary { "Who waits for whom directly" }
                        (Matrix::new(&self.ranks, &charges(&self.direct)).html("of-waits", time))
                    }
                }
            }
        }
    }

    fn collectives(&self) -> Markup {
        let left = self.collectives.len().saturating_sub(MOST_ROWS);
        let number = |rank: usize| self.ranks[rank].rank;
        html! {
            @if !self.collectives.is_empty() { section {
                h2 { "Collective calls" }
                p class="note" { "How long ranks waited in them for those that came later." }
                div class="scroll" { table class="calls" {
                    thead { tr {
                        th { "call of the last rank" } th { "calls" } th { "waiting" } th { "longest" }
                        th { "usually last" } th { "waited longest" }
                    } }
                    tbody { @for one in self.collectives.iter().take(MOST_ROWS) {
                        tr {
                            th { (site(&one.key)) }
                            td { (one.calls) }
                            td { (time(one.waited)) }
                            td { (time(one.longest)) }
                            td { @if let Some((rank, times)) = one.usual_last() {
                                "rank " (number(rank)) ", " (count(times, "time", "times"))
                            } }
                            td { @if let Some((rank, nanos)) = one.longest_waiting() {
                                "rank " (number(rank)) ", " (time(nanos))
                            } }
                        }
                    } }
                } }
                (more(left, "places of collective calls with shorter waits"))
            } }
        }
    }

    fn late(&self, title: &str, who: &str, rows: &[Late]) -> Markup {
        let number = |rank: usize| self.ranks[rank].rank;
        html! {
            @if !rows.is_empty() { section {
                h2 { (title) }
                div class="scroll" { table class="calls" {
                    thead { tr {
                        th { "waiting call" } th { "late " (who) } th { "waiting rank" } th { "times" }
                        th { "waiting" } th { "longest" }
                    } }
                    tbody { @for row in rows.iter().take(MOST_ROWS) {
                        tr {
                            th { (site(&row.site)) }
                            td { (number(row.late)) }
                            td { (number(row.waiting)) }
                            td { (row.times) }
                            td { (time(row.waited)) }
                            td { (time(row.longest)) }
                        }
                    } }
                } }
                (more(rows.len().saturating_sub(MOST_ROWS), "rows with shorter waits"))
            } }
        }
    }

    fn messages(&self) -> Markup {
        let all = self.traffic.all();
        let most = self.traffic.sizes.values().map(|amount| amount.messages).max().unwrap_or(0);
        let cells = |of: fn(&Amount) -> u64| {
            let pairs = self.traffic.pairs.iter().map(|(pair, amount)| (*pair, of(amount)));
            pairs.collect::<BTreeMap<(usize, usize), u64>>()
        };
        html! {
            section {
                h2 { "Messages" }
                p { (count(all.messages, "message", "messages")) " with " (bytes(all.bytes)) ", without those of collective calls." }
                @if all.messages > 0 {
                    p class="note" { "Bytes: rows send, columns receive." }
                    (Matrix::new(&self.ranks, &cells(|amount| amount.bytes)).html("of-bytes", bytes))
                    details {
                        summary { "Numbers of messages" }
                        (Matrix::new(&self.ranks, &cells(|amount| amount.messages)).html("of-bytes", |number| number.to_string()))
                    }
                    h2 { "Sizes" }
                    div class="scroll" { table {
                        thead { tr { th { "bytes" } th { "messages" } th { "together" } th {} } }
                        tbody { @for (digits, amount) in &self.traffic.sizes {
                            tr {
                                th { (range(*digits)) }
                                td { (amount.messages) }
                                td { (bytes(amount.bytes)) }
                                td class="fill" { (bar("bar", [0, 0, amount.messages], most)) }
                            }
                        } }
                    } }
                }
            }
        }
    }
}

fn calls(sites: &[Site]) -> Markup {
    let longest = sites.iter().map(|site| site.total).max().unwrap_or(0);
    html! {
        section {
            h2 { "Calls" }
            div class="scroll" { table class="calls" {
                thead { tr {
                    th { "call" } th { "calls" } th { "total" } th { "waiting" } th { "mean" } th { "longest" }
                    th { "bytes" } th {}
                } }
                tbody { @for one in sites.iter().take(MOST_ROWS) {
                    tr {
                        th { (site(&one.key)) }
                        td { (one.calls) }
                        td { (time(one.total)) }
                        td { (time(one.waited)) }
                        td { (time(one.mean())) }
                        td { (time(one.longest)) }
                        td { (bytes(one.bytes)) }
                        td class="fill" {
                            (bar("bar", [0, one.waited, one.total.saturating_sub(one.waited)], longest))
                        }
                    }
                } }
            } }
            (more(sites.len().saturating_sub(MOST_ROWS), "with less time"))
        }
    }
}

fn spans(spans: &[Site]) -> Markup {
    let longest = spans.iter().map(|span| span.total).max().unwrap_or(0);
    html! {
        section {
            h2 { "Spans of the program" }
            div class="scroll" { table class="calls" {
                thead { tr {
                    th { "span" } th { "times" } th { "total" } th { "mean" } th { "longest" } th {}
                } }
                tbody { @for one in spans.iter().take(MOST_ROWS) {
                    tr {
                        th { (site(&one.key)) }
                        td { (one.calls) }
                        td { (time(one.total)) }
                        td { (time(one.mean())) }
                        td { (time(one.longest)) }
                        td class="fill" { (bar("bar", [one.total, 0, 0], longest)) }
                    }
                } }
            } }
            (more(spans.len().saturating_sub(MOST_ROWS), "with less time"))
        }
    }
}

/// The line about rows that are left out.
fn more(left: usize, which: &str) -> Markup {
    html! { @if left > 0 { p class="note" { "and " (left) " more " (which) } } }
}

/// A bar with parts for computing, waiting and moving data, of a length in proportion to `whole`.
fn bar(class: &str, parts: [u64; 3], whole: u64) -> Markup {
    let shares = parts.map(|part| share(part, whole));
    let rest = (1.0 - shares.iter().sum::<f64>()).max(0.0);
    let style = |share: f64| format!("--part: {share:.4}");
    html! {
        div class=(class) aria-hidden="true" {
            @for (class, share) in ["computing", "waiting", "moving"].iter().zip(shares) {
                @if share > 0.0 { i class=(class) style=(style(share)) {} }
            }
            @if rest > 0.0 { i style=(style(rest)) {} }
        }
    }
}

/// `rank 3`, or `ranks 0-7` for several in one row.
fn label(ranks: &[RankShare]) -> String {
    match ranks {
        [first, .., last] => format!("ranks {}-{}", first.rank, last.rank),
        _ => ranks.iter().map(|rank| format!("rank {}", rank.rank)).collect(),
    }
}

/// What ranks do in each part of the time, on average, as areas above each other.
fn picture(ranks: &[RankShare], width: f64) -> Markup {
    let mean = |place: usize, of: fn(&Part) -> u64| {
        let sum: f64 = ranks.iter().map(|rank| of(&rank.parts[place]) as f64).sum();
        if width > 0.0 { (sum / width / ranks.len() as f64).min(1.0) } else { 0.0 }
    };
    let area = |of: fn(&Part) -> u64| {
        let steps = (0..PARTS).map(|place| format!("V{:.3}h1", 1.0 - mean(place, of)));
        format!("M0 1{}V1Z", steps.collect::<String>())
    };
    html! {
        svg viewBox={ "0 0 " (PARTS) " 1" } preserveAspectRatio="none" aria-hidden="true" {
            path class="moving" d=(area(|part| part.in_calls)) {}
            path class="waiting" d=(area(|part| part.waited)) {}
        }
    }
}

/// The lengths with a number of binary digits.
fn range(digits: u32) -> String {
    match digits {
        0 => "0 B".to_owned(),
        1 => "1 B".to_owned(),
        _ => {
            let from = 1_u64 << (digits - 1);
            format!("{} - {}", bytes(from), bytes((from - 1) + from))
        }
    }
}

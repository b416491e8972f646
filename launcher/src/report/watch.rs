//! The block of `mpjrun --watch`: what each rank does, what it sends, and its memory. In a large job ranks that do the
//! same share a row. Nobody is asked for it, so the members of communicators are not known.

use std::time::Duration;

use transport_lapi::bootstrap::control::MessageTotals;

use super::aligned;
use super::collective_arrivals::absent;
use super::format::{call, operation_with_peer, ranges, ranks};
use super::standing::{self, Standing};
use super::table::gather;
use crate::exits::ExitLog;
use crate::hang::snapshot::Snapshot;

/// Most rows. A job of more ranks has one row for all that do the same.
const MAX_ROWS: usize = 16;
/// The time, in nanoseconds, that rates are of at least, unless the job has just begun.
const SPAN: u64 = 900_000_000;

const HEAD: [&str; 5] = ["rank", "sent/s", "bytes/s", "memory", "does"];

/// The rates of a job, from what its ranks had sent at looks before.
#[derive(Debug, Default)]
pub(crate) struct Rates {
    /// When, by the monotonic clock; 0 before the first look.
    at: u64,
    /// What each had sent then.
    before: Vec<Option<MessageTotals>>,
}

/// What a row shows of its ranks.
#[derive(Debug, Clone, Copy, Default)]
struct Numbers {
    sent: Option<u64>,
    bytes: Option<u64>,
    memory: Option<u64>,
}

impl Numbers {
    fn plus(self, other: Self) -> Self {
        let sum = |one: Option<u64>, other: Option<u64>| match (one, other) {
            (Some(one), Some(other)) => Some(one.saturating_add(other)),
            (one, other) => one.or(other),
        };
        Self {
            sent: sum(self.sent, other.sent),
            bytes: sum(self.bytes, other.bytes),
            memory: sum(self.memory, other.memory),
        }
    }
}

impl Rates {
    /// Returns the block, with the rates since a look before, or since the start of the job.
    pub(crate) fn block(&mut self, exit_log: &ExitLog, snapshot: &Snapshot) -> String {
        let standings = standing::of_all(exit_log, snapshot, None);
        let since = if self.at == 0 { exit_log.start() } else { self.at };
        let span = snapshot.at.saturating_sub(since);
        let totals = |rank: usize| {
            let left = exit_log.records()[rank].counters.map(MessageTotals::from);
            left.or(snapshot.usage(rank).totals)
        };
        let totals: Vec<_> = (0..standings.len()).map(totals).collect();
        let numbers = |rank: usize| {
            let before = self.before.get(rank).copied().flatten().unwrap_or_default();
            let rate = |now: u64, before: u64| per_second(now.saturating_sub(before), span);
            let now = totals[rank].filter(|_| standings[rank].is_alive);
            Numbers {
                sent: now.map(|now| rate(now.sent, before.sent)),
                bytes: now.map(|now| rate(now.bytes, before.bytes)),
                memory: snapshot.usage(rank).memory.filter(|_| standings[rank].is_alive),
            }
        };
        let numbers: Vec<Numbers> = (0..standings.len()).map(numbers).collect();
        let after = snapshot.at.saturating_sub(exit_log.start());
        let text = head(&numbers, after) + &rows(&standings, &numbers, snapshot.at);
        if self.at == 0 || span >= SPAN {
            (self.at, self.before) = (snapshot.at, totals);
        }
        text
    }
}

/// The line about the job.
fn head(numbers: &[Numbers], after: u64) -> String {
    let sum = numbers.iter().copied().fold(Numbers::default(), Numbers::plus);
    let noun = if numbers.len() == 1 { "rank" } else { "ranks" };
    format!(
        "{} {noun}, {} s: {} messages/s, {}B/s, {}B of memory\n",
        numbers.len(),
        Duration::from_nanos(after).as_secs(),
        short(sum.sent),
        short(sum.bytes),
        short(sum.memory)
    )
}

fn rows(standings: &[Standing<'_>], numbers: &[Numbers], at: u64) -> String {
    let mut groups: Vec<(String, Vec<usize>)> = Vec::new();
    let is_small = standings.len() <= MAX_ROWS;
    for rank in 0..standings.len() {
        match is_small {
            true => groups.push((does(rank, standings, Some(at)), vec![rank])),
            false => gather(&mut groups, does(rank, standings, None), rank),
        }
    }
    let rest: Vec<usize> = groups.iter().skip(MAX_ROWS).flat_map(|(_, of)| of.clone()).collect();
    groups.truncate(MAX_ROWS);
    let mut lines = vec![HEAD.map(str::to_owned).to_vec()];
    for (does, of) in groups {
        let sum = of.iter().map(|rank| numbers[*rank]).fold(Numbers::default(), Numbers::plus);
        let Numbers { sent, bytes, memory } = sum;
        lines.push(vec![ranges(&of), short(sent), short(bytes), short(memory), does]);
    }
    let table = aligned("", &lines, |column| (1..=3).contains(&column));
    match rest.is_empty() {
        true => table,
        false => format!("{table}and others, of {}\n", ranks(&rest)),
    }
}

/// What a rank does. A row of its own says for how long at `at`; ranks that share one may have different peers.
fn does(rank: usize, standings: &[Standing<'_>], at: Option<u64>) -> String {
    let standing = &standings[rank];
    let Some(wait) = standing.holding().next() else { return standing.brief() };
    let missing = wait.is_of_all().then(|| absent(rank, &wait, standings)).flatten();
    let missing = missing.filter(|missing| !missing.is_empty() && !missing.contains(&rank));
    let missing = missing.map_or(String::new(), |missing| format!(", without {}", ranks(&missing)));
    let Some(at) = at else { return call(&wait, "1") + &missing };
    let lasted = match Duration::from_nanos(at.saturating_sub(wait.since)).as_secs() {
        0 => String::new(),
        seconds => format!(" for {seconds} s"),
    };
    operation_with_peer(&wait) + &lasted + &missing
}

fn per_second(number: u64, nanos: u64) -> u64 {
    let rate = u128::from(number) * 1_000_000_000 / u128::from(nanos.max(1));
    u64::try_from(rate).unwrap_or(u64::MAX)
}

/// A number in at most four characters, cut off behind two or three digits, by powers of 1000: `999`, `1.2k`, `34k`; `-`
/// if it is not known.
fn short(number: Option<u64>) -> String {
    let Some(number) = number else { return "-".to_owned() };
    let units = ["", "k", "M", "G", "T", "P", "E"];
    let (mut unit, mut size) = (0, 1);
    while number / size >= 1000 {
        (unit, size) = (unit + 1, size * 1000);
    }
    match number / (size / 10).max(1) {
        tenths if unit > 0 && tenths < 100 => {
            format!("{}.{}{}", tenths / 10, tenths % 10, units[unit])
        }
        _ => format!("{}{}", number / size, units[unit]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        let all = [0, 999, 1_000, 1_250, 9_999, 12_499, 999_499, 999_500, 34_000_000, u64::MAX];
        let words = all.map(|number| short(Some(number)));
        let expected = ["0", "999", "1.0k", "1.2k", "9.9k", "12k", "999k", "999k", "34M", "18E"];
        assert_eq!((words.each_ref().map(String::as_str), short(None)), (expected, "-".to_owned()));
    }

    #[test]
    fn rates_are_of_a_second() {
        assert_eq!((per_second(10, 2_000_000_000), per_second(u64::MAX, 0)), (5, u64::MAX));
    }
}

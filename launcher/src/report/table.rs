//! The table of the calls that ranks are blocked in, and lines about the others. Ranks with equal rows share one; if
//! there are still too many rows, rows that differ only in peer, tag or length are joined.

use std::collections::BTreeSet;
use std::fmt::Write;

use transport_lapi::bootstrap::board::{Call, Phase, Wait};

use super::collective_arrivals::needs_all;
use super::format::{call, communicator, is_collective, phase, ranges, ranks, seconds_between};
use super::standing::Standing;
use super::{INDENT, aligned};

/// Most rows of the table, and most lines behind it.
const MAX_ROWS: usize = 32;

const HEAD: [&str; 8] =
    ["ranks", "blocked in", "peer", "tag", "communicator", "bytes", "phase", "seconds"];
/// Columns of numbers.
const RIGHT: [usize; 2] = [3, 5];

/// Returns the table and the lines for the state at `at` of a job that was started at `start`.
pub(super) fn text(standings: &[Standing], start: u64, at: u64) -> String {
    let mut text = rows(standings, start, at);
    let mut lines: Vec<(String, Vec<usize>)> = Vec::new();
    for (rank, standing) in listed(standings) {
        let unlisted = (standing.unlisted > 0).then(|| {
            let (more, listed) = (standing.unlisted, standing.waits.len());
            format!("{more} more threads are blocked in calls; {listed} are listed")
        });
        for line in standing.line().into_iter().chain(unlisted) {
            gather(&mut lines, line, rank);
        }
    }
    for (line, of) in lines.iter().take(MAX_ROWS) {
        // Writing to a string does not fail.
        let _ = writeln!(text, "{INDENT}{}: {line}", ranks(of));
    }
    text + &rest(lines.iter().map(|(_, ranks)| ranks))
}

fn listed(standings: &[Standing]) -> impl Iterator<Item = (usize, &Standing)> {
    standings.iter().enumerate().filter(|(_, standing)| standing.is_listed)
}

/// Adds `rank` to the group of `key`. Groups are in the order of their first rank.
pub(super) fn gather<K: PartialEq>(groups: &mut Vec<(K, Vec<usize>)>, key: K, rank: usize) {
    match groups.iter_mut().find(|(known, _)| *known == key) {
        Some((_, ranks)) => ranks.push(rank),
        None => groups.push((key, vec![rank])),
    }
}

/// The line for the groups that are not listed.
fn rest<'a>(groups: impl Iterator<Item = &'a Vec<usize>>) -> String {
    let left: BTreeSet<usize> = groups.skip(MAX_ROWS).flatten().copied().collect();
    let left: Vec<usize> = left.into_iter().collect();
    match left.is_empty() {
        true => String::new(),
        false => format!("{INDENT}and others, of {}\n", ranks(&left)),
    }
}

/// Threads with equal rows.
struct Group {
    /// What they have in common, and whether the wait has failed.
    key: (Wait, bool),
    ranks: BTreeSet<usize>,
    waits: Vec<Wait>,
}

/// The blocked threads in groups; in `coarse` groups, peers, tags and lengths may differ.
fn groups(standings: &[Standing], coarse: bool) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for (rank, standing) in listed(standings) {
        for blocked in &standing.waits {
            let wait = as_of_all(blocked.wait);
            let mut key = Wait { since: 0, thread: 0, alone: false, unwinding: false, ..wait };
            if coarse {
                key = Wait { peer: None, tag: None, bytes: 0, open: 0, ..key };
            }
            let key = (key, blocked.failed);
            match groups.iter_mut().find(|group| group.key == key) {
                Some(group) => {
                    group.ranks.insert(rank);
                    group.waits.push(wait);
                }
                None => {
                    let ranks = BTreeSet::from([rank]);
                    groups.push(Group { key, ranks, waits: vec![wait] });
                }
            }
        }
    }
    groups
}

/// Hides the library's own messages in a collective operation that needs all ranks, and the context of the end.
fn as_of_all(wait: Wait) -> Wait {
    let Wait { call, operation, open, context, since, .. } = wait;
    match call {
        _ if needs_all(operation) => {
            let (phase, open) = (Phase::Others, if call == operation { 0 } else { open });
            Wait { call, operation, open, context, phase, since, ..Wait::default() }
        }
        Call::Finish => Wait { context: 0, ..wait },
        _ => wait,
    }
}

fn rows(standings: &[Standing], start: u64, at: u64) -> String {
    let mut groups = self::groups(standings, false);
    if groups.len() > MAX_ROWS {
        groups = self::groups(standings, true);
    }
    if groups.is_empty() {
        return String::new();
    }
    let rank_lists: Vec<Vec<usize>> =
        groups.iter().map(|group| group.ranks.iter().copied().collect()).collect();
    let head = HEAD.map(str::to_owned).to_vec();
    let shown = groups.iter().zip(&rank_lists).take(MAX_ROWS);
    let rows: Vec<_> =
        std::iter::once(head).chain(shown.map(|(group, of)| row(group, of, start, at))).collect();
    aligned(INDENT, &rows, |column| RIGHT.contains(&column)) + &rest(rank_lists.iter())
}

fn row(group: &Group, ranks: &[usize], start: u64, at: u64) -> Vec<String> {
    let first = &group.waits[0];
    let open = span(group.waits.iter().map(|wait| wait.open), |open| open.to_string());
    let phase = phase(first.phase).to_owned() + if group.key.1 { ", then an error" } else { "" };
    vec![
        ranges(ranks),
        call(first, &open),
        peers(&group.waits),
        tags(&group.waits),
        if first.call == Call::Finish { "-".to_owned() } else { communicator(first.context) },
        bytes(&group.waits),
        phase,
        seconds(&group.waits, start, at),
    ]
}

fn peers(waits: &[Wait]) -> String {
    let known: BTreeSet<usize> =
        waits.iter().filter_map(|wait| Some(wait.peer? as usize)).collect();
    let known: Vec<usize> = known.into_iter().collect();
    let unknown = waits.iter().find(|wait| wait.peer.is_none()).map(|wait| match wait.call {
        Call::Dup => "all",
        Call::Finish => "others",
        _ if wait.operation.is_collective() => "others",
        _ => "any",
    });
    match (known.is_empty(), unknown) {
        (true, word) => word.unwrap_or("-").to_owned(),
        (false, None) => ranks(&known),
        (false, Some(word)) => format!("{}, {word}", ranks(&known)),
    }
}

fn tags(waits: &[Wait]) -> String {
    let first = &waits[0];
    let is_collective = is_collective(first.context) || first.operation.is_collective();
    if is_collective || first.call == Call::Finish {
        return "-".to_owned();
    }
    match waits.iter().all(|wait| wait.tag == first.tag) {
        true => first.tag.map_or("any".to_owned(), |tag| tag.to_string()),
        false => "several".to_owned(),
    }
}

fn bytes(waits: &[Wait]) -> String {
    if waits[0].call == Call::Finish || needs_all(waits[0].operation) {
        return "-".to_owned();
    }
    span(waits.iter().map(|wait| wait.bytes), |bytes| bytes.to_string())
}

/// How long the waits have lasted: no longer than the job.
fn seconds(waits: &[Wait], start: u64, at: u64) -> String {
    let since = waits.iter().map(|wait| wait.since.clamp(start, at.max(start)));
    span(since.map(std::cmp::Reverse), |since| seconds_between(since.0, at))
}

/// The smallest and the largest value, or the only one.
fn span<T: Ord + Copy>(values: impl Iterator<Item = T>, word: impl Fn(T) -> String) -> String {
    let values: BTreeSet<T> = values.collect();
    let ends = (values.first().map(|&least| word(least)), values.last().map(|&most| word(most)));
    match ends {
        (Some(least), Some(most)) if least == most => least,
        (Some(least), Some(most)) => format!("{least}-{most}"),
        _ => String::new(),
    }
}

//! The table of the calls that ranks are blocked in, and lines about the others. Ranks with equal rows share one; if
//! there are still too many rows, rows that differ only in peer, tag or length are joined.

use std::collections::BTreeSet;
use std::fmt::Write;

use transport_lapi::bootstrap::control::SpaceMembers;
use transport_lapi::bootstrap::waits::{Phase, Space, Wait};

use super::format::{call, phase, printable_line, ranges, ranks, seconds_between, space};
use super::standing::Standing;
use super::waiting::Waiting;
use super::{INDENT, aligned};

/// Most rows of the table, and most lines behind it.
const MAX_ROWS: usize = 32;

/// Most hosts that are named in one row or line.
const MAX_HOSTS: usize = 3;

/// Columns of numbers.
const RIGHT: [&str; 2] = ["tag", "bytes"];

/// Returns the table and the lines for the state at `at` of a job that was started at `start`.
pub(super) fn text(standings: &[Standing<'_>], start: u64, at: u64) -> String {
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
        let _ = writeln!(text, "{INDENT}{}: {line}", on_hosts(of, standings));
    }
    text + &rest(lines.iter().map(|(_, ranks)| ranks))
}

/// `ranks 0-1`, and in a job of several hosts `ranks 0-1 on node1`.
fn on_hosts(of: &[usize], standings: &[Standing<'_>]) -> String {
    let hosts = hosts(of, standings);
    if hosts.is_empty() { ranks(of) } else { format!("{} on {hosts}", ranks(of)) }
}

/// The hosts of these ranks; empty in a job of one host.
fn hosts(of: &[usize], standings: &[Standing<'_>]) -> String {
    let mut hosts: Vec<&str> = Vec::new();
    for host in of.iter().filter_map(|rank| standings[*rank].host) {
        if !hosts.contains(&host) {
            hosts.push(host);
        }
    }
    match hosts.len() {
        0..=MAX_HOSTS => hosts.join(", "),
        many => format!("{many} hosts"),
    }
}

fn listed<'s, 'a>(
    standings: &'s [Standing<'a>],
) -> impl Iterator<Item = (usize, &'s Standing<'a>)> {
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
struct Group<'a> {
    /// What they have in common, and whether the wait has failed.
    key: (Waiting<'a>, bool),
    ranks: BTreeSet<usize>,
    waits: Vec<Waiting<'a>>,
}

/// The blocked threads in groups; in `coarse` groups, peers, tags and lengths may differ.
fn groups<'a>(standings: &[Standing<'a>], coarse: bool) -> Vec<Group<'a>> {
    let mut groups: Vec<Group<'a>> = Vec::new();
    for (rank, standing) in listed(standings) {
        for blocked in &standing.waits {
            let wait = as_of_all(standing.in_words(blocked.wait));
            let mut key = Wait { since: 0, thread: 0, alone: false, unwinding: false, ..*wait };
            if coarse {
                key = Wait { peer: None, tag: None, bytes: 0, open: 0, ..key };
            }
            let key = (standing.in_words(key), blocked.failed);
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

/// Hides the library's own messages in a collective operation that needs all ranks, and the space of the end.
fn as_of_all(waiting: Waiting<'_>) -> Waiting<'_> {
    let Waiting { wait, words } = waiting;
    let Wait { call, operation, open, space, since, .. } = wait;
    let wait = match wait.at_end {
        true => Wait { space: Space::default(), ..wait },
        false if waiting.is_of_all() => {
            let phase = Phase::Others;
            Wait { call, operation, open, space, phase, since, ..Wait::default() }
        }
        false => wait,
    };
    Waiting { wait, words }
}

fn rows(standings: &[Standing<'_>], start: u64, at: u64) -> String {
    let mut groups = self::groups(standings, false);
    if groups.len() > MAX_ROWS {
        groups = self::groups(standings, true);
    }
    if groups.is_empty() {
        return String::new();
    }
    let rank_lists: Vec<Vec<usize>> =
        groups.iter().map(|group| group.ranks.iter().copied().collect()).collect();
    let space = groups[0].key.0.words.space();
    let head = ["ranks", "blocked in", "peer", "tag", space, "bytes", "phase", "seconds"];
    let head = head.map(str::to_owned).to_vec();
    let shown = groups.iter().zip(&rank_lists).take(MAX_ROWS);
    let mut rows: Vec<_> = std::iter::once(head)
        .chain(shown.map(|(group, of)| row(group, of, standings, (start, at))))
        .collect();
    if standings.iter().any(|standing| standing.host.is_some()) {
        let of_rows = rank_lists.iter().map(|of| hosts(of, standings));
        let column = std::iter::once("hosts".to_owned()).chain(of_rows);
        rows.iter_mut().zip(column).for_each(|(row, cell)| row.insert(1, cell));
    }
    let right: Vec<bool> = rows[0].iter().map(|head| RIGHT.contains(&head.as_str())).collect();
    aligned(INDENT, &rows, |column| right[column]) + &rest(rank_lists.iter())
}

fn row(
    group: &Group<'_>,
    ranks: &[usize],
    standings: &[Standing<'_>],
    (start, at): (u64, u64),
) -> Vec<String> {
    let first = &group.waits[0];
    let open = span(group.waits.iter().map(|wait| wait.open), |open| open.to_string());
    let phase = phase(first.phase).to_owned() + if group.key.1 { ", then an error" } else { "" };
    vec![
        ranges(ranks),
        call(first, &open),
        peers(&group.waits),
        tags(&group.waits),
        space(first.space, first.words) + &name(first.space, ranks, standings),
        bytes(&group.waits),
        phase,
        seconds(&group.waits, start, at),
    ]
}

/// The name of a space, such as ` "rows"`, if one of these ranks has sent one, behind its number.
fn name(space: Space, ranks: &[usize], standings: &[Standing<'_>]) -> String {
    let sent = ranks.iter().filter_map(|rank| standings[*rank].members_of(space));
    let sent = sent.map(|members| SpaceMembers::new(space, &members.name, Vec::new()).name);
    let name = sent.into_iter().find(|name| !name.is_empty() && space.label != Some(0));
    name.map_or(String::new(), |name| format!(" \"{}\"", printable_line(&name)))
}

fn peers(waits: &[Waiting<'_>]) -> String {
    let known: BTreeSet<usize> =
        waits.iter().filter_map(|wait| Some(wait.peer? as usize)).collect();
    let known: Vec<usize> = known.into_iter().collect();
    let unknown = waits.iter().find(|wait| wait.peer.is_none()).map(|wait| match wait.phase {
        Phase::Others => "others",
        _ if wait.is_for_others() => "others",
        _ if wait.is_unknown() => "-",
        _ => "any",
    });
    match (known.is_empty(), unknown) {
        (true, word) => word.unwrap_or("-").to_owned(),
        (false, None) => ranks(&known),
        (false, Some(word)) => format!("{}, {word}", ranks(&known)),
    }
}

fn tags(waits: &[Waiting<'_>]) -> String {
    let first = &waits[0];
    if first.space.is_collective || first.is_for_others() || first.is_unknown() {
        return "-".to_owned();
    }
    match waits.iter().all(|wait| wait.tag == first.tag) {
        true => first.tag.map_or("any".to_owned(), |tag| tag.to_string()),
        false => "several".to_owned(),
    }
}

fn bytes(waits: &[Waiting<'_>]) -> String {
    if waits[0].is_of_all() || waits[0].is_unknown() {
        return "-".to_owned();
    }
    span(waits.iter().map(|wait| wait.bytes), |bytes| bytes.to_string())
}

/// How long the waits have lasted: no longer than the job.
fn seconds(waits: &[Waiting<'_>], start: u64, at: u64) -> String {
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

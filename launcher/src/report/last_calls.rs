//! The last calls of each rank, as it has recorded them. Ranks that have made the same ones share a table.

use crate::trace::{Call, RankTrace, Trace};

use super::format::{printable_line, ranks, time};
use super::table::gather;
use super::{INDENT, aligned};

/// Most calls of a rank.
const MAX_CALLS: usize = 20;
/// Most tables.
const MAX_TABLES: usize = 16;

const HEAD: [&str; 7] = ["call", "communicator", "peer", "tag", "bytes", "took", "at"];
/// Columns of numbers.
const RIGHT: [&str; 4] = ["peer", "tag", "bytes", "took"];
/// The column of times, which may differ in a table.
const TOOK: usize = 5;

/// Returns the tables; nothing if no rank has recorded anything.
pub(crate) fn text(trace: &Trace) -> String {
    if trace.ranks.iter().flat_map(|rank| &rank.threads).all(|thread| thread.calls.is_empty()) {
        return String::new();
    }
    let last: Vec<Vec<&Call>> = trace.ranks.iter().map(last_of).collect();
    let mut tables = Vec::new();
    for (place, calls) in last.iter().enumerate() {
        let rows: Vec<_> = calls.iter().map(|call| row(call)).collect();
        gather(&mut tables, rows, place);
    }
    let of = |places: &[usize]| {
        let mut numbers: Vec<usize> =
            places.iter().map(|place| trace.ranks[*place].rank as usize).collect();
        numbers.sort_unstable();
        ranks(&numbers)
    };
    let mut text = String::new();
    for (rows, places) in tables.iter().take(MAX_TABLES) {
        let calls = places.iter().map(|place| &last[*place]);
        text += &table(&of(places), rows, |row| span(calls.clone().map(|calls| calls[row])));
    }
    let left: Vec<usize> = tables.iter().skip(MAX_TABLES).flat_map(|(_, of)| of.clone()).collect();
    if !left.is_empty() {
        text += &format!("mpjrun: the last calls of {} are left out\n", of(&left));
    }
    text
}

/// The last calls of a rank, in the order in which they began.
fn last_of(rank: &RankTrace) -> Vec<&Call> {
    let mut calls: Vec<&Call> = rank.threads.iter().flat_map(|thread| &thread.calls).collect();
    calls.sort_by_key(|call| call.start);
    calls.split_off(calls.len().saturating_sub(MAX_CALLS))
}

/// What the table says of a call, without its time.
fn row(call: &Call) -> Vec<String> {
    let of = |number: Option<i64>| number.map_or("-".to_owned(), |number| number.to_string());
    let communicator = match call.communicator {
        Some(0) => "world".to_owned(),
        other => of(other.map(i64::from)),
    };
    vec![
        printable_line(&call.name),
        communicator,
        of(call.peer.map(i64::from)),
        of(call.tag.map(i64::from)),
        if call.bytes == 0 { "-".to_owned() } else { call.bytes.to_string() },
        if call.end.is_none() { "not over".to_owned() } else { String::new() },
        call.place.as_ref().map_or("-".to_owned(), |place| printable_line(place)),
    ]
}

fn table(of: &str, rows: &[Vec<String>], took: impl Fn(usize) -> String) -> String {
    if rows.is_empty() {
        return format!("mpjrun: {of}: no calls\n");
    }
    let mut lines = vec![HEAD.map(str::to_owned).to_vec()];
    lines.extend(rows.iter().cloned());
    for (row, line) in lines.iter_mut().skip(1).enumerate() {
        if line[TOOK].is_empty() {
            line[TOOK] = took(row);
        }
    }
    let lines = aligned(INDENT, &lines, |column| RIGHT.contains(&HEAD[column]));
    format!("mpjrun: the last calls of {of}, the latest one last:\n{lines}")
}

/// How long calls took: the shortest and the longest time, or the only one.
fn span<'a>(calls: impl Iterator<Item = &'a Call>) -> String {
    let times = calls.map(|call| call.end.unwrap_or(call.start).saturating_sub(call.start));
    let (least, most) =
        times.fold((u64::MAX, 0), |(least, most), time| (least.min(time), most.max(time)));
    match (time(least), time(most)) {
        (least, most) if least == most => least,
        (least, most) => format!("{least} - {most}"),
    }
}

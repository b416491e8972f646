//! A run beside an earlier one: point by point and runtime by runtime, what has become of a figure.
//! Pure.
//!
//! Launches of two runs have no pairs, so it is medians that are compared; and something is said only if
//! both have intervals that do not overlap. Figures that were measured while the processors were near
//! are compared with such figures where both runs have some, and far ones with far ones. Where they have
//! not, nothing is said: what differs may be the machine.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};

use mpj_bench_programs::Series;
use mpj_bench_programs::series::SERIES;

use crate::analysis::{self, Estimate, Table, Verdict};
use crate::model::{Face, Header, Run};
use crate::text::{self, Grid};

/// One figure, now and then.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// What is measured.
    pub series: &'static Series,
    /// As [`Table::ranks`].
    pub ranks: Option<usize>,
    /// As [`analysis::Row::x`].
    pub x: u64,
    /// [`crate::model::RuntimeInfo::id`].
    pub runtime: String,
    /// The face that all launches of both runs saw; `None` if all launches count, since there is none
    /// of which both runs have some.
    pub face: Option<Face>,
    /// The median of the earlier run.
    pub then: f64,
    /// The median of this run.
    pub now: f64,
    /// Time now by time then: below 1 means faster. `None` if one of the figures is zero.
    pub ratio: Option<f64>,
    /// What may be said of this run.
    pub verdict: Verdict,
}

/// Series by its place in the list, ranks, x, and runtime.
type Key = (usize, Option<usize>, u64, String);

/// Every figure that both runs have: by series, ranks and x, runtimes in the order of their names.
pub fn compare(now: &Run, then: &Run) -> Vec<Line> {
    let mut lines = BTreeMap::<(Key, usize), Line>::new();
    for (place, face) in [Face::Near, Face::Far].into_iter().enumerate() {
        let (now, then) = (analysis::by_face(now, face), analysis::by_face(then, face));
        for (key, line) in matched(&now, &then, Some(face)) {
            lines.insert((key, place), line);
        }
    }
    // On a machine with one processor there are no faces to be mistaken about.
    let is_blind = |run: &Run| run.launches.iter().all(|launch| launch.raw.is_none());
    let is_blind = is_blind(now) && is_blind(then);
    for (key, mut line) in matched(now, then, None) {
        line.verdict = if is_blind { line.verdict } else { Verdict::Open };
        let has_face = (0..2).any(|place| lines.contains_key(&(key.clone(), place)));
        if !has_face {
            lines.insert((key, 0), line);
        }
    }
    lines.into_values().collect()
}

fn matched(now: &Run, then: &Run, face: Option<Face>) -> Vec<(Key, Line)> {
    let (now, then) = (figures(now), figures(then));
    let line = |(key, now): (Key, Estimate)| {
        let then = then.get(&key)?;
        let series = &SERIES[key.0];
        let line = Line {
            series,
            ranks: key.1,
            x: key.2,
            runtime: key.3.clone(),
            face,
            then: then.median,
            now: now.median,
            ratio: analysis::ratio_of_times(series.better, now.median, then.median),
            verdict: analysis::apart(series.better, now.interval, then.interval),
        };
        Some((key, line))
    };
    now.into_iter().filter_map(line).collect()
}

fn figures(run: &Run) -> HashMap<Key, Estimate> {
    let tables = analysis::tables(run);
    tables.into_iter().flat_map(|table| figures_of(table, &run.header)).collect()
}

fn figures_of(table: Table, header: &Header) -> Vec<(Key, Estimate)> {
    let Table { series, ranks, rows } = table;
    let series =
        SERIES.iter().position(|it| it == series).expect("tables are of series of the list");
    let of_row = |row: analysis::Row| {
        let cells = row.cells.into_iter().zip(&header.runtimes);
        let figure = move |(cell, runtime): (Option<Estimate>, &crate::model::RuntimeInfo)| {
            Some(((series, ranks, row.x, runtime.id.clone()), cell?))
        };
        cells.filter_map(figure)
    };
    rows.into_iter().flat_map(of_row).collect()
}

/// What differs between the runs besides their figures, one line each: machine, runtimes, faces.
pub fn differences(now: &Run, then: &Run) -> Vec<String> {
    let runtimes = |header: &Header| {
        let named = header.runtimes.iter();
        named.map(|it| (format!("runtime {}", it.id), it.label.clone())).collect::<Vec<_>>()
    };
    let mut lines = changes(&now.header.machine, &then.header.machine);
    lines.extend(changes(&runtimes(&now.header), &runtimes(&then.header)));
    let (now, then) = (faces(now), faces(then));
    if now != then {
        lines.push(format!("faces of the machine: {now} now, {then} then"));
    }
    lines
}

/// Names of which the values are not the same now and then. A name may have several values.
fn changes(now: &[(String, String)], then: &[(String, String)]) -> Vec<String> {
    let values = |facts: &[(String, String)], name: &str| {
        let own = facts.iter().filter(|fact| fact.0 == name).map(|fact| &*fact.1);
        let own: Vec<&str> = own.collect();
        if own.is_empty() { "nothing".to_owned() } else { own.join(", ") }
    };
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in now.iter().chain(then) {
        if !names.contains(&&**name) {
            names.push(name);
        }
    }
    let both = names.into_iter().map(|name| (name, values(now, name), values(then, name)));
    let changed = both.filter(|(_, now, then)| now != then);
    changed.map(|(name, now, then)| format!("{name}: {now} now, {then} then")).collect()
}

/// Which faces the launches of a run saw.
fn faces(run: &Run) -> &'static str {
    let saw = |face| run.launches.iter().any(|launch| launch.face() == Some(face));
    match (saw(Face::Near), saw(Face::Far)) {
        (true, true) => "near and far",
        (true, false) => "near",
        (false, true) => "far",
        (false, false) => "none",
    }
}

/// The comparison for readers.
pub fn text(now: &Run, then: &Run) -> String {
    let lines = compare(now, then);
    let mut head = vec![format!("Compared with the run of {}", then.header.started)];
    head.extend(differences(now, then).into_iter().map(|line| format!("not the same: {line}")));
    let number = |verdict| lines.iter().filter(|line| line.verdict == verdict).count();
    let (faster, slower) = (number(Verdict::Faster), number(Verdict::Slower));
    let total = lines.len();
    head.push(format!("of {total} figures: {faster} faster, {slower} slower than then"));
    let mut text = text::remarks(&head);
    let same_table =
        |one: &Line, other: &Line| one.series == other.series && one.ranks == other.ranks;
    for lines in lines.chunk_by(same_table) {
        text += &block(lines);
    }
    text
}

/// The lines of one series and number of ranks.
fn block(lines: &[Line]) -> String {
    let Line { series, ranks, .. } = &lines[0];
    let ranks =
        ranks.map_or(String::new(), |ranks| format!(", {}", text::count(ranks, "rank", "ranks")));
    let unit = series.unit;
    let heads = ["runtime", &format!("then ({unit})"), &format!("now ({unit})"), "now/then"];
    let mut grid = Grid::new(series.x.head(), &heads.map(str::to_owned));
    for line in lines {
        let ratio = line.ratio.map_or(text::NOTHING.to_owned(), text::times);
        let words = [line.runtime.clone(), text::figure(line.then), text::figure(line.now), ratio];
        grid.row(line.x, &words, &[text::mark(line.verdict), face_word(line.face)]);
    }
    format!("\n# {}{ranks}\n{}", series.title, grid.text())
}

fn face_word(face: Option<Face>) -> &'static str {
    match face {
        Some(face) => face.name(),
        None => "any face",
    }
}

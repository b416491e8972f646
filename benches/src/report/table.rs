//! Tables of figures as texts, for the terminal, the page and the summary.

use crate::analysis::{self, Estimate, Ratio, Row, Table, Verdict};
use crate::model::{Header, SELF};
use crate::report::words::{self, NOTHING};

/// A table of texts.
#[derive(Debug)]
pub struct Grid {
    /// Its title: `Latency, 2 ranks, far (us), 6 launches`.
    pub title: String,
    /// The column heads.
    pub heads: Vec<String>,
    /// The lines.
    pub lines: Vec<Line>,
}

/// One point of a series.
#[derive(Debug)]
pub struct Line {
    /// The point as a number.
    pub x: u64,
    /// The point as text, from [`point`].
    pub point: String,
    /// The cells, one for each head but the first.
    pub cells: Vec<Cell>,
}

/// One cell of a table.
#[derive(Debug, Clone)]
pub struct Cell {
    /// The figure.
    pub text: String,
    /// Its interval, shown where there is room.
    pub interval: String,
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self { text: text.to_owned(), interval: String::new() }
    }
}

/// Returns the name of a table: `Latency, 2 ranks, far`.
pub fn name(table: &Table) -> String {
    let ranks = table.ranks.map(|ranks| words::count(ranks, "rank", "ranks"));
    let distance = table.distance.map(|distance| distance.name().to_owned());
    let parts = [Some(table.series.title.to_owned()), ranks, distance];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Returns the texts of `table`.
pub fn grid(table: &Table, header: &Header) -> Grid {
    let cells = table.rows.iter().flat_map(|row| &row.cells).flatten();
    let most = cells.map(|cell| cell.launches).max().unwrap_or(0);
    let launches = words::count(most, "launch", "launches");
    let title = format!("{} ({}), {launches}", name(table), table.series.unit);
    let mut heads = vec![table.series.x.head().to_owned()];
    heads.extend(header.runtimes.iter().map(|runtime| runtime.label.clone()));
    let several = analysis::others(header).len() > 1;
    let has_ratios = table.rows.iter().any(|row| row.ratio.is_some());
    if has_ratios {
        let beside = if several { "beside" } else { "" };
        heads.extend([&*ratio_head(header), "95 % interval", "", beside].map(str::to_owned));
    }
    let lines = table.rows.iter().map(|row| {
        let mut cells: Vec<Cell> = row.cells.iter().map(|cell| figure(cell.as_ref())).collect();
        if has_ratios {
            cells.extend(ratio(row.ratio.as_ref()));
            let peer = row.ratio.as_ref().filter(|_| several);
            cells.push(peer.map_or("", |ratio| &*header.runtimes[ratio.peer].id).into());
        }
        Line { x: row.x, point: point(table, row), cells }
    });
    Grid { title, heads, lines: lines.collect() }
}

/// Returns the head of the ratio column: `auto/best peer`.
pub fn ratio_head(header: &Header) -> String {
    let ours = analysis::principal(header).map_or("", |place| &header.runtimes[place].id);
    let others = analysis::others(header);
    match &others[..] {
        [only] => format!("{ours}/{}", header.runtimes[*only].id),
        _ if others.iter().any(|place| header.runtimes[*place].ours) => {
            format!("{ours}/best other")
        }
        _ => format!("{ours}/best peer"),
    }
}

/// Returns the caption for a picture of the ratio.
pub fn ratio_caption(header: &Header) -> String {
    format!("{}, ratio of times: below 1 is faster", ratio_head(header))
}

/// Formats a point for readers, with a star where there were more ranks than processors.
pub fn point(table: &Table, row: &Row) -> String {
    let star = if row.oversubscribed { "*" } else { "" };
    words::point(table.series.x, row.x) + star
}

/// Formats a figure and its interval.
pub fn figure(cell: Option<&Estimate>) -> Cell {
    let Some(of) = cell else { return NOTHING.into() };
    Cell { text: words::figure(of.median), interval: words::interval(of.interval, words::figure) }
}

/// Formats ratio, interval and verdict.
pub fn ratio(ratio: Option<&Ratio>) -> [Cell; 3] {
    let Some(ratio) = ratio else { return [NOTHING, "", ""].map(Cell::from) };
    let (median, interval) =
        (words::ratio(ratio.median), words::interval(ratio.interval, words::ratio));
    let said = if ratio.interval.is_some() { verdict(ratio.verdict) } else { "" };
    [&*median, &*interval, said].map(Cell::from)
}

/// Returns the word for a verdict.
pub fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Faster => "faster",
        Verdict::Slower => "slower",
        Verdict::Open => "~",
    }
}

/// Returns the names of the compared runtimes: `mpj auto beside Open MPI 5.0.11 and MPICH 5.0.2`.
pub fn compared(header: &Header) -> String {
    let labels = |ours: bool| {
        let chosen = header.runtimes.iter().filter(|it| (it.ours || it.id == SELF) == ours);
        words::list(&chosen.map(|it| &*it.label).collect::<Vec<_>>())
    };
    match (labels(true), labels(false)) {
        (ours, peers) if peers.is_empty() => ours,
        (ours, peers) => format!("{ours} beside {peers}"),
    }
}

//! The summary of a run for a repository: some ten rows in Markdown, and a picture of ratios over message sizes; for
//! AM-2 also a table and a picture beside AMLAPI (`amlapi.rs`).

use mpj_bench_programs::{Better, X};

use super::amlapi;
use super::plot::{LOOKS, Line, Plot};
use super::table::{self, Cell};
use super::words::{self, NOTHING};
use crate::analysis::{self, Estimate, Row, Table};
use crate::model::{Header, Run};
use crate::stats;

/// The series of a summary, where measured.
const SERIES: &[&str] = &[
    "latency",
    "bandwidth",
    "bibw",
    "rate",
    "wakeup",
    "startup",
    "barrier",
    "bcast",
    "reduce",
    "allreduce",
    "gather",
    "scatter",
    "allgather",
    "alltoall",
    "am-short",
    "am-unchanged",
    "am-look",
    "am-stream-unchanged",
    "put-unchanged",
    "put-stream-unchanged",
    "get",
    "add",
];

/// The largest number of rows of single points.
const MOST: usize = 12;

/// Returns the summary in Markdown, with a link to the file `picture` if there is one.
///
/// It has the three telling points of each table, or two, or one. If even these make more than
/// 12 rows, or none, each series has one row of geometric means. If the C face takes part, each table has the points of
/// 8 B and 1 MiB, with the figures of all runtimes.
pub fn text(run: &Run, tables: &[Table], picture: Option<&str>) -> String {
    let header = &run.header;
    if header.has_face() {
        return about(header) + &side_by_side(tables, header);
    }
    let ours = analysis::principal(header).map_or("", |place| &header.runtimes[place].label);
    let heads = ["What", ours, "Best peer", &table::ratio_head(header)].map(escaped);
    let few: Vec<&Table> = chosen(tables).collect();
    let with = |most| {
        let rows = few.iter().flat_map(|table| points(table, most).map(move |row| (table, row)));
        rows.map(|(table, row)| beside_best(table, row, header)).collect::<Vec<_>>()
    };
    let is_right = |rows: &Vec<String>| (1..=MOST).contains(&rows.len());
    let of_series = few.chunk_by(|one, other| one.series == other.series);
    let rows = [3, 2, 1].into_iter().map(with).find(is_right);
    let rows = rows.unwrap_or_else(|| of_series.map(|tables| means(tables, header)).collect());
    let mut out = about(header) + &row(heads) + "|---|---:|---:|---:|\n" + &rows.concat();
    let beside_amlapi = amlapi::picture(header, tables).map(|(_, title)| title.to_owned());
    out += &amlapi::text(header, tables).unwrap_or_default();
    if let Some(picture) = picture {
        let title = beside_amlapi.unwrap_or_else(|| table::ratio_caption(header));
        out += &format!("\n![{}]({picture})\n", escaped(title));
    }
    out
}

fn chosen(tables: &[Table]) -> impl Iterator<Item = &Table> {
    tables.iter().filter(|table| SERIES.contains(&table.series.id))
}

/// A table with the figures of all runtimes.
fn side_by_side(tables: &[Table], header: &Header) -> String {
    let runtimes = header.runtimes.iter().map(|runtime| escaped(&runtime.label));
    let heads = std::iter::once("What".to_owned()).chain(runtimes);
    let ruler = "|---|".to_owned() + &"---:|".repeat(header.runtimes.len()) + "\n";
    let is_shown = |row: &&Row| [8, 1 << 20].contains(&row.x);
    let lines = chosen(tables).filter(|table| table.series.x == X::Bytes).flat_map(|table| {
        table.rows.iter().filter(is_shown).map(move |of| {
            let figures = of.cells.iter().map(|cell| shown(cell.as_ref()));
            row(std::iter::once(what(table, &table::point(table, of))).chain(figures))
        })
    });
    row(heads) + &ruler + &lines.collect::<String>()
}

/// A figure with its interval.
fn shown(cell: Option<&Estimate>) -> String {
    let Cell { text, interval } = table::figure(cell);
    format!("{text} {interval}").trim_end().to_owned()
}

/// At most so many points of a table, those that tell most.
fn points(table: &Table, most: usize) -> impl Iterator<Item = &Row> {
    let telling = match (table.series.x, table.series.better) {
        (X::Bytes, Better::Lower) => [8, 64 << 10, 4 << 10],
        (X::Bytes, Better::Higher) => [64 << 10, 8, 4 << 10],
        (X::Blocked, _) => [4000, 1_000_000, 30],
        _ => [2, 4, 8],
    };
    let rows = telling.into_iter().filter_map(|x| table.rows.iter().find(|row| row.x == x));
    let mut rows: Vec<&Row> = rows.take(most).collect();
    rows.sort_by_key(|row| row.x);
    rows.into_iter()
}

/// One row of a summary: our figure, the best peer's, and the ratio.
fn beside_best(table: &Table, of: &Row, header: &Header) -> String {
    let figure = |place: usize| shown(of.cells[place].as_ref());
    let ours = analysis::principal(header).map_or(NOTHING.to_owned(), figure);
    let (best, ratio) = match &of.ratio {
        Some(ratio) => {
            let best = escaped(&header.runtimes[ratio.peer].label);
            let [median, interval, _] = table::ratio(Some(ratio)).map(|cell| cell.text);
            (format!("{best} {}", figure(ratio.peer)), format!("{median} {interval}"))
        }
        None => (NOTHING.to_owned(), NOTHING.to_owned()),
    };
    row([what(table, &table::point(table, of)), ours, best, ratio.trim_end().to_owned()])
}

/// Whether the ratio of a point has been measured often enough for an interval.
fn has_interval(row: &Row) -> bool {
    row.ratio.as_ref().is_some_and(|ratio| ratio.interval.is_some())
}

/// The row of a series: geometric means over its points, of our figures, of those of the best peer at each point, and of
/// the ratios. If some points have been measured often enough for an interval, only those count.
pub(super) fn means(tables: &[&Table], header: &Header) -> String {
    let all = || tables.iter().flat_map(|table| &table.rows);
    let all_count = !all().any(has_interval);
    let rows = || all().filter(|row| all_count || has_interval(row));
    let median = |row: &Row, place: usize| Some(row.cells[place].as_ref()?.median);
    let ours = rows().filter_map(|row| median(row, analysis::principal(header)?));
    let best = rows().filter_map(|row| median(row, row.ratio.as_ref()?.peer));
    let ratios = rows().filter_map(|row| Some(row.ratio.as_ref()?.median));
    let mean = |values: Vec<f64>, form: fn(f64) -> String| {
        stats::geometric_mean(&values).map_or(NOTHING.to_owned(), form)
    };
    let series = tables[0].series;
    let points = words::count(rows().count(), "point", "points");
    row([
        format!("{}, geometric mean of {points} ({})", series.title, series.unit),
        mean(ours.collect(), words::figure),
        mean(best.collect(), words::figure),
        mean(ratios.collect(), words::ratio),
    ])
}

/// Returns the picture of a summary: our time divided by the best peer's, over message sizes, for the largest number of
/// ranks of each series, and only of tables with intervals if there are some; for AM-2, puts and gets above it and
/// without it. `None` if no series has such figures, or if the C face takes part.
pub fn picture(run: &Run, tables: &[Table]) -> Option<String> {
    let header = &run.header;
    if header.has_face() {
        return None;
    }
    if let Some((plot, title)) = amlapi::picture(header, tables) {
        return Some(plot.file(title));
    }
    let has_most_ranks = |it: &&Table| {
        tables.iter().all(|other| other.series != it.series || other.ranks <= it.ranks)
    };
    let all_count = !chosen(tables).flat_map(|table| &table.rows).any(has_interval);
    let is_certain = |it: &&Table| all_count || it.rows.iter().any(has_interval);
    let over_sizes = chosen(tables).filter(|it| it.series.x == X::Bytes && has_most_ranks(it));
    let over_sizes = over_sizes.filter(is_certain);
    let line = |it: &Table| Line::of_ratios(it, header, 0, table::name(it));
    let lines = over_sizes.map(line).filter(|line| line.points.len() > 1).take(LOOKS);
    let lines: Vec<Line> = lines.enumerate().map(|(look, line)| Line { look, ..line }).collect();
    let plot = Plot { x: X::Bytes, unit: None, lines };
    (!plot.lines.is_empty()).then(|| plot.file(&table::ratio_caption(header)))
}

/// Processor model, commit, date and command.
fn about(header: &Header) -> String {
    let fact = |name: &str| {
        let fact = header.machine.iter().find(|fact| fact.0 == name);
        fact.map_or("unknown", |fact| &fact.1)
    };
    let (processor, cores) = (escaped(header.processor()), fact("usable processors"));
    format!(
        "# {}\n\n{processor}, usable processors {cores}, commit {}, {}, {}. Medians with 95 % intervals; \
         ratios compare times, below 1 is faster.\n\n```console\n$ {}\n```\n\n",
        escaped(table::compared(header)),
        fact("source tree"),
        header.started,
        words::count(header.rounds, "round", "rounds"),
        header.command.replace('`', "'")
    )
}

/// A row's name: `Latency, rewritten, 2 ranks, far, 64K (us)`.
fn what(table: &Table, point: &str) -> String {
    let series = table.series;
    let at = match series.x {
        X::Bytes => point.to_owned(),
        X::Ranks => format!("{point} ranks"),
        other => format!("{} {point}", other.head().to_lowercase()),
    };
    format!("{}, {at} ({})", table::name(table), series.unit)
}

fn row(texts: impl IntoIterator<Item = String>) -> String {
    format!("| {} |\n", texts.into_iter().collect::<Vec<_>>().join(" | "))
}

/// Escapes a text for any place in Markdown, including table cells.
fn escaped(text: impl AsRef<str>) -> String {
    let line = text.as_ref().replace(['\n', '\r'], " ");
    line.replace('&', "&amp;").replace('<', "&lt;").replace('|', "\\|").replace('`', "'")
}

//! Presents a run as Markdown: one table of all rows, or about ten rows with a picture that fit one
//! screen.

use mpj_bench_programs::X;

use super::plot::{LOOKS, Line, Plot};
use super::table::{self, Cell};
use super::words::{self, NOTHING};
use crate::analysis::{self, Row, Table};
use crate::model::{Face, Header, Run};

/// The series and points of a summary, where measured.
const SUMMARY: &[(&str, &[u64])] = &[
    ("latency", &[8, 4 << 10, 64 << 10, 1 << 20]),
    ("bandwidth", &[8, 64 << 10, 1 << 20]),
    ("bibw", &[64 << 10]),
    ("rate", &[8]),
    ("wakeup", &[4000]),
    ("startup", &[2]),
    ("barrier", &[2]),
    ("allreduce", &[8]),
];

/// The series whose ratios the picture of a summary shows.
const PICTURE: &[&str] = &["latency", "bandwidth", "bibw"];

/// Returns all rows of all tables as one table.
pub fn all(run: &Run, tables: &[Table]) -> String {
    let header = &run.header;
    let grids: Vec<_> = tables.iter().map(|table| table::grid(table, header)).collect();
    let widest = grids.iter().max_by_key(|grid| grid.heads.len());
    let heads = widest.map_or(&[][..], |grid| &grid.heads[1..]);
    let mut out = about(header);
    out += &head(&std::iter::once("What").chain(heads.iter().map(|it| &**it)).collect::<Vec<_>>());
    for (grid, table) in grids.iter().zip(tables) {
        for line in &grid.lines {
            let what = what(table, &line.point);
            let missing = heads.len() - line.cells.len();
            let texts = line.cells.iter().map(text).chain(vec![String::new(); missing]);
            out += &row(std::iter::once(what).chain(texts));
        }
    }
    out
}

/// Returns about ten rows, with a link to the picture in the file `picture`.
pub fn summary(run: &Run, tables: &[Table], picture: &str) -> String {
    let header = &run.header;
    let mut out = about(header);
    let ours = analysis::principal(header).map_or("", |place| &header.runtimes[place].label);
    out += &head(&["What", ours, "Best peer", &table::ratio_head(header)]);
    for (id, points) in SUMMARY {
        let on_two = |it: &&Table| it.series.id == *id && it.ranks.is_none_or(|ranks| ranks == 2);
        for table in tables.iter().filter(on_two) {
            let rows = table.rows.iter().filter(|row| points.contains(&row.x));
            out.extend(rows.map(|row| beside_best(table, row, header)));
        }
    }
    out + &format!("\n![{}]({picture})\n", escaped(&table::ratio_caption(header)))
}

/// One row of a summary: our figure, the best peer's, and the ratio.
fn beside_best(table: &Table, of: &Row, header: &Header) -> String {
    let figure = |place: usize| text(&table::figure(of.cells[place].as_ref()));
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

/// Returns the picture of a summary: our time divided by the best peer's, over message sizes.
pub fn picture(run: &Run, tables: &[Table]) -> String {
    let header = &run.header;
    let several = tables.iter().any(|it| it.face == Some(Face::Near))
        && tables.iter().any(|it| it.face == Some(Face::Far));
    let chosen = tables.iter().filter(|it| PICTURE.contains(&it.series.id) && it.rows.len() > 1);
    let lines = chosen.enumerate().map(|(place, table)| {
        let face = table.face.filter(|_| several).map(|face| format!(", {}", face.name()));
        let label = table.series.title.to_owned() + &face.unwrap_or_default();
        Line::of_ratios(table, header, place % LOOKS, label)
    });
    let plot = Plot { x: X::Bytes, unit: None, lines: lines.collect() };
    plot.file(&table::ratio_caption(header))
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
        escaped(&table::compared(header)),
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

fn text(cell: &Cell) -> String {
    format!("{} {}", cell.text, cell.interval).trim_end().to_owned()
}

fn head(heads: &[&str]) -> String {
    let rule = "|---|".to_owned() + &"---:|".repeat(heads.len() - 1);
    row(heads.iter().map(|head| escaped(head))) + &rule + "\n"
}

fn row(texts: impl IntoIterator<Item = String>) -> String {
    format!("| {} |\n", texts.into_iter().collect::<Vec<_>>().join(" | "))
}

/// Escapes a text for any place in Markdown, including table cells.
fn escaped(text: &str) -> String {
    let line = text.replace(['\n', '\r'], " ");
    line.replace('&', "&amp;").replace('<', "&lt;").replace('|', "\\|").replace('`', "'")
}

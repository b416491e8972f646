//! The summary of a run for a repository: a table in Markdown, and a picture of ratios over message sizes.

use mpj_bench_programs::X;

use super::plot::{LOOKS, Line, Plot};
use super::table::{self, Cell};
use super::{about, words};
use crate::analysis::{Row, Table};
use crate::model::{Header, Run};

/// The series of a summary, where measured.
const SERIES: &str = "latency bandwidth bibw rate wakeup startup barrier bcast reduce allreduce gather scatter \
                      allgather alltoall am-short am-unchanged am-look am-stream-unchanged put-unchanged \
                      put-stream-unchanged get add rma-put-flush rma-get-flush rma-acc-flush rma-getacc-flush \
                      rma-fop-flush rma-cas-flush rma-put-lock rma-get-lock rma-acc-lock rma-fop-lock rma-put-fence \
                      rma-get-fence rma-put-pscw rma-get-pscw rma-put-created rma-get-created rma-acc-created \
                      rma-put-computing rma-put-ratio";

/// The points of a summary: telling sizes, numbers of ranks, and times of being blocked.
pub const POINTS: [u64; 9] = [2, 4, 8, 30, 4000, 4 << 10, 64 << 10, 1_000_000, 1 << 20];

/// Returns the summary in Markdown, with a link to the file `picture` if there is one: the figures of all runtimes at
/// the telling points, and the ratio of the principal one to the best of the others.
pub fn text(run: &Run, tables: &[Table], picture: Option<&str>) -> String {
    let header = &run.header;
    let runtimes = header.runtimes.iter().map(|runtime| escaped(&runtime.label));
    let heads = std::iter::once("What".to_owned()).chain(runtimes);
    let heads = heads.chain([escaped(table::ratio_head(header))]);
    let ruler = "|---|".to_owned() + &"---:|".repeat(header.runtimes.len() + 1) + "\n";
    let lines = chosen(tables).flat_map(|table| {
        let rows = table.rows.iter().filter(|row| POINTS.contains(&row.x));
        rows.map(move |of| {
            let cells = of.cells.iter().map(|cell| shown(&table::figure(cell.as_ref())));
            let [median, interval, _] = table::ratio(of.ratio.as_ref()).map(|cell| cell.text);
            let ratio = shown(&Cell { text: median, interval });
            row(std::iter::once(what(table, of)).chain(cells).chain([ratio]))
        })
    });
    let mut out = heading(header) + &row(heads) + &ruler + &lines.collect::<String>();
    let findings = about::findings(header, tables);
    if !findings.is_empty() {
        let items = findings.iter().map(|line| format!("\n* {}", escaped(line)));
        out += &format!("{}\n", items.collect::<String>());
    }
    if let Some(picture) = picture {
        out += &format!("\n![{}]({picture})\n", escaped(table::ratio_caption(header)));
    }
    out
}

fn chosen(tables: &[Table]) -> impl Iterator<Item = &Table> {
    tables.iter().filter(|table| SERIES.split(' ').any(|id| id == table.series.id))
}

/// A figure with its interval.
fn shown(Cell { text, interval }: &Cell) -> String {
    format!("{text} {interval}").trim_end().to_owned()
}

/// Returns the picture of a summary: our time divided by the best peer's, over message sizes, for the largest number of
/// ranks of each series. `None` if no series has such figures.
pub fn picture(run: &Run, tables: &[Table]) -> Option<String> {
    let header = &run.header;
    let has_most_ranks = |it: &&Table| {
        tables.iter().all(|other| other.series != it.series || other.ranks <= it.ranks)
    };
    let over_sizes = chosen(tables).filter(|it| it.series.x == X::Bytes && has_most_ranks(it));
    let line = |it: &Table| Line::of_ratios(it, header, 0, table::name(it));
    let lines = over_sizes.map(line).filter(|line| line.points.len() > 1).take(LOOKS);
    let lines: Vec<Line> = lines.enumerate().map(|(look, line)| Line { look, ..line }).collect();
    let plot = Plot { x: X::Bytes, unit: None, lines };
    (!plot.lines.is_empty()).then(|| plot.file(&table::ratio_caption(header)))
}

/// Processor model, commit, date and command.
fn heading(header: &Header) -> String {
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
fn what(table: &Table, row: &Row) -> String {
    let (series, point) = (table.series, table::point(table, row));
    let at = match series.x {
        X::Bytes => point,
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

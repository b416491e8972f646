//! AM-2 beside AMLAPI, the earlier implementation of AM-2 over IBM's LAPI: a table of the few figures that AMLAPI's page
//! reports, and a picture of puts and gets above AM-2 and without it. For runs that measure AM-2 and the transport.

use mpj_bench_programs::{Series, Unit, X};

use super::plot::{Line, Plot, Point};
use super::words;
use crate::analysis::{Row, Table};
use crate::model::Header;

/// The size at which AMLAPI's page reports the bandwidth of LAPI's put and get.
const PLATEAU: u64 = 128 << 10;

/// The runtimes of a run as columns of its tables: AM-2 and the transport.
fn columns(header: &Header) -> Option<[usize; 2]> {
    let place = |id| header.runtimes.iter().position(|runtime| runtime.id == id && runtime.ours);
    Some([place("am2")?, place("lapi")?])
}

/// Returns the table of figures, in Markdown; nothing if the run has none of them.
pub fn text(header: &Header, tables: &[Table]) -> Option<String> {
    let [am2, lapi] = columns(header)?;
    let step = header.thresholds.iter().filter(|step| step.what.starts_with("am2: "));
    let step = step.map(|step| step.bytes as u64).min()?;
    // A round trip is twice the figure of the series.
    let round_trip = |size| Some(2.0 * figure(tables, "am", size, am2)?);
    let (below, above) = (round_trip(step)?, round_trip(step + 1)?);
    let mut rows = vec![
        [
            "Round trip, as much as fits into the packet".to_owned(),
            "60 to 65 us, 864 B".to_owned(),
            format!("{} us, {step} B", words::figure(below)),
        ],
        [
            "Round trip, longer".to_owned(),
            "more than 100 us".to_owned(),
            format!("{} us, {} B", words::figure(above), step + 1),
        ],
        ["That step".to_owned(), "about 1.7".to_owned(), words::ratio(above / below)],
    ];
    for (what, series) in [("Put", "put-stream"), ("Get", "get")] {
        let speed = |column| speed(series, PLATEAU, figure(tables, series, PLATEAU, column));
        let text = |speed: Option<f64>| Some(format!("{} MB/s", words::figure(speed?)));
        if let (Some(raw), Some(on_top)) = (text(speed(lapi)), text(speed(am2))) {
            rows.push([format!("{what}, 128K"), "more than 300 MB/s".to_owned(), raw]);
            rows.push([format!("{what} above AM-2, 128K"), "not reported".to_owned(), on_top]);
        }
    }
    let row = |[what, theirs, ours]: &[String; 3]| format!("| {what} | {theirs} | {ours} |\n");
    let rows: String = rows.iter().map(row).collect();
    Some(format!(
        "\n## Beside AMLAPI\n\nAMLAPI's figures are those of its page, measured on IBM's machines of its time, so only \
         steps and ratios compare.\n\n| What | AMLAPI | am2 |\n|---|---:|---:|\n{rows}"
    ))
}

/// Returns the picture of puts and gets, above AM-2 and without it, with its title.
pub fn picture(header: &Header, tables: &[Table]) -> Option<(Plot, &'static str)> {
    let columns = columns(header)?;
    let mut lines = Vec::new();
    for (what, series) in [("Put", "put-stream"), ("Get", "get")] {
        for column in columns {
            let label = format!("{what}, {}", header.runtimes[column].label);
            let points = tables.iter().filter(|table| is(table.series, series));
            let points = points.flat_map(|table| &table.rows).filter_map(|row| {
                let y = speed(series, row.x, median(row, column))?;
                let title = format!("{}: {} MB/s", words::point(X::Bytes, row.x), words::figure(y));
                Some(Point { x: row.x, y, band: None, title })
            });
            let points: Vec<Point> = points.collect();
            if points.len() > 1 {
                lines.push(Line { look: lines.len(), switch: None, label, points });
            }
        }
    }
    let plot = Plot { x: X::Bytes, unit: Some(Unit::MegabytesPerSecond), lines };
    (!plot.lines.is_empty()).then_some((plot, "Put and get, above AM-2 and without it (MB/s)"))
}

/// Whether a series is this one, for any treatment of buffers.
fn is(series: &Series, id: &str) -> bool {
    series.id == id || series.id.strip_prefix(id) == Some("-unchanged")
}

fn median(row: &Row, column: usize) -> Option<f64> {
    row.cells[column].as_ref().map(|cell| cell.median)
}

/// The figure of a runtime at a size, in the first table that has it.
fn figure(tables: &[Table], series: &str, size: u64, column: usize) -> Option<f64> {
    let rows = tables.iter().filter(|table| is(table.series, series)).flat_map(|table| &table.rows);
    rows.filter(|row| row.x == size).find_map(|row| median(row, column))
}

/// Megabytes per second of a figure, which for gets is a time in microseconds.
fn speed(series: &str, size: u64, figure: Option<f64>) -> Option<f64> {
    figure.map(|figure| if series == "get" { size as f64 / figure } else { figure })
}

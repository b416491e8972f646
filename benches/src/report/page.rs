//! The page of a run: one self-contained HTML file. maud escapes all texts of the run.
//!
//! Each series has two pictures, the figures of all runtimes and the ratio to the best peer, and a
//! table below them. The checkbox of a runtime hides its lines through the style sheet.

use std::cmp::Ordering;

use maud::{DOCTYPE, Markup, PreEscaped, html};
use mpj_bench_programs::Better;

use super::plot::{self, LOOKS, Line, Plot, Point};
use super::table::{self, Grid};
use super::{about, words};
use crate::analysis::{self, Row, Table};
use crate::model::{Header, Run};

/// The style sheet of the page.
const STYLE: &str = include_str!("page.css");

/// Returns the page of `run`, where `tables` come from [`crate::analysis::tables`].
pub fn html(run: &Run, tables: &[Table]) -> String {
    let header = &run.header;
    let title = table::compared(header);
    let same_series = |one: &Table, other: &Table| one.series == other.series;
    let series: Vec<&[Table]> = tables.chunk_by(same_series).collect();
    let rounds = words::count(header.rounds, "round", "rounds");
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) }
                style { (PreEscaped(plot::STYLE)) (PreEscaped(STYLE)) (switches(header)) }
            }
            body {
                header {
                    h1 { (title) }
                    p { (header.processor()) ", " (header.started) ", " (rounds) }
                }
                @if series.len() > 1 {
                    details { summary { "Contents" }
                        ul class="contents" { @for tables in &series {
                            li { a href={ "#" (tables[0].series.id) } { (tables[0].series.title) } }
                        } }
                    }
                }
                (legend(header))
                main {
                    @for tables in &series { (section(tables, header)) }
                    (explanations(run, tables))
                }
            }
        }
    };
    page.into_string() + "\n"
}

/// The style rules that hide the lines of unchecked runtimes.
fn switches(header: &Header) -> PreEscaped<String> {
    let rule = |place| {
        format!("body:has(#show{place}:not(:checked)) .plot .s{place} {{ display: none; }}\n")
    };
    PreEscaped((0..header.runtimes.len()).map(rule).collect())
}

fn legend(header: &Header) -> Markup {
    html! {
        div class="legend" {
            @for (place, runtime) in header.runtimes.iter().enumerate() {
                label {
                    input type="checkbox" id={ "show" (place) } checked;
                    svg class="plot" viewBox="0 0 30 10" aria-hidden="true" {
                        g class={ "r" (look(header, place)) } { path class="line" d="M1 5H29" {} }
                    }
                    (runtime.label)
                }
            }
        }
    }
}

/// The look of a runtime's lines; the principal has the first one.
fn look(header: &Header, place: usize) -> usize {
    let principal = analysis::principal(header).unwrap_or(0);
    let order = match place.cmp(&principal) {
        Ordering::Less => place + 1,
        Ordering::Equal => 0,
        Ordering::Greater => place,
    };
    order % LOOKS
}

/// The section of one series.
fn section(tables: &[Table], header: &Header) -> Markup {
    let series = tables[0].series;
    html! {
        section id=(series.id) {
            h2 { (series.title) }
            @for table in tables {
                @let grid = table::grid(table, header);
                @let has_pictures = table.rows.len() > 2;
                @let place = grid.title.strip_prefix(series.title).unwrap_or(&grid.title);
                p class="place" { (place.trim_start_matches([',', ' '])) }
                @if has_pictures { div class="pictures" {
                    (figures(table, header))
                    (ratios(table, header))
                } }
                @if has_pictures { details { summary { "Figures" } (listing(&grid)) } }
                @else { (listing(&grid)) }
            }
        }
    }
}

fn figures(table: &Table, header: &Header) -> Markup {
    let series = table.series;
    let lines = header.runtimes.iter().enumerate().map(|(place, runtime)| {
        let point = |row: &Row| {
            let of = row.cells[place].as_ref()?;
            let at = words::point(series.x, row.x);
            let interval = words::interval(of.interval, words::figure);
            let title = format!("{at}: {} {} {interval}", words::figure(of.median), series.unit);
            Some(Point { x: row.x, y: of.median, band: of.interval, title })
        };
        let points = table.rows.iter().filter_map(point).collect();
        Line {
            look: look(header, place),
            switch: Some(place),
            label: runtime.label.clone(),
            points,
        }
    });
    let plot = Plot { x: series.x, unit: Some(series.unit), lines: lines.collect() };
    let better = match series.better {
        Better::Lower => "lower is better",
        Better::Higher => "higher is better",
    };
    figure(&plot, &format!("{}, {better}", series.unit))
}

fn ratios(table: &Table, header: &Header) -> Markup {
    let line = Line::of_ratios(table, header, 0, table::ratio_head(header));
    let plot = Plot { x: table.series.x, unit: None, lines: vec![line] };
    html! {
        @if !plot.lines[0].points.is_empty() { (figure(&plot, &table::ratio_caption(header))) }
    }
}

fn figure(plot: &Plot, caption: &str) -> Markup {
    html! { figure { figcaption { (caption) } (plot.svg(caption)) } }
}

fn listing(grid: &Grid) -> Markup {
    html! {
        div class="scroll" {
            table {
                thead { tr { @for head in &grid.heads { th { (head) } } } }
                tbody {
                    @for line in &grid.lines {
                        tr {
                            th { (line.point) }
                            @for cell in &line.cells {
                                td {
                                    (cell.text)
                                    @if !cell.interval.is_empty() { small { (cell.interval) } }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn explanations(run: &Run, tables: &[Table]) -> Markup {
    let failures = about::failures(run);
    html! {
        section {
            h2 { "The run" }
            @if !failures.is_empty() {
                details open { summary { "What failed" }
                    ul { @for line in failures { li { (line) } } }
                }
            }
            details { summary { "How figures are made" }
                @for text in about::METHOD { p { (text) } }
                @for line in about::findings(&run.header, tables) { p { (line) } }
                @if let Some(distances) = about::distances(run) { p { (distances) } }
            }
            details { summary { "Command" } pre { (run.header.command) } }
            details { summary { "Machine and libraries" }
                div class="scroll" { table class="facts" { tbody {
                    @for (name, value) in about::facts(&run.header) {
                        tr { th { (name) } td { (value) } }
                    }
                } } }
            }
        }
    }
}

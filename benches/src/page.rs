//! The page of a run: one HTML file that needs nothing else, with charts, and under each chart its
//! figures as a table.
//!
//! Called with what the analysis made of the run. Texts of the run are escaped wherever they stand.

mod about;
mod bars;
mod charts;
mod listing;
mod looks;
mod markup;
mod plot;
mod scale;
mod strip;
#[cfg(test)]
pub(crate) mod synthetic;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use mpj_bench_programs::{Better, Series, X};

use crate::analysis::Table;
use crate::model::{Header, Run};
use crate::results::findings::{self, Pair};
use crate::results::{facts, targets, wording};
use crate::views::{self, View};
use markup::Text;
use plot::put;

/// The looks of everything.
const STYLE: &str = include_str!("page/style.css");

/// The parts of a page: heading, and how the names of its series begin.
const PARTS: &[(&str, &[&str])] = &[
    ("Messages between two ranks", &["latency", "bandwidth", "bibw", "rate", "overlap", "wakeup"]),
    ("Matching", &["matching"]),
    ("Matrices", &["matrix", "cannon", "summa", "transpose"]),
    ("Stencils", &["laplace", "diffusion", "flow"]),
    ("Collective calls", CALLS),
    ("Starting", &["startup"]),
];
const CALLS: &[&str] =
    &["barrier", "bcast", "reduce", "allreduce", "gather", "scatter", "allgather", "alltoall"];
const OTHERS: &str = "Others";

/// The page of `run`, of which `tables` are [`crate::analysis::tables`].
pub fn html(run: &Run, tables: &[Table]) -> String {
    let header = &run.header;
    let views = views::of(run, tables);
    let mut out = String::from("<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\">");
    out.push_str("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">");
    put(
        &mut out,
        format_args!("<title>{}</title><style>{STYLE}</style></head><body>", about::TITLE),
    );
    out.push_str(&looks::marks());
    out.push_str(&about::title(header));
    targets(&mut out, run);
    in_short(&mut out, header, &views);
    out.push_str(&about::run(run));
    let headings = PARTS.iter().map(|(heading, _)| *heading).chain([OTHERS]);
    for heading in headings {
        part(&mut out, header, &views, heading);
    }
    out.push_str("</body></html>\n");
    out
}

fn targets(out: &mut String, run: &Run) {
    put(out, format_args!("<section id=\"goals\"><h2>{}</h2>", targets::heading(&run.header)));
    put(out, format_args!("<p class=\"note\">{}</p>", Text(targets::note(&run.header))));
    out.push_str(&listing::targets(run));
    for sentence in targets::beyond_backends(run).into_iter().chain(targets::missing(run)) {
        put(out, format_args!("<p>{}</p>", Text(&sentence)));
    }
    out.push_str("</section>");
}

fn in_short(out: &mut String, header: &Header, views: &[View]) {
    out.push_str("<section id=\"short\"><h2>In short</h2>");
    out.push_str(&listing::headlines(header, views));
    for answer in findings::answers(header, views) {
        put(out, format_args!("<h3>{}</h3><ul>", Text(&answer.heading)));
        for sentence in &answer.sentences {
            put(out, format_args!("<li>{}</li>", Text(sentence)));
        }
        out.push_str("</ul>");
    }
    let overview = listing::overview(header, &findings::counted(views));
    if !overview.is_empty() {
        out.push_str(
            "<h3>Everything at a glance</h3><p class=\"note\">At how many points the first one is ",
        );
        out.push_str("<i class=\"faster key\">faster</i> <i class=\"open key\">open</i> ");
        out.push_str("<i class=\"slower key\">slower</i>; below it the medians of the ratios of ");
        out.push_str("times at the points that are decided.</p>");
        out.push_str(&overview);
    }
    out.push_str("</section>");
}

/// The heading under which a series is shown.
fn heading_of(series: &Series) -> &'static str {
    let fits = |(_, starts): &&(&str, &[&str])| starts.iter().any(|it| series.id.starts_with(it));
    PARTS.iter().find(fits).map_or(OTHERS, |(heading, _)| heading)
}

/// The series beside which this one is shown: a share beside what it is a share of, processor time
/// beside the sends to a blocked rank.
fn main_of(series: &Series) -> Option<&'static Series> {
    let [wakeup, time] = facts::BLOCKED;
    let of_blocked = || Series::named(wakeup).filter(|_| series.id == time);
    series.share_of().or_else(of_blocked)
}

fn part(out: &mut String, header: &Header, views: &[View], heading: &str) {
    let here: Vec<&View> =
        views.iter().filter(|view| heading_of(view.table.series) == heading).collect();
    if here.is_empty() {
        return;
    }
    put(out, format_args!("<section><h2>{heading}</h2>{}", looks::legend(header)));
    out.push_str("<div class=\"grid\">");
    let has = |series: &Series| here.iter().any(|view| view.table.series == series);
    // What belongs to another series stands beside it, if that was measured.
    let alone = |series: &Series| !main_of(series).is_some_and(has);
    let mut shown: Vec<&Series> = Vec::new();
    for view in here.iter().filter(|view| alone(view.table.series)) {
        let series = view.table.series;
        if !shown.contains(&series) {
            shown.push(series);
            let of_series =
                |it: &&&View| it.table.series == series || main_of(it.table.series) == Some(series);
            let together: Vec<&View> = here.iter().filter(of_series).copied().collect();
            figure(out, header, series, &together);
        }
    }
    out.push_str("</div></section>");
}

/// One picture of a figure, and what is above it.
struct Panel {
    caption: String,
    picture: String,
}

fn figure(out: &mut String, header: &Header, series: &Series, views: &[&View]) {
    let panels = panels(header, series, views);
    let class = if panels.len() > 1 { " class=\"wide\"" } else { "" };
    put(out, format_args!("<figure{class} id=\"{}\"><h3>{}</h3>", series.id, Text(series.title)));
    let others = views.iter().map(|view| view.table.series).filter(|other| *other != series);
    for id in others.map(|other| other.id).collect::<BTreeSet<_>>() {
        put(out, format_args!("<a id=\"{id}\"></a>"));
    }
    if series.id == facts::BLOCKED[0] {
        put(out, format_args!("<p class=\"note\">{}</p>", Text(facts::WAKEUP)));
    }
    out.push_str("<div class=\"panels\">");
    for Panel { caption, picture } in &panels {
        put(out, format_args!("<div class=\"panel\"><p class=\"note\">{}</p>", Text(caption)));
        put(out, format_args!("{picture}</div>"));
    }
    out.push_str("</div>");
    for view in views {
        out.push_str(&listing::figures(header, view));
    }
    out.push_str("</figure>");
}

/// The pictures of a figure: first the figures of every table, then what is made of them.
fn panels(header: &Header, series: &Series, views: &[&View]) -> Vec<Panel> {
    let (own, shares): (Vec<&View>, Vec<&View>) =
        views.iter().partition(|view| view.table.series == series);
    let mut panels: Vec<Panel> = own.iter().map(|view| first_picture(header, view, &own)).collect();
    panels.extend(shares.iter().map(|view| Panel {
        caption: captioned(view, view.table.series.title),
        picture: match view.table.rows[..] {
            [_] => charts::figures(header, view, &shares),
            _ => charts::shares(header, view, &shares),
        },
    }));
    let has_ratios =
        matches!(series.x, X::Bytes | X::Order) && shares.is_empty() && !series.unit.is_relative();
    for view in own.iter().filter(|_| has_ratios) {
        let Some(other) = Pair::baseline(header) else { continue };
        let what = format!("time by that of {other}, below 1 is faster");
        let panel = |picture| Panel { caption: captioned(view, &what), picture };
        panels.extend(charts::ratios(header, view, &own).map(panel));
    }
    panels
}

fn first_picture(header: &Header, view: &View, beside: &[&View]) -> Panel {
    let series = view.table.series;
    if let Some(picture) = charts::speedups(header, view) {
        return Panel { caption: captioned(view, "speed-up over one rank"), picture };
    }
    let picture = if series.share_of().is_some() {
        charts::shares(header, view, beside)
    } else {
        charts::figures(header, view, beside)
    };
    let better = match series.better {
        Better::Lower => "lower is better",
        Better::Higher => "higher is better",
    };
    let at = match &view.table.rows[..] {
        [row] => format!("{}, ", wording::at(series.x, row.x)),
        _ => String::new(),
    };
    let what = format!("{at}{}, {better}", wording::unit(series.unit));
    Panel { caption: captioned(view, &what), picture }
}

fn captioned(view: &View, what: &str) -> String {
    let place = view.place();
    if place.is_empty() { what.to_owned() } else { format!("{place}: {what}") }
}

//! Tables of a page: the figures behind every picture, and the overview of all pairs.

use super::markup::Text;
use super::plot::put;
use crate::analysis::{Estimate, Ratio, Row, Verdict};
use crate::model::{Header, Run};
use crate::results::findings::{self, Pair, Standing};
use crate::results::{targets, wording};
use crate::views::View;

/// All figures of a table, to be opened by the reader.
pub fn figures(header: &Header, view: &View) -> String {
    let (table, pairs) = (&view.table, Pair::shown(header));
    let measured: Vec<usize> = (0..header.runtimes.len())
        .filter(|place| table.rows.iter().any(|row| row.cells[*place].is_some()))
        .collect();
    let mut out = String::from("<details><summary>Figures");
    // It may stand below the figure of something else.
    let name = if super::main_of(table.series).is_some() { view.name() } else { view.place() };
    if !name.is_empty() {
        put(&mut out, format_args!(": {}", Text(&name)));
    }
    out.push_str("</summary><div class=\"scroll\"><table><thead><tr>");
    put(&mut out, format_args!("<th>{}</th>", table.series.x.head()));
    let unit = wording::unit(table.series.unit);
    for place in &measured {
        let label = Text(&header.runtimes[*place].label);
        put(
            &mut out,
            format_args!("<th>{label}<small>{unit}; min · p99 of batches · n</small></th>"),
        );
    }
    for pair in &pairs {
        let name = pair.name(header, "/");
        put(&mut out, format_args!("<th>{}<small>ratio of times</small></th>", Text(&name)));
    }
    out.push_str("</tr></thead><tbody>");
    for row in &table.rows {
        put(&mut out, format_args!("<tr><th>{}", wording::point(table.series.x, row.x)));
        out.push_str(if row.oversubscribed { "*</th>" } else { "</th>" });
        for place in &measured {
            figure(&mut out, row.cells[*place].as_ref());
        }
        for pair in &pairs {
            ratio(&mut out, header, view, row, *pair);
        }
        out.push_str("</tr>");
    }
    out.push_str("</tbody></table></div></details>");
    out
}

fn figure(out: &mut String, cell: Option<&Estimate>) {
    let Some(of) = cell else { return out.push_str("<td>-</td>") };
    let (median, interval) = (wording::figure(of.median), wording::interval(of.interval));
    let [min, p99] = [of.min, of.p99].map(wording::figure);
    let (n, launches) = (of.n, of.launches);
    put(out, format_args!("<td><b>{median}</b> {interval}<small>{min} · {p99} · "));
    put(out, format_args!("{n}/{launches}</small></td>"));
}

fn ratio(out: &mut String, header: &Header, view: &View, row: &Row, pair: Pair) {
    let Some(of) = pair.ratio(&view.table, header, row) else {
        return out.push_str("<td>-</td>");
    };
    let word = wording::said(view.table.series, of);
    let (class, text) = (class(of.verdict), wording::ratio_with_interval(of));
    put(out, format_args!("<td class=\"{class}\"><b>{word}</b> {text}<small>"));
    if matches!(pair, Pair::Best(_)) {
        put(out, format_args!("{}, ", Text(&header.runtimes[of.peer].id)));
    }
    put(out, format_args!("{}</small></td>", pairs(of)));
}

fn pairs(of: &Ratio) -> String {
    let plural = if of.pairs == 1 { "" } else { "s" };
    let alone = if of.alone > 0 { format!(", {} left out", of.alone) } else { String::new() };
    format!("{} pair{plural}{alone}", of.pairs)
}

fn class(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Faster => "faster",
        Verdict::Slower => "slower",
        Verdict::Open => "open",
    }
}

/// The figures that are asked for most.
pub fn headlines(header: &Header, views: &[View]) -> String {
    let headlines = findings::headlines(header, views);
    if headlines.is_empty() {
        return String::new();
    }
    let mut out = String::from(
        "<div class=\"scroll\"><table class=\"headlines\"><thead><tr><th>Medians</th>",
    );
    for runtime in &header.runtimes {
        put(&mut out, format_args!("<th>{}</th>", Text(&runtime.label)));
    }
    out.push_str("</tr></thead><tbody>");
    for headline in &headlines {
        put(&mut out, format_args!("<tr><th>{}</th>", Text(&headline.name)));
        for figure in &headline.figures {
            put(&mut out, format_args!("<td>{figure}</td>"));
        }
        out.push_str("</tr>");
    }
    out.push_str("</tbody></table></div>");
    out
}

/// The goals, one row for each and face.
pub fn targets(run: &Run) -> String {
    let mut out = String::from("<div class=\"scroll\"><table class=\"overview\"><thead><tr>");
    for head in targets::HEADS {
        put(&mut out, format_args!("<th>{head}</th>"));
    }
    out.push_str("</tr></thead><tbody>");
    for [goal, texts @ .., so] in targets::rows(run) {
        put(&mut out, format_args!("<tr><th>{}</th>", Text(&goal)));
        for text in &texts {
            put(&mut out, format_args!("<td>{}</td>", Text(text)));
        }
        let class = match &*so {
            "reached" => "faster",
            "missed" => "slower",
            _ => "note",
        };
        put(&mut out, format_args!("<td class=\"{class}\">{so}</td></tr>"));
    }
    out.push_str("</tbody></table></div>");
    out
}

/// Per table and pair, at how many points the first one is faster, or slower, or neither.
pub fn overview(header: &Header, counted: &[View]) -> String {
    let pairs = Pair::shown(header);
    if pairs.is_empty() {
        return String::new();
    }
    let mut out =
        String::from("<div class=\"scroll\"><table class=\"overview\"><thead><tr><th></th>");
    for pair in &pairs {
        put(&mut out, format_args!("<th>{}</th>", Text(&pair.name(header, "/"))));
    }
    out.push_str("</tr></thead><tbody>");
    for view in counted {
        let standings = pairs.iter().map(|pair| Standing::of(&view.table, header, *pair));
        let standings: Vec<_> = standings.collect();
        if standings.iter().all(|standing| standing.points() == 0) {
            continue;
        }
        let (id, name) = (view.table.series.id, findings::name(view));
        put(&mut out, format_args!("<tr><th><a href=\"#{id}\">{}</a></th>", Text(&name)));
        for standing in &standings {
            stand(&mut out, view, standing);
        }
        out.push_str("</tr>");
    }
    out.push_str("</tbody></table></div>");
    out
}

fn stand(out: &mut String, view: &View, standing: &Standing) {
    if standing.points() == 0 {
        return out.push_str("<td>-</td>");
    }
    if let Some(why) = standing.without_intervals() {
        return put(out, format_args!("<td class=\"note\">{why}</td>"));
    }
    put(out, format_args!("<td title=\"{}\">", Text(&standing.text(&view.table))));
    out.push_str("<span class=\"stand\">");
    let kinds = [
        (Verdict::Faster, standing.faster.len()),
        (Verdict::Open, standing.open.len()),
        (Verdict::Slower, standing.slower.len()),
    ];
    for (verdict, many) in kinds.into_iter().filter(|kind| kind.1 > 0) {
        let class = class(verdict);
        put(out, format_args!("<i class=\"{class}\" style=\"flex:{many}\">{many}</i>"));
    }
    put(out, format_args!("</span><small>{}</small></td>", standing.ratios()));
}

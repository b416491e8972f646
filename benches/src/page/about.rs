//! The parts of a page that are about the run: title, machine, method, and what failed.

use super::markup::Text;
use super::plot::put;
use super::strip;
use crate::model::{Header, Run};
use crate::results::{facts, wording};

/// The title and what was compared.
pub fn title(header: &Header) -> String {
    let labels: Vec<_> = header.runtimes.iter().map(|runtime| &*runtime.label).collect();
    let labels = labels.join(", ");
    let (started, rounds) = (&header.started, header.rounds);
    let (labels, started, command) = (Text(&labels), Text(started), Text(&header.command));
    format!(
        "<header><h1>{TITLE}</h1><p class=\"lead\">{labels}</p><p class=\"note\">{started}, {rounds} \
         rounds</p><pre>{command}</pre></header>"
    )
}

/// The title of every page.
pub const TITLE: &str = "Message passing, measured";

/// Machine, method, faces.
pub fn run(run: &Run) -> String {
    let mut out = String::from("<section id=\"run\"><h2>The run</h2><div class=\"columns\">");
    out.push_str("<div><h3>Machine and libraries</h3><table class=\"facts\"><tbody>");
    for (name, value) in &run.header.machine {
        put(&mut out, format_args!("<tr><th>{}</th><td>{}</td></tr>", Text(name), Text(value)));
    }
    for threshold in &run.header.thresholds {
        let size = wording::size(threshold.bytes as u64);
        put(
            &mut out,
            format_args!("<tr><th>above {size}</th><td>{}</td></tr>", Text(&threshold.what)),
        );
    }
    out.push_str("</tbody></table></div><div><h3>How figures are made</h3><ul>");
    for rule in facts::method(&run.header) {
        put(&mut out, format_args!("<li>{}</li>", Text(rule)));
    }
    out.push_str("<li>Lines have a shaded band, bars a thin stroke, where there is an interval. ");
    out.push_str("In the charts of ratios, a pale mark is open.</li>");
    out.push_str("<li>Hollow marks and pale bars, as a *: more ranks than processors.</li>");
    out.push_str("<li>In the tables, min and p99 are of batches; n is batches / launches.</li>");
    out.push_str("</ul></div></div>");
    faces(&mut out, run);
    failures(&mut out, run);
    out.push_str("</section>");
    out
}

fn faces(out: &mut String, run: &Run) {
    let Some((picture, note)) = strip::svg(run).zip(facts::faces(run)) else { return };
    put(out, format_args!("<h3>A cache line from processor to processor</h3><p>{} ", Text(&note)));
    out.push_str("The dashed line is where near ends.</p>");
    put(out, format_args!("<div class=\"strip\">{picture}</div>"));
}

fn failures(out: &mut String, run: &Run) {
    let failures = facts::failures(run);
    if failures.is_empty() {
        return;
    }
    out.push_str("<h3>What failed</h3><ul>");
    for failure in &failures {
        put(out, format_args!("<li>{}</li>", Text(failure)));
    }
    out.push_str("</ul>");
}

//! Pages of runs that nobody measured: well-formed, complete, and safe against texts with markup.

use std::fs;
use std::sync::LazyLock;

use mpj_bench_programs::series::SERIES;

use super::synthetic::{header, run};
use super::*;
use crate::analysis;

const ALL: &[&str] = &["eager", "rendezvous", "auto", "openmpi", "mpich"];
/// Elements without an end.
const EMPTY: &[&str] = &["!DOCTYPE", "meta"];

fn page(run: &Run) -> String {
    html(run, &analysis::tables(run))
}

/// The page of a run of all runtimes.
fn page_of_all() -> &'static str {
    static PAGE: LazyLock<String> = LazyLock::new(|| page(&run(ALL)));
    &PAGE
}

/// The first thing that is wrong with the nesting of a page.
fn first_fault(page: &str) -> Option<String> {
    let (before, rest) = page.split_once("<style>").expect("every page has a style sheet");
    let (_, after) = rest.split_once("</style>").expect("it ends");
    let text = format!("{before}{after}");
    let mut open: Vec<&str> = Vec::new();
    for piece in text.split('<').skip(1) {
        let (tag, _) = piece.split_once('>')?;
        if tag.matches('"').count() % 2 == 1 {
            return Some(format!("quotes in <{tag}>"));
        }
        let name = tag.trim_start_matches('/').split([' ', '/']).next().unwrap_or_default();
        if tag.starts_with('/') {
            if open.pop() != Some(name) {
                return Some(format!("</{name}> closes something else"));
            }
        } else if !tag.ends_with('/') && !EMPTY.contains(&name) {
            open.push(name);
        }
    }
    open.pop().map(|name| format!("<{name}> stays open"))
}

#[test]
fn pages_are_well_formed() {
    assert_eq!(first_fault(page_of_all()), None);
    for ids in [&["eager", "rendezvous"][..], &["auto"], &["auto", "mpich"]] {
        assert_eq!(first_fault(&page(&run(ids))), None, "{ids:?}");
    }
    let empty = Run { header: header(ALL), launches: Vec::new() };
    assert_eq!(first_fault(&page(&empty)), None);
}

#[test]
fn the_scanner_sees_faults() {
    let page = |body: &str| format!("<style></style>{body}");
    assert!(first_fault(&page("<p><b></p></b>")).is_some());
    assert!(first_fault(&page("<p>")).is_some());
    assert!(first_fault(&page("<p a=\"1></p>")).is_some());
    assert_eq!(first_fault(&page("<p a=\"1\"><b/></p>")), None);
}

#[test]
fn every_series_is_there_once() {
    let page = page_of_all();
    for series in SERIES {
        let heads = page.matches(&format!("<h3>{}</h3>", Text(series.title))).count();
        let title = Text(series.title).to_string();
        let is_caption = |text: &&str| {
            **text == title || text.strip_suffix(&*title).is_some_and(|it| it.ends_with(": "))
        };
        let notes = page.split("<p class=\"note\">").skip(1);
        let captions = notes.filter_map(|rest| rest.split("</p>").next()).filter(is_caption);
        let captions = captions.count();
        // A share has a caption for each of its pictures, beside what it is a share of.
        assert_eq!(heads + captions.min(1), 1, "{}", series.id);
    }
}

#[test]
fn every_link_leads_somewhere() {
    let page = page_of_all();
    let links = page.split("href=\"#").skip(1).map(|rest| rest.split('"').next().unwrap_or(""));
    for link in links.collect::<std::collections::BTreeSet<_>>() {
        assert_eq!(page.matches(&format!("id=\"{link}\"")).count(), 1, "{link}");
    }
}

#[test]
fn texts_of_the_run_are_escaped() {
    let mut run = run(&["auto", "mpich"]);
    let hostile = "<script>\"'&";
    run.header.command = hostile.to_owned();
    run.header.started = hostile.to_owned();
    run.header.machine = vec![(hostile.to_owned(), hostile.to_owned())];
    run.header.thresholds[0].what = hostile.to_owned();
    run.launches[0].failure = Some(hostile.to_owned());
    for runtime in &mut run.header.runtimes {
        runtime.label = hostile.to_owned();
    }
    let page = page(&run);
    assert!(!page.contains("<script"));
    assert!(page.contains("&lt;script&gt;&quot;&#39;&amp;"));
    assert_eq!(first_fault(&page), None);
}

#[test]
fn pages_need_nothing_else() {
    let page = page_of_all();
    for outside in ["src=", "http:", "https:", "@import", "url(", "<script", "<link", "NaN", "inf"]
    {
        assert!(!page.contains(outside), "{outside}");
    }
    assert!(page.len() < 2 << 20, "{} bytes", page.len());
}

#[test]
fn ratios_are_of_backends_where_there_are_no_peers() {
    let page = page(&run(&["eager", "rendezvous"]));
    assert!(page.contains("near: time by that of mpj rendezvous, below 1 is faster"));
    assert!(!page.contains("that of the best peer"));
}

#[test]
fn one_peer_is_called_by_its_name() {
    let page = page(&run(&["auto", "mpich"]));
    assert!(page.contains("near: time by that of MPICH 4.0.2, below 1 is faster"));
    assert!(!page.contains("that of the best peer"));
}

#[test]
fn what_a_wait_costs_stands_beside_how_long_it_took() {
    let page = page_of_all();
    let (_, rest) = page.split_once("<figure class=\"wide\" id=\"wakeup\">").expect("there is one");
    let (figure, _) = rest.split_once("</figure>").expect("it ends");
    assert!(figure.contains(&Text(facts::WAKEUP).to_string()));
    assert!(figure.contains("near: Processor time while blocked</p>"));
    assert!(figure.contains("Figures: Processor time while blocked, near"));
}

#[test]
fn a_page_of_few_launches_has_no_verdicts() {
    let mut run = run(ALL);
    run.launches.retain(|launch| launch.round == 0);
    let page = page(&run);
    assert!(page.contains("<td class=\"note\">no intervals: 1 launch of each</td>"));
    assert!(page.contains("<b>no interval</b>"));
    for word in ["<b>open</b>", "<b>faster</b>", "<b>slower</b>"] {
        assert!(!page.contains(word), "{word}");
    }
}

#[test]
#[ignore = "writes a page to look at"]
fn write_a_page() {
    let folder = std::env::temp_dir();
    let run = run(ALL);
    fs::write(folder.join("mpj-bench-page.html"), page(&run)).unwrap();
    fs::write(folder.join("mpj-bench-results.md"), crate::results::markdown(&run)).unwrap();
    let few = super::synthetic::run(&["eager", "rendezvous"]);
    fs::write(folder.join("mpj-bench-backends.html"), page(&few)).unwrap();
}

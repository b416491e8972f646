//! Runs of several machines beside each other: a section for each, headed by its processor, and one
//! table of what each says of this project and the best peer. Pure.
//!
//! Launches of two machines are never paired, and their times never compared: every ratio is of one run
//! alone, with the peers that took part there.

use std::collections::BTreeMap;
use std::fmt::Write;

use mpj_bench_programs::Series;
use mpj_bench_programs::series::SERIES;

use crate::analysis::{self, Ratio};
use crate::contender;
use crate::model::{Face, Run};
use crate::results::{self, cell, findings, wording};
use crate::text::{self, Grid, NOTHING};
use crate::views;

/// One point, with what each run says of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// What is measured.
    pub series: &'static Series,
    /// As [`analysis::Table::ranks`].
    pub ranks: Option<usize>,
    /// The face of the machine; `None` where it does not matter.
    pub face: Option<Face>,
    /// As [`analysis::Row::x`].
    pub x: u64,
    /// Our time by that of the best peer, in the order of the runs; `None` where a run has none.
    pub ratios: Vec<Option<Ratio>>,
}

/// Every point of which a run has a ratio of ours to the best peer; of message sizes 0 and powers of two.
pub fn lines(runs: &[Run]) -> Vec<Line> {
    let mut lines = BTreeMap::<_, Line>::new();
    for (place, run) in runs.iter().enumerate() {
        let Some(ours) = analysis::principal(&run.header) else { continue };
        for view in findings::counted(&views::of(run, &analysis::tables(run))) {
            let (series, ranks) = (view.table.series, view.table.ranks);
            let number = SERIES.iter().position(|it| it == series);
            for row in &view.table.rows {
                let peer = row.best_peer(series.better, &run.header);
                let Some(ratio) = peer.and_then(|peer| row.ratio(ours, peer)) else { continue };
                let (x, face) = (row.x, view.face);
                let key = (number, ranks, face.map(|face| face == Face::Far), x);
                let none = || Line { series, ranks, face, x, ratios: vec![None; runs.len()] };
                lines.entry(key).or_insert_with(none).ratios[place] = Some(ratio.clone());
            }
        }
    }
    lines.into_values().collect()
}

/// What the machines of the runs are called: by their processors, with numbers where these are the same.
pub fn machines(runs: &[Run]) -> Vec<String> {
    let mut names: Vec<String> = runs.iter().map(|run| run.header.processor().to_owned()).collect();
    contender::number(&mut names, |name, nth| format!("{name} ({nth})"));
    names
}

/// What the ratios are, for readers.
const NOTE: &str = "Time of mpj by that of the peer with the best median at the same point of the same run; \
                    no launch is paired with one of another machine.";

impl Line {
    /// The name of its table: `Latency, rewritten, 2 ranks, far`.
    fn table(&self) -> String {
        let ranks = self.ranks.map(|ranks| text::count(ranks, "rank", "ranks"));
        let face = self.face.map(|face| face.name().to_owned());
        let parts = [Some(self.series.title.to_owned()), ranks, face];
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

/// The ratios, as the text of a run is written.
pub fn text(runs: &[Run]) -> String {
    let machines = machines(runs);
    let mut out = text::remarks(&["Beside each other.".to_owned(), NOTE.to_owned()]);
    for lines in lines(runs).chunk_by(|one, other| one.table() == other.table()) {
        let mut grid = Grid::new(text::first(lines[0].series.x), &machines);
        for line in lines {
            let said =
                |ratio: &Ratio| format!("{} {}", text::times(ratio.median), text::said(ratio));
            let words = line.ratios.iter().map(|ratio| ratio.as_ref().map(said));
            let words =
                words.map(|word| word.map_or(NOTHING.to_owned(), |it| it.trim().to_owned()));
            grid.row(line.x, &words.collect::<Vec<_>>(), &[]);
        }
        out += &format!("\n{}{}", text::remarks(&[lines[0].table()]), grid.text());
    }
    out
}

/// The results document of several runs.
pub fn markdown(runs: &[Run]) -> String {
    let machines = machines(runs);
    let mut out = format!("# Results\n\n## Machines beside each other\n\n{NOTE}\n\n");
    let heads = machines.iter().map(|machine| cell(machine)).collect::<Vec<_>>().join(" | ");
    let mut put = |line: String| writeln!(out, "{line}").expect("a String takes everything");
    put(format!("| What | {heads} |\n|---|{}", "---:|".repeat(runs.len())));
    for line in lines(runs) {
        let said = |ratio: &Ratio| {
            let of = wording::ratio_with_interval(ratio);
            format!("{of} {}", wording::said(line.series, ratio))
        };
        let ratios = line.ratios.iter().map(|it| it.as_ref().map_or(NOTHING.to_owned(), said));
        let point = wording::at(line.series.x, line.x);
        let ratios = ratios.collect::<Vec<_>>().join(" | ");
        put(format!("| {}, {point} | {ratios} |", line.table()));
    }
    for (run, machine) in runs.iter().zip(&machines) {
        put(format!("\n## {}\n", cell(machine)));
        let document = results::markdown(run);
        for line in document.lines().skip(2) {
            let deeper = if line.starts_with('#') { "#" } else { "" };
            put(format!("{deeper}{line}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::synthetic;

    fn runs() -> [Run; 2] {
        let one = synthetic::run(&["auto", "mpich"]);
        let mut other = synthetic::run(&["auto", "openmpi"]);
        other.header.machine[0].1 = "Another".to_owned();
        other.launches.retain(|launch| launch.benchmark == "latency");
        for launch in other.launches.iter_mut().filter(|launch| launch.runtime == "auto") {
            let values = launch.samples.iter_mut().flat_map(|sample| &mut sample.values);
            values.for_each(|value| *value *= 10.0);
        }
        [one, other]
    }

    #[test]
    fn every_ratio_is_of_its_own_run() {
        let runs = runs();
        let all = lines(&runs);
        let point = |series: &str| all.iter().find(|it| it.series.id == series && it.x == 8);
        let latency = point("latency").expect("both have it");
        let [one, other] = &latency.ratios[..] else { panic!("{latency:?}") };
        let medians = [one, other].map(|ratio| ratio.as_ref().expect("measured").median);
        assert!(medians[0] < 1.0 && medians[1] > 5.0, "{medians:?}");
        let alone = lines(&runs[..1]);
        assert_eq!(
            alone
                .iter()
                .find(|it| it.series.id == "latency" && it.x == 8)
                .and_then(|it| it.ratios[0].clone()),
            one.clone()
        );
        let rate = point("rate").expect("one has it");
        assert!(rate.ratios[0].is_some() && rate.ratios[1].is_none());
        assert!(all.iter().all(|it| !it.series.unit.is_relative()));
    }

    #[test]
    fn each_machine_has_a_section_and_a_column() {
        let document = markdown(&runs());
        let columns = "| What | Example &lt;4> Processor @ 2.50GHz | Another |";
        assert!(document.contains(columns), "{}", &document[..400]);
        let headings = document.lines().filter(|line| line.starts_with("## "));
        let expected = [
            "## Machines beside each other",
            "## Example &lt;4> Processor @ 2.50GHz",
            "## Another",
        ];
        assert_eq!(headings.collect::<Vec<_>>(), expected);
        assert_eq!(document.lines().filter(|line| line.starts_with("# ")).count(), 1);
        let bars = |line: &str| line.matches('|').count();
        let rows =
            document.lines().filter(|line| line.starts_with("| Latency, rewritten, 2 ranks"));
        assert!(rows.clone().count() > 20 && rows.into_iter().all(|row| bars(row) == 4));
        let text = text(&runs());
        assert!(text.contains("\n# Latency, rewritten, 2 ranks, near\n"), "{text}");
    }

    #[test]
    fn machines_with_the_same_processor_get_numbers() {
        let run = synthetic::run(&["auto"]);
        let name = "Example <4> Processor @ 2.50GHz".to_owned();
        assert_eq!(machines(&[run.clone(), run]), [name.clone(), format!("{name} (2)")]);
    }
}

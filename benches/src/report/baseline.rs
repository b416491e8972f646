//! Compares a run with an earlier one, point by point and runtime by runtime.
//!
//! Launches of two runs cannot be paired, so medians are compared. A change is reported only if
//! both have intervals that do not overlap. Near figures are compared with near ones, far with far.

use super::table::{self, Cell, Grid, Line};
use super::{text, words};
use crate::analysis::{self, Row, Table, Verdict};
use crate::model::{Header, Run};

/// Returns the changes since `then`: facts that differ, then one table for each that both runs
/// have.
pub fn text(now: &Run, then: &Run) -> String {
    let (facts_now, facts_then) = (facts(&now.header), facts(&then.header));
    let mut head = vec![format!("Compared with the run of {}", then.header.started)];
    let only = |facts: &[String], others: &[String], when: &str| {
        let own = facts.iter().filter(|fact| !others.contains(fact));
        own.map(|fact| format!("only {when}: {fact}")).collect::<Vec<_>>()
    };
    head.extend(only(&facts_now, &facts_then, "now"));
    head.extend(only(&facts_then, &facts_now, "then"));
    let earlier = analysis::tables(then);
    let (mut out, mut verdicts) = (String::new(), Vec::new());
    for table in analysis::tables(now) {
        let same = |it: &&Table| {
            (it.series, it.ranks, it.distance) == (table.series, table.ranks, table.distance)
        };
        let Some(then_table) = earlier.iter().find(same) else { continue };
        let lines = lines((&table, &now.header), (then_table, &then.header), &mut verdicts);
        let unit = table.series.unit;
        let heads = [table.series.x.head(), "runtime", "then", "now", "now/then", ""];
        let title = format!("{} ({unit})", table::name(&table));
        out += "\n";
        out += &text::grid(&Grid { title, heads: heads.map(str::to_owned).to_vec(), lines });
    }
    let number = |verdict| verdicts.iter().filter(|it| **it == verdict).count();
    let (faster, slower) = (number(Verdict::Faster), number(Verdict::Slower));
    let all = verdicts.len();
    head.push(format!("of {all} figures: {faster} faster, {slower} slower than then"));
    text::remarks(&head) + &out
}

fn facts(header: &Header) -> Vec<String> {
    let machine = header.machine.iter().map(|(name, value)| format!("{name}: {value}"));
    let runtimes = header.runtimes.iter().map(|it| format!("runtime {}: {}", it.id, it.label));
    machine.chain(runtimes).collect()
}

/// One line for each figure in both tables.
fn lines(
    (now, header): (&Table, &Header),
    (then, then_header): (&Table, &Header),
    verdicts: &mut Vec<Verdict>,
) -> Vec<Line> {
    let (series, better) = (now.series, now.series.better);
    let mut lines = Vec::new();
    let both = |row: &Row| then.rows.iter().find(|it| it.x == row.x).cloned();
    for (row, earlier) in now.rows.iter().filter_map(|row| Some((row, both(row)?))) {
        for (place, runtime) in header.runtimes.iter().enumerate() {
            let before = then_header.runtimes.iter().position(|it| it.id == runtime.id);
            let before = before.and_then(|place| earlier.cells[place].as_ref());
            let Some((now, then)) = row.cells[place].as_ref().zip(before) else { continue };
            let verdict = analysis::apart(better, now.interval, then.interval);
            verdicts.push(verdict);
            let ratio = analysis::ratio_of_times(better, now.median, then.median);
            let ratio = ratio.map_or(words::NOTHING.to_owned(), words::ratio);
            let figures = [then.median, now.median].map(words::figure);
            let texts = [&runtime.id, &figures[0], &figures[1], &ratio, table::verdict(verdict)];
            let point = words::point(series.x, row.x);
            lines.push(Line { x: row.x, point, cells: texts.map(Cell::from).to_vec() });
        }
    }
    lines
}

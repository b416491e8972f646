//! Presents a run on the terminal: machine-readable columns, and facts as lines that begin with `#
//! `.

use super::about;
use super::table::{self, Grid};
use crate::analysis::Table;
use crate::model::Run;

/// The least width of the first column.
const FIRST: usize = 10;
/// The blanks before each other column.
const GAP: usize = 3;

/// Returns the text of a run, where `tables` come from [`crate::analysis::tables`].
pub fn all(run: &Run, tables: &[Table]) -> String {
    let header = &run.header;
    let mut head = vec![header.command.clone(), format!("started {}", header.started)];
    head.extend(about::facts(header).into_iter().map(|(name, value)| format!("{name}: {value}")));
    head.extend(header.runtimes.iter().map(|it| format!("runtime {}: {}", it.id, it.label)));
    let mut out = remarks(&head);
    for table in tables {
        out += "\n";
        out += &grid(&table::grid(table, header));
    }
    if tables.iter().flat_map(|table| &table.rows).any(|row| row.oversubscribed) {
        out += "\n# * more ranks than processors: not to be compared with other rows\n";
    }
    let failures = about::failures(run).into_iter().map(|failure| format!("failed: {failure}"));
    let foot = about::findings(header, tables).into_iter().chain(about::distances(run));
    let foot: Vec<String> = foot.chain(failures).collect();
    out + "\n" + &remarks(&foot)
}

/// Formats lines that parsers skip. Line breaks inside a text, which comes from files and programs,
/// become blanks.
pub(super) fn remarks(lines: &[String]) -> String {
    let line = |text: &String| text.split_whitespace().collect::<Vec<_>>().join(" ");
    lines.iter().map(|text| format!("# {}\n", line(text))).collect()
}

/// Formats a table in columns as wide as their longest word.
pub(super) fn grid(grid: &Grid) -> String {
    let mut lines = vec![grid.heads.clone()];
    lines[0][0].insert_str(0, "# ");
    lines.extend(grid.lines.iter().map(|line| {
        let star = if line.point.ends_with('*') { "*" } else { "" };
        let cells = line.cells.iter().map(|cell| cell.text.clone());
        std::iter::once(format!("{}{star}", line.x)).chain(cells).collect()
    }));
    let longest = |column: usize| lines.iter().map(|line| line[column].chars().count()).max();
    let widths: Vec<usize> = (0..grid.heads.len()).filter_map(longest).collect();
    let mut out = remarks(std::slice::from_ref(&grid.title));
    for line in lines {
        let mut text = format!("{:<1$}", line[0], FIRST.max(widths[0]));
        for (word, width) in line.iter().zip(&widths).skip(1).filter(|(_, width)| **width > 0) {
            text += &format!("{word:>0$}", width + GAP);
        }
        out += text.trim_end();
        out += "\n";
    }
    out
}

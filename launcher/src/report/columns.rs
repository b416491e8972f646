//! Aligns texts in columns.

/// Returns the rows as lines that begin with `start`. Columns for which `right` is true are aligned at the right.
pub(crate) fn aligned(start: &str, rows: &[Vec<String>], right: impl Fn(usize) -> bool) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let cell = |(column, cell): (usize, &String)| {
        let width = width(column).unwrap_or(0);
        if right(column) { format!("{cell:>width$}") } else { format!("{cell:<width$}") }
    };
    let line = |row: &Vec<String>| {
        let cells: Vec<String> = row.iter().enumerate().map(cell).collect();
        format!("{start}{}\n", cells.join("  ").trim_end())
    };
    rows.iter().map(line).collect()
}

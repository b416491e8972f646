//! Reader of Matrix Market files: square sparse matrices of real numbers, in coordinate form.
//!
//! `main.rs` uses it on rank 0, and so do the tests of the tree. The format: a line that names the kind of matrix,
//! comments that begin with `%`, a line with the numbers of rows, columns and entries, and a line for each entry with
//! its row, its column (both from 1) and its value. A symmetric matrix contains only the entries on and below the
//! diagonal.

use std::io::{self, BufRead};

use super::csr::Csr;

/// The most rows that a matrix may have.
const MOST_ROWS: usize = 1 << 24;

/// Why a file was refused, and the line of the error, counted from 1.
#[derive(Debug, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct MarketError {
    pub line: usize,
    #[source]
    pub reason: Reason,
}

/// What is wrong with a line.
#[derive(Debug, thiserror::Error)]
pub enum Reason {
    #[error("cannot read: {0}")]
    Read(#[from] io::Error),
    #[error("not a Matrix Market file: expected '%%MatrixMarket matrix coordinate real general'")]
    NoBanner,
    #[error("{word:?} where one of these is expected: {expected}")]
    Unsupported { word: String, expected: &'static str },
    #[error("the file ends where {expected} is expected")]
    Ends { expected: &'static str },
    #[error("{text:?}: expected {expected}")]
    Malformed { text: String, expected: &'static str },
    #[error("a matrix of {rows} x {columns}: expected a square one of 1 to {MOST_ROWS} rows")]
    Extents { rows: usize, columns: usize },
    #[error("entry at row {row}, column {column} of a matrix of {rows} x {rows}")]
    Outside { row: usize, column: usize, rows: usize },
    #[error("entry at row {row}, column {column} above the diagonal of a symmetric matrix")]
    AboveDiagonal { row: usize, column: usize },
    #[error("more than the {entries} entries that the file promises")]
    TooMany { entries: usize },
}

const SIZES: &str = "the numbers of rows, columns and entries";
const ENTRY: &str = "an entry: row, column and a finite value";

/// Reads a matrix.
///
/// # Errors
/// The first line that is not as expected.
pub fn read(input: impl BufRead) -> Result<Csr, MarketError> {
    let mut lines = Lines { input, number: 0 };
    let matrix = parse(&mut lines);
    matrix.map_err(|reason| MarketError { line: lines.number, reason })
}

/// The lines of a file, with a counter.
struct Lines<R> {
    input: R,
    number: usize,
}

impl<R: BufRead> Lines<R> {
    /// Reads the next line, if there is one.
    fn next(&mut self) -> Result<Option<String>, Reason> {
        self.number += 1;
        let mut line = String::new();
        let length = self.input.read_line(&mut line)?;
        Ok((length > 0).then_some(line))
    }

    /// Reads the next line that is neither empty nor a comment.
    fn next_data(&mut self) -> Result<Option<String>, Reason> {
        loop {
            match self.next()? {
                Some(line) if line.trim().is_empty() || line.starts_with('%') => {}
                line => return Ok(line),
            }
        }
    }
}

fn parse<R: BufRead>(lines: &mut Lines<R>) -> Result<Csr, Reason> {
    let symmetric = banner(&lines.next()?.unwrap_or_default())?;
    let line = lines.next_data()?.ok_or(Reason::Ends { expected: SIZES })?;
    let sizes = match numbers(&line).as_deref() {
        Some([rows, columns, entries]) => Some((*rows, *columns, *entries)),
        _ => None,
    };
    let (rows, columns, count) = sizes.ok_or_else(|| malformed(&line, SIZES))?;
    if rows != columns || !(1..=MOST_ROWS).contains(&rows) {
        return Err(Reason::Extents { rows, columns });
    }
    // The list grows with what the file contains, not with the count that it states.
    let mut entries = Vec::new();
    for _ in 0..count {
        let line = lines.next_data()?.ok_or(Reason::Ends { expected: ENTRY })?;
        let (row, column, value) = entry(&line).ok_or_else(|| malformed(&line, ENTRY))?;
        if !(1..=rows).contains(&row) || !(1..=rows).contains(&column) {
            return Err(Reason::Outside { row, column, rows });
        }
        if symmetric && column > row {
            return Err(Reason::AboveDiagonal { row, column });
        }
        let (i, j) = (row as u32 - 1, column as u32 - 1);
        entries.push((i, j, value));
        if symmetric && i != j {
            entries.push((j, i, value));
        }
    }
    if lines.next_data()?.is_some() {
        return Err(Reason::TooMany { entries: count });
    }
    Ok(Csr::from_entries(rows, entries))
}

/// Reads the first line of a file. Returns whether the matrix is symmetric.
fn banner(line: &str) -> Result<bool, Reason> {
    let lower = line.to_ascii_lowercase();
    let words: Vec<&str> = lower.split_whitespace().collect();
    let ["%%matrixmarket", object, form, field, symmetry] = words[..] else {
        return Err(Reason::NoBanner);
    };
    let refusal = |word: &str, expected| Reason::Unsupported { word: word.to_owned(), expected };
    match (object, form, field, symmetry) {
        ("matrix", "coordinate", "real", "general") => Ok(false),
        ("matrix", "coordinate", "real", "symmetric") => Ok(true),
        ("matrix", "coordinate", "real", _) => Err(refusal(symmetry, "general, symmetric")),
        ("matrix", "coordinate", ..) => Err(refusal(field, "real")),
        ("matrix", ..) => Err(refusal(form, "coordinate")),
        _ => Err(refusal(object, "matrix")),
    }
}

/// Returns the numbers of a line that contains nothing else.
fn numbers(line: &str) -> Option<Vec<usize>> {
    line.split_whitespace().map(|word| word.parse().ok()).collect()
}

fn entry(line: &str) -> Option<(usize, usize, f64)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [row, column, value] = words[..] else {
        return None;
    };
    let value: f64 = value.parse().ok()?;
    value.is_finite().then_some((row.parse().ok()?, column.parse().ok()?, value))
}

fn malformed(line: &str, expected: &'static str) -> Reason {
    Reason::Malformed { text: line.trim().to_owned(), expected }
}

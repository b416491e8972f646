//! Sparse matrices by rows: for each row its columns and values (compressed sparse rows, CSR).
//!
//! - CS1: the entries of row `i` are those from `starts[i]` up to `starts[i + 1]`. Their columns ascend, and each
//!   occurs once.

use std::ops::Range;

/// A sparse matrix, or some rows of one (CS1).
#[derive(Debug, Clone, PartialEq)]
pub struct Csr {
    starts: Vec<usize>,
    columns: Vec<u32>,
    values: Vec<f64>,
}

impl Csr {
    /// Makes the matrix of `rows` rows with these entries: row, column and value. Entries at the same place are added.
    pub fn from_entries(rows: usize, mut entries: Vec<(u32, u32, f64)>) -> Self {
        entries.sort_by_key(|(row, column, _)| (*row, *column));
        entries.dedup_by(|next, first| {
            let same = (next.0, next.1) == (first.0, first.1);
            first.2 += if same { next.2 } else { 0.0 };
            same
        });
        let mut lengths = vec![0; rows];
        entries.iter().for_each(|(row, ..)| lengths[*row as usize] += 1);
        let (columns, values) = entries.iter().map(|(_, column, value)| (*column, *value)).unzip();
        Self::from_rows(&lengths, columns, values)
    }

    /// Makes rows of these lengths, with the columns and values of all entries, row by row.
    pub fn from_rows(lengths: &[usize], columns: Vec<u32>, values: Vec<f64>) -> Self {
        let mut end = 0;
        let ends = lengths.iter().map(|length| {
            end += length;
            end
        });
        let starts: Vec<usize> = std::iter::once(0).chain(ends).collect();
        Self { starts, columns, values }
    }

    /// Makes the matrix of Poisson's equation on a square of `side` x `side` points: 4 at each point, and -1 for each
    /// neighbour.
    pub fn poisson(side: usize) -> Self {
        let (mut lengths, mut columns, mut values) = (Vec::new(), Vec::new(), Vec::new());
        for point in 0..side * side {
            let (row, column) = (point / side, point % side);
            let neighbours = [
                (row > 0).then(|| point - side),
                (column > 0).then(|| point - 1),
                Some(point),
                (column + 1 < side).then(|| point + 1),
                (row + 1 < side).then(|| point + side),
            ];
            let before = columns.len();
            for other in neighbours.into_iter().flatten() {
                columns.push(other as u32);
                values.push(if other == point { 4.0 } else { -1.0 });
            }
            lengths.push(columns.len() - before);
        }
        Self::from_rows(&lengths, columns, values)
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.starts.len() - 1
    }

    /// Returns the range of the entries of `rows`.
    pub fn entries(&self, rows: Range<usize>) -> Range<usize> {
        self.starts[rows.start]..self.starts[rows.end]
    }

    pub fn columns(&self) -> &[u32] {
        &self.columns
    }

    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// Iterates over the entries of a row: columns and values.
    pub fn row(&self, row: usize) -> impl Iterator<Item = (usize, f64)> {
        let entries = self.entries(row..row + 1);
        let columns = self.columns[entries.clone()].iter().map(|column| *column as usize);
        columns.zip(self.values[entries].iter().copied())
    }

    /// Renumbers every column.
    pub fn renumber(&mut self, number: impl Fn(u32) -> u32) {
        self.columns.iter_mut().for_each(|column| *column = number(*column));
    }

    /// Multiplies with a vector, which has an element for each column.
    pub fn multiply(&self, vector: &[f64], product: &mut [f64]) {
        for (row, sum) in product.iter_mut().enumerate() {
            *sum = self.row(row).map(|(column, value)| value * vector[column]).sum();
        }
    }

    /// Returns row and column of the first entry whose mirror image has another value.
    pub fn asymmetry(&self) -> Option<(usize, usize)> {
        let at = |row: usize, column: usize| {
            let entries = self.entries(row..row + 1);
            let place = self.columns[entries.clone()].binary_search(&(column as u32));
            place.map_or(0.0, |place| self.values[entries.start + place])
        };
        let mut entries =
            (0..self.rows()).flat_map(|row| self.row(row).map(move |entry| (row, entry)));
        let found = entries.find(|(row, (column, value))| at(*column, *row) != *value);
        found.map(|(row, (column, _))| (row, column))
    }
}

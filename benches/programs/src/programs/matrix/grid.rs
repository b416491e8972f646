//! Ranks as a row-major grid, and the blocks of a matrix on it.

use std::ops::Range;

use crate::runtime::Failure;

/// A grid, seen from one rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grid {
    /// The number of rows.
    pub rows: usize,
    /// The number of columns.
    pub columns: usize,
    /// The row of this rank.
    pub row: usize,
    /// The column of this rank.
    pub column: usize,
}

impl Grid {
    /// Returns the grid with as many rows as columns; `None` if `ranks` is not a square.
    pub fn square(rank: usize, ranks: usize) -> Option<Self> {
        let side = ranks.isqrt();
        (side * side == ranks).then(|| Self::with_rows(side, rank, ranks))
    }

    /// Returns the grid closest to a square, with at least as many columns as rows.
    pub fn most_square(rank: usize, ranks: usize) -> Self {
        let rows = (1..=ranks.isqrt()).rev().find(|rows| ranks % rows == 0);
        Self::with_rows(rows.expect("1 divides every number"), rank, ranks)
    }

    fn with_rows(rows: usize, rank: usize, ranks: usize) -> Self {
        let columns = ranks / rows;
        Self { rows, columns, row: rank / columns, column: rank % columns }
    }

    /// Returns the rank at a place.
    pub fn rank(&self, row: usize, column: usize) -> usize {
        row * self.columns + column
    }

    /// Returns the rank `down` rows below and `right` columns to the right, where rows and columns
    /// wrap around.
    pub fn further(&self, down: usize, right: usize) -> usize {
        self.rank((self.row + down) % self.rows, (self.column + right) % self.columns)
    }

    /// Returns the rows of this rank's block of an N x N matrix.
    pub fn block_rows(&self, n: usize) -> Range<usize> {
        let height = n / self.rows;
        self.row * height..(self.row + 1) * height
    }

    /// Returns the columns of this rank's block of an N x N matrix.
    pub fn block_columns(&self, n: usize) -> Range<usize> {
        let width = n / self.columns;
        self.column * width..(self.column + 1) * width
    }

    /// Checks that an N x N matrix can be cut into equal blocks.
    ///
    /// # Errors
    /// It cannot.
    pub fn check_order(&self, program: &str, n: usize) -> Result<(), Failure> {
        let Self { rows, columns, .. } = self;
        if n % rows == 0 && n % columns == 0 {
            return Ok(());
        }
        Err(Failure::new(format_args!(
            "{program} on a grid of {rows} x {columns} ranks needs an N that both divide, not {n}"
        )))
    }
}

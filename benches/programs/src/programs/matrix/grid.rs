//! Ranks as a grid of rows and columns, row by row, and the blocks of a matrix on them.

use std::ops::Range;

use crate::runtime::Failure;

/// A grid, seen from one rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grid {
    /// How many rows.
    pub rows: usize,
    /// How many columns.
    pub columns: usize,
    /// The row of this rank.
    pub row: usize,
    /// The column of this rank.
    pub column: usize,
}

impl Grid {
    /// As many rows as columns; `None` if there is no such grid of so many ranks.
    pub fn square(rank: usize, ranks: usize) -> Option<Self> {
        let side = ranks.isqrt();
        (side * side == ranks).then(|| Self::with_rows(side, rank, ranks))
    }

    /// As square as can be, and rather wide than high.
    pub fn most_square(rank: usize, ranks: usize) -> Self {
        let rows = (1..=ranks.isqrt()).rev().find(|rows| ranks % rows == 0);
        Self::with_rows(rows.expect("1 divides every number"), rank, ranks)
    }

    fn with_rows(rows: usize, rank: usize, ranks: usize) -> Self {
        let columns = ranks / rows;
        Self { rows, columns, row: rank / columns, column: rank % columns }
    }

    /// The rank at a place.
    pub fn rank(&self, row: usize, column: usize) -> usize {
        row * self.columns + column
    }

    /// The rank that is so many places further down and to the right, where each row and column is
    /// a ring.
    pub fn further(&self, down: usize, right: usize) -> usize {
        self.rank((self.row + down) % self.rows, (self.column + right) % self.columns)
    }

    /// The rows of this rank's block of an N x N matrix.
    pub fn block_rows(&self, n: usize) -> Range<usize> {
        let height = n / self.rows;
        self.row * height..(self.row + 1) * height
    }

    /// The columns of this rank's block of an N x N matrix.
    pub fn block_columns(&self, n: usize) -> Range<usize> {
        let width = n / self.columns;
        self.column * width..(self.column + 1) * width
    }

    /// Refuses matrices that cannot be cut into equal blocks.
    ///
    /// # Errors
    /// If `n` is one of them.
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

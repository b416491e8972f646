//! Which rank has which part of the matrices: partitions, process grids and the blocks of each algorithm.
//!
//! Pure arithmetic for `main.rs` and the algorithms; the tests of the tree include it.
//!
//! - GR1: the parts of a partition are consecutive and cover the whole.
//! - GR2: over all ranks, the blocks of C tile C exactly once, for every shape, even if an extent is smaller than the
//!   number of parts and some blocks are empty.

use std::ops::Range;

use super::partition::part;

/// Extents of a product: A is `m` x `k`, B is `k` x `n`, C is `m` x `n`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    pub m: usize,
    pub k: usize,
    pub n: usize,
}

/// A rectangle of a matrix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    pub rows: Range<usize>,
    pub cols: Range<usize>,
}

/// The blocks of one rank: the factors that it has when the algorithm starts, and the product that it computes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    pub a: Block,
    pub b: Block,
    pub c: Block,
}

/// Ranks in rows and columns, numbered row by row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grid {
    pub rows: usize,
    pub cols: usize,
}

impl Grid {
    /// Returns the grid of all `ranks` whose sides differ least; a prime number gives one row.
    pub fn nearest_square(ranks: usize) -> Self {
        let rows = (1..=ranks.isqrt()).rev().find(|rows| ranks % rows == 0).unwrap_or(1);
        Self { rows, cols: ranks / rows }
    }

    /// Returns the square grid of all `ranks`, if there is one.
    pub fn square(ranks: usize) -> Option<Self> {
        let side = ranks.isqrt();
        (side * side == ranks).then_some(Self { rows: side, cols: side })
    }

    /// Returns row and column of a rank.
    pub fn position(self, rank: usize) -> (usize, usize) {
        (rank / self.cols, rank % self.cols)
    }

    /// Returns the rank in a row and column; both wrap around.
    pub fn rank(self, row: usize, col: usize) -> usize {
        row % self.rows * self.cols + col % self.cols
    }
}

/// Returns which part of the inner extent the rank at (`row`, `col`) multiplies in `step` of Cannon's algorithm, on a
/// grid of `side` rows.
pub fn cannon_part(side: usize, (row, col): (usize, usize), step: usize) -> usize {
    (row + col + step) % side
}

/// Cannon: blocks of A and B are placed already aligned, so that the algorithm starts at once.
pub fn cannon_placement(shape: Shape, grid: Grid, rank: usize) -> Placement {
    let (row, col) = grid.position(rank);
    let rows = part(shape.m, grid.rows, row);
    let cols = part(shape.n, grid.cols, col);
    let inner = part(shape.k, grid.rows, cannon_part(grid.rows, (row, col), 0));
    Placement {
        a: Block { rows: rows.clone(), cols: inner.clone() },
        b: Block { rows: inner, cols: cols.clone() },
        c: Block { rows, cols },
    }
}

/// SUMMA: every matrix lies in blocks over the grid.
pub fn summa_placement(shape: Shape, grid: Grid, rank: usize) -> Placement {
    let (row, col) = grid.position(rank);
    let rows = part(shape.m, grid.rows, row);
    let cols = part(shape.n, grid.cols, col);
    Placement {
        a: Block { rows: rows.clone(), cols: part(shape.k, grid.cols, col) },
        b: Block { rows: part(shape.k, grid.rows, row), cols: cols.clone() },
        c: Block { rows, cols },
    }
}

/// Ring: every matrix lies in bands of whole rows.
pub fn ring_placement(shape: Shape, ranks: usize, rank: usize) -> Placement {
    let rows = part(shape.m, ranks, rank);
    Placement {
        a: Block { rows: rows.clone(), cols: 0..shape.k },
        b: Block { rows: part(shape.k, ranks, rank), cols: 0..shape.n },
        c: Block { rows, cols: 0..shape.n },
    }
}

/// Returns the panels of SUMMA. `0..k` is divided at every border of the blocks of A and of B, so that a panel has one
/// owner in every row and one in every column, and further into panels of at most `widest`.
pub fn summa_panels(k: usize, grid: Grid, widest: usize) -> Vec<Range<usize>> {
    let mut borders: Vec<usize> = (0..grid.cols).map(|col| part(k, grid.cols, col).end).collect();
    borders.extend((0..grid.rows).map(|row| part(k, grid.rows, row).end));
    borders.sort_unstable();
    let mut panels = Vec::new();
    let mut start = 0;
    for border in borders {
        while start < border {
            let end = border.min(start + widest);
            panels.push(start..end);
            start = end;
        }
    }
    panels
}

/// Returns which part of `0..whole`, divided into `parts`, contains `position`.
pub fn owner(whole: usize, parts: usize, position: usize) -> usize {
    (0..parts)
        .find(|index| part(whole, parts, *index).contains(&position))
        .expect("G1: the parts cover the whole, and the position lies in it")
}

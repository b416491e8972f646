//! Dense matrices in row-major order, and their blocks.
//!
//! Called by everything in this program that touches values.
//!
//! - MX1: a matrix has exactly `rows * cols` values.

use std::ops::Range;

use ndarray::{ArrayView2, ArrayViewMut2, s};

use super::grid::Block;
use super::local::Element;
use super::random::uniform;

/// A dense matrix (MX1).
#[derive(Debug, Clone, PartialEq)]
pub struct Matrix<T> {
    rows: usize,
    cols: usize,
    values: Vec<T>,
}

impl<T: Element> Matrix<T> {
    pub fn zeros(rows: usize, cols: usize) -> Self {
        Self { rows, cols, values: vec![T::zeroed(); rows * cols] }
    }

    /// A matrix of the given values, row by row.
    ///
    /// # Panics
    ///
    /// When MX1 would not hold.
    pub fn from_rows(rows: usize, cols: usize, values: Vec<T>) -> Self {
        assert_eq!(rows * cols, values.len(), "MX1");
        Self { rows, cols, values }
    }

    /// A matrix of the given values, column by column.
    ///
    /// # Panics
    ///
    /// When MX1 would not hold.
    pub fn from_columns(rows: usize, cols: usize, values: &[T]) -> Self {
        assert_eq!(rows * cols, values.len(), "MX1");
        let row = |row: usize| values.iter().skip(row).step_by(rows).copied();
        Self { rows, cols, values: (0..rows).flat_map(row).collect() }
    }

    /// Values that depend on `seed` and the position alone, between -1 and 1.
    pub fn seeded(rows: usize, cols: usize, seed: u64) -> Self {
        let values = (0..rows * cols).map(|index| T::from_f64(uniform(seed, index as u64)));
        Self { rows, cols, values: values.collect() }
    }

    pub fn rows(&self) -> usize {
        self.rows
    }

    pub fn cols(&self) -> usize {
        self.cols
    }

    pub fn values(&self) -> &[T] {
        &self.values
    }

    pub fn values_mut(&mut self) -> &mut [T] {
        &mut self.values
    }

    /// The whole matrix as a factor.
    pub fn view(&self) -> ArrayView2<'_, T> {
        ArrayView2::from_shape((self.rows, self.cols), &self.values).expect("MX1")
    }

    /// The whole matrix as a sum.
    pub fn view_mut(&mut self) -> ArrayViewMut2<'_, T> {
        ArrayViewMut2::from_shape((self.rows, self.cols), &mut self.values).expect("MX1")
    }

    /// Some columns, in place, as a factor.
    pub fn columns(&self, cols: Range<usize>) -> ArrayView2<'_, T> {
        self.view().slice_move(s![.., cols])
    }

    /// The values of some consecutive rows.
    pub fn row_band(&self, rows: Range<usize>) -> &[T] {
        &self.values[rows.start * self.cols..rows.end * self.cols]
    }

    /// A copy of one block.
    pub fn extract(&self, block: &Block) -> Self {
        let row = |row: usize| &self.values[row * self.cols..][block.cols.clone()];
        let values = block.rows.clone().flat_map(row).copied();
        Self { rows: block.rows.len(), cols: block.cols.len(), values: values.collect() }
    }

    /// Overwrites one block.
    ///
    /// # Panics
    ///
    /// When `part` does not have the extents of the block.
    pub fn place(&mut self, block: &Block, part: &Self) {
        let extents = (block.rows.len(), block.cols.len());
        assert_eq!(extents, (part.rows, part.cols), "a part has the extents of its block");
        for (row, source) in block.rows.clone().zip(0..) {
            let target = &mut self.values[row * self.cols..][block.cols.clone()];
            target.copy_from_slice(part.row_band(source..source + 1));
        }
    }
}

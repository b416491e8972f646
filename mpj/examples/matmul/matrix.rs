//! Dense matrices in row-major order, and their blocks.
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

    /// Makes a matrix of the given values, row by row.
    ///
    /// # Panics
    ///
    /// If MX1 would not hold.
    pub fn from_rows(rows: usize, cols: usize, values: Vec<T>) -> Self {
        assert_eq!(rows * cols, values.len(), "MX1");
        Self { rows, cols, values }
    }

    /// Makes a matrix of the given values, column by column.
    ///
    /// # Panics
    ///
    /// If MX1 would not hold.
    pub fn from_columns(rows: usize, cols: usize, values: &[T]) -> Self {
        assert_eq!(rows * cols, values.len(), "MX1");
        let row = |row: usize| values.iter().skip(row).step_by(rows).copied();
        Self { rows, cols, values: (0..rows).flat_map(row).collect() }
    }

    /// Makes up values between -1 and 1 that depend only on `seed` and the position.
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

    /// Returns the whole matrix as a factor.
    pub fn view(&self) -> ArrayView2<'_, T> {
        ArrayView2::from_shape((self.rows, self.cols), &self.values).expect("MX1")
    }

    /// Returns the whole matrix as a sum to add to.
    pub fn view_mut(&mut self) -> ArrayViewMut2<'_, T> {
        ArrayViewMut2::from_shape((self.rows, self.cols), &mut self.values).expect("MX1")
    }

    /// Returns some columns as a factor, without copying them.
    pub fn columns(&self, cols: Range<usize>) -> ArrayView2<'_, T> {
        self.view().slice_move(s![.., cols])
    }

    /// Returns the values of some consecutive rows.
    pub fn row_band(&self, rows: Range<usize>) -> &[T] {
        &self.values[rows.start * self.cols..rows.end * self.cols]
    }

    /// Returns a copy of one block.
    pub fn extract(&self, block: &Block) -> Self {
        let row = |row: usize| &self.values[row * self.cols..][block.cols.clone()];
        let values = block.rows.clone().flat_map(row).copied();
        Self { rows: block.rows.len(), cols: block.cols.len(), values: values.collect() }
    }

    /// Overwrites one block.
    ///
    /// # Panics
    ///
    /// If `part` does not have the extents of the block.
    pub fn place(&mut self, block: &Block, part: &Self) {
        let extents = (block.rows.len(), block.cols.len());
        assert_eq!(extents, (part.rows, part.cols), "a part has the extents of its block");
        for (row, source) in block.rows.clone().zip(0..) {
            let target = &mut self.values[row * self.cols..][block.cols.clone()];
            target.copy_from_slice(part.row_band(source..source + 1));
        }
    }
}

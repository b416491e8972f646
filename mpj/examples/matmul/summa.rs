//! SUMMA (van de Geijn and Watts): on any grid, panels of A are broadcast along the rows of the grid
//! and panels of B along its columns, and every rank adds the product of each pair.
//!
//! The blocks lie over the grid (`grid::summa_placement`). Each row and each column of the grid has a communicator of
//! its own, in which ranks are numbered by their place.

use mpj::{Communicator, Error};

use super::algorithm::Product;
use super::grid::{self, Block, Grid, Shape};
use super::local::Element;
use super::matrix::Matrix;
use super::partition::part;

/// The widest panel: deep enough for the local kernel, and small enough to stay in a cache.
const PANEL: usize = 256;

/// Adds this rank's block of the product.
pub fn multiply<T: Element>(
    comm: &Communicator,
    shape: Shape,
    grid: Grid,
    a: &Matrix<T>,
    b: &Matrix<T>,
    product: &mut Product<T>,
) -> Result<(), Error> {
    let (row, col) = grid.position(comm.rank());
    let along_row = comm.split(row as u32, col as i32)?;
    let along_column = comm.split(col as u32, row as i32)?;
    for panel in grid::summa_panels(shape.k, grid, PANEL) {
        let owner_col = grid::owner(shape.k, grid.cols, panel.start);
        let mut left = if owner_col == col {
            let first = part(shape.k, grid.cols, col).start;
            a.extract(&Block { rows: 0..a.rows(), cols: panel.start - first..panel.end - first })
        } else {
            Matrix::zeros(a.rows(), panel.len())
        };
        along_row.broadcast(left.values_mut(), owner_col)?;

        let owner_row = grid::owner(shape.k, grid.rows, panel.start);
        let mut right = if owner_row == row {
            let first = part(shape.k, grid.rows, row).start;
            b.extract(&Block { rows: panel.start - first..panel.end - first, cols: 0..b.cols() })
        } else {
            Matrix::zeros(panel.len(), b.cols())
        };
        along_column.broadcast(right.values_mut(), owner_row)?;

        product.add(left.view(), right.view());
    }
    Ok(())
}

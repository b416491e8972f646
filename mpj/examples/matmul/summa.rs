//! SUMMA (van de Geijn and Watts): on any grid, panels of A travel along the rows of the grid and
//! panels of B along its columns, and every rank adds the product of each pair.
//!
//! Called by `algorithm.rs`.

use mpj::{Communicator, Error};

use super::algorithm::Product;
use super::grid::{self, Block, Grid, Shape};
use super::local::Element;
use super::matrix::Matrix;
use super::partition::part;

const ALONG_ROW: i32 = 1;
const ALONG_COLUMN: i32 = 2;
/// Widest panel: deep enough for the local kernel, small enough to stay in a cache.
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
    let in_row: Vec<usize> = (0..grid.cols).map(|col| grid.rank(row, col)).collect();
    let in_column: Vec<usize> = (0..grid.rows).map(|row| grid.rank(row, col)).collect();
    for panel in grid::summa_panels(shape.k, grid, PANEL) {
        let owner_col = grid::owner(shape.k, grid.cols, panel.start);
        let left = if owner_col == col {
            let first = part(shape.k, grid.cols, col).start;
            a.extract(&Block { rows: 0..a.rows(), cols: panel.start - first..panel.end - first })
        } else {
            Matrix::zeros(a.rows(), panel.len())
        };
        let left = share(comm, &in_row, in_row[owner_col], ALONG_ROW, left)?;

        let owner_row = grid::owner(shape.k, grid.rows, panel.start);
        let right = if owner_row == row {
            let first = part(shape.k, grid.rows, row).start;
            b.extract(&Block { rows: panel.start - first..panel.end - first, cols: 0..b.cols() })
        } else {
            Matrix::zeros(panel.len(), b.cols())
        };
        let right = share(comm, &in_column, in_column[owner_row], ALONG_COLUMN, right)?;

        product.add(left.view(), right.view());
    }
    Ok(())
}

/// Gives the panel of `owner` to all `members`, which have one of the same extents ready.
fn share<T: Element>(
    comm: &Communicator,
    members: &[usize],
    owner: usize,
    tag: i32,
    mut panel: Matrix<T>,
) -> Result<Matrix<T>, Error> {
    if comm.rank() != owner {
        comm.recv(panel.values_mut(), owner, tag)?;
        return Ok(panel);
    }
    comm.scope(|scope| {
        for member in members.iter().filter(|member| **member != owner) {
            scope.isend(panel.values(), *member, tag)?;
        }
        Ok::<(), Error>(())
    })?;
    Ok(panel)
}

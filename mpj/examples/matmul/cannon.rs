//! Cannon's algorithm: on a square grid, blocks of A shift to the left and blocks of B upwards, one place per step,
//! while every rank multiplies the pair that it has.
//!
//! The blocks are aligned from the start (`grid::cannon_placement`). If an extent cannot be divided equally, blocks
//! have different sizes; each rank knows the size of the next one from the partition.

use mpj::{Communicator, Error};

use super::algorithm::Product;
use super::grid::{Grid, Shape, cannon_part};
use super::local::Element;
use super::matrix::Matrix;
use super::partition::part;

const LEFTWARD: i32 = 1;
const UPWARD: i32 = 2;

/// Adds this rank's block of the product.
pub fn multiply<T: Element>(
    comm: &Communicator,
    shape: Shape,
    grid: Grid,
    mut a: Matrix<T>,
    mut b: Matrix<T>,
    product: &mut Product<T>,
) -> Result<(), Error> {
    let side = grid.rows;
    let (row, col) = grid.position(comm.rank());
    for step in 1..side {
        let inner = part(shape.k, side, cannon_part(side, (row, col), step)).len();
        let mut next_a = Matrix::zeros(a.rows(), inner);
        let mut next_b = Matrix::zeros(inner, b.cols());
        comm.scope(|scope| {
            scope.irecv(next_a.values_mut(), grid.rank(row, col + 1), LEFTWARD)?;
            scope.irecv(next_b.values_mut(), grid.rank(row + 1, col), UPWARD)?;
            scope.isend(a.values(), grid.rank(row, col + side - 1), LEFTWARD)?;
            scope.isend(b.values(), grid.rank(row + side - 1, col), UPWARD)?;
            product.add(a.view(), b.view());
            Ok::<(), Error>(())
        })?;
        (a, b) = (next_a, next_b);
    }
    product.add(a.view(), b.view());
    Ok(())
}

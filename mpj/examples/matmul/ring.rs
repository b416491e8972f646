//! The ring algorithm: every rank keeps its rows of A, and the bands of B go round all ranks.
//!
//! It works for any number of ranks and communicates with only two neighbours, but moves more data than the algorithms
//! on a grid: all of B passes through every rank.

use mpj::{Communicator, Error};

use super::algorithm::Product;
use super::grid::Shape;
use super::local::Element;
use super::matrix::Matrix;
use super::partition::part;

const BAND: i32 = 1;

/// Adds this rank's rows of the product.
pub fn multiply<T: Element>(
    comm: &Communicator,
    shape: Shape,
    a: &Matrix<T>,
    mut b: Matrix<T>,
    product: &mut Product<T>,
) -> Result<(), Error> {
    let (rank, size) = (comm.rank(), comm.size());
    let mut band = part(shape.k, size, rank);
    for step in 1..size {
        let next_band = part(shape.k, size, (rank + step) % size);
        let mut next_b = Matrix::zeros(next_band.len(), b.cols());
        comm.scope(|scope| {
            scope.irecv(next_b.values_mut(), (rank + 1) % size, BAND)?;
            scope.isend(b.values(), (rank + size - 1) % size, BAND)?;
            product.add(a.columns(band), b.view());
            Ok::<(), Error>(())
        })?;
        (band, b) = (next_band, next_b);
    }
    product.add(a.columns(band), b.view());
    Ok(())
}

//! The distributed algorithms as one value: which blocks a rank has, and how the ranks multiply. It dispatches to
//! `cannon.rs`, `summa.rs` and `ring.rs`.

use std::fmt;

use mpj::{Communicator, Error};
use ndarray::ArrayView2;

use super::grid::{self, Block, Grid, Placement, Shape};
use super::local::{self, Element};
use super::matrix::Matrix;
use super::{cannon, ring, summa};

/// An algorithm, with the arrangement of the ranks that it uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    /// Blocks of both factors shift round a square grid.
    Cannon(Grid),
    /// Panels of both factors are broadcast along the rows and columns of a grid.
    Summa(Grid),
    /// Bands of B go round all ranks.
    Ring { ranks: usize },
}

impl Algorithm {
    /// Chooses Cannon's algorithm if the ranks form a square, otherwise SUMMA.
    pub fn for_ranks(ranks: usize) -> Self {
        match Grid::square(ranks) {
            Some(grid) => Self::Cannon(grid),
            None => Self::Summa(Grid::nearest_square(ranks)),
        }
    }

    /// Returns the blocks of one rank.
    pub fn placement(self, shape: Shape, rank: usize) -> Placement {
        match self {
            Self::Cannon(grid) => grid::cannon_placement(shape, grid, rank),
            Self::Summa(grid) => grid::summa_placement(shape, grid, rank),
            Self::Ring { ranks } => grid::ring_placement(shape, ranks, rank),
        }
    }

    /// Computes this rank's block of C from its blocks of A and B. Collective.
    pub fn multiply<T: Element>(
        self,
        comm: &Communicator,
        shape: Shape,
        a: Matrix<T>,
        b: Matrix<T>,
        product: &mut Product<T>,
    ) -> Result<(), Error> {
        match self {
            Self::Cannon(grid) => cannon::multiply(comm, shape, grid, a, b, product),
            Self::Summa(grid) => summa::multiply(comm, shape, grid, &a, &b, product),
            Self::Ring { .. } => ring::multiply(comm, shape, &a, b, product),
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cannon(grid) => write!(f, "Cannon on {} x {} ranks", grid.rows, grid.cols),
            Self::Summa(grid) => write!(f, "SUMMA on {} x {} ranks", grid.rows, grid.cols),
            Self::Ring { ranks } => write!(f, "ring of {ranks} ranks"),
        }
    }
}

/// A rank's block of C while it is computed, and the time spent on local products.
pub struct Product<T> {
    pub block: Matrix<T>,
    pub seconds: f64,
}

impl<T: Element> Product<T> {
    pub fn zeros(block: &Block) -> Self {
        Self { block: Matrix::zeros(block.rows.len(), block.cols.len()), seconds: 0.0 }
    }

    /// Adds a product of blocks.
    pub fn add(&mut self, a: ArrayView2<'_, T>, b: ArrayView2<'_, T>) {
        let start = mpj::wtime();
        local::multiply_add(a, b, &mut self.block);
        self.seconds += mpj::wtime() - start;
    }
}

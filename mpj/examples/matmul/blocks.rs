//! Moves blocks of a matrix from rank 0 to all ranks and back.
//!
//! `blocks` lists one block per rank and is the same on every rank. All ranks call each function.

use mpj::{Communicator, Error};

use super::grid::Block;
use super::local::Element;
use super::matrix::Matrix;

const BLOCK: i32 = 1;

/// Gives every rank its block; rank 0 passes in the whole matrix.
pub fn scatter<T: Element>(
    comm: &Communicator,
    blocks: &[Block],
    whole: Option<&Matrix<T>>,
) -> Result<Matrix<T>, Error> {
    let mine = &blocks[comm.rank()];
    let Some(whole) = whole else {
        let mut block = Matrix::zeros(mine.rows.len(), mine.cols.len());
        comm.recv(block.values_mut(), 0, BLOCK)?;
        return Ok(block);
    };
    for (rank, block) in blocks.iter().enumerate().skip(1) {
        comm.send(whole.extract(block).values(), rank, BLOCK)?;
    }
    Ok(whole.extract(mine))
}

/// Assembles the blocks of all ranks in `whole`, which is only used on rank 0.
pub fn gather<T: Element>(
    comm: &Communicator,
    blocks: &[Block],
    mine: &Matrix<T>,
    whole: &mut Matrix<T>,
) -> Result<(), Error> {
    if comm.rank() != 0 {
        return comm.send(mine.values(), 0, BLOCK);
    }
    whole.place(&blocks[0], mine);
    for (rank, block) in blocks.iter().enumerate().skip(1) {
        let mut part = Matrix::zeros(block.rows.len(), block.cols.len());
        comm.recv(part.values_mut(), rank, BLOCK)?;
        whole.place(block, &part);
    }
    Ok(())
}

//! Communicators with a grid (MPI-4.1 section 8.5). `topology.rs` computes positions in the grid.

use super::SplitKey;
use crate::communicator::Communicator;
use crate::error::Error;
use crate::topology::{Cartesian, Topology};

impl Communicator {
    /// Makes a communicator of the first ranks, which fill the grid: MPI_Cart_create. Collective; all ranks give the
    /// same grid. Ranks without a place get `None`. Ranks keep their order, since on one host no order is better than
    /// another.
    ///
    /// # Errors
    /// [`TopologyError::Ranks`] if the grid has more nodes than this communicator has ranks; as
    /// [`Communicator::split`].
    ///
    /// [`TopologyError::Ranks`]: crate::topology::TopologyError::Ranks
    pub fn create_cartesian(&self, grid: Cartesian) -> Result<Option<Self>, Error> {
        self.create_of_first(grid.size(), Topology::Grid(grid))
    }

    /// Divides a communicator with a grid into grids of the dimensions that `remain`: MPI_Cart_sub. Collective; all
    /// ranks give the same dimensions.
    ///
    /// # Errors
    /// [`Error::NoGrid`] without a grid; those of [`Cartesian::sub`]; as [`Communicator::split`].
    pub fn cartesian_sub(&self, remain: &[bool]) -> Result<Self, Error> {
        let part = self.grid().ok_or(Error::NoGrid)?.sub(self.rank(), remain)?;
        let key = SplitKey { color: Some(part.color), key: part.key as i32 };
        let made = self.divide(key, Some(Topology::Grid(part.grid)))?;
        Ok(made.expect("ranks with a color are in a part"))
    }
}

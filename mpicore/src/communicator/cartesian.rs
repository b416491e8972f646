//! Communicators with a grid (MPI-4.1 section 8.5). `topology.rs` computes positions in the grid.

use mpjdev::Call;

use super::{Communicator, SplitKey};
use crate::error::Error;
use crate::topology::{Cartesian, TopologyError};

impl Communicator {
    /// Returns the grid of its ranks, if it has one: MPI_Cart_get, MPI_Topo_test.
    pub fn grid(&self) -> Option<&Cartesian> {
        self.0.grid.as_ref()
    }

    /// Makes a communicator of the first ranks, which fill the grid: MPI_Cart_create. Collective; all ranks give the
    /// same grid. Ranks without a place get `None`. Ranks keep their order, since on one host no order is better than
    /// another.
    ///
    /// # Errors
    /// [`TopologyError::Ranks`] if the grid has more nodes than this communicator has ranks; as
    /// [`Communicator::split`].
    pub fn create_cartesian(&self, grid: Cartesian) -> Result<Option<Self>, Error> {
        self.intra("a grid")?;
        let (nodes, ranks) = (grid.size(), self.size());
        if nodes > ranks {
            return Err(TopologyError::Ranks { nodes, ranks }.into());
        }
        let first: Vec<u32> = (0..nodes).collect();
        let has_place = self.rank() < nodes;
        let group = has_place.then(|| self.group().incl(&first)).transpose()?;
        self.part(Call::Create, group, Some(grid))
    }

    /// Divides a communicator with a grid into grids of the dimensions that `remain`: MPI_Cart_sub. Collective; all
    /// ranks give the same dimensions.
    ///
    /// # Errors
    /// [`Error::NoGrid`] without a grid; those of [`Cartesian::sub`]; as [`Communicator::split`].
    pub fn cartesian_sub(&self, remain: &[bool]) -> Result<Self, Error> {
        let part = self.grid().ok_or(Error::NoGrid)?.sub(self.rank(), remain)?;
        let key = SplitKey { color: Some(part.color), key: part.key as i32 };
        let made = self.divide(key, Some(part.grid))?;
        Ok(made.expect("ranks with a color are in a part"))
    }
}

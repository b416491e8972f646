//! Communicators with a grid (MPI-4.1 section 8.5). `topology.rs` computes positions in the grid.

use super::SplitKey;
use crate::communicator::Communicator;
use crate::error::Error;
use crate::topology::{Cartesian, Topology};

impl Communicator {
    /// Makes a communicator of the first ranks, which fill the grid: MPI_Cart_create. Collective; all ranks give the
    /// same grid. Ranks without a place get `None`. The others keep their order, unless they `reorder`: then ranks of
    /// several hosts get other places if more neighbours share a host then ([`Cartesian::order_by_hosts`]).
    ///
    /// # Errors
    /// [`TopologyError::Ranks`] if the grid has more nodes than this communicator has ranks; as
    /// [`Communicator::split`].
    ///
    /// [`TopologyError::Ranks`]: crate::topology::TopologyError::Ranks
    pub fn create_cartesian(&self, grid: Cartesian, reorder: bool) -> Result<Option<Self>, Error> {
        let order = if reorder { self.grid_order(&grid) } else { None };
        self.create_of_first(grid.size(), order, Topology::Grid(grid))
    }

    /// Returns the rank that this one has in a communicator with this grid if ranks reorder, or `None` if it has no
    /// place there: MPI_Cart_map.
    ///
    /// # Errors
    /// [`TopologyError::Ranks`].
    ///
    /// [`TopologyError::Ranks`]: crate::topology::TopologyError::Ranks
    pub fn cartesian_rank(&self, grid: &Cartesian) -> Result<Option<u32>, Error> {
        self.check_nodes(grid.size())?;
        let order = self.grid_order(grid);
        let place_in = |order: Vec<u32>| order.iter().position(|&rank| rank == self.rank());
        let own = Some(self.rank()).filter(|&rank| rank < grid.size());
        Ok(order.map_or(own, |order| place_in(order).map(|node| node as u32)))
    }

    /// Returns the rank that gets each node of a grid, if ranks do not keep their order.
    fn grid_order(&self, grid: &Cartesian) -> Option<Vec<u32>> {
        let (device, group) = (self.device(), self.group());
        let ranks = group.iter().take(grid.size() as usize);
        let hosts = || ranks.map(|rank| device.host_of(rank)).collect::<Vec<_>>();
        device.has_hosts().then(hosts).and_then(|hosts| grid.order_by_hosts(&hosts))
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

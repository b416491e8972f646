//! Collective calls among neighbours in any topology (MPI-4.1 section 8.6).

use mpjdev::Call;

use crate::collective::{self, Blocks, Neighbours};
use crate::communicator::Communicator;
use crate::error::Error;
use crate::memory::{Input, Output};
use crate::plan::Plan;
use crate::topology::Topology;

impl Communicator {
    /// Returns this rank's neighbours in the topology.
    ///
    /// # Errors
    /// [`Error::NoTopology`].
    pub fn neighbours(&self) -> Result<Neighbours, Error> {
        let listed = |ranks: &[u32]| ranks.iter().copied().map(Some).collect::<Vec<_>>();
        let (sources, destinations) = match self.topology().ok_or(Error::NoTopology)? {
            Topology::Grid(grid) => {
                let both = grid.neighbours(self.rank())?;
                (both.clone(), both)
            }
            Topology::Graph(graph) => {
                let both = listed(graph.neighbours(self.rank())?);
                (both.clone(), both)
            }
            Topology::Adjacency(own) => (listed(&own.sources), listed(&own.destinations)),
        };
        Ok(Neighbours { sources, destinations, are_in_grid: self.grid().is_some() })
    }

    /// Sends `count` elements to each neighbour and receives a block from each: MPI_Neighbor_allgather or
    /// MPI_Neighbor_allgatherv if the blocks are equal or listed.
    ///
    /// # Errors
    /// [`Error::NoTopology`]; those of [collective calls](Communicator#errors-of-collective-calls).
    pub fn neighbour_allgather(
        &self,
        (input, count): (Input, u64),
        output: Output,
        blocks: Blocks<'_>,
    ) -> Result<Plan<'_>, Error> {
        let call = match blocks {
            Blocks::Equal { .. } => Call::NeighborAllgather,
            Blocks::Listed { .. } | Blocks::Typed { .. } => Call::NeighborAllgatherv,
        };
        let schedule = collective::neighbour_allgather(&self.neighbours()?, count, blocks)?;
        self.plan_once(call, schedule, (input, output), None)
    }

    /// Sends a block to each neighbour and receives a block from each: MPI_Neighbor_alltoall, MPI_Neighbor_alltoallv or
    /// MPI_Neighbor_alltoallw if the blocks of the output are equal, listed or typed.
    ///
    /// # Errors
    /// [`Error::NoTopology`]; those of [collective calls](Communicator#errors-of-collective-calls).
    pub fn neighbour_alltoall(
        &self,
        (input, sent): (Input, Blocks<'_>),
        output: Output,
        blocks: Blocks<'_>,
    ) -> Result<Plan<'_>, Error> {
        let call = match blocks {
            Blocks::Equal { .. } => Call::NeighborAlltoall,
            Blocks::Listed { .. } => Call::NeighborAlltoallv,
            Blocks::Typed { .. } => Call::NeighborAlltoallw,
        };
        let schedule = collective::neighbour_alltoall(&self.neighbours()?, sent, blocks)?;
        self.plan_once(call, schedule, (input, output), None)
    }
}

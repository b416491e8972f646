//! Graph topologies: each rank has the neighbours that a program lists (MPI-4.1 sections 8.5.3 and 8.5.4).
//!
//! In a [`Graph`] every rank knows the neighbours of all ranks. In an [`Adjacency`] each rank knows its own.

use super::{Cartesian, TopologyError};

/// A topology of a communicator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Topology {
    /// A grid: MPI_CART.
    Grid(Cartesian),
    /// A graph that each rank knows as a whole: MPI_GRAPH.
    Graph(Graph),
    /// A distributed graph, of which this rank knows its own edges: MPI_DIST_GRAPH.
    Adjacency(Adjacency),
}

/// A graph in the form of MPI_Graph_create: the edges of node 0, then those of node 1, and so on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Graph {
    index: Vec<u32>,
    edges: Vec<u32>,
}

/// The edges of one rank in a distributed graph: the result of MPI_Dist_graph_neighbors.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Adjacency {
    /// The ranks from which edges lead here.
    pub sources: Vec<u32>,
    /// The ranks to which edges lead from here.
    pub destinations: Vec<u32>,
    /// The weights of the edges in the order of both lists; `None` if the graph has none: MPI_UNWEIGHTED.
    pub weights: Option<(Vec<i32>, Vec<i32>)>,
}

/// One edge of a distributed graph, as any rank may give it: the arguments of MPI_Dist_graph_create.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edge {
    /// The rank from which it leads.
    pub source: u32,
    /// The rank to which it leads.
    pub destination: u32,
    /// Its weight, not negative; all edges of a graph have one, or none has.
    pub weight: Option<i32>,
}

impl Graph {
    /// Makes a graph. `index[i]` is the number of edges of nodes 0 to `i`, and `edges` lists where they lead, node by
    /// node: the arguments of MPI_Graph_create.
    ///
    /// # Errors
    /// [`TopologyError::Index`] if the numbers decrease, [`TopologyError::Edges`] if there are not as many edges,
    /// [`TopologyError::Node`] if an edge leads to no node.
    ///
    /// ```
    /// use mpicore::topology::Graph;
    /// let path = Graph::new(&[1, 3, 4], &[1, 0, 2, 1])?;
    /// assert_eq!(path.neighbours(1)?, [0, 2]);
    /// # Ok::<(), mpicore::topology::TopologyError>(())
    /// ```
    pub fn new(index: &[u32], edges: &[u32]) -> Result<Self, TopologyError> {
        if let Some(node) = index.windows(2).position(|pair| pair[1] < pair[0]) {
            return Err(TopologyError::Index { node: node + 1 });
        }
        let expected = index.last().map_or(0, |&count| count as usize);
        if edges.len() != expected {
            return Err(TopologyError::Edges { given: edges.len(), expected });
        }
        let graph = Self { index: index.into(), edges: edges.into() };
        edges.iter().try_for_each(|&rank| check_rank(rank, graph.size()))?;
        Ok(graph)
    }

    /// Returns the number of nodes.
    pub fn size(&self) -> u32 {
        self.index.len() as u32
    }

    /// Returns the number of edges up to the end of each node: MPI_Graph_get.
    pub fn index(&self) -> &[u32] {
        &self.index
    }

    /// Returns where the edges lead, node by node: MPI_Graph_get.
    pub fn edges(&self) -> &[u32] {
        &self.edges
    }

    /// Returns the neighbours of a node: MPI_Graph_neighbors.
    ///
    /// # Errors
    /// [`TopologyError::Node`] if no node has this rank.
    pub fn neighbours(&self, rank: u32) -> Result<&[u32], TopologyError> {
        check_rank(rank, self.size())?;
        let node = rank as usize;
        let start = node.checked_sub(1).map_or(0, |before| self.index[before]);
        Ok(&self.edges[start as usize..self.index[node] as usize])
    }
}

impl Adjacency {
    /// Refuses ranks that a communicator of `size` ranks does not have, weights that are negative, and lists of weights
    /// of other lengths.
    ///
    /// # Errors
    /// [`TopologyError::Node`]; [`TopologyError::Weight`]; [`TopologyError::Edges`].
    pub fn check(&self, size: u32) -> Result<(), TopologyError> {
        let ranks = self.sources.iter().chain(&self.destinations);
        ranks.copied().try_for_each(|rank| check_rank(rank, size))?;
        let Some((of_sources, of_destinations)) = &self.weights else { return Ok(()) };
        for (weights, ranks) in [(of_sources, &self.sources), (of_destinations, &self.destinations)]
        {
            if weights.len() != ranks.len() {
                return Err(TopologyError::Edges { given: weights.len(), expected: ranks.len() });
            }
            weights.iter().try_for_each(|&weight| check_weight(weight))?;
        }
        Ok(())
    }

    /// Selects the edges of `rank` from all edges of the graph, in their order.
    pub fn of_rank(rank: u32, edges: &[Edge]) -> Self {
        let weight = |edge: &Edge| edge.weight.unwrap_or(0);
        let into: Vec<_> = edges.iter().filter(|edge| edge.destination == rank).collect();
        let out: Vec<_> = edges.iter().filter(|edge| edge.source == rank).collect();
        let is_weighted = edges.iter().any(|edge| edge.weight.is_some());
        Self {
            sources: into.iter().map(|edge| edge.source).collect(),
            destinations: out.iter().map(|edge| edge.destination).collect(),
            weights: is_weighted.then(|| {
                let weights = |edges: Vec<&Edge>| edges.into_iter().map(weight).collect();
                (weights(into), weights(out))
            }),
        }
    }
}

impl Edge {
    /// Refuses ranks that a communicator of `size` ranks does not have, and negative weights.
    ///
    /// # Errors
    /// [`TopologyError::Node`]; [`TopologyError::Weight`].
    pub fn check(&self, size: u32) -> Result<(), TopologyError> {
        check_rank(self.source, size)?;
        check_rank(self.destination, size)?;
        self.weight.map_or(Ok(()), check_weight)
    }
}

fn check_rank(rank: u32, size: u32) -> Result<(), TopologyError> {
    if rank < size { Ok(()) } else { Err(TopologyError::Node { rank, size }) }
}

fn check_weight(weight: i32) -> Result<(), TopologyError> {
    if weight >= 0 { Ok(()) } else { Err(TopologyError::Weight { weight }) }
}

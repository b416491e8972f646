//! Communicators with graphs (MPI-4.1 sections 8.5.3 and 8.5.4). `topology/graph.rs` describes the graphs.

use mpjdev::Call;

use crate::communicator::Communicator;
use crate::error::Error;
use crate::topology::{Adjacency, Edge, Graph, Topology, TopologyError};

impl Communicator {
    /// Makes a communicator of the first ranks, which are the nodes of the graph: MPI_Graph_create. Collective; all
    /// ranks give the same graph. Ranks without a node get `None`. Ranks keep their order.
    ///
    /// # Errors
    /// [`TopologyError::Ranks`] if the graph has more nodes than this communicator has ranks; as
    /// [`Communicator::split`].
    pub fn create_graph(&self, graph: Graph) -> Result<Option<Self>, Error> {
        self.create_of_first(graph.size(), None, Topology::Graph(graph))
    }

    /// Makes a communicator of the same ranks in the same order, each of which gives its own edges:
    /// MPI_Dist_graph_create_adjacent. Collective. If one rank gives an edge to another, that one gives the edge from
    /// it.
    ///
    /// # Errors
    /// Those of [`Adjacency::check`]; as [`Communicator::split`].
    pub fn create_adjacent(&self, edges: Adjacency) -> Result<Self, Error> {
        self.intra("a distributed graph")?;
        edges.check(self.size())?;
        let group = Some(self.group().clone());
        let made = self.part(Call::Create, group, Some(Topology::Adjacency(edges)))?;
        Ok(made.expect("all ranks are in the group"))
    }

    /// Makes a communicator of the same ranks in the same order; each rank gives any edges of the graph:
    /// MPI_Dist_graph_create. Collective. A rank's edges are in the order of the ranks that gave them. `is_weighted` says
    /// whether a graph without any edges counts as one with weights.
    ///
    /// # Errors
    /// Those of [`Edge::check`]; as [`Communicator::split`].
    pub fn create_distributed(&self, edges: &[Edge], is_weighted: bool) -> Result<Self, Error> {
        self.intra("a distributed graph")?;
        edges.iter().try_for_each(|edge| edge.check(self.size()))?;
        let words = vec![edges.len() as u64, is_weighted.into()];
        let heads = self.gather_words(Call::Create, words)?;
        let numbers = heads.iter().step_by(2);
        let most = numbers.clone().copied().max().unwrap_or(0) as usize;
        // An edge is two words: both ranks, and the weight plus one.
        let words = edges.iter().flat_map(|edge| {
            let ends = u64::from(edge.source) << 32 | u64::from(edge.destination);
            [ends, edge.weight.map_or(0, |weight| weight as u64 + 1)]
        });
        let mut own: Vec<u64> = words.collect();
        own.resize(2 * most, 0);
        let all = self.gather_words(Call::Create, own)?;
        let of_ranks = all.chunks_exact((2 * most).max(1)).zip(numbers);
        let given = of_ranks.flat_map(|(words, number)| {
            let edge = |words: &[u64]| Edge {
                source: (words[0] >> 32) as u32,
                destination: words[0] as u32,
                weight: words[1].checked_sub(1).map(|weight| weight as i32),
            };
            words.chunks_exact(2).take(*number as usize).map(edge)
        });
        let given: Vec<Edge> = given.collect();
        let mut own = Adjacency::of_rank(self.rank(), &given);
        if given.is_empty() && heads.chunks_exact(2).any(|head| head[1] != 0) {
            own.weights = Some((Vec::new(), Vec::new()));
        }
        self.create_adjacent(own)
    }

    /// Makes a communicator of the first ranks, as many as a topology has nodes, in this order if there is one.
    pub(super) fn create_of_first(
        &self,
        nodes: u32,
        order: Option<Vec<u32>>,
        topology: Topology,
    ) -> Result<Option<Self>, Error> {
        self.intra("a topology")?;
        self.check_nodes(nodes)?;
        let order = order.unwrap_or_else(|| (0..nodes).collect());
        let has_place = self.rank() < nodes;
        let group = has_place.then(|| self.group().incl(&order)).transpose()?;
        self.part(Call::Create, group, Some(topology))
    }

    /// Refuses a topology with more nodes than there are ranks.
    pub(super) fn check_nodes(&self, nodes: u32) -> Result<(), Error> {
        let ranks = self.size();
        let fits = nodes <= ranks;
        fits.then_some(()).ok_or(TopologyError::Ranks { nodes, ranks }.into())
    }
}

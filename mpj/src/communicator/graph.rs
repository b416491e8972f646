//! Communicators whose ranks have neighbours in a graph (MPI-4.1 sections 8.5.3 and 8.5.4).

use std::ops::Deref;

use mpicore::topology::{self, Adjacency, Topology};

use super::Communicator;
use crate::error::Error;
use crate::group::narrowed;

/// A communicator whose ranks have neighbours in a graph, for
/// [collective calls among neighbours](Communicator#collective-calls-among-neighbours): see
/// [`Communicator::create_adjacent`], [`Communicator::create_distributed_graph`] and [`Communicator::create_graph`].
///
/// ```
/// mpj::local::run(4, |world| {
///     // A star: rank 0 in the middle.
///     let beside = if world.rank() == 0 { vec![1, 2, 3] } else { vec![0] };
///     let star = world.create_adjacent(&beside, &beside).unwrap();
///     let mut ranks = vec![9; star.sources().len()];
///     star.neighbour_all_gather(&star.rank(), &mut ranks).unwrap();
///     assert_eq!(ranks, beside);
/// })?;
/// # Ok::<(), mpj::local::LocalError>(())
/// ```
#[derive(Clone)]
pub struct GraphCommunicator(Communicator);

/// An edge of a graph, with a weight if it has one: see [`Communicator::create_distributed_graph`].
///
/// ```
/// let edge = mpj::Edge { source: 0, destination: 3, weight: Some(10) };
/// assert_eq!(edge, mpj::Edge::new(0, 3).weighing(10));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Edge {
    /// The rank from which it leads.
    pub source: usize,
    /// The rank to which it leads.
    pub destination: usize,
    /// How much travels along it, in any unit. All edges of a graph have a weight, or none has. At most `i32::MAX`.
    pub weight: Option<u32>,
}

impl Edge {
    /// Makes an edge without a weight.
    ///
    /// ```
    /// assert_eq!(mpj::Edge::new(0, 3).weight, None);
    /// ```
    pub fn new(source: usize, destination: usize) -> Self {
        Self { source, destination, weight: None }
    }

    /// Returns the edge with this weight.
    ///
    /// ```
    /// assert_eq!(mpj::Edge::new(0, 3).weighing(7).weight, Some(7));
    /// ```
    pub fn weighing(self, weight: u32) -> Self {
        Self { weight: Some(weight), ..self }
    }

    fn as_core(self) -> topology::Edge {
        let Self { source, destination, weight } = self;
        // What is too large becomes negative, which the core refuses.
        let weight = weight.map(|weight| i32::try_from(weight).unwrap_or(i32::MIN));
        topology::Edge { source: narrowed(source), destination: narrowed(destination), weight }
    }
}

/// # Graphs
impl Communicator {
    /// Makes a communicator of the same ranks in the same order, in which each rank gives the ranks that it receives from
    /// and those that it sends to (MPI_Dist_graph_create_adjacent). If one rank sends to another, that one receives from
    /// it; a rank that is listed twice has two edges. Collective.
    ///
    /// # Errors
    /// As [`Communicator::split`]; a rank that the communicator does not have.
    ///
    /// ```
    /// mpj::local::run(3, |world| {
    ///     // Each rank sends to the next, and the last one to nobody.
    ///     let (before, after) = ([vec![], vec![0], vec![1]], [vec![1], vec![2], vec![]]);
    ///     let chain = world.create_adjacent(&before[world.rank()], &after[world.rank()]).unwrap();
    ///     assert_eq!(chain.destinations(), after[world.rank()]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Dist_graph_create_adjacent")]
    pub fn create_adjacent(
        &self,
        sources: &[usize],
        destinations: &[usize],
    ) -> Result<GraphCommunicator, Error> {
        let ranks = |ranks: &[usize]| ranks.iter().copied().map(narrowed).collect();
        let (sources, destinations) = (ranks(sources), ranks(destinations));
        let own = Adjacency { sources, destinations, weights: None };
        self.made(self.core.create_adjacent(own)).map(GraphCommunicator)
    }

    /// Makes a communicator of the same ranks in the same order, with these edges and those that the other ranks give
    /// (MPI_Dist_graph_create). A rank may give edges between other ranks. Collective.
    ///
    /// # Errors
    /// As [`Communicator::split`]; a rank that the communicator does not have; a weight above `i32::MAX`.
    ///
    /// ```
    /// use mpj::Edge;
    /// mpj::local::run(3, |world| {
    ///     // Rank 0 knows the whole graph.
    ///     let edges = [Edge::new(0, 1).weighing(5), Edge::new(2, 1).weighing(7)];
    ///     let own = if world.rank() == 0 { &edges[..] } else { &[] };
    ///     let graph = world.create_distributed_graph(own.iter().copied()).unwrap();
    ///     assert_eq!(graph.sources(), [vec![], vec![0, 2], vec![]][world.rank()]);
    ///     assert!(world.rank() != 1 || graph.weights() == Some((vec![5, 7], vec![])));
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Dist_graph_create")]
    pub fn create_distributed_graph(
        &self,
        edges: impl IntoIterator<Item = Edge>,
    ) -> Result<GraphCommunicator, Error> {
        let edges: Vec<_> = edges.into_iter().map(Edge::as_core).collect();
        self.made(self.core.create_distributed(&edges, false)).map(GraphCommunicator)
    }

    /// Makes a communicator of the first ranks, as many as there are lists, in which rank `i` has the neighbours
    /// `neighbours[i]` (MPI_Graph_create). It sends to them and receives from them, so each of two neighbours lists the
    /// other. The other ranks make the call too, and get `None`. Collective; all ranks give the same lists.
    ///
    /// Every rank keeps the whole graph; [`Communicator::create_adjacent`] is for large ones.
    ///
    /// # Errors
    /// As [`Communicator::split`]; more lists than ranks; a neighbour without a list.
    ///
    /// ```
    /// mpj::local::run(4, |world| {
    ///     // A path of three ranks.
    ///     let path = world.create_graph(&[vec![1], vec![0, 2], vec![1]]).unwrap();
    ///     assert_eq!(path.is_some(), world.rank() < 3);
    ///     assert!(path.is_none_or(|path| path.sources() == path.destinations()));
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Graph_create")]
    pub fn create_graph(
        &self,
        neighbours: &[impl AsRef<[usize]>],
    ) -> Result<Option<GraphCommunicator>, Error> {
        let lists = neighbours.iter().map(AsRef::as_ref);
        let ends = lists.clone().scan(0, |end, list| {
            *end += list.len();
            Some(narrowed(*end))
        });
        let edges: Vec<u32> = lists.clone().flatten().copied().map(narrowed).collect();
        let graph = topology::Graph::new(&ends.collect::<Vec<_>>(), &edges);
        let made = graph.map_err(mpicore::Error::from);
        let made = self.made_some(made.and_then(|graph| self.core.create_graph(graph)))?;
        Ok(made.map(GraphCommunicator))
    }
}

impl GraphCommunicator {
    /// Returns the ranks from which this one receives, in the order of the parts of buffers (MPI_Dist_graph_neighbors,
    /// MPI_Graph_neighbors).
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     let graph = world.create_graph(&[[1], [0]]).unwrap().unwrap();
    ///     assert_eq!(graph.sources(), [1 - graph.rank()]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias("MPI_Dist_graph_neighbors", "MPI_Graph_neighbors"))]
    pub fn sources(&self) -> Vec<usize> {
        self.neighbours().0
    }

    /// Returns the ranks to which this one sends, in the order of the parts of buffers (MPI_Dist_graph_neighbors,
    /// MPI_Graph_neighbors).
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     let graph = world.create_graph(&[[1], [0]]).unwrap().unwrap();
    ///     assert_eq!(graph.destinations(), [1 - graph.rank()]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias("MPI_Dist_graph_neighbors", "MPI_Graph_neighbors"))]
    pub fn destinations(&self) -> Vec<usize> {
        self.neighbours().1
    }

    /// Returns the weights of the edges, in the order of [`sources`](Self::sources) and of
    /// [`destinations`](Self::destinations); `None` if the graph has no weights (MPI_UNWEIGHTED).
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     let graph = world.create_graph(&[[1], [0]]).unwrap().unwrap();
    ///     assert_eq!(graph.weights(), None);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_UNWEIGHTED")]
    pub fn weights(&self) -> Option<(Vec<u32>, Vec<u32>)> {
        let Some(Topology::Adjacency(own)) = self.core.topology() else { return None };
        let (sources, destinations) = own.weights.as_ref()?;
        let weights = |of: &[i32]| of.iter().map(|weight| weight.unsigned_abs()).collect();
        Some((weights(sources), weights(destinations)))
    }

    /// Duplicates the communicator as [`Communicator::dup`] does; the duplicate has the same graph.
    ///
    /// # Errors
    /// As [`Communicator::dup`].
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     let graph = world.create_graph(&[[1], [0]]).unwrap().unwrap();
    ///     assert_eq!(graph.dup().unwrap().sources(), graph.sources());
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn dup(&self) -> Result<Self, Error> {
        self.0.dup().map(Self)
    }

    fn neighbours(&self) -> (Vec<usize>, Vec<usize>) {
        let neighbours = self.core.neighbours().expect("it was made with a graph");
        let wide = |ranks: Vec<Option<u32>>| ranks.into_iter().flatten().map(|it| it as usize);
        (wide(neighbours.sources).collect(), wide(neighbours.destinations).collect())
    }
}

impl Deref for GraphCommunicator {
    type Target = Communicator;

    fn deref(&self) -> &Communicator {
        &self.0
    }
}

//! Why a call on a topology was refused, and the MPI error class of each reason.

use crate::ErrorClass;

/// Why a call on a topology was refused. Nothing has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TopologyError {
    /// A grid of 0 nodes was to be divided.
    #[error("0 nodes cannot be arranged in a grid; give at least 1")]
    NoNodes,
    /// A given entry does not divide the number of nodes that the entries before it leave.
    #[error(
        "dimension {dimension} is {length}, which does not divide the {left} of {nodes} nodes that the \
         dimensions before it leave; give 0 for those to be chosen"
    )]
    KeptDimension {
        /// The dimension, counted from 0.
        dimension: usize,
        /// The entry.
        length: u32,
        /// The number of nodes, divided by the entries before this one that are kept.
        left: u32,
        /// Number of nodes.
        nodes: u32,
    },
    /// All entries are given, but there are more nodes than their product.
    #[error("the dimensions have room for {room} of {nodes} nodes; give 0 for those to be chosen")]
    NoFreeDimension {
        /// The product of the entries.
        room: u32,
        /// Number of nodes.
        nodes: u32,
    },
    /// A dimension of a grid has no nodes.
    #[error("dimension {dimension} has length 0; a grid has at least 1 node along each dimension")]
    LengthZero {
        /// The dimension, counted from 0.
        dimension: usize,
    },
    /// A grid has more nodes than a communicator can have ranks.
    #[error(
        "with dimension {dimension}, of length {length}, the grid has more than {most} nodes",
        most = i32::MAX
    )]
    TooLarge {
        /// The dimension that makes it too large, from 0.
        dimension: usize,
        /// Its length.
        length: u32,
    },
    /// A grid has more nodes than the communicator has ranks.
    #[error("the grid has {nodes} nodes, but the communicator has {ranks} ranks; make it smaller")]
    Ranks {
        /// Number of nodes of the grid.
        nodes: u32,
        /// Number of ranks.
        ranks: u32,
    },
    /// A list with one entry for each dimension has another length.
    #[error("{given} entries for {dimensions} dimensions; give one for each")]
    Entries {
        /// Number of entries that were given.
        given: usize,
        /// Number of dimensions.
        dimensions: usize,
    },
    /// No node has this rank.
    #[error("rank {rank} is out of range: the grid has ranks 0 to {last}", last = .size - 1)]
    Rank {
        /// The rank that was given; it may be negative.
        rank: i64,
        /// Number of nodes.
        size: u32,
    },
    /// A coordinate lies outside the grid, in a dimension that is not periodic.
    #[error(
        "coordinate {coordinate} is out of range: dimension {dimension} is not periodic and has \
         coordinates 0 to {last}",
        last = .length - 1
    )]
    Coordinate {
        /// The dimension, counted from 0.
        dimension: usize,
        /// The coordinate that was given.
        coordinate: i32,
        /// The length of the dimension.
        length: u32,
    },
    /// A graph has no node for this rank.
    #[error("rank {rank} is out of range: the graph has {size} nodes, counted from 0")]
    Node {
        /// The rank that was given.
        rank: u32,
        /// Number of nodes.
        size: u32,
    },
    /// The numbers of edges of a graph's nodes decrease.
    #[error(
        "index[{node}] is less than the entry before it; each is the number of edges up to the end of its node"
    )]
    Index {
        /// The node, counted from 0.
        node: usize,
    },
    /// A list of edges or weights has another length than the arguments before it say.
    #[error("{given} edges or weights are given instead of {expected}")]
    Edges {
        /// Number of entries that were given.
        given: usize,
        /// Number of entries that are needed.
        expected: usize,
    },
    /// The weight of an edge is negative.
    #[error("an edge has weight {weight}; give 0 or more")]
    Weight {
        /// The weight.
        weight: i32,
    },
    /// No dimension has this number.
    #[error(
        "direction {direction} is out of range: the grid has {dimensions} dimensions, counted from 0"
    )]
    Direction {
        /// The number that was given; it may be negative.
        direction: i64,
        /// Number of dimensions.
        dimensions: usize,
    },
}

impl TopologyError {
    /// Returns MPI's class of this error.
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::KeptDimension { .. }
            | Self::NoFreeDimension { .. }
            | Self::LengthZero { .. }
            | Self::Ranks { .. }
            | Self::TooLarge { .. } => ErrorClass::Dims,
            Self::NoNodes
            | Self::Entries { .. }
            | Self::Index { .. }
            | Self::Edges { .. }
            | Self::Weight { .. }
            | Self::Coordinate { .. }
            | Self::Direction { .. } => ErrorClass::Arg,
            Self::Rank { .. } | Self::Node { .. } => ErrorClass::Rank,
        }
    }
}

//! Topologies: the positions of ranks in a grid, or their neighbours in a graph (MPI-4.1 chapter 8). Communicators
//! carry them.
//!
//! A grid has dimensions, counted from 0. Each has a length and is periodic or not. Ranks are numbered row by row, so
//! the last coordinate changes fastest. A grid without dimensions is legal and has one node. Everything is computed
//! from the lengths, so a grid of any size takes the same memory.

mod dims;
mod error;
mod graph;
mod placement;
#[cfg(test)]
mod tests;

pub use dims::dims_create;
pub use error::TopologyError;
pub use graph::{Adjacency, Edge, Graph, Topology};

/// A grid of nodes, with a rank for each.
///
/// ```
/// use mpicore::topology::Cartesian;
/// let grid = Cartesian::new(&[3, 4], &[false, true])?;
/// assert_eq!((grid.coords(6)?, grid.rank(&[1, -2])?), (vec![1, 2], 6));
/// # Ok::<(), mpicore::topology::TopologyError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cartesian {
    dims: Vec<u32>,
    periods: Vec<bool>,
    /// The product of the lengths, at most `i32::MAX`.
    size: u32,
}

/// The ranks to receive from and to send to when all data move along one dimension, the result of
/// [`Cartesian::shift`]. `None` is MPI_PROC_NULL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Shift {
    /// The rank to receive from.
    pub source: Option<u32>,
    /// The rank to send to.
    pub destination: Option<u32>,
}

/// The part of a grid that a rank belongs to, the result of [`Cartesian::sub`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubGrid {
    /// The grid of the remaining dimensions, the same for all parts.
    pub grid: Cartesian,
    /// The number of the part, counted row by row along the dropped dimensions: ranks with the same color are in the
    /// same part.
    pub color: u32,
    /// The rank inside the part.
    pub key: u32,
}

impl Cartesian {
    /// Makes a grid with these lengths along its dimensions; `periods` says which dimensions are periodic: the
    /// arguments of MPI_Cart_create (MPI-4.1 section 8.5.1).
    ///
    /// # Errors
    /// [`TopologyError::Entries`] unless both lists have the same length, [`TopologyError::LengthZero`] if a length is
    /// 0, [`TopologyError::TooLarge`] if there are more than `i32::MAX` nodes.
    pub fn new(dims: &[u32], periods: &[bool]) -> Result<Self, TopologyError> {
        if periods.len() != dims.len() {
            return Err(TopologyError::Entries { given: periods.len(), dimensions: dims.len() });
        }
        if let Some(dimension) = dims.iter().position(|&length| length == 0) {
            return Err(TopologyError::LengthZero { dimension });
        }
        let mut size = 1_u32;
        for (dimension, &length) in dims.iter().enumerate() {
            let larger = size.checked_mul(length).filter(|size| i32::try_from(*size).is_ok());
            size = larger.ok_or(TopologyError::TooLarge { dimension, length })?;
        }
        Ok(Self { dims: dims.into(), periods: periods.into(), size })
    }

    /// Returns the length of each dimension, in nodes: MPI_Cart_get and, by its own length, MPI_Cartdim_get.
    pub fn dims(&self) -> &[u32] {
        &self.dims
    }

    /// Returns whether each dimension is periodic: MPI_Cart_get.
    pub fn periods(&self) -> &[bool] {
        &self.periods
    }

    /// Returns the number of nodes.
    pub fn size(&self) -> u32 {
        self.size
    }

    /// Returns the coordinates of a rank, one for each dimension, from 0: MPI_Cart_coords (MPI-4.1 section 8.5.5).
    ///
    /// # Errors
    /// [`TopologyError::Rank`] if no node has this rank.
    pub fn coords(&self, rank: u32) -> Result<Vec<i32>, TopologyError> {
        self.check_rank(rank)?;
        // Lengths are at most `i32::MAX`, like their product.
        Ok((0..self.dims.len()).map(|dimension| self.coordinate(rank, dimension) as i32).collect())
    }

    /// Returns the rank at these coordinates, one for each dimension: MPI_Cart_rank (MPI-4.1 section 8.5.5). In a
    /// periodic dimension a coordinate outside the grid is taken modulo the length.
    ///
    /// # Errors
    /// [`TopologyError::Entries`] unless there are as many coordinates as dimensions,
    /// [`TopologyError::Coordinate`] if one lies outside the grid in a dimension that is not periodic.
    pub fn rank(&self, coords: &[i32]) -> Result<u32, TopologyError> {
        self.check_entries(coords.len())?;
        let mut rank = 0;
        for (dimension, &coordinate) in coords.iter().enumerate() {
            let length = self.dims[dimension];
            let outside = TopologyError::Coordinate { dimension, coordinate, length };
            let inside = self.wrapped(dimension, coordinate.into()).ok_or(outside)?;
            rank = rank * length + inside;
        }
        Ok(rank)
    }

    /// Returns the ranks that `rank` receives from and sends to when all data move by `displacement` along the
    /// dimension `direction`: MPI_Cart_shift (MPI-4.1 section 8.5.6). Beyond the end of a dimension that is not
    /// periodic there is no rank.
    ///
    /// # Errors
    /// [`TopologyError::Rank`] if no node has this rank, [`TopologyError::Direction`] if there is no such
    /// dimension.
    ///
    /// ```
    /// use mpicore::topology::{Cartesian, Shift};
    /// let grid = Cartesian::new(&[2, 3], &[false, true])?;
    /// assert_eq!(grid.shift(0, 0, 1)?, Shift { source: None, destination: Some(3) });
    /// assert_eq!(grid.shift(0, 1, 1)?, Shift { source: Some(2), destination: Some(1) });
    /// # Ok::<(), mpicore::topology::TopologyError>(())
    /// ```
    pub fn shift(
        &self,
        rank: u32,
        direction: usize,
        displacement: i32,
    ) -> Result<Shift, TopologyError> {
        self.check_rank(rank)?;
        let dimensions = self.dims.len();
        if direction >= dimensions {
            let direction = i64::try_from(direction).unwrap_or(i64::MAX);
            return Err(TopologyError::Direction { direction, dimensions });
        }
        let displacement = i64::from(displacement);
        Ok(Shift {
            source: self.moved(rank, direction, -displacement),
            destination: self.moved(rank, direction, displacement),
        })
    }

    /// Returns the part of the grid that `rank` belongs to when the grid is divided into grids of the dimensions that
    /// `remain`: MPI_Cart_sub (MPI-4.1 section 8.5.7).
    ///
    /// # Errors
    /// [`TopologyError::Rank`] if no node has this rank, [`TopologyError::Entries`] unless `remain` has
    /// one entry for each dimension.
    ///
    /// ```
    /// use mpicore::topology::Cartesian;
    /// let grid = Cartesian::new(&[2, 3, 4], &[false; 3])?;
    /// let part = grid.sub(23, &[true, false, true])?;
    /// assert_eq!((part.grid.dims(), part.color, part.key), (&[2, 4][..], 2, 7));
    /// # Ok::<(), mpicore::topology::TopologyError>(())
    /// ```
    pub fn sub(&self, rank: u32, remain: &[bool]) -> Result<SubGrid, TopologyError> {
        self.check_rank(rank)?;
        self.check_entries(remain.len())?;
        let mut part =
            SubGrid { grid: Self { dims: vec![], periods: vec![], size: 1 }, color: 0, key: 0 };
        for (dimension, &remains) in remain.iter().enumerate() {
            let (length, coordinate) = (self.dims[dimension], self.coordinate(rank, dimension));
            if remains {
                part.grid.dims.push(length);
                part.grid.periods.push(self.periods[dimension]);
                part.grid.size *= length;
                part.key = part.key * length + coordinate;
            } else {
                part.color = part.color * length + coordinate;
            }
        }
        Ok(part)
    }

    /// Returns the neighbours of a rank in the order of the buffers of neighbourhood collectives (MPI-4.1 section 8.6):
    /// for each dimension the rank before it and the rank after it. `None` is MPI_PROC_NULL, at the end of a dimension
    /// that is not periodic. A rank receives from its neighbours and sends to them in this order.
    ///
    /// # Errors
    /// [`TopologyError::Rank`] if no node has this rank.
    ///
    /// ```
    /// use mpicore::topology::Cartesian;
    /// let grid = Cartesian::new(&[2, 3], &[false, true])?;
    /// assert_eq!(grid.neighbours(0)?, [None, Some(3), Some(2), Some(1)]);
    /// # Ok::<(), mpicore::topology::TopologyError>(())
    /// ```
    pub fn neighbours(&self, rank: u32) -> Result<Vec<Option<u32>>, TopologyError> {
        self.check_rank(rank)?;
        let dimensions = 0..self.dims.len();
        Ok(dimensions.flat_map(|along| [-1, 1].map(|step| self.moved(rank, along, step))).collect())
    }

    fn check_rank(&self, rank: u32) -> Result<(), TopologyError> {
        let is_rank = rank < self.size;
        is_rank.then_some(()).ok_or(TopologyError::Rank { rank: rank.into(), size: self.size })
    }

    fn check_entries(&self, given: usize) -> Result<(), TopologyError> {
        let dimensions = self.dims.len();
        (given == dimensions).then_some(()).ok_or(TopologyError::Entries { given, dimensions })
    }

    /// Returns the difference between neighbouring ranks along a dimension.
    fn stride(&self, dimension: usize) -> u32 {
        self.dims[dimension + 1..].iter().product()
    }

    fn coordinate(&self, rank: u32, dimension: usize) -> u32 {
        rank / self.stride(dimension) % self.dims[dimension]
    }

    /// Returns the coordinate inside the grid for any number, if there is one.
    fn wrapped(&self, dimension: usize, coordinate: i64) -> Option<u32> {
        let length = i64::from(self.dims[dimension]);
        let is_inside = self.periods[dimension] || (0..length).contains(&coordinate);
        is_inside.then(|| coordinate.rem_euclid(length) as u32)
    }

    /// Returns the rank that is `displacement` nodes away along a dimension.
    fn moved(&self, rank: u32, dimension: usize, displacement: i64) -> Option<u32> {
        let (stride, from) = (self.stride(dimension), self.coordinate(rank, dimension));
        let to = self.wrapped(dimension, i64::from(from) + displacement)?;
        Some(rank - from * stride + to * stride)
    }
}

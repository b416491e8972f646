//! Communicators whose ranks form a grid (MPI-4.1 chapter 8).

use std::ops::Deref;

use mpicore::topology::{self, Cartesian, TopologyError};

use super::Communicator;
use crate::error::Error;
use crate::group::narrowed;

/// A communicator whose ranks form a grid: see [`Communicator::create_cartesian`]. Dimensions are numbered from 0.
/// Ranks are numbered row by row through the grid, so the last coordinate changes fastest.
///
/// ```
/// mpj::local::run(6, |world| {
///     let grid = world.create_cartesian(&[2, 3], &[false, true], false).unwrap().unwrap();
///     let [row, column] = grid.coords(grid.rank()).unwrap()[..] else { unreachable!() };
///     assert_eq!(grid.rank(), 3 * row as usize + column as usize);
///     assert_eq!(grid.rank_of(&[row, column + 3]).unwrap(), grid.rank());
///     // Columns are a ring, rows are not.
///     let along = grid.shift(1, 1).unwrap();
///     assert!(along.source.is_some() && along.destination.is_some());
///     assert_eq!(grid.shift(0, 1).unwrap().source.is_some(), row == 1);
///     assert_eq!(grid.sub(&[false, true]).unwrap().dims(), [3]);
/// })?;
/// # Ok::<(), mpj::local::LocalError>(())
/// ```
#[derive(Clone)]
pub struct CartesianCommunicator(Communicator);

/// The ranks to receive from and to send to when all data move along one dimension. `None` means that the grid ends
/// there, in a dimension that is not periodic: MPI_PROC_NULL.
///
/// ```
/// mpj::local::run(3, |world| {
///     let row = world.create_cartesian(&[3], &[false], false).unwrap().unwrap();
///     let shift = row.shift(0, 1).unwrap();
///     let left = mpj::Shift { source: None, destination: Some(1) };
///     assert!(row.rank() > 0 || shift == left);
/// })?;
/// # Ok::<(), mpj::local::LocalError>(())
/// ```
#[doc(alias = "MPI_PROC_NULL")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Shift {
    /// The rank to receive from.
    pub source: Option<usize>,
    /// The rank to send to.
    pub destination: Option<usize>,
}

/// # Grids
impl Communicator {
    /// Arranges ranks in a grid with the lengths `dims`, each dimension periodic or not (MPI_Cart_create). The first
    /// ranks fill the places of the grid. The other ranks make the call too, and get `None`. A grid without dimensions
    /// has one place. Collective; all ranks give the same grid.
    ///
    /// `reorder` allows a new order of the ranks, chosen by where they run: on several hosts each gets a block of the
    /// grid, if all have as many ranks, blocks of one shape fill the grid, and fewer neighbours are on different hosts
    /// then. Otherwise ranks keep their order.
    ///
    /// # Errors
    /// As [`Communicator::split`]. [`ErrorClass::Dims`](crate::ErrorClass::Dims): a length is 0, or the grid has more
    /// places than there are ranks. [`ErrorClass::Arg`](crate::ErrorClass::Arg): `periods` does not have one entry for
    /// each dimension.
    ///
    /// ```
    /// mpj::local::run(4, |world| {
    ///     // Three places for four ranks, in a ring.
    ///     let ring = world.create_cartesian(&[3], &[true], false).unwrap();
    ///     assert_eq!(ring.is_some(), world.rank() < 3);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Cart_create")]
    #[track_caller]
    pub fn create_cartesian(
        &self,
        dims: &[usize],
        periods: &[bool],
        reorder: bool,
    ) -> Result<Option<CartesianCommunicator>, Error> {
        let lengths: Vec<u32> = dims.iter().copied().map(narrowed).collect();
        let grid = Cartesian::new(&lengths, periods).map_err(mpicore::Error::from);
        let _site = self.site("create_cartesian", || None);
        let made = grid.and_then(|grid| self.core.create_cartesian(grid, reorder));
        Ok(self.made_some(made)?.map(CartesianCommunicator))
    }
}

impl CartesianCommunicator {
    /// Returns the length of each dimension (MPI_Cart_get).
    ///
    /// ```
    /// mpj::local::run(4, |world| {
    ///     let grid = world.create_cartesian(&[2, 2], &[false, true], false).unwrap().unwrap();
    ///     assert_eq!(grid.dims(), [2, 2]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias("MPI_Cart_get", "MPI_Cartdim_get"))]
    pub fn dims(&self) -> Vec<usize> {
        self.grid().dims().iter().map(|length| *length as usize).collect()
    }

    /// Returns whether each dimension is periodic (MPI_Cart_get).
    ///
    /// ```
    /// mpj::local::run(4, |world| {
    ///     let grid = world.create_cartesian(&[2, 2], &[false, true], false).unwrap().unwrap();
    ///     assert_eq!(grid.periods(), [false, true]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Cart_get")]
    pub fn periods(&self) -> &[bool] {
        self.grid().periods()
    }

    /// Returns the coordinates of a rank, from 0 in each dimension (MPI_Cart_coords).
    ///
    /// # Errors
    /// No such rank.
    ///
    /// ```
    /// mpj::local::run(4, |world| {
    ///     let grid = world.create_cartesian(&[2, 2], &[false, true], false).unwrap().unwrap();
    ///     assert!(grid.coords(4).is_err());
    ///     assert_eq!(grid.coords(2).unwrap(), [1, 0]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Cart_coords")]
    pub fn coords(&self, rank: usize) -> Result<Vec<i32>, Error> {
        self.told(self.grid().coords(narrowed(rank)))
    }

    /// Returns the rank at these coordinates (MPI_Cart_rank). In a periodic dimension a coordinate may lie outside the
    /// grid.
    ///
    /// # Errors
    /// A coordinate lies outside the grid in another dimension; there is not one coordinate for each dimension.
    ///
    /// ```
    /// mpj::local::run(4, |world| {
    ///     let grid = world.create_cartesian(&[2, 2], &[false, true], false).unwrap().unwrap();
    ///     assert!(grid.rank_of(&[-1, 0]).is_err());
    ///     assert_eq!(grid.rank_of(&[1, -2]).unwrap(), 2, "rows are rings");
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Cart_rank")]
    pub fn rank_of(&self, coords: &[i32]) -> Result<usize, Error> {
        self.told(self.grid().rank(coords)).map(|rank| rank as usize)
    }

    /// Returns the ranks to receive from and to send to when all data move by `displacement` places along a dimension
    /// (MPI_Cart_shift).
    ///
    /// # Errors
    /// No such dimension.
    ///
    /// ```
    /// mpj::local::run(4, |world| {
    ///     let grid = world.create_cartesian(&[2, 2], &[false, true], false).unwrap().unwrap();
    ///     let (down, across) = (grid.shift(0, 1).unwrap(), grid.shift(1, 1).unwrap());
    ///     assert_eq!(down.destination, [Some(2), Some(3), None, None][grid.rank()]);
    ///     assert_eq!(across.destination, [Some(1), Some(0), Some(3), Some(2)][grid.rank()]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Cart_shift")]
    pub fn shift(&self, dimension: usize, displacement: i32) -> Result<Shift, Error> {
        let shift = self.told(self.grid().shift(self.core.rank(), dimension, displacement))?;
        let wide = |rank: Option<u32>| rank.map(|rank| rank as usize);
        Ok(Shift { source: wide(shift.source), destination: wide(shift.destination) })
    }

    /// Returns the neighbours of this rank: the rank before it and the rank after it, for each dimension in turn, as
    /// collective calls use them (MPI-4.1 section 8.6).
    ///
    /// ```
    /// mpj::local::run(3, |world| {
    ///     let row = world.create_cartesian(&[3], &[false], false).unwrap().unwrap();
    ///     let neighbours = [[None, Some(1)], [Some(0), Some(2)], [Some(1), None]];
    ///     assert_eq!(row.neighbours(), neighbours[row.rank()]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn neighbours(&self) -> Vec<Option<usize>> {
        let neighbours = self.grid().neighbours(self.core.rank());
        let neighbours = neighbours.expect("this rank is one of the grid");
        neighbours.into_iter().map(|rank| rank.map(|rank| rank as usize)).collect()
    }

    /// Returns the rank at this offset from the own place, such as that of a [`HaloPart`](crate::HaloPart); `None` if the
    /// grid ends before, in a dimension that is not periodic.
    ///
    /// # Errors
    /// There is not one number for each dimension.
    ///
    /// ```
    /// mpj::local::run(4, |world| {
    ///     let grid = world.create_cartesian(&[2, 2], &[false, true], false).unwrap().unwrap();
    ///     let below_right = [Some(3), Some(2), None, None];
    ///     assert_eq!(grid.neighbour(&[1, 1]).unwrap(), below_right[grid.rank()]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn neighbour(&self, offset: &[i32]) -> Result<Option<usize>, Error> {
        let mut place = self.coords(self.rank())?;
        if place.len() != offset.len() {
            return self.rank_of(offset).map(Some);
        }
        for (coordinate, by) in place.iter_mut().zip(offset) {
            *coordinate = coordinate.saturating_add(*by);
        }
        let grid = self.grid();
        let along = place.iter().zip(grid.dims()).zip(grid.periods());
        let is_inside = |at: &i32, dim: &u32| u32::try_from(*at).is_ok_and(|at| at < *dim);
        if !along.into_iter().all(|((at, dim), periodic)| *periodic || is_inside(at, dim)) {
            return Ok(None);
        }
        self.rank_of(&place).map(Some)
    }

    /// Divides the grid into grids of the dimensions that `remain` (MPI_Cart_sub). Collective; all ranks give the same
    /// dimensions.
    ///
    /// # Errors
    /// `remain` does not have one entry for each dimension; as [`Communicator::split`].
    ///
    /// ```
    /// mpj::local::run(4, |world| {
    ///     let grid = world.create_cartesian(&[2, 2], &[false, true], false).unwrap().unwrap();
    ///     let row = grid.sub(&[false, true]).unwrap();
    ///     assert_eq!((row.dims(), row.rank()), (vec![2], grid.rank() % 2));
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Cart_sub")]
    #[track_caller]
    pub fn sub(&self, remain: &[bool]) -> Result<Self, Error> {
        let _site = self.site("sub", || None);
        self.made(self.core.cartesian_sub(remain)).map(Self)
    }

    /// Duplicates the communicator as [`Communicator::dup`] does; the duplicate has the same grid.
    ///
    /// # Errors
    /// As [`Communicator::dup`].
    ///
    /// ```
    /// mpj::local::run(4, |world| {
    ///     let grid = world.create_cartesian(&[2, 2], &[false, true], false).unwrap().unwrap();
    ///     assert_eq!(grid.dup().unwrap().dims(), grid.dims());
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[track_caller]
    pub fn dup(&self) -> Result<Self, Error> {
        self.0.dup().map(Self)
    }

    fn grid(&self) -> &Cartesian {
        self.core.grid().expect("it was made with a grid")
    }

    fn told<T>(&self, outcome: Result<T, TopologyError>) -> Result<T, Error> {
        self.answer(outcome.map_err(mpicore::Error::from))
    }
}

impl Deref for CartesianCommunicator {
    type Target = Communicator;

    fn deref(&self) -> &Communicator {
        &self.0
    }
}

/// Chooses the lengths of a grid of `nodes` nodes, as close to each other as possible and not increasing
/// (MPI_Dims_create). Entries of `dims` that are not 0 stay.
///
/// # Errors
/// [`ErrorClass::Dims`](crate::ErrorClass::Dims): the nodes cannot be divided in this way, or there are more nodes than
/// a job can have ranks. [`ErrorClass::Arg`](crate::ErrorClass::Arg): `nodes` is 0.
///
/// ```
/// assert_eq!(mpj::dims_create(12, [0, 3, 0])?, [2, 3, 2]);
/// assert_eq!(mpj::dims_create(12, [5, 0]).unwrap_err().class(), mpj::ErrorClass::Dims);
/// # Ok::<(), mpj::Error>(())
/// ```
#[doc(alias = "MPI_Dims_create")]
pub fn dims_create<const N: usize>(nodes: usize, dims: [usize; N]) -> Result<[usize; N], Error> {
    let mut lengths = dims.map(narrowed);
    let most = lengths.iter().copied().chain([narrowed(nodes)]).max();
    let outcome = match most.filter(|length| i32::try_from(*length).is_err()) {
        Some(length) => Err(TopologyError::TooLarge { dimension: 0, length }),
        None => topology::dims_create(narrowed(nodes), &mut lengths),
    };
    outcome.map_err(mpicore::Error::from)?;
    Ok(lengths.map(|length| length as usize))
}

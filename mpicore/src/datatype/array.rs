//! Parts of arrays: a rectangular part, and the part of one process in an array that is distributed as in High
//! Performance Fortran (MPI-4.1 sections 5.1.3 and 5.1.4).
//!
//! Both are nested repetitions, from the dimension whose elements are adjacent to the one whose elements are farthest
//! apart.

use super::contents::{Arguments, Darray};
use super::map::{TypeMap, fits};
use super::{Datatype, DatatypeError};

/// The order of an array's dimensions in memory: which dimension has adjacent elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Order {
    /// The last dimension has adjacent elements: MPI_ORDER_C.
    C,
    /// The first dimension has adjacent elements: MPI_ORDER_FORTRAN.
    Fortran,
}

impl Order {
    /// Returns its number in MPI's ABI.
    pub const fn code(self) -> i64 {
        match self {
            Self::C => 12,
            Self::Fortran => 15,
        }
    }

    /// Returns the dimensions, beginning with the one that has adjacent elements.
    fn dimensions(self, count: usize) -> Vec<usize> {
        match self {
            Self::C => (0..count).rev().collect(),
            Self::Fortran => (0..count).collect(),
        }
    }
}

/// The distribution of one dimension of an array among the processes along it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Distribution {
    /// No distribution: MPI_DISTRIBUTE_NONE. The grid has one process along the dimension.
    Whole,
    /// One block of this number of elements for each process: MPI_DISTRIBUTE_BLOCK. `None` is MPI_DISTRIBUTE_DFLT_DARG:
    /// the fewest elements that suffice.
    Block(Option<i64>),
    /// Blocks of this number of elements, assigned to the processes in turn: MPI_DISTRIBUTE_CYCLIC. `None` is
    /// MPI_DISTRIBUTE_DFLT_DARG: one element.
    Cyclic(Option<i64>),
}

impl Distribution {
    /// Returns its number in MPI's ABI.
    pub const fn code(self) -> i64 {
        match self {
            Self::Whole => 16,
            Self::Block(_) => 17,
            Self::Cyclic(_) => 18,
        }
    }

    /// Returns its argument, as in `array_of_dargs`, with the number of MPI_DISTRIBUTE_DFLT_DARG in MPI's ABI.
    pub const fn argument(self) -> i64 {
        match self {
            Self::Block(Some(argument)) | Self::Cyclic(Some(argument)) => argument,
            _ => 19,
        }
    }

    /// Returns the number of elements of a block, in dimension `index` with these numbers of elements and processes.
    fn block(self, index: usize, elements: i64, processes: i64) -> Result<i64, DatatypeError> {
        let fewest = (elements - 1) / processes + 1;
        let (block, low) = match self {
            Self::Whole => {
                check_entry("array_of_psizes", index, processes, 1, 1)?;
                (None, 1)
            }
            Self::Block(block) => (Some(block.unwrap_or(fewest)), fewest),
            Self::Cyclic(block) => (Some(block.unwrap_or(1)), 1),
        };
        let block = block.unwrap_or(elements);
        check_entry("array_of_dargs", index, block, low, i64::MAX)?;
        Ok(block)
    }
}

/// The elements of one dimension that belong to a process: whole blocks at equal distances, then the beginning of one.
struct Share {
    /// Index of the first element.
    first: i64,
    /// Number of elements of a block.
    block: i64,
    /// Number of whole blocks.
    whole: i64,
    /// Distance from one block to the next in elements.
    step: i128,
    /// Number of elements of the block after the whole ones.
    rest: i64,
}

impl Share {
    /// Returns the share of process `coordinate` of `processes`, when blocks are assigned in turn.
    fn dealt(elements: i64, block: i64, processes: i64, coordinate: i64) -> Self {
        let blocks = elements / block;
        let of_one = |blocks: i64| blocks / processes + i64::from(coordinate < blocks % processes);
        let rest = if blocks % processes == coordinate { elements % block } else { 0 };
        let first = (coordinate as i128 * block as i128).min(elements as i128) as i64;
        let step = block as i128 * processes as i128;
        Self { first, block, whole: of_one(blocks), step, rest }
    }

    /// Makes the type map of the share from that of an element, with elements `stride` bytes apart along the dimension.
    fn of(&self, map: &TypeMap, stride: isize) -> Result<TypeMap, DatatypeError> {
        let first = fits(self.first as i128 * stride as i128)?;
        let step = if self.whole > 1 { fits(self.step * stride as i128)? } else { 0 };
        let mut parts = Vec::new();
        if self.whole > 0 {
            let block = map.repeat(self.block as usize, stride)?;
            parts.push((first, block.repeat(self.whole as usize, step)?));
        }
        if self.rest > 0 {
            let behind = first as i128 + self.whole as i128 * self.step * stride as i128;
            parts.push((fits(behind)?, map.repeat(self.rest as usize, stride)?));
        }
        TypeMap::list(parts)
    }
}

impl Datatype {
    /// Makes the datatype of the part of an array that begins at `starts` and has `subsizes` elements along each
    /// dimension: MPI_Type_create_subarray (MPI-4.1 section 5.1.3). Its bounds are those of the whole array.
    ///
    /// ```
    /// use mpicore::datatype::{Datatype, Order};
    /// use mpicore::op::ElementKind;
    /// let int = Datatype::predefined(ElementKind::I32);
    /// let inside = Datatype::subarray(&[4, 6], &[2, 4], &[1, 1], Order::C, &int)?;
    /// assert_eq!((inside.size(), inside.extent()), (32, 96));
    /// assert_eq!(inside.layout(1)?.to_string(), "at 28: 2 times every 24: 16 bytes");
    /// # Ok::<(), mpicore::datatype::DatatypeError>(())
    /// ```
    ///
    /// # Errors
    /// [`DatatypeError::NoDimensions`]; [`DatatypeError::Entries`] unless all lists have the same length;
    /// [`DatatypeError::Entry`] if the array has no elements or the part does not lie inside it; those of
    /// [`contiguous`](Self::contiguous).
    pub fn subarray(
        sizes: &[i64],
        subsizes: &[i64],
        starts: &[i64],
        order: Order,
        old: &Self,
    ) -> Result<Self, DatatypeError> {
        let other = ("array_of_sizes", sizes.len());
        check_dimensions(
            other,
            &[("array_of_subsizes", subsizes.len()), ("array_of_starts", starts.len())],
        )?;
        for (index, &size) in sizes.iter().enumerate() {
            check_entry("array_of_sizes", index, size, 1, i64::MAX)?;
            check_entry("array_of_subsizes", index, subsizes[index], 1, size)?;
            check_entry("array_of_starts", index, starts[index], 0, size - subsizes[index])?;
        }
        let map = old.nested(sizes, order, |dimension| Share {
            first: starts[dimension],
            block: subsizes[dimension],
            whole: 1,
            step: 0,
            rest: 0,
        })?;
        let lists = [sizes, subsizes, starts].map(<[i64]>::to_vec);
        Self::new(map, Arguments::Subarray { lists, order, old: old.clone() })
    }

    /// Makes the datatype of the part of process `rank` of `size` in an array of `sizes` elements, when each dimension
    /// is distributed among the processes of the grid `psizes`: MPI_Type_create_darray (MPI-4.1 section 5.1.4). Ranks
    /// are numbered row by row in both orders. A part may be empty. Its bounds are those of the whole array.
    ///
    /// ```
    /// use mpicore::datatype::{Datatype, Distribution, Order};
    /// use mpicore::op::ElementKind;
    /// let int = Datatype::predefined(ElementKind::I32);
    /// let dealt = [Distribution::Cyclic(Some(2))];
    /// let part = Datatype::darray(3, 1, &[16], &dealt, &[3], Order::C, &int)?;
    /// assert_eq!(part.layout(1)?.to_string(), "at 8: 3 times every 24: 8 bytes");
    /// assert_eq!(part.extent(), 64);
    /// # Ok::<(), mpicore::datatype::DatatypeError>(())
    /// ```
    ///
    /// # Errors
    /// [`DatatypeError::NoDimensions`]; [`DatatypeError::Entries`] unless all lists have the same length;
    /// [`DatatypeError::Entry`] for lengths below 1, for blocks that do not suffice, and for more than one process
    /// along a dimension that is not distributed; [`DatatypeError::Grid`]; [`DatatypeError::Rank`]; those of
    /// [`contiguous`](Self::contiguous).
    pub fn darray(
        size: i64,
        rank: i64,
        sizes: &[i64],
        distributions: &[Distribution],
        psizes: &[i64],
        order: Order,
        old: &Self,
    ) -> Result<Self, DatatypeError> {
        let others =
            [("array_of_distribs", distributions.len()), ("array_of_psizes", psizes.len())];
        check_dimensions(("array_of_gsizes", sizes.len()), &others)?;
        for (index, (&elements, &processes)) in sizes.iter().zip(psizes).enumerate() {
            check_entry("array_of_gsizes", index, elements, 1, i64::MAX)?;
            check_entry("array_of_psizes", index, processes, 1, i64::MAX)?;
        }
        let grid = psizes.iter().fold(1_i128, |grid, length| grid.saturating_mul(*length as i128));
        if grid != size as i128 {
            return Err(DatatypeError::Grid { size, grid });
        }
        if !(0..size).contains(&rank) {
            return Err(DatatypeError::Rank { rank, size });
        }
        let mut blocks = Vec::with_capacity(sizes.len());
        for (index, distribution) in distributions.iter().enumerate() {
            blocks.push(distribution.block(index, sizes[index], psizes[index])?);
        }
        let map = old.nested(sizes, order, |dimension| {
            let slower: i64 = psizes[dimension + 1..].iter().product();
            let coordinate = rank / slower % psizes[dimension];
            Share::dealt(sizes[dimension], blocks[dimension], psizes[dimension], coordinate)
        })?;
        let (sizes, grid) = (sizes.to_vec(), psizes.to_vec());
        let distributions = distributions.to_vec();
        let arguments = Darray { size, rank, sizes, distributions, grid, order, old: old.clone() };
        Self::new(map, Arguments::Darray(arguments.into()))
    }

    /// Makes the datatype of the shares along all dimensions, with the bounds of the array.
    fn nested(
        &self,
        sizes: &[i64],
        order: Order,
        share: impl Fn(usize) -> Share,
    ) -> Result<TypeMap, DatatypeError> {
        let (mut map, mut stride) = (self.inner.map.clone(), self.extent());
        for dimension in order.dimensions(sizes.len()) {
            map = share(dimension).of(&map, stride)?;
            stride = fits(stride as i128 * sizes[dimension] as i128)?;
        }
        Ok(map.bounded(0, stride))
    }
}

/// Checks that there is at least one dimension, and that each of the other lists has one entry for each.
fn check_dimensions(
    (other, expected): (&'static str, usize),
    lists: &[(&'static str, usize)],
) -> Result<(), DatatypeError> {
    if expected == 0 {
        return Err(DatatypeError::NoDimensions);
    }
    for &(argument, given) in lists {
        if given != expected {
            return Err(DatatypeError::Entries { argument, given, other, expected });
        }
    }
    Ok(())
}

fn check_entry(
    argument: &'static str,
    index: usize,
    given: i64,
    low: i64,
    high: i64,
) -> Result<(), DatatypeError> {
    let error = DatatypeError::Entry { argument, index, given, low, high };
    (low..=high).contains(&given).then_some(()).ok_or(error)
}

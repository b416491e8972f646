//! Where the elements of an operation lie in a rank's window.

use mpicore::Target;

use crate::datatype::{TypeMap, count};
use crate::error::Error;
use crate::group::narrowed;

/// The elements of a rank's window that an operation accesses: adjacent ones from an index on (a number is such a
/// place), or blocks at equal distances. How many there are follows from the buffer of the call.
///
/// ```
/// use mpj::Place;
/// mpj::local::run(2, |world| {
///     // A matrix with rows of 4. Each rank writes a column of the other's.
///     let mut matrix = world.allocate_window::<u32>(12).unwrap();
///     matrix.fence(|epoch| epoch.put(&[7, 8, 9], 1 - world.rank(), Place::strided(2, 1, 4))).unwrap();
///     assert_eq!(*matrix.local().unwrap(), [0, 0, 7, 0, 0, 0, 8, 0, 0, 0, 9, 0]);
/// })?;
/// # Ok::<(), mpj::local::LocalError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    start: usize,
    /// Elements of a block, and from the beginning of one to that of the next; `None` if there is one block.
    blocks: Option<(usize, usize)>,
}

impl Place {
    /// Makes the place of blocks of `block` elements, the first at index `start`, each `step` elements behind the one
    /// before. Calls refuse blocks that overlap, with [`Error::Overlap`].
    ///
    /// ```
    /// assert_ne!(mpj::Place::strided(3, 2, 5), mpj::Place::from(3));
    /// ```
    pub fn strided(start: usize, block: usize, step: usize) -> Self {
        Self { start, blocks: Some((block, step)) }
    }

    /// Returns the index of the first element, if the elements are adjacent.
    #[inline]
    pub(super) fn index(self) -> Option<i64> {
        self.blocks.is_none().then(|| count(self.start))
    }

    /// Calls a function with so many elements of a rank, of this type, at this place.
    pub(super) fn of<R>(
        self,
        rank: usize,
        (elements, datatype): (usize, &TypeMap),
        operation: impl FnOnce(Target<'_>) -> Result<R, mpicore::Error>,
    ) -> Result<R, Error> {
        let (rank, displacement) = (narrowed(rank), count(self.start));
        let Some((block, step)) = self.blocks.filter(|_| elements > 0) else {
            let count = count(elements);
            return Ok(operation(Target { rank, displacement, count, datatype })?);
        };
        if step < block {
            return Err(Error::Overlap);
        }
        if elements.checked_rem(block) != Some(0) {
            return Err(Error::Blocks { elements, block });
        }
        let blocks = TypeMap::vector(count(elements / block), count(block), count(step), datatype)?;
        Ok(operation(Target { rank, displacement, count: 1, datatype: &blocks })?)
    }
}

impl From<usize> for Place {
    fn from(start: usize) -> Self {
        Self { start, blocks: None }
    }
}

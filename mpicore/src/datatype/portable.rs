//! Datatypes of elements that lie in a file in the representation `external32` (MPI-4.1 sections 14.5.1 and 14.5.2).
//!
//! There each basic type has another size, and no padding. Numbers of elements in the arguments of constructors count the
//! elements of the file; those of bytes stay as they are, so datatypes with such arguments are not portable.

use super::contents::Arguments;
use super::{Basic, Combiner, Datatype, DatatypeError};

impl Datatype {
    /// Returns the datatype whose displacements are those of the elements in `external32`, and whose elements are bytes.
    ///
    /// ```
    /// use mpicore::datatype::{Basic, Datatype};
    /// let long = Datatype::predefined(Basic::Long);
    /// let every_second = Datatype::vector(3, 1, 2, &long)?;
    /// assert_eq!((every_second.extent(), every_second.in_external()?.extent()), (40, 20));
    /// # Ok::<(), mpicore::datatype::DatatypeError>(())
    /// ```
    ///
    /// # Errors
    /// [`DatatypeError::Layout`] if the datatype would be larger than memory.
    pub fn in_external(&self) -> Result<Self, DatatypeError> {
        match &self.inner.arguments {
            Arguments::Named { .. } | Arguments::Selected { .. } => {
                let byte = Self::predefined(Basic::Char);
                Self::contiguous(self.pack_external_size(1)? as i64, &byte)
            }
            Arguments::Dup { old } => old.in_external(),
            Arguments::Plain { combiner, numbers, bytes, old } => {
                plain(*combiner, numbers, bytes, &old.in_external()?)
            }
            Arguments::Struct { lengths, displacements, types } => {
                let types = types.iter().map(Self::in_external).collect::<Result<Vec<_>, _>>()?;
                Self::create_struct(lengths, displacements, &types)
            }
            Arguments::Subarray { lists: [sizes, subsizes, starts], order, old } => {
                Self::subarray(sizes, subsizes, starts, *order, &old.in_external()?)
            }
            Arguments::Darray(array) => Self::darray(
                array.size,
                array.rank,
                &array.sizes,
                &array.distributions,
                &array.grid,
                array.order,
                &array.old.in_external()?,
            ),
        }
    }
}

/// Calls a constructor again, with another datatype.
fn plain(
    combiner: Combiner,
    numbers: &[i64],
    bytes: &[isize],
    old: &Datatype,
) -> Result<Datatype, DatatypeError> {
    let lengths = || &numbers[1..1 + numbers[0] as usize];
    match combiner {
        Combiner::Contiguous => Datatype::contiguous(numbers[0], old),
        Combiner::Vector => Datatype::vector(numbers[0], numbers[1], numbers[2], old),
        Combiner::Hvector => Datatype::hvector(numbers[0], numbers[1], bytes[0], old),
        Combiner::Indexed => Datatype::indexed(lengths(), &numbers[1 + lengths().len()..], old),
        Combiner::Hindexed => Datatype::hindexed(lengths(), bytes, old),
        Combiner::IndexedBlock => Datatype::indexed_block(numbers[1], &numbers[2..], old),
        Combiner::HindexedBlock => Datatype::hindexed_block(numbers[1], bytes, old),
        Combiner::Resized => old.resized(bytes[0], bytes[1]),
        // The others have arguments of their own.
        _ => old.dup(),
    }
}

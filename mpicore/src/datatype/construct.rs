//! The constructors of datatypes from blocks of others (MPI-4.1 sections 5.1.2 and 5.1.10). Arrays are in
//! `array.rs`.
//!
//! Each checks its arguments, composes the type map and keeps the arguments for the contents.

use std::collections::HashMap;

use transport_lapi::Layout;

use super::contents::Arguments;
use super::map::{TypeMap, fits};
use super::{Combiner, Datatype, DatatypeError, not_negative};

impl Datatype {
    /// Duplicates the datatype: MPI_Type_dup (MPI-4.1 section 5.1.10).
    ///
    /// # Errors
    /// [`DatatypeError::TooDeep`].
    pub fn dup(&self) -> Result<Self, DatatypeError> {
        Self::new(self.inner.map.clone(), Arguments::Dup { old: self.clone() })
    }

    /// Makes a datatype of `count` consecutive elements: MPI_Type_contiguous (MPI-4.1 section 5.1.2).
    ///
    /// # Errors
    /// [`DatatypeError::Negative`]; as in all constructors, [`DatatypeError::Layout`] if the datatype would be larger
    /// than memory or nested too deeply, and [`DatatypeError::TooDeep`].
    pub fn contiguous(count: i64, old: &Self) -> Result<Self, DatatypeError> {
        let map = old.block(not_negative("count", count)?)?;
        old.derived(Combiner::Contiguous, map, vec![count], vec![])
    }

    /// Makes a datatype of `count` blocks of `blocklength` elements, each beginning `stride` elements after the one
    /// before it: MPI_Type_vector (MPI-4.1 section 5.1.2).
    ///
    /// ```
    /// use mpicore::datatype::Datatype;
    /// use mpicore::op::ElementKind;
    /// let double = Datatype::predefined(ElementKind::F64);
    /// let column = Datatype::vector(4, 1, 3, &double)?;
    /// assert_eq!((column.size(), column.extent()), (32, 80));
    /// assert_eq!(column.layout(1)?.to_string(), "4 times every 24: 8 bytes");
    /// # Ok::<(), mpicore::datatype::DatatypeError>(())
    /// ```
    ///
    /// # Errors
    /// [`DatatypeError::Negative`], and those of [`contiguous`](Self::contiguous).
    pub fn vector(
        count: i64,
        blocklength: i64,
        stride: i64,
        old: &Self,
    ) -> Result<Self, DatatypeError> {
        let map = old.blocks(count, blocklength, stride as i128 * old.extent() as i128)?;
        old.derived(Combiner::Vector, map, vec![count, blocklength, stride], vec![])
    }

    /// Like [`vector`](Self::vector), with the stride in bytes: MPI_Type_create_hvector.
    ///
    /// # Errors
    /// Those of [`vector`](Self::vector).
    pub fn hvector(
        count: i64,
        blocklength: i64,
        stride: isize,
        old: &Self,
    ) -> Result<Self, DatatypeError> {
        let map = old.blocks(count, blocklength, stride as i128)?;
        old.derived(Combiner::Hvector, map, vec![count, blocklength], vec![stride])
    }

    /// Makes a datatype of blocks with these numbers of elements, at these displacements in elements:
    /// MPI_Type_indexed (MPI-4.1 section 5.1.2).
    ///
    /// # Errors
    /// [`DatatypeError::Entries`] unless both lists have the same length, [`DatatypeError::Entry`] if a length is
    /// negative, and those of [`contiguous`](Self::contiguous).
    pub fn indexed(
        blocklengths: &[i64],
        displacements: &[i64],
        old: &Self,
    ) -> Result<Self, DatatypeError> {
        let map = old.placed(blocklengths, &old.in_bytes(displacements))?;
        let numbers = [&counted(blocklengths), displacements].concat();
        old.derived(Combiner::Indexed, map, numbers, vec![])
    }

    /// Like [`indexed`](Self::indexed), with the displacements in bytes: MPI_Type_create_hindexed.
    ///
    /// # Errors
    /// Those of [`indexed`](Self::indexed).
    pub fn hindexed(
        blocklengths: &[i64],
        displacements: &[isize],
        old: &Self,
    ) -> Result<Self, DatatypeError> {
        let map = old.placed(blocklengths, &wide(displacements))?;
        old.derived(Combiner::Hindexed, map, counted(blocklengths), displacements.to_vec())
    }

    /// Makes a datatype of blocks of `blocklength` elements, at these displacements in elements:
    /// MPI_Type_create_indexed_block (MPI-4.1 section 5.1.2).
    ///
    /// # Errors
    /// [`DatatypeError::Negative`], and those of [`contiguous`](Self::contiguous).
    pub fn indexed_block(
        blocklength: i64,
        displacements: &[i64],
        old: &Self,
    ) -> Result<Self, DatatypeError> {
        let map = old.placed_blocks(blocklength, &old.in_bytes(displacements))?;
        let numbers = [&[displacements.len() as i64, blocklength], displacements].concat();
        old.derived(Combiner::IndexedBlock, map, numbers, vec![])
    }

    /// Like [`indexed_block`](Self::indexed_block), with the displacements in bytes: MPI_Type_create_hindexed_block.
    ///
    /// # Errors
    /// Those of [`indexed_block`](Self::indexed_block).
    pub fn hindexed_block(
        blocklength: i64,
        displacements: &[isize],
        old: &Self,
    ) -> Result<Self, DatatypeError> {
        let map = old.placed_blocks(blocklength, &wide(displacements))?;
        let numbers = vec![displacements.len() as i64, blocklength];
        old.derived(Combiner::HindexedBlock, map, numbers, displacements.to_vec())
    }

    /// Makes a datatype of blocks with these numbers of elements of these datatypes, at these displacements in bytes:
    /// MPI_Type_create_struct (MPI-4.1 section 5.1.2).
    ///
    /// The only padding is after the last byte: it rounds the extent up to the strictest alignment among the basic
    /// types.
    ///
    /// # Errors
    /// [`DatatypeError::Entries`] unless all lists have the same length, [`DatatypeError::Entry`] if a length is
    /// negative, and those of [`contiguous`](Self::contiguous).
    pub fn create_struct(
        blocklengths: &[i64],
        displacements: &[isize],
        types: &[Self],
    ) -> Result<Self, DatatypeError> {
        check_entries("array_of_displacements", displacements.len(), blocklengths)?;
        check_entries("array_of_types", types.len(), blocklengths)?;
        check_lengths(blocklengths)?;
        let mut parts = Vec::with_capacity(types.len());
        for ((&length, &at), old) in blocklengths.iter().zip(displacements).zip(types) {
            if length > 0 {
                parts.push((at, old.block(length as usize)?));
            }
        }
        let arguments = Arguments::Struct {
            lengths: blocklengths.to_vec(),
            displacements: displacements.to_vec(),
            types: types.to_vec(),
        };
        Self::new(TypeMap::list(parts)?, arguments)
    }

    /// Makes a datatype with the same type map and this lower bound and extent, in bytes: MPI_Type_create_resized
    /// (MPI-4.1 section 5.1.9). Datatypes made from it keep these bounds as markers.
    ///
    /// # Errors
    /// [`DatatypeError::Layout`] if the upper bound is no displacement; [`DatatypeError::TooDeep`].
    pub fn resized(&self, lower_bound: isize, extent: isize) -> Result<Self, DatatypeError> {
        let upper = fits(lower_bound as i128 + extent as i128)?;
        let map = self.inner.map.clone().bounded(lower_bound, upper);
        self.derived(Combiner::Resized, map, vec![], vec![lower_bound, extent])
    }

    /// Makes a datatype of the bytes of a layout.
    pub(crate) fn of_bytes(layout: Layout) -> Result<Self, DatatypeError> {
        Self::new(TypeMap::of_bytes(layout), Arguments::Named { name: "bytes" })
    }

    fn derived(
        &self,
        combiner: Combiner,
        map: TypeMap,
        numbers: Vec<i64>,
        bytes: Vec<isize>,
    ) -> Result<Self, DatatypeError> {
        Self::new(map, Arguments::Plain { combiner, numbers, bytes, old: self.clone() })
    }

    /// Makes the type map of `count` consecutive elements.
    fn block(&self, count: usize) -> Result<TypeMap, DatatypeError> {
        self.inner.map.repeat(count, self.extent())
    }

    /// Makes the type map of `count` blocks of `length` elements at a distance of `stride` bytes.
    fn blocks(&self, count: i64, length: i64, stride: i128) -> Result<TypeMap, DatatypeError> {
        let count = not_negative("count", count)?;
        let block = self.block(not_negative("blocklength", length)?)?;
        // A stride that is not used may be larger than memory.
        let stride = if count > 1 && length > 0 { fits(stride)? } else { 0 };
        block.repeat(count, stride)
    }

    /// Makes the type map of blocks of these lengths at these displacements in bytes.
    fn placed(&self, lengths: &[i64], displacements: &[i128]) -> Result<TypeMap, DatatypeError> {
        check_entries("array_of_displacements", displacements.len(), lengths)?;
        check_lengths(lengths)?;
        let mut blocks = HashMap::new();
        let mut parts = Vec::with_capacity(lengths.len());
        for (&length, &at) in lengths.iter().zip(displacements).filter(|(length, _)| **length > 0) {
            let block = match blocks.get(&length) {
                Some(block) => TypeMap::clone(block),
                None => self.block(length as usize)?,
            };
            blocks.insert(length, block.clone());
            parts.push((fits(at)?, block));
        }
        TypeMap::list(parts)
    }

    /// Makes the type map of blocks of one length at these displacements in bytes.
    fn placed_blocks(&self, length: i64, displacements: &[i128]) -> Result<TypeMap, DatatypeError> {
        not_negative("blocklength", length)?;
        self.placed(&vec![length; displacements.len()], displacements)
    }

    /// Converts displacements in elements to displacements in bytes.
    fn in_bytes(&self, displacements: &[i64]) -> Vec<i128> {
        displacements.iter().map(|by| *by as i128 * self.extent() as i128).collect()
    }
}

fn wide(displacements: &[isize]) -> Vec<i128> {
    displacements.iter().map(|by| *by as i128).collect()
}

/// Returns a list preceded by its length, as contents have it.
fn counted(list: &[i64]) -> Vec<i64> {
    [&[list.len() as i64], list].concat()
}

/// Checks that an argument has as many entries as there are lengths of blocks.
fn check_entries(
    argument: &'static str,
    given: usize,
    lengths: &[i64],
) -> Result<(), DatatypeError> {
    let (other, expected) = ("array_of_blocklengths", lengths.len());
    let error = DatatypeError::Entries { argument, given, other, expected };
    (given == expected).then_some(()).ok_or(error)
}

fn check_lengths(lengths: &[i64]) -> Result<(), DatatypeError> {
    match lengths.iter().position(|length| *length < 0) {
        None => Ok(()),
        Some(index) => Err(DatatypeError::Entry {
            argument: "array_of_blocklengths",
            index,
            given: lengths[index],
            low: 0,
            high: i64::MAX,
        }),
    }
}

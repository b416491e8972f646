//! Datatypes: the types of a message's elements, and their places in memory (MPI-4.1 chapter 5).
//!
//! The layers above make them for their callers. Communicators, windows and files use the layout of a number of
//! elements to send and to receive, and compare signatures. All of these are values: nothing is committed or freed, and
//! a datatype lives as long as it is used.
//!
//! A datatype is a type map in compact form (`map.rs`): a [`Layout`] of the transport for the places of the bytes, a
//! [`Signature`] for their basic types, and bounds. Its memory grows with the arguments of its constructors, not with
//! the elements.

use std::fmt;
use std::sync::Arc;

use transport_lapi::Layout;

mod array;
mod basic;
mod construct;
mod contents;
mod count;
mod error;
mod external;
mod fortran;
mod map;
mod pack;
mod portable;
mod signature;
#[cfg(test)]
mod tests;

pub use array::{Distribution, Order};
pub use basic::Basic;
pub use contents::{Combiner, Contents, Envelope};
pub use error::DatatypeError;
pub use fortran::TypeClass;
pub use signature::Signature;

use contents::Arguments;
use map::TypeMap;

/// A datatype of MPI: a type map with bounds (MPI-4.1 section 5.1). Immutable, and cheap to clone.
///
/// Numbers of elements are `i64`, as wide as `MPI_Count`, and displacements in bytes `isize`, as wide as `MPI_Aint`.
/// Arguments have the same order as in MPI, and errors use their names in MPI.
///
/// The extent is that of MPI-4.1 section 5.1.6: from the lowest to the highest byte, rounded up to the
/// strictest alignment among the basic types. This holds for all constructors, not only for structures,
/// since MPI defines it by the type map. Bounds that were set ([`resized`](Self::resized), arrays) are not rounded.
///
/// # Example
/// The structure of MPI's first example, a `double` and a `char`, which has padding after the last byte:
///
/// ```
/// use mpicore::datatype::{Basic, Datatype};
/// use mpicore::op::ElementKind;
///
/// let types = [ElementKind::F64.into(), Basic::Char].map(Datatype::predefined);
/// let record = Datatype::create_struct(&[1, 1], &[0, 8], &types)?;
/// assert_eq!((record.size(), record.lower_bound(), record.extent()), (9, 0, 16));
///
/// let three = record.layout(3)?;
/// assert_eq!(three.to_string(), "3 times every 16: 9 bytes");
/// # Ok::<(), mpicore::datatype::DatatypeError>(())
/// ```
#[derive(Clone)]
pub struct Datatype {
    inner: Arc<Inner>,
    /// Whether the constructor was the one for large counts.
    is_large: bool,
}

struct Inner {
    map: TypeMap,
    lower_bound: isize,
    extent: isize,
    arguments: Arguments,
    /// Number of levels of datatypes, including this one.
    depth: usize,
}

impl Datatype {
    /// The most levels of datatypes that a datatype may consist of. Each constructor adds one, even `dup`.
    pub const MAX_DEPTH: usize = 1024;

    /// Makes the predefined datatype of a basic type.
    ///
    /// ```
    /// use mpicore::datatype::Datatype;
    /// use mpicore::op::ElementKind;
    /// let pair = Datatype::predefined(ElementKind::DoubleInt);
    /// assert_eq!((pair.size(), pair.extent()), (12, 16));
    /// assert_eq!(pair.signature().to_string(), "[1 double, 1 int32_t]");
    /// ```
    pub fn predefined(basic: impl Into<Basic>) -> Self {
        let basic = basic.into();
        Self::named(basic, basic.name())
    }

    /// Makes a predefined datatype with its own name, since MPI has several for one basic type (`MPI_INT` and
    /// `MPI_INTEGER`). [`name`](Self::name) returns the name, even from the contents of datatypes made from this one.
    pub fn named(basic: impl Into<Basic>, name: &'static str) -> Self {
        let map = TypeMap::basic(basic.into());
        Self::new(map, Arguments::Named { name }).expect("basic types are small and not nested")
    }

    fn new(map: TypeMap, arguments: Arguments) -> Result<Self, DatatypeError> {
        let (lower_bound, extent) = map.bounds()?;
        let below = arguments.datatypes().iter().map(|datatype| datatype.inner.depth).max();
        let depth = below.unwrap_or(0) + 1;
        if depth > Self::MAX_DEPTH {
            return Err(DatatypeError::TooDeep);
        }
        let inner = Inner { map, lower_bound, extent, arguments, depth };
        Ok(Self { inner: Arc::new(inner), is_large: false })
    }

    /// Marks the datatype as made by the large-count form of its constructor (whose name ends in `_c`). This determines
    /// how its contents are divided.
    pub fn with_large_counts(self) -> Self {
        Self { is_large: true, ..self }
    }

    /// Returns the bytes of data in one element: MPI_Type_size (MPI-4.1 section 5.1.5).
    pub fn size(&self) -> usize {
        self.inner.map.layout.size()
    }

    /// Returns where an element begins, in bytes from its address: the lower bound of MPI_Type_get_extent (MPI-4.1
    /// section 5.1.7).
    pub fn lower_bound(&self) -> isize {
        self.inner.lower_bound
    }

    /// Returns the distance in bytes from one element to the next, which may be negative: MPI_Type_get_extent.
    pub fn extent(&self) -> isize {
        self.inner.extent
    }

    /// Returns where the lowest byte of data lies: the lower bound of MPI_Type_get_true_extent (MPI-4.1 section 5.1.8).
    /// 0 if there are no data.
    pub fn true_lower_bound(&self) -> isize {
        self.inner.map.layout.bounds().0
    }

    /// Returns the bytes from the lowest to the highest byte of data: MPI_Type_get_true_extent.
    pub fn true_extent(&self) -> isize {
        let (low, high) = self.inner.map.layout.bounds();
        high - low
    }

    /// Returns the strictest alignment of the basic types in C, in bytes; extents are rounded up to it.
    pub fn align(&self) -> usize {
        self.inner.map.align
    }

    /// Returns the signature: the basic types of an element.
    pub fn signature(&self) -> &Signature {
        &self.inner.map.signature
    }

    /// Returns where the bytes of `count` elements lie, in the order of the type map, as displacements from the address
    /// of the first element. For one element this computes nothing.
    ///
    /// # Errors
    /// [`DatatypeError::Negative`]; [`DatatypeError::Layout`] if the elements cannot lie in memory.
    pub fn layout(&self, count: i64) -> Result<Layout, DatatypeError> {
        let layout = &self.inner.map.layout;
        match not_negative("count", count)? {
            1 => Ok(layout.clone()),
            count => Ok(layout.repeat(count, self.extent())?),
        }
    }

    /// Returns displacement and length in bytes of `count` elements, if they form one span in order and so need no
    /// layout. Both are 0 if there are no bytes. `None` also for counts that [`layout`](Self::layout) refuses, and for
    /// adjacent blocks that were not recognised as one.
    pub fn span(&self, count: i64) -> Option<(isize, usize)> {
        let count = usize::try_from(count).ok()?;
        if count == 0 || self.size() == 0 {
            return Some((0, 0));
        }
        let (at, len) = self.inner.map.layout.span()?;
        let goes_on = count == 1 || usize::try_from(self.extent()) == Ok(len);
        let whole = len.checked_mul(count).filter(|len| isize::try_from(*len).is_ok())?;
        goes_on.then_some((at, whole))
    }

    /// Returns whether `count` elements are contiguous and in order.
    pub fn is_contiguous(&self, count: i64) -> bool {
        self.span(count).is_some()
    }

    /// Returns the name of a predefined datatype; `None` for a derived one.
    pub fn name(&self) -> Option<&'static str> {
        match self.inner.arguments {
            Arguments::Named { name } => Some(name),
            _ => None,
        }
    }

    /// Returns the constructor of the datatype and the number of its arguments: MPI_Type_get_envelope (MPI-4.1
    /// section 5.1.13).
    pub fn envelope(&self) -> Envelope {
        let Contents { integers, addresses, counts, datatypes } = self.contents();
        Envelope {
            combiner: self.inner.arguments.combiner(),
            integers: integers.len(),
            addresses: addresses.len(),
            counts: counts.len(),
            datatypes: datatypes.len(),
        }
    }

    /// Returns the arguments of the datatype's constructor: MPI_Type_get_contents (MPI-4.1 section 5.1.13). A
    /// predefined datatype has none, and MPI forbids the call for it.
    pub fn contents(&self) -> Contents {
        self.inner.arguments.contents(self.is_large)
    }
}

impl fmt::Display for Datatype {
    /// Writes the name of a predefined datatype; constructor, layout and bounds of others.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(name) = self.name() {
            return f.write_str(name);
        }
        let (combiner, layout) = (self.inner.arguments.combiner().name(), &self.inner.map.layout);
        let (low, extent) = (self.lower_bound(), self.extent());
        write!(f, "{combiner}: {layout}; {}; from {low}, extent {extent}", self.signature())
    }
}

impl fmt::Debug for Datatype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Converts the value of `argument`, which must not be negative.
fn not_negative(argument: &'static str, given: i64) -> Result<usize, DatatypeError> {
    usize::try_from(given).map_err(|_| DatatypeError::Negative { argument, given })
}

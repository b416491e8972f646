//! Types of the elements of messages: plain old data, and structures of it (MPI-4 section 5.1).
//!
//! - DT1: the promise of [`Datatype`]. [`Datatype::datatype`] describes bytes of a value, each once, which are
//!   initialised in every value. If these bytes change to anything and the padding stays, the value remains valid. The
//!   extent is `size_of::<Self>()`, the lower bound 0, and the size [`Datatype::SIZE`].
//! - DT2: if `SIZE` is `size_of::<Self>()`, there is no padding: any bytes are a value, and all bytes of a value are
//!   initialised.

#![expect(unsafe_code, reason = "promises what the bytes of types are")]

use std::any::TypeId;

use mpicore::op::ElementKind;

use crate::error::Error;

mod truth;

pub use truth::Bool;

/// A datatype in the sense of MPI, a type map with bounds; [`Datatype::datatype`] returns one.
pub type TypeMap = mpicore::datatype::Datatype;

/// A type whose values can be elements of messages: numbers, and structures of numbers.
///
/// All primitive numbers are elements, [`Bool`](crate::Bool), arrays of these, and every type that is
/// [`Pod`](crate::Pod): with the features `num-complex` and `half` also the numbers of these crates. So is a structure of
/// elements with `#[derive(mpj::Datatype)]`, even one with padding: its fields are sent and received, its padding
/// never.
///
/// ```
/// #[derive(Clone, Copy, Debug, PartialEq, mpj::Datatype)]
/// #[repr(C)]
/// struct Particle {
///     charge: i8, // 7 bytes of padding behind it
///     position: [f64; 3],
/// }
///
/// let sums: Vec<f64> = mpj::local::run(2, |world| {
///     if world.rank() == 0 {
///         world.send(&[Particle { charge: -1, position: [1.0, 2.0, 3.0] }], 1, 0).unwrap();
///         return 0.0;
///     }
///     let (particles, status) = world.recv_vec::<Particle>(0, 0).unwrap();
///     assert_eq!((status.bytes, size_of::<Particle>()), (25, 32));
///     particles[0].position.iter().sum()
/// })?;
/// assert_eq!(sums, [0.0, 6.0]);
/// # Ok::<(), mpj::local::LocalError>(())
/// ```
///
/// A structure without padding can also be an element by being [`Pod`](crate::Pod), with the derives of `bytemuck`:
///
/// ```
/// #[derive(Clone, Copy, mpj::Pod, mpj::Zeroable)]
/// #[bytemuck(crate = "mpj::bytemuck")]
/// #[repr(C)]
/// struct Point {
///     position: [f64; 3],
///     charge: f64,
/// }
///
/// fn is_element<T: mpj::Datatype>() {}
/// is_element::<Point>();
/// ```
///
/// # Safety
/// The bytes that [`datatype`](Self::datatype) describes must lie inside a value, be named once each, and be
/// initialised in every value. A value must stay valid when they change to anything while the bytes between them stay.
/// The extent must be `size_of::<Self>()`, the lower bound 0, and the size [`SIZE`](Self::SIZE). The derive ensures all
/// of this.
#[doc(alias(
    "MPI_Datatype",
    "MPI_INT",
    "MPI_DOUBLE",
    "MPI_C_FLOAT_COMPLEX",
    "MPI_C_DOUBLE_COMPLEX",
    "MPI_Type_create_struct",
    "MPI_Type_get_extent"
))]
pub unsafe trait Datatype: bytemuck::Zeroable + Copy + Send + Sync + 'static {
    /// The size of an element in a message, in bytes, without padding (MPI_Type_size).
    ///
    /// ```
    /// use mpj::Datatype;
    /// assert_eq!(<[f64; 3]>::SIZE, 24);
    /// ```
    #[doc(alias = "MPI_Type_size")]
    const SIZE: usize;

    /// Describes which bytes of an element are sent, in the order of memory.
    ///
    /// ```
    /// use mpj::Datatype;
    /// assert_eq!(f64::datatype()?.to_string(), "double");
    /// # Ok::<(), mpj::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Datatype`] for structures that are nested too deeply.
    fn datatype() -> Result<TypeMap, Error>;
}

// SAFETY: DT1, DT2: a `Pod` type has no padding, all its bytes are initialised, and any bytes are a value.
unsafe impl<T: bytemuck::Pod + Send + Sync> Datatype for T {
    const SIZE: usize = size_of::<T>();

    fn datatype() -> Result<TypeMap, Error> {
        match kind::<T>() {
            Some(kind) => Ok(TypeMap::predefined(kind)),
            None => {
                let byte = TypeMap::predefined(ElementKind::Byte);
                Ok(TypeMap::contiguous(count(size_of::<T>()), &byte)?)
            }
        }
    }
}

/// Returns whether all bytes of an element are sent (DT2): then adjacent elements form one span.
pub(crate) const fn is_plain<T: Datatype>() -> bool {
    T::SIZE == size_of::<T>()
}

/// Converts a number of elements to MPI's type for counts. Memory cannot hold more than the largest one.
pub(crate) fn count(elements: usize) -> i64 {
    i64::try_from(elements).unwrap_or(i64::MAX)
}

/// The kind that a number has in the core. Only `op.rs` implements it.
pub trait Known {
    const KIND: ElementKind;
}

/// Returns the kind of primitive number that predefined operations see in the elements, if they are such numbers.
fn kind<T: 'static>() -> Option<ElementKind> {
    macro_rules! kinds {
        ($($number:ty)+) => { [$((TypeId::of::<$number>(), <$number as Known>::KIND)),+] };
    }
    let kinds = kinds! { i8 i16 i32 i64 i128 isize u8 u16 u32 u64 u128 usize f32 f64 Bool };
    let kinds = kinds.into_iter();
    #[cfg(feature = "num-complex")]
    let kinds = kinds.chain(kinds! { num_complex::Complex32 num_complex::Complex64 });
    #[cfg(feature = "half")]
    let kinds = kinds.chain(kinds! { half::f16 half::bf16 });
    let mut kinds = kinds;
    kinds.find_map(|(of, kind)| (of == TypeId::of::<T>()).then_some(kind))
}

/// Functions that the expansion of `#[derive(mpj::Datatype)]` calls.
pub mod derive {
    use super::{Error, TypeMap, count};

    /// Makes the datatype of a structure of `size` bytes from its fields, each with its offset in bytes. The fields are
    /// sorted by offset, which is the order of the bytes in a message of a structure without padding.
    ///
    /// # Errors
    /// [`Error::Datatype`] for structures that are nested too deeply.
    pub fn structure<const N: usize>(
        size: usize,
        fields: [(usize, Result<TypeMap, Error>); N],
    ) -> Result<TypeMap, Error> {
        let mut placed = Vec::with_capacity(N);
        for (offset, field) in fields {
            placed.push((offset as isize, field?));
        }
        placed.sort_by_key(|(offset, _)| *offset);
        let (offsets, types): (Vec<_>, Vec<_>) = placed.into_iter().unzip();
        let whole = TypeMap::create_struct(&[1; N], &offsets, &types)?;
        Ok(whole.resized(0, size as isize)?)
    }

    /// Makes the datatype of an array of `len` elements.
    ///
    /// # Errors
    /// As [`structure`].
    pub fn array(len: usize, element: Result<TypeMap, Error>) -> Result<TypeMap, Error> {
        Ok(TypeMap::contiguous(count(len), &element?)?)
    }
}

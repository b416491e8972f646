//! The kinds of elements that predefined operations work on, with their layout in memory.
//!
//! The layers above assign a kind to every predefined datatype; `op.rs` and `kernels.rs` use its class and extent.
//! Layouts are those of C on 64-bit Linux.

use std::fmt;

/// A group of kinds for which MPI allows the same operations (MPI-4.1 section 6.9.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Class {
    /// Integers of C and Fortran, and those of MPI itself (`MPI_AINT`, `MPI_COUNT`, `MPI_OFFSET`).
    Integer,
    /// Floating-point numbers.
    FloatingPoint,
    /// Truth values.
    Logical,
    /// Complex numbers.
    Complex,
    /// `MPI_BYTE`.
    Byte,
    /// A value and an index, for operations that find a position (MPI-4.1 section 6.9.4).
    Pair,
}

impl Class {
    /// Returns the name of the class's elements, in the plural.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Integer => "integers",
            Self::FloatingPoint => "floating-point numbers",
            Self::Logical => "truth values",
            Self::Complex => "complex numbers",
            Self::Byte => "bytes",
            Self::Pair => "pairs of value and index",
        }
    }
}

/// The kind of one element of a buffer.
///
/// A kind is a meaning and a layout, not a name: `MPI_INT`, `MPI_INT32_T` and `MPI_INTEGER` are all [`I32`](Self::I32).
/// `MPI_CHAR`, `MPI_WCHAR` and `MPI_CHARACTER` are characters and have no kind, since no reduction takes them (MPI-4.1
/// section 6.9.3); `MPI_SIGNED_CHAR` and `MPI_UNSIGNED_CHAR` are integers.
///
/// ```
/// use mpicore::op::{Class, ElementKind};
/// let kind = ElementKind::DoubleInt;
/// assert_eq!((kind.size(), kind.extent(), kind.align()), (12, 16, 8));
/// assert_eq!(kind.class(), Class::Pair);
/// assert_eq!(kind.to_string(), "MPI_DOUBLE_INT");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ElementKind {
    /// A signed integer of 8 bits.
    I8,
    /// A signed integer of 16 bits.
    I16,
    /// A signed integer of 32 bits.
    I32,
    /// A signed integer of 64 bits.
    I64,
    /// A signed integer of 128 bits, Fortran's `INTEGER*16`.
    I128,
    /// An unsigned integer of 8 bits.
    U8,
    /// An unsigned integer of 16 bits.
    U16,
    /// An unsigned integer of 32 bits.
    U32,
    /// An unsigned integer of 64 bits.
    U64,
    /// An unsigned integer of 128 bits.
    U128,
    /// IEEE's floating-point number of 16 bits, Fortran's `REAL*2`.
    F16,
    /// The upper 16 bits of an [`F32`](Self::F32), known as bfloat16.
    BF16,
    /// A floating-point number of 32 bits.
    F32,
    /// A floating-point number of 64 bits.
    F64,
    /// C's `long double` of x86-64: 80 bits of the x87 unit at the start of 16 bytes.
    ///
    /// Predefined operations on it are available on x86-64 only, see [`is_available`](Self::is_available).
    LongDouble,
    /// `bool` of C and C++, and Fortran's `LOGICAL*1`.
    Bool,
    /// Fortran's `LOGICAL*2`.
    Logical2,
    /// Fortran's `LOGICAL` and `LOGICAL*4`.
    Logical4,
    /// Fortran's `LOGICAL*8`.
    Logical8,
    /// Eight bits without a meaning as a number.
    Byte,
    /// A complex number of two [`F32`](Self::F32), real part first.
    ComplexF32,
    /// A complex number of two [`F64`](Self::F64), real part first.
    ComplexF64,
    /// A complex number of two [`LongDouble`](Self::LongDouble), real part first.
    ComplexLongDouble,
    /// `MPI_FLOAT_INT`: a 32-bit floating-point value and a 32-bit index.
    FloatInt,
    /// `MPI_DOUBLE_INT`: a 64-bit floating-point value and a 32-bit index.
    DoubleInt,
    /// `MPI_LONG_INT`: a 64-bit integer value and a 32-bit index.
    LongInt,
    /// `MPI_2INT` and `MPI_2INTEGER`: a 32-bit integer value and a 32-bit index.
    TwoInt,
    /// `MPI_SHORT_INT`: a 16-bit integer value and a 32-bit index.
    ShortInt,
    /// `MPI_LONG_DOUBLE_INT`: a `long double` value and a 32-bit index.
    LongDoubleInt,
    /// `MPI_2REAL`: value and index are both 32-bit floating-point numbers.
    TwoReal,
    /// `MPI_2DOUBLE_PRECISION`: value and index are both 64-bit floating-point numbers.
    TwoDoublePrecision,
}

/// The properties of a kind.
struct Row {
    name: &'static str,
    class: Class,
    size: usize,
    extent: usize,
    align: usize,
}

/// Describes a kind whose elements are aligned to their size and have no padding.
const fn plain(name: &'static str, class: Class, size: usize) -> Row {
    Row { name, class, size, extent: size, align: size }
}

/// Describes a complex number of two parts.
const fn complex(name: &'static str, part: usize) -> Row {
    Row { name, class: Class::Complex, size: 2 * part, extent: 2 * part, align: part }
}

const fn pair(name: &'static str, size: usize, extent: usize, align: usize) -> Row {
    Row { name, class: Class::Pair, size, extent, align }
}

impl ElementKind {
    /// All kinds.
    pub const ALL: [Self; 31] = [
        Self::I8,
        Self::I16,
        Self::I32,
        Self::I64,
        Self::I128,
        Self::U8,
        Self::U16,
        Self::U32,
        Self::U64,
        Self::U128,
        Self::F16,
        Self::BF16,
        Self::F32,
        Self::F64,
        Self::LongDouble,
        Self::Bool,
        Self::Logical2,
        Self::Logical4,
        Self::Logical8,
        Self::Byte,
        Self::ComplexF32,
        Self::ComplexF64,
        Self::ComplexLongDouble,
        Self::FloatInt,
        Self::DoubleInt,
        Self::LongInt,
        Self::TwoInt,
        Self::ShortInt,
        Self::LongDoubleInt,
        Self::TwoReal,
        Self::TwoDoublePrecision,
    ];

    const fn row(self) -> Row {
        match self {
            Self::I8 => plain("int8_t", Class::Integer, 1),
            Self::I16 => plain("int16_t", Class::Integer, 2),
            Self::I32 => plain("int32_t", Class::Integer, 4),
            Self::I64 => plain("int64_t", Class::Integer, 8),
            Self::I128 => plain("INTEGER*16", Class::Integer, 16),
            Self::U8 => plain("uint8_t", Class::Integer, 1),
            Self::U16 => plain("uint16_t", Class::Integer, 2),
            Self::U32 => plain("uint32_t", Class::Integer, 4),
            Self::U64 => plain("uint64_t", Class::Integer, 8),
            Self::U128 => plain("128-bit unsigned integer", Class::Integer, 16),
            Self::F16 => plain("MPI_REAL2", Class::FloatingPoint, 2),
            Self::BF16 => plain("bfloat16", Class::FloatingPoint, 2),
            Self::F32 => plain("float", Class::FloatingPoint, 4),
            Self::F64 => plain("double", Class::FloatingPoint, 8),
            Self::LongDouble => plain("long double", Class::FloatingPoint, 16),
            Self::Bool => plain("bool", Class::Logical, 1),
            Self::Logical2 => plain("LOGICAL*2", Class::Logical, 2),
            Self::Logical4 => plain("LOGICAL*4", Class::Logical, 4),
            Self::Logical8 => plain("LOGICAL*8", Class::Logical, 8),
            Self::Byte => plain("MPI_BYTE", Class::Byte, 1),
            Self::ComplexF32 => complex("float complex", 4),
            Self::ComplexF64 => complex("double complex", 8),
            Self::ComplexLongDouble => complex("long double complex", 16),
            Self::FloatInt => pair("MPI_FLOAT_INT", 8, 8, 4),
            Self::DoubleInt => pair("MPI_DOUBLE_INT", 12, 16, 8),
            Self::LongInt => pair("MPI_LONG_INT", 12, 16, 8),
            Self::TwoInt => pair("MPI_2INT", 8, 8, 4),
            Self::ShortInt => pair("MPI_SHORT_INT", 6, 8, 4),
            Self::LongDoubleInt => pair("MPI_LONG_DOUBLE_INT", 20, 32, 16),
            Self::TwoReal => pair("MPI_2REAL", 8, 8, 4),
            Self::TwoDoublePrecision => pair("MPI_2DOUBLE_PRECISION", 16, 16, 8),
        }
    }

    /// Returns the bytes of data in an element, as `MPI_Type_size` counts them (MPI-4.1 section 5.1.5): without the
    /// padding of pairs. The 16 bytes of a `long double` count in full.
    pub const fn size(self) -> usize {
        self.row().size
    }

    /// Returns the bytes from one element of a buffer to the next (MPI-4.1 section 5.1.6).
    pub const fn extent(self) -> usize {
        self.row().extent
    }

    /// Returns the alignment of an element in C, in bytes. [`reduce_local`](super::reduce_local) needs no alignment.
    pub const fn align(self) -> usize {
        self.row().align
    }

    /// Returns the name for error messages: the type in C or Fortran, or the name in MPI.
    pub const fn name(self) -> &'static str {
        self.row().name
    }

    /// Returns the class, which determines the operations that MPI allows: the row in the table of MPI-4.1 section
    /// 6.9.2.
    pub const fn class(self) -> Class {
        self.row().class
    }

    /// Returns whether predefined operations can compute with it here: `long double`, and kinds that contain one, need
    /// the x87 unit of x86-64.
    pub const fn is_available(self) -> bool {
        let needs_x87 =
            matches!(self, Self::LongDouble | Self::ComplexLongDouble | Self::LongDoubleInt);
        !needs_x87 || cfg!(target_arch = "x86_64")
    }
}

impl fmt::Display for ElementKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

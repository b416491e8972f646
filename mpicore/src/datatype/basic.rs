//! Basic datatypes: the entries of type maps, in memory and in the representation `external32`.

use std::fmt;

use crate::op::{Class, ElementKind};

/// The type of one entry of a type map (MPI-4.1 section 5.1).
///
/// A basic type is a meaning and a layout, not a name: `MPI_INT` and `MPI_INTEGER` are the same basic type. Types with
/// an [`ElementKind`] can be reduced; the others cannot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Basic {
    /// A number, a truth value, a byte, or a pair of value and index.
    Element(ElementKind),
    /// C's `long`: 64 bits in memory, but 32 bits in `external32`. Everywhere else it is an [`ElementKind::I64`].
    Long,
    /// C's `unsigned long`: 64 bits in memory, but 32 bits in `external32`. Everywhere else it is an
    /// [`ElementKind::U64`].
    UnsignedLong,
    /// A character of one byte: `MPI_CHAR`, `MPI_CHARACTER`.
    Char,
    /// A wide character, C's `wchar_t`: 32 bits in memory, 16 in `external32`.
    WideChar,
    /// A byte of a packed buffer, `MPI_PACKED`, which matches everything.
    Packed,
    /// Fortran's truth value of 16 bytes, `MPI_LOGICAL16`. Like the three types below it can be sent, but not reduced.
    Logical16,
    /// Fortran's floating-point number of 16 bytes, in IEEE's format of 128 bits: `MPI_REAL16`.
    Real16,
    /// Two [`ElementKind::F16`]: `MPI_COMPLEX4`.
    Complex4,
    /// Two [`Basic::Real16`]: `MPI_COMPLEX32`.
    Complex32,
}

impl Basic {
    /// Returns the bytes of data in one value, without padding.
    pub const fn size(self) -> usize {
        match self {
            Self::Element(kind) => kind.size(),
            Self::Long | Self::UnsignedLong => 8,
            Self::Char | Self::Packed => 1,
            Self::WideChar | Self::Complex4 => 4,
            Self::Logical16 | Self::Real16 => 16,
            Self::Complex32 => 32,
        }
    }

    /// Returns the alignment in C, in bytes.
    pub const fn align(self) -> usize {
        match self {
            Self::Element(kind) => kind.align(),
            _ => self.size() / self.parts(),
        }
    }

    /// Returns its name in C or in MPI.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Element(kind) => kind.name(),
            Self::Long => "long",
            Self::UnsignedLong => "unsigned long",
            Self::Char => "char",
            Self::WideChar => "wchar_t",
            Self::Packed => "MPI_PACKED",
            Self::Logical16 => "MPI_LOGICAL16",
            Self::Real16 => "MPI_REAL16",
            Self::Complex4 => "MPI_COMPLEX4",
            Self::Complex32 => "MPI_COMPLEX32",
        }
    }

    /// Returns the kind of element that reductions work on, if there is one.
    pub const fn kind(self) -> Option<ElementKind> {
        match self {
            Self::Element(kind) => Some(kind),
            Self::Long => Some(ElementKind::I64),
            Self::UnsignedLong => Some(ElementKind::U64),
            _ => None,
        }
    }

    /// Returns value and index of a pair, each with its displacement in bytes: pairs are structures of two entries
    /// (MPI-4.1 section 6.9.4).
    pub(super) const fn pair(self) -> Option<[(isize, Self); 2]> {
        use ElementKind as Kind;
        let (value, index, at) = match self {
            Self::Element(Kind::FloatInt) => (Self::Element(Kind::F32), Kind::I32, 4),
            Self::Element(Kind::DoubleInt) => (Self::Element(Kind::F64), Kind::I32, 8),
            Self::Element(Kind::LongInt) => (Self::Long, Kind::I32, 8),
            Self::Element(Kind::TwoInt) => (Self::Element(Kind::I32), Kind::I32, 4),
            Self::Element(Kind::ShortInt) => (Self::Element(Kind::I16), Kind::I32, 4),
            Self::Element(Kind::LongDoubleInt) => (Self::Element(Kind::LongDouble), Kind::I32, 16),
            Self::Element(Kind::TwoReal) => (Self::Element(Kind::F32), Kind::F32, 4),
            Self::Element(Kind::TwoDoublePrecision) => (Self::Element(Kind::F64), Kind::F64, 8),
            _ => return None,
        };
        Some([(0, value), (at, Self::Element(index))])
    }

    /// Returns the same basic type for all types that match it: both kinds of `long` are integers of 64 bits.
    pub(super) const fn matched(self) -> Self {
        match self.kind() {
            Some(kind) => Self::Element(kind),
            None => self,
        }
    }

    /// Returns the bytes of one value in `external32` (MPI-4.1 section 14.5.2, table 14.2).
    pub const fn external_size(self) -> usize {
        match self {
            Self::Long | Self::UnsignedLong => 4,
            Self::WideChar => 2,
            Self::Element(ElementKind::LongInt) => 8,
            _ => self.size(),
        }
    }

    /// Returns the number of numbers that it consists of: two for a complex number.
    pub(super) const fn parts(self) -> usize {
        match self {
            Self::Element(kind) if matches!(kind.class(), Class::Complex) => 2,
            Self::Complex4 | Self::Complex32 => 2,
            _ => 1,
        }
    }
}

impl From<ElementKind> for Basic {
    fn from(kind: ElementKind) -> Self {
        Self::Element(kind)
    }
}

impl fmt::Display for Basic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

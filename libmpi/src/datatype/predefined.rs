//! The datatypes that MPI defines: what each handle means, and its name.

use mpicore::datatype::{Basic, Datatype, TypeClass};
use mpicore::op::ElementKind;

use crate::abi::*;

/// The handles of predefined datatypes begin with this number; see the standard's table of their bits.
pub(super) const FIRST: usize = MPI_DATATYPE_NULL.0;
/// How many numbers are set aside for them.
pub(super) const NUMBER: usize = 0x100;

macro_rules! predefined {
    ($($handle:ident => $basic:expr,)*) => {
        /// Returns what a predefined datatype means; `None` for other handles.
        pub(super) const fn basic(datatype: MPI_Datatype) -> Option<Basic> {
            match datatype {
                $($handle => Some($basic),)*
                _ => None,
            }
        }

        /// The predefined datatypes with their names.
        const ALL: &[(MPI_Datatype, &str)] = &[$(($handle, stringify!($handle)),)*];
    };
}

const fn element(kind: ElementKind) -> Basic {
    Basic::Element(kind)
}

predefined! {
    MPI_AINT => element(ElementKind::I64),
    MPI_COUNT => element(ElementKind::I64),
    MPI_OFFSET => element(ElementKind::I64),
    MPI_PACKED => Basic::Packed,
    MPI_SHORT => element(ElementKind::I16),
    MPI_INT => element(ElementKind::I32),
    MPI_LONG => Basic::Long,
    MPI_LONG_LONG => element(ElementKind::I64),
    MPI_UNSIGNED_SHORT => element(ElementKind::U16),
    MPI_UNSIGNED => element(ElementKind::U32),
    MPI_UNSIGNED_LONG => Basic::UnsignedLong,
    MPI_UNSIGNED_LONG_LONG => element(ElementKind::U64),
    MPI_FLOAT => element(ElementKind::F32),
    // The first name of this handle in the standard's tables; MPI_C_FLOAT_COMPLEX is the other one.
    MPI_C_COMPLEX => element(ElementKind::ComplexF32),
    MPI_CXX_FLOAT_COMPLEX => element(ElementKind::ComplexF32),
    MPI_DOUBLE => element(ElementKind::F64),
    MPI_C_DOUBLE_COMPLEX => element(ElementKind::ComplexF64),
    MPI_CXX_DOUBLE_COMPLEX => element(ElementKind::ComplexF64),
    MPI_LOGICAL => element(ElementKind::Logical4),
    MPI_INTEGER => element(ElementKind::I32),
    MPI_REAL => element(ElementKind::F32),
    MPI_COMPLEX => element(ElementKind::ComplexF32),
    MPI_DOUBLE_PRECISION => element(ElementKind::F64),
    MPI_DOUBLE_COMPLEX => element(ElementKind::ComplexF64),
    MPI_CHARACTER => Basic::Char,
    MPI_LONG_DOUBLE => element(ElementKind::LongDouble),
    MPI_C_LONG_DOUBLE_COMPLEX => element(ElementKind::ComplexLongDouble),
    MPI_CXX_LONG_DOUBLE_COMPLEX => element(ElementKind::ComplexLongDouble),
    MPI_FLOAT_INT => element(ElementKind::FloatInt),
    MPI_DOUBLE_INT => element(ElementKind::DoubleInt),
    MPI_LONG_INT => element(ElementKind::LongInt),
    MPI_2INT => element(ElementKind::TwoInt),
    MPI_SHORT_INT => element(ElementKind::ShortInt),
    MPI_LONG_DOUBLE_INT => element(ElementKind::LongDoubleInt),
    MPI_2REAL => element(ElementKind::TwoReal),
    MPI_2DOUBLE_PRECISION => element(ElementKind::TwoDoublePrecision),
    MPI_2INTEGER => element(ElementKind::TwoInt),
    MPI_C_BOOL => element(ElementKind::Bool),
    MPI_CXX_BOOL => element(ElementKind::Bool),
    MPI_WCHAR => Basic::WideChar,
    MPI_INT8_T => element(ElementKind::I8),
    MPI_UINT8_T => element(ElementKind::U8),
    MPI_CHAR => Basic::Char,
    MPI_SIGNED_CHAR => element(ElementKind::I8),
    MPI_UNSIGNED_CHAR => element(ElementKind::U8),
    MPI_BYTE => element(ElementKind::Byte),
    MPI_INT16_T => element(ElementKind::I16),
    MPI_UINT16_T => element(ElementKind::U16),
    MPI_INT32_T => element(ElementKind::I32),
    MPI_UINT32_T => element(ElementKind::U32),
    MPI_INT64_T => element(ElementKind::I64),
    MPI_UINT64_T => element(ElementKind::U64),
    MPI_LOGICAL1 => element(ElementKind::Bool),
    MPI_INTEGER1 => element(ElementKind::I8),
    MPI_LOGICAL2 => element(ElementKind::Logical2),
    MPI_INTEGER2 => element(ElementKind::I16),
    MPI_REAL2 => element(ElementKind::F16),
    MPI_LOGICAL4 => element(ElementKind::Logical4),
    MPI_INTEGER4 => element(ElementKind::I32),
    MPI_REAL4 => element(ElementKind::F32),
    MPI_COMPLEX4 => Basic::Complex4,
    MPI_LOGICAL8 => element(ElementKind::Logical8),
    MPI_INTEGER8 => element(ElementKind::I64),
    MPI_REAL8 => element(ElementKind::F64),
    MPI_COMPLEX8 => element(ElementKind::ComplexF32),
    MPI_LOGICAL16 => Basic::Logical16,
    MPI_INTEGER16 => element(ElementKind::I128),
    MPI_REAL16 => Basic::Real16,
    MPI_COMPLEX16 => element(ElementKind::ComplexF64),
    MPI_COMPLEX32 => Basic::Complex32,
}

/// Makes a predefined datatype; `None` for other handles.
pub(super) fn make(datatype: MPI_Datatype) -> Option<Datatype> {
    let (_, name) = ALL.iter().find(|(handle, _)| *handle == datatype)?;
    Some(Datatype::named(basic(datatype)?, name))
}

/// Returns the handle of the predefined datatype with this name.
pub(super) fn by_name(name: &str) -> Option<MPI_Datatype> {
    ALL.iter().find(|(_, known)| *known == name).map(|(handle, _)| *handle)
}

/// Returns the handle for a class of types and a size in bytes.
pub(super) fn by_size(class: TypeClass, size: usize) -> Option<MPI_Datatype> {
    Some(match (class, size) {
        (TypeClass::Integer, 1) => MPI_INTEGER1,
        (TypeClass::Integer, 2) => MPI_INTEGER2,
        (TypeClass::Integer, 4) => MPI_INTEGER4,
        (TypeClass::Integer, 8) => MPI_INTEGER8,
        (TypeClass::Integer, 16) => MPI_INTEGER16,
        (TypeClass::Real, 2) => MPI_REAL2,
        (TypeClass::Real, 4) => MPI_REAL4,
        (TypeClass::Real, 8) => MPI_REAL8,
        (TypeClass::Real, 16) => MPI_REAL16,
        (TypeClass::Complex, 4) => MPI_COMPLEX4,
        (TypeClass::Complex, 8) => MPI_COMPLEX8,
        (TypeClass::Complex, 16) => MPI_COMPLEX16,
        (TypeClass::Complex, 32) => MPI_COMPLEX32,
        _ => return None,
    })
}

/// Returns the handle of the pair of this value and this index; MPI_DATATYPE_NULL if there is none.
pub(super) fn pair(value: MPI_Datatype, index: MPI_Datatype) -> MPI_Datatype {
    let (Some(of_value), Some(of_index)) = (basic(value), basic(index)) else {
        return MPI_DATATYPE_NULL;
    };
    match Datatype::value_index(of_value, of_index) {
        Some(ElementKind::FloatInt) => MPI_FLOAT_INT,
        Some(ElementKind::DoubleInt) => MPI_DOUBLE_INT,
        Some(ElementKind::LongInt) => MPI_LONG_INT,
        // Pairs of two equal types are Fortran's, except this one.
        Some(ElementKind::TwoInt) if (value, index) == (MPI_INT, MPI_INT) => MPI_2INT,
        Some(ElementKind::TwoInt) if (value, index) == (MPI_INTEGER, MPI_INTEGER) => MPI_2INTEGER,
        Some(ElementKind::ShortInt) => MPI_SHORT_INT,
        Some(ElementKind::LongDoubleInt) => MPI_LONG_DOUBLE_INT,
        Some(ElementKind::TwoReal) if (value, index) == (MPI_REAL, MPI_REAL) => MPI_2REAL,
        Some(ElementKind::TwoDoublePrecision) if index == MPI_DOUBLE_PRECISION => {
            MPI_2DOUBLE_PRECISION
        }
        _ => MPI_DATATYPE_NULL,
    }
}

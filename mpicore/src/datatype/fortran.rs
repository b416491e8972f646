//! Datatypes chosen by size or precision, mostly for Fortran (MPI-4.1 section 19.1.9).

use super::contents::Arguments;
use super::map::TypeMap;
use super::{Basic, Combiner, Datatype, DatatypeError};
use crate::op::ElementKind;

/// The classes of MPI_Type_match_size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TypeClass {
    /// MPI_TYPECLASS_REAL.
    Real,
    /// MPI_TYPECLASS_INTEGER.
    Integer,
    /// MPI_TYPECLASS_COMPLEX.
    Complex,
}

/// Floating-point kinds with their decimal digits and decimal exponent range, and the complex kinds of two of them.
const REALS: [(i64, i64, ElementKind, ElementKind); 3] = [
    (6, 37, ElementKind::F32, ElementKind::ComplexF32),
    (15, 307, ElementKind::F64, ElementKind::ComplexF64),
    (18, 4931, ElementKind::LongDouble, ElementKind::ComplexLongDouble),
];

/// Integer kinds with the number of decimal digits that they can hold.
const INTEGERS: [(i64, ElementKind); 5] = [
    (2, ElementKind::I8),
    (4, ElementKind::I16),
    (9, ElementKind::I32),
    (18, ElementKind::I64),
    (38, ElementKind::I128),
];

impl Datatype {
    /// Returns the kind of the predefined datatype with this class and size in bytes: MPI_Type_match_size. `None` if
    /// there is none.
    ///
    /// ```
    /// use mpicore::datatype::{Datatype, TypeClass};
    /// use mpicore::op::ElementKind;
    /// assert_eq!(Datatype::match_size(TypeClass::Real, 8), Some(ElementKind::F64));
    /// assert_eq!(Datatype::match_size(TypeClass::Complex, 8), Some(ElementKind::ComplexF32));
    /// assert_eq!(Datatype::match_size(TypeClass::Integer, 3), None);
    /// ```
    pub fn match_size(class: TypeClass, size: usize) -> Option<ElementKind> {
        let kinds: Vec<ElementKind> = match class {
            TypeClass::Real => REALS.map(|(_, _, real, _)| real).into(),
            TypeClass::Complex => REALS.map(|(_, _, _, complex)| complex).into(),
            TypeClass::Integer => INTEGERS.map(|(_, kind)| kind).into(),
        };
        kinds.into_iter().find(|kind| kind.size() == size)
    }

    /// Returns the kind of pair that has this value and index: MPI_Type_get_value_index. `None` if there is none
    /// (MPI_DATATYPE_NULL).
    pub fn value_index(value: Basic, index: Basic) -> Option<ElementKind> {
        let is_pair = |kind: &ElementKind| {
            let parts = Basic::from(*kind).pair();
            parts.is_some_and(|[(_, of_value), (_, of_index)]| {
                (of_value.matched(), of_index.matched()) == (value.matched(), index.matched())
            })
        };
        ElementKind::ALL.into_iter().find(is_pair)
    }

    /// Makes the datatype of Fortran's `selected_real_kind(p, r)`: MPI_Type_create_f90_real. `None` is MPI_UNDEFINED.
    ///
    /// # Errors
    /// [`DatatypeError::Precision`] if there is no such kind, or if both arguments are undefined.
    pub fn f90_real(p: Option<i64>, r: Option<i64>) -> Result<Self, DatatypeError> {
        let (_, _, real, _) = selected_real(p, r)?;
        Self::selected(Combiner::F90Real, real, vec![given(p), given(r)])
    }

    /// Makes the datatype of Fortran's complex numbers of kind `selected_real_kind(p, r)`: MPI_Type_create_f90_complex.
    ///
    /// # Errors
    /// As [`f90_real`](Self::f90_real).
    pub fn f90_complex(p: Option<i64>, r: Option<i64>) -> Result<Self, DatatypeError> {
        let (_, _, _, complex) = selected_real(p, r)?;
        Self::selected(Combiner::F90Complex, complex, vec![given(p), given(r)])
    }

    /// Makes the datatype of Fortran's `selected_int_kind(r)`: MPI_Type_create_f90_integer.
    ///
    /// # Errors
    /// [`DatatypeError::Precision`] if there is no such kind.
    pub fn f90_integer(r: i64) -> Result<Self, DatatypeError> {
        let found = INTEGERS.into_iter().find(|(digits, _)| *digits >= r);
        let (_, kind) = found.ok_or(DatatypeError::Precision { p: None, r: Some(r) })?;
        Self::selected(Combiner::F90Integer, kind, vec![r])
    }

    fn selected(
        combiner: Combiner,
        kind: ElementKind,
        numbers: Vec<i64>,
    ) -> Result<Self, DatatypeError> {
        Self::new(TypeMap::basic(kind.into()), Arguments::Selected { combiner, numbers })
    }
}

fn selected_real(
    p: Option<i64>,
    r: Option<i64>,
) -> Result<(i64, i64, ElementKind, ElementKind), DatatypeError> {
    let reaches = |needed: Option<i64>, has| needed.is_none_or(|needed| needed <= has);
    let found =
        REALS.into_iter().find(|(digits, range, ..)| reaches(p, *digits) && reaches(r, *range));
    let is_given = p.is_some() || r.is_some();
    found.filter(|_| is_given).ok_or(DatatypeError::Precision { p, r })
}

/// Returns an argument as MPI_Type_get_contents returns it: MPI_UNDEFINED has the number of MPI's ABI.
fn given(argument: Option<i64>) -> i64 {
    const UNDEFINED: i64 = -32766;
    argument.unwrap_or(UNDEFINED)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorClass;

    fn kind(made: Result<Datatype, DatatypeError>) -> Option<ElementKind> {
        let made = made.ok()?;
        let all = ElementKind::ALL.into_iter();
        all.filter(|kind| kind.size() == made.size()).find(|kind| {
            let predefined = Datatype::predefined(*kind);
            predefined.signature() == made.signature()
        })
    }

    #[test]
    fn the_smallest_kind_that_suffices_is_selected() {
        let real = |p, r| kind(Datatype::f90_real(p, r));
        assert_eq!(real(Some(6), Some(37)), Some(ElementKind::F32));
        assert_eq!(real(Some(7), None), Some(ElementKind::F64));
        assert_eq!(real(Some(6), Some(308)), Some(ElementKind::LongDouble));
        assert_eq!((real(Some(19), None), real(None, None)), (None, None));
        let complex = Datatype::f90_complex(None, Some(100));
        assert_eq!(kind(complex), Some(ElementKind::ComplexF64));
        let integer = |r| kind(Datatype::f90_integer(r));
        assert_eq!(
            [1, 3, 9, 10, 38].map(integer),
            [
                Some(ElementKind::I8),
                Some(ElementKind::I16),
                Some(ElementKind::I32),
                Some(ElementKind::I64),
                Some(ElementKind::I128),
            ]
        );
        let refused = Datatype::f90_integer(39).unwrap_err();
        assert_eq!(refused.class(), ErrorClass::Arg);
    }

    #[test]
    fn contents_are_the_arguments() {
        let made = Datatype::f90_real(Some(7), None).unwrap();
        let envelope = made.envelope();
        assert_eq!((envelope.combiner, envelope.integers), (Combiner::F90Real, 2));
        assert_eq!((made.contents().integers, made.name()), (vec![7, -32766], None));
        assert_eq!(Datatype::f90_integer(9).unwrap().contents().integers, [9]);
    }

    #[test]
    fn pairs_are_found_by_their_parts() {
        let [float, int, long] = [ElementKind::F32, ElementKind::I32, ElementKind::I64];
        let pair = |value: Basic, index: ElementKind| Datatype::value_index(value, index.into());
        assert_eq!(pair(float.into(), int), Some(ElementKind::FloatInt));
        assert_eq!(pair(Basic::Long, int), Some(ElementKind::LongInt));
        assert_eq!(pair(long.into(), int), Some(ElementKind::LongInt));
        assert_eq!(pair(int.into(), int), Some(ElementKind::TwoInt));
        assert_eq!(pair(int.into(), long), None);
        assert_eq!(pair(Basic::Char, int), None);
    }
}

//! What datatypes are: sizes, bounds, names, constructors with their arguments, and the predefined ones that are chosen
//! by their properties (MPI-4.1 sections 5.1.5 to 5.1.8, 5.1.13, 6.9.4, 7.8 and 19.1.9).

use std::collections::HashMap;
use std::ffi::{CStr, c_int};
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};

use mpicore::datatype::{Combiner, Contents, Datatype, DatatypeError, TypeClass};

use super::{Derived, Number, predefined};
use crate::abi::*;
use crate::call::{Fault, Outcome, mpi, mpi_bodies, out};
use crate::handles::OBJECTS;

unsafe fn size(datatype: MPI_Datatype, size: *mut impl Number) -> Outcome {
    let bytes = datatype.find()?.size() as i64;
    // SAFETY: FC1.
    unsafe { out::write(size, "size", Number::narrowed(bytes)) }
}

unsafe fn extent<N: Number>(datatype: MPI_Datatype, lb: *mut N, extent: *mut N) -> Outcome {
    let found = datatype.find()?;
    // SAFETY: FC1.
    unsafe {
        out::write(lb, "lb", N::narrowed(found.lower_bound() as i64))?;
        out::write(extent, "extent", N::narrowed(found.extent() as i64))
    }
}

unsafe fn true_extent<N: Number>(
    datatype: MPI_Datatype,
    true_lb: *mut N,
    true_extent: *mut N,
) -> Outcome {
    let found = datatype.find()?;
    // SAFETY: FC1.
    unsafe {
        out::write(true_lb, "true_lb", N::narrowed(found.true_lower_bound() as i64))?;
        out::write(true_extent, "true_extent", N::narrowed(found.true_extent() as i64))
    }
}

mpi_bodies! {
    MPI_Type_size, MPI_Type_size_c, MPI_Type_size_x => size();
    MPI_Type_get_extent, MPI_Type_get_extent_c, MPI_Type_get_extent_x => extent();
    MPI_Type_get_true_extent, MPI_Type_get_true_extent_c, MPI_Type_get_true_extent_x => true_extent();
}

fn combiner_code(combiner: Combiner) -> c_int {
    match combiner {
        Combiner::Named => MPI_COMBINER_NAMED,
        Combiner::Dup => MPI_COMBINER_DUP,
        Combiner::Contiguous => MPI_COMBINER_CONTIGUOUS,
        Combiner::Vector => MPI_COMBINER_VECTOR,
        Combiner::Hvector => MPI_COMBINER_HVECTOR,
        Combiner::Indexed => MPI_COMBINER_INDEXED,
        Combiner::Hindexed => MPI_COMBINER_HINDEXED,
        Combiner::IndexedBlock => MPI_COMBINER_INDEXED_BLOCK,
        Combiner::HindexedBlock => MPI_COMBINER_HINDEXED_BLOCK,
        Combiner::Struct => MPI_COMBINER_STRUCT,
        Combiner::Subarray => MPI_COMBINER_SUBARRAY,
        Combiner::Darray => MPI_COMBINER_DARRAY,
        Combiner::Resized => MPI_COMBINER_RESIZED,
        Combiner::F90Real => MPI_COMBINER_F90_REAL,
        Combiner::F90Complex => MPI_COMBINER_F90_COMPLEX,
        Combiner::F90Integer => MPI_COMBINER_F90_INTEGER,
        _ => MPI_UNDEFINED,
    }
}

#[cold]
fn has_large_counts(instead: &str) -> Fault {
    let text = format!("the datatype was made with large counts; call {instead}");
    Fault::argument(MPI_ERR_TYPE, "datatype", text)
}

/// Returns a handle of a datatype that another one consists of: the constant of a predefined one, a new one otherwise.
fn component(core: &Datatype) -> Outcome<MPI_Datatype> {
    if let Some(handle) = core.name().and_then(predefined::by_name) {
        return Ok(handle);
    }
    match core.envelope().combiner {
        Combiner::F90Real | Combiner::F90Complex | Combiner::F90Integer => selected(core.clone()),
        _ => Derived::keep(core.clone()),
    }
}

impl MPI_Datatype {
    /// Returns a handle of a datatype of a view, which was committed.
    pub fn of_view(core: &Datatype) -> Outcome<Self> {
        let handle = component(core)?;
        handle.find()?.made().committed.store(true, Ordering::Relaxed);
        Ok(handle)
    }
}

/// Copies the beginning of a list of the program full.
unsafe fn fill<T: Copy>(list: *mut T, max: i64, name: &'static str, values: &[T]) -> Outcome {
    if (values.len() as i64) > max {
        let text = format!("there is room for {max}, but {} are needed", values.len());
        return Err(Fault::argument(MPI_ERR_ARG, name, text));
    }
    // SAFETY: FC1: there is room for at least that many.
    unsafe { out::list_mut(list, values.len() as i64, name) }?.copy_from_slice(values);
    Ok(())
}

fn contents_of(datatype: MPI_Datatype) -> Outcome<Contents> {
    let found = datatype.find()?;
    match found.envelope().combiner {
        Combiner::Named => {
            let text = "a predefined datatype has no contents";
            Err(Fault::argument(MPI_ERR_TYPE, "datatype", text))
        }
        _ => Ok(found.contents()),
    }
}

/// Returns handles of the datatypes among the contents, if there is room for them.
unsafe fn fill_types(list: *mut MPI_Datatype, max: i64, types: &[Datatype]) -> Outcome {
    let nothing = vec![MPI_DATATYPE_NULL; types.len()];
    // SAFETY: FC1. This checks that there is room, before handles are made.
    unsafe { fill(list, max, "array_of_datatypes", &nothing) }?;
    let handles = types.iter().map(component).collect::<Outcome<Vec<_>>>()?;
    // SAFETY: FC1.
    unsafe { fill(list, max, "array_of_datatypes", &handles) }
}

fn ints(integers: &[i64]) -> Vec<c_int> {
    integers.iter().map(|number| *number as c_int).collect()
}

mpi! {
    fn MPI_Type_get_envelope(
        datatype: MPI_Datatype, num_integers: *mut c_int, num_addresses: *mut c_int, num_datatypes: *mut c_int,
        combiner: *mut c_int
    ) -> c_int {
        let envelope = datatype.find()?.envelope();
        if envelope.counts > 0 {
            return Err(has_large_counts("MPI_Type_get_envelope_c"));
        }
        out::write(num_integers, "num_integers", envelope.integers as c_int)?;
        out::write(num_addresses, "num_addresses", envelope.addresses as c_int)?;
        out::write(num_datatypes, "num_datatypes", envelope.datatypes as c_int)?;
        out::write(combiner, "combiner", combiner_code(envelope.combiner))
    }

    fn MPI_Type_get_envelope_c(
        datatype: MPI_Datatype, num_integers: *mut MPI_Count, num_addresses: *mut MPI_Count,
        num_large_counts: *mut MPI_Count, num_datatypes: *mut MPI_Count, combiner: *mut c_int
    ) -> c_int {
        let envelope = datatype.find()?.envelope();
        out::write(num_integers, "num_integers", envelope.integers as MPI_Count)?;
        out::write(num_addresses, "num_addresses", envelope.addresses as MPI_Count)?;
        out::write(num_large_counts, "num_large_counts", envelope.counts as MPI_Count)?;
        out::write(num_datatypes, "num_datatypes", envelope.datatypes as MPI_Count)?;
        out::write(combiner, "combiner", combiner_code(envelope.combiner))
    }

    fn MPI_Type_get_contents(
        datatype: MPI_Datatype, max_integers: c_int, max_addresses: c_int, max_datatypes: c_int,
        array_of_integers: *mut c_int, array_of_addresses: *mut MPI_Aint, array_of_datatypes: *mut MPI_Datatype
    ) -> c_int {
        let contents = contents_of(datatype)?;
        if !contents.counts.is_empty() {
            return Err(has_large_counts("MPI_Type_get_contents_c"));
        }
        let integers = ints(&contents.integers);
        fill(array_of_integers, max_integers.into(), "array_of_integers", &integers)?;
        fill(array_of_addresses, max_addresses.into(), "array_of_addresses", &contents.addresses)?;
        fill_types(array_of_datatypes, max_datatypes.into(), &contents.datatypes)
    }

    fn MPI_Type_get_contents_c(
        datatype: MPI_Datatype, max_integers: MPI_Count, max_addresses: MPI_Count, max_large_counts: MPI_Count,
        max_datatypes: MPI_Count, array_of_integers: *mut c_int, array_of_addresses: *mut MPI_Aint,
        array_of_large_counts: *mut MPI_Count, array_of_datatypes: *mut MPI_Datatype
    ) -> c_int {
        let contents = contents_of(datatype)?;
        let integers = ints(&contents.integers);
        fill(array_of_integers, max_integers, "array_of_integers", &integers)?;
        fill(array_of_addresses, max_addresses, "array_of_addresses", &contents.addresses)?;
        fill(array_of_large_counts, max_large_counts, "array_of_large_counts", &contents.counts)?;
        fill_types(array_of_datatypes, max_datatypes, &contents.datatypes)
    }

    fn MPI_Type_get_name(datatype: MPI_Datatype, type_name: *mut c_char, resultlen: *mut c_int) -> c_int {
        if datatype == MPI_DATATYPE_NULL {
            return out::text(type_name, resultlen, "MPI_DATATYPE_NULL", MPI_MAX_OBJECT_NAME);
        }
        let found = datatype.find()?;
        let name = found.made().name().clone();
        let name = name.as_deref().or(found.name().map(str::as_bytes)).unwrap_or_default();
        out::text(type_name, resultlen, name, MPI_MAX_OBJECT_NAME)
    }

    fn MPI_Type_set_name(datatype: MPI_Datatype, type_name: *const c_char) -> c_int {
        let found = datatype.find()?;
        if type_name.is_null() {
            return Err(out::null("type_name"));
        }
        let name = CStr::from_ptr(type_name).to_bytes().to_owned();
        *found.made().name() = Some(name);
        Ok(())
    }

    fn MPI_Type_match_size(typeclass: c_int, size: c_int, datatype: *mut MPI_Datatype) -> c_int {
        let class = match typeclass {
            MPI_TYPECLASS_REAL => TypeClass::Real,
            MPI_TYPECLASS_INTEGER => TypeClass::Integer,
            MPI_TYPECLASS_COMPLEX => TypeClass::Complex,
            _ => {
                let text = format!("{typeclass} is none of MPI_TYPECLASS_...");
                return Err(Fault::argument(MPI_ERR_ARG, "typeclass", text));
            }
        };
        let found = usize::try_from(size).ok().and_then(|size| predefined::by_size(class, size));
        let text = || format!("no predefined datatype of the class has {size} bytes");
        let found = found.ok_or_else(|| Fault::argument(MPI_ERR_ARG, "size", text()))?;
        out::write(datatype, "datatype", found)
    }

    fn MPI_Type_get_value_index(
        value_type: MPI_Datatype, index_type: MPI_Datatype, pair_type: *mut MPI_Datatype
    ) -> c_int {
        let _ = (value_type.find()?, index_type.find()?);
        out::write(pair_type, "pair_type", predefined::pair(value_type, index_type))
    }
}

/// Handles of datatypes for Fortran by the arguments that chose them.
type Choices = HashMap<(Combiner, Vec<i64>), MPI_Datatype>;

/// Returns the handle of a datatype for Fortran that was chosen by its precision: one for each choice.
fn selected(core: Datatype) -> Outcome<MPI_Datatype> {
    static CHOSEN: Mutex<Option<Choices>> = Mutex::new(None);
    let choice = (core.envelope().combiner, core.contents().integers);
    let mut chosen = CHOSEN.lock().unwrap_or_else(PoisonError::into_inner);
    let chosen = chosen.get_or_insert_default();
    if let Some(handle) = chosen.get(&choice) {
        return Ok(*handle);
    }
    let handle = MPI_Datatype(OBJECTS.insert(Box::new(Derived::predefined(core)))?);
    chosen.insert(choice, handle);
    Ok(handle)
}

unsafe fn choose(newtype: *mut MPI_Datatype, made: Result<Datatype, DatatypeError>) -> Outcome {
    // SAFETY: FC1.
    let place = unsafe { out::place(newtype, "newtype") }?;
    *place = selected(made?)?;
    Ok(())
}

/// Returns an argument that may be MPI_UNDEFINED.
fn given(number: c_int) -> Option<i64> {
    (number != MPI_UNDEFINED).then_some(number.into())
}

mpi! {
    fn MPI_Type_create_f90_real(p: c_int, r: c_int, newtype: *mut MPI_Datatype) -> c_int {
        choose(newtype, Datatype::f90_real(given(p), given(r)))
    }

    fn MPI_Type_create_f90_complex(p: c_int, r: c_int, newtype: *mut MPI_Datatype) -> c_int {
        choose(newtype, Datatype::f90_complex(given(p), given(r)))
    }

    fn MPI_Type_create_f90_integer(r: c_int, newtype: *mut MPI_Datatype) -> c_int {
        choose(newtype, Datatype::f90_integer(r.into()))
    }

    fn MPI_Type_extent(datatype: MPI_Datatype, extent: *mut MPI_Aint) -> c_int {
        out::write(extent, "extent", datatype.find()?.extent())
    }

    fn MPI_Type_lb(datatype: MPI_Datatype, displacement: *mut MPI_Aint) -> c_int {
        out::write(displacement, "displacement", datatype.find()?.lower_bound())
    }

    fn MPI_Type_ub(datatype: MPI_Datatype, displacement: *mut MPI_Aint) -> c_int {
        let found = datatype.find()?;
        out::write(displacement, "displacement", found.lower_bound() + found.extent())
    }
}

//! The constructors of datatypes (MPI-4.1 sections 5.1.2 to 5.1.4, 5.1.9 and 5.1.10), commit and free. Each is one
//! function for all forms of counts: those of MPI-1, of MPI-2 and the large ones.

use std::ffi::c_int;
use std::sync::atomic::Ordering;

use mpicore::datatype::{Datatype, Distribution, Order};

use super::{Derived, Number, wide};
use crate::abi::*;
use crate::call::{Fault, Outcome, failed, mpi, mpi_bodies, out};
use crate::handles::OBJECTS;

/// Keeps a new datatype, and writes its handle.
unsafe fn keep(
    newtype: *mut MPI_Datatype,
    made: Result<Datatype, mpicore::datatype::DatatypeError>,
    is_large: bool,
) -> Outcome {
    // SAFETY: FC1.
    let place = unsafe { out::place(newtype, "newtype") }?;
    let core = if is_large { made?.with_large_counts() } else { made? };
    *place = Derived::keep(core)?;
    Ok(())
}

unsafe fn contiguous(
    count: impl Number,
    oldtype: MPI_Datatype,
    newtype: *mut MPI_Datatype,
    is_large: bool,
) -> Outcome {
    let made = Datatype::contiguous(count.wide(), &*oldtype.find()?);
    // SAFETY: FC1.
    unsafe { keep(newtype, made, is_large) }
}

unsafe fn vector<N: Number>(
    count: N,
    blocklength: N,
    stride: N,
    oldtype: MPI_Datatype,
    newtype: *mut MPI_Datatype,
    is_large: bool,
) -> Outcome {
    let old = oldtype.find()?;
    let made = Datatype::vector(count.wide(), blocklength.wide(), stride.wide(), &old);
    // SAFETY: FC1.
    unsafe { keep(newtype, made, is_large) }
}

unsafe fn hvector<N: Number>(
    count: N,
    blocklength: N,
    stride: impl Number,
    oldtype: MPI_Datatype,
    newtype: *mut MPI_Datatype,
    is_large: bool,
) -> Outcome {
    let old = oldtype.find()?;
    let stride = stride.wide() as isize;
    let made = Datatype::hvector(count.wide(), blocklength.wide(), stride, &old);
    // SAFETY: FC1.
    unsafe { keep(newtype, made, is_large) }
}

/// Reads displacements in bytes.
unsafe fn displacements(list: *const impl Number, count: i64) -> Outcome<Vec<isize>> {
    // SAFETY: FC1.
    let list = unsafe { wide(list, count, "array_of_displacements") }?;
    Ok(list.into_iter().map(|by| by as isize).collect())
}

unsafe fn indexed<N: Number>(
    count: N,
    array_of_blocklengths: *const N,
    array_of_displacements: *const N,
    oldtype: MPI_Datatype,
    newtype: *mut MPI_Datatype,
    is_large: bool,
) -> Outcome {
    let count = count.wide();
    // SAFETY: FC1.
    let (lengths, places) = unsafe {
        (
            wide(array_of_blocklengths, count, "array_of_blocklengths")?,
            wide(array_of_displacements, count, "array_of_displacements")?,
        )
    };
    let made = Datatype::indexed(&lengths, &places, &*oldtype.find()?);
    // SAFETY: FC1.
    unsafe { keep(newtype, made, is_large) }
}

unsafe fn hindexed<N: Number>(
    count: N,
    array_of_blocklengths: *const N,
    array_of_displacements: *const impl Number,
    oldtype: MPI_Datatype,
    newtype: *mut MPI_Datatype,
    is_large: bool,
) -> Outcome {
    let count = count.wide();
    // SAFETY: FC1.
    let (lengths, places) = unsafe {
        (
            wide(array_of_blocklengths, count, "array_of_blocklengths")?,
            displacements(array_of_displacements, count)?,
        )
    };
    let made = Datatype::hindexed(&lengths, &places, &*oldtype.find()?);
    // SAFETY: FC1.
    unsafe { keep(newtype, made, is_large) }
}

unsafe fn indexed_block<N: Number>(
    count: N,
    blocklength: N,
    array_of_displacements: *const N,
    oldtype: MPI_Datatype,
    newtype: *mut MPI_Datatype,
    is_large: bool,
) -> Outcome {
    // SAFETY: FC1.
    let places = unsafe { wide(array_of_displacements, count.wide(), "array_of_displacements") }?;
    let made = Datatype::indexed_block(blocklength.wide(), &places, &*oldtype.find()?);
    // SAFETY: FC1.
    unsafe { keep(newtype, made, is_large) }
}

unsafe fn hindexed_block<N: Number>(
    count: N,
    blocklength: N,
    array_of_displacements: *const impl Number,
    oldtype: MPI_Datatype,
    newtype: *mut MPI_Datatype,
    is_large: bool,
) -> Outcome {
    // SAFETY: FC1.
    let places = unsafe { displacements(array_of_displacements, count.wide()) }?;
    let made = Datatype::hindexed_block(blocklength.wide(), &places, &*oldtype.find()?);
    // SAFETY: FC1.
    unsafe { keep(newtype, made, is_large) }
}

unsafe fn create_struct<N: Number>(
    count: N,
    array_of_blocklengths: *const N,
    array_of_displacements: *const impl Number,
    array_of_types: *const MPI_Datatype,
    newtype: *mut MPI_Datatype,
    is_large: bool,
) -> Outcome {
    let count = count.wide();
    // SAFETY: FC1.
    let (lengths, places, types) = unsafe {
        (
            wide(array_of_blocklengths, count, "array_of_blocklengths")?,
            displacements(array_of_displacements, count)?,
            out::list(array_of_types, count, "array_of_types")?,
        )
    };
    let types = types.iter().map(|old| Ok(Datatype::clone(&*old.find()?)));
    let made = Datatype::create_struct(&lengths, &places, &types.collect::<Outcome<Vec<_>>>()?);
    // SAFETY: FC1.
    unsafe { keep(newtype, made, is_large) }
}

fn order(code: c_int) -> Outcome<Order> {
    match code {
        MPI_ORDER_C => Ok(Order::C),
        MPI_ORDER_FORTRAN => Ok(Order::Fortran),
        _ => {
            let text = format!("{code} is neither MPI_ORDER_C nor MPI_ORDER_FORTRAN");
            Err(Fault::argument(MPI_ERR_ARG, "order", text))
        }
    }
}

fn dimensions(ndims: c_int) -> Outcome<i64> {
    match ndims {
        1.. => Ok(ndims.into()),
        _ => {
            let text = format!("{ndims} is no number of dimensions; give 1 or more");
            Err(Fault::argument(MPI_ERR_DIMS, "ndims", text))
        }
    }
}

unsafe fn subarray<N: Number>(
    ndims: c_int,
    array_of_sizes: *const N,
    array_of_subsizes: *const N,
    array_of_starts: *const N,
    order: c_int,
    oldtype: MPI_Datatype,
    newtype: *mut MPI_Datatype,
    is_large: bool,
) -> Outcome {
    let ndims = dimensions(ndims)?;
    // SAFETY: FC1.
    let (sizes, subsizes, starts) = unsafe {
        (
            wide(array_of_sizes, ndims, "array_of_sizes")?,
            wide(array_of_subsizes, ndims, "array_of_subsizes")?,
            wide(array_of_starts, ndims, "array_of_starts")?,
        )
    };
    let order = self::order(order)?;
    let made = Datatype::subarray(&sizes, &subsizes, &starts, order, &*oldtype.find()?);
    // SAFETY: FC1.
    unsafe { keep(newtype, made, is_large) }
}

fn distribution((code, argument): (&c_int, &c_int)) -> Outcome<Distribution> {
    let argument = match *argument {
        MPI_DISTRIBUTE_DFLT_DARG => None,
        given => Some(given.into()),
    };
    match *code {
        MPI_DISTRIBUTE_NONE => Ok(Distribution::Whole),
        MPI_DISTRIBUTE_BLOCK => Ok(Distribution::Block(argument)),
        MPI_DISTRIBUTE_CYCLIC => Ok(Distribution::Cyclic(argument)),
        code => {
            let text = format!("{code} is no distribution: give one of MPI_DISTRIBUTE_...");
            Err(Fault::argument(MPI_ERR_ARG, "array_of_distribs", text))
        }
    }
}

unsafe fn darray<N: Number>(
    size: c_int,
    rank: c_int,
    ndims: c_int,
    array_of_gsizes: *const N,
    array_of_distribs: *const c_int,
    array_of_dargs: *const c_int,
    array_of_psizes: *const c_int,
    order: c_int,
    oldtype: MPI_Datatype,
    newtype: *mut MPI_Datatype,
    is_large: bool,
) -> Outcome {
    let ndims = dimensions(ndims)?;
    // SAFETY: FC1.
    let (sizes, codes, arguments, grid) = unsafe {
        (
            wide(array_of_gsizes, ndims, "array_of_gsizes")?,
            out::list(array_of_distribs, ndims, "array_of_distribs")?,
            out::list(array_of_dargs, ndims, "array_of_dargs")?,
            wide(array_of_psizes, ndims, "array_of_psizes")?,
        )
    };
    let distributions =
        codes.iter().zip(arguments).map(distribution).collect::<Outcome<Vec<_>>>()?;
    let (order, old) = (self::order(order)?, oldtype.find()?);
    let made =
        Datatype::darray(size.into(), rank.into(), &sizes, &distributions, &grid, order, &old);
    // SAFETY: FC1.
    unsafe { keep(newtype, made, is_large) }
}

unsafe fn resized<N: Number>(
    oldtype: MPI_Datatype,
    lb: N,
    extent: N,
    newtype: *mut MPI_Datatype,
    is_large: bool,
) -> Outcome {
    let made = oldtype.find()?.resized(lb.wide() as isize, extent.wide() as isize);
    // SAFETY: FC1.
    unsafe { keep(newtype, made, is_large) }
}

mpi_bodies! {
    MPI_Type_contiguous => contiguous(false);
    MPI_Type_contiguous_c => contiguous(true);
    MPI_Type_vector => vector(false);
    MPI_Type_vector_c => vector(true);
    MPI_Type_create_hvector, MPI_Type_hvector => hvector(false);
    MPI_Type_create_hvector_c => hvector(true);
    MPI_Type_indexed => indexed(false);
    MPI_Type_indexed_c => indexed(true);
    MPI_Type_create_hindexed, MPI_Type_hindexed => hindexed(false);
    MPI_Type_create_hindexed_c => hindexed(true);
    MPI_Type_create_indexed_block => indexed_block(false);
    MPI_Type_create_indexed_block_c => indexed_block(true);
    MPI_Type_create_hindexed_block => hindexed_block(false);
    MPI_Type_create_hindexed_block_c => hindexed_block(true);
    MPI_Type_create_struct, MPI_Type_struct => create_struct(false);
    MPI_Type_create_struct_c => create_struct(true);
    MPI_Type_create_subarray => subarray(false);
    MPI_Type_create_subarray_c => subarray(true);
    MPI_Type_create_darray => darray(false);
    MPI_Type_create_darray_c => darray(true);
    MPI_Type_create_resized => resized(false);
    MPI_Type_create_resized_c => resized(true);
}

mpi! {
    fn MPI_Type_dup(oldtype: MPI_Datatype, newtype: *mut MPI_Datatype) -> c_int {
        if newtype.is_null() {
            return Err(out::null("newtype"));
        }
        let old = oldtype.find()?;
        let (attributes, failure) = old.made().attributes.copy(&oldtype);
        let committed = old.made().committed.load(Ordering::Relaxed).into();
        let twin = Derived { attributes, committed, ..Derived::new(old.dup()?) };
        let made = MPI_Datatype(OBJECTS.insert(Box::new(twin))?);
        match failure {
            // The callbacks may have used the place.
            None => newtype.write(made),
            Some(failure) => {
                made.find()?.made().attributes.end(&made, |_| ());
                OBJECTS.free::<Box<Derived>>(made.0)?;
                return Err(failed(failure));
            }
        }
        Ok(())
    }

    fn MPI_Type_commit(datatype: *mut MPI_Datatype) -> c_int {
        let place = datatype.as_ref().ok_or_else(|| out::null("datatype"))?;
        place.find()?.made().committed.store(true, Ordering::Relaxed);
        Ok(())
    }

    fn MPI_Type_free(datatype: *mut MPI_Datatype) -> c_int {
        let handle = *out::place(datatype, "datatype")?;
        let found = handle.find()?;
        if found.made().is_predefined {
            return Err(Fault::argument(MPI_ERR_TYPE, "datatype", "a predefined datatype cannot be freed"));
        }
        found.made().attributes.delete_all(&handle).map_err(failed)?;
        OBJECTS.free::<Box<Derived>>(handle.0)?;
        // The callbacks may have used the place.
        datatype.write(MPI_DATATYPE_NULL);
        Ok(())
    }
}

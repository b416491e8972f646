//! Attributes of communicators (MPI-5.0 section 7.7), of programs and predefined ones. A key of a program is an object of
//! the table of handles, so its number is never that of a predefined one.

use std::ffi::{c_int, c_void};
use std::ptr;

use mpicore::Key;

use crate::abi::*;
use crate::call::{Fault, Outcome, failed, mpi, out};
use crate::comm::keyval::{Keyval, pointer, value};
use crate::error::code::LAST_USED;
use crate::process;

/// Ends a key.
unsafe fn free(keyval: *mut c_int) -> Outcome {
    // SAFETY: FC1.
    unsafe {
        if is_predefined(*out::place(keyval, "keyval")?) {
            let text = "a predefined key cannot be freed";
            return Err(Fault::argument(MPI_ERR_KEYVAL, "keyval", text));
        }
        Keyval::<MPI_Comm>::free((keyval, "keyval"))
    }
}

/// Returns the key of attributes that programs may change.
fn key(number: c_int) -> Outcome<Key<MPI_Comm>> {
    if is_predefined(number) {
        let text = "a predefined attribute cannot be changed";
        return Err(Fault::argument(MPI_ERR_KEYVAL, "keyval", text));
    }
    Keyval::find(number, "keyval")
}

fn is_predefined(number: c_int) -> bool {
    (MPI_TAG_UB..=MPI_UNIVERSE_SIZE).contains(&number)
}

/// Attaches a value.
fn set(comm: MPI_Comm, keyval: c_int, attribute: *mut c_void) -> Outcome {
    let (found, key) = (comm.find()?, key(keyval)?);
    found.attributes.set(&comm, &key, value(attribute)).map_err(failed)
}

/// Finds a value. That of a predefined attribute is a pointer to an `int` that lives as long as the process.
unsafe fn get(comm: MPI_Comm, keyval: c_int, place: *mut c_void, flag: *mut c_int) -> Outcome {
    // SAFETY: FC1.
    let flag = unsafe { out::place(flag, "flag") }?;
    let found = comm.find()?;
    let value = match is_predefined(keyval) {
        true => predefined(keyval)?,
        false => found.attributes.get(&key(keyval)?).map(|value| pointer(&value)),
    };
    *flag = value.is_some().into();
    match value {
        // SAFETY: FC1: the place is that of a pointer, whatever its type.
        Some(value) => unsafe { out::write(place.cast(), "attribute_val", value) },
        None => Ok(()),
    }
}

fn predefined(keyval: c_int) -> Outcome<Option<*mut c_void>> {
    static CONSTANTS: [c_int; 4] = [c_int::MAX, MPI_PROC_NULL, MPI_ANY_SOURCE, 0];
    let constant = |index: usize| ptr::from_ref(&CONSTANTS[index]).cast_mut();
    Ok(match keyval {
        MPI_TAG_UB => Some(constant(0)),
        // No process is special, and each one can read and write files.
        MPI_HOST => Some(constant(1)),
        MPI_IO => Some(constant(2)),
        // Each process counts from its own start.
        MPI_WTIME_IS_GLOBAL => Some(constant(3)),
        MPI_LASTUSEDCODE => Some(LAST_USED.as_ptr()),
        MPI_UNIVERSE_SIZE => Some(ptr::from_ref(&process::needed()?.expected).cast_mut()),
        MPI_APPNUM => {
            let number = process::needed()?.program.as_ref();
            return Ok(number.map(|number| ptr::from_ref(number).cast_mut().cast()));
        }
        _ => None,
    }
    .map(<*mut c_int>::cast))
}

/// Deletes a value, if there is one.
fn remove(comm: MPI_Comm, keyval: c_int) -> Outcome {
    let (found, key) = (comm.find()?, key(keyval)?);
    found.attributes.delete(&comm, &key).map(drop).map_err(failed)
}

mpi! {
    fn MPI_Comm_create_keyval(
        comm_copy_attr_fn: Option<MPI_Comm_copy_attr_function>,
        comm_delete_attr_fn: Option<MPI_Comm_delete_attr_function>, comm_keyval: *mut c_int, extra_state: *mut c_void
    ) -> c_int {
        Keyval::create(comm_copy_attr_fn, comm_delete_attr_fn, (comm_keyval, "comm_keyval"), extra_state)
    }

    fn MPI_Keyval_create(
        copy_fn: Option<MPI_Copy_function>, delete_fn: Option<MPI_Delete_function>, keyval: *mut c_int,
        extra_state: *mut c_void
    ) -> c_int {
        Keyval::create(copy_fn, delete_fn, (keyval, "keyval"), extra_state)
    }

    fn MPI_Comm_free_keyval(comm_keyval: *mut c_int) -> c_int {
        free(comm_keyval)
    }

    fn MPI_Keyval_free(keyval: *mut c_int) -> c_int {
        free(keyval)
    }

    fn MPI_Comm_set_attr(comm: MPI_Comm, comm_keyval: c_int, attribute_val: *mut c_void) -> c_int {
        set(comm, comm_keyval, attribute_val)
    }

    fn MPI_Attr_put(comm: MPI_Comm, keyval: c_int, attribute_val: *mut c_void) -> c_int {
        set(comm, keyval, attribute_val)
    }

    fn MPI_Comm_get_attr(comm: MPI_Comm, comm_keyval: c_int, attribute_val: *mut c_void, flag: *mut c_int) -> c_int {
        get(comm, comm_keyval, attribute_val, flag)
    }

    fn MPI_Attr_get(comm: MPI_Comm, keyval: c_int, attribute_val: *mut c_void, flag: *mut c_int) -> c_int {
        get(comm, keyval, attribute_val, flag)
    }

    fn MPI_Comm_delete_attr(comm: MPI_Comm, comm_keyval: c_int) -> c_int {
        remove(comm, comm_keyval)
    }

    fn MPI_Attr_delete(comm: MPI_Comm, keyval: c_int) -> c_int {
        remove(comm, keyval)
    }
}

//! Attributes of communicators (MPI-5.0 section 7.7). A key is an object of the table of handles, so its number is
//! never that of a predefined one.

use std::error::Error;
use std::ffi::{c_int, c_void};
use std::fmt;
use std::ptr;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, OnceLock};

use mpicore::{Cause, Key, Value};

use crate::abi::*;
use crate::call::{Fault, Outcome, mpi, out};
use crate::error_code::LAST_USED;
use crate::handles::OBJECTS;
use crate::state;

/// A key of attributes of communicators.
pub(crate) struct CommKey(Key<MPI_Comm>);

/// The code that a callback has returned.
#[derive(Debug)]
struct Returned(c_int);

impl fmt::Display for Returned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "it returned {}", self.0)
    }
}

impl Error for Returned {}

/// Returns the error of a call in which a callback has failed. Its code is that of the callback.
pub(crate) fn failed(error: mpicore::Error) -> Fault {
    let code = match &error {
        mpicore::Error::Callback { cause, .. } => {
            cause.downcast_ref::<Returned>().map(|returned| returned.0)
        }
        _ => None,
    };
    let text = error.to_string();
    code.map_or_else(|| error.into(), |code| Fault::new(code, text))
}

/// Calls a copy callback, and returns the value for the duplicate.
fn copy(
    function: Option<MPI_Comm_copy_attr_function>,
    (comm, number, extra): (MPI_Comm, c_int, usize),
    value: &Value,
) -> Result<Option<Value>, Cause> {
    let function = match function {
        None => return Ok(None),
        // A constant of the standard, not the address of a function.
        Some(function) if function as usize == MPI_COMM_DUP_FN => return Ok(Some(value.clone())),
        Some(function) => function,
    };
    let (mut copied, mut flag) = (ptr::null_mut::<c_void>(), 0);
    let (extra, value) = (ptr::with_exposed_provenance_mut(extra), pointer(value));
    // SAFETY: FC1: the program gave a function of this type.
    let code =
        unsafe { function(comm, number, extra, value, (&raw mut copied).cast(), &raw mut flag) };
    match code {
        MPI_SUCCESS => Ok((flag != 0).then(|| self::value(copied))),
        code => Err(Box::new(Returned(code))),
    }
}

/// Calls a delete callback.
fn delete(
    function: Option<MPI_Comm_delete_attr_function>,
    (comm, number, extra): (MPI_Comm, c_int, usize),
    value: &Value,
) -> Result<(), Cause> {
    let Some(function) = function else { return Ok(()) };
    // SAFETY: FC1: the program gave a function of this type.
    let code =
        unsafe { function(comm, number, pointer(value), ptr::with_exposed_provenance_mut(extra)) };
    if code == MPI_SUCCESS { Ok(()) } else { Err(Box::new(Returned(code))) }
}

/// Returns the pointer that is the value of an attribute.
fn pointer(value: &Value) -> *mut c_void {
    let address = value.downcast_ref().copied().expect("all values are addresses");
    ptr::with_exposed_provenance_mut(address)
}

fn value(pointer: *mut c_void) -> Value {
    Arc::new(pointer.expose_provenance())
}

/// Makes a key.
unsafe fn create(
    copy_fn: Option<MPI_Comm_copy_attr_function>,
    delete_fn: Option<MPI_Comm_delete_attr_function>,
    keyval: *mut c_int,
    extra_state: *mut c_void,
) -> Outcome {
    // SAFETY: FC1.
    let place = unsafe { out::place(keyval, "keyval") }?;
    let extra = extra_state.expose_provenance();
    let number = Arc::new(OnceLock::new());
    let of_copy = number.clone();
    let of_delete = number.clone();
    let known =
        |number: &OnceLock<c_int>| *number.get().expect("a key has its number before a value");
    let key = Key::new(
        move |comm: &MPI_Comm, value: &Value| copy(copy_fn, (*comm, known(&of_copy), extra), value),
        move |comm: &MPI_Comm, value: &Value| {
            delete(delete_fn, (*comm, known(&of_delete), extra), value)
        },
    );
    *place = *number.get_or_init({
        let handle = OBJECTS.insert(CommKey(key))?;
        move || handle as c_int
    });
    Ok(())
}

/// Ends a key. Attributes keep it for themselves.
unsafe fn free(keyval: *mut c_int) -> Outcome {
    // SAFETY: FC1.
    let place = unsafe { out::place(keyval, "keyval") }?;
    if is_predefined(*place) {
        return Err(Fault::argument(MPI_ERR_KEYVAL, "keyval", "a predefined key cannot be freed"));
    }
    OBJECTS.free::<CommKey>(*place as usize).map_err(|fault| fault.about("keyval"))?;
    *place = MPI_KEYVAL_INVALID;
    Ok(())
}

/// Returns the key of attributes that programs may change.
fn key(number: c_int) -> Outcome<Key<MPI_Comm>> {
    if is_predefined(number) {
        return Err(Fault::argument(
            MPI_ERR_KEYVAL,
            "keyval",
            "a predefined attribute cannot be changed",
        ));
    }
    let found = OBJECTS.hold::<CommKey>(number as usize).map_err(|fault| fault.about("keyval"))?;
    Ok(found.0.clone())
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
    static UNIVERSE_SIZE: AtomicI32 = AtomicI32::new(0);
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
        MPI_UNIVERSE_SIZE => {
            UNIVERSE_SIZE.store(state::needed()?.device.size() as c_int, Ordering::Relaxed);
            Some(UNIVERSE_SIZE.as_ptr())
        }
        MPI_APPNUM => {
            let number = state::needed()?.program.as_ref();
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
        create(comm_copy_attr_fn, comm_delete_attr_fn, comm_keyval, extra_state)
    }

    fn MPI_Keyval_create(
        copy_fn: Option<MPI_Copy_function>, delete_fn: Option<MPI_Delete_function>, keyval: *mut c_int,
        extra_state: *mut c_void
    ) -> c_int {
        create(copy_fn, delete_fn, keyval, extra_state)
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

//! Attributes of datatypes (MPI-4.1 section 7.7.4). `mpicore` keeps the values; callbacks of the program run while
//! nothing is held or locked.

use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use mpicore::{Cause, Error, Key, Value};

use crate::abi::*;
use crate::call::{Fault, Outcome, mpi, out};
use crate::handles::{Held, OBJECTS};

/// A key for attributes of datatypes, which a program has made.
pub(crate) struct TypeKey(Key<MPI_Datatype>);

/// What a program has said about a key.
struct Callbacks {
    copy: Option<MPI_Type_copy_attr_function>,
    delete: Option<MPI_Type_delete_attr_function>,
    /// The address of the program's state.
    extra: usize,
    /// The key's own number.
    keyval: AtomicI32,
}

/// The code that a callback has returned.
#[derive(Debug)]
struct CallbackCode(c_int);

impl std::fmt::Display for CallbackCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "it returned {}", self.0)
    }
}

impl std::error::Error for CallbackCode {}

/// Returns the fault of a call on attributes: if a callback has failed, its own code.
pub(super) fn fault(error: Error) -> Fault {
    match &error {
        Error::Callback { cause, .. } => match cause.downcast_ref::<CallbackCode>() {
            Some(CallbackCode(code)) => Fault::new(*code, error.to_string()),
            None => error.into(),
        },
        _ => error.into(),
    }
}

fn checked(code: c_int) -> Result<(), Cause> {
    if code == MPI_SUCCESS { Ok(()) } else { Err(Box::new(CallbackCode(code))) }
}

/// The address that a program has attached.
fn address(value: &Value) -> *mut c_void {
    let address = value.downcast_ref::<usize>().copied().unwrap_or(0);
    ptr::with_exposed_provenance_mut(address)
}

impl Callbacks {
    /// Returns the value for a duplicate.
    fn copy(&self, from: MPI_Datatype, value: &Value) -> Result<Option<Value>, Cause> {
        let Some(copy) = self.copy else { return Ok(None) };
        if copy as usize == MPI_TYPE_DUP_FN {
            return Ok(Some(value.clone()));
        }
        let (extra, keyval) = self.arguments();
        let (mut copied, mut flag) = (ptr::null_mut::<c_void>(), 0);
        let place = (&raw mut copied).cast();
        // SAFETY: FC1: the program gave a function of this type, and it writes one address and one number.
        checked(unsafe { copy(from, keyval, extra, address(value), place, &raw mut flag) })?;
        let copied = copied.expose_provenance();
        Ok((flag != 0).then(|| Arc::new(copied) as Value))
    }

    fn delete(&self, from: MPI_Datatype, value: &Value) -> Result<(), Cause> {
        let Some(delete) = self.delete else { return Ok(()) };
        let (extra, keyval) = self.arguments();
        // SAFETY: FC1: the program gave a function of this type.
        checked(unsafe { delete(from, keyval, address(value), extra) })
    }

    fn arguments(&self) -> (*mut c_void, c_int) {
        (ptr::with_exposed_provenance_mut(self.extra), self.keyval.load(Ordering::Relaxed))
    }
}

fn find(keyval: c_int) -> Outcome<Held<'static, TypeKey>> {
    OBJECTS.hold(keyval as usize).map_err(|fault| fault.about("type_keyval"))
}

mpi! {
    fn MPI_Type_create_keyval(
        type_copy_attr_fn: Option<MPI_Type_copy_attr_function>,
        type_delete_attr_fn: Option<MPI_Type_delete_attr_function>,
        type_keyval: *mut c_int,
        extra_state: *mut c_void,
    ) -> c_int {
        let place = out::place(type_keyval, "type_keyval")?;
        let (copy, delete) = (type_copy_attr_fn, type_delete_attr_fn);
        let extra = extra_state.expose_provenance();
        let keyval = AtomicI32::new(MPI_KEYVAL_INVALID);
        let callbacks = Arc::new(Callbacks { copy, delete, extra, keyval });
        let (copying, deleting) = (callbacks.clone(), callbacks.clone());
        let key = Key::new(
            move |from: &MPI_Datatype, value| copying.copy(*from, value),
            move |from: &MPI_Datatype, value| deleting.delete(*from, value),
        );
        // A handle has 31 bits.
        *place = OBJECTS.insert(TypeKey(key))? as c_int;
        callbacks.keyval.store(*place, Ordering::Relaxed);
        Ok(())
    }

    fn MPI_Type_free_keyval(type_keyval: *mut c_int) -> c_int {
        let place = out::place(type_keyval, "type_keyval")?;
        OBJECTS.free::<TypeKey>(*place as usize).map_err(|fault| fault.about("type_keyval"))?;
        *place = MPI_KEYVAL_INVALID;
        Ok(())
    }

    fn MPI_Type_set_attr(datatype: MPI_Datatype, type_keyval: c_int, attribute_val: *mut c_void) -> c_int {
        let (found, key) = (datatype.find()?, find(type_keyval)?);
        let value = Arc::new(attribute_val.expose_provenance());
        found.made().attributes.set(&datatype, &key.0, value).map_err(fault)
    }

    fn MPI_Type_get_attr(
        datatype: MPI_Datatype, type_keyval: c_int, attribute_val: *mut c_void, flag: *mut c_int
    ) -> c_int {
        let (found, key) = (datatype.find()?, find(type_keyval)?);
        let flag = out::place(flag, "flag")?;
        let value = found.made().attributes.get(&key.0);
        *flag = value.is_some().into();
        match value {
            Some(value) => out::write(attribute_val.cast(), "attribute_val", address(&value)),
            None => Ok(()),
        }
    }

    fn MPI_Type_delete_attr(datatype: MPI_Datatype, type_keyval: c_int) -> c_int {
        let (found, key) = (datatype.find()?, find(type_keyval)?);
        found.made().attributes.delete(&datatype, &key.0).map(drop).map_err(fault)
    }
}

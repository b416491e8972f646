//! Keys of attributes (MPI-5.0 section 7.7), for objects of all kinds: their numbers, and the callbacks of programs.
//! `mpicore` keeps the values. `attribute.rs` has the functions, and `datatype/attribute.rs` those of datatypes.
//!
//! - AK1: the number of a key is the handle of a [`Keyval`]. It is in the table until the program has freed the key and no
//!   attribute has it, nor one whose delete callback runs.

use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use mpicore::{Cause, Key, Value, WeakKey};

use crate::abi::*;
use crate::call::{Outcome, checked, out};
use crate::handles::OBJECTS;
use crate::handles::kind::Kind;

/// The function of a program that copies values, for objects with handles of type `H`.
type CopyFunction<H> = unsafe extern "C-unwind" fn(
    H,
    c_int,
    *mut c_void,
    *mut c_void,
    *mut c_void,
    *mut c_int,
) -> c_int;
/// The function of a program that is called before a value is deleted.
type DeleteFunction<H> = unsafe extern "C-unwind" fn(H, c_int, *mut c_void, *mut c_void) -> c_int;

/// The function that copies a value as it is: a constant of the standard, not an address.
const DUP_FN: usize = MPI_COMM_DUP_FN;
const _: () = assert!(DUP_FN == MPI_TYPE_DUP_FN && DUP_FN == MPI_DUP_FN);

/// A key that a program has made, for attributes of objects with handles of type `H`.
pub(crate) struct Keyval<H> {
    /// The key, until the program frees it.
    own: Mutex<Option<Key<H>>>,
    key: WeakKey<H>,
}

/// What a program has said about a key. They live as long as the key.
struct Callbacks<H> {
    copy: Option<CopyFunction<H>>,
    delete: Option<DeleteFunction<H>>,
    /// The address of the program's state.
    extra: usize,
    /// The key's number.
    number: OnceLock<c_int>,
    /// Ends the number.
    free: fn(usize) -> Outcome,
}

impl<H> Callbacks<H> {
    /// Calls the copy callback, and returns the value for the duplicate.
    fn copy(&self, from: H, value: &Value) -> Result<Option<Value>, Cause> {
        let copy = match self.copy {
            None => return Ok(None),
            Some(copy) if copy as usize == DUP_FN => return Ok(Some(value.clone())),
            Some(copy) => copy,
        };
        let (extra, number) = self.arguments();
        let (mut copied, mut flag) = (ptr::null_mut::<c_void>(), 0);
        let place = (&raw mut copied).cast();
        // SAFETY: FC1: the program gave a function of this type, which writes one address and one number.
        checked(unsafe { copy(from, number, extra, pointer(value), place, &raw mut flag) })?;
        Ok((flag != 0).then(|| self::value(copied)))
    }

    /// Calls the delete callback.
    fn delete(&self, from: H, value: &Value) -> Result<(), Cause> {
        let Some(delete) = self.delete else { return Ok(()) };
        let (extra, number) = self.arguments();
        // SAFETY: FC1: the program gave a function of this type.
        checked(unsafe { delete(from, number, pointer(value), extra) })
    }

    fn arguments(&self) -> (*mut c_void, c_int) {
        let number = *self.number.get().expect("a key has its number before a value");
        (ptr::with_exposed_provenance_mut(self.extra), number)
    }
}

impl<H> Drop for Callbacks<H> {
    /// Takes the number out of the table (AK1).
    fn drop(&mut self) {
        if let Some(number) = self.number.get() {
            let _ = (self.free)(*number as usize);
        }
    }
}

impl<H: Copy + 'static> Keyval<H>
where
    Self: Kind,
{
    /// Makes a key, and writes its number.
    ///
    /// # Safety
    /// FC1.
    pub unsafe fn create(
        copy: Option<CopyFunction<H>>,
        delete: Option<DeleteFunction<H>>,
        (place, argument): (*mut c_int, &'static str),
        extra_state: *mut c_void,
    ) -> Outcome {
        // SAFETY: the caller's promise.
        let place = unsafe { out::place(place, argument) }?;
        let (extra, number) = (extra_state.expose_provenance(), OnceLock::new());
        let free = |handle| OBJECTS.free::<Self>(handle);
        let copying = Arc::new(Callbacks { copy, delete, extra, number, free });
        let (deleting, callbacks) = (copying.clone(), copying.clone());
        let key = Key::new(
            move |from: &H, value: &Value| copying.copy(*from, value),
            move |from: &H, value: &Value| deleting.delete(*from, value),
        );
        let handle = OBJECTS.insert(Self { key: key.downgrade(), own: Mutex::new(Some(key)) })?;
        // A handle has 31 bits.
        *place = *callbacks.number.get_or_init(|| handle as c_int);
        Ok(())
    }

    /// Ends the program's part in a key. Attributes keep it, and its number, for themselves.
    ///
    /// # Safety
    /// FC1.
    pub unsafe fn free((place, argument): (*mut c_int, &'static str)) -> Outcome {
        // SAFETY: the caller's promise.
        let place = unsafe { out::place(place, argument) }?;
        let found = OBJECTS.hold::<Self>(*place as usize).map_err(|fault| fault.about(argument))?;
        let own = found.own.lock().unwrap_or_else(PoisonError::into_inner).take();
        own.map(drop).ok_or_else(|| Self::invalid().about(argument))?;
        *place = MPI_KEYVAL_INVALID;
        Ok(())
    }

    /// Finds a key by its number.
    ///
    /// # Errors
    /// MPI_ERR_KEYVAL.
    pub fn find(number: c_int, argument: &'static str) -> Outcome<Key<H>> {
        let key = OBJECTS.hold::<Self>(number as usize).map(|found| found.key.upgrade());
        key.and_then(|key| key.ok_or_else(Self::invalid)).map_err(|fault| fault.about(argument))
    }
}

/// Makes the value of an attribute.
pub(crate) fn value(pointer: *mut c_void) -> Value {
    Arc::new(pointer.expose_provenance())
}

/// Returns the pointer that is the value of an attribute.
pub(crate) fn pointer(value: &Value) -> *mut c_void {
    let address = value.downcast_ref().copied().expect("all values are addresses");
    ptr::with_exposed_provenance_mut(address)
}

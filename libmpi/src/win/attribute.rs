//! Attributes of windows (MPI-5.0 sections 7.7.3 and 12.2.6), of programs and predefined ones.

use std::ffi::{c_int, c_void};
use std::ptr;

use mpicore::Key;

use super::Win;
use crate::abi::*;
use crate::call::{Fault, Outcome, failed, mpi, out};
use crate::comm::keyval::{Keyval, pointer, value};

/// The name of the argument that is a key.
const KEYVAL: &str = "win_keyval";

/// Returns the key of attributes that programs may change.
fn key(number: c_int) -> Outcome<Key<MPI_Win>> {
    if (MPI_WIN_BASE..=MPI_WIN_MODEL).contains(&number) {
        let text = "a predefined attribute cannot be changed";
        return Err(Fault::argument(MPI_ERR_KEYVAL, KEYVAL, text));
    }
    Keyval::find(number, KEYVAL)
}

impl Win {
    /// Returns the value of a predefined attribute: the address of the memory itself, or a pointer to a number.
    fn predefined(&self, keyval: c_int) -> Option<*mut c_void> {
        let number = |number: &c_int| ptr::from_ref(number).cast_mut().cast();
        Some(match keyval {
            MPI_WIN_BASE => self.core.base().cast(),
            MPI_WIN_SIZE => ptr::from_ref(&self.facts.size).cast_mut().cast(),
            MPI_WIN_DISP_UNIT => number(&self.facts.unit),
            MPI_WIN_CREATE_FLAVOR => number(&self.facts.flavor),
            MPI_WIN_MODEL => number(&self.facts.model),
            _ => return None,
        })
    }
}

mpi! {
    fn MPI_Win_create_keyval(
        win_copy_attr_fn: Option<MPI_Win_copy_attr_function>,
        win_delete_attr_fn: Option<MPI_Win_delete_attr_function>, win_keyval: *mut c_int, extra_state: *mut c_void
    ) -> c_int {
        Keyval::create(win_copy_attr_fn, win_delete_attr_fn, (win_keyval, KEYVAL), extra_state)
    }

    fn MPI_Win_free_keyval(win_keyval: *mut c_int) -> c_int {
        key(*out::place(win_keyval, KEYVAL)?)?;
        Keyval::<MPI_Win>::free((win_keyval, KEYVAL))
    }

    fn MPI_Win_set_attr(win: MPI_Win, win_keyval: c_int, attribute_val: *mut c_void) -> c_int {
        let (found, key) = (win.find()?, key(win_keyval)?);
        found.attributes.set(&win, &key, value(attribute_val)).map_err(failed)
    }

    fn MPI_Win_get_attr(win: MPI_Win, win_keyval: c_int, attribute_val: *mut c_void, flag: *mut c_int) -> c_int {
        let (found, flag) = (win.find()?, out::place(flag, "flag")?);
        let value = match found.predefined(win_keyval) {
            Some(value) => Some(value),
            None => found.attributes.get(&key(win_keyval)?).map(|value| pointer(&value)),
        };
        *flag = value.is_some().into();
        match value {
            Some(value) => out::write(attribute_val.cast(), "attribute_val", value),
            None => Ok(()),
        }
    }

    fn MPI_Win_delete_attr(win: MPI_Win, win_keyval: c_int) -> c_int {
        let (found, key) = (win.find()?, key(win_keyval)?);
        found.attributes.delete(&win, &key).map(drop).map_err(failed)
    }
}

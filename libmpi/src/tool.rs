//! The interface for tools (MPI-5.0 section 15.3). Its control variables are the settings of `mpjrun --info`, its
//! performance variables the numbers of `mpjrun --stats`; names and descriptions come from the tables of the crates below.
//!
//! - `control.rs`: control variables and enumerations.
//! - `performance.rs`: performance variables, their sessions and handles.
//! - `category.rs`: categories.
//! - `event.rs`: events and their sources, of which there are none.
//!
//! Tools call it before MPI_Init and after MPI_Finalize. Its errors are returned, and never go to error handlers.

use std::ffi::{c_char, c_int};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::abi::*;
use crate::call::mpi_value;
use crate::process::thread_level;

mod category;
mod control;
mod event;
mod performance;

/// How often MPI_T_init_thread was called, less the calls of MPI_T_finalize.
static USERS: AtomicUsize = AtomicUsize::new(0);

/// The result of a function's body; an error is its code.
type Answer<T = ()> = Result<T, c_int>;

/// Runs the body of a function for a tool that has initialized the interface, and returns the function's code.
fn answer(body: impl FnOnce() -> Answer) -> c_int {
    match USERS.load(Ordering::Relaxed) {
        0 => MPI_T_ERR_NOT_INITIALIZED,
        _ => body().map_or_else(|code| code, |()| MPI_SUCCESS),
    }
}

/// Defines functions of the interface. The body ends with an [`Answer`].
macro_rules! tool {
    ($(fn $name:ident($($arg:ident: $ty:ty),* $(,)?) -> c_int $body:block)+) => {$(
        $crate::call::mpi_value! {
            fn $name($($arg: $ty),*) -> c_int {
                // SAFETY: FC1: the body uses the arguments as the standard says.
                $crate::tool::answer(move || unsafe { $body })
            }
        }
    )+};
}

use tool;

/// Writes a result that the tool may not want: then the place is null.
///
/// # Safety
/// The place is null or may be written: FC1.
unsafe fn put<T>(place: *mut T, value: T) {
    if !place.is_null() {
        // SAFETY: the caller's promise.
        unsafe { place.write(value) };
    }
}

/// Writes a result that the tool must want.
///
/// # Safety
/// The place is null or may be written: FC1.
unsafe fn write<T>(place: *mut T, value: T) -> Answer {
    if place.is_null() {
        return Err(MPI_T_ERR_INVALID);
    }
    // SAFETY: the caller's promise.
    unsafe { place.write(value) };
    Ok(())
}

/// Writes as much of a string as there is room for, with the zero behind it, and how much room all of it needs.
///
/// # Safety
/// The places are null or may be written, the first one for as many bytes as the second one says: FC1.
unsafe fn put_text(place: *mut c_char, len: *mut c_int, text: &str) {
    // SAFETY: the caller's promise.
    let Some(len) = (unsafe { len.as_mut() }) else { return };
    if !place.is_null() && *len > 0 {
        let end = text.len().min(*len as usize - 1);
        // SAFETY: the caller's promise: `end` bytes and the zero are at most as many as it says.
        unsafe {
            place.copy_from_nonoverlapping(text.as_ptr().cast(), end);
            place.add(end).write(0);
        }
    }
    *len = text.len() as c_int + 1;
}

/// Returns what stands at an index of a table.
fn at<T>(table: &[T], index: c_int) -> Answer<&T> {
    usize::try_from(index).ok().and_then(|index| table.get(index)).ok_or(MPI_T_ERR_INVALID_INDEX)
}

/// Returns the index of the thing with this name.
///
/// # Safety
/// The name is null or a string: FC1.
unsafe fn index<T>(
    table: &[T],
    name: *const c_char,
    is: impl Fn(&T, &[u8]) -> bool,
) -> Answer<c_int> {
    // SAFETY: the caller's promise.
    let name = unsafe { crate::call::out::bytes(name, MPI_T_ERR_INVALID, "name") };
    let name = name.map_err(|fault| fault.code())?;
    let found = table.iter().position(|row| is(row, name));
    found.map(|index| index as c_int).ok_or(MPI_T_ERR_INVALID_NAME)
}

mpi_value! {
    fn MPI_T_init_thread(required: c_int, provided: *mut c_int) -> c_int {
        // SAFETY: FC1.
        match unsafe { provided.as_mut() } {
            Some(provided) => *provided = thread_level(required),
            None => return MPI_T_ERR_INVALID,
        }
        control::first_seen();
        USERS.fetch_add(1, Ordering::Relaxed);
        MPI_SUCCESS
    }

    fn MPI_T_finalize() -> c_int {
        let less = |users: usize| users.checked_sub(1);
        match USERS.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less) {
            Ok(1) => {
                performance::end_sessions();
                MPI_SUCCESS
            }
            Ok(_) => MPI_SUCCESS,
            Err(_) => MPI_T_ERR_NOT_INITIALIZED,
        }
    }
}

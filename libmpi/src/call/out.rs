//! Places in which functions leave their results, and lists and strings that programs give.

use std::ffi::{CStr, c_char, c_int};

use crate::abi::{MPI_ERR_ARG, MPI_ERR_COUNT};
use crate::error::{Fault, Outcome};

/// Writes a result.
///
/// # Safety
/// The place is null or may be written: FC1.
#[inline(always)]
pub unsafe fn write<T>(place: *mut T, name: &'static str, value: T) -> Outcome {
    if place.is_null() {
        return Err(null(name));
    }
    // SAFETY: the caller's promise.
    unsafe { place.write(value) };
    Ok(())
}

/// Returns the place of a result, which is written later.
///
/// # Safety
/// The place is null or may be written: FC1.
#[inline(always)]
pub unsafe fn place<'a, T>(place: *mut T, name: &'static str) -> Outcome<&'a mut T> {
    // SAFETY: the caller's promise.
    unsafe { place.as_mut() }.ok_or_else(|| null(name))
}

/// Returns a list that the program gives. An empty one may have any address.
///
/// # Safety
/// The address is null, or that of `len` values which nobody writes meanwhile: FC1.
pub unsafe fn list<'a, T>(list: *const T, len: i64, name: &'static str) -> Outcome<&'a [T]> {
    let len = length(len)?;
    match list.is_null() {
        _ if len == 0 => Ok(&[]),
        true => Err(null(name)),
        // SAFETY: the caller's promise.
        false => Ok(unsafe { std::slice::from_raw_parts(list, len) }),
    }
}

/// Returns a list of places that the program gives. An empty one may have any address.
///
/// # Safety
/// The address is null, or that of `len` values which nobody else uses meanwhile: FC1.
pub unsafe fn list_mut<'a, T>(list: *mut T, len: i64, name: &'static str) -> Outcome<&'a mut [T]> {
    let len = length(len)?;
    match list.is_null() {
        _ if len == 0 => Ok(&mut []),
        true => Err(null(name)),
        // SAFETY: the caller's promise.
        false => Ok(unsafe { std::slice::from_raw_parts_mut(list, len) }),
    }
}

/// Writes a string with its length, cut to what fits into `most` bytes with the zero behind it.
///
/// # Safety
/// The places are null or may be written, the first one for `most` bytes: FC1.
pub unsafe fn text(
    place: *mut c_char,
    len: *mut c_int,
    text: impl AsRef<[u8]>,
    most: c_int,
) -> Outcome {
    let text = text.as_ref();
    if place.is_null() {
        return Err(null("string"));
    }
    let end = text.len().min(most as usize - 1);
    // SAFETY: the caller's promise; `end` bytes and the zero are at most `most`.
    unsafe {
        place.copy_from_nonoverlapping(text.as_ptr().cast(), end);
        place.add(end).write(0);
        write(len, "resultlen", end as c_int)
    }
}

/// Returns the bytes of a string that the program gives, without the zero behind it.
///
/// # Errors
/// An error of this class if the pointer is null.
///
/// # Safety
/// The pointer is null, or that of a string that nobody changes meanwhile: FC1.
pub unsafe fn bytes<'a>(
    string: *const c_char,
    class: c_int,
    name: &'static str,
) -> Outcome<&'a [u8]> {
    if string.is_null() {
        return Err(Fault::argument(class, name, "the pointer is null"));
    }
    // SAFETY: the caller's promise.
    Ok(unsafe { CStr::from_ptr(string) }.to_bytes())
}

fn length(len: i64) -> Outcome<usize> {
    let refuse = |_| Fault::new(MPI_ERR_COUNT, format!("the number {len} is negative"));
    usize::try_from(len).map_err(refuse)
}

/// Returns the error of a pointer that must not be null.
#[cold]
pub fn null(name: &'static str) -> Fault {
    Fault::argument(MPI_ERR_ARG, name, "the pointer is null")
}

//! Objects of libfabric, and calls of the tables behind them. They keep OE1 of [`super::endpoint`].

#![expect(unsafe_code, reason = "a library of C is called")]

use super::bindings::fid;

/// Closes an object.
///
/// # Safety
/// OE1: `object` is open, and not used afterwards.
pub(super) unsafe fn close(object: *mut fid) {
    // SAFETY: as the caller promises.
    unsafe {
        if let Some(close) = (*(*object).ops).close {
            // It fails only if something is still open that was made from it.
            let _ = close(object);
        }
    }
}

/// An object that is closed when it is dropped (OE1).
pub(super) struct Object<T>(pub(super) *mut T);

impl<T> Object<T> {
    /// Each object begins with its `fid`.
    pub(super) fn fid(&self) -> *mut fid {
        self.0.cast()
    }
}

impl<T> Drop for Object<T> {
    fn drop(&mut self) {
        // SAFETY: OE1.
        unsafe { close(self.fid()) };
    }
}

/// Calls an entry of a table of an object.
macro_rules! call {
    ($object:expr, $table:ident . $entry:ident ( $($argument:expr),* )) => {
        match (*(*$object).$table).$entry {
            Some(entry) => entry($($argument),*) as isize,
            None => -(libc::ENOSYS as isize),
        }
    };
}

pub(super) use call;

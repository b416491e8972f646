//! This rank's own elements of a window, while no other rank can access them.

#![expect(unsafe_code, reason = "borrows the memory of the window")]

use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::slice;

use mpicore::LockKind;

use super::Window;
use crate::datatype::Datatype;
use crate::error::Error;

/// The elements of this rank, a slice: see [`Window::local`]. Other ranks cannot access them before this is dropped.
///
/// ```
/// mpj::local::run(2, |world| {
///     let mut window = world.allocate_window::<f64>(3).unwrap();
///     window.local().unwrap().fill(0.5);
///     assert_eq!(window.local().unwrap()[2], 0.5);
/// })?;
/// # Ok::<(), mpj::local::LocalError>(())
/// ```
///
/// No epoch begins while they are borrowed:
///
/// ```compile_fail
/// fn wrong(window: &mut mpj::Window<u8>) -> Result<(), mpj::Error> {
///     let local = window.local()?;
///     window.fence(|_| {})?;
///     drop(local);
///     Ok(())
/// }
/// ```
///
/// ```compile_fail
/// fn wrong(window: &mut mpj::Window<u8>) -> Result<&[u8], mpj::Error> {
///     Ok(&*window.local()?)
/// }
/// ```
pub struct Local<'w, T: Datatype> {
    window: &'w mut Window<T>,
    start: NonNull<T>,
}

impl<'w, T: Datatype> Local<'w, T> {
    /// Locks the window of this rank (WJ2).
    pub(super) fn new(window: &'w mut Window<T>) -> Result<Self, Error> {
        const { assert!(align_of::<T>() <= align_of::<u128>(), "the alignment that windows have") };
        let rank = window.handle.rank();
        window.enter(|core| core.lock(LockKind::Exclusive, rank, true))?;
        let start = NonNull::new(window.handle.core.base().cast::<T>());
        let start = start.filter(|_| window.len > 0).unwrap_or(NonNull::dangling());
        assert!(start.is_aligned(), "the memory of a window begins at a multiple of 16");
        Ok(Self { window, start })
    }
}

impl<T: Datatype> Deref for Local<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: WJ1: these are elements. WJ2: nobody else writes them as long as this lives.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.window.len) }
    }
}

impl<T: Datatype> DerefMut for Local<'_, T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above, and nobody reads them.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr(), self.window.len) }
    }
}

impl<T: Datatype> Drop for Local<'_, T> {
    /// Gives the lock back. An error is that of the next call.
    fn drop(&mut self) {
        let rank = self.window.handle.rank();
        let _ = self.window.noted(self.window.handle.core.unlock(rank));
    }
}

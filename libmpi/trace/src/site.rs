//! A function: its name in records, and where its calls are passed on to. Called by the functions of this library.
//!
//! - NX1: what a site finds is a function of libmpi, or of another library between, with the name that the site has. It
//!   stays, since libmpi is never unloaded.

use std::ffi::{CStr, c_void};
use std::mem;
use std::ptr;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicPtr, AtomicU32};

use transport_lapi::bootstrap::trace::{self, Kind, Recorder};

use crate::call::Call;

/// The library, if it is not among those that all others see.
const LIBRARY: &CStr = c"libmpi_abi.so.1";

/// A function that is recorded.
pub struct Site {
    /// Its second name.
    function: &'static CStr,
    kind: Kind,
    next: AtomicPtr<c_void>,
    /// The number of its name in records; 0 until it has one.
    name: AtomicU32,
}

impl Site {
    /// Makes the site of a function with this second name.
    pub const fn new(function: &'static CStr, kind: Kind) -> Self {
        let (next, name) = (AtomicPtr::new(ptr::null_mut()), AtomicU32::new(0));
        Self { function, kind, next, name }
    }

    /// Returns the function that the call is passed on to, if libmpi has it.
    ///
    /// # Safety
    /// `F` is the type of the function (TP1).
    #[inline]
    pub unsafe fn next<F: Copy>(&self) -> Option<F> {
        const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
        let mut next = self.next.load(Relaxed);
        if next.is_null() {
            next = self.find();
        }
        // SAFETY: NX1 and the caller's promise; not null.
        (!next.is_null()).then(|| unsafe { mem::transmute_copy::<*mut c_void, F>(&next) })
    }

    #[cold]
    #[inline(never)]
    fn find(&self) -> *mut c_void {
        let name = self.function.as_ptr();
        // SAFETY: both names are strings of C.
        let mut found = unsafe { libc::dlsym(libc::RTLD_NEXT, name) };
        if found.is_null() {
            // SAFETY: as above; nothing new is loaded.
            let library =
                unsafe { libc::dlopen(LIBRARY.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
            if !library.is_null() {
                // SAFETY: as above.
                found = unsafe { libc::dlsym(library, name) };
            }
        }
        self.next.store(found, Relaxed);
        found
    }

    /// Begins to record a call, if calls are recorded, and not only the last ones, whose records are not nested.
    #[inline]
    pub fn begin(&self) -> Option<Call> {
        let recorder = trace::recorder().filter(|recorder| !recorder.keeps_last_calls())?;
        let mut name = self.name.load(Relaxed);
        if name == 0 {
            name = self.named(recorder);
        }
        Call::begin(recorder, name, self.kind)
    }

    /// Stores the name. If there is no memory for it, that is tried again.
    #[cold]
    #[inline(never)]
    fn named(&self, recorder: &Recorder) -> u32 {
        let text = self.function.to_str().unwrap_or_default();
        let name = recorder.text(text.strip_prefix('P').unwrap_or(text));
        self.name.store(name, Relaxed);
        name
    }
}

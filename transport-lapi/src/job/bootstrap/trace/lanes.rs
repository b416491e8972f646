//! Where a recorder keeps the places of threads. A library that records the calls of programs in C lends its own to libmpi,
//! which is in the same process, so that libmpi records what calls consist of behind the records of the calls. Called by
//! `recorder.rs`, and [`lend`] by that library.
//!
//! - TC9: whatever exports [`LENDER`] is the function [`lend`] of such a library. What it lends has the types of this file
//!   if the number in front is [`LOAN`], and stays until the process ends, since that library is never unloaded; the place
//!   of a thread stays as long as the thread, and only that thread is told where it is.

#![expect(
    unsafe_code,
    reason = "another library of the process is found by name, and its memory used"
)]

use std::cell::Cell;
use std::ffi::CStr;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::{mem, ptr, slice};

/// The name of the function that lends.
const LENDER: &CStr = c"mpj_trace_lend";
/// The number of the form of what is lent.
const LOAN: u64 = u64::from_le_bytes(*b"mpjloan1");

/// Where a thread is.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct Lane {
    /// Where the next record begins, in words from the start of the memory.
    pub next: usize,
    /// Where the block ends.
    pub end: usize,
    /// The thread's number, from 1; 0 before its first record.
    pub thread: u64,
    /// Where the record of the call begins that the thread is in; 0 if it is in none.
    pub call: usize,
}

thread_local! {
    static LANE: Cell<Lane> = const { Cell::new(Lane { next: 0, end: 0, thread: 0, call: 0 }) };
}

/// Returns where the place of this thread is in this library.
#[inline(always)]
extern "C" fn own() -> *const Cell<Lane> {
    LANE.with(ptr::from_ref)
}

/// The places of the threads.
pub(super) struct Lanes {
    /// Says where another library keeps that of the calling thread.
    lent: Option<extern "C" fn() -> *const Cell<Lane>>,
}

impl Lanes {
    /// Those of this library.
    pub const OWN: Self = Self { lent: None };

    /// Returns the place of this thread.
    #[inline(always)]
    pub fn of_thread(&self) -> &Cell<Lane> {
        let place = match self.lent {
            None => own(),
            Some(lent) => lent(),
        };
        // SAFETY: TC9, also for those of this library, which nothing drops. The reference cannot be sent to another thread.
        unsafe { &*place }
    }
}

/// What a library that records calls lends to another one.
#[repr(C)]
pub struct Loan {
    form: u64,
    words: *const AtomicU64,
    len: usize,
    lane: extern "C" fn() -> *const Cell<Lane>,
}

/// Whether this library has lent its memory.
static HAS_LENT: AtomicBool = AtomicBool::new(false);

/// Lends the memory of this library's records; nothing if there is none.
pub(super) fn lend(words: Option<&'static [AtomicU64]>) -> Loan {
    let (form, words) = words.map_or((0, &[][..]), |words| (LOAN, words));
    HAS_LENT.store(form == LOAN, Relaxed);
    Loan { form, words: words.as_ptr(), len: words.len(), lane: own }
}

/// Returns whether another library records the parts of the calls that this one records.
#[inline]
pub fn has_lent() -> bool {
    HAS_LENT.load(Relaxed)
}

/// Borrows the memory of the library of this process that records calls, if there is one.
pub(super) fn borrow() -> Option<(&'static [AtomicU64], Lanes)> {
    // SAFETY: the name is a string of C.
    let lender = unsafe { libc::dlsym(libc::RTLD_DEFAULT, LENDER.as_ptr()) };
    if lender.is_null() {
        return None;
    }
    // SAFETY: TC9.
    let lender = unsafe { mem::transmute::<*mut libc::c_void, extern "C" fn() -> Loan>(lender) };
    let Loan { form, words, len, lane } = lender();
    // SAFETY: TC9: words that are only accessed atomically (TC1).
    (form == LOAN)
        .then(|| (unsafe { slice::from_raw_parts(words, len) }, Lanes { lent: Some(lane) }))
}

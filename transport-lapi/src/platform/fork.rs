//! Whether this process is a fork of the one that joined the job.
//!
//! A fork inherits the objects of a rank, but it is not the rank: the job's memory is not mapped in it (MM2 of
//! `adapters/shm/mapping.rs`), and the threads that the objects rely on do not exist there. So code that would touch
//! memory of the job, wait for a thread, or talk to the launcher checks a [`ProcessMark`] first. The path of messages
//! need not: it takes the lock of the session, which detects a fork at no cost by a [`WipedWord`] (X8 of
//! [`crate::progress::lock`]).
//!
//! - FK1: the word of a process is 0 until its first mark is made, and never 0 afterwards. A fork finds 0 there,
//!   because the kernel gives it a fresh page (MADV_WIPEONFORK).
//! - FK2: no number is assigned twice in a line of forks, since a fork inherits the counter. So a mark of the parent
//!   never equals the word of a child, even if the child has joined another job since.

#![expect(
    unsafe_code,
    reason = "maps the page that forks do not get, or has the C library clear the word"
)]

use std::ops::Deref;
use std::ptr::{self, NonNull};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use rustix::mm::{Advice, MapFlags, ProtFlags};

/// The word of this process (FK1). It publishes nothing, so relaxed accesses suffice.
static WORD: OnceLock<&'static AtomicU32> = OnceLock::new();

/// The last number that was assigned (FK2).
static LAST: AtomicU32 = AtomicU32::new(0);

/// Distinguishes the process in which it was made from forks of that process.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProcessMark {
    word: &'static AtomicU32,
    number: u32,
}

impl ProcessMark {
    /// Makes a mark of this process.
    pub(crate) fn new() -> Self {
        let word = *WORD.get_or_init(word_of_this_process);
        let mut number = word.load(Ordering::Relaxed);
        if number == 0 {
            let fresh = LAST.fetch_add(1, Ordering::Relaxed) + 1;
            let first = word.compare_exchange(0, fresh, Ordering::Relaxed, Ordering::Relaxed);
            number = first.map_or_else(|present| present, |_| fresh);
        }
        Self { word, number }
    }

    /// Whether this process is a fork of the one in which the mark was made.
    #[inline(always)]
    pub(crate) fn is_fork(self) -> bool {
        self.word.load(Ordering::Relaxed) != self.number
    }
}

/// Returns a word that is 0 in every fork. If the kernel cannot wipe pages, the C library clears the word, which misses
/// only forks made without the C library.
fn word_of_this_process() -> &'static AtomicU32 {
    match wiped_page::<AtomicU32>() {
        // SAFETY: a page of zeros that is never unmapped, in this process and its forks.
        Some(page) => unsafe { page.as_ref() },
        None => {
            // SAFETY: the function only stores to an atomic, which a child may do at once.
            let _ = unsafe { libc::pthread_atfork(None, None, Some(clear)) };
            Box::leak(Box::default())
        }
    }
}

extern "C" fn clear() {
    if let Some(word) = WORD.get() {
        word.store(0, Ordering::Relaxed);
    }
}

/// Maps a page of zeros that forks get anew; `None` if the kernel cannot do that.
fn wiped_page<T>() -> Option<NonNull<T>> {
    if cfg!(miri) {
        return None;
    }
    let access = ProtFlags::READ | ProtFlags::WRITE;
    let len = size_of::<T>();
    // SAFETY: the kernel chooses the place, so nothing is replaced.
    let page =
        unsafe { rustix::mm::mmap_anonymous(ptr::null_mut(), len, access, MapFlags::PRIVATE) };
    let page = page.ok()?;
    // SAFETY: advice on a page that only this function uses.
    unsafe { rustix::mm::madvise(page, len, Advice::LinuxWipeOnFork) }.ok()?;
    NonNull::new(page.cast())
}

/// A word that is 0 in a fork, whatever its value in the process that made it.
#[cfg_attr(loom, allow(dead_code, reason = "models have a word of their own"))]
pub(crate) struct WipedWord {
    word: NonNull<AtomicUsize>,
    /// Whether the kernel wipes the page.
    is_wiped: bool,
}

// SAFETY: an atomic is not tied to a thread.
unsafe impl Send for WipedWord {}
// SAFETY: as above.
unsafe impl Sync for WipedWord {}

#[cfg_attr(loom, allow(dead_code, reason = "models have a word of their own"))]
impl WipedWord {
    /// Makes a word with value 0.
    pub(crate) fn new() -> Self {
        let page = wiped_page();
        let word = page.unwrap_or_else(|| NonNull::from(Box::leak(Box::default())));
        Self { word, is_wiped: page.is_some() }
    }

    /// Whether the word is 0 in a fork; otherwise it keeps its value there.
    pub(crate) fn is_wiped(&self) -> bool {
        self.is_wiped
    }
}

impl Deref for WipedWord {
    type Target = AtomicUsize;

    #[inline(always)]
    fn deref(&self) -> &AtomicUsize {
        // SAFETY: mapped or allocated in `new`, until the drop.
        unsafe { self.word.as_ref() }
    }
}

impl Drop for WipedWord {
    fn drop(&mut self) {
        if self.is_wiped {
            // SAFETY: mapped in `new`; a fork has inherited the mapping.
            let _ =
                unsafe { rustix::mm::munmap(self.word.as_ptr().cast(), size_of::<AtomicUsize>()) };
        } else {
            // SAFETY: allocated in `new`.
            drop(unsafe { Box::from_raw(self.word.as_ptr()) });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_of_one_process_are_alike_and_no_forks() {
        let (first, second) = (ProcessMark::new(), ProcessMark::new());
        assert_eq!(first.number, second.number);
        assert!(!first.is_fork() && !second.is_fork());
    }
}

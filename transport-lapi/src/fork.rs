//! Whether this process is a fork of the one that joined the job.
//!
//! A fork inherits the objects of a rank, but it is not the rank: the job's memory is not mapped in it (MM2 of
//! [`crate::adapters::shm`]), and threads that the objects count on do not exist there. So whoever would
//! touch memory of the job, wait for a thread, or speak to the launcher asks a [`ProcessMark`] first. It
//! costs two loads of memory that nobody writes.
//!
//! - FK1: the word of a process is 0 until its first mark, and not 0 from then on. A fork finds 0 there: the
//!   kernel gives it a fresh page (MADV_WIPEONFORK).
//! - FK2: no number is given twice in a line of forks, since the count of those given is inherited. So a mark
//!   of the parent never fits the word of a child, also when that has joined a job of its own since.

#![allow(
    unsafe_code,
    reason = "maps the page that forks do not get, or has the C library clear the word"
)]

use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::mm::{Advice, MapFlags, ProtFlags};

/// The word of this process (FK1). Nothing is published by it: relaxed accesses are enough.
static WORD: OnceLock<&'static AtomicU32> = OnceLock::new();

/// The last number that was given (FK2).
static LAST: AtomicU32 = AtomicU32::new(0);

/// Tells the process that it was made in from forks of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProcessMark {
    word: &'static AtomicU32,
    number: u32,
}

impl ProcessMark {
    /// The mark of this process.
    pub(crate) fn new() -> Self {
        let word = *WORD.get_or_init(word_of_this_process);
        let fresh = LAST.fetch_add(1, Ordering::Relaxed).wrapping_add(1).max(1);
        let first = word.compare_exchange(0, fresh, Ordering::Relaxed, Ordering::Relaxed);
        Self { word, number: first.map_or_else(|present| present, |_| fresh) }
    }

    /// Whether this process is a fork of the one that the mark was made in.
    #[inline(always)]
    pub(crate) fn is_fork(self) -> bool {
        self.word.load(Ordering::Relaxed) != self.number
    }
}

/// A word that is 0 in every fork. Where the kernel wipes no pages, the C library clears it, which only misses
/// forks that are made past it.
fn word_of_this_process() -> &'static AtomicU32 {
    page_of_this_process().unwrap_or_else(|| {
        // SAFETY: the function only stores to an atomic, which a child may do at once.
        let _ = unsafe { libc::pthread_atfork(None, None, Some(clear)) };
        Box::leak(Box::default())
    })
}

fn page_of_this_process() -> Option<&'static AtomicU32> {
    if cfg!(miri) {
        return None;
    }
    let access = ProtFlags::READ | ProtFlags::WRITE;
    let len = size_of::<AtomicU32>();
    // SAFETY: the kernel chooses the place, so nothing is replaced; the mapping stays for ever.
    let page =
        unsafe { rustix::mm::mmap_anonymous(ptr::null_mut(), len, access, MapFlags::PRIVATE) };
    let page = page.ok()?;
    // SAFETY: advice on a page that only this function knows.
    unsafe { rustix::mm::madvise(page, len, Advice::LinuxWipeOnFork) }.ok()?;
    // SAFETY: a page of zeros that is never unmapped, in this process and its forks; aligned to a page.
    Some(unsafe { &*page.cast::<AtomicU32>() })
}

extern "C" fn clear() {
    if let Some(word) = WORD.get() {
        word.store(0, Ordering::Relaxed);
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

//! Maps the memory of a rank's records, and reads the clock. Called only by [`super`].
//!
//! - TC5: the memory is mapped only if it is sealed, so that no access inside of its length fails for want of a file. It
//!   is never unmapped, since threads may record until the process ends.
//! - TC6: a descriptor whose number the environment names is taken only if it is such memory: an older number never closes
//!   another file.
//! - TC8: a fork gets memory of its own in this place, so nothing that it writes becomes a record of its parent.

#![expect(
    unsafe_code,
    reason = "mapping a file, a descriptor that arrives as a number, forks, and the time stamp counter"
)]

use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;

use rustix::fs::{SealFlags, fcntl_get_seals, fstat};
use rustix::io::{Errno, FdFlags, fcntl_setfd};
use rustix::mm::{Advice, MapFlags, ProtFlags};
use rustix::param::page_size;

use super::{Clock, LEAST};

/// The memory that forks do not get.
static KEPT: OnceLock<&'static [AtomicU64]> = OnceLock::new();

/// Takes the descriptor with this number, if it is the memory of records (TC6), and maps it.
pub(super) fn take(number: RawFd) -> Option<&'static [AtomicU64]> {
    // SAFETY: the number is not -1. If it is not open, the check of its kind gets EBADF; nothing is closed.
    let is_memory = number > 2 && is_memory(unsafe { BorrowedFd::borrow_raw(number) });
    if !is_memory {
        return None;
    }
    // SAFETY: TC6, and the caller takes a number once.
    let memory = unsafe { OwnedFd::from_raw_fd(number) };
    fcntl_setfd(&memory, FdFlags::CLOEXEC).ok()?;
    map(&memory).ok()
}

fn is_memory(descriptor: BorrowedFd<'_>) -> bool {
    let has_magic = || {
        let mut magic = [0; 8];
        rustix::io::pread(descriptor, &mut magic, 0) == Ok(8)
            && u64::from_le_bytes(magic) == super::MAGIC
    };
    fcntl_get_seals(descriptor).is_ok_and(|seals| seals.contains(SealFlags::SHRINK)) && has_magic()
}

/// Maps memory for the whole life of the process (TC5).
pub(super) fn map(memory: &OwnedFd) -> Result<&'static [AtomicU64], Errno> {
    if !fcntl_get_seals(memory)?.contains(SealFlags::SHRINK) {
        return Err(Errno::INVAL);
    }
    let bytes = usize::try_from(fstat(memory)?.st_size).map_err(|_| Errno::INVAL)?;
    if (bytes as u64) < LEAST {
        return Err(Errno::INVAL);
    }
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: the kernel chooses the place, so nothing is replaced.
    let start =
        unsafe { rustix::mm::mmap(ptr::null_mut(), bytes, access, MapFlags::SHARED, memory, 0) }?;
    // SAFETY: TC5: the mapping is new, as long as the file, aligned to a page, and stays. All accesses are atomic (TC1).
    Ok(unsafe { std::slice::from_raw_parts(start.cast::<AtomicU64>(), bytes / 8) })
}

/// Keeps the memory of this process's records from forks that the C library makes (TC8). A process has one such memory.
pub(super) fn keep_from_forks(words: &'static [AtomicU64]) {
    if KEPT.set(words).is_ok() {
        // SAFETY: the function makes a system call and nothing else, which a child may do at once.
        let _ = unsafe { libc::pthread_atfork(None, None, Some(replace)) };
    }
}

/// Gives a child memory of its own. If there is none, it still makes no records, but those that its parent had begun end
/// when it ends them.
extern "C" fn replace() {
    let Some(words) = KEPT.get() else { return };
    let start = words.as_ptr().cast_mut().cast();
    let access = ProtFlags::READ | ProtFlags::WRITE;
    let flags = MapFlags::PRIVATE | MapFlags::FIXED | MapFlags::NORESERVE;
    // SAFETY: the place is that of the records (TC5), to which accesses stay valid: atomics have no value that is wrong.
    let _ = unsafe { rustix::mm::mmap_anonymous(start, size_of_val(*words), access, flags) };
}

/// Has the system provide the memory of some blocks, so that its first uses are no page faults. Returns whether there is
/// such memory; a kernel that cannot tell says yes.
pub(super) fn provide(blocks: &'static [AtomicU64]) -> bool {
    let start = ptr::from_ref(blocks).cast_mut().cast::<u8>();
    // The mapping begins with a page, so it has all of the page in which the first block begins.
    let before = start.addr() % page_size();
    let (start, len) = (start.wrapping_sub(before), size_of_val(blocks) + before);
    let populate = Advice::LinuxPopulateWrite;
    // SAFETY: the pages of the blocks are mapped for ever (TC5); populating changes no byte.
    let provided = unsafe { rustix::mm::madvise(start.cast(), len, populate) };
    matches!(provided, Ok(()) | Err(Errno::INVAL))
}

/// Asks the processor for the cache line at the beginning of these words, which will be written.
#[inline(always)]
pub(super) fn expect_writes(words: &[AtomicU64]) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use std::arch::x86_64::{_MM_HINT_ET0, _mm_prefetch};
        // SAFETY: the instruction accesses no memory of the program, whatever the address; processors without it do nothing.
        unsafe { _mm_prefetch::<_MM_HINT_ET0>(words.as_ptr().cast()) };
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = words;
}

/// Returns what a clock shows now.
#[inline(always)]
pub fn ticks(clock: Clock) -> u64 {
    match clock {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        // SAFETY: each processor of this kind has the instruction, which changes nothing.
        Clock::Counter => unsafe { std::arch::x86_64::_rdtsc() },
        _ => crate::platform::sys::monotonic_nanos(),
    }
}

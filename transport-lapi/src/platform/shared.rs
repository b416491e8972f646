//! Memory that processes share: how a file is mapped, and how memory is made sure of.

#![expect(unsafe_code, reason = "mapping a file and advice on mappings")]

use std::ops::Range;
use std::os::fd::AsFd;
use std::ptr::{self, NonNull};

use rustix::io::{Errno, Result};
use rustix::mm::{Advice, MapFlags, ProtFlags};

/// Maps the first `bytes` bytes of a file for reading and writing. Forks do not have the mapping, which nobody else unmaps.
///
/// # Errors
/// What the system answers.
pub(crate) fn map(file: impl AsFd, bytes: usize) -> Result<NonNull<u8>> {
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: the kernel chooses the place, so nothing is replaced.
    let start =
        unsafe { rustix::mm::mmap(ptr::null_mut(), bytes, access, MapFlags::SHARED, file, 0) }?;
    // SAFETY: the mapping is new; it is withheld from forks. A refusal is harmless.
    let _ = unsafe { rustix::mm::madvise(start, bytes, Advice::LinuxDontFork) };
    NonNull::new(start.cast()).ok_or(Errno::INVAL)
}

/// Maps `range` of a file once more, in place of a part of a mapping that begins at `base`, for writing alone. Where memory
/// that can be written can also be read, it can be read, too. (mprotect does the same, but Valgrind goes through each byte of
/// what it changes.) After an error, nothing may be mapped there.
///
/// # Safety
/// The mapping is of this file, and has these pages. Nobody has used them yet.
///
/// # Errors
/// What the system answers.
pub(crate) unsafe fn map_for_writing(
    file: impl AsFd,
    base: NonNull<u8>,
    range: Range<usize>,
) -> Result<()> {
    let (place, flags) =
        (base.as_ptr().wrapping_add(range.start), MapFlags::SHARED | MapFlags::FIXED);
    let (len, at) = (range.len(), range.start as u64);
    // SAFETY: the caller's promise: what is replaced is part of that mapping.
    unsafe { rustix::mm::mmap(place.cast(), len, ProtFlags::WRITE, flags, file, at) }?;
    // SAFETY: as in `map`.
    let _ = unsafe { rustix::mm::madvise(place.cast(), len, Advice::LinuxDontFork) };
    Ok(())
}

/// Makes sure that there is memory for `len` bytes from `place` on. Kernels before 5.14 cannot do that: then nothing is
/// done.
///
/// # Safety
/// The pages of these bytes are mapped.
///
/// # Errors
/// What the system answers if there is not so much.
pub(crate) unsafe fn reserve(place: *mut u8, len: usize) -> Result<()> {
    let before = place.addr() % rustix::param::page_size();
    let page = place.wrapping_sub(before).cast();
    // SAFETY: the caller's promise; populating changes no byte.
    match unsafe { rustix::mm::madvise(page, len + before, Advice::LinuxPopulateWrite) } {
        Ok(()) | Err(Errno::INVAL) => Ok(()),
        Err(errno) => Err(errno),
    }
}

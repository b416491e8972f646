//! The system calls that rustix does not offer, and the processor's prefetch.
//!
//! Used by [`crate::adapters`] only.
//!
//! - C1: `process_vm_readv` writes only into the local vector that it is given, at most its length;
//!   whatever is wrong with the remote address is an error, never a fault.

#![allow(unsafe_code, reason = "libc calls and a processor intrinsic")]

use std::io;

use crate::region::RecvRegion;

/// Reads memory of process `pid` at `addr` into the start of `into`, and returns how many bytes
/// came: possibly fewer than asked for, never 0 for a non-empty region.
pub(crate) fn process_vm_readv(pid: i32, addr: u64, into: RecvRegion) -> io::Result<usize> {
    let Ok(addr) = usize::try_from(addr) else {
        return Err(io::Error::from_raw_os_error(libc::EFAULT));
    };
    let local = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    let remote =
        libc::iovec { iov_base: std::ptr::without_provenance_mut(addr), iov_len: into.len() };
    // SAFETY: `into` is writable by us alone (G2 of `crate::region`), and C1.
    let read = unsafe { libc::process_vm_readv(pid, &local, 1, &remote, 1, 0) };
    match usize::try_from(read) {
        Ok(0) if !into.is_empty() => Err(io::Error::from_raw_os_error(libc::EFAULT)),
        Ok(read) => Ok(read),
        Err(_) => Err(io::Error::last_os_error()),
    }
}

/// Asks the processor to fetch the cache line at `at`, which need not even be mapped.
#[inline(always)]
pub(crate) fn prefetch<T>(at: *const T) {
    #[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
    // SAFETY: a prefetch is a hint; it never faults and changes no memory.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(at.cast());
    }
    #[cfg(all(target_arch = "aarch64", not(miri), not(loom)))]
    // SAFETY: as above.
    unsafe {
        std::arch::asm!("prfm pldl1keep, [{at}]", at = in(reg) at, options(nostack, readonly));
    }
    #[cfg(not(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri), not(loom))))]
    let _ = at;
}

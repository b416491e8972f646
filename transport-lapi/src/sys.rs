//! System calls that rustix does not offer, prefetches, and stores past the caches.
//!
//! Used by [`crate::adapters`], and by [`crate::region`] on their behalf.
//!
//! - SC1: `process_vm_readv` writes only into the local vector, at most its length, and `process_vm_writev` only reads
//!   it. A bad remote address is an error, never a fault.

#![expect(unsafe_code, reason = "libc calls and instructions of the processor")]

use std::io;

use crate::region::{RecvPart, SendRegion};

/// Reads memory of process `pid` at `addr` into the start of `into`. Returns how many bytes were read: possibly fewer
/// than asked for, but never 0 for a non-empty region.
pub(crate) fn process_vm_readv(pid: i32, addr: u64, into: &RecvPart<'_>) -> io::Result<usize> {
    let local = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    let remote = elsewhere(addr, into.len())?;
    // SAFETY: `into` is writable by its holder alone (G2 of `crate::region`), and SC1.
    moved(unsafe { libc::process_vm_readv(pid, &local, 1, &remote, 1, 0) }, into.len())
}

/// Writes the start of `from` into memory of process `pid` at `addr`. Returns how many bytes were written: possibly
/// fewer than asked for, but never 0 for a non-empty region.
pub(crate) fn process_vm_writev(pid: i32, addr: u64, from: SendRegion) -> io::Result<usize> {
    let local = libc::iovec { iov_base: from.as_ptr().cast_mut().cast(), iov_len: from.len() };
    let remote = elsewhere(addr, from.len())?;
    // SAFETY: `from` is readable (G1 of `crate::region`), and SC1. The other process, which may be this one in tests,
    // allows writes there until the slice is counted as written (U2); the seal beside the address proves that it is the
    // one that process published (U5).
    moved(unsafe { libc::process_vm_writev(pid, &local, 1, &remote, 1, 0) }, from.len())
}

/// Describes memory of another process for these calls.
fn elsewhere(addr: u64, len: usize) -> io::Result<libc::iovec> {
    match usize::try_from(addr) {
        Ok(addr) => {
            Ok(libc::iovec { iov_base: std::ptr::without_provenance_mut(addr), iov_len: len })
        }
        Err(_) => Err(io::Error::from_raw_os_error(libc::EFAULT)),
    }
}

/// Converts the result of such a call for `len` bytes.
fn moved(answer: isize, len: usize) -> io::Result<usize> {
    match usize::try_from(answer) {
        Ok(0) if len > 0 => Err(io::Error::from_raw_os_error(libc::EFAULT)),
        Ok(moved) => Ok(moved),
        Err(_) => Err(io::Error::last_os_error()),
    }
}

pub(crate) use processor::{copy_past_caches, prefetch, prefetch_to_write};

/// Whether [`copy_past_caches`] really bypasses the caches.
pub(crate) const STORES_PAST_CACHES: bool = cfg!(all(target_arch = "x86_64", not(miri), not(loom)));

#[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
mod processor {
    use std::arch::asm;
    use std::arch::x86_64::{
        __m128i, _MM_HINT_T0, _mm_loadu_si128, _mm_prefetch, _mm_sfence, _mm_stream_si128,
    };

    /// Hints the processor to fetch the cache line at `at`, which need not even be mapped.
    #[inline(always)]
    pub(crate) fn prefetch<T>(at: *const T) {
        // SAFETY: a prefetch is a hint; it never faults and changes no memory.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) };
    }

    /// The same for a line that is about to be written: fetched for exclusive use.
    #[inline(always)]
    pub(crate) fn prefetch_to_write<T>(at: *const T) {
        // SAFETY: as above; processors that do not know the instruction do nothing.
        unsafe { asm!("prefetchw [{0}]", in(reg) at, options(nostack, preserves_flags, readonly)) };
    }

    /// Copies like [`std::ptr::copy_nonoverlapping`], but bypasses this processor's caches: bytes go to memory, and no
    /// line is fetched before it is overwritten.
    ///
    /// # Safety
    /// As there, for `len` bytes.
    pub(crate) unsafe fn copy_past_caches(from: *const u8, to: *mut u8, len: usize) {
        const STEP: usize = size_of::<__m128i>();
        // The bytes before the first address that is aligned for such stores.
        let head = to.align_offset(STEP).min(len);
        let steps = (len - head) / STEP;
        let tail = head + steps * STEP;
        // SAFETY: the three parts make up `len` bytes, which the caller vouches for. The stores of the second part are
        // aligned, and the fence orders them before later stores, like ordinary stores.
        unsafe {
            std::ptr::copy_nonoverlapping(from, to, head);
            let (source, place) = (from.add(head), to.add(head).cast::<__m128i>());
            for step in 0..steps {
                let sixteen = _mm_loadu_si128(source.add(step * STEP).cast());
                _mm_stream_si128(place.add(step), sixteen);
            }
            _mm_sfence();
            std::ptr::copy_nonoverlapping(from.add(tail), to.add(tail), len - tail);
        }
    }
}

#[cfg(all(target_arch = "aarch64", not(miri), not(loom)))]
mod processor {
    use std::arch::asm;

    /// Hints the processor to fetch the cache line at `at`, which need not even be mapped.
    #[inline(always)]
    pub(crate) fn prefetch<T>(at: *const T) {
        // SAFETY: a prefetch is a hint; it never faults and changes no memory.
        unsafe { asm!("prfm pldl1keep, [{at}]", at = in(reg) at, options(nostack, readonly)) };
    }

    /// The same for a line that is about to be written: fetched for exclusive use.
    #[inline(always)]
    pub(crate) fn prefetch_to_write<T>(at: *const T) {
        // SAFETY: as above.
        unsafe { asm!("prfm pstl1keep, [{at}]", at = in(reg) at, options(nostack, readonly)) };
    }

    pub(crate) use std::ptr::copy_nonoverlapping as copy_past_caches;
}

/// On other processors, in models and under Miri: no prefetches, and ordinary copies.
#[cfg(not(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri), not(loom))))]
mod processor {
    pub(crate) fn prefetch<T>(_: *const T) {}

    pub(crate) fn prefetch_to_write<T>(_: *const T) {}

    pub(crate) use std::ptr::copy_nonoverlapping as copy_past_caches;
}

#[cfg(all(test, not(loom)))]
mod tests {
    use crate::region::{ForeignBytes, RecvPart};

    #[test]
    fn what_is_stored_past_the_caches_is_there_and_nothing_else() {
        let from: Vec<u8> = (1..=200).collect();
        for start in 0..17 {
            for len in 0..=150 {
                let mut to = [0; 200];
                let data = ForeignBytes::from_slice(&from[start / 2..start / 2 + len]);
                RecvPart::of_slice(&mut to[start..]).store_past_caches(data);
                assert_eq!(to[start..start + len], from[start / 2..start / 2 + len]);
                let around = to[..start].iter().chain(&to[start + len..]);
                assert!(around.into_iter().all(|&byte| byte == 0), "{len} bytes at {start}");
            }
        }
    }
}

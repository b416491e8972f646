//! Copies between the memory of two processes, for which rustix has no calls.
//!
//! - SC1: `process_vm_readv` writes only into the local vector, at most its length, and `process_vm_writev` only reads
//!   it. A bad remote address is an error, never a fault.

#![expect(unsafe_code, reason = "calls of libc")]

use std::io;

use super::region::{RecvPart, SendRegion};

/// Reads memory of process `pid` at `addr` into the start of `into`. Returns how many bytes were read: possibly fewer
/// than asked for, but never 0 for a non-empty region.
pub(crate) fn process_vm_readv(pid: i32, addr: u64, into: &RecvPart<'_>) -> io::Result<usize> {
    let local = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    let remote = elsewhere(addr, into.len())?;
    // SAFETY: `into` is writable by its holder alone (G2 of `crate::memory::region`), and SC1.
    moved(unsafe { libc::process_vm_readv(pid, &local, 1, &remote, 1, 0) }, into.len())
}

/// Writes the start of `from` into memory of process `pid` at `addr`. Returns how many bytes were written: possibly
/// fewer than asked for, but never 0 for a non-empty region.
pub(crate) fn process_vm_writev(pid: i32, addr: u64, from: SendRegion) -> io::Result<usize> {
    let local = libc::iovec { iov_base: from.as_ptr().cast_mut().cast(), iov_len: from.len() };
    let remote = elsewhere(addr, from.len())?;
    // SAFETY: `from` is readable (G1 of `crate::memory::region`), and SC1. The other process, which may be this one in
    // tests, allows writes there until the slice is counted as written (U2); the seal beside the address proves that it
    // is the one that process published (U5).
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

//! Copies between the memory of two processes, for which rustix has no calls.
//!
//! - SC1: `process_vm_readv` writes only into the local vector, at most its length, and `process_vm_writev` only reads
//!   it. A bad remote address is an error, never a fault.

#![expect(unsafe_code, reason = "calls of libc")]

use std::io;

use super::region::{ForeignBytes, PeerBytes, RecvPart, SendRegion};

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

/// Fills `into` with these bytes of process `pid`, which are at least as many.
pub(crate) fn read_bytes(pid: i32, from: &[PeerBytes], into: &RecvPart<'_>) -> io::Result<()> {
    in_vectors(from, into.len(), |remote, done| {
        let local = libc::iovec {
            iov_base: into.as_mut_ptr().wrapping_add(done).cast(),
            iov_len: into.len() - done,
        };
        let (remote, count) = (remote.as_ptr(), remote.len() as libc::c_ulong);
        // SAFETY: as in `process_vm_readv`; the vectors last as long as the call.
        unsafe { libc::process_vm_readv(pid, &local, 1, remote, count, 0) }
    })
}

/// Writes `from` to these bytes of process `pid`, which are at least as many.
///
/// # Safety
/// Whoever owns the bytes there lets this process write them now.
pub(crate) unsafe fn write_bytes(
    pid: i32,
    to: &[PeerBytes],
    from: ForeignBytes<'_>,
) -> io::Result<()> {
    in_vectors(to, from.len(), |remote, done| {
        let start = from.as_ptr().cast_mut().wrapping_add(done);
        let local = libc::iovec { iov_base: start.cast(), iov_len: from.len() - done };
        let (remote, count) = (remote.as_ptr(), remote.len() as libc::c_ulong);
        // SAFETY: `from` is readable (G3 of `crate::memory::region`), and SC1; the caller's promise; the vectors last as
        // long as the call.
        unsafe { libc::process_vm_writev(pid, &local, 1, remote, count, 0) }
    })
}

/// The most vectors of one call.
const VECTORS: usize = 512;

/// Repeats a call that moves some of `len` bytes, the rest of which lie in these vectors of another process; its second
/// argument is how many have been moved.
fn in_vectors(
    bytes: &[PeerBytes],
    len: usize,
    mut call: impl FnMut(&[libc::iovec], usize) -> isize,
) -> io::Result<()> {
    if let [only] = bytes {
        return in_full(len, |done| {
            let rest = elsewhere(only.addr.wrapping_add(done as u64), len - done)?;
            moved(call(&[rest], done), len - done)
        });
    }
    let vectors = bytes.iter().map(|bytes| elsewhere(bytes.addr, bytes.len));
    let mut vectors = vectors.collect::<io::Result<Vec<_>>>()?;
    let mut first = 0;
    in_full(len, |done| {
        let rest = &vectors[first..];
        let here = moved(call(&rest[..rest.len().min(VECTORS)], done), len - done)?;
        let mut passed = here;
        while vectors.get(first).is_some_and(|vector| vector.iov_len <= passed) {
            passed -= vectors[first].iov_len;
            first += 1;
        }
        if let Some(vector) = vectors.get_mut(first) {
            vector.iov_base = vector.iov_base.wrapping_byte_add(passed);
            vector.iov_len -= passed;
        }
        Ok(here)
    })
}

/// Repeats a call that moves some of `len` bytes; its argument is how many have been moved.
pub(crate) fn in_full(
    len: usize,
    mut call: impl FnMut(usize) -> io::Result<usize>,
) -> io::Result<()> {
    let mut done = 0;
    while done < len {
        match call(done) {
            Ok(moved) => done += moved,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
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

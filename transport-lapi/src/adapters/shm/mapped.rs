//! Memory that processes of a host map by agreement, beside the segment of their job: one makes it and offers it, the
//! others open the offer.
//!
//! - MP1: the memory is a memfd that can neither shrink nor grow, and each process reserves the part that it will use most:
//!   there it is near to it. So a lack of memory is an error and not a signal later, whatever another process does.
//! - MP2: any process that has it mapped may write any byte at any moment. So bytes are copied or accessed by atomic
//!   operations, and never borrowed. Forks do not have the mapping.

#![expect(unsafe_code, reason = "mapping a file")]

use std::fmt;
use std::os::fd::{AsFd, OwnedFd};
use std::ptr::NonNull;

use rustix::fs::{MemfdFlags, SealFlags};
use rustix::io::Errno;

use crate::adapter::AdapterError;
use crate::adapters::shm::memory::check_room;
use crate::platform::fork::ProcessMark;
use crate::platform::offer::{Offer, secret_name};
use crate::platform::shared;

/// Memory that several processes of a host have mapped. It ends when the last one has dropped it.
pub struct MappedMemory {
    start: NonNull<u8>,
    len: usize,
    /// The process that has the mapping; in a fork this range may be unmapped or used otherwise.
    process: ProcessMark,
}

// SAFETY: the memory is not tied to a thread, and this owner only unmaps it.
unsafe impl Send for MappedMemory {}
// SAFETY: as above.
unsafe impl Sync for MappedMemory {}

/// What other processes need to open memory. They can while this exists.
pub struct Offered {
    text: Vec<u8>,
    _descriptor: OwnedFd,
}

impl Offered {
    /// Returns the offer, which is given to no process of another user.
    pub fn bytes(&self) -> &[u8] {
        &self.text
    }
}

impl fmt::Debug for Offered {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an offer of memory")
    }
}

impl MappedMemory {
    /// Makes memory of `len` bytes, which contains zeros, and offers it. Its name in `/proc` begins with `mpj-`.
    ///
    /// # Errors
    /// [`AdapterError::System`] if there is not so much, or if `/proc` does not show it.
    pub fn create(len: usize) -> Result<(Self, Offered), AdapterError> {
        const ACTION: &str = "make memory that processes share";
        let failed = |errno| AdapterError::system(ACTION, errno);
        if cfg!(miri) {
            return Err(failed(Errno::NOSYS));
        }
        let unnamed = |source| AdapterError::System { action: ACTION, source };
        let bytes = len.max(1) as u64;
        check_room(bytes).map_err(unnamed)?;
        let name = format!("mpj-{}", secret_name().map_err(unnamed)?);
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let descriptor = rustix::fs::memfd_create(name, flags).map_err(failed)?;
        rustix::fs::ftruncate(&descriptor, bytes).map_err(failed)?;
        let seals = SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
        rustix::fs::fcntl_add_seals(&descriptor, seals).map_err(failed)?;
        let memory = Self::map(&descriptor, len)?;
        let text = Offer::of(&descriptor).map_err(unnamed)?.encode();
        Ok((memory, Offered { text, _descriptor: descriptor }))
    }

    /// Maps memory of `len` bytes that another process of this host has offered.
    ///
    /// # Errors
    /// [`AdapterError::BadSegment`] if the offer is none, or if the memory is shorter (MP1); [`AdapterError::System`] if
    /// it cannot be opened: above all if the process that has made it has another PID namespace.
    pub fn open(offer: &[u8], len: usize) -> Result<Self, AdapterError> {
        let bad = |what: &str| AdapterError::BadSegment { what: what.to_owned() };
        let offer = Offer::decode(offer).ok_or(bad("the offer is none"))?;
        let opened = offer.open().map_err(|source| AdapterError::System {
            action: "open memory that processes share",
            source,
        })?;
        let seals = rustix::fs::fcntl_get_seals(&opened).unwrap_or(SealFlags::empty());
        let size = rustix::fs::fstat(&opened).map_or(0, |stat| stat.st_size);
        // The seal before the size, which cannot shrink afterwards.
        if !seals.contains(SealFlags::SHRINK) || u64::try_from(size).unwrap_or(0) < len as u64 {
            return Err(bad("it is too short, or may shrink"));
        }
        Self::map(&opened, len)
    }

    fn map(descriptor: impl AsFd, len: usize) -> Result<Self, AdapterError> {
        let start = shared::map(descriptor, len.max(1))
            .map_err(|errno| AdapterError::system("map memory that processes share", errno))?;
        Ok(Self { start, len, process: ProcessMark::new() })
    }

    /// Makes sure that there is memory for `len` bytes from `offset` on, as far as they lie inside, and that it is near to
    /// the calling thread (MP1).
    ///
    /// # Errors
    /// [`AdapterError::System`] if there is not so much.
    pub fn reserve(&self, offset: usize, len: usize) -> Result<(), AdapterError> {
        let end = offset.saturating_add(len).min(self.len);
        if offset >= end {
            return Ok(());
        }
        // SAFETY: inside of the mapping, which begins at a page.
        unsafe { shared::reserve(self.as_mut_ptr().wrapping_add(offset), end - offset) }
            .map_err(|errno| AdapterError::system("reserve memory that processes share", errno))
    }

    /// Returns a pointer to the first byte, which is at the start of a page. What is there, any process may change (MP2).
    pub fn as_mut_ptr(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// Returns whether this process is a fork of the one that has mapped it, and does not have it.
    #[inline]
    pub fn is_fork(&self) -> bool {
        self.process.is_fork()
    }

    /// Returns the length in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether the length is 0.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl fmt::Debug for MappedMemory {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} bytes that processes share", self.len)
    }
}

impl Drop for MappedMemory {
    fn drop(&mut self) {
        if !self.process.is_fork() {
            // SAFETY: mapped in `map`, as long as it is, and this is the only owner.
            let _ = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.len.max(1)) };
        }
    }
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;

    #[test]
    fn what_one_mapping_stores_the_other_one_has() {
        let (one, offered) = MappedMemory::create(10_000).expect("memory");
        let other = MappedMemory::open(offered.bytes(), 10_000).expect("the offer stands");
        assert_ne!(one.as_mut_ptr(), other.as_mut_ptr());
        // SAFETY: inside of the mappings, and no other thread has them.
        let read = unsafe {
            one.as_mut_ptr().add(9_999).write_volatile(7);
            [other.as_mut_ptr().add(9_999).read_volatile(), other.as_mut_ptr().read_volatile()]
        };
        assert_eq!(read, [7, 0]);
        let error = MappedMemory::open(offered.bytes(), 10_001).expect_err("it is too short");
        assert!(matches!(error, AdapterError::BadSegment { .. }), "{error}");
        let bytes = offered.bytes().to_vec();
        drop(offered);
        let error = MappedMemory::open(&bytes, 10_000).expect_err("it is not offered any more");
        assert!(matches!(error, AdapterError::System { .. }), "{error}");
        assert!(MappedMemory::open(b"", 0).is_err());
    }

    #[test]
    fn memory_is_reserved_where_it_is_asked_for() {
        let (memory, _offered) = MappedMemory::create(10_000).expect("memory");
        for (offset, len) in
            [(0, 10_000), (9_000, 1_000_000), (4_097, 1), (10_000, 5), (1 << 40, 1)]
        {
            memory.reserve(offset, len).expect("there is so much");
        }
        let error = MappedMemory::create(1 << 50).expect_err("no machine has so much");
        assert!(matches!(error, AdapterError::System { .. }), "{error}");
    }
}

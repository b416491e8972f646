//! The memory of a job table: a sealed memfd that its maker writes and all others map for reading, or memory of this
//! process.
//!
//! - TW1: a table is mapped only if its file is sealed against shrinking, and only as far as it is long, so no access
//!   goes past the end of the file. The mapping lasts as long as the value that holds it, and nobody else unmaps it. A
//!   fork inherits it, which is harmless: words are only loaded there.

#![expect(unsafe_code, reason = "mapping a file")]

use std::os::fd::{AsFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::AtomicU32;

use rustix::fs::{MemfdFlags, SealFlags};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags};

use crate::adapter::AdapterError;

/// Prefix of the names of all job tables; the name of the job follows.
const NAME: &str = "mpj-hosts-";

/// Words that several processes, or threads, share.
pub(super) enum Words {
    Mapped(Mapping),
    InProcess(Box<[AtomicU32]>),
}

/// The mapping of a file (TW1).
pub(super) struct Mapping {
    start: NonNull<AtomicU32>,
    words: usize,
}

// SAFETY: the memory is not tied to a thread, and it is accessed by atomic operations only.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Words {
    /// Zeros of this process.
    pub(super) fn in_process(words: usize) -> Self {
        Self::InProcess(std::iter::repeat_with(AtomicU32::default).take(words).collect())
    }

    /// Zeros in a new file, mapped for writing, and a descriptor of the file, by which it can only be mapped for
    /// reading. Memory is reserved for the first words.
    pub(super) fn create(
        job: &str,
        words: usize,
        reserved: usize,
    ) -> Result<(Self, OwnedFd), AdapterError> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let fd = rustix::fs::memfd_create(format!("{NAME}{job}"), flags)
            .map_err(|errno| AdapterError::system("make the job table", errno))?;
        let bytes = words as u64 * 4;
        rustix::fs::ftruncate(&fd, bytes)
            .map_err(|errno| AdapterError::system("give the job table its size", errno))?;
        // Taken now, so that a lack of memory is an error and not a signal later.
        rustix::fs::fallocate(&fd, rustix::fs::FallocateFlags::empty(), 0, reserved as u64 * 4)
            .map_err(|errno| AdapterError::system("reserve memory for the job table", errno))?;
        let mapping = Mapping::new(&fd, words, ProtFlags::READ | ProtFlags::WRITE)?;
        let length = SealFlags::SHRINK | SealFlags::GROW;
        match rustix::fs::fcntl_add_seals(&fd, length | SealFlags::FUTURE_WRITE) {
            // Kernels before 5.1 cannot keep others from writing.
            Err(Errno::INVAL) => rustix::fs::fcntl_add_seals(&fd, length),
            sealed => sealed,
        }
        .and_then(|()| rustix::fs::fcntl_add_seals(&fd, SealFlags::SEAL))
        .map_err(|errno| AdapterError::system("seal the job table", errno))?;
        Ok((Self::Mapped(mapping), fd))
    }

    /// Maps the file behind `fd` for reading. It has at least `least` words.
    pub(super) fn map(fd: impl AsFd, least: usize) -> Result<Self, AdapterError> {
        let bad = |what: &str| AdapterError::BadSegment { what: what.to_owned() };
        let seals = rustix::fs::fcntl_get_seals(&fd).unwrap_or(SealFlags::empty());
        if !seals.contains(SealFlags::SHRINK) {
            return Err(bad("its job table is not sealed"));
        }
        let status = rustix::fs::fstat(&fd)
            .map_err(|errno| AdapterError::system("read the job table", errno))?;
        let words = usize::try_from(status.st_size).unwrap_or(0) / 4;
        if words < least {
            return Err(bad("its job table is too short"));
        }
        Ok(Self::Mapped(Mapping::new(fd, words, ProtFlags::READ)?))
    }

    /// The words. Those of a table that is mapped for reading are not to be stored to.
    pub(super) fn all(&self) -> &[AtomicU32] {
        match self {
            // SAFETY: TW1; the start of a mapping is aligned, and all bytes are valid words.
            Self::Mapped(Mapping { start, words }) => unsafe {
                std::slice::from_raw_parts(start.as_ptr(), *words)
            },
            Self::InProcess(words) => words,
        }
    }
}

impl Mapping {
    fn new(fd: impl AsFd, words: usize, access: ProtFlags) -> Result<Self, AdapterError> {
        // SAFETY: the kernel chooses the place, so nothing is replaced.
        let start = unsafe {
            rustix::mm::mmap(ptr::null_mut(), words * 4, access, MapFlags::SHARED, fd, 0)
        };
        let start = start.map_err(|errno| AdapterError::system("map the job table", errno))?;
        let start = NonNull::new(start.cast())
            .ok_or(AdapterError::system("map the job table", Errno::INVAL))?;
        Ok(Self { start, words })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: TW1.
        let unmapped = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.words * 4) };
        debug_assert!(unmapped.is_ok(), "a mapping of our own can be unmapped");
    }
}

//! The file itself: positioned reads and writes between it and memory, and its lock.
//!
//! - FD1: memory is accessed by the system only, through pointers. So nothing is assumed of bytes that are not
//!   initialized, or that a peer with damaged memory changes meanwhile.
//! - FD2: the lock is the system's, of the whole file, and belongs to the open file: so it excludes all other ranks, on
//!   all hosts whose file system passes locks on. Threads of one rank exclude each other by a mutex beside it.

#![expect(unsafe_code, reason = "reads and writes memory of regions by the system's calls")]

use std::fs::OpenOptions;
use std::io;
use std::os::fd::{AsRawFd, IntoRawFd};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use mpjdev::{RecvRegion, SendRegion};
use rustix::fs::{FallocateFlags, FlockOperation, fallocate, flock};
use rustix::io::Errno;

use crate::error::FileError;

/// A file that is open.
pub(super) struct Disk {
    file: std::fs::File,
    path: String,
    lock: Mutex<()>,
}

/// The lock of a file, until it is dropped.
pub(super) struct Locked<'a> {
    file: &'a std::fs::File,
    _lock: MutexGuard<'a, ()>,
}

/// The most bytes of one call of the system.
const MOST: usize = 1 << 30;

impl Disk {
    /// Opens a file.
    ///
    /// # Errors
    /// [`FileError::System`].
    pub fn open(path: &Path, options: &OpenOptions) -> Result<Self, FileError> {
        let name = path.to_string_lossy().into_owned();
        let opened = options.open(path);
        let file =
            opened.map_err(|error| FileError::system(&name, "it cannot be opened", &error))?;
        Ok(Self { file, path: name, lock: Mutex::new(()) })
    }

    /// Returns its path, for messages.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Reads from a place in the file. Returns how many bytes there were before the end of the file.
    ///
    /// # Errors
    /// [`FileError::System`].
    pub fn read(&self, into: &RecvRegion, at: u64) -> Result<usize, FileError> {
        let read = |done: usize, len: usize, at: i64| {
            let into = into.as_mut_ptr().wrapping_add(done).cast();
            // SAFETY: FD1: so many bytes of the region may be written (G2).
            unsafe { libc::pread(self.file.as_raw_fd(), into, len, at) }
        };
        repeat(into.len(), at, read).map_err(|error| self.error("it cannot be read", &error))
    }

    /// Writes to a place in the file.
    ///
    /// # Errors
    /// [`FileError::System`].
    pub fn write(&self, from: SendRegion, at: u64) -> Result<(), FileError> {
        let write = |done: usize, len: usize, at: i64| {
            let from = from.as_ptr().wrapping_add(done).cast();
            // SAFETY: FD1: so many bytes of the region may be read (G1).
            unsafe { libc::pwrite(self.file.as_raw_fd(), from, len, at) }
        };
        let written = repeat(from.len(), at, write).and_then(|written| match written {
            written if written == from.len() => Ok(()),
            _ => Err(Errno::IO.into()),
        });
        written.map_err(|error| self.error("it cannot be written", &error))
    }

    /// Reads bytes like [`Disk::read`].
    ///
    /// # Errors
    /// [`FileError::System`].
    pub fn read_bytes(&self, into: &mut [u8], at: u64) -> Result<usize, FileError> {
        // SAFETY: G2: the slice is not used otherwise during the call.
        self.read(&unsafe { RecvRegion::new(into.as_mut_ptr(), into.len()) }, at)
    }

    /// Writes bytes like [`Disk::write`].
    ///
    /// # Errors
    /// [`FileError::System`].
    pub fn write_bytes(&self, from: &[u8], at: u64) -> Result<(), FileError> {
        // SAFETY: G1: the slice stays as it is during the call.
        self.write(unsafe { SendRegion::new(from.as_ptr(), from.len()) }, at)
    }

    /// Waits for the lock (FD2).
    ///
    /// # Errors
    /// [`FileError::System`].
    pub fn lock(&self, is_shared: bool) -> Result<Locked<'_>, FileError> {
        let lock = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        let operation = match is_shared {
            true => FlockOperation::LockShared,
            false => FlockOperation::LockExclusive,
        };
        let locked = rustix::io::retry_on_intr(|| flock(&self.file, operation));
        locked.map_err(|error| self.error("it cannot be locked", &error.into()))?;
        Ok(Locked { file: &self.file, _lock: lock })
    }

    /// Returns its length in bytes.
    ///
    /// # Errors
    /// [`FileError::System`].
    pub fn len(&self) -> Result<u64, FileError> {
        let found = self.file.metadata().map(|metadata| metadata.len());
        found.map_err(|error| self.error("its length cannot be found", &error))
    }

    /// Sets its length in bytes.
    ///
    /// # Errors
    /// [`FileError::System`].
    pub fn set_len(&self, len: u64) -> Result<(), FileError> {
        self.file.set_len(len).map_err(|error| self.error("its length cannot be set", &error))
    }

    /// Reserves space for the first `len` bytes, so that the file is at least so long. Where the file system reserves none,
    /// the file is extended only.
    ///
    /// # Errors
    /// [`FileError::System`].
    pub fn reserve(&self, len: u64) -> Result<(), FileError> {
        if len == 0 {
            return Ok(());
        }
        match rustix::io::retry_on_intr(|| fallocate(&self.file, FallocateFlags::empty(), 0, len)) {
            Ok(()) => Ok(()),
            Err(Errno::OPNOTSUPP | Errno::NOSYS) if self.len()? < len => self.set_len(len),
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
            Err(error) => Err(self.error("no space can be reserved", &error.into())),
        }
    }

    /// Waits until all that was written is on the device.
    ///
    /// # Errors
    /// [`FileError::System`].
    pub fn sync(&self) -> Result<(), FileError> {
        match self.file.sync_all() {
            // Pipes and some devices keep nothing.
            Err(error) if error.raw_os_error() == Some(Errno::INVAL.raw_os_error()) => Ok(()),
            done => done.map_err(|error| self.error("it cannot be brought to the device", &error)),
        }
    }

    /// Hands what was written to the file system as the end of the file does, so that ranks on other hosts find it when
    /// they open the file.
    ///
    /// # Errors
    /// [`FileError::System`].
    pub fn flush(&self) -> Result<(), FileError> {
        let closed = self.file.try_clone().and_then(|copy| {
            // SAFETY: the descriptor is this call's alone.
            match unsafe { libc::close(copy.into_raw_fd()) } {
                0 => Ok(()),
                _ => Err(io::Error::last_os_error()),
            }
        });
        closed.map_err(|error| self.error("it cannot be closed", &error))
    }

    fn error(&self, what: &'static str, error: &io::Error) -> FileError {
        FileError::system(&self.path, what, error)
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        // Best effort: the lock ends with the file at the latest.
        let _ = flock(self.file, FlockOperation::Unlock);
    }
}

/// Repeats a call of the system that moves a part of `len` bytes, until all are moved or there are no more. Returns how
/// many were moved.
fn repeat(
    len: usize,
    at: u64,
    call: impl Fn(usize, usize, i64) -> isize,
) -> Result<usize, io::Error> {
    let mut done = 0;
    while done < len {
        let at = i64::try_from(at + done as u64).map_err(|_| Errno::FBIG)?;
        match call(done, (len - done).min(MOST), at) {
            0 => break,
            moved @ 1.. => done += moved as usize,
            _ => match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::Interrupted => {}
                error => return Err(error),
            },
        }
    }
    Ok(done)
}

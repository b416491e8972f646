//! `--copy`: the programs of a job as an agent gets them. Each becomes a file in memory without a name: it is gone with
//! the agent and the processes that run it, whatever ends them, and needs no folder from which programs may be run.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::io::Errno;
use transport_lapi::bootstrap::control::agents::{HostCopy, HostJob};

use crate::LaunchError;

/// Longest name of a file in memory, in bytes.
const LONGEST_NAME: usize = 249;

/// See the module's head.
#[derive(Default)]
pub(super) struct Copies(Vec<Copy>);

struct Copy {
    told: HostCopy,
    file: OwnedFd,
    hasher: blake3::Hasher,
}

impl Copies {
    /// Makes room for the files of a job.
    ///
    /// # Errors
    /// [`LaunchError`] if the system has no room.
    pub(super) fn of(job: &HostJob) -> Result<Self, LaunchError> {
        let copy = |told: &HostCopy| {
            let file = create(told).map_err(|errno| failed(told, refused(errno)))?;
            Ok(Copy { told: told.clone(), file, hasher: blake3::Hasher::new() })
        };
        job.copies.iter().map(copy).collect::<Result<_, _>>().map(Self)
    }

    /// Whether all files have come.
    pub(super) fn are_complete(&self) -> bool {
        self.0.iter().all(|copy| copy.hasher.count() >= copy.told.len)
    }

    /// Takes the next bytes of a file.
    ///
    /// # Errors
    /// [`LaunchError`] if the system has no room, or if the file is not the one that was announced.
    pub(super) fn take(&mut self, copy: u32, bytes: &[u8]) -> Result<(), LaunchError> {
        let Some(Copy { told, file, hasher }) = self.0.get_mut(copy as usize) else {
            return Ok(());
        };
        let mut left = bytes;
        while !left.is_empty() {
            match rustix::io::write(&*file, left) {
                Ok(written) => left = &left[written..],
                Err(Errno::INTR) => {}
                Err(errno) => return Err(failed(told, errno.into())),
            }
        }
        let count = hasher.update(bytes).count();
        if count < told.len {
            return Ok(());
        }
        if count > told.len || hasher.finalize() != told.hash {
            let changed = "it changed while it was copied; start the job again";
            return Err(failed(told, io::Error::other(changed)));
        }
        let seals = SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL;
        fcntl_add_seals(&*file, seals).map_err(|errno| failed(told, errno.into()))
    }

    /// Where programs of this host find each copy, as long as this process lives: scripts, too, whose interpreter opens
    /// them.
    pub(super) fn paths(&self) -> Vec<PathBuf> {
        let own = std::process::id();
        let path = |copy: &Copy| format!("/proc/{own}/fd/{}", copy.file.as_raw_fd()).into();
        self.0.iter().map(path).collect()
    }
}

/// Makes a file in memory that can be executed. Its name is only for people, who see it as that of the executable.
fn create(told: &HostCopy) -> Result<OwnedFd, Errno> {
    let name = Path::new(OsStr::from_bytes(&told.name)).file_name().unwrap_or_default();
    let name = &name.as_bytes()[..name.len().min(LONGEST_NAME)];
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    match memfd_create(name, flags | MemfdFlags::EXEC) {
        // Before Linux 6.3 every such file can be executed.
        Err(Errno::INVAL) => memfd_create(name, flags),
        made => made,
    }
}

/// Why there can be no such file.
fn refused(errno: Errno) -> io::Error {
    match errno {
        Errno::ACCESS => io::Error::other(
            "the system forbids programs in memory: set its variable vm.memfd_noexec to 0 or 1 (sysctl), or install \
             the program there",
        ),
        errno => errno.into(),
    }
}

fn failed(told: &HostCopy, source: io::Error) -> LaunchError {
    LaunchError::Copy { path: OsStr::from_bytes(&told.name).into(), source }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    const SCRIPT: &[u8] = b"#!/bin/sh\necho here\n";

    /// The files of a job with this script, as `told` claims.
    fn copies(len: usize, hash: blake3::Hash) -> Copies {
        let told =
            HostCopy { name: b"/a/script".to_vec(), len: len as u64, hash: *hash.as_bytes() };
        let file = create(&told).expect("a file");
        Copies(vec![Copy { told, file, hasher: blake3::Hasher::new() }])
    }

    #[test]
    fn a_copy_runs_when_it_is_complete() {
        let mut copies = copies(SCRIPT.len(), blake3::hash(SCRIPT));
        let (first, rest) = SCRIPT.split_at(5);
        copies.take(0, first).expect("the first bytes");
        assert!(!copies.are_complete());
        copies.take(0, rest).expect("the last bytes");
        copies.take(1, rest).expect("bytes of no file");
        assert!(copies.are_complete());
        let output = Command::new(&copies.paths()[0]).output().expect("it can be run");
        assert_eq!(output.stdout, b"here\n");
        assert!(rustix::io::write(&copies.0[0].file, b"x").is_err(), "it can be changed");
    }

    #[test]
    fn another_file_than_the_announced_one_is_refused() {
        let hash = blake3::hash(SCRIPT);
        let said = |mut copies: Copies| copies.take(0, SCRIPT).expect_err("refused").to_string();
        for copies in [copies(SCRIPT.len(), blake3::hash(b"")), copies(SCRIPT.len() - 1, hash)] {
            let said = said(copies);
            assert!(said.contains("/a/script: it changed while it was copied"), "{said}");
        }
    }
}

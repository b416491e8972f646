//! Another task as a process of this host: what is copied out of its memory and into it, and whether it is
//! gone.
//!
//! - PE1: each process keeps a cell with a number of its own, drawn at random, at an address that the others
//!   know. A process that has it there is the one that published it, or a fork of that one.
//! - PE2: the number of a process that is gone is given to another one only after it was reaped. The launcher
//!   reaps its children when the job is over, and ends the job when a task is lost. Both fail together
//!   only for a task behind a script, which is the script's to reap, in a job that goes on without
//!   those that are lost. Of such a task the cell is read after each copy; and it lets nobody write into its
//!   memory, since a look before would say nothing about the moment of the write.

#![expect(unsafe_code, reason = "a local variable is read into by address")]

use std::io;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::adapter::{AdapterError, TaskId};
use crate::region::{RecvPart, RecvRegion, SendRegion};
use crate::sys;

/// A look that does not wait.
const AT_ONCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// The cell of a process (PE1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ProbeCell {
    pub(super) addr: u64,
    pub(super) value: u64,
}

impl ProbeCell {
    /// Whether process `pid` has it.
    ///
    /// # Errors
    /// What the kernel answers who refuses the read.
    pub(super) fn is_in(self, pid: i32) -> io::Result<bool> {
        let mut found = 0_u64;
        // SAFETY: G2 of `crate::region`: `found` is local and outlives the call.
        let mut into = unsafe { RecvRegion::new((&raw mut found).cast(), size_of::<u64>()) };
        let read = sys::process_vm_readv(pid, self.addr, &into.part(0, size_of::<u64>()))?;
        Ok(read == size_of::<u64>() && found == self.value)
    }
}

/// See the module.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Peer {
    pub(super) pid: i32,
    /// Where the number may be given again (PE2).
    pub(super) cell: Option<ProbeCell>,
}

impl Peer {
    /// Whether the number may be given to another process while the job goes on (PE2).
    pub(super) fn may_be_reaped(&self) -> bool {
        self.cell.is_some()
    }

    /// Fills `into` from `addr` on in the memory of this process, which is that of `target`.
    pub(super) fn read(
        &self,
        target: TaskId,
        addr: u64,
        mut into: RecvPart<'_>,
    ) -> Result<(), AdapterError> {
        let len = into.len();
        let read = |done| {
            sys::process_vm_readv(
                self.pid,
                addr.wrapping_add(done as u64),
                &into.part(done, usize::MAX),
            )
        };
        match in_full(len, read) {
            Ok(()) => match self.cell.map(|cell| cell.is_in(self.pid)) {
                None | Some(Ok(true)) => Ok(()),
                Some(_) => Err(AdapterError::PeerLost { task: target }),
            },
            Err(reason) if reason.raw_os_error() == Some(libc::ESRCH) || self.is_another() => {
                Err(AdapterError::PeerLost { task: target })
            }
            Err(reason) => Err(AdapterError::GetFailed { target, len, reason }),
        }
    }

    /// Writes `from` into the memory of this process from `addr` on.
    pub(super) fn write(&self, addr: u64, from: SendRegion) -> io::Result<()> {
        in_full(from.len(), |done| {
            let rest = from.part(done, from.len() - done);
            sys::process_vm_writev(self.pid, addr.wrapping_add(done as u64), rest)
        })
    }

    /// Whether the process has ended, so that it writes nothing any more.
    pub(super) fn is_gone(&self) -> bool {
        self.is_another() || has_ended(self.pid)
    }

    /// Whether it is certain that the number is not that of the task's process any more.
    fn is_another(&self) -> bool {
        match self.cell.map(|cell| cell.is_in(self.pid)) {
            None | Some(Ok(true)) => false,
            Some(Ok(false)) => true,
            // Nothing is mapped there. A refusal says nothing.
            Some(Err(reason)) => reason.raw_os_error() == Some(libc::EFAULT),
        }
    }
}

/// Repeats a call that moves some of `len` bytes, given how many have been moved.
fn in_full(len: usize, mut call: impl FnMut(usize) -> io::Result<usize>) -> io::Result<()> {
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

fn has_ended(pid: i32) -> bool {
    let Some(pid) = Pid::from_raw(pid) else {
        return true;
    };
    match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(pidfd) => {
            let mut ended = [PollFd::new(&pidfd, PollFlags::IN)];
            matches!(poll(&mut ended, Some(&AT_ONCE)), Ok(1..))
        }
        Err(Errno::SRCH) => true,
        // No descriptor to be had now.
        Err(_) => false,
    }
}

//! Another task as a process of this host: copies from and into its memory, and whether it is gone.
//!
//! - PE1: each process keeps a cell with a random number of its own, at an address that it publishes. A process that
//!   has this number at this address is the one that published it, or a fork of that one.
//! - PE2: the kernel reuses the number of a process only after the process was reaped. The launcher reaps its children
//!   when the job is over, and ends the job when a task is lost. So a number can be reused too early only if the task
//!   was started by a script, which reaps it, in a job that goes on without lost tasks. The cell of such a task is read
//!   after each copy. And such a task lets nobody write into its memory, since a check before the write would say
//!   nothing about the moment of the write.
//! - PE3: a process whose main thread has ended while others go on is found by the numbers of its other threads only.
//!   The kernel reuses the number of a thread as soon as the thread has ended. So memory is only read by such a number,
//!   never written, and the cell is read after each copy.

#![expect(unsafe_code, reason = "a local variable is read into by address")]

use std::sync::OnceLock;
use std::sync::atomic::Ordering;
use std::{fs, io};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::adapter::{AdapterError, TaskId};
use crate::adapters::local::segment::{Segment, WireupLine};
use crate::memory::process;
use crate::memory::region::{ForeignBytes, PeerBytes, RecvPart, RecvRegion, SendRegion};

/// A timeout of zero.
const AT_ONCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// The cell of a process (PE1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ProbeCell {
    pub(super) addr: u64,
    pub(super) value: u64,
}

impl ProbeCell {
    /// The cell that a task has published.
    pub(super) fn of(line: &WireupLine) -> Self {
        let [addr, value] =
            [&line.probe_addr, &line.probe_value].map(|word| word.load(Ordering::Relaxed));
        Self { addr, value }
    }

    /// Whether process `pid`, or the process of thread `pid`, has this cell.
    ///
    /// # Errors
    /// The kernel's error, if it refuses the read.
    pub(super) fn is_in(self, pid: i32) -> io::Result<bool> {
        let mut found = 0_u64;
        // SAFETY: G2 of `crate::memory::region`: `found` is local and outlives the call.
        let mut into = unsafe { RecvRegion::new((&raw mut found).cast(), size_of::<u64>()) };
        let read = process::process_vm_readv(pid, self.addr, &into.part(0, size_of::<u64>()))?;
        Ok(read == size_of::<u64>() && found == self.value)
    }
}

/// The process of another task.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Peer {
    pub(super) pid: i32,
    pub(super) cell: ProbeCell,
    /// Whether its number may be reused during the job (PE2).
    pub(super) may_be_reaped: bool,
}

/// The processes of all tasks. What a task has published is read when the process is needed first: the tasks of later
/// worlds are not there at the start.
pub(super) struct Peers {
    segment: Segment,
    known: Box<[OnceLock<Peer>]>,
    /// Whether the job goes on without lost tasks.
    goes_on: bool,
}

impl Peers {
    /// The processes of the tasks of this segment.
    pub(super) fn new(segment: &Segment) -> Self {
        let goes_on = segment.job().keeper.load(Ordering::Relaxed) != 0;
        let known = (0..segment.layout().tasks()).map(|_| OnceLock::new()).collect();
        Self { segment: segment.of_context(0), known, goes_on }
    }

    /// The process of a task, which has attached.
    ///
    /// # Errors
    /// [`AdapterError::BadSegment`] if it claims to be no process.
    pub(super) fn of(&self, task: TaskId) -> Result<&Peer, AdapterError> {
        let known = &self.known[task as usize];
        match known.get() {
            Some(peer) => Ok(peer),
            None => self.read(task).map(|peer| known.get_or_init(|| peer)),
        }
    }

    #[cold]
    fn read(&self, task: TaskId) -> Result<Peer, AdapterError> {
        let line = self.segment.wireup(task as usize);
        let pid = process(task, line.pid.load(Ordering::Relaxed))?;
        let is_reaped_late = !self.goes_on || line.keeps_pid.load(Ordering::Relaxed) != 0;
        Ok(Peer { pid, cell: ProbeCell::of(line), may_be_reaped: !is_reaped_late })
    }

    /// The processes of all tasks, which have attached.
    #[cfg(test)]
    pub(super) fn all(&self) -> impl Iterator<Item = &Peer> {
        (0..self.known.len() as TaskId).map(|task| self.of(task).expect("the task has attached"))
    }

    /// The entry for a task, which it makes if necessary.
    #[cfg(test)]
    pub(super) fn known(&mut self, task: TaskId) -> &mut Peer {
        self.of(task).expect("the task has attached");
        self.known[task as usize].get_mut().expect("it was read above")
    }
}

/// Checks the number of a task's process: 0 and negative numbers would stand for other processes, or none.
fn process(task: TaskId, claim: u32) -> Result<i32, AdapterError> {
    let number = i32::try_from(claim).ok().filter(|&number| number > 0);
    number.ok_or_else(|| AdapterError::BadSegment {
        what: format!("rank {task} claims to be process {claim}, which is no process number"),
    })
}

impl Peer {
    /// Fills `into` from the memory of this process at `addr`; the process is that of `target`.
    pub(super) fn read(
        &self,
        target: TaskId,
        addr: u64,
        mut into: RecvPart<'_>,
    ) -> Result<(), AdapterError> {
        let len = into.len();
        let is_meant = |()| if self.may_be_reaped { self.cell.is_in(self.pid) } else { Ok(true) };
        let copied = match fill(self.pid, addr, &mut into).and_then(is_meant) {
            Err(reason) if is_absence(&reason) => self.read_by_thread(addr, &mut into),
            copied => copied,
        };
        match copied {
            Ok(true) => Ok(()),
            Ok(false) => Err(AdapterError::PeerLost { task: target }),
            Err(reason) if is_absence(&reason) || self.is_another() => {
                Err(AdapterError::PeerLost { task: target })
            }
            Err(reason) => Err(AdapterError::AccessFailed { target, len, reason }),
        }
    }

    /// Fills `into` by the number of any thread that is left (PE3). Returns whether this is the process that was meant.
    #[cold]
    fn read_by_thread(&self, addr: u64, into: &mut RecvPart<'_>) -> io::Result<bool> {
        let mut outcome = Err(Errno::SRCH.into());
        for thread in threads(self.pid) {
            outcome = fill(thread, addr, into).and_then(|()| self.cell.is_in(thread));
            if matches!(outcome, Ok(true)) {
                break;
            }
        }
        outcome
    }

    /// Whether this process can be read and written, and keeps its number for as long as the job lasts (PE2). The kernel
    /// asks for the same rights for both, but a filter may refuse one of the calls.
    pub(super) fn is_reached(&self) -> bool {
        let writes_nothing = || process::process_vm_writev(self.pid, 0, SendRegion::EMPTY);
        !self.may_be_reaped
            && matches!(self.cell.is_in(self.pid), Ok(true))
            && writes_nothing().is_ok()
    }

    /// Fills `into` with these bytes of this process, which [`Peer::is_reached`] was asked about. It is that of `task`.
    pub(super) fn read_bytes(
        &self,
        task: TaskId,
        from: &[PeerBytes],
        into: &RecvPart<'_>,
    ) -> Result<(), AdapterError> {
        let read = process::read_bytes(self.pid, from, into);
        read.map_err(|reason| self.failed(task, into.len(), reason))
    }

    /// Writes `from` to these bytes of this process like [`Peer::read_bytes`].
    ///
    /// # Safety
    /// As for [`crate::adapter::PeerMemory::write`].
    pub(super) unsafe fn write_bytes(
        &self,
        task: TaskId,
        to: &[PeerBytes],
        from: ForeignBytes<'_>,
    ) -> Result<(), AdapterError> {
        // SAFETY: the caller's promise.
        let written = unsafe { process::write_bytes(self.pid, to, from) };
        written.map_err(|reason| self.failed(task, from.len(), reason))
    }

    #[cold]
    fn failed(&self, target: TaskId, len: usize, reason: io::Error) -> AdapterError {
        match is_absence(&reason) {
            false => AdapterError::AccessFailed { target, len, reason },
            // PE3.
            true if threads(self.pid).any(|thread| matches!(self.cell.is_in(thread), Ok(true))) => {
                let reason = io::Error::other("the main thread of its process has ended");
                AdapterError::AccessFailed { target, len, reason }
            }
            true => AdapterError::PeerLost { task: target },
        }
    }

    /// Writes `from` into the memory of this process at `addr`.
    pub(super) fn write(&self, addr: u64, from: SendRegion) -> io::Result<()> {
        process::in_full(from.len(), |done| {
            let rest = from.part(done, from.len() - done);
            process::process_vm_writev(self.pid, addr.wrapping_add(done as u64), rest)
        })
    }

    /// Whether the process has ended, so that it writes no more.
    pub(super) fn is_gone(&self) -> bool {
        self.is_another() || has_ended(self.pid)
    }

    /// Whether the number certainly belongs to another process now.
    fn is_another(&self) -> bool {
        if !self.may_be_reaped {
            return false;
        }
        match self.cell.is_in(self.pid) {
            Ok(is_meant) => !is_meant,
            // EFAULT: nothing is mapped there. A refusal proves nothing.
            Err(reason) => reason.raw_os_error() == Some(libc::EFAULT),
        }
    }
}

/// Fills `into` from the memory at `addr` of process `pid`, or of the process of thread `pid`.
fn fill(pid: i32, addr: u64, into: &mut RecvPart<'_>) -> io::Result<()> {
    process::in_full(into.len(), |done| {
        process::process_vm_readv(pid, addr.wrapping_add(done as u64), &into.part(done, usize::MAX))
    })
}

/// Whether the kernel says that a process or thread has ended.
fn is_absence(reason: &io::Error) -> bool {
    reason.raw_os_error() == Some(libc::ESRCH)
}

/// The numbers of the threads of process `pid`.
fn threads(pid: i32) -> impl Iterator<Item = i32> {
    let folders = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    folders.filter_map(|folder| folder.file_name().to_str()?.parse().ok())
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
        // No descriptor is available now.
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_positive_number_is_a_process() {
        assert_eq!(process(0, 1).unwrap(), 1);
        for claim in [0, 1 << 31, u32::MAX] {
            let refused = process(3, claim).unwrap_err().to_string();
            assert!(refused.contains("rank 3 claims to be process"), "{refused}");
        }
    }
}

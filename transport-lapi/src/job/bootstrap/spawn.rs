//! What the process of a rank or of another program does between fork and exec. Called only by the launcher, which thus needs no unsafe code of
//! its own.
//!
//! - SP1: between fork and exec only async-signal-safe calls are made, and nothing is allocated: the launcher may have
//!   other threads, whose locks stay locked for ever in the child. The closure captures plain numbers.
//! - SP2: the child asks the kernel to kill it when the launcher dies, then checks that the launcher has not died
//!   already. The kernel watches the *thread* that spawned, so ranks are spawned by a thread that lives as long as the
//!   job.
//! - SP3: descriptors are passed under their own number by clearing close-on-exec in the child only: no other process
//!   ever inherits them.

#![expect(unsafe_code, reason = "pre_exec, and libc calls between fork and exec")]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CpuSet, sched_setaffinity};

use super::Descriptors;
use super::signals::Mask;

/// The limit of open descriptors: raised for the launcher, restored for the ranks.
#[derive(Debug, Clone)]
pub struct DescriptorLimit {
    before: Rlimit,
}

impl DescriptorLimit {
    /// Raises this process's soft limit to the hard one. In a job of many ranks the launcher needs up to nine
    /// descriptors per rank, two of them if the output goes into files.
    pub fn raise() -> Self {
        let before = getrlimit(Resource::Nofile);
        let raised = Rlimit { current: before.maximum, maximum: before.maximum };
        // A refusal leaves the limit as it was; opening the descriptors then reports it.
        let _ = setrlimit(Resource::Nofile, raised);
        Self { before }
    }

    fn for_child(&self) -> libc::rlimit {
        let value = |limit: Option<u64>| limit.unwrap_or(libc::RLIM_INFINITY);
        libc::rlimit { rlim_cur: value(self.before.current), rlim_max: value(self.before.maximum) }
    }
}

/// The child's settings, as plain numbers (SP1).
struct ChildSetup {
    launcher: libc::pid_t,
    inherit: [Option<RawFd>; 4],
    limit: libc::rlimit,
    mask: Mask,
    processors: Option<CpuSet>,
}

/// Prepares `command` to run a rank. The rank leads its own process group, ends with this thread, inherits the
/// descriptors and the `trace` memory, has the signal mask and limits that the launcher itself was started with, and is
/// bound to `processors` if given. The descriptors must stay open until the command is spawned.
pub fn prepare(
    command: &mut Command,
    descriptors: Descriptors<BorrowedFd<'_>>,
    trace: Option<BorrowedFd<'_>>,
    limit: &DescriptorLimit,
    mask: Mask,
    processors: Option<CpuSet>,
) {
    let Descriptors { segment, control, table } = descriptors;
    let inherited = [Some(segment), Some(control), table, trace];
    let setup = ChildSetup {
        launcher: rustix::process::getpid().as_raw_nonzero().get(),
        inherit: inherited.map(|descriptor| Some(descriptor?.as_raw_fd())),
        limit: limit.for_child(),
        mask,
        processors,
    };
    command.process_group(0);
    // SAFETY: SP1: `ChildSetup::apply` makes only async-signal-safe calls.
    unsafe { command.pre_exec(move || setup.apply()) };
}

/// Prepares `command` to run a program that is no rank: it has the signal mask and the limit that this process was
/// started with.
pub fn restore(command: &mut Command, limit: &DescriptorLimit, mask: Mask) {
    let limit = limit.for_child();
    // SAFETY: SP1: two system calls on plain values.
    unsafe { command.pre_exec(move || restored(&limit, &mask)) };
}

/// Gives this process a limit and a signal mask (SP1).
fn restored(limit: &libc::rlimit, mask: &Mask) -> io::Result<()> {
    // SAFETY: reads `limit`, which is a reference.
    checked(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, limit) })?;
    mask.restore()
}

impl ChildSetup {
    fn apply(&self) -> io::Result<()> {
        // SAFETY: SP1 and SP2; the arguments are plain numbers.
        checked(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) })?;
        // SAFETY: always succeeds.
        if unsafe { libc::getppid() } != self.launcher {
            return Err(io::Error::from_raw_os_error(libc::ESRCH));
        }
        for descriptor in self.inherit.into_iter().flatten() {
            // SAFETY: SP3; a number that is not open only causes an error.
            checked(unsafe { libc::fcntl(descriptor, libc::F_SETFD, 0) })?;
        }
        if let Some(processors) = &self.processors {
            // One system call on a set of fixed size (SP1).
            sched_setaffinity(None, processors)?;
        }
        restored(&self.limit, &self.mask)
    }
}

fn checked(answer: libc::c_int) -> io::Result<()> {
    if answer == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests;

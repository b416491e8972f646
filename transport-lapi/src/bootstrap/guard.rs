//! A process that ends the ranks' groups when the launcher cannot: after a SIGKILL. Called by the launcher
//! only.
//!
//! The kernel kills the ranks themselves then (SP2 of [`super::spawn`]), but not what they have started: the
//! program behind a script, a helper of a rank. So the launcher forks a [`Guard`] that waits for the end of
//! a pipe, which is the launcher's end, and then kills every group. It costs a fork per job, and sleeps
//! until it is over.
//!
//! - GU1: the child of the fork makes async-signal-safe calls only, allocates nothing and never returns:
//!   the launcher may have other threads, whose locks stay locked for ever in the child.
//! - GU2: it closes every descriptor but the pipe before it waits, so that it holds nothing of the job open:
//!   no control line, no output, no segment. Where the kernel cannot close them (before 5.9) it ends at
//!   once, and nothing is guarded.
//! - GU3: it has a session of its own and no signal reaches it but SIGKILL: neither a terminal's nor those
//!   that are for the launcher's group.
//! - GU4: the groups are still those of the ranks when it kills them: their leaders are reaped by the
//!   launcher after the guard is gone, or, after the launcher's death, just before; numbers are given again
//!   only when all others have been.

#![allow(unsafe_code, reason = "fork, and what a child of it may do")]

use std::ffi::CStr;
use std::io;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{
    Pid, Signal, WaitOptions, kill_process, kill_process_group, setsid, waitpid,
};
use rustix::stdio::{dup2_stdin, stdin};
use rustix::thread::set_name;

use super::signals::block_all;

/// The name of a guard's process. It differs from `mpjrun`, so that who ends all processes of that name spares it.
pub const NAME: &CStr = c"mpj-guard";

/// A process that kills the ranks' groups if the launcher is killed; it ends with this value. See the module's head.
#[derive(Debug)]
pub struct Guard {
    process: Pid,
    /// Ends with the launcher.
    _line: OwnedFd,
}

impl Guard {
    /// Starts a guard of the process groups `groups`, whose leaders must not be reaped before the guard is dropped
    /// (GU4).
    ///
    /// # Errors
    /// What the system answers when it has no process or descriptor left.
    pub fn over(groups: &[Pid]) -> io::Result<Self> {
        let (watched, line) = pipe_with(PipeFlags::CLOEXEC)?;
        // SAFETY: GU1: the child calls `watch` alone, which does not return.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => watch(&watched, groups),
            child => {
                let process = Pid::from_raw(child).expect("a child's number is positive");
                Ok(Self { process, _line: line })
            }
        }
    }

    /// Returns the guard's process: a child of this one that only [`Guard`]'s drop may reap.
    pub fn process(&self) -> Pid {
        self.process
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // It is our child and not reaped, so the number is its own.
        let _ = kill_process(self.process, Signal::KILL);
        while matches!(waitpid(Some(self.process), WaitOptions::empty()), Err(Errno::INTR)) {}
    }
}

/// What the guard does (GU1 to GU3).
fn watch(line: &OwnedFd, groups: &[Pid]) -> ! {
    block_all();
    let _ = setsid();
    let _ = set_name(NAME);
    if dup2_stdin(line).is_ok() && close_all_from(1) {
        while matches!(rustix::io::read(stdin(), &mut [0]), Ok(1..) | Err(Errno::INTR)) {}
        for group in groups {
            let _ = kill_process_group(*group, Signal::KILL);
        }
    }
    // SAFETY: ends this process without running anything of the launcher's (GU1).
    unsafe { libc::_exit(0) }
}

/// Closes every descriptor from `first` on, and answers whether that could be done.
fn close_all_from(first: libc::c_uint) -> bool {
    // SAFETY: GU1, GU2: one system call on numbers; nobody uses the descriptors of this process any more.
    let answer = unsafe { libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, 0) };
    answer == 0
}

#[cfg(test)]
mod tests;

//! A process that kills the ranks' process groups if the launcher cannot, because of a SIGKILL. Called only by the
//! launcher.
//!
//! In that case the kernel kills the ranks themselves (SP2 of [`super::spawn`]), but not the processes that they have
//! started: the program behind a script, an auxiliary process of a rank. So the launcher forks a [`Guard`], which waits
//! for end-of-file on a pipe held by the launcher, and then kills every group. It costs one fork per world of the
//! job, and sleeps until the job is over.
//!
//! - GU1: the forked child makes only async-signal-safe calls, allocates nothing and never returns: the launcher may
//!   have other threads, whose locks stay locked for ever in the child.
//! - GU2: before it waits, it closes every descriptor except the pipe, so that it keeps nothing of the job open: no
//!   control line, no output, no segment. If the kernel cannot close them (before 5.9) the guard ends at once, and
//!   nothing is guarded.
//! - GU3: it has its own session, and no signal reaches it but SIGKILL: neither those of a terminal nor those for the
//!   launcher's group.
//! - GU4: when it kills the groups, their numbers still belong to the ranks. The launcher reaps their leaders only
//!   after the guard is gone, or, if the launcher has died, they were reaped just before; and the kernel reuses a
//!   number only after it has used all others.

#![expect(unsafe_code, reason = "fork, and what a child of it may do")]

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

/// Name of a guard's process. It differs from `mpjrun`, so that killing all processes of that name spares the guard.
pub const NAME: &CStr = c"mpj-guard";

/// A process that kills the ranks' groups if the launcher is killed. It ends when this value is dropped. See the
/// module's documentation.
#[derive(Debug)]
pub struct Guard {
    process: Pid,
    /// The write end of the pipe, closed when the launcher ends.
    _line: OwnedFd,
}

impl Guard {
    /// Starts a guard of the process groups `groups`. Their leaders must not be reaped before the guard is dropped
    /// (GU4).
    ///
    /// # Errors
    /// The error of the system if it has no process or descriptor left.
    pub fn over(groups: &[Pid]) -> io::Result<Self> {
        let (watched, line) = pipe_with(PipeFlags::CLOEXEC)?;
        // SAFETY: GU1: the child only calls `watch`, which does not return.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => watch(&watched, groups),
            child => {
                let process = Pid::from_raw(child).expect("a child's number is positive");
                Ok(Self { process, _line: line })
            }
        }
    }

    /// Returns the guard's process. It is a child of this one, and only the drop of [`Guard`] may reap it.
    pub fn process(&self) -> Pid {
        self.process
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // The child has not been reaped, so the number is still its own.
        let _ = kill_process(self.process, Signal::KILL);
        while matches!(waitpid(Some(self.process), WaitOptions::empty()), Err(Errno::INTR)) {}
    }
}

/// The guard's program (GU1 to GU3).
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
    // SAFETY: ends this process without running any code of the launcher's (GU1).
    unsafe { libc::_exit(0) }
}

/// Closes every descriptor from `first` on, and returns whether that succeeded.
fn close_all_from(first: libc::c_uint) -> bool {
    // SAFETY: GU1, GU2: one system call on numbers; nothing in this process uses the descriptors any more.
    let answer = unsafe { libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, 0) };
    answer == 0
}

#[cfg(test)]
mod tests;

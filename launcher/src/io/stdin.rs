//! The standard input of the rank that `--stdin` names.
//!
//! The rank inherits a file or a pipe, which nobody else reads. It cannot inherit a terminal: it leads its own process
//! group, and the kernel stops a process outside the foreground group that reads from a terminal. So the launcher
//! reads the terminal and passes the bytes on through a pipe.
//!
//! - IN1: the launcher reads the terminal only after poll said that there is input, only while it is in the foreground
//!   group, and only when the pipe has taken all bytes before. A terminal that does not control the launcher has no
//!   foreground group, and may always be read.

use std::fs::File;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::process::Stdio;
use std::time::Duration;

use rustix::fs::{OFlags, fcntl_setfl};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::getpgrp;
use rustix::termios::tcgetpgrp;

/// How often a launcher in the background checks whether it is in the foreground again.
pub(crate) const FOREGROUND_CHECK: Duration = Duration::from_millis(500);
/// Bytes per read; a terminal gives no more than a line.
const READ_SIZE: usize = 4096;

/// Which rank gets the launcher's standard input. The others have an empty one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputChoice {
    /// This rank.
    Rank(usize),
    /// No rank.
    None,
}

/// What a [`Forwarding`] waits for.
pub(crate) enum Interest<'a> {
    /// Input from the terminal.
    Input(BorrowedFd<'a>),
    /// Room in the pipe to the rank.
    Pipe(BorrowedFd<'a>),
    /// The foreground, which poll does not report.
    Foreground,
}

/// Forwards input from a terminal to a rank. Dropping it ends the rank's input.
#[derive(Debug)]
pub(crate) struct Forwarding {
    pipe: File,
    /// Bytes that the pipe has not taken yet.
    waiting: Vec<u8>,
}

/// Returns the standard input of each of `ranks` ranks, and the forwarding if it comes from a terminal.
pub(crate) fn for_ranks(
    choice: InputChoice,
    ranks: usize,
) -> io::Result<(Vec<Stdio>, Option<Forwarding>)> {
    let mut inputs: Vec<Stdio> = (0..ranks).map(|_| Stdio::null()).collect();
    let InputChoice::Rank(reader) = choice else { return Ok((inputs, None)) };
    if !io::stdin().is_terminal() {
        inputs[reader] = Stdio::inherit();
        return Ok((inputs, None));
    }
    let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
    fcntl_setfl(&write, OFlags::NONBLOCK)?;
    inputs[reader] = Stdio::from(read);
    Ok((inputs, Some(Forwarding { pipe: File::from(write), waiting: Vec::new() })))
}

impl Forwarding {
    /// What to wait for (IN1).
    pub(crate) fn interest(&self) -> Interest<'_> {
        let input = rustix::stdio::stdin();
        if !self.waiting.is_empty() {
            Interest::Pipe(self.pipe.as_fd())
        } else if tcgetpgrp(input).is_ok_and(|group| group != getpgrp()) {
            Interest::Foreground
        } else {
            Interest::Input(input)
        }
    }

    /// Reads or writes once, after poll said that this does not block. Returns whether there may be more input.
    pub(crate) fn forward(&mut self) -> bool {
        if self.waiting.is_empty() {
            let mut bytes = vec![0; READ_SIZE];
            match rustix::io::read(rustix::stdio::stdin(), &mut bytes) {
                Err(Errno::INTR | Errno::AGAIN) => return true,
                Ok(0) | Err(_) => return false,
                Ok(len) => bytes.truncate(len),
            }
            self.waiting = bytes;
        }
        match self.pipe.write(&self.waiting) {
            Ok(written) => drop(self.waiting.drain(..written)),
            Err(error) => {
                return matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock);
            }
        }
        true
    }
}

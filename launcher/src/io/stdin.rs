//! The launcher's standard input, for the rank that `--stdin` names.
//!
//! A file or a pipe is handed over as it is: no byte is read by anybody else, and nothing can hang. A terminal
//! cannot be handed over, because the rank leads its own process group, and the kernel stops a process outside
//! the foreground group that reads from a terminal. So the launcher reads there, and passes the bytes on
//! through a pipe.
//!
//! - IN1: the terminal is read only after poll said there is something, only while the launcher is not in its
//!   background, and only when the pipe has taken everything before. A terminal that does not control the
//!   launcher has no background: the kernel stops nobody who reads from it.

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

/// How often a launcher in the background looks whether it is in the foreground again.
pub(crate) const FOREGROUND_CHECK: Duration = Duration::from_millis(500);
/// Bytes per read; a terminal gives no more than a line.
const READ_SIZE: usize = 4096;

/// Which rank gets the launcher's standard input. The others are at its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputChoice {
    /// This one.
    Rank(usize),
    /// None.
    None,
}

/// What the forwarding waits for.
pub(crate) enum Interest<'a> {
    /// Something to read.
    Input(BorrowedFd<'a>),
    /// Room in the pipe.
    Pipe(BorrowedFd<'a>),
    /// The foreground.
    Foreground,
}

/// Forwards what is typed on a terminal to a rank, which sees the end when this is dropped.
#[derive(Debug)]
pub(crate) struct Forwarding {
    pipe: File,
    /// What the pipe has not taken.
    waiting: Vec<u8>,
}

/// What each of `ranks` ranks gets as standard input, and the forwarding that goes with it, if any.
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

    /// Reads or writes once, after poll said that this goes. Answers whether there may be more.
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

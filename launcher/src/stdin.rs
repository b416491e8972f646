//! The launcher's standard input, for rank 0.
//!
//! A file or a pipe is handed to rank 0 as it is: no byte is read by anybody else, and nothing can
//! hang. A terminal cannot be handed over, because rank 0 leads its own process group, and the
//! kernel stops a process outside the foreground group that reads from a terminal. Only there the
//! launcher reads, and passes the lines on through a pipe.
//!
//! - T1: the terminal is read only after poll said there is something, only while the launcher is in
//!   the foreground, and only when the pipe has taken everything before.

use std::fs::File;
use std::io::{IsTerminal, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::Stdio;
use std::time::Duration;

use rustix::fs::{OFlags, fcntl_setfl};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::getpgrp;
use rustix::termios::tcgetpgrp;

/// How often a launcher in the background looks whether it is in the foreground again.
pub(crate) const FOREGROUND_CHECK: Duration = Duration::from_millis(500);

/// What the forwarding waits for.
pub(crate) enum Interest<'a> {
    /// Something typed.
    Typed(BorrowedFd<'a>),
    /// Room in the pipe, or its end.
    Room(BorrowedFd<'a>),
    /// The foreground.
    Foreground,
}

/// Forwards a terminal's input to rank 0.
#[derive(Debug)]
pub(crate) struct TerminalInput {
    pipe: File,
    waiting: Vec<u8>,
}

/// What rank 0 gets as standard input, and the forwarding that goes with it, if any.
pub(crate) fn for_rank_zero() -> std::io::Result<(Stdio, Option<TerminalInput>)> {
    if !std::io::stdin().is_terminal() {
        return Ok((Stdio::inherit(), None));
    }
    let (read, write): (OwnedFd, OwnedFd) = pipe_with(PipeFlags::CLOEXEC)?;
    fcntl_setfl(&write, OFlags::NONBLOCK)?;
    let input = TerminalInput { pipe: File::from(write), waiting: Vec::new() };
    Ok((Stdio::from(read), Some(input)))
}

impl TerminalInput {
    /// What to wait for now (T1).
    pub(crate) fn interest(&self) -> Interest<'_> {
        if !self.waiting.is_empty() {
            return Interest::Room(self.pipe.as_fd());
        }
        let terminal = rustix::stdio::stdin();
        if tcgetpgrp(terminal).is_ok_and(|foreground| foreground == getpgrp()) {
            Interest::Typed(terminal)
        } else {
            Interest::Foreground
        }
    }

    /// Reads or writes, whichever poll said is possible. Answers whether there is more to come; if
    /// not, dropping the forwarding gives rank 0 end-of-file.
    pub(crate) fn forward(&mut self) -> bool {
        if self.waiting.is_empty() {
            let mut typed = [0; 4096];
            match rustix::io::read(rustix::stdio::stdin(), &mut typed) {
                Ok(0) | Err(_) => return false,
                Ok(len) => self.waiting.extend_from_slice(&typed[..len]),
            }
        }
        match self.pipe.write(&self.waiting) {
            Ok(written) => drop(self.waiting.drain(..written)),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(_) => return false,
        }
        true
    }
}

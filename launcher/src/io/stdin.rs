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
const READ_SIZE: usize = 16 * 1024;

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
    /// Input for the launcher.
    Input(BorrowedFd<'a>),
    /// Room in the pipe to the rank.
    Pipe(BorrowedFd<'a>),
    /// The foreground, which poll does not report.
    Foreground,
    /// The agent of another host, which says when the rank has taken what was sent.
    Nothing,
}

/// What one step of a [`Forwarding`] has come to.
pub(crate) enum Forwarded {
    /// There may be more input.
    More,
    /// These bytes are for the agent of another host; none stand for the end.
    Line(Vec<u8>),
    /// There is no more input, or nobody reads it.
    End,
}

/// The launcher's end of a pipe that is a rank's input.
#[derive(Debug)]
pub(crate) struct InputPipe {
    pipe: File,
    /// Bytes that the pipe has not taken yet.
    waiting: Vec<u8>,
}

/// Where input goes.
#[derive(Debug)]
enum Reader {
    Pipe(InputPipe),
    /// The line to an agent, and whether that has not passed on what was sent last.
    Line {
        is_busy: bool,
    },
}

/// Forwards the launcher's input to a rank. Dropping it ends the input of a rank on this host.
#[derive(Debug)]
pub(crate) struct Forwarding {
    reader: Reader,
}

/// Returns the standard input of each of `ranks` ranks, and the forwarding if it comes from a terminal.
pub(crate) fn for_ranks(
    choice: InputChoice,
    ranks: usize,
) -> io::Result<(Vec<Stdio>, Option<Forwarding>)> {
    let InputChoice::Rank(reader) = choice else { return Ok((empty(ranks), None)) };
    if !io::stdin().is_terminal() {
        let mut inputs = empty(ranks);
        inputs[reader] = Stdio::inherit();
        return Ok((inputs, None));
    }
    let (inputs, pipe) = with_pipe(reader, ranks)?;
    Ok((inputs, Some(Forwarding { reader: Reader::Pipe(pipe) })))
}

/// Returns inputs of which that of the rank at place `reader` is a pipe, and the pipe.
pub(crate) fn with_pipe(reader: usize, ranks: usize) -> io::Result<(Vec<Stdio>, InputPipe)> {
    let mut inputs = empty(ranks);
    let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
    fcntl_setfl(&write, OFlags::NONBLOCK)?;
    inputs[reader] = Stdio::from(read);
    Ok((inputs, InputPipe { pipe: File::from(write), waiting: Vec::new() }))
}

/// Returns empty inputs.
pub(crate) fn empty(ranks: usize) -> Vec<Stdio> {
    (0..ranks).map(|_| Stdio::null()).collect()
}

impl InputPipe {
    /// The pipe, if it has to take bytes.
    pub(crate) fn interest(&self) -> Option<BorrowedFd<'_>> {
        (!self.waiting.is_empty()).then(|| self.pipe.as_fd())
    }

    /// Takes bytes to pass on.
    pub(crate) fn push(&mut self, bytes: Vec<u8>) {
        self.waiting.extend(bytes);
    }

    /// Writes once, without waiting. Returns whether the rank may still read.
    pub(crate) fn write(&mut self) -> bool {
        match self.pipe.write(&self.waiting) {
            Ok(written) => drop(self.waiting.drain(..written)),
            Err(error) => {
                return matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock);
            }
        }
        true
    }
}

impl Forwarding {
    /// To a rank on another host.
    pub(crate) fn to_agent() -> Self {
        Self { reader: Reader::Line { is_busy: false } }
    }

    /// Notes that the agent has passed on what was sent last.
    pub(crate) fn taken(&mut self) {
        if let Reader::Line { is_busy } = &mut self.reader {
            *is_busy = false;
        }
    }

    /// What to wait for (IN1).
    pub(crate) fn interest(&self) -> Interest<'_> {
        let input = rustix::stdio::stdin();
        match &self.reader {
            Reader::Line { is_busy: true } => return Interest::Nothing,
            Reader::Line { .. } => {}
            Reader::Pipe(pipe) => {
                if let Some(pipe) = pipe.interest() {
                    return Interest::Pipe(pipe);
                }
            }
        }
        match tcgetpgrp(input).is_ok_and(|group| group != getpgrp()) {
            true => Interest::Foreground,
            false => Interest::Input(input),
        }
    }

    /// Reads or writes once, after poll said that this does not block.
    pub(crate) fn forward(&mut self) -> Forwarded {
        let is_waiting = matches!(&self.reader, Reader::Pipe(pipe) if pipe.interest().is_some());
        let mut bytes = Vec::new();
        if !is_waiting {
            bytes = vec![0; READ_SIZE];
            match rustix::io::read(rustix::stdio::stdin(), &mut bytes) {
                Err(Errno::INTR | Errno::AGAIN) => return Forwarded::More,
                Ok(0) | Err(_) => bytes.clear(),
                Ok(len) => bytes.truncate(len),
            }
        }
        let has_ended = bytes.is_empty() && !is_waiting;
        let pipe = match &mut self.reader {
            Reader::Pipe(pipe) => pipe,
            Reader::Line { is_busy } => {
                *is_busy = true;
                return Forwarded::Line(bytes);
            }
        };
        pipe.push(bytes);
        if !has_ended && pipe.write() { Forwarded::More } else { Forwarded::End }
    }
}

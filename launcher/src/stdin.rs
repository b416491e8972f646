//! The launcher's standard input, for the ranks that `--stdin` names.
//!
//! For one rank, a file or a pipe is handed over as it is: no byte is read by anybody else, and nothing
//! can hang. A terminal cannot be handed over, because the rank leads its own process group, and the
//! kernel stops a process outside the foreground group that reads from a terminal. There, and where all
//! ranks get a copy, the launcher reads, and passes the bytes on through pipes.
//!
//! - IN1: the input is read only after poll said there is something; a terminal only while the launcher
//!   is not in its background, and only when the pipes have taken everything before. A terminal that
//!   does not control the launcher has no background: the kernel stops nobody who reads from it.
//! - IN2: what waits is bounded: at most [`LOG`] bytes, kept once for all ranks. While the slowest rank
//!   is that far behind, nothing is read. One that takes nothing for [`PATIENCE`] then is left behind:
//!   it gets end-of-file, which is said, and the others go on.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::fs::{OFlags, fcntl_setfl};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::getpgrp;
use rustix::termios::tcgetpgrp;

/// How often a launcher in the background looks whether it is in the foreground again.
pub(crate) const FOREGROUND_CHECK: Duration = Duration::from_millis(500);
/// Bytes that may wait for the slowest rank.
const LOG: usize = 16 << 20;
/// How long a rank may take nothing while others wait for it.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes per read.
const READ_SIZE: usize = 64 * 1024;

/// Which ranks get the launcher's standard input. The others are at its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputChoice {
    /// This one.
    Rank(usize),
    /// Each gets a copy.
    All,
    /// None.
    None,
}

/// What the forwarding waits for on the side of the input.
pub(crate) enum Interest<'a> {
    /// Something to read.
    Input(BorrowedFd<'a>),
    /// The foreground.
    Foreground,
    /// Nothing before the ranks have taken what there is.
    Nothing,
}

/// One rank's pipe.
#[derive(Debug)]
struct Reader<W> {
    rank: usize,
    pipe: W,
    /// How many bytes of the input it has taken.
    taken: u64,
    /// When it took some last.
    took_at: Instant,
}

/// Forwards the input to ranks. Generic over the pipes for the tests.
#[derive(Debug)]
pub(crate) struct Forwarding<W = File> {
    is_terminal: bool,
    /// What not every rank has taken.
    log: VecDeque<u8>,
    /// How many bytes were before those of the log.
    before: u64,
    ended: bool,
    readers: Vec<Reader<W>>,
    /// Since when nothing is read because the log is full.
    full_since: Option<Instant>,
}

/// What each of `ranks` ranks gets as standard input, and the forwarding that goes with it, if any.
pub(crate) fn for_ranks(
    choice: InputChoice,
    ranks: usize,
) -> io::Result<(Vec<Stdio>, Option<Forwarding>)> {
    let is_terminal = io::stdin().is_terminal();
    let mut inputs = Vec::with_capacity(ranks);
    let mut pipes = Vec::new();
    for rank in 0..ranks {
        let gets_it = match choice {
            InputChoice::Rank(only) => rank == only,
            InputChoice::All => true,
            InputChoice::None => false,
        };
        if !gets_it {
            inputs.push(Stdio::null());
        } else if choice == InputChoice::All || is_terminal {
            let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
            fcntl_setfl(&write, OFlags::NONBLOCK)?;
            inputs.push(Stdio::from(read));
            pipes.push((rank, File::from(write)));
        } else {
            inputs.push(Stdio::inherit());
        }
    }
    let forwarding = Forwarding::new(is_terminal, pipes, Instant::now());
    Ok((inputs, Some(forwarding).filter(|forwarding| !forwarding.is_over())))
}

impl Forwarding {
    /// What to wait for on the side of the input (IN1, IN2).
    pub(crate) fn interest(&self) -> Interest<'_> {
        let input = rustix::stdio::stdin();
        if self.ended || self.is_full() {
            Interest::Nothing
        } else if self.is_terminal && tcgetpgrp(input).is_ok_and(|group| group != getpgrp()) {
            Interest::Foreground
        } else {
            Interest::Input(input)
        }
    }

    /// The pipes that something waits for.
    pub(crate) fn wanting(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let end = self.end();
        self.readers
            .iter()
            .filter(move |reader| reader.taken < end)
            .map(|reader| reader.pipe.as_fd())
    }

    /// Reads once, after poll said that there is something.
    pub(crate) fn read(&mut self, now: Instant) {
        let mut bytes = vec![0; READ_SIZE];
        match rustix::io::read(rustix::stdio::stdin(), &mut bytes) {
            Err(Errno::INTR | Errno::AGAIN) => {}
            Ok(0) | Err(_) => self.end_input(now),
            Ok(len) => self.take(&bytes[..len], now),
        }
    }

    /// Whether the input is a terminal, which shows what is typed on it.
    pub(crate) fn is_terminal(&self) -> bool {
        self.is_terminal
    }
}

impl<W: Write> Forwarding<W> {
    fn new(is_terminal: bool, pipes: Vec<(usize, W)>, now: Instant) -> Self {
        let reader = |(rank, pipe)| Reader { rank, pipe, taken: 0, took_at: now };
        let readers = pipes.into_iter().map(reader).collect();
        let (log, full_since) = (VecDeque::new(), None);
        Self { is_terminal, log, before: 0, ended: false, readers, full_since }
    }

    /// Whether no rank gets anything any more.
    pub(crate) fn is_over(&self) -> bool {
        self.readers.is_empty()
    }

    fn end(&self) -> u64 {
        self.before + self.log.len() as u64
    }

    fn is_full(&self) -> bool {
        self.log.len() >= if self.is_terminal { 1 } else { LOG }
    }

    fn take(&mut self, bytes: &[u8], now: Instant) {
        self.log.extend(bytes);
        self.write(now);
    }

    fn end_input(&mut self, now: Instant) {
        self.ended = true;
        self.write(now);
    }

    /// Gives every rank as much as its pipe takes, and end-of-file behind the last byte.
    pub(crate) fn write(&mut self, now: Instant) {
        let (end, before, log) = (self.end(), self.before, &self.log);
        let is_over = self.ended;
        self.readers.retain_mut(|reader| {
            reader.give(log, before, now) && !(is_over && reader.taken == end)
        });
        let slowest = self.readers.iter().map(|reader| reader.taken).min().unwrap_or(end);
        drop(self.log.drain(..(slowest - self.before) as usize));
        self.before = slowest;
        // A rank that is the only one holds up nobody.
        let others_wait = self.is_full() && self.readers.len() > 1;
        self.full_since = others_wait.then(|| self.full_since.unwrap_or(now));
    }

    /// When [`Forwarding::leave_behind`] has something to do, unless ranks take something before.
    pub(crate) fn patient_until(&self) -> Option<Instant> {
        let full_since = self.full_since?;
        let slowest = self.readers.iter().filter(|reader| reader.taken == self.before);
        slowest.map(|reader| reader.took_at.max(full_since) + PATIENCE).min()
    }

    /// Leaves a rank behind that the others have waited for too long (IN2). Answers which one, and how
    /// many bytes it got.
    pub(crate) fn leave_behind(&mut self, now: Instant) -> Option<(usize, u64)> {
        self.patient_until().filter(|until| now >= *until)?;
        let slowest = self.readers.iter().enumerate().min_by_key(|(_, reader)| {
            // Of those that are furthest behind, the one that has taken nothing for longest.
            (reader.taken, reader.took_at)
        });
        let reader = self.readers.remove(slowest?.0);
        self.write(now);
        Some((reader.rank, reader.taken))
    }

    /// Notes that the job goes on after a pause, which counts against nobody's patience.
    pub(crate) fn resumed(&mut self, now: Instant) {
        self.full_since = self.full_since.map(|_| now);
    }
}

impl<W: Write> Reader<W> {
    /// Writes what goes without waiting. Answers whether the rank may take more.
    fn give(&mut self, log: &VecDeque<u8>, before: u64, now: Instant) -> bool {
        loop {
            let at = (self.taken - before) as usize;
            let (front, back) = log.as_slices();
            let left = if at < front.len() { &front[at..] } else { &back[at - front.len()..] };
            if left.is_empty() {
                return true;
            }
            match self.pipe.write(left) {
                Ok(written) => (self.taken, self.took_at) = (self.taken + written as u64, now),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return error.kind() == ErrorKind::WouldBlock,
            }
        }
    }
}

#[cfg(test)]
mod tests;

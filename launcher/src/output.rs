//! From the ranks' pipes to the launcher's own streams, in whole lines.
//!
//! [`LineBuffer`] is pure and there is one per rank and stream; [`Printer`] owns what waits to be
//! written; [`Folder`] makes the files of `--output dir=`. Called by the job's poll loop only.
//!
//! - O1: a line of at most [`lines::LONGEST_LINE`] bytes reaches the launcher's stream in one piece, whoever
//!   else prints: everything for one file goes through one queue. Prompts (O5) and bars (O6) are the
//!   exceptions.
//! - O2: without a prefix, the bytes of a rank's stream are neither changed nor reordered, but for the
//!   newline of O5, and for O6 on a terminal. A file of `--output dir=` gets every byte as it is.
//! - O3: writing never blocks the loop: at most [`CHUNK`] bytes are written after poll said that the
//!   stream takes them, and a pipe that is writable takes that many.
//! - O4: what waits is bounded: ranks are not read while more than [`CONGESTED`] bytes wait.
//! - O5: a prompt, which is the start of a line that its rank leaves at that, is shown where somebody
//!   may be looking and no other line is open. The line is its rank's until it ends; whoever writes
//!   before that ends it first.
//! - O6: carriage returns make a line a progress bar, of which each one ends a state. Rank 0's states
//!   pass at once, everywhere but into a file, as a prompt does; with a prefix, each begins with it. Of
//!   another rank's line a terminal gets the last state, when the line ends.

use std::collections::VecDeque;
use std::io::Write;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, fstat};
use rustix::io::Errno;
use rustix::stdio::{stderr, stdout};
use rustix::termios::isatty;

use crate::LaunchError;

mod folder;
mod lines;
mod prefix;

pub(crate) use folder::{Files, Folder, write_file};
pub(crate) use lines::{Bars, LineBuffer, View};
pub(crate) use prefix::Prefix;

/// Bytes that a writable pipe takes without blocking: PIPE_BUF of Linux.
const CHUNK: usize = 4096;
/// Chunks per turn of the loop.
const CHUNKS_PER_TURN: usize = 16;
/// Bytes that may wait before the ranks have to.
const CONGESTED: usize = 1 << 20;

/// One of a process's two output streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stream {
    Out,
    Err,
}

impl Stream {
    /// The launcher's own.
    fn descriptor(self) -> BorrowedFd<'static> {
        match self {
            Self::Out => stdout(),
            Self::Err => stderr(),
        }
    }
}

/// Where a line comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Source {
    pub(crate) rank: usize,
    pub(crate) stream: Stream,
}

/// Why the launcher's standard output takes no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Broken {
    /// Its reader has gone.
    Closed,
    /// The system refused, for example because a disk is full.
    Refused(Errno),
    /// The system refused to write a file of `--output dir=`.
    File(Errno),
}

/// What becomes of the ranks' output: `-l` and `--output`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OutputChoice {
    /// Whether lines begin with `[rank] `.
    pub tag: bool,
    /// Whether lines begin with the time at which they came, in UTC.
    pub timestamp: bool,
    /// The folder that gets a file per rank and stream.
    pub folder: Option<PathBuf>,
    /// Whether the folder is instead of the launcher's own streams.
    pub nocopy: bool,
}

/// Where the output of one rank goes, and how.
#[derive(Debug)]
pub(crate) struct Delivery {
    pub(crate) prefix: Prefix,
    /// Get every byte, if there are any.
    pub(crate) files: Option<Files>,
    /// Whether the launcher's own streams get the lines.
    pub(crate) is_shown: bool,
}

impl OutputChoice {
    /// Makes the files for `ranks` ranks, and says for each where its output goes.
    pub(crate) fn deliveries(&self, ranks: usize) -> Result<Vec<Delivery>, LaunchError> {
        let folder = self.folder.as_deref().map(Folder::make).transpose()?;
        let delivery = |rank| {
            let files = folder.map(|folder| folder.files_of(rank)).transpose()?;
            let is_shown = files.is_none() || !self.nocopy;
            Ok(Delivery { prefix: Prefix::new(self, rank), files, is_shown })
        };
        (0..ranks).map(delivery).collect()
    }
}

/// What waits for one of the launcher's streams.
#[derive(Debug)]
struct Queue {
    stream: Stream,
    waiting: VecDeque<u8>,
    ends_line: bool,
    /// Whether it goes to a file, where nobody waits for a prompt.
    is_file: bool,
    is_terminal: bool,
    /// Whose prompt the open line is (O5).
    prompting: Option<Source>,
    broken: Option<Broken>,
}

impl Queue {
    fn new(stream: Stream) -> Self {
        let is_file = fstat(stream.descriptor())
            .is_ok_and(|status| FileType::from_raw_mode(status.st_mode) == FileType::RegularFile);
        let is_terminal = isatty(stream.descriptor());
        let (waiting, ends_line) = (VecDeque::new(), true);
        Self { stream, waiting, ends_line, is_file, is_terminal, prompting: None, broken: None }
    }

    fn descriptor(&self) -> BorrowedFd<'static> {
        self.stream.descriptor()
    }

    fn push(&mut self, bytes: &[u8]) {
        if let (None, Some(last)) = (self.broken, bytes.last()) {
            self.ends_line = *last == b'\n';
            self.prompting = self.prompting.filter(|_| !self.ends_line);
            self.waiting.write_all(bytes).expect("memory takes any bytes");
        }
    }

    /// Writes as much as goes without blocking (O3). Called after poll said that some does.
    fn write(&mut self) {
        for _ in 0..CHUNKS_PER_TURN {
            let (front, _) = self.waiting.as_slices();
            if front.is_empty() {
                return;
            }
            match rustix::io::write(self.descriptor(), &front[..front.len().min(CHUNK)]) {
                Ok(written) => drop(self.waiting.drain(..written)),
                Err(Errno::AGAIN | Errno::INTR) => return,
                Err(Errno::PIPE) => return self.give_up(Broken::Closed),
                Err(errno) => return self.give_up(Broken::Refused(errno)),
            }
            if !self.takes_more() {
                return;
            }
        }
    }

    fn takes_more(&self) -> bool {
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut [PollFd::from_borrowed_fd(self.descriptor(), PollFlags::OUT)], Some(&now))
            == Ok(1)
    }

    fn give_up(&mut self, why: Broken) {
        self.broken = Some(why);
        self.waiting = VecDeque::new();
    }
}

/// The launcher's two streams.
#[derive(Debug)]
pub(crate) struct Printer {
    out: Queue,
    /// `None` where both streams are the same file, which then has one queue (O1).
    err: Option<Queue>,
    /// Why a file of `--output dir=` could not be written.
    refused_file: Option<Errno>,
}

impl Printer {
    pub(crate) fn new() -> Self {
        let apart = !is_same_file(stdout(), stderr());
        let err = apart.then(|| Queue::new(Stream::Err));
        Self { out: Queue::new(Stream::Out), err, refused_file: None }
    }

    fn queue(&mut self, stream: Stream) -> &mut Queue {
        match (stream, &mut self.err) {
            (Stream::Err, Some(err)) => err,
            _ => &mut self.out,
        }
    }

    fn queue_of(&self, stream: Stream) -> &Queue {
        match (stream, &self.err) {
            (Stream::Err, Some(err)) => err,
            _ => &self.out,
        }
    }

    /// Queues whole lines from `source`. The prompt of another one is ended first (O5).
    pub(crate) fn push(&mut self, source: Source, bytes: &[u8]) {
        let queue = self.queue(source.stream);
        if bytes.is_empty() {
            return;
        }
        if queue.prompting.is_some_and(|other| other != source) {
            queue.push(b"\n");
        }
        queue.push(bytes);
    }

    /// What becomes of progress bars of `source` (O6).
    pub(crate) fn bars(&self, source: Source) -> Bars {
        let queue = self.queue_of(source.stream);
        match source.rank {
            0 if !queue.is_file => Bars::Live,
            1.. if queue.is_terminal => Bars::Last,
            _ => Bars::Kept,
        }
    }

    /// Notes that a file of `--output dir=` could not be written.
    pub(crate) fn refused_file(&mut self, errno: Errno) {
        self.refused_file.get_or_insert(errno);
    }

    /// Whether the open line is a prompt of `source`.
    pub(crate) fn is_prompting(&self, source: Source) -> bool {
        self.queue_of(source.stream).prompting == Some(source)
    }

    /// Whether a prompt of `source` would be seen, and stand in a line of its own (O5).
    pub(crate) fn takes_prompt(&self, source: Source) -> bool {
        let queue = self.queue_of(source.stream);
        let has_room = queue.ends_line || queue.prompting == Some(source);
        has_room && queue.waiting.is_empty() && queue.broken.is_none() && !queue.is_file
    }

    /// Notes that what was pushed last is a prompt of `source`.
    pub(crate) fn prompted(&mut self, source: Source) {
        let queue = self.queue(source.stream);
        queue.prompting = (!queue.ends_line).then_some(source);
    }

    /// Notes that somebody typed a line on the terminal, which has shown it.
    pub(crate) fn typed(&mut self) {
        for queue in [Some(&mut self.out), self.err.as_mut()].into_iter().flatten() {
            if queue.waiting.is_empty() && queue.is_terminal {
                (queue.ends_line, queue.prompting) = (true, None);
            }
        }
    }

    /// Queues the launcher's own words for standard error, beginning on a new line.
    pub(crate) fn say(&mut self, text: &str) {
        let queue = self.queue(Stream::Err);
        if !queue.ends_line {
            queue.push(b"\n");
        }
        queue.push(text.as_bytes());
    }

    /// Whether a rank's `stream` has to wait (O4).
    pub(crate) fn is_congested(&self, stream: Stream) -> bool {
        self.queue_of(stream).waiting.len() > CONGESTED
    }

    /// The descriptors that something waits for.
    pub(crate) fn wanting(&self) -> impl Iterator<Item = (Stream, BorrowedFd<'static>)> + use<> {
        let queues = [Some(&self.out), self.err.as_ref()];
        let waiting = queues.map(|queue| queue.filter(|queue| !queue.waiting.is_empty()));
        let wanted = waiting.map(|queue| queue.map(|queue| (queue.stream, queue.descriptor())));
        wanted.into_iter().flatten()
    }

    /// Writes to `stream` what goes without blocking.
    pub(crate) fn write(&mut self, stream: Stream) {
        self.queue(stream).write();
    }

    /// Whether nothing waits any more.
    pub(crate) fn is_flushed(&self) -> bool {
        self.wanting().next().is_none()
    }

    /// Why standard output, or a file of `--output dir=`, takes no more, if so. A standard error that
    /// nobody reads is no reason to end a job.
    pub(crate) fn broken_output(&self) -> Option<Broken> {
        self.out.broken.or(self.refused_file.map(Broken::File))
    }
}

fn is_same_file(one: BorrowedFd<'_>, other: BorrowedFd<'_>) -> bool {
    match (fstat(one), fstat(other)) {
        (Ok(one), Ok(other)) => (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino),
        _ => false,
    }
}

#[cfg(test)]
mod tests;

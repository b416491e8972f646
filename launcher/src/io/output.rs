//! From the ranks' pipes to the launcher's own streams, in whole lines.
//!
//! [`LineBuffer`] is pure and there is one per rank and stream; [`Printer`] owns what waits to be
//! written; [`folder`] makes the files of `--output dir=`. Called by the job's poll loop only.
//!
//! - O1: a line of at most [`lines::LONGEST_LINE`] bytes reaches the launcher's stream in one piece, whoever
//!   else prints: everything for one file goes through one queue. What passes at once (O6) is the exception.
//! - O2: without a prefix, the bytes of a rank's stream are neither changed nor reordered, but for the
//!   newline of O5. A file of `--output dir=` gets every byte as it is.
//! - O3: writing never blocks the loop: [`Sink`] writes what goes, of at most [`CHUNK`] bytes after poll
//!   said that the stream takes some.
//! - O4: what waits is bounded: ranks are not read while more than [`CONGESTED`] bytes wait.
//! - O5: an open line, which has not been ended, belongs to its source: whoever else writes ends it first, but
//!   in a job of one rank, of which nothing is changed.
//! - O6: what rank 0 writes to a terminal passes at once, so that its prompts and progress bars are seen. So
//!   does all that the rank of a job of one writes, wherever it goes.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::time::SystemTime;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::fstat;
use rustix::io::Errno;

use crate::LaunchError;

mod folder;
mod lines;
mod sink;

pub(crate) use folder::write_file;
pub(crate) use lines::LineBuffer;
use sink::{Kind, Sink};

/// Bytes per write, which a writable pipe takes without blocking: PIPE_BUF of Linux.
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

/// What the lines of one rank begin with.
#[derive(Debug, Clone)]
pub(crate) struct Prefix {
    label: String,
    timestamp: bool,
}

impl Prefix {
    /// The text for lines that come now. The time is that of the launcher, in UTC, so that lines of all
    /// ranks can be sorted by it.
    pub(crate) fn text(&self) -> String {
        let now = self.timestamp.then(|| humantime::format_rfc3339_millis(SystemTime::now()));
        now.map_or(String::new(), |now| format!("{now} ")) + &self.label
    }
}

/// Where the output of one rank goes, and how.
#[derive(Debug)]
pub(crate) struct Delivery {
    pub(crate) prefix: Prefix,
    /// For its two streams; they get every byte, if there are any.
    pub(crate) files: Option<[File; 2]>,
    /// Whether the launcher's own streams get the lines.
    pub(crate) is_shown: bool,
}

impl OutputChoice {
    /// Whether the bytes of a job of `ranks` ranks pass as they are (O2).
    pub(crate) fn is_exact(&self, ranks: usize) -> bool {
        ranks == 1 && !self.tag && !self.timestamp
    }

    /// Makes the files for `ranks` ranks, and says for each where its output goes.
    pub(crate) fn deliveries(&self, ranks: usize) -> Result<Vec<Delivery>, LaunchError> {
        let delivery = |rank| {
            let folder = self.folder.as_deref();
            let files = folder.map(|folder| folder::files_of(folder, rank)).transpose()?;
            let is_shown = files.is_none() || !self.nocopy;
            let label = if self.tag { format!("[{rank}] ") } else { String::new() };
            let prefix = Prefix { label, timestamp: self.timestamp };
            Ok(Delivery { prefix, files, is_shown })
        };
        (0..ranks).map(delivery).collect()
    }
}

/// The line that was queued last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line {
    Ended,
    /// This source goes on with it (O5).
    Open(Source),
    /// Its source has ended.
    Left,
}

/// What waits for one of the launcher's streams.
#[derive(Debug)]
struct Queue {
    stream: Stream,
    sink: Sink,
    waiting: VecDeque<u8>,
    line: Line,
    broken: Option<Broken>,
}

impl Queue {
    fn new(stream: Stream) -> Self {
        let (sink, waiting) = (Sink::new(stream), VecDeque::new());
        Self { stream, sink, waiting, line: Line::Ended, broken: None }
    }

    /// Queues bytes that leave the line as `open` says, unless they end it.
    fn push(&mut self, bytes: &[u8], open: Line) {
        if let (None, Some(last)) = (self.broken, bytes.last()) {
            self.line = if *last == b'\n' { Line::Ended } else { open };
            self.waiting.write_all(bytes).expect("memory takes any bytes");
        }
    }

    fn end_line(&mut self) {
        if self.line != Line::Ended {
            self.push(b"\n", Line::Ended);
        }
    }

    /// Writes as much as goes without blocking (O3). Called after poll said that some does.
    fn write(&mut self) {
        for _ in 0..CHUNKS_PER_TURN {
            let (front, _) = self.waiting.as_slices();
            if front.is_empty() {
                return;
            }
            match self.sink.write(&front[..front.len().min(CHUNK)]) {
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
        poll(&mut [PollFd::new(&self.sink, PollFlags::OUT)], Some(&now)) == Ok(1)
    }

    fn give_up(&mut self, why: Broken) {
        self.broken = Some(why);
        self.waiting = VecDeque::new();
    }
}

/// The launcher's two streams.
#[derive(Debug)]
pub(crate) struct Printer {
    /// That of standard output, and that of standard error, unless both streams are the same file, which then
    /// has one queue (O1).
    queues: Vec<Queue>,
    /// Whether no newline is added (O2).
    is_exact: bool,
    /// Why a file of `--output dir=` could not be written.
    refused_file: Option<Errno>,
}

impl Printer {
    /// For a job whose bytes pass as they are, or not: [`OutputChoice::is_exact`].
    pub(crate) fn new(is_exact: bool) -> Self {
        let apart = !is_same_file(sink::own(Stream::Out), sink::own(Stream::Err));
        let queues = [Stream::Out, Stream::Err].map(Queue::new).into_iter();
        Self { queues: queues.take(1 + usize::from(apart)).collect(), is_exact, refused_file: None }
    }

    fn place(&self, stream: Stream) -> usize {
        usize::from(stream == Stream::Err).min(self.queues.len() - 1)
    }

    fn queue(&mut self, stream: Stream) -> &mut Queue {
        let place = self.place(stream);
        &mut self.queues[place]
    }

    fn queue_of(&self, stream: Stream) -> &Queue {
        &self.queues[self.place(stream)]
    }

    /// Queues what comes from `source`, with `prefix` at the start of every line. The open line of another
    /// source is ended first (O5).
    pub(crate) fn push(&mut self, source: Source, prefix: &str, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let (mut begins, open) = (!self.has_open_line(source), Line::Open(source));
        let is_exact = self.is_exact;
        let queue = self.queue(source.stream);
        if begins && !is_exact {
            queue.end_line();
        }
        if prefix.is_empty() {
            return queue.push(bytes, open);
        }
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            if std::mem::replace(&mut begins, true) {
                queue.push(prefix.as_bytes(), open);
            }
            queue.push(line, open);
        }
    }

    /// Whether what comes next from `source` goes on with its own line.
    fn has_open_line(&self, source: Source) -> bool {
        self.queue_of(source.stream).line == Line::Open(source)
    }

    /// Notes that nothing more comes from `source`.
    pub(crate) fn ended(&mut self, source: Source) {
        if self.has_open_line(source) {
            self.queue(source.stream).line = Line::Left;
        }
    }

    /// Whether what `source` writes passes at once (O6).
    pub(crate) fn passes(&self, source: Source) -> bool {
        let is_terminal = || self.queue_of(source.stream).sink.kind == Kind::Terminal;
        self.is_exact || (source.rank == 0 && is_terminal())
    }

    /// Notes that a file of `--output dir=` could not be written.
    pub(crate) fn refused_file(&mut self, errno: Errno) {
        self.refused_file.get_or_insert(errno);
    }

    /// Queues the launcher's own words for standard error, beginning on a new line.
    pub(crate) fn say(&mut self, text: &str) {
        let queue = self.queue(Stream::Err);
        queue.end_line();
        queue.push(text.as_bytes(), Line::Left);
    }

    /// Whether a rank's `stream` has to wait (O4).
    pub(crate) fn is_congested(&self, stream: Stream) -> bool {
        self.queue_of(stream).waiting.len() > CONGESTED
    }

    /// The descriptors that something waits for.
    pub(crate) fn wanting(&self) -> impl Iterator<Item = (Stream, BorrowedFd<'_>)> {
        let queues = self.queues.iter();
        queues
            .filter(|queue| !queue.waiting.is_empty())
            .map(|queue| (queue.stream, queue.sink.as_fd()))
    }

    /// How many bytes wait.
    pub(crate) fn left(&self) -> usize {
        self.queues.iter().map(|queue| queue.waiting.len()).sum()
    }

    /// Gives up what waits, and says so where that can be seen.
    pub(crate) fn drop_unread(&mut self) {
        let left = self.left();
        for queue in &mut self.queues {
            if !queue.waiting.is_empty() {
                // What was written of it may have ended in the middle of a line.
                (queue.waiting, queue.line) = (VecDeque::new(), Line::Left);
            }
        }
        self.say(&format!("mpjrun: dropped {left} bytes of output that nobody read\n"));
        let queue = self.queue(Stream::Err);
        if queue.takes_more() {
            queue.write();
        }
    }

    /// Writes to `stream` what goes without blocking.
    pub(crate) fn write(&mut self, stream: Stream) {
        self.queue(stream).write();
    }

    /// Why standard output, or a file of `--output dir=`, takes no more, if so. A standard error that
    /// nobody reads is no reason to end a job.
    pub(crate) fn broken_output(&self) -> Option<Broken> {
        self.queues[0].broken.or(self.refused_file.map(Broken::File))
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

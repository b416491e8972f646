//! Forwards the ranks' output to the launcher's own streams, in whole lines. Called by the job's poll loop.
//!
//! [`Transcript`] takes the streams of one rank, [`LineBuffer`] cuts one into lines; [`Printer`] holds the queues of
//! output to be written; [`folder`] creates the files of `--output dir=`.
//!
//! - O1: a line of at most [`lines::LONGEST_LINE`] bytes reaches the launcher's stream in one piece: all output to one
//!   file goes through one queue. Output that is passed on at once (O6) is the exception.
//! - O2: without a prefix, the bytes of a rank's stream are neither changed nor reordered, except for the newline of
//!   O5. A file of `--output dir=` gets exactly the bytes of its stream.
//! - O3: writing never blocks the loop: when poll says that a stream takes some bytes, [`Sink`] writes at most
//!   [`CHUNK`] of them.
//! - O4: queues are bounded: ranks are not read while more than [`CONGESTED`] bytes wait.
//! - O5: a line without its newline yet belongs to its source. If another source writes, a newline is inserted first,
//!   except in a job of one rank, whose output is not changed until it spawns others.
//! - O6: output of rank 0 to a terminal is passed on at once, so that its prompts and progress bars are seen. So is
//!   all output of a job of one rank, until it spawns others.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Write;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::time::SystemTime;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::fstat;
use rustix::io::Errno;

use crate::LaunchError;
use crate::io::block;

mod folder;
mod lines;
mod sink;
mod transcript;

use folder::write_file;
use lines::LineBuffer;
use sink::{Kind, Sink};
pub(crate) use transcript::Transcript;
pub(crate) use transport_lapi::bootstrap::control::agents::Stream;

/// Bytes per write, which a writable pipe takes without blocking: PIPE_BUF of Linux.
const CHUNK: usize = 4096;
/// Chunks per turn of the loop.
const CHUNKS_PER_TURN: usize = 16;
/// Bytes in a queue from which on ranks are not read.
const CONGESTED: usize = 1 << 20;

/// A stream of a rank.
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

/// Where the ranks' output goes, and in which form: `-l` and `--output`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OutputChoice {
    /// Whether lines begin with `[rank] `.
    pub tag: bool,
    /// Whether lines begin with the time at which they arrived, in UTC.
    pub timestamp: bool,
    /// The folder for a file per rank and stream.
    pub folder: Option<PathBuf>,
    /// Whether output goes to the folder only.
    pub nocopy: bool,
}

/// The start of each line of one rank.
#[derive(Debug, Clone)]
pub(crate) struct Prefix {
    label: String,
    timestamp: bool,
}

impl Prefix {
    /// The text for lines that arrive now. It begins with the time, so that the lines of all ranks can be sorted.
    pub(crate) fn text(&self) -> String {
        let now = self.timestamp.then(|| humantime::format_rfc3339_millis(SystemTime::now()));
        now.map_or(String::new(), |now| format!("{now} ")) + &self.label
    }
}

/// Where the output of one rank goes, and in which form.
#[derive(Debug)]
pub(crate) struct Delivery {
    pub(crate) prefix: Prefix,
    /// The files of its two streams.
    pub(crate) files: Option<[File; 2]>,
    /// Whether the launcher's own streams get the lines.
    pub(crate) is_shown: bool,
}

impl OutputChoice {
    /// Whether the output of a job of `ranks` ranks is passed on unchanged (O5).
    pub(crate) fn is_exact(&self, ranks: usize) -> bool {
        ranks == 1 && !self.tag && !self.timestamp
    }

    /// Creates the files of these ranks, and returns where the output of each goes.
    pub(crate) fn deliveries(&self, ranks: Range<usize>) -> Result<Vec<Delivery>, LaunchError> {
        let delivery = |rank| {
            let folder = self.folder.as_deref();
            let files = folder.map(|folder| folder::files_of(folder, rank)).transpose()?;
            let is_shown = files.is_none() || !self.nocopy;
            let label = if self.tag { format!("[{rank}] ") } else { String::new() };
            let prefix = Prefix { label, timestamp: self.timestamp };
            Ok(Delivery { prefix, files, is_shown })
        };
        ranks.map(delivery).collect()
    }
}

/// The state of the line that was queued last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line {
    Ended,
    /// It has no newline yet, and this source may go on with it (O5).
    Open(Source),
    /// It has no newline, and its source has ended.
    Left,
}

/// The bytes that wait for one of the launcher's streams.
#[derive(Debug)]
struct Queue {
    stream: Stream,
    sink: Sink,
    waiting: VecDeque<u8>,
    line: Line,
    broken: Option<Broken>,
    /// Lines of a block that a terminal shows below everything else.
    shown: usize,
}

impl Queue {
    fn new(stream: Stream) -> Self {
        let (sink, waiting) = (Sink::new(stream), VecDeque::new());
        Self { stream, sink, waiting, line: Line::Ended, broken: None, shown: 0 }
    }

    /// Queues bytes. They leave the line in the state `open`, unless they end it.
    fn push(&mut self, bytes: &[u8], open: Line) {
        self.hide();
        if let (None, Some(last)) = (self.broken, bytes.last()) {
            self.line = if *last == b'\n' { Line::Ended } else { open };
            self.waiting.write_all(bytes).expect("memory takes any bytes");
        }
    }

    /// Removes the block.
    fn hide(&mut self) {
        let removed = block::removed(std::mem::take(&mut self.shown));
        self.waiting.extend(removed.as_bytes());
    }

    fn end_line(&mut self) {
        if self.line != Line::Ended {
            self.push(b"\n", Line::Ended);
        }
    }

    /// Writes as much as the stream takes without blocking (O3). Called after poll said that it takes some.
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
        (self.broken, self.shown) = (Some(why), 0);
        self.waiting = VecDeque::new();
    }
}

/// The launcher's two streams.
#[derive(Debug)]
pub(crate) struct Printer {
    /// The queues of standard output and standard error; a single one if both are the same file (O1).
    queues: Vec<Queue>,
    /// Whether no newline is inserted (O5).
    is_exact: bool,
    /// Why a file of `--output dir=` could not be written.
    refused_file: Option<Errno>,
}

impl Printer {
    /// `is_exact` is that of [`OutputChoice`].
    pub(crate) fn new(is_exact: bool) -> Self {
        let apart = !is_same_file(sink::own(Stream::Out), sink::own(Stream::Err));
        let queues = [Stream::Out, Stream::Err].map(Queue::new).into_iter();
        Self { queues: queues.take(1 + usize::from(apart)).collect(), is_exact, refused_file: None }
    }

    /// Notes that there are several ranks from now on (O5).
    pub(crate) fn share(&mut self) {
        self.is_exact = false;
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

    /// Queues output of `source`, with `prefix` at the start of every line. The open line of another source is ended
    /// first (O5).
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

    /// Whether the next output of `source` continues its own line.
    fn has_open_line(&self, source: Source) -> bool {
        self.queue_of(source.stream).line == Line::Open(source)
    }

    /// Notes that `source` has ended.
    pub(crate) fn ended(&mut self, source: Source) {
        if self.has_open_line(source) {
            self.queue(source.stream).line = Line::Left;
        }
    }

    /// Whether output of `source` is passed on at once (O6).
    pub(crate) fn passes(&self, source: Source) -> bool {
        let is_terminal = || self.queue_of(source.stream).sink.kind == Kind::Terminal;
        self.is_exact || (source.rank == 0 && is_terminal())
    }

    /// Notes that a file of `--output dir=` could not be written.
    pub(crate) fn refused_file(&mut self, errno: Errno) {
        self.refused_file.get_or_insert(errno);
    }

    /// Queues a message of the launcher for standard error, on a new line.
    pub(crate) fn say(&mut self, text: &str) {
        let queue = self.queue(Stream::Err);
        queue.end_line();
        queue.push(text.as_bytes(), Line::Left);
    }

    /// Shows a block of lines on standard error: on a terminal in place of the one before it, and as long as nothing else
    /// is written; elsewhere as lines of the launcher. A reader that is behind misses it.
    pub(crate) fn show(&mut self, block: &str) {
        let queue = self.queue(Stream::Err);
        if queue.waiting.len() > CHUNK || queue.broken.is_some() {
            return;
        }
        if queue.sink.kind != Kind::Terminal {
            let lines: String = block.lines().map(|line| format!("mpjrun: {line}\n")).collect();
            return self.say(&lines);
        }
        queue.end_line();
        let fitted = block::fitted(block, &queue.sink);
        queue.push(fitted.as_bytes(), Line::Ended);
        queue.shown = fitted.lines().count();
    }

    /// Removes the block of [`Printer::show`].
    pub(crate) fn hide(&mut self) {
        self.queue(Stream::Err).hide();
    }

    /// Whether ranks' `stream` is not read for now (O4).
    pub(crate) fn is_congested(&self, stream: Stream) -> bool {
        self.queue_of(stream).waiting.len() > CONGESTED
    }

    /// The streams with bytes to write, and their descriptors.
    pub(crate) fn wanting(&self) -> impl Iterator<Item = (Stream, BorrowedFd<'_>)> {
        let queues = self.queues.iter();
        queues
            .filter(|queue| !queue.waiting.is_empty())
            .map(|queue| (queue.stream, queue.sink.as_fd()))
    }

    /// Number of bytes that wait in the queues.
    pub(crate) fn left(&self) -> usize {
        self.queues.iter().map(|queue| queue.waiting.len()).sum()
    }

    /// Drops the bytes that wait, and says so if standard error takes the message.
    pub(crate) fn drop_unread(&mut self) {
        let left = self.left();
        for queue in &mut self.queues {
            if !queue.waiting.is_empty() {
                // The last write may have ended in the middle of a line.
                (queue.waiting, queue.line, queue.shown) = (VecDeque::new(), Line::Left, 0);
            }
        }
        self.say(&format!("mpjrun: dropped {left} bytes of output that nobody read\n"));
        let queue = self.queue(Stream::Err);
        if queue.takes_more() {
            queue.write();
        }
    }

    /// Writes as much to `stream` as it takes without blocking.
    pub(crate) fn write(&mut self, stream: Stream) {
        self.queue(stream).write();
    }

    /// Why standard output or a file of `--output dir=` takes no more, if so. A broken standard error does not end a
    /// job.
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

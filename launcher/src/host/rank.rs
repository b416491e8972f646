//! The process of one rank, with the launcher's descriptors of it. Owned by the job's poll loop.
//!
//! - K1: the process is reaped when the rank is dropped, after the job. Until then no other process or group gets
//!   its number, so no signal of the launcher and no get of another rank (PE2 of `transport_lapi::adapters::shm`)
//!   meets a stranger. A program that a script started is reaped by the script, or as an orphan (ST2 of
//!   [`crate::host::orphans`]); a descriptor of it shows its end.
//! - K2: dropping a rank kills its group and reaps it, also when the launcher panics.
//! - K3: a process that holds the output open does not hold up the launcher. When the rank has ended, the processes
//!   of its group may print for [`LINGER`]. While the reader of the launcher's own output pauses, this time does not
//!   run; it begins anew when the reader goes on. Then the group is killed, and what is in the pipe is read.
//! - K4: the control line stays open until the rank is dropped: its end would tell the rank that the launcher died.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::Child;
use std::time::{Duration, Instant};

use rustix::fs::{OFlags, fcntl_setfl};
use rustix::io::{Errno, ioctl_fionread};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process_group, pidfd_open, waitid,
};
use transport_lapi::bootstrap::control::{ControlError, ControlReceiver, Incoming};
use transport_lapi::bootstrap::monotonic_nanos;

use crate::exits::Ending;
use crate::host::process_table::numbered;
use crate::io::output::{Delivery, LineBuffer, Prefix, Printer, Source, Stream, write_file};

/// How long processes that a rank started may go on printing after the rank has ended.
const LINGER: Duration = Duration::from_millis(100);
/// Bytes per read: the capacity of a pipe.
const READ_SIZE: usize = 64 * 1024;
/// Bytes of standard error that are kept for [`Rank::last_words`].
const TAIL: usize = 2048;

/// One of a rank's output streams.
#[derive(Debug)]
struct Output {
    source: Source,
    pipe: Option<OwnedFd>,
    /// The file of `--output dir=`.
    file: Option<File>,
    /// Whether the launcher's own stream gets the output.
    is_shown: bool,
    prefix: Prefix,
    lines: LineBuffer,
    /// The last bytes, of standard error only.
    tail: Vec<u8>,
}

/// A rank.
#[derive(Debug)]
pub(crate) struct Rank {
    child: Child,
    pidfd: OwnedFd,
    control: ControlReceiver,
    control_ended: bool,
    /// Whether a damaged message has come.
    has_damage: bool,
    /// The process that joined, if a script started it.
    program: Option<OwnedFd>,
    outputs: [Output; 2],
    /// How the process ended, and when that was noticed, in nanoseconds of the monotonic clock.
    ended: Option<(Ending, u64)>,
    linger_until: Option<Instant>,
    /// Whether the reader of the launcher's own output paused in the last turn (K3).
    reader_paused: bool,
    closed: bool,
}

impl Rank {
    /// Takes the process that was just started as `rank`, leading its own group.
    pub(crate) fn new(
        rank: usize,
        mut child: Child,
        control: ControlReceiver,
        delivery: Delivery,
    ) -> io::Result<Self> {
        let Delivery { prefix, files, is_shown } = delivery;
        let [out, err] = files.map_or([None, None], |files| files.map(Some));
        let output = |stream, pipe: Option<OwnedFd>, file| Output {
            source: Source { rank, stream },
            pipe,
            file,
            is_shown,
            prefix: prefix.clone(),
            lines: LineBuffer::default(),
            tail: Vec::new(),
        };
        let outputs = [
            output(Stream::Out, child.stdout.take().map(OwnedFd::from), out),
            output(Stream::Err, child.stderr.take().map(OwnedFd::from), err),
        ];
        let pidfd = pidfd_open(Pid::from_child(&child), PidfdFlags::empty());
        let pidfd = match (pidfd, outputs.iter().try_for_each(Output::make_nonblocking)) {
            (Ok(pidfd), Ok(())) => pidfd,
            (Err(errno), _) | (_, Err(errno)) => {
                // There is no `Rank` yet whose drop would do this (K2).
                let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
                child.wait()?;
                return Err(errno.into());
            }
        };
        Ok(Self {
            child,
            pidfd,
            control,
            control_ended: false,
            has_damage: false,
            program: None,
            outputs,
            ended: None,
            linger_until: None,
            reader_paused: false,
            closed: false,
        })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The process group.
    pub(crate) fn group(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Whether [`Rank::ending`] has found the process ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.linger_until.is_some()
    }

    /// Whether the rank is gone: process ended, group killed, output read.
    pub(crate) fn is_gone(&self) -> bool {
        self.closed
    }

    /// Readable when the process has ended.
    pub(crate) fn pidfd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }

    /// Watches the process `pid` that has joined as this rank, unless it is the one that was started or another one
    /// is watched. Returns whether it is there.
    pub(crate) fn watch_program(&mut self, pid: u32) -> bool {
        let is_other = pid != self.pid() && self.program.is_none();
        let other = numbered(pid).filter(|_| is_other);
        let Some(other) = other else { return true };
        match pidfd_open(other, PidfdFlags::empty()) {
            Ok(program) => self.program = Some(program),
            Err(Errno::SRCH) => return false,
            // The end of the process that was started is noticed all the same.
            Err(_) => {}
        }
        true
    }

    /// Readable when the program has ended that a script started.
    pub(crate) fn program(&self) -> Option<BorrowedFd<'_>> {
        self.program.as_ref().map(AsFd::as_fd)
    }

    /// Stops watching the program that a script started.
    pub(crate) fn program_has_ended(&mut self) {
        self.program = None;
    }

    /// Notes a damaged message, and returns whether it is the first one.
    pub(crate) fn is_first_damage(&mut self) -> bool {
        !std::mem::replace(&mut self.has_damage, true)
    }

    /// The control line, until it has ended.
    pub(crate) fn control(&self) -> Option<BorrowedFd<'_>> {
        (!self.control_ended).then(|| self.control.as_fd())
    }

    /// The output pipes that are still open.
    pub(crate) fn pipes(&self) -> impl Iterator<Item = (Stream, BorrowedFd<'_>)> {
        self.outputs
            .iter()
            .filter_map(|output| Some((output.source.stream, output.pipe.as_ref()?.as_fd())))
    }

    /// When [`Rank::close_if_done`] has to be called at the latest.
    pub(crate) fn linger_until(&self) -> Option<Instant> {
        self.linger_until.filter(|_| !self.closed)
    }

    /// Asks whether the process has ended, and how, without reaping it (K1). The first call that finds it ended sets
    /// the time.
    pub(crate) fn notice_ending(&mut self) -> Option<(Ending, u64)> {
        if self.ended.is_some() {
            return self.ended;
        }
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let status = waitid(WaitId::PidFd(self.pidfd.as_fd()), options).ok()??;
        let ending = match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => Ending::Code(code),
            (None, Some(signal)) => Ending::Signal(signal),
            (None, None) => return None,
        };
        self.ended = Some((ending, monotonic_nanos()));
        self.ended
    }

    /// How and when the process ended, if it has. From then on it lingers (K3).
    pub(crate) fn ending(&mut self) -> Option<(Ending, u64)> {
        let ended = self.notice_ending()?;
        self.linger_until.get_or_insert_with(|| Instant::now() + LINGER);
        Some(ended)
    }

    /// Takes the next control message, if one has come.
    pub(crate) fn next_message(&mut self) -> Result<Incoming, ControlError> {
        if self.control_ended {
            return Ok(Incoming::Nothing);
        }
        let incoming = self.control.try_recv();
        self.control_ended = matches!(incoming, Ok(Incoming::End) | Err(ControlError::Receive(_)));
        incoming
    }

    /// Reads once from the pipe of `stream`, without waiting, and closes it at its end.
    pub(crate) fn read(&mut self, stream: Stream, printer: &mut Printer) {
        for output in self.outputs.iter_mut().filter(|output| output.source.stream == stream) {
            output.read(READ_SIZE, printer);
        }
    }

    /// What the rank has printed last on standard error, as [`last_words`] cuts it. Reads what has come.
    pub(crate) fn last_words(&mut self, printer: &mut Printer) -> String {
        self.read(Stream::Err, printer);
        let is_meant = |output: &&Output| output.source.stream == Stream::Err;
        let tail = self.outputs.iter().find(is_meant).map(|output| &output.tail[..]);
        last_words(&String::from_utf8_lossy(tail.unwrap_or_default()))
    }

    /// Sends `signal` to the process group, unless the rank is gone.
    pub(crate) fn signal(&self, signal: Signal) {
        if !self.closed {
            // The group exists (K1). It can only fail if all members are another user's.
            let _ = kill_process_group(self.group(), signal);
        }
    }

    /// Kills what is left of the group of a process that has ended, and reads its output: at once if nothing holds
    /// the output open, else when it has lingered. While it `may_linger` it also waits for a reader that pauses (K3).
    pub(crate) fn close_if_done(&mut self, now: Instant, may_linger: bool, printer: &mut Printer) {
        let Some(mut until) = self.linger_until.filter(|_| !self.closed) else {
            return;
        };
        let pauses = may_linger && self.pipes().any(|(stream, _)| printer.is_congested(stream));
        let has_paused = std::mem::replace(&mut self.reader_paused, pauses);
        if pauses || has_paused {
            until = now + LINGER;
            self.linger_until = Some(until);
        }
        let is_quiet = self.pipes().next().is_none();
        if is_quiet || now >= until {
            self.signal(Signal::KILL);
            for output in &mut self.outputs {
                output.close(printer);
            }
            self.closed = true;
        }
    }
}

impl Drop for Rank {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
        // The process has ended, or does so now.
        let _ = self.child.wait();
    }
}

/// The end of a text that tells an error: from the last `Error: ` at the start of a line on, behind which Rust prints
/// what main returns, or else the last line that is not empty.
fn last_words(text: &str) -> String {
    let text = text.trim_end();
    let from = match text.rfind("\nError: ") {
        Some(at) => at + 1,
        None if text.starts_with("Error: ") => 0,
        None => text.rfind('\n').map_or(0, |at| at + 1),
    };
    text[from..].to_owned()
}

impl Output {
    fn make_nonblocking(&self) -> Result<(), Errno> {
        self.pipe.as_ref().map_or(Ok(()), |pipe| fcntl_setfl(pipe, OFlags::NONBLOCK))
    }

    /// Reads at most `limit` bytes, and returns how many came.
    fn read(&mut self, limit: usize, printer: &mut Printer) -> usize {
        let Some(pipe) = &self.pipe else { return 0 };
        let mut bytes = vec![0; limit.min(READ_SIZE)];
        match rustix::io::read(pipe, &mut bytes) {
            Err(Errno::AGAIN | Errno::INTR) => 0,
            Ok(0) | Err(_) => {
                self.pipe = None;
                self.finish(printer);
                0
            }
            Ok(len) => {
                self.take(&bytes[..len], printer);
                len
            }
        }
    }

    fn take(&mut self, bytes: &[u8], printer: &mut Printer) {
        if self.source.stream == Stream::Err {
            self.tail.extend_from_slice(&bytes[bytes.len().saturating_sub(TAIL)..]);
            self.tail.drain(..self.tail.len().saturating_sub(TAIL));
        }
        if let Some(file) = &self.file {
            write_file(file, bytes).unwrap_or_else(|errno| printer.refused_file(errno));
        }
        if !self.is_shown {
            return;
        }
        let lines = self.lines.push(bytes, printer.passes(self.source));
        printer.push(self.source, &self.prefix.text(), &lines);
    }

    /// Reads what is in the pipe now, and closes it (K3).
    fn close(&mut self, printer: &mut Printer) {
        let pipe = self.pipe.as_ref();
        let mut left = pipe.and_then(|pipe| ioctl_fionread(pipe).ok()).unwrap_or(0) as usize;
        while left > 0 {
            match self.read(left, printer) {
                0 => break,
                len => left -= len,
            }
        }
        if self.pipe.take().is_some() {
            self.finish(printer);
        }
    }

    fn finish(&mut self, printer: &mut Printer) {
        printer.push(self.source, &self.prefix.text(), &self.lines.finish());
        printer.ended(self.source);
    }
}

#[cfg(test)]
mod tests {
    use super::last_words;

    #[test]
    fn the_last_words_are_an_error_or_a_line() {
        for (text, expected) in [
            ("", ""),
            ("\n\n", ""),
            ("one\ntwo\n", "two"),
            ("Error: Os { code: 2 }\n", "Error: Os { code: 2 }"),
            (
                "step 1\nError: no input\n\nCaused by:\n    no file\n",
                "Error: no input\n\nCaused by:\n    no file",
            ),
            ("Traceback:\n  line 1\nValueError: 7\n", "ValueError: 7"),
        ] {
            assert_eq!(last_words(text), expected, "{text:?}");
        }
    }
}

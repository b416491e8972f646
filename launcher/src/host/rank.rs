//! The process of one rank, with the launcher's descriptors of it. Owned by the job's poll loop.
//!
//! - K1: the process is reaped when the rank is dropped, after the job. Until then no other process or group gets
//!   its number, so no signal of the launcher and no get of another rank (PE2 of `transport_lapi::adapters::shm`)
//!   meets a stranger. A program that a script started is reaped by the script, or as an orphan (ST2 of
//!   [`crate::host::orphans`]); a descriptor of it shows its end.
//!   A rank of a world that could not be started whole is killed at once, and reaped like all others.
//! - K2: dropping a rank kills its group and reaps it, also when the launcher panics.
//! - K3: a process that holds the output open does not hold up the launcher. When the rank has ended, the processes
//!   of its group may print for [`LINGER`]. While the reader of the launcher's own output pauses, this time does not
//!   run; it begins anew when the reader goes on. Then the group is killed, and what is in the pipe is read.
//! - K4: the control line stays open until the rank is dropped: its end would tell the rank that the launcher died.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::Child;
use std::time::{Duration, Instant};

use rustix::fs::{OFlags, fcntl_setfl};
use rustix::io::{Errno, ioctl_fionread};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process_group, pidfd_open, waitid,
};
use transport_lapi::TaskId;
use transport_lapi::bootstrap::control::agents::{Ending, News, Stream};
use transport_lapi::bootstrap::control::demand::Answer;
use transport_lapi::bootstrap::control::{ControlError, ControlMessage, ControlReceiver, Incoming};
use transport_lapi::bootstrap::monotonic_nanos;

use crate::host::process_table::numbered;

/// How long processes that a rank started may go on printing after the rank has ended.
const LINGER: Duration = Duration::from_millis(100);
/// Bytes per read: the capacity of a pipe.
const READ_SIZE: usize = 64 * 1024;

/// One of a rank's output streams.
#[derive(Debug)]
struct Output {
    stream: Stream,
    pipe: Option<OwnedFd>,
}

/// For which streams the reader of the ranks' output pauses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Pauses {
    pub(crate) out: bool,
    pub(crate) err: bool,
}

impl Pauses {
    /// Whether it pauses for `stream`.
    pub(crate) fn of(self, stream: Stream) -> bool {
        match stream {
            Stream::Out => self.out,
            Stream::Err => self.err,
        }
    }
}

/// A rank.
#[derive(Debug)]
pub(crate) struct Rank {
    /// Its number in the job.
    task: TaskId,
    child: Child,
    pidfd: OwnedFd,
    control: ControlReceiver,
    control_ended: bool,
    /// Whether it has finished its part in the job.
    has_finished: bool,
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
    /// Takes the process that was just started as rank `task`, leading its own group.
    pub(crate) fn new(
        task: TaskId,
        mut child: Child,
        control: ControlReceiver,
    ) -> io::Result<Self> {
        let outputs = [
            Output { stream: Stream::Out, pipe: child.stdout.take().map(OwnedFd::from) },
            Output { stream: Stream::Err, pipe: child.stderr.take().map(OwnedFd::from) },
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
            task,
            child,
            pidfd,
            control,
            control_ended: false,
            has_finished: false,
            has_damage: false,
            program: None,
            outputs,
            ended: None,
            linger_until: None,
            reader_paused: false,
            closed: false,
        })
    }

    /// Kills the group of a rank that the job does not get, as another rank of its world could not be started (K1). It is
    /// gone then: nothing of it is read.
    pub(crate) fn abandon(&mut self) {
        self.signal(Signal::KILL);
        self.outputs.iter_mut().for_each(|output| output.pipe = None);
        self.linger_until = Some(Instant::now());
        (self.control_ended, self.closed) = (true, true);
    }

    /// Its number in the job.
    pub(crate) fn task(&self) -> TaskId {
        self.task
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

    /// Whether it has told that it has finished its part in the job.
    pub(crate) fn has_finished(&self) -> bool {
        self.has_finished
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

    /// Answers a demand that came over the control line.
    pub(crate) fn answer(&self, answer: &Answer) {
        self.control.answer(answer);
    }

    /// The output pipes that are still open.
    pub(crate) fn pipes(&self) -> impl Iterator<Item = (Stream, BorrowedFd<'_>)> {
        self.outputs
            .iter()
            .filter_map(|output| Some((output.stream, output.pipe.as_ref()?.as_fd())))
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
        self.has_finished |= matches!(incoming, Ok(Incoming::Message(ControlMessage::Finished)));
        self.control_ended = matches!(incoming, Ok(Incoming::End) | Err(ControlError::Receive(_)));
        incoming
    }

    /// Reads once from the pipe of `stream`, without waiting, and closes it at its end.
    pub(crate) fn read(&mut self, stream: Stream, news: &mut Vec<News>) {
        let task = self.task;
        for output in self.outputs.iter_mut().filter(|output| output.stream == stream) {
            output.read(task, READ_SIZE, news);
        }
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
    pub(crate) fn close_if_done(
        &mut self,
        now: Instant,
        may_linger: bool,
        pauses: Pauses,
        news: &mut Vec<News>,
    ) {
        let Some(mut until) = self.linger_until.filter(|_| !self.closed) else {
            return;
        };
        let pauses = may_linger && self.pipes().any(|(stream, _)| pauses.of(stream));
        let has_paused = std::mem::replace(&mut self.reader_paused, pauses);
        if pauses || has_paused {
            until = now + LINGER;
            self.linger_until = Some(until);
        }
        let is_quiet = self.pipes().next().is_none();
        if is_quiet || now >= until {
            self.signal(Signal::KILL);
            for output in &mut self.outputs {
                output.close(self.task, news);
            }
            self.closed = true;
            news.push(News::Gone { task: self.task });
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

impl Output {
    fn make_nonblocking(&self) -> Result<(), Errno> {
        self.pipe.as_ref().map_or(Ok(()), |pipe| fcntl_setfl(pipe, OFlags::NONBLOCK))
    }

    /// Reads at most `limit` bytes, and returns how many came.
    fn read(&mut self, task: TaskId, limit: usize, news: &mut Vec<News>) -> usize {
        let Some(pipe) = &self.pipe else { return 0 };
        let mut bytes = vec![0; limit.min(READ_SIZE)];
        match rustix::io::read(pipe, &mut bytes) {
            Err(Errno::AGAIN | Errno::INTR) => 0,
            Ok(0) | Err(_) => {
                self.pipe = None;
                news.push(News::OutputEnded { task, stream: self.stream });
                0
            }
            Ok(len) => {
                bytes.truncate(len);
                news.push(News::Output { task, stream: self.stream, bytes });
                len
            }
        }
    }

    /// Reads what is in the pipe now, and closes it (K3).
    fn close(&mut self, task: TaskId, news: &mut Vec<News>) {
        let pipe = self.pipe.as_ref();
        let mut left = pipe.and_then(|pipe| ioctl_fionread(pipe).ok()).unwrap_or(0) as usize;
        while left > 0 {
            match self.read(task, left, news) {
                0 => break,
                len => left -= len,
            }
        }
        if self.pipe.take().is_some() {
            news.push(News::OutputEnded { task, stream: self.stream });
        }
    }
}

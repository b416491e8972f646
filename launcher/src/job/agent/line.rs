//! The agent's end of its line: its own standard input and output.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::io::Errno;
use rustix::stdio::{stdin, stdout};
use transport_lapi::bootstrap::control::agents::{News, Order};
use transport_lapi::bootstrap::control::line::{
    Encoded, LineReader, LineWriter, Secret, announcement,
};

use crate::host::machine::host_name;
use crate::job::agents::branches::SIGNS;
use crate::job::outgoing::Outgoing;
use crate::job::ranks::AgentEvent;
use crate::job::{Event, Interesting, events};

/// Bytes per read.
const READ_SIZE: usize = 64 * 1024;
/// Bytes that wait for the line from which on it is congested.
const CONGESTED: usize = 1 << 20;
/// How long the first order is waited for.
const FIRST: Duration = Duration::from_secs(60);
/// An agent that wakes up this late was stopped, or its machine was.
const STANDSTILL: Duration = Duration::from_secs(1);

/// The line has ended, or the agent was asked to end (AE2 of [`super`]).
pub(super) struct Lost;

/// See the module's head.
pub(super) struct Line {
    reader: LineReader<Order>,
    writer: LineWriter<News>,
    waiting: Outgoing,
    /// Whether there were news that cannot be told.
    is_broken: bool,
    silence: Duration,
    heard: Instant,
    told: Instant,
    is_suspended: bool,
}

impl Line {
    /// Reads the secret, and announces this agent. `None` if there is no secret.
    pub(super) fn open() -> Option<Self> {
        let mut first = Vec::new();
        let mut byte = [0];
        // Byte by byte and without a buffer: what follows is for the line.
        while first.len() < 80 && rustix::io::read(stdin(), &mut byte) == Ok(1) && byte[0] != b'\n'
        {
            first.push(byte[0]);
        }
        let secret = Secret::from_line(&first)?;
        fcntl_setfl(stdout(), OFlags::NONBLOCK).ok()?;
        let now = Instant::now();
        let mut line = Self {
            reader: LineReader::new(&secret),
            writer: LineWriter::new(&secret),
            waiting: Outgoing::default(),
            is_broken: false,
            silence: FIRST,
            heard: now,
            told: now,
            is_suspended: false,
        };
        line.waiting.push([announcement(env!("CARGO_PKG_VERSION")).into()]);
        line.tell(&News::Hello { host: host_name() });
        Some(line)
    }

    /// Sets after how long without a sign of life the line counts as lost.
    pub(super) fn expect_signs(&mut self, silence: Duration) {
        self.silence = silence;
    }

    /// Notes that no sign of life will come for a while, or that they come again.
    pub(super) fn suspended(&mut self, is_suspended: bool) {
        self.is_suspended = is_suspended;
    }

    /// Tells news, as soon as there is room. News that are too long end the line, and the starting program says why.
    pub(super) fn tell(&mut self, news: &News) {
        self.told = Instant::now();
        match Encoded::of(news) {
            Ok(news) => self.waiting.push(self.writer.frame(&news)),
            Err(error) => {
                self.is_broken = true;
                // The line ends all the same.
                let _ = writeln!(io::stderr(), "mpjrun: cannot tell what happens here: {error}");
            }
        }
    }

    /// Whether so much waits for room that nothing should be added.
    pub(super) fn is_congested(&self) -> bool {
        self.waiting.left() > CONGESTED
    }

    fn interests(&self, reads: bool, set: &mut Vec<Interesting<'_>>) {
        // The end of the line is noticed in any case.
        let flags = if reads { PollFlags::IN } else { PollFlags::empty() };
        set.push((Event::Agent(AgentEvent::Above), stdin(), flags));
        if self.waiting.left() > 0 {
            set.push((Event::Agent(AgentEvent::RoomAbove), stdout(), PollFlags::OUT));
        }
    }

    /// Writes what the line takes.
    pub(super) fn write(&mut self) -> Result<(), Lost> {
        let written =
            self.waiting.write(|pieces| rustix::io::writev(stdout(), pieces).map_err(Into::into));
        if self.is_broken { Err(Lost) } else { written.map_err(|_| Lost) }
    }

    /// Reads once, after poll said that this does not block.
    fn read(&mut self) -> Result<(), Lost> {
        let mut bytes = vec![0; READ_SIZE];
        match rustix::io::read(stdin(), &mut bytes) {
            Err(Errno::INTR | Errno::AGAIN) => Ok(()),
            Ok(0) | Err(_) => Err(Lost),
            Ok(len) => {
                self.reader.push(&bytes[..len]);
                self.heard = Instant::now();
                Ok(())
            }
        }
    }

    /// The next order that has come. A wrong one ends the line.
    pub(super) fn next(&mut self) -> Result<Option<Order>, Lost> {
        self.reader.take().map_err(|_| Lost)
    }

    /// Gives a sign of life if it is time, and looks for those from above.
    fn keep_alive(&mut self) -> Result<(), Lost> {
        let now = Instant::now();
        if now.saturating_duration_since(self.heard) > self.silence && !self.is_suspended {
            return Err(Lost);
        }
        if now.saturating_duration_since(self.told) >= self.silence / SIGNS {
            self.tell(&News::Alive);
        }
        Ok(())
    }

    fn next_deadline(&self) -> Instant {
        let sign = self.told + self.silence / SIGNS;
        if self.is_suspended { sign } else { sign.min(self.heard + self.silence) }
    }

    /// Waits for descriptors, those of the line among them. Unless it `reads`, orders stay in the line, which does not
    /// count as silent.
    pub(super) fn wait(
        &mut self,
        reads: bool,
        others: &[Interesting<'_>],
        until: Option<Instant>,
    ) -> Result<Vec<Event>, Lost> {
        let deadline = until.into_iter().chain([self.next_deadline()]).min();
        let mut set = others.to_vec();
        self.interests(reads, &mut set);
        let ready = events(&set, deadline).map_err(|_| Lost)?;
        let late =
            deadline.map_or(Duration::ZERO, |at| Instant::now().saturating_duration_since(at));
        if late > STANDSTILL || !reads {
            self.heard = Instant::now();
        }
        for event in &ready {
            match event {
                Event::Agent(AgentEvent::Above) => self.read()?,
                Event::Agent(AgentEvent::RoomAbove) => self.write()?,
                _ => {}
            }
        }
        self.keep_alive()?;
        Ok(ready)
    }
}

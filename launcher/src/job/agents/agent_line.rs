//! The line to one agent: the standard streams of the program that has started it. Nothing here waits, except
//! [`AgentLine::await_end`].

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use transport_lapi::bootstrap::control::agents::{News, Order};
use transport_lapi::bootstrap::control::line::{
    Encoded, LineReader, LineWriter, Secret, announced,
};
use transport_lapi::bootstrap::signals::Mask;
use transport_lapi::bootstrap::spawn::{DescriptorLimit, restore};

use crate::job::outgoing::Outgoing;
use crate::job::ranks::AgentEvent;

/// Bytes per read.
const READ_SIZE: usize = 64 * 1024;
/// Longest greeting of a login shell, in bytes.
const MOST_GREETING: usize = 256 << 10;
/// Most bytes of what the starting program says that are kept, and of what comes before the announcement.
const KEPT: usize = 4096;
/// How long the end of the starting program is waited for once its output has ended, to tell how it ended.
const END: Duration = Duration::from_millis(200);
/// The version that agents must have.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// See the module's head.
pub(super) struct AgentLine {
    /// The name of the program that starts the agent.
    starter: String,
    child: Child,
    input: Option<ChildStdin>,
    output: Option<ChildStdout>,
    errors: Option<ChildStderr>,
    /// When the output ended, and a descriptor that shows the end of the program.
    ended: Option<(Instant, Option<OwnedFd>)>,
    /// The last bytes that the starting program has said on standard error.
    said: Vec<u8>,
    /// What came before the announcement; `None` once that has come.
    greeting: Option<Vec<u8>>,
    reader: LineReader<News>,
    writer: LineWriter<Order>,
    /// What the line has not taken.
    waiting: Outgoing,
}

impl AgentLine {
    /// Starts the program with the limit and the signal mask from before, and gives the agent a secret.
    ///
    /// # Errors
    /// Says why it cannot be started.
    pub(super) fn start(
        mut command: Command,
        (limit, mask): (&DescriptorLimit, Mask),
    ) -> Result<Self, String> {
        let starter = command.get_program().to_string_lossy().into_owned();
        let failed = |error: io::Error| format!("cannot start {starter}: {error}");
        let secret = Secret::random().map_err(|error| format!("cannot make a secret: {error}"))?;
        // The signals of a terminal are for mpjrun, which passes them on.
        command.process_group(0);
        restore(&mut command, limit, mask);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(failed)?;
        let (input, output, errors) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let descriptors = [
            input.as_ref().map(AsFd::as_fd),
            output.as_ref().map(AsFd::as_fd),
            errors.as_ref().map(AsFd::as_fd),
        ];
        for descriptor in descriptors.into_iter().flatten() {
            fcntl_setfl(descriptor, OFlags::NONBLOCK).map_err(|errno| failed(errno.into()))?;
        }
        let mut line = Self {
            starter,
            child,
            input,
            output,
            errors,
            ended: None,
            said: Vec::new(),
            greeting: Some(Vec::new()),
            reader: LineReader::new(&secret),
            writer: LineWriter::new(&secret),
            waiting: Outgoing::default(),
        };
        line.waiting.push([secret.to_line().into_bytes().into()]);
        line.write();
        Ok(line)
    }

    /// The descriptors to wait for; not the agent's output unless it `reads`.
    pub(super) fn interests(
        &self,
        reads: bool,
    ) -> impl Iterator<Item = (fn(usize) -> AgentEvent, BorrowedFd<'_>, PollFlags)> {
        type Make = fn(usize) -> AgentEvent;
        let output = self.output.as_ref().filter(|_| reads).map(AsFd::as_fd);
        let exit = self.ended.as_ref().and_then(|(_, exit)| exit.as_ref()).map(AsFd::as_fd);
        let errors = self.errors.as_ref().map(AsFd::as_fd);
        let input = self.input.as_ref().filter(|_| self.is_full()).map(AsFd::as_fd);
        let read = output.or(exit).map(|fd| (AgentEvent::Line as Make, fd, PollFlags::IN));
        let said = errors.map(|fd| (AgentEvent::Said as Make, fd, PollFlags::IN));
        let room = input.map(|fd| (AgentEvent::Room as Make, fd, PollFlags::OUT));
        read.into_iter().chain(said).chain(room)
    }

    /// Whether bytes wait for room.
    pub(super) fn is_full(&self) -> bool {
        self.waiting.left() > 0 && self.input.is_some()
    }

    /// Sends an order, as soon as there is room.
    pub(super) fn send(&mut self, order: &Encoded<Order>) {
        if self.input.is_some() {
            self.waiting.push(self.writer.frame(order));
            self.write();
        }
    }

    /// Writes as much as there is room for.
    pub(super) fn write(&mut self) {
        let Some(input) = &mut self.input else { return };
        if self.waiting.write(|pieces| input.write_vectored(pieces)).is_err() {
            // The end of the output tells that the agent is gone.
            self.waiting.clear();
        }
    }

    /// Reads what the starting program has said on standard error.
    pub(super) fn listen(&mut self) {
        let Some(errors) = &mut self.errors else { return };
        let mut bytes = [0; KEPT];
        match errors.read(&mut bytes) {
            Ok(len @ 1..) => {
                self.said.extend_from_slice(&bytes[..len]);
                self.said.drain(..self.said.len().saturating_sub(KEPT));
            }
            Err(error) if is_passing(&error) => {}
            _ => self.errors = None,
        }
    }

    /// Reads once, and returns whether there may be more.
    pub(super) fn read(&mut self) -> bool {
        let Some(output) = &mut self.output else { return false };
        let mut bytes = vec![0; READ_SIZE];
        match output.read(&mut bytes) {
            Ok(len @ 1..) => {
                self.push(&bytes[..len]);
                return true;
            }
            Err(error) if is_passing(&error) => {}
            _ => {
                self.output = None;
                let exit = pidfd_open(Pid::from_child(&self.child), PidfdFlags::empty()).ok();
                self.ended = Some((Instant::now(), exit));
            }
        }
        false
    }

    fn push(&mut self, bytes: &[u8]) {
        match &mut self.greeting {
            None => self.reader.push(bytes),
            Some(greeting) => greeting.extend_from_slice(bytes),
        }
    }

    /// The next news among the bytes that have been read; an error ends the line.
    pub(super) fn next(&mut self) -> Result<Option<News>, String> {
        if let Some(greeting) = &self.greeting {
            let Some(announced) = announced(greeting) else {
                return match greeting.len() > MOST_GREETING {
                    true => Err("it prints without end before mpjrun answers".to_owned()),
                    false => Ok(None),
                };
            };
            if announced.version != VERSION {
                return Err(format!(
                    "mpjrun {} is installed there, and this is {VERSION}: install the same version on all hosts",
                    printable(announced.version.as_bytes())
                ));
            }
            let rest = greeting[announced.end..].to_vec();
            self.greeting = None;
            self.reader.push(&rest);
        }
        self.reader.take().map_err(|error| format!("refused what came from it: {error}"))
    }

    /// Why the output has ended, if it has. The starting program has some time to end as well, since that tells more.
    pub(super) fn end(&mut self, now: Instant) -> Option<String> {
        let until = self.end_deadline()?;
        let status = self.child.try_wait();
        if matches!(status, Ok(None)) && now < until {
            return None;
        }
        self.ended = None;
        self.listen();
        let starter = &self.starter;
        let end = match status {
            Ok(Some(status)) => format!("{starter} ended ({status})"),
            _ => format!("{starter} closed its output"),
        };
        Some(match &self.greeting {
            Some(_) => format!("no mpjrun has answered there: {end}{}", self.words()),
            None => format!("the line to it ended: {end}{}", self.words()),
        })
    }

    /// When [`AgentLine::end`] knows enough.
    pub(super) fn end_deadline(&self) -> Option<Instant> {
        self.ended.as_ref().map(|(at, _)| *at + END)
    }

    /// Why a host counts as lost that has said nothing for this long.
    pub(super) fn why_silent(&self, silent: Duration) -> String {
        let silent = silent.as_secs_f64();
        match &self.greeting {
            Some(_) => format!(
                "no mpjrun has answered there for {silent:.0} s (--host-timeout){}",
                self.words()
            ),
            None => format!("nothing has come from it for {silent:.0} s (--host-timeout)"),
        }
    }

    /// What the starting program has said last, and a login shell before it.
    fn words(&self) -> String {
        let greeting = self.greeting.as_deref().unwrap_or_default();
        let greeting = &greeting[greeting.len().saturating_sub(KEPT)..];
        let said = [greeting, &self.said].map(printable);
        let said: Vec<String> = said.into_iter().filter(|text| !text.is_empty()).collect();
        if said.is_empty() { String::new() } else { format!("; it said: {}", said.join("; ")) }
    }

    /// Closes the line, and ends the starting program.
    pub(super) fn close(&mut self) {
        self.hang_up();
        (self.output, self.errors, self.ended) = (None, None, None);
        // It may have ended.
        let _ = self.child.kill();
    }

    /// Ends the agent's input, which ends the agent.
    pub(super) fn hang_up(&mut self) {
        self.input = None;
        if self.greeting.is_some() {
            // No agent has answered, and the starting program may wait for something else. It may have ended.
            let _ = self.child.kill();
        }
    }

    /// Waits for the end of the starting program, and kills it at `until`.
    pub(super) fn await_end(&mut self, until: Instant) {
        while matches!(self.child.try_wait(), Ok(None)) {
            if Instant::now() >= until {
                // It may have ended.
                let _ = self.child.kill();
                let _ = self.child.wait();
                return;
            }
            self.discard();
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Reads and drops what still comes, so that the agent need not wait for room.
    fn discard(&mut self) {
        let mut bytes = vec![0; READ_SIZE];
        if let Some(output) = &mut self.output {
            while matches!(output.read(&mut bytes), Ok(1..)) {}
        }
        self.listen();
    }
}

fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock)
}

/// The lines of a text, as one line that can be printed.
fn printable(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let lines: Vec<String> =
        lines.map(|line| line.chars().filter(|it| !it.is_control()).collect()).collect();
    lines.join(" / ")
}

//! The agent: `mpjrun` on another host of a job. It is the half of a launcher that has to be where the ranks are
//! (`LocalRanks`), behind a line. `mpjrun` starts it with [`WORD`], by ssh or in another way.
//!
//! - AE1: the agent prints nothing but what belongs to the line.
//! - AE2: an agent whose line ends, is wrong or is silent for too long kills its ranks and ends; so it does after a
//!   signal that asks it to end. If it is killed, its guard kills the ranks.
//! - AE3: ranks' pipes are read only as fast as the line takes their output.

use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::io::Errno;
use rustix::stdio::{stdin, stdout};
use transport_lapi::bootstrap::control::Observed;
use transport_lapi::bootstrap::control::agents::{HostJob, News, Order, Stream};
use transport_lapi::bootstrap::control::line::{LineReader, LineWriter, Secret, announcement};
use transport_lapi::bootstrap::hosts::{HostPlan, TableWriter};
use transport_lapi::bootstrap::signals::{Signals, keep_children_waitable};
use transport_lapi::bootstrap::spawn::DescriptorLimit;
use transport_lapi::bootstrap::waits::JobView;

use super::agents::{SIGNS, host_job};
use super::here::block_signals;
use super::ranks::AgentEvent;
use super::spawn::{self, Prepared, Started};
use super::{ENDING, Event, Interesting, events};
use crate::LaunchError;
use crate::hang::host_watch::{self, HostWatch};
use crate::hang::{observe, watch};
use crate::host::local::{LocalRanks, RankEvent};
use crate::host::machine::host_name;
use crate::host::orphans::{GIVE_UP, Orphans};
use crate::host::rank::Pauses;
use crate::io::stdin::{InputPipe, empty, with_pipe};

/// The argument that makes `mpjrun` an agent.
pub const WORD: &str = "--agent";

/// Bytes per read.
const READ_SIZE: usize = 64 * 1024;
/// Bytes that wait for the line from which on ranks are not read (AE3).
const CONGESTED: usize = 1 << 20;
/// How long the first order is waited for.
const FIRST: Duration = Duration::from_secs(60);
/// An agent that wakes up this late was stopped, or its machine was.
const STANDSTILL: Duration = Duration::from_secs(1);

/// Runs an agent, and returns its exit code.
pub fn run() -> ExitCode {
    let Some(mut line) = Line::open() else {
        // Nobody is left to tell if this fails.
        let _ = writeln!(
            io::stderr(),
            "mpjrun: {WORD} is for agents, which mpjrun starts on other hosts"
        );
        return ExitCode::from(2);
    };
    match serve(&mut line) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Lost) => ExitCode::FAILURE,
    }
}

/// The line has ended (AE2).
struct Lost;

/// The agent's end of the line.
struct Line {
    reader: LineReader<Order>,
    writer: LineWriter<News>,
    waiting: Vec<u8>,
    silence: Duration,
    heard: Instant,
    told: Instant,
    is_suspended: bool,
    /// The secret that ranks use among themselves.
    secret_of_ranks: [u8; 32],
}

impl Line {
    /// Reads the secret, and announces this agent. `None` if there is no secret.
    fn open() -> Option<Self> {
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
            waiting: announcement(env!("CARGO_PKG_VERSION")),
            silence: FIRST,
            heard: now,
            told: now,
            is_suspended: false,
            secret_of_ranks: secret.of_ranks(),
        };
        line.tell(&News::Hello { host: host_name() });
        Some(line)
    }

    fn tell(&mut self, news: &News) {
        self.told = Instant::now();
        // News are short: the longest is one read of a pipe.
        let _ = self.writer.write(news, &mut self.waiting);
    }

    fn interests(&self, set: &mut Vec<Interesting<'_>>) {
        set.push((Event::Agent(AgentEvent::Line(0)), stdin(), PollFlags::IN));
        if !self.waiting.is_empty() {
            set.push((Event::Agent(AgentEvent::Room(0)), stdout(), PollFlags::OUT));
        }
    }

    /// Writes what the line takes.
    fn write(&mut self) -> Result<(), Lost> {
        while !self.waiting.is_empty() {
            match rustix::io::write(stdout(), &self.waiting) {
                Ok(written) => drop(self.waiting.drain(..written)),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(()),
                Err(_) => return Err(Lost),
            }
        }
        Ok(())
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
    fn next(&mut self) -> Result<Option<Order>, Lost> {
        self.reader.take().map_err(|_| Lost)
    }

    /// Gives a sign of life if it is time, and looks for those of `mpjrun` (AE2).
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

    /// Waits for descriptors, those of the line among them.
    fn wait(
        &mut self,
        others: &[Interesting<'_>],
        until: Option<Instant>,
    ) -> Result<Vec<Event>, Lost> {
        let deadline = until.into_iter().chain([self.next_deadline()]).min();
        let mut set = others.to_vec();
        self.interests(&mut set);
        let ready = events(&set, deadline).map_err(|_| Lost)?;
        let late =
            deadline.map_or(Duration::ZERO, |at| Instant::now().saturating_duration_since(at));
        if late > STANDSTILL {
            self.heard = Instant::now();
        }
        for event in &ready {
            match event {
                Event::Agent(AgentEvent::Line(_)) => self.read()?,
                Event::Agent(AgentEvent::Room(_)) => self.write()?,
                _ => {}
            }
        }
        self.keep_alive()?;
        Ok(ready)
    }

    /// Waits for the next order, before the ranks run and after they are gone.
    fn await_order(&mut self, signals: &Signals) -> Result<Order, Lost> {
        loop {
            if let Some(order) = self.next()? {
                return Ok(order);
            }
            self.wait(&[(Event::Signal, signals.as_fd(), PollFlags::IN)], None)?;
            if asks_to_end(signals) {
                return Err(Lost);
            }
        }
    }
}

/// Whether a signal has come that asks to end. Others mean nothing to an agent.
fn asks_to_end(signals: &Signals) -> bool {
    std::iter::from_fn(|| signals.next_pending()).any(|signal| ENDING.contains(&signal))
}

/// Serves one job.
fn serve(line: &mut Line) -> Result<(), Lost> {
    let limit = DescriptorLimit::raise();
    keep_children_waitable();
    let Ok(signals) = block_signals() else { return Err(Lost) };
    let job = loop {
        if let Order::Prepare(job) = line.await_order(&signals)? {
            break job;
        }
    };
    line.silence = Duration::from_millis(job.silence).max(Duration::from_millis(100));
    let spec = host_job::spec_of(&job);
    let prepared = match enter(&job).and_then(|()| spawn::check(&spec, ranks_of(&job))) {
        Ok(prepared) => prepared,
        Err(error) => return refuse(line, &signals, &error),
    };
    line.tell(&News::Ready);
    while line.await_order(&signals)? != Order::Start {}
    let orphans = Orphans::adopt();
    let started = start(&job, line.secret_of_ranks, &prepared, (&limit, &signals), orphans);
    let (ranks, input, notes) = match started {
        Ok(started) => started,
        Err(error) => return refuse(line, &signals, &error),
    };
    line.tell(&News::Started { pids: ranks.pids(), notes });
    let watch = job.looks.map(|looks| HostWatch::new(Duration::from_micros(looks)));
    let mut agent = Agent { line, ranks, input, pauses: Pauses::default(), watch };
    let served = agent.serve(&signals);
    if served.is_err() {
        agent.abandon();
    }
    agent.ranks.leave();
    served
}

/// Tells why the job cannot start here, and waits for the end of the line.
fn refuse(line: &mut Line, signals: &Signals, error: &LaunchError) -> Result<(), Lost> {
    line.tell(&News::Refused { reason: error.to_string(), code: error.exit_code() });
    loop {
        line.await_order(signals)?;
    }
}

/// Enters the folder of `mpjrun`.
fn enter(job: &HostJob) -> Result<(), LaunchError> {
    let path = PathBuf::from(host_job::text(&job.folder));
    std::env::set_current_dir(&path)
        .map_err(|error| LaunchError::CurrentFolder { path, source: error })
}

/// The ranks of this host.
fn ranks_of(job: &HostJob) -> Vec<usize> {
    let ranks = job.host_of.iter().enumerate();
    ranks.filter(|(_, host)| **host == job.host).map(|(rank, _)| rank).collect()
}

type Begun = (LocalRanks, Option<InputPipe>, Vec<String>);

fn start(
    job: &HostJob,
    secret: [u8; 32],
    prepared: &Prepared<'_>,
    (limit, signals): (&DescriptorLimit, &Signals),
    orphans: Orphans,
) -> Result<Begun, LaunchError> {
    let here = ranks_of(job);
    let reader =
        job.reader.and_then(|reader| here.iter().position(|rank| *rank == reader as usize));
    let (inputs, input) = match reader {
        None => (empty(here.len()), None),
        Some(reader) => {
            let (inputs, pipe) = with_pipe(reader, here.len()).map_err(|source| {
                LaunchError::System { action: "forward standard input", source }
            })?;
            (inputs, Some(pipe))
        }
    };
    let plan = HostPlan { names: job.hosts.clone(), host_of: job.host_of.clone() };
    let contexts = job.contexts as usize;
    let (table, fd) = TableWriter::create(&job.job, &plan, job.host as usize, contexts, secret)?;
    let table_fd = Some(fd.as_fd());
    let started = prepared.start(&job.job, limit, signals.mask_before(), inputs, table_fd)?;
    let Started { ranks, segment } = started;
    let (ranks, note) = LocalRanks::new(ranks, JobView::open(&segment)?, Some(table), orphans);
    let notes = note.into_iter().chain(prepared.lines(&ranks.pids())).collect();
    Ok((ranks, input, notes))
}

/// An agent whose ranks run.
struct Agent<'a> {
    line: &'a mut Line,
    ranks: LocalRanks,
    /// The input of the rank that gets the standard input.
    input: Option<InputPipe>,
    pauses: Pauses,
    /// `None` where deadlocks are ignored.
    watch: Option<HostWatch>,
}

impl Agent<'_> {
    fn serve(&mut self, signals: &Signals) -> Result<(), Lost> {
        while !self.ranks.are_gone() {
            self.turn(signals)?;
        }
        let daemons = self.ranks.end();
        let still = host_watch::last_news(self.ranks.view());
        still.iter().for_each(|still| self.line.tell(still));
        self.line.tell(&News::Over { daemons });
        // The line ends when all hosts have got here.
        while let Ok(order) = self.line.await_order(signals) {
            if let Order::Confirm { round } = order {
                self.line.tell(&News::HasBeenStill { host: 0, round, still: still.is_some() });
            }
        }
        Ok(())
    }

    fn turn(&mut self, signals: &Signals) -> Result<(), Lost> {
        let pauses = match self.line.waiting.len() > CONGESTED {
            true => Pauses { out: true, err: true },
            false => self.pauses,
        };
        let mut set: Vec<Interesting<'_>> = vec![(Event::Signal, signals.as_fd(), PollFlags::IN)];
        let interests = self.ranks.interests(pauses);
        set.extend(interests.map(|(event, fd, flags)| (Event::Rank(event), fd, flags)));
        let room: Option<BorrowedFd<'_>> = self.input.as_ref().and_then(InputPipe::interest);
        set.extend(room.map(|pipe| (Event::Input, pipe, PollFlags::OUT)));
        let look = self.watch.as_ref().map(HostWatch::next_deadline);
        let deadline = self.ranks.next_deadline().into_iter().chain(look).min();
        let mut ready = self.line.wait(&set, deadline)?;
        drop(set);
        ready.sort_by_key(|event| matches!(event, Event::Rank(RankEvent::Exit(_))));
        let mut news = Vec::new();
        for event in ready {
            match event {
                Event::Signal if asks_to_end(signals) => return Err(Lost),
                Event::Rank(event) => self.ranks.handle(event, &mut news),
                Event::Input => self.pass_input_on(),
                _ => {}
            }
        }
        while let Some(order) = self.line.next()? {
            self.obey(order);
        }
        let now = Instant::now();
        self.ranks.turn(now, true, pauses, &mut news);
        if let Some(watch) = &mut self.watch {
            let ranks = &self.ranks;
            watch.look(ranks.view(), |place| ranks.is_gone(place), now, &mut news);
        }
        for news in &news {
            self.line.tell(news);
        }
        self.line.write()
    }

    fn obey(&mut self, order: Order) {
        match order {
            Order::Input { bytes } if bytes.is_empty() => self.input = None,
            Order::Input { bytes } => {
                self.input.iter_mut().for_each(|input| input.push(bytes.clone()));
                if self.input.is_none() {
                    self.line.tell(&News::InputTaken { takes_more: false });
                }
            }
            Order::Congested { stream: Stream::Out, pauses } => self.pauses.out = pauses,
            Order::Congested { stream: Stream::Err, pauses } => self.pauses.err = pauses,
            Order::Suspended { suspended } => self.line.is_suspended = suspended,
            Order::Look { number, asks } => self.look(number, asks),
            Order::Confirm { round } => self.watch.iter_mut().for_each(|watch| watch.ask(round)),
            order => self.ranks.obey(&order),
        }
    }

    /// Tells what the ranks do, and asks them for their queues if it `asks`.
    fn look(&mut self, number: u64, asks: bool) {
        let view = self.ranks.view();
        let seen = observe::snapshot(view, watch::look(view), &self.ranks.pids());
        for (place, task) in self.ranks.tasks().enumerate() {
            let state = seen.rank(place).state().cloned();
            let (activity, doubt) = (seen.activity(place), seen.doubt(place));
            let rank = Box::new(Observed { state, activity, doubt });
            self.line.tell(&News::Seen { task, number, at_nanos: seen.at, seen: rank });
            if asks {
                view.inquire(place);
            }
        }
    }

    /// Writes input into the rank's pipe.
    fn pass_input_on(&mut self) {
        let Some(input) = &mut self.input else { return };
        let takes_more = input.write();
        if !takes_more {
            self.input = None;
        }
        if self.input.as_ref().is_none_or(|input| input.interest().is_none()) {
            self.line.tell(&News::InputTaken { takes_more });
        }
    }

    /// Ends the ranks of a job that nobody watches any more (AE2).
    fn abandon(&mut self) {
        self.ranks.kill();
        let until = Instant::now() + GIVE_UP;
        let mut unheard = Vec::new();
        while !self.ranks.are_gone() && Instant::now() < until {
            let set: Vec<Interesting<'_>> = self
                .ranks
                .interests(Pauses::default())
                .map(|(event, fd, flags)| (Event::Rank(event), fd, flags))
                .collect();
            let deadline = self.ranks.next_deadline().map_or(until, |at| at.min(until));
            let ready = events(&set, Some(deadline)).unwrap_or_default();
            drop(set);
            for event in ready {
                if let Event::Rank(event) = event {
                    self.ranks.handle(event, &mut unheard);
                }
            }
            self.ranks.turn(Instant::now(), false, Pauses::default(), &mut unheard);
            unheard.clear();
        }
        self.ranks.end();
    }
}

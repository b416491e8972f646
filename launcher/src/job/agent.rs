//! The agent: `mpjrun` on another host of a job. It is the half of a launcher that has to be where the ranks are
//! (`LocalRanks`), behind a line. `mpjrun` starts it with [`WORD`], by ssh or in another way. In a job of many hosts it
//! starts agents itself (`Branches`), passes orders on to them, and their news upwards.
//!
//! - AE1: the agent prints nothing but what belongs to the line.
//! - AE2: an agent whose line ends, is wrong or is silent for too long kills its ranks, ends the lines to the agents
//!   below it, and ends; so it does after a signal that asks it to end. If it is killed, its guard kills the ranks, and
//!   the lines end by themselves.
//! - AE3: ranks' pipes, and the lines from below, are read only as fast as the line takes their output, and the line only
//!   as fast as those below take orders.
//! - AE4: what every host tells once is told once for the whole branch: that it is ready, that its ranks were started,
//!   their addresses, and that they are gone. So an agent takes as many such messages as it has started agents.

mod copies;
mod line;
mod records;

use std::io::{self, Write};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::ExitCode;
use std::rc::Rc;
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustix::process::Signal;
use transport_lapi::TaskId;
use transport_lapi::bootstrap::control::agents::{
    HostJob, HostPlace, HostStart, News, Order, Pause, Stream,
};
use transport_lapi::bootstrap::control::{ControlMessage, Observed};
use transport_lapi::bootstrap::hosts::{HostPlan, TableWriter};
use transport_lapi::bootstrap::signals::{Signals, keep_children_waitable};
use transport_lapi::bootstrap::spawn::DescriptorLimit;
use transport_lapi::bootstrap::trace::{Clock, ticks};
use transport_lapi::bootstrap::waits::JobView;

use super::agents::branches::{Branches, Stage};
use super::agents::{Addresses, host_job};
use super::here::block_signals;
use super::spawn::{self, Prepared, Started};
use super::{ENDING, Event, Interesting, TraceChoice, events};
use crate::LaunchError;
use crate::hang::host_watch::{self, HostWatch};
use crate::hang::{observe, watch};
use crate::host::local::{LocalRanks, RankEvent};
use crate::host::orphans::{GIVE_UP, Orphans};
use crate::host::process_table::has_thread;
use crate::host::rank::Pauses;
use crate::io::stdin::{InputPipe, empty, with_pipe};
use crate::trace::Memories;
use copies::Copies;
use line::{Line, Lost};
use records::Parts;

/// The argument that makes `mpjrun` an agent.
pub const WORD: &str = "--agent";

/// Hosts whose starts are told in one message. The notes of their ranks stay far from its limit.
const STARTS: usize = 64;

/// Runs an agent, and returns its exit code.
pub fn run() -> ExitCode {
    let Some(line) = Line::open() else {
        // Nobody is left to tell if this fails.
        let _ = writeln!(
            io::stderr(),
            "mpjrun: {WORD} is for agents, which mpjrun starts on other hosts"
        );
        return ExitCode::from(2);
    };
    match serve(line) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Lost) => ExitCode::FAILURE,
    }
}

/// Serves one job.
fn serve(mut line: Line) -> Result<(), Lost> {
    let limit = DescriptorLimit::raise();
    keep_children_waitable();
    let Ok(signals) = block_signals() else { return Err(Lost) };
    let (place, job) = await_job(&mut line, &signals)?;
    let entered = enter(&job);
    let below = if entered.is_ok() { place.below } else { 0 };
    let mut agent = Agent::call(line, signals, &limit, &job, HostPlace { below, ..place });
    let served = match entered {
        Ok(()) => agent.serve(&job, &limit),
        Err(error) => agent.refuse(&error),
    };
    if served.is_err() {
        agent.abandon();
    }
    if let Some(here) = agent.here {
        here.ranks.leave();
    }
    served
}

/// Waits for the job.
fn await_job(line: &mut Line, signals: &Signals) -> Result<(HostPlace, Rc<HostJob>), Lost> {
    let mut own = None;
    loop {
        while let Some(order) = line.next()? {
            match (order, own) {
                (Order::Place { place, silence }, _) => {
                    own = Some(place);
                    let silence = Duration::from_millis(silence).max(Duration::from_millis(100));
                    line.expect_signs(silence);
                }
                (Order::Prepare(job), Some(place)) => return Ok((place, job)),
                _ => {}
            }
        }
        line.wait(true, &[(Event::Signal, signals.as_fd(), PollFlags::IN)], None)?;
        if asks_to_end(signals) {
            return Err(Lost);
        }
    }
}

/// Whether a signal has come that asks to end. Others mean nothing to an agent.
fn asks_to_end(signals: &Signals) -> bool {
    std::iter::from_fn(|| signals.next_pending()).any(|signal| ENDING.contains(&signal))
}

/// Enters the folder of `mpjrun`.
fn enter(job: &HostJob) -> Result<(), LaunchError> {
    let path = PathBuf::from(host_job::text(&job.folder));
    std::env::set_current_dir(&path)
        .map_err(|error| LaunchError::CurrentFolder { path, source: error })
}

/// The ranks of a host.
fn ranks_of(job: &HostJob, host: u32) -> Vec<usize> {
    let ranks = job.host_of.iter().enumerate();
    ranks.filter(|(_, of)| **of == host).map(|(rank, _)| rank).collect()
}

/// Why the job cannot start on this host.
fn refusal(host: u32, error: &LaunchError) -> News {
    let remedy = match error {
        LaunchError::NotFound { .. } => "; install it there, or let mpjrun --copy send it",
        _ => "",
    };
    News::Refused { host, reason: format!("{error}{remedy}"), code: error.exit_code() }
}

/// Starts the ranks of this `host`. Returns notes for the user, too.
fn start(
    (job, host): (&HostJob, u32),
    prepared: &Prepared<'_>,
    (limit, signals): (&DescriptorLimit, &Signals),
) -> Result<(Here, Vec<String>), LaunchError> {
    let orphans = Orphans::adopt();
    let here = ranks_of(job, host);
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
    let (table, fd) =
        TableWriter::create(&job.job, &plan, host as usize, contexts, job.secret_of_ranks)?;
    let table_fd = Some(fd.as_fd());
    let started = prepared.start(&job.job, limit, signals.mask_before(), inputs, table_fd)?;
    let Started { ranks, segment, .. } = started;
    let (ranks, note) = LocalRanks::new(ranks, JobView::open(&segment)?, Some(table), orphans);
    let notes = note.into_iter().chain(prepared.lines(&ranks.pids())).collect();
    let watch = HostWatch::of(job, host);
    Ok((Here { ranks, input, watch, last: None }, notes))
}

/// The ranks of this host, once they run.
struct Here {
    ranks: LocalRanks,
    /// The input of the rank that gets the standard input.
    input: Option<InputPipe>,
    /// `None` if nothing is looked for, and once all ranks are gone.
    watch: Option<HostWatch>,
    /// Once all ranks are gone, whether that was told as a stillness.
    last: Option<bool>,
}

/// An agent that knows its job.
struct Agent {
    line: Line,
    signals: Signals,
    here: Option<Here>,
    /// For which streams the reader of the output pauses.
    pauses: Pauses,
    /// The agents that it has started.
    branches: Branches,
    /// The programs that are sent to this host.
    copies: Copies,
    /// Whether the ranks may start.
    may_start: bool,
    /// The host of the rank that gets the standard input.
    reader: Option<u32>,
    /// The name and the place of this host.
    own: (String, u32),
    /// Number of the hosts of the branch.
    hosts: usize,
    /// What has been told by this host and those below, and not yet told upwards (AE4).
    started: Vec<HostStart>,
    addresses: Addresses,
    daemons: Vec<String>,
    /// Where the ranks of this host record their calls, if they do.
    memories: Option<Rc<Memories>>,
    /// What of that is left to be told, once it was asked for.
    records: Option<Parts>,
}

impl Agent {
    /// Calls the agents for the hosts below this `place`. They start while this host looks at the job.
    fn call(
        line: Line,
        signals: Signals,
        limit: &DescriptorLimit,
        job: &Rc<HostJob>,
        HostPlace { host, below }: HostPlace,
    ) -> Self {
        let branch = host..=host + below;
        let name = job.hosts.get(host as usize).cloned().unwrap_or_default();
        let mut news = Vec::new();
        let first = host as usize + 1;
        let (hosts, before) = (first..first + below as usize, (limit, signals.mask_before()));
        let branches = Branches::call(job, hosts, Some(host as usize), before, &mut news);
        let mut agent = Self {
            line,
            signals,
            here: None,
            pauses: Pauses::default(),
            branches,
            copies: Copies::default(),
            may_start: false,
            reader: job.reader.and_then(|rank| job.host_of.get(rank as usize).copied()),
            own: (name, host),
            hosts: 1 + below as usize,
            started: Vec::new(),
            addresses: Addresses::of(job.host_of.iter().filter(|it| branch.contains(it)).count()),
            daemons: Vec::new(),
            memories: None,
            records: None,
        };
        agent.pass_all_on(news);
        agent
    }

    /// Serves the job until all ranks of the branch are gone and the line has ended.
    fn serve(&mut self, job: &HostJob, limit: &DescriptorLimit) -> Result<(), Lost> {
        self.copies = match Copies::of(job) {
            Ok(copies) => copies,
            Err(error) => return self.refuse(&error),
        };
        self.turn_until(|agent| agent.copies.are_complete())?;
        let spec = host_job::spec_of(job, &self.copies.paths());
        let mut prepared = match spawn::check(&spec, ranks_of(job, self.own.1)) {
            Ok(prepared) => prepared,
            Err(error) => return self.refuse(&error),
        };
        let record = |memory| {
            let choice =
                TraceChoice { file: None, memory, newest: job.newest, details: job.details };
            Memories::begin(&choice).map(Rc::new)
        };
        self.memories = match job.records.map(record).transpose() {
            Ok(memories) => memories,
            Err(error) => return self.refuse(&error),
        };
        prepared.record(self.memories.clone());
        self.turn_until(|agent| agent.branches.have_reached(Stage::Ready))?;
        self.line.tell(&News::Ready);
        self.turn_until(|agent| agent.may_start)?;
        let (mut here, notes) = match start((job, self.own.1), &prepared, (limit, &self.signals)) {
            Ok(started) => started,
            Err(error) => return self.refuse(&error),
        };
        here.ranks.note_footprints(self.memories.clone());
        self.started.push(HostStart { host: self.own.1, pids: here.ranks.pids(), notes });
        self.here = Some(here);
        self.turn_until(|agent| agent.started.len() >= agent.hosts)?;
        let started = std::mem::take(&mut self.started);
        for (at, hosts) in started.chunks(STARTS).enumerate() {
            let more = (at + 1) * STARTS < started.len();
            self.line.tell(&News::Started { hosts: hosts.to_vec(), more });
        }
        self.turn_until(|agent| agent.here.as_ref().is_none_or(|here| here.ranks.are_gone()))?;
        let daemons = self.here.as_mut().map(|here| here.ranks.end()).unwrap_or_default();
        if let Some(here) = &mut self.here {
            let answers = here.watch.take().map(HostWatch::last_answers).unwrap_or_default();
            let still = host_watch::last_news(here.ranks.view(), self.own.1);
            here.last = Some(still.is_some());
            answers.iter().chain(&still).for_each(|news| self.line.tell(news));
        }
        let daemons = daemons.iter().map(|daemon| format!("{daemon} on host {}", self.own.0));
        self.daemons.extend(daemons);
        self.turn_until(|agent| agent.branches.have_reached(Stage::Over))?;
        self.line.tell(&News::Over { daemons: std::mem::take(&mut self.daemons) });
        // The line ends when all hosts have got here.
        while self.turn().is_ok() {}
        Ok(())
    }

    /// Tells why the job cannot start here, and waits for the end of the line.
    fn refuse(&mut self, error: &LaunchError) -> Result<(), Lost> {
        self.line.tell(&refusal(self.own.1, error));
        self.turn_until(|_| false)
    }

    fn turn_until(&mut self, is_reached: impl Fn(&Self) -> bool) -> Result<(), Lost> {
        while !is_reached(self) {
            self.turn()?;
        }
        Ok(())
    }

    /// Waits for events, and handles them.
    fn turn(&mut self) -> Result<(), Lost> {
        self.line.write()?;
        // What the line takes now, it goes on to write when there is room.
        self.tell_records();
        let is_congested = self.line.is_congested();
        let all = Pauses { out: true, err: true };
        let pauses = if is_congested { all } else { self.pauses };
        let mut set: Vec<Interesting<'_>> =
            vec![(Event::Signal, self.signals.as_fd(), PollFlags::IN)];
        self.branches.interests(!is_congested, &mut set);
        let mut deadline = self.branches.next_deadline();
        if let Some(here) = &self.here {
            let interests = here.ranks.interests(pauses);
            set.extend(interests.map(|(event, fd, flags)| (Event::Rank(event), fd, flags)));
            let room = here.input.as_ref().and_then(InputPipe::interest);
            set.extend(room.map(|pipe| (Event::Input, pipe, PollFlags::OUT)));
            let look = here.watch.as_ref().map(HostWatch::next_deadline);
            deadline = deadline.into_iter().chain(here.ranks.next_deadline()).chain(look).min();
        }
        let reads = self.branches.take_orders();
        let mut ready = self.line.wait(reads, &set, deadline)?;
        drop(set);
        ready.sort_by_key(|event| matches!(event, Event::Rank(RankEvent::Exit(_))));
        let mut news = Vec::new();
        for event in ready {
            match (event, &mut self.here) {
                (Event::Signal, _) if asks_to_end(&self.signals) => return Err(Lost),
                (Event::Agent(event), _) => self.branches.handle(event, &mut news),
                (Event::Rank(event), Some(here)) => here.ranks.handle(event, &mut news),
                (Event::Input, Some(here)) => here.pass_input_on(&mut news),
                _ => {}
            }
        }
        while self.branches.take_orders() {
            let Some(order) = self.line.next()? else { break };
            self.obey(order, &mut news);
        }
        let now = Instant::now();
        self.branches.turn(now, !is_congested, &mut news);
        if let Some(here) = &mut self.here {
            here.ranks.turn(now, true, pauses, &mut news);
            if let Some(watch) = &mut here.watch {
                let ranks = &here.ranks;
                let stage = |place| match (ranks.is_gone(place), ranks.has_finished(place)) {
                    (true, _) => watch::Stage::Ended,
                    (false, true) => watch::Stage::Finished,
                    (false, false) => watch::Stage::Running,
                };
                watch.look(ranks.view(), stage, now, &mut news);
            }
        }
        self.pass_all_on(news);
        self.tell_records();
        Ok(())
    }

    /// Tells news upwards; those of AE4 when all hosts of the branch have told them.
    fn pass_all_on(&mut self, news: Vec<News>) {
        for told in news {
            match told {
                News::Message { task, message: ControlMessage::Endpoints { endpoints } } => {
                    self.addresses.take(task, endpoints);
                }
                News::Addresses { addresses } => {
                    addresses.into_iter().for_each(|(task, its)| self.addresses.take(task, its));
                }
                News::Started { hosts, .. } => self.started.extend(hosts),
                News::Over { daemons } => self.daemons.extend(daemons),
                News::Ready => {}
                told => self.line.tell(&told),
            }
        }
        while !self.line.is_congested() {
            let Some(batch) = self.addresses.next_batch() else { return };
            self.line.tell(&News::Addresses { addresses: batch.ranks });
        }
    }

    /// Passes an order on to the agents below, and obeys it.
    fn obey(&mut self, order: Order, news: &mut Vec<News>) {
        match (&order, self.reader) {
            (Order::Place { .. } | Order::Prepare(_) | Order::Alive, _) => return,
            (Order::Suspended { suspended }, _) => return self.line.suspended(*suspended),
            (Order::Input { .. }, Some(host)) if host != self.own.1 => {
                return self.branches.send_towards(host, &order);
            }
            (Order::AskClock { host, .. }, _) if *host != self.own.1 => {
                return self.branches.send_towards(*host, &order);
            }
            (Order::Input { .. } | Order::AskClock { .. }, _) => {}
            (order, _) => self.branches.send_all(order),
        }
        match (order, &mut self.here) {
            (Order::Start, _) => self.may_start = true,
            (Order::Congested { stream: Stream::Out, pauses }, _) => self.pauses.out = pauses,
            (Order::Congested { stream: Stream::Err, pauses }, _) => self.pauses.err = pauses,
            (Order::Copy { copy, bytes }, _) => {
                let taken = self.copies.take(copy, &bytes);
                news.extend(taken.err().map(|error| refusal(self.own.1, &error)));
            }
            (Order::AskClock { round, .. }, _) => self.tell_clock(round),
            (Order::SendRecords, _) => {
                let memories = self.memories.as_ref().map(|it| it.take()).unwrap_or_default();
                self.records = Some(Parts::of(self.own.1, memories));
            }
            (Order::Confirm { round }, Some(Here { last: Some(still), .. })) => {
                news.push(News::HasBeenStill { host: self.own.1, round, still: *still });
            }
            (Order::AskPause { round }, Some(Here { last: Some(_), .. })) => {
                news.push(News::Paused { host: self.own.1, round, pause: Pause::OVER });
            }
            (order, Some(here)) => here.obey(order, news),
            (_, None) => {}
        }
    }

    /// Tells what the clock of the records shows now.
    fn tell_clock(&mut self, round: u64) {
        let Some(clock) = self.memories.as_ref().map(|memories| memories.clock()) else { return };
        let (host, is_counter) = (self.own.1, clock == Clock::Counter);
        self.line.tell(&News::Clock { host, round, ticks: ticks(clock), is_counter });
    }

    /// Tells as much of the records as the line takes.
    fn tell_records(&mut self) {
        while let Some(parts) = self.records.as_mut().filter(|_| !self.line.is_congested()) {
            let told = parts.next();
            self.line.tell(&told);
            if matches!(told, News::RecordsTold { .. }) {
                self.records = None;
            }
        }
    }

    /// Ends the ranks of a job that nobody watches any more (AE2).
    fn abandon(&mut self) {
        self.branches.hang_up();
        let Some(Here { ranks, .. }) = &mut self.here else { return };
        ranks.kill();
        let until = Instant::now() + GIVE_UP;
        let mut unheard = Vec::new();
        while !ranks.are_gone() && Instant::now() < until {
            let set: Vec<Interesting<'_>> = ranks
                .interests(Pauses::default())
                .map(|(event, fd, flags)| (Event::Rank(event), fd, flags))
                .collect();
            let deadline = ranks.next_deadline().map_or(until, |at| at.min(until));
            let ready = events(&set, Some(deadline)).unwrap_or_default();
            drop(set);
            for event in ready {
                if let Event::Rank(event) = event {
                    ranks.handle(event, &mut unheard);
                }
            }
            ranks.turn(Instant::now(), false, Pauses::default(), &mut unheard);
            unheard.clear();
        }
        ranks.end();
    }
}

impl Here {
    fn obey(&mut self, order: Order, news: &mut Vec<News>) {
        match order {
            Order::Input { bytes } if bytes.is_empty() => self.input = None,
            Order::Input { bytes } => match &mut self.input {
                Some(input) => input.push(bytes),
                None => news.push(News::InputTaken { takes_more: false }),
            },
            Order::Look { number, asks, threads } => self.look(number, asks, &threads, news),
            Order::Confirm { round } => self.watch.iter_mut().for_each(|watch| watch.ask(round)),
            Order::AskPause { round } => {
                self.watch.iter_mut().for_each(|watch| watch.ask_pause(round));
            }
            order => {
                self.ranks.obey(&order);
                if matches!(order, Order::Signal { signal, .. } if signal == Signal::CONT.as_raw())
                {
                    // The job was suspended.
                    self.watch.iter_mut().for_each(HostWatch::start_anew);
                }
            }
        }
    }

    /// Tells what the ranks do, and which of these `threads` are gone, and asks them for their queues if it `asks`.
    fn look(&mut self, number: u64, asks: bool, threads: &[(TaskId, i32)], news: &mut Vec<News>) {
        let (view, pids) = (self.ranks.view(), self.ranks.pids());
        let seen = observe::snapshot(view, watch::look(view), &pids);
        for (place, task) in self.ranks.tasks().enumerate() {
            let state = seen.rank(place).state().cloned();
            let (activity, doubt) = (seen.activity(place), seen.doubt(place));
            let pid = state.as_ref().filter(|it| it.is_there() && it.is_here).map(|it| it.pid);
            let pid = pid.unwrap_or(pids[place]);
            let of_rank = threads.iter().filter(|(of, _)| *of == task).map(|(_, thread)| *thread);
            let gone = of_rank.filter(|thread| !has_thread(pid, *thread)).collect();
            let usage = seen.usage(place);
            let rank = Box::new(Observed { state, activity, doubt, usage, gone });
            news.push(News::Seen { task, number, at_nanos: seen.at, seen: rank });
            if asks {
                view.inquire(place);
            }
        }
        if asks {
            self.watch.iter_mut().for_each(HostWatch::wake);
        }
    }

    /// Writes input into the rank's pipe.
    fn pass_input_on(&mut self, news: &mut Vec<News>) {
        let Some(input) = &mut self.input else { return };
        let takes_more = input.write();
        if !takes_more {
            self.input = None;
        }
        if self.input.as_ref().is_none_or(|input| input.interest().is_none()) {
            news.push(News::InputTaken { takes_more });
        }
    }
}

//! The agents of a job on several hosts: `mpjrun`'s half of their lines. [`super::away`] starts a job over them, and the
//! poll loop then sees them as its [`Ranks`].
//!
//! - AG1: no clock of another host counts. What an agent tells happened when it was read, so the order in which this
//!   process learns of failures is their order.
//! - AG2: an agent speaks for the ranks of its host only. What it tells of others is dropped.
//! - AG3: a host whose line ends, carries anything that does not prove to come from the job, or is silent for too long
//!   is lost, with all its ranks. An agent that loses its line kills its ranks.
//! - AG4: nothing here waits for an agent, except at the end of the job, for [`GIVE_UP`].

mod agent_line;
pub(super) mod host_job;
mod starter;

use std::time::{Duration, Instant};

use transport_lapi::TaskId;
use transport_lapi::bootstrap::control::ControlMessage;
use transport_lapi::bootstrap::control::agents::{Ending, HostJob, News, Order, Stream};
use transport_lapi::bootstrap::control::line::Secret;
use transport_lapi::bootstrap::monotonic_nanos;

use super::hosts::Hosts;
use super::ranks::{AgentEvent, Ranks};
use super::{Event, Interesting, events, task_of};
use crate::LaunchError;
use crate::host::orphans::GIVE_UP;
use crate::host::rank::Pauses;
use agent_line::{AgentLine, Heard};

/// How many signs of life a host may miss before it counts as lost.
pub(super) const SIGNS: u32 = 8;

/// Ranks whose addresses are told in one order.
const BATCH: usize = 1024;

/// How far an agent is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
enum Stage {
    /// It was called, and has not answered yet.
    Called,
    /// It was told about the job.
    Told,
    /// It can start its ranks.
    Ready,
    /// It has started its ranks.
    Started,
    /// Its ranks are gone.
    Over,
    /// It is out of reach.
    Lost,
}

struct Agent {
    line: AgentLine,
    stage: Stage,
    /// Its ranks that are not gone.
    left: Vec<TaskId>,
    /// The processes of its ranks, in order.
    pids: Vec<u32>,
    heard: Instant,
    told: Instant,
}

/// The addresses of the contexts of ranks.
struct Addresses {
    known: Vec<Option<Vec<Vec<u8>>>>,
    /// Number of ranks whose addresses are not known.
    missing: usize,
}

impl Addresses {
    fn new(ranks: usize) -> Self {
        Self { known: vec![None; ranks], missing: ranks }
    }

    /// Takes those of one rank, and returns whether they are the last ones.
    fn take(&mut self, task: TaskId, addresses: Vec<Vec<u8>>) -> bool {
        match self.known.get_mut(task as usize) {
            Some(known @ None) => *known = Some(addresses),
            _ => return false,
        }
        self.missing -= 1;
        self.missing == 0
    }
}

/// The agents of a job.
pub(super) struct Agents {
    agents: Vec<Agent>,
    names: Vec<String>,
    /// The host of each rank.
    of_rank: Vec<usize>,
    silence: Duration,
    /// What is told to an agent when it has answered.
    jobs: Vec<Option<Box<HostJob>>>,
    pauses: Pauses,
    /// The host of the rank that gets the standard input.
    reader: Option<usize>,
    /// Notes of the agents about their starts.
    pub(super) notes: Vec<String>,
    /// Why the job cannot start.
    refusal: Option<LaunchError>,
    daemons: Vec<String>,
    /// The addresses of the ranks that have told them, until all have.
    addresses: Addresses,
}

impl Agents {
    /// Calls an agent on each host, for these `jobs`, one for each host.
    ///
    /// # Errors
    /// [`LaunchError::Host`] if a program that starts agents cannot be started.
    pub(super) fn call(hosts: &Hosts, jobs: Vec<HostJob>) -> Result<Self, LaunchError> {
        let system = |action| move |source| LaunchError::System { action, source };
        let secret = Secret::random().map_err(system("make a secret for the job"))?;
        let reader = jobs.first().and_then(|job| job.reader);
        let now = Instant::now();
        let mut agents = Vec::with_capacity(hosts.names.len());
        for (place, name) in hosts.names.iter().enumerate() {
            let command = starter::command(&hosts.starter, name)
                .map_err(system("find the path of mpjrun"))?;
            let line = AgentLine::start(command, &secret).map_err(|reason| LaunchError::Host {
                host: name.clone(),
                reason,
                code: 125,
            })?;
            let left = hosts.ranks_of(place).map(|rank| rank as TaskId).collect();
            let stage = Stage::Called;
            agents.push(Agent { line, stage, left, pids: Vec::new(), heard: now, told: now });
        }
        Ok(Self {
            agents,
            names: hosts.names.clone(),
            of_rank: hosts.of_rank.clone(),
            silence: hosts.silence,
            jobs: jobs.into_iter().map(|job| Some(Box::new(job))).collect(),
            pauses: Pauses::default(),
            reader: reader.and_then(|rank| hosts.of_rank.get(rank as usize).copied()),
            notes: Vec::new(),
            refusal: None,
            daemons: Vec::new(),
            addresses: Addresses::new(hosts.of_rank.len()),
        })
    }

    /// Whether all ranks have been started.
    pub(super) fn have_started(&self) -> bool {
        self.agents.iter().all(|agent| agent.stage >= Stage::Started)
    }

    /// Takes the reason why the job cannot start, if there is one.
    pub(super) fn take_refusal(&mut self) -> Option<LaunchError> {
        self.refusal.take()
    }

    /// The host and the process of each rank, if it was started.
    pub(super) fn processes(&self) -> impl Iterator<Item = (usize, Option<u32>)> {
        let mut pids: Vec<_> = self.agents.iter().map(|agent| agent.pids.iter()).collect();
        self.of_rank.iter().map(move |&host| (host, pids[host].next().copied()))
    }

    fn send(&mut self, place: usize, order: &Order) {
        let agent = &mut self.agents[place];
        agent.told = Instant::now();
        agent.line.send(order);
    }

    fn send_all(&mut self, order: &Order) {
        (0..self.agents.len()).for_each(|place| self.send(place, order));
    }

    /// Reads what an agent has told.
    fn receive(&mut self, place: usize, news: &mut Vec<News>) {
        loop {
            let agent = &mut self.agents[place];
            match agent.line.receive() {
                Heard::Nothing => return,
                Heard::News(told) => {
                    agent.heard = Instant::now();
                    self.hear(place, told, news);
                }
                Heard::End(reason) => return self.lose(place, reason, news),
            }
        }
    }

    fn hear(&mut self, place: usize, told: News, news: &mut Vec<News>) {
        let stage = self.agents[place].stage;
        match told {
            News::Hello { .. } if stage == Stage::Called => {
                self.agents[place].stage = Stage::Told;
                if let Some(job) = self.jobs[place].take() {
                    self.send(place, &Order::Prepare(job));
                }
            }
            News::Ready if stage == Stage::Told => {
                self.agents[place].stage = Stage::Ready;
                if self.agents.iter().all(|agent| agent.stage == Stage::Ready) {
                    self.send_all(&Order::Start);
                }
            }
            News::Refused { reason, code } => self.refuse(place, reason, code),
            News::Started { pids, notes } if stage == Stage::Ready => {
                let agent = &mut self.agents[place];
                agent.stage = Stage::Started;
                // Ranks that were not started, since one before them had failed, are gone.
                let missing = agent.left.split_off(pids.len().min(agent.left.len()));
                agent.pids = pids;
                news.extend(missing.into_iter().map(|task| News::Gone { task }));
                let host = &self.names[place];
                self.notes.extend(notes.iter().map(|note| format!("host {host}: {note}")));
            }
            News::Over { daemons } => {
                self.agents[place].stage = Stage::Over;
                let host = &self.names[place];
                self.daemons
                    .extend(daemons.iter().map(|daemon| format!("{daemon} on host {host}")));
            }
            News::Still { sent, received, .. } => {
                news.push(News::Still { host: place as u32, sent, received });
            }
            News::HasBeenStill { round, still, .. } => {
                news.push(News::HasBeenStill { host: place as u32, round, still });
            }
            News::InputTaken { .. } if self.reader == Some(place) => news.push(told),
            told => self.hear_of_rank(place, told, news),
        }
    }

    /// Passes news of a rank on (AG1, AG2).
    fn hear_of_rank(&mut self, place: usize, told: News, news: &mut Vec<News>) {
        let Some(task) = task_of(&told) else { return };
        let now = monotonic_nanos();
        if self.of_rank.get(task as usize) != Some(&place) {
            return;
        }
        if let News::Message { message: ControlMessage::Endpoints { addresses }, .. } = told {
            return self.take_addresses(task, addresses);
        }
        news.push(match told {
            News::Message { message, .. } => match message.check() {
                Ok(()) => News::Message { task, message: message.dated(now) },
                Err(damage) => News::Damaged { task, damage: damage.to_string() },
            },
            News::Ended { ending, .. } => News::Ended { task, ending, at_nanos: now },
            News::ProgramEnded { .. } => News::ProgramEnded { task, at_nanos: now },
            News::Gone { .. } => {
                self.agents[place].left.retain(|left| *left != task);
                News::Gone { task }
            }
            News::Seen { number, at_nanos, seen, .. } => {
                let seen = Box::new(seen.dated(at_nanos, now));
                News::Seen { task, number, at_nanos: now, seen }
            }
            told => told,
        });
    }

    /// Takes the addresses of a rank, and tells all hosts those of all ranks when they are known.
    fn take_addresses(&mut self, task: TaskId, addresses: Vec<Vec<u8>>) {
        if !self.addresses.take(task, addresses) {
            return;
        }
        let all = std::mem::take(&mut self.addresses.known);
        for (first, batch) in (0..).step_by(BATCH).zip(all.chunks(BATCH)) {
            let addresses = batch.iter().flatten().cloned().collect();
            self.send_all(&Order::Addresses { first, addresses });
        }
        self.send_all(&Order::AddressesComplete);
    }

    fn refuse(&mut self, place: usize, reason: String, code: u8) {
        let host = self.names[place].clone();
        self.refusal.get_or_insert(LaunchError::Host { host, reason, code });
    }

    /// Gives up a host (AG3).
    fn lose(&mut self, place: usize, reason: String, news: &mut Vec<News>) {
        let agent = &mut self.agents[place];
        let stage = std::mem::replace(&mut agent.stage, Stage::Lost);
        agent.line.close();
        match stage {
            Stage::Over | Stage::Lost => return,
            Stage::Started => {}
            _ => return self.refuse(place, reason, 125),
        }
        let left = std::mem::take(&mut agent.left);
        news.push(News::Lost { host: place as u32, reason });
        let at_nanos = monotonic_nanos();
        for task in left {
            let ends = [Stream::Out, Stream::Err];
            news.extend(ends.map(|stream| News::OutputEnded { task, stream }));
            news.push(News::Ended { task, ending: Ending::Lost, at_nanos });
            news.push(News::Gone { task });
        }
    }

    /// Sends signs of life, and looks for those of agents (AG3).
    fn keep_alive(&mut self, now: Instant, news: &mut Vec<News>) {
        for place in 0..self.agents.len() {
            let agent = &self.agents[place];
            if agent.stage >= Stage::Over {
                continue;
            }
            let silent = now.saturating_duration_since(agent.heard);
            if silent > self.silence {
                let reason = agent.line.why_silent(silent);
                self.lose(place, reason, news);
            } else if now.saturating_duration_since(agent.told) >= self.silence / SIGNS {
                self.send(place, &Order::Alive);
            }
        }
    }

    /// The descriptors of the lines.
    fn lines<'a>(&'a self, set: &mut Vec<Interesting<'a>>) {
        for (place, agent) in self.agents.iter().enumerate() {
            let interests = agent.line.interests();
            set.extend(interests.map(|(event, fd, flags)| (Event::Agent(event(place)), fd, flags)));
        }
    }
}

impl Ranks for Agents {
    fn interests<'a>(&'a self, _: Pauses, set: &mut Vec<Interesting<'a>>) {
        self.lines(set);
    }

    fn handle(&mut self, event: Event, news: &mut Vec<News>) {
        match event {
            Event::Agent(AgentEvent::Line(place)) => self.receive(place, news),
            Event::Agent(AgentEvent::Room(place)) => self.agents[place].line.write(),
            Event::Agent(AgentEvent::Said(place)) => self.agents[place].line.listen(),
            _ => {}
        }
    }

    fn take_what_has_come(&mut self, news: &mut Vec<News>) {
        for place in 0..self.agents.len() {
            if self.agents[place].stage < Stage::Lost {
                self.receive(place, news);
            }
        }
    }

    fn turn(&mut self, now: Instant, _: bool, pauses: Pauses, news: &mut Vec<News>) {
        for stream in [Stream::Out, Stream::Err] {
            if pauses.of(stream) != self.pauses.of(stream) {
                self.send_all(&Order::Congested { stream, pauses: pauses.of(stream) });
            }
        }
        self.pauses = pauses;
        self.keep_alive(now, news);
    }

    fn next_deadline(&self) -> Option<Instant> {
        let alive = self.agents.iter().filter(|agent| agent.stage < Stage::Over);
        let sign = self.silence / SIGNS;
        alive.map(|agent| (agent.told + sign).min(agent.heard + self.silence)).min()
    }

    fn order(&mut self, order: Order) {
        match (&order, self.reader) {
            (Order::Input { .. }, Some(place)) => self.send(place, &order),
            (Order::Input { .. }, None) => {}
            _ => self.send_all(&order),
        }
    }

    fn suspended(&mut self, suspended: bool) {
        self.send_all(&Order::Suspended { suspended });
        let now = Instant::now();
        if suspended {
            let until = now + GIVE_UP;
            while Instant::now() < until && self.agents.iter().any(|agent| agent.line.is_full()) {
                std::thread::sleep(Duration::from_millis(1));
                self.agents.iter_mut().for_each(|agent| agent.line.write());
            }
        } else {
            self.agents.iter_mut().for_each(|agent| agent.heard = now);
        }
    }

    fn end(&mut self) -> Vec<String> {
        let until = Instant::now() + GIVE_UP;
        let mut rest = Vec::new();
        let is_open = |agent: &Agent| agent.stage < Stage::Over;
        while self.agents.iter().any(is_open) && Instant::now() < until {
            let mut set = Vec::new();
            self.lines(&mut set);
            let ready = events(&set, Some(until)).unwrap_or_default();
            ready.into_iter().for_each(|event| self.handle(event, &mut rest));
        }
        std::mem::take(&mut self.daemons)
    }

    fn leave(self: Box<Self>) {}
}

impl Drop for Agents {
    fn drop(&mut self) {
        // The agents end with their lines, each with its ranks.
        self.agents.iter_mut().for_each(|agent| agent.line.hang_up());
        let until = Instant::now() + 2 * GIVE_UP;
        self.agents.iter_mut().for_each(|agent| agent.line.await_end(until));
    }
}

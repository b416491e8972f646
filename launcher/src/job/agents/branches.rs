//! The agents that this process has started, each for a branch of the tree of agents (HO2 of [`crate::job::hosts`]):
//! those of `mpjrun`, or of an agent that starts others.
//!
//! - BR1: an agent speaks for the ranks and the hosts of its branch only. What it tells of others, or out of turn, is
//!   dropped.
//! - BR2: an agent whose line ends, carries anything that does not prove to come from it, or is silent for too long is
//!   lost, with its whole branch. Agents that lose the line from above end, so those of the branch end by themselves.
//! - BR3: nothing here waits for an agent, except [`Branches::flush`] and the drop, for a limited time. In one turn not
//!   more is read of each than [`READS`] times.

use std::ops::Range;
use std::rc::Rc;
use std::time::{Duration, Instant};

use transport_lapi::TaskId;
use transport_lapi::bootstrap::control::agents::{HostJob, HostPlace, News, Order};
use transport_lapi::bootstrap::control::line::Encoded;
use transport_lapi::bootstrap::signals::Mask;
use transport_lapi::bootstrap::spawn::DescriptorLimit;

use super::agent_line::AgentLine;
use super::{host_job, starter};
use crate::host::orphans::GIVE_UP;
use crate::job::ranks::AgentEvent;
use crate::job::{Event, Interesting, hosts, task_of};

/// How many signs of life the other end of a line may miss before it counts as lost.
pub(in crate::job) const SIGNS: u32 = 8;

/// How often a line is read to take what has come.
const READS: usize = 16;

/// How far a branch is. All its hosts have got there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
pub(in crate::job) enum Stage {
    /// The agent was called, and has not answered yet.
    Called,
    /// It was told about the job.
    Told,
    /// The ranks can start.
    Ready,
    /// The ranks have been started.
    Started,
    /// The ranks are gone.
    Over,
    /// The agent is out of reach.
    Lost,
}

struct Branch {
    line: AgentLine,
    /// The hosts of the branch; the agent runs on the first.
    hosts: Range<u32>,
    stage: Stage,
    heard: Instant,
    told: Instant,
}

impl Branch {
    fn send(&mut self, order: &Encoded<Order>) {
        self.told = Instant::now();
        self.line.send(order);
    }
}

/// See the module's head.
pub(in crate::job) struct Branches {
    branches: Vec<Branch>,
    job: Rc<HostJob>,
    /// The order that tells the job, once it was needed.
    prepare: Option<Encoded<Order>>,
    /// The host that this process runs on, if it is an agent.
    own: Option<String>,
    silence: Duration,
}

impl Branches {
    /// Calls the agents for these `hosts` of `job`, which follow the host `own`; `None` for `mpjrun`. What starts them
    /// has the limit and the signal mask from `before`. A failure is told as [`News::Refused`].
    pub(in crate::job) fn call(
        job: &Rc<HostJob>,
        hosts: Range<usize>,
        own: Option<usize>,
        before: (&DescriptorLimit, Mask),
        news: &mut Vec<News>,
    ) -> Self {
        let own = own.and_then(|own| job.hosts.get(own).cloned());
        let silence = Duration::from_millis(job.silence);
        let mut called =
            Self { branches: Vec::new(), job: Rc::clone(job), prepare: None, own, silence };
        let now = Instant::now();
        for hosts in hosts::branches(hosts, job.fanout as usize) {
            let place = hosts.start as u32;
            let command = job.hosts.get(hosts.start).ok_or("it has no name".to_owned());
            let program = host_job::text(&job.mpjrun);
            let command = command.map(|name| starter::command(&job.starter, name, &program));
            let line = match command.and_then(|it| AgentLine::start(it, before)) {
                Ok(line) => line,
                Err(reason) => {
                    let reason = called.seen_from_here(reason);
                    news.push(News::Refused { host: place, reason, code: 125 });
                    break;
                }
            };
            let below = hosts.len() as u32 - 1;
            let hosts = place..hosts.end as u32;
            called.branches.push(Branch {
                line,
                hosts,
                stage: Stage::Called,
                heard: now,
                told: now,
            });
            let place = HostPlace { host: place, below };
            called.send(called.branches.len() - 1, &Order::Place { place, silence: job.silence });
        }
        called
    }

    /// Says from where a host was called, unless it was from that of `mpjrun`.
    fn seen_from_here(&self, reason: String) -> String {
        match &self.own {
            None => reason,
            Some(own) => {
                format!("as seen from host {own} (--agent-fanout): {reason}")
            }
        }
    }

    /// Whether all branches are at least so far, or lost.
    pub(in crate::job) fn have_reached(&self, stage: Stage) -> bool {
        self.branches.iter().all(|branch| branch.stage >= stage)
    }

    /// Whether all agents know the job, and no line is behind with what was sent to it.
    pub(in crate::job) fn take_orders(&self) -> bool {
        let is_ready = |branch: &Branch| branch.stage >= Stage::Told && !branch.line.is_full();
        self.branches.iter().all(is_ready)
    }

    fn send(&mut self, at: usize, order: &Order) {
        self.branches[at].send(&encoded(order));
    }

    /// Sends an order to all agents below this process.
    pub(in crate::job) fn send_all(&mut self, order: &Order) {
        let order = encoded(order);
        self.branches.iter_mut().for_each(|branch| branch.send(&order));
    }

    /// Sends an order to the branch of a host.
    pub(in crate::job) fn send_towards(&mut self, host: u32, order: &Order) {
        let at = self.branches.iter().position(|branch| branch.hosts.contains(&host));
        at.into_iter().for_each(|at| self.send(at, order));
    }

    /// Adds the descriptors to wait for. Unless it `reads`, news stay in their lines.
    pub(in crate::job) fn interests<'a>(&'a self, reads: bool, set: &mut Vec<Interesting<'a>>) {
        for (at, branch) in self.branches.iter().enumerate() {
            let interests = branch.line.interests(reads);
            set.extend(interests.map(|(event, fd, flags)| (Event::Agent(event(at)), fd, flags)));
        }
    }

    /// Handles an event of one of these descriptors.
    pub(in crate::job) fn handle(&mut self, event: AgentEvent, news: &mut Vec<News>) {
        match event {
            AgentEvent::Line(at) => drop(self.receive(at, news)),
            AgentEvent::Room(at) => self.branches[at].line.write(),
            AgentEvent::Said(at) => self.branches[at].line.listen(),
            AgentEvent::Above | AgentEvent::RoomAbove => {}
        }
    }

    /// Takes what has come from all agents (BR3).
    pub(in crate::job) fn take_what_has_come(&mut self, news: &mut Vec<News>) {
        for at in 0..self.branches.len() {
            let mut reads = 0;
            while reads < READS && self.receive(at, news) {
                reads += 1;
            }
        }
    }

    /// Reads once what an agent has told. Returns whether there may be more.
    fn receive(&mut self, at: usize, news: &mut Vec<News>) -> bool {
        let has_come = self.branches[at].line.read();
        loop {
            let branch = &mut self.branches[at];
            match branch.line.next() {
                Ok(Some(told)) => {
                    branch.heard = Instant::now();
                    self.hear(at, told, news);
                }
                Ok(None) => return has_come,
                Err(reason) => {
                    self.lose(at, reason, news);
                    return false;
                }
            }
        }
    }

    fn hear(&mut self, at: usize, told: News, news: &mut Vec<News>) {
        let branch = &mut self.branches[at];
        let (stage, hosts) = (branch.stage, branch.hosts.clone());
        if !may_tell(&self.job, &hosts, &told) {
            return;
        }
        match (&told, stage) {
            (News::Hello { .. }, Stage::Called) => {
                branch.stage = Stage::Told;
                let prepare = || encoded(&Order::Prepare(Rc::clone(&self.job)));
                branch.send(self.prepare.get_or_insert_with(prepare));
                if self.have_reached(Stage::Told) {
                    self.prepare = None;
                }
                return;
            }
            (News::Ready, Stage::Told) => branch.stage = Stage::Ready,
            (News::Started { more: true, .. }, Stage::Ready) => {}
            (News::Started { .. }, Stage::Ready) => branch.stage = Stage::Started,
            (News::Over { .. }, Stage::Started) => branch.stage = Stage::Over,
            (News::Hello { .. } | News::Ready | News::Started { .. } | News::Over { .. }, _)
            | (News::Alive, _) => return,
            _ => {}
        }
        news.push(told);
    }

    /// Gives up a branch (BR2).
    fn lose(&mut self, at: usize, reason: String, news: &mut Vec<News>) {
        let reason = self.seen_from_here(reason);
        let branch = &mut self.branches[at];
        branch.line.close();
        let (host, below) = (branch.hosts.start, branch.hosts.len() as u32 - 1);
        match std::mem::replace(&mut branch.stage, Stage::Lost) {
            Stage::Lost => {}
            // Of ranks that are gone, records may be missing.
            Stage::Started | Stage::Over => news.push(News::Lost { host, below, reason }),
            _ => news.push(News::Refused { host, reason, code: 125 }),
        }
    }

    /// Sends signs of life, looks for those of agents, and gives up those whose lines have ended. While nothing `reads`
    /// the lines, nobody counts as silent.
    pub(in crate::job) fn turn(&mut self, now: Instant, reads: bool, news: &mut Vec<News>) {
        for at in 0..self.branches.len() {
            let branch = &mut self.branches[at];
            if let Some(reason) = branch.line.end(now) {
                self.lose(at, reason, news);
                continue;
            }
            if branch.stage > Stage::Over {
                continue;
            }
            // Nothing more is expected of those whose ranks are gone.
            if !reads || branch.stage == Stage::Over {
                branch.heard = now;
            }
            let silent = now.saturating_duration_since(branch.heard);
            if silent > self.silence {
                let reason = branch.line.why_silent(silent);
                self.lose(at, reason, news);
            } else if now.saturating_duration_since(branch.told) >= self.silence / SIGNS {
                self.send(at, &Order::Alive);
            }
        }
    }

    /// When [`Branches::turn`] has something to do.
    pub(in crate::job) fn next_deadline(&self) -> Option<Instant> {
        let sign = self.silence / SIGNS;
        let due = |branch: &Branch| {
            let life = (branch.told + sign).min(branch.heard + self.silence);
            let life = (branch.stage <= Stage::Over).then_some(life);
            life.into_iter().chain(branch.line.end_deadline()).min()
        };
        self.branches.iter().filter_map(due).min()
    }

    /// Counts the agents' silence from now on.
    pub(in crate::job) fn resumed(&mut self) {
        let now = Instant::now();
        self.branches.iter_mut().for_each(|branch| branch.heard = now);
    }

    /// Writes the orders that wait for room, for [`GIVE_UP`] at the longest.
    pub(in crate::job) fn flush(&mut self) {
        let until = Instant::now() + GIVE_UP;
        while Instant::now() < until && self.branches.iter().any(|branch| branch.line.is_full()) {
            std::thread::sleep(Duration::from_millis(1));
            self.branches.iter_mut().for_each(|branch| branch.line.write());
        }
    }

    /// Ends the lines. The agents then end, each with its ranks and with those below it.
    pub(in crate::job) fn hang_up(&mut self) {
        self.branches.iter_mut().for_each(|branch| branch.line.hang_up());
    }
}

impl Drop for Branches {
    fn drop(&mut self) {
        self.hang_up();
        let until = Instant::now() + 2 * GIVE_UP;
        self.branches.iter_mut().for_each(|branch| branch.line.await_end(until));
    }
}

fn encoded(order: &Order) -> Encoded<Order> {
    Encoded::of(order).expect("orders are short, but for the job, whose length was checked")
}

/// Whether the agent for these hosts may tell this (BR1).
fn may_tell(job: &HostJob, hosts: &Range<u32>, told: &News) -> bool {
    let has_rank =
        |task: TaskId| job.host_of.get(task as usize).is_some_and(|host| hosts.contains(host));
    match told {
        News::Refused { host, .. }
        | News::Still { host, .. }
        | News::HasBeenStill { host, .. }
        | News::Paused { host, .. }
        | News::Clock { host, .. }
        | News::RecordsTold { host } => hosts.contains(host),
        // It is there itself.
        News::Lost { host, below, .. } => {
            hosts.start < *host && host.saturating_add(*below) < hosts.end
        }
        News::Started { hosts: started, .. } => started.iter().all(|it| hosts.contains(&it.host)),
        News::Addresses { addresses } => addresses.iter().all(|(task, _)| has_rank(*task)),
        News::InputTaken { .. } => job.reader.is_some_and(has_rank),
        told => task_of(told).is_none_or(has_rank),
    }
}

#[cfg(test)]
mod tests {
    use transport_lapi::bootstrap::control::Endpoints;
    use transport_lapi::bootstrap::control::agents::{HostStart, Pause, Stream};

    use super::*;

    /// A job with a rank on each of four hosts, whose standard input rank 3 gets.
    fn job() -> HostJob {
        HostJob { reader: Some(3), host_of: vec![0, 1, 2, 3], ..HostJob::default() }
    }

    #[test]
    fn an_agent_speaks_for_its_branch_only() {
        let started = |host| {
            let (pids, notes) = (Vec::new(), Vec::new());
            News::Started { hosts: vec![HostStart { host, pids, notes }], more: false }
        };
        let of_host = |host| {
            let reason = String::new();
            let paused = News::Paused { host, round: 1, pause: Pause::OVER };
            let clock = News::Clock { host, round: 1, ticks: 1, is_counter: true };
            let told = News::RecordsTold { host };
            [News::Refused { host, reason, code: 1 }, started(host), paused, clock, told]
        };
        let of_rank = |task| {
            let addresses = vec![(task, Endpoints::default())];
            let ended = News::OutputEnded { task, stream: Stream::Out };
            let records = News::Records { task, at: 0, bytes: Vec::new() };
            [ended, News::Gone { task }, News::Addresses { addresses }, records]
        };
        let lost = |host, below| News::Lost { host, below, reason: String::new() };
        let may = |told: &News| may_tell(&job(), &(1..3), told);
        for place in [1, 2] {
            assert!(of_host(place).iter().chain(&of_rank(place)).all(may), "{place}");
        }
        for place in [0, 3, 4, u32::MAX] {
            assert!(!of_host(place).iter().chain(&of_rank(place)).any(may), "{place}");
        }
        assert!(may(&lost(2, 0)));
        for (host, below) in [(0, 1), (1, 0), (1, 1), (2, 1), (2, u32::MAX), (3, 0)] {
            assert!(!may(&lost(host, below)), "{host} and {below}");
        }
        assert!(!may(&News::InputTaken { takes_more: true }));
        assert!(may_tell(&job(), &(2..4), &News::InputTaken { takes_more: true }));
    }
}

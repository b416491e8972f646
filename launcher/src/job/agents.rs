//! The agents of a job on several hosts, as `mpjrun` sees them. [`super::away`] starts a job over them, and the poll loop
//! then sees them as its [`Ranks`].
//!
//! - AG1: no clock of another host counts, except for records of calls ([`records`]). What an agent tells happened when it
//!   was read, so the order in which this process learns of failures is their order.
//! - AG2: `mpjrun` has lines to the agents of the first level only ([`Branches`]); what they tell is about their whole
//!   branches. A host that is lost is lost with all its ranks, and so are those below it.

mod addresses;
mod agent_line;
pub(super) mod branches;
mod copies;
pub(super) mod host_job;
mod records;
mod starter;

use std::os::fd::AsFd;
use std::rc::Rc;
use std::time::Instant;

use rustix::event::PollFlags;
use transport_lapi::TaskId;
use transport_lapi::bootstrap::control::agents::{Ending, HostJob, News, Order, Stream};
use transport_lapi::bootstrap::control::{ControlMessage, Endpoints};
use transport_lapi::bootstrap::hosts::{estrangement, understand_each_other};
use transport_lapi::bootstrap::monotonic_nanos;
use transport_lapi::bootstrap::signals::{Mask, Signals};
use transport_lapi::bootstrap::spawn::DescriptorLimit;

use super::hosts::Hosts;
use super::ranks::Ranks;
use super::{ENDING, Event, Interesting, events, task_of};
use crate::LaunchError;
use crate::host::orphans::GIVE_UP;
use crate::host::rank::Pauses;
use crate::trace::Memories;
pub(super) use addresses::{Addresses, Batch};
use branches::{Branches, Stage};
use copies::Copies;
pub(super) use records::Fetched;
use records::Records;

/// What is known of a host.
#[derive(Default)]
struct Host {
    /// Its ranks.
    ranks: Vec<TaskId>,
    /// Those that are not gone.
    left: Vec<TaskId>,
    /// The processes of its ranks, in order.
    pids: Vec<u32>,
}

impl Host {
    fn of(ranks: impl Iterator<Item = usize>) -> Self {
        let ranks: Vec<TaskId> = ranks.map(|rank| rank as TaskId).collect();
        Self { left: ranks.clone(), ranks, pids: Vec::new() }
    }

    /// Takes the processes of the first ranks. The others were not started, since one of these had failed: they are gone,
    /// and returned. Some of the first may be gone, too.
    fn started(&mut self, pids: Vec<u32>) -> Vec<TaskId> {
        let others = &self.ranks[pids.len().min(self.ranks.len())..];
        let (missing, left) = self.left.iter().partition(|task| others.contains(task));
        (self.left, self.pids) = (left, pids);
        missing
    }
}

/// The agents of a job.
pub(super) struct Agents {
    branches: Branches,
    /// What agents still have to get before the start.
    copies: Copies,
    hosts: Vec<Host>,
    names: Vec<String>,
    /// The host of each rank.
    of_rank: Vec<usize>,
    pauses: Pauses,
    /// The host of the rank that gets the standard input.
    reader: Option<u32>,
    /// Notes of the agents about their starts.
    pub(super) notes: Vec<String>,
    /// Why the job cannot start.
    refusal: Option<LaunchError>,
    daemons: Vec<String>,
    /// The addresses of the ranks that have told them, until all have.
    addresses: Addresses,
    /// The rank that was the first to tell where a client is found, the last one that ranks join with, and what it told.
    first_told: Option<(TaskId, Endpoints)>,
    /// What comes of the ranks' records, if they record their calls.
    records: Option<Records>,
    /// Whether the ranks may start when the clocks of all hosts have been compared.
    are_ready: bool,
}

impl Agents {
    /// Calls the agents for this `job`, which get these `copies`, and whose ranks record their calls as `memories` say, if
    /// there are any. Why they cannot be started, [`Agents::take_refusal`] tells.
    pub(super) fn call(
        hosts: &Hosts,
        job: &Rc<HostJob>,
        copies: Copies,
        memories: Option<&Memories>,
        before: (&DescriptorLimit, Mask),
    ) -> Self {
        let mut told = Vec::new();
        let branches = Branches::call(job, 0..hosts.names.len(), None, before, &mut told);
        let mut agents = Self {
            branches,
            copies,
            hosts: hosts.ranks().into_iter().map(|ranks| Host::of(ranks.into_iter())).collect(),
            names: hosts.names.clone(),
            of_rank: hosts.of_rank.clone(),
            pauses: Pauses::default(),
            reader: job.reader.and_then(|rank| job.host_of.get(rank as usize).copied()),
            notes: Vec::new(),
            refusal: None,
            daemons: Vec::new(),
            addresses: Addresses::of(hosts.of_rank.len()),
            first_told: None,
            records: memories.map(|it| Records::begin(it, hosts.names.len(), hosts.silence)),
            are_ready: false,
        };
        // Only refusals can come before an agent has been heard.
        told.into_iter().for_each(|told| agents.hear(told, &mut Vec::new()));
        agents
    }

    /// Whether all ranks have been started.
    pub(super) fn have_started(&self) -> bool {
        self.branches.have_reached(Stage::Started)
    }

    /// Takes the reason why the job cannot start, if there is one.
    pub(super) fn take_refusal(&mut self) -> Option<LaunchError> {
        self.refusal.take()
    }

    /// The host and the process of each rank, if it was started.
    pub(super) fn processes(&self) -> impl Iterator<Item = (usize, Option<u32>)> {
        let mut pids: Vec<_> = self.hosts.iter().map(|host| host.pids.iter()).collect();
        self.of_rank.iter().map(move |&host| (host, pids[host].next().copied()))
    }

    /// Lets the branches do something, and passes on what they have told and what concerns the job.
    fn hear_branches(
        &mut self,
        news: &mut Vec<News>,
        act: impl FnOnce(&mut Branches, &mut Vec<News>),
    ) {
        let mut told = Vec::new();
        act(&mut self.branches, &mut told);
        told.into_iter().for_each(|told| self.hear(told, news));
    }

    fn hear(&mut self, told: News, news: &mut Vec<News>) {
        let told = match &mut self.records {
            Some(records) => records.hear(told, &self.of_rank),
            None => Some(told),
        };
        let Some(told) = told else { return };
        match told {
            News::Ready if self.branches.have_reached(Stage::Ready) => {
                self.are_ready = true;
                self.compare_clocks();
            }
            News::Refused { host, reason, code } => {
                let host = self.names[host as usize].clone();
                self.refusal.get_or_insert(LaunchError::Host { host, reason, code });
            }
            News::Started { hosts, .. } => {
                for start in hosts {
                    let missing = self.hosts[start.host as usize].started(start.pids);
                    news.extend(missing.into_iter().map(|task| News::Gone { task }));
                    let name = &self.names[start.host as usize];
                    let notes = start.notes.iter().map(|note| format!("host {name}: {note}"));
                    self.notes.extend(notes);
                }
            }
            News::Over { daemons } => self.daemons.extend(daemons),
            News::Lost { host, below, reason } => {
                let first = self.names[host as usize].clone();
                self.lose(host, reason, news);
                for host in host + 1..=host + below {
                    self.lose(host, format!("its line went by host {first}, which was lost"), news);
                }
            }
            News::Addresses { addresses } => {
                for (task, endpoints) in addresses {
                    match self.estranged(task, &endpoints) {
                        // The addresses are never complete then, so no rank goes on.
                        Some(told) => news.push(told),
                        None => self.addresses.take(task, endpoints),
                    }
                }
            }
            News::InputTaken { .. }
            | News::Still { .. }
            | News::HasBeenStill { .. }
            | News::Paused { .. } => news.push(told),
            told => self.hear_of_rank(told, news),
        }
    }

    /// Passes news of a rank on (AG1).
    fn hear_of_rank(&mut self, told: News, news: &mut Vec<News>) {
        let Some(task) = task_of(&told) else { return };
        let now = monotonic_nanos();
        news.push(match told {
            News::Message { message, .. } => match message.check() {
                Ok(()) => News::Message { task, message: message.dated(now) },
                Err(damage) => News::Damaged { task, damage: damage.to_string() },
            },
            News::Ended { ending, .. } => News::Ended { task, ending, at_nanos: now },
            News::ProgramEnded { .. } => News::ProgramEnded { task, at_nanos: now },
            News::Gone { .. } => {
                let host = self.of_rank[task as usize];
                self.hosts[host].left.retain(|left| *left != task);
                News::Gone { task }
            }
            News::Seen { number, at_nanos, seen, .. } => {
                let seen = Box::new(seen.dated(at_nanos, now));
                News::Seen { task, number, at_nanos: now, seen }
            }
            told => told,
        });
    }

    /// What ends the job if the network of a rank does not understand that of the rank that was the first to tell its own,
    /// or if it joins with another client.
    fn estranged(&mut self, task: TaskId, told: &Endpoints) -> Option<News> {
        // Of a rank that told nothing of use, nothing is said here.
        if told.network.is_empty() || !self.addresses.are_expected(told) {
            return None;
        }
        let (first, its) = match &mut self.first_told {
            Some((first, its)) if its.first == told.first => (*first, its),
            of_client_before => {
                let (first, its) = of_client_before.insert((task, told.clone()));
                (*first, its)
            }
        };
        let why = if !understand_each_other(&told.network, &its.network) {
            let host = |task: TaskId| &*self.names[self.of_rank[task as usize]];
            estrangement((host(task), &told.network), (first, host(first), &its.network))
        } else if (&told.client, told.addresses.len()) != (&its.client, its.addresses.len()) {
            let words = |of: &Endpoints| match of.addresses.len() {
                1 => of.client.clone(),
                contexts => format!("{} with {contexts} contexts", of.client),
            };
            let (client, expected) = (words(told), words(its));
            format!(
                "joins the job as {client}, where rank {first} joins as {expected}: all ranks join with the same \
                 clients in the same order"
            )
        } else {
            return None;
        };
        let message = ControlMessage::Unreachable { at_nanos: monotonic_nanos(), why };
        Some(News::Message { task, message })
    }

    /// Tells all hosts the addresses of all ranks, when they are known, as fast as the slowest of them takes them.
    fn tell_addresses(&mut self) {
        while self.branches.take_orders() {
            let Some(Batch { context, ranks, completes }) = self.addresses.next_batch() else {
                return;
            };
            let first = ranks[0].0;
            let addresses = ranks.into_iter().map(|(_, its)| its.addresses).collect();
            self.branches.send_all(&Order::Addresses { context, first, addresses });
            if let Some(contexts) = completes {
                self.branches.send_all(&Order::AddressesComplete { contexts });
            }
        }
    }

    /// Asks for what the clocks of hosts show, and lets the ranks start when that is known.
    fn compare_clocks(&mut self) {
        let is_begun = self.branches.have_reached(Stage::Ready);
        if let Some(records) = self.records.as_mut().filter(|_| is_begun) {
            while let Some((host, question)) = records.next_question() {
                self.branches.send_towards(host, &question);
            }
        }
        let are_compared = self.records.as_ref().is_none_or(Records::are_compared);
        if self.are_ready && are_compared {
            self.are_ready = false;
            self.branches.send_all(&Order::Start);
        }
    }

    /// Waits until the records are as far as this says, or nothing comes any more, or a signal asks to end.
    fn await_records(&mut self, signals: &Signals, are_there: fn(&Records) -> bool) {
        let mut rest = Vec::new();
        loop {
            self.compare_clocks();
            let Some(records) = self.records.as_mut().filter(|it| !are_there(it)) else { return };
            let (until, why) = records.deadline();
            if Instant::now() >= until {
                records.lose_silent(&why);
                continue;
            }
            let is_asked = |signal| ENDING.contains(&signal);
            if std::iter::from_fn(|| signals.next_pending()).any(is_asked) {
                return records.give_up("mpjrun was asked to end");
            }
            self.go_on_until(until, Some(signals), &mut rest);
            rest.clear();
        }
    }

    /// Waits for news, or a signal if there are some, at most so long, and handles what has come from agents.
    fn go_on_until(&mut self, until: Instant, signals: Option<&Signals>, news: &mut Vec<News>) {
        let signals = signals.map(|signals| (Event::Signal, signals.as_fd(), PollFlags::IN));
        let mut set: Vec<Interesting<'_>> = signals.into_iter().collect();
        self.branches.interests(true, &mut set);
        let deadline = self.branches.next_deadline().map_or(until, |at| at.min(until));
        let ready = events(&set, Some(deadline)).unwrap_or_default();
        drop(set);
        ready.into_iter().for_each(|event| self.handle(event, news));
        self.turn(Instant::now(), true, self.pauses, news);
    }

    /// Gives up a host (AG2).
    fn lose(&mut self, place: u32, reason: String, news: &mut Vec<News>) {
        if let Some(records) = &mut self.records {
            records.lost(place, &reason);
        }
        let left = std::mem::take(&mut self.hosts[place as usize].left);
        if left.is_empty() {
            return;
        }
        news.push(News::Lost { host: place, below: 0, reason });
        let at_nanos = monotonic_nanos();
        for task in left {
            let ends = [Stream::Out, Stream::Err];
            news.extend(ends.map(|stream| News::OutputEnded { task, stream }));
            news.push(News::Ended { task, ending: Ending::Lost, at_nanos });
            news.push(News::Gone { task });
        }
    }
}

impl Ranks for Agents {
    fn interests<'a>(&'a self, _: Pauses, set: &mut Vec<Interesting<'a>>) {
        self.branches.interests(true, set);
    }

    fn handle(&mut self, event: Event, news: &mut Vec<News>) {
        if let Event::Agent(event) = event {
            self.hear_branches(news, |branches, told| branches.handle(event, told));
        }
    }

    fn take_what_has_come(&mut self, news: &mut Vec<News>) {
        self.hear_branches(news, Branches::take_what_has_come);
    }

    fn turn(&mut self, now: Instant, _: bool, pauses: Pauses, news: &mut Vec<News>) {
        for stream in [Stream::Out, Stream::Err] {
            if pauses.of(stream) != self.pauses.of(stream) {
                let pauses = pauses.of(stream);
                self.branches.send_all(&Order::Congested { stream, pauses });
            }
        }
        self.pauses = pauses;
        self.hear_branches(news, |branches, told| branches.turn(now, true, told));
        self.compare_clocks();
        self.tell_addresses();
        if let Err(error) = self.copies.send(&mut self.branches) {
            self.refusal.get_or_insert(error);
        }
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.branches.next_deadline()
    }

    fn order(&mut self, order: Order) {
        match (&order, self.reader) {
            (Order::Input { .. }, Some(host)) => self.branches.send_towards(host, &order),
            (Order::Input { .. }, None) => {}
            _ => self.branches.send_all(&order),
        }
    }

    fn suspended(&mut self, suspended: bool) {
        self.branches.send_all(&Order::Suspended { suspended });
        if suspended {
            self.branches.flush();
        } else {
            self.branches.resumed();
        }
    }

    fn end(&mut self) -> Vec<String> {
        let until = Instant::now() + GIVE_UP;
        let mut rest = Vec::new();
        while !self.branches.have_reached(Stage::Over) && Instant::now() < until {
            self.go_on_until(until, None, &mut rest);
        }
        std::mem::take(&mut self.daemons)
    }

    fn fetch_records(&mut self, signals: &Signals) -> Option<Fetched> {
        self.records.as_mut()?.compare_again();
        self.await_records(signals, Records::are_compared);
        self.branches.send_all(&Order::SendRecords);
        self.records.as_mut()?.ask();
        self.await_records(signals, Records::have_come);
        Some(self.records.take()?.finish(&self.names))
    }

    fn leave(self: Box<Self>) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_that_were_not_started_are_gone_whoever_is_gone_already() {
        let mut host = Host::of([3, 5, 7, 9].into_iter());
        host.left.retain(|task| *task != 3);
        assert_eq!(host.started(vec![100, 101]), [7, 9]);
        assert_eq!(host.left, [5]);
        assert_eq!(Host::of([3, 5].into_iter()).started(vec![100; 3]), [0; 0]);
        let mut lost = Host { left: Vec::new(), ..Host::of([3, 5].into_iter()) };
        assert_eq!(lost.started(vec![100]), [0; 0]);
    }
}

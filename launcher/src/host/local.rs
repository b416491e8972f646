//! The ranks of this host: starts nothing, but watches, signals and ends what was started. It is the half of a launcher
//! that has to be on the host of the ranks. The other half, which prints, judges and reports, is [`crate::job`]; it is
//! in the same process, or behind a line from the agent of this host.

use std::os::fd::BorrowedFd;
use std::rc::Rc;
use std::time::Instant;

use rustix::event::PollFlags;
use rustix::process::{Pid, Signal};
use transport_lapi::TaskId;
use transport_lapi::bootstrap::control::agents::{News, Order, Stream};
use transport_lapi::bootstrap::control::{ControlMessage, Incoming};
use transport_lapi::bootstrap::guard::Guard;
use transport_lapi::bootstrap::hosts::TableWriter;
use transport_lapi::bootstrap::monotonic_nanos;
use transport_lapi::bootstrap::waits::JobView;

use super::orphans::Orphans;
use super::rank::{Pauses, Rank};
use super::usage;
use crate::trace::Memories;

/// Control messages taken from one rank in a turn.
const MESSAGES_PER_TURN: usize = 64;
/// How many times as many are taken from a rank that has ended; a control line holds fewer.
const TURNS_AT_THE_END: usize = 64;

/// What a ready descriptor of a rank means. The number is the rank's place on this host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RankEvent {
    /// The program that the rank's script started has ended.
    Program(usize),
    Control(usize),
    Output(usize, Stream),
    Exit(usize),
}

/// The ranks of this host.
pub(crate) struct LocalRanks {
    /// One for each world of the job; dropped before the ranks are reaped (J4 of [`crate::job`]). A world has none if the
    /// system refused to fork it.
    guards: Vec<Guard>,
    ranks: Vec<Rank>,
    orphans: Orphans,
    view: JobView,
    /// The job table, in a job of several hosts.
    table: Option<TableWriter>,
    /// Where it is noted how much memory the ranks occupy, if they record their calls.
    memories: Option<Rc<Memories>>,
}

impl LocalRanks {
    /// Takes the ranks that were just started, whose waits `view` shows, and the job table if there is one. `orphans`
    /// was adopting before. Returns a note for the user, too, if there is one.
    pub(crate) fn new(
        ranks: Vec<Rank>,
        view: JobView,
        table: Option<TableWriter>,
        orphans: Orphans,
    ) -> (Self, Option<String>) {
        let (guards, none) = (Vec::new(), Vec::new());
        let mut all = Self { guards, ranks: none, orphans, view, table, memories: None };
        let note = all.guard(ranks);
        (all, note)
    }

    /// Has it noted how much memory the ranks occupy, if they record their calls in these memories.
    pub(crate) fn note_footprints(&mut self, memories: Option<Rc<Memories>>) {
        self.memories = memories;
    }

    /// Takes the ranks of a further world, with which the job has so many `tasks`. Returns a note for the user, too.
    pub(crate) fn admit(&mut self, ranks: Vec<Rank>, tasks: usize) -> Option<String> {
        self.view.show(tasks);
        self.guard(ranks)
    }

    /// Takes the ranks of a world, and has them guarded.
    fn guard(&mut self, ranks: Vec<Rank>) -> Option<String> {
        let groups: Vec<Pid> = ranks.iter().map(Rank::group).collect();
        self.ranks.extend(ranks);
        match Guard::over(&groups) {
            Ok(guard) => {
                self.orphans.spare(&groups, Some(guard.process()));
                self.guards.push(guard);
                None
            }
            Err(refused) => {
                self.orphans.spare(&groups, None);
                Some(format!(
                    "cannot start the guard, so processes that ranks started may stay if mpjrun is killed: {refused}"
                ))
            }
        }
    }

    /// The processes of the ranks.
    pub(crate) fn pids(&self) -> Vec<u32> {
        self.ranks.iter().map(Rank::pid).collect()
    }

    /// The ranks' numbers in the job.
    pub(crate) fn tasks(&self) -> impl Iterator<Item = TaskId> {
        self.ranks.iter().map(Rank::task)
    }

    /// The ranks' published waits, by place.
    pub(crate) fn view(&self) -> &JobView {
        &self.view
    }

    /// Whether the rank at this place is gone.
    pub(crate) fn is_gone(&self, place: usize) -> bool {
        self.ranks.get(place).is_none_or(Rank::is_gone)
    }

    /// Whether the rank at this place has finished its part in the job.
    pub(crate) fn has_finished(&self, place: usize) -> bool {
        self.ranks.get(place).is_some_and(Rank::has_finished)
    }

    /// Whether all ranks are gone.
    pub(crate) fn are_gone(&self) -> bool {
        self.ranks.iter().all(Rank::is_gone)
    }

    /// The descriptors to wait for, while the reader of the output pauses for some streams.
    pub(crate) fn interests(
        &self,
        pauses: Pauses,
    ) -> impl Iterator<Item = (RankEvent, BorrowedFd<'_>, PollFlags)> {
        let ranks = self.ranks.iter().enumerate().filter(|(_, rank)| !rank.is_gone());
        ranks.flat_map(move |(place, rank)| {
            let exit = (!rank.has_ended()).then(|| (RankEvent::Exit(place), rank.pidfd()));
            let program = rank.program().map(|end| (RankEvent::Program(place), end));
            let control = rank.control().map(|line| (RankEvent::Control(place), line));
            let pipes = rank.pipes().filter(move |(stream, _)| !pauses.of(*stream));
            let pipes = pipes.map(move |(stream, pipe)| (RankEvent::Output(place, stream), pipe));
            let all = exit.into_iter().chain(program).chain(control).chain(pipes);
            all.map(|(event, fd)| (event, fd, PollFlags::IN))
        })
    }

    /// Does what a ready descriptor calls for, and tells the news.
    pub(crate) fn handle(&mut self, event: RankEvent, news: &mut Vec<News>) {
        match event {
            RankEvent::Exit(place) => self.take_ending(place, news),
            RankEvent::Program(place) => {
                let at_nanos = monotonic_nanos();
                self.ranks[place].program_has_ended();
                self.take_last_messages(place, news);
                news.push(News::ProgramEnded { task: self.ranks[place].task(), at_nanos });
            }
            RankEvent::Control(place) => drop(self.take_messages(place, news)),
            RankEvent::Output(place, stream) => self.ranks[place].read(stream, news),
        }
    }

    /// Takes messages that have come from all ranks.
    pub(crate) fn take_all_messages(&mut self, news: &mut Vec<News>) {
        for place in 0..self.ranks.len() {
            self.take_messages(place, news);
        }
    }

    /// Closes ranks that have ended and lingered, reaps orphans at times, and sees how much memory the ranks occupy. Called
    /// in every turn of a loop.
    pub(crate) fn turn(
        &mut self,
        now: Instant,
        may_linger: bool,
        pauses: Pauses,
        news: &mut Vec<News>,
    ) {
        for rank in &mut self.ranks {
            rank.close_if_done(now, may_linger, pauses, news);
        }
        self.orphans.reap_at_times(now);
        let is_due = self.next_look().is_some_and(|at| at <= now);
        if let Some(memories) = self.memories.as_ref().filter(|_| is_due) {
            let ranks = self.ranks.iter().enumerate().filter(|(_, rank)| !rank.has_ended());
            let occupied = ranks.filter_map(|(place, rank)| {
                let state = self.view.state(place)?;
                Some((rank.task(), usage::memory(usage::process(&state, Some(rank.pid()))?)?))
            });
            memories.look(now, occupied);
        }
    }

    /// When it is to be seen how much memory the ranks occupy.
    fn next_look(&self) -> Option<Instant> {
        self.memories.as_ref()?.next_look().filter(|_| !self.are_gone())
    }

    /// When [`LocalRanks::turn`] has something to do.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.ranks.iter().filter_map(Rank::linger_until).chain(self.next_look()).min()
    }

    /// Carries out an order about ranks.
    pub(crate) fn obey(&mut self, order: &Order) {
        match order {
            Order::Signal { signal, tasks } => {
                let Some(signal) = Signal::from_named_raw(*signal) else { return };
                let is_meant =
                    |rank: &&Rank| tasks.as_ref().is_none_or(|tasks| tasks.contains(&rank.task()));
                let to_ranks =
                    || self.ranks.iter().filter(is_meant).for_each(|rank| rank.signal(signal));
                let is_spared = |rank: &Rank| !is_meant(&rank) && !rank.has_ended();
                if self.ranks.iter().any(is_spared) {
                    // What a rank that is spared has started is spared with it.
                    to_ranks();
                } else {
                    self.orphans.signal(signal, to_ranks);
                }
            }
            Order::Dismiss { task } => {
                self.place_of(*task).into_iter().for_each(|place| self.view.dismiss(place));
            }
            Order::DeclareLost { task } => {
                self.declare_lost(*task);
            }
            Order::Answer { task, answer } => {
                let asker = self.ranks.iter().find(|rank| rank.task() == *task);
                asker.into_iter().for_each(|rank| rank.answer(answer));
            }
            Order::Addresses { context, first, addresses } => {
                let table = self.table.iter();
                for (table, (task, addresses)) in
                    table.flat_map(|table| std::iter::repeat(table).zip((*first..).zip(addresses)))
                {
                    for (context, address) in (*context as usize..).zip(addresses) {
                        // One that the table refuses is missed by the ranks, which then say so.
                        let _ = table.set_address(task, context, address);
                    }
                }
            }
            Order::AddressesComplete { contexts } => {
                self.table.iter().for_each(|table| table.complete(*contexts as usize));
            }
            _ => {}
        }
    }

    /// Declares a rank lost, of this host or of another one.
    fn declare_lost(&self, task: TaskId) {
        match (self.place_of(task), &self.table) {
            (Some(place), _) => self.view.declare_lost(place as TaskId),
            (None, Some(table)) if (task as usize) < table.table().num_tasks() => {
                table.declare_lost(task);
                self.view.ring();
            }
            (None, _) => {}
        }
    }

    fn place_of(&self, task: TaskId) -> Option<usize> {
        self.ranks.iter().position(|rank| rank.task() == task)
    }

    /// Kills everything.
    pub(crate) fn kill(&mut self) {
        self.obey(&Order::Signal { signal: Signal::KILL.as_raw(), tasks: None });
    }

    /// Ends what is left when all ranks are gone. Returns the daemons among it.
    pub(crate) fn end(&mut self) -> Vec<String> {
        self.orphans.end()
    }

    /// Lets go of everything.
    pub(crate) fn leave(self) {
        drop(self.guards);
        // Dropping a rank waits for its process, which even SIGKILL may not end.
        self.ranks.into_iter().filter(|rank| !rank.is_gone()).for_each(std::mem::forget);
    }

    fn take_ending(&mut self, place: usize, news: &mut Vec<News>) {
        let Some((ending, at_nanos)) = self.ranks[place].ending() else { return };
        self.take_last_messages(place, news);
        let rank = &mut self.ranks[place];
        // What it has printed last tells why.
        rank.read(Stream::Err, news);
        news.push(News::Ended { task: rank.task(), ending, at_nanos });
    }

    /// Takes all messages that a rank sent before it ended. The number is limited, since other processes that have
    /// the line may go on sending.
    fn take_last_messages(&mut self, place: usize, news: &mut Vec<News>) {
        for _ in 0..TURNS_AT_THE_END {
            if !self.take_messages(place, news) {
                return;
            }
        }
    }

    /// Takes messages from a rank's line, not more than [`MESSAGES_PER_TURN`]: one that floods its line does not
    /// delay the others. Returns whether there may be more.
    fn take_messages(&mut self, place: usize, news: &mut Vec<News>) -> bool {
        let rank = &mut self.ranks[place];
        let task = rank.task();
        for _ in 0..MESSAGES_PER_TURN {
            match rank.next_message() {
                Ok(Incoming::Nothing) => return false,
                Ok(Incoming::End) => {
                    news.push(News::LineClosed { task });
                    return false;
                }
                Ok(Incoming::Message(message)) => {
                    let is_gone = matches!(message, ControlMessage::Joined { pid } if !rank.watch_program(pid));
                    news.push(News::Message { task, message });
                    if is_gone {
                        news.push(News::ProgramEnded { task, at_nanos: monotonic_nanos() });
                    }
                }
                Err(damage) if rank.is_first_damage() => {
                    news.push(News::Damaged { task, damage: damage.to_string() });
                }
                Err(_) => {}
            }
        }
        true
    }
}

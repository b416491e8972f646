//! Seeded simulation: the devices of a whole job in one thread, over adapters that misbehave.
//!
//! A seed decides everything: how many ranks there are, which protocols carry what, which faults
//! happen, and which rank does what at each step. Nothing blocks, and there is one thread, so the
//! same seed gives the same run. `tests/simulation.rs` runs campaigns of seeds; a seed that fails is
//! repeated by calling [`orderly`] or [`hostile`] with it.

use std::sync::Arc;

use mpj_doubles::fault::{FaultAdapter, FaultPlan};
use mpjdev::{Device, Error, Options, Protocol, Status, Table};
use transport_lapi::adapter::AdapterError;
use transport_lapi::adapters::threads::{self, ThreadsAdapter};
use transport_lapi::{AnyAdapter, LapiError, Violation};

use crate::conformance::Numbers;
use crate::conformance::device::rank::{Pending, Rank};
use crate::conformance::payload;
use oracle::{Ended, History, Receive, Sent};

pub mod oracle;

/// Lengths of messages: nothing, or at least the eight bytes that hold the message's number.
const LENGTHS: [usize; 9] = [0, 8, 40, 303, 305, 8_192, 8_193, 20_000, 70_000];

/// Room of a receive that fits every message, and of one that does not.
const ROOM: usize = 70_000;
const LITTLE_ROOM: usize = 64;

/// Small ranges, so that wildcards and exact values often collide.
const CONTEXTS: usize = 2;
const TAGS: usize = 3;

/// Rounds within which a job that is left alone must come to rest.
const ROUNDS: usize = 5_000;

/// What happened in a run, so that a campaign can show that it reached what it is for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reached {
    /// Messages that came before their receive.
    pub unexpected: u64,
    /// Messages that went by rendezvous since there was no credit.
    pub fallbacks: u64,
    /// Receives that were cancelled before they met a message.
    pub cancelled: u64,
    /// Receives that were to be cancelled and had met a message.
    pub cancelled_late: u64,
    /// Messages that were too long for their receive.
    pub truncated: u64,
    /// Messages that a matched probe took.
    pub probed: u64,
    /// Ranks whose device failed.
    pub failed: u64,
}

impl Reached {
    /// The sum of both.
    pub fn plus(self, other: Self) -> Self {
        Self {
            unexpected: self.unexpected + other.unexpected,
            fallbacks: self.fallbacks + other.fallbacks,
            cancelled: self.cancelled + other.cancelled,
            cancelled_late: self.cancelled_late + other.cancelled_late,
            truncated: self.truncated + other.truncated,
            probed: self.probed + other.probed,
            failed: self.failed + other.failed,
        }
    }
}

/// A run in which frames and gets are refused or come late, but none is damaged: MPI's rules must hold exactly.
///
/// # Errors
/// What went wrong, in words.
pub fn orderly(seed: u64) -> Result<Reached, String> {
    let mut dice = Numbers(seed);
    let (full, delay) = ([0, 100, 600][dice.below(3)], [0, 100, 400][dice.below(3)]);
    let plan = FaultPlan { full, delay, refused: full, late: delay, ..FaultPlan::NONE };
    Run::new(dice, faulty(|_| plan)).complete()
}

/// Makes an adapter that misbehaves, given the number of the task, its adapter and a seed.
fn faulty(
    plan_of: impl Fn(usize) -> FaultPlan,
) -> impl Fn(usize, ThreadsAdapter, u64) -> AnyAdapter {
    move |task, adapter, seed| AnyAdapter::brought(FaultAdapter::new(adapter, seed, plan_of(task)))
}

/// A run in which frames are cut short or changed, or a task is lost. Contents and order may then be wrong, but no call
/// may panic, and a device that has failed must go on saying so.
///
/// # Errors
/// As [`orderly`].
pub fn hostile(seed: u64) -> Result<Reached, String> {
    let mut dice = Numbers(seed);
    let lost = (dice.below(2) as u32, dice.below(60) as u64);
    let kind = dice.below(4);
    let often = [5, 30, 150][dice.below(3)];
    let harmless = FaultPlan { full: 50, delay: 50, refused: 50, late: 50, ..FaultPlan::NONE };
    let plan = FaultPlan {
        truncate: if kind == 0 || kind == 2 { often } else { 0 },
        corrupt: if kind == 1 || kind == 2 { often } else { 0 },
        lose: (kind == 3).then_some(lost),
        ..harmless
    };
    // Sometimes the harmful faults concern only one rank.
    let everyone = dice.below(2) == 0;
    let plan_of = |task| if everyone || task == 0 { plan } else { harmless };
    let mut run = Run::new(dice, faulty(plan_of));
    run.hostile = true;
    for _ in 0..300 {
        run.step()?;
    }
    run.settle()?;
    let reached = run.reached();
    run.give_up();
    reached
}

/// Whether an error of rank `rank` fails one operation alone: another rank is lost, or data cannot be fetched.
fn is_of_operation(error: &Error, rank: usize) -> bool {
    let is_fetch = |error: &LapiError| match error {
        LapiError::Adapter(AdapterError::AccessFailed { .. }) => true,
        LapiError::Peer { violation, .. } => matches!(violation, Violation::GetRefused { .. }),
        _ => false,
    };
    match error.lost_rank() {
        Some(lost) => lost as usize != rank,
        None => matches!(error, Error::Transport(error) if is_fetch(error)),
    }
}

/// An operation under way.
struct Open {
    rank: usize,
    pending: Pending,
    what: What,
}

/// The entry of an operation in the history, by its number.
#[derive(Clone, Copy)]
enum What {
    Send(usize),
    Receive(usize),
}

/// A job and its history.
struct Run {
    dice: Numbers,
    ranks: Vec<Rank>,
    open: Vec<Open>,
    history: History,
    /// Whether errors are to be expected.
    hostile: bool,
    /// For each rank, the error with which its device failed.
    failures: Vec<Option<String>>,
    counts: Reached,
}

impl Run {
    /// `network` wraps the adapter of a task, given its number and a seed.
    fn new(mut dice: Numbers, network: impl Fn(usize, ThreadsAdapter, u64) -> AnyAdapter) -> Self {
        let size = 1 + dice.below(4);
        let options = Options {
            table: table(dice.below(3)),
            early_limit: [1_024, 20_000, 300_000][dice.below(3)],
            ..Options::default()
        };
        let adapters = threads::job(size).expect("a job of threads").into_iter().enumerate();
        let ranks = adapters.map(|(task, adapter)| {
            let adapter = network(task, adapter, dice.next_number());
            Rank::new(Arc::new(Device::new(adapter, options.clone()).expect("a new device")))
        });
        Self {
            ranks: ranks.collect(),
            dice,
            open: Vec::new(),
            history: History::default(),
            hostile: false,
            failures: vec![None; size],
            counts: Reached::default(),
        }
    }

    /// Takes many actions, ends everything, and compares the run with MPI's rules.
    fn complete(mut self) -> Result<Reached, String> {
        for _ in 0..200 {
            self.step()?;
        }
        self.drain()?;
        oracle::verify(&self.history)?;
        self.reached()
    }

    /// Takes one action of one rank.
    fn step(&mut self) -> Result<(), String> {
        self.history.step += 1;
        let rank = self.dice.below(self.ranks.len());
        match self.dice.below(100) {
            0..25 => self.send(rank, false),
            25..32 => self.send(rank, true),
            32..55 => self.post(rank),
            55..60 => self.probe_and_take(rank),
            60..65 => self.probe(rank),
            65..71 => self.cancel_one(),
            71..85 => self.test_one(),
            _ => self.progress(rank),
        }
    }

    /// The value of a call, or `None` if it failed in a permitted way.
    fn judge<T>(&mut self, rank: usize, outcome: Result<T, Error>) -> Result<Option<T>, String> {
        let failure = &mut self.failures[rank];
        match (outcome, failure.as_ref()) {
            (Ok(value), None) => Ok(Some(value)),
            (Ok(_), Some(before)) => Err(format!("rank {rank}: a call went well after: {before}")),
            (Err(error), None) if self.hostile && is_of_operation(&error, rank) => {
                self.counts.failed += 1;
                Ok(None)
            }
            (Err(error), None) if self.hostile => {
                *failure = Some(error.to_string());
                self.counts.failed += 1;
                Ok(None)
            }
            (Err(error), None) => Err(format!("rank {rank}: {error}")),
            (Err(error), Some(before)) if error.to_string() == *before => Ok(None),
            (Err(error), Some(before)) => {
                Err(format!("rank {rank}: {error}, and before: {before}"))
            }
        }
    }

    fn send(&mut self, rank: usize, synchronous: bool) -> Result<(), String> {
        let (dest, context) = (self.dice.below(self.ranks.len()), self.dice.below(CONTEXTS) as u32);
        let (tag, len) = (self.dice.below(TAGS) as i32, LENGTHS[self.dice.below(LENGTHS.len())]);
        let number = self.history.sent.len();
        let (data, from) = (message(number, len), self.ranks[rank].within(context));
        let started = match synchronous {
            true => from.issend(data, dest, tag),
            false => from.isend(data, dest, tag),
        };
        let Some(pending) = self.judge(rank, started)? else { return Ok(()) };
        self.history.sent.push(Sent {
            source: rank,
            dest,
            context,
            tag,
            len,
            synchronous,
            ended: None,
        });
        self.open.push(Open { rank, pending, what: What::Send(number) });
        Ok(())
    }

    /// What a receive or a probe asks for.
    fn pattern(&mut self) -> (u32, Option<usize>, Option<i32>) {
        let source = self.dice.below(self.ranks.len() + 2);
        let tag = self.dice.below(TAGS + 2);
        let context = self.dice.below(CONTEXTS) as u32;
        let source = (source < self.ranks.len()).then_some(source);
        (context, source, (tag < TAGS).then_some(tag as i32))
    }

    fn room(&mut self) -> usize {
        if self.dice.below(5) == 0 { LITTLE_ROOM } else { ROOM }
    }

    fn post(&mut self, rank: usize) -> Result<(), String> {
        let (context, source, tag) = self.pattern();
        let room = self.room();
        let started = self.ranks[rank].within(context).irecv(room, source, tag);
        let Some(pending) = self.judge(rank, started)? else { return Ok(()) };
        self.note_receive(Receive::new(rank, context, source, tag), pending);
        Ok(())
    }

    fn note_receive(&mut self, receive: Receive, pending: Pending) {
        let (rank, what) = (receive.rank, What::Receive(self.history.receives.len()));
        let posted = self.history.step;
        self.history.receives.push(Receive { posted, ..receive });
        self.open.push(Open { rank, pending, what });
    }

    fn probe_and_take(&mut self, rank: usize) -> Result<(), String> {
        let (context, source, tag) = self.pattern();
        let room = self.room();
        self.take(Receive::new(rank, context, source, tag), room).map(drop)
    }

    /// A matched probe and its receive; returns whether there was a message.
    fn take(&mut self, receive: Receive, room: usize) -> Result<bool, String> {
        let Receive { rank, context, source, tag, .. } = receive;
        let from = self.ranks[rank].within(context);
        let found = from.improbe(source, tag);
        let Some(Some(message)) = self.judge(rank, found)? else { return Ok(false) };
        self.check_probed(&receive, message.status())?;
        let started = from.imrecv(message, room);
        let Some(pending) = self.judge(rank, started)? else { return Ok(true) };
        self.note_receive(receive, pending);
        self.counts.probed += 1;
        Ok(true)
    }

    fn probe(&mut self, rank: usize) -> Result<(), String> {
        let (context, source, tag) = self.pattern();
        let found = self.ranks[rank].within(context).iprobe(source, tag);
        match self.judge(rank, found)?.flatten() {
            Some(status) => self.check_probed(&Receive::new(rank, context, source, tag), status),
            None => Ok(()),
        }
    }

    fn check_probed(&self, asked: &Receive, status: Status) -> Result<(), String> {
        if self.hostile || self.history.may_be_probed(asked, status) {
            return Ok(());
        }
        Err(format!("a probe for {asked:?} says {status:?}, and there is no such message"))
    }

    fn cancel_one(&mut self) -> Result<(), String> {
        if self.open.is_empty() {
            return Ok(());
        }
        let place = self.dice.below(self.open.len());
        self.cancel(place)
    }

    fn cancel(&mut self, place: usize) -> Result<(), String> {
        let Open { rank, pending, what } = &self.open[place];
        let (rank, what) = (*rank, *what);
        let outcome = self.ranks[rank].cancel(pending);
        // To cancel a send that was complete at once does not touch the device.
        if matches!(what, What::Send(_)) && matches!(outcome, Ok(false)) {
            return Ok(());
        }
        match (self.judge(rank, outcome)?, what) {
            (Some(true), What::Send(number)) => Err(format!("send {number} was cancelled")),
            (Some(cancelled), What::Receive(number)) => self.note_cancel(number, cancelled),
            _ => Ok(()),
        }
    }

    fn note_cancel(&mut self, number: usize, cancelled: bool) -> Result<(), String> {
        let (step, receive) = (self.history.step, &mut self.history.receives[number]);
        if receive.cancelled.is_some() {
            let twice = format!("receive {number} was cancelled twice");
            return if cancelled { Err(twice) } else { Ok(()) };
        }
        receive.cancelled = cancelled.then_some(step);
        let count = match cancelled {
            true => &mut self.counts.cancelled,
            false => &mut self.counts.cancelled_late,
        };
        *count += 1;
        Ok(())
    }

    fn test_one(&mut self) -> Result<(), String> {
        if self.open.is_empty() {
            return Ok(());
        }
        let place = self.dice.below(self.open.len());
        self.test(place).map(drop)
    }

    /// Tests an operation, and takes it from the list if it has ended. Returns whether it has.
    fn test(&mut self, place: usize) -> Result<bool, String> {
        let Open { rank, pending, what } = &mut self.open[place];
        let (rank, what) = (*rank, *what);
        let outcome = match self.ranks[rank].test(pending) {
            Err(Error::Truncate { source_rank, tag, sent, .. }) => {
                self.counts.truncated += 1;
                Ok(Some(Status { source: source_rank, tag, bytes: sent, cancelled: false }))
            }
            outcome => outcome,
        };
        let has_failed = outcome.as_ref().is_err_and(|error| is_of_operation(error, rank));
        let Some(Some(status)) = self.judge(rank, outcome)? else {
            if has_failed {
                drop(self.open.swap_remove(place));
            }
            return Ok(has_failed);
        };
        let Open { pending, .. } = self.open.swap_remove(place);
        self.note_end(what, status, pending.bytes()).map(|()| true)
    }

    fn note_end(&mut self, what: What, status: Status, bytes: &[u8]) -> Result<(), String> {
        let step = self.history.step;
        match what {
            What::Send(number) => self.history.sent[number].ended = Some(step),
            What::Receive(number) => {
                let ended = Ended { step, status, number: self.number_of(status, bytes)? };
                self.history.receives[number].ended = Some(ended);
            }
        }
        Ok(())
    }

    /// The number of the message with these bytes; `None` if there are none.
    fn number_of(&self, status: Status, bytes: &[u8]) -> Result<Option<usize>, String> {
        let bytes = &bytes[..status.bytes.min(bytes.len())];
        if self.hostile || status.cancelled || bytes.is_empty() {
            return Ok(None);
        }
        let head = bytes.first_chunk().ok_or("a message that is too short for its number")?;
        let number = u64::from_le_bytes(*head) as usize;
        if bytes != &message(number, status.bytes)[..bytes.len()] {
            return Err(format!("the contents of message {number} are wrong: {status:?}"));
        }
        Ok(Some(number))
    }

    fn progress(&mut self, rank: usize) -> Result<(), String> {
        let outcome = self.ranks[rank].progress();
        self.judge(rank, outcome).map(drop)
    }

    /// One round for everybody: progress, and a test of every operation.
    fn round(&mut self) -> Result<(), String> {
        self.history.step += 1;
        for rank in 0..self.ranks.len() {
            self.progress(rank)?;
        }
        let mut place = 0;
        while place < self.open.len() {
            place += usize::from(!self.test(place)?);
        }
        Ok(())
    }

    /// Ends everything that can end: posted receives are cancelled at the beginning or at the end, and messages without
    /// a receive are received.
    fn drain(&mut self) -> Result<(), String> {
        if self.dice.below(2) == 0 {
            self.cancel_all()?;
        }
        for _ in 0..ROUNDS {
            self.round()?;
            self.take_all()?;
            if self.history.all_sends_ended() && self.history.all_messages_received() {
                self.cancel_all()?;
                self.round()?;
                return Ok(());
            }
        }
        let dumps: Vec<_> = self.ranks.iter().filter_map(|rank| rank.dump().ok()).collect();
        Err(format!("still not at rest after {ROUNDS} rounds:\n{}", dumps.concat()))
    }

    fn cancel_all(&mut self) -> Result<(), String> {
        (0..self.open.len()).try_for_each(|place| self.cancel(place))
    }

    fn take_all(&mut self) -> Result<(), String> {
        for rank in 0..self.ranks.len() {
            for context in 0..CONTEXTS as u32 {
                while self.take(Receive::new(rank, context, None, None), ROOM)? {}
            }
        }
        Ok(())
    }

    /// Goes on for some rounds after the last step of a hostile run, so that pending errors show.
    fn settle(&mut self) -> Result<(), String> {
        (0..50).try_for_each(|_| self.round())
    }

    /// Detaches what is still open, with its buffers.
    fn give_up(&mut self) {
        for Open { rank, pending, .. } in self.open.drain(..) {
            self.ranks[rank].detach(pending);
        }
    }

    fn reached(&self) -> Result<Reached, String> {
        let mut reached = self.counts;
        for rank in &self.ranks {
            match rank.stats() {
                Ok(stats) => {
                    reached.unexpected += stats.eager.unexpected + stats.rendezvous.unexpected;
                    reached.fallbacks += stats.credit_fallbacks;
                }
                Err(_) if self.hostile => {}
                Err(error) => return Err(error.to_string()),
            }
        }
        Ok(reached)
    }
}

/// The bytes of a message: its number, and bytes that depend on it.
fn message(number: usize, len: usize) -> Vec<u8> {
    let mut bytes = payload(number as u64, len);
    if let Some(head) = bytes.first_chunk_mut() {
        *head = (number as u64).to_le_bytes();
    }
    bytes
}

/// One of the protocol tables.
fn table(choice: usize) -> Table {
    use Protocol::{Eager, Rendezvous};
    match choice {
        0 => Table::by_length(&[(0, Eager)]),
        1 => Table::by_length(&[(0, Rendezvous)]),
        _ => {
            Table::by_length(&[(0, Eager), (41, Rendezvous), (8_193, Eager), (20_001, Rendezvous)])
        }
    }
}

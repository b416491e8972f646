//! Who failed first, and with which exit code. Pure: times are arguments.
//!
//! The job's poll loop feeds the [`Ledger`] with control messages and endings as they come;
//! [`crate::report`] puts into words what stands in it.
//!
//! - EX1: the first failure *in time* decides, as far as the launcher can tell: of two processes that end
//!   while it does not look, the one with the lower number. A rank that complained shortly before it failed,
//!   mostly of a panic, failed when it did so, by its own clock reading, even if another rank, brought down
//!   by that, was gone sooner. And a rank that is missed by another one shortly before it is seen to have failed
//!   had failed by then: a process in its end may answer nobody any more, and yet not have ended.
//! - EX2: a complaint alone is no failure: a rank may recover. Its ending says whether it did, and one that
//!   comes long after is none of it.
//! - EX3: exit code 0 is a success only of a rank that finished, or of one that never joined in a job
//!   that nobody joined: then the program is none of ours.
//! - EX4: what ended after the job was being stopped was ended by the stop, whatever its code.
//! - EX5: a rank that asks for the end of the job fails by that, at the time at which it asks, however its
//!   process ends after that, and even if it does not.
//! - EX6: a rank that waited at its end in vain, and was let go, fails by its code, since it may have come to
//!   its end by an error. Code 0 says that it did not; then it is not to blame for who waits for it.
//! - EX7: a rank that gives up its place in the job has failed. It is waited for shortly, since its ending
//!   tells more; so is a script whose program has ended without finishing.
//! - EX8: in a job that goes on without a lost rank, another one that gives up has no choice. Code 0 then says
//!   that it came to its end all the same.

use std::collections::BTreeMap;
use std::time::Duration;

use transport_lapi::adapters::MAX_CONTEXTS;
use transport_lapi::bootstrap::control::{ControlMessage, MessageCounts, Queues};

use crate::io::output::Broken;

/// Complaints kept per rank: the first, which may have caused the others, and the latest ones.
const KEPT_COMPLAINTS: usize = 4;
/// A control line that ended this long before its rank did not end with it, in nanoseconds.
const LINE_ALONE: u64 = 50_000_000;
/// How long the script of a program that has ended may take to end too.
const GONE_AFTER: u64 = 1_000_000_000;
/// How long a rank that gave up may take to end, and one that complained before those brought down by it
/// decide.
const SETTLE: u64 = 250_000_000;
/// A rank that failed this long after a complaint had recovered from it.
const RECENT: u64 = 1_000_000_000;
/// How long a process that answers nobody any more may take to end: the kernel takes its memory apart first.
const BURIED: u64 = 5_000_000_000;

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    Code(i32),
    Signal(i32),
}

/// What was wrong with an ending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Any exit code but 0.
    Code(i32),
    /// Killed.
    Signal(i32),
    /// Exit code 0 of a rank that joined and did not finish.
    Unfinished,
    /// Exit code 0 of a rank that joined and could not say whether it finished: its control line was
    /// closed long before its end.
    LineClosed,
    /// It gave up its place in the job, by a panic or an error, and has not ended since (EX7).
    GaveUp { panicked: bool },
    /// One of its threads has ended by a panic, and now every rank waits for another one.
    Deserted,
    /// One of its threads unwinds from a panic, in a call, and now every rank waits for another one.
    Unwinding,
    /// The program is gone without finishing, by a panic or not, and the script that started it goes on
    /// (EX7).
    Gone { panicked: bool },
    /// Exit code 0 of a rank that never joined, while another did.
    NeverJoined,
    /// The rank asked for the end of the job with this code (EX5).
    Aborted(i32),
}

/// The failure that decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) rank: usize,
    pub(crate) fault: Fault,
    /// When, in nanoseconds of the monotonic clock.
    pub(crate) at: u64,
}

/// Why a job did not end by itself with every rank's success.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// A rank failed.
    Failed(Failure),
    /// `--timeout` was over.
    TimedOut(Duration),
    /// No rank made progress for this long, which is more than `--stall` allows.
    Stalled(Duration),
    /// Every rank waits for another one, and nothing is on its way.
    Deadlock,
    /// The launcher got this signal.
    Signalled(i32),
    /// The launcher's output cannot be written.
    Output(Broken),
}

impl Fault {
    fn exit_code(self) -> u8 {
        match self {
            Self::Code(code) => code as u8,
            Self::Signal(signal) => after_signal(signal),
            // Code 0 would call the end of the job a success.
            Self::Aborted(code) => (code as u8).max(1),
            Self::GaveUp { panicked: true } | Self::Gone { panicked: true } => 101,
            Self::Deserted | Self::Unwinding => 101,
            _ => 1,
        }
    }
}

impl Verdict {
    /// The launcher's exit code.
    pub(crate) fn exit_code(self) -> u8 {
        match self {
            Self::Failed(failure) => failure.fault.exit_code(),
            Self::TimedOut(_) | Self::Stalled(_) => 124,
            Self::Signalled(signal) => after_signal(signal),
            Self::Output(Broken::Closed) => after_signal(libc::SIGPIPE),
            Self::Output(_) | Self::Deadlock => 125,
        }
    }
}

fn after_signal(signal: i32) -> u8 {
    u8::try_from(128 + signal).unwrap_or(u8::MAX)
}

/// What follows from what is known of the ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decision {
    /// No rank has failed.
    Nothing,
    /// More is known at this time at the latest, or when another rank has ended.
    Open { until: u64 },
    /// This rank failed first.
    Failed(Failure),
}

/// What a rank said of its own failure.
#[derive(Debug, Clone)]
pub(crate) struct Complaint {
    pub(crate) at: u64,
    pub(crate) message: String,
    /// Where it panicked; empty if it did not.
    pub(crate) location: String,
    /// The kernel's number of the thread that did.
    pub(crate) thread: i32,
}

impl Complaint {
    /// Whether it is of a panic.
    pub(crate) fn is_panic(&self) -> bool {
        !self.location.is_empty()
    }
}

/// What is known of one rank.
#[derive(Debug, Clone, Default)]
pub(crate) struct Record {
    /// The process that the launcher started; `None` if it did not.
    started: Option<u32>,
    /// The process of the program, as far as known: what joined need not be what was started.
    pub(crate) pid: Option<u32>,
    pub(crate) joined: bool,
    pub(crate) leaving: bool,
    pub(crate) finished: bool,
    /// Whether it was let go without waiting for the others (EX6).
    pub(crate) dismissed: bool,
    pub(crate) complaints: Vec<Complaint>,
    /// What it has done, told when it left.
    pub(crate) counters: Option<MessageCounts>,
    /// What it told of its queues, the last time it was asked; by context.
    pub(crate) queues: BTreeMap<u32, Queues>,
    /// When it asked for the end of the job, and with which code.
    aborted: Option<(u64, i32)>,
    /// When it gave up its place in the job.
    gave_up: Option<u64>,
    /// When a call of another rank first failed since this one is gone.
    missed: Option<u64>,
    /// When its control line ended.
    line_closed: Option<u64>,
    /// When the program in a script was found to have ended.
    program_ended: Option<u64>,
    /// Whether [`Ledger::take_failed`] has told of its failure.
    told: bool,
    pub(crate) ended: Option<(Ending, u64)>,
}

impl Record {
    /// Whether a script started the program that joined.
    pub(crate) fn is_script(&self) -> bool {
        self.started.is_some() && self.joined && self.pid != self.started
    }

    /// Whether it gave up its place in the job.
    pub(crate) fn gave_up(&self) -> bool {
        self.gave_up.is_some()
    }

    /// Whether it has failed, as far as that is known at `now`.
    fn state(&self, job: Facts, now: u64) -> State {
        if let Some((at, code)) = self.aborted {
            return State::Failed { fault: Fault::Aborted(code), at, since: at };
        }
        if let Some((ending, ended)) = self.ended {
            let at = self.dated(self.left(job).unwrap_or(ended));
            let fault = self.fault_of(ending, ended, job);
            return fault.map_or(State::Well, |fault| State::Failed { fault, at, since: ended });
        }
        let Some(left) = self.left(job) else { return State::Well };
        let panicked = self.complained(left).is_some_and(Complaint::is_panic);
        let (fault, until) = match self.program_ended {
            Some(end) => (Fault::Gone { panicked }, end.saturating_add(GONE_AFTER)),
            None => (Fault::GaveUp { panicked }, left.saturating_add(SETTLE)),
        };
        let at = self.dated(left);
        if now < until {
            State::Open { at, until }
        } else {
            State::Failed { fault, at, since: until }
        }
    }

    /// What was wrong with how it ended.
    fn fault_of(&self, ending: Ending, at: u64, job: Facts) -> Option<Fault> {
        let line_alone = self.line_closed.is_some_and(|closed| closed + LINE_ALONE < at);
        let is_due = self.finished || self.dismissed || self.gave_up_since(job.lost_at);
        match ending {
            Ending::Code(0) if is_due => None,
            Ending::Code(0) if self.joined && line_alone => Some(Fault::LineClosed),
            Ending::Code(0) if self.joined => Some(Fault::Unfinished),
            Ending::Code(0) => job.somebody_joined.then_some(Fault::NeverJoined),
            Ending::Code(code) => Some(Fault::Code(code)),
            Ending::Signal(signal) => Some(Fault::Signal(signal)),
        }
    }

    /// When the program left the job without having done its part, by its own word or by its end (EX7).
    fn left(&self, job: Facts) -> Option<u64> {
        let gave_up = self.gave_up.filter(|_| !self.gave_up_since(job.lost_at));
        gave_up.or(self.program_ended).filter(|_| !self.finished && !self.dismissed)
    }

    /// Whether it gave up after another rank was lost, by which it had to (EX8).
    fn gave_up_since(&self, lost_at: Option<u64>) -> bool {
        lost_at.zip(self.gave_up).is_some_and(|(lost, gave_up)| gave_up >= lost)
    }

    /// What it said last, shortly before `at` or since (EX2).
    fn complained(&self, at: u64) -> Option<&Complaint> {
        self.complaints.last().filter(|said| said.at.saturating_add(RECENT) >= at)
    }

    /// When another rank missed this one, if that was shortly before `at` (EX1).
    fn missed_shortly_before(&self, at: u64) -> Option<u64> {
        self.missed.filter(|missed| missed.saturating_add(BURIED) >= at)
    }

    /// When a failure that was seen `at` this time began (EX1).
    fn dated(&self, at: u64) -> u64 {
        let said = self.complained(at).map(|said| said.at);
        said.into_iter().chain(self.missed_shortly_before(at)).fold(at, u64::min)
    }

    /// Whether it may still turn out to have failed before another one (EX1, EX2).
    fn is_undecided(&self) -> bool {
        self.ended.is_none() && self.aborted.is_none()
    }
}

/// What counts for every rank of a job.
#[derive(Debug, Clone, Copy)]
struct Facts {
    somebody_joined: bool,
    /// When the first rank was lost, of those that were declared lost: the calls of others may have failed since.
    lost_at: Option<u64>,
}

/// How far a rank is known to have failed.
#[derive(Debug, Clone, Copy)]
enum State {
    /// Not at all.
    Well,
    /// It has, `at` this time, unless how it ends until then says something else.
    Open { at: u64, until: u64 },
    /// It has, `at` this time, which has been certain `since` then.
    Failed { fault: Fault, at: u64, since: u64 },
}

/// What is known of every rank of the job.
#[derive(Debug)]
pub(crate) struct Ledger {
    start: u64,
    host: String,
    records: Vec<Record>,
    /// When the rank had failed of which [`Ledger::take_failed`] told first.
    lost_at: Option<u64>,
}

impl Ledger {
    /// A job of this many ranks, started at `start` on `host`, of which the first ones have these
    /// process ids and the others were not started.
    pub(crate) fn new(
        start: u64,
        host: String,
        ranks: usize,
        pids: impl IntoIterator<Item = u32>,
    ) -> Self {
        let pids = pids.into_iter().map(Some).chain(std::iter::repeat(None));
        let records =
            pids.take(ranks).map(|pid| Record { started: pid, pid, ..Record::default() }).collect();
        Self { start, host, records, lost_at: None }
    }

    /// When the job started, in nanoseconds of the monotonic clock.
    pub(crate) fn start(&self) -> u64 {
        self.start
    }

    /// The name of the host that it runs on.
    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    /// What is known of each rank.
    pub(crate) fn records(&self) -> &[Record] {
        &self.records
    }

    /// Notes a message that came at `now` over `rank`'s line. Answers whether it was the rank's own:
    /// the task in a message is a claim.
    pub(crate) fn note(&mut self, rank: usize, message: ControlMessage, now: u64) -> bool {
        if message.task() as usize != rank {
            return false;
        }
        let record = &mut self.records[rank];
        match message {
            // A second program of a script is refused, and is not the rank.
            ControlMessage::Joined { .. } if record.joined => {}
            ControlMessage::Joined { pid, .. } => {
                record.joined = true;
                record.pid = Some(pid).filter(|pid| *pid != 0).or(record.pid);
            }
            ControlMessage::Leaving { counters, .. } => {
                record.leaving = true;
                record.counters = Some(counters);
            }
            ControlMessage::Finished { .. } => record.finished = true,
            // The number is a claim.
            ControlMessage::Queues { context, queues, .. } if (context as usize) < MAX_CONTEXTS => {
                record.queues.insert(context, queues);
            }
            ControlMessage::Queues { .. } => {}
            ControlMessage::Aborted { at_nanos, code, .. } => {
                record.aborted.get_or_insert((at_nanos.clamp(self.start, now), code));
            }
            ControlMessage::GaveUp { at_nanos, .. } => {
                record.gave_up.get_or_insert(at_nanos.clamp(self.start, now));
            }
            // The number is a claim.
            ControlMessage::MetLoss { at_nanos, lost, .. } if lost as usize != rank => {
                let at = at_nanos.clamp(self.start, now);
                if let Some(lost) = self.records.get_mut(lost as usize) {
                    // An old one was wrong.
                    let before = lost.missed_shortly_before(at);
                    lost.missed = Some(before.map_or(at, |before| before.min(at)));
                }
            }
            ControlMessage::MetLoss { .. } => {}
            ControlMessage::Failed { at_nanos, message, location, thread, .. } => {
                if record.complaints.len() == KEPT_COMPLAINTS {
                    record.complaints.remove(1);
                }
                let at = at_nanos.clamp(self.start, now);
                record.complaints.push(Complaint { at, message, location, thread });
            }
        }
        true
    }

    /// Whether `rank` has done its part of the job.
    pub(crate) fn has_finished(&self, rank: usize) -> bool {
        self.records[rank].finished
    }

    /// Notes that the program of `rank`, which a script started, was found to have ended `at` this time.
    pub(crate) fn program_ended(&mut self, rank: usize, at: u64) {
        self.records[rank].program_ended.get_or_insert(at);
    }

    /// Notes that nothing more will come over `rank`'s line.
    pub(crate) fn line_closed(&mut self, rank: usize, now: u64) {
        self.records[rank].line_closed.get_or_insert(now);
    }

    /// Forgets the queues that ranks have told, since they are about to be asked again.
    pub(crate) fn forget_queues(&mut self) {
        self.records.iter_mut().for_each(|record| record.queues.clear());
    }

    /// The first panic of a thread that is not there any more, in a rank that is: `is_there` tells of a
    /// process and a thread of it. A job that went on for long after it, until its `last_wait` began, has
    /// dealt with that.
    pub(crate) fn desertion(
        &self,
        last_wait: u64,
        is_there: impl Fn(u32, i32) -> bool,
    ) -> Option<Failure> {
        let living = self.records.iter().enumerate().filter(|(_, record)| record.is_undecided());
        let failures = living.filter_map(|(rank, record)| {
            let has_ended = |said: &&Complaint| {
                said.is_panic()
                    && said.at.saturating_add(RECENT) >= last_wait
                    && record.pid.is_some_and(|pid| !is_there(pid, said.thread))
            };
            let panic = record.complaints.iter().find(has_ended)?;
            Some(Failure { rank, fault: Fault::Deserted, at: panic.at })
        });
        failures.min_by_key(|failure| failure.at)
    }

    /// The failure of a rank that was seen to unwind from a panic.
    pub(crate) fn unwinding(&self, rank: usize) -> Option<Failure> {
        let panic = self.records.get(rank)?.complaints.iter().rfind(|said| said.is_panic())?;
        Some(Failure { rank, fault: Fault::Unwinding, at: panic.at })
    }

    /// Notes that `rank` was let go (EX6).
    pub(crate) fn dismissed(&mut self, rank: usize) {
        self.records[rank].dismissed = true;
    }

    /// Whether ranks that were let go have still to end.
    pub(crate) fn awaits_dismissed(&self) -> bool {
        self.records.iter().any(|record| record.dismissed && record.ended.is_none())
    }

    /// Whether a rank asked for the end of the job, which no policy keeps from ending.
    pub(crate) fn abort(&self) -> Option<Failure> {
        let asked = self.records.iter().enumerate();
        let failures = asked.filter_map(|(rank, record)| {
            let (at, code) = record.aborted?;
            Some(Failure { rank, fault: Fault::Aborted(code), at })
        });
        failures.min_by_key(|failure| failure.at)
    }

    /// Notes how `rank` ended, `at` this time.
    pub(crate) fn ended(&mut self, rank: usize, ending: Ending, at: u64) {
        self.records[rank].ended = Some((ending, at));
    }

    /// Whether the job has failed by `now`.
    pub(crate) fn decide(&self, now: u64) -> Decision {
        let Some((failure, since)) = self.failures(now).min_by_key(|(failure, _)| failure.at)
        else {
            let open = self.open(now).map(|(_, until)| until).min();
            return open.map_or(Decision::Nothing, |until| Decision::Open { until });
        };
        let open = self.open_before(failure, since, now);
        open.map_or(Decision::Failed(failure), |until| Decision::Open { until })
    }

    /// Until when it is open whether another rank failed before this failure, which has been certain `since` then
    /// (EX1, EX2, EX7).
    fn open_before(&self, failure: Failure, since: u64, now: u64) -> Option<u64> {
        let open = self.open(now).filter(|(at, _)| *at < failure.at).map(|(_, until)| until);
        let undecided = self.records.iter().filter(|record| record.is_undecided());
        let suspected = undecided.filter_map(|record| {
            let missed = record.missed_shortly_before(failure.at).map(|at| (at, BURIED));
            let said = record.complained(failure.at).map(|said| (said.at, SETTLE));
            let before = missed.into_iter().chain(said).find(|(at, _)| *at < failure.at);
            before.map(|(_, patience)| since.saturating_add(patience))
        });
        open.chain(suspected).filter(|until| now < *until).max()
    }

    /// When more will be known than at `now`, though nothing happens until then.
    pub(crate) fn next_certainty(&self, now: u64) -> Option<u64> {
        let untold = self.untold(now);
        let before = untold.filter_map(|(failure, since)| self.open_before(failure, since, now));
        self.open(now).map(|(_, until)| until).chain(before).filter(|until| *until > now).min()
    }

    /// The states of all ranks at `now`.
    fn states(&self, now: u64) -> impl Iterator<Item = State> {
        let job = self.facts();
        self.records.iter().map(move |record| record.state(job, now))
    }

    /// When ranks failed of which that is not certain, and when it will be.
    fn open(&self, now: u64) -> impl Iterator<Item = (u64, u64)> {
        self.states(now).filter_map(|state| match state {
            State::Open { at, until } => Some((at, until)),
            State::Well | State::Failed { .. } => None,
        })
    }

    /// The failures that are certain by `now`, and since when each has been.
    fn failures(&self, now: u64) -> impl Iterator<Item = (Failure, u64)> {
        self.states(now).enumerate().filter_map(|(rank, state)| match state {
            State::Failed { fault, at, since } => Some((Failure { rank, fault, at }, since)),
            State::Well | State::Open { .. } => None,
        })
    }

    /// Those of them that [`Ledger::take_failed`] has not told of.
    fn untold(&self, now: u64) -> impl Iterator<Item = (Failure, u64)> {
        self.failures(now).filter(|(failure, _)| !self.records[failure.rank].told)
    }

    /// The first rank that has failed by `now` and was not told of before, if there is one. The others are about to
    /// learn that it is lost; with it comes whether it is the first of all.
    pub(crate) fn take_failed(&mut self, now: u64) -> Option<(Failure, bool)> {
        let is_settled =
            |&(failure, since): &(Failure, u64)| self.open_before(failure, since, now).is_none();
        let (failure, _) =
            self.untold(now).filter(is_settled).min_by_key(|(failure, _)| failure.at)?;
        self.records[failure.rank].told = true;
        let is_first = self.lost_at.is_none();
        self.lost_at.get_or_insert(failure.at.min(now));
        Some((failure, is_first))
    }

    fn facts(&self) -> Facts {
        Facts { somebody_joined: self.somebody_joined(), lost_at: self.lost_at }
    }

    /// Whether the program is one of ours, as far as known.
    pub(crate) fn somebody_joined(&self) -> bool {
        self.records.iter().any(|record| record.joined)
    }
}

#[cfg(test)]
pub(crate) mod scene;
#[cfg(test)]
mod tests;

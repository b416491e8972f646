//! Which rank failed first, and the exit code that follows. Pure: times are arguments.
//!
//! The job's poll loop enters control messages and endings into the [`ExitLog`] as they come; [`crate::report`]
//! writes the texts about it.
//!
//! - EX1: the failure that is first *in time* decides. Of two processes that end between two turns of the loop it is
//!   that of the lower rank. A rank that complained shortly before it failed, mostly about a panic, failed at the
//!   time of the complaint, by its own clock, even if another rank ended sooner because of that. A rank that another
//!   one missed shortly before its failure was seen had failed by then: a dying process may answer nobody for a
//!   while before it has ended.
//! - EX2: a complaint alone is no failure: a rank may recover. Its ending decides, and an ending long after the
//!   complaint has another cause.
//! - EX3: exit code 0 of a rank that joined is its program's claim of success. If the rank has not finished, the claim
//!   stands as long as nobody waits for that rank: a batch system takes the exit code for the fate of the results, and
//!   these do not suffer from a forgotten MPI_Finalize, so a note says so. It is a failure if another rank waits in
//!   vain, at its end or in a deadlock; if not all ranks had joined; if the rank gave up before, or has found a mistake at
//!   its end; if it is the code of a script, which hides that of the program; and after the loss of another rank. Exit
//!   code 0 of a rank that never joined is a success in a job that no rank joined: then the program does not use this
//!   library.
//! - EX4: a rank that ends after the stop of the job was ended by that, whatever its code.
//! - EX5: a rank that calls abort, or tells that it cannot communicate with another one, fails at that time, however and
//!   whether its process ends.
//! - EX6: a rank that waited at its end in vain and was let go fails by its exit code, since an error may have
//!   brought it there. With code 0 it has not failed.
//! - EX7: a rank that gives up its place in the job has failed. The verdict waits shortly for its ending, which
//!   tells more; it also waits for a script whose program has ended without finishing.
//! - EX8: when a job goes on without a lost rank, other ranks may have to give up too. They fail by their exit code.
//!   Whatever that is, they are lost to the others from then on, and so is a rank that was let go and has ended.

mod chosen;
mod complaint;
mod lost_hosts;
mod names;
mod verdict;
mod worlds;

use std::collections::BTreeMap;

use transport_lapi::adapters::{MAX_CONTEXTS, SPARE_CONTEXTS};
use transport_lapi::bootstrap::control::{ControlMessage, MessageCounts, Queues};

pub(crate) use chosen::Chosen;
pub(crate) use complaint::Complaint;
use lost_hosts::Host;
pub(crate) use names::Names;
pub(crate) use verdict::{Ending, Failure, Fault, Verdict};

/// Complaints kept per rank: the first one, which may have caused the others, and the latest ones.
const KEPT_COMPLAINTS: usize = 4;
/// Nanoseconds between the end of a control line and that of its rank from which they are two events.
const LINE_ALONE: u64 = 50_000_000;
/// How long a script may go on after its program, in nanoseconds.
const GONE_AFTER: u64 = 1_000_000_000;
/// How long the verdict waits for a rank that gave up or complained, in nanoseconds.
const SETTLE: u64 = 250_000_000;
/// A rank that fails this many nanoseconds after a complaint had recovered from it.
const RECENT: u64 = 1_000_000_000;
/// How long a process that answers nobody may take to end, in nanoseconds: the kernel frees its memory first.
const BURIED: u64 = 5_000_000_000;

/// Which rank failed first, as far as that is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decision {
    /// No rank has failed.
    Nothing,
    /// It will be known at this time, or when another rank has ended.
    Open { until: u64 },
    /// This rank failed first.
    Failed(Failure),
}

/// What is known of one rank.
#[derive(Debug, Clone, Default)]
pub(crate) struct Record {
    /// The place of its host among those of the job.
    host: usize,
    /// The number of its world among those of the job.
    world: usize,
    /// The process that the launcher started, if it did.
    started: Option<u32>,
    /// The process of the program, which a script may have started.
    pub(crate) pid: Option<u32>,
    pub(crate) joined: bool,
    pub(crate) leaving: bool,
    pub(crate) finished: bool,
    /// Whether it was let go at its end (EX6).
    pub(crate) dismissed: bool,
    pub(crate) complaints: Vec<Complaint>,
    /// What it had printed last on standard error when it ended.
    pub(crate) last_words: String,
    /// Its message counts, which it sends when it leaves.
    pub(crate) counters: Option<MessageCounts>,
    /// How often it has chosen which algorithm.
    pub(crate) chosen: Chosen,
    /// Its names for calls and spaces.
    pub(crate) names: Names,
    /// Its queues by context, as it sent them last.
    pub(crate) queues: BTreeMap<u32, Queues>,
    /// When it had the job end, and how: by abort, or as it cannot communicate (EX5).
    demanded_end: Option<(u64, Fault)>,
    /// Why it cannot communicate.
    pub(crate) unreachable: String,
    /// When it gave up its place in the job.
    gave_up: Option<u64>,
    /// When a call of another rank first failed because this one was gone.
    missed: Option<u64>,
    /// When its control line ended.
    line_closed: Option<u64>,
    /// When the program in a script was found to have ended.
    program_ended: Option<u64>,
    /// Whether [`ExitLog::take_failed`] has returned its failure.
    is_taken: bool,
    /// Whether [`ExitLog::take_lost`] has returned it.
    is_lost: bool,
    pub(crate) ended: Option<(Ending, u64)>,
}

impl Record {
    /// Whether the launcher has started it.
    pub(crate) fn was_started(&self) -> bool {
        self.started.is_some()
    }

    /// Whether a script started the program that joined.
    pub(crate) fn is_script(&self) -> bool {
        self.started.is_some() && self.joined && self.pid != self.started
    }

    /// Whether it has found a mistake at its end.
    pub(crate) fn is_mistaken(&self) -> bool {
        self.complaints.iter().any(|said| said.is_mistake)
    }

    /// Enters a complaint.
    fn complain(&mut self, complaint: Complaint) {
        if self.complaints.len() == KEPT_COMPLAINTS {
            self.complaints.remove(1);
        }
        self.complaints.push(complaint);
    }

    /// Whether it gave up its place in the job.
    pub(crate) fn gave_up(&self) -> bool {
        self.gave_up.is_some()
    }

    /// Whether it has failed, as known at `now`.
    fn state(&self, job: Facts, now: u64) -> State {
        if let Some((at, fault)) = self.demanded_end {
            return State::Failed { fault, at, since: at };
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

    /// The fault in how it ended, if any.
    fn fault_of(&self, ending: Ending, at: u64, job: Facts) -> Option<Fault> {
        let line_alone = self.line_closed.is_some_and(|closed| closed + LINE_ALONE < at);
        let is_due = self.finished || self.dismissed || self.gave_up_since(job.lost_at);
        match ending {
            Ending::Code(0) if is_due => None,
            Ending::Code(0) if self.joined && line_alone => Some(Fault::LineClosed),
            Ending::Code(0) if self.joined => self.owes_more(job).then_some(Fault::Unfinished),
            Ending::Code(0) => job.somebody_joined.then_some(Fault::NeverJoined),
            Ending::Code(code) => Some(Fault::Code(code)),
            Ending::Signal(signal) => Some(Fault::Signal(signal)),
            Ending::Lost => Some(Fault::HostLost),
        }
    }

    /// Whether its end with code 0 and without finishing is a failure (EX3).
    fn owes_more(&self, job: Facts) -> bool {
        let has_failed = self.gave_up() || self.is_mistaken();
        has_failed || job.is_awaited || self.is_script() || job.lost_at.is_some()
    }

    /// Whether it ended with code 0 and without finishing, and nobody waits for it (EX3).
    fn ended_early(&self, job: Facts) -> bool {
        let is_unfinished = self.joined && !self.finished && !self.dismissed && !self.gave_up();
        let code = self.ended.map(|(ending, _)| ending);
        is_unfinished && code == Some(Ending::Code(0)) && !self.has_failed(job)
    }

    fn has_failed(&self, job: Facts) -> bool {
        matches!(self.state(job, u64::MAX), State::Failed { .. })
    }

    /// Whether it waits at its end for the other ranks.
    fn is_at_its_end(&self) -> bool {
        let is_through = self.finished || self.dismissed || self.is_mistaken();
        self.leaving && !is_through && self.ended.is_none()
    }

    /// Whether it does nothing any more that another rank may wait for, though it need not have failed (EX8).
    fn has_left_for_good(&self, job: Facts) -> bool {
        self.gave_up_since(job.lost_at) || self.dismissed && self.ended.is_some()
    }

    /// When the program left the job without finishing, because it gave up or ended (EX7).
    fn left(&self, job: Facts) -> Option<u64> {
        let gave_up = self.gave_up.filter(|_| !self.gave_up_since(job.lost_at));
        gave_up.or(self.program_ended).filter(|_| !self.finished && !self.dismissed)
    }

    /// Whether it gave up after another rank was lost (EX8).
    fn gave_up_since(&self, lost_at: Option<u64>) -> bool {
        lost_at.zip(self.gave_up).is_some_and(|(lost, gave_up)| gave_up >= lost)
    }

    /// Its last complaint, if that came shortly before `at` or later (EX2).
    fn complained(&self, at: u64) -> Option<&Complaint> {
        self.complaints.last().filter(|said| said.at.saturating_add(RECENT) >= at)
    }

    /// When another rank missed this one, if that was shortly before `at` (EX1).
    fn missed_shortly_before(&self, at: u64) -> Option<u64> {
        self.missed.filter(|missed| missed.saturating_add(BURIED) >= at)
    }

    /// When the failure that was seen at `at` began (EX1).
    fn dated(&self, at: u64) -> u64 {
        let said = self.complained(at).map(|said| said.at);
        said.into_iter().chain(self.missed_shortly_before(at)).fold(at, u64::min)
    }

    /// Whether it has done shortly before `now` what comes before the end of its process: a complaint, most often about
    /// the error that it then prints, a call of abort, or giving up.
    fn is_about_to_end(&self, now: u64) -> bool {
        let said = self.complaints.last().map(|said| said.at);
        let signs = [said, self.gave_up, self.demanded_end.map(|(at, _)| at)];
        let is_recent = |at: u64| at.saturating_add(SETTLE) >= now;
        self.ended.is_none() && signs.into_iter().flatten().any(is_recent)
    }

    /// Whether it may yet turn out to have failed first (EX1, EX2).
    fn is_undecided(&self) -> bool {
        self.ended.is_none() && self.demanded_end.is_none()
    }
}

/// Facts about the job and a rank's world that decide on the state of the rank.
#[derive(Debug, Clone, Copy)]
struct Facts {
    somebody_joined: bool,
    /// Whether ranks that ended with code 0 and without finishing are waited for (EX3).
    is_awaited: bool,
    /// When the first rank was declared lost: calls of others may have failed since.
    lost_at: Option<u64>,
}

/// Whether a rank has failed.
#[derive(Debug, Clone, Copy)]
enum State {
    /// No.
    Well,
    /// Yes, at `at`, unless it ends in another way before `until`.
    Open { at: u64, until: u64 },
    /// Yes, at `at`; certain since `since`.
    Failed { fault: Fault, at: u64, since: u64 },
}

/// What is known of the ranks of a job.
#[derive(Debug)]
pub(crate) struct ExitLog {
    start: u64,
    hosts: Vec<Host>,
    records: Vec<Record>,
    /// When the rank failed that [`ExitLog::take_failed`] returned first.
    lost_at: Option<u64>,
    /// Whether the ranks that are left wait in vain.
    is_stuck: bool,
}

impl ExitLog {
    /// Returns the exit log of a job of `ranks` ranks, started at `start` on `host`. The first ranks have these
    /// process ids; the others were not started.
    pub(crate) fn new(
        start: u64,
        host: String,
        ranks: usize,
        pids: impl IntoIterator<Item = u32>,
    ) -> Self {
        let pids = pids.into_iter().map(Some).chain(std::iter::repeat(None));
        let records =
            pids.take(ranks).map(|pid| Record { started: pid, pid, ..Record::default() }).collect();
        let hosts = vec![Host { name: host, lost: None }];
        Self { start, hosts, records, lost_at: None, is_stuck: false }
    }

    /// Returns the exit log of a job of several hosts, with the place among `names` of each rank's host, and its
    /// process if it was started.
    pub(crate) fn of_hosts(
        start: u64,
        names: &[String],
        ranks: impl IntoIterator<Item = (usize, Option<u32>)>,
    ) -> Self {
        let hosts = names.iter().map(|name| Host { name: name.clone(), lost: None }).collect();
        let record = |(host, pid)| Record { host, started: pid, pid, ..Record::default() };
        let records = ranks.into_iter().map(record).collect();
        Self { start, hosts, records, lost_at: None, is_stuck: false }
    }

    /// When the job started, in nanoseconds of the monotonic clock.
    pub(crate) fn start(&self) -> u64 {
        self.start
    }

    /// What is known of each rank.
    pub(crate) fn records(&self) -> &[Record] {
        &self.records
    }

    /// Enters a message that came at `now` over `rank`'s line. What messages say is not trusted.
    pub(crate) fn note(&mut self, rank: usize, message: ControlMessage, now: u64) {
        let record = &mut self.records[rank];
        match message {
            // A second program of a script cannot join.
            ControlMessage::Joined { .. } if record.joined => {}
            ControlMessage::Joined { pid } => {
                record.joined = true;
                record.pid = Some(pid).filter(|pid| *pid != 0).or(record.pid);
            }
            ControlMessage::Leaving { counters } => {
                record.leaving = true;
                record.counters = Some(counters);
            }
            ControlMessage::Chosen { name, times } => record.chosen.add(&name, times),
            ControlMessage::Finished => record.finished = true,
            ControlMessage::Vocabulary { first, contexts, vocabulary } => {
                record.names.take(first, contexts, vocabulary);
            }
            // The number may be anything.
            ControlMessage::Queues { context, queues }
                if (context as usize) < MAX_CONTEXTS + SPARE_CONTEXTS =>
            {
                record.queues.insert(context, queues);
            }
            ControlMessage::Queues { .. }
            | ControlMessage::Endpoints { .. }
            | ControlMessage::Demanded { .. } => {}
            ControlMessage::Aborted { at_nanos, code } => {
                let at = at_nanos.clamp(self.start, now);
                record.demanded_end.get_or_insert((at, Fault::Aborted(code)));
            }
            ControlMessage::Unreachable { at_nanos, why } => {
                let at = at_nanos.clamp(self.start, now);
                if record.demanded_end.is_none() {
                    record.demanded_end = Some((at, Fault::Unreachable));
                    record.unreachable = why;
                }
            }
            ControlMessage::GaveUp { at_nanos } => {
                record.gave_up.get_or_insert(at_nanos.clamp(self.start, now));
            }
            // The number may be anything.
            ControlMessage::MetLoss { at_nanos, lost } if lost as usize != rank => {
                let at = at_nanos.clamp(self.start, now);
                if let Some(lost) = self.records.get_mut(lost as usize) {
                    // An older one had another cause.
                    let before = lost.missed_shortly_before(at);
                    lost.missed = Some(before.map_or(at, |before| before.min(at)));
                }
            }
            ControlMessage::MetLoss { .. } => {}
            ControlMessage::Failed { at_nanos, message, location, thread } => {
                let at = at_nanos.clamp(self.start, now);
                let is_mistake = false;
                record.complain(Complaint { at, message, location, thread, is_mistake });
            }
            ControlMessage::Mistaken { at_nanos, message } => {
                let (at, location, thread) = (at_nanos.clamp(self.start, now), String::new(), 0);
                record.complain(Complaint { at, message, location, thread, is_mistake: true });
            }
        }
    }

    /// Notes that the program that `rank`'s script started had ended at `at`.
    pub(crate) fn program_ended(&mut self, rank: usize, at: u64) {
        self.records[rank].program_ended.get_or_insert(at);
    }

    /// The ranks that seem to end by themselves at `now`.
    pub(crate) fn about_to_end(&self, now: u64) -> Vec<usize> {
        let records = self.records.iter().enumerate();
        records.filter(|(_, record)| record.is_about_to_end(now)).map(|(rank, _)| rank).collect()
    }

    /// Notes that `rank`'s control line has ended.
    pub(crate) fn line_closed(&mut self, rank: usize, now: u64) {
        self.records[rank].line_closed.get_or_insert(now);
    }

    /// Forgets the queues that ranks have sent, before they are asked again.
    pub(crate) fn forget_queues(&mut self) {
        self.records.iter_mut().for_each(|record| record.queues.clear());
    }

    /// The threads that have panicked, each with its rank.
    pub(crate) fn panicked_threads(&self) -> Vec<(usize, i32)> {
        let living = self.records.iter().enumerate().filter(|(_, record)| record.is_undecided());
        let threads = living.flat_map(|(rank, record)| {
            let panics = record.complaints.iter().filter(|said| said.is_panic());
            panics.map(move |said| (rank, said.thread))
        });
        threads.collect()
    }

    /// The first failure by a panic that ended a thread but not its rank; `is_there` tells whether the process of a rank
    /// has a thread. A panic long before the `last_wait` of the job began is none: the job went on without that thread.
    pub(crate) fn desertion(
        &self,
        last_wait: u64,
        is_there: impl Fn(usize, u32, i32) -> bool,
    ) -> Option<Failure> {
        let living = self.records.iter().enumerate().filter(|(_, record)| record.is_undecided());
        let failures = living.filter_map(|(rank, record)| {
            let has_ended = |said: &&Complaint| {
                said.is_panic()
                    && said.at.saturating_add(RECENT) >= last_wait
                    && record.pid.is_some_and(|pid| !is_there(rank, pid, said.thread))
            };
            let panic = record.complaints.iter().find(has_ended)?;
            Some(Failure { rank, fault: Fault::Deserted, at: panic.at })
        });
        failures.min_by_key(|failure| failure.at)
    }

    /// The failure of a rank that waits while it unwinds from a panic.
    pub(crate) fn unwinding(&self, rank: usize) -> Option<Failure> {
        let panic = self.records.get(rank)?.complaints.iter().rfind(|said| said.is_panic())?;
        Some(Failure { rank, fault: Fault::Unwinding, at: panic.at })
    }

    /// Notes that `rank` was let go (EX6).
    pub(crate) fn dismissed(&mut self, rank: usize) {
        self.records[rank].dismissed = true;
    }

    /// Whether a rank that was let go still runs.
    pub(crate) fn awaits_dismissed(&self) -> bool {
        self.records.iter().any(|record| record.dismissed && record.ended.is_none())
    }

    /// The first failure of a rank that had the job end (EX5).
    pub(crate) fn demanded_end(&self) -> Option<Failure> {
        let records = self.records.iter().enumerate();
        let failures = records.filter_map(|(rank, record)| {
            let (at, fault) = record.demanded_end?;
            Some(Failure { rank, fault, at })
        });
        failures.min_by_key(|failure| failure.at)
    }

    /// Notes what `rank` has printed last on standard error.
    pub(crate) fn printed_last(&mut self, rank: usize, words: String) {
        self.records[rank].last_words = words;
    }

    /// Notes how `rank` ended, at `at`.
    pub(crate) fn ended(&mut self, rank: usize, ending: Ending, at: u64) {
        self.records[rank].ended = Some((ending, at));
    }

    /// Decides which rank failed first, as known at `now`.
    pub(crate) fn decide(&self, now: u64) -> Decision {
        let Some((failure, since)) = self.failures(now).min_by_key(|(failure, _)| failure.at)
        else {
            let open = self.open(now).map(|(_, until)| until).min();
            return open.map_or(Decision::Nothing, |until| Decision::Open { until });
        };
        let open = self.open_before(failure, since, now);
        open.map_or(Decision::Failed(failure), |until| Decision::Open { until })
    }

    /// Until when another rank may turn out to have failed before `failure`, which is certain since `since` (EX1,
    /// EX2, EX7).
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

    /// When a decision will change by the passing of time alone.
    pub(crate) fn next_certainty(&self, now: u64) -> Option<u64> {
        let failures = self.not_taken(now);
        let before = failures.filter_map(|(failure, since)| self.open_before(failure, since, now));
        self.open(now).map(|(_, until)| until).chain(before).filter(|until| *until > now).min()
    }

    /// The states of all ranks at `now`.
    fn states(&self, now: u64) -> impl Iterator<Item = State> {
        let of = self.facts();
        self.records.iter().map(move |record| record.state(of[record.world], now))
    }

    /// The ranks that ended until `now` with code 0 and without finishing, which is no failure (EX3).
    pub(crate) fn ended_early(&self, now: u64) -> Vec<usize> {
        let of = self.facts();
        let is_meant = |record: &Record| {
            record.ended.is_some_and(|(_, at)| at <= now) && record.ended_early(of[record.world])
        };
        let records = self.records.iter().enumerate();
        records.filter(|(_, record)| is_meant(record)).map(|(rank, _)| rank).collect()
    }

    /// Notes that all ranks that are left wait for others in vain, and returns whether some have ended that they may
    /// wait for: these have failed then (EX3).
    pub(crate) fn stuck(&mut self) -> bool {
        let has_cause = !self.ended_early(u64::MAX).is_empty();
        self.is_stuck |= has_cause;
        has_cause
    }

    /// The failures that are not certain yet: when they began, and when they will be certain.
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

    /// Those of them that [`ExitLog::take_failed`] has not returned.
    fn not_taken(&self, now: u64) -> impl Iterator<Item = (Failure, u64)> {
        self.failures(now).filter(|(failure, _)| !self.records[failure.rank].is_taken)
    }

    /// Takes the first failure that is certain at `now` and was not taken before, and says whether it is the first
    /// one of the job.
    pub(crate) fn take_failed(&mut self, now: u64) -> Option<(Failure, bool)> {
        let is_settled =
            |&(failure, since): &(Failure, u64)| self.open_before(failure, since, now).is_none();
        let (failure, _) =
            self.not_taken(now).filter(is_settled).min_by_key(|(failure, _)| failure.at)?;
        self.records[failure.rank].is_taken = true;
        if failure.fault == Fault::HostLost {
            // The failure is that of the host.
            let lost = self.lost_with(failure.rank);
            lost.into_iter().for_each(|rank| self.records[rank].is_taken = true);
        }
        let is_first = self.lost_at.is_none();
        self.lost_at.get_or_insert(failure.at.min(now));
        Some((failure, is_first))
    }

    /// Takes a rank that does nothing any more for the others: one whose failure was taken, or one that has left
    /// otherwise (EX8). The caller declares it lost.
    pub(crate) fn take_lost(&mut self) -> Option<usize> {
        let of = self.facts();
        let is_news = |record: &Record| {
            !record.is_lost && (record.is_taken || record.has_left_for_good(of[record.world]))
        };
        let rank = self.records.iter().position(is_news)?;
        self.records[rank].is_lost = true;
        Some(rank)
    }

    /// Whether a rank has joined: then the program uses this library.
    pub(crate) fn somebody_joined(&self) -> bool {
        self.records.iter().any(|record| record.joined)
    }
}

#[cfg(test)]
pub(crate) mod scene;
#[cfg(test)]
mod tests;

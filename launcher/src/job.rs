//! Runs a job in one thread: a poll loop over processes, output pipes, control lines, signals and deadlines.
//! Called by `mpjrun`, `cargo-mpj` and [`crate::testing`].
//!
//! ```text
//!  spec       the description of a job
//!  hosts      which ranks run on which host
//!  spawn      checks it, and starts one process per rank, each leading its own process group
//!  judge      when and why the job ends
//!  outgoing   what waits until a line to an agent takes it
//!  flush      the output that is left at the end, and the report
//!  suspend    Ctrl-Z
//!  watching   --watch
//!  recording  --trace, --profile, the last calls
//!  worlds     what ranks demand: further ranks, and names
//! ```
//!
//! - J1: only poll blocks. Pipes, sockets and the launcher's own streams are read when poll says so and written by
//!   calls that do not wait (O3, IN1). Regular files are written directly: they never wait for a reader.
//! - J2: the verdict is passed once. Then every group gets SIGTERM, and SIGKILL after a grace; what ranks do after
//!   the verdict does not count. With `--on-failure keep` a failure becomes the verdict when all ranks have ended.
//!   After a failure, ranks that may be about to end by themselves are spared until the grace is over, and then get one
//!   of their own: they may be printing an error, or what they had not printed before, and a signal would cut that.
//!   These are all that are not known to wait for others in a call, since ranks often fail together.
//! - J3: the report comes last, behind all output of the ranks.
//! - J4: ranks end with the thread that runs the job, even if that is killed. Processes that a rank started end
//!   with the rank's group; if the launcher is killed, the guard ends the groups. The guard ends before the ranks
//!   are reaped (K1 of `host/rank.rs`). Processes that left their group end with the job (ST3 of
//!   `host/orphans.rs`).

pub mod agent;
mod agents;
mod away;
mod flush;
mod here;
pub(crate) mod hosts;
mod judge;
mod outgoing;
pub(crate) mod ranks;
mod recording;
pub(crate) mod spawn;
mod spec;
mod suspend;
pub(crate) mod watching;
mod worlds;

use std::collections::HashSet;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::Signal;
use transport_lapi::TaskId;
use transport_lapi::bootstrap::control::ControlMessage;
use transport_lapi::bootstrap::control::agents::{News, Order};
use transport_lapi::bootstrap::monotonic_nanos;
use transport_lapi::bootstrap::signals::Signals;

use crate::LaunchError;
use crate::exits::{ExitLog, Verdict};
use crate::hang::snapshot::Snapshot;
use crate::hang::watcher::{Occasion, Watcher};
use crate::host::local::RankEvent;
use crate::host::orphans::GIVE_UP;
use crate::host::rank::Pauses;
use crate::io::output::{Delivery, Printer, Stream, Transcript};
use crate::io::stdin::{FOREGROUND_CHECK, Forwarded, Forwarding, Interest};
use crate::report;

pub use crate::hang::watcher::Vigilance;
pub use crate::host::binding::{BindTo, Binding, MapBy};
pub use crate::io::output::OutputChoice;
pub use crate::io::stdin::InputChoice;

pub use crate::profile::ProfileChoice;
pub use crate::trace::TraceChoice;
pub use hosts::{Deal, HostSlots, Hosts, Starter};
pub(crate) use spec::Universe;
pub use spec::{App, Export, JobSpec, OnFailure};

use ranks::{AgentEvent, Ranks};
use recording::Recording;
use watching::Watching;
use worlds::{Names, Spawner};

/// From SIGTERM to SIGKILL after a failure.
const GRACE_AFTER_FAILURE: Duration = Duration::from_millis(200);
/// From SIGTERM to SIGKILL when the launcher itself was asked to end.
const GRACE_AFTER_SIGNAL: Duration = Duration::from_secs(2);
/// How long ranks that wait at their end have before SIGTERM, to report their own errors (JU2).
const FAREWELL_AFTER_SIGNAL: Duration = Duration::from_millis(500);
/// Ending signals that come closer together than this are one request: `timeout` signals its child and then its
/// group, and no user asks twice so soon.
const ONE_REQUEST: Duration = Duration::from_millis(100);
/// A launcher that wakes up this late was stopped, or its machine was.
const STANDSTILL: Duration = Duration::from_secs(1);

/// Signals that ask the launcher to end the job.
const ENDING: &[Signal] = &[Signal::INT, Signal::TERM, Signal::HUP];
/// Signals that are passed on to the ranks.
const FORWARDED: &[Signal] = &[Signal::USR1, Signal::USR2, Signal::CONT];
/// Signals with a meaning of their own, beside QUIT, which asks for a report. XFSZ is blocked because the failed
/// write reports the file that grew too large.
const OTHERS: &[Signal] = &[Signal::TSTP, Signal::XFSZ];

/// How a job ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The launcher's exit code.
    pub code: u8,
    /// Why the job failed, in a sentence; `None` if the exit code says it all.
    pub cause: Option<String>,
}

/// Runs the job `spec` to its end and returns how it ended. The calling thread must live until then (J4); its
/// signal mask is changed and restored.
///
/// # Errors
/// [`LaunchError`] if a rank cannot be started or polling fails; no rank is left then.
pub fn run(spec: &JobSpec) -> Result<Outcome, LaunchError> {
    // Files are opened before signals are blocked, so that a signal ends an open that hangs.
    match &spec.hosts {
        Some(hosts) => away::start(spec, hosts),
        None => here::start(spec),
    }?
    .run()
    .map_err(|errno| LaunchError::System { action: "wait for events", source: errno.into() })
}

/// How far the job is on its way to its end.
#[derive(Debug, Clone, Copy)]
enum Phase {
    Running,
    /// Ranks that waited at their end were let go; the job is stopped when they have reported their errors (JU2).
    Dismissing {
        until: Instant,
        verdict: Verdict,
    },
    /// SIGTERM was sent.
    Stopping {
        kill_at: Instant,
    },
    /// SIGKILL was sent.
    Killing {
        give_up_at: Instant,
    },
}

/// What a ready descriptor means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    Signal,
    Rank(RankEvent),
    Agent(AgentEvent),
    Printable(Stream),
    Input,
}

/// A descriptor of the poll set.
pub(crate) type Interesting<'a> = (Event, BorrowedFd<'a>, PollFlags);

/// Waits for descriptors of `set` until `deadline`, and returns the events of those that are ready.
pub(crate) fn events(
    set: &[Interesting<'_>],
    deadline: Option<Instant>,
) -> Result<Vec<Event>, Errno> {
    let mut entries: Vec<PollFd<'_>> =
        set.iter().map(|(_, fd, flags)| PollFd::from_borrowed_fd(*fd, *flags)).collect();
    let timeout = deadline.map(|deadline| {
        let left = deadline.saturating_duration_since(Instant::now());
        Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() }
    });
    match poll(&mut entries, timeout.as_ref()) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(errno) => return Err(errno),
    }
    let ready = set.iter().zip(&entries).filter(|(_, entry)| !entry.revents().is_empty());
    Ok(ready.map(|((event, ..), _)| *event).collect())
}

/// What the job keeps of one rank, beside its record in the exit log.
struct Seat {
    transcript: Transcript,
    /// Whether nothing more will come from it.
    is_gone: bool,
}

struct Job {
    exit_log: ExitLog,
    ranks: Box<dyn Ranks>,
    seats: Vec<Seat>,
    printer: Printer,
    input: Option<Forwarding>,
    signals: Signals,
    watcher: Watcher,
    on_failure: OnFailure,
    prints_stats: bool,
    timeout: Option<(Duration, Instant)>,
    phase: Phase,
    /// The ranks that have not got SIGTERM yet (J2).
    spared: Vec<usize>,
    /// The ranks that are known to the user to have ended without MPI_Finalize.
    noted: Vec<usize>,
    /// With the time at which it was passed, in nanoseconds of the monotonic clock.
    verdict: Option<(Verdict, u64)>,
    /// When an ending signal came last.
    interrupted: Option<Instant>,
    /// The state of the ranks before they were stopped.
    snapshot: Option<Snapshot>,
    /// Starts further ranks, in a job of one host.
    spawner: Option<Spawner>,
    names: Names,
    watching: Watching,
    /// Where the ranks record their calls, if they do.
    recording: Option<Recording>,
    /// The part of the report about the last calls of the ranks.
    last_calls: String,
}

/// What a job that has been started consists of, beside its description.
struct Parts {
    exit_log: ExitLog,
    ranks: Box<dyn Ranks>,
    printer: Printer,
    input: Option<Forwarding>,
    signals: Signals,
    watcher: Watcher,
    spawner: Option<Spawner>,
    recording: Option<Recording>,
}

impl Job {
    fn new(spec: &JobSpec, deliveries: Vec<Delivery>, parts: Parts) -> Self {
        let Parts { exit_log, ranks, printer, input, signals, watcher, spawner, recording } = parts;
        let seat = |(rank, delivery): (usize, Delivery)| {
            // Ranks that were not started, since one before them had failed, are gone.
            let is_gone = !exit_log.records()[rank].was_started();
            Seat { transcript: Transcript::new(rank, delivery), is_gone }
        };
        Self {
            seats: deliveries.into_iter().enumerate().map(seat).collect(),
            exit_log,
            ranks,
            printer,
            input,
            signals,
            watcher,
            on_failure: spec.on_failure,
            prints_stats: spec.stats,
            timeout: spec.timeout.map(|limit| (limit, Instant::now() + limit)),
            phase: Phase::Running,
            spared: Vec::new(),
            noted: Vec::new(),
            verdict: None,
            interrupted: None,
            snapshot: None,
            spawner,
            names: Names::new(),
            watching: Watching::of(spec),
            recording,
            last_calls: String::new(),
        }
    }

    fn run(mut self) -> Result<Outcome, Errno> {
        while !self.seats.iter().all(|seat| seat.is_gone) && !self.has_given_up() {
            self.turn()?;
        }
        self.input = None;
        self.printer.hide();
        let daemons = self.ranks.end();
        if !daemons.is_empty() {
            let daemons = daemons.join(", ");
            self.printer.say(&format!("mpjrun: ended daemons that ranks had started: {daemons}\n"));
        }
        self.judge_at_end();
        if self.prints_stats {
            self.printer.say(&report::stats(&self.exit_log));
        }
        self.tell_records();
        self.flush()?;
        self.ranks.leave();
        let verdict = self.verdict.map(|(verdict, _)| verdict);
        let code = verdict.map_or(0, Verdict::exit_code);
        Ok(Outcome {
            code,
            cause: verdict.and_then(|verdict| report::in_brief(&self.exit_log, verdict)),
        })
    }

    /// Waits for events, and handles them.
    fn turn(&mut self) -> Result<(), Errno> {
        let mut events = self.wait()?;
        // A rank's messages and output come before its end.
        events.sort_by_key(|event| matches!(event, Event::Rank(RankEvent::Exit(_))));
        for event in events {
            self.handle(event);
        }
        let now = Instant::now();
        let mut news = Vec::new();
        self.ranks.turn(now, self.verdict.is_none(), self.pauses(), &mut news);
        self.take(news);
        self.judge(now);
        self.keep_deadlines(now);
        self.keep_watch(now);
        Ok(())
    }

    /// For which streams the reader of the launcher's own output pauses.
    fn pauses(&self) -> Pauses {
        let [out, err] = [Stream::Out, Stream::Err].map(|stream| self.printer.is_congested(stream));
        Pauses { out, err }
    }

    /// The descriptors to wait for while output is written.
    fn writing_interests(&self) -> Vec<Interesting<'_>> {
        let signals = (Event::Signal, self.signals.as_fd(), PollFlags::IN);
        let streams = self.printer.wanting();
        let streams =
            streams.map(|(stream, sink)| (Event::Printable(stream), sink, PollFlags::OUT));
        std::iter::once(signals).chain(streams).collect()
    }

    /// The descriptors to wait for while ranks run.
    fn interests(&self) -> Vec<Interesting<'_>> {
        let mut set = self.writing_interests();
        self.ranks.interests(self.pauses(), &mut set);
        match self.input.as_ref().map(Forwarding::interest) {
            Some(Interest::Input(input)) => set.push((Event::Input, input, PollFlags::IN)),
            Some(Interest::Pipe(pipe)) => set.push((Event::Input, pipe, PollFlags::OUT)),
            Some(Interest::Foreground | Interest::Nothing) | None => {}
        }
        set
    }

    fn wait(&mut self) -> Result<Vec<Event>, Errno> {
        let deadline = self.next_deadline();
        let events = events(&self.interests(), deadline)?;
        let late =
            deadline.map_or(Duration::ZERO, |at| Instant::now().saturating_duration_since(at));
        if late > STANDSTILL {
            self.resumed(late);
        }
        Ok(events)
    }

    fn next_deadline(&self) -> Option<Instant> {
        let now = monotonic_nanos();
        let certain = self.exit_log.next_certainty(now).filter(|_| self.verdict.is_none());
        let decision = certain.map(|at| Instant::now() + Duration::from_nanos(at - now));
        let phase = match self.phase {
            Phase::Running => None,
            // An open decision is waited for even after that time.
            Phase::Dismissing { until, .. } => Some(decision.map_or(until, |at| until.max(at))),
            Phase::Stopping { kill_at } => Some(kill_at),
            Phase::Killing { give_up_at } => Some(give_up_at),
        };
        let is_overseen = self.is_overseen();
        let is_timed = is_overseen && !self.watcher.is_inquiring();
        let timeout = self.timeout.filter(|_| is_timed).map(|(_, at)| at);
        let foreground = self.input.as_ref().and_then(|input| {
            matches!(input.interest(), Interest::Foreground)
                .then(|| Instant::now() + FOREGROUND_CHECK)
        });
        let lingering = self.ranks.next_deadline().into_iter();
        let deadlines = lingering.chain(phase).chain(timeout).chain(foreground);
        let watcher = is_overseen.then(|| self.watcher.next_deadline()).flatten();
        let watching = self.watching.next_deadline().filter(|_| self.verdict.is_none());
        deadlines.chain(watcher).chain(decision).chain(watching).min()
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Signal => self.take_signals(),
            Event::Rank(_) | Event::Agent(_) => {
                let mut news = Vec::new();
                self.ranks.handle(event, &mut news);
                self.take(news);
            }
            Event::Printable(stream) => self.printer.write(stream),
            Event::Input => self.forward_input(),
        }
    }

    fn forward_input(&mut self) {
        let Some(input) = &mut self.input else { return };
        match input.forward() {
            Forwarded::More => {}
            Forwarded::Line(bytes) => self.ranks.order(Order::Input { bytes }),
            // Dropping the forwarding closes the rank's input.
            Forwarded::End => self.input = None,
        }
    }

    fn take_signals(&mut self) {
        while let Some(signal) = self.signals.next_pending() {
            match signal {
                Signal::TSTP => self.suspend(),
                Signal::QUIT => self.inquire(Occasion::Request),
                watching::ASK => self.watching.is_asked = true,
                Signal::XFSZ => {}
                signal if FORWARDED.contains(&signal) => self.signal_all(signal),
                signal => self.interrupt(signal),
            }
        }
    }

    /// Ends the job for a signal: with a grace the first time, then at once.
    fn interrupt(&mut self, signal: Signal) {
        let now = Instant::now();
        let last = self.interrupted.replace(now);
        if last.is_some_and(|last| now.duration_since(last) < ONE_REQUEST) {
            return;
        }
        let verdict = Verdict::Signalled(signal.as_raw());
        match (self.verdict, self.phase) {
            (Some(_), _) => self.kill(),
            (None, Phase::Dismissing { verdict: Verdict::Signalled(_), .. }) => {
                self.stop(verdict);
                self.kill();
            }
            _ => match self.watcher.snapshot(true) {
                Some(snapshot) => self.dismiss(snapshot, verdict, now + FAREWELL_AFTER_SIGNAL),
                None => self.stop(verdict),
            },
        }
    }

    /// Takes what ranks have sent and nobody has read yet.
    fn take_what_has_come(&mut self) {
        let mut news = Vec::new();
        self.ranks.take_what_has_come(&mut news);
        self.take(news);
    }

    /// Takes news of the ranks, wherever they run. News of ranks that the job does not have are none.
    fn take(&mut self, news: Vec<News>) {
        for news in news {
            let rank = task_of(&news).map(|task| task as usize);
            if rank.is_none_or(|rank| rank < self.seats.len()) {
                self.take_one(rank.unwrap_or_default(), news);
            }
        }
    }

    fn take_one(&mut self, rank: usize, news: News) {
        match news {
            News::Output { stream, bytes, .. } => {
                self.seats[rank].transcript.take(stream, &bytes, &mut self.printer);
            }
            News::OutputEnded { stream, .. } => {
                self.seats[rank].transcript.end(stream, &mut self.printer);
            }
            News::Message { message: ControlMessage::Demanded { demand }, .. } => {
                self.answer(rank, demand);
            }
            News::Message { message, .. } => {
                if matches!(message, ControlMessage::Queues { .. }) {
                    self.watcher.answered(rank);
                }
                self.exit_log.note(rank, message, monotonic_nanos());
            }
            News::Damaged { damage, .. } => self.printer.say(&format!(
                "mpjrun: ignoring a damaged control message of rank {rank}, and further damaged ones: {damage}\n"
            )),
            News::LineClosed { .. } => self.exit_log.line_closed(rank, monotonic_nanos()),
            News::ProgramEnded { at_nanos, .. } => {
                self.exit_log.program_ended(rank, at_nanos);
                self.watcher.ended(rank);
            }
            News::Ended { ending, at_nanos, .. } => {
                self.exit_log.printed_last(rank, self.seats[rank].transcript.last_words());
                self.exit_log.ended(rank, ending, at_nanos);
                self.watcher.ended(rank);
                self.forget_names(rank);
            }
            News::Gone { .. } => self.seats[rank].is_gone = true,
            News::Seen { number, seen, .. } => self.watcher.seen(rank, number, *seen),
            News::Lost { host, reason, .. } => {
                self.watcher.lost(host as usize);
                self.exit_log.host_lost(host as usize, reason);
            }
            News::Still { host, sent, received } => {
                self.watcher.still(host as usize, sent, received);
            }
            News::HasBeenStill { host, round, still } => {
                self.watcher.has_been_still(host as usize, round, still);
            }
            News::Paused { host, round, pause } => self.watcher.paused(host as usize, round, pause),
            News::InputTaken { takes_more: true } => {
                self.input.iter_mut().for_each(Forwarding::taken);
            }
            News::InputTaken { takes_more: false } => self.input = None,
            // What comes before the ranks run and after they are gone is for `ranks` alone.
            News::Hello { .. }
            | News::Ready
            | News::Refused { .. }
            | News::Started { .. }
            | News::Over { .. }
            | News::Addresses { .. }
            | News::Clock { .. }
            | News::Records { .. }
            | News::RecordsTold { .. }
            | News::Alive => {}
        }
    }

    fn keep_deadlines(&mut self, now: Instant) {
        if self.is_overseen() {
            self.oversee(now);
        }
        if let Phase::Stopping { kill_at } = self.phase {
            if now >= kill_at {
                self.stop_spared(now);
            }
        }
    }

    fn stop(&mut self, verdict: Verdict) {
        let grace = match verdict {
            Verdict::Signalled(_) => GRACE_AFTER_SIGNAL,
            _ => GRACE_AFTER_FAILURE,
        };
        let afresh = matches!(verdict, Verdict::Failed(_));
        self.snapshot = self.snapshot.take().or_else(|| self.watcher.snapshot(afresh));
        if self.snapshot.is_none() {
            // Agents obey this before the signals that follow.
            let seats = &self.seats;
            let order = self.watcher.look_before_the_end(|rank| seats[rank].is_gone);
            order.into_iter().for_each(|order| self.ranks.order(order));
        }
        // A rank that was let go is reported as it was before.
        let is_before = matches!(self.phase, Phase::Dismissing { .. });
        let before = self.snapshot.as_ref().filter(|_| is_before).map(|snapshot| snapshot.at);
        self.verdict = Some((verdict, before.unwrap_or_else(monotonic_nanos)));
        self.phase = Phase::Stopping { kill_at: Instant::now() + grace };
        if matches!(verdict, Verdict::Failed(_)) {
            self.take_what_has_come();
            self.spared = self.may_be_ending();
        }
        let spared: HashSet<usize> = self.spared.iter().copied().collect();
        let others = (0..self.seats.len()).filter(|rank| !spared.contains(rank));
        let meant = (!self.spared.is_empty()).then(|| others.collect());
        self.terminate(meant);
    }

    /// Stops the ranks that were spared and have not ended. Without such ranks it kills all that are left.
    fn stop_spared(&mut self, now: Instant) {
        let spared = std::mem::take(&mut self.spared);
        if spared.iter().all(|rank| self.exit_log.records()[*rank].ended.is_some()) {
            return self.kill();
        }
        self.phase = Phase::Stopping { kill_at: now + GRACE_AFTER_FAILURE };
        self.terminate(Some(spared));
    }

    /// Sends SIGTERM to these ranks, or to all.
    fn terminate(&mut self, ranks: Option<Vec<usize>>) {
        let tasks: Option<Vec<TaskId>> =
            ranks.map(|ranks| ranks.into_iter().map(|rank| rank as TaskId).collect());
        // A suspended process acts on SIGTERM only when it goes on.
        for signal in [Signal::TERM, Signal::CONT] {
            let tasks = tasks.clone();
            self.ranks.order(Order::Signal { signal: signal.as_raw(), tasks });
        }
    }

    fn kill(&mut self) {
        if !matches!(self.phase, Phase::Killing { .. }) {
            self.phase = Phase::Killing { give_up_at: Instant::now() + GIVE_UP };
            self.signal_all(Signal::KILL);
        }
    }

    fn signal_all(&mut self, signal: Signal) {
        self.ranks.order(Order::Signal { signal: signal.as_raw(), tasks: None });
    }

    fn has_given_up(&self) -> bool {
        matches!(self.phase, Phase::Killing { give_up_at } if Instant::now() >= give_up_at)
    }
}

/// The rank that news are about, if they are about one.
pub(crate) fn task_of(news: &News) -> Option<TaskId> {
    match news {
        News::Output { task, .. }
        | News::OutputEnded { task, .. }
        | News::Message { task, .. }
        | News::Damaged { task, .. }
        | News::LineClosed { task }
        | News::ProgramEnded { task, .. }
        | News::Ended { task, .. }
        | News::Gone { task }
        | News::Seen { task, .. }
        | News::Records { task, .. } => Some(*task),
        _ => None,
    }
}

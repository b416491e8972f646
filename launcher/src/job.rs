//! Runs a job in one thread: a poll loop over processes, output pipes, control lines, signals and deadlines.
//! Called by `mpjrun`, `cargo-mpj` and [`crate::testing`].
//!
//! ```text
//!  spec       the description of a job
//!  hosts      which ranks run on which host
//!  spawn      checks it, and starts one process per rank, each leading its own process group
//!  judge      when and why the job ends
//!  flush      the output that is left at the end, and the report
//!  suspend    Ctrl-Z
//! ```
//!
//! - J1: only poll blocks. Pipes, sockets and the launcher's own streams are read when poll says so and written by
//!   calls that do not wait (O3, IN1). Regular files are written directly: they never wait for a reader.
//! - J2: the verdict is passed once. Then every group gets SIGTERM, and SIGKILL after a grace; what ranks do after
//!   the verdict does not count. With `--on-failure keep` a failure becomes the verdict when all ranks have ended.
//!   After a failure, ranks that are about to end by themselves are spared until the grace is over, and then get one of
//!   their own: they may be printing an error, or what they had not printed before, and a signal would cut that.
//! - J3: the report comes last, behind all output of the ranks.
//! - J4: ranks end with the thread that runs the job, even if that is killed. Processes that a rank started end
//!   with the rank's group; if the launcher is killed, the guard ends the groups. The guard ends before the ranks
//!   are reaped (K1 of `host/rank.rs`). Processes that left their group end with the job (ST3 of
//!   `host/orphans.rs`).

mod flush;
pub(crate) mod hosts;
mod judge;
pub(crate) mod spawn;
mod spec;
mod suspend;

use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal};
use transport_lapi::bootstrap::control::{ControlMessage, Incoming};
use transport_lapi::bootstrap::guard::Guard;
use transport_lapi::bootstrap::monotonic_nanos;
use transport_lapi::bootstrap::signals::{Signals, keep_children_waitable};
use transport_lapi::bootstrap::spawn::DescriptorLimit;

use crate::LaunchError;
use crate::exits::{ExitLog, Verdict};
use crate::hang::snapshot::Snapshot;
use crate::hang::watcher::{Occasion, Watcher};
use crate::host::machine::host_name;
use crate::host::orphans::{GIVE_UP, Orphans};
use crate::host::rank::Rank;
use crate::io::output::{Printer, Stream};
use crate::io::stdin::{FOREGROUND_CHECK, Forwarding, Interest};
use crate::report;

pub use crate::hang::watcher::Vigilance;
pub use crate::host::binding::{BindTo, Binding, MapBy};
pub use crate::io::output::OutputChoice;
pub use crate::io::stdin::InputChoice;

pub use hosts::{Deal, HostSlots, Hosts, Starter};
pub use spec::{App, Export, JobSpec, OnFailure};

use spawn::Started;

/// From SIGTERM to SIGKILL after a failure.
const GRACE_AFTER_FAILURE: Duration = Duration::from_millis(200);
/// From SIGTERM to SIGKILL when the launcher itself was asked to end.
const GRACE_AFTER_SIGNAL: Duration = Duration::from_secs(2);
/// How long ranks that wait at their end have before SIGTERM, to report their own errors (JU2).
const FAREWELL_AFTER_SIGNAL: Duration = Duration::from_millis(500);
/// Ending signals that come closer together than this are one request: `timeout` signals its child and then its
/// group, and no user asks twice so soon.
const ONE_REQUEST: Duration = Duration::from_millis(100);
/// Control messages taken from one rank in a turn.
const MESSAGES_PER_TURN: usize = 64;
/// How many times as many are taken from a rank that has ended; a control line holds fewer.
const TURNS_AT_THE_END: usize = 64;

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
    if spec.hosts.is_some() {
        let source = std::io::ErrorKind::Unsupported.into();
        return Err(LaunchError::System { action: "start ranks on other hosts", source });
    }
    let prepared = spawn::check(spec)?;
    // Files are opened before signals are blocked, so that a signal ends an open that hangs.
    let limit = DescriptorLimit::raise();
    let deliveries = spec.output.deliveries(spec.ranks())?;
    keep_children_waitable();
    let signals = Signals::block(&[ENDING, FORWARDED, OTHERS].concat(), &[Signal::QUIT])
        .map_err(|source| LaunchError::System { action: "receive signals", source })?;
    let mut orphans = Orphans::adopt();
    let start = monotonic_nanos();
    let Started { ranks, input, segment } =
        prepared.start(&limit, signals.mask_before(), deliveries)?;
    let mut printer = Printer::new(spec.output.is_exact(spec.ranks()));
    for note in &spec.notes {
        printer.say(&format!("mpjrun: {note}\n"));
    }
    let groups: Vec<Pid> = ranks.iter().map(Rank::group).collect();
    let guard = Guard::over(&groups);
    if let Err(refused) = &guard {
        printer.say(&format!(
            "mpjrun: cannot start the guard, so processes that ranks started may stay if mpjrun is killed: {refused}\n"
        ));
    }
    let guard = guard.ok();
    orphans.spare(&groups, guard.as_ref().map(Guard::process));
    let pids: Vec<u32> = ranks.iter().map(Rank::pid).collect();
    let watcher = Watcher::new(&segment, &spec.vigilance, pids.clone(), prepared.spinning())?;
    for line in prepared.lines(&pids) {
        printer.say(&format!("mpjrun: {line}\n"));
    }
    let job = Job {
        exit_log: ExitLog::new(start, host_name(), spec.ranks(), pids),
        guard,
        ranks,
        orphans,
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
    };
    job.run()
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
#[derive(Debug, Clone, Copy)]
enum Event {
    Signal,
    Exit(usize),
    /// The program that a rank's script started has ended.
    Program(usize),
    Control(usize),
    Output(usize, Stream),
    Printable(Stream),
    Input,
}

/// A descriptor of the poll set.
type Interesting<'a> = (Event, BorrowedFd<'a>, PollFlags);

/// Waits for descriptors of `set` until `deadline`, and returns the events of those that are ready.
fn events(set: &[Interesting<'_>], deadline: Option<Instant>) -> Result<Vec<Event>, Errno> {
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

struct Job {
    exit_log: ExitLog,
    /// Dropped before the ranks are reaped (J4). `None` if the system refused to fork it.
    guard: Option<Guard>,
    ranks: Vec<Rank>,
    orphans: Orphans,
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
}

impl Job {
    fn run(mut self) -> Result<Outcome, Errno> {
        while !self.ranks.iter().all(Rank::is_gone) && !self.has_given_up() {
            self.turn()?;
        }
        self.input = None;
        let daemons = self.orphans.end();
        if !daemons.is_empty() {
            let daemons = daemons.join(", ");
            self.printer.say(&format!("mpjrun: ended daemons that ranks had started: {daemons}\n"));
        }
        self.judge_at_end();
        if self.prints_stats {
            self.printer.say(&report::stats(&self.exit_log));
        }
        self.flush()?;
        drop(self.guard);
        // Dropping a rank waits for its process, which even SIGKILL may not end.
        self.ranks.into_iter().filter(|rank| !rank.is_gone()).for_each(std::mem::forget);
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
        events.sort_by_key(|event| matches!(event, Event::Exit(_)));
        for event in events {
            self.handle(event);
        }
        let now = Instant::now();
        for rank in &mut self.ranks {
            rank.close_if_done(now, self.verdict.is_none(), &mut self.printer);
        }
        self.orphans.reap_at_times(now);
        self.judge(now);
        self.keep_deadlines(now);
        Ok(())
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
        for (index, rank) in self.ranks.iter().enumerate().filter(|(_, rank)| !rank.is_gone()) {
            if !rank.has_ended() {
                set.push((Event::Exit(index), rank.pidfd(), PollFlags::IN));
            }
            set.extend(rank.program().map(|end| (Event::Program(index), end, PollFlags::IN)));
            set.extend(rank.control().map(|line| (Event::Control(index), line, PollFlags::IN)));
            for (stream, pipe) in rank.pipes() {
                if !self.printer.is_congested(stream) {
                    set.push((Event::Output(index, stream), pipe, PollFlags::IN));
                }
            }
        }
        match self.input.as_ref().map(Forwarding::interest) {
            Some(Interest::Input(input)) => set.push((Event::Input, input, PollFlags::IN)),
            Some(Interest::Pipe(pipe)) => set.push((Event::Input, pipe, PollFlags::OUT)),
            Some(Interest::Foreground) | None => {}
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
        let lingering = self.ranks.iter().filter_map(Rank::linger_until);
        let deadlines = lingering.chain(phase).chain(timeout).chain(foreground);
        let watcher = is_overseen.then(|| self.watcher.next_deadline()).flatten();
        deadlines.chain(watcher).chain(decision).min()
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Signal => self.take_signals(),
            Event::Exit(rank) => self.take_ending(rank),
            Event::Program(rank) => self.take_program_end(rank),
            Event::Control(rank) => drop(self.take_messages(rank)),
            Event::Output(rank, stream) => self.ranks[rank].read(stream, &mut self.printer),
            Event::Printable(stream) => self.printer.write(stream),
            // Dropping the forwarding closes the rank's input.
            Event::Input => drop(self.input.take_if(|input| !input.forward())),
        }
    }

    fn take_signals(&mut self) {
        while let Some(signal) = self.signals.next_pending() {
            match signal {
                Signal::TSTP => self.suspend(),
                Signal::QUIT => self.inquire(Occasion::Request),
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
            _ => {
                let snapshot = self.watcher.snapshot(true);
                self.dismiss(snapshot, verdict, now + FAREWELL_AFTER_SIGNAL);
            }
        }
    }

    /// Stops the ranks and the launcher itself until a shell continues them.
    fn suspend(&mut self) {
        if !suspend::has_watcher() {
            return self.printer.say("mpjrun: not suspended, since no shell could continue it\n");
        }
        self.signal_all(Signal::STOP);
        let pause = suspend::stop_myself();
        self.signal_all(Signal::CONT);
        self.resumed(pause);
    }

    /// Moves all deadlines by a `pause` of the job.
    fn resumed(&mut self, pause: Duration) {
        self.watcher.resumed();
        if let Some((_, at)) = &mut self.timeout {
            *at += pause;
        }
        match &mut self.phase {
            Phase::Running => {}
            Phase::Dismissing { until: at, .. }
            | Phase::Stopping { kill_at: at }
            | Phase::Killing { give_up_at: at } => *at += pause,
        }
    }

    fn take_ending(&mut self, rank: usize) {
        if let Some((ending, at)) = self.ranks[rank].ending() {
            self.take_last_messages(rank);
            self.exit_log.printed_last(rank, self.ranks[rank].last_words(&mut self.printer));
            self.exit_log.ended(rank, ending, at);
            self.watcher.ended(rank);
        }
    }

    fn take_program_end(&mut self, rank: usize) {
        let at = monotonic_nanos();
        self.ranks[rank].program_has_ended();
        self.take_last_messages(rank);
        self.exit_log.program_ended(rank, at);
        self.watcher.ended(rank);
    }

    /// Takes all messages that a rank sent before it ended. The number is limited, since other processes that have
    /// the line may go on sending.
    fn take_last_messages(&mut self, rank: usize) {
        for _ in 0..TURNS_AT_THE_END {
            if !self.take_messages(rank) {
                return;
            }
        }
    }

    /// Takes messages from a rank's line, not more than [`MESSAGES_PER_TURN`]: one that floods its line does not
    /// delay the others. Returns whether there may be more.
    fn take_messages(&mut self, rank: usize) -> bool {
        for _ in 0..MESSAGES_PER_TURN {
            let damage = match self.ranks[rank].next_message() {
                Ok(Incoming::Nothing) => return false,
                Ok(Incoming::End) => {
                    self.exit_log.line_closed(rank, monotonic_nanos());
                    return false;
                }
                Ok(Incoming::Message(message)) => {
                    self.act_on(rank, &message);
                    self.exit_log.note(rank, message, monotonic_nanos());
                    continue;
                }
                Err(damage) => damage,
            };
            if self.ranks[rank].is_first_damage() {
                self.printer.say(&format!(
                    "mpjrun: ignoring a damaged control message of rank {rank}, and further damaged ones: {damage}\n"
                ));
            }
        }
        true
    }

    /// Does what a message asks for, beside its entry in the exit log.
    fn act_on(&mut self, rank: usize, message: &ControlMessage) {
        match message {
            ControlMessage::Queues { .. } => self.watcher.answered(rank),
            ControlMessage::Joined { pid } => {
                let is_there = self.ranks[rank].watch_program(*pid);
                if !is_there {
                    self.exit_log.program_ended(rank, monotonic_nanos());
                }
            }
            _ => {}
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
        let snapshot = self.snapshot.get_or_insert_with(|| self.watcher.snapshot(afresh));
        // A rank that was let go is reported as it was before.
        let is_before = matches!(self.phase, Phase::Dismissing { .. });
        self.verdict = Some((verdict, if is_before { snapshot.at } else { monotonic_nanos() }));
        self.phase = Phase::Stopping { kill_at: Instant::now() + grace };
        if matches!(verdict, Verdict::Failed(_)) {
            for rank in 0..self.ranks.len() {
                self.take_messages(rank);
            }
            self.spared = self.exit_log.about_to_end(monotonic_nanos());
        }
        let spared = self.spared.clone();
        self.terminate(|rank| !spared.contains(&rank));
    }

    /// Stops the ranks that were spared and have not ended. Without such ranks it kills all that are left.
    fn stop_spared(&mut self, now: Instant) {
        let spared = std::mem::take(&mut self.spared);
        if spared.iter().all(|rank| self.ranks[*rank].has_ended()) {
            return self.kill();
        }
        self.phase = Phase::Stopping { kill_at: now + GRACE_AFTER_FAILURE };
        self.terminate(|rank| spared.contains(&rank));
    }

    /// Sends SIGTERM to some ranks.
    fn terminate(&self, is_meant: impl Fn(usize) -> bool) {
        let meant = || self.ranks.iter().enumerate().filter(|(rank, _)| is_meant(*rank));
        // A suspended process acts on SIGTERM only when it goes on.
        for signal in [Signal::TERM, Signal::CONT] {
            let to_ranks = || meant().for_each(|(_, rank)| rank.signal(signal));
            self.orphans.signal(signal, to_ranks);
        }
    }

    fn kill(&mut self) {
        if !matches!(self.phase, Phase::Killing { .. }) {
            self.phase = Phase::Killing { give_up_at: Instant::now() + GIVE_UP };
            self.signal_all(Signal::KILL);
        }
    }

    fn signal_all(&mut self, signal: Signal) {
        self.orphans.signal(signal, || self.ranks.iter().for_each(|rank| rank.signal(signal)));
    }

    fn has_given_up(&self) -> bool {
        matches!(self.phase, Phase::Killing { give_up_at } if Instant::now() >= give_up_at)
    }
}

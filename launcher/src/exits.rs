//! Who failed first, with which exit code, and in which words. Pure: times are arguments.
//!
//! The job's poll loop feeds the [`Ledger`] with control messages and endings as they come.
//!
//! - X1: the first failure *in time* decides. A rank that complained, mostly of a panic, failed when it
//!   did so, by its own clock reading, even if another rank, brought down by that, was gone sooner.
//! - X2: a complaint alone is no failure: a rank may recover. Its ending says whether it did.
//! - X3: exit code 0 is a success only of a rank that finished, or of one that never joined in a job
//!   that nobody joined: then the program is none of ours.
//! - X4: what ended after the job was being stopped was ended by the stop, whatever its code.

use std::fmt::Write;
use std::time::Duration;

use rustix::io::Errno;
use transport_lapi::bootstrap::control::ControlMessage;

/// Complaints kept per rank: the first, which may have caused the others, and the latest ones.
const KEPT_COMPLAINTS: usize = 4;
/// Complaints told of ranks that are not the cause.
const TOLD_COMPLAINTS: usize = 16;
/// A control line that ended this long before its rank did not end with it, in nanoseconds.
const LINE_ALONE: u64 = 50_000_000;

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
    /// Exit code 0 of a rank that never joined, while another did.
    NeverJoined,
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
    /// No rank made progress for this long.
    Stalled(Duration),
    /// All ranks wait for each other.
    Deadlock,
    /// The launcher got this signal.
    Signalled(i32),
    /// Nobody reads the launcher's standard output any more.
    OutputClosed,
    /// The launcher's standard output cannot be written.
    OutputRefused(Errno),
}

impl Verdict {
    /// The launcher's exit code.
    pub(crate) fn exit_code(self) -> u8 {
        let after_signal = |signal: i32| u8::try_from(128 + signal).unwrap_or(u8::MAX);
        match self {
            Self::Failed(Failure { fault: Fault::Code(code), .. }) => code as u8,
            Self::Failed(Failure { fault: Fault::Signal(signal), .. }) => after_signal(signal),
            Self::Failed(_) => 1,
            Self::TimedOut(_) | Self::Stalled(_) => 124,
            Self::Deadlock => 125,
            Self::Signalled(signal) => after_signal(signal),
            Self::OutputClosed => after_signal(libc::SIGPIPE),
            Self::OutputRefused(_) => 125,
        }
    }
}

/// What a rank said of its own failure.
#[derive(Debug, Clone)]
struct Complaint {
    at: u64,
    message: String,
    location: String,
}

impl Complaint {
    /// Adds it to a report, as said by `who`.
    fn tell(&self, who: &str, report: &mut String) {
        let message = self.message.trim_end().replace('\n', "\nmpjrun:     ");
        // Writing to a string does not fail.
        let _ = match self.location.as_str() {
            "" => writeln!(report, "mpjrun:   {who} said: {message}"),
            place => writeln!(report, "mpjrun:   {who} panicked at {place}: {message}"),
        };
    }
}

#[derive(Debug, Clone)]
struct Record {
    /// `None` if it was never started.
    pid: Option<u32>,
    joined: bool,
    leaving: bool,
    finished: bool,
    complaints: Vec<Complaint>,
    /// When its control line ended.
    line_closed: Option<u64>,
    ended: Option<(Ending, u64)>,
}

impl Record {
    fn fault(&self, somebody_joined: bool) -> Option<Fault> {
        let (ending, at) = self.ended?;
        let line_alone = self.line_closed.is_some_and(|closed| closed + LINE_ALONE < at);
        match ending {
            Ending::Code(0) if self.finished => None,
            Ending::Code(0) if self.joined && line_alone => Some(Fault::LineClosed),
            Ending::Code(0) if self.joined => Some(Fault::Unfinished),
            Ending::Code(0) => somebody_joined.then_some(Fault::NeverJoined),
            Ending::Code(code) => Some(Fault::Code(code)),
            Ending::Signal(signal) => Some(Fault::Signal(signal)),
        }
    }

    fn complained_at(&self) -> Option<u64> {
        self.complaints.last().map(|complaint| complaint.at)
    }

    /// When the rank failed, given that it did (X1).
    fn failed_at(&self) -> Option<u64> {
        self.complained_at().or(self.ended.map(|(_, at)| at))
    }

    fn state(&self) -> &'static str {
        match (self.finished, self.leaving, self.joined) {
            (true, ..) => "finished",
            (_, true, _) => "has dropped its World and waits for the others",
            (.., true) => "joined",
            _ => "not joined",
        }
    }

    /// What became of a rank that is not the cause (X4).
    fn fate(&self, stopped_at: u64) -> String {
        let state = self.state();
        if self.pid.is_none() {
            return "not started".to_owned();
        }
        match self.ended {
            Some((ending, at)) if at <= stopped_at => format!("{state}, {}", ended_how(ending)),
            Some(_) => format!("{state}, still running; ended by mpjrun"),
            None => format!("{state}, still running; does not even react to SIGKILL"),
        }
    }
}

/// What is known of every rank of the job.
#[derive(Debug)]
pub(crate) struct Ledger {
    start: u64,
    records: Vec<Record>,
}

impl Ledger {
    /// A job of this many ranks, started at `start`, of which the first ones have these process ids
    /// and the others were not started.
    pub(crate) fn new(start: u64, ranks: usize, pids: impl IntoIterator<Item = u32>) -> Self {
        let record = |pid| Record {
            pid,
            joined: false,
            leaving: false,
            finished: false,
            complaints: Vec::new(),
            line_closed: None,
            ended: None,
        };
        let pids = pids.into_iter().map(Some).chain(std::iter::repeat(None));
        Self { start, records: pids.take(ranks).map(record).collect() }
    }

    /// Notes a message that came at `now` over `rank`'s line. Answers whether it was the rank's own:
    /// the task in a message is a claim.
    pub(crate) fn note(&mut self, rank: usize, message: ControlMessage, now: u64) -> bool {
        if message.task() as usize != rank {
            return false;
        }
        let record = &mut self.records[rank];
        match message {
            ControlMessage::Joined { pid, .. } => {
                record.joined = true;
                record.pid = Some(pid);
            }
            ControlMessage::Leaving { .. } => record.leaving = true,
            ControlMessage::Finished { .. } => record.finished = true,
            ControlMessage::Aborted { .. } | ControlMessage::Queues { .. } => {}
            ControlMessage::Failed { at_nanos, message, location, .. } => {
                if record.complaints.len() == KEPT_COMPLAINTS {
                    record.complaints.remove(1);
                }
                let at = at_nanos.clamp(self.start, now);
                record.complaints.push(Complaint { at, message, location });
            }
        }
        true
    }

    /// Notes that nothing more will come over `rank`'s line.
    pub(crate) fn line_closed(&mut self, rank: usize, now: u64) {
        self.records[rank].line_closed.get_or_insert(now);
    }

    /// Notes how `rank` ended, `at` this time.
    pub(crate) fn ended(&mut self, rank: usize, ending: Ending, at: u64) {
        self.records[rank].ended = Some((ending, at));
    }

    /// The failure that decides, of those that have ended so far.
    pub(crate) fn first_failure(&self) -> Option<Failure> {
        let somebody_joined = self.records.iter().any(|record| record.joined);
        let failures = self.records.iter().enumerate().filter_map(|(rank, record)| {
            let fault = record.fault(somebody_joined)?;
            Some(Failure { rank, fault, at: record.failed_at()? })
        });
        failures.min_by_key(|failure| failure.at)
    }

    /// Whether a rank that complained before `failure` has not ended yet: it may be the one that
    /// decides (X1, X2).
    pub(crate) fn awaits_earlier(&self, failure: &Failure) -> bool {
        let earlier = |record: &Record| record.complained_at().is_some_and(|at| at < failure.at);
        self.records.iter().any(|record| record.ended.is_none() && earlier(record))
    }

    /// The report on a job that `verdict` ended, whose ranks were stopped at `stopped_at`.
    pub(crate) fn report(&self, verdict: Verdict, stopped_at: u64) -> String {
        let mut text = match verdict {
            Verdict::Failed(failure) => self.cause(&failure),
            Verdict::TimedOut(limit) => {
                format!("mpjrun: the job still ran after {} s (--timeout)\n", limit.as_secs_f64())
            }
            Verdict::Stalled(lasted) => {
                format!(
                    "mpjrun: no rank made progress for {:.1} s (--stall)\n",
                    lasted.as_secs_f64()
                )
            }
            Verdict::Deadlock => "mpjrun: deadlock: all ranks wait for each other\n".to_owned(),
            Verdict::Signalled(signal) => {
                format!("mpjrun: ended by {}\n", signal_words(signal))
            }
            Verdict::OutputClosed => return String::new(),
            Verdict::OutputRefused(errno) => {
                return format!("mpjrun: cannot write standard output: {errno}\n");
            }
        };
        let cause = match verdict {
            Verdict::Failed(failure) => Some(failure.rank),
            _ => None,
        };
        for (ranks, fate) in self.fates(cause, stopped_at) {
            let noun = if ranks.len() == 1 { "rank" } else { "ranks" };
            // Writing to a string does not fail.
            let _ = writeln!(text, "mpjrun:   {noun} {}: {fate}", ranges(&ranks));
        }
        if cause.is_none() {
            self.tell_complaints(&mut text);
        }
        text
    }

    /// What the ranks that did not succeed have said, where none of them is known to be the cause.
    fn tell_complaints(&self, text: &mut String) {
        let unfinished = self.records.iter().enumerate().filter(|(_, record)| !record.finished);
        let said: Vec<_> = unfinished
            .flat_map(|(rank, record)| record.complaints.iter().map(move |said| (rank, said)))
            .collect();
        for (rank, complaint) in said.iter().take(TOLD_COMPLAINTS) {
            complaint.tell(&format!("rank {rank}"), text);
        }
        if let Some(more @ 1..) = said.len().checked_sub(TOLD_COMPLAINTS) {
            // Writing to a string does not fail.
            let _ = writeln!(text, "mpjrun:   and {more} more complaints");
        }
    }

    fn cause(&self, failure: &Failure) -> String {
        let Failure { rank, fault, .. } = *failure;
        let record = &self.records[rank];
        let at = record.ended.map_or(failure.at, |(_, at)| at);
        let when = Duration::from_nanos(at.saturating_sub(self.start)).as_secs_f64();
        let when = format!("{when:.2} s after start");
        let what = match fault {
            Fault::Code(code) => format!("{} {when}", ended_how(Ending::Code(code))),
            Fault::Signal(signal) => format!("{} {when}", ended_how(Ending::Signal(signal))),
            Fault::Unfinished if record.complaints.is_empty() => format!(
                "exited with code 0 without finishing: keep the World alive until the end of main \
                 and let it drop ({when})"
            ),
            Fault::Unfinished => format!("exited with code 0 without finishing {when}"),
            Fault::LineClosed => format!(
                "exited with code 0, but its control line to mpjrun was closed before: it closed a \
                 descriptor that is not its own, or became another program by exec ({when})"
            ),
            Fault::NeverJoined => format!(
                "ended without joining the job ({when}), which other ranks did: call mpj::init in \
                 every rank"
            ),
        };
        let pid = record.pid.map_or("unknown".to_owned(), |pid| pid.to_string());
        let mut text = format!("mpjrun: rank {rank} (pid {pid}) {what}\n");
        record.complaints.iter().for_each(|complaint| complaint.tell("it", &mut text));
        text
    }

    /// The ranks but `cause`, those with the same fate together, in the order of their first rank.
    fn fates(&self, cause: Option<usize>, stopped_at: u64) -> Vec<(Vec<usize>, String)> {
        let mut fates: Vec<(Vec<usize>, String)> = Vec::new();
        for (rank, record) in self.records.iter().enumerate() {
            let fate = record.fate(stopped_at);
            if Some(rank) == cause {
                continue;
            }
            match fates.iter_mut().find(|(_, known)| *known == fate) {
                Some((ranks, _)) => ranks.push(rank),
                None => fates.push((vec![rank], fate)),
            }
        }
        fates
    }
}

fn ended_how(ending: Ending) -> String {
    match ending {
        Ending::Code(code) => format!("exited with code {code}"),
        Ending::Signal(signal) => format!("was killed by {}", signal_words(signal)),
    }
}

fn signal_words(signal: i32) -> String {
    let name = match signal {
        libc::SIGHUP => "SIGHUP",
        libc::SIGINT => "SIGINT",
        libc::SIGQUIT => "SIGQUIT",
        libc::SIGILL => "SIGILL",
        libc::SIGTRAP => "SIGTRAP",
        libc::SIGABRT => "SIGABRT",
        libc::SIGBUS => "SIGBUS",
        libc::SIGFPE => "SIGFPE",
        libc::SIGKILL => "SIGKILL",
        libc::SIGUSR1 => "SIGUSR1",
        libc::SIGSEGV => "SIGSEGV",
        libc::SIGUSR2 => "SIGUSR2",
        libc::SIGPIPE => "SIGPIPE",
        libc::SIGALRM => "SIGALRM",
        libc::SIGTERM => "SIGTERM",
        libc::SIGXCPU => "SIGXCPU",
        libc::SIGXFSZ => "SIGXFSZ",
        libc::SIGSYS => "SIGSYS",
        _ => return format!("signal {signal}"),
    };
    format!("signal {signal} ({name})")
}

/// Ascending numbers as text: `0, 2-4`.
fn ranges(numbers: &[usize]) -> String {
    let runs = numbers.chunk_by(|one, next| one + 1 == *next);
    let words = runs.map(|run| match run {
        [only] => only.to_string(),
        [first, .., last] => format!("{first}-{last}"),
        [] => unreachable!("a run has at least one number"),
    });
    words.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests;

//! The jobs of this user on this host, seen from outside: `mpjrun ps`, `kill` and `attach`.
//!
//! Nothing is written down for this, and nobody listens: a launcher holds its job's segment, whose name
//! in `/proc` is that of the job, and a job's name begins with the number of its launcher's process.
//!
//! - PS1: only processes of this user are looked at, whoever that is: also root sees its own jobs alone.
//! - PS2: a signal goes to a process that was held by descriptor before it was seen to be a launcher, so
//!   not to one that got its number later.

mod find;
mod name;

use std::fmt::Write;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use transport_lapi::adapter::AdapterError;
use transport_lapi::bootstrap::board::Board;
use transport_lapi::bootstrap::monotonic_nanos;

use crate::process_table::numbered;
use crate::{observe, report, watch};

use find::Job;
pub(crate) use name::JobName;

/// How long a launcher that was asked to end is waited for: longer than it gives its ranks.
const PATIENCE: Duration = Duration::from_secs(3);
/// Most characters of a command that are shown.
const COMMAND_SHOWN: usize = 160;

/// Why a job was not found, or not ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JobsError {
    /// What was given does not name a job.
    #[error("`{word}` names no job: give the number or the name that mpjrun ps shows")]
    NoName {
        /// What was given.
        word: String,
    },
    /// There is no such job.
    #[error("no job {word} runs on this host; mpjrun ps shows those that do")]
    NotRunning {
        /// What was given.
        word: String,
    },
    /// The process is another user's.
    #[error("process {pid} is of user {uid}; only that user may ask for its job")]
    OtherUser {
        /// The process.
        pid: u32,
        /// Whose it is.
        uid: u32,
    },
    /// The process is no launcher.
    #[error("process {pid} is not an mpjrun whose job runs; mpjrun ps shows those that are")]
    NoLauncher {
        /// The process.
        pid: u32,
    },
    /// The launcher was asked to end, and is still there.
    #[error(
        "job {job} still runs after {} s, though its launcher was asked to end; kill -KILL {pid} ends \
         it with its ranks", PATIENCE.as_secs()
    )]
    StillRunning {
        /// The job.
        job: String,
        /// Its launcher.
        pid: u32,
    },
    /// The job's segment cannot be read.
    #[error(transparent)]
    Segment(#[from] AdapterError),
    /// The system refused something.
    #[error("cannot {action}: {source}")]
    System {
        /// What was being done.
        action: &'static str,
        /// What the system answered.
        source: io::Error,
    },
}

impl JobsError {
    /// The exit code for this: 2 for a word that names no job, else 1.
    pub fn exit_code(&self) -> u8 {
        if matches!(self, Self::NoName { .. }) { 2 } else { 1 }
    }

    fn system(action: &'static str) -> impl FnOnce(Errno) -> Self {
        move |errno| Self::System { action, source: errno.into() }
    }
}

/// The jobs of this user, one a line, the oldest first.
///
/// # Errors
/// [`JobsError::System`] where `/proc` cannot be read.
pub fn ps() -> Result<String, JobsError> {
    let now = monotonic_nanos();
    let mut jobs = find::all()?;
    jobs.sort_by_key(|job| job.name);
    let head = ["JOB", "PID", "RANKS", "SECONDS", "COMMAND"].map(str::to_owned);
    let rows = jobs.iter().map(|job| {
        let ranks = job.ranks().map_or("?".to_owned(), |ranks| ranks.to_string());
        let seconds = Duration::from_nanos(now.saturating_sub(job.name.start)).as_secs();
        let command = shown(&job.command());
        [job.name.to_string(), job.name.launcher.to_string(), ranks, seconds.to_string(), command]
    });
    let rows: Vec<[String; 5]> = std::iter::once(head).chain(rows).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
    let (job, pid, ranks, seconds) = (width(0), width(1), width(2), width(3));
    let mut text = String::new();
    for [a, b, c, d, command] in &rows {
        // Writing to a string does not fail.
        let _ = writeln!(text, "{a:<job$}  {b:>pid$}  {c:>ranks$}  {d:>seconds$}  {command}");
    }
    Ok(text)
}

/// Asks the launcher of `job` to end it, by SIGTERM, and waits until it has.
///
/// # Errors
/// [`JobsError`]: there is no such job, it is not this user's, or it goes on.
pub fn kill(job: &str) -> Result<String, JobsError> {
    let job = find::one(job)?;
    let launcher = hold(&job)?;
    let ask = |signal| match pidfd_send_signal(&launcher, signal) {
        Ok(()) | Err(Errno::SRCH) => Ok(()),
        Err(errno) => Err(JobsError::system("signal the launcher")(errno)),
    };
    ask(Signal::TERM)?;
    // A suspended launcher acts on it only when it goes on.
    ask(Signal::CONT)?;
    match has_ended(&launcher)? {
        true => Ok(format!("mpjrun: job {} has ended\n", job.name)),
        false => Err(JobsError::StillRunning { job: job.name.to_string(), pid: job.name.launcher }),
    }
}

/// What the ranks of `job` are doing, as they have published it: a table. The ranks are not disturbed.
///
/// # Errors
/// [`JobsError`]: there is no such job, it is not this user's, or its segment cannot be read.
pub fn attach(job: &str) -> Result<String, JobsError> {
    let job = find::one(job)?;
    let board = Board::open(job.open()?)?;
    let snapshot = observe::snapshot(&board, watch::look(&board), &[]);
    Ok(report::of_segment(&job.name.to_string(), job.name.start, &snapshot, find::runs))
}

/// Holds the launcher by descriptor (PS2).
fn hold(job: &Job) -> Result<OwnedFd, JobsError> {
    let gone = || JobsError::NotRunning { word: job.name.to_string() };
    let pid = numbered(job.name.launcher).ok_or_else(gone)?;
    let launcher = match pidfd_open(pid, PidfdFlags::empty()) {
        Err(Errno::SRCH) => return Err(gone()),
        held => held.map_err(JobsError::system("hold the launcher"))?,
    };
    find::one(&job.name.to_string())?;
    Ok(launcher)
}

fn has_ended(launcher: &OwnedFd) -> Result<bool, JobsError> {
    let patience = Timespec { tv_sec: PATIENCE.as_secs() as i64, tv_nsec: 0 };
    let mut waiting = [PollFd::from_borrowed_fd(launcher.as_fd(), PollFlags::IN)];
    loop {
        match poll(&mut waiting, Some(&patience)) {
            Err(Errno::INTR) => {}
            ready => return ready.map(|ready| ready > 0).map_err(JobsError::system("wait")),
        }
    }
}

/// A command as it may be shown: without control characters, and cut where it is long.
fn shown(command: &str) -> String {
    let printable = command.chars().map(|char| if char.is_control() { ' ' } else { char });
    let mut shown: String = printable.take(COMMAND_SHOWN).collect();
    if command.chars().nth(COMMAND_SHOWN).is_some() {
        shown += "...";
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_cut_and_tame() {
        assert_eq!(shown("mpjrun -n 2\x1b[31m\na"), "mpjrun -n 2 [31m a");
        let long = "é".repeat(COMMAND_SHOWN);
        assert_eq!(shown(&long), long);
        assert_eq!(shown(&format!("{long}x")), format!("{long}..."));
    }

    #[test]
    fn words_that_name_no_job_are_refused() {
        for word in ["", "x", "-1", "0", "12-", "12-x", "4294967296", "1-2-3", "+3", "../1"] {
            let error = kill(word).expect_err(word);
            assert!(matches!(error, JobsError::NoName { .. }), "{word}: {error}");
            assert_eq!(error.exit_code(), 2);
        }
    }

    #[test]
    fn processes_that_are_no_launchers_are_named() {
        let own = std::process::id();
        let error = kill(&own.to_string()).expect_err("a test is no launcher");
        assert!(matches!(error, JobsError::NoLauncher { pid } if pid == own), "{error}");
        let error = kill(&format!("{own}-ab")).expect_err("no such job");
        assert!(matches!(error, JobsError::NotRunning { .. }), "{error}");
        let error = kill("4194305").expect_err("above the largest number of a process");
        assert!(matches!(error, JobsError::NotRunning { .. }), "{error}");
    }
}

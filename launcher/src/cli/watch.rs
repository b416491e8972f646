//! `mpjrun --watch PID`: shows a job that is already running. Its launcher writes what there is to see (WA1 of
//! [`crate::job::watching`]), at the request of this process.

use std::io::{self, ErrorKind, Write, stdout};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open, pidfd_send_signal};
use rustix::termios::isatty;

use crate::LaunchError;
use crate::io::{block, page};
use crate::job::watching::ASK;

/// How long a launcher may take to answer: agents of other hosts have two seconds.
const PATIENCE: Duration = Duration::from_secs(4);
/// Time between two looks at the page.
const TICK: Duration = Duration::from_millis(10);

/// A job of another process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Watched {
    /// The process of its `mpjrun`.
    pub launcher: u32,
    /// The time between two blocks; `None` for the usual one.
    pub every: Option<Duration>,
}

/// Shows the job until it ends, and returns the exit code.
///
/// # Errors
/// [`LaunchError::NotWatchable`]; [`LaunchError::System`] when standard output takes no more, unless its reader has gone.
pub(crate) fn run(watched: &Watched) -> Result<u8, LaunchError> {
    let Watched { launcher, every } = *watched;
    let refused = |reason: &str| LaunchError::NotWatchable { launcher, reason: reason.to_owned() };
    let number = i32::try_from(launcher).ok().and_then(Pid::from_raw);
    let process = number.and_then(|number| pidfd_open(number, PidfdFlags::empty()).ok());
    let process = process.ok_or_else(|| refused("there is no such process"))?;
    let page = page::find(launcher).map_err(|error| match error.kind() {
        ErrorKind::PermissionDenied => refused("it is a process of another user"),
        _ => refused(&error.to_string()),
    })?;
    let page = page.ok_or_else(|| {
        refused("it runs no job; give the number of the mpjrun that was started by hand")
    })?;
    let every = every.unwrap_or_else(|| block::rhythm(stdout()));
    let shown = show(&process, &page, every)
        .and_then(|()| writeln!(stdout(), "the job of mpjrun {launcher} has ended"));
    match shown {
        Err(source) if source.kind() != ErrorKind::BrokenPipe => {
            Err(LaunchError::System { action: "write standard output", source })
        }
        _ => Ok(0),
    }
}

/// Shows blocks until the launcher ends.
fn show(launcher: &OwnedFd, page: &Path, every: Duration) -> io::Result<()> {
    let mut lines = 0;
    loop {
        let Some(block) = ask(launcher, page) else { return Ok(()) };
        let mut out = stdout();
        if isatty(&out) {
            let fitted = block::fitted(&block, &out);
            write!(out, "{}{fitted}", block::removed(lines))?;
            lines = fitted.lines().count();
        } else {
            writeln!(out, "{block}")?;
        }
        out.flush()?;
        if has_ended(launcher, every) {
            return Ok(());
        }
    }
}

/// Asks the launcher for a new block, or says that there is none; `None` if the launcher ends.
fn ask(launcher: &OwnedFd, page: &Path) -> Option<String> {
    let before = page::read(page).map(|(number, _)| number);
    let begun = Instant::now();
    pidfd_send_signal(launcher, ASK).ok()?;
    while begun.elapsed() < PATIENCE {
        match page::read(page) {
            Some((number, block)) if Some(number) != before => return Some(block),
            _ if has_ended(launcher, TICK) => return None,
            _ => {}
        }
    }
    Some("no answer: mpjrun is stopped, or the job is about to end\n".to_owned())
}

/// Waits for the end of a process, no longer than this.
fn has_ended(process: &OwnedFd, limit: Duration) -> bool {
    let limit = Timespec { tv_sec: limit.as_secs() as i64, tv_nsec: limit.subsec_nanos().into() };
    poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&limit)) == Ok(1)
}

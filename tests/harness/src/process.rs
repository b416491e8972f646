//! What the kernel says about processes.

use std::{fmt, fs};

use procfs::FromRead;
use procfs::process::{Stat, Status};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};

use crate::{LIMIT, eventually, holds_within};

/// The variable that carries the mark of a launch, or of a scene.
pub(crate) const MARK: &str = "MPJ_TEST_MARK";

/// A process that can be seen.
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// The first 15 bytes of the name of its program.
    pub name: String,
    /// `T` for suspended, `Z` for ended and not waited for, and so on.
    pub state: char,
    /// The number of its parent.
    pub parent: u32,
    /// Processor time that it has used, in clock ticks: user and system.
    pub ticks: u64,
}

impl Process {
    /// Whether it runs; a process that has ended and waits to be reaped does not.
    pub(crate) fn runs(&self) -> bool {
        !matches!(self.state, 'Z' | 'X')
    }
}

impl fmt::Display for Process {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pid, name, state, parent, .. } = self;
        write!(out, "process {pid} ({name}), state {state}, child of {parent}")
    }
}

/// A process, by its number.
pub fn find(pid: u32) -> Option<Process> {
    let Stat { comm: name, state, ppid, utime, stime, .. } =
        Stat::from_file(format!("/proc/{pid}/stat")).ok()?;
    let parent = u32::try_from(ppid).ok()?;
    Some(Process { pid, name, state, parent, ticks: utime + stime })
}

/// Every process.
pub fn all() -> impl Iterator<Item = Process> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| find(entry.file_name().to_str()?.parse().ok()?))
}

/// Every process that was started with this mark, without those that have ended and wait to be reaped.
pub(crate) fn marked(mark: &str) -> impl Iterator<Item = Process> {
    let entry = format!("{MARK}={mark}");
    all().filter(move |process| {
        let environment = fs::read(format!("/proc/{}/environ", process.pid)).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|line| line == entry.as_bytes())
    })
}

/// Whether a process runs; one that has ended and waits to be reaped does not.
pub fn runs(pid: u32) -> bool {
    find(pid).is_some_and(|process| process.runs())
}

/// Waits until none of these processes runs.
///
/// # Panics
/// When one does not end within [`LIMIT`].
#[track_caller]
pub fn await_end(pids: &[u32]) {
    let running = || pids.iter().filter_map(|pid| find(*pid)).filter(Process::runs);
    if !holds_within(LIMIT, || running().next().is_none()) {
        let left: Vec<String> = running().map(|process| process.to_string()).collect();
        panic!("watchdog: still there of {pids:?}: {left:?}");
    }
}

/// Waits until each of these threads sleeps, from one look to the next and without an interruption. The number of a
/// process is that of its first thread.
///
/// # Panics
/// When one does not within [`LIMIT`].
#[track_caller]
pub fn await_sleep(threads: &[u32]) {
    let mut before = Vec::new();
    eventually("the threads sleep", || {
        let now: Vec<_> = threads.iter().map(|thread| sleeps(*thread)).collect();
        let all_sleep = now == before && now.iter().all(Option::is_some);
        before = now;
        all_sleep
    });
}

/// How often a thread has fallen asleep, if it sleeps.
fn sleeps(thread: u32) -> Option<u64> {
    let status = Status::from_file(format!("/proc/{thread}/status")).ok()?;
    status.voluntary_ctxt_switches.filter(|_| status.state.starts_with('S'))
}

/// Whether a process is suspended.
pub fn is_suspended(pid: u32) -> bool {
    find(pid).is_some_and(|process| process.state == 'T')
}

/// Whether a process handles this signal itself: it catches it, or waits for it.
pub fn heeds(pid: u32, signal: Signal) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let masks = status.lines().filter_map(|line| {
        let (name, mask) = line.split_once(":\t")?;
        ["SigBlk", "SigCgt"].contains(&name).then(|| u64::from_str_radix(mask, 16).unwrap_or(0))
    });
    masks.fold(0, |all, mask| all | mask) >> (signal.as_raw() - 1) & 1 == 1
}

/// The processes whose parent is this one.
pub fn children(parent: u32) -> Vec<u32> {
    all().filter(|process| process.parent == parent).map(|process| process.pid).collect()
}

/// Sends a signal to a process.
///
/// # Errors
/// The kernel's.
///
/// # Panics
/// When this is no number of a process.
pub fn signal(pid: u32, signal: Signal) -> Result<(), Errno> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    kill_process(pid.expect("a process number"), signal)
}

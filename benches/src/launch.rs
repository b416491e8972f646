//! One launch: starts a worker's job, reads its records as they come, and ends it if it is silent
//! for too long or the user stops the run. No process of a job outlives its launch.
//!
//! Launchers start processes in groups and sessions of their own. So this process adopts orphans,
//! and after each launch ends all its descendants. Hence there is only one launch at a time, and no
//! other child process meanwhile.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use mpj_bench_programs::{Library, Record, Sample};
use procfs::process::Process;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, kill_process, kill_process_group, pidfd_open, wait,
};

/// How often the stop flag is checked.
const TICK: Duration = Duration::from_millis(20);
/// How long a job may take to exit after a request.
const GRACE: Duration = Duration::from_secs(2);
/// The largest part of standard error that is kept, in bytes.
const MOST_COMPLAINT: u64 = 64 << 10;

/// The result of a launch.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Seconds from the start of the launcher to its end.
    pub seconds: f64,
    /// The facts that the library reports.
    pub library: Option<Library>,
    /// The measured figures.
    pub samples: Vec<Sample>,
    /// The points measured without a usable figure: series and x.
    pub unclear: Vec<(String, u64)>,
    /// A one-line reason for a failed launch.
    pub failure: Option<String>,
}

/// Makes this process the parent of all orphans among its descendants.
///
/// # Errors
/// The error of the kernel.
pub fn adopt_orphans() -> std::io::Result<()> {
    rustix::process::set_child_subreaper(Some(rustix::process::getpid())).map_err(Into::into)
}

/// Runs `command` to its end. Ends a job that sends no record for `patience`, or when `stop` is set.
pub fn run(mut command: Command, patience: Duration, stop: &AtomicBool) -> Outcome {
    let mut outcome = Outcome::default();
    let start = Instant::now();
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => {
            let program = command.get_program().to_string_lossy().into_owned();
            outcome.failure = Some(format!("cannot start {program}: {error}"));
            return outcome;
        }
    };
    let lines = lines_of(&mut child);
    let complaint = complaint_of(&mut child);
    let mut complete = false;
    let ended = follow(&lines, patience, stop, &mut |record| match record {
        Record::Library(library) => outcome.library = Some(library),
        Record::Sample(sample) => outcome.samples.push(sample),
        Record::Unclear(series, x) => outcome.unclear.push((series, x)),
        Record::Complete => complete = true,
        Record::Failed(reason) => _ = outcome.failure.get_or_insert(reason),
    });
    let status = finish(&mut child, ended.is_ok());
    outcome.seconds = start.elapsed().as_secs_f64();
    end_descendants();
    let complaint = complaint.recv_timeout(GRACE).unwrap_or_default();
    // The worker's reason takes precedence: a failed job may not exit by itself.
    let reason = outcome.failure.take().or(ended.err());
    outcome.failure = reason.or_else(|| ending(status, complete, &complaint));
    outcome
}

/// Returns the lines of standard output as they come.
fn lines_of(child: &mut Child) -> Receiver<String> {
    let (send, lines) = mpsc::channel();
    let stdout = child.stdout.take().expect("it is piped");
    thread::spawn(move || {
        for line in BufReader::new(stdout).split(b'\n').map_while(Result::ok) {
            if send.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                return;
            }
        }
    });
    lines
}

/// Returns the content of standard error once it is closed.
fn complaint_of(child: &mut Child) -> Receiver<String> {
    let (send, complaint) = mpsc::channel();
    let mut stderr = child.stderr.take().expect("it is piped");
    thread::spawn(move || {
        let mut text = Vec::new();
        // A read error only shortens the text.
        let _ = stderr.by_ref().take(MOST_COMPLAINT).read_to_end(&mut text);
        let _ = send.send(String::from_utf8_lossy(&text).into_owned());
        let _ = std::io::copy(&mut stderr, &mut std::io::sink());
    });
    complaint
}

/// Passes every record to `take` until the job closes its output.
///
/// # Errors
/// The reason to end the job.
fn follow(
    lines: &Receiver<String>,
    patience: Duration,
    stop: &AtomicBool,
    take: &mut impl FnMut(Record),
) -> Result<(), String> {
    let mut last = Instant::now();
    // Whether the last record has come.
    let mut over = false;
    loop {
        match lines.recv_timeout(TICK) {
            Ok(line) => match Record::of_line(line.trim_end()) {
                Some(Ok(record)) => {
                    over |= matches!(record, Record::Failed(_) | Record::Complete);
                    take(record);
                    last = Instant::now();
                }
                Some(Err(error)) => return Err(format!("the worker's answer is damaged: {error}")),
                None => {}
            },
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
            Err(RecvTimeoutError::Timeout) => {}
        }
        if stop.load(Ordering::Relaxed) {
            return Err("interrupted".to_owned());
        }
        if last.elapsed() > if over { GRACE } else { patience } {
            return Err(format!("hangs: no figure for {} s, ended", patience.as_secs_f64()));
        }
    }
}

/// Waits for the launcher. Ends it if it must not continue or does not exit by itself.
fn finish(child: &mut Child, by_itself: bool) -> Option<ExitStatus> {
    let group = Pid::from_child(child);
    if !by_itself {
        // Errors are ignored here and below: a process that has exited needs no signal.
        let _ = kill_process_group(group, Signal::TERM);
    }
    if !ends_within(group, if by_itself { 5 * GRACE } else { GRACE }) {
        let _ = kill_process_group(group, Signal::KILL);
    }
    child.wait().ok()
}

/// Waits up to `time` for a child to exit, without reaping it.
fn ends_within(child: Pid, time: Duration) -> bool {
    let Ok(handle) = pidfd_open(child, PidfdFlags::empty()) else {
        thread::sleep(time);
        return false;
    };
    let deadline = Instant::now() + time;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let left = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
        match poll(&mut [PollFd::new(&handle, PollFlags::IN)], Some(&left)) {
            Err(Errno::INTR) => {}
            outcome => return outcome.is_ok_and(|ready| ready > 0),
        }
    }
}

/// Returns the reason for an unsuccessful end of the launcher.
fn ending(status: Option<ExitStatus>, complete: bool, complaint: &str) -> Option<String> {
    let how = match status {
        Some(status) if status.success() && complete => return None,
        Some(status) if status.success() => "ended before all was measured".to_owned(),
        Some(status) => match (status.code(), status.signal()) {
            (Some(code), _) => format!("exit code {code}"),
            (None, signal) => format!("signal {}", signal.unwrap_or_default()),
        },
        None => "did not end".to_owned(),
    };
    let said = complaint.lines().map(str::trim).find(|line| line.chars().any(char::is_alphabetic));
    Some(said.map_or(how.clone(), |said| format!("{how}: {said}")))
}

/// Ends and reaps all descendants of this process.
fn end_descendants() {
    for _ in 0..100 {
        let left = children();
        if left.is_empty() {
            return;
        }
        for orphan in left {
            let _ = kill_process(orphan, Signal::KILL);
        }
        while wait(WaitOptions::NOHANG).is_ok_and(|reaped| reaped.is_some()) {}
        thread::sleep(Duration::from_millis(1));
    }
}

/// The children of this process, zombies included.
fn children() -> Vec<Pid> {
    let threads = Process::myself().and_then(|own| own.tasks()).into_iter().flatten().flatten();
    let numbers = threads.filter_map(|thread| thread.children().ok()).flatten();
    numbers.filter_map(|number| Pid::from_raw(number as i32)).collect()
}

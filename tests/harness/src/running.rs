//! A running command: its output, its end, and the watchdog that ends it.

use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdin, Command, ExitStatus};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::ioctl_fionread;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};

use crate::{LIMIT, Outcome, eventually, holds_within, process};

/// Most bytes that are kept of each stream (TH3).
pub const MOST_OUTPUT: usize = 16 << 20;
/// Most bytes that a failure shows of each stream, counted from its end.
const SHOWN: usize = 16 << 10;
/// How long the launcher has for its report, and then for its end.
const GRACE: Duration = Duration::from_secs(3);
/// The beginning of a report that the launcher was asked for.
const REPORT: &str = "mpjrun: state of the job ";
/// The kernel's name for the launcher's process.
const LAUNCHER: &str = "mpjrun";

/// Where standard output goes.
pub(crate) enum Reader {
    Harness,
    Nobody,
    Elsewhere,
}

/// A running command; killed with all that it started when it is dropped (TH1).
pub struct Running {
    child: Child,
    words: String,
    mark: String,
    start: Instant,
    limit: Duration,
    stdout: Stream,
    stderr: Stream,
    has_ended: bool,
}

impl Running {
    #[track_caller]
    pub(crate) fn start(
        mut command: Command,
        mark: String,
        limit: Duration,
        reader: Reader,
    ) -> Self {
        let words = format!("{command:?}");
        let start = Instant::now();
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{words}: {error}"));
        let stdout = match reader {
            Reader::Harness => Stream::of(child.stdout.take()),
            Reader::Nobody | Reader::Elsewhere => Stream::default(),
        };
        let stderr = Stream::of(child.stderr.take());
        Self { child, words, mark, start, limit, stdout, stderr, has_ended: false }
    }

    /// The number of its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends it a signal.
    ///
    /// # Panics
    /// When it has ended.
    #[track_caller]
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("it runs");
    }

    /// Its standard input.
    ///
    /// # Panics
    /// When that is no pipe, or was taken before.
    #[track_caller]
    pub fn stdin(&mut self) -> ChildStdin {
        self.child.stdin.take().expect("it is piped")
    }

    /// Begins to read its standard output.
    pub fn read(&mut self) {
        self.stdout = Stream::of(self.child.stdout.take());
    }

    /// How many bytes wait in the pipe of its standard output, which nobody reads.
    ///
    /// # Panics
    /// When that is no pipe.
    #[track_caller]
    pub fn unread_bytes(&self) -> u64 {
        ioctl_fionread(self.child.stdout.as_ref().expect("it is piped")).expect("it is a pipe")
    }

    /// Standard output so far.
    pub fn stdout(&self) -> String {
        self.stdout.text()
    }

    /// Standard error so far.
    pub fn stderr(&self) -> String {
        self.stderr.text()
    }

    /// Waits until standard output has this `count` of lines that are numbers, and returns the numbers: those of
    /// processes, as ranks print them.
    ///
    /// # Panics
    /// When they do not come.
    #[track_caller]
    pub fn numbers(&self, count: usize) -> Vec<u32> {
        let read = || -> Vec<u32> {
            let text = self.stdout();
            let whole = text.rfind('\n').map_or("", |end| &text[..end]);
            whole.lines().filter_map(|line| line.parse().ok()).collect()
        };
        eventually("every process printed its number", || read().len() >= count);
        read()
    }

    /// Asks the launcher for reports until one has all of these words, and returns that one.
    ///
    /// # Panics
    /// When none has.
    #[track_caller]
    pub fn report_with(&self, words: &[&str]) -> String {
        eventually("the launcher runs", || process::heeds(self.pid(), Signal::QUIT));
        let start = Instant::now();
        loop {
            let said = self.stderr().matches(REPORT).count();
            self.signal(Signal::QUIT);
            eventually("a report comes", || self.stderr().matches(REPORT).count() > said);
            let last = self.stderr().rsplit(REPORT).next().unwrap_or_default().to_owned();
            if words.iter().all(|words| last.contains(words)) {
                return last;
            }
            assert!(start.elapsed() < LIMIT, "watchdog: no report has {words:?}: {last}");
        }
    }

    /// Waits for the end of the process and of its output.
    ///
    /// # Panics
    /// When it does not come within the limit (TH2).
    #[track_caller]
    pub fn finish(mut self) -> Outcome {
        let deadline = self.start + self.limit;
        let Some(status) = self.end(deadline) else {
            let (words, limit) = (&self.words, self.limit);
            let what = format!("watchdog: not over after {limit:?}: {words}");
            panic!("{what}\n{}", self.diagnose());
        };
        for stream in [&self.stdout, &self.stderr] {
            let seen = stream.kept().len();
            assert!(seen < MOST_OUTPUT, "{} printed more than {MOST_OUTPUT} bytes", self.words);
        }
        let code = status.code().or(status.signal().map(|signal| 128 + signal));
        let code = code.expect("a process ends with a code or by a signal");
        Outcome { code, stdout: self.stdout(), stderr: self.stderr() }
    }

    /// Waits for the end, and asserts the exit code.
    ///
    /// # Panics
    /// When it is another one, or the end does not come within the limit.
    #[track_caller]
    pub fn expect(self, code: i32) -> Outcome {
        self.finish().expect(code)
    }

    /// How it ended, if it and its output end before the deadline.
    fn end(&mut self, deadline: Instant) -> Option<ExitStatus> {
        let handle = pidfd_open(Pid::from_child(&self.child), PidfdFlags::empty());
        let handle = handle.expect("Linux has it since 5.3");
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            // Rounded up, so that the loop does not spin near the deadline.
            let left = Timespec { tv_sec: left.as_secs() as i64 + 1, tv_nsec: 0 };
            // An interrupted wait begins again.
            let _ = poll(&mut [PollFd::new(&handle, PollFlags::IN)], Some(&left));
            let status = self.child.try_wait().expect("our child");
            if status.is_some() || Instant::now() >= deadline {
                let is_over = status.is_some()
                    && self.stdout.ends_by(deadline)
                    && self.stderr.ends_by(deadline);
                self.has_ended = is_over;
                return status.filter(|_| is_over);
            }
        }
    }

    /// Asks for a report, ends everything, and returns what was printed.
    fn diagnose(&mut self) -> String {
        let launchers = || process::marked(&self.mark).filter(|process| process.name == LAUNCHER);
        let tell = |signal| {
            // A launcher that is gone needs no signal.
            let heeding = launchers().filter(|launcher| process::heeds(launcher.pid, signal));
            heeding.for_each(|launcher| _ = process::signal(launcher.pid, signal));
        };
        let reports = self.stderr().matches(REPORT).count();
        tell(Signal::QUIT);
        holds_within(GRACE, || {
            launchers().next().is_none() || self.stderr().matches(REPORT).count() > reports
        });
        tell(Signal::TERM);
        holds_within(GRACE, || launchers().next().is_none());
        self.kill();
        let [stdout, stderr] = [self.stdout.tail(), self.stderr.tail()];
        format!("--- standard output\n{stdout}\n--- standard error\n{stderr}")
    }

    /// Ends it, and all that carries its mark.
    fn kill(&mut self) {
        self.has_ended = true;
        let _ = self.child.kill();
        holds_within(GRACE, || {
            let left: Vec<_> = process::marked(&self.mark).collect();
            left.iter().for_each(|process| _ = process::signal(process.pid, Signal::KILL));
            left.is_empty()
        });
        let _ = self.child.wait();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.has_ended {
            return;
        }
        if thread::panicking() {
            #[expect(clippy::print_stderr, reason = "shown beside the failure of the test")]
            {
                let status = self.child.try_wait().ok().flatten();
                let how = status.map_or("still running".to_owned(), |it| format!("over ({it})"));
                let said = self.diagnose();
                eprintln!("{} was {how}\n{said}", self.words);
            }
        } else {
            self.kill();
        }
    }
}

/// What has come out of a stream so far. A thread reads it, so that a full pipe never blocks the process.
#[derive(Default)]
struct Stream {
    kept: Arc<Mutex<Vec<u8>>>,
    /// Disconnected at the end of the stream; `None` if nobody reads it.
    end: Option<Receiver<()>>,
}

impl Stream {
    fn of(pipe: Option<impl Read + Send + 'static>) -> Self {
        let mut pipe = pipe.expect("the stream was requested as a pipe");
        let (sender, end) = mpsc::channel();
        let stream = Self { end: Some(end), ..Self::default() };
        let kept = Arc::clone(&stream.kept);
        thread::spawn(move || {
            // Dropped when the thread ends.
            let _sender: mpsc::Sender<()> = sender;
            let mut bytes = [0; 16 << 10];
            while let Ok(len @ 1..) = pipe.read(&mut bytes) {
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                let room = MOST_OUTPUT - kept.len();
                kept.extend_from_slice(&bytes[..len.min(room)]);
            }
        });
        stream
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, Vec<u8>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.kept()).into_owned()
    }

    fn tail(&self) -> String {
        let kept = self.kept();
        String::from_utf8_lossy(&kept[kept.len().saturating_sub(SHOWN)..]).into_owned()
    }

    fn ends_by(&self, deadline: Instant) -> bool {
        let left = deadline.saturating_duration_since(Instant::now());
        let ended = |end: &Receiver<()>| end.recv_timeout(left);
        self.end.as_ref().is_none_or(|end| ended(end) == Err(RecvTimeoutError::Disconnected))
    }
}

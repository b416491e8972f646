//! Runs `mpjrun` under a watchdog, and looks at the process table.

use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// After this long a launcher is killed and its test fails.
const WATCHDOG: Duration = Duration::from_secs(30);

/// The launcher under test.
pub const MPJRUN: &str = env!("CARGO_BIN_EXE_mpjrun");

/// The end and the output of a run.
#[derive(Debug)]
pub struct Finished {
    pub code: Option<i32>,
    pub signal: Option<i32>,
    pub out: Vec<u8>,
    pub err: String,
    pub took: Duration,
}

impl Finished {
    pub fn text(&self) -> String {
        String::from_utf8(self.out.clone()).expect("text")
    }

    /// Lines of standard output, sorted: the order between ranks is free.
    pub fn sorted_lines(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.text().lines().map(str::to_owned).collect();
        lines.sort_unstable();
        lines
    }

    #[track_caller]
    pub fn assert_code(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self:?}");
        self
    }

    /// Failures are to be found and reported within a second.
    #[track_caller]
    pub fn assert_within_a_second(self) -> Self {
        assert!(self.took < Duration::from_secs(1), "{self:?}");
        self
    }

    #[track_caller]
    pub fn assert_says(self, words: &str) -> Self {
        assert!(self.err.contains(words), "no {words:?} in {self:?}");
        self
    }
}

/// A running launcher, killed when the test forgets it.
pub struct Running {
    child: Child,
    start: Instant,
    out: Option<JoinHandle<Vec<u8>>>,
    err: Option<JoinHandle<Vec<u8>>>,
}

/// `mpjrun` with these words, whatever tuned values this user has.
pub fn command<W: AsRef<OsStr>>(words: impl IntoIterator<Item = W>) -> Command {
    let mut command = Command::new(MPJRUN);
    command.args(words).stdin(Stdio::null()).env("MPJ_TUNING", "none");
    command
}

/// Runs `mpjrun` with these words to its end.
#[track_caller]
pub fn mpjrun<W: AsRef<OsStr>>(words: impl IntoIterator<Item = W>) -> Finished {
    start(&mut command(words)).finish()
}

/// Runs `script` as the program of `ranks` ranks.
#[track_caller]
pub fn script(ranks: usize, script: &str) -> Finished {
    mpjrun(["-n", &ranks.to_string(), "sh", "-c", script])
}

/// Starts `command` with both output streams captured.
pub fn start(command: &mut Command) -> Running {
    let start = Instant::now();
    let mut child =
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let out = child.stdout.take().map(capture);
    let err = child.stderr.take().map(capture);
    Running { child, start, out, err }
}

/// The same, but standard output goes into `out`.
pub fn start_into(command: &mut Command, out: impl Into<Stdio>) -> Running {
    let start = Instant::now();
    let mut child = command.stdout(out).stderr(Stdio::piped()).spawn().expect("it starts");
    let err = child.stderr.take().map(capture);
    Running { child, start, out: None, err }
}

/// The same, but nobody reads its output until it has ended.
pub fn start_unread(command: &mut Command) -> Running {
    let start = Instant::now();
    let mut child =
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let err = child.stderr.take().map(capture);
    Running { child, start, out: None, err }
}

fn capture(mut pipe: impl Read + Send + 'static) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        pipe.read_to_end(&mut bytes).expect("a pipe");
        bytes
    })
}

impl Running {
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Reads its output from now on.
    pub fn read(&mut self) {
        self.out = self.child.stdout.take().map(capture);
    }

    pub fn stdin(&mut self) -> std::process::ChildStdin {
        self.child.stdin.take().expect("it is piped")
    }

    pub fn signal(&self, signal: rustix::process::Signal) {
        rustix::process::kill_process(rustix::process::Pid::from_child(&self.child), signal)
            .expect("it runs");
    }

    /// Waits for the end, under the watchdog.
    #[track_caller]
    pub fn finish(mut self) -> Finished {
        let status = self.wait();
        let took = self.start.elapsed();
        let (out, err) = self.captured();
        let err = String::from_utf8_lossy(&err).into_owned();
        let Some(status) = status else {
            panic!("watchdog: still running; stdout {:?}, stderr {err:?}", out.escape_ascii());
        };
        Finished { code: status.code(), signal: status.signal(), out, err, took }
    }

    fn wait(&mut self) -> Option<ExitStatus> {
        while self.start.elapsed() < WATCHDOG {
            if let Some(status) = self.child.try_wait().expect("our child") {
                return Some(status);
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        self.child.kill().expect("our child");
        self.child.wait().expect("our child");
        None
    }

    fn captured(&mut self) -> (Vec<u8>, Vec<u8>) {
        let take = |reader: Option<JoinHandle<Vec<u8>>>| {
            reader.map_or(Vec::new(), |reader| reader.join().expect("a reader does not panic"))
        };
        (take(self.out.take()), take(self.err.take()))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Already ended, unless the test failed before.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until `condition` holds, and fails after the watchdog's time.
#[track_caller]
pub fn eventually(what: &str, condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < WATCHDOG, "watchdog: never came true: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Whether a process runs; one that has ended and waits to be reaped does not.
pub fn runs(pid: u32) -> bool {
    !matches!(state(pid), None | Some('Z' | 'X'))
}

/// Whether a process is suspended.
pub fn is_suspended(pid: u32) -> bool {
    state(pid) == Some('T')
}

fn state(pid: u32) -> Option<char> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    status.rsplit(") ").next()?.chars().next()
}

/// The numbers in a file, one a line, once there are `count` of them.
#[track_caller]
pub fn pids_in(file: &Path, count: usize) -> Vec<u32> {
    let read = || {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        whole.lines().map(|line| line.parse().expect("a number")).collect::<Vec<u32>>()
    };
    eventually("every process wrote its number", || read().len() == count);
    read()
}

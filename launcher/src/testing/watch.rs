//! The part of the test's own process: starts the launcher, prints the ranks' output, and decides whether the test
//! has passed. Called by [`super`] on the thread of the test, so that libtest captures the output.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::{MemfdFlags, memfd_create};
use transport_lapi::{bootstrap, config};

use super::Case;
use super::transcript::Transcript;

/// How long after the timeout the launcher may run on, to stop the ranks and to report.
const GRACE: Duration = Duration::from_secs(5);
/// How often output is printed and the launcher is checked for its end.
const TICK: Duration = Duration::from_millis(10);
/// Exit code of a launcher after its timeout.
const TIMED_OUT: i32 = 124;

/// Runs the test `path`.
///
/// # Errors
/// Why it failed.
pub(super) fn run(case: &Case, path: &str) -> Result<(), String> {
    let refused =
        |error: io::Error| format!("cannot start the launcher of the test {path}: {error}");
    let mut launcher = Launcher::start(path).map_err(refused)?;
    let mut transcript = Transcript::new(case.ranks);
    let status = launcher.watch(case.timeout + GRACE, &mut transcript);
    let status = status.map_err(|error| format!("cannot watch the test {path}: {error}"))?;
    print(&transcript.finish());
    judge(case, path, status, &transcript)
}

/// The launcher's process; killed and reaped when dropped.
struct Launcher {
    child: Child,
    /// The file for both its streams. It takes all output, however slowly this process reads, and keeps its order.
    output: File,
    read: u64,
}

impl Launcher {
    fn start(path: &str) -> io::Result<Self> {
        let output = File::from(memfd_create("mpj-test", MemfdFlags::CLOEXEC)?);
        let mut command = Command::new(std::env::current_exe()?);
        command.args(super::words(path)).env(config::TEST, super::variable(path));
        // With mpjrun as cargo's runner, this process is itself a rank of a job.
        bootstrap::withhold_descriptors();
        for name in config::JOB_VARIABLES {
            command.env_remove(name);
        }
        command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output.try_clone()?);
        Ok(Self { child: command.spawn()?, output, read: 0 })
    }

    /// Prints output until the launcher has ended, and returns its status; `None` if it still runs after `limit`.
    fn watch(
        &mut self,
        limit: Duration,
        transcript: &mut Transcript,
    ) -> io::Result<Option<ExitStatus>> {
        let until = Instant::now() + limit;
        loop {
            let is_late = Instant::now() >= until;
            let status = self.child.try_wait()?;
            self.print_news(transcript)?;
            if status.is_some() || is_late {
                return Ok(status);
            }
            std::thread::sleep(TICK);
        }
    }

    fn print_news(&mut self, transcript: &mut Transcript) -> io::Result<()> {
        let mut bytes = [0; 16 * 1024];
        loop {
            match self.output.read_at(&mut bytes, self.read)? {
                0 => return Ok(()),
                len => {
                    self.read += len as u64;
                    print(&transcript.push(&bytes[..len]));
                }
            }
        }
    }
}

impl Drop for Launcher {
    fn drop(&mut self) {
        // Does nothing if it has been reaped. Its ranks end with it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[expect(clippy::print_stdout, reason = "libtest captures what a test prints, and only so")]
fn print(text: &str) {
    print!("{text}");
}

/// Decides whether the test has passed (TL4 of [`super`]).
///
/// # Errors
/// Why not, and the launcher's report.
fn judge(
    case: &Case,
    path: &str,
    status: Option<ExitStatus>,
    transcript: &Transcript,
) -> Result<(), String> {
    if status.is_some_and(|status| status.success()) && transcript.has_started() {
        return Ok(());
    }
    let mut failure = match (transcript.cause(), status) {
        (Some(cause), _) => cause.to_owned(),
        _ if !transcript.has_started() => {
            let came = transcript.greeting().trim();
            format!("the test executable did not run {path} when asked to; it printed: {came}")
        }
        (None, None) => format!(
            "the launcher still ran {GRACE:?} after the test's timeout of {:?}, and was killed",
            case.timeout
        ),
        (None, Some(status)) => match status.code() {
            Some(TIMED_OUT) => format!("not over after {:?}, the test's timeout", case.timeout),
            Some(code) => format!("the job ended with code {code}"),
            None => format!("the job did not come to its end: the launcher ended by {status}"),
        },
    };
    if !transcript.report().is_empty() {
        failure = failure + "\n\n" + transcript.report();
    }
    Err(failure)
}

//! Starts jobs the way a user does: through the built `mpjrun`, with a watchdog on every process.
//!
//! Called by the multi-process tests. The launcher and the example programs are built on first use,
//! once per test process, with the profile and into the target folder of the running test; cargo
//! does not hold its lock while tests run.

use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

/// How long a process may take before the watchdog kills it and fails the test.
pub const LIMIT: Duration = Duration::from_secs(60);

/// How long the output of a process may stay open after its end.
const DRAIN: Duration = Duration::from_secs(5);

/// What a process did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Exit code, or 128 plus the number of the signal that killed the process, as in a shell.
    pub code: i32,
    /// Everything on standard output.
    pub stdout: String,
    /// Everything on standard error.
    pub stderr: String,
}

/// Runs `mpjrun` with the given arguments to its end.
///
/// # Panics
///
/// When the launcher cannot be built or started, or does not end within [`LIMIT`].
pub fn mpjrun(args: &[&str]) -> Outcome {
    run(Command::new(mpjrun_path()).args(args).env("MPJ_TUNING", "none"))
}

/// Runs a command to its end, without input.
///
/// # Panics
///
/// When the command cannot be started or does not end within [`LIMIT`].
pub fn run(command: &mut Command) -> Outcome {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let stdout = collect(child.stdout.take());
    let stderr = collect(child.stderr.take());
    let status = wait(&mut child);
    let [stdout, stderr] = [stdout, stderr].map(|stream| {
        String::from_utf8_lossy(&stream.recv_timeout(DRAIN).unwrap_or_default()).into_owned()
    });
    let Some(status) = status else {
        panic!(
            "{command:?} was killed after {LIMIT:?}\n--- stdout\n{stdout}\n--- stderr\n{stderr}"
        );
    };
    let code = status.code().or(status.signal().map(|signal| 128 + signal));
    Outcome { code: code.expect("a process ends with a code or by a signal"), stdout, stderr }
}

/// Reads a stream to its end beside the process, so that a full pipe never blocks it.
fn collect(stream: Option<impl Read + Send + 'static>) -> Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    let mut stream = stream.expect("the stream was requested as a pipe");
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // What was read before an error is what the test wants to see.
        let _ = stream.read_to_end(&mut bytes);
        let _ = sender.send(bytes);
    });
    receiver
}

/// Waits for the end of a process; kills it after [`LIMIT`] and returns nothing.
fn wait(child: &mut Child) -> Option<ExitStatus> {
    let start = Instant::now();
    while start.elapsed() < LIMIT {
        if let Some(status) = child.try_wait().expect("a child can be waited for") {
            return Some(status);
        }
        thread::sleep(Duration::from_millis(2));
    }
    child.kill().expect("a child that still runs can be killed");
    child.wait().expect("a killed child can be waited for");
    None
}

/// The launcher, built if need be.
///
/// # Panics
///
/// When it cannot be built.
pub fn mpjrun_path() -> PathBuf {
    static BUILT: OnceLock<()> = OnceLock::new();
    BUILT.get_or_init(|| build(&["--package", "mpj-launcher", "--bins"]));
    profile_folder().join("mpjrun")
}

/// An example program of `mpj`, built if need be.
///
/// # Panics
///
/// When the examples cannot be built, or there is none of this name.
pub fn example(name: &str) -> PathBuf {
    static BUILT: OnceLock<()> = OnceLock::new();
    // With the features that these tests use of mpj, so that nothing is compiled a second time.
    BUILT.get_or_init(|| {
        build(&["--package", "mpj", "--features", "ndarray,test", "--examples"]);
    });
    let path = profile_folder().join("examples").join(name);
    assert!(path.is_file(), "mpj has no example {name}: {} is missing", path.display());
    path
}

/// Root of the workspace.
pub fn workspace() -> &'static Path {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().expect("the package is a folder of the workspace")
}

fn build(selection: &[&str]) {
    let folder = profile_folder();
    let target = folder.parent().expect("the profile has a folder inside the target folder");
    // The profile that writes to `debug` is the one folder not named after its profile.
    let profile = match folder.file_name().and_then(|name| name.to_str()) {
        None | Some("debug") => "dev",
        Some(name) => name,
    };
    let mut command = Command::new(env!("CARGO"));
    command.current_dir(workspace()).args(["build", "--quiet", "--profile", profile]);
    command.arg("--target-dir").arg(target).args(selection);
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let messages = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?} failed:\n{messages}");
}

/// The folder of the running test's profile: tests are built into its `deps`.
fn profile_folder() -> PathBuf {
    let test = std::env::current_exe().expect("a running test knows its own path");
    let deps = test.parent().expect("a program lies in a folder");
    deps.parent().expect("deps lies in the folder of the profile").to_owned()
}

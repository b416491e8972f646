//! One pair of `ucx_perftest`: a server and a client, which measure a list of tests and end.
//!
//! They meet through a port of the loopback interface. The list is in an unnamed file, so that nothing is left in a
//! file system, however the processes end. A pair that is dropped early is ended.

use std::fs::File;
use std::io::{self, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use procfs::net::TcpState;
use rustix::fs::{MemfdFlags, memfd_create};

use super::ways::Way;
use super::{UcxError, answer};

/// How long the server may take to listen, and to end after the client.
const PATIENCE: Duration = Duration::from_secs(10);
/// Between two looks at a process.
const TICK: Duration = Duration::from_millis(2);

/// One measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Test {
    /// The length of the messages, in bytes.
    pub size: usize,
    /// The number of messages.
    pub iterations: u64,
}

/// Measures `tests` by one way. Returns the messages per second of each. The client, which measures, runs on the first
/// of the processors, the server on the second.
///
/// # Errors
/// A process could not be started or failed, or its answer is not a table of these tests.
pub fn run(
    perftest: &Path,
    way: &Way,
    tests: &[Test],
    processors: Option<[usize; 2]>,
) -> Result<Vec<f64>, UcxError> {
    let file = list(way, tests).map_err(system("write the list of tests"))?;
    let path = format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
    let port = free_port().map_err(system("find a free port"))?;
    let command = |processor: Option<usize>| {
        let mut command = Command::new(perftest);
        command.env("UCX_TLS", way.transports).env("UCX_LOG_LEVEL", "error").stdin(Stdio::null());
        command.args(["-b", &path, "-f", "-v", "-p", &port.to_string()]);
        command.args(processor.iter().flat_map(|number| ["-c".to_owned(), number.to_string()]));
        command
    };
    let [first, second] = [0, 1].map(|rank| processors.map(|all| all[rank]));
    let mut server = Server::start(command(second), port)?;
    let output = command(first).arg(Ipv4Addr::LOCALHOST.to_string()).output();
    let output = output.map_err(system("start ucx_perftest"))?;
    if !output.status.success() {
        return Err(UcxError::Failed { test: way.test, said: last_words(&output) });
    }
    server.finish(way.test)?;
    let rates = answer::rates(&String::from_utf8_lossy(&output.stdout), tests);
    rates.map_err(|source| UcxError::Answer { test: way.test, source })
}

fn system(action: &'static str) -> impl Fn(io::Error) -> UcxError {
    move |source| UcxError::System { action, source }
}

/// The list of tests: the name of each, which is its number, and its options.
fn list(way: &Way, tests: &[Test]) -> io::Result<File> {
    let mut file = File::from(memfd_create(c"mpj-bench-ucx", MemfdFlags::CLOEXEC)?);
    for (name, Test { size, iterations }) in tests.iter().enumerate() {
        let Way { test, options, .. } = way;
        let warm_up = iterations / 10 + 1;
        writeln!(file, "{name} -t {test} -s {size} -n {iterations} -w {warm_up} {options}")?;
    }
    Ok(file)
}

/// A port that nobody uses at this moment. If somebody takes it before the server does, the server fails.
fn free_port() -> io::Result<u16> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr().map(|address| address.port())
}

/// Whether somebody listens to a port.
fn is_listened_to(port: u16) -> bool {
    let sockets = procfs::net::tcp().unwrap_or_default();
    sockets.iter().any(|it| it.local_address.port() == port && it.state == TcpState::Listen)
}

/// What a process said about its failure: its first error, or its last line.
fn last_words(output: &Output) -> String {
    let texts = [&output.stderr, &output.stdout].map(|text| String::from_utf8_lossy(text));
    let error = texts.iter().flat_map(|text| text.lines()).find(|line| line.contains("ERROR"));
    let said = error.or_else(|| texts[0].lines().last()).unwrap_or("no message");
    said.trim().to_owned()
}

/// The process that waits for the client.
struct Server(Option<Child>);

impl Server {
    /// Starts it, and returns when it listens.
    fn start(mut command: Command, port: u16) -> Result<Self, UcxError> {
        let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
        let mut server = Self(Some(child.map_err(system("start ucx_perftest"))?));
        let deadline = Instant::now() + PATIENCE;
        while !is_listened_to(port) {
            if server.has_ended() || Instant::now() > deadline {
                return Err(UcxError::Server { said: last_words(&server.end()) });
            }
            thread::sleep(TICK);
        }
        Ok(server)
    }

    fn has_ended(&mut self) -> bool {
        let child = self.0.as_mut().expect("it is taken at its end");
        !matches!(child.try_wait(), Ok(None))
    }

    /// Waits until it ends by itself.
    fn finish(&mut self, test: &'static str) -> Result<(), UcxError> {
        let deadline = Instant::now() + PATIENCE;
        while !self.has_ended() && Instant::now() < deadline {
            thread::sleep(TICK);
        }
        let output = self.end();
        match output.status.success() {
            true => Ok(()),
            false => Err(UcxError::Failed { test, said: last_words(&output) }),
        }
    }

    /// Ends it if it still runs.
    fn end(&mut self) -> Output {
        let mut child = self.0.take().expect("it is taken at its end");
        // A process that has ended needs no signal.
        let _ = child.kill();
        child.wait_with_output().expect("a child can be waited for")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.0.is_some() {
            self.end();
        }
    }
}

//! One pair of `ucx_perftest`: a server and a client, which measure a list of tests and end.
//!
//! They meet through a port of the loopback interface. The list is in an unnamed file, so that nothing is left in a
//! file system, however the processes end. A server whose client has failed ends with the launch.

use std::fs::File;
use std::io::{self, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use mpj_bench_programs::Failure;
use procfs::net::TcpState;
use rustix::fs::{MemfdFlags, memfd_create};

use super::answer;
use super::ways::Way;

/// Between two looks at the server.
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
) -> Result<Vec<f64>, Failure> {
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
    let server = command(second).stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
    let mut server = server.map_err(system("start ucx_perftest"))?;
    // A server that has ended instead says why below.
    while !is_listened_to(port) && matches!(server.try_wait(), Ok(None)) {
        thread::sleep(TICK);
    }
    let succeeded = |output: io::Result<Output>| {
        let output = output.map_err(system("run ucx_perftest"))?;
        let said = || format!("ucx_perftest failed in {}: {}", way.test, last_words(&output));
        if output.status.success() { Ok(output.stdout) } else { Err(Failure::new(said())) }
    };
    if !matches!(server.try_wait(), Ok(None)) {
        succeeded(server.wait_with_output())?;
        return Err(Failure::new("the server of ucx_perftest ended before its client began"));
    }
    let table = succeeded(command(first).arg(Ipv4Addr::LOCALHOST.to_string()).output())?;
    succeeded(server.wait_with_output())?;
    answer::rates(&String::from_utf8_lossy(&table), tests)
}

fn system(action: &'static str) -> impl Fn(io::Error) -> Failure {
    move |error| Failure::new(format_args!("cannot {action}: {error}"))
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

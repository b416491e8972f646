//! Runs tests of several ranks: `#[mpj::test]` expands to a call of [`run`].
//!
//! A test has processes of three kinds, all of the same test executable. The environment tells each of them which kind
//! it is:
//!
//! ```text
//!  test       libtest calls the test function; watch: starts ──┐      prints, passes or panics
//!  launcher   the executable again, for this test alone:       └─ runs the job; starts ──┐
//!  rank       the executable again, for this test alone:                                 └─ the body
//! ```
//!
//! - TL1: the launcher is a process of its own, apart from libtest's threads and other tests: it owns its signals and
//!   streams, as `mpjrun` does.
//! - TL2: the launcher ends with the thread that runs the test, and the ranks end with the launcher, so a killed test
//!   leaves no process behind.
//! - TL3: launcher and ranks exit inside the test function, with the exit code of a program. The transcript cuts off
//!   the lines that libtest prints before.
//! - TL4: a test succeeds only if the launcher has reported its start and ended with code 0.

mod transcript;
mod watch;

use std::ffi::OsString;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};
use transport_lapi::config::{self, BackendChoice};

use crate::LaunchError;
use crate::job::{self, App, JobSpec, Outcome, OutputChoice};
use transcript::{CAUSE, START};

/// Exit code of a program that panicked.
const PANICKED: i32 = 101;
/// Exit code of a launcher that failed itself.
const LAUNCHER_FAILED: i32 = 125;

/// A test of several ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Case {
    /// The module of the test function, beginning with its crate.
    pub module: &'static str,
    /// Name of the test function.
    pub name: &'static str,
    /// Number of ranks.
    pub ranks: usize,
    /// How long the job may run.
    pub timeout: Duration,
    /// Protocol of messages; `None` leaves it to the environment.
    pub backend: Option<BackendChoice>,
}

impl Case {
    /// The name that libtest gives the test: without the crate.
    fn path(&self) -> String {
        let name = self.name;
        self.module
            .split_once("::")
            .map_or(name.to_owned(), |(_, inside)| format!("{inside}::{name}"))
    }
}

/// Runs a test: as launcher, or as one rank.
///
/// # Panics
/// In the process of the test, if the job fails: with the message of the rank that failed first, and the launcher's
/// report.
#[expect(clippy::disallowed_methods, reason = "launcher and ranks end inside of the test (TL3)")]
#[track_caller]
pub fn run(case: &Case, body: impl FnOnce()) {
    let path = case.path();
    match Role::of(&path) {
        Role::Rank => std::process::exit(run_rank(body)),
        Role::Launcher { test } => std::process::exit(run_launcher(case, &path, test)),
        Role::Test => {
            if let Err(failure) = watch::run(case, &path) {
                panic!("{failure}");
            }
        }
    }
}

/// The part of this process in a test.
#[derive(Debug, PartialEq, Eq)]
enum Role {
    /// The process in which libtest runs the test.
    Test,
    /// The process that starts the ranks, for the process `test`.
    Launcher {
        test: Option<Pid>,
    },
    Rank,
}

impl Role {
    fn of(path: &str) -> Self {
        Self::parse(path, config::inherited(config::TEST), config::is_rank())
    }

    /// A variable that names another test was set for an ancestor of this process.
    fn parse(path: &str, variable: Option<OsString>, is_rank: bool) -> Self {
        let variable = variable.and_then(|value| value.into_string().ok()).unwrap_or_default();
        match variable.split_once(' ') {
            Some((_, named)) if named == path && is_rank => Self::Rank,
            Some((test, named)) if named == path => {
                Self::Launcher { test: test.parse().ok().and_then(Pid::from_raw) }
            }
            _ => Self::Test,
        }
    }
}

/// The value of [`config::TEST`] for the launcher of the test `path`.
fn variable(path: &str) -> String {
    format!("{} {path}", std::process::id())
}

#[expect(clippy::print_stdout, reason = "the transcript waits for it")]
fn run_rank(body: impl FnOnce()) -> i32 {
    println!("{START}");
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(()) => 0,
        Err(_) => PANICKED,
    }
}

#[expect(clippy::print_stdout, reason = "the transcript waits for it")]
fn run_launcher(case: &Case, path: &str, test: Option<Pid>) -> i32 {
    // A test that ended before the call is not the parent any more (TL2).
    if set_parent_process_death_signal(Some(Signal::KILL)).is_err() || getppid() != test {
        return LAUNCHER_FAILED;
    }
    println!("{START}");
    let outcome = job_of(case, path).and_then(|spec| job::run(&spec));
    let Outcome { code, cause } = outcome.unwrap_or_else(|error| Outcome {
        code: error.exit_code(),
        cause: Some(error.to_string()),
    });
    if let Some(cause) = cause {
        println!("{CAUSE}\n{cause}");
    }
    code.into()
}

/// The job of a test: this executable with that test alone. Labels tell the ranks' lines from the launcher's.
fn job_of(case: &Case, path: &str) -> Result<JobSpec, LaunchError> {
    let program = std::env::current_exe()
        .map_err(|source| LaunchError::System { action: "find the test executable", source })?;
    let app = App { args: words(path).map(Into::into).to_vec(), ..App::new(case.ranks, program) };
    let output = OutputChoice { tag: true, ..OutputChoice::default() };
    let timeout = Some(case.timeout);
    let last_calls = config::inherited(config::CHECK.name).is_none_or(|value| value != "0");
    Ok(JobSpec { backend: case.backend, output, timeout, last_calls, ..JobSpec::new(vec![app]) })
}

/// The arguments with which a test executable runs one test, even an ignored one, and does not capture its output.
fn words(path: &str) -> [&str; 5] {
    [path, "--exact", "--include-ignored", "--nocapture", "--test-threads=1"]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(module: &'static str) -> Case {
        Case { module, name: "ring", ranks: 2, timeout: Duration::from_secs(1), backend: None }
    }

    #[test]
    fn libtest_names_tests_without_their_crate() {
        assert_eq!(case("program").path(), "ring");
        assert_eq!(case("program::a::b").path(), "a::b::ring");
    }

    #[test]
    fn a_process_knows_what_it_is() {
        let role = |value: &str, is_rank| Role::parse("a::ring", Some(value.into()), is_rank);
        let launcher = Role::Launcher { test: Pid::from_raw(77) };
        assert_eq!(Role::parse("a::ring", None, false), Role::Test);
        assert_eq!(Role::parse("a::ring", None, true), Role::Test, "a rank of mpjrun as runner");
        assert_eq!(role("77 a::ring", false), launcher);
        assert_eq!(role("77 a::ring", true), Role::Rank);
        assert_eq!(role("77 a::other", true), Role::Test, "a test inside a rank of another test");
        assert_eq!(role("a::ring", false), Role::Test);
    }

    #[test]
    fn a_launcher_recognises_its_variable() {
        let test = Pid::from_raw(std::process::id() as i32);
        let role = Role::parse("a::ring", Some(variable("a::ring").into()), false);
        assert_eq!(role, Role::Launcher { test });
    }
}

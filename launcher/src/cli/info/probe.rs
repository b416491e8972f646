//! Finds out how ranks on this host read each other's memory, by a job of two ranks.
//!
//! This program starts itself with a job whose ranks are also this program. Given [`WORD`], they join, print how they
//! read, and end. So they meet all that may keep ranks from reading: a filter of system calls, a container or a
//! security module.

use std::process::{Command, ExitCode, Stdio};

use transport_lapi::config::{self, Settings};
use transport_lapi::wireup::{Client, Joined, WireupError, connect};

use super::Asked;
use crate::cli::answer::{complain, print};

/// The argument of a rank of the probe job.
pub const WORD: &str = "--probe-get";

/// Time limit of the job in seconds.
const LIMIT: &str = "5";

/// The variable that decides how ranks read.
const GET: &str = "MPJ_GET";

/// Runs a rank of the probe job: prints how it reads, or an error, and returns the exit code.
pub fn run() -> ExitCode {
    match answer() {
        Ok(report) => print(&format!("{report}\n")).map_or(ExitCode::FAILURE, ExitCode::from),
        Err(error) => {
            complain(error);
            ExitCode::FAILURE
        }
    }
}

fn answer() -> Result<String, WireupError> {
    let Joined { control, one_sided_path, .. } =
        connect(&Settings::from_env()?, Client::new("probe"))?;
    if let Some(control) = control {
        control.finished();
    }
    Ok(one_sided_path)
}

/// Returns how two ranks read each other's memory, or why that is not known.
pub(super) fn report(asked: &Asked) -> String {
    match ask(asked) {
        Ok(said) => said,
        Err(cause) => format!("not known: a job of two ranks could not be tried: {cause}"),
    }
}

fn ask(asked: &Asked) -> Result<String, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new(&program);
    command.args(["-n", "2", "--timeout", LIMIT]);
    if let Some(value) = asked.exported(GET) {
        command.arg("-x").arg(format!("{GET}={value}"));
    }
    // A note about unknown variables would be taken for the cause of a failure.
    let names = config::inherited_names();
    for unknown in names.filter(|name| name.to_str().is_some_and(config::is_unknown)) {
        command.env_remove(unknown);
    }
    command.arg(&program).arg(WORD).stdin(Stdio::null());
    let output = command.output().map_err(|error| error.to_string())?;
    // Both ranks say the same; of an error, the first line has the cause.
    let first = |stream: &[u8]| {
        let text = String::from_utf8_lossy(stream);
        text.lines().next().map(str::to_owned)
    };
    match output.status.success() {
        true => first(&output.stdout).ok_or_else(|| "it said nothing".to_owned()),
        false => Err(first(&output.stderr).unwrap_or_else(|| output.status.to_string())),
    }
}

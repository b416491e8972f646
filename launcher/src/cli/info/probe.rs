//! How ranks on this host read each other's memory: tried by a job of two ranks.
//!
//! The job is a real one, started by this very program, whose ranks are this program too: told by
//! [`WORD`], they join, say how reading is done, and end. So whatever keeps ranks from reading each
//! other, a filter of system calls, a container or a security module, keeps these two from it.

use std::process::{Command, ExitCode, Stdio};

use transport_lapi::config::{self, Settings};
use transport_lapi::wireup::{Joined, WireupError, connect};

use super::Asked;
use crate::cli::answer::{complain, tell};

/// The one argument of a rank of such a job.
pub const WORD: &str = "--probe-get";

/// How long the job may take: seconds, as `--timeout` takes them.
const LIMIT: &str = "5";

/// The variable that decides how ranks read.
const GET: &str = "MPJ_GET";

/// Does what a rank of such a job has to do: prints its answer, or why it has none.
pub fn run() -> ExitCode {
    match answer() {
        Ok(report) => tell(&format!("{report}\n")).map_or(ExitCode::FAILURE, ExitCode::from),
        Err(error) => {
            complain(error);
            ExitCode::FAILURE
        }
    }
}

fn answer() -> Result<String, WireupError> {
    let Joined { control, get_report, .. } = connect(&Settings::from_env()?)?;
    if let Some(control) = control {
        control.finished();
    }
    Ok(get_report)
}

/// How two ranks read each other's memory, or why that is not known.
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
    let (tuning, none) = (config::TUNING.name, "none");
    // A note about them would be taken for the cause of a failure.
    let names = config::inherited_names();
    for unknown in names.filter(|name| name.to_str().is_some_and(config::is_unknown)) {
        command.env_remove(unknown);
    }
    command.arg(&program).arg(WORD).env(tuning, none).stdin(Stdio::null());
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

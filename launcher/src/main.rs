//! `mpjrun`: runs a program as the ranks of one job on this host.

#![allow(clippy::print_stderr, reason = "a program talks to its user")]

use std::io::Write;
use std::process::ExitCode;

use mpj_launcher::cli::Request;
use mpj_launcher::{LaunchError, cli, info, job};

fn main() -> ExitCode {
    if std::env::args_os().nth(1).is_some_and(|word| word == info::probe::WORD) {
        return probe();
    }
    let answer = match cli::parse_mpjrun(std::env::args_os()) {
        Ok(Request::Run(spec)) => job::run(&spec),
        Ok(Request::Info(asked)) => tell(&asked),
        Err(error) => error.exit(),
    };
    match answer {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("mpjrun: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}

fn tell(asked: &info::Asked) -> Result<u8, LaunchError> {
    let text = info::text(asked)?;
    // A reader that has seen enough closes the pipe.
    let written = std::io::stdout().write_all(text.as_bytes());
    Ok(u8::from(written.is_err()))
}

/// What this program does as a rank of the job by which `--info` finds out how ranks read.
fn probe() -> ExitCode {
    match info::probe::answer() {
        Ok(report) => {
            // If nobody listens, nobody wants to know.
            let _ = writeln!(std::io::stdout(), "{report}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

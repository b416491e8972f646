//! `mpjrun`: runs programs as the ranks of one job on this host.

#![allow(clippy::print_stderr, reason = "a program talks to its user")]

use std::io::Write;
use std::process::ExitCode;

use mpj_launcher::cli::Request;
use mpj_launcher::{LaunchError, answer, cli, dry_run, info, job, runner};

fn main() -> ExitCode {
    if std::env::args_os().nth(1).is_some_and(|word| word == info::probe::WORD) {
        return probe();
    }
    let answer = match cli::parse_mpjrun(std::env::args_os()) {
        Ok(request) => answered(request),
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

fn answered(request: Request) -> Result<u8, LaunchError> {
    match request {
        Request::Run(spec) if runner::is_listing(&spec) => Err(runner::become_program(&spec)),
        Request::Run(spec) => job::run(&spec),
        Request::DryRun(spec) => dry_run::tell(&spec),
        Request::Info(asked) => answer::tell(&info::text(&asked)?),
        Request::Completions(script) => answer::tell(&script),
    }
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

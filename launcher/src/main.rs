//! `mpjrun`: runs programs as the ranks of one job on this host.

#![allow(clippy::print_stderr, reason = "a program talks to its user")]

use std::io::{ErrorKind, Write};
use std::process::ExitCode;

use mpj_launcher::cli::Request;
use mpj_launcher::{LaunchError, cli, dry_run, info, job, jobs, runner};

fn main() -> ExitCode {
    if std::env::args_os().nth(1).is_some_and(|word| word == info::probe::WORD) {
        return probe();
    }
    let answer = match cli::parse_mpjrun(std::env::args_os()) {
        Ok(request) => answer(request),
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

fn answer(request: Request) -> Result<u8, LaunchError> {
    match request {
        Request::Run(spec) if runner::is_listing(&spec) => Err(runner::become_program(&spec)),
        Request::Run(spec) => job::run(&spec),
        Request::DryRun(spec) => {
            spec.notes.iter().for_each(|note| eprintln!("mpjrun: {note}"));
            dry_run::text(&spec).map(tell)
        }
        Request::Info(asked) => info::text(&asked).map(tell),
        Request::Completions(script) => Ok(tell(script)),
        Request::Ps => Ok(tell(jobs::ps()?)),
        Request::Kill { job } => Ok(tell(jobs::kill(&job)?)),
        Request::Attach { job } => Ok(tell(jobs::attach(&job)?)),
    }
}

/// Prints the text. A reader that has seen enough closes the pipe, which is no failure.
fn tell(text: String) -> u8 {
    let mut out = std::io::stdout();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            eprintln!("mpjrun: cannot write standard output: {error}");
            1
        }
        _ => 0,
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

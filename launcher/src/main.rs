//! `mpjrun`: runs programs as the ranks of one job on this host.

#![allow(clippy::print_stderr, reason = "a program talks to its user")]

use std::io::Write;
use std::process::ExitCode;

use mpj_launcher::carry_out;
use mpj_launcher::cli::{self, info};

fn main() -> ExitCode {
    if std::env::args_os().nth(1).is_some_and(|word| word == info::probe::WORD) {
        return probe();
    }
    let answer = match cli::parse_mpjrun(std::env::args_os()) {
        Ok(request) => carry_out(request),
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

//! `mpjrun`: runs a program as the ranks of one job on this host.

#![allow(clippy::print_stderr, reason = "a program talks to its user")]

use std::process::ExitCode;

use mpj_launcher::{cli, job};

fn main() -> ExitCode {
    let spec = match cli::parse_mpjrun(std::env::args_os()) {
        Ok(spec) => spec,
        Err(error) => error.exit(),
    };
    match job::run(&spec) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("mpjrun: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}

//! `cargo mpj run`: builds a program of the workspace and runs it as the ranks of one job.

#![allow(clippy::print_stderr, reason = "a program talks to its user")]

use std::process::ExitCode;

use mpj_launcher::{cargo, job};

fn main() -> ExitCode {
    let request = match cargo::parse(std::env::args_os()) {
        Ok(request) => request,
        Err(error) => error.exit(),
    };
    let spec = match request.build() {
        Ok(spec) => spec,
        Err(error) => {
            eprintln!("cargo mpj: {error}");
            return ExitCode::from(error.exit_code());
        }
    };
    match job::run(&spec) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("mpjrun: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}

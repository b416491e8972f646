//! `cargo mpj run` builds a program of the workspace and runs it as the ranks of one job;
//! `cargo mpj bench` and `cargo mpj tune` build the benchmarks and become them.

#![allow(clippy::print_stderr, reason = "a program talks to its user")]

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};

use mpj_launcher::cargo::{CargoError, Request, RunRequest};
use mpj_launcher::{cargo, dry_run, job};

fn main() -> ExitCode {
    let answer = match cargo::parse(std::env::args_os()) {
        Ok(Request::Run(request)) => run(request),
        Ok(Request::Bench(words)) => become_one("mpj-bench", &words),
        Ok(Request::Tune(words)) => become_one("mpj-tune", &words),
        Err(error) => error.exit(),
    };
    answer.unwrap_or_else(|error| {
        eprintln!("cargo mpj: {error}");
        ExitCode::from(error.exit_code())
    })
}

fn run(request: RunRequest) -> Result<ExitCode, CargoError> {
    let is_dry_run = request.is_dry_run();
    let spec = request.build()?;
    let answer = if is_dry_run { dry_run::tell(&spec) } else { job::run(&spec) };
    Ok(match answer {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("mpjrun: {error}");
            ExitCode::from(error.exit_code())
        }
    })
}

/// Becomes this program of the benchmarks, so that signals reach it and its exit code is the user's.
fn become_one(name: &str, words: &[OsString]) -> Result<ExitCode, CargoError> {
    let program = cargo::build_bench(name, Path::new("."))?;
    Err(CargoError::Bench(Command::new(program).args(words).exec()))
}

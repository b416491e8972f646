//! `mpj-bench`: runs the benchmarks and shows the results. `cargo mpj bench` builds and starts it.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program talks to its user")]

mod progress;
mod session;

use std::process::ExitCode;

use clap::Parser;
use mpj_bench::cli::Options;

fn main() -> ExitCode {
    let options = Options::parse();
    match session::run(&options) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("mpj-bench: {error}");
            ExitCode::from(2)
        }
    }
}

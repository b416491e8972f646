//! `cargo mpj run` builds a program of the workspace and runs it as the ranks of one job;
//! `cargo mpj bench` and `cargo mpj tune` build the benchmarks and become them.

#![allow(clippy::print_stderr, reason = "a program talks to its user")]

use std::process::ExitCode;

use mpj_launcher::cargo::{self, Request};
use mpj_launcher::carry_out;

fn main() -> ExitCode {
    let error = match cargo::parse(std::env::args_os()) {
        Ok(Request::Run(request)) => request.become_cargo(),
        Ok(Request::Bench(name, words)) => cargo::become_bench(name, &words),
        Ok(Request::Mpjrun(request)) => {
            return carry_out(request).map_or_else(
                |error| {
                    eprintln!("mpjrun: {error}");
                    ExitCode::from(error.exit_code())
                },
                ExitCode::from,
            );
        }
        Err(error) => error.exit(),
    };
    eprintln!("cargo mpj: {error}");
    ExitCode::from(error.exit_code())
}

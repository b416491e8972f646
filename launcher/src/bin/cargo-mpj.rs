//! `cargo mpj run` builds a program of the workspace and runs it as the ranks of one job;
//! `cargo mpj bench` and `cargo mpj install` build the benchmarks or the installer and become them.

use std::process::ExitCode;

use mpj_launcher::cargo;

fn main() -> ExitCode {
    match cargo::parse(std::env::args_os()) {
        Ok(request) => cargo::carry_out(request),
        Err(error) => error.exit(),
    }
}

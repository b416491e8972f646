//! `mpjrun`: runs programs as the ranks of one job, on this host or on several.

use std::process::ExitCode;

use mpj_launcher::carry_out;
use mpj_launcher::cli::{self, info::probe};
use mpj_launcher::job::agent;

fn main() -> ExitCode {
    if std::env::args_os().nth(1).is_some_and(|word| word == probe::WORD) {
        return probe::run();
    }
    if std::env::args_os().nth(1).is_some_and(|word| word == agent::WORD) {
        return agent::run();
    }
    match cli::parse_mpjrun(std::env::args_os()) {
        Ok(request) => carry_out(request),
        Err(error) => error.exit(),
    }
}

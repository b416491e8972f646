//! Starts the ranks of a job on this host, forwards their output, reports which rank failed and why, and leaves
//! nothing behind.
//!
//! `mpjrun` and `cargo-mpj` are its programs; `#[mpj::test]` uses it through [`testing`]. No process listens on a
//! port: a job has one sealed memory file and one socket pair per rank, which ranks inherit as descriptors
//! (`transport_lapi::bootstrap`).
//!
//! ```text
//!  cli          parses command lines; --help, --info, --dry-run
//!  cargo        cargo mpj; mpjrun as cargo's runner
//!   │
//!  job          the description of a job, its start, the poll loop that runs it
//!   ├── report  the texts about failures and hangs; pure
//!   ├── hang    deadlock, stall, standstill
//!   ├── host    processes, processors, clean-up
//!   ├── io      output and input
//!   ├── exits   which rank failed first; pure
//!   ├── trace   what ranks have recorded
//!   └── profile where they spent their time, made of that; pure
//!
//!  testing      runs a test of several ranks, for `#[mpj::test]`
//! ```

#![forbid(unsafe_code)]

pub mod cargo;
pub mod cli;
mod error;
mod exits;
mod hang;
mod host;
mod io;
pub mod job;
mod profile;
mod report;
pub mod testing;
mod trace;

use std::process::ExitCode;

pub use error::LaunchError;

/// Does what `mpjrun` was asked for, and returns its exit code. An error goes to standard error.
pub fn carry_out(request: cli::Request) -> ExitCode {
    let answer = match request {
        cli::Request::Run(spec) if cargo::listing::is_listing(&spec) => {
            Err(cargo::listing::become_program(&spec))
        }
        cli::Request::Run(spec) => job::run(&spec).map(|outcome| outcome.code),
        cli::Request::DryRun(spec) => cli::dry_run::print(&spec),
        cli::Request::Info(asked) => {
            cli::info::text(&asked).and_then(|text| cli::answer::print(&text))
        }
        cli::Request::Watch(watched) => cli::watch::run(&watched),
        cli::Request::Completions(script) => cli::answer::print(&script),
    };
    let code = answer.unwrap_or_else(|error| {
        cli::answer::complain(format_args!("mpjrun: {error}"));
        error.exit_code()
    });
    ExitCode::from(code)
}

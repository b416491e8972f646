//! Starts the ranks of a job on this host, forwards their output, says which one failed and why,
//! and leaves nothing behind.
//!
//! Two programs use it: `mpjrun` and `cargo-mpj`, which builds first and then runs the job in its own
//! process. Nothing listens: a job is one sealed memory file and one socket pair per rank, both
//! inherited by descriptor, as `transport_lapi::bootstrap` lays down.
//!
//! ```text
//!  cli, cargo          what was asked for ─┬─ info: what would be in force
//!      │                                   ├─ dry_run: what would be started
//!      │                                   ├─ runner: the tests of a test program
//!      │                                   └─ answer: prints what these say
//!  tuning_file         the values tuned to this machine
//!      │
//!  binding             which processors each rank may run on
//!      │
//!  spawn               one process per rank, each leading its own process group
//!      │
//!  job                 one thread, one poll loop: exits, output, control lines, signals, deadlines
//!      ├── rank        the descriptors of one rank
//!      ├── stragglers  what ranks started and what left their groups
//!      ├── stdin       the launcher's input, for the ranks that get it
//!      ├── suspend     Ctrl-Z, and who may go on after it
//!      ├── output      whole lines from the ranks to the launcher's own streams
//!      ├── exits       who failed first, with which code; pure
//!      ├── oversight   when they are looked at
//!      │   ├── watch       whether they can go on
//!      │   ├── standstill  whether they seem not to
//!      │   └── observe     what the ranks and their processes do, for a report
//!      └── report      failures and hangs in words; pure
//!
//!  process_table       whose child a process is, as the kernel tells
//!  testing             runs a test of several ranks, for `#[mpj::test]`
//! ```

#![forbid(unsafe_code)]

pub mod answer;
mod binding;
pub mod cargo;
pub mod cli;
pub mod dry_run;
mod error;
mod exits;
pub mod info;
pub mod job;
pub mod machine;
mod observe;
mod output;
mod oversight;
mod process_table;
mod rank;
mod report;
pub mod runner;
mod spawn;
mod standstill;
mod stdin;
mod stragglers;
mod suspend;
pub mod testing;
pub mod tuning_file;
mod watch;

pub use error::LaunchError;

/// Does what `mpjrun` was asked for, and answers its exit code.
///
/// # Errors
/// [`LaunchError`] if no job was started, or not all of it.
pub fn carry_out(request: cli::Request) -> Result<u8, LaunchError> {
    match request {
        cli::Request::Run(spec) if runner::is_listing(&spec) => Err(runner::become_program(&spec)),
        cli::Request::Run(spec) => job::run(&spec),
        cli::Request::DryRun(spec) => dry_run::tell(&spec),
        cli::Request::Info(asked) => answer::tell(&info::text(&asked)?),
        cli::Request::Completions(script) => answer::tell(&script),
    }
}

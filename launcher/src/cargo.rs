//! `cargo mpj run`: becomes `cargo run` with this program as its runner, which starts the job.
//!
//! ```text
//!  cargo mpj run -n 2 --release --example hello -- ARGS
//!        │    options of the job: for the runner; all others: for cargo
//!        ├── runner    refuses if the user names a runner too
//!        └── becomes   cargo run --config target.TARGET.runner=[...] --release --example hello -- ARGS
//!                           └── becomes   cargo-mpj as-mpjrun -n 2 PROGRAM ARGS
//! ```
//!
//! Cargo alone chooses the program and knows target folders, profiles and features. All of this is one process,
//! which signals reach and whose exit code is that of the job.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Stdio};

use clap::error::ErrorKind;
use clap::{Args, Command as Parsing, CommandFactory, Parser, Subcommand};
use transport_lapi::config;

use crate::cli::answer::complain;
use crate::cli::{self, JobOptions, Separated, TIP, built, separate, with_tip};

pub(crate) mod listing;
mod runner;

/// The first argument of `cargo-mpj` when it is to do what `mpjrun` does.
const AS_MPJRUN: &str = "as-mpjrun";
/// The error about a `:` among the options.
const SEVERAL: &str = "several programs in one job are for mpjrun: mpjrun -n N A : -n M B";

/// What `cargo mpj` is asked to do.
#[derive(Debug, Clone)]
pub enum Request {
    /// `cargo mpj run`.
    Run(RunRequest),
    /// `cargo mpj bench` or `install`: build this program and become it, with these arguments.
    Become(Tool, Vec<OsString>),
    /// As the runner of cargo: do what `mpjrun` does.
    Mpjrun(cli::Request),
}

/// A program of this workspace that `cargo mpj` becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tool {
    package: &'static str,
    program: &'static str,
    /// What is built with it: options of `cargo build`.
    needs: &'static [&'static str],
}

/// The benchmarks, with the programs that they start.
const BENCH: Tool = Tool {
    package: "mpj-bench",
    program: "mpj-bench",
    needs: &[
        "-pmpj-launcher",
        "--bin=mpjrun",
        "--bin=mpj-bench-rank",
        "--bin=mpj-bench-fabric",
        "--bin=mpj-bench-lapi",
        "--bin=mpj-bench-am2",
        "--bin=mpj-bench-pami",
        "--bin=mpj-bench-ucx",
    ],
};
/// The installer, with the libraries and the launcher.
const INSTALL: Tool = Tool {
    package: "mpj-install",
    program: "mpj-install",
    needs: &["-pmpj-libmpi", "-pmpj-libmpi-trace", "--lib", "-pmpj-launcher", "--bin=mpjrun"],
};

/// The command line of `cargo mpj run`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunRequest {
    /// Options of the job.
    job: Vec<OsString>,
    /// Options of cargo.
    cargo: Vec<OsString>,
    args: Vec<OsString>,
}

/// Builds message-passing programs and runs them as jobs
#[derive(Debug, Parser)]
#[command(name = "cargo", bin_name = "cargo", max_term_width = 100, args_override_self = true)]
enum CargoMpj {
    /// Builds message-passing programs and runs them as jobs
    #[command(subcommand, version)]
    Mpj(Mpj),
}

#[derive(Debug, Subcommand)]
enum Mpj {
    /// Builds a program of this workspace and runs it as the N ranks of one job
    ///
    /// All options that are not listed here are those of cargo run: --release, --bin X, --example Y, -p PKG,
    /// --features F and so on.
    #[command(override_usage = "cargo mpj run [OPTIONS] [OPTIONS OF cargo run] [-- ARGS...]")]
    Run {
        /// Arguments of the program, passed on as they are
        #[arg(value_name = "ARGS", last = true)]
        args: Vec<OsString>,
        #[command(flatten)]
        options: Box<JobOptions>,
    },
    /// In a clone of mpj: measures both backends, and system MPIs beside them if asked; see `cargo mpj bench --help`
    #[command(disable_help_flag = true)]
    Bench {
        /// Options and benchmarks
        #[arg(value_name = "ARGS", trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<OsString>,
    },
    /// In a clone of mpj: builds and installs MPI for C and C++; see `cargo mpj install --help`
    #[command(disable_help_flag = true)]
    Install {
        /// Options
        #[arg(value_name = "ARGS", trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<OsString>,
    },
}

/// Parses the command line of `cargo-mpj`, as cargo gives it: program name, `mpj`, and the rest.
///
/// # Errors
/// clap's error, which also carries the texts of `--help` and `--version`.
pub fn parse(command_line: impl IntoIterator<Item = OsString>) -> Result<Request, clap::Error> {
    let mut words = command_line.into_iter();
    let mut line: Vec<OsString> = words.by_ref().take(3).collect();
    let refused = |text: String| CargoMpj::command().error(ErrorKind::InvalidValue, text);
    if line.get(1).is_some_and(|word| word == AS_MPJRUN) {
        let words = line.into_iter().skip(2).chain(words);
        return cli::parse_program(words.collect()).map(Request::Mpjrun);
    }
    let (mut job, mut cargo) = (Vec::new(), Vec::new());
    if line.get(2).is_some_and(|subcommand| subcommand == "run") {
        let all: Vec<OsString> = words.collect();
        let of_job = built(JobOptions::augment_args(Parsing::new("")));
        let end = all.iter().position(|word| word == "--").unwrap_or(all.len());
        let (profile, words) = without_cargo_profile(&all[..end]);
        let Separated { known, unknown } = separate(&of_job, words).map_err(refused)?;
        if unknown.iter().any(|word| word == ":") {
            return Err(refused(SEVERAL.to_owned()));
        }
        (job, cargo) = (known, [profile, unknown].concat());
        line.extend(job.iter().chain(&all[end..]).cloned());
    } else {
        line.extend(words);
    }
    let CargoMpj::Mpj(parsed) =
        CargoMpj::try_parse_from(line).map_err(|error| with_tip(error, TIP))?;
    Ok(match parsed {
        Mpj::Run { options, args } => {
            options.check().map_err(refused)?;
            Request::Run(RunRequest { job, cargo, args })
        }
        Mpj::Bench { args } => Request::Become(BENCH, args),
        Mpj::Install { args } => Request::Become(INSTALL, args),
    })
}

/// Takes cargo's `--profile NAME` out of the words, and returns it and the others. The job's option of this name has no
/// value, or that of a file, whose name has a dot, as no profile of cargo has.
fn without_cargo_profile(words: &[OsString]) -> (Vec<OsString>, Vec<OsString>) {
    let is_name = |word: &str| {
        let is_of_name = |at: char| at.is_alphanumeric() || at == '_' || at == '-';
        !word.starts_with('-') && !word.is_empty() && word.chars().all(is_of_name)
    };
    let (mut of_cargo, mut others) = (Vec::new(), Vec::new());
    let mut rest = words;
    while let [word, behind @ ..] = rest {
        let text = |word: &OsString| word.to_str().map(str::to_owned).unwrap_or_default();
        let next = behind.first().map(text).unwrap_or_default();
        let both = word == "--profile" && is_name(&next);
        let joined = text(word).strip_prefix("--profile=").is_some_and(is_name);
        let (taken, behind) = rest.split_at(if both { 2 } else { 1 });
        let into = if both || joined { &mut of_cargo } else { &mut others };
        into.extend_from_slice(taken);
        rest = behind;
    }
    (of_cargo, others)
}

/// Does what `cargo mpj` was asked for, and returns the exit code of the job, or that of an error, which goes to
/// standard error.
pub fn carry_out(request: Request) -> ExitCode {
    let error = match request {
        Request::Mpjrun(request) => return crate::carry_out(request),
        Request::Run(request) => request.command().map_or_else(
            |error| error,
            // Returns only if that fails.
            |mut cargo| not_started("cargo run")(cargo.exec()),
        ),
        Request::Become(tool, words) => become_tool(tool, &words),
    };
    complain(format_args!("cargo mpj: {error}"));
    ExitCode::from(error.exit_code())
}

impl RunRequest {
    /// The command of cargo that builds the program and starts the job.
    fn command(self) -> Result<Command, CargoError> {
        let mut command = cargo("run");
        // First: behind a word that is not an option, cargo takes all words for arguments of the program.
        command.args(runner::settings(&self.job, &self.cargo)?).args(self.cargo);
        if !self.args.is_empty() {
            command.arg("--").args(self.args);
        }
        Ok(command)
    }
}

/// Builds `tool` with what it needs, and becomes it, so that signals reach it and its exit code is the user's. Returns
/// only if that fails.
fn become_tool(tool: Tool, words: &[OsString]) -> CargoError {
    let Tool { package, program, needs } = tool;
    let chosen = ["--release", "-p", package, "--bin", program];
    let built = runner::refuse_others(&[])
        .and_then(|_| succeeded("cargo build", cargo("build").args(chosen).args(needs)));
    match built {
        Ok(_) => not_started("cargo run")(cargo("run").args(chosen).arg("--").args(words).exec()),
        Err(error) => error,
    }
}

/// Why there is no program to run.
#[derive(Debug, thiserror::Error)]
enum CargoError {
    /// Cargo or the compiler could not be started.
    #[error("cannot start {step}: {source}")]
    Start {
        /// The command.
        step: &'static str,
        /// The error of the system.
        source: std::io::Error,
    },
    /// Cargo or the compiler failed; it has said why on standard error.
    #[error("{step} failed")]
    Failed {
        /// The command.
        step: &'static str,
        /// Its exit code.
        code: u8,
    },
    /// The compiler names no target that it builds for.
    #[error("rustc -vV names no host")]
    NoHost,
    /// The user names another runner.
    #[error(
        "{place} names a runner, but cargo mpj is the runner here; leave that out, or build \
         the program by cargo build and start it by mpjrun"
    )]
    Runner {
        /// The variable, the word or the file.
        place: String,
    },
    /// A word of the command line is not text, and cargo's configuration takes only text.
    #[error(
        "{0:?} is not text, which cargo cannot pass on; build the program and start it by mpjrun"
    )]
    NoText(OsString),
}

impl CargoError {
    /// The exit code for this: that of cargo or the compiler where it failed, else 2 for wrong usage.
    fn exit_code(&self) -> u8 {
        match self {
            Self::Failed { code, .. } => *code,
            Self::Start { .. } | Self::NoHost => 125,
            Self::Runner { .. } | Self::NoText(_) => 2,
        }
    }
}

fn cargo(step: &str) -> Command {
    let mut command = Command::new(config::inherited("CARGO").unwrap_or_else(|| "cargo".into()));
    command.arg(step);
    command
}

fn not_started(step: &'static str) -> impl Fn(std::io::Error) -> CargoError {
    move |source| CargoError::Start { step, source }
}

/// Runs `command`, whose errors go to standard error, and returns its output.
fn succeeded(step: &'static str, command: &mut Command) -> Result<Vec<u8>, CargoError> {
    command.stdin(Stdio::null()).stderr(Stdio::inherit());
    let output = command.output().map_err(not_started(step))?;
    let code = output.status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(101);
    if output.status.success() { Ok(output.stdout) } else { Err(CargoError::Failed { step, code }) }
}

#[cfg(test)]
mod tests;

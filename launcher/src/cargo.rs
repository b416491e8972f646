//! `cargo mpj run`: says which program of the workspace is meant, and becomes `cargo run` with this program as
//! its runner, which starts the job.
//!
//! ```text
//!  cargo mpj run -n 2 --release --example hello -- ARGS
//!        │    options of the job: for the runner; all others: for cargo
//!        ├── targets   cargo metadata: which program of which package
//!        ├── runner    refuses if the user's own configuration has a runner
//!        └── becomes   cargo run -p P --example hello --release --config target.T.runner=[...] -- ARGS
//!                           └── becomes   cargo-mpj as-mpjrun -n 2 PROGRAM ARGS
//! ```
//!
//! So target folders, profiles and features are cargo's business alone, and all of this is one process, which
//! signals reach and whose exit code is that of the job.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::error::ErrorKind;
use clap::{Args, Command as Parsing, CommandFactory, Parser, Subcommand};
use transport_lapi::config;

use crate::cli::{self, JobOptions, Separated, TIP, built, separate, with_tip};

pub(crate) mod listing;
mod runner;
mod targets;

use targets::{Target, choose};

/// The word by which `cargo-mpj` is told to be `mpjrun`.
const AS_MPJRUN: &str = "as-mpjrun";
/// What is said of a `:` among the options.
const SEVERAL: &str = "several programs in one job are for mpjrun: mpjrun -n N A : -n M B";

/// Which program of the workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "Which program; all other options are those of cargo run")]
pub struct Selection {
    /// Run this binary
    #[arg(long, value_name = "X", conflicts_with = "example")]
    pub bin: Option<String>,
    /// Run this example
    #[arg(long, value_name = "Y")]
    pub example: Option<String>,
    /// Look in this package only
    #[arg(long, short, value_name = "PKG")]
    pub package: Option<String>,
    /// The Cargo.toml of the package or workspace
    #[arg(long, value_name = "F")]
    pub manifest_path: Option<PathBuf>,
    /// Build for this target
    #[arg(long, value_name = "TRIPLE")]
    pub target: Option<String>,
}

/// What `cargo mpj` was asked for.
#[derive(Debug, Clone)]
pub enum Request {
    /// `cargo mpj run`.
    Run(RunRequest),
    /// `cargo mpj bench` or `tune`: to be this program of the benchmarks, with the words that follow.
    Bench(&'static str, Vec<OsString>),
    /// What cargo starts: to be `mpjrun`.
    Mpjrun(cli::Request),
}

/// What `cargo mpj run` was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunRequest {
    selection: Selection,
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
    Run {
        #[command(flatten)]
        selection: Selection,
        /// Arguments of the program, passed on as they are
        #[arg(value_name = "ARGS", last = true)]
        args: Vec<OsString>,
        #[command(flatten)]
        options: Box<JobOptions>,
    },
    /// Measures both backends, beside system MPIs if wanted; `cargo mpj bench --help` says more
    #[command(disable_help_flag = true)]
    Bench {
        /// Options and benchmarks
        #[arg(value_name = "ARGS", trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<OsString>,
    },
    /// Measures which values suit this machine and writes them down; `cargo mpj tune --help` says more
    #[command(disable_help_flag = true)]
    Tune {
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
        let of_run = built(Selection::augment_args(CargoMpj::command()));
        let end = all.iter().position(|word| word == "--").unwrap_or(all.len());
        let separated = separate(&of_job, all[..end].to_vec()).map_err(refused)?;
        let Separated { known, unknown } = separate(&of_run, separated.unknown).map_err(refused)?;
        if unknown.iter().any(|word| word == ":") {
            return Err(refused(SEVERAL.to_owned()));
        }
        (job, cargo) = (separated.known, unknown);
        line.extend(job.iter().cloned().chain(known).chain(all[end..].iter().cloned()));
    } else {
        line.extend(words);
    }
    let CargoMpj::Mpj(parsed) =
        CargoMpj::try_parse_from(line).map_err(|error| with_tip(error, TIP))?;
    Ok(match parsed {
        Mpj::Run { selection, options, args } => {
            options.check().map_err(refused)?;
            Request::Run(RunRequest { selection, job, cargo, args })
        }
        Mpj::Bench { args } => Request::Bench("mpj-bench", args),
        Mpj::Tune { args } => Request::Bench("mpj-tune", args),
    })
}

impl RunRequest {
    /// Becomes cargo, which builds the program and starts the job. Returns only if that fails.
    pub fn become_cargo(self) -> CargoError {
        self.command().map_or_else(|error| error, |mut cargo| CargoError::Start(cargo.exec()))
    }

    fn command(self) -> Result<Command, CargoError> {
        let Self { selection, job, cargo, args } = self;
        let triple = selection.target.clone().map_or_else(runner::host, Ok)?;
        runner::refuse_others(&triple)?;
        let target = find(&selection)?;
        let mut command = self::cargo("run");
        command.args(["-p", &target.package, target.kind.option(), &target.name]);
        if let Some(manifest) = &selection.manifest_path {
            command.arg("--manifest-path").arg(manifest);
        }
        if let Some(triple) = &selection.target {
            command.args(["--target", triple]);
        }
        command.args(cargo);
        for setting in runner::settings(&triple, &job)? {
            command.args(["--config", &setting]);
        }
        command.arg("--").args(args);
        Ok(command)
    }
}

/// Builds the program `name` of the benchmarks, which is `mpj-bench` or `mpj-tune`, with what it starts, and
/// becomes it, so that signals reach it and its exit code is the user's. Returns only if that fails.
pub fn become_bench(name: &str, words: &[OsString]) -> CargoError {
    let built = runner::host().and_then(|triple| runner::refuse_others(&triple)).and_then(|()| {
        let mut build = cargo("build");
        build.args(["--release", "-p", "mpj-launcher", "-p", "mpj-bench"]);
        succeeded("build", build.args(["--bin", "mpjrun", "--bin", "mpj-bench-rank"]))
    });
    let run = ["--release", "-p", "mpj-bench", "--bin", name, "--"];
    match built {
        Ok(_) => CargoError::Start(cargo("run").args(run).args(words).exec()),
        Err(error) => error,
    }
}

/// Why there is no program to run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CargoError {
    /// Cargo itself could not be started.
    #[error("cannot run cargo: {0}")]
    Start(#[source] std::io::Error),
    /// Cargo refused; it has said why on standard error.
    #[error("cargo {step} failed")]
    Failed {
        /// What it was asked for.
        step: &'static str,
        /// Its exit code.
        code: u8,
    },
    /// Cargo's answer is not as documented.
    #[error("cargo {step} answered something that is not understood")]
    Answer {
        /// What it was asked for.
        step: &'static str,
    },
    /// The package is not in the workspace.
    #[error("no package {asked} in this workspace; there are: {known}")]
    NoPackage {
        /// What was asked for.
        asked: String,
        /// What there is.
        known: String,
    },
    /// No target is as asked for.
    #[error("no {asked} here; there are: {known}")]
    NoTarget {
        /// What was asked for.
        asked: String,
        /// What there is, or `none`.
        known: String,
    },
    /// The user's configuration of cargo names another runner.
    #[error(
        "{place} names a runner for this target, but cargo mpj is the runner here; leave that out, or build \
         the program by cargo build and start it by mpjrun"
    )]
    Runner {
        /// The variable or the file.
        place: String,
    },
    /// A word of the command line is no text, and cargo's configuration takes only text.
    #[error(
        "{0:?} is not text, which cargo cannot pass on; build the program and start it by mpjrun"
    )]
    NoText(OsString),
    /// Several targets are as asked for.
    #[error("which one is meant? name it with --bin, --example or -p: {candidates}")]
    Ambiguous {
        /// Those in question.
        candidates: String,
    },
}

impl CargoError {
    /// The exit code for this: cargo's own where it failed, else 2 for wrong usage.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Failed { code, .. } => *code,
            Self::Start(_) | Self::Answer { .. } => 125,
            _ => 2,
        }
    }
}

/// The program that `selection` means, as seen from the current folder.
fn find(selection: &Selection) -> Result<Target, CargoError> {
    let mut metadata = cargo("metadata");
    metadata.args(["--no-deps", "--format-version", "1"]);
    let mut folder = Path::new(".");
    if let Some(manifest) = &selection.manifest_path {
        metadata.arg("--manifest-path").arg(manifest);
        folder = manifest.parent().filter(|parent| *parent != Path::new("")).unwrap_or(folder);
    }
    let answer = succeeded("metadata", &mut metadata)?;
    let here = folder.canonicalize().map_err(CargoError::Start)?;
    let metadata = serde_json::from_slice(&answer).ok();
    let targets = metadata.and_then(|metadata| Target::all_of(&metadata, &here));
    choose(&targets.ok_or(CargoError::Answer { step: "metadata" })?, selection)
}

fn cargo(step: &str) -> Command {
    let mut command = Command::new(config::inherited("CARGO").unwrap_or_else(|| "cargo".into()));
    command.arg(step);
    command
}

/// Runs `command`, whose errors go to standard error, and answers what it printed.
fn succeeded(step: &'static str, command: &mut Command) -> Result<Vec<u8>, CargoError> {
    command.stdin(Stdio::null()).stderr(Stdio::inherit());
    let output = command.output().map_err(CargoError::Start)?;
    let code = output.status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(101);
    if output.status.success() { Ok(output.stdout) } else { Err(CargoError::Failed { step, code }) }
}

#[cfg(test)]
mod tests;

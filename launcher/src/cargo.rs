//! `cargo mpj run`: finds the program among the workspace's targets, builds it, runs it as a job.
//!
//! Choosing is pure, over what `cargo metadata` prints; building asks `cargo build` for the path of
//! the executable, so that target folders and profiles are cargo's business alone. Tests use
//! [`build`] to get at the programs of the workspace.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use clap::error::ErrorKind;
use clap::{Args, Command as Parsing, CommandFactory, Parser, Subcommand};
use serde_json::Value;
use transport_lapi::config;

use crate::cli::{JobOptions, built, respelt};
use crate::job::JobSpec;

mod hints;
mod passed_on;

pub use passed_on::PassedOn;

/// Which program of the workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct Selection {
    /// Build with optimisations
    #[arg(long, short)]
    pub release: bool,
    /// Run this binary
    #[arg(long, value_name = "X", conflicts_with = "example")]
    pub bin: Option<String>,
    /// Run this example
    #[arg(long, value_name = "Y")]
    pub example: Option<String>,
    /// Look in this package only
    #[arg(long, short, value_name = "PKG")]
    pub package: Option<String>,
    /// How it is built.
    #[command(flatten)]
    pub passed_on: PassedOn,
}

/// What `cargo mpj` was asked for.
#[derive(Debug, Clone)]
pub enum Request {
    /// `cargo mpj run`.
    Run(RunRequest),
    /// `cargo mpj bench`: the words that follow are for the benchmark program.
    Bench(Vec<OsString>),
    /// `cargo mpj tune`: likewise for the program that tunes.
    Tune(Vec<OsString>),
}

/// What `cargo mpj run` was asked for.
#[derive(Debug, Clone)]
pub struct RunRequest {
    selection: Selection,
    options: Box<JobOptions>,
    args: Vec<OsString>,
    notes: Vec<String>,
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
    let mut notes = Vec::new();
    if line.get(2).is_some_and(|subcommand| subcommand == "run") {
        let respelt = respelt(&options_of_run(), words);
        let refused = |text| CargoMpj::command().error(ErrorKind::InvalidValue, text);
        line.extend(respelt.map_err(refused)?);
    } else {
        line.extend(words);
    }
    let CargoMpj::Mpj(parsed) = CargoMpj::try_parse_from(line).map_err(hints::with_hints)?;
    Ok(match parsed {
        Mpj::Run { selection, options, args } => {
            notes.extend(hints::note_on(&args));
            Request::Run(RunRequest { selection, options, args, notes })
        }
        Mpj::Bench { args } => Request::Bench(args),
        Mpj::Tune { args } => Request::Tune(args),
    })
}

/// The command that parses the options of `cargo mpj run`.
fn options_of_run() -> Parsing {
    let all = built(CargoMpj::command());
    let run = all.find_subcommand("mpj").and_then(|mpj| mpj.find_subcommand("run"));
    run.expect("it is a subcommand above").clone()
}

impl RunRequest {
    /// Whether to build the program and only say what would be started.
    pub fn is_dry_run(&self) -> bool {
        self.options.is_dry_run()
    }

    /// Builds the program, as seen from the current folder, and describes the job that runs it.
    ///
    /// # Errors
    /// [`CargoError`].
    pub fn build(self) -> Result<JobSpec, CargoError> {
        let program = build(&self.selection, Path::new("."))?;
        let spec = self.options.one_program(program.into_os_string(), self.args, self.notes);
        spec.map_err(CargoError::Options)
    }
}

/// Builds the program `name` of the benchmarks, which is `mpj-bench` or `mpj-tune`, and what it starts,
/// and returns its path.
///
/// # Errors
/// [`CargoError`].
pub fn build_bench(name: &str, folder: &Path) -> Result<PathBuf, CargoError> {
    let release = true;
    let own = |package: &str, name: &str| Selection {
        release,
        bin: Some(name.to_owned()),
        package: Some(package.to_owned()),
        ..Selection::default()
    };
    build(&own("mpj-launcher", "mpjrun"), folder)?;
    build(&own("mpj-bench", "mpj-bench-rank"), folder)?;
    build(&own("mpj-bench", name), folder)
}

/// Why there is no program to run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CargoError {
    /// Cargo itself could not be started.
    #[error("cannot run cargo: {0}")]
    Start(#[source] std::io::Error),
    /// The benchmark program was built and could not be started.
    #[error("cannot start the benchmark program: {0}")]
    Bench(#[source] std::io::Error),
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
    /// The options of the job contradict each other.
    #[error("{0}")]
    Options(String),
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
            Self::Start(_) | Self::Bench(_) | Self::Answer { .. } => 125,
            _ => 2,
        }
    }
}

/// Builds the program that `selection` means, as seen from `folder`, and returns its path. Cargo's
/// progress and errors go to standard error.
///
/// # Errors
/// [`CargoError`].
pub fn build(selection: &Selection, folder: &Path) -> Result<PathBuf, CargoError> {
    let step = "metadata";
    let PassedOn { to_metadata, to_build, .. } = &selection.passed_on;
    let arguments = ["--no-deps", "--format-version", "1"].map(OsString::from);
    let answer = cargo(step, folder, arguments.iter().chain(to_metadata))?;
    let metadata = serde_json::from_slice(&answer.stdout).ok();
    let here = selection.passed_on.folder(folder).canonicalize().map_err(CargoError::Start)?;
    let target = metadata
        .and_then(|metadata| Target::all_of(&metadata, &here))
        .ok_or(CargoError::Answer { step })
        .and_then(|targets| choose(&targets, selection))?;
    let step = "build";
    let format = "--message-format=json-render-diagnostics";
    let which = [format, "-p", &target.package, target.kind.option(), &target.name];
    let arguments = which.into_iter().chain(selection.release.then_some("--release"));
    let arguments: Vec<OsString> = arguments.map(OsString::from).collect();
    let answer = cargo(step, folder, arguments.iter().chain(to_build))?;
    let messages = String::from_utf8_lossy(&answer.stdout);
    let executable = messages.lines().find_map(|line| executable_in(line, &target));
    executable.ok_or(CargoError::Answer { step })
}

fn cargo<'a>(
    step: &'static str,
    folder: &Path,
    arguments: impl Iterator<Item = &'a OsString>,
) -> Result<Output, CargoError> {
    let program = config::inherited("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command
        .arg(step)
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit());
    let output = command.output().map_err(CargoError::Start)?;
    if output.status.success() {
        return Ok(output);
    }
    let code = output.status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(101);
    Err(CargoError::Failed { step, code })
}

/// The path of `target`'s executable, if this line of cargo's messages tells it.
fn executable_in(line: &str, target: &Target) -> Option<PathBuf> {
    let message: Value = serde_json::from_str(line).ok()?;
    let built = &message["target"];
    let is_target = built["name"] == *target.name && Kind::of(built) == Some(target.kind);
    is_target.then(|| message["executable"].as_str().map(PathBuf::from))?
}

/// What can be run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Bin,
    Example,
}

impl Kind {
    fn of(target: &Value) -> Option<Self> {
        target["kind"].as_array()?.iter().find_map(|kind| match kind.as_str() {
            Some("bin") => Some(Self::Bin),
            Some("example") => Some(Self::Example),
            _ => None,
        })
    }

    fn option(self) -> &'static str {
        match self {
            Self::Bin => "--bin",
            Self::Example => "--example",
        }
    }
}

/// A program of the workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Target {
    package: String,
    kind: Kind,
    name: String,
    /// Whether its package names it as the one to run.
    is_default: bool,
    /// Whether the package is the one that the current folder lies in.
    is_here: bool,
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} -p {}", self.kind.option(), self.name, self.package)
    }
}

impl Target {
    /// Every program in `metadata`, as seen from `folder`; `None` if it is not cargo's metadata.
    fn all_of(metadata: &Value, folder: &Path) -> Option<Vec<Self>> {
        let packages = metadata["packages"].as_array()?;
        let home = |package: &Value| {
            Some(Path::new(package["manifest_path"].as_str()?).parent()?.to_owned())
        };
        let around = packages.iter().filter_map(home).filter(|home| folder.starts_with(home));
        let here = around.max_by_key(|home| home.components().count());
        let mut targets = Vec::new();
        for package in packages {
            let is_here = here.is_some() && home(package) == here;
            for target in package["targets"].as_array()? {
                let name = target["name"].as_str()?.to_owned();
                let is_default = package["default_run"] == *name;
                let package = package["name"].as_str()?.to_owned();
                let found =
                    Kind::of(target).map(|kind| Self { package, kind, name, is_default, is_here });
                targets.extend(found);
            }
        }
        Some(targets)
    }
}

fn choose(targets: &[Target], selection: &Selection) -> Result<Target, CargoError> {
    let (kind, name) = match (&selection.bin, &selection.example) {
        (_, Some(name)) => (Kind::Example, Some(name)),
        (name, None) => (Kind::Bin, name.as_ref()),
    };
    let mut known: Vec<&Target> = targets.iter().collect();
    if let Some(asked) = &selection.package {
        known.retain(|target| target.package == *asked);
        if known.is_empty() {
            let known = listed(targets.iter().map(|target| target.package.clone()));
            return Err(CargoError::NoPackage { asked: asked.clone(), known });
        }
    }
    known.retain(|target| target.kind == kind);
    let mut meant = known.clone();
    meant.retain(|target| name.is_none_or(|name| target.name == *name));
    narrow(&mut meant, |target| target.is_here);
    // Across packages, one that names a default says nothing about the others.
    let in_one_package = meant.windows(2).all(|pair| pair[0].package == pair[1].package);
    if name.is_none() && in_one_package {
        narrow(&mut meant, |target| target.is_default);
    }
    match meant.as_slice() {
        [only] => Ok((*only).clone()),
        [] => {
            let asked = match name {
                Some(name) => format!("{} {name}", &kind.option()[2..]),
                None => "program to run".to_owned(),
            };
            Err(CargoError::NoTarget {
                asked,
                known: listed(known.iter().map(ToString::to_string)),
            })
        }
        several => {
            let candidates = listed(several.iter().map(ToString::to_string));
            Err(CargoError::Ambiguous { candidates })
        }
    }
}

/// Keeps those that are `closer`, if there are any.
fn narrow(targets: &mut Vec<&Target>, closer: fn(&Target) -> bool) {
    if targets.iter().any(|target| closer(target)) {
        targets.retain(|target| closer(target));
    }
}

/// The words, sorted, each once.
fn listed(words: impl Iterator<Item = String>) -> String {
    let mut words: Vec<String> = words.collect();
    words.sort_unstable();
    words.dedup();
    if words.is_empty() { "none".to_owned() } else { words.join(", ") }
}

#[cfg(test)]
mod tests;

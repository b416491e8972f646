//! Parses the command line of `mpjrun`, whose options `cargo mpj run` shares.
//!
//! ```text
//!  words ── sections      cut at `:`, or the lines of --configfile: one section for each program
//!             │
//!           spelling      rewritten for clap
//!             │
//!           clap ── options, values, hosts      checked
//!             │
//!           Request
//! ```
//!
//! `allocation` finds the hosts of a batch system, and `distribution` decides which ranks run where. `mpiexec` is what differs when `mpjrun` is called by another launcher's name, `manual` the end of `--help`, and
//! `variables` notes on misspelt variables. `info`, `dry_run`, `watch` and `answer` are the commands that run no job.

mod allocation;
pub(crate) mod answer;
mod distribution;
pub(crate) mod dry_run;
mod hosts;
pub mod info;
mod manual;
mod mpiexec;
mod options;
mod sections;
mod spelling;
mod values;
mod variables;
pub(crate) mod watch;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, CommandFactory, Parser};
use clap_complete::Shell;
use transport_lapi::config;

pub use options::JobOptions;
use options::ProgramOptions;
pub(crate) use options::default_ranks;
use sections::Section;
use spelling::respelt;
pub(crate) use spelling::{Separated, separate};
pub use watch::Watched;

use crate::cli::info::Asked;
use crate::job::JobSpec;

/// What `mpjrun` is asked to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// Run a job.
    Run(JobSpec),
    /// Print the commands of a job without starting it.
    DryRun(JobSpec),
    /// Print the settings in force.
    Info(Asked),
    /// Show a job that is already running.
    Watch(Watched),
    /// Print this script, which completes command lines in a shell.
    Completions(String),
}

/// Runs PROGRAM as the N ranks of one job, on this host or on several
#[derive(Debug, Parser)]
#[command(name = "mpjrun", version, after_long_help = manual::text(), max_term_width = 100)]
#[command(args_override_self = true)]
#[command(
    override_usage = "mpjrun [OPTIONS] PROGRAM [ARGS]... [: [OPTIONS] PROGRAM [ARGS]...]...\n       \
                            mpjrun [OPTIONS] --configfile F"
)]
struct Mpjrun {
    /// Read the programs of the job from a file: options, PROGRAM and ARGS of one on each line
    #[arg(long, value_name = "F")]
    configfile: Option<PathBuf>,
    /// Run nothing; print every setting and its origin, the adapter, and how messages of each size travel
    #[arg(long, conflicts_with_all = ["command", "configfile"])]
    info: bool,
    /// Print a script that completes the options of mpjrun in this shell
    #[arg(long, value_name = "SHELL", conflicts_with = "command")]
    completions: Option<Shell>,
    /// The program, looked up in PATH if it has no slash, and its arguments, passed on as they are
    #[arg(value_names = ["PROGRAM", "ARGS"], num_args = 1.., trailing_var_arg = true)]
    #[arg(required_unless_present_any = ["info", "completions", "configfile"])]
    command: Vec<OsString>,
    // Last, since clap puts options that follow under the same headings.
    #[command(flatten)]
    options: JobOptions,
}

/// A program behind the first one.
#[derive(Debug, Parser)]
#[command(name = "mpjrun", override_usage = "mpjrun ... : [OPTIONS] PROGRAM [ARGS]...")]
#[command(args_override_self = true)]
struct Further {
    #[command(flatten)]
    options: ProgramOptions,
    /// The program and its arguments
    #[arg(value_names = ["PROGRAM", "ARGS"], num_args = 1.., required = true, trailing_var_arg = true)]
    command: Vec<OsString>,
}

/// Parses the command line of `mpjrun`, which begins with the name that it was called by: as `mpiexec` or `mpirun` it
/// notes nothing, and obeys `MPIEXEC_TIMEOUT`.
///
/// # Errors
/// clap's error, which also carries the texts of `--help` and `--version`.
pub fn parse_mpjrun(
    command_line: impl IntoIterator<Item = OsString>,
) -> Result<Request, clap::Error> {
    let mut words = command_line.into_iter();
    let name = words.next().unwrap_or_default();
    let request = parse_words(words)?;
    if !mpiexec::is_name(&name) {
        return Ok(request);
    }
    mpiexec::adapted(request, config::inherited(mpiexec::TIMEOUT)).map_err(refused)
}

/// Parses the words behind the name.
fn parse_words(words: impl Iterator<Item = OsString>) -> Result<Request, clap::Error> {
    let sections = sections::split(words);
    let parsed = first_section(sections[0].clone())?;
    if let (Some(watched), 1) = (parsed.options.watched(&parsed.command), sections.len()) {
        return Ok(Request::Watch(watched));
    }
    match parsed {
        Mpjrun { command, configfile: None, .. } if command.is_empty() && sections.len() > 1 => {
            Err(refused("there is no program before the first `:`".to_owned()))
        }
        Mpjrun { completions: Some(shell), .. } => Ok(Request::Completions(script(shell))),
        Mpjrun { info: true, options, .. } => Ok(Request::Info(options.asked().map_err(refused)?)),
        Mpjrun { configfile: Some(file), options, command, .. } => {
            if !command.is_empty() || sections.len() > 1 {
                return Err(refused("--configfile names the programs; give none beside it".into()));
            }
            if options.program != ProgramOptions::default() {
                let text = "options of a program belong into the lines of --configfile";
                return Err(refused(text.to_owned()));
            }
            configured(&file, &sections[0])
        }
        parsed => {
            let place = "before the first program";
            job(parsed, sections[1..].iter().map(|section| further_section(section, place)))
        }
    }
}

/// Parses options of `mpjrun`, one program and its arguments. A `:` has no special meaning.
///
/// # Errors
/// clap's error.
pub(crate) fn parse_program(words: Vec<OsString>) -> Result<Request, clap::Error> {
    job(first_section(words)?, std::iter::empty())
}

/// The job of the programs in `file`, under the `options` of the command line.
fn configured(file: &Path, options: &[OsString]) -> Result<Request, clap::Error> {
    let text = std::fs::read_to_string(file).map_err(|error| error.to_string());
    let lines = text.and_then(|text| sections::read(&text));
    let mut lines =
        lines.map_err(|reason| refused(format!("--configfile {}: {reason}", file.display())))?;
    let located = |number| move |error| located(error, file, number);
    let (number, section) = lines.remove(0);
    let section = options.iter().cloned().chain(section).collect();
    let parsed = first_section(section).map_err(located(number))?;
    let wrong = |text: &str| Err(located(number)(refused(text.to_owned())));
    if parsed.configfile.as_deref() != Some(file) {
        return wrong("a file of --configfile cannot name another one");
    }
    if parsed.command.is_empty() {
        return wrong("it names no program");
    }
    let further = lines.iter().map(|(number, section)| {
        further_section(section, "on the first line").map_err(located(*number))
    });
    job(parsed, further)
}

/// Adds the line of the file to an error.
fn located(error: clap::Error, file: &Path, line: usize) -> clap::Error {
    if !error.use_stderr() {
        return error;
    }
    let text = error.to_string();
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    clap::Error::raw(error.kind(), format!("--configfile {}: line {line}: {text}", file.display()))
}

/// The job of the first program and the further ones.
fn job(
    first: Mpjrun,
    further: impl Iterator<Item = Result<Further, clap::Error>>,
) -> Result<Request, clap::Error> {
    let JobOptions { program, job } = first.options;
    let mut programs = vec![(program, first.command)];
    for section in further {
        let Further { options, command } = section?;
        programs.push((options, command));
    }
    let is_dry_run = job.dry_run;
    let spec = job.programs(programs).map_err(refused)?;
    Ok(if is_dry_run { Request::DryRun(spec) } else { Request::Run(spec) })
}

fn first_section(section: Section) -> Result<Mpjrun, clap::Error> {
    let words = respelt(&built(Mpjrun::command()), section).map_err(refused)?;
    Mpjrun::try_parse_from(named(words)).map_err(|error| with_tip(error, TIP))
}

/// Parses a program behind the first one. `place` is where the options of the whole job belong.
fn further_section(section: &Section, place: &str) -> Result<Further, clap::Error> {
    let all = built(Mpjrun::command());
    let words = respelt(&all, section.iter().cloned()).map_err(refused)?;
    let tip = "of the options, only those of a program stand here; those of the whole job stand ";
    Further::try_parse_from(named(words)).map_err(|error| with_tip(error, &[tip, place].concat()))
}

/// The tip about an unknown option.
pub(crate) const TIP: &str =
    "--help lists all options, with those of other launchers that are taken";

/// Replaces clap's tip about an unknown option, which would be to pass it as the name of a program.
pub(crate) fn with_tip(mut error: clap::Error, tip: &str) -> clap::Error {
    if error.kind() == ErrorKind::UnknownArgument {
        let tip = ContextValue::StyledStrs(vec![StyledStr::from(tip.to_owned())]);
        error.insert(ContextKind::Suggested, tip);
    }
    error
}

/// Puts the name that clap expects before the words.
fn named(words: Vec<OsString>) -> impl Iterator<Item = OsString> {
    std::iter::once("mpjrun".into()).chain(words)
}

/// The command with the options that clap adds.
pub(crate) fn built(mut command: Command) -> Command {
    command.build();
    command
}

fn refused(text: String) -> clap::Error {
    Mpjrun::command().error(ErrorKind::InvalidValue, text)
}

fn script(shell: Shell) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Mpjrun::command(), "mpjrun", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

#[cfg(test)]
mod tests;

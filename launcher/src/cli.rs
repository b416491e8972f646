//! The command line: what `mpjrun` and `cargo mpj run` share, and `mpjrun` itself. Pure.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{OsStringValueParser, PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser};
use transport_lapi::adapters::MAX_TASKS;
use transport_lapi::config::{BackendChoice, Keyword, SETTINGS};

use crate::info::Asked;
use crate::job::{Export, JobSpec, Vigilance};

/// Options of a job, the same for `mpjrun` and `cargo mpj run`.
#[derive(Debug, Clone, Args)]
pub struct JobOptions {
    /// Number of ranks; as many as there are cores for this process if not given. Also -np
    #[arg(short = 'n', long = "np", value_name = "N", value_parser = rank_count)]
    ranks: Option<usize>,
    /// Protocol that carries the messages
    #[arg(long, value_name = "B", value_parser = backend_words())]
    backend: Option<String>,
    /// Begin every line of output with its rank: `[3] `
    #[arg(short = 'l')]
    label: bool,
    /// End the job after S seconds, with exit code 124
    #[arg(long, value_name = "S", value_parser = seconds)]
    timeout: Option<Duration>,
    /// End the job, with exit code 124, when no rank has made progress for S seconds
    #[arg(long, value_name = "S", value_parser = seconds)]
    stall: Option<Duration>,
    /// What to do with a job in which all ranks wait for each other: end it with exit code 125, or nothing
    #[arg(long, value_name = "WHAT", default_value = "end", value_parser = ["end", "ignore"])]
    deadlock: String,
    /// Seconds between two looks for a deadlock
    #[arg(long, value_name = "S", value_parser = seconds, hide = true)]
    look_every: Option<Duration>,
    /// Set a variable in the ranks' environment; without a value, insist that it is set here
    #[arg(short = 'x', value_name = "NAME[=V]", value_parser = export_parser())]
    export: Vec<Export>,
    /// Folder that the ranks start in; PROGRAM is still looked up from the current one
    #[arg(long, value_name = "D")]
    wdir: Option<PathBuf>,
    #[arg(long, hide = true)]
    oversubscribe: bool,
    #[arg(long, hide = true)]
    allow_run_as_root: bool,
}

impl JobOptions {
    /// The job that runs `program` with `args` under these options.
    pub fn job(self, program: OsString, args: Vec<OsString>) -> JobSpec {
        let needless = [
            (self.oversubscribe, "--oversubscribe"),
            (self.allow_run_as_root, "--allow-run-as-root"),
        ];
        JobSpec {
            needless: needless.iter().filter(|(given, _)| *given).map(|(_, name)| *name).collect(),
            ranks: self.ranks.unwrap_or_else(default_ranks),
            backend: self.backend.as_deref().and_then(BackendChoice::from_word),
            label: self.label,
            timeout: self.timeout,
            vigilance: Vigilance {
                ends_deadlocks: self.deadlock == "end",
                stall: self.stall,
                interval: self.look_every.unwrap_or(Vigilance::default().interval),
            },
            exports: self.export,
            wdir: self.wdir,
            program,
            args,
        }
    }
}

/// Runs PROGRAM as the N ranks of one job on this host
#[derive(Debug, Parser)]
#[command(name = "mpjrun", version, after_long_help = manual(), max_term_width = 100)]
struct Mpjrun {
    #[command(flatten)]
    options: JobOptions,
    /// Run nothing; print every setting and where it is from, the adapter, and how messages travel
    #[arg(long, conflicts_with = "command")]
    info: bool,
    /// The program, looked up in PATH if it has no slash, and its arguments, passed on as they are
    #[arg(value_names = ["PROGRAM", "ARGS"], num_args = 1.., required_unless_present = "info", trailing_var_arg = true)]
    command: Vec<OsString>,
}

/// What `mpjrun` was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// To run a job.
    Run(JobSpec),
    /// To say what would be in force.
    Info(Asked),
}

/// Parses the command line of `mpjrun`, program name included.
///
/// # Errors
/// clap's error, which also carries the texts of `--help` and `--version`.
pub fn parse_mpjrun(
    command_line: impl IntoIterator<Item = OsString>,
) -> Result<Request, clap::Error> {
    let Mpjrun { options, info, mut command } = Mpjrun::try_parse_from(accept_np(command_line))?;
    if info {
        let JobOptions { ranks, backend, export: exports, .. } = options;
        let backend = backend.as_deref().and_then(BackendChoice::from_word);
        return Ok(Request::Info(Asked { ranks, backend, exports }));
    }
    let args = command.split_off(1);
    let program = command.pop().expect("clap requires at least one word");
    Ok(Request::Run(options.job(program, args)))
}

/// Rewrites `-np 2` and `-np2`, which other launchers take, to `-n`. Only among the launcher's own options: what
/// follows PROGRAM belongs to the program.
pub(crate) fn accept_np(command_line: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    const TAKE_A_VALUE: [&str; 10] = [
        "-n",
        "-np",
        "--np",
        "--backend",
        "--timeout",
        "--stall",
        "--deadlock",
        "--look-every",
        "-x",
        "--wdir",
    ];
    let mut own_options = true;
    let mut is_value = true;
    let mut rewritten = Vec::new();
    for word in command_line {
        if own_options && !is_value {
            own_options = word.as_bytes().starts_with(b"-") && word != "--";
            is_value = own_options && TAKE_A_VALUE.iter().any(|option| word == *option);
            rewritten.push(if own_options { without_p(word) } else { word });
        } else {
            is_value = false;
            rewritten.push(word);
        }
    }
    rewritten
}

/// `-n` for `-np`, and `-n2` for `-np2`; any other word as it is.
fn without_p(word: OsString) -> OsString {
    match word.to_str().and_then(|text| text.strip_prefix("-np")) {
        Some(number) if number.bytes().all(|byte| byte.is_ascii_digit()) => {
            format!("-n{number}").into()
        }
        _ => word,
    }
}

/// As many as there are processors for this process.
pub(crate) fn default_ranks() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| cores.get().min(MAX_TASKS))
}

fn rank_count(text: &str) -> Result<usize, String> {
    let count = text.parse().ok().filter(|count| (1..=MAX_TASKS).contains(count));
    count.ok_or_else(|| format!("a job has 1 to {MAX_TASKS} ranks"))
}

fn seconds(text: &str) -> Result<Duration, String> {
    let duration = text.parse().ok().and_then(|text| Duration::try_from_secs_f64(text).ok());
    let legal = duration.filter(|duration| !duration.is_zero() && duration.as_secs() < 1 << 32);
    legal.ok_or_else(|| "a number of seconds above 0, fractions allowed".to_owned())
}

fn export(text: OsString) -> Result<Export, String> {
    let (name, value) = match text.as_bytes().iter().position(|byte| *byte == b'=') {
        Some(at) => {
            let mut name = text.into_vec();
            let value = name.split_off(at)[1..].to_vec();
            (OsString::from_vec(name), Some(OsString::from_vec(value)))
        }
        None => (text, None),
    };
    if name.is_empty() {
        return Err("NAME or NAME=VALUE".to_owned());
    }
    Ok(Export { name, value })
}

fn backend_words() -> PossibleValuesParser {
    PossibleValuesParser::new(BackendChoice::WORDS.iter().map(|(word, _)| *word))
}

fn export_parser() -> impl TypedValueParser<Value = Export> {
    OsStringValueParser::new().try_map(export)
}

/// The end of `--help`: exit codes, and every variable that ranks read.
fn manual() -> String {
    let mut text = String::from(
        "Exit code: that of the first rank that failed; 128 + S if a signal S ended it; 1 if it ended \
         without finishing; 124 after --timeout; 125 if the launcher itself failed; 126 if PROGRAM \
         cannot be executed; 127 if it is not there; 2 for a wrong command line.\n\n\
         Variables that ranks read:\n",
    );
    for row in SETTINGS {
        let (name, default) = (row.name, row.default);
        text +=
            &format!("  {name}={default}\n      {}.\n      Legal: {}.\n", row.meaning, row.legal);
    }
    text
}

#[cfg(test)]
mod tests;

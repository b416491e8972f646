//! The options of a job, which `mpjrun` and `cargo mpj run` share, and what they come to. A group of
//! options is a struct of its own; those of the job as a whole are flattened into [`WholeJob`].

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use transport_lapi::adapters::MAX_TASKS;
use transport_lapi::config::{self, BackendChoice, Keyword};

use super::hosts;
use super::io::IoOptions;
use super::values::{backend_words, context_count, export_parser, rank_count, seconds, total};
use super::variables;
use super::vigilance::VigilanceOptions;
use crate::cli::info::Asked;
use crate::job::{App, Export, JobSpec};

/// Options of a job with its first program.
#[derive(Debug, Clone, Args)]
pub struct JobOptions {
    #[command(flatten)]
    pub(super) program: ProgramOptions,
    #[command(flatten)]
    pub(super) job: WholeJob,
}

/// Options of one program of a job.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "Options of a program")]
pub(super) struct ProgramOptions {
    /// Number of ranks; as many as there are cores for this process if not given. Also -np
    #[arg(short = 'n', long = "np", value_name = "N", value_parser = rank_count, allow_negative_numbers = true)]
    ranks: Option<usize>,
    /// Number of ranks on each host, of which there is one. Also -N, -ppn, -perhost
    #[arg(long, value_name = "N", value_parser = rank_count, allow_negative_numbers = true)]
    #[arg(aliases = ["ppn", "perhost", "npernode"])]
    per_host: Option<usize>,
    /// Set a variable in the ranks' environment; without a value, insist that it is set here
    #[arg(short = 'x', long = "env", value_name = "NAME[=V]", value_parser = export_parser())]
    export: Vec<Export>,
    /// Folder that the ranks start in; PROGRAM is still looked up from the current one
    #[arg(long, value_name = "D")]
    wdir: Option<PathBuf>,
    /// Folders, with colons between them, where PROGRAM is looked up before PATH
    #[arg(long, value_name = "D")]
    path: Option<OsString>,
    /// Accepted if every host is this one
    #[arg(long, value_name = "H", value_parser = hosts::list, alias = "hosts")]
    host: Vec<String>,
    /// Accepted if every host in the file is this one
    #[arg(long, value_name = "F", value_parser = hosts::file, alias = "machinefile")]
    hostfile: Vec<String>,
}

/// Options of other launchers that have nothing to change here.
#[derive(Debug, Clone, Args)]
struct Needless {
    #[arg(long, hide = true, aliases = ["allow-run-as-root", "genvall", "envall"])]
    oversubscribe: bool,
    #[arg(long, hide = true, num_args = 2)]
    mca: Vec<String>,
}

/// What is said of those.
const NEEDLESS: &str =
    "--oversubscribe, --allow-run-as-root, --genvall and --mca change nothing here";

/// Options of the job as a whole.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Options of the job")]
pub(super) struct WholeJob {
    /// Contexts of each rank, which its threads use without sharing a lock; 1 if not given
    #[arg(long, value_name = "N", value_parser = context_count, allow_negative_numbers = true)]
    contexts: Option<usize>,
    /// Protocol that carries the messages
    #[arg(long, value_name = "B", value_parser = backend_words())]
    backend: Option<String>,
    /// Set a variable for every program of the job, NAME=V or NAME V; -x counts for more
    #[arg(long, value_name = "NAME=V", value_parser = export_parser())]
    genv: Vec<Export>,
    /// Begin every line of output with its rank: `[3] `
    #[arg(short = 'l', long, aliases = ["prepend-rank", "tag-output"])]
    label: bool,
    /// End the job after S seconds, with exit code 124
    #[arg(long, value_name = "S", value_parser = seconds, allow_negative_numbers = true)]
    timeout: Option<Duration>,
    #[command(flatten)]
    io: IoOptions,
    #[command(flatten)]
    vigilance: VigilanceOptions,
    /// Say at the end how many messages each protocol carried
    #[arg(long)]
    stats: bool,
    #[command(flatten)]
    needless: Needless,
    /// Check everything and print what each rank would be, but start nothing
    #[arg(long)]
    pub(super) dry_run: bool,
}

impl JobOptions {
    /// Whether these options go together.
    ///
    /// # Errors
    /// Names those that do not.
    pub(crate) fn check(&self) -> Result<(), String> {
        self.program.ranks().map(drop)
    }

    /// What `--info` tells about.
    pub(super) fn asked(self) -> Result<Asked, String> {
        let exports = self.job.genv.into_iter().chain(self.program.export.iter().cloned());
        let backend = self.job.backend.as_deref().and_then(BackendChoice::from_word);
        let (ranks, contexts) = (self.program.ranks()?, self.job.contexts);
        Ok(Asked { ranks, contexts, backend, exports: exports.collect() })
    }
}

impl ProgramOptions {
    /// How many ranks were asked for, by their number or by that on each host.
    fn ranks(&self) -> Result<Option<usize>, String> {
        match (self.ranks, self.per_host) {
            (Some(all), Some(each)) if all > each => Err(format!(
                "-n {all} with {each} ranks on each host needs more hosts than this one, and ranks run on \
                 this host only"
            )),
            (all, each) => Ok(all.or(each)),
        }
    }

    fn app(self, ranks: usize, program: OsString, args: Vec<OsString>) -> App {
        let Self { export: exports, wdir, path, .. } = self;
        App { ranks, program, args, exports, wdir, path }
    }
}

impl WholeJob {
    /// The job of these programs, each with its options and its words.
    ///
    /// # Errors
    /// That one of several has no `-n`, or that they are too many ranks together.
    pub(super) fn programs(
        self,
        programs: Vec<(ProgramOptions, Vec<OsString>)>,
    ) -> Result<JobSpec, String> {
        let is_alone = programs.len() == 1;
        let mut apps = Vec::new();
        for (options, mut command) in programs {
            let args = command.split_off(1);
            let program = command.pop().expect("clap requires at least one word");
            let ranks = options.ranks()?.or_else(|| is_alone.then(default_ranks));
            let ranks = ranks.ok_or_else(|| {
                let name = program.to_string_lossy();
                format!("of several programs each needs its number of ranks: -n N {name}")
            })?;
            apps.push(options.app(ranks, program, args));
        }
        total(apps.iter().map(|app| app.ranks))?;
        Ok(self.spec(apps))
    }

    fn spec(self, apps: Vec<App>) -> JobSpec {
        let is_needless = self.needless.oversubscribe || !self.needless.mca.is_empty();
        let mut notes: Vec<String> = is_needless.then(|| NEEDLESS.to_owned()).into_iter().collect();
        let spec = JobSpec {
            apps,
            exports: self.genv,
            contexts: self.contexts.unwrap_or(1),
            backend: self.backend.as_deref().and_then(BackendChoice::from_word),
            output: self.io.output(self.label),
            input: self.io.input(),
            binding: self.io.binding(),
            on_failure: self.io.on_failure,
            timeout: self.timeout,
            vigilance: self.vigilance.vigilance(),
            stats: self.stats,
            notes: Vec::new(),
        };
        let exported = spec.all_exports().map(|export| export.name.clone());
        let names = config::inherited_names().chain(exported);
        notes.extend(variables::notes(names.map(|name| name.to_string_lossy().into_owned())));
        JobSpec { notes, ..spec }
    }
}

/// As many as there are processors for this process.
pub(crate) fn default_ranks() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| cores.get().min(MAX_TASKS))
}

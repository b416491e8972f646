//! The options of a job, which `mpjrun` and `cargo mpj run` share: those of a program and those of the whole job.

use std::ffi::OsString;
use std::io::stderr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap::builder::BoolishValueParser;
use transport_lapi::adapters::MAX_TASKS_PER_HOST;
use transport_lapi::config::{self, BackendChoice};

use super::allocation;
use super::distribution::{Means, Wish, distribute};
use super::hosts::{self, HostList};
use super::values::{
    Words, backend_parser, command_words, context_count, count_per_host, export_parser, fanout,
    input, output_parser, profile_parser, rank_count, seconds, trace_memory, universe,
};
use super::variables;
use super::watch::Watched;
use crate::cli::info::Asked;
use crate::io::block::rhythm;
use crate::job::{
    App, BindTo, Binding, Deal, Export, Hosts, InputChoice, JobSpec, MapBy, OnFailure,
    OutputChoice, ProfileChoice, TraceChoice, Vigilance,
};

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
    /// Number of ranks on each host. Also -N, -ppn, -perhost
    #[arg(long, value_name = "N", value_parser = count_per_host, allow_negative_numbers = true)]
    #[arg(aliases = ["ppn", "perhost", "npernode"])]
    per_host: Option<usize>,
    /// Set a variable in the ranks' environment; without a value, require that it is set here
    #[arg(short = 'x', alias = "env", value_name = "NAME[=V]", value_parser = export_parser())]
    export: Vec<Export>,
    /// Folder that the ranks start in; PROGRAM is still looked up from the current one
    #[arg(long, value_name = "D", alias = "wd")]
    wdir: Option<PathBuf>,
    /// Folders, with colons between them, where PROGRAM is looked up before PATH
    #[arg(long, value_name = "D")]
    path: Option<OsString>,
    /// Hosts that the ranks run on, separated by commas, each with the number of its ranks if that is not to be
    /// divided evenly: a:4,b:4. Without this option, those that Slurm, PBS or LSF has allocated, or this host
    #[arg(long, value_name = "LIST", value_parser = hosts::list, alias = "host")]
    hosts: Vec<HostList>,
    /// A file with one host per line: `name`, `name:slots` or `name slots=N`
    #[arg(long, value_name = "F", value_parser = hosts::file, alias = "machinefile")]
    hostfile: Vec<HostList>,
}

/// The note about options of other launchers that have no effect.
const NEEDLESS: &str =
    "--oversubscribe, --allow-run-as-root, --genvall, --genvlist and --mca change nothing here";

/// The most memory that each rank records in, without `--trace-memory`.
const TRACE_MEMORY: u64 = 64 << 20;

/// Options of the job as a whole.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Options of the job")]
pub(super) struct WholeJob {
    /// Number of ranks that the job can have in all, with those that ranks spawn while it runs and those that have ended;
    /// 512 more than it starts with if not given
    #[arg(long, value_name = "N", value_parser = universe, allow_negative_numbers = true, alias = "usize")]
    universe: Option<usize>,
    /// Contexts of each rank, which its threads use without sharing a lock; 1 if not given
    #[arg(long, value_name = "N", value_parser = context_count, allow_negative_numbers = true)]
    contexts: Option<usize>,
    /// Protocol that carries the messages
    #[arg(long, value_name = "B", value_parser = backend_parser())]
    backend: Option<BackendChoice>,
    /// Set a variable for every program of the job, NAME=V or NAME V; -x overrides it
    #[arg(long, value_name = "NAME=V", value_parser = export_parser())]
    genv: Vec<Export>,
    /// Begin every line of output with its rank: `[3] `
    #[arg(short = 'l', long, aliases = ["prepend-rank", "tag-output"])]
    label: bool,
    /// End the job after S seconds, with exit code 124
    #[arg(long, value_name = "S", value_parser = seconds, allow_negative_numbers = true)]
    timeout: Option<Duration>,
    /// Form and place of the ranks' output, a list of: `tag` begins every line with its rank, as -l does;
    /// `timestamp` with the time (UTC); `dir=D` also writes D/rank.N.stdout and D/rank.N.stderr, with `nocopy`
    /// only these
    #[arg(long, value_name = "LIST", value_parser = output_parser())]
    output: Vec<OutputChoice>,
    /// The same as dir=D, as Open MPI calls it
    #[arg(long, value_name = "D", hide = true)]
    output_filename: Option<PathBuf>,
    #[arg(long, hide = true)]
    timestamp_output: bool,
    /// Which rank gets the standard input: R, or `none`
    #[arg(long, value_name = "R", default_value = "0", value_parser = input, allow_negative_numbers = true)]
    stdin: InputChoice,
    /// What each rank is bound to; `core` or `hwthread` if only --map-by is given. Without both, ranks divide the
    /// processors evenly; a single rank, and more ranks than processors, are not bound
    #[arg(long, value_enum, value_name = "PLACE")]
    bind_to: Option<BindTo>,
    /// The order in which ranks are bound: to one core after the other, to the sockets in turn, or to one
    /// hardware thread after the other; `node` deals them out to the hosts in turn
    #[arg(long, value_enum, value_name = "ORDER")]
    map_by: Option<MapBy>,
    /// Print where each rank runs
    #[arg(long, alias = "display-map")]
    report_bindings: bool,
    /// What happens when a rank fails
    #[arg(long, value_enum, value_name = "WHAT", default_value = "kill")]
    on_failure: OnFailure,
    /// End the job, with exit code 124, when no rank has made progress for S seconds
    #[arg(long, value_name = "S", value_parser = seconds, allow_negative_numbers = true)]
    stall: Option<Duration>,
    /// What happens to a job whose ranks all wait for each other: it ends, with exit code 125, or goes on
    #[arg(long, value_name = "WHAT", default_value = "end", value_parser = ["end", "ignore"])]
    deadlock: String,
    /// Seconds between two looks at the ranks
    #[arg(long, value_name = "S", value_parser = seconds, hide = true)]
    look_every: Option<Duration>,
    /// Seconds without any progress before that is noted
    #[arg(long, value_name = "S", value_parser = seconds, hide = true)]
    note_after: Option<Duration>,
    /// Start the part of mpjrun that runs on each other host by CMD, called as CMD HOST PROGRAM ARGS, instead of ssh, or
    /// of srun in an allocation of Slurm's
    #[arg(long, value_name = "CMD", value_parser = command_words)]
    agent_launcher: Option<Words>,
    /// The most such parts that mpjrun, and each of them, starts. With more hosts they start each other, as a tree
    #[arg(long, value_name = "N", default_value = "16", value_parser = fanout, allow_negative_numbers = true)]
    agent_fanout: usize,
    /// After how many seconds a host that says nothing counts as lost
    #[arg(long, value_name = "S", default_value = "20", value_parser = seconds, allow_negative_numbers = true)]
    host_timeout: Duration,
    /// Send the programs to the hosts, where they run from memory; not the libraries that they load
    #[arg(long)]
    copy: bool,
    /// Find mistakes between ranks, such as calls and messages that do not fit together (MPJ_CHECK=1); with =no, do not,
    /// not even in debug builds (MPJ_CHECK=0)
    #[arg(
        long,
        value_name = "WHETHER",
        value_parser = BoolishValueParser::new(),
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "yes"
    )]
    check: Option<bool>,
    /// Print at the end how many messages each protocol carried
    #[arg(long)]
    stats: bool,
    /// Record the calls of all ranks with their times and messages, and write them to FILE for the viewer Perfetto
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// The most memory that each rank records in, with suffix K, M or G; 64M if not given
    #[arg(long, value_name = "BYTES", value_parser = trace_memory)]
    trace_memory: Option<u64>,
    /// With --trace, keep the newest calls if there are more than the memory has room for, and not the first ones
    #[arg(long)]
    trace_newest: bool,
    /// With --trace, also record the rounds of collective calls and the phases of a rendezvous, of programs in Rust
    #[arg(long)]
    trace_details: bool,
    /// Record the calls likewise, and print at the end where the time went, who waited for whom, and whose computation was
    /// the cause; with =FILE also write that as a page of HTML
    #[arg(
        long,
        value_name = "FILE",
        value_parser = profile_parser(),
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = ""
    )]
    profile: Option<ProfileChoice>,
    /// Show now and then what each rank does, what it sends, and its memory; with the number of a process of mpjrun in
    /// place of PROGRAM, of the job that it runs
    #[arg(long)]
    watch: bool,
    /// Seconds between two such looks
    #[arg(long, value_name = "S", value_parser = seconds, hide = true)]
    watch_every: Option<Duration>,
    #[arg(long, hide = true, aliases = ["allow-run-as-root", "genvall", "envall"])]
    oversubscribe: bool,
    #[arg(long, hide = true, num_args = 2)]
    mca: Vec<String>,
    #[arg(long, hide = true, alias = "envlist")]
    genvlist: Option<String>,
    /// Check everything and print the command of each rank, but start nothing
    #[arg(long)]
    pub(super) dry_run: bool,
}

impl JobOptions {
    /// Checks that these options go together.
    ///
    /// # Errors
    /// Names those that do not.
    pub(crate) fn check(&self) -> Result<(), String> {
        self.job.distribute(std::slice::from_ref(&self.program)).map(drop)
    }

    /// The job of another process that this command line asks to watch, if it does.
    pub(super) fn watched(&self, command: &[OsString]) -> Option<Watched> {
        let [word] = command else { return None };
        let launcher = word.to_str()?.parse().ok().filter(|_| self.job.watch)?;
        Some(Watched { launcher, every: self.job.watch_every })
    }

    /// The part of the options that `--info` shows.
    pub(super) fn asked(self) -> Result<Asked, String> {
        let (ranks, hosts) = self.job.distribute(std::slice::from_ref(&self.program))?;
        let exports = self.job.genv.into_iter().chain(self.program.export.iter().cloned());
        let WholeJob { backend, contexts, universe, bind_to, map_by, report_bindings, .. } =
            self.job;
        let binding = Binding::new(bind_to, map_by, report_bindings);
        Ok(Asked {
            ranks: ranks[0],
            universe,
            contexts,
            backend,
            exports: exports.collect(),
            binding,
            hosts: hosts.map(Box::new),
        })
    }
}

impl ProgramOptions {
    fn wish(&self) -> Wish {
        let lists = self.hosts.iter().chain(&self.hostfile);
        let hosts = lists.flat_map(|list| list.0.iter().cloned()).collect();
        Wish { ranks: self.ranks, per_host: self.per_host, hosts }
    }

    fn app(self, ranks: usize, program: OsString, args: Vec<OsString>) -> App {
        let Self { export: exports, wdir, path, .. } = self;
        App { ranks, program, args, exports, wdir, path, copy: None }
    }
}

impl WholeJob {
    /// The job of these programs, each with its options and its words.
    ///
    /// # Errors
    /// If one of several has no `-n`, or if they have too many ranks together or on one host.
    pub(super) fn programs(
        self,
        programs: Vec<(ProgramOptions, Vec<OsString>)>,
    ) -> Result<JobSpec, String> {
        let is_alone = programs.len() == 1;
        let options: Vec<_> = programs.iter().map(|(options, _)| options.clone()).collect();
        let (counts, hosts) = self.distribute(&options)?;
        let mut apps = Vec::new();
        for ((options, mut command), count) in programs.into_iter().zip(counts) {
            let args = command.split_off(1);
            let program = command.pop().expect("clap requires at least one word");
            let ranks = count.or_else(|| is_alone.then(default_ranks));
            let ranks = ranks.ok_or_else(|| {
                let name = program.to_string_lossy();
                format!("of several programs each needs its number of ranks: -n N {name}")
            })?;
            apps.push(options.app(ranks, program, args));
        }
        let ranks = apps.iter().map(|app| app.ranks).sum();
        match self.universe {
            Some(_) if hosts.is_some() => {
                return Err(
                    "--universe is for jobs of one host: ranks cannot spawn others between hosts"
                        .into(),
                );
            }
            _ if self.trace_memory.is_some() && !self.is_recorded() => {
                return Err("--trace-memory goes with --trace or --profile".into());
            }
            _ if self.trace_newest && (self.trace.is_none() || self.profile.is_some()) => {
                return Err("--trace-newest goes with --trace, and not with --profile, which is about the whole job".into());
            }
            _ if self.trace_details && self.trace.is_none() => {
                return Err("--trace-details goes with --trace".into());
            }
            _ if self.trace.is_some() && self.trace == self.page() => {
                return Err("--trace and --profile name the same file".into());
            }
            Some(universe) if universe < ranks => {
                return Err(format!("--universe {universe} has no room for {ranks} ranks"));
            }
            _ => {}
        }
        Ok(JobSpec { hosts: hosts.map(Box::new), ..self.spec(apps) })
    }

    /// The number of ranks of each program, if its options say so, and the hosts, unless there is only this one.
    fn distribute(
        &self,
        programs: &[ProgramOptions],
    ) -> Result<(Vec<Option<usize>>, Option<Hosts>), String> {
        let wishes: Vec<Wish> = programs.iter().map(ProgramOptions::wish).collect();
        let lookup = |name: &str| Some(config::inherited(name)?.to_string_lossy().into_owned());
        let read = |path: &str| std::fs::read_to_string(path).map_err(|error| error.to_string());
        let allocated = match wishes.iter().all(|wish| wish.hosts.is_empty()) {
            true => allocation::find(&lookup, &read)?,
            false => None,
        };
        let order = if self.map_by == Some(MapBy::Node) { Deal::Cyclic } else { Deal::Block };
        let launcher = self.agent_launcher.clone().map(|words| words.0);
        let (fanout, silence) = (self.agent_fanout, self.host_timeout);
        distribute(&wishes, Means { allocated, order, launcher, fanout, silence })
    }

    /// Whether ranks record their calls.
    fn is_recorded(&self) -> bool {
        self.trace.is_some() || self.profile.is_some()
    }

    /// The file that a page with the profile goes to.
    fn page(&self) -> Option<PathBuf> {
        self.profile.as_ref().and_then(|profile| profile.page.clone())
    }

    /// Where output goes, and in which form.
    fn output(&self) -> OutputChoice {
        let mut choice = OutputChoice {
            tag: self.label,
            timestamp: self.timestamp_output,
            folder: self.output_filename.clone(),
            nocopy: false,
        };
        for list in self.output.iter().cloned() {
            choice.tag |= list.tag;
            choice.timestamp |= list.timestamp;
            choice.nocopy |= list.nocopy;
            choice.folder = list.folder.or(choice.folder);
        }
        choice
    }

    fn spec(self, apps: Vec<App>) -> JobSpec {
        let is_needless = self.oversubscribe || self.genvlist.is_some() || !self.mca.is_empty();
        let mut notes: Vec<String> = is_needless.then(|| NEEDLESS.to_owned()).into_iter().collect();
        let usual = Vigilance::default();
        let vigilance = Vigilance {
            ends_deadlocks: self.deadlock == "end",
            stall: self.stall,
            interval: self.look_every.unwrap_or(usual.interval),
            standstill: self.note_after.unwrap_or(usual.standstill),
        };
        let check = self.check.map(|check| Export {
            name: config::CHECK.name.into(),
            value: Some(u8::from(check).to_string().into()),
        });
        let trace = self.is_recorded().then(|| {
            let memory = self.trace_memory.unwrap_or(TRACE_MEMORY);
            let (newest, details) = (self.trace_newest, self.trace_details);
            Box::new(TraceChoice { file: self.trace.clone(), memory, newest, details })
        });
        let inherited = || config::inherited(config::CHECK.name).is_some_and(|value| value == "1");
        let spec = JobSpec {
            output: self.output(),
            apps,
            last_calls: self.check.unwrap_or_else(inherited),
            exports: self.genv.into_iter().chain(check).collect(),
            universe: self.universe,
            contexts: self.contexts.unwrap_or(1),
            backend: self.backend,
            input: self.stdin,
            binding: Binding::new(self.bind_to, self.map_by, self.report_bindings),
            on_failure: self.on_failure,
            timeout: self.timeout,
            vigilance,
            stats: self.stats,
            watch: self.watch.then(|| self.watch_every.unwrap_or_else(|| rhythm(stderr()))),
            trace,
            profile: self.profile.map(Box::new),
            hosts: None,
            copies: self.copy,
            notes: Vec::new(),
        };
        let exported = spec.all_exports().map(|export| export.name.clone());
        let names = config::inherited_names().chain(exported);
        notes.extend(variables::notes(names.map(|name| name.to_string_lossy().into_owned())));
        JobSpec { notes, ..spec }
    }
}

/// The number of ranks without `-n`: that of the processors for this process.
pub(crate) fn default_ranks() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| cores.get().min(MAX_TASKS_PER_HOST))
}

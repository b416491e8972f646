//! The description of a job: made by the command line, checked by `spawn`, run by `job`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;
use transport_lapi::config::BackendChoice;

use crate::hang::watcher::Vigilance;
use crate::host::binding::Binding;
use crate::io::output::OutputChoice;
use crate::io::stdin::InputChoice;
use crate::job::hosts::Hosts;
use crate::profile::ProfileChoice;
use crate::trace::TraceChoice;

/// A variable to set in the ranks' environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Export {
    /// Its name.
    pub name: OsString,
    /// Its value; `None` for that of the launcher's environment.
    pub value: Option<OsString>,
}

/// One program of a job, and the ranks that run it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct App {
    /// Number of ranks.
    pub ranks: usize,
    /// The program, as the user named it.
    pub program: OsString,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Variables for these ranks; they override those of the job.
    pub exports: Vec<Export>,
    /// Working folder of these ranks; `None` for the launcher's.
    pub wdir: Option<PathBuf>,
    /// Folders, separated by colons, where the program is looked up before those of `PATH`.
    pub path: Option<OsString>,
    /// The file that is run in place of the one that is looked up by the program's name.
    pub copy: Option<PathBuf>,
}

impl App {
    /// Returns `ranks` ranks of `program`, without arguments, in the launcher's folder and environment.
    pub fn new(ranks: usize, program: impl Into<OsString>) -> Self {
        Self {
            ranks,
            program: program.into(),
            args: Vec::new(),
            exports: Vec::new(),
            wdir: None,
            path: None,
            copy: None,
        }
    }
}

/// What happens to the job when one of its ranks fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OnFailure {
    /// The job ends
    Kill,
    /// The other ranks go on to their own end; their calls fail from the first one on that has to wait
    Keep,
}

/// A job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobSpec {
    /// The programs; ranks are numbered through them in this order.
    pub apps: Vec<App>,
    /// Variables for all ranks.
    pub exports: Vec<Export>,
    /// Number of ranks that the job can have with those that ranks spawn; less than [`JobSpec::ranks`] for no more.
    pub universe: usize,
    /// Number of contexts of each rank.
    pub contexts: usize,
    /// Protocol of messages; `None` leaves it to the environment.
    pub backend: Option<BackendChoice>,
    /// Where the ranks' output goes.
    pub output: OutputChoice,
    /// Which ranks get the launcher's standard input.
    pub input: InputChoice,
    /// Where the ranks run.
    pub binding: Binding,
    /// What happens when a rank fails.
    pub on_failure: OnFailure,
    /// How long the job may run.
    pub timeout: Option<Duration>,
    /// When a job without progress is noted or ended.
    pub vigilance: Vigilance,
    /// Whether to print at the end how many messages each protocol carried.
    pub stats: bool,
    /// The time between two looks at the ranks that are shown; `None` for no such looks.
    pub watch: Option<Duration>,
    /// Where the calls of the ranks are recorded, if they are.
    pub trace: Option<Box<TraceChoice>>,
    /// Whether to tell at the end where the ranks spent their time; this needs [`JobSpec::trace`].
    pub profile: Option<Box<ProfileChoice>>,
    /// Whether the report of a job that fails shows the last calls of each rank, if the ranks find mistakes and run on this
    /// host. It does not with [`JobSpec::trace`], whose file has them all.
    pub last_calls: bool,
    /// Where the ranks run; `None` for this host alone.
    pub hosts: Option<Box<Hosts>>,
    /// Whether the programs are sent to the hosts of a job on several.
    pub copies: bool,
    /// Notes about the command line, for standard error.
    pub notes: Vec<String>,
}

impl JobSpec {
    /// Returns a job of these programs with default options.
    pub fn new(apps: Vec<App>) -> Self {
        Self {
            apps,
            exports: Vec::new(),
            universe: 0,
            contexts: 1,
            backend: None,
            output: OutputChoice::default(),
            input: InputChoice::Rank(0),
            binding: Binding::new(None, None, false),
            on_failure: OnFailure::Kill,
            timeout: None,
            vigilance: Vigilance::default(),
            stats: false,
            watch: None,
            trace: None,
            profile: None,
            last_calls: false,
            hosts: None,
            copies: false,
            notes: Vec::new(),
        }
    }

    /// Returns the number of ranks of all programs.
    pub fn ranks(&self) -> usize {
        self.apps.iter().map(|app| app.ranks).sum()
    }

    /// Returns the number of ranks that the job can have, with those that ranks spawn.
    pub(crate) fn most_ranks(&self) -> usize {
        self.ranks().max(self.universe)
    }

    /// Every variable that some rank gets; later ones override earlier ones.
    pub(crate) fn all_exports(&self) -> impl Iterator<Item = &Export> {
        self.exports.iter().chain(self.apps.iter().flat_map(|app| &app.exports))
    }
}

//! What a job is to be: made by the command lines, checked by `spawn`, run by `job`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;
use transport_lapi::config::BackendChoice;

use crate::hang::{standstill, watch};
use crate::host::binding::Binding;
use crate::io::output::OutputChoice;
use crate::io::stdin::InputChoice;

/// A variable for the ranks' environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Export {
    /// Its name.
    pub name: OsString,
    /// Its value; `None` takes the launcher's.
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
    /// Variables for these ranks; they count for more than those of the job.
    pub exports: Vec<Export>,
    /// Folder that these ranks start in.
    pub wdir: Option<PathBuf>,
    /// Folders where the program is looked up before those of `PATH`.
    pub path: Option<OsString>,
}

impl App {
    /// `program` as `ranks` ranks, without arguments, started as the launcher was.
    pub fn new(ranks: usize, program: impl Into<OsString>) -> Self {
        let program = program.into();
        Self { ranks, program, args: Vec::new(), exports: Vec::new(), wdir: None, path: None }
    }
}

/// When a job that does not end by itself is ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vigilance {
    /// Whether a job that cannot go on is ended, with exit code 125.
    pub ends_deadlocks: bool,
    /// How long no rank may make progress, before the job is ended with exit code 124.
    pub stall: Option<Duration>,
    /// From one look at the ranks to the next.
    pub interval: Duration,
    /// How long nothing moves in a job before that is noted, unless deadlocks are ignored.
    pub standstill: Duration,
}

impl Default for Vigilance {
    fn default() -> Self {
        let (interval, standstill) = (watch::INTERVAL, standstill::SPAN);
        Self { ends_deadlocks: true, stall: None, interval, standstill }
    }
}

/// What happens to the job when one of its ranks fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OnFailure {
    /// It ends
    Kill,
    /// The other ranks go on to their own end; their calls fail from the first one on that has to wait
    Keep,
}

/// What to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobSpec {
    /// The programs; ranks are numbered through them in this order.
    pub apps: Vec<App>,
    /// Variables for all ranks.
    pub exports: Vec<Export>,
    /// How many contexts each rank has.
    pub contexts: usize,
    /// Protocol of messages; `None` leaves it to the environment.
    pub backend: Option<BackendChoice>,
    /// What becomes of the ranks' output.
    pub output: OutputChoice,
    /// Which ranks get the launcher's standard input.
    pub input: InputChoice,
    /// Where the ranks run.
    pub binding: Binding,
    /// What happens when a rank fails.
    pub on_failure: OnFailure,
    /// How long the job may run.
    pub timeout: Option<Duration>,
    /// What else ends it.
    pub vigilance: Vigilance,
    /// Whether to say at the end what the protocols did.
    pub stats: bool,
    /// What was asked for and is not done, since there is no need; said on standard error.
    pub notes: Vec<String>,
}

impl JobSpec {
    /// A job of these programs, with everything else as it is where nothing was asked for.
    pub fn new(apps: Vec<App>) -> Self {
        Self {
            apps,
            exports: Vec::new(),
            contexts: 1,
            backend: None,
            output: OutputChoice::default(),
            input: InputChoice::Rank(0),
            binding: Binding::new(None, None, false),
            on_failure: OnFailure::Kill,
            timeout: None,
            vigilance: Vigilance::default(),
            stats: false,
            notes: Vec::new(),
        }
    }

    /// Number of ranks of all programs.
    pub fn ranks(&self) -> usize {
        self.apps.iter().map(|app| app.ranks).sum()
    }

    /// Every variable that some rank gets, in the order in which later ones count for more.
    pub(crate) fn all_exports(&self) -> impl DoubleEndedIterator<Item = &Export> {
        self.exports.iter().chain(self.apps.iter().flat_map(|app| &app.exports))
    }
}

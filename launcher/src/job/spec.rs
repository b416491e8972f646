//! The description of a job: made by the command line, checked by `spawn`, run by `job`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;
use transport_lapi::adapters::shm::room_for;
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

/// How many more ranks than it starts with a job of one host can have, with those that have ended, unless `--universe`
/// says it. Test suites spawn so many in one job. The room costs addresses, but memory only where ranks are spawned.
const ROOM: usize = 512;

/// How many ranks a job can have in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Universe {
    /// All for which there is room.
    pub(crate) most: usize,
    /// Those that a program may expect (MPI_UNIVERSE_SIZE). Programs spawn as many as are missing.
    pub(crate) expected: usize,
}

impl Universe {
    /// That of a job without room.
    pub(crate) fn full(ranks: usize) -> Self {
        Self { most: ranks, expected: ranks }
    }

    /// That of a job which starts with `ranks` ranks of so many `contexts` on this host. If the user has `given` a number,
    /// that is meant; otherwise as many ranks as there are processors are useful, or one more than the job has if that is
    /// larger.
    pub(crate) fn of(ranks: usize, given: Option<usize>, contexts: usize) -> Self {
        if let Some(given) = given {
            return Self::full(ranks.max(given));
        }
        let most = room_for(ROOM, ranks, contexts);
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Self { most, expected: processors }.beyond(ranks)
    }

    /// The same for a world with which there are `ranks` ranks: programs that compare its size with the expected number find
    /// that it can spawn others, unless there is no room left.
    pub(crate) fn beyond(self, ranks: usize) -> Self {
        Self { expected: self.expected.max(ranks + 1).min(self.most), ..self }
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
    /// Number of ranks that the job can have with those that ranks spawn; `None` for 512 more than it starts with.
    pub universe: Option<usize>,
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
            universe: None,
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

    /// Returns how many ranks the job can have on this host, if it has no others.
    pub(crate) fn universe(&self) -> Universe {
        Universe::of(self.ranks(), self.universe, self.contexts)
    }

    /// Every variable that some rank gets; later ones override earlier ones.
    pub(crate) fn all_exports(&self) -> impl Iterator<Item = &Export> {
        self.exports.iter().chain(self.apps.iter().flat_map(|app| &app.exports))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_has_room_for_more_ranks_unless_the_user_says_otherwise() {
        for ranks in [1, 2, 256] {
            let Universe { most, expected } = Universe::of(ranks, None, 1);
            assert_eq!(most, ranks + ROOM);
            assert!((ranks + 1..=most).contains(&expected), "{ranks} {expected}");
        }
        let room = Universe { most: 20, expected: 4 };
        assert_eq!([2, 5, 19, 20].map(|ranks| room.beyond(ranks).expected), [4, 6, 20, 20]);
        assert_eq!(Universe::of(2, Some(9), 1), Universe { most: 9, expected: 9 });
        assert_eq!(Universe::of(2, Some(2), 1), Universe::full(2));
    }
}

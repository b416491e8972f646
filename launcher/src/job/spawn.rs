//! Checks the description of a job or of a further world and starts its ranks. Called by the thread that runs the job:
//! the ranks end with that thread (SP2 of `transport_lapi::bootstrap::spawn`).
//!
//! Wrong programs, folders, variables and settings are found before the first rank starts.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::rc::Rc;

use rustix::fs::{Access, access};
use rustix::io::Errno;
use transport_lapi::TaskId;
use transport_lapi::adapters::shm::{create_segment, create_segment_with_room};
use transport_lapi::bootstrap::control::control_pair;
use transport_lapi::bootstrap::monotonic_nanos;
use transport_lapi::bootstrap::signals::Mask;
use transport_lapi::bootstrap::spawn::{DescriptorLimit, prepare};
use transport_lapi::bootstrap::waits::JobView;
use transport_lapi::bootstrap::{Descriptors, RankPlace, World, rank_environment};
use transport_lapi::config::{self, Settings, WaitMode};

use crate::LaunchError;
use crate::exits::Ending;
use crate::host::binding::{BindTo, Binding, Placement, Topology};
use crate::host::rank::Rank;
use crate::io::stdin::InputChoice;
use crate::job::{App, Export, JobSpec, OnFailure, Universe};
use crate::trace::Memories;

/// The processes and descriptors of a job that has been started.
pub(crate) struct Started {
    /// The ranks; only the first ones if one failed meanwhile.
    pub(crate) ranks: Vec<Rank>,
    /// The segment of this host.
    pub(crate) segment: OwnedFd,
    /// How many ranks the job can have.
    pub(crate) universe: Universe,
}

/// Where a world is in its job.
pub(crate) struct WorldPlace {
    /// Its first task.
    pub(crate) first: TaskId,
    /// The number of tasks that the job can have.
    pub(crate) universe: Universe,
    /// The task that has spawned it.
    pub(crate) parent: Option<TaskId>,
}

/// Where programs are looked up if `PATH` is not set.
const DEFAULT_PATH: &str = "/usr/bin:/bin";

/// A job description that has been checked.
pub(crate) struct Prepared<'a> {
    spec: &'a JobSpec,
    programs: Vec<Program<'a>>,
    /// The ranks of this host, in order.
    here: Vec<usize>,
    /// Where they run, by their places in `here`.
    pub(crate) placement: Placement,
    /// Where the ranks record their calls, if they do.
    traces: Option<Rc<Memories>>,
}

/// One program of the job.
pub(crate) struct Program<'a> {
    pub(crate) app: &'a App,
    /// Its number among the programs of the job.
    number: usize,
    /// The absolute path.
    pub(crate) path: PathBuf,
    /// Variables that the ranks get beside the launcher's environment.
    pub(crate) environment: BTreeMap<OsString, OsString>,
}

/// Set in jobs of several hosts: libfabric may load libinfinipath, which otherwise catches signals that end a process.
/// It would print a list of calls, and a process that catches signals and has idle threads cannot be judged (ID2 of
/// [`crate::hang::idle`]).
const NO_HANDLERS: &str = "IPATH_NO_BACKTRACE";

/// Checks the programs, the folders, the exported variables and the settings of a job with these ranks on this host.
pub(crate) fn check(spec: &JobSpec, here: Vec<usize>) -> Result<Prepared<'_>, LaunchError> {
    let apps = spec.apps.iter().enumerate();
    let programs = apps.map(|(number, app)| Program::check(spec, number, app));
    let programs = programs.collect::<Result<Vec<_>, LaunchError>>()?;
    check_reader(spec)?;
    let placement = place(spec.binding, here.len())?;
    Ok(Prepared { spec, programs, here, placement, traces: None })
}

/// Checks that the job has the rank that gets the standard input.
pub(crate) fn check_reader(spec: &JobSpec) -> Result<(), LaunchError> {
    match spec.input {
        InputChoice::Rank(asked @ 1..) if asked >= spec.ranks() => {
            Err(LaunchError::NoSuchReader { asked, ranks: spec.ranks() })
        }
        _ => Ok(()),
    }
}

/// Decides where `ranks` ranks run.
pub(crate) fn place(binding: Binding, ranks: usize) -> Result<Placement, LaunchError> {
    let is_placed = match binding.bind_to {
        Some(bind_to) => bind_to != BindTo::None,
        None => ranks > 1,
    };
    if !is_placed {
        return Ok(Placement::unbound(ranks));
    }
    let action = "find out which processors it may use";
    let topology = Topology::here().map_err(|source| LaunchError::System { action, source })?;
    Ok(topology.place(binding, ranks))
}

/// The variables that the ranks of `app` get beside the launcher's environment, and the settings that follow.
pub(crate) fn environment(
    spec: &JobSpec,
    app: &App,
) -> Result<(BTreeMap<OsString, OsString>, Settings), LaunchError> {
    let exports = spec.exports.iter().chain(&app.exports).map(exported);
    let mut environment = exports.collect::<Result<BTreeMap<_, _>, LaunchError>>()?;
    if let Some(backend) = spec.backend {
        let (name, value) = config::backend_entry(backend);
        environment.insert(name.into(), value.into());
    }
    let settings = Settings::from_env_after(&|name| {
        Some(environment.get(OsStr::new(name))?.to_string_lossy().into_owned())
    })?;
    Ok((environment, settings))
}

/// The ranks that poll while they wait, and never sleep.
pub(crate) fn spinning(spec: &JobSpec) -> Result<Vec<usize>, LaunchError> {
    let spins = |app: &App| Ok(environment(spec, app)?.1.wait == WaitMode::Spin);
    let spins = spec.apps.iter().map(spins).collect::<Result<Vec<_>, LaunchError>>()?;
    let of_ranks = spec.apps.iter().zip(spins);
    let of_ranks = of_ranks.flat_map(|(app, spins)| std::iter::repeat_n(spins, app.ranks));
    Ok(of_ranks.enumerate().filter(|(_, spins)| *spins).map(|(rank, _)| rank).collect())
}

impl<'a> Program<'a> {
    fn check(spec: &JobSpec, number: usize, app: &'a App) -> Result<Self, LaunchError> {
        let path = match &app.copy {
            Some(copy) => absolute_program(copy)?,
            None => find(app)?,
        };
        if let Some(folder) = &app.wdir {
            check_folder(folder)?;
        }
        let (environment, _) = environment(spec, app)?;
        Ok(Self { app, number, path, environment })
    }

    /// The command that starts the program, without the streams and variables of a rank.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.path);
        command.arg0(&self.app.program).args(&self.app.args).envs(&self.environment);
        if let Some(folder) = &self.app.wdir {
            command.current_dir(folder);
        }
        command
    }

    pub(crate) fn spawn_failed(&self, rank: usize, source: io::Error) -> LaunchError {
        let reason = match source.raw_os_error().map(Errno::from_raw_os_error) {
            Some(Errno::NOEXEC) => "neither a program of this machine nor a script with #!",
            Some(Errno::NOENT) => "the interpreter it asks for is not there",
            _ => return LaunchError::Spawn { rank, source },
        };
        let program = PathBuf::from(&self.app.program);
        LaunchError::NotExecutable { program, reason: reason.to_owned() }
    }
}

impl<'a> Prepared<'a> {
    /// Has the ranks record their calls in these memories.
    pub(crate) fn record(&mut self, traces: Option<Rc<Memories>>) {
        self.traces = traces;
    }

    /// Every rank of this host with its program, in order.
    pub(crate) fn ranks(&self) -> impl Iterator<Item = (usize, &Program<'a>)> {
        let programs = self.programs.iter();
        let all = programs.flat_map(|program| std::iter::repeat_n(program, program.app.ranks));
        let mut here = self.here.iter().copied().peekable();
        all.enumerate().filter(move |(rank, _)| here.next_if_eq(rank).is_some())
    }

    /// Makes the segment of this host for the job called `job`, and starts its ranks here: as
    /// [`Prepared::start_world`].
    pub(crate) fn start(
        &self,
        job: &str,
        limit: &DescriptorLimit,
        mask: Mask,
        inputs: Vec<Stdio>,
        table: Option<BorrowedFd<'_>>,
    ) -> Result<Started, LaunchError> {
        let (here, contexts) = (self.here.len(), self.spec.contexts);
        // Ranks of several hosts spawn no others.
        let (universe, segment) = match table {
            Some(_) => (Universe::full(self.spec.ranks()), create_segment(job, here, contexts)?),
            None => {
                let universe = self.spec.universe();
                (universe, create_segment_with_room(job, here, universe.most, contexts)?)
            }
        };
        if self.spec.on_failure == OnFailure::Keep {
            JobView::open(&segment)?.goes_on();
        }
        let first = WorldPlace { first: 0, universe, parent: None };
        // If one cannot be started, those before it are ended (K2 of `crate::host::rank`).
        let mut ranks = Vec::with_capacity(inputs.len());
        self.start_world(&first, (job, &segment), (limit, mask), inputs, table, &mut ranks)?;
        Ok(Started { ranks, segment, universe })
    }

    /// Starts the ranks of this host as a world of the job called `job`, with this `limit` of descriptors, signal
    /// `mask` and `inputs`, the segment, and the `table` of a job of several hosts. It stops when one has failed,
    /// unless the job goes on then. The ranks that were started are in `ranks`, also if one cannot be started.
    pub(crate) fn start_world(
        &self,
        at: &WorldPlace,
        (job, segment): (&str, &OwnedFd),
        (limit, mask): (&DescriptorLimit, Mask),
        inputs: Vec<Stdio>,
        table: Option<BorrowedFd<'_>>,
        ranks: &mut Vec<Rank>,
    ) -> Result<(), LaunchError> {
        let WorldPlace { first, universe, parent } = *at;
        let tasks = first..first + self.spec.ranks() as TaskId;
        for (place, ((rank, program), input)) in self.ranks().zip(inputs).enumerate() {
            let failed = |source: io::Error| program.spawn_failed(rank, source);
            let (receiver, control) = control_pair().map_err(failed)?;
            let mut command = program.command();
            command.stdin(input).stdout(Stdio::piped()).stderr(Stdio::piped());
            match self.placement.total() {
                Some(processors) => command.env(config::PROCESSORS, processors.to_string()),
                None => command.env_remove(config::PROCESSORS),
            };
            match self.placement.home(place) {
                Some(processor) => command.env(config::PLACE, processor.to_string()),
                None => command.env_remove(config::PLACE),
            };
            command.env(config::PROGRAM, program.number.to_string());
            match universe.expected < universe.most {
                true => command.env(config::EXPECTED, universe.expected.to_string()),
                false => command.env_remove(config::EXPECTED),
            };
            let task = first + rank as TaskId;
            let (segment, control) = (segment.as_fd(), control.as_fd());
            let descriptors = Descriptors { segment, control, table };
            let world = World { task, tasks: tasks.clone(), universe: universe.most, parent };
            let (local, contexts) = (first + place as TaskId, self.spec.contexts);
            let seat = RankPlace { world, local, contexts };
            let variables = rank_environment(&seat, job, descriptors);
            for (name, value) in variables {
                match value {
                    Some(value) => command.env(name, value),
                    None => command.env_remove(name),
                };
            }
            let trace = self.trace(task, &mut command).map_err(failed)?;
            let processors = self.placement.processors(place);
            if table.is_some() {
                command.env(NO_HANDLERS, "1");
            }
            let trace = trace.as_ref().map(AsFd::as_fd);
            prepare(&mut command, descriptors, trace, limit, mask, processors);
            let child = command.spawn().map_err(failed)?;
            ranks.push(Rank::new(task, child, receiver).map_err(failed)?);
            if has_failure(ranks) && self.spec.on_failure == OnFailure::Kill {
                break;
            }
        }
        Ok(())
    }

    /// Gives a rank the memory to record its calls, if it is to.
    fn trace(&self, task: TaskId, command: &mut Command) -> io::Result<Option<OwnedFd>> {
        // The variable of a job that this one is started in means another descriptor.
        command.env_remove(config::TRACE_FD);
        self.traces.as_ref().map(|traces| traces.add(task, command)).transpose()
    }

    /// Notes for standard error, and with `--report-bindings` where each rank runs.
    pub(crate) fn lines(&self, pids: &[u32]) -> Vec<String> {
        let ranks = self.here.iter().zip(pids).enumerate();
        let asked = ranks.filter(|_| self.spec.binding.report);
        let report = asked.map(|(place, (rank, pid))| {
            format!("rank {rank} (pid {pid}) is {}", self.placement.words(place))
        });
        self.placement.note().into_iter().chain(report).collect()
    }

    /// Where `rank` would run, for `--dry-run`; `None` if it is not bound and nobody asked.
    pub(crate) fn place_of(&self, rank: usize) -> Option<String> {
        let Binding { bind_to, report, .. } = self.spec.binding;
        (report || bind_to.is_some_and(|it| it != BindTo::None)).then(|| self.placement.words(rank))
    }
}

/// A name for a job that no other job of this host has.
pub(crate) fn job_name() -> String {
    format!("{}-{:x}", std::process::id(), monotonic_nanos())
}

/// Whether one of the ranks has failed. Ranks that have ended get the time of their end, so that the first failure is
/// known.
fn has_failure(ranks: &mut [Rank]) -> bool {
    let endings = ranks.iter_mut().filter_map(Rank::notice_ending);
    endings.filter(|(ending, _)| *ending != Ending::Code(0)).count() > 0
}

fn exported(export: &Export) -> Result<(OsString, OsString), LaunchError> {
    let value = export.value.clone().or_else(|| config::given(&export.name));
    let unset = || LaunchError::UnsetVariable { name: export.name.to_string_lossy().into_owned() };
    Ok((export.name.clone(), value.ok_or_else(unset)?))
}

/// The folders of `--path`, then those of `PATH`.
fn search_path(first: Option<&OsStr>) -> OsString {
    let path = config::inherited("PATH").unwrap_or_else(|| DEFAULT_PATH.into());
    first.map_or(path.clone(), |first| [first, ":".as_ref(), &path].join("".as_ref()))
}

/// The absolute path of a program.
///
/// # Errors
/// [`LaunchError`] if it is not there, or cannot be executed.
pub(crate) fn find(app: &App) -> Result<PathBuf, LaunchError> {
    find_program(&app.program, search_path(app.path.as_deref()))
}

/// The absolute path of `program`: of that file if it has a slash, else of the first executable file of that name in
/// `search_path`.
fn find_program(program: &OsStr, search_path: OsString) -> Result<PathBuf, LaunchError> {
    if program.is_empty() {
        let hint = ", an empty word".to_owned();
        return Err(LaunchError::NotFound { program: "''".into(), hint });
    }
    if program.as_bytes().contains(&b'/') {
        return absolute_program(Path::new(program));
    }
    let mut best = LaunchError::NotFound { program: program.into(), hint: hint(program) };
    for folder in std::env::split_paths(&search_path) {
        match absolute_program(&folder.join(program)) {
            Err(LaunchError::NotFound { .. }) => {}
            Err(unusable) => best = unusable,
            found => return found,
        }
    }
    Err(best)
}

fn hint(program: &OsStr) -> String {
    let name = program.to_string_lossy();
    if Path::new(program).is_file() {
        format!(" in PATH; for the file in this folder write ./{name}")
    } else if ["help", "version", "info"].contains(&&*name) {
        format!(" in PATH; for what mpjrun itself says write --{name}")
    } else {
        " in PATH".to_owned()
    }
}

fn absolute_program(path: &Path) -> Result<PathBuf, LaunchError> {
    let program = || path.to_owned();
    let unusable = |reason: String| LaunchError::NotExecutable { program: program(), reason };
    match path.metadata() {
        Ok(metadata) if metadata.is_file() => {}
        Ok(_) => return Err(unusable("not a file".to_owned())),
        Err(error) if is_absence(&error) => {
            return Err(LaunchError::NotFound { program: program(), hint: String::new() });
        }
        Err(error) => return Err(unusable(error.to_string())),
    }
    access(path, Access::EXEC_OK).map_err(|errno| match errno {
        Errno::ACCESS => unusable("permission denied; make it executable with chmod +x".to_owned()),
        other => unusable(other.to_string()),
    })?;
    std::path::absolute(path)
        .map_err(|source| LaunchError::System { action: "find the current folder", source })
}

fn is_absence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn check_folder(folder: &Path) -> Result<(), LaunchError> {
    let refused = |reason: String| LaunchError::WorkingFolder { path: folder.to_owned(), reason };
    let metadata = folder.metadata().map_err(|error| match is_absence(&error) {
        true => refused("no such folder".to_owned()),
        false => refused(error.to_string()),
    })?;
    if !metadata.is_dir() {
        return Err(refused("not a folder".to_owned()));
    }
    access(folder, Access::EXEC_OK).map_err(|errno| refused(errno.to_string()))
}

#[cfg(test)]
mod tests;

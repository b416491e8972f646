//! The contract between the launcher and the ranks of a job.
//!
//! The rank's half is [`detect`], called once per process by [`crate::job::wireup`]: it finds out whether a launcher
//! started this process, and takes the inherited descriptors. The launcher's half is [`rank_environment`],
//! [`control::control_pair`], [`spawn`] and [`signals`]. The two need nothing else to find each other: no socket
//! listens, no name is resolved, no file is made. Where a process manager has started the ranks, they make among
//! themselves what a launcher would pass to them (`managed.rs`, `exchange.rs`).
//!
//! - BS1: a launched process inherits exactly these descriptors besides the standard streams: the job segment (a sealed
//!   memfd), its end of the control socket and, in a job of several hosts, the job table (another one). Their numbers are
//!   in the environment. All are close-on-exec from the moment the rank takes them.
//! - BS2: the descriptors are taken once per process. After that, the environment is stale.
//! - BS3: a process that was started by a launcher which offers no process manager interface is refused; it would
//!   otherwise run as rank 0 of 1.

/// What blocked ranks wait for, and how the launcher reads it.
pub mod waits {
    pub use crate::adapter::waits::{
        Blocked, CALL_NUMBERS, CallCode, Phase, Space, TaskState, Wait, Within, bystander_name,
        goes_before,
    };
    pub use crate::adapters::local::job_view::JobView;
}

/// What the tasks of a job of several hosts know of each other.
pub mod hosts {
    pub use crate::adapters::hosts::network::{estrangement, understand_each_other};
    pub use crate::adapters::hosts::table::{
        HostPlan, JobTable, MAX_ADDRESS, MAX_HOST_NAME, SECRET_BYTES, TableWriter, table_bytes,
    };
}

pub mod control;
pub mod guard;
pub mod signals;
pub mod spawn;
pub mod trace;

pub(crate) mod exchange;
mod inherit;
mod managed;

use std::ops::RangeInclusive;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::adapter::{AdapterError, MAX_TASKS, TaskId};
use crate::adapters::{MAX_CONTEXTS, MAX_PLACES_PER_HOST, MAX_TASKS_PER_HOST};
use crate::job::config::{self, ForeignLauncher, Lookup, Settings, Start};

pub use crate::adapters::shm::World;
pub use crate::platform::sys::monotonic_nanos;
pub use control::Control;
pub use exchange::{ExchangeError, Manager};

/// A rank's place in its job, with what connects it.
#[derive(Debug)]
pub struct Membership {
    /// This task among those of its job.
    pub world: World,
    /// Number of contexts of each task that were asked for, at most [`MAX_CONTEXTS`]. There are
    /// [`SPARE_CONTEXTS`](crate::adapters::SPARE_CONTEXTS) more for further clients.
    pub contexts: usize,
    /// The segment that all tasks of this host map.
    pub segment: OwnedFd,
    /// What the tasks of several hosts know of each other; `None` in a job of one host.
    pub table: Option<OwnedFd>,
    /// The connection to whoever started this rank.
    pub control: Control,
}

/// Where a rank is in its job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RankPlace {
    /// The task among those of the job.
    pub world: World,
    /// Its number on its host.
    pub local: TaskId,
    /// The number of contexts of each task.
    pub contexts: usize,
}

/// What a rank inherits (BS1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Descriptors<D> {
    /// The segment of this host.
    pub segment: D,
    /// The rank's end of the control line.
    pub control: D,
    /// The job table, in a job of several hosts.
    pub table: Option<D>,
}

/// Why a process could not find its job.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BootstrapError {
    /// Another MPI's launcher started this process (BS3).
    #[error(
        "this program was started by {launcher} ({variable} is set), whose ranks cannot find each other; use mpjrun -n \
         N PROGRAM{instead} instead, or set MPJ_SINGLETON=1 to run as a job of one rank"
    )]
    ForeignLauncher {
        /// The launcher's name.
        launcher: &'static str,
        /// The variable that reveals it.
        variable: &'static str,
        /// A further way to start the program.
        instead: &'static str,
    },
    /// The descriptor of a process manager is not there.
    #[error(
        "descriptor {number} of {variable} is not {expected}, so this process is no rank of its job; start the program \
         under mpiexec or srun itself, or set MPJ_SINGLETON=1 to run as a job of one rank"
    )]
    NoManager {
        /// The variable that names it.
        variable: &'static str,
        /// Its number.
        number: i32,
        /// What the descriptor should be.
        expected: &'static str,
    },
    /// The process manager that has started this process failed.
    #[error(transparent)]
    Exchange(#[from] ExchangeError),
    /// The network of a rank does not understand that of rank 0.
    #[error("rank {rank} {why}")]
    Estranged {
        /// The rank.
        rank: TaskId,
        /// Why it cannot reach rank 0.
        why: String,
    },
    /// The memory of this host's ranks could not be made.
    #[error(transparent)]
    Memory(#[from] AdapterError),
    /// The descriptor of the job table could not be copied.
    #[error(
        "cannot copy the descriptor of the job table: {source}{}",
        AdapterError::remedy(source)
    )]
    Table {
        /// The error of the system.
        source: std::io::Error,
    },
    /// A job variable is missing although others are set.
    #[error(
        "{variable} is not set, though mpjrun sets it together with MPJ_CTRL_FD; {FRESH_START}"
    )]
    Missing {
        /// The variable.
        variable: &'static str,
    },
    /// A job variable has a value that the launcher never writes.
    #[error("{variable}={value} is not {expected}; {FRESH_START}")]
    Malformed {
        /// The variable.
        variable: &'static str,
        /// Its value.
        value: String,
        /// What its value should be.
        expected: &'static str,
    },
    /// The descriptor with this number is not one that the launcher passes.
    #[error(
        "descriptor {number} of {variable} is not {expected}; if a script between mpjrun and this \
         program has closed it, let it stay open (Python: close_fds=False); else {FRESH_START}"
    )]
    NotInherited {
        /// The variable that names it.
        variable: &'static str,
        /// Its number.
        number: i32,
        /// What the descriptor should be.
        expected: &'static str,
    },
    /// The process has already joined its job (BS2).
    #[error("this process has joined its job already: a rank joins once, for its whole life")]
    AlreadyTaken,
    /// The thread that ends the rank when the launcher is gone could not be started.
    #[error("cannot watch for the end of mpjrun: {source}")]
    Watch {
        /// The error of the system.
        source: std::io::Error,
    },
    /// The system has no random bytes for the name of the segment.
    #[error("cannot read /dev/urandom: {source}; the ranks of a job need it to find each other")]
    Random {
        /// The error of the system.
        source: std::io::Error,
    },
}

/// Advice for variables that outlived their launcher.
const FRESH_START: &str = "start the program with mpjrun, or, for a program that is no rank of the \
                           job, remove the variables MPJ_RANK, MPJ_SIZE, MPJ_SHM_FD, MPJ_HOSTS_FD and \
                           MPJ_CTRL_FD";

/// Whether the descriptors have been taken (BS2).
static TAKEN: AtomicBool = AtomicBool::new(false);

/// Finds out how this process was started, and takes the inherited descriptors if it was launched, or meets the ranks of
/// its host if a process manager has started them. Returns `None` for a process that was started alone, which is a job
/// of one rank. Jobs of threads are made by [`crate::wireup::in_process`].
///
/// # Errors
/// [`BootstrapError`]: a foreign launcher, damaged variables, or a second call.
pub fn detect(settings: &Settings) -> Result<Option<Membership>, BootstrapError> {
    if !config::is_rank() {
        return match config::start() {
            Start::Alone => Ok(None),
            _ if settings.singleton => Ok(None),
            Start::Foreign(ForeignLauncher { launcher, variable, instead }) => {
                Err(BootstrapError::ForeignLauncher { launcher, variable, instead })
            }
            start => managed::join(start).map(Some),
        };
    }
    let Inherited { world, contexts, descriptors } = Inherited::parse(&config::environment)?;
    let taken = take_once(&TAKEN, || inherit::take(descriptors))?;
    let Descriptors { segment, control, table } = taken;
    let control = Control::new(world.task, control);
    control.end_with_launcher().map_err(|source| BootstrapError::Watch { source })?;
    Ok(Some(Membership { world, contexts, segment, table, control }))
}

/// Takes what connects this process to its job, unless it has been `taken` (BS2). A refusal leaves the descriptors
/// open, so that another call fails for the same reason.
fn take_once<T>(
    taken: &AtomicBool,
    take: impl FnOnce() -> Result<T, BootstrapError>,
) -> Result<T, BootstrapError> {
    if taken.swap(true, Ordering::SeqCst) {
        return Err(BootstrapError::AlreadyTaken);
    }
    let descriptors = take();
    taken.store(descriptors.is_ok(), Ordering::SeqCst);
    descriptors
}

/// Makes the job's descriptors close-on-exec if this process is a rank that has not taken them. For a process that is
/// about to start a program which may belong to another job.
pub fn withhold_descriptors() {
    if let Ok(inherited) = Inherited::parse(&config::environment) {
        inherit::withhold(inherited.descriptors);
    }
}

/// Returns the environment of the rank at `place` of the job called `job`, which inherits `descriptors`, as
/// [`spawn::prepare`] passes them. A variable without a value is not to be set.
pub fn rank_environment(
    place: &RankPlace,
    job: &str,
    descriptors: Descriptors<BorrowedFd<'_>>,
) -> [(&'static str, Option<String>); 11] {
    let Descriptors { segment, control, table } = descriptors;
    let World { task, tasks, universe, parent } = &place.world;
    let is_whole = tasks.len() == *universe;
    [
        (config::RANK, Some((task - tasks.start).to_string())),
        (config::SIZE, Some(tasks.len().to_string())),
        (config::UNIVERSE, (!is_whole).then(|| universe.to_string())),
        (config::FIRST_TASK, parent.map(|_| tasks.start.to_string())),
        (config::PARENT, parent.map(|parent| parent.to_string())),
        (config::LOCAL_RANK, Some(place.local.to_string())),
        (config::CONTEXTS, Some(place.contexts.to_string())),
        (config::JOB, Some(job.to_owned())),
        (config::SHM_FD, Some(segment.as_raw_fd().to_string())),
        (config::HOSTS_FD, table.map(|table| table.as_raw_fd().to_string())),
        (config::CTRL_FD, Some(control.as_raw_fd().to_string())),
    ]
}

/// The job variables, parsed and checked against each other.
#[derive(Debug, PartialEq, Eq)]
struct Inherited {
    world: World,
    contexts: usize,
    descriptors: Descriptors<i32>,
}

impl Inherited {
    fn parse(lookup: Lookup<'_>) -> Result<Self, BootstrapError> {
        let number = |variable, legal, expected| number(lookup, variable, legal, expected);
        let is_set = |variable| lookup(variable).is_some();
        let has_table = is_set(config::HOSTS_FD);
        let size = match has_table {
            false => {
                let expected = "a number of ranks from 1 to 256, as on one host";
                number(config::SIZE, 1..=MAX_TASKS_PER_HOST, expected)?
            }
            true => number(config::SIZE, 1..=MAX_TASKS, "a number of ranks from 1 to 1048576")?,
        };
        let rank = number(config::RANK, 0..=size - 1, "a rank below MPJ_SIZE")?;
        let universe = match is_set(config::UNIVERSE) {
            false => size,
            true => {
                let expected = "a number of ranks from MPJ_SIZE to 1024";
                number(config::UNIVERSE, size..=MAX_PLACES_PER_HOST, expected)?
            }
        };
        let (first, parent) = match is_set(config::PARENT) {
            false => (0, None),
            true => {
                let expected = "the first of MPJ_SIZE tasks behind others below MPJ_UNIVERSE";
                let first = number(config::FIRST_TASK, 1..=universe - size, expected)?;
                let parent = number(config::PARENT, 0..=first - 1, "a task before MPJ_FIRST_TASK")?;
                (first, Some(parent as TaskId))
            }
        };
        let tasks = first as TaskId..(first + size) as TaskId;
        let world = World { task: (first + rank) as TaskId, tasks, universe, parent };
        let contexts = contexts(lookup)?;
        let descriptor = |variable| {
            let expected = "the number of an inherited descriptor";
            number(variable, 3..=i32::MAX as usize, expected).map(|number| number as i32)
        };
        let (segment, control) = (descriptor(config::SHM_FD)?, descriptor(config::CTRL_FD)?);
        let table = has_table.then(|| descriptor(config::HOSTS_FD)).transpose()?;
        let descriptors = Descriptors { segment, control, table };
        Ok(Self { world, contexts, descriptors })
    }
}

/// The number of contexts of each task.
fn contexts(lookup: Lookup<'_>) -> Result<usize, BootstrapError> {
    if lookup(config::CONTEXTS).is_none() {
        return Ok(1);
    }
    number(lookup, config::CONTEXTS, 1..=MAX_CONTEXTS, "a number of contexts from 1 to 4")
}

fn number(
    lookup: Lookup<'_>,
    variable: &'static str,
    legal: RangeInclusive<usize>,
    expected: &'static str,
) -> Result<usize, BootstrapError> {
    let value = lookup(variable).ok_or(BootstrapError::Missing { variable })?;
    let number = value.parse().ok().filter(|number| legal.contains(number));
    number.ok_or(BootstrapError::Malformed { variable, value, expected })
}

#[cfg(test)]
mod tests;

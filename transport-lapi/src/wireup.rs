//! Set-up of connections: makes a connected adapter from the environment.
//!
//! A process that `mpjrun` started attaches to the job's segment. A process that was started alone is a job of one task
//! in memory of its own. Threads of one process share a segment there.

use std::os::fd::OwnedFd;

use crate::adapter::{AdapterError, TaskId};
use crate::bootstrap::{self, BootstrapError, Control, Membership, Start};
use crate::config::{self, ConfigError, GetMode, Settings};
use crate::home;

#[cfg(feature = "channels")]
use over_channels as native;
#[cfg(not(feature = "channels"))]
use over_segment as native;

pub use native::Native;

/// Jobs whose tasks share a segment.
#[cfg(not(feature = "channels"))]
mod over_segment {
    use super::{AdapterError, GetMode, OwnedFd, TaskId};
    use crate::adapters::shm::ShmAdapter;
    use crate::adapters::{LocalAdapter, Reach, threads};

    /// The adapter of jobs on this host, whether their tasks are threads or processes.
    pub type Native = LocalAdapter<Box<dyn Reach>>;

    /// Attaches a process. Returns an adapter for each context, and a text that describes how gets are done.
    pub(super) fn attach(
        segment: OwnedFd,
        task: TaskId,
        num_tasks: usize,
        contexts: usize,
        get: GetMode,
    ) -> Result<(Vec<Native>, String), AdapterError> {
        let attached = ShmAdapter::attach_contexts(segment, task, num_tasks, contexts, get)?;
        let get_report = attached[0].get_report();
        Ok((attached.into_iter().map(LocalAdapter::into_any).collect(), get_report))
    }

    /// See [`super::in_process`].
    pub(super) fn threads(num: usize, contexts: usize) -> Result<Vec<Vec<Native>>, AdapterError> {
        let tasks = threads::job_with_contexts(num, contexts)?.into_iter();
        Ok(tasks.map(|task| task.into_iter().map(LocalAdapter::into_any).collect()).collect())
    }
}

/// Jobs of threads that communicate through channels.
#[cfg(feature = "channels")]
mod over_channels {
    use super::{AdapterError, GetMode, OwnedFd, TaskId};
    use crate::adapters::channels::{self, ChannelAdapter};

    /// The adapter of jobs in this build.
    pub type Native = ChannelAdapter;

    /// Refuses: channels do not reach other processes.
    pub(super) fn attach(
        _: OwnedFd,
        _: TaskId,
        _: usize,
        _: usize,
        _: GetMode,
    ) -> Result<(Vec<Native>, String), AdapterError> {
        let source = std::io::ErrorKind::Unsupported.into();
        Err(AdapterError::System { action: "connect processes by channels", source })
    }

    /// See [`super::in_process`].
    pub(super) fn threads(num: usize, contexts: usize) -> Result<Vec<Vec<Native>>, AdapterError> {
        let mut tasks: Vec<Vec<Native>> = Vec::new();
        for _ in 0..contexts {
            let job = channels::job(num)?;
            tasks.resize_with(num, Vec::new);
            tasks.iter_mut().zip(job).for_each(|(task, adapter)| task.push(adapter));
        }
        Ok(tasks)
    }
}

/// Why a task could not join its job.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WireupError {
    /// A setting is not legal.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The environment does not describe a valid job.
    #[error(transparent)]
    Bootstrap(#[from] BootstrapError),
    /// The segment could not be attached.
    #[error(transparent)]
    Adapter(#[from] AdapterError),
}

/// A task connected to its job.
pub struct Joined {
    /// The connections: one for each of the task's contexts, in order.
    pub contexts: Vec<Native>,
    /// The connection to the launcher, if the process was started by one.
    pub control: Option<Control>,
    /// Describes how gets are done, for reports.
    pub get_report: String,
    /// Number of processors that the tasks of the job share, if the launcher has set it.
    pub processors: Option<usize>,
}

/// Joins the job that the environment describes, or makes a job of one task with one context. Blocks until every task
/// of the job has joined.
///
/// # Errors
/// [`WireupError`]; in that case nothing is left to clean up.
pub fn connect(settings: &Settings) -> Result<Joined, WireupError> {
    match bootstrap::detect(settings)? {
        Start::Singleton => {
            let contexts = native::threads(1, 1)?.remove(0);
            let get_report = "memory copy".to_owned();
            Ok(Joined { contexts, control: None, get_report, processors: None })
        }
        Start::Launched(membership) => {
            let Membership { task, num_tasks, contexts, segment, control, .. } = *membership;
            control.joined();
            let (contexts, get_report) =
                native::attach(segment, task, num_tasks, contexts, settings.get)?;
            config::place().into_iter().for_each(home::settle);
            let (control, processors) = (Some(control), config::processors());
            Ok(Joined { contexts, control, get_report, processors })
        }
    }
}

/// Makes a job whose ranks are threads of this process. Returns the `contexts` adapters of each task, in order.
///
/// # Errors
/// [`AdapterError::TaskCount`]; [`AdapterError::ContextCount`]; [`AdapterError::System`] if there is not enough memory.
pub fn in_process(num_tasks: usize, contexts: usize) -> Result<Vec<Vec<Native>>, AdapterError> {
    native::threads(num_tasks, contexts)
}

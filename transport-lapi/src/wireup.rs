//! Connection set-up: from what the environment says to a connected adapter.
//!
//! A process that `mpjrun` started attaches to the job's segment; one that was started alone is a
//! job of one task on the heap; threads of one process share a heap segment.

use crate::adapter::AdapterError;
use crate::adapters::shm::ShmAdapter;
use crate::adapters::{LocalAdapter, Reach, threads};
use crate::bootstrap::{self, BootstrapError, Control, Membership, Start};
use crate::config::{self, ConfigError, Settings, Tuning};

/// The adapter of jobs on this host, whether their tasks are threads or processes.
pub type Native = LocalAdapter<Box<dyn Reach>>;

/// Why a task could not join its job.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WireupError {
    /// A setting is not legal.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The environment does not describe a job of ours.
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
    /// The line to the launcher, if one started us.
    pub control: Option<Control>,
    /// How gets are done, in words, for reports.
    pub get_report: String,
    /// How many processors the tasks of the job share, if the launcher says.
    pub processors: Option<usize>,
    /// The tuned values of the job. A job of one task, which talks to itself alone, has those that are
    /// built in.
    pub tuning: Tuning,
}

/// Joins the job that the environment describes, or makes a job of one task with one context. Blocks until every
/// task of the job has come here.
///
/// # Errors
/// [`WireupError`]; nothing is left behind.
pub fn connect(settings: &Settings) -> Result<Joined, WireupError> {
    match bootstrap::detect(settings)? {
        Start::Singleton => {
            let contexts = threads::job(1)?.into_iter().map(LocalAdapter::into_any).collect();
            let (get_report, tuning) = ("memory copy".to_owned(), Tuning::default());
            Ok(Joined { contexts, control: None, get_report, processors: None, tuning })
        }
        Start::Launched(membership) => {
            let Membership { task, num_tasks, contexts, segment, control, tuning, .. } =
                *membership;
            control.joined();
            let attached =
                ShmAdapter::attach_contexts(segment, task, num_tasks, contexts, settings.get)?;
            let get_report = attached[0].get_report();
            let contexts = attached.into_iter().map(LocalAdapter::into_any).collect();
            let (control, processors) = (Some(control), config::processors());
            Ok(Joined { contexts, control, get_report, processors, tuning })
        }
    }
}

/// The tasks of a job whose ranks are threads of this process, in order; of each, its `contexts`.
///
/// # Errors
/// [`AdapterError::TaskCount`]; [`AdapterError::ContextCount`]; [`AdapterError::System`] when there is no memory.
pub fn in_process(num_tasks: usize, contexts: usize) -> Result<Vec<Vec<Native>>, AdapterError> {
    let tasks = threads::job_with_contexts(num_tasks, contexts)?.into_iter();
    Ok(tasks.map(|task| task.into_iter().map(LocalAdapter::into_any).collect()).collect())
}

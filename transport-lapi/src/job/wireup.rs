//! Set-up of connections: makes a connected adapter from the environment.
//!
//! A process that `mpjrun` or a process manager started attaches to the segment of its host. A process that was started alone is a job of one task
//! in memory of its own. Threads of one process share a segment there.

use crate::adapter::AdapterError;
use crate::adapters::shm::ShmAdapter;
use crate::adapters::threads;
use crate::job::bootstrap::{self, BootstrapError, Control, Membership};
use crate::job::config::{self, ConfigError, Settings};
use crate::platform::home;

use crate::adapters::AnyAdapter;

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
    pub contexts: Vec<AnyAdapter>,
    /// The connection to the launcher or the process manager, if one has started this process.
    pub control: Option<Control>,
    /// Describes how gets are done, for reports.
    pub one_sided_path: String,
    /// Number of processors that the tasks of the job share, if the launcher has set it.
    pub processors: Option<usize>,
}

/// Joins the job that the environment describes, or makes a job of one task with one context. Blocks until every task
/// of the job has joined.
///
/// # Errors
/// [`WireupError`]; in that case nothing is left to clean up.
pub fn connect(settings: &Settings) -> Result<Joined, WireupError> {
    let Some(membership) = bootstrap::detect(settings)? else {
        let contexts = in_process(1, 1)?.remove(0);
        let one_sided_path = "memory copy".to_owned();
        return Ok(Joined { contexts, control: None, one_sided_path, processors: None });
    };
    let Membership { task, num_tasks, contexts, segment, table, control } = membership;
    control.joined();
    assert!(table.is_none(), "no network yet");
    let attached = ShmAdapter::attach_contexts(segment, task, num_tasks, contexts, settings.get)?;
    let one_sided_path = attached[0].one_sided_path();
    let contexts = attached.into_iter().map(AnyAdapter::from).collect();
    config::place().into_iter().for_each(home::settle);
    Ok(Joined {
        contexts,
        control: Some(control),
        one_sided_path,
        processors: config::processors(),
    })
}

/// Makes a job whose ranks are threads of this process. Returns the `contexts` adapters of each task, in order.
///
/// # Errors
/// [`AdapterError::TaskCount`]; [`AdapterError::ContextCount`]; [`AdapterError::System`] if there is not enough memory.
pub fn in_process(num_tasks: usize, contexts: usize) -> Result<Vec<Vec<AnyAdapter>>, AdapterError> {
    let tasks = threads::job_with_contexts(num_tasks, contexts)?.into_iter();
    Ok(tasks.map(|contexts| contexts.into_iter().map(AnyAdapter::from).collect()).collect())
}

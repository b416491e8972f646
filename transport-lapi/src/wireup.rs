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
    /// The connection.
    pub adapter: Native,
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

/// Joins the job that the environment describes, or makes a job of one task. Blocks until every
/// task of the job has come here.
///
/// # Errors
/// [`WireupError`]; nothing is left behind.
pub fn connect(settings: &Settings) -> Result<Joined, WireupError> {
    match bootstrap::detect(settings)? {
        Start::Singleton => {
            let adapter = threads::job(1)?.remove(0).into_any();
            let (get_report, tuning) = ("memory copy".to_owned(), Tuning::default());
            Ok(Joined { adapter, control: None, get_report, processors: None, tuning })
        }
        Start::Launched(Membership { task, num_tasks, segment, control, tuning, .. }) => {
            control.joined();
            let shm = ShmAdapter::attach(segment, task, num_tasks, settings.get)?;
            let get_report = shm.get_report();
            let (adapter, control) = (shm.into_any(), Some(control));
            let processors = config::processors();
            Ok(Joined { adapter, control, get_report, processors, tuning })
        }
    }
}

/// The tasks of a job whose ranks are threads of this process, in order.
///
/// # Errors
/// [`AdapterError::TaskCount`]; [`AdapterError::System`] when there is no memory.
pub fn in_process(num_tasks: usize) -> Result<Vec<Native>, AdapterError> {
    Ok(threads::job(num_tasks)?.into_iter().map(LocalAdapter::into_any).collect())
}

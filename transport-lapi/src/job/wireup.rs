//! Set-up of connections: makes a connected adapter from the environment.
//!
//! A process that `mpjrun` or a process manager started attaches to the segment of its host. A process that was started
//! alone is a job of one task in memory of its own. Threads of one process share a segment there.

use std::sync::Arc;
use std::time::Duration;

use crate::adapter::{Adapter, AdapterError, Endpoint, TaskId};
use crate::adapters::hosts::table::JobTable;
use crate::adapters::hosts::table::SECRET_BYTES;
use crate::adapters::hosts::{self, HostsAdapter, TableLosses};
use crate::adapters::ofi::{Fabric, OfiAdapter, OfiEndpoint, Peers};
use crate::adapters::shm::ShmAdapter;
use crate::adapters::threads;
use crate::job::bootstrap::control::Endpoints;
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
    let attach =
        |place, here| ShmAdapter::attach_contexts(segment, place, here, contexts, settings.get);
    let (contexts, one_sided_path) = match table {
        None => {
            let attached = attach(task, num_tasks)?;
            let one_sided_path = attached[0].one_sided_path();
            (attached.into_iter().map(AnyAdapter::from).collect(), one_sided_path)
        }
        Some(table) => {
            let table = Arc::new(JobTable::open(table)?);
            let (place, here) = check_place(&table, task, num_tasks, contexts)?;
            let fabric = Fabric::open(&settings.fabric)?;
            let endpoints = (0..contexts).map(|_| fabric.endpoint());
            let endpoints = endpoints.collect::<Result<Vec<_>, _>>()?;
            let addresses = endpoints.iter().map(|end| end.address().to_vec()).collect();
            control.endpoints(Endpoints { network: fabric.network(), addresses })?;
            let attached = attach(place, here)
                .map_err(|error| hosts::globally(&table.local_tasks(), error))?;
            let local = attached[0].one_sided_path();
            let others = match fabric.caps().gets {
                Some(_) => "the network",
                None => "active messages",
            };
            let one_sided_path = format!("{local} on this host, {others} to others");
            table.wait_for_addresses()?;
            let directory = Directory { table, control: control.clone(), way: fabric.way() };
            let limit = settings.connect_timeout;
            (over_network(task, attached, endpoints, directory, limit)?, one_sided_path)
        }
    };
    config::place().into_iter().for_each(home::settle);
    let processors = config::processors();
    Ok(Joined { contexts, control: Some(control), one_sided_path, processors })
}

/// The place of `task` on this host, and the number of tasks here.
fn check_place(
    table: &JobTable,
    task: TaskId,
    num_tasks: usize,
    contexts: usize,
) -> Result<(TaskId, usize), AdapterError> {
    let (all, each) = (table.num_tasks(), table.contexts());
    let bad = || AdapterError::BadSegment {
        what: format!(
            "its job table is for {all} ranks with {each} contexts each, of which rank {task} of \
             {num_tasks} with {contexts} is none on this host"
        ),
    };
    if (all, each) != (num_tasks, contexts) {
        return Err(bad());
    }
    let place = table.local_place(task).ok_or_else(bad)?;
    Ok((place, table.local_tasks().len()))
}

/// Joins the adapters of `task` on its host with endpoints of a network.
fn over_network(
    task: TaskId,
    local: Vec<ShmAdapter>,
    endpoints: Vec<OfiEndpoint>,
    directory: Directory,
    limit: Duration,
) -> Result<Vec<AnyAdapter>, AdapterError> {
    let (table, directory) = (Arc::clone(&directory.table), Arc::new(directory));
    let joined =
        local.into_iter().zip(endpoints).enumerate().map(|(context, (local, endpoint))| {
            let me = Endpoint { task, num_tasks: table.num_tasks(), context };
            let (directory, bell) = (Arc::clone(&directory) as _, local.parts().bell);
            let losses = Arc::new(TableLosses(Arc::clone(&table)));
            let network = OfiAdapter::new(endpoint, me, directory, bell, losses, limit)?;
            Ok(HostsAdapter::new(local, network, Arc::clone(&table))?.into())
        });
    joined.collect()
}

/// What the adapters of the network know of other tasks, and whom they tell of those that they cannot reach.
struct Directory {
    table: Arc<JobTable>,
    control: Control,
    /// The provider and its domain.
    way: String,
}

impl Peers for Directory {
    fn address(&self, task: TaskId, context: usize) -> Option<Vec<u8>> {
        self.table.address(task, context)
    }

    fn secret(&self) -> [u8; SECRET_BYTES] {
        self.table.secret()
    }

    fn unreachable(&self, task: TaskId, why: &str) {
        let host = self.table.host_name(self.table.host_of(task));
        self.control.unreachable(&format!(
            "cannot reach rank {task} on host {host} by {} {why}; let firewalls between these hosts pass the ports of \
             ranks, or name an interface that reaches the other host by MPJ_FABRIC=provider:domain",
            self.way
        ));
    }
}

/// Makes a job whose ranks are threads of this process. Returns the `contexts` adapters of each task, in order.
///
/// # Errors
/// [`AdapterError::HostTaskCount`]; [`AdapterError::ContextCount`]; [`AdapterError::System`] if there is not enough memory.
pub fn in_process(num_tasks: usize, contexts: usize) -> Result<Vec<Vec<AnyAdapter>>, AdapterError> {
    let tasks = threads::job_with_contexts(num_tasks, contexts)?.into_iter();
    Ok(tasks.map(|contexts| contexts.into_iter().map(AnyAdapter::from).collect()).collect())
}

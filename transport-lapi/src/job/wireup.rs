//! Set-up of connections: makes a connected adapter from the environment.
//!
//! A process that `mpjrun` or a process manager started attaches to the segment of its host. A process that was started
//! alone is a job of one task in memory of its own. Threads of one process share a segment there. The clients of a
//! process share its place in the job, and take contexts from it one after the other.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use crate::adapter::{Adapter, AdapterError, Endpoint, TaskId};
use crate::adapters::hosts::table::JobTable;
use crate::adapters::hosts::table::SECRET_BYTES;
use crate::adapters::hosts::{self, HostsAdapter, TableLosses};
use crate::adapters::ofi::{Fabric, OfiAdapter, OfiEndpoint, Peers};
use crate::adapters::shm::{self, Member, ShmAdapter, World};
use crate::adapters::threads;
use crate::job::bootstrap::control::Endpoints;
use crate::job::bootstrap::{self, BootstrapError, Control, Membership};
use crate::job::config::{self, ConfigError, Settings};
use crate::platform::fork::ProcessMark;
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
    /// This client has joined before.
    #[error("{client} has joined its job already in this process: a client joins once")]
    Joined {
        /// The client.
        client: String,
    },
    /// A client before could not join, so that the ranks may not agree on the contexts of later ones.
    #[error("{client} cannot join, since {failed} could not")]
    After {
        /// The client.
        client: String,
        /// The one before.
        failed: String,
    },
    /// The client knows no other worlds, and the process was spawned.
    #[error("{client} cannot join in a process that was spawned: only MPI can")]
    Spawned {
        /// The client.
        client: String,
    },
    /// The clients of this process leave their job, or have left it.
    #[error(
        "{client} cannot join, since this process has left its job: a client joins before the last one of those before \
         it leaves"
    )]
    Left {
        /// The client.
        client: String,
    },
}

/// Who joins: a name, and the number of contexts that it asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Client<'a> {
    name: &'a str,
    contexts: Option<usize>,
    spans_worlds: bool,
}

impl<'a> Client<'a> {
    /// The longest name, in bytes.
    pub const MAX_NAME: usize = shm::MAX_CLIENT_NAME;

    /// Names a client that has one context.
    ///
    /// # Panics
    /// If the name is empty or longer than [`Client::MAX_NAME`].
    pub const fn new(name: &'a str) -> Self {
        assert!(!name.is_empty() && name.len() <= Self::MAX_NAME, "a client has a short name");
        Self { name, contexts: Some(1), spans_worlds: false }
    }

    /// The same client with so many contexts.
    #[must_use]
    pub const fn with_contexts(self, contexts: usize) -> Self {
        Self { contexts: Some(contexts), ..self }
    }

    /// The same client with as many contexts as the user of the job asks for: `mpjrun --contexts`, or `MPJ_CONTEXTS` under
    /// a process manager.
    #[must_use]
    pub const fn with_contexts_of_job(self) -> Self {
        Self { contexts: None, ..self }
    }

    /// The same client for tasks that communicate with those of other worlds, too: then [`Joined::world`] are some of the
    /// tasks that its adapters know. Other clients know the tasks of their own world, and cannot be spawned.
    #[must_use]
    pub const fn spanning_worlds(self) -> Self {
        Self { spans_worlds: true, ..self }
    }

    fn of_job(self, contexts: usize, settings: &Settings) -> shm::Client<'a> {
        let asks = settings.check == Some(true);
        let Self { name, spans_worlds, .. } = self;
        shm::Client { name, contexts: self.contexts.unwrap_or(contexts), asks, spans_worlds }
    }
}

/// A client that is connected to its job.
pub struct Joined {
    /// The connections: one for each of the client's contexts, in order.
    pub contexts: Vec<AnyAdapter>,
    /// The client's connection to the launcher or the process manager, if one has started this process.
    pub control: Option<Control>,
    /// Describes how gets are done, for reports.
    pub one_sided_path: String,
    /// Number of processors that the tasks of the job share, if the launcher has set it.
    pub processors: Option<usize>,
    /// Whether this client asks for checks of mistakes between tasks on all of them ([`Settings::check`]).
    pub all_check: bool,
    /// The tasks that were started together with this one.
    pub world: Range<TaskId>,
    /// The task that has spawned them, if one has.
    pub parent: Option<TaskId>,
}

/// The place in its job that this process has taken for its clients.
static PLACE: Mutex<Place> = Mutex::new(Place::NotTaken);

enum Place {
    NotTaken,
    Taken(Box<Process>),
    /// All clients leave the job, or have left it.
    Left,
}

/// What the clients of a process that was launched share.
struct Process {
    member: Member,
    /// The number of contexts that the user of the job asks for.
    contexts: usize,
    /// The names of the clients.
    clients: Vec<String>,
    /// How many contexts the clients have.
    in_use: usize,
    control: Control,
    one_sided_path: String,
    network: Option<Network>,
    mark: ProcessMark,
    /// The client that could not join, if there was one: then the ranks may not agree on which contexts are free.
    failed: Option<String>,
}

/// How a process reaches other hosts.
struct Network {
    table: Arc<JobTable>,
    fabric: Arc<Fabric>,
}

/// Joins the job that the environment describes as `client`, and takes the client's contexts. Blocks until every task of
/// the job has done so. A process that was started alone makes a job of one task for each client.
///
/// Several clients of one process share its place in the job, each with contexts of its own, in which it meets the same
/// client of other tasks. All tasks join with the same clients in the same order, each before all those before it have
/// left. A rank has as many contexts as `mpjrun --contexts` says, and [`SPARE_CONTEXTS`](crate::adapters::SPARE_CONTEXTS) more.
///
/// # Errors
/// [`WireupError`]; if this is the first client, nothing is left to clean up.
pub fn connect(settings: &Settings, client: Client<'_>) -> Result<Joined, WireupError> {
    let mut place = PLACE.lock();
    match &mut *place {
        Place::Taken(process) => process.join(settings, client),
        Place::Left => Err(WireupError::Left { client: client.name.to_owned() }),
        Place::NotTaken => {
            let Some(membership) = bootstrap::detect(settings)? else {
                let contexts = in_process(1, client.contexts.unwrap_or(1))?.remove(0);
                let one_sided_path = "memory copy".to_owned();
                let all_check = settings.check == Some(true);
                return Ok(Joined {
                    contexts,
                    control: None,
                    one_sided_path,
                    processors: None,
                    all_check,
                    world: 0..1,
                    parent: None,
                });
            };
            let (process, joined) = Process::begin(membership, settings, client)?;
            *place = Place::Taken(Box::new(process));
            Ok(joined)
        }
    }
}

/// Gives up this process's place in the job: all its clients leave, so that no further one can join.
pub(crate) fn all_leave() {
    let mut place = PLACE.lock();
    if matches!(*place, Place::Taken(_)) {
        *place = Place::Left;
    }
}

impl Process {
    /// Takes the place of this process, for its first client.
    fn begin(
        membership: Membership,
        settings: &Settings,
        client: Client<'_>,
    ) -> Result<(Self, Joined), WireupError> {
        let Membership { world, contexts, segment, table, control } = membership;
        control.joined();
        let client = client.of_job(contexts, settings);
        check_world(&world, client)?;
        let control = control.with_contexts(0..client.contexts);
        let (task, num_tasks) = (world.task, world.universe);
        let attach = |world| Member::attach(segment, world, contexts, settings.get, client);
        let (member, adapters, network) = match table {
            None => {
                let (member, local) = attach(world)?;
                (member, local.into_iter().map(AnyAdapter::from).collect(), None)
            }
            Some(table) => {
                let table = Arc::new(JobTable::open(table)?);
                let (place, here) = check_place(&table, task, num_tasks, contexts)?;
                let network = Network { table, fabric: Fabric::open(&settings.fabric)? };
                let endpoints = network.announce(&control, client, 0)?;
                let here = World::whole(place, here);
                let (member, local) = attach(here).map_err(|error| network.globally(error))?;
                let adapters = network.reach(task, (local, endpoints), &control, settings)?;
                (member, adapters, Some(network))
            }
        };
        config::place().into_iter().for_each(home::settle);
        let process = Self {
            one_sided_path: one_sided_path(&member, network.as_ref()),
            member,
            contexts,
            clients: vec![client.name.to_owned()],
            in_use: client.contexts,
            control: control.clone(),
            network,
            mark: ProcessMark::new(),
            failed: None,
        };
        let joined = process.joined(0, adapters, control);
        Ok((process, joined))
    }

    /// Takes contexts for a further client.
    fn join(&mut self, settings: &Settings, client: Client<'_>) -> Result<Joined, WireupError> {
        let name = client.name.to_owned();
        if self.mark.is_fork() {
            return Err(BootstrapError::AlreadyTaken.into());
        }
        if self.clients.contains(&name) {
            return Err(WireupError::Joined { client: name });
        }
        if let Some(failed) = self.failed.clone() {
            return Err(WireupError::After { client: name, failed });
        }
        let client = client.of_job(self.contexts, settings);
        check_world(self.member.world(), client)?;
        let first = self.in_use;
        self.member.check_room(first, client)?;
        let left = || WireupError::Left { client: name.clone() };
        let control = self.control.next_client().ok_or_else(left)?;
        let control = control.with_contexts(first..first + client.contexts);
        let adapters = self.take(&control, client, settings).inspect_err(|_| {
            control.withdraw();
            self.failed = Some(name.clone());
        })?;
        self.clients.push(name);
        self.in_use += client.contexts;
        Ok(self.joined(first, adapters, control))
    }

    /// Meets the other tasks in the contexts of a further client.
    fn take(
        &self,
        control: &Control,
        client: shm::Client<'_>,
        settings: &Settings,
    ) -> Result<Vec<AnyAdapter>, WireupError> {
        let Some(network) = &self.network else {
            let local = self.member.join(self.in_use, client)?;
            return Ok(local.into_iter().map(AnyAdapter::from).collect());
        };
        let local = self.member.join(self.in_use, client);
        let local = local.map_err(|error| network.globally(error))?;
        let endpoints = network.announce(control, client, self.in_use)?;
        network.reach(control.task(), (local, endpoints), control, settings)
    }

    /// What a client gets, whose first context is `first`.
    fn joined(&self, first: usize, contexts: Vec<AnyAdapter>, control: Control) -> Joined {
        let (one_sided_path, processors) = (self.one_sided_path.clone(), config::processors());
        let of_hosts = |network: &Network| all_ask(&network.table, first);
        let all_check = self.member.all_check(first) && self.network.as_ref().is_none_or(of_hosts);
        let World { tasks, parent, .. } = self.member.world();
        // On several hosts there is one world.
        let all = |network: &Network| 0..network.table.num_tasks() as TaskId;
        let world = self.network.as_ref().map_or(tasks.clone(), all);
        let (control, parent) = (Some(control), *parent);
        Joined { contexts, control, one_sided_path, processors, all_check, world, parent }
    }
}

/// Describes how gets are done.
fn one_sided_path(member: &Member, network: Option<&Network>) -> String {
    let local = member.one_sided_path();
    let Some(Network { fabric, .. }) = network else { return local };
    let others = match fabric.caps().gets {
        Some(_) => "the network",
        None => "active messages",
    };
    format!("{local} on this host, {others} to others")
}

impl Network {
    /// Opens the endpoints of a client, whose first context is `first`, and tells the other hosts where they are.
    fn announce(
        &self,
        control: &Control,
        client: shm::Client<'_>,
        first: usize,
    ) -> Result<Vec<OfiEndpoint>, WireupError> {
        let endpoints = (0..client.contexts).map(|_| self.fabric.endpoint());
        let endpoints = endpoints.collect::<Result<Vec<_>, _>>()?;
        let published = |end: &OfiEndpoint| [end.address(), &[u8::from(client.asks)]].concat();
        let addresses = endpoints.iter().map(published).collect();
        let (network, client) = (self.fabric.network(), client.name.to_owned());
        control.endpoints(Endpoints { network, client, first: first as u32, addresses })?;
        Ok(endpoints)
    }

    /// Waits until the endpoints of all tasks are known, and joins those of a client with its adapters on this host.
    fn reach(
        &self,
        task: TaskId,
        (local, endpoints): (Vec<ShmAdapter>, Vec<OfiEndpoint>),
        control: &Control,
        settings: &Settings,
    ) -> Result<Vec<AnyAdapter>, WireupError> {
        let table = Arc::clone(&self.table);
        let last = local.iter().map(|adapter| adapter.endpoint().context).max();
        table.wait_for_addresses(last.map_or(0, |last| last + 1))?;
        let directory = Directory { table, control: control.clone(), way: self.fabric.way() };
        Ok(over_network(task, local, endpoints, directory, settings.connect_timeout)?)
    }

    /// An error of the adapter of this host, with the numbers of the job.
    fn globally(&self, error: AdapterError) -> AdapterError {
        hosts::globally(&self.table.local_tasks(), error)
    }
}

/// Refuses clients of a spawned process that know only their own world.
fn check_world(world: &World, client: shm::Client<'_>) -> Result<(), WireupError> {
    match world.parent {
        Some(_) if !client.spans_worlds => {
            Err(WireupError::Spawned { client: client.name.to_owned() })
        }
        _ => Ok(()),
    }
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
    let joined = local.into_iter().zip(endpoints).map(|(local, endpoint)| {
        let me = Endpoint { task, num_tasks: table.num_tasks(), ..local.endpoint() };
        let (directory, bell) = (Arc::clone(&directory) as _, local.parts().bell);
        let losses = Arc::new(TableLosses(Arc::clone(&table)));
        let network = OfiAdapter::new(endpoint, me, directory, bell, losses, limit)?;
        Ok(HostsAdapter::new(local, network, Arc::clone(&table))?.into())
    });
    joined.collect()
}

/// Whether all tasks ask for checks: they have published that behind the address of this context.
fn all_ask(table: &JobTable, context: usize) -> bool {
    let asks = |task| table.address(task, context)?.pop();
    (0..table.num_tasks()).all(|task| asks(task as TaskId) == Some(1))
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
        let mut published = self.table.address(task, context)?;
        published.pop();
        Some(published)
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

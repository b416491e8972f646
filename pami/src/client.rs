//! Clients: a name by which the tasks of a job find each other, and the contexts behind it.

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use transport_lapi::bootstrap::control::{Control, MessageCounts, Vocabulary};
use transport_lapi::config::Settings;
use transport_lapi::wireup::{self, Joined, WireupError};
use transport_lapi::{AnyAdapter, Options, TaskId};

use crate::PACKETS;
use crate::collective;
use crate::context::{Context, Core};
use crate::error::Error;
use crate::geometry::{Geometries, Geometry};
use crate::packet::MAX_CONTEXTS;
use crate::posted::Posted;
use crate::state::{State, arrive, arrive_short, on_loss};
use crate::types::Endpoint;

/// An instance of PAMI with a name of its own, isolated from all others (pami_client_t). Other clients, and other users
/// of the transport such as `mpj` and `am2`, may exist beside it in the same process and job.
pub struct Client {
    name: String,
    world: Geometry,
    cores: Vec<Arc<Core>>,
    /// How many contexts have been created.
    created: usize,
    is_destroyed: bool,
    /// The connection to the launcher, which lasts as long as the task is part of the job.
    control: Option<Control>,
}

impl Drop for Client {
    fn drop(&mut self) {
        let is_fork = self.cores.iter().any(|core| core.context.is_fork());
        if !self.is_destroyed && !std::thread::panicking() && !is_fork {
            self.control.iter().for_each(Control::withdraw);
        }
    }
}

impl Client {
    /// Joins the job that the environment describes, or makes a job of this task alone (PAMI_Client_create). Blocks until
    /// the client was created on all tasks, with the same name and number of contexts, and in the same order among the
    /// clients of a process.
    ///
    /// # Errors
    /// [`Error::Name`], [`Error::Join`].
    pub fn create(name: &str, contexts: usize) -> Result<Self, Error> {
        let max = wireup::Client::MAX_NAME;
        if name.is_empty() || name.len() > max {
            return Err(Error::Name { name: name.to_owned(), max });
        }
        let settings = Settings::from_env().map_err(|cause| join(name, cause.into()))?;
        let client = wireup::Client::new(name).with_contexts(contexts.max(1));
        let joined = wireup::connect(&settings, client);
        let Joined { contexts, control, processors, .. } =
            joined.map_err(|cause| join(name, cause))?;
        let Settings { wait, spin, .. } = settings;
        let options = Options { processors, wait, spin, ..Options::default() };
        control.iter().for_each(|launcher| launcher.vocabulary(Vocabulary::of_client(name)));
        let mut client = Self::init(name, contexts, &options)?;
        client.control = control;
        Ok(client)
    }

    /// Makes a job whose tasks are threads of this process. Returns the client of each task, in the order of the tasks.
    ///
    /// # Errors
    /// [`Error::Join`] for numbers that are not possible.
    pub fn in_process(name: &str, num_tasks: usize, contexts: usize) -> Result<Vec<Self>, Error> {
        let tasks = wireup::in_process(num_tasks, contexts).map_err(WireupError::from);
        let tasks = tasks.map_err(|cause| join(name, cause))?;
        tasks.into_iter().map(|adapters| Self::init(name, adapters, &Options::default())).collect()
    }

    /// Makes the client of a task over adapters that are connected to their peers, one for each context.
    ///
    /// # Panics
    /// Without an adapter.
    ///
    /// # Errors
    /// [`Error::Transport`] in a fork of the process that made an adapter.
    pub fn init(name: &str, adapters: Vec<AnyAdapter>, options: &Options) -> Result<Self, Error> {
        assert!(!adapters.is_empty(), "a client has a context");
        debug_assert!(adapters.len() <= MAX_CONTEXTS, "a word has room for its offset");
        let geometries = Arc::<Geometries>::default();
        let posted: Arc<[_]> = adapters.iter().map(|_| Posted::default()).collect();
        let core = |(offset, adapter): (usize, AnyAdapter)| {
            let state = collective::new_state(adapter.endpoint().task);
            let context = transport_lapi::Context::init(adapter, state, options.clone());
            let (posted, geometries) = (Arc::clone(&posted), Arc::clone(&geometries));
            let core = Core { context, offset, posted, geometries };
            let set = core.context.session().and_then(|mut session| {
                session.on_loss(on_loss);
                session.addr_set(PACKETS.into(), arrive)?;
                session.addr_set_short(PACKETS.into(), arrive_short)
            });
            set.map_err(|cause| core.failed(cause))?;
            Ok(Arc::new(core))
        };
        let cores: Vec<_> =
            adapters.into_iter().enumerate().map(core).collect::<Result<_, Error>>()?;
        let context = &cores[0].context;
        let all = (0..context.num_tasks() as TaskId).map(|task| Endpoint::new(task, 0)).collect();
        let world = Geometry::new((0, 0), all, |task| context.host_of(task))?;
        geometries.insert(&world)?;
        let name = name.to_owned();
        Ok(Self { name, world, cores, created: 0, is_destroyed: false, control: None })
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the number of this task (PAMI_CLIENT_TASK_ID).
    pub fn task(&self) -> TaskId {
        self.cores[0].context.task()
    }

    /// Returns the number of tasks of the job (PAMI_CLIENT_NUM_TASKS).
    pub fn num_tasks(&self) -> usize {
        self.cores[0].context.num_tasks()
    }

    /// Returns how many contexts it has, created or not, on each task (PAMI_CLIENT_NUM_CONTEXTS).
    pub fn num_contexts(&self) -> usize {
        self.cores.len()
    }

    /// Returns the geometry of the first contexts of all tasks (PAMI_Geometry_world).
    pub fn world(&self) -> &Geometry {
        &self.world
    }

    /// Creates the next `count` contexts of the client (PAMI_Context_createv). Does not communicate.
    ///
    /// # Errors
    /// [`Error::TooManyContexts`]; [`Error::Destroyed`].
    pub fn create_contexts(&mut self, count: usize) -> Result<Vec<Context>, Error> {
        self.check()?;
        let (task, all, left) = (self.task(), self.cores.len(), self.cores.len() - self.created);
        if count > left {
            return Err(Error::TooManyContexts { task, asked: count, all, left });
        }
        let new = &self.cores[self.created..self.created + count];
        self.created += count;
        let open = |core: &Arc<Core>| {
            core.posted[core.offset].set_open(true);
            Context(Arc::clone(core))
        };
        Ok(new.iter().map(open).collect())
    }

    /// Returns the endpoint of a context of a task (PAMI_Endpoint_create).
    ///
    /// # Errors
    /// [`Error::NoEndpoint`].
    pub fn endpoint(&self, task: TaskId, offset: usize) -> Result<Endpoint, Error> {
        let endpoint = Endpoint::any(task, offset);
        self.cores[0].check_endpoint(endpoint).map(|()| endpoint)
    }

    /// Iterates over the tasks on this host (PAMI_CLIENT_LOCAL_TASKS, PAMI_CLIENT_NUM_LOCAL_TASKS).
    pub fn local_tasks(&self) -> impl Iterator<Item = TaskId> + '_ {
        let context = &self.cores[0].context;
        let here = context.host_of(self.task());
        (0..self.num_tasks() as TaskId).filter(move |task| context.host_of(*task) == here)
    }

    /// Returns nanoseconds since some moment (PAMI_Wtimebase), of which PAMI_CLIENT_WTIMEBASE_MHZ is 1000.
    pub fn wtimebase(&self) -> u64 {
        START.get_or_init(Instant::now).elapsed().as_nanos() as u64
    }

    /// Returns seconds since that moment (PAMI_Wtime).
    pub fn wtime(&self) -> f64 {
        self.wtimebase() as f64 / 1e9
    }

    /// Ends the client, when its contexts were dropped (PAMI_Client_destroy). Blocks until all tasks do so, so what was
    /// sent arrives; but no dispatch function and no callback is called any more. A client that is dropped without this
    /// does not wait for the others.
    ///
    /// # Errors
    /// [`Error::ContextsLeft`], after which the client is as before; [`Error::Destroyed`] the second time;
    /// [`Error::Lost`], [`Error::Transport`].
    pub fn destroy(&mut self) -> Result<(), Error> {
        self.check()?;
        let left = self.cores.iter().filter(|core| Arc::strong_count(core) > 1).count();
        if left > 0 {
            return Err(Error::ContextsLeft { task: self.task(), left });
        }
        if let Some(control) = &self.control {
            self.chosen().iter().for_each(|(name, times)| control.chosen(name, *times));
            control.leaving(MessageCounts::default());
        }
        // All at the same time: others may still need any of them.
        std::thread::scope(|scope| {
            let end = |core: &Arc<Core>| core.context.gfence().map_err(|cause| core.failed(cause));
            let (first, rest) = self.cores.split_first().expect("a client has a context");
            let rest: Vec<_> = rest.iter().map(|core| scope.spawn(move || end(core))).collect();
            let threads = rest.into_iter().map(|one| one.join().expect("a fence does not panic"));
            std::iter::once(end(first)).chain(threads).collect::<Result<(), _>>()
        })?;
        self.is_destroyed = true;
        self.control.iter().for_each(Control::finished);
        Ok(())
    }

    /// How often which algorithm was chosen, for `mpjrun --stats`.
    fn chosen(&self) -> Vec<(String, u64)> {
        let collectives = self.cores[0].geometries.chosen().into_iter();
        let collectives = collectives.map(|(algorithm, times)| (algorithm.to_string(), times));
        let mut chosen: Vec<_> = collectives.collect();
        for session in self.cores.iter().filter_map(|core| core.context.session().ok()) {
            let State { sends, puts, gets, .. } = &session.state;
            let transfers = puts.counts("Put").chain(gets.counts("Get"));
            chosen.extend(sends.counts("Send").chain(transfers));
        }
        chosen
    }

    fn check(&self) -> Result<(), Error> {
        match self.is_destroyed {
            false => Ok(()),
            true => Err(Error::Destroyed { task: self.task() }),
        }
    }
}

fn join(name: &str, cause: WireupError) -> Error {
    Error::Join { name: name.to_owned(), source: cause.into() }
}

/// The moment from which times count.
static START: OnceLock<Instant> = OnceLock::new();

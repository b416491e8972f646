//! Connection set-up: from what the environment says to a connected adapter.
//!
//! A process that `mpjrun` started attaches to the job's segment; one that was started alone is a
//! job of one task on the heap; threads of one process share a heap segment.

#![allow(unsafe_code, reason = "an adapter is made of two others")]

use std::sync::Arc;

use crate::adapter::{
    Adapter, AdapterError, Advance, Caps, Doorbell, Post, SHORT_HEAD, Sink, TaskId,
};
use crate::adapters::port::Port;
use crate::adapters::shm::ShmAdapter;
use crate::adapters::threads::{self, ThreadsAdapter};
use crate::bootstrap::{self, BootstrapError, Control, Membership, Start};
use crate::config::{self, ConfigError, Settings, Tuning};
use crate::region::{RecvPart, RecvRegion, RemoteRegion, SendRegion};

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
            let adapter = Native::Threads(threads::job(1)?.remove(0));
            let (get_report, tuning) = ("memory copy".to_owned(), Tuning::default());
            Ok(Joined { adapter, control: None, get_report, processors: None, tuning })
        }
        Start::Launched(Membership { task, num_tasks, segment, control, tuning, .. }) => {
            control.joined();
            let shm = ShmAdapter::attach(segment, task, num_tasks, settings.get)?;
            let get_report = shm.get_report();
            let (adapter, control) = (Native::Shm(shm), Some(control));
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
    Ok(threads::job(num_tasks)?.into_iter().map(Native::Threads).collect())
}

/// The adapter that a job on this host uses: one choice per call, no table of pointers.
pub enum Native {
    /// Ranks are threads.
    Threads(ThreadsAdapter),
    /// Ranks are processes.
    Shm(ShmAdapter),
}

macro_rules! each {
    ($self:ident, $adapter:ident => $call:expr) => {
        match $self {
            Native::Threads($adapter) => $call,
            Native::Shm($adapter) => $call,
        }
    };
}

impl Native {
    /// What both kinds have in common, so that what is on the path of every message is there once.
    #[inline(always)]
    fn port(&mut self) -> &mut Port {
        each!(self, adapter => adapter.port())
    }
}

// SAFETY: the adapter inside keeps the contract; every call is passed on to it as it is.
unsafe impl Adapter for Native {
    #[inline]
    fn caps(&self) -> Caps {
        each!(self, adapter => adapter.caps())
    }

    #[inline]
    fn task(&self) -> TaskId {
        each!(self, adapter => adapter.task())
    }

    #[inline]
    fn num_tasks(&self) -> usize {
        each!(self, adapter => adapter.num_tasks())
    }

    #[inline]
    fn try_send(&mut self, target: TaskId, head: &[u8], body: &[u8]) -> Result<Post, AdapterError> {
        each!(self, adapter => adapter.try_send(target, head, body))
    }

    #[inline(always)]
    fn try_send_short(&mut self, target: TaskId, head: [u8; SHORT_HEAD], body: &[u8]) -> bool {
        self.port().try_send_short(target, head, body)
    }

    #[inline(always)]
    fn poll<K: Sink>(&mut self, budget: usize, sink: &mut K) -> Result<usize, AdapterError> {
        self.port().poll(budget, sink)
    }

    fn is_far(&mut self, target: TaskId) -> bool {
        self.port().is_far(target)
    }

    fn expose(&mut self, key: u64, region: SendRegion) {
        each!(self, adapter => adapter.expose(key, region));
    }

    fn conceal(&mut self, key: u64) {
        each!(self, adapter => adapter.conceal(key));
    }

    fn withdraw(&mut self) {
        each!(self, adapter => adapter.withdraw());
    }

    fn get(
        &mut self,
        target: TaskId,
        remote: RemoteRegion,
        offset: u64,
        into: RecvPart<'_>,
    ) -> Result<(), AdapterError> {
        each!(self, adapter => adapter.get(target, remote, offset, into))
    }

    fn share(
        &mut self,
        target: TaskId,
        remote: RemoteRegion,
        offset: u64,
        into: RecvRegion,
    ) -> Result<u32, RecvRegion> {
        each!(self, adapter => adapter.share(target, remote, offset, into))
    }

    fn advance(&mut self, target: TaskId) -> Result<Advance, AdapterError> {
        each!(self, adapter => adapter.advance(target))
    }

    fn unshare(&mut self, target: TaskId) -> bool {
        each!(self, adapter => adapter.unshare(target))
    }

    fn help(&mut self, origin: TaskId, number: u32, from: SendRegion) -> bool {
        each!(self, adapter => adapter.help(origin, number, from))
    }

    fn doorbell(&self) -> Arc<dyn Doorbell> {
        each!(self, adapter => adapter.doorbell())
    }

    #[inline]
    fn lost(&self) -> Option<TaskId> {
        each!(self, adapter => adapter.lost())
    }
}

//! Communicators: a group of ranks, and a context that keeps their messages apart from all others (MPI-4.1 chapter
//! 7). What is told here of ranks is told in those of the communicator; the device knows those of the world.
//!
//! - `create.rs`, `inter.rs`, `cartesian.rs`: how they are made, with another group or with a grid.
//! - `attribute.rs`: what users attach to them.

use std::sync::Arc;

use mpicore::{ErrorHandler, Host, Relation};
use mpjdev::wireup::Native;
use mpjdev::{Device, Stats};

use crate::error::Error;
use crate::group::{Group, no_rank};
use crate::rank_device::RankDevice;
use crate::selector::Source;
use crate::status::Status;

mod attribute;
mod between;
mod cartesian;
mod create;
mod inter;
#[cfg(test)]
mod tests;

pub use attribute::Key;
pub use between::Root;
pub use cartesian::{CartesianCommunicator, Shift, dims_create};
pub use create::PendingCommunicator;
pub use inter::{InterCommunicator, OtherGroup};

/// Ranks that talk to each other in a context of their own (MPI-4 chapter 7). All methods can be
/// called by several threads at once; collective ones on one communicator in the same order on all its ranks.
///
/// A copy is the same communicator. When all are dropped, it is gone on this rank, which waits for no other.
#[derive(Clone)]
pub struct Communicator {
    pub(crate) device: Arc<RankDevice>,
    /// Context of point-to-point messages.
    pub(crate) context: u32,
    /// Whether ranks are those of the job.
    pub(crate) is_whole: bool,
    pub(crate) core: mpicore::Communicator,
}

impl Communicator {
    /// The communicators of all ranks: one for each context of theirs, in order.
    pub(crate) fn of_world(
        devices: Vec<Device<Native>>,
        get_report: &str,
    ) -> Result<Vec<Self>, Error> {
        let rank_devices = RankDevice::of_world(devices, get_report).map(Arc::new);
        let world = |device: Arc<RankDevice>| {
            let host: Host = device.clone();
            Ok(Self::new(device, mpicore::Communicator::world(host)?))
        };
        rank_devices.map(world).collect()
    }

    fn new(device: Arc<RankDevice>, core: mpicore::Communicator) -> Self {
        let is_whole = core.peers().iter().eq(0..device.size() as u32);
        Self { device, context: core.context(), is_whole, core }
    }

    /// The communicator of a handle of the core, which callbacks get.
    fn of_core(core: &mpicore::Communicator) -> Self {
        let host = core.host().clone().into_any();
        let device = host.downcast().expect("the hosts of this face are its devices");
        Self::new(device, core.clone())
    }

    /// This rank alone: MPI_COMM_SELF.
    pub(crate) fn own(&self) -> Result<Self, Error> {
        self.made(mpicore::Communicator::own(self.core.host().clone()))
    }

    /// Deletes all attributes, the last one first.
    pub(crate) fn delete_attributes(&self) -> Result<(), Error> {
        self.answer(self.core.delete_attributes())
    }

    /// Passes on what a call of the user on this communicator answers; the error handler gets an error before.
    #[inline(always)]
    pub(crate) fn answer<T>(&self, outcome: Result<T, impl Into<Error>>) -> Result<T, Error> {
        let answer = self.device.answer(outcome);
        if let Err(error) = &answer {
            self.handle(error);
        }
        answer
    }

    #[cold]
    #[inline(never)]
    fn handle(&self, error: &Error) {
        // This face returns every error, whatever the handler: none that it sets says otherwise.
        self.core.handle(&error.clone().into_core());
    }

    /// The world rank of a rank to which something is sent. An error has been answered. Where the ranks are those
    /// of the world, the device checks them.
    #[inline]
    pub(crate) fn job_rank(&self, rank: usize) -> Result<usize, Error> {
        if self.is_whole {
            return Ok(rank);
        }
        let peers = self.core.peers();
        match u32::try_from(rank).ok().and_then(|rank| peers.job_rank(rank).ok()) {
            Some(job_rank) => Ok(job_rank as usize),
            None => self.answer(Err(no_rank(peers, rank))),
        }
    }

    /// The world rank from which something is to come, as [`Communicator::job_rank`].
    #[inline]
    pub(crate) fn source(&self, source: Source) -> Result<Option<usize>, Error> {
        source.rank().map(|rank| self.job_rank(rank)).transpose()
    }

    /// A status of the device, with the rank that its source has here.
    #[inline]
    pub(crate) fn status(&self, status: mpjdev::Status) -> Status {
        let status = Status::from(status);
        if self.is_whole {
            return status;
        }
        let source = self.core.peers().rank_of(status.source as u32);
        Status { source: source.map_or(status.source, |rank| rank as usize), ..status }
    }

    /// This process's rank: `0..size` (MPI_Comm_rank).
    pub fn rank(&self) -> usize {
        self.core.rank() as usize
    }

    /// How many ranks there are (MPI_Comm_size).
    pub fn size(&self) -> usize {
        self.core.size() as usize
    }

    /// The group of its ranks (MPI_Comm_group).
    ///
    /// ```
    /// mpj::local::run(3, |world| {
    ///     assert!(world.group().iter().eq(0..3));
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn group(&self) -> Group {
        self.core.group().clone().into()
    }

    /// How it relates to another one (MPI_Comm_compare).
    ///
    /// ```
    /// use mpj::Relation;
    /// mpj::local::run(2, |world| {
    ///     let turned = world.split(0, -(world.rank() as i32)).unwrap();
    ///     assert_eq!(world.compare(&world.clone()), Relation::Identical);
    ///     assert_eq!(world.compare(&world.dup().unwrap()), Relation::Congruent);
    ///     assert_eq!(world.compare(&turned), Relation::Similar);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn compare(&self, other: &Self) -> Relation {
        self.core.compare(&other.core)
    }

    /// The name by which reports call it (MPI_Comm_get_name): `world`, `self`, or what it was given; otherwise it is
    /// empty.
    pub fn name(&self) -> String {
        self.core.name()
    }

    /// Gives it a name, on this rank (MPI_Comm_set_name).
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     let workers = world.dup().unwrap();
    ///     workers.set_name("workers");
    ///     assert_eq!((&*workers.name(), &*world.name()), ("workers", "world"));
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn set_name(&self, name: impl Into<String>) {
        self.core.set_name(name);
    }

    /// Sets a function that is called with each error of a call on this communicator, in the thread of the call,
    /// before the call returns the error: for logs and counts (MPI_Comm_set_errhandler). No error ends the program.
    /// The function may communicate. Communicators that are made of this one have the same function; of an
    /// intercommunicator it gets the side of this rank.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use std::sync::atomic::{AtomicU32, Ordering};
    /// mpj::local::run(2, |world| {
    ///     let errors = Arc::new(AtomicU32::new(0));
    ///     let counted = errors.clone();
    ///     world.set_error_handler(move |_, _| {
    ///         counted.fetch_add(1, Ordering::Relaxed);
    ///     });
    ///     let stranger = mpj::Group::of_ranks([9]).unwrap();
    ///     assert!(world.create(&stranger).is_err());
    ///     assert_eq!(errors.load(Ordering::Relaxed), 1);
    ///     world.barrier().unwrap();
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn set_error_handler(&self, handler: impl Fn(&Self, &Error) + Send + Sync + 'static) {
        let tell = move |on: &mpicore::Communicator, error: &mpicore::Error| {
            handler(&Self::of_core(on), &error.clone().into());
        };
        self.core.set_handler(ErrorHandler::User(Arc::new(tell)));
    }

    /// What the protocols did on this rank so far.
    ///
    /// # Errors
    /// What made the device unusable.
    pub fn stats(&self) -> Result<Stats, Error> {
        self.answer(self.device.stats())
    }

    /// Both queues and the open requests of this rank as text.
    ///
    /// # Errors
    /// What made the device unusable.
    pub fn dump(&self) -> Result<String, Error> {
        self.answer(self.device.dump())
    }

    /// How the rendezvous protocol reads another rank's memory: `process_vm_readv`, or another way
    /// and the reason for it. `MPJ_GET` chooses.
    pub fn get_report(&self) -> &str {
        &self.device.get_report
    }

    /// The message sizes in bytes, ascending, above which a message travels in another way: where
    /// the latency over the size may step. Where it does under a circumstance only is not among them:
    /// see [`mpjdev::Table::exceptions`].
    ///
    /// # Errors
    /// What made the device unusable.
    pub fn thresholds(&self) -> Result<Vec<mpjdev::Step>, Error> {
        self.answer(self.device.thresholds())
    }

    /// The protocol table: which protocol carries a message of which size.
    pub fn table(&self) -> &mpjdev::Table {
        self.device.table()
    }
}

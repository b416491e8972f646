//! Communicators: a group of ranks, and a context that separates their messages from all others (MPI-4.1 chapter 7).
//! Ranks in this module are those of the communicator; the device uses those of the world.
//!
//! - `create.rs`, `inter.rs`, `cartesian.rs`, `graph.rs`: calls that make communicators, intercommunicators, grids and
//!   graphs.
//! - `spawn.rs`: ranks that are started while the job runs.
//! - `messages.rs`, `peer.rs`: what communicators and intercommunicators need to send and receive.
//! - `attribute.rs`: attributes that users attach to communicators.
//! - `operation.rs`, `future.rs`: what all requests are made of, in lists and as futures.

use std::ops::Deref;
use std::sync::Arc;

use mpicore::{ErrorHandler, Relation};
use mpjdev::{Device, Stats, Step, Table};

use crate::error::Error;
use crate::group::Group;
use crate::rank_device;

// The documentation lists methods in the order of the modules.
mod create;
mod inter;

mod attribute;
mod cartesian;
mod future;
mod graph;
mod messages;
pub(crate) mod operation;
mod peer;
pub mod spawn;
#[cfg(test)]
mod tests;

pub use attribute::AttributeKey;
pub use cartesian::{CartesianCommunicator, Shift, dims_create};
pub use create::PendingCommunicator;
pub(crate) use future::Await;
pub use future::Completion;
pub use graph::{Edge, GraphCommunicator};
pub use inter::{InterCommunicator, RemoteLeader};
pub use messages::PointToPoint;
pub(crate) use messages::Sited;
pub use peer::PROC_NULL;

/// A group of ranks whose messages are separate from those of all other communicators (MPI-4 chapter 7). Several
/// threads may call its methods at once. All ranks must call the collective methods of a communicator in the same
/// order.
///
/// A clone is the same communicator. When all clones are dropped, this rank frees it without waiting for other ranks.
///
/// # Calls
///
/// | | |
/// |---|---|
/// | blocking | [`send`](PointToPoint::send), [`recv`](PointToPoint::recv), [`recv_vec`](PointToPoint::recv_vec), [`sendrecv`](PointToPoint::sendrecv), [`probe`](PointToPoint::probe) and more, of [`PointToPoint`] |
/// | non-blocking | [`isend`](PointToPoint::isend), [`irecv`](PointToPoint::irecv) own their buffers; those of a [`scope`](Self::scope) borrow them |
/// | collective | [`barrier`](Self::barrier), [`broadcast`](Self::broadcast), [`gather`](Self::gather), [`scatter`](Self::scatter), [`all_gather`](Self::all_gather), [`all_to_all`](Self::all_to_all), [`reduce`](Self::reduce), [`all_reduce`](Self::all_reduce), [`scan`](Self::scan); other forms by [`start`](Self::start), [`persistent`](Self::persistent) |
/// | memory of others | [`allocate_window`](Self::allocate_window), [`allocate_shared`](Self::allocate_shared), [`shared_counter`](Self::shared_counter) |
/// | communicators | [`dup`](Self::dup), [`split`](Self::split), [`create`](Self::create), [`create_inter`](Self::create_inter), [`create_cartesian`](Self::create_cartesian), [`create_adjacent`](Self::create_adjacent) |
/// | ranks | [`rank`](Self::rank), [`size`](Self::size), [`group`](Self::group), [`name`](Self::name) |
///
/// # Example
///
/// ```
/// mpj::local::run(2, |world| {
///     // What a library sends does not meet what the program receives.
///     let library: mpj::Communicator = world.dup().unwrap();
///     let receive = world.irecv(vec![0], mpj::ANY_SOURCE, mpj::ANY_TAG).unwrap();
///     library.sendrecv(&1, 1 - world.rank(), 0, &mut 0, 1 - world.rank(), 0).unwrap();
///     assert!(receive.cancel().unwrap(), "nothing has come");
/// })?;
/// # Ok::<(), mpj::local::LocalError>(())
/// ```
#[doc(alias("MPI_Comm", "MPI_Comm_free", "MPI_Comm_disconnect"))]
#[derive(Clone)]
pub struct Communicator {
    messages: PointToPoint,
}

impl Deref for Communicator {
    type Target = PointToPoint;

    #[inline]
    fn deref(&self) -> &PointToPoint {
        &self.messages
    }
}

impl Communicator {
    /// Makes the communicators of all ranks, one for each context of this rank, in order.
    pub(crate) fn of_world(devices: Vec<Device>, one_sided_path: &str) -> Result<Vec<Self>, Error> {
        let world = |process| Ok(Self::new(mpicore::Communicator::world(process)?));
        rank_device::of_world(devices, one_sided_path).map(world).collect()
    }

    fn new(core: mpicore::Communicator) -> Self {
        Self { messages: PointToPoint::new(core) }
    }

    /// Makes a communicator from a handle of the core, which callbacks get.
    fn of_core(core: &mpicore::Communicator) -> Self {
        Self::new(core.clone())
    }

    /// Makes the communicator of this rank alone (MPI_COMM_SELF).
    pub(crate) fn self_comm(&self) -> Result<Self, Error> {
        self.made(mpicore::Communicator::self_comm(self.core.process().clone()))
    }

    /// Deletes all attributes, starting with the one that was set last.
    pub(crate) fn delete_attributes(&self) -> Result<(), Error> {
        self.answer(self.core.delete_attributes())
    }
}

/// # Ranks and names
impl Communicator {
    /// Returns the rank of this process, `0..size` (MPI_Comm_rank).
    ///
    /// ```
    /// let ranks = mpj::local::run(3, |world| world.rank())?;
    /// assert_eq!(ranks, [0, 1, 2]);
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Comm_rank")]
    pub fn rank(&self) -> usize {
        self.core.rank() as usize
    }

    /// Returns the number of ranks (MPI_Comm_size).
    ///
    /// ```
    /// assert_eq!(mpj::local::run(2, |world| world.size())?, [2, 2]);
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Comm_size")]
    pub fn size(&self) -> usize {
        self.core.size() as usize
    }

    /// Returns the group of the communicator's ranks (MPI_Comm_group).
    ///
    /// ```
    /// mpj::local::run(3, |world| {
    ///     assert!(world.group().iter().eq(0..3));
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Comm_group")]
    pub fn group(&self) -> Group {
        self.core.group().clone().into()
    }

    /// Compares this communicator with another one (MPI_Comm_compare).
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
    #[doc(alias = "MPI_Comm_compare")]
    pub fn compare(&self, other: &Self) -> Relation {
        self.core.compare(&other.core)
    }

    /// Returns the name that reports use for the communicator (MPI_Comm_get_name): the one that was set, otherwise
    /// `world`, `self`, or an empty one.
    ///
    /// ```
    /// mpj::local::run(1, |world| {
    ///     assert_eq!((&*world.name(), &*world.self_comm().unwrap().name()), ("world", "self"));
    ///     assert_eq!(world.dup().unwrap().name(), "");
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Comm_get_name")]
    pub fn name(&self) -> String {
        self.core.name()
    }

    /// Sets the communicator's name on this rank (MPI_Comm_set_name).
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     let workers = world.dup().unwrap();
    ///     workers.set_name("workers");
    ///     assert_eq!((&*workers.name(), &*world.name()), ("workers", "world"));
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Comm_set_name")]
    pub fn set_name(&self, name: impl Into<String>) {
        self.core.set_name(name);
    }
}

/// # Errors and figures
impl Communicator {
    /// Sets a function that sees each error of a call on this communicator, for example to log or count them
    /// (MPI_Comm_set_errhandler). It runs in the thread of the call, before the call returns the error. No error ends
    /// the program. The function may communicate. Communicators made from this one inherit it. For an intercommunicator
    /// it gets the communicator of this rank's side.
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
    #[doc(alias = "MPI_Comm_set_errhandler")]
    pub fn set_error_handler(&self, handler: impl Fn(&Self, &Error) + Send + Sync + 'static) {
        let tell = move |on: &mpicore::Communicator, error: &mpicore::Error| {
            handler(&Self::of_core(on), &error.clone().into());
        };
        self.core.set_handler(ErrorHandler::User(Arc::new(tell)));
    }

    /// Returns the counts of messages, bytes and copies of this rank so far.
    ///
    /// # Errors
    /// What made the device unusable.
    ///
    /// ```
    /// mpj::local::run(1, |world| {
    ///     world.sendrecv(&1, 0, 0, &mut 0, 0, 0).unwrap();
    ///     assert_eq!(world.stats().unwrap().received, 1);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn stats(&self) -> Result<Stats, Error> {
        self.answer(self.device.stats())
    }

    /// Returns the matching queues and the open requests of this rank as text.
    ///
    /// # Errors
    /// What made the device unusable.
    ///
    /// ```
    /// mpj::local::run(1, |world| {
    ///     let receive = world.irecv(vec![0u16; 4], 0, 77).unwrap();
    ///     assert!(world.dump().unwrap().contains("tag 77, context 0, 8 bytes"));
    ///     receive.cancel().unwrap();
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn dump(&self) -> Result<String, Error> {
        self.answer(self.device.dump())
    }

    /// Returns a text that says how the rendezvous protocol reads another rank's memory: by `process_vm_readv`, or in
    /// another way and why. The variable `MPJ_GET` chooses.
    ///
    /// ```
    /// mpj::local::run(1, |world| {
    ///     assert_eq!(world.one_sided_path(), "memory copy", "ranks are threads");
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn one_sided_path(&self) -> &str {
        self.device.one_sided_path()
    }

    /// Returns the message sizes in bytes, ascending, above which a message travels in another way, so that the latency
    /// may jump. Rows of the table that depend on more than the size are not included: see [`Table::rows`].
    ///
    /// # Errors
    /// What made the device unusable.
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     let steps = world.thresholds().unwrap();
    ///     assert!(steps.iter().any(|step| step.bytes < 512), "from registers to packets");
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn thresholds(&self) -> Result<Vec<Step>, Error> {
        self.answer(self.device.thresholds())
    }

    /// Returns the table that chooses the protocol of a message.
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     assert_eq!(world.table().protocol(8), mpj::tuning::Protocol::Eager);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn table(&self) -> &Table {
        self.device.table()
    }
}

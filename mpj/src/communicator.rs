//! Communicators: a group of ranks, and a context that keeps their messages apart from all others.

use std::sync::Arc;

use mpicore::Host;
use mpjdev::wireup::Native;
use mpjdev::{Device, Stats};

use crate::error::Error;
use crate::rank_device::RankDevice;

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

    /// What a call of the core has made, for this rank.
    fn made(&self, made: Result<mpicore::Communicator, mpicore::Error>) -> Result<Self, Error> {
        self.device.answer(made).map(|core| Self::new(self.device.clone(), core))
    }

    /// This process's rank: `0..size` (MPI_Comm_rank).
    pub fn rank(&self) -> usize {
        self.core.rank() as usize
    }

    /// How many ranks there are (MPI_Comm_size).
    pub fn size(&self) -> usize {
        self.core.size() as usize
    }

    /// A communicator of the same ranks whose messages never match those of this one
    /// (MPI_Comm_dup). Collective: every rank calls it, in the same order.
    ///
    /// It belongs to the same context of the ranks (see [`crate::World::on_context`]).
    ///
    /// # Errors
    /// As [`Communicator::send`]; on every rank, that no context id is left, since some rank has 2^30
    /// communicators. Those that there are stay usable then.
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     let other = world.dup().unwrap();
    ///     if world.rank() == 0 {
    ///         world.send(&[1], 1, 0).unwrap();
    ///         other.send(&[2], 1, 0).unwrap();
    ///     } else {
    ///         let mut value = [0];
    ///         other.recv(&mut value, 0, 0).unwrap();
    ///         assert_eq!(value, [2]);
    ///         world.recv(&mut value, 0, 0).unwrap();
    ///         assert_eq!(value, [1]);
    ///     }
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn dup(&self) -> Result<Self, Error> {
        self.made(self.core.dup())
    }

    /// What the protocols did on this rank so far.
    ///
    /// # Errors
    /// What made the device unusable.
    pub fn stats(&self) -> Result<Stats, Error> {
        self.device.answer(self.device.stats())
    }

    /// Both queues and the open requests of this rank as text.
    ///
    /// # Errors
    /// What made the device unusable.
    pub fn dump(&self) -> Result<String, Error> {
        self.device.answer(self.device.dump())
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
        self.device.answer(self.device.thresholds())
    }

    /// The protocol table: which protocol carries a message of which size.
    pub fn table(&self) -> &mpjdev::Table {
        self.device.table()
    }
}

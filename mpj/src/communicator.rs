//! Communicators: a group of ranks, and a context that keeps their messages apart from all others.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use mpjdev::wireup::Native;
use mpjdev::{Device, Stats};

use crate::error::Error;
use crate::seat::Seat;

/// Ranks that talk to each other in a context of their own (MPI-4 chapter 7). All methods can be
/// called by several threads at once.
#[derive(Clone)]
pub struct Communicator {
    pub(crate) device: Arc<Seat>,
    /// Context of point-to-point messages; the next number is that of collective ones.
    pub(crate) context: u32,
    /// The first context that is free. Only rank 0 gives contexts out: it is in every communicator,
    /// so none is given twice.
    contexts: Arc<AtomicU32>,
}

/// Contexts that one communicator takes.
const CONTEXTS_EACH: u32 = 2;

impl Communicator {
    pub(crate) fn world(device: Device<Native>, get_report: String) -> Self {
        let contexts = Arc::new(AtomicU32::new(CONTEXTS_EACH));
        Self { device: Arc::new(Seat::new(device, get_report)), context: 0, contexts }
    }

    /// This process's rank: `0..size` (MPI_Comm_rank).
    pub fn rank(&self) -> usize {
        self.device.rank() as usize
    }

    /// How many ranks there are (MPI_Comm_size).
    pub fn size(&self) -> usize {
        self.device.size()
    }

    /// A communicator of the same ranks whose messages never match those of this one
    /// (MPI_Comm_dup). Collective: every rank calls it, in the same order.
    ///
    /// # Errors
    /// As [`Communicator::send`].
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
        let context =
            self.given_by_rank_0(|| self.contexts.fetch_add(CONTEXTS_EACH, Ordering::Relaxed))?;
        Ok(Self { device: self.device.clone(), context, contexts: self.contexts.clone() })
    }

    /// Context of the messages that collective calls send.
    pub(crate) fn collective_context(&self) -> u32 {
        self.context + 1
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

//! The state of a rank that its communicators share: the device and the context ids.

use std::any::Any;
use std::sync::{Mutex, MutexGuard, PoisonError};

use mpjdev::Device;
use mpjdev::wireup::Native;

use crate::buffered::Copies;
use crate::context_ids::ContextIds;

/// The state that a rank's communicators share, in one of its contexts, and that of the layer above.
pub struct Process {
    device: Device<Native>,
    ids: Mutex<Ids>,
    /// What the layer above keeps for the rank.
    above: Box<dyn Any + Send + Sync>,
    /// The copies of buffered sends. Dropped after the device, which reads them.
    pub(crate) copies: Copies,
}

struct Ids {
    ids: ContextIds,
    /// Ids of communicators that are gone on this rank, until nothing is pending in their contexts.
    leaving: Vec<u32>,
}

/// The id of the communicator of all ranks.
pub(crate) const WORLD: u32 = 0;
/// The id of the communicator of this rank alone.
pub(crate) const SELF: u32 = 1;
/// The id for members of a group that have no communicator yet, in which they agree on one.
pub(crate) const GATHERING: u32 = 2;
/// Number of ids that are never given to a new communicator.
const RESERVED: u32 = 3;
/// The most communicators that a rank can have at a time; each takes two of the device's contexts.
const MOST: u32 = 1 << 30;

/// Returns the device's contexts of partitioned communication on the communicator with this id. Those of all other
/// messages are below [`MOST`] times two.
pub(crate) fn partition_contexts(id: u32) -> [u32; 2] {
    [0, 1].map(|number| 2 * (MOST + id) + number)
}

impl Process {
    /// Makes the state of a rank whose device is connected. `above` is what the layer above keeps for the rank.
    pub fn new(device: Device<Native>, above: impl Any + Send + Sync) -> Self {
        Self::with_ids(device, above, MOST)
    }

    /// Makes the state of a rank that can have `most` communicators at a time, from 3 to 2^30. All ranks give the same
    /// number. Tests use it to run out of ids.
    pub fn with_ids(device: Device<Native>, above: impl Any + Send + Sync, most: u32) -> Self {
        let ids = ContextIds::new(most.clamp(RESERVED, MOST), RESERVED);
        let ids = Mutex::new(Ids { ids, leaving: Vec::new() });
        Self { device, ids, above: Box::new(above), copies: Copies::default() }
    }

    /// Returns what the layer above keeps for the rank, if that has the type `T`.
    pub fn above<T: Any>(&self) -> Option<&T> {
        self.above.downcast_ref()
    }

    /// Returns the device.
    #[inline(always)]
    pub fn device(&self) -> &Device<Native> {
        &self.device
    }

    /// Calls `work` with the ids, after releasing those that have become free.
    pub(crate) fn with_free_ids<R>(&self, work: impl FnOnce(&mut ContextIds) -> R) -> R {
        let mut guard = self.lock();
        let Ids { ids, leaving } = &mut *guard;
        leaving.retain(|&id| {
            // A device that has failed has nothing pending, and makes no communicators.
            let is_idle = |context| self.device.is_idle(context).unwrap_or(true);
            let contexts = [[2 * id, 2 * id + 1], partition_contexts(id)];
            let is_free = contexts.into_iter().flatten().all(is_idle);
            if is_free {
                self.device.clear_members(2 * id + 1);
                ids.release(id);
            }
            !is_free
        });
        work(ids)
    }

    /// Notes that a communicator with this id is gone on this rank.
    pub(crate) fn leave(&self, id: u32) {
        if id >= RESERVED {
            self.lock().leaving.push(id);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Ids> {
        self.ids.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

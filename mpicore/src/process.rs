//! The state of a rank that its communicators share: the device and the context ids.

pub(crate) mod buffered;
pub(crate) mod context_ids;
pub mod job;
pub(crate) mod progress;

use std::any::Any;
use std::sync::{Mutex, MutexGuard, PoisonError};

use mpjdev::{CONTEXT_IDS, Device};

use crate::process::buffered::Copies;
use crate::process::context_ids::ContextIds;
use crate::process::progress::Progress;

/// The state that a rank's communicators share, in one of its contexts, and that of the layer above.
pub struct Process {
    device: Device,
    ids: Mutex<Ids>,
    /// What the layer above keeps for the rank.
    above: Box<dyn Any + Send + Sync>,
    progress: Progress,
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
/// Number of ids that are never given to a new communicator.
const RESERVED: u32 = 2;
/// The most communicators that a rank can have at a time. The device's contexts are divided into four ranges of two for
/// each: for messages of a communicator, for partitioned ones, for calls of services with even numbers and with odd ones
/// for calls by which some of its members make another one, and, odd ones only, for such calls of ranks without a
/// communicator.
const MOST: u32 = CONTEXT_IDS;

/// Returns the device's contexts of partitioned communication on the communicator with this id.
pub(crate) fn partition_contexts(id: u32) -> [u32; 2] {
    [0, 1].map(|number| 2 * (MOST + id) + number)
}

/// Returns the device's context of calls of services on the communicator with this id.
pub(crate) fn service_context(id: u32) -> u32 {
    2 * (2 * MOST + id)
}

/// Returns the device's context in which some members of the communicator with this id make another one. Each call has
/// a tag of the program.
pub(crate) fn group_context(id: u32) -> u32 {
    2 * (2 * MOST + id) + 1
}

/// Returns the device's context and the tag for ranks that make a communicator without having one. Their calls are told
/// apart by texts, of which both are a hash of 60 bits.
pub(crate) fn place_of_text(text: &[u8]) -> (u32, i32) {
    let hash = fingerprint(text.iter().copied());
    (2 * (3 * MOST + hash as u32 % MOST) + 1, (hash >> 33) as i32)
}

/// Returns a hash of numbers that is the same on all ranks, in every build (FNV-1a).
pub(crate) fn fingerprint<N: Into<u64>>(numbers: impl IntoIterator<Item = N>) -> u64 {
    numbers.into_iter().fold(0xcbf2_9ce4_8422_2325, |hash, number| {
        (hash ^ number.into()).wrapping_mul(0x100_0000_01b3)
    })
}

/// Locks what stays whole if a thread has panicked with it.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns a number for another one that looks random: the output function of splitmix64.
pub(crate) fn scrambled(number: u64) -> u64 {
    let mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

impl Process {
    /// Makes the state of a rank whose device is connected. `above` is what the layer above keeps for the rank.
    pub fn new(device: Device, above: impl Any + Send + Sync) -> Self {
        Self::with_ids(device, above, MOST)
    }

    /// Makes the state of a rank that can have `most` communicators at a time, from 2 to 2^29. All ranks give the same
    /// number. Tests use it to run out of ids.
    pub fn with_ids(device: Device, above: impl Any + Send + Sync, most: u32) -> Self {
        let ids = ContextIds::new(most.clamp(RESERVED, MOST), RESERVED);
        let ids = Mutex::new(Ids { ids, leaving: Vec::new() });
        let progress = Progress::default();
        Self { device, ids, above: Box::new(above), progress, copies: Copies::default() }
    }

    /// Returns what the layer above keeps for the rank, if that has the type `T`.
    pub fn above<T: Any>(&self) -> Option<&T> {
        self.above.downcast_ref()
    }

    /// Returns the device.
    #[inline(always)]
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Calls `work` with the ids, after releasing those that have become free.
    pub(crate) fn with_free_ids<R>(&self, work: impl FnOnce(&mut ContextIds) -> R) -> R {
        let mut guard = self.lock();
        let Ids { ids, leaving } = &mut *guard;
        leaving.retain(|&id| {
            // A device that has failed has nothing pending, and makes no communicators.
            let is_idle = |context| self.device.is_idle(context).unwrap_or(true);
            let [offers, partitions] = partition_contexts(id);
            let contexts = [2 * id, 2 * id + 1, offers, partitions, group_context(id)];
            let is_free = contexts.into_iter().all(is_idle);
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
        lock(&self.ids)
    }
}

//! Memory in the tasks' shared areas. Puts, gets and read-modify-writes of it are stores, loads and atomic operations
//! of the origin; the target does nothing. Where the adapter has no shared areas, clients register memory of their own
//! ([`Session::register_writable`]), and the target's dispatcher carries the operations out.
//!
//! Such operations may overtake messages that were started before; LAPI guarantees no order.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use parking_lot::Mutex;

use super::direct::Direct;
use super::rmw::Operation;
use crate::adapter::{Adapter, SharedArea, TaskId};
use crate::error::LapiError;
use crate::memory::body::{Sink, Source};
use crate::memory::region::{ForeignBytes, RecvPart, RemoteRegion};
use crate::platform::fork::ProcessMark;
use crate::platform::sys::LINE;
use crate::progress::amsend::{Outgoing, Sent};
use crate::progress::counter::CounterId;
use crate::progress::handler::Next;
use crate::progress::outbox::Outbox;
use crate::progress::session::Session;
use crate::wire::Packet;

/// The multiple of which allocations are, so that two of them have no line, and no pair of lines, in common.
const GRAIN: usize = 2 * LINE;

/// Size of the buffer through which bytes go from an area into a layout.
const COPIED_AT_ONCE: usize = 4096;

/// The shared areas as a context uses them.
pub(crate) struct Shared {
    pub area: Arc<dyn SharedArea>,
    /// The free parts of this task's area.
    free: Arc<Mutex<Free>>,
    /// The short path.
    pub direct: Direct,
}

impl Shared {
    /// Describes the areas of a job of `num_tasks` tasks, for the task `own`.
    pub fn new(area: Arc<dyn SharedArea>, own: TaskId, num_tasks: usize) -> Self {
        let free = Arc::new(Mutex::new(Free::new(area.bytes())));
        let direct = Direct::new(&*area, own, num_tasks);
        Self { area, free, direct }
    }
}

/// The free parts of an area, as offsets and lengths in ascending order. No two of them adjoin.
struct Free(Vec<(usize, usize)>);

impl Free {
    fn new(bytes: usize) -> Self {
        Self(vec![(0, bytes)])
    }

    /// Takes `len` bytes, a multiple of [`GRAIN`], from the first part that is long enough.
    fn take(&mut self, len: usize) -> Option<usize> {
        let place = self.0.iter().position(|(_, free)| *free >= len)?;
        let (at, free) = &mut self.0[place];
        let taken = *at;
        (*at, *free) = (*at + len, *free - len);
        if *free == 0 {
            self.0.remove(place);
        }
        Some(taken)
    }

    /// Gives bytes back that were taken.
    fn give_back(&mut self, at: usize, len: usize) {
        let place = self.0.partition_point(|(start, _)| *start < at);
        self.0.insert(place, (at, len));
        if self.0.get(place + 1).is_some_and(|(next, _)| at + len == *next) {
            self.0[place].1 += self.0.remove(place + 1).1;
        }
        if let Some(before) = place.checked_sub(1) {
            let (start, free) = self.0[before];
            if start + free == at {
                self.0[before].1 += self.0.remove(place).1;
            }
        }
    }

    fn longest(&self) -> usize {
        self.0.iter().map(|(_, len)| *len).max().unwrap_or(0)
    }
}

/// Memory in this task's shared area; freed when it is dropped. Other tasks access it by [`SharedMemory::region`], at
/// any moment, so the owner copies bytes, or accesses variables atomically.
pub struct SharedMemory {
    area: Arc<dyn SharedArea>,
    free: Arc<Mutex<Free>>,
    task: TaskId,
    offset: usize,
    len: usize,
    process: ProcessMark,
}

impl SharedMemory {
    /// Returns the length in bytes, as it was asked for.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether the length is 0.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the description for other tasks. After the memory has been freed, they must not use it any more.
    pub fn region(&self) -> RemoteRegion {
        RemoteRegion::in_area(self.offset as u64, self.len as u64)
    }

    /// Returns a pointer to the first byte, for programs that know when no task writes there. Forks do not have the
    /// memory.
    pub fn as_mut_ptr(&self) -> *mut u8 {
        self.area.start(self.task, self.offset as u64)
    }

    /// Offset in the area of `len` bytes at `offset` of this memory.
    fn place(&self, offset: usize, len: usize) -> Result<u64, LapiError> {
        if self.process.is_fork() {
            return Err(LapiError::Forked { task: self.task });
        }
        match offset.checked_add(len) {
            Some(end) if end <= self.len => Ok((self.offset + offset) as u64),
            _ => {
                let (offset, len, limit) = (offset as u64, len as u64, self.len as u64);
                Err(LapiError::DataLen { offset, len, limit })
            }
        }
    }

    /// Copies the bytes from `offset` on into `into`. Bytes that another task stores meanwhile may be old or new.
    ///
    /// # Errors
    /// [`LapiError::DataLen`] if the memory has not so many; [`LapiError::Forked`].
    pub fn read(&self, offset: usize, into: &mut [u8]) -> Result<(), LapiError> {
        let place = self.place(offset, into.len())?;
        self.area.load(self.task, place, RecvPart::of_slice(into));
        Ok(())
    }

    /// Copies `from` to the bytes from `offset` on.
    ///
    /// # Errors
    /// [`LapiError::DataLen`] if the memory has not so many; [`LapiError::Forked`].
    pub fn write(&self, offset: usize, from: &[u8]) -> Result<(), LapiError> {
        let place = self.place(offset, from.len())?;
        self.area.fill(self.task, place, from);
        Ok(())
    }

    /// Loads the variable of 64 bits at `offset` atomically. What its origin stored before it is visible afterwards.
    ///
    /// # Errors
    /// [`LapiError::DataLen`]; [`LapiError::Unaligned`] unless the offset is a multiple of 8; [`LapiError::Forked`].
    #[inline]
    pub fn load(&self, offset: usize) -> Result<i64, LapiError> {
        let place = self.place(offset, size_of::<u64>())?;
        let unaligned = LapiError::Unaligned { offset: offset as u64, size: 8 };
        let variable = self.area.word(self.task, place).ok_or(unaligned)?;
        Ok(variable.load(Ordering::Acquire) as i64) // SYNC: shared variable
    }

    /// Stores to the variable of 64 bits at `offset` atomically.
    ///
    /// # Errors
    /// As [`SharedMemory::load`].
    pub fn store(&self, offset: usize, value: i64) -> Result<(), LapiError> {
        let place = self.place(offset, size_of::<u64>())?;
        let unaligned = LapiError::Unaligned { offset: offset as u64, size: 8 };
        let variable = self.area.word(self.task, place).ok_or(unaligned)?;
        variable.store(value as u64, Ordering::Release); // SYNC: shared variable
        Ok(())
    }
}

impl std::fmt::Debug for SharedMemory {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} bytes at {} of the shared area", self.len, self.offset)
    }
}

impl Drop for SharedMemory {
    fn drop(&mut self) {
        // In a fork the lock may be held for ever.
        if !self.process.is_fork() {
            self.free.lock().give_back(self.offset, rounded(self.len));
        }
    }
}

/// The bytes that an allocation of `len` bytes takes.
fn rounded(len: usize) -> usize {
    len.max(1).next_multiple_of(GRAIN)
}

impl<A: Adapter, S> Session<A, S> {
    /// Allocates memory of this task that other tasks access without this task's help. It begins at a multiple of 128
    /// bytes, and contains what an earlier owner has left, at first zeros.
    ///
    /// # Errors
    /// [`LapiError::NoSharedArea`] if the adapter has none: then register memory of your own
    /// ([`Session::register_writable`]). [`LapiError::AreaExhausted`] if the area has not so much in one piece; the
    /// adapter's error if the system has not so much memory.
    pub fn alloc_shared(&mut self, len: usize) -> Result<SharedMemory, LapiError> {
        let crate::progress::engine::Engine { task, outbox, .. } = &self.engine;
        let shared = outbox.shared.as_ref().ok_or(LapiError::NoSharedArea)?;
        let mut free = shared.free.lock();
        let longest = free.longest();
        let exhausted = LapiError::AreaExhausted { len, longest };
        // Checked first, since the length rounded up could overflow.
        let bytes = if len <= longest { rounded(len) } else { return Err(exhausted) };
        let offset = free.take(bytes).ok_or(exhausted)?;
        drop(free);
        let (area, free) = (Arc::clone(&shared.area), Arc::clone(&shared.free));
        let (task, process) = (*task, ProcessMark::new());
        let memory = SharedMemory { area, free, task, offset, len, process };
        memory.area.reserve(task, offset, bytes)?;
        Ok(memory)
    }

    /// A put of `from` to blocks of the target's area, each with its offset there and its length.
    pub(super) fn put_shared(
        &mut self,
        target: TaskId,
        blocks: impl IntoIterator<Item = (u64, u64)>,
        from: &Source,
        on_origin: Next<S>,
        counters: [Option<CounterId>; 2],
    ) -> Result<Sent, LapiError> {
        let outbox = &mut self.engine.outbox;
        on_origin.check(&mut outbox.counters)?;
        outbox.check_lost(target)?;
        if from.is_null() {
            return Err(LapiError::OrgAddrNull { len: from.len() });
        }
        let shared = outbox.shared.as_ref().ok_or(LapiError::NoSharedArea)?;
        let mut at = 0;
        for (offset, len) in blocks {
            let body = from.piece(at, len as usize);
            if !shared.area.store(target, offset, body) {
                let limit = shared.area.bytes() as u64;
                return Err(LapiError::DataLen { offset, len, limit });
            }
            at += len as usize;
        }
        let [target_counter, completion] = counters;
        if target_counter.is_none() && completion.is_none() && matches!(on_origin, Next::Nothing) {
            return Ok(Sent::Now);
        }
        outbox.counters.count_from(CounterId::on_wire(completion), target);
        self.count_at(target, target_counter);
        self.end_call(on_origin);
        Ok(Sent::Now)
    }

    /// Sends for a counter of the target.
    fn count_at(&mut self, target: TaskId, counter: Option<CounterId>) {
        if counter.is_some() {
            let counter = CounterId::on_wire(counter);
            self.engine.outbox.push(target, Outgoing::Control(Packet::Complete { counter }));
        }
    }
}

impl<S> Outbox<S> {
    /// Fills `into` from blocks of the target's area.
    pub(crate) fn get_shared(
        &mut self,
        target: TaskId,
        blocks: impl IntoIterator<Item = (u64, u64)>,
        into: &mut Sink,
    ) -> Result<(), LapiError> {
        let shared = self.shared.as_ref().ok_or(LapiError::NoSharedArea)?;
        let mut at = 0;
        for (offset, len) in blocks {
            let (limit, whole) = (shared.area.bytes() as u64, len as usize);
            let outside = LapiError::DataLen { offset, len, limit };
            let fits = match &mut *into {
                Sink::Span(region) => shared.area.load(target, offset, region.part(at, whole)),
                layout => (0..whole).step_by(COPIED_AT_ONCE).all(|done| {
                    let mut piece = [0; COPIED_AT_ONCE];
                    let piece = &mut piece[..COPIED_AT_ONCE.min(whole - done)];
                    let part = RecvPart::of_slice(piece);
                    let has = shared.area.load(target, offset + done as u64, part);
                    layout.store(at + done, ForeignBytes::from_slice(piece));
                    has
                }),
            };
            if !fits {
                return Err(outside);
            }
            at += whole;
        }
        Ok(())
    }

    /// Carries out a read-modify-write of a variable in the target's area, and returns the result.
    pub(super) fn rmw_shared(
        &self,
        target: TaskId,
        offset: u64,
        operation: Operation,
    ) -> Result<i64, LapiError> {
        let area = &self.shared.as_ref().ok_or(LapiError::NoSharedArea)?.area;
        let (size, limit) = (operation.size(), area.bytes() as u64);
        if offset.checked_add(size).is_none_or(|end| end > limit) {
            return Err(LapiError::DataLen { offset, len: size, limit });
        }
        let result = match operation {
            Operation::Bits32(op) => area.half_word(target, offset).map(|it| op.apply_to(it)),
            Operation::Bits64(op) => area.word(target, offset).map(|it| op.apply_to(it)),
        };
        result.ok_or(LapiError::Unaligned { offset, size })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against a map of bytes: parts that are taken do not overlap, and all is free again in one part at the end.
        #[test]
        fn what_is_taken_is_taken_once(
            steps in proptest::collection::vec((1_usize..20, any::<bool>(), any::<usize>()), 0..60),
        ) {
            const GRAINS: usize = 64;
            let mut free = Free::new(GRAINS * GRAIN);
            let mut owned = [false; GRAINS];
            let mut taken = Vec::new();
            for (grains, gives_back, which) in steps {
                if gives_back && !taken.is_empty() {
                    let (at, grains) = taken.swap_remove(which % taken.len());
                    free.give_back(at * GRAIN, grains * GRAIN);
                    owned[at..at + grains].fill(false);
                } else if let Some(at) = free.take(grains * GRAIN) {
                    let at = at / GRAIN;
                    prop_assert!(owned[at..at + grains].iter().all(|is_owned| !is_owned));
                    owned[at..at + grains].fill(true);
                    taken.push((at, grains));
                } else {
                    let runs = owned.split(|is_owned| *is_owned).map(<[bool]>::len);
                    prop_assert!(runs.max().unwrap_or(0) < grains, "there was room");
                }
            }
            for (at, grains) in taken {
                free.give_back(at * GRAIN, grains * GRAIN);
            }
            prop_assert_eq!(free.0, [(0, GRAINS * GRAIN)]);
        }
    }
}

//! Memory in the tasks' shared areas. Puts, gets and read-modify-writes of it are stores, loads and atomic operations
//! of the origin; the target does nothing. Where the adapter has no shared areas, clients register memory of their own
//! ([`Session::register_writable`]), and the adapter or the target's dispatcher carries the
//! operations out.
//!
//! Such operations may overtake messages that were started before; LAPI guarantees no order.

#![expect(unsafe_code, reason = "the areas are memory shared with peers")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use parking_lot::Mutex;

use crate::adapter::{SharedArea, TaskId};
use crate::error::LapiError;
use crate::memory::body::Source;
use crate::memory::region::{ForeignBytes, RecvPart, RemoteRegion};
use crate::memory::shared::SharedBytes;
use crate::platform::fork::ProcessMark;
use crate::progress::amsend::Sent;
use crate::progress::area::{Free, rounded};
use crate::progress::counter::CounterId;
use crate::progress::handler::Next;
use crate::progress::session::Session;
use crate::wire::RemoteCounters;

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
        self.area.start(self.task).wrapping_add(self.offset)
    }

    /// Pointer to `len` bytes at `offset` of this memory.
    fn place(&self, offset: usize, len: usize) -> Result<*mut u8, LapiError> {
        if self.process.is_fork() {
            return Err(LapiError::Forked { task: self.task });
        }
        match offset.checked_add(len) {
            Some(end) if end <= self.len => Ok(self.as_mut_ptr().wrapping_add(offset)),
            _ => {
                let (offset, len, limit) = (offset as u64, len as u64, self.len as u64);
                Err(LapiError::DataLen { offset, len, limit })
            }
        }
    }

    /// Returns the bytes, to be copied at any moment.
    ///
    /// # Errors
    /// [`LapiError::Forked`].
    pub fn bytes(&self) -> Result<SharedBytes<'_>, LapiError> {
        self.part(0, self.len)
    }

    fn part(&self, offset: usize, len: usize) -> Result<SharedBytes<'_>, LapiError> {
        let place = self.place(offset, len)?;
        // SAFETY: inside the mapping, which `area` holds; AR1 of `crate::adapters::local::area`.
        Ok(unsafe { SharedBytes::new(place, len) })
    }

    /// Copies the bytes from `offset` on into `into`. Bytes that another task stores meanwhile may be old or new.
    ///
    /// # Errors
    /// [`LapiError::DataLen`] if the memory has not so many; [`LapiError::Forked`].
    pub fn read(&self, offset: usize, into: &mut [u8]) -> Result<(), LapiError> {
        self.part(offset, into.len())?.load(RecvPart::of_slice(into));
        fence(Ordering::Acquire);
        Ok(())
    }

    /// Copies `from` to the bytes from `offset` on.
    ///
    /// # Errors
    /// [`LapiError::DataLen`] if the memory has not so many; [`LapiError::Forked`].
    pub fn write(&self, offset: usize, from: &[u8]) -> Result<(), LapiError> {
        self.part(offset, from.len())?.store(ForeignBytes::from_slice(from));
        Ok(())
    }

    /// Loads the variable of 64 bits at `offset` atomically. What its origin stored before it is visible afterwards.
    ///
    /// # Errors
    /// [`LapiError::DataLen`]; [`LapiError::Unaligned`] unless the offset is a multiple of 8; [`LapiError::Forked`].
    #[inline]
    pub fn load(&self, offset: usize) -> Result<i64, LapiError> {
        Ok(self.variable(offset)?.load(Ordering::Acquire) as i64) // SYNC: shared variable
    }

    /// Stores to the variable of 64 bits at `offset` atomically.
    ///
    /// # Errors
    /// As [`SharedMemory::load`].
    pub fn store(&self, offset: usize, value: i64) -> Result<(), LapiError> {
        self.variable(offset)?.store(value as u64, Ordering::Release); // SYNC: shared variable
        Ok(())
    }

    fn variable(&self, offset: usize) -> Result<&AtomicU64, LapiError> {
        let place = self.place(offset, size_of::<u64>())?;
        if place.addr() % size_of::<u64>() != 0 {
            return Err(LapiError::Unaligned { offset: offset as u64, size: 8 });
        }
        // SAFETY: as in `part`, and aligned.
        Ok(unsafe { AtomicU64::from_ptr(place.cast()) })
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

impl<S> Session<S> {
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

    /// A put of `from` to blocks of the target's area, each with its offset there and its length. The caller has checked
    /// the target and `on_origin`.
    pub(super) fn put_shared(
        &mut self,
        target: TaskId,
        blocks: impl IntoIterator<Item = (u64, u64)>,
        from: &Source,
        on_origin: Next<S>,
        counters: [Option<CounterId>; 2],
    ) -> Result<Sent, LapiError> {
        let outbox = &mut self.engine.outbox;
        if from.is_null() {
            return Err(LapiError::OrgAddrNull { len: from.len() });
        }
        let shared = outbox.shared.as_ref().ok_or(LapiError::NoSharedArea)?;
        let mut at = 0;
        for (offset, len) in blocks {
            let body = from.piece(at, len as usize);
            if !shared.direct.put(target, offset, body) {
                let limit = shared.area.bytes(target) as u64;
                return Err(LapiError::DataLen { offset, len, limit });
            }
            at += len as usize;
        }
        let [target_counter, completion] = counters.map(CounterId::on_wire);
        let counters = RemoteCounters { target: target_counter, completion };
        if counters.is_none() && matches!(on_origin, Next::Nothing) {
            return Ok(Sent::Now);
        }
        outbox.stored(target, counters);
        self.end_call(on_origin);
        Ok(Sent::Now)
    }
}

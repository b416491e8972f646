//! The short path of puts, gets and read-modify-writes of shared areas. It is inlined into the caller: no send queue,
//! no counter, no virtual call. It does nothing where the path of `one_sided/` has to decide: for this task's own area,
//! and for wrong arguments, which that path reports.
//!
//! - DP1: the pointers are the starts of the areas in the mapping. They lie beside the capability that holds the
//!   mapping ([`super::area::Shared`]), and are used only while a session is held, which a fork never is.

#![expect(unsafe_code, reason = "the areas are memory shared with peers")]

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

use crate::adapter::atomic::Operation;
use crate::adapter::{SharedArea, TaskId};
use crate::memory::region::{ForeignBytes, RecvPart, RecvRegion, RemoteRegion, SendRegion};

/// The areas of all tasks, as this task has them mapped.
pub(crate) struct Direct {
    starts: Box<[*mut u8]>,
    /// Length of each.
    bytes: u64,
    /// The task that uses them.
    own: TaskId,
}

// SAFETY: DP1: any thread may use the mapping.
unsafe impl Send for Direct {}

impl Direct {
    /// The areas of a job of `num_tasks` tasks, for the task `own`.
    pub fn new(area: &dyn SharedArea, own: TaskId, num_tasks: usize) -> Self {
        let starts = (0..num_tasks as TaskId).map(|task| area.start(task, 0)).collect();
        Self { starts, bytes: area.bytes() as u64, own }
    }

    /// The area of task 1 at `start`, for the fuzz target.
    pub fn of_fuzz(start: *mut u8, bytes: usize) -> Self {
        Self { starts: Box::new([start; 2]), bytes: bytes as u64, own: 0 }
    }

    /// Where a span lies in this task's own area, if it lies there.
    pub fn place_of(&self, span: SendRegion) -> Option<u64> {
        let start = self.starts.get(self.own as usize)?.addr() as u64;
        let place = span.addr().checked_sub(start)?;
        let end = place.checked_add(span.len() as u64)?;
        (end <= self.bytes).then_some(place)
    }

    /// Pointer to `len` bytes at `offset` of the target's memory; `None` unless they lie in it and in the area.
    #[inline(always)]
    fn place(
        &self,
        target: TaskId,
        remote: RemoteRegion,
        offset: u64,
        len: u64,
    ) -> Option<*mut u8> {
        let start = *self.starts.get(target as usize)?;
        let place =
            remote.area_place(offset).filter(|_| remote.addr == RemoteRegion::NO_ADDRESS)?;
        let is_inside = |at: u64, whole: u64| at.checked_add(len).is_some_and(|end| end <= whole);
        let fits = is_inside(offset, remote.len) && is_inside(place, self.bytes);
        fits.then(|| start.wrapping_add(place as usize))
    }

    /// Stores a span in the memory of another task. Returns whether it did.
    #[inline(always)]
    pub fn store(
        &self,
        target: TaskId,
        remote: RemoteRegion,
        offset: u64,
        from: SendRegion,
    ) -> bool {
        let len = from.len();
        if target == self.own || from.is_null() {
            return false;
        }
        let Some(place) = self.place(target, remote, offset, len as u64) else { return false };
        // Bytes that were stored before are visible before these, as a waiting task may expect of a flag.
        fence(Ordering::Release);
        // SAFETY: DP1; the bytes are only copied, as AR1 of `crate::adapters::local::area` asks for.
        unsafe { RecvPart::new(place, len) }.store_directly(from.foreign());
        true
    }

    /// Fills a span from the memory of another task. Returns whether it did.
    #[inline(always)]
    pub fn load(
        &self,
        target: TaskId,
        remote: RemoteRegion,
        offset: u64,
        into: &mut RecvRegion,
    ) -> bool {
        let len = into.len();
        if target == self.own || into.is_null() {
            return false;
        }
        let Some(place) = self.place(target, remote, offset, len as u64) else { return false };
        // SAFETY: DP1; the bytes are only copied, as AR1 of `crate::adapters::local::area` asks for.
        into.part(0, len).store_directly(unsafe { ForeignBytes::new(place, len) });
        // What the target stored before a byte that was loaded is visible afterwards.
        fence(Ordering::Acquire);
        true
    }

    /// Carries out a read-modify-write and returns its result; `None` if the variable is not inside or not aligned.
    #[inline(always)]
    pub fn rmw(
        &self,
        target: TaskId,
        remote: RemoteRegion,
        offset: u64,
        operation: Operation,
    ) -> Option<i64> {
        let size = operation.size();
        let place = self.place(target, remote, offset, size)?;
        if place.addr() as u64 % size != 0 {
            return None;
        }
        // SAFETY: DP1; aligned, and accessed atomically, as AR1 of `crate::adapters::local::area` asks for.
        Some(unsafe {
            match operation {
                Operation::Bits32(op) => op.apply_to(AtomicU32::from_ptr(place.cast())),
                Operation::Bits64(op) => op.apply_to(AtomicU64::from_ptr(place.cast())),
            }
        })
    }
}

//! Puts, gets and read-modify-writes of shared areas, which a task carries out by itself.
//!
//! The short path of others' areas is inlined into the caller: no send queue, no counter, no virtual call. It does
//! nothing where the path of `one_sided/` has to decide: for this task's own area, and for wrong arguments, which that
//! path reports.
//!
//! - DP1: the pointers are the starts of the areas in the mapping. They lie beside the capability that holds the
//!   mapping ([`super::area::Shared`]), and are used only while a session is held, which a fork never is.

#![expect(unsafe_code, reason = "the areas are memory shared with peers")]

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

use crate::adapter::atomic::Operation;
use crate::adapter::{SharedArea, TaskId};
use crate::memory::body::Piece;
use crate::memory::region::{ForeignBytes, RecvPart, RecvRegion, RemoteRegion, SendRegion};
use crate::memory::shared::SharedBytes;

/// The areas of all tasks, as this task has them mapped.
pub(crate) struct Direct {
    areas: Box<[Area]>,
    /// The task that uses them.
    own: TaskId,
}

/// The area of one task.
#[derive(Clone, Copy)]
struct Area {
    start: *mut u8,
    bytes: u64,
}

// SAFETY: DP1: any thread may use the mapping.
unsafe impl Send for Direct {}

impl Direct {
    /// The areas of a job of `num_tasks` tasks, for the task `own`.
    pub fn new(area: &dyn SharedArea, own: TaskId, num_tasks: usize) -> Self {
        let of = |task| Area { start: area.start(task), bytes: area.bytes(task) as u64 };
        Self { areas: (0..num_tasks as TaskId).map(of).collect(), own }
    }

    /// The area of task 1 at `start`, for the fuzz target.
    pub fn of_fuzz(start: *mut u8, bytes: usize) -> Self {
        Self { areas: Box::new([Area { start, bytes: bytes as u64 }; 2]), own: 0 }
    }

    /// Where a span lies in this task's own area, if it lies there.
    pub fn place_of(&self, span: SendRegion) -> Option<u64> {
        let own = self.areas.get(self.own as usize)?;
        let place = span.addr().checked_sub(own.start.addr() as u64)?;
        let end = place.checked_add(span.len() as u64)?;
        (end <= own.bytes).then_some(place)
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
        let place =
            remote.area_place(offset).filter(|_| remote.addr == RemoteRegion::NO_ADDRESS)?;
        let fits = offset.checked_add(len).is_some_and(|end| end <= remote.len);
        self.at(target, place, len).filter(|_| fits)
    }

    /// Pointer to `len` bytes at `place` of the target's area; `None` unless they lie in it.
    #[inline(always)]
    fn at(&self, target: TaskId, place: u64, len: u64) -> Option<*mut u8> {
        let area = *self.areas.get(target as usize)?;
        let fits = place.checked_add(len).is_some_and(|end| end <= area.bytes);
        fits.then(|| area.start.wrapping_add(place as usize))
    }

    /// Copies a body to `place` of the target's area, also of this task's own. Returns whether it fits there.
    pub fn put(&self, target: TaskId, place: u64, body: Piece<'_>) -> bool {
        let Some(at) = self.at(target, place, body.len() as u64) else { return false };
        // As in `store`.
        fence(Ordering::Release);
        if target == self.own {
            // SAFETY: DP1; AR1 of `crate::adapters::local::area`.
            let bytes = unsafe { SharedBytes::new(at, body.len()) };
            bytes.store(ForeignBytes::from_slice(&body.to_vec()));
        } else {
            // SAFETY: DP1; the bytes are only copied (AR1).
            body.copy_to(unsafe { RecvPart::new(at, body.len()) });
        }
        true
    }

    /// Fills `into` from `place` of the target's area, also of this task's own. Returns whether there are so many bytes.
    pub fn get(&self, target: TaskId, place: u64, mut into: RecvPart<'_>) -> bool {
        let Some(at) = self.at(target, place, into.len() as u64) else { return false };
        if target == self.own {
            // SAFETY: DP1; AR1.
            unsafe { SharedBytes::new(at, into.len()) }.load(into);
        } else {
            // SAFETY: DP1; the bytes are only copied (AR1).
            into.store(0, unsafe { ForeignBytes::new(at, into.len()) });
        }
        fence(Ordering::Acquire);
        true
    }

    /// Carries out a read-modify-write of the variable at `place` of the target's area, also of this task's own, and
    /// returns its result; `None` if the variable is not inside or not aligned.
    pub fn modify(&self, target: TaskId, place: u64, operation: Operation) -> Option<i64> {
        let at = self.at(target, place, operation.size())?;
        // SAFETY: DP1; AR1.
        unsafe { apply(operation, at) }
    }

    /// Bytes at `place` of another task's area, one of those that `area` keeps mapped; `None` unless they lie in it.
    pub fn foreign<'a>(
        &self,
        _area: &'a dyn SharedArea,
        task: TaskId,
        place: u64,
        len: u64,
    ) -> Option<ForeignBytes<'a>> {
        let at = self.at(task, place, len).filter(|_| task != self.own)?;
        // SAFETY: G3: the bytes lie in the mapping; AR1.
        Some(unsafe { ForeignBytes::new(at, len as usize) })
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
        let at = self.place(target, remote, offset, operation.size())?;
        // SAFETY: DP1; AR1.
        unsafe { apply(operation, at) }
    }
}

/// Carries out a read-modify-write of the variable at `at`; `None` if it is not aligned.
///
/// # Safety
/// `at` is valid for the variable, and others access it by atomic operations only.
#[inline(always)]
unsafe fn apply(operation: Operation, at: *mut u8) -> Option<i64> {
    if at.addr() as u64 % operation.size() != 0 {
        return None;
    }
    // SAFETY: the caller's promise, and aligned.
    Some(unsafe {
        match operation {
            Operation::Bits32(op) => op.apply_to(AtomicU32::from_ptr(at.cast())),
            Operation::Bits64(op) => op.apply_to(AtomicU64::from_ptr(at.cast())),
        }
    })
}

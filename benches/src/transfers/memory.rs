//! The memory that transfers read and write, and the byte by which a task sees that a put has arrived.
//!
//! - LM1: the memory is never freed, so it outlives every operation.
//! - LM2: one thread uses the memory; others may only send from it, while that one changes nothing. It looks at bytes, or changes them, only while no operation of its own uses them,
//!   and while the other task is known to transfer nothing there. The one exception is the polled byte, which is loaded
//!   atomically. Messages of a window that have one place are stored by the dispatcher, frame by frame, in that thread.

#![expect(unsafe_code, reason = "makes the regions that transfers read and write")]

use std::sync::atomic::{AtomicU8, Ordering};

use pami::Memregion;
use transport_lapi::{RecvRegion, SendRegion, SharedMemory};

/// A piece of memory.
#[derive(Debug, Clone, Copy)]
pub struct Memory {
    start: *mut u8,
    len: usize,
}

// SAFETY: LM1, LM2.
unsafe impl Send for Memory {}
// SAFETY: LM1, LM2.
unsafe impl Sync for Memory {}

impl Memory {
    /// No memory.
    pub const EMPTY: Self = Self { start: std::ptr::dangling_mut(), len: 0 };

    /// Memory in the shared area, which the caller never frees (LM1).
    pub fn of_area(area: &SharedMemory) -> Self {
        Self { start: area.as_mut_ptr(), len: area.len() }
    }

    /// Likewise memory of PAMI.
    pub fn of_region(region: &Memregion) -> Self {
        Self { start: region.as_mut_ptr(), len: region.len() }
    }

    /// The number of bytes.
    pub fn size(&self) -> usize {
        self.len
    }

    /// The bytes `offset..offset + len`, to be read by a transfer.
    pub fn source(&self, offset: usize, len: usize) -> SendRegion {
        let start = self.part(offset, len).expect("programs name parts of their memory");
        // SAFETY: LM1, LM2.
        unsafe { SendRegion::new(start, len) }
    }

    /// The bytes `offset..offset + len`, to be written by a transfer; `None` if they are not inside.
    pub fn landing(&self, offset: usize, len: usize) -> Option<RecvRegion> {
        let start = self.part(offset, len)?;
        // SAFETY: LM1, LM2.
        Some(unsafe { RecvRegion::new(start, len) })
    }

    /// The bytes `offset..offset + len`, while no transfer uses them (LM2).
    pub fn bytes(&mut self, offset: usize, len: usize) -> &mut [u8] {
        let start = self.part(offset, len).expect("programs name parts of their memory");
        // SAFETY: LM1, LM2.
        unsafe { std::slice::from_raw_parts_mut(start, len) }
    }

    /// The byte at `offset`, while transfers may store it.
    pub fn sign(&self, offset: usize) -> u8 {
        let at = self.part(offset, 1).expect("programs name parts of their memory");
        // SAFETY: LM1; LM2: a load by the thread that also stores.
        unsafe { AtomicU8::from_ptr(at) }.load(Ordering::Relaxed)
    }

    fn part(&self, offset: usize, len: usize) -> Option<*mut u8> {
        let end = offset.checked_add(len)?;
        (end <= self.len).then(|| self.start.wrapping_add(offset))
    }
}

//! Memory of one small ring outside any segment, for tests and models.

use super::{Indices, Ring, SLOT_DATA, Slot};
use crate::adapters::local::data_ring::DataLine;
use crate::adapters::local::recycled::{BUFFER_BYTES, RecycledBuffers};
use crate::platform::sync::{AtomicU32, AtomicU64, UnsafeCell};
use crate::platform::sys::LINE;
use std::mem::MaybeUninit;

/// The memory of a ring, which otherwise is in a segment.
pub(super) struct Memory {
    slots: Vec<Slot>,
    indices: Indices,
    data_ring: Vec<DataLine>,
    recycled: Vec<DataLine>,
}

impl Memory {
    /// Makes a ring of `slots` slots and `lines` lines of data ring, both powers of two.
    pub(super) fn new(slots: usize, lines: usize) -> Self {
        let slot = |_| Slot {
            header_word: AtomicU64::new(0),
            length_word: AtomicU64::new(0),
            data: UnsafeCell::new([MaybeUninit::new(0); SLOT_DATA]),
        };
        Self {
            slots: (0..slots).map(slot).collect(),
            indices: Indices { slots: AtomicU32::new(0), data_ring: AtomicU32::new(0) },
            data_ring: self::lines(lines),
            recycled: Vec::new(),
        }
    }

    /// Adds the memory of `buffers` buffers.
    pub(super) fn with_recycled(self, buffers: usize) -> Self {
        Self { recycled: lines(buffers * BUFFER_BYTES / LINE), ..self }
    }

    /// The view of these buffers that one end has.
    pub(super) fn recycled(&self, has_all: bool) -> RecycledBuffers<'_> {
        RecycledBuffers::new(&self.recycled, has_all)
    }

    pub(super) fn ring(&self) -> Ring<'_> {
        Ring { slots: &self.slots, indices: &self.indices, data_ring: &self.data_ring }
    }
}

fn lines(number: usize) -> Vec<DataLine> {
    (0..number).map(|_| DataLine(UnsafeCell::new([0; LINE]))).collect()
}

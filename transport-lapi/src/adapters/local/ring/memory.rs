//! Memory of one small ring outside any segment, for tests and models.

use super::{Indices, Ring, SLOT_DATA, Slot};
use crate::adapters::local::blocks::{BLOCK_BYTES, Blocks};
use crate::adapters::local::data_ring::DataLine;
use crate::platform::sync::{AtomicU32, AtomicU64, UnsafeCell};
use crate::platform::sys::LINE;
use std::mem::MaybeUninit;

/// The memory of a ring, which otherwise is in a segment.
pub(super) struct Memory {
    slots: Vec<Slot>,
    indices: Indices,
    data_ring: Vec<DataLine>,
    blocks: Vec<DataLine>,
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
            blocks: Vec::new(),
        }
    }

    /// Adds the memory of `blocks` blocks.
    pub(super) fn with_blocks(self, blocks: usize) -> Self {
        Self { blocks: lines(blocks * BLOCK_BYTES / LINE), ..self }
    }

    /// The view of these blocks that one end has.
    pub(super) fn blocks(&self, has_all: bool) -> Blocks<'_> {
        Blocks::new(&self.blocks, has_all)
    }

    pub(super) fn ring(&self) -> Ring<'_> {
        Ring { slots: &self.slots, indices: &self.indices, data_ring: &self.data_ring }
    }
}

fn lines(number: usize) -> Vec<DataLine> {
    (0..number).map(|_| DataLine(UnsafeCell::new([0; LINE]))).collect()
}

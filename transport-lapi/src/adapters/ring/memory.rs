//! Memory of one small ring outside any segment, for tests and models.

use super::{CELL_DATA, Cell, Indices, Ring};
use crate::adapters::bulk::BulkLine;
use crate::sync::{AtomicU32, AtomicU64, UnsafeCell};
use crate::sys::LINE;
use std::mem::MaybeUninit;

/// The memory of a ring, which otherwise is in a segment.
pub(super) struct Memory {
    cells: Vec<Cell>,
    indices: Indices,
    bulk: Vec<BulkLine>,
}

impl Memory {
    /// Makes a ring of `cells` cells and `lines` lines of bulk area, both powers of two.
    pub(super) fn new(cells: usize, lines: usize) -> Self {
        let cell = |_| Cell {
            stamp: AtomicU64::new(0),
            extent: AtomicU64::new(0),
            data: UnsafeCell::new([MaybeUninit::new(0); CELL_DATA]),
        };
        Self {
            cells: (0..cells).map(cell).collect(),
            indices: Indices { cells: AtomicU32::new(0), bulk: AtomicU32::new(0) },
            bulk: (0..lines).map(|_| BulkLine(UnsafeCell::new([0; LINE]))).collect(),
        }
    }

    pub(super) fn ring(&self) -> Ring<'_> {
        Ring { cells: &self.cells, indices: &self.indices, bulk: &self.bulk }
    }
}

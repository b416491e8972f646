//! Memory of one small ring outside any segment, for tests and models.

use super::{CELL_DATA, Cell, Indices, Ring};
use crate::adapters::blocks::{BLOCK_BYTES, Blocks};
use crate::adapters::bulk::BulkLine;
use crate::sync::{AtomicU32, AtomicU64, UnsafeCell};
use crate::sys::LINE;
use std::mem::MaybeUninit;

/// The memory of a ring, which otherwise is in a segment.
pub(super) struct Memory {
    cells: Vec<Cell>,
    indices: Indices,
    bulk: Vec<BulkLine>,
    blocks: Vec<BulkLine>,
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
            bulk: self::lines(lines),
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
        Ring { cells: &self.cells, indices: &self.indices, bulk: &self.bulk }
    }
}

fn lines(number: usize) -> Vec<BulkLine> {
    (0..number).map(|_| BulkLine(UnsafeCell::new([0; LINE]))).collect()
}

//! The forms of a layout, and the properties of each: size, bounds, blocks, depth.
//!
//! [`super::build`] chooses the form and makes it; [`super::walk`] copies with it.

use std::ops::ControlFlow;
use std::sync::{Arc, OnceLock};

use super::{Layout, LayoutError};

/// A layout whose displacements are relative to the first byte of the message (LAY1).
pub(super) struct Body {
    pub(super) form: Form,
    /// Number of bytes of the message.
    pub(super) size: usize,
    /// Displacement of the lowest byte: 0 or less.
    pub(super) low: isize,
    /// Displacement of the byte behind the highest one.
    pub(super) high: isize,
    /// Number of blocks.
    pub(super) blocks: usize,
    /// Number of nested levels, including this one.
    depth: usize,
    /// Whether no byte is named twice; computed on the first call of `is_disjoint`.
    pub(super) disjoint: OnceLock<bool>,
}

/// The arrangement of the bytes.
pub(super) enum Form {
    /// Contiguous bytes.
    Block,
    /// `count` equal bodies, each `stride` bytes after the previous one.
    Repeat { body: Arc<Body>, stride: isize, count: usize },
    /// Equal bodies at these displacements, of which the first is 0.
    Placed { body: Arc<Body>, displacements: Box<[isize]> },
    /// Blocks of different lengths.
    Blocks {
        /// Offset in the message at which each block begins; at the end, the size of the message.
        begins: Box<[usize]>,
        /// Displacement in memory at which each block begins.
        displacements: Box<[isize]>,
    },
    /// Different bodies.
    List(Box<[Part]>),
}

/// A body in a list.
pub(super) struct Part {
    /// Offset in the message at which it begins.
    pub(super) begin: usize,
    /// Displacement of its first byte in memory.
    pub(super) at: isize,
    pub(super) body: Arc<Body>,
}

/// Bounds of a composed body: the lowest byte and the one behind the highest. Wide, so that nothing overflows.
struct Bounds {
    low: i128,
    high: i128,
}

impl Bounds {
    const NONE: Self = Self { low: i128::MAX, high: i128::MIN };

    fn add(&mut self, at: i128, low: isize, high: isize) {
        self.low = self.low.min(at + low as i128);
        self.high = self.high.max(at + high as i128);
    }
}

impl Body {
    /// Makes one block of `len` bytes; `len` is at most `isize::MAX` (LAY2).
    pub(super) fn block(len: usize) -> Self {
        let (blocks, high) = (usize::from(len > 0), len as isize);
        let disjoint = OnceLock::new();
        Self { form: Form::Block, size: len, low: 0, high, blocks, depth: 1, disjoint }
    }

    /// Makes `count` copies of `body`, at least one, at a distance of `stride`.
    pub(super) fn repeat(
        body: Arc<Self>,
        count: usize,
        stride: isize,
    ) -> Result<Self, LayoutError> {
        let size = body.size.checked_mul(count).ok_or(LayoutError::TooLarge)?;
        let mut bounds = Bounds::NONE;
        bounds.add(0, body.low, body.high);
        bounds.add(stride as i128 * (count as i128 - 1), body.low, body.high);
        let (blocks, depth) = (body.blocks.saturating_mul(count), body.depth);
        Self::of(Form::Repeat { body, stride, count }, size, bounds, blocks, depth)
    }

    /// Makes a copy of `body` at each of `displacements`, of which the first is 0.
    pub(super) fn placed(
        body: Arc<Self>,
        displacements: Box<[isize]>,
    ) -> Result<Self, LayoutError> {
        let count = displacements.len();
        let size = body.size.checked_mul(count).ok_or(LayoutError::TooLarge)?;
        let mut bounds = Bounds::NONE;
        for &at in &displacements {
            bounds.add(at as i128, body.low, body.high);
        }
        let (blocks, depth) = (body.blocks.saturating_mul(count), body.depth);
        Self::of(Form::Placed { body, displacements }, size, bounds, blocks, depth)
    }

    /// Makes blocks: `displacements` in memory, the first at 0, and offsets in the message, with its size at the end.
    pub(super) fn blocks(
        begins: Box<[usize]>,
        displacements: Box<[isize]>,
    ) -> Result<Self, LayoutError> {
        let mut bounds = Bounds::NONE;
        for (begin, &at) in begins.windows(2).zip(&displacements) {
            bounds.add(at as i128, 0, (begin[1] - begin[0]) as isize);
        }
        let (size, blocks) =
            (*begins.last().expect("there is one more than blocks"), begins.len() - 1);
        Self::of(Form::Blocks { begins, displacements }, size, bounds, blocks, 0)
    }

    /// Makes a list of `parts` in order, the first at 0. The sum of their sizes is `size`.
    pub(super) fn list(parts: Box<[Part]>, size: usize) -> Result<Self, LayoutError> {
        let mut bounds = Bounds::NONE;
        let (mut blocks, mut depth) = (0usize, 0);
        for Part { at, body, .. } in &parts {
            bounds.add(*at as i128, body.low, body.high);
            blocks = blocks.saturating_add(body.blocks);
            depth = depth.max(body.depth);
        }
        Self::of(Form::List(parts), size, bounds, blocks, depth)
    }

    fn of(
        form: Form,
        size: usize,
        bounds: Bounds,
        blocks: usize,
        depth_below: usize,
    ) -> Result<Self, LayoutError> {
        let depth = depth_below + 1;
        if depth > Layout::MAX_DEPTH {
            return Err(LayoutError::TooDeep);
        }
        let fits = |number: i128| isize::try_from(number).map_err(|_| LayoutError::TooLarge);
        let (low, high) = (fits(bounds.low)?, fits(bounds.high)?);
        fits(bounds.high - bounds.low)?;
        fits(size as i128)?;
        Ok(Self { form, size, low, high, blocks, depth, disjoint: OnceLock::new() })
    }

    /// Whether the bytes are contiguous.
    pub(super) fn is_block(&self) -> bool {
        matches!(self.form, Form::Block)
    }

    /// Distance from the lowest byte to the one behind the highest byte.
    pub(super) fn reach(&self) -> usize {
        self.high.abs_diff(self.low)
    }

    /// Calls `visit` with displacement and length of each block in order. The first byte of the body is at `at`.
    pub(super) fn each_block(&self, at: isize, visit: &mut impl FnMut(isize, usize)) {
        let _ = self.spans(at, 0, self.size, &mut |at, len| {
            visit(at, len);
            ControlFlow::Continue(())
        });
    }
}

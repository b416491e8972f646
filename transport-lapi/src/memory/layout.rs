//! Layouts: descriptions of where the bytes of a message lie in memory, and the interpreter that copies them.
//!
//! Clients build a [`Layout`] once, from blocks, strides, repetitions and lists, and use it for any number of messages:
//! [`Layout::to_send`] and [`Layout::to_receive`] combine it with memory into a [`Source`] or a [`Sink`]. Examples of
//! such layouts are LAPI's strided vectors, its data gather/scatter programs (DGSP) and the datatypes of MPI.
//!
//! - LAY1: displacements inside a body are relative to the first byte of its message. So every position that the
//!   interpreter computes is that of a byte of the message, within the bounds that were checked.
//! - LAY2: the size of a layout, its bounds and their distance are at most `isize::MAX`; constructors refuse others.
//! - LAY3: no part of a layout is empty, although a whole layout may be. So a layout has no more blocks than bytes.
//!
//! [`body`] defines the forms and their bounds, [`build`] chooses the form, [`walk`] copies, [`spans`] visits blocks,
//! [`overlap`] searches for bytes that are named twice, and [`words`] is for messages that carry a layout.

use std::fmt;
use std::sync::Arc;

use crate::memory::body::{Sink, Source};
use crate::memory::region::{ForeignBytes, RecvPart, RecvRegion, SendRegion};
use crate::memory::shared::SharedBytes;

use self::body::Body;
use self::build::Blocks;
use self::walk::Placed;

mod body;
mod build;
mod overlap;
mod show;
mod spans;
mod walk;
mod words;

/// Describes where the bytes of a message lie, by displacements from an origin that each message chooses.
///
/// The bytes of the message are in the order of the parts, as in a type map of MPI (MPI-4.1 chapter 5). Displacements
/// and strides are in bytes and may be negative; memory between the blocks is not touched. A layout is immutable and
/// cheap to clone. Constructors choose the simplest form that they recognise: contiguous parts become one block, and
/// parts at equal distances become a repetition. Finding a byte of the message takes one step for a repetition, and a
/// binary search for a list.
///
/// # Example
///
/// A column of a matrix of 4 rows and 3 columns of `f64`, then three columns as MPI would send them:
///
/// ```
/// use transport_lapi::Layout;
///
/// let column = Layout::strided(8, 24, 4)?;
/// assert_eq!((column.size(), column.bounds(), column.blocks()), (32, (0, 80), 4));
/// assert_eq!(column.to_string(), "4 times every 24: 8 bytes");
///
/// let columns = column.repeat(3, 8)?;
/// assert_eq!(columns.to_string(), "3 times every 8: 4 times every 24: 8 bytes");
///
/// let rows = Layout::contiguous(8)?.repeat(3, 8)?.repeat(4, 24)?;
/// assert_eq!(rows.span(), Some((0, 96)), "whole rows are recognised as one block");
/// # Ok::<(), transport_lapi::LayoutError>(())
/// ```
#[derive(Clone)]
pub struct Layout {
    /// Displacement of the first byte of the message.
    at: isize,
    body: Arc<Body>,
}

/// Why a layout cannot be made, or cannot be used with some memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LayoutError {
    /// The size, a displacement or the distance of the bounds is more than `isize::MAX`.
    #[error("the layout is larger than memory can be")]
    TooLarge,
    /// The layout is nested deeper than [`Layout::MAX_DEPTH`].
    #[error("the layout is nested deeper than {} levels", Layout::MAX_DEPTH)]
    TooDeep,
    /// Some bytes of the layout lie outside the memory.
    #[error("the layout covers bytes {low} to {high} of memory of {len} bytes")]
    Outside {
        /// Offset of the lowest byte in the memory, clamped to `isize`.
        low: isize,
        /// Offset of the byte behind the highest one.
        high: isize,
        /// Length of the memory in bytes.
        len: usize,
    },
    /// The memory's address is null: LAPI's ORG_ADDR_NULL.
    #[error("the layout has bytes, but the memory is at address null")]
    Null,
    /// Words do not describe a layout.
    #[error("the words of a peer describe no layout")]
    Words,
    /// A byte would be written twice: MPI calls such a receive erroneous (MPI-4.1 section 5.1).
    #[error("the layout names a byte twice, so it cannot be received into")]
    Overlap,
}

impl Layout {
    /// How deep layouts may be nested after simplification. Copies recurse to this depth.
    pub const MAX_DEPTH: usize = 128;

    fn new(at: isize, body: Arc<Body>) -> Result<Self, LayoutError> {
        let ends = (at.checked_add(body.low), at.checked_add(body.high));
        if let (Some(_), Some(_)) = ends {
            Ok(Self { at, body })
        } else {
            Err(LayoutError::TooLarge)
        }
    }

    fn empty() -> Self {
        Self { at: 0, body: Arc::new(Body::block(0)) }
    }

    /// Makes a layout of one block of `len` bytes at displacement 0.
    ///
    /// # Errors
    /// [`LayoutError::TooLarge`], as in all constructors.
    pub fn contiguous(len: usize) -> Result<Self, LayoutError> {
        isize::try_from(len).map_err(|_| LayoutError::TooLarge)?;
        Self::new(0, Arc::new(Body::block(len)))
    }

    /// Makes a layout of `count` blocks of `block` bytes, each beginning `stride` bytes after the previous one, the
    /// first at displacement 0: MPI_Type_create_hvector of bytes, LAPI_GEN_STRIDED_XFER.
    ///
    /// # Errors
    /// [`LayoutError::TooLarge`].
    pub fn strided(block: usize, stride: isize, count: usize) -> Result<Self, LayoutError> {
        Self::contiguous(block)?.repeat(count, stride)
    }

    /// Makes a layout of `count` copies of this one, each `stride` bytes after the previous one:
    /// MPI_Type_create_hvector, the body of a DGSP's GOSUB. With the extent of a datatype as the stride, these are
    /// `count` elements of it.
    ///
    /// # Errors
    /// [`LayoutError::TooLarge`], [`LayoutError::TooDeep`].
    pub fn repeat(&self, count: usize, stride: isize) -> Result<Self, LayoutError> {
        if count == 0 || self.size() == 0 {
            return Ok(Self::empty());
        }
        Self::new(self.at, build::repeated(&self.body, count, stride)?)
    }

    /// Makes a layout with a copy of this one at each of `displacements`: MPI_Type_create_hindexed_block.
    ///
    /// # Errors
    /// [`LayoutError::TooLarge`], [`LayoutError::TooDeep`].
    pub fn place(
        &self,
        displacements: impl IntoIterator<Item = isize>,
    ) -> Result<Self, LayoutError> {
        if let Some((at, len)) = self.span() {
            let at = |by: isize| at.checked_add(by).ok_or(LayoutError::TooLarge);
            return Blocks::collect(displacements.into_iter().map(|by| Ok((at(by)?, len))));
        }
        let displacements: Vec<isize> = displacements.into_iter().collect();
        let Some(&first) = displacements.first() else { return Ok(Self::empty()) };
        let at = self.at.checked_add(first).ok_or(LayoutError::TooLarge)?;
        Self::new(at, build::placed(&self.body, displacements)?)
    }

    /// Makes a layout of blocks with these displacements and lengths: MPI_Type_create_hindexed of bytes, a DGSP's
    /// MCOPY.
    ///
    /// # Errors
    /// [`LayoutError::TooLarge`].
    pub fn indexed(blocks: impl IntoIterator<Item = (isize, usize)>) -> Result<Self, LayoutError> {
        Blocks::collect(blocks.into_iter().map(Ok))
    }

    /// Makes a layout of blocks of `len` bytes at `displacements`: MPI_Type_create_hindexed_block of bytes.
    ///
    /// # Errors
    /// [`LayoutError::TooLarge`].
    pub fn indexed_block(
        len: usize,
        displacements: impl IntoIterator<Item = isize>,
    ) -> Result<Self, LayoutError> {
        Self::indexed(displacements.into_iter().map(|at| (at, len)))
    }

    /// Makes a layout of these layouts in order, each with its displacement 0 at the given displacement:
    /// MPI_Type_create_struct.
    ///
    /// ```
    /// # use transport_lapi::Layout;
    /// let [tag, point] = [Layout::contiguous(1)?, Layout::strided(4, 8, 2)?];
    /// let record = Layout::list([(0, tag), (4, point)])?;
    /// assert_eq!(record.to_string(), "[1 byte at 0, 4 bytes at 4, 4 bytes at 12]");
    /// # Ok::<(), transport_lapi::LayoutError>(())
    /// ```
    ///
    /// # Errors
    /// [`LayoutError::TooLarge`], [`LayoutError::TooDeep`].
    pub fn list(parts: impl IntoIterator<Item = (isize, Self)>) -> Result<Self, LayoutError> {
        let mut placed = Vec::new();
        for (by, part) in parts {
            if part.size() > 0 {
                let at = part.at.checked_add(by).ok_or(LayoutError::TooLarge)?;
                placed.push(Self::new(at, part.body)?);
            }
        }
        build::listed(placed)
    }

    /// Returns the number of bytes of a message: MPI_Type_size.
    pub fn size(&self) -> usize {
        self.body.size
    }

    /// Returns the displacements of the lowest byte and of the one behind the highest: MPI's true lower and upper
    /// bound. Both are 0 if there are no bytes.
    pub fn bounds(&self) -> (isize, isize) {
        (self.at + self.body.low, self.at + self.body.high)
    }

    /// Returns displacement and length if the layout is one block; its messages then need no copy.
    pub fn span(&self) -> Option<(isize, usize)> {
        self.body.is_block().then_some((self.at, self.body.size))
    }

    /// Returns the number of blocks, after adjacent ones were joined where recognised.
    pub fn blocks(&self) -> usize {
        self.body.blocks
    }

    /// Calls `visit` with displacement and length of each block, in the order of the message.
    pub fn each_block(&self, mut visit: impl FnMut(isize, usize)) {
        self.body.each_block(self.at, &mut visit);
    }

    /// Makes a source of the bytes of this layout in `memory`. Displacement 0 is the byte `origin` of the memory, which
    /// may be outside it as long as no byte of the layout is.
    ///
    /// ```
    /// # use transport_lapi::{Layout, SendRegion};
    /// static MEMORY: [u8; 16] = [7; 16];
    /// // SAFETY: a static lives for ever and is not written.
    /// let memory = unsafe { SendRegion::new(MEMORY.as_ptr(), MEMORY.len()) };
    /// let every_second = Layout::strided(1, 2, 8)?;
    /// assert_eq!(every_second.to_send(memory, 0)?.len(), 8);
    /// assert!(every_second.to_send(memory, 2).is_err(), "the last byte would be outside");
    /// # Ok::<(), transport_lapi::LayoutError>(())
    /// ```
    ///
    /// # Errors
    /// [`LayoutError::Outside`], and [`LayoutError::Null`] if the memory's address is null and there are bytes.
    pub fn to_send(&self, memory: SendRegion, origin: isize) -> Result<Source, LayoutError> {
        if self.size() == 0 {
            return Ok(Source::EMPTY);
        }
        let at = self.first_byte(origin, memory.is_null(), memory.len())?;
        if self.body.is_block() {
            return Ok(Source::Span(memory.part(at, self.size())));
        }
        Ok(Source::Layout(Arc::new(Placed { body: self.body.clone(), at, memory })))
    }

    /// Makes a sink of the bytes of this layout in `memory`. Displacement 0 is the byte `origin` of the memory, which
    /// may be outside it as long as no byte of the layout is.
    ///
    /// # Errors
    /// [`LayoutError::Outside`]; [`LayoutError::Null`] if the memory's address is null and there are bytes;
    /// [`LayoutError::Overlap`] if the layout names a byte more than once. The check is exact and runs once per layout:
    /// it uses strides for repetitions, sorts the parts of lists, and sorts all blocks if the parts of a list or the
    /// rounds of a repetition reach into each other.
    pub fn to_receive(&self, memory: RecvRegion, origin: isize) -> Result<Sink, LayoutError> {
        if self.size() == 0 {
            return Ok(Sink::EMPTY);
        }
        let at = self.first_byte(origin, memory.is_null(), memory.len())?;
        if self.body.is_block() {
            return Ok(Sink::Span(memory.behind(at).truncated(self.size())));
        }
        if !self.body.is_disjoint() {
            return Err(LayoutError::Overlap);
        }
        Ok(Sink::layout(Placed { body: self.body.clone(), at, memory }))
    }

    /// Returns whether the layout names no byte more than once, as [`Layout::to_receive`] demands.
    pub fn is_disjoint(&self) -> bool {
        self.body.is_disjoint()
    }

    /// Copies bytes of the message, from `offset` on, out of `memory` into `into`. Returns how many were copied: as
    /// many as fit and exist. Displacement 0 is the byte `origin` of the memory, which may be outside it as long as no
    /// byte of the layout is.
    ///
    /// ```
    /// # use transport_lapi::Layout;
    /// let every_second = Layout::strided(1, 2, 3)?;
    /// let mut packed = [0; 3];
    /// assert_eq!(every_second.pack(b"a-b-c", 0, 0, &mut packed)?, 3);
    /// assert_eq!(&packed, b"abc");
    ///
    /// let mut memory = *b"......";
    /// every_second.unpack(&packed[1..], 1, &mut memory, 0)?;
    /// assert_eq!(&memory, b"..b.c.");
    /// # Ok::<(), transport_lapi::LayoutError>(())
    /// ```
    ///
    /// # Errors
    /// [`LayoutError::Outside`].
    pub fn pack(
        &self,
        memory: &[u8],
        origin: isize,
        offset: usize,
        into: &mut [u8],
    ) -> Result<usize, LayoutError> {
        let len = into.len().min(self.size().saturating_sub(offset));
        if len > 0 {
            let at = self.first_byte(origin, false, memory.len())?;
            walk::pack(&self.body, at, memory, offset, &mut into[..len]);
        }
        Ok(len)
    }

    /// Copies `from` to the bytes of the message from `offset` on, as many as there are, and returns how many those
    /// were. They lie in `memory` as in [`pack`](Self::pack); bytes between them are unchanged.
    ///
    /// # Errors
    /// [`LayoutError::Outside`]; [`LayoutError::Overlap`] as in [`to_receive`](Self::to_receive).
    pub fn unpack(
        &self,
        from: &[u8],
        offset: usize,
        memory: &mut [u8],
        origin: isize,
    ) -> Result<usize, LayoutError> {
        let len = from.len().min(self.size().saturating_sub(offset));
        if len > 0 {
            let at = self.first_byte(origin, false, memory.len())?;
            if !self.body.is_disjoint() {
                return Err(LayoutError::Overlap);
            }
            walk::unpack(&self.body, at, memory, offset, &from[..len]);
        }
        Ok(len)
    }

    /// Like [`pack`](Self::pack), out of memory that other threads may write meanwhile.
    ///
    /// # Errors
    /// [`LayoutError::Outside`].
    pub fn load(
        &self,
        memory: SharedBytes<'_>,
        origin: isize,
        offset: usize,
        into: RecvPart<'_>,
    ) -> Result<(), LayoutError> {
        if self.size() > 0 {
            let at = self.first_byte(origin, false, memory.len())?;
            walk::load(&self.body, at, memory, offset, into);
        }
        Ok(())
    }

    /// Like [`unpack`](Self::unpack), to memory that other threads may access meanwhile.
    ///
    /// # Errors
    /// [`LayoutError::Outside`]; [`LayoutError::Overlap`].
    pub fn store(
        &self,
        from: ForeignBytes<'_>,
        offset: usize,
        memory: SharedBytes<'_>,
        origin: isize,
    ) -> Result<(), LayoutError> {
        if self.size() > 0 {
            let at = self.first_byte(origin, false, memory.len())?;
            if !self.body.is_disjoint() {
                return Err(LayoutError::Overlap);
            }
            walk::store(&self.body, at, memory, offset, from);
        }
        Ok(())
    }

    /// Offset of the message's first byte in memory of `len` bytes. Fails unless all bytes lie inside.
    fn first_byte(&self, origin: isize, is_null: bool, len: usize) -> Result<usize, LayoutError> {
        if is_null {
            return Err(LayoutError::Null);
        }
        let (low, high) = self.bounds();
        let (low, high) = (origin.saturating_add(low), origin.saturating_add(high));
        // If this check passes, neither sum was saturated: memory is shorter than that.
        if low < 0 || high.unsigned_abs() > len || high == isize::MAX {
            return Err(LayoutError::Outside { low, high, len });
        }
        Ok((low - self.body.low).unsigned_abs())
    }
}

impl fmt::Debug for Layout {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

#[cfg(all(test, not(loom)))]
#[expect(unsafe_code, reason = "the tests describe buffers of their own as regions")]
mod tests;

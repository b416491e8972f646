//! Types: where the bytes of a transfer lie, and what a variable is.

use std::ops::Range;
use std::sync::Arc;

use transport_lapi::{Layout, LayoutError, Vector};

use crate::error::Error;

/// The most blocks of a type.
const MOST_BLOCKS: usize = 1 << 18;

/// A type under construction (PAMI_Type_create). Blocks are added at a cursor, which moves behind them.
#[derive(Debug, Clone, Default)]
pub struct TypeBuilder {
    blocks: Vec<(isize, usize)>,
    cursor: isize,
}

impl TypeBuilder {
    /// Begins a type without bytes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds `count` blocks of `bytes` bytes, of which the first begins `offset` behind the cursor, and each other one
    /// `stride` behind the one before (PAMI_Type_add_simple). The cursor then is one stride behind the last one.
    ///
    /// # Errors
    /// [`Error::Type`] if there are too many blocks, or a byte would lie outside of any memory.
    pub fn add_simple(
        self,
        bytes: usize,
        offset: usize,
        count: usize,
        stride: usize,
    ) -> Result<Self, Error> {
        self.add(&[(0, bytes)], offset, count, stride)
    }

    /// Adds `count` copies of a type like [`TypeBuilder::add_simple`] (PAMI_Type_add_typed).
    ///
    /// # Errors
    /// As there.
    pub fn add_typed(
        self,
        subtype: &Type,
        offset: usize,
        count: usize,
        stride: usize,
    ) -> Result<Self, Error> {
        self.add(&subtype.0.blocks, offset, count, stride)
    }

    fn add(
        mut self,
        part: &[(isize, usize)],
        offset: usize,
        count: usize,
        stride: usize,
    ) -> Result<Self, Error> {
        let sum = |at: isize, by: usize| at.checked_add_unsigned(by).ok_or(LayoutError::TooLarge);
        self.cursor = sum(self.cursor, offset)?;
        let more = part.len().checked_mul(count).ok_or(LayoutError::TooLarge)?;
        if more > MOST_BLOCKS - self.blocks.len() {
            return Err(LayoutError::TooLarge.into());
        }
        for _ in 0..count {
            for (at, len) in part.iter().filter(|(_, len)| *len > 0) {
                let at = sum(self.cursor, at.unsigned_abs())?;
                sum(at, *len)?;
                self.blocks.push((at, *len));
            }
            self.cursor = sum(self.cursor, stride)?;
        }
        Ok(self)
    }

    /// Ends the construction (PAMI_Type_complete). `atom` is the size, in bytes, of the units that a data function may
    /// not split.
    ///
    /// # Errors
    /// [`Error::AtomSize`].
    pub fn complete(self, atom: usize) -> Result<Type, Error> {
        let Self { blocks, cursor } = self;
        let fits = |(_, len): &(isize, usize)| len % atom == 0;
        if atom == 0 || !blocks.iter().all(fits) {
            return Err(Error::AtomSize { atom });
        }
        let layout = Layout::indexed(blocks.iter().copied())?;
        let mut size = 0;
        let begin = |(_, len): &(isize, usize)| {
            size += len;
            size - len
        };
        let begins = blocks.iter().map(begin).collect();
        Ok(Type(Arc::new(Complete { blocks, begins, layout, extent: cursor.unsigned_abs(), atom })))
    }
}

/// A complete type, cheap to clone (pami_type_t). It is destroyed with its last clone.
///
/// ```
/// use pami::TypeBuilder;
/// let pairs = TypeBuilder::new().add_simple(16, 0, 3, 32)?.complete(8)?;
/// assert_eq!((pairs.size(), pairs.extent(), pairs.atom_size()), (48, 96, 8));
/// # Ok::<(), pami::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Type(Arc<Complete>);

#[derive(Debug)]
struct Complete {
    blocks: Vec<(isize, usize)>,
    /// Where each block begins in a message.
    begins: Vec<usize>,
    layout: Layout,
    extent: usize,
    atom: usize,
}

impl Type {
    /// Returns the number of bytes (PAMI_TYPE_DATA_SIZE).
    pub fn size(&self) -> usize {
        self.0.layout.size()
    }

    /// Returns the distance from the origin to the cursor, in bytes (PAMI_TYPE_DATA_EXTENT).
    pub fn extent(&self) -> usize {
        self.0.extent
    }

    /// Returns the size of the atoms in bytes (PAMI_TYPE_ATOM_SIZE).
    pub fn atom_size(&self) -> usize {
        self.0.atom
    }

    /// Returns the layout, with which the transport makes sources and sinks of any memory.
    pub fn layout(&self) -> &Layout {
        &self.0.layout
    }

    /// The offset behind the last byte.
    pub(crate) fn end(&self) -> usize {
        self.0.layout.bounds().1.unsigned_abs()
    }

    /// Calls `visit` with each contiguous part of the bytes `offset..offset + len` of a message: where it begins behind
    /// the origin, and which of the `len` bytes it has.
    pub(crate) fn each_part(
        &self,
        offset: usize,
        len: usize,
        mut visit: impl FnMut(usize, Range<usize>),
    ) {
        let Complete { begins, blocks, .. } = &*self.0;
        let first = begins.partition_point(|begin| *begin <= offset).saturating_sub(1);
        let mut done = 0;
        for (begin, (at, block)) in begins[first..].iter().zip(&blocks[first..]) {
            if done == len {
                break;
            }
            let within = offset + done - begin;
            let count = (block - within).min(len - done);
            visit(at.unsigned_abs() + within, done..done + count);
            done += count;
        }
    }

    /// The blocks in another task's memory, from byte `origin` of it on.
    pub(crate) fn vector(&self, origin: u64) -> Vector {
        let block = |(at, len): &(isize, usize)| {
            (origin.saturating_add(at.unsigned_abs() as u64), *len as u64)
        };
        Vector::Generic(self.0.blocks.iter().map(block).collect())
    }
}

/// A value of a variable, with its type (pami_type_t of PAMI_Rmw). PAMI's long and long long are both 64 bits wide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value {
    /// PAMI_TYPE_SIGNED_INT.
    I32(i32),
    /// PAMI_TYPE_UNSIGNED_INT.
    U32(u32),
    /// PAMI_TYPE_SIGNED_LONG, PAMI_TYPE_SIGNED_LONG_LONG.
    I64(i64),
    /// PAMI_TYPE_UNSIGNED_LONG, PAMI_TYPE_UNSIGNED_LONG_LONG.
    U64(u64),
}

impl Value {
    /// The bits, extended to 64.
    pub(crate) fn bits(self) -> i64 {
        match self {
            Self::I32(value) => value.into(),
            Self::U32(value) => value.into(),
            Self::I64(value) => value,
            Self::U64(value) => value as i64,
        }
    }

    /// A value of the same type.
    pub(crate) fn with(self, bits: i64) -> Self {
        match self {
            Self::I32(_) => Self::I32(bits as i32),
            Self::U32(_) => Self::U32(bits as u32),
            Self::I64(_) => Self::I64(bits),
            Self::U64(_) => Self::U64(bits as u64),
        }
    }

    pub(crate) fn is_narrow(self) -> bool {
        matches!(self, Self::I32(_) | Self::U32(_))
    }
}

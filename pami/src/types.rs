//! What calls are described with: endpoints, hints, data functions, ways to communicate, layouts of transfers, and values
//! of variables.

use transport_lapi::{Layout, LayoutError, Vector};

use crate::error::Error;

mod data;
mod endpoint;
mod hints;
mod ways;

pub use data::{data_sink, data_source};
pub use endpoint::Endpoint;
pub use hints::{Hint, Hints, Setting};
pub(crate) use ways::choose;
pub use ways::{Access, Association, Protocol, Way};

/// The most blocks of a type.
const MOST_BLOCKS: usize = 1 << 18;

/// A type under construction (PAMI_Type_create). Blocks are added at a cursor, which moves behind them.
#[derive(Debug, Clone, Default)]
pub struct TypeBuilder {
    parts: Vec<(isize, Layout)>,
    blocks: usize,
    /// What the lengths of all blocks are multiples of; 0 if there are none.
    unit: usize,
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
        let layout = Layout::contiguous(bytes)?;
        let block = Type { layout, extent: bytes, atom: 1, unit: bytes };
        self.add_typed(&block, offset, count, stride)
    }

    /// Adds `count` copies of a type like [`TypeBuilder::add_simple`] (PAMI_Type_add_typed).
    ///
    /// # Errors
    /// As there.
    pub fn add_typed(
        mut self,
        subtype: &Type,
        offset: usize,
        count: usize,
        stride: usize,
    ) -> Result<Self, Error> {
        let Type { layout, unit, .. } = subtype;
        let sum = |at: isize, by: usize| at.checked_add_unsigned(by).ok_or(LayoutError::TooLarge);
        let at = sum(self.cursor, offset)?;
        let length = stride.checked_mul(count).ok_or(LayoutError::TooLarge)?;
        let blocks = layout.blocks().checked_mul(count).ok_or(LayoutError::TooLarge)?;
        self.cursor = sum(at, length)?;
        self.blocks = self.blocks.saturating_add(blocks);
        if self.blocks > MOST_BLOCKS {
            return Err(LayoutError::TooLarge.into());
        }
        if count > 0 {
            self.unit = common_divisor(self.unit, *unit);
        }
        self.parts.push((at, layout.repeat(count, sum(0, stride)?)?));
        Ok(self)
    }

    /// Ends the construction (PAMI_Type_complete). `atom` is the size, in bytes, of the units that a data function may
    /// not split.
    ///
    /// # Errors
    /// [`Error::AtomSize`].
    pub fn complete(self, atom: usize) -> Result<Type, Error> {
        let Self { parts, unit, cursor, .. } = self;
        if atom == 0 || unit % atom != 0 {
            return Err(Error::AtomSize { atom });
        }
        Ok(Type { layout: Layout::list(parts)?, extent: cursor.unsigned_abs(), atom, unit })
    }
}

/// The greatest number that divides both; the other one if one is 0.
fn common_divisor(one: usize, other: usize) -> usize {
    if other == 0 { one } else { common_divisor(other, one % other) }
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
pub struct Type {
    layout: Layout,
    extent: usize,
    atom: usize,
    /// See [`TypeBuilder::unit`].
    unit: usize,
}

impl Type {
    /// Returns the number of bytes (PAMI_TYPE_DATA_SIZE).
    pub fn size(&self) -> usize {
        self.layout.size()
    }

    /// Returns the distance from the origin to the cursor, in bytes (PAMI_TYPE_DATA_EXTENT).
    pub fn extent(&self) -> usize {
        self.extent
    }

    /// Returns the size of the atoms in bytes (PAMI_TYPE_ATOM_SIZE).
    pub fn atom_size(&self) -> usize {
        self.atom
    }

    /// Returns the layout, with which the transport makes sources and sinks of any memory.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The blocks in another task's memory, from byte `origin` of it on.
    pub(crate) fn vector(&self, origin: u64) -> Vector {
        let mut blocks = Vec::with_capacity(self.layout.blocks());
        self.layout.each_block(|at, len| {
            blocks.push((origin.saturating_add(at.unsigned_abs() as u64), len as u64));
        });
        Vector::Generic(blocks)
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

    /// The size in bytes.
    pub(crate) fn size(self) -> u64 {
        if matches!(self, Self::I32(_) | Self::U32(_)) { 4 } else { 8 }
    }
}

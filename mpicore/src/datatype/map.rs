//! Type maps in compact form, and the two ways to combine them: repetition and list. All constructors of `construct.rs`
//! and `array.rs` use these.
//!
//! MPI's type map is a list of basic types with displacements (MPI-4.1 section 5.1). Here the displacements are a
//! [`Layout`], and the basic types a [`Signature`]. In addition there are the markers of the bounds and the alignment.

use transport_lapi::{Layout, LayoutError};

use super::{Basic, DatatypeError, Signature};
use crate::op::ElementKind;

/// A type map.
#[derive(Clone)]
pub(super) struct TypeMap {
    pub(super) layout: Layout,
    pub(super) signature: Signature,
    /// The lowest of the lower bounds and the highest of the upper bounds that were set, if any were.
    markers: Option<(isize, isize)>,
    /// The strictest alignment of the basic types, in bytes.
    pub(super) align: usize,
}

impl TypeMap {
    /// Makes the type map without entries.
    pub(super) fn empty() -> Self {
        Self::entry(Basic::Packed, 0)
    }

    /// Makes the type map of a basic type at displacement 0, or of a pair.
    pub(super) fn basic(basic: Basic) -> Self {
        let Some(parts) = basic.pair() else { return Self::entry(basic, 1) };
        let parts = parts.map(|(at, part)| (at, Self::entry(part, 1)));
        Self::list(parts).expect("pairs are small")
    }

    /// Makes the type map of the bytes of a layout.
    pub(super) fn of_bytes(layout: Layout) -> Self {
        let signature = Signature::run(ElementKind::Byte.into(), layout.size() as u64);
        Self { layout, signature, markers: None, align: 1 }
    }

    fn entry(basic: Basic, count: usize) -> Self {
        let layout = Layout::contiguous(basic.size() * count).expect("basic types are small");
        let signature = Signature::run(basic, count as u64);
        Self { layout, signature, markers: None, align: basic.align() }
    }

    /// Repeats the type map `count` times, each `stride` bytes after the one before it.
    pub(super) fn repeat(&self, count: usize, stride: isize) -> Result<Self, DatatypeError> {
        if count == 0 {
            return Ok(Self::empty());
        }
        let layout = self.layout.repeat(count, stride)?;
        let last = stride as i128 * (count as i128 - 1);
        let markers = match self.markers {
            None => None,
            Some((low, high)) => Some((moved(low, last.min(0))?, moved(high, last.max(0))?)),
        };
        let signature = self.signature.repeat(count as u64);
        Ok(Self { layout, signature, markers, align: self.align })
    }

    /// Joins these type maps, each moved by the number of bytes beside it.
    pub(super) fn list(
        parts: impl IntoIterator<Item = (isize, Self)>,
    ) -> Result<Self, DatatypeError> {
        let parts: Vec<_> = parts.into_iter().collect();
        let layout = Layout::list(parts.iter().map(|(at, part)| (*at, part.layout.clone())))?;
        let mut markers: Option<(isize, isize)> = None;
        for (at, part) in &parts {
            if let Some((low, high)) = part.markers {
                let (low, high) = (moved(low, *at as i128)?, moved(high, *at as i128)?);
                let (lowest, highest) = markers.unwrap_or((low, high));
                markers = Some((lowest.min(low), highest.max(high)));
            }
        }
        let filled = parts.iter().filter(|(_, part)| part.signature.elements() > 0);
        let align = filled.map(|(_, part)| part.align).max().unwrap_or(1);
        let signature = Signature::concat(parts.iter().map(|(_, part)| part.signature.clone()));
        Ok(Self { layout, signature, markers, align })
    }

    /// Returns the same entries with these bounds, which replace all bounds that were set before.
    pub(super) fn bounded(self, lower: isize, upper: isize) -> Self {
        Self { markers: Some((lower, upper)), ..self }
    }

    /// Returns lower bound and extent (MPI-4.1 section 5.1.6): those of the markers, otherwise those of the bytes, with
    /// the extent rounded up to the alignment.
    pub(super) fn bounds(&self) -> Result<(isize, isize), DatatypeError> {
        let (low, extent) = match self.markers {
            Some((low, high)) => (low, high as i128 - low as i128),
            None => {
                let (low, high) = self.layout.bounds();
                let (bytes, align) = (high as i128 - low as i128, self.align as i128);
                (low, (bytes + align - 1) / align * align)
            }
        };
        moved(low, extent)?;
        Ok((low, fits(extent)?))
    }
}

/// Moves a displacement by a number of bytes.
pub(super) fn moved(at: isize, by: i128) -> Result<isize, DatatypeError> {
    fits(at as i128 + by)
}

/// Converts a number of bytes to a displacement.
pub(super) fn fits(bytes: i128) -> Result<isize, DatatypeError> {
    isize::try_from(bytes).map_err(|_| LayoutError::TooLarge.into())
}

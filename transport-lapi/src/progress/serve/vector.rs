//! LAPI's vectors, which describe blocks of bytes in one memory: the origin's, or a registered region of the target.
//!
//! A vector becomes a [`Layout`], the same that MPI's datatypes use, so its bytes are packed and unpacked piece by
//! piece. The positions are offsets in the memory instead of addresses, since another task's addresses mean nothing
//! here and its bytes are claims.

use crate::error::{End, LapiError};
use crate::memory::body::{Sink, Source};
use crate::memory::layout::{Layout, LayoutError};
use crate::memory::region::{RecvRegion, SendRegion};

/// Blocks of bytes in one memory: `lapi_vec_t`.
///
/// Two columns of a matrix of 3 rows with 32 bytes each:
///
/// ```
/// use transport_lapi::Vector;
///
/// let columns = Vector::Strided { base: 8, block: 16, stride: 32, count: 3 };
/// assert_eq!(columns.size(), Some(48));
/// assert_eq!(Vector::Blocks(vec![(0, 5), (100, 7)]).size(), Some(12));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Vector {
    /// Blocks, each with its offset and its length in bytes: LAPI_GEN_IOVECTOR. The blocks of the two ends of a
    /// transfer have the same lengths.
    Blocks(Vec<(u64, u64)>),
    /// Equally long blocks at equal distances: LAPI_GEN_STRIDED_XFER. The two ends of a transfer have the same number
    /// of blocks of the same length.
    Strided {
        /// Offset of the first block.
        base: u64,
        /// Length of a block in bytes.
        block: u64,
        /// Distance between the beginnings of two blocks, in bytes; at least `block`.
        stride: u64,
        /// Number of blocks.
        count: u64,
    },
    /// Blocks like those of [`Vector::Blocks`]: LAPI_GEN_GENERIC. The two ends of a transfer need only have the same
    /// number of bytes.
    Generic(Vec<(u64, u64)>),
}

const BLOCKS: u64 = 1;
const STRIDED: u64 = 2;
const GENERIC: u64 = 3;

impl Vector {
    /// Most words of the encoding of a vector.
    pub(crate) const MAX_WORDS: usize = 1 << 20;

    /// Returns the number of bytes of all blocks; `None` if that is more than 64 bits can hold.
    pub fn size(&self) -> Option<u64> {
        match self {
            Self::Strided { block, count, .. } => block.checked_mul(*count),
            Self::Blocks(blocks) | Self::Generic(blocks) => {
                blocks.iter().try_fold(0_u64, |sum, (_, len)| sum.checked_add(*len))
            }
        }
    }

    /// Makes a source of the blocks in `memory`: the data of LAPI_Amsendv.
    ///
    /// # Errors
    /// [`LapiError::VecAddr`] if the memory's address is null, [`LapiError::VecLen`], [`LapiError::Stride`],
    /// [`LapiError::Extent`], [`LapiError::VecOutside`].
    pub fn gather(&self, memory: SendRegion) -> Result<Source, LapiError> {
        self.gather_at(End::Origin, memory)
    }

    pub(crate) fn gather_at(&self, end: End, memory: SendRegion) -> Result<Source, LapiError> {
        self.layout(end)?.to_send(memory, 0).map_err(|error| self.refuse(end, error))
    }

    /// Makes a sink of the blocks in `memory`: the result of a vector header handler.
    ///
    /// # Errors
    /// As [`Vector::gather`]; [`LapiError::VecOutside`] also if two blocks overlap.
    pub fn scatter(&self, memory: RecvRegion) -> Result<Sink, LapiError> {
        self.scatter_at(End::Target, memory)
    }

    pub(crate) fn scatter_at(&self, end: End, memory: RecvRegion) -> Result<Sink, LapiError> {
        self.layout(end)?.to_receive(memory, 0).map_err(|error| self.refuse(end, error))
    }

    /// Returns the layout of the blocks in the memory of `end`.
    pub(crate) fn layout(&self, end: End) -> Result<Layout, LapiError> {
        let signed = |number: u64| isize::try_from(number).map_err(|_| LapiError::VecLen { end });
        match self {
            Self::Strided { base, block, stride, count } => {
                if stride < block {
                    return Err(LapiError::Stride { end, stride: *stride, block: *block });
                }
                let extent = stride.checked_mul(*count).and_then(|bytes| bytes.checked_add(*base));
                if extent.is_none_or(|bytes| isize::try_from(bytes).is_err()) {
                    return Err(LapiError::Extent { end, stride: *stride, count: *count });
                }
                let blocks = Layout::strided(*block as usize, signed(*stride)?, *count as usize);
                let placed = blocks.and_then(|blocks| blocks.place([signed(*base).unwrap_or(0)]));
                placed.map_err(|error| self.refuse(end, error))
            }
            Self::Blocks(blocks) | Self::Generic(blocks) => {
                let mut placed = Vec::with_capacity(blocks.len());
                for (at, len) in blocks {
                    placed.push((signed(*at)?, signed(*len)?.unsigned_abs()));
                }
                Layout::indexed(placed).map_err(|error| self.refuse(end, error))
            }
        }
    }

    /// The blocks that are not empty, each with its offset and its length. The caller has checked the vector.
    pub(crate) fn blocks(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let (list, strided) = match self {
            Self::Blocks(blocks) | Self::Generic(blocks) => (&blocks[..], None),
            Self::Strided { block: 0, .. } => (&[][..], None),
            Self::Strided { base, block, stride, count } => {
                (&[][..], Some((0..*count).map(move |nth| (base + nth * stride, *block))))
            }
        };
        let list = list.iter().copied().filter(|(_, len)| *len > 0);
        list.chain(strided.into_iter().flatten())
    }

    /// Checks that a transfer between this vector, of the origin, and `target` is possible: VEC_TYPE_DIFF,
    /// VEC_NUM_DIFF, VEC_LEN_DIFF.
    pub(crate) fn check_pair(&self, target: &Self) -> Result<(), LapiError> {
        let number = |origin: u64, target: u64| match origin == target {
            true => Ok(()),
            false => Err(LapiError::VecNumDiff { origin, target }),
        };
        let length = |origin: u64, target: u64| match origin == target {
            true => Ok(()),
            false => Err(LapiError::VecLenDiff { origin, target }),
        };
        match (self, target) {
            (Self::Blocks(origin), Self::Blocks(target)) => {
                number(origin.len() as u64, target.len() as u64)?;
                let mut pairs = origin.iter().zip(target);
                pairs.try_for_each(|((_, origin), (_, target))| length(*origin, *target))
            }
            (
                Self::Strided { block: origin, count: origins, .. },
                Self::Strided { block: target, count: targets, .. },
            ) => {
                number(*origins, *targets)?;
                length(*origin, *target)
            }
            (Self::Generic(_), Self::Generic(_)) => {
                length(self.size().unwrap_or(u64::MAX), target.size().unwrap_or(0))
            }
            _ => Err(LapiError::VecTypeDiff),
        }
    }

    /// The error for a layout that cannot be made or used.
    fn refuse(&self, end: End, error: LayoutError) -> LapiError {
        match error {
            LayoutError::TooLarge | LayoutError::TooDeep => LapiError::VecLen { end },
            LayoutError::Null => {
                LapiError::VecAddr { end, is_strided: matches!(self, Self::Strided { .. }) }
            }
            LayoutError::Outside { .. } | LayoutError::Overlap | LayoutError::Words => {
                LapiError::VecOutside { end, error }
            }
        }
    }

    /// Number of the words of [`Vector::words`].
    pub(crate) fn words_len(&self) -> usize {
        match self {
            Self::Blocks(blocks) | Self::Generic(blocks) => 1 + 2 * blocks.len(),
            Self::Strided { .. } => 5,
        }
    }

    /// Returns the vector as words, for the target.
    pub(crate) fn words(&self) -> Vec<u64> {
        let list = |kind, blocks: &[(u64, u64)]| {
            let mut words = Vec::with_capacity(1 + 2 * blocks.len());
            words.push(kind);
            words.extend(blocks.iter().flat_map(|(at, len)| [*at, *len]));
            words
        };
        match self {
            Self::Blocks(blocks) => list(BLOCKS, blocks),
            Self::Generic(blocks) => list(GENERIC, blocks),
            Self::Strided { base, block, stride, count } => {
                vec![STRIDED, *base, *block, *stride, *count]
            }
        }
    }

    /// Reads the words of a peer; `None` if they describe no vector.
    pub(crate) fn from_words(words: &[u64]) -> Option<Self> {
        let (kind, rest) = words.split_first()?;
        let list = || {
            let pairs = rest.chunks_exact(2);
            pairs.remainder().is_empty().then(|| pairs.map(|pair| (pair[0], pair[1])).collect())
        };
        match *kind {
            BLOCKS => list().map(Self::Blocks),
            GENERIC => list().map(Self::Generic),
            STRIDED => match *rest {
                [base, block, stride, count] => Some(Self::Strided { base, block, stride, count }),
                _ => None,
            },
            _ => None,
        }
    }
}

//! Places of data in a collective: a buffer, and a part of it. Builders of schedules make places; the executor turns
//! each into a layout.

use std::fmt;

use super::{CollectiveError, Scratch};

/// One of the three areas that a schedule names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Buffer {
    /// The caller's send buffer.
    Input,
    /// The caller's receive buffer; in a broadcast, the only one.
    Output,
    /// A temporary area, whose size is [`Schedule::scratch`](super::Schedule::scratch).
    Scratch,
}

/// A part of a buffer, in elements of the buffer's datatype.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Part {
    /// Consecutive elements.
    Elements {
        /// The index of the first element. A caller's displacements may make it negative.
        first: i64,
        /// Number of elements.
        count: u64,
    },
    /// The block of this rank in a buffer whose blocks have their own datatypes, as the caller of MPI_Alltoallw
    /// described it: count, displacement in bytes, datatype.
    Entry(u32),
}

/// Data that a step reads or writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Place {
    /// The buffer.
    pub buffer: Buffer,
    /// The part of the buffer.
    pub part: Part,
}

/// The division of a buffer into blocks, one for each rank.
///
/// ```
/// use mpicore::collective::{Blocks, Member, alltoall};
/// let (counts, displacements) = ([2, 0, 1], [4, 0, 9]);
/// let receive = Blocks::Listed { counts: &counts, displacements: &displacements };
/// let schedule = alltoall(Member::new(1, 3)?, Some(Blocks::Equal { count: 2 }), receive)?;
/// assert_eq!(schedule.messages(), 4);
/// # Ok::<(), mpicore::collective::CollectiveError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blocks<'a> {
    /// Blocks of the same length, one after another.
    Equal {
        /// Number of elements in each block.
        count: u64,
    },
    /// A length and a place for each block: the arguments of MPI's calls whose names end with `v`.
    Listed {
        /// Number of elements in each block.
        counts: &'a [u64],
        /// The index of the first element of each block.
        displacements: &'a [i64],
    },
    /// A length, a place in bytes and a datatype for each block, which only the executor knows: the arguments of
    /// MPI_Alltoallw.
    Typed {
        /// Number of blocks that are described.
        entries: usize,
    },
}

impl Place {
    /// A place for messages without data.
    pub(super) const NOTHING: Self =
        Self { buffer: Buffer::Scratch, part: Part::Elements { first: 0, count: 0 } };

    /// Returns the number of elements of the place, unless it is an entry.
    pub(super) fn count(&self) -> Option<u64> {
        match self.part {
            Part::Elements { count, .. } => Some(count),
            Part::Entry(_) => None,
        }
    }

    /// Returns the place of the first `count` elements of a buffer.
    pub(super) fn first(buffer: Buffer, count: u64) -> Self {
        Self { buffer, part: Part::Elements { first: 0, count } }
    }

    /// Returns the place of elements `start` to `start + count - 1` of a buffer. Builders have checked that all indices
    /// of a schedule fit.
    pub(super) fn elements(buffer: Buffer, start: u64, count: u64) -> Self {
        let first = i64::try_from(start).expect("the builder checked the total of elements");
        Self { buffer, part: Part::Elements { first, count } }
    }

    /// Returns the two halves of the place's elements, the second half first if `second_first`.
    pub(super) fn halves(self, second_first: bool) -> (Self, Self) {
        let Part::Elements { first, count } = self.part else { return (self, self) };
        let half = count / 2;
        let part = |first, count| Self { part: Part::Elements { first, count }, ..self };
        let low = part(first, half);
        let high = part(first.saturating_add_unsigned(half), count - half);
        if second_first { (high, low) } else { (low, high) }
    }

    /// Returns the place of the equal blocks `first_block` to `first_block + blocks - 1`, of `count` elements each.
    pub(super) fn blocks(buffer: Buffer, first_block: u32, blocks: u32, count: u64) -> Self {
        Self::elements(buffer, u64::from(first_block) * count, u64::from(blocks) * count)
    }
}

impl Blocks<'_> {
    /// Refuses blocks that are not one for each of `size` ranks, or whose indices do not fit.
    pub(super) fn check(&self, size: u32) -> Result<(), CollectiveError> {
        match *self {
            Self::Equal { count } => check_total(count, size),
            Self::Typed { entries } => check_entries(entries, size),
            Self::Listed { counts, displacements } => {
                check_entries(counts.len(), size)?;
                check_entries(displacements.len(), size)?;
                let mut blocks = (0..).zip(counts.iter().zip(displacements));
                let beyond = blocks
                    .find(|(_, (count, first))| first.checked_add_unsigned(**count).is_none());
                beyond.map_or(Ok(()), |(rank, (&count, &displacement))| {
                    Err(CollectiveError::Block { rank, count, displacement })
                })
            }
        }
    }

    /// Refuses listed blocks of which two have an element in common. Callers whose users must not receive such blocks
    /// call this; the schedules accept them, and what is received in common elements is any of the blocks.
    ///
    /// ```
    /// use mpicore::collective::Blocks;
    /// let displacements = &[0, 2];
    /// assert!(Blocks::Listed { counts: &[2, 2], displacements }.check_apart().is_ok());
    /// assert!(Blocks::Listed { counts: &[3, 2], displacements }.check_apart().is_err());
    /// ```
    ///
    /// # Errors
    /// [`CollectiveError::Overlap`].
    pub fn check_apart(&self) -> Result<(), CollectiveError> {
        let Self::Listed { counts, displacements } = *self else { return Ok(()) };
        let ranks = (0_u32..).zip(counts.iter().zip(displacements));
        let mut blocks: Vec<_> = ranks
            .filter(|(_, (count, _))| **count > 0)
            .map(|(rank, (&count, &first))| (first, first.saturating_add_unsigned(count), rank))
            .collect();
        blocks.sort_unstable();
        let overlap = blocks.windows(2).find(|pair| pair[1].0 < pair[0].1);
        overlap.map_or(Ok(()), |pair| {
            Err(CollectiveError::Overlap { one: pair[0].2, other: pair[1].2 })
        })
    }

    /// Returns the place of a rank's block in `buffer`.
    pub(super) fn of(&self, buffer: Buffer, rank: u32) -> Place {
        match *self {
            Self::Equal { count } => Place::blocks(buffer, rank, 1, count),
            Self::Typed { .. } => Place { buffer, part: Part::Entry(rank) },
            Self::Listed { counts, displacements } => {
                let (first, count) = (displacements[rank as usize], counts[rank as usize]);
                Place { buffer, part: Part::Elements { first, count } }
            }
        }
    }

    /// Returns a temporary area for any one block of the receive buffer.
    pub(super) fn room_for_one(&self) -> Scratch {
        match *self {
            Self::Equal { count } => Scratch::Elements { count, of: Buffer::Output },
            Self::Listed { counts, .. } => {
                let count = counts.iter().copied().max().unwrap_or(0);
                Scratch::Elements { count, of: Buffer::Output }
            }
            Self::Typed { .. } => Scratch::LargestEntry,
        }
    }

    /// Returns the place of a rank's block in [`room_for_one`](Self::room_for_one).
    pub(super) fn in_scratch(&self, rank: u32) -> Place {
        match self.of(Buffer::Scratch, rank).part {
            Part::Elements { count, .. } => Place::first(Buffer::Scratch, count),
            part @ Part::Entry(_) => Place { buffer: Buffer::Scratch, part },
        }
    }
}

/// Refuses more elements in `blocks` blocks of `count` elements than can be indexed.
pub(super) fn check_total(count: u64, blocks: u32) -> Result<(), CollectiveError> {
    let total = count.checked_mul(blocks.into()).and_then(|total| i64::try_from(total).ok());
    total.map(|_| ()).ok_or(CollectiveError::Count { count, blocks })
}

/// Refuses lists that do not have one entry for each rank.
pub(super) fn check_entries(given: usize, size: u32) -> Result<(), CollectiveError> {
    let is_one_each = u64::try_from(given) == Ok(size.into());
    is_one_each.then_some(()).ok_or(CollectiveError::Entries { given, size })
}

impl fmt::Display for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Input => "input",
            Self::Output => "output",
            Self::Scratch => "scratch",
        })
    }
}

/// Writes for example `output[4..+2]`: the first element and the number of elements.
impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.part {
            Part::Elements { first, count } => write!(f, "{}[{first}..+{count}]", self.buffer),
            Part::Entry(rank) => write!(f, "{}[entry {rank}]", self.buffer),
        }
    }
}

//! Division of a buffer among ranks into blocks of different lengths.

/// Describes one block of a buffer for each rank: where it begins, and its number of elements. Calls whose names end
/// with `v` take it.
///
/// ```
/// use mpj::Partition;
/// // Rank r sends r numbers to rank 0, which has them one behind the other.
/// let all = mpj::local::run(4, |world| {
///     let (mine, blocks) = (vec![world.rank(); world.rank()], Partition::packed([0, 1, 2, 3]));
///     let mut all = vec![0; if world.rank() == 0 { blocks.end() } else { 0 }];
///     world.gatherv(&mine, &mut all, &blocks, 0).unwrap();
///     all
/// })?;
/// assert_eq!(all[0], [1, 2, 2, 3, 3, 3]);
/// # Ok::<(), mpj::local::LocalError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partition {
    counts: Vec<u64>,
    displacements: Vec<i64>,
}

impl Partition {
    /// Makes blocks with these numbers of elements, one after the other in the order of ranks.
    ///
    /// ```
    /// let blocks = mpj::Partition::packed([2, 0, 3]);
    /// assert_eq!(blocks, mpj::Partition::at([(0, 2), (2, 0), (2, 3)]));
    /// ```
    pub fn packed(counts: impl IntoIterator<Item = usize>) -> Self {
        let mut end = 0_usize;
        Self::at(counts.into_iter().map(|count| {
            let start = end;
            end = end.saturating_add(count);
            (start, count)
        }))
    }

    /// Makes blocks from a pair `(start, count)` for each rank: the first element and the number of elements.
    ///
    /// ```
    /// // All ranks get the same two elements.
    /// let blocks = mpj::Partition::at([(4, 2); 3]);
    /// assert_eq!((blocks.len(), blocks.end()), (3, 6));
    /// ```
    pub fn at(blocks: impl IntoIterator<Item = (usize, usize)>) -> Self {
        let blocks = blocks
            .into_iter()
            .map(|(start, count)| (count as u64, i64::try_from(start).unwrap_or(i64::MAX)));
        let (counts, displacements) = blocks.unzip();
        Self { counts, displacements }
    }

    /// Returns the number of blocks.
    ///
    /// ```
    /// assert_eq!(mpj::Partition::packed([2, 0, 3]).len(), 3);
    /// ```
    pub fn len(&self) -> usize {
        self.counts.len()
    }

    /// Returns whether there are no blocks.
    ///
    /// ```
    /// assert!(mpj::Partition::packed([]).is_empty());
    /// assert!(!mpj::Partition::packed([0]).is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// Returns the number of elements of a rank's block, or 0 if there is no such block.
    ///
    /// ```
    /// let blocks = mpj::Partition::packed([2, 0, 3]);
    /// assert_eq!((blocks.count(2), blocks.count(3)), (3, 0));
    /// ```
    pub fn count(&self, rank: usize) -> usize {
        self.counts.get(rank).map_or(0, |count| *count as usize)
    }

    /// Returns the length that a buffer needs in order to contain all blocks.
    ///
    /// ```
    /// let blocks = mpj::Partition::at([(4, 3), (0, 2)]);
    /// assert_eq!(vec![0; blocks.end()].len(), 7);
    /// ```
    pub fn end(&self) -> usize {
        let ends = self.counts.iter().zip(&self.displacements);
        let ends = ends.map(|(count, start)| (*count as usize).saturating_add(*start as usize));
        ends.max().unwrap_or(0)
    }

    /// Returns blocks that are received at once, in the form that the core takes. No two may have an element in common.
    pub(crate) fn apart(&self) -> Result<mpicore::collective::Blocks<'_>, mpicore::Error> {
        self.as_core().check_apart()?;
        Ok(self.as_core())
    }

    /// Returns the blocks in the form that the core takes.
    pub(crate) fn as_core(&self) -> mpicore::collective::Blocks<'_> {
        let (counts, displacements) = (&*self.counts, &*self.displacements);
        mpicore::collective::Blocks::Listed { counts, displacements }
    }
}

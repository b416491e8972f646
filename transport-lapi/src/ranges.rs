//! Choice by size: ranges of sizes, each with what is chosen for it. Used wherever a size decides how something is done:
//! protocols of messages in `mpjdev` and `pami`, accesses to memory in `pami`, algorithms of collectives in `mpicore`.

use std::borrow::Cow;

/// Ranges of sizes with their choices, ascending. Each includes its upper bound, and begins behind the one before.
///
/// With upper bounds `b` of `n` ranges, a size `a` is in the range with the number
///
/// ```text
///     r = sum over i = 0 .. n-1 of (1 if a > b[i], otherwise 0)
/// ```
///
/// ```
/// use transport_lapi::Ranges;
/// let ranges = Ranges::new([(100, "short"), (1_000, "medium"), (u64::MAX, "long")])?;
/// assert_eq!([0, 100, 101, 1_000, 1_001].map(|size| ranges.place(size)), [0, 0, 1, 1, 2]);
/// assert_eq!(ranges.choose(5_000), Some(&"long"));
/// # Ok::<(), transport_lapi::RangesError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ranges<C: Clone + 'static>(Cow<'static, [(u64, C)]>);

/// Why ranges are none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RangesError {
    /// There are none.
    #[error("there are no ranges; give at least one, with an upper bound")]
    Empty,
    /// A bound is not above the one before.
    #[error("the upper bound {bound} follows {before}; bounds ascend")]
    NotAscending {
        /// The bound before.
        before: u64,
        /// The bound.
        bound: u64,
    },
}

impl<C: Clone> Ranges<C> {
    /// Makes ranges of upper bounds and choices. The last bound is `u64::MAX` if every size has a choice.
    ///
    /// # Errors
    /// [`RangesError`].
    pub fn new(rows: impl IntoIterator<Item = (u64, C)>) -> Result<Self, RangesError> {
        let rows: Vec<_> = rows.into_iter().collect();
        check(&rows)?;
        Ok(Self(Cow::Owned(rows)))
    }

    /// Makes ranges that a program is written with. A choice by them is a few comparisons with constants.
    ///
    /// ```
    /// use transport_lapi::Ranges;
    /// static BY_TREE: Ranges<bool> = Ranges::fixed(&[(1_023, true), (u64::MAX, false)]);
    /// assert_eq!([1_023, 1_024].map(|size| *BY_TREE.choose_or_last(size)), [true, false]);
    /// ```
    ///
    /// # Panics
    /// As [`Ranges::new`] fails: a static is then an error of the compiler.
    pub const fn fixed(rows: &'static [(u64, C)]) -> Self {
        assert!(check(rows).is_ok(), "there are ranges, and their bounds ascend");
        Self(Cow::Borrowed(rows))
    }

    /// Returns the number of the range that a size is in; that of ranges if it is above all of them.
    #[inline]
    pub fn place(&self, size: u64) -> usize {
        self.0.iter().map(|(bound, _)| usize::from(size > *bound)).sum()
    }

    /// Returns what is chosen for a size; nothing if it is above all ranges.
    #[inline]
    pub fn choose(&self, size: u64) -> Option<&C> {
        self.0.get(self.place(size)).map(|(_, choice)| choice)
    }

    /// Returns what is chosen for a size; the last choice if it is above all ranges.
    #[inline]
    pub fn choose_or_last(&self, size: u64) -> &C {
        &self.0[self.place(size).min(self.0.len() - 1)].1
    }

    /// Returns the upper bounds with their choices, ascending.
    pub fn rows(&self) -> &[(u64, C)] {
        &self.0
    }
}

/// Whether there are rows, and their bounds ascend.
const fn check<C>(rows: &[(u64, C)]) -> Result<(), RangesError> {
    if rows.is_empty() {
        return Err(RangesError::Empty);
    }
    let mut at = 1;
    while at < rows.len() {
        let (before, bound) = (rows[at - 1].0, rows[at].0);
        if before >= bound {
            return Err(RangesError::NotAscending { before, bound });
        }
        at += 1;
    }
    Ok(())
}

#[cfg(all(test, not(loom)))]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_examples_of_the_reference() {
        let ranges = Ranges::new([(100, 'a'), (1_000, 'b'), (10_000, 'c')]).unwrap();
        let sizes = [0, 1, 50, 100, 101, 500, 1_000, 1_001, 5_000, 10_000];
        let places = sizes.map(|size| ranges.place(size));
        assert_eq!(places, [0, 0, 0, 0, 1, 1, 1, 2, 2, 2]);
        assert_eq!((ranges.place(10_001), ranges.choose(10_001)), (3, None));
        assert_eq!(ranges.choose(10_000), Some(&'c'));
        assert_eq!([1_000, 10_001].map(|size| *ranges.choose_or_last(size)), ['b', 'c']);
    }

    #[test]
    fn bounds_ascend() {
        assert_eq!(Ranges::<()>::new([]), Err(RangesError::Empty));
        for bound in [4, 5] {
            let wrong = Ranges::new([(1, ()), (5, ()), (bound, ())]);
            assert_eq!(wrong, Err(RangesError::NotAscending { before: 5, bound }));
        }
    }

    proptest! {
        #[test]
        fn a_size_is_in_the_first_range_whose_bound_it_does_not_exceed(
            bounds in prop::collection::btree_set(0_u64..50, 1..9), size in 0_u64..60,
        ) {
            let ranges = Ranges::new(bounds.iter().map(|bound| (*bound, *bound))).unwrap();
            let first = bounds.iter().find(|bound| size <= **bound);
            prop_assert_eq!(ranges.choose(size), first);
        }
    }
}

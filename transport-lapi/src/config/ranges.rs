//! Tables of a value for every message size: ascending upper bounds and one more value, the form in which PAMI selects
//! algorithms.
//!
//! The index of a size's range is the number of bounds that are smaller than the size. So a bound belongs to its own
//! range, and the last range has none.

/// Most ranges of a table.
pub const MAX_RANGES: usize = 16;

/// A table of size ranges.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ranges<T> {
    /// The first bound; most messages are at most this long. `usize::MAX` if there is no bound.
    first: usize,
    /// The value up to the first bound, which costs one comparison and no access to a vector.
    first_value: T,
    bounds: Vec<usize>,
    values: Vec<T>,
}

/// Why a table was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RangesError {
    /// The number of values is not one more than the number of bounds.
    #[error("{bounds} bounds need {} values, not {values}", .bounds + 1)]
    Count {
        /// Number of bounds.
        bounds: usize,
        /// Number of values.
        values: usize,
    },
    /// There are more than [`MAX_RANGES`] ranges.
    #[error("{ranges} ranges are too many; 1 to {MAX_RANGES} are possible")]
    TooMany {
        /// Number of ranges.
        ranges: usize,
    },
    /// The bounds are not strictly ascending.
    #[error("bound {bound} is not above the one before it, {before}")]
    Order {
        /// The bound that is too small.
        bound: usize,
        /// The bound before it.
        before: usize,
    },
}

impl<T: Copy> Ranges<T> {
    /// Makes a table of `bounds` (bytes, inclusive) and `values`, of which there is one more.
    ///
    /// # Errors
    /// [`RangesError`] if the counts do not match, or the bounds are not strictly ascending.
    ///
    /// ```
    /// use transport_lapi::config::Ranges;
    /// let ranges = Ranges::new(vec![100], vec!["short", "long"])?;
    /// assert_eq!((ranges.of(100), ranges.of(101)), ("short", "long"));
    /// # Ok::<(), transport_lapi::config::RangesError>(())
    /// ```
    pub fn new(bounds: Vec<usize>, values: Vec<T>) -> Result<Self, RangesError> {
        if values.len() != bounds.len() + 1 {
            return Err(RangesError::Count { bounds: bounds.len(), values: values.len() });
        }
        if values.len() > MAX_RANGES {
            return Err(RangesError::TooMany { ranges: values.len() });
        }
        if let Some(pair) = bounds.windows(2).find(|pair| pair[0] >= pair[1]) {
            return Err(RangesError::Order { bound: pair[1], before: pair[0] });
        }
        let first = bounds.first().copied().unwrap_or(usize::MAX);
        Ok(Self { first, first_value: values[0], bounds, values })
    }

    /// Makes a table with the same value for every size.
    pub fn all(value: T) -> Self {
        Self { first: usize::MAX, first_value: value, bounds: Vec::new(), values: vec![value] }
    }

    /// Returns the value for a message of `len` bytes.
    #[inline]
    pub fn of(&self, len: usize) -> T {
        if len <= self.first { self.first_value } else { self.beyond_first(len) }
    }

    #[inline(never)]
    fn beyond_first(&self, len: usize) -> T {
        self.values[self.bounds.partition_point(|&bound| bound < len)]
    }

    /// Returns the ranges, ascending: upper bound (`None` for the last) and value.
    pub fn iter(&self) -> impl Iterator<Item = (Option<usize>, T)> {
        let bounds = self.bounds.iter().copied().map(Some).chain([None]);
        bounds.zip(self.values.iter().copied())
    }

    /// Returns the upper bounds, ascending.
    pub fn bounds(&self) -> &[usize] {
        &self.bounds
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn bounds_are_inclusive() {
        let ranges = Ranges::new(vec![100, 1000, 10_000], vec!['a', 'b', 'c', 'd']).unwrap();
        let expected = [(0, 'a'), (100, 'a'), (101, 'b'), (1000, 'b'), (1001, 'c'), (10_000, 'c')];
        for (len, value) in expected.into_iter().chain([(10_001, 'd'), (usize::MAX, 'd')]) {
            assert_eq!(ranges.of(len), value, "{len} bytes");
        }
        assert_eq!(Ranges::all(7).of(usize::MAX), 7);
    }

    #[test]
    fn each_rule_has_its_error() {
        let count = Ranges::new(vec![1], vec![0]);
        assert_eq!(count, Err(RangesError::Count { bounds: 1, values: 1 }));
        let order = Ranges::new(vec![5, 5], vec![0; 3]);
        assert_eq!(order, Err(RangesError::Order { bound: 5, before: 5 }));
        let many = Ranges::new((0..16).collect(), vec![0; 17]);
        assert_eq!(many, Err(RangesError::TooMany { ranges: 17 }));
        assert!(Ranges::new((0..15).collect(), vec![0; 16]).is_ok());
    }

    proptest! {
        /// The rule of the module's documentation, literally.
        #[test]
        fn the_range_is_the_number_of_smaller_bounds(
            bounds in prop::collection::btree_set(0usize..100, 0..MAX_RANGES), len in 0usize..110,
        ) {
            let smaller = bounds.iter().filter(|&&bound| bound < len).count();
            let values = (0..=bounds.len()).collect();
            let ranges = Ranges::new(bounds.into_iter().collect(), values).unwrap();
            prop_assert_eq!(ranges.of(len), smaller);
        }
    }
}

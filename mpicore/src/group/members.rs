//! Distinct numbers in order, stored in as little memory as they allow. `group.rs` keeps the job ranks
//! of a group in them, and the ranks that a call selects from one.
//!
//! Numbers of equal distance are stored as such; all others as a list with an index. Whatever can be
//! stored as a run is, so two sequences are equal exactly if they are stored alike.

use std::sync::Arc;

/// Distinct numbers in order, at most `u32::MAX` of them. A copy shares the memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Members {
    Run(Run),
    List(Arc<List>),
}

/// A number that was to be in a sequence more than once: the lowest one.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Twice(pub u32);

impl Members {
    /// The numbers in this order.
    ///
    /// # Errors
    /// [`Twice`] if a number comes more than once.
    pub(super) fn collect(values: impl IntoIterator<Item = u32>) -> Result<Self, Twice> {
        let mut values = values.into_iter();
        let mut run = Run::EMPTY;
        let Some(first_beside) = values.find(|&value| !run.push(value)) else {
            return Ok(Self::Run(run));
        };
        let mut list: Vec<_> = (0..run.count).map(|at| run.value(at)).collect();
        list.push(first_beside);
        list.extend(values);
        List::new(list).map(|list| Self::List(Arc::new(list)))
    }

    /// The numbers from 0 to `count` without `count`.
    pub(super) fn first(count: u32) -> Self {
        Self::Run(Run { count, ..Run::EMPTY })
    }

    pub(super) fn len(&self) -> u32 {
        match self {
            Self::Run(run) => run.count,
            Self::List(list) => list.by_value.len() as u32,
        }
    }

    /// The number at a position, which there has to be.
    #[inline]
    pub(super) fn value(&self, at: u32) -> u32 {
        match self {
            Self::Run(run) => run.value(at),
            Self::List(list) => list.values[at as usize],
        }
    }

    /// Where a number stands, if it is in the sequence.
    #[inline]
    pub(super) fn position(&self, value: u32) -> Option<u32> {
        match self {
            Self::Run(run) => run.position(value),
            Self::List(list) => list.position(value),
        }
    }

    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = u32> + DoubleEndedIterator {
        (0..self.len()).map(|at| self.value(at))
    }

    /// Bytes on the heap.
    #[cfg(test)]
    pub(super) fn heap_bytes(&self) -> usize {
        match self {
            Self::Run(_) => 0,
            Self::List(list) => size_of::<List>() + 2 * size_of_val(&*list.values),
        }
    }
}

/// `first`, `first + stride`, ...: `count` numbers. A run of less than two has stride 1, and an empty one
/// begins at 0, so that equal sequences are equal runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Run {
    first: u32,
    stride: i64,
    count: u32,
}

impl Run {
    const EMPTY: Self = Self { first: 0, stride: 1, count: 0 };

    /// Appends a number if the sequence is still a run then; says whether it is.
    fn push(&mut self, value: u32) -> bool {
        match self.count {
            0 => self.first = value,
            1 if value != self.first => self.stride = i64::from(value) - i64::from(self.first),
            // In 64 bits, since the next number of a run may be no number of 32.
            _ if i64::from(value) != self.next() => return false,
            _ => {}
        }
        self.count += 1;
        true
    }

    fn next(&self) -> i64 {
        i64::from(self.first) + i64::from(self.count) * self.stride
    }

    /// Exact, though computed modulo 2^32, since every number of the run is below that.
    #[inline]
    fn value(&self, at: u32) -> u32 {
        self.first.wrapping_add(at.wrapping_mul(self.stride as u32))
    }

    #[inline]
    fn position(&self, value: u32) -> Option<u32> {
        let offset = i64::from(value) - i64::from(self.first);
        let at = offset / self.stride;
        let is_there = offset % self.stride == 0 && (0..i64::from(self.count)).contains(&at);
        is_there.then_some(at as u32)
    }
}

/// Numbers that are no run, and where to find them.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct List {
    values: Box<[u32]>,
    /// Their positions, ordered by the numbers there.
    by_value: Box<[u32]>,
}

impl List {
    fn new(values: Vec<u32>) -> Result<Self, Twice> {
        let mut by_value: Box<[u32]> = (0..=u32::MAX).take(values.len()).collect();
        by_value.sort_unstable_by_key(|&at| values[at as usize]);
        let mut neighbours = by_value.windows(2).map(|pair| [pair[0], pair[1]]);
        let equal = |pair: &[u32; 2]| values[pair[0] as usize] == values[pair[1] as usize];
        match neighbours.find(equal) {
            Some([at, _]) => Err(Twice(values[at as usize])),
            None => Ok(Self { values: values.into(), by_value }),
        }
    }

    fn position(&self, value: u32) -> Option<u32> {
        let found = self.by_value.binary_search_by_key(&value, |&at| self.values[at as usize]);
        found.ok().map(|index| self.by_value[index])
    }
}

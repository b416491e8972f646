//! Distinct numbers in order, stored in as little memory as possible. `group.rs` stores the job ranks of a group in
//! them, and the ranks that a call selects from it.
//!
//! Numbers with equal distances are stored as a run; all others as a list with an index. Every sequence that can be a
//! run is stored as one, so two sequences are equal if and only if their stored forms are.

use std::sync::Arc;

/// Distinct numbers in order, at most `u32::MAX` of them. Clones share the memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Members {
    Run(Run),
    List(Arc<List>),
}

/// The lowest number that occurred more than once in a sequence.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Twice(pub u32);

impl Members {
    /// Stores these numbers in this order.
    ///
    /// # Errors
    /// [`Twice`] if a number occurs more than once.
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

    /// Makes the numbers 0 to `count - 1`.
    pub(super) fn first(count: u32) -> Self {
        Self::Run(Run { count, ..Run::EMPTY })
    }

    pub(super) fn len(&self) -> u32 {
        match self {
            Self::Run(run) => run.count,
            Self::List(list) => list.by_value.len() as u32,
        }
    }

    /// Returns the number at a position, which must exist.
    #[inline]
    pub(super) fn value(&self, at: u32) -> u32 {
        match self {
            Self::Run(run) => run.value(at),
            Self::List(list) => list.values[at as usize],
        }
    }

    /// Returns the position of a number, if it is in the sequence.
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

    /// Returns the number of bytes on the heap.
    #[cfg(test)]
    pub(super) fn heap_bytes(&self) -> usize {
        match self {
            Self::Run(_) => 0,
            Self::List(list) => size_of::<List>() + 2 * size_of_val(&*list.values),
        }
    }
}

/// The `count` numbers `first`, `first + stride` and so on. A run of fewer than two numbers has stride 1, and an empty
/// run begins at 0, so that equal sequences are equal runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Run {
    first: u32,
    stride: i64,
    count: u32,
}

impl Run {
    const EMPTY: Self = Self { first: 0, stride: 1, count: 0 };

    /// Appends a number if the sequence then is still a run. Returns whether it is.
    fn push(&mut self, value: u32) -> bool {
        match self.count {
            0 => self.first = value,
            1 if value != self.first => self.stride = i64::from(value) - i64::from(self.first),
            // In 64 bits, since the next number of a run may not fit into 32.
            _ if i64::from(value) != self.next() => return false,
            _ => {}
        }
        self.count += 1;
        true
    }

    fn next(&self) -> i64 {
        i64::from(self.first) + i64::from(self.count) * self.stride
    }

    /// Returns the number at a position. It is computed modulo 2^32, but exact, since every number of the run is
    /// smaller.
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

/// Numbers that are not a run, with an index.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct List {
    values: Box<[u32]>,
    /// The positions of the numbers, sorted by number.
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

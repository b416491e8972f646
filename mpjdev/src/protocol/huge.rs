//! The ranges of this process's memory that lie on huge pages. Get reads these several times faster than ordinary
//! pages, so the choice of a protocol may depend on them.
//!
//! The allocator of such memory declares it. The device looks it up only for long messages. A wrong declaration makes
//! messages slower, nothing else.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{PoisonError, RwLock};

/// The declared ranges, from start to end. They do not overlap, since allocations do not.
static RANGES: RwLock<BTreeMap<u64, u64>> = RwLock::new(BTreeMap::new());

/// Declares, as long as it lives, that a range of addresses lies on huge pages.
#[derive(Debug)]
pub struct HugeRange {
    start: u64,
}

impl HugeRange {
    /// Declares a range. Drop it before the memory is freed, since the addresses may be used again.
    pub fn declare(range: Range<u64>) -> Self {
        let mut ranges = RANGES.write().unwrap_or_else(PoisonError::into_inner);
        ranges.insert(range.start, range.end);
        Self { start: range.start }
    }
}

impl Drop for HugeRange {
    fn drop(&mut self) {
        RANGES.write().unwrap_or_else(PoisonError::into_inner).remove(&self.start);
    }
}

/// Returns whether `len` bytes from the address `start` on lie in one declared range.
#[cold]
pub(crate) fn holds(start: u64, len: usize) -> bool {
    let ranges = RANGES.read().unwrap_or_else(PoisonError::into_inner);
    let before = ranges.range(..=start).next_back();
    before.is_some_and(|(&from, &end)| (from..end).contains(&start) && len as u64 <= end - start)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An address without memory.
    const START: u64 = 1 << 62;

    #[test]
    fn memory_is_held_from_the_first_byte_to_the_last_while_its_range_is_declared() {
        assert!(!holds(START + 100, 50));
        let lower = HugeRange::declare(START..START + 1000);
        let upper = HugeRange::declare(START + 2000..START + 3000);
        for (offset, len) in [(0, 1000), (999, 1), (2000, 1000), (2500, 10)] {
            assert!(holds(START + offset, len), "{len} bytes at {offset}");
        }
        for (offset, len) in [(0, 1001), (1000, 0), (500, 2000), (1999, 1), (3000, 1)] {
            assert!(!holds(START + offset, len), "{len} bytes at {offset}");
        }
        assert!(!holds(START + 1, usize::MAX), "no sum overflows");
        drop(upper);
        assert!(!holds(START + 2500, 10) && holds(START, 10));
        drop(lower);
        assert!(!holds(START, 10));
    }
}

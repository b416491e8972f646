//! The tags of partitioned sends (MPI-4.1 chapter 4), which `request/partitioned.rs` makes.

use std::collections::BTreeMap;

/// The tags of the partitions of a communicator's sends on this rank. Each send has a range of them, until it is gone.
/// Ranges follow one another, and begin at 0 again after the last tag: a receive may get messages of a send that is
/// gone, so a tag is used again as late as possible.
#[derive(Default)]
pub(crate) struct PartitionTags {
    /// Where the next range begins, if there is room.
    next: u32,
    /// The ends of the ranges in use, by their beginnings.
    taken: BTreeMap<u32, u32>,
}

impl PartitionTags {
    /// Takes tags for this many partitions and returns the first one; `None` if there are not as many in a row.
    pub fn take(&mut self, partitions: u32) -> Option<i32> {
        if partitions == 0 {
            return Some(0);
        }
        let (mut begin, mut is_again) = (self.next, false);
        loop {
            let end = begin.checked_add(partitions).filter(|end| *end <= i32::MAX as u32);
            let Some(end) = end else {
                if is_again {
                    return None;
                }
                (begin, is_again) = (0, true);
                continue;
            };
            match self.taken.range(..end).next_back() {
                Some((_, &in_use)) if in_use > begin => begin = in_use,
                _ => {
                    self.taken.insert(begin, end);
                    self.next = end;
                    return Some(begin as i32);
                }
            }
        }
    }

    /// Returns the tags of a send that is gone.
    pub fn give_back(&mut self, base: i32) {
        self.taken.remove(&(base as u32));
    }
}

//! What the ranks of this host have recorded, in parts that the line takes one after the other.

use std::collections::VecDeque;
use std::fs::File;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;

use transport_lapi::TaskId;
use transport_lapi::bootstrap::control::agents::News;
use transport_lapi::bootstrap::trace;

/// The most bytes of a part.
const PART: u64 = 64 << 10;

/// The memories of ranks, of which parts are left to be told.
pub(super) struct Parts {
    host: u32,
    memories: VecDeque<Memory>,
}

struct Memory {
    task: TaskId,
    file: File,
    /// What is left of it.
    left: VecDeque<Range<u64>>,
}

impl Parts {
    /// Takes the memories of the ranks of this host.
    pub(super) fn of(host: u32, memories: Vec<(TaskId, OwnedFd)>) -> Self {
        let memory = |(task, memory)| {
            let left = trace::used(&memory).map(VecDeque::from).unwrap_or_default();
            Memory { task, file: File::from(memory), left }
        };
        Self { host, memories: memories.into_iter().map(memory).collect() }
    }

    /// Returns the next part, or at the end that all was told. Nothing comes behind that.
    pub(super) fn next(&mut self) -> News {
        while let Some(Memory { task, file, left }) = self.memories.front_mut() {
            let Some(range) = left.front_mut().filter(|range| !range.is_empty()) else {
                if left.pop_front().is_none() {
                    self.memories.pop_front();
                }
                continue;
            };
            let at = range.start;
            let mut bytes = vec![0; (range.end - at).min(PART) as usize];
            range.start += bytes.len() as u64;
            // The memory is as long as it says, so all of it can be read.
            if file.read_exact_at(&mut bytes, at).is_ok() {
                return News::Records { task: *task, at, bytes };
            }
        }
        News::RecordsTold { host: self.host }
    }
}

#[cfg(test)]
mod tests {
    use transport_lapi::bootstrap::trace::{Clock, Keep};

    use super::*;

    #[test]
    fn what_is_used_is_told_in_parts_and_then_the_end() {
        let memory = |blocks: u64| {
            let memory = File::from(trace::create(Keep::LEAST, Clock::System).expect("memory"));
            // The third word is the number of blocks.
            memory.write_all_at(&blocks.to_le_bytes(), 16).expect("it is as long");
            OwnedFd::from(memory)
        };
        let mut parts = Parts::of(7, vec![(3, memory(9)), (1, memory(0))]);
        let mut told = Vec::new();
        let end = loop {
            match parts.next() {
                News::Records { task, at, bytes } => told.push((task, at, bytes.len() as u64)),
                other => break other,
            }
        };
        assert_eq!(end, News::RecordsTold { host: 7 });
        let (blocks, block) = (256 << 10, 16 << 10);
        let expected = [
            (3, 0, 64),
            (3, blocks, PART),
            (3, blocks + PART, PART),
            (3, blocks + 2 * PART, 9 * block - 2 * PART),
            (1, 0, 64),
        ];
        assert_eq!(told, expected);
    }
}

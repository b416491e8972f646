//! The records of ranks on other hosts, which come in parts along the lines of the hosts' agents. Called by `job`.
//!
//! Parts are claims, like all that they consist of (TC4 of the transport's `trace`): those that do not fit into the memory
//! of a rank are left out.

use std::fs::File;
use std::os::unix::fs::FileExt;

use transport_lapi::TaskId;
use transport_lapi::bootstrap::trace::{self, Clock, Keep, Recorded};

use super::clocks::HostClock;

/// What the ranks of a host have recorded.
#[derive(Debug)]
pub(crate) struct HostRecords {
    /// The name of the host.
    pub(crate) host: String,
    /// How the clock of the records is read here.
    pub(crate) clock: HostClock,
    pub(crate) ranks: Vec<(TaskId, Recorded)>,
}

/// The records of a host while they come.
#[derive(Debug)]
pub(crate) struct Incoming {
    /// What a rank keeps of its records.
    keep: Keep,
    clock: Clock,
    /// The rank whose parts come, a memory like its own, and where the next part begins at the earliest.
    open: Option<(TaskId, File, u64)>,
    ranks: Vec<(TaskId, Recorded)>,
}

impl Incoming {
    /// Begins to take what ranks have recorded in such memories, with times of this clock.
    pub(crate) fn new(keep: Keep, clock: Clock) -> Self {
        Self { keep, clock, open: None, ranks: Vec::new() }
    }

    /// Takes a part of the memory of a rank, behind those that have come. The memories of other ranks have come whole then.
    /// So a host can tell no more than its ranks can have recorded.
    ///
    /// # Errors
    /// Says why it cannot be kept.
    pub(crate) fn take(&mut self, task: TaskId, at: u64, bytes: &[u8]) -> Result<(), String> {
        let failed = |error| format!("cannot keep the records of rank {task}: {error}");
        let misplaced =
            || format!("the records of rank {task} came in parts that do not fit together");
        if self.open.as_ref().is_none_or(|(open, ..)| *open != task) {
            self.close();
            if self.ranks.iter().any(|(known, _)| *known == task) {
                return Err(misplaced());
            }
            let memory = trace::create(self.keep, self.clock).map_err(failed)?;
            self.open = Some((task, memory.into(), 0));
        }
        let Some((_, memory, next)) = &mut self.open else { return Ok(()) };
        let len = memory.metadata().map_err(failed)?.len();
        let end = at.checked_add(bytes.len() as u64).filter(|end| *end <= len && *end > at);
        let end = end.filter(|_| at >= *next).ok_or_else(misplaced)?;
        *next = end;
        memory.write_all_at(bytes, at).map_err(failed)
    }

    /// Reads the memory of a rank that has come whole, and lets it go.
    fn close(&mut self) {
        if let Some((task, memory, _)) = self.open.take() {
            self.ranks.push((task, trace::read(&memory, self.clock).unwrap_or_default()));
        }
    }

    /// Returns the records of all ranks, when all parts have come.
    pub(crate) fn finish(mut self) -> Vec<(TaskId, Recorded)> {
        self.close();
        self.ranks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_become_records_and_those_that_do_not_fit_are_refused() {
        let mut incoming = Incoming::new(Keep::LEAST, Clock::System);
        let empty = trace::create(Keep::LEAST, Clock::System).expect("memory");
        let mut head = vec![0; 64];
        File::from(empty).read_exact_at(&mut head, 0).expect("it is as long");
        // A block of the thread 1 has been taken, with one record in it.
        head[16] = 1;
        let blocks = 256 << 10;
        let word = |value: u64| value.to_le_bytes();
        let mut block = vec![0; 128];
        block[..8].copy_from_slice(&word(1));
        block[64..72].copy_from_slice(&word(70));
        block[72..80].copy_from_slice(&word(90));
        incoming.take(4, 0, &head).expect("there is memory");
        incoming.take(4, blocks, &block).expect("there is memory");
        for (at, bytes) in
            [(u64::MAX, &block[..]), (1 << 40, &block), (blocks, &block), (2 * blocks, &[])]
        {
            let why = incoming.take(4, at, bytes).expect_err("it lies elsewhere, or has come");
            assert!(why.contains("records of rank 4"), "{why}");
        }
        incoming.take(5, 0, b"no head").expect("there is memory");
        incoming.take(2, 0, &head).expect("there is memory");
        incoming.take(4, 2 * blocks, &block).expect_err("the rank was over");
        let ranks = incoming.finish();
        assert_eq!(ranks.iter().map(|(task, _)| *task).collect::<Vec<_>>(), [4, 5, 2]);
        let [thread] = &ranks[0].1.threads[..] else { panic!("one thread: {ranks:?}") };
        let [record] = &thread.records[..] else { panic!("one record: {ranks:?}") };
        assert_eq!((record.start, record.end), (70, Some(90)));
        assert_eq!((&ranks[1].1, &ranks[2].1), (&Recorded::default(), &Recorded::default()));
    }
}

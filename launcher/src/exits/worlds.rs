//! Further worlds of a job: their ranks follow those before them.

use super::{ExitLog, Facts, Record};

impl ExitLog {
    /// Enters the ranks of a further world, on the host of the others. Those without a process were not started.
    pub(crate) fn admit(&mut self, pids: impl IntoIterator<Item = Option<u32>>) {
        let world = self.worlds();
        let record = |pid| Record { world, started: pid, pid, ..Record::default() };
        self.records.extend(pids.into_iter().map(record));
    }

    /// The number of worlds.
    fn worlds(&self) -> usize {
        self.records.last().map_or(0, |record| record.world + 1)
    }

    /// Whether two ranks belong to one world.
    pub(crate) fn are_mates(&self, one: usize, other: usize) -> bool {
        let world = |rank: usize| self.records.get(rank).map(|record| record.world);
        world(one) == world(other)
    }

    /// The facts about each world. A rank is waited for by those of its own world; one of another world that waits for
    /// it is found to be stuck.
    pub(super) fn facts(&self) -> Vec<Facts> {
        let (somebody_joined, lost_at) = (self.somebody_joined(), self.lost_at);
        let facts = Facts { somebody_joined, is_awaited: self.is_stuck, lost_at };
        let mut facts = vec![facts; self.worlds()];
        for record in &self.records {
            facts[record.world].is_awaited |= !record.joined || record.is_at_its_end();
        }
        facts
    }
}

#[cfg(test)]
mod tests {
    use transport_lapi::bootstrap::control::ControlMessage;

    use super::*;
    use crate::exits::{Decision, Ending, Fault};

    /// EX3, between two worlds.
    #[test]
    fn who_waits_in_one_world_does_not_wait_for_another() {
        let mut log = ExitLog::new(0, "host".to_owned(), 1, [10]);
        log.note(0, ControlMessage::Joined { pid: 10 }, 1);
        log.admit([Some(11), Some(12)]);
        assert_eq!(log.records().len(), 3);
        (1..3).for_each(|rank| log.note(rank, ControlMessage::Joined { pid: 10 + rank as u32 }, 2));
        log.note(0, ControlMessage::Leaving { counters: Default::default() }, 3);
        log.ended(2, Ending::Code(0), 4);
        assert_eq!(log.decide(5), Decision::Nothing);
        assert_eq!(log.ended_early(5), [2]);
        log.note(1, ControlMessage::Leaving { counters: Default::default() }, 6);
        let Decision::Failed(failure) = log.decide(u64::MAX) else { panic!("its world waits") };
        assert_eq!((failure.rank, failure.fault), (2, Fault::Unfinished));
    }
}

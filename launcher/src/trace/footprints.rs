//! How much memory each rank of a host occupies, looked at now and then while the job runs. Pure; [`crate::host::local`]
//! asks the kernel.
//!
//! - FO1: a rank has at most [`MOST_LOOKS`] values. When one has that many, each second value of all ranks goes, and from
//!   then on looks come half as often, so a job of any length is covered evenly.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use transport_lapi::TaskId;
use transport_lapi::bootstrap::trace::MOST_LOOKS;

/// The time between two looks at first, in jobs whose ranks do not take longer to look at.
const AT_FIRST: Duration = Duration::from_millis(50);
/// The least time between two looks, for each rank of the host.
const OF_RANK: Duration = Duration::from_millis(1);

/// See the module's head.
#[derive(Debug)]
pub(super) struct Footprints {
    /// Of each rank, when it was looked at, by the clock of the records, and how many bytes it had: only changes.
    ranks: BTreeMap<TaskId, Vec<(u64, u64)>>,
    every: Duration,
    next: Instant,
}

impl Footprints {
    pub(super) fn from(now: Instant) -> Self {
        Self { ranks: BTreeMap::new(), every: AT_FIRST, next: now }
    }

    /// When the ranks are to be looked at.
    pub(super) fn next(&self) -> Instant {
        self.next
    }

    /// Takes what the ranks occupy now.
    pub(super) fn take(
        &mut self,
        now: Instant,
        at: u64,
        occupied: impl IntoIterator<Item = (TaskId, u64)>,
    ) {
        let (mut is_full, mut ranks) = (false, 0);
        for (task, bytes) in occupied {
            ranks += 1;
            let values = self.ranks.entry(task).or_default();
            if values.last().is_none_or(|(_, last)| *last != bytes) {
                values.push((at, bytes));
            }
            is_full |= values.len() == MOST_LOOKS;
        }
        // The last value goes, too: the next one belongs where it would be if all had come half as often.
        self.next = now + self.every.max(OF_RANK * ranks);
        if is_full {
            self.every *= 2;
            self.ranks.values_mut().for_each(|values| {
                let mut place = 0;
                values.retain(|_| (place % 2 == 0, place += 1).0);
            });
        }
    }

    /// Takes the values of a rank out.
    pub(super) fn of(&mut self, task: TaskId) -> Vec<(u64, u64)> {
        self.ranks.remove(&task).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_changes_are_kept_and_a_long_job_is_covered_evenly() {
        let start = Instant::now();
        let mut footprints = Footprints::from(start);
        let mut looks = 0;
        while looks < 5000 {
            let now = footprints.next();
            let at = (now - start).as_millis() as u64;
            footprints.take(now, at, [(3, at), (5, 7)]);
            looks += 1;
        }
        let (changing, same) = (footprints.of(3), footprints.of(5));
        assert_eq!(same, [(0, 7)]);
        assert!((MOST_LOOKS / 2 - 1..MOST_LOOKS).contains(&changing.len()), "{}", changing.len());
        let gaps: Vec<u64> = changing.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
        let last = gaps[gaps.len() - 1];
        assert!(gaps.iter().all(|gap| *gap == last), "{gaps:?}");
        assert_eq!(changing[0], (0, 0));
        assert_eq!(footprints.of(3), []);
    }

    #[test]
    fn many_ranks_are_looked_at_less_often() {
        let start = Instant::now();
        let mut footprints = Footprints::from(start);
        footprints.take(start, 1, (0..200).map(|task| (task, 1)));
        assert_eq!(footprints.next(), start + OF_RANK * 200);
        footprints.take(start, 1, [(0, 1)]);
        assert_eq!(footprints.next(), start + AT_FIRST);
    }
}

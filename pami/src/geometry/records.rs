//! How long the collectives of a geometry took, by algorithm and size, and the associations that follow from it.

use std::collections::BTreeMap;
use std::time::Duration;

use transport_lapi::Ranges;

use super::Geometry;
use crate::algorithm::{Algorithm, Xfer};

/// Sizes are recorded in classes: class `c` has those up to `1 << c` that are in no lower one.
const CLASSES: usize = 64;

/// Number and sum of times in nanoseconds, by algorithm and class.
pub(super) type Records = BTreeMap<(Algorithm, usize), [u64; 2]>;

/// What was recorded of an algorithm at some sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// The greatest of the sizes, in bytes. The others are more than half of it.
    pub up_to: u64,
    /// How many collectives there were.
    pub times: u64,
    /// How long they took on average, from the advance that began one to its end on this member.
    pub mean: Duration,
}

impl Geometry {
    pub(crate) fn record(&self, algorithm: Algorithm, size: u64, time: Duration) {
        let class = u64::BITS - size.saturating_sub(1).leading_zeros();
        let mut records = self.0.records.lock();
        let record = records.entry((algorithm, CLASSES.min(class as usize + 1) - 1)).or_default();
        *record = [record[0] + 1, record[1] + time.as_nanos() as u64];
    }

    /// Returns what was recorded of collectives of a type on this task.
    pub fn records(&self, xfer: Xfer) -> Vec<Record> {
        let records = self.0.records.lock();
        let of_type = records.iter().filter(|((algorithm, _), _)| algorithm.xfer() == xfer);
        let record = |(&(algorithm, class), &[times, nanos]): (&(_, usize), &[u64; 2])| {
            let (up_to, mean) = (1 << class, Duration::from_nanos(nanos / times));
            Record { algorithm, up_to, times, mean }
        };
        of_type.map(record).collect()
    }

    /// Returns the records of a type as numbers that members can add: for each algorithm and class the two of
    /// [`Records`].
    pub(crate) fn numbers(&self, xfer: Xfer) -> Vec<u64> {
        let records = self.0.records.lock();
        let classes = Algorithm::all(xfer).flat_map(|one| (0..CLASSES).map(move |at| (one, at)));
        classes.flat_map(|key| records.get(&key).copied().unwrap_or_default()).collect()
    }
}

/// Associates with each class the algorithm that was fastest in it, if something was recorded. Other classes get the
/// algorithm of the next lower one, or else of the next higher one.
pub(crate) fn fastest(xfer: Xfer, numbers: &[u64]) -> Option<Ranges<Algorithm>> {
    let mean = |algorithm: usize, class: usize| {
        let at = 2 * (algorithm * CLASSES + class);
        let [times, nanos] = [numbers[at], numbers[at + 1]];
        nanos.checked_div(times)
    };
    let best = |class: usize| {
        let means = Algorithm::all(xfer).enumerate();
        let means = means.filter_map(|(at, algorithm)| Some((mean(at, class)?, algorithm)));
        means.min().map(|(_, algorithm)| algorithm)
    };
    let mut rows: Vec<(u64, Algorithm)> = Vec::new();
    for (class, algorithm) in (0..CLASSES).filter_map(|class| Some((class, best(class)?))) {
        match rows.last_mut() {
            Some((_, last)) if *last == algorithm => {}
            // The range before ends where the class before ends.
            Some((bound, _)) => {
                *bound = 1 << (class - 1);
                rows.push((u64::MAX, algorithm));
            }
            None => rows.push((u64::MAX, algorithm)),
        }
    }
    (!rows.is_empty()).then(|| Ranges::new(rows).expect("classes ascend"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fastest_algorithm_of_each_class_is_associated() {
        let geometry = Geometry::new((1, 0), vec![crate::Endpoint::from_bits(0)], |_| 0).unwrap();
        let [doubling, hosts, halving] = ["doubling", "hosts", "halving"]
            .map(|name| Algorithm::named(Xfer::Allreduce, name).unwrap());
        let tune = || fastest(Xfer::Allreduce, &geometry.numbers(Xfer::Allreduce));
        assert_eq!(tune(), None);
        let record = |algorithm, size, nanos| {
            geometry.record(algorithm, size, Duration::from_nanos(nanos));
        };
        record(doubling, 8, 100);
        record(halving, 8, 150);
        assert_eq!(tune().unwrap().rows(), [(u64::MAX, doubling)]);
        record(doubling, 1025, 900);
        record(doubling, 2048, 500);
        record(halving, 2048, 699);
        record(hosts, 1 << 40, 1);
        record(hosts, 0, 1);
        record(doubling, u64::MAX, 1);
        let [small, large] = [1 << 10, 1 << 39];
        let rows = [
            (4, hosts),
            (small, doubling),
            (large, halving),
            (1 << 62, hosts),
            (u64::MAX, doubling),
        ];
        assert_eq!(tune().unwrap().rows(), rows);
        let up_to: Vec<_> = geometry.records(Xfer::Allreduce).iter().map(|one| one.up_to).collect();
        assert_eq!(up_to, [8, 2048, 1 << 63, 1, 1 << 40, 8, 2048]);
        assert_eq!(geometry.records(Xfer::Allreduce)[1].mean, Duration::from_nanos(700));
    }
}

//! Gathers what the agents of a job of several hosts see of their ranks into one snapshot. Owned by
//! [`crate::hang::watcher`]. Only answers to the last order count; a rank whose host does not answer in time is shown
//! as such.

use transport_lapi::TaskId;
use transport_lapi::bootstrap::control::agents::Order;
use transport_lapi::bootstrap::control::{Observed, Usage};
use transport_lapi::bootstrap::monotonic_nanos;

use crate::hang::snapshot::{Seen, Snapshot};

/// See the module's head.
#[derive(Debug)]
pub(crate) struct Gathering {
    number: u64,
    /// What has come, since an order was given.
    seen: Option<Snapshot>,
    /// Whether the host of a rank has still to tell of it.
    missing: Vec<bool>,
    /// For how many ranks that is so.
    left: usize,
}

impl Gathering {
    /// For a job of so many ranks.
    pub(crate) fn new(ranks: usize) -> Self {
        Self { number: 0, seen: None, missing: vec![false; ranks], left: 0 }
    }

    /// The order for a look at the ranks, except those that are gone, and at these `threads`. Ranks are asked for their
    /// queues after it if it `asks`.
    pub(crate) fn begin(
        &mut self,
        is_gone: impl Fn(usize) -> bool,
        asks: bool,
        threads: Vec<(TaskId, i32)>,
    ) -> Order {
        self.number += 1;
        let ranks = self.missing.len();
        self.missing = (0..ranks).map(|rank| !is_gone(rank)).collect();
        self.left = self.missing.iter().filter(|missing| **missing).count();
        self.seen = Some(Snapshot {
            at: monotonic_nanos(),
            ranks: vec![Seen::Unanswered; ranks],
            activities: vec![None; ranks],
            doubts: vec![None; ranks],
            usages: vec![Usage::default(); ranks],
            ..Snapshot::default()
        });
        Order::Look { number: self.number, asks, threads }
    }

    /// Takes what was seen of a rank at the look of this number, and returns whether that was the last one.
    pub(crate) fn take(&mut self, rank: usize, number: u64, seen: Observed) -> bool {
        let Some(all) = self.seen.as_mut().filter(|_| number == self.number) else { return false };
        if !std::mem::take(&mut self.missing[rank]) {
            return false;
        }
        self.left -= 1;
        (all.activities[rank], all.doubts[rank]) = (seen.activity, seen.doubt);
        all.usages[rank] = seen.usage;
        all.ranks[rank] = Seen::from(seen.state);
        all.gone_threads.extend(seen.gone.into_iter().map(|thread| (rank, thread)));
        all.at = monotonic_nanos();
        self.is_complete()
    }

    /// Notes that nothing more will come from a rank, whose host need not have told of it.
    pub(crate) fn ended(&mut self, rank: usize) {
        if std::mem::take(&mut self.missing[rank]) {
            self.left -= 1;
            self.seen.iter_mut().for_each(|all| all.ranks[rank] = Seen::Unread);
        }
    }

    /// Whether nothing is missing.
    pub(crate) fn is_complete(&self) -> bool {
        self.left == 0
    }

    /// Takes what has come, if an order was given since the last call.
    pub(crate) fn snapshot(&mut self) -> Option<Snapshot> {
        self.seen.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hang::snapshot::Activity;

    fn observed() -> Observed {
        let (activity, usage) =
            (Some(Activity::Computing), Usage { memory: Some(5), totals: None });
        Observed { state: None, activity, doubt: None, usage, gone: vec![7] }
    }

    #[test]
    fn answers_to_the_last_order_are_gathered() {
        let mut gathering = Gathering::new(3);
        assert_eq!(gathering.snapshot(), None);
        gathering.begin(|_| false, true, Vec::new());
        let threads = vec![(0, 7), (0, 8)];
        let order = Order::Look { number: 2, asks: false, threads: threads.clone() };
        assert_eq!(gathering.begin(|rank| rank == 1, false, threads), order);
        assert!(!gathering.take(0, 1, observed()), "an answer to the first order");
        assert!(!gathering.take(1, 2, observed()), "of a rank that had ended");
        assert!(!gathering.take(0, 2, observed()) && !gathering.is_complete());
        let snapshot = gathering.snapshot().expect("an order was given");
        assert_eq!(snapshot.ranks, [Seen::Unsteady, Seen::Unanswered, Seen::Unanswered]);
        assert_eq!(snapshot.activity(0), Some(Activity::Computing));
        assert_eq!((snapshot.usage(0), snapshot.usage(1)), (observed().usage, Usage::default()));
        assert_eq!(snapshot.gone_threads, [(0, 7)]);
        assert_eq!(gathering.snapshot(), None);
    }

    #[test]
    fn ranks_that_end_are_not_waited_for() {
        let mut gathering = Gathering::new(2);
        gathering.begin(|_| false, true, Vec::new());
        gathering.ended(1);
        assert!(gathering.take(0, 1, observed()));
        let snapshot = gathering.snapshot().expect("an order was given");
        assert_eq!(snapshot.ranks, [Seen::Unsteady, Seen::Unread]);
    }
}

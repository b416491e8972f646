//! Who sends how much to whom, and in messages of which size. Messages of collective calls are not among these.

use std::collections::{BTreeMap, HashMap};

use crate::trace::{Call, Kind, Trace};

/// A number of messages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Amount {
    pub(super) messages: u64,
    pub(super) bytes: u64,
}

/// All messages of a job.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Traffic {
    /// By sender and receiver.
    pub(super) pairs: BTreeMap<(usize, usize), Amount>,
    /// By the number of binary digits of their length: 0 for empty messages, n for those from 2^(n-1) bytes to
    /// 2^n - 1.
    pub(super) sizes: BTreeMap<u32, Amount>,
    /// Of these, those to ranks that are not in the trace.
    pub(super) elsewhere: Amount,
}

impl Amount {
    fn add(&mut self, bytes: u64) {
        self.messages += 1;
        self.bytes = self.bytes.saturating_add(bytes);
    }

    pub(super) fn plus(self, other: Self) -> Self {
        Self {
            messages: self.messages.saturating_add(other.messages),
            bytes: self.bytes.saturating_add(other.bytes),
        }
    }
}

impl Traffic {
    pub(super) fn of(trace: &Trace) -> Self {
        let mut traffic = Self::default();
        let mut places = HashMap::new();
        for (place, rank) in trace.ranks.iter().enumerate() {
            places.entry(rank.rank).or_insert(place);
        }
        for (sender, call) in calls(trace) {
            // Without a peer it goes nowhere: to MPI_PROC_NULL.
            let Some(peer) = call.peer else { continue };
            if !matches!(call.kind, Kind::Send | Kind::Exchange) {
                continue;
            }
            let pair = places.get(&peer).map(|receiver| (sender, *receiver));
            let amount = match pair {
                Some(pair) => traffic.pairs.entry(pair).or_default(),
                None => &mut traffic.elsewhere,
            };
            amount.add(call.bytes);
            let digits = u64::BITS - call.bytes.leading_zeros();
            traffic.sizes.entry(digits).or_default().add(call.bytes);
        }
        traffic
    }

    /// All messages.
    pub(super) fn all(&self) -> Amount {
        self.sizes.values().fold(Amount::default(), |sum, amount| sum.plus(*amount))
    }
}

/// All calls, with the places of their ranks.
fn calls(trace: &Trace) -> impl Iterator<Item = (usize, &Call)> {
    let ranks = trace.ranks.iter().enumerate();
    let threads = ranks.flat_map(|(place, rank)| rank.threads.iter().map(move |it| (place, it)));
    threads.flat_map(|(place, thread)| thread.calls.iter().map(move |call| (place, call)))
}

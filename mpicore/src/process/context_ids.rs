//! Context ids: the numbers that separate the messages of communicators (MPI-4.1 section 7.1.2), and how the members of
//! a new communicator agree on one. Pure: `create.rs` carries the words between ranks.
//!
//! Every rank records the ids that it uses. The members of a new communicator look for a low id that is free on all of
//! them, in rounds. Each member reserves the lowest id not below a bound that it has free, and proposes it; all learn
//! the highest and the lowest proposal. If these are equal, all have reserved the same id, and the agreement is
//! complete. If not, the bound of the next round is the highest proposal, or a little more.
//!
//! - CI1: a rank does not propose an id that it uses or has reserved for another agreement. So the agreed id is free on
//!   all members, and stays reserved on each until its communicator is gone there.
//! - CI2: no agreement waits for another one: it skips ids that others have reserved. So agreements of several threads,
//!   and non-blocking ones that continue in different orders, do not block each other.
//! - CI3: two agreements could overtake each other's ids for ever, each one step ahead on one rank. So bounds grow by
//!   steps that look random. The steps follow from a number that the members of an agreement have in common, and that
//!   differs from those of other agreements with high probability.
//! - CI4: every agreement ends. Bounds grow; if a member has no id left at or above the bound, all learn it in the same
//!   round and begin again. They do so only a few times, since others may have released ids meanwhile.

use std::collections::BTreeSet;

/// The proposal of a member that has no id left.
const NONE: u32 = u32::MAX;

/// The ids of one rank.
#[derive(Debug)]
pub(crate) struct ContextIds {
    /// Number of ids.
    most: u32,
    /// All ids from here on are free.
    fresh: u32,
    /// Ids below `fresh` that are free.
    free: BTreeSet<u32>,
}

impl ContextIds {
    /// Makes ids 0 to `most - 1`, of which the first `taken` are in use.
    pub fn new(most: u32, taken: u32) -> Self {
        Self { most, fresh: taken.min(most), free: BTreeSet::new() }
    }

    /// Returns the number of ids.
    pub fn most(&self) -> u32 {
        self.most
    }

    /// Reserves the lowest id that is free and at least `bound`.
    fn reserve(&mut self, bound: u32) -> Option<u32> {
        if let Some(&id) = self.free.range(bound..).next() {
            self.free.remove(&id);
            return Some(id);
        }
        let id = self.fresh.max(bound);
        if id >= self.most {
            return None;
        }
        self.free.extend(self.fresh..id);
        self.fresh = id + 1;
        Some(id)
    }

    /// Releases an id.
    pub fn release(&mut self, id: u32) {
        self.free.insert(id);
        // Ids next to the fresh ones become fresh again, so the set stays small.
        while self.fresh.checked_sub(1).is_some_and(|last| self.free.remove(&last)) {
            self.fresh -= 1;
        }
    }
}

/// An agreement under way, as one member sees it.
#[derive(Debug)]
pub(crate) struct Agreement {
    proposal: u32,
    /// The number that the members have in common (CI3).
    salt: u32,
    rounds: u32,
    /// How often the agreement may still begin again (CI4).
    chances: u32,
}

/// How often an agreement may begin again.
const CHANCES: u32 = 8;

/// The result of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Round {
    /// All members have reserved this id.
    Agreed(u32),
    /// Another round is needed.
    Again,
    /// Some member has no id left.
    Exhausted,
}

impl Agreement {
    /// The number of words that a member sends to the others in a round. All learn the highest value of each word.
    pub const WORDS: usize = 2;

    /// Begins with the lowest id that is free here. The `salt` is the same for all members, and differs for agreements
    /// that may be under way at the same time.
    pub fn new(ids: &mut ContextIds, salt: u32) -> Self {
        let proposal = ids.reserve(0).unwrap_or(NONE);
        Self { proposal, salt, rounds: 0, chances: CHANCES }
    }

    /// Returns the words of this member for the round.
    pub fn words(&self) -> [u32; Self::WORDS] {
        [self.proposal, !self.proposal]
    }

    /// Ends the round, given the highest value of each word among all members.
    pub fn learn(&mut self, ids: &mut ContextIds, words: [u32; Self::WORDS]) -> Round {
        let (highest, lowest) = (words[0], !words[1]);
        if highest == NONE && self.chances == 0 {
            self.give_up(ids);
            return Round::Exhausted;
        }
        if highest == lowest && highest != NONE {
            return Round::Agreed(highest);
        }
        let from = if highest == NONE { 0 } else { highest };
        self.chances -= u32::from(highest == NONE);
        let bound = from.saturating_add(self.step());
        self.rounds += 1;
        if self.proposal != bound {
            let before = std::mem::replace(&mut self.proposal, NONE);
            self.proposal = ids.reserve(bound).unwrap_or(NONE);
            if before != NONE {
                ids.release(before);
            }
        }
        Round::Again
    }

    /// Returns how far the bound of the next round is above the highest proposal: 0 at first, then any number below a
    /// limit that doubles up to 64 (CI3).
    fn step(&self) -> u32 {
        let limit = 1 << self.rounds.saturating_sub(1).min(6);
        let mixed = self.salt.wrapping_add(self.rounds).wrapping_mul(0x9e37_79b9);
        (mixed ^ mixed >> 15).wrapping_mul(0x85eb_ca6b) >> 8 & (limit - 1)
    }

    /// Releases the reservation, because the agreement has failed.
    pub fn give_up(&mut self, ids: &mut ContextIds) {
        let proposal = std::mem::replace(&mut self.proposal, NONE);
        if proposal != NONE {
            ids.release(proposal);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    /// Runs the agreements of these members to their ends, with rounds interleaved in this order.
    fn agree(ranks: &mut [ContextIds], groups: &[Vec<usize>], order: &[usize]) -> Vec<Option<u32>> {
        let mut open: Vec<Vec<Agreement>> = (0..)
            .zip(groups)
            .map(|(salt, members)| {
                members.iter().map(|&rank| Agreement::new(&mut ranks[rank], salt)).collect()
            })
            .collect();
        let mut ended = vec![None; groups.len()];
        let rest = (0..groups.len()).cycle().take(groups.len() * 1000);
        for which in order.iter().map(|one| one % groups.len()).chain(rest) {
            if ended[which].is_some() {
                continue;
            }
            let words = open[which].iter().map(Agreement::words);
            let all = words.reduce(|a, b| [a[0].max(b[0]), a[1].max(b[1])]).unwrap();
            let members = open[which].iter_mut().zip(&groups[which]);
            let outcomes: BTreeSet<_> = members
                .map(|(agreement, &rank)| match agreement.learn(&mut ranks[rank], all) {
                    Round::Agreed(id) => Some(Some(id)),
                    Round::Exhausted => Some(None),
                    Round::Again => None,
                })
                .collect();
            assert_eq!(outcomes.len(), 1, "all members see the same");
            ended[which] = outcomes.into_iter().next().flatten();
        }
        ended.into_iter().map(|outcome| outcome.expect("every agreement ends")).collect()
    }

    #[test]
    fn the_lowest_common_id_is_found() {
        let mut ranks = [ContextIds::new(10, 2), ContextIds::new(10, 5), ContextIds::new(10, 3)];
        ranks[1].release(3);
        assert_eq!(agree(&mut ranks, &[vec![0, 1, 2]], &[]), [Some(3)]);
        assert_eq!(agree(&mut ranks, &[vec![0, 2]], &[]), [Some(4)]);
        assert_eq!(agree(&mut ranks, &[vec![0]], &[]), [Some(2)], "what was passed over is free");
    }

    #[test]
    fn running_out_is_known_to_all_and_takes_nothing() {
        let mut ranks = [ContextIds::new(4, 2), ContextIds::new(4, 4)];
        assert_eq!(agree(&mut ranks, &[vec![0, 1]], &[]), [None]);
        assert_eq!(agree(&mut ranks, &[vec![0], vec![0]], &[]), [Some(2), Some(3)]);
    }

    proptest! {
        #[test]
        fn agreements_at_the_same_time_get_different_ids(
            taken in proptest::collection::vec(0_u32..6, 4),
            groups in proptest::collection::vec(proptest::collection::btree_set(0_usize..4, 1..4), 1..6),
            order in proptest::collection::vec(0_usize..6, 0..40),
        ) {
            let mut ranks: Vec<_> = taken.iter().map(|taken| ContextIds::new(256, *taken)).collect();
            let groups: Vec<Vec<_>> = groups.into_iter().map(|one| one.into_iter().collect()).collect();
            let ended = agree(&mut ranks, &groups, &order);
            for (rank, taken) in taken.iter().enumerate() {
                let of_rank = groups.iter().zip(&ended).filter(|(members, _)| members.contains(&rank));
                let ids: Vec<_> = of_rank.map(|(_, id)| id.expect("there are enough")).collect();
                let distinct: BTreeSet<_> = ids.iter().collect();
                prop_assert_eq!(distinct.len(), ids.len());
                prop_assert!(ids.iter().all(|id| id >= taken));
            }
            for (members, id) in groups.iter().zip(ended) {
                members.iter().for_each(|&rank| ranks[rank].release(id.expect("there are enough")));
            }
            for (ids, taken) in ranks.iter().zip(taken) {
                prop_assert_eq!((ids.fresh, ids.free.len()), (taken, 0), "all is given back");
            }
        }
    }
}

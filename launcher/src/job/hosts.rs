//! The hosts of a job, which ranks run on which of them, and which agents start which. Pure.
//!
//! - HO1: ranks fill the slots of one host after the other, or go round the hosts in turn. More ranks than slots fill
//!   them again. Where no host states its slots, ranks divide evenly.
//! - HO2: agents are a tree. `mpjrun` divides all hosts into at most as many branches as the fan-out, each of
//!   neighbours in the list, and starts an agent on the first host of each. That agent does the same with the rest of its
//!   branch. So a tree with a fan-out of 16 has one level up to 16 hosts, two up to 272, and three up to 4,368.

use std::ops::Range;
use std::time::Duration;

pub use transport_lapi::bootstrap::control::agents::Starter;

/// A host that may run ranks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostSlots {
    /// Its name, as the program that starts the agents is given it.
    pub name: String,
    /// The number of ranks that it has room for; `None` if nobody has said.
    pub slots: Option<usize>,
}

/// The order in which ranks are dealt out to hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deal {
    /// Neighbours on the same host.
    Block,
    /// Neighbours on different hosts, in turn.
    Cyclic,
}

/// The hosts of a job that does not run on this host alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hosts {
    /// Their names, each once.
    pub names: Vec<String>,
    /// The host of each rank: a place in `names`.
    pub of_rank: Vec<usize>,
    /// How agents are started.
    pub starter: Starter,
    /// The most agents that one process starts (HO2).
    pub fanout: usize,
    /// After how long a host that says nothing counts as lost.
    pub silence: Duration,
}

impl Hosts {
    /// Returns the ranks of each host, in order.
    pub(crate) fn ranks(&self) -> Vec<Vec<usize>> {
        let mut ranks = vec![Vec::new(); self.names.len()];
        self.of_rank.iter().enumerate().for_each(|(rank, host)| ranks[*host].push(rank));
        ranks
    }

    /// Returns the place of the first host of those with most ranks, and their number.
    pub(crate) fn fullest(&self) -> (usize, usize) {
        let mut ranks = vec![0; self.names.len()];
        self.of_rank.iter().for_each(|host| ranks[*host] += 1);
        let most = ranks.iter().copied().max().unwrap_or(0);
        (ranks.iter().position(|ranks| *ranks == most).unwrap_or(0), most)
    }
}

/// Divides hosts that one process looks after into branches (HO2).
pub(crate) fn branches(hosts: Range<usize>, fanout: usize) -> impl Iterator<Item = Range<usize>> {
    let count = hosts.len().min(fanout);
    let bound = move |at: usize| hosts.start + at * hosts.len() / count;
    (0..count).map(move |at| bound(at)..bound(at + 1))
}

/// The host whose agent starts that of each host among `hosts`; `None` where `mpjrun` does (HO2).
pub(crate) fn parents(hosts: usize, fanout: usize) -> Vec<Option<usize>> {
    let mut parents = vec![None; hosts];
    let mut open = vec![(None, 0..hosts)];
    while let Some((parent, below)) = open.pop() {
        for branch in branches(below, fanout) {
            parents[branch.start] = parent;
            open.push((Some(branch.start), branch.start + 1..branch.end));
        }
    }
    parents
}

/// Joins the entries of each host, whose slots add up; an entry that repeats a host and states no number is one slot.
pub(crate) fn merged(entries: impl IntoIterator<Item = HostSlots>) -> Vec<HostSlots> {
    let mut hosts: Vec<HostSlots> = Vec::new();
    for entry in entries {
        match hosts.iter_mut().find(|host| host.name == entry.name) {
            Some(host) => {
                let more = entry.slots.unwrap_or(1);
                host.slots = Some(host.slots.unwrap_or(1).saturating_add(more));
            }
            None => hosts.push(entry),
        }
    }
    hosts
}

/// The number of ranks for which hosts have room: one for each that does not say.
pub(crate) fn room(hosts: &[HostSlots]) -> usize {
    hosts.iter().map(|host| host.slots.unwrap_or(1)).fold(0, usize::saturating_add)
}

/// Deals `ranks` ranks out to hosts. Returns the place of each rank's host (HO1).
pub(crate) fn deal(hosts: &[HostSlots], ranks: usize, order: Deal) -> Vec<usize> {
    let mut left = shares(hosts, ranks);
    match order {
        Deal::Block => {
            let shares = left.into_iter().enumerate();
            shares.flat_map(|(host, share)| std::iter::repeat_n(host, share)).collect()
        }
        Deal::Cyclic => {
            let mut places = Vec::with_capacity(ranks);
            while places.len() < ranks {
                for (host, left) in left.iter_mut().enumerate().filter(|(_, left)| **left > 0) {
                    *left -= 1;
                    places.push(host);
                }
            }
            places
        }
    }
}

/// The number of ranks of each host.
fn shares(hosts: &[HostSlots], ranks: usize) -> Vec<usize> {
    if hosts.iter().all(|host| host.slots.is_none()) {
        let (each, more) = (ranks / hosts.len(), ranks % hosts.len());
        return (0..hosts.len()).map(|host| each + usize::from(host < more)).collect();
    }
    let room = room(hosts);
    let (times, mut left) = (ranks / room, ranks % room);
    let share = |host: &HostSlots| {
        let slots = host.slots.unwrap_or(1);
        let more = left.min(slots);
        left -= more;
        times * slots + more
    };
    hosts.iter().map(share).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn hosts(slots: &[Option<usize>]) -> Vec<HostSlots> {
        let named = |(at, slots): (usize, &Option<usize>)| HostSlots {
            name: format!("node{at}"),
            slots: *slots,
        };
        slots.iter().enumerate().map(named).collect()
    }

    #[test]
    fn blocks_fill_one_host_after_the_other() {
        let block = |slots: &[_], ranks| deal(&hosts(slots), ranks, Deal::Block);
        assert_eq!(block(&[Some(2), Some(2)], 3), [0, 0, 1]);
        assert_eq!(block(&[Some(2), Some(1)], 7), [0, 0, 0, 0, 0, 1, 1]);
        assert_eq!(block(&[None, None], 5), [0, 0, 0, 1, 1]);
        assert_eq!(block(&[Some(3), None], 4), [0, 0, 0, 1]);
        assert_eq!(block(&[None, None, None], 2), [0, 1]);
    }

    #[test]
    fn turns_go_round_the_hosts() {
        let cyclic = |slots: &[_], ranks| deal(&hosts(slots), ranks, Deal::Cyclic);
        assert_eq!(cyclic(&[Some(3), Some(1)], 4), [0, 1, 0, 0]);
        assert_eq!(cyclic(&[None, None], 4), [0, 1, 0, 1]);
    }

    #[test]
    fn a_host_that_is_named_twice_has_more_slots() {
        let entry = |name: &str, slots| HostSlots { name: name.into(), slots };
        let given = [entry("a", None), entry("b", Some(2)), entry("a", None), entry("b", Some(3))];
        assert_eq!(merged(given), [entry("a", Some(2)), entry("b", Some(5))]);
    }

    /// The length of the longest way from `mpjrun` to an agent.
    fn depth(hosts: usize, fanout: usize) -> usize {
        let parents = parents(hosts, fanout);
        let way = |host: usize| std::iter::successors(Some(host), |at| parents[*at]).count();
        (0..hosts).map(way).max().unwrap_or_default()
    }

    #[test]
    fn a_tree_is_as_deep_as_it_says() {
        let depths = [(1, 1), (16, 1), (17, 2), (200, 2), (272, 2), (273, 3), (4368, 3), (4369, 4)];
        assert_eq!(depths.map(|(hosts, _)| (hosts, depth(hosts, 16))), depths);
        assert_eq!(depth(5, 1), 5);
        assert_eq!(parents(4, 2), [None, Some(0), None, Some(2)]);
    }

    proptest! {
        #[test]
        fn nobody_starts_more_agents_than_the_fanout(hosts in 1_usize..400, fanout in 1_usize..20) {
            let parents = parents(hosts, fanout);
            for parent in std::iter::once(None).chain((0..hosts).map(Some)) {
                prop_assert!(parents.iter().filter(|it| **it == parent).count() <= fanout);
            }
            let is_upwards = |(host, parent): (usize, &Option<usize>)| parent.is_none_or(|it| it < host);
            prop_assert!(parents.iter().enumerate().all(is_upwards));
        }

        #[test]
        fn every_rank_has_a_host_and_none_is_overfull(
            slots in prop::collection::vec(prop::option::of(1_usize..5), 1..6),
            ranks in 1_usize..40,
            cyclic: bool,
        ) {
            let hosts = hosts(&slots);
            let order = if cyclic { Deal::Cyclic } else { Deal::Block };
            let places = deal(&hosts, ranks, order);
            prop_assert_eq!(places.len(), ranks);
            let times = ranks.div_ceil(room(&hosts));
            for (at, host) in hosts.iter().enumerate() {
                let share = places.iter().filter(|place| **place == at).count();
                prop_assert!(share <= times * host.slots.unwrap_or(1));
            }
            let sorted = order == Deal::Cyclic || places.is_sorted();
            prop_assert!(sorted);
        }
    }
}

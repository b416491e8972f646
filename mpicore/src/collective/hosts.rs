//! Which ranks of an intracommunicator run on the same host. Messages between hosts take many times as long as those
//! inside of one, so algorithms have each host's ranks work together, and only one of them, the *head*, communicate
//! with other hosts.
//!
//! Ranks are counted host by host: the *position* of a rank is the number of ranks on earlier hosts, and of lower ones
//! on its own. Hosts are in the order of their lowest ranks. If each host has consecutive ranks, positions are ranks.

use std::collections::BTreeMap;
use std::ops::Range;

use super::steps::Steps;
use super::tree::{Kin, Tree};
use super::{Member, Order, Place, Scratch};

/// How the ranks of an intracommunicator are divided among several hosts, as one of them sees it. It takes 4 bytes for
/// each host, and unless each host has consecutive ranks, 8 bytes for each rank.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Hosts {
    /// The position of the first rank of each host, and the number of ranks.
    starts: Box<[u32]>,
    /// Ranks by position, and positions by rank, unless they are the same.
    order: Option<[Box<[u32]>; 2]>,
    /// The number of this rank's host among these hosts.
    own: u32,
}

impl Hosts {
    /// Divides the ranks of a communicator of `size` by their hosts, which `host_of` numbers in any way. Returns `None`
    /// if all run on one. All ranks get the same division.
    ///
    /// # Panics
    /// If `rank` is no rank.
    ///
    /// ```
    /// use mpicore::collective::Hosts;
    /// assert!(Hosts::of(0, 4, |rank| rank / 2).is_some());
    /// assert!(Hosts::of(0, 4, |_| 7).is_none());
    /// ```
    pub fn of(rank: u32, size: u32, host_of: impl Fn(u32) -> u32) -> Option<Self> {
        let first = host_of(0);
        (1..size).find(|&rank| host_of(rank) != first)?;
        let mut numbers = BTreeMap::new();
        let mut ranks: Vec<Vec<u32>> = Vec::new();
        for rank in 0..size {
            let number = *numbers.entry(host_of(rank)).or_insert(ranks.len());
            if number == ranks.len() {
                ranks.push(Vec::new());
            }
            ranks[number].push(rank);
        }
        let own = numbers[&host_of(rank)] as u32;
        let mut starts = vec![0];
        starts.extend(ranks.iter().scan(0, |end, ranks| {
            *end += ranks.len() as u32;
            Some(*end)
        }));
        let by_position = ranks.concat();
        let order = (!by_position.is_sorted()).then(|| {
            let mut positions = vec![0; by_position.len()];
            (0..).zip(&by_position).for_each(|(at, &rank)| positions[rank as usize] = at);
            [by_position.into(), positions.into()]
        });
        Some(Self { starts: starts.into(), order, own })
    }

    /// Returns the number of hosts.
    pub fn count(&self) -> u32 {
        self.starts.len() as u32 - 1
    }

    /// Returns the number of the host of this rank.
    pub(super) fn own(&self) -> u32 {
        self.own
    }

    /// Returns whether each host has consecutive ranks, so that positions are ranks.
    #[inline]
    pub(crate) fn are_consecutive(&self) -> bool {
        self.order.is_none()
    }

    /// Returns whether all hosts have as many ranks, and their number is a power of two, as is that of hosts.
    pub(super) fn are_equal_powers(&self) -> bool {
        let size = self.starts[1];
        let are_equal = self.starts.windows(2).all(|pair| pair[1] - pair[0] == size);
        are_equal && size.is_power_of_two() && self.count().is_power_of_two()
    }

    /// Returns the positions of the ranks of a host.
    pub(super) fn positions(&self, host: u32) -> Range<u32> {
        self.starts[host as usize]..self.starts[host as usize + 1]
    }

    /// Returns the rank at a position.
    pub(super) fn rank_at(&self, position: u32) -> u32 {
        self.order.as_ref().map_or(position, |[ranks, _]| ranks[position as usize])
    }

    /// Returns the position of a rank.
    pub(super) fn position(&self, rank: u32) -> u32 {
        self.order.as_ref().map_or(rank, |[_, positions]| positions[rank as usize])
    }

    /// Returns the lowest rank of a host.
    pub(super) fn first_of(&self, host: u32) -> u32 {
        self.rank_at(self.starts[host as usize])
    }

    /// Returns the host of the rank at a position.
    pub(super) fn host_at(&self, position: u32) -> u32 {
        self.starts.partition_point(|&start| start <= position) as u32 - 1
    }

    /// Returns a rank of this host as a member of the ranks there, and how to find the ranks of these.
    pub(super) fn inside(&self, rank: u32) -> (Member<'static>, impl Fn(u32) -> u32 + Copy) {
        let Range { start, end } = self.positions(self.own);
        let member = Member { rank: self.position(rank) - start, size: end - start, hosts: None };
        (member, move |place| self.rank_at(start + place))
    }

    /// Iterates over the ranks with which the root exchanges blocks, those of its host first, and the ranks whose blocks
    /// these are. Each host has consecutive ranks.
    pub(super) fn below_root(
        &self,
        root: u32,
    ) -> impl DoubleEndedIterator<Item = (u32, Range<u32>)> {
        let here = self.positions(self.own).filter(move |&rank| rank != root);
        let hosts = (0..self.count()).filter(|&host| host != self.own);
        let there = hosts.map(|host| (self.first_of(host), self.positions(host)));
        here.map(|rank| (rank, rank..rank + 1)).chain(there)
    }

    /// Returns the rank to which this one passes blocks on their way to `root`, and the ranks of these blocks: those of
    /// its host if it is the first one there, or else its own. Each host has consecutive ranks.
    pub(super) fn toward(&self, root: u32, rank: u32) -> (u32, Range<u32>) {
        let here = self.positions(self.own);
        let has_root = here.contains(&root);
        match here.start {
            first if has_root || first != rank => {
                (if has_root { root } else { first }, rank..rank + 1)
            }
            _ => (root, here),
        }
    }

    /// Returns this host as a member of the hosts.
    pub(super) fn between(&self) -> Member<'static> {
        Member { rank: self.own, size: self.count(), hosts: None }
    }
}

impl<'h> Member<'h> {
    /// Returns the hosts, if an algorithm that combines operands host by host keeps the order.
    #[inline]
    pub(super) fn hosts_for(self, order: Order) -> Option<&'h Hosts> {
        self.hosts.filter(|hosts| order == Order::Free || hosts.are_consecutive())
    }

    /// Returns the hosts, if the blocks of each one's ranks are consecutive.
    #[inline]
    pub(super) fn hosts_of_blocks(self) -> Option<&'h Hosts> {
        self.hosts_for(Order::Ranks)
    }
}

/// A rank's view of a tree of two levels: a binomial tree of the heads of all hosts, and on each host one of its ranks,
/// with its head at the top. The root is the head of its host; the lowest rank is that of any other.
///
/// If the root is the lowest rank, and each host has consecutive ranks, then the ranks below each child are
/// consecutive, and come after those below the child before.
pub(super) struct HostTree<'h> {
    hosts: &'h Hosts,
    inside: Tree,
    /// The tree of hosts, in which only heads have neighbours.
    between: Option<Tree>,
    root: u32,
    root_host: u32,
}

impl<'h> HostTree<'h> {
    pub(super) fn new(hosts: &'h Hosts, rank: u32, root: u32) -> Self {
        let root_host = hosts.host_at(hosts.position(root));
        let (member, _) = hosts.inside(rank);
        let is_at_root = root_host == hosts.own;
        let start = hosts.positions(hosts.own).start;
        let head = if is_at_root { hosts.position(root) - start } else { 0 };
        let between = (member.rank == head).then(|| Tree::new(hosts.between(), root_host));
        Self { hosts, inside: Tree::new(member, head), between, root, root_host }
    }

    /// The tree of the ranks of one host alone, with the lowest one at the top.
    pub(super) fn of_host(hosts: &'h Hosts, rank: u32) -> Self {
        let (member, rank_at) = hosts.inside(rank);
        let (root, root_host) = (rank_at(0), hosts.own);
        Self { hosts, inside: Tree::new(member, 0), between: None, root, root_host }
    }

    fn rank_inside(&self, position: u32) -> u32 {
        let start = self.hosts.positions(self.hosts.own).start;
        self.hosts.rank_at(start + self.inside.rank_at(position))
    }

    fn head_of(&self, host: u32) -> u32 {
        if host == self.root_host { self.root } else { self.hosts.first_of(host) }
    }
}

impl Kin for HostTree<'_> {
    fn above(&self) -> Option<u32> {
        let inside = self.inside.parent().map(|parent| self.rank_inside(parent));
        let between = self.between.as_ref();
        inside.or_else(|| between.and_then(Tree::above).map(|host| self.head_of(host)))
    }

    /// Those on the same host come first.
    fn below(&self) -> impl DoubleEndedIterator<Item = u32> {
        let inside = self.inside.children().map(|child| self.rank_inside(child.position));
        let hosts = self.between.iter().flat_map(Tree::below);
        inside.chain(hosts.map(|host| self.head_of(host)))
    }

    fn num_below(&self) -> usize {
        self.inside.num_below() + self.between.as_ref().map_or(0, Tree::num_below)
    }
}

/// The steps of an algorithm among some of the ranks, which it numbers in its own way.
pub(super) struct Among<'s, S, R> {
    pub steps: &'s mut S,
    /// Returns the rank with a number.
    pub rank_at: R,
}

impl<S: Steps, R: Fn(u32) -> u32> Steps for Among<'_, S, R> {
    fn name(&mut self, name: &'static str) {
        self.steps.name(name);
    }

    fn needs(&mut self, scratch: Scratch) {
        self.steps.needs(scratch);
    }

    fn send(&mut self, peer: u32, from: Place) {
        self.steps.send((self.rank_at)(peer), from);
    }

    fn receive(&mut self, peer: u32, into: Place) {
        self.steps.receive((self.rank_at)(peer), into);
    }

    fn copy(&mut self, from: Place, into: Place) {
        self.steps.copy(from, into);
    }

    fn reduce(&mut self, from: Place, into: Place) {
        self.steps.reduce(from, into);
    }

    fn end_round(&mut self) {
        self.steps.end_round();
    }
}

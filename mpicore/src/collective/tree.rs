//! Binomial trees of ranks: the parent and the children of each rank, for rooted collectives.
//!
//! A *position* is a rank counted from the root of the tree: the root has position 0, the rank after it 1, and so on in
//! a circle. A parent's position is that of its child without the lowest bit that is set. So the positions of a child
//! and of all ranks below it are consecutive.

use super::{Member, wrapped};

/// The neighbours of a rank in a tree.
pub(super) trait Kin {
    /// Returns the parent; the root has none.
    fn above(&self) -> Option<u32>;

    /// Iterates over the children. For the root of a tree whose root is rank 0, and for all ranks below it, all ranks
    /// below one child come before those below the next.
    fn below(&self) -> impl DoubleEndedIterator<Item = u32>;

    /// Returns the number of children.
    fn num_below(&self) -> usize;
}

/// A rank's view of the tree with a given root.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tree {
    position: u32,
    root: u32,
    size: u32,
}

/// A child with all ranks below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Branch {
    /// The position of the child, which is the lowest of its branch.
    pub position: u32,
    /// Number of ranks in the branch.
    pub ranks: u32,
}

/// Consecutive positions of a branch whose ranks are consecutive too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Run {
    /// The first position, counted from that of the branch.
    pub offset: u32,
    /// The rank at the first position.
    pub rank: u32,
    /// Number of ranks.
    pub ranks: u32,
}

impl Tree {
    pub(super) fn new(member: Member, root: u32) -> Self {
        let position = wrapped(u64::from(member.rank) + u64::from(member.size - root), member.size);
        Self { position, root, size: member.size }
    }

    /// Returns the rank at a position.
    pub(super) fn rank_at(&self, position: u32) -> u32 {
        wrapped(u64::from(position) + u64::from(self.root), self.size)
    }

    /// Returns the position of the parent; the root has none.
    pub(super) fn parent(&self) -> Option<u32> {
        (self.position > 0).then(|| self.position & (self.position - 1))
    }

    /// Returns the branch of this rank: itself and all ranks below it.
    pub(super) fn own(&self) -> Branch {
        let lowest_bit = self.position & self.position.wrapping_neg();
        let most = if lowest_bit == 0 { self.size } else { lowest_bit };
        Branch { position: self.position, ranks: most.min(self.size - self.position) }
    }

    /// Iterates over the children, the nearest first.
    pub(super) fn children(&self) -> impl DoubleEndedIterator<Item = Branch> + ExactSizeIterator {
        let ranks = self.own().ranks;
        let (bits, position) = (u32::BITS - (ranks - 1).leading_zeros(), self.position);
        (0..bits).map(move |bit| {
            let distance = 1 << bit;
            Branch { position: position + distance, ranks: distance.min(ranks - distance) }
        })
    }

    /// Iterates over the runs of a branch: one run, or two if the branch continues at rank 0.
    pub(super) fn runs(&self, branch: Branch) -> impl Iterator<Item = Run> {
        let rank = self.rank_at(branch.position);
        let before_end = branch.ranks.min(self.size - rank);
        let after = branch.ranks - before_end;
        let first = Run { offset: 0, rank, ranks: before_end };
        let rest = Run { offset: before_end, rank: 0, ranks: after };
        [Some(first), (after > 0).then_some(rest)].into_iter().flatten()
    }
}

impl Kin for Tree {
    #[inline]
    fn above(&self) -> Option<u32> {
        self.parent().map(|parent| self.rank_at(parent))
    }

    /// The nearest first.
    #[inline]
    fn below(&self) -> impl DoubleEndedIterator<Item = u32> {
        self.children().map(|child| self.rank_at(child.position))
    }

    #[inline]
    fn num_below(&self) -> usize {
        self.children().len()
    }
}

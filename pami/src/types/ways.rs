//! Ways to communicate, and associations of them with ranges of lengths. A context has one for messages, one for puts and
//! one for gets; the way is chosen when an operation begins, for posted work in the advance that runs it.

use std::fmt;

use transport_lapi::Ranges;

use crate::error::Error;

/// The ways to send a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// One packet carries header and data.
    Eager,
    /// The receiver fetches the data. Messages that do not fit into a packet go this way always.
    Rendezvous,
}

/// The ways to access memory of other tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// The origin does, or the network, without the target's help. Memory in a shared area is always accessed so.
    Direct,
    /// The target does, when it makes progress. Memory that the adapter cannot access is always accessed so.
    Messages,
}

/// What an association associates with lengths: [`Protocol`] or [`Access`].
pub trait Way: Copy + PartialEq + fmt::Debug + 'static {
    /// All of them.
    const ALL: [Self; 2];
    /// What is associated if nothing else is said.
    const INITIAL: Ranges<Self>;
}

impl Way for Protocol {
    const ALL: [Self; 2] = [Self::Eager, Self::Rendezvous];
    const INITIAL: Ranges<Self> =
        Ranges::fixed(&[(16 << 10, Self::Eager), (u64::MAX, Self::Rendezvous)]);
}

impl Way for Access {
    const ALL: [Self; 2] = [Self::Direct, Self::Messages];
    const INITIAL: Ranges<Self> = Ranges::fixed(&[(u64::MAX, Self::Direct)]);
}

/// Ways to communicate, one for each range of lengths, and how often each was taken.
#[derive(Debug)]
pub struct Association<W: Way> {
    ranges: Ranges<W>,
    /// In the order of [`Way::ALL`].
    taken: [u64; 2],
}

impl<W: Way> Default for Association<W> {
    fn default() -> Self {
        Self { ranges: W::INITIAL, taken: [0; 2] }
    }
}

impl<W: Way> Association<W> {
    /// Replaces the ranges, for operations that begin later. Lengths are those of the data, in bytes. Those above the last
    /// range are an error, which `u64::MAX` as the last bound avoids.
    pub fn set(&mut self, ranges: Ranges<W>) {
        self.ranges = ranges;
    }

    /// Returns the ranges.
    pub fn ranges(&self) -> &Ranges<W> {
        &self.ranges
    }

    /// Returns how many operations of this context have gone this way, whatever was chosen for them.
    pub fn taken(&self, way: W) -> u64 {
        self.taken[usize::from(way != W::ALL[0])]
    }

    #[inline]
    pub(crate) fn take(&mut self, way: W) {
        self.taken[usize::from(way != W::ALL[0])] += 1;
    }

    #[inline]
    pub(crate) fn choose(&self, len: u64) -> Result<W, Error> {
        choose(&self.ranges, len).copied()
    }

    /// What [`Association::taken`] says of each way, unless it says 0.
    pub(crate) fn counts(&self, what: &str) -> impl Iterator<Item = (String, u64)> {
        let name = |way: W| format!("{what} by {}", format!("{way:?}").to_lowercase());
        let counts = W::ALL.map(|way| (name(way), self.taken(way)));
        counts.into_iter().filter(|(_, times)| *times > 0)
    }
}

/// Returns what is associated with a length.
#[inline]
pub(crate) fn choose<C: Clone>(ranges: &Ranges<C>, len: u64) -> Result<&C, Error> {
    let last = || ranges.rows().last().map_or(0, |(bound, _)| *bound);
    ranges.choose(len).ok_or_else(|| Error::NoRange { len, last: last() })
}

//! Associations of ways to communicate with ranges of lengths. A context has one for messages, one for puts and one for
//! gets; the way is chosen when an operation begins, for posted work in the advance that runs it.

use std::fmt;

use transport_lapi::{Ranges, RemoteRegion};

use crate::context::Section;
use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::packet::Protocol;
use crate::state::State;

/// Ways to communicate, one for each range of lengths, and how often each was taken.
#[derive(Debug)]
pub struct Association<W: Clone + 'static> {
    ranges: Ranges<W>,
    /// By the number of the way.
    taken: [u64; 2],
}

/// How messages are sent if nothing else is said: up to 16 KiB eagerly.
pub(crate) const PROTOCOLS: Ranges<Protocol> =
    Ranges::fixed(&[(16 << 10, Protocol::Eager), (u64::MAX, Protocol::Rendezvous)]);

/// How memory is accessed if nothing else is said.
const DIRECT: Ranges<Access> = Ranges::fixed(&[(u64::MAX, Access::Direct)]);

impl Default for Association<Protocol> {
    fn default() -> Self {
        Self { ranges: PROTOCOLS, taken: [0; 2] }
    }
}

impl Default for Association<Access> {
    fn default() -> Self {
        Self { ranges: DIRECT, taken: [0; 2] }
    }
}

impl<W: Copy + Into<usize> + fmt::Debug> Association<W> {
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
        self.taken[way.into()]
    }

    #[inline]
    pub(crate) fn choose(&self, len: u64) -> Result<W, Error> {
        let last = || self.ranges.rows().last().map_or(0, |(bound, _)| *bound);
        self.ranges.choose(len).copied().ok_or_else(|| Error::NoRange { len, last: last() })
    }

    /// What [`Association::taken`] says of each way, unless it says 0.
    pub(crate) fn counts(&self, what: &str, ways: [W; 2]) -> impl Iterator<Item = (String, u64)> {
        let name = |way: W| format!("{what} by {}", format!("{way:?}").to_lowercase());
        let count = |way: W| (name(way), self.taken(way));
        ways.map(count).into_iter().filter(|(_, times)| *times > 0)
    }

    #[inline]
    pub(crate) fn take(&mut self, way: W) {
        self.taken[way.into()] += 1;
    }
}

/// The ways to access memory of other tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// The origin does, or the network, without the target's help. Memory in a shared area is always accessed so.
    Direct,
    /// The target does, when it makes progress. Memory that the adapter cannot access is always accessed so.
    Messages,
}

impl From<Access> for usize {
    fn from(access: Access) -> Self {
        access as Self
    }
}

impl From<Protocol> for usize {
    fn from(protocol: Protocol) -> Self {
        protocol as Self
    }
}

impl Section<'_> {
    /// Returns the association of ways to send with lengths of messages.
    pub fn send_association(&mut self) -> &mut Association<Protocol> {
        &mut self.session.state.sends
    }

    /// Returns the association of accesses with lengths of puts.
    pub fn put_association(&mut self) -> &mut Association<Access> {
        &mut self.session.state.puts
    }

    /// Returns the association of accesses with lengths of gets.
    pub fn get_association(&mut self) -> &mut Association<Access> {
        &mut self.session.state.gets
    }

    /// Chooses how a put or a get of so many bytes accesses memory, and returns the description of the memory for that.
    /// Only the target stores and packs blocks of memory of its own.
    pub(crate) fn access(
        &mut self,
        operation: OneSided,
        dest: Endpoint,
        region: RemoteRegion,
        (len, is_typed): (usize, bool),
    ) -> Result<RemoteRegion, Error> {
        let [can_get, can_put] = self.session.accesses(dest.task(), &region);
        let State { puts, gets, .. } = &mut self.session.state;
        let (association, is_possible) = match operation {
            OneSided::Put => (puts, can_put && !is_typed),
            OneSided::Get => (gets, can_get && !is_typed),
        };
        let is_direct =
            region.is_in_area() || association.choose(len as u64)? == Access::Direct && is_possible;
        association.take(if is_direct { Access::Direct } else { Access::Messages });
        Ok(if is_direct { region } else { region.over_messages() })
    }
}

/// An operation for which an access is chosen.
#[derive(Clone, Copy)]
pub(crate) enum OneSided {
    Put,
    Get,
}

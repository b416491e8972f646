//! Which protocol carries a message: a table of size ranges, as PAMI selects algorithms.
//!
//! The table has ascending upper bounds; the range of a message is the number of bounds that are
//! smaller than its size (the bound itself belongs to its range). The last range has no bound.

use transport_lapi::config::BackendChoice;

/// The two ways of carrying a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// One Amsend carries envelope and data.
    Eager,
    /// Amsend carries the envelope, the receiver fetches the data with Get.
    Rendezvous,
}

/// Messages up to this many bytes go eagerly by default: the copying pipeline keeps both processors
/// busy and beats the one-copy Get on ordinary pages; above it, the early memory that a message
/// without a posted receive would take is no longer reasonable.
const EAGER_UP_TO: usize = 16 << 20;

/// Protocols by message size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    bounds: Vec<usize>,
    protocols: Vec<Protocol>,
}

/// Why a table was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TableError {
    /// There must be one protocol more than there are bounds.
    #[error("{bounds} bounds need {} protocols, not {protocols}", .bounds + 1)]
    Count {
        /// How many bounds there are.
        bounds: usize,
        /// How many protocols there are.
        protocols: usize,
    },
    /// The bounds must be strictly ascending.
    #[error("bound {index} is not larger than the one before it")]
    Order {
        /// The place of the bound that is not.
        index: usize,
    },
}

impl Table {
    /// A table of `bounds` (bytes, inclusive) and one protocol more.
    ///
    /// # Errors
    /// [`TableError`] if the counts do not fit or the bounds are not strictly ascending.
    ///
    /// ```
    /// use mpjdev::{Protocol::*, Table};
    /// let table = Table::new(vec![100], vec![Eager, Rendezvous])?;
    /// assert_eq!((table.protocol(100), table.protocol(101)), (Eager, Rendezvous));
    /// # Ok::<(), mpjdev::TableError>(())
    /// ```
    pub fn new(bounds: Vec<usize>, protocols: Vec<Protocol>) -> Result<Self, TableError> {
        if protocols.len() != bounds.len() + 1 {
            let (bounds, protocols) = (bounds.len(), protocols.len());
            return Err(TableError::Count { bounds, protocols });
        }
        if let Some(index) = (1..bounds.len()).find(|&i| bounds[i - 1] >= bounds[i]) {
            return Err(TableError::Order { index });
        }
        Ok(Self { bounds, protocols })
    }

    /// The table of a backend choice.
    pub fn of(choice: BackendChoice) -> Self {
        let (bounds, protocols) = match choice {
            BackendChoice::Eager => (vec![], vec![Protocol::Eager]),
            BackendChoice::Rendezvous => (vec![], vec![Protocol::Rendezvous]),
            BackendChoice::Auto => (vec![EAGER_UP_TO], vec![Protocol::Eager, Protocol::Rendezvous]),
        };
        Self { bounds, protocols }
    }

    /// The protocol for a message of `len` bytes.
    #[inline]
    pub fn protocol(&self, len: usize) -> Protocol {
        let range: usize = self.bounds.iter().map(|&bound| usize::from(len > bound)).sum();
        self.protocols[range]
    }

    /// The length below which every message goes eagerly; 0 if the shortest ones do not.
    pub fn eager_below(&self) -> usize {
        let rendezvous = self.ranges().position(|(_, protocol)| protocol == Protocol::Rendezvous);
        match rendezvous {
            Some(0) => 0,
            Some(range) => self.bounds[range - 1].saturating_add(1),
            None => usize::MAX,
        }
    }

    /// The ranges: upper bound (`None` for the last) and protocol.
    pub fn ranges(&self) -> impl Iterator<Item = (Option<usize>, Protocol)> {
        let bounds = self.bounds.iter().copied().map(Some).chain([None]);
        bounds.zip(self.protocols.iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Protocol::{Eager, Rendezvous};

    /// The worked examples of the selection rule: ranges up to 100, 1000 and 10000.
    #[test]
    fn bounds_are_inclusive() {
        let protocols = vec![Eager, Rendezvous, Eager, Rendezvous];
        let table = Table::new(vec![100, 1000, 10000], protocols).unwrap();
        for (len, expected) in [
            (0, Eager),
            (1, Eager),
            (50, Eager),
            (100, Eager),
            (101, Rendezvous),
            (500, Rendezvous),
            (1000, Rendezvous),
            (1001, Eager),
            (5000, Eager),
            (10000, Eager),
            (10001, Rendezvous),
            (usize::MAX, Rendezvous),
        ] {
            assert_eq!(table.protocol(len), expected, "{len} bytes");
        }
    }

    #[test]
    fn short_messages_know_that_they_are_eager() {
        let table = |bounds, protocols| Table::new(bounds, protocols).unwrap().eager_below();
        assert_eq!(table(vec![10, 20], vec![Eager, Eager, Rendezvous]), 21);
        assert_eq!(table(vec![10, 20], vec![Eager, Rendezvous, Eager]), 11);
        assert_eq!(table(vec![10], vec![Rendezvous, Eager]), 0);
        assert_eq!(table(vec![], vec![Eager]), usize::MAX);
    }

    #[test]
    fn bad_tables_are_refused() {
        let count = Table::new(vec![1], vec![Eager]);
        assert_eq!(count, Err(TableError::Count { bounds: 1, protocols: 1 }));
        let order = Table::new(vec![5, 5], vec![Eager; 3]);
        assert_eq!(order, Err(TableError::Order { index: 1 }));
    }

    #[test]
    fn a_forced_backend_has_one_range() {
        let table = Table::of(BackendChoice::Rendezvous);
        assert_eq!(table.ranges().collect::<Vec<_>>(), [(None, Rendezvous)]);
    }
}

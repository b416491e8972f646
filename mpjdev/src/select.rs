//! Which protocol carries a message: a table of size ranges, as PAMI selects algorithms.
//!
//! The table has ascending upper bounds; the range of a message is the number of bounds that are
//! smaller than its size (the bound itself belongs to its range). The last range has no bound.

use transport_lapi::config::{BackendChoice, Protocol, Ranges, RangesError, Tuning};

/// Protocols by message size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table(Ranges<Protocol>);

impl Table {
    /// A table of `bounds` (bytes, inclusive) and one protocol more.
    ///
    /// # Errors
    /// [`RangesError`] if the counts do not fit or the bounds are not strictly ascending.
    ///
    /// ```
    /// use mpjdev::{Protocol::*, Table};
    /// let table = Table::new(vec![100], vec![Eager, Rendezvous])?;
    /// assert_eq!((table.protocol(100), table.protocol(101)), (Eager, Rendezvous));
    /// # Ok::<(), mpjdev::RangesError>(())
    /// ```
    pub fn new(bounds: Vec<usize>, protocols: Vec<Protocol>) -> Result<Self, RangesError> {
        Ranges::new(bounds, protocols).map(Self)
    }

    /// The table of a backend choice; where it is by size, that of the tuning.
    pub fn of(choice: BackendChoice, tuning: &Tuning) -> Self {
        Self(match choice {
            BackendChoice::Eager => Ranges::all(Protocol::Eager),
            BackendChoice::Rendezvous => Ranges::all(Protocol::Rendezvous),
            BackendChoice::Auto => tuning.protocols().clone(),
        })
    }

    /// The protocol for a message of `len` bytes.
    #[inline]
    pub fn protocol(&self, len: usize) -> Protocol {
        self.0.of(len)
    }

    /// The ranges: upper bound (`None` for the last) and protocol.
    pub fn ranges(&self) -> impl Iterator<Item = (Option<usize>, Protocol)> {
        self.0.iter()
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
    fn bad_tables_are_refused() {
        let count = Table::new(vec![1], vec![Eager]);
        assert_eq!(count, Err(RangesError::Count { bounds: 1, values: 1 }));
        let order = Table::new(vec![5, 5], vec![Eager; 3]);
        assert_eq!(order, Err(RangesError::Order { bound: 5, before: 5 }));
    }

    #[test]
    fn by_size_means_as_tuned() {
        let tuning: Tuning = "rendezvous<=512,eager;4096;4096;20".parse().unwrap();
        let table = Table::of(BackendChoice::Auto, &tuning);
        assert_eq!((table.protocol(512), table.protocol(513)), (Rendezvous, Eager));
        assert_eq!(Table::of(BackendChoice::Eager, &tuning).protocol(512), Eager);
    }

    #[test]
    fn a_forced_backend_has_one_range() {
        let table = Table::of(BackendChoice::Rendezvous, &Tuning::default());
        assert_eq!(table.ranges().collect::<Vec<_>>(), [(None, Rendezvous)]);
    }
}

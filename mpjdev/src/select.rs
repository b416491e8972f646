//! The table that chooses the protocol of a message by its size, as PAMI selects algorithms.
//!
//! The table has ascending upper bounds. The range of a message is the number of bounds that are smaller than its size,
//! so a bound itself belongs to the range below it. The last range has no bound. In addition, a table has exceptions:
//! circumstances under which messages go by rendezvous from a certain length on.

use transport_lapi::config::{Circumstance, Protocol, Ranges, RangesError, Settings};

/// A table of protocols by message size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    ranges: Ranges<Protocol>,
    /// Messages of at least this many bytes go by rendezvous under the circumstance, whatever the ranges say.
    exceptions: Vec<(usize, Circumstance)>,
}

impl Table {
    /// Makes a table from `bounds` (bytes, inclusive) and protocols, of which there is one more than bounds.
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
        Ranges::new(bounds, protocols).map(Self::from)
    }

    /// Adds an exception: messages of at least `bytes` bytes (at least 1) go by rendezvous under a circumstance.
    ///
    /// ```
    /// use mpjdev::{Circumstance::HugePages, Protocol::Eager, Table};
    /// let table = Table::new(vec![], vec![Eager])?.with_rendezvous_from(100_000, HugePages);
    /// assert_eq!(table.protocol(200_000), Eager);
    /// assert_eq!(table.exceptions(), [(100_000, HugePages)]);
    /// # Ok::<(), mpjdev::RangesError>(())
    /// ```
    pub fn with_rendezvous_from(mut self, bytes: usize, circumstance: Circumstance) -> Self {
        self.exceptions.push((bytes.max(1), circumstance));
        self
    }

    /// Makes the table that settings describe. If they force a backend or the longest eager message, it has no
    /// exceptions.
    pub fn of(settings: &Settings) -> Self {
        Self { ranges: settings.protocols(), exceptions: settings.exceptions().into() }
    }

    /// Returns the exceptions: a number of bytes from which on messages go by rendezvous under a circumstance, whatever
    /// the ranges say.
    pub fn exceptions(&self) -> &[(usize, Circumstance)] {
        &self.exceptions
    }

    /// Returns the protocol for a message of `len` bytes; `holds` returns whether a circumstance holds.
    pub(crate) fn choose(
        &self,
        len: usize,
        mut holds: impl FnMut(Circumstance) -> bool,
    ) -> Protocol {
        let mut exceptions = self.exceptions.iter();
        let protocol = self.protocol(len);
        let is_exception = protocol == Protocol::Eager
            && exceptions.any(|&(from, circumstance)| len >= from && holds(circumstance));
        if is_exception { Protocol::Rendezvous } else { protocol }
    }

    /// Returns the protocol for a message of `len` bytes, by the ranges.
    #[inline]
    pub fn protocol(&self, len: usize) -> Protocol {
        self.ranges.of(len)
    }

    /// Iterates over the ranges: upper bound (`None` for the last) and protocol.
    pub fn ranges(&self) -> impl Iterator<Item = (Option<usize>, Protocol)> {
        self.ranges.iter()
    }

    /// Returns the length below which every message goes eagerly under all circumstances, or 0 if there is none.
    pub fn eager_below(&self) -> usize {
        let rendezvous = self.ranges().position(|(_, protocol)| protocol == Protocol::Rendezvous);
        let below = match rendezvous {
            Some(0) => 0,
            Some(range) => self.ranges.bounds()[range - 1].saturating_add(1),
            None => usize::MAX,
        };
        self.exceptions.iter().map(|(from, _)| *from).fold(below, usize::min)
    }
}

impl From<Ranges<Protocol>> for Table {
    fn from(ranges: Ranges<Protocol>) -> Self {
        Self { ranges, exceptions: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Circumstance::{Cheaper, HugePages};
    use Protocol::{Eager, Rendezvous};
    use transport_lapi::config::BackendChoice;

    /// Worked examples of the selection rule: ranges up to 100, 1000 and 10000.
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
    fn what_is_forced_depends_on_no_circumstance() {
        let never = |_| unreachable!("it is forced");
        let settings = Settings { eager_up_to: Some(1 << 20), ..Settings::default() };
        let table = Table::of(&settings);
        assert_eq!(table.choose(1 << 20, never), Eager);
        assert_eq!(table.choose((1 << 20) + 1, never), Rendezvous);
        assert_eq!(table.eager_below(), (1 << 20) + 1);
        let eager = Table::of(&Settings { backend: BackendChoice::Eager, ..settings });
        assert_eq!(eager.choose(1 << 40, never), Eager);
    }

    #[test]
    fn short_messages_know_that_they_are_eager() {
        let table = |bounds, protocols| Table::new(bounds, protocols).unwrap().eager_below();
        assert_eq!(table(vec![10, 20], vec![Eager, Eager, Rendezvous]), 21);
        assert_eq!(table(vec![10, 20], vec![Eager, Rendezvous, Eager]), 11);
        assert_eq!(table(vec![10], vec![Rendezvous, Eager]), 0);
        assert_eq!(table(vec![], vec![Eager]), usize::MAX);
        let huge = Table::new(vec![10], vec![Eager, Rendezvous]).unwrap();
        let huge = huge.with_rendezvous_from(9, Cheaper).with_rendezvous_from(7, HugePages);
        assert_eq!(huge.eager_below(), 7);
    }

    #[test]
    fn circumstances_matter_from_their_length_on() {
        for (bounds, protocols) in [
            (vec![], vec![Eager]),
            (vec![50], vec![Eager, Eager]),
            (vec![1000], vec![Eager, Rendezvous]),
        ] {
            let ordinary = Table::new(bounds, protocols).unwrap();
            let table = ordinary.clone().with_rendezvous_from(100, Cheaper);
            for len in [0, 1, 50, 51, 99, 100, 101, 1000, 1001, usize::MAX] {
                let expected = if len >= 100 { Rendezvous } else { Eager };
                assert_eq!(table.choose(len, |it| it == Cheaper), expected, "{len} bytes, alone");
                assert_eq!(table.choose(len, |_| false), ordinary.protocol(len), "{len}");
            }
        }
    }

    #[test]
    fn nobody_looks_at_circumstances_of_short_messages() {
        let table = Table::of(&Settings::default());
        let below = table.eager_below();
        assert_eq!(table.choose(below - 1, |_| unreachable!("it is short")), Eager);
        assert_eq!(table.choose(below, |_| true), Rendezvous);
    }
}

//! The algorithms of collectives: their names, what programs may know of them, and the choice by size.

use std::fmt;
use std::ops::RangeInclusive;

/// A type of collectives (pami_xfer_type_t), the active-message collectives last. PAMI's types whose names end with `_INT`
/// are those without it here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "the names are PAMI's")]
pub enum Xfer {
    Broadcast,
    Allreduce,
    Reduce,
    Allgather,
    Allgatherv,
    Scatter,
    Scatterv,
    Gather,
    Gatherv,
    Barrier,
    Alltoall,
    Alltoallv,
    Scan,
    ReduceScatter,
    Ambroadcast,
    Amscatter,
    Amgather,
    Amreduce,
}

/// What is true of an algorithm (the bits of pami_metadata_t). All algorithms take every type and operation, at any
/// alignment, in place too, and may run beside others; those bits of PAMI are left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Property {
    /// [`Geometry::check`](crate::Geometry::check) is to be asked before each use.
    CheckRequired,
    /// A member may end while others have not begun, so a fast one may fill the memory of a slow one: a barrier now and
    /// then prevents that.
    Asyncflowctl,
    /// No member ends before all have begun.
    GlobalOrder,
}

/// What a program may know of an algorithm (pami_metadata_t).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Metadata {
    /// Its name, by which [`Algorithm::named`] finds it.
    pub name: &'static str,
    /// Its version.
    pub version: u32,
    /// The sizes in bytes for which it works.
    pub range: RangeInclusive<u64>,
    /// The sizes for which it is good, as far as nothing was measured. See [`Collective::size`](crate::Collective::size).
    pub range_perf: RangeInclusive<u64>,
    /// The alignment in bytes that buffers need.
    pub min_align: usize,
    /// What is true of it.
    pub properties: &'static [Property],
}

/// Why an algorithm cannot carry out a collective: the result of a metadata check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// It is an algorithm of another type of collectives.
    #[error("it is an algorithm of {0:?}")]
    Type(Xfer),
    /// There are too few elements to divide (`range`).
    #[error("{elements} elements cannot be divided among {members} members")]
    Range {
        /// Elements of the collective.
        elements: u64,
        /// Members of the geometry.
        members: usize,
    },
    /// The members are on one host (`unspecified`).
    #[error("all members are on one host")]
    OneHost,
    /// The number of members is not a power of two (`unspecified`).
    #[error("{0} members are not a power of two")]
    Members(usize),
}

/// A name that no algorithm has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no algorithm {name:?} of {xfer:?}; use one of: {names}")]
pub struct NoAlgorithm {
    xfer: Xfer,
    name: String,
    names: String,
}

/// What an algorithm needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    Nothing,
    /// Members on several hosts.
    Hosts,
    /// An element for each member.
    Share,
    /// A number of members that is a power of two.
    PowerOfTwo,
}

/// An algorithm of a type of collectives (pami_algorithm_t).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Algorithm(u8);

type Row = (Xfer, &'static str, Need, RangeInclusive<u64>);

const ANY: RangeInclusive<u64> = 0..=u64::MAX;
/// Blocks up to this size travel with those of others: above, passing them on takes longer than more messages.
const SHORT: u64 = 1 << 10;
/// Data above this size are divided, and blocks go around rings: above, the data take longer than the messages.
const LONG: u64 = 64 << 10;

/// All algorithms. The first one of a type always works.
const TABLE: [Row; 31] = [
    (Xfer::Broadcast, "binomial", Need::Nothing, 0..=LONG),
    (Xfer::Broadcast, "hosts", Need::Hosts, ANY),
    (Xfer::Broadcast, "scatter_allgather", Need::Share, LONG + 1..=u64::MAX),
    (Xfer::Allreduce, "doubling", Need::Nothing, 0..=LONG),
    (Xfer::Allreduce, "hosts", Need::Hosts, 0..=LONG),
    (Xfer::Allreduce, "halving", Need::Share, LONG + 1..=u64::MAX),
    (Xfer::Reduce, "binomial", Need::Nothing, ANY),
    (Xfer::Reduce, "hosts", Need::Hosts, ANY),
    (Xfer::Allgather, "ring", Need::Nothing, ANY),
    (Xfer::Allgather, "hosts", Need::Hosts, 0..=LONG),
    (Xfer::Allgather, "doubling", Need::PowerOfTwo, ANY),
    (Xfer::Allgatherv, "ring", Need::Nothing, ANY),
    (Xfer::Scatter, "direct", Need::Nothing, SHORT + 1..=u64::MAX),
    (Xfer::Scatter, "binomial", Need::Nothing, 0..=SHORT),
    (Xfer::Scatter, "hosts", Need::Hosts, 0..=SHORT),
    (Xfer::Scatterv, "direct", Need::Nothing, ANY),
    (Xfer::Gather, "direct", Need::Nothing, SHORT + 1..=u64::MAX),
    (Xfer::Gather, "binomial", Need::Nothing, 0..=SHORT),
    (Xfer::Gather, "hosts", Need::Hosts, 0..=SHORT),
    (Xfer::Gatherv, "direct", Need::Nothing, ANY),
    (Xfer::Barrier, "signals", Need::Nothing, ANY),
    (Xfer::Barrier, "hosts", Need::Hosts, ANY),
    (Xfer::Alltoall, "pairs", Need::Nothing, ANY),
    (Xfer::Alltoallv, "pairs", Need::Nothing, ANY),
    (Xfer::Scan, "doubling", Need::Nothing, ANY),
    (Xfer::ReduceScatter, "pairs", Need::Nothing, ANY),
    (Xfer::Ambroadcast, "direct", Need::Nothing, 0..=SHORT),
    (Xfer::Ambroadcast, "binomial", Need::Nothing, SHORT + 1..=u64::MAX),
    (Xfer::Amscatter, "direct", Need::Nothing, ANY),
    (Xfer::Amgather, "direct", Need::Nothing, ANY),
    (Xfer::Amreduce, "direct", Need::Nothing, ANY),
];

impl Algorithm {
    fn row(self) -> &'static Row {
        &TABLE[usize::from(self.0)]
    }

    /// Returns the algorithm with a name: to force its use, give it to [`CollectiveCall`](crate::CollectiveCall).
    ///
    /// # Errors
    /// [`NoAlgorithm`], which lists the names.
    ///
    /// ```
    /// use pami::{Algorithm, Property, Xfer};
    /// let halving = Algorithm::named(Xfer::Allreduce, "halving")?;
    /// assert!(halving.metadata().properties.contains(&Property::CheckRequired));
    /// let error = Algorithm::named(Xfer::Scan, "halving").expect_err("none of Scan");
    /// assert_eq!(error.to_string(), "there is no algorithm \"halving\" of Scan; use one of: doubling");
    /// # Ok::<(), pami::NoAlgorithm>(())
    /// ```
    pub fn named(xfer: Xfer, name: &str) -> Result<Self, NoAlgorithm> {
        Self::all(xfer).find(|algorithm| algorithm.row().1 == name).ok_or_else(|| {
            let names: Vec<_> = Self::all(xfer).map(|algorithm| algorithm.row().1).collect();
            NoAlgorithm { xfer, name: name.to_owned(), names: names.join(", ") }
        })
    }

    /// Iterates over the algorithms of a type, the one that always works first.
    pub(crate) fn all(xfer: Xfer) -> impl DoubleEndedIterator<Item = Self> {
        (0..TABLE.len() as u8).map(Self).filter(move |one| one.row().0 == xfer)
    }

    /// Returns the type of its collectives.
    pub fn xfer(self) -> Xfer {
        self.row().0
    }

    pub(crate) fn need(self) -> Need {
        self.row().2
    }

    /// Returns what a program may know of it.
    pub fn metadata(self) -> Metadata {
        use Property::{Asyncflowctl, CheckRequired, GlobalOrder};
        let &(xfer, name, need, ref range_perf) = self.row();
        let properties: &[_] = match (xfer, need) {
            (Xfer::Barrier | Xfer::Allreduce, Need::Nothing) => &[GlobalOrder],
            (Xfer::Barrier | Xfer::Allreduce, _) => &[CheckRequired, GlobalOrder],
            (Xfer::Allgather | Xfer::Alltoall, Need::Nothing) => &[GlobalOrder],
            (Xfer::Allgather, _) => &[CheckRequired, GlobalOrder],
            (_, Need::Nothing) => &[Asyncflowctl],
            (..) => &[CheckRequired, Asyncflowctl],
        };
        let (version, range_perf) = (1, range_perf.clone());
        Metadata { name, version, range: 0..=i64::MAX as u64, range_perf, min_align: 1, properties }
    }

    /// How packets name it.
    pub(crate) fn code(self) -> u8 {
        self.0
    }

    /// The algorithm that a packet claims.
    pub(crate) fn from_code(code: u8) -> Option<Self> {
        (usize::from(code) < TABLE.len()).then_some(Self(code))
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (xfer, name, ..) = self.row();
        write!(formatter, "{xfer:?} by {name}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_type_has_an_algorithm_that_always_works_first() {
        let mut types: Vec<_> = TABLE.iter().map(|row| row.0).collect();
        types.dedup();
        assert_eq!(types.len(), 18, "rows of a type stand together");
        for xfer in types {
            assert!(Algorithm::all(xfer).next().is_some_and(|one| one.need() == Need::Nothing));
        }
    }
}

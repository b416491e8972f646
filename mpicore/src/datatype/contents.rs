//! The constructor of a datatype and its arguments, as `MPI_Type_get_envelope` and `MPI_Type_get_contents` return them
//! (MPI-4.1 section 5.1.13).

use super::{Datatype, Distribution, Order};

/// The constructor that made a datatype: MPI's combiners.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Combiner {
    /// No constructor: the datatype is predefined.
    Named,
    /// [`Datatype::dup`].
    Dup,
    /// [`Datatype::contiguous`].
    Contiguous,
    /// [`Datatype::vector`].
    Vector,
    /// [`Datatype::hvector`].
    Hvector,
    /// [`Datatype::indexed`].
    Indexed,
    /// [`Datatype::hindexed`].
    Hindexed,
    /// [`Datatype::indexed_block`].
    IndexedBlock,
    /// [`Datatype::hindexed_block`].
    HindexedBlock,
    /// [`Datatype::create_struct`].
    Struct,
    /// [`Datatype::subarray`].
    Subarray,
    /// [`Datatype::darray`].
    Darray,
    /// [`Datatype::resized`].
    Resized,
    /// [`Datatype::f90_real`].
    F90Real,
    /// [`Datatype::f90_complex`].
    F90Complex,
    /// [`Datatype::f90_integer`].
    F90Integer,
}

impl Combiner {
    /// Returns the name in MPI.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Named => "MPI_COMBINER_NAMED",
            Self::Dup => "MPI_COMBINER_DUP",
            Self::Contiguous => "MPI_COMBINER_CONTIGUOUS",
            Self::Vector => "MPI_COMBINER_VECTOR",
            Self::Hvector => "MPI_COMBINER_HVECTOR",
            Self::Indexed => "MPI_COMBINER_INDEXED",
            Self::Hindexed => "MPI_COMBINER_HINDEXED",
            Self::IndexedBlock => "MPI_COMBINER_INDEXED_BLOCK",
            Self::HindexedBlock => "MPI_COMBINER_HINDEXED_BLOCK",
            Self::Struct => "MPI_COMBINER_STRUCT",
            Self::Subarray => "MPI_COMBINER_SUBARRAY",
            Self::Darray => "MPI_COMBINER_DARRAY",
            Self::Resized => "MPI_COMBINER_RESIZED",
            Self::F90Real => "MPI_COMBINER_F90_REAL",
            Self::F90Complex => "MPI_COMBINER_F90_COMPLEX",
            Self::F90Integer => "MPI_COMBINER_F90_INTEGER",
        }
    }
}

/// The number of arguments of each sort that the constructor was given: the result of `MPI_Type_get_envelope`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Envelope {
    /// The constructor.
    pub combiner: Combiner,
    /// Number of integers in [`Contents`].
    pub integers: usize,
    /// Number of addresses.
    pub addresses: usize,
    /// Number of large counts.
    pub counts: usize,
    /// Number of datatypes.
    pub datatypes: usize,
}

/// The arguments that the constructor was given, in the order of MPI-4.1 section 5.1.13: the result of
/// `MPI_Type_get_contents`.
#[derive(Debug, Clone, Default)]
pub struct Contents {
    /// Counts, lengths and strides in elements; orders and distributions by their numbers in MPI's ABI.
    pub integers: Vec<i64>,
    /// Displacements, strides and bounds in bytes.
    pub addresses: Vec<isize>,
    /// The contents of both lists above, if the constructor is the one for large counts (its name ends in `_c`).
    pub counts: Vec<i64>,
    /// The datatypes that this one consists of.
    pub datatypes: Vec<Datatype>,
}

/// The arguments of each constructor, as given.
#[derive(Debug)]
pub(super) enum Arguments {
    Named {
        name: &'static str,
    },
    Dup {
        old: Datatype,
    },
    /// A predefined type that was chosen by these numbers.
    Selected {
        combiner: Combiner,
        numbers: Vec<i64>,
    },
    /// Numbers, then numbers of bytes, for all constructors except those below.
    Plain {
        combiner: Combiner,
        numbers: Vec<i64>,
        bytes: Vec<isize>,
        old: Datatype,
    },
    Struct {
        lengths: Vec<i64>,
        displacements: Vec<isize>,
        types: Vec<Datatype>,
    },
    Subarray {
        lists: [Vec<i64>; 3],
        order: Order,
        old: Datatype,
    },
    Darray(Box<Darray>),
}

/// The arguments of [`Datatype::darray`].
#[derive(Debug)]
pub(super) struct Darray {
    pub(super) size: i64,
    pub(super) rank: i64,
    pub(super) sizes: Vec<i64>,
    pub(super) distributions: Vec<Distribution>,
    pub(super) grid: Vec<i64>,
    pub(super) order: Order,
    pub(super) old: Datatype,
}

impl Arguments {
    pub(super) fn combiner(&self) -> Combiner {
        match self {
            Self::Named { .. } => Combiner::Named,
            Self::Dup { .. } => Combiner::Dup,
            Self::Plain { combiner, .. } | Self::Selected { combiner, .. } => *combiner,
            Self::Struct { .. } => Combiner::Struct,
            Self::Subarray { .. } => Combiner::Subarray,
            Self::Darray(_) => Combiner::Darray,
        }
    }

    /// Returns the datatypes that this one consists of.
    pub(super) fn datatypes(&self) -> &[Datatype] {
        match self {
            Self::Named { .. } | Self::Selected { .. } => &[],
            Self::Dup { old } | Self::Plain { old, .. } | Self::Subarray { old, .. } => {
                std::slice::from_ref(old)
            }
            Self::Struct { types, .. } => types,
            Self::Darray(arguments) => std::slice::from_ref(&arguments.old),
        }
    }

    /// Returns the arguments in the form of the constructor, or of its variant for large counts.
    pub(super) fn contents(&self, is_large: bool) -> Contents {
        let datatypes = self.datatypes().to_vec();
        let (numbers, addresses, integers) = match self {
            Self::Named { .. } | Self::Dup { .. } => Default::default(),
            Self::Selected { numbers, .. } => {
                return Contents { integers: numbers.clone(), ..Contents::default() };
            }
            Self::Plain { numbers, bytes, .. } => (numbers.clone(), bytes.clone(), Vec::new()),
            Self::Struct { lengths, displacements, .. } => {
                let count = std::iter::once(lengths.len() as i64);
                (count.chain(lengths.iter().copied()).collect(), displacements.clone(), Vec::new())
            }
            Self::Subarray { lists, order, .. } => {
                return subarray(lists, *order, datatypes, is_large);
            }
            Self::Darray(arguments) => return arguments.contents(datatypes, is_large),
        };
        if is_large {
            let bytes = addresses.iter().map(|bytes| *bytes as i64);
            let counts = numbers.into_iter().chain(bytes).collect();
            return Contents { counts, integers, datatypes, ..Contents::default() };
        }
        Contents { integers: numbers, addresses, datatypes, ..Contents::default() }
    }
}

fn subarray(
    lists: &[Vec<i64>; 3],
    order: Order,
    datatypes: Vec<Datatype>,
    is_large: bool,
) -> Contents {
    let dimensions = [lists[0].len() as i64];
    let (order, lists) = ([order.code()], lists.concat());
    if is_large {
        let integers = [dimensions, order].concat();
        return Contents { integers, counts: lists, datatypes, ..Contents::default() };
    }
    let integers = [&dimensions[..], &lists, &order].concat();
    Contents { integers, datatypes, ..Contents::default() }
}

impl Darray {
    fn contents(&self, datatypes: Vec<Datatype>, is_large: bool) -> Contents {
        let codes = self.distributions.iter().map(|distribution| distribution.code()).collect();
        let arguments =
            self.distributions.iter().map(|distribution| distribution.argument()).collect();
        let first = vec![self.size, self.rank, self.sizes.len() as i64];
        let sizes = if is_large { Vec::new() } else { self.sizes.clone() };
        let order = vec![self.order.code()];
        let integers = [first, sizes, codes, arguments, self.grid.clone(), order].concat();
        let counts = if is_large { self.sizes.clone() } else { Vec::new() };
        Contents { integers, counts, datatypes, ..Contents::default() }
    }
}

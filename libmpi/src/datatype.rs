//! Datatypes (MPI-5.0 chapter 5): their handles.
//!
//! - `data.rs`: buffer, count and datatype of a message, and the memory that they mean.
//! - `predefined.rs`, `construct.rs`: the datatypes that MPI defines, and those that programs make.
//! - `query.rs`, `attribute.rs`: what they are, and what programs attach to them.
//! - `pack.rs`: packing and unpacking.

use std::ffi::{c_char, c_int, c_short};
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use mpicore::Attributes;
use mpicore::datatype::{Basic, Datatype};
use mpicore::op::ElementKind;

use crate::abi::*;
use crate::call::{Fault, Outcome, out};
use crate::handles::{Held, OBJECTS};

pub(crate) mod attribute;
mod construct;
mod data;
mod pack;
mod predefined;
mod query;

pub(crate) use data::{Data, Extent, check_given, is_in_place};
use predefined::{FIRST, NUMBER, basic};

/// A datatype that has a handle.
pub(crate) struct Derived {
    /// What it means.
    pub core: Datatype,
    /// Whether MPI_Type_commit was called.
    committed: AtomicBool,
    /// Whether it is one of MPI's own, with a constant as handle or without, which nobody frees.
    is_predefined: bool,
    /// The name that the program has set, in its encoding.
    name: Mutex<Option<Vec<u8>>>,
    attributes: Attributes<MPI_Datatype>,
}

impl Derived {
    fn new(core: Datatype) -> Self {
        Self {
            core,
            committed: AtomicBool::new(false),
            is_predefined: false,
            name: Mutex::new(None),
            attributes: Attributes::default(),
        }
    }

    fn predefined(core: Datatype) -> Self {
        Self { committed: AtomicBool::new(true), is_predefined: true, ..Self::new(core) }
    }

    /// Keeps a new datatype and returns its handle. It must be committed before communication.
    pub fn keep(core: Datatype) -> Outcome<MPI_Datatype> {
        Ok(MPI_Datatype(OBJECTS.insert(Box::new(Self::new(core)))?))
    }

    fn name(&self) -> MutexGuard<'_, Option<Vec<u8>>> {
        self.name.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A datatype that a call uses.
pub(crate) struct Found(Held<'static, Box<Derived>>);

impl Found {
    /// Returns what the C face knows about it.
    fn made(&self) -> &Derived {
        &self.0
    }
}

impl Deref for Found {
    type Target = Datatype;

    fn deref(&self) -> &Datatype {
        &self.0.core
    }
}

/// A number of the program: `int`, `MPI_Count` or `MPI_Aint`, which all fit into 64 bits.
pub(crate) trait Number: Copy + TryFrom<i64> + From<c_short> {
    /// Returns the number in 64 bits.
    fn wide(self) -> i64;

    /// Returns a number in this type; MPI_UNDEFINED if it does not fit.
    fn narrowed(wide: i64) -> Self {
        const UNDEFINED: c_short = MPI_UNDEFINED as c_short;
        Self::try_from(wide).unwrap_or_else(|_| Self::from(UNDEFINED))
    }
}

impl Number for c_int {
    fn wide(self) -> i64 {
        self.into()
    }
}

impl Number for i64 {
    fn wide(self) -> i64 {
        self
    }
}

impl Number for isize {
    fn wide(self) -> i64 {
        self as i64
    }
}

/// Reads a list of numbers.
pub(crate) unsafe fn wide(
    list: *const impl Number,
    count: i64,
    name: &'static str,
) -> Outcome<Vec<i64>> {
    // SAFETY: FC1.
    let list = unsafe { out::list(list, count, name) }?;
    Ok(list.iter().map(|number| number.wide()).collect())
}

/// The size of each predefined datatype whose elements have no padding, by the low bits of the handle; 0 for all others.
/// So a message of such elements needs no look at a datatype.
static DENSE: [u8; NUMBER] = {
    let mut sizes = [0; NUMBER];
    let mut low = 0;
    while low < NUMBER {
        if let Some(basic) = basic(MPI_Datatype(FIRST + low)) {
            let is_dense = match basic.kind() {
                Some(kind) => kind.size() == kind.extent(),
                None => true,
            };
            if is_dense {
                sizes[low] = basic.size() as u8;
            }
        }
        low += 1;
    }
    sizes
};

/// C's `char`, whose sign depends on the platform.
const CHAR: ElementKind = if c_char::MIN == 0 { ElementKind::U8 } else { ElementKind::I8 };

impl MPI_Datatype {
    /// Returns the kind of element that predefined operations work on. The standard has none for MPI_CHAR, but programs
    /// reduce C's `char` by it, as other libraries permit.
    pub fn kind(self) -> Option<ElementKind> {
        match self {
            MPI_CHAR => Some(CHAR),
            _ => basic(self).and_then(Basic::kind),
        }
    }

    /// Returns the size of a predefined datatype without padding.
    #[inline(always)]
    pub fn dense_size(self) -> Option<usize> {
        let size = *DENSE.get(self.0.wrapping_sub(FIRST))?;
        (size != 0).then_some(size as usize)
    }

    /// Finds the datatype.
    ///
    /// # Errors
    /// MPI_ERR_TYPE.
    pub fn find(self) -> Outcome<Found> {
        static MADE: [OnceLock<Box<Derived>>; NUMBER] = [const { OnceLock::new() }; NUMBER];
        let Some(place) = MADE.get(self.0.wrapping_sub(FIRST)) else {
            return match OBJECTS.hold(self.0) {
                Ok(held) => Ok(Found(held)),
                Err(fault) => Err(fault.about("datatype")),
            };
        };
        if let Some(made) = place.get() {
            return Ok(Found(Held::forever(made)));
        }
        match predefined::make(self) {
            Some(core) => {
                Ok(Found(Held::forever(place.get_or_init(|| Box::new(Derived::predefined(core))))))
            }
            None => Err(Fault::argument(MPI_ERR_TYPE, "datatype", "the handle names no datatype")),
        }
    }

    /// Finds the datatype for a call that moves data.
    ///
    /// # Errors
    /// MPI_ERR_TYPE, also if it was not committed.
    pub fn committed(self) -> Outcome<Found> {
        let found = self.find()?;
        if found.made().committed.load(Ordering::Relaxed) {
            return Ok(found);
        }
        let text = "the datatype was not committed; call MPI_Type_commit";
        Err(Fault::argument(MPI_ERR_TYPE, "datatype", text))
    }

    /// Returns the datatype of a buffer: of one without elements also for MPI_DATATYPE_NULL.
    pub fn of_elements(self, are_some: bool) -> Self {
        if self == MPI_DATATYPE_NULL && !are_some { MPI_BYTE } else { self }
    }
}

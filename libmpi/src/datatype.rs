//! Datatypes (MPI-4.1 chapter 5): their handles, and the memory that a buffer of elements means.

use std::ffi::{c_char, c_int, c_short, c_void};
use std::ops::Deref;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use mpicore::datatype::{Basic, Datatype};
use mpicore::op::ElementKind;
use mpicore::{Attributes, Elements, Input, Output};
use mpjdev::{RecvRegion, SendRegion, Sink, Source};

use crate::abi::*;
use crate::call::{Fault, Outcome, negative_count, out};
use crate::handles::{Held, OBJECTS};

pub(crate) mod attribute;
mod construct;
mod pack;
mod predefined;
mod query;

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
trait Number: Copy + TryFrom<i64> + From<c_short> {
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
unsafe fn wide(list: *const impl Number, count: i64, name: &'static str) -> Outcome<Vec<i64>> {
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

    /// Returns the data of `count` elements if they are of a predefined datatype without padding. This costs next to
    /// nothing; for other datatypes see [`MPI_Datatype::source`].
    ///
    /// # Safety
    /// FC1: the elements stay as they are until the operation has ended.
    ///
    /// # Errors
    /// MPI_ERR_COUNT, MPI_ERR_BUFFER.
    #[inline(always)]
    pub unsafe fn dense_source(
        self,
        buf: *const c_void,
        count: i64,
    ) -> Outcome<Option<SendRegion>> {
        let Some((at, len)) = self.dense(buf, count)? else { return Ok(None) };
        // SAFETY: the caller's promise.
        Ok(Some(unsafe { SendRegion::new(at, len) }))
    }

    /// Returns the place for `count` elements if they are of a predefined datatype without padding.
    ///
    /// # Safety
    /// FC1: nobody else uses the elements until the operation has ended.
    ///
    /// # Errors
    /// MPI_ERR_COUNT, MPI_ERR_BUFFER.
    #[inline(always)]
    pub unsafe fn dense_sink(self, buf: *mut c_void, count: i64) -> Outcome<Option<RecvRegion>> {
        let Some((at, len)) = self.dense(buf, count)? else { return Ok(None) };
        // SAFETY: the caller's promise.
        Ok(Some(unsafe { RecvRegion::new(at.cast_mut(), len) }))
    }

    /// Returns the data of `count` elements of any datatype.
    ///
    /// # Safety
    /// As [`MPI_Datatype::dense_source`].
    ///
    /// # Errors
    /// MPI_ERR_COUNT, MPI_ERR_TYPE, MPI_ERR_BUFFER.
    #[inline(never)]
    pub unsafe fn source(self, buf: *const c_void, count: i64) -> Outcome<Source> {
        // SAFETY: the caller's promise.
        if let Some(region) = unsafe { self.dense_source(buf, count) }? {
            return Ok(region.into());
        }
        let Extent { at, len, origin, datatype } = self.extent(buf, count)?;
        // SAFETY: as above.
        let memory = unsafe { SendRegion::new(at, len) };
        Ok(datatype.layout(count)?.to_send(memory, origin)?)
    }

    /// Returns the place for `count` elements of any datatype.
    ///
    /// # Safety
    /// As [`MPI_Datatype::dense_sink`].
    ///
    /// # Errors
    /// MPI_ERR_COUNT, MPI_ERR_TYPE, MPI_ERR_BUFFER.
    #[inline(never)]
    pub unsafe fn sink(self, buf: *mut c_void, count: i64) -> Outcome<Sink> {
        // SAFETY: the caller's promise.
        if let Some(region) = unsafe { self.dense_sink(buf, count) }? {
            return Ok(region.into());
        }
        let Extent { at, len, origin, datatype } = self.extent(buf, count)?;
        // SAFETY: as above.
        let memory = unsafe { RecvRegion::new(at.cast_mut(), len) };
        Ok(datatype.layout(count)?.to_receive(memory, origin)?)
    }

    /// Returns the data of `count` elements for a collective.
    ///
    /// # Safety
    /// As [`MPI_Datatype::source`].
    ///
    /// # Errors
    /// As there.
    pub unsafe fn input(self, buf: *const c_void, count: i64) -> Outcome<Input> {
        Ok(match self.dense(buf, count)? {
            Some((at, len)) => {
                // SAFETY: the caller's promise.
                let memory = unsafe { SendRegion::new(at, len) };
                Input::new(memory, 0, Elements::Plain { size: self.dense_size().unwrap_or(1) })
            }
            None => {
                let Extent { at, len, origin, datatype } = self.extent(buf, count)?;
                // SAFETY: as above.
                let memory = unsafe { SendRegion::new(at, len) };
                Input::new(memory, origin, Elements::Typed(Datatype::clone(&datatype)))
            }
        })
    }

    /// Returns the place for `count` elements of a collective.
    ///
    /// # Safety
    /// As [`MPI_Datatype::sink`].
    ///
    /// # Errors
    /// As there.
    pub unsafe fn output(self, buf: *mut c_void, count: i64) -> Outcome<Output> {
        Ok(match self.dense(buf, count)? {
            Some((at, len)) => {
                // SAFETY: the caller's promise.
                let memory = unsafe { RecvRegion::new(at.cast_mut(), len) };
                Output::new(memory, 0, Elements::Plain { size: self.dense_size().unwrap_or(1) })
            }
            None => {
                let Extent { at, len, origin, datatype } = self.extent(buf, count)?;
                // SAFETY: as above.
                let memory = unsafe { RecvRegion::new(at.cast_mut(), len) };
                Output::new(memory, origin, Elements::Typed(Datatype::clone(&datatype)))
            }
        })
    }

    /// Returns the length in bytes of elements of a predefined datatype without padding, of which there is at least one;
    /// `None` for others, and for those of which no message can consist.
    #[inline(always)]
    pub fn plain_len(self, buf: *const c_void, count: i64) -> Option<usize> {
        if count <= 0 || buf.is_null() {
            return None;
        }
        self.dense_size()?.checked_mul(count as usize)
    }

    /// Returns address and length of elements of a predefined datatype without padding; `None` for other datatypes.
    #[inline(always)]
    fn dense(self, buf: *const c_void, count: i64) -> Outcome<Option<(*const u8, usize)>> {
        let Some(size) = self.dense_size() else { return Ok(None) };
        let len = usize::try_from(count).ok().and_then(|count| count.checked_mul(size));
        match len {
            Some(len) if len == 0 || !buf.is_null() => Ok(Some((buf.cast(), len))),
            Some(_) => Err(null_buffer()),
            None => Err(bad_count(count)),
        }
    }

    /// Returns the datatype of a buffer: of one without elements also for MPI_DATATYPE_NULL.
    pub fn of_elements(self, are_some: bool) -> Self {
        if self == MPI_DATATYPE_NULL && !are_some { MPI_BYTE } else { self }
    }

    /// Returns the memory from the first to the last byte of elements of any datatype.
    #[inline(never)]
    fn extent(self, buf: *const c_void, count: i64) -> Outcome<Extent> {
        let datatype = self.of_elements(count != 0).committed()?;
        if count < 0 {
            return Err(bad_count(count));
        }
        let (low, high) = datatype.layout(count)?.bounds();
        // The datatypes of MPI_BOTTOM have absolute addresses; the first ones, and those that are negative numbers,
        // belong to no program.
        if buf.is_null() && low != high && low < LOWEST_ADDRESS {
            return Err(null_buffer());
        }
        let at = ptr::with_exposed_provenance(buf.addr().wrapping_add_signed(low));
        Ok(Extent { at, len: high.abs_diff(low), origin: -low, datatype })
    }
}

/// Systems map no memory below this address.
const LOWEST_ADDRESS: isize = 1 << 16;

/// Memory that contains elements: its first byte, its length, and where the elements begin in it.
struct Extent {
    at: *const u8,
    len: usize,
    origin: isize,
    datatype: Found,
}

#[cold]
fn null_buffer() -> Fault {
    Fault::argument(MPI_ERR_BUFFER, "buf", "the buffer is null, and the count is not 0")
}

#[cold]
fn bad_count(count: i64) -> Fault {
    match count {
        ..0 => negative_count("count", count),
        _ => Fault::argument(MPI_ERR_COUNT, "count", format!("{count} elements exceed the memory")),
    }
}

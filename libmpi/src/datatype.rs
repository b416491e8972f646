//! Datatypes (MPI-4.1 chapter 5): their handles, and the memory that a buffer of elements means.

use std::ffi::c_void;
use std::ops::Deref;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use mpicore::datatype::{Basic, Datatype};
use mpicore::op::ElementKind;
use mpicore::{Elements, Input, Output};
use mpjdev::{RecvRegion, SendRegion, Sink, Source};

use crate::abi::*;
use crate::call::{Fault, Outcome, mpi, negative_count, out};
use crate::handles::{Held, OBJECTS};

/// A datatype that a program has made.
pub(crate) struct Derived {
    /// What it means.
    pub core: Datatype,
    /// Whether MPI_Type_commit was called.
    committed: AtomicBool,
}

impl Derived {
    /// Keeps a new datatype and returns its handle. It must be committed before communication.
    pub fn keep(core: Datatype) -> Outcome<MPI_Datatype> {
        Self::insert(core, false)
    }

    fn insert(core: Datatype, committed: bool) -> Outcome<MPI_Datatype> {
        let committed = AtomicBool::new(committed);
        Ok(MPI_Datatype(OBJECTS.insert(Self { core, committed })?))
    }
}

/// A datatype that a call uses.
pub(crate) enum Found {
    /// One that MPI defines.
    Predefined(&'static Datatype),
    /// One that a program has made.
    Derived(Held<'static, Derived>),
}

impl Deref for Found {
    type Target = Datatype;

    fn deref(&self) -> &Datatype {
        match self {
            Self::Predefined(core) => core,
            Self::Derived(derived) => &derived.core,
        }
    }
}

/// The handles of predefined datatypes lie between these two numbers; see the standard's table of their bits.
const FIRST: usize = MPI_DATATYPE_NULL.0;
const PREDEFINED: usize = 0x100;

/// The size of each predefined datatype whose elements have no padding, by the low bits of the handle; 0 for all others.
/// So a message of such elements needs no look at a datatype.
static DENSE: [u8; PREDEFINED] = {
    let mut sizes = [0; PREDEFINED];
    let mut low = 0;
    while low < PREDEFINED {
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

/// Returns what a predefined datatype means. `None` for other handles, and for the optional types of Fortran that no
/// element kind exists for: they are MPI_DATATYPE_NULL's equals.
const fn basic(datatype: MPI_Datatype) -> Option<Basic> {
    use ElementKind as Kind;
    let kind = match datatype {
        MPI_LONG => return Some(Basic::Long),
        MPI_UNSIGNED_LONG => return Some(Basic::UnsignedLong),
        MPI_CHAR | MPI_CHARACTER => return Some(Basic::Char),
        MPI_WCHAR => return Some(Basic::WideChar),
        MPI_PACKED => return Some(Basic::Packed),
        MPI_AINT | MPI_COUNT | MPI_OFFSET | MPI_LONG_LONG | MPI_INT64_T | MPI_INTEGER8 => Kind::I64,
        MPI_SHORT | MPI_INT16_T | MPI_INTEGER2 => Kind::I16,
        MPI_INT | MPI_INT32_T | MPI_INTEGER | MPI_INTEGER4 => Kind::I32,
        MPI_SIGNED_CHAR | MPI_INT8_T | MPI_INTEGER1 => Kind::I8,
        MPI_INTEGER16 => Kind::I128,
        MPI_UNSIGNED_CHAR | MPI_UINT8_T => Kind::U8,
        MPI_UNSIGNED_SHORT | MPI_UINT16_T => Kind::U16,
        MPI_UNSIGNED | MPI_UINT32_T => Kind::U32,
        MPI_UNSIGNED_LONG_LONG | MPI_UINT64_T => Kind::U64,
        MPI_FLOAT | MPI_REAL | MPI_REAL4 => Kind::F32,
        MPI_DOUBLE | MPI_DOUBLE_PRECISION | MPI_REAL8 => Kind::F64,
        MPI_LONG_DOUBLE => Kind::LongDouble,
        MPI_C_FLOAT_COMPLEX | MPI_CXX_FLOAT_COMPLEX | MPI_COMPLEX | MPI_COMPLEX8 => {
            Kind::ComplexF32
        }
        MPI_C_DOUBLE_COMPLEX | MPI_CXX_DOUBLE_COMPLEX | MPI_DOUBLE_COMPLEX | MPI_COMPLEX16 => {
            Kind::ComplexF64
        }
        MPI_C_LONG_DOUBLE_COMPLEX | MPI_CXX_LONG_DOUBLE_COMPLEX => Kind::ComplexLongDouble,
        MPI_C_BOOL | MPI_CXX_BOOL | MPI_LOGICAL1 => Kind::Bool,
        MPI_LOGICAL2 => Kind::Logical2,
        MPI_LOGICAL | MPI_LOGICAL4 => Kind::Logical4,
        MPI_LOGICAL8 => Kind::Logical8,
        MPI_BYTE => Kind::Byte,
        MPI_FLOAT_INT => Kind::FloatInt,
        MPI_DOUBLE_INT => Kind::DoubleInt,
        MPI_LONG_INT => Kind::LongInt,
        MPI_2INT | MPI_2INTEGER => Kind::TwoInt,
        MPI_SHORT_INT => Kind::ShortInt,
        MPI_LONG_DOUBLE_INT => Kind::LongDoubleInt,
        MPI_2REAL => Kind::TwoReal,
        MPI_2DOUBLE_PRECISION => Kind::TwoDoublePrecision,
        _ => return None,
    };
    Some(Basic::Element(kind))
}

impl MPI_Datatype {
    /// Returns the kind of element that predefined operations work on.
    pub fn kind(self) -> Option<ElementKind> {
        basic(self).and_then(Basic::kind)
    }

    /// Returns the size of a predefined datatype without padding.
    #[inline(always)]
    fn dense_size(self) -> Option<usize> {
        let size = *DENSE.get(self.0.wrapping_sub(FIRST))?;
        (size != 0).then_some(size as usize)
    }

    /// Finds the datatype.
    ///
    /// # Errors
    /// MPI_ERR_TYPE.
    pub fn find(self) -> Outcome<Found> {
        static MADE: [OnceLock<Datatype>; PREDEFINED] = [const { OnceLock::new() }; PREDEFINED];
        let Some(place) = MADE.get(self.0.wrapping_sub(FIRST)) else {
            let held = OBJECTS.hold(self.0).map_err(|fault| fault.about("datatype"))?;
            return Ok(Found::Derived(held));
        };
        match basic(self) {
            Some(basic) => Ok(Found::Predefined(place.get_or_init(|| Datatype::predefined(basic)))),
            None => Err(Fault::argument(MPI_ERR_TYPE, "datatype", "the handle names no datatype")),
        }
    }

    /// Finds the datatype for a call that moves data.
    ///
    /// # Errors
    /// MPI_ERR_TYPE, also if it was not committed.
    pub fn committed(self) -> Outcome<Found> {
        match self.find()? {
            Found::Derived(derived) if !derived.committed.load(Ordering::Relaxed) => {
                let text = "the datatype was not committed; call MPI_Type_commit";
                Err(Fault::argument(MPI_ERR_TYPE, "datatype", text))
            }
            found => Ok(found),
        }
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

    /// Returns the memory from the first to the last byte of elements of any datatype.
    #[inline(never)]
    fn extent(self, buf: *const c_void, count: i64) -> Outcome<Extent> {
        let datatype = self.committed()?;
        if count < 0 {
            return Err(bad_count(count));
        }
        let (low, high) = datatype.layout(count)?.bounds();
        // The datatypes of MPI_BOTTOM have absolute addresses, far above the first page of memory.
        if buf.is_null() && low != high && low.unsigned_abs() < 4096 {
            return Err(null_buffer());
        }
        let at = ptr::with_exposed_provenance(buf.addr().wrapping_add_signed(low));
        Ok(Extent { at, len: high.abs_diff(low), origin: -low, datatype })
    }
}

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

mpi! {
    fn MPI_Type_contiguous(count: c_int, oldtype: MPI_Datatype, newtype: *mut MPI_Datatype) -> c_int {
        let made = Datatype::contiguous(count.into(), &*oldtype.find()?)?;
        out::write(newtype, "newtype", Derived::keep(made)?)
    }

    fn MPI_Type_contiguous_c(count: MPI_Count, oldtype: MPI_Datatype, newtype: *mut MPI_Datatype) -> c_int {
        let made = Datatype::contiguous(count, &*oldtype.find()?)?.with_large_counts();
        out::write(newtype, "newtype", Derived::keep(made)?)
    }

    fn MPI_Type_vector(
        count: c_int, blocklength: c_int, stride: c_int, oldtype: MPI_Datatype, newtype: *mut MPI_Datatype
    ) -> c_int {
        let old = oldtype.find()?;
        let made = Datatype::vector(count.into(), blocklength.into(), stride.into(), &old)?;
        out::write(newtype, "newtype", Derived::keep(made)?)
    }

    fn MPI_Type_commit(datatype: *mut MPI_Datatype) -> c_int {
        let place = datatype.as_ref().ok_or_else(|| out::null("datatype"))?;
        if let Found::Derived(derived) = place.find()? {
            derived.committed.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    fn MPI_Type_free(datatype: *mut MPI_Datatype) -> c_int {
        let place = datatype.as_mut().ok_or_else(|| out::null("datatype"))?;
        if let Found::Predefined(_) = place.find()? {
            return Err(Fault::argument(MPI_ERR_TYPE, "datatype", "a predefined datatype cannot be freed"));
        }
        OBJECTS.free::<Derived>(place.0)?;
        *place = MPI_DATATYPE_NULL;
        Ok(())
    }

    fn MPI_Type_size(datatype: MPI_Datatype, size: *mut c_int) -> c_int {
        let bytes = datatype.find()?.size();
        out::write(size, "size", c_int::try_from(bytes).unwrap_or(MPI_UNDEFINED))
    }
}

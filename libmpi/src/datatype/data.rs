//! The data of a message (MPI-5.0 section 3.2.2): a buffer, the number of its elements and their datatype. Functions take
//! the three as one value, [`Data`], and make of it what the layers below take, once, when it has been checked.

use std::ffi::c_void;
use std::ptr;

use mpicore::datatype::Datatype;
use mpicore::{Elements, Input, Output};
use mpjdev::{RecvRegion, SendRegion, Sink, Source};

use super::Found;
use crate::abi::*;
use crate::call::{Fault, Outcome, negative_count};
use crate::process;

/// Systems map no memory below this address.
const LOWEST_ADDRESS: isize = 1 << 16;

/// The data of a message as a program gives them. Nothing of them is checked: where a call does not use them, they may
/// be anything.
#[derive(Clone, Copy)]
pub(crate) struct Data {
    pub buffer: *const c_void,
    pub count: i64,
    pub datatype: MPI_Datatype,
}

impl Data {
    /// Puts the arguments of a function together.
    #[inline(always)]
    pub fn new(buffer: *const c_void, count: impl Into<i64>, datatype: MPI_Datatype) -> Self {
        Self { buffer, count: count.into(), datatype }
    }

    /// Returns the elements if they are of a predefined datatype without padding. This costs next to nothing; for other
    /// datatypes see [`Data::source`].
    ///
    /// # Safety
    /// FC1: the elements stay as they are until the operation has ended.
    ///
    /// # Errors
    /// MPI_ERR_COUNT, MPI_ERR_BUFFER.
    #[inline(always)]
    pub unsafe fn dense_source(self) -> Outcome<Option<SendRegion>> {
        let Some((at, len)) = self.dense()? else { return Ok(None) };
        // SAFETY: the caller's promise.
        Ok(Some(unsafe { SendRegion::new(at, len) }))
    }

    /// Returns the place for elements if they are of a predefined datatype without padding.
    ///
    /// # Safety
    /// FC1: nobody else uses the elements until the operation has ended.
    ///
    /// # Errors
    /// As [`Data::dense_source`].
    #[inline(always)]
    pub unsafe fn dense_sink(self) -> Outcome<Option<RecvRegion>> {
        let Some((at, len)) = self.dense()? else { return Ok(None) };
        // SAFETY: the caller's promise.
        Ok(Some(unsafe { RecvRegion::new(at.cast_mut(), len) }))
    }

    /// Returns the elements, of any datatype.
    ///
    /// # Safety
    /// As [`Data::dense_source`].
    ///
    /// # Errors
    /// MPI_ERR_COUNT, MPI_ERR_TYPE, MPI_ERR_BUFFER.
    #[inline(never)]
    pub unsafe fn source(self) -> Outcome<Source> {
        // SAFETY: the caller's promise.
        if let Some(region) = unsafe { self.dense_source() }? {
            return Ok(region.into());
        }
        let (Extent { at, len, origin }, datatype) = self.extent()?;
        // SAFETY: as above.
        let memory = unsafe { SendRegion::new(at, len) };
        Ok(datatype.layout(self.count)?.to_send(memory, origin)?)
    }

    /// Returns the place for elements of any datatype.
    ///
    /// # Safety
    /// As [`Data::dense_sink`].
    ///
    /// # Errors
    /// As [`Data::source`].
    #[inline(never)]
    pub unsafe fn sink(self) -> Outcome<Sink> {
        // SAFETY: the caller's promise.
        if let Some(region) = unsafe { self.dense_sink() }? {
            return Ok(region.into());
        }
        let (Extent { at, len, origin }, datatype) = self.extent()?;
        // SAFETY: as above.
        let memory = unsafe { RecvRegion::new(at.cast_mut(), len) };
        Ok(datatype.layout(self.count)?.to_receive(memory, origin)?)
    }

    /// Returns the elements for an operation that divides or repeats them, and their number.
    ///
    /// # Safety
    /// As [`Data::source`].
    ///
    /// # Errors
    /// As [`Data::source`].
    #[inline]
    pub unsafe fn input(self) -> Outcome<(Input, u64)> {
        let (extent, elements) = self.elements()?;
        // SAFETY: the caller's promise.
        Ok((unsafe { extent.input(elements) }, self.count as u64))
    }

    /// Returns the place for elements of an operation that divides or repeats them, and their number.
    ///
    /// # Safety
    /// As [`Data::sink`].
    ///
    /// # Errors
    /// As [`Data::source`].
    #[inline]
    pub unsafe fn output(self) -> Outcome<(Output, u64)> {
        let (extent, elements) = self.elements()?;
        // SAFETY: the caller's promise.
        Ok((unsafe { extent.output(elements) }, self.count as u64))
    }

    /// Returns the length in bytes of elements of a predefined datatype without padding, of which there is at least one;
    /// `None` for others, and for those of which no message can consist.
    #[inline(always)]
    pub fn plain_len(self) -> Option<usize> {
        if self.count <= 0 || self.buffer.is_null() {
            return None;
        }
        self.datatype.dense_size()?.checked_mul(self.count as usize)
    }

    /// Returns the memory of the elements, and how they lie there, for an operation that divides or repeats them. Where
    /// mistakes between ranks are found, they keep their datatype.
    ///
    /// # Errors
    /// As [`Data::source`].
    pub fn elements(self) -> Outcome<(Extent, Elements)> {
        check_given(self.buffer)?;
        match self.dense()? {
            Some((at, len)) if process::needed()?.device.is_checked() => {
                let datatype = Datatype::clone(&*self.datatype.find()?);
                Ok((Extent { at, len, origin: 0 }, Elements::Typed(datatype)))
            }
            Some((at, len)) => {
                let size = self.datatype.dense_size().unwrap_or(1);
                Ok((Extent { at, len, origin: 0 }, Elements::Plain { size }))
            }
            None => {
                let (extent, datatype) = self.extent()?;
                Ok((extent, Elements::Typed(Datatype::clone(&datatype))))
            }
        }
    }

    /// Returns address and length of elements of a predefined datatype without padding; `None` for other datatypes.
    #[inline(always)]
    fn dense(self) -> Outcome<Option<(*const u8, usize)>> {
        let Some(size) = self.datatype.dense_size() else { return Ok(None) };
        let len = usize::try_from(self.count).ok().and_then(|count| count.checked_mul(size));
        match len {
            Some(len) if len == 0 || !self.buffer.is_null() => Ok(Some((self.buffer.cast(), len))),
            Some(_) => Err(null_buffer()),
            None => Err(bad_count(self.count)),
        }
    }

    /// Returns the memory of elements of any datatype, which is checked.
    #[inline(never)]
    fn extent(self) -> Outcome<(Extent, Found)> {
        let datatype = self.datatype.of_elements(self.count != 0).committed()?;
        if self.count < 0 {
            return Err(bad_count(self.count));
        }
        let (low, high) = datatype.layout(self.count)?.bounds();
        // The datatypes of MPI_BOTTOM have absolute addresses; the first ones, and those that are negative numbers,
        // belong to no program.
        if self.buffer.is_null() && low != high && low < LOWEST_ADDRESS {
            return Err(null_buffer());
        }
        Ok((Extent::of(self.buffer, low, high.abs_diff(low)), datatype))
    }
}

/// The memory from the first to the last byte of elements: its address, its length, and where in it the buffer of the
/// elements begins.
pub(crate) struct Extent {
    at: *const u8,
    len: usize,
    origin: isize,
}

impl Extent {
    /// Returns the memory of `len` bytes that begins `low` bytes behind the address of a buffer.
    pub fn of(buffer: *const c_void, low: isize, len: usize) -> Self {
        let at = ptr::with_exposed_provenance(buffer.addr().wrapping_add_signed(low));
        Self { at, len, origin: -low }
    }

    /// Returns the elements there.
    ///
    /// # Safety
    /// As [`Data::dense_source`]. Between the elements, nothing is read.
    pub unsafe fn input(self, elements: Elements) -> Input {
        // SAFETY: the caller's promise.
        Input::new(unsafe { SendRegion::new(self.at, self.len) }, self.origin, elements)
    }

    /// Returns the place for elements there.
    ///
    /// # Safety
    /// As [`Data::dense_sink`]. Between the elements, nothing is written.
    pub unsafe fn output(self, elements: Elements) -> Output {
        // SAFETY: the caller's promise.
        Output::new(unsafe { RecvRegion::new(self.at.cast_mut(), self.len) }, self.origin, elements)
    }
}

/// Returns whether a buffer argument is MPI_IN_PLACE.
#[inline]
pub(crate) fn is_in_place(buffer: *const c_void) -> bool {
    buffer.addr() == MPI_IN_PLACE
}

/// Refuses MPI_IN_PLACE where a buffer is needed.
///
/// # Errors
/// MPI_ERR_BUFFER.
#[inline]
pub(crate) fn check_given(buffer: *const c_void) -> Outcome {
    if is_in_place(buffer) {
        let text = "MPI_IN_PLACE is not allowed here";
        return Err(Fault::argument(MPI_ERR_BUFFER, "buf", text));
    }
    Ok(())
}

#[cold]
pub(super) fn null_buffer() -> Fault {
    Fault::argument(MPI_ERR_BUFFER, "buf", "the buffer is null, and the count is not 0")
}

#[cold]
fn bad_count(count: i64) -> Fault {
    match count {
        ..0 => negative_count("count", count),
        _ => Fault::argument(MPI_ERR_COUNT, "count", format!("{count} elements exceed the memory")),
    }
}

//! `MPI_Status`, and the calls that read and set it (MPI-4.1 sections 3.2.5, 3.2.6, 5.1.11).

use std::ffi::c_int;

use crate::abi::{
    MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_Datatype, MPI_ERR_ARG, MPI_PROC_NULL, MPI_SUCCESS, MPI_Status,
    MPI_UNDEFINED,
};
use crate::call::{Fault, Outcome, mpi_anytime, mpi_bodies, negative_count, out};
use crate::datatype::Number;

impl MPI_Status {
    /// The status of an operation that moved nothing: a request that is null or inactive.
    pub const EMPTY: Self = Self::new(MPI_ANY_SOURCE, MPI_ANY_TAG, 0);
    /// The status of a receive from MPI_PROC_NULL.
    pub const NOBODY: Self = Self::new(MPI_PROC_NULL, MPI_ANY_TAG, 0);
    /// The status of an operation that was cancelled.
    pub const CANCELLED: Self = {
        let mut status = Self::EMPTY;
        status.set_cancelled(true);
        status
    };

    /// Makes the status of a message of `bytes` bytes.
    #[inline(always)]
    pub const fn new(source: c_int, tag: c_int, bytes: u64) -> Self {
        let mut status =
            Self { MPI_SOURCE: source, MPI_TAG: tag, MPI_ERROR: MPI_SUCCESS, MPI_internal: [0; 5] };
        status.set_bytes(bytes);
        status
    }

    /// Returns the number of bytes.
    pub const fn bytes(&self) -> u64 {
        self.MPI_internal[0] as u32 as u64 | (self.MPI_internal[1] as u32 as u64) << 32
    }

    /// Sets the number of bytes.
    pub const fn set_bytes(&mut self, bytes: u64) {
        self.MPI_internal[0] = bytes as u32 as c_int;
        self.MPI_internal[1] = (bytes >> 32) as u32 as c_int;
    }

    /// Returns whether the operation was cancelled.
    pub const fn is_cancelled(&self) -> bool {
        self.MPI_internal[2] != 0
    }

    /// Sets whether the operation was cancelled.
    pub const fn set_cancelled(&mut self, cancelled: bool) {
        self.MPI_internal[2] = cancelled as c_int;
    }

    /// Writes the status of a request that is null or inactive. Its error code is MPI_SUCCESS (MPI-4.1 section 3.7.3).
    ///
    /// # Safety
    /// As [`MPI_Status::store`].
    pub unsafe fn store_empty(place: *mut Self) {
        if !place.is_null() {
            // SAFETY: the caller's promise.
            unsafe { place.write(Self::EMPTY) };
        }
    }

    /// Writes the status, except the error code, to a place that the program gave, unless that is
    /// MPI_STATUS_IGNORE.
    ///
    /// # Safety
    /// The place is null, or a status that the caller may write (FC1).
    #[inline(always)]
    pub unsafe fn store(self, place: *mut Self) {
        if !place.is_null() {
            // SAFETY: the caller's promise. The error code is not part of a single completion.
            unsafe {
                (*place).MPI_SOURCE = self.MPI_SOURCE;
                (*place).MPI_TAG = self.MPI_TAG;
                (*place).MPI_internal = self.MPI_internal;
            }
        }
    }
}

/// Returns the status that a program gives.
unsafe fn given<'a>(status: *const MPI_Status) -> Outcome<&'a MPI_Status> {
    // SAFETY: FC1.
    unsafe { status.as_ref() }.ok_or_else(|| out::null("status"))
}

/// Writes a number of elements, which is MPI_UNDEFINED if there is none or if it does not fit.
unsafe fn write_count(count: *mut impl Number, number: Option<u64>) -> Outcome {
    let number = number.and_then(|number| i64::try_from(number).ok());
    // SAFETY: FC1.
    unsafe { out::write(count, "count", Number::narrowed(number.unwrap_or(MPI_UNDEFINED.into()))) }
}

/// MPI_Get_count.
unsafe fn get_count(
    status: *const MPI_Status,
    datatype: MPI_Datatype,
    count: *mut impl Number,
) -> Outcome {
    // SAFETY: FC1.
    unsafe { write_count(count, datatype.find()?.count_in(given(status)?.bytes())) }
}

/// MPI_Get_elements.
unsafe fn get_elements(
    status: *const MPI_Status,
    datatype: MPI_Datatype,
    count: *mut impl Number,
) -> Outcome {
    // SAFETY: FC1.
    unsafe { write_count(count, datatype.find()?.elements_in(given(status)?.bytes())) }
}

/// MPI_Status_set_elements.
unsafe fn set_elements(
    status: *mut MPI_Status,
    datatype: MPI_Datatype,
    count: impl Into<i64>,
) -> Outcome {
    // SAFETY: FC1.
    let status = unsafe { out::place(status, "status") }?;
    let (datatype, count) = (datatype.find()?, count.into());
    let number = u64::try_from(count).map_err(|_| negative_count("count", count))?;
    let bytes = datatype.bytes_of(number).ok_or_else(|| {
        let text = format!("there are no {count} basic elements in elements of {}", *datatype);
        Fault::argument(MPI_ERR_ARG, "count", text)
    })?;
    status.set_bytes(bytes);
    Ok(())
}

mpi_bodies! {
    MPI_Get_count, MPI_Get_count_c => get_count();
    MPI_Get_elements, MPI_Get_elements_c, MPI_Get_elements_x => get_elements();
    MPI_Status_set_elements, MPI_Status_set_elements_c, MPI_Status_set_elements_x => set_elements();
}

mpi_anytime! {
    fn MPI_Test_cancelled(status: *const MPI_Status, flag: *mut c_int) -> c_int {
        out::write(flag, "flag", given(status)?.is_cancelled().into())
    }

    fn MPI_Status_set_cancelled(status: *mut MPI_Status, flag: c_int) -> c_int {
        out::place(status, "status")?.set_cancelled(flag != 0);
        Ok(())
    }

    fn MPI_Status_get_source(status: *const MPI_Status, source: *mut c_int) -> c_int {
        out::write(source, "source", given(status)?.MPI_SOURCE)
    }

    fn MPI_Status_set_source(status: *mut MPI_Status, source: c_int) -> c_int {
        out::place(status, "status")?.MPI_SOURCE = source;
        Ok(())
    }

    fn MPI_Status_get_tag(status: *const MPI_Status, tag: *mut c_int) -> c_int {
        out::write(tag, "tag", given(status)?.MPI_TAG)
    }

    fn MPI_Status_set_tag(status: *mut MPI_Status, tag: c_int) -> c_int {
        out::place(status, "status")?.MPI_TAG = tag;
        Ok(())
    }

    fn MPI_Status_get_error(status: *const MPI_Status, error: *mut c_int) -> c_int {
        out::write(error, "error", given(status)?.MPI_ERROR)
    }

    fn MPI_Status_set_error(status: *mut MPI_Status, error: c_int) -> c_int {
        out::place(status, "status")?.MPI_ERROR = error;
        Ok(())
    }
}

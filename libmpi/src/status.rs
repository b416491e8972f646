//! `MPI_Status`, and the calls that read and set it (MPI-4.1 sections 3.2.5, 3.2.6, 5.1.11).

use std::ffi::{c_int, c_short};

use crate::abi::{MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_PROC_NULL, MPI_SUCCESS, MPI_UNDEFINED};
use crate::call::{Outcome, mpi_anytime, out};

/// The status of an operation, as programs see it.
#[expect(non_snake_case, reason = "C's names")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct MPI_Status {
    /// Rank of the sender in the communicator.
    pub MPI_SOURCE: c_int,
    /// Tag of the message.
    pub MPI_TAG: c_int,
    /// Error code, which only calls that end several operations set.
    pub MPI_ERROR: c_int,
    /// The number of bytes in two words, and whether the operation was cancelled.
    pub MPI_internal: [c_int; 5],
}

const _: () = assert!(size_of::<MPI_Status>() == 32);

impl MPI_Status {
    /// The status of an operation that moved nothing: a request that is null or inactive.
    pub const EMPTY: Self = Self::new(MPI_ANY_SOURCE, MPI_ANY_TAG, 0);
    /// The status of a receive from MPI_PROC_NULL.
    pub const NOBODY: Self = Self::new(MPI_PROC_NULL, MPI_ANY_TAG, 0);

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

/// Returns how many elements of a datatype a status counts, as a number of this type; MPI_UNDEFINED if they are no
/// whole number, or do not fit.
unsafe fn count<N: TryFrom<u64> + From<c_short>>(
    status: *const MPI_Status,
    datatype: crate::abi::MPI_Datatype,
    count: *mut N,
) -> Outcome {
    let size = datatype.find()?.size() as u64;
    // SAFETY: FC1; the program gives a status.
    let bytes = unsafe { status.as_ref() }.ok_or_else(|| out::null("status"))?.bytes();
    let whole = match bytes.checked_rem(size) {
        Some(0) => N::try_from(bytes / size).ok(),
        None if bytes == 0 => N::try_from(0).ok(),
        _ => None,
    };
    // SAFETY: FC1.
    unsafe { out::write(count, "count", whole.unwrap_or_else(|| N::from(UNDEFINED))) }
}

/// MPI_UNDEFINED in a type from which all counts can be made.
const UNDEFINED: c_short = MPI_UNDEFINED as c_short;

mpi_anytime! {
    fn MPI_Get_count(status: *const MPI_Status, datatype: MPI_Datatype, count: *mut c_int) -> c_int {
        self::count(status, datatype, count)
    }

    fn MPI_Get_count_c(status: *const MPI_Status, datatype: MPI_Datatype, count: *mut MPI_Count) -> c_int {
        self::count(status, datatype, count)
    }

    fn MPI_Test_cancelled(status: *const MPI_Status, flag: *mut c_int) -> c_int {
        let status = status.as_ref().ok_or_else(|| out::null("status"))?;
        out::write(flag, "flag", status.is_cancelled().into())
    }
}

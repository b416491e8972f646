//! The types and constants of the binary interface, generated from its table.

#![allow(dead_code, missing_docs, reason = "the table has all of them")]

use std::ffi::{c_int, c_void};

/// Information on a received message. Its layout is that of libmpi.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct MPI_Status {
    pub MPI_SOURCE: c_int,
    pub MPI_TAG: c_int,
    pub MPI_ERROR: c_int,
    /// The number of bytes in two words, and whether the operation was cancelled.
    pub MPI_internal: [c_int; 5],
}

impl MPI_Status {
    pub const EMPTY: Self = Self {
        MPI_SOURCE: MPI_ANY_SOURCE,
        MPI_TAG: MPI_ANY_TAG,
        MPI_ERROR: 0,
        MPI_internal: [0; 5],
    };

    /// Returns the number of bytes.
    pub fn bytes(&self) -> u64 {
        let [low, high, ..] = self.MPI_internal;
        u64::from(low as u32) | u64::from(high as u32) << 32
    }

    /// Returns whether the operation was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.MPI_internal[2] != 0
    }
}

/// Whether a buffer is MPI_IN_PLACE.
pub fn is_in_place(buffer: *const c_void) -> bool {
    buffer.addr() == 1
}

include!(concat!(env!("OUT_DIR"), "/abi.rs"));

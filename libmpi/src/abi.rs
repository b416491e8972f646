//! The binary interface: types, constants and the types of functions, generated from `libmpi/abi.tsv` by the build
//! script. `MPI_Status`, the only structure, stands here.

#![allow(
    non_camel_case_types,
    dead_code,
    unused_macros,
    reason = "C's names; not all of them are used yet"
)]

use std::ffi::{c_char, c_int, c_void};

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

/// What a tool's callback may do; an enumeration in C.
pub type MPI_T_cb_safety = c_int;
/// Whether the events of a source come in order; an enumeration in C.
pub type MPI_T_source_order = c_int;

include!(concat!(env!("OUT_DIR"), "/abi.rs"));

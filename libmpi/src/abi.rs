//! The binary interface: types, constants and the types of functions, generated from `libmpi/abi.tsv` by the build
//! script. `MPI_Status`, the only structure, stands in `request/status.rs`.

#![allow(
    non_camel_case_types,
    dead_code,
    unused_macros,
    reason = "C's names; not all of them are used yet"
)]

use std::ffi::{c_char, c_int, c_void};

pub use crate::request::status::MPI_Status;

/// What a tool's callback may do; an enumeration in C.
pub type MPI_T_cb_safety = c_int;
/// Whether the events of a source come in order; an enumeration in C.
pub type MPI_T_source_order = c_int;

include!(concat!(env!("OUT_DIR"), "/abi.rs"));

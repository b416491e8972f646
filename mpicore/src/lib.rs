//! What MPI means, without Rust types and without C handles.
//!
//! The faces of the project (the typed one for Rust, the one for C) translate their callers' words
//! into those of this crate and hold no algorithms of their own. This crate speaks MPI's words (rank,
//! group, datatype, operation) and works on bytes: a face says which kind of elements they are. Job ranks
//! are the ranks of the device below.

#![deny(unsafe_code)]

pub mod collective;
pub mod datatype;
mod error_class;
pub mod group;
pub mod op;
pub mod topology;

pub use error_class::ErrorClass;

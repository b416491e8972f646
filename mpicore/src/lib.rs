//! MPI's concepts, independent of Rust's types and of C's handles: groups, communicators, topologies, datatypes,
//! operations, collectives.
//!
//! The interfaces for users (`mpj` for Rust) translate their callers' types into those of this crate, and contain no
//! algorithms of their own. This crate works on bytes; its caller states the kind of the elements. *Job ranks* are the
//! ranks of the device below.

pub mod collective;
mod communicator;
mod context_ids;
pub mod datatype;
mod error;
mod error_class;
pub mod group;
pub mod job;
mod memory;
pub mod op;
mod plan;
mod process;
pub mod topology;

pub use communicator::{
    Cause, Communicator, Creating, ErrorHandler, Key, OtherGroup, Relation, Sent, SplitKey,
    UserHandler, Value,
};
pub use error::Error;
pub use error_class::ErrorClass;
pub use memory::{Elements, Input, Operand, Output, Reduction, TypedBlock};
pub use plan::{Persistent, Plan, Steps};
pub use process::{Host, Hosting, Process};

//! MPI's concepts, independent of Rust's types and of C's handles: groups, communicators, topologies, datatypes,
//! operations, collectives.
//!
//! The interfaces for users (`mpj` for Rust) translate their callers' types into those of this crate, and contain no
//! algorithms of their own. This crate works on bytes; its caller states the kind of the elements. *Job ranks* are the
//! ranks of the device below.
//!
//! The rooms, from the top down; `ARCHITECTURE.md` has the table of which one may use which:
//!
//! - `calls.rs`: the collective calls on communicators, also those that make communicators.
//! - `point_to_point.rs`: exchanges, persistent and partitioned messages. `generalized.rs`: requests that the program
//!   completes.
//! - `plan.rs`: how a collective call runs, at once or step by step.
//! - `communicator.rs`: communicators, their attributes, error handlers and buffered sends.
//! - `process.rs`: what the communicators of a rank share. `attribute.rs`: attributes of any object.
//! - `memory.rs`: the buffers of a collective call.
//! - `error.rs`, `error_class.rs`: errors, and MPI's classes of them. `info.rs`: hints.
//! - Pure, and without the device: `collective.rs` (algorithms, as schedules), `datatype.rs`, `group.rs`, `op.rs`,
//!   `topology.rs`.

mod attribute;
mod calls;
pub mod collective;
mod communicator;
pub mod datatype;
mod error;
mod error_class;
mod generalized;
pub mod group;
mod info;
mod memory;
pub mod op;
mod plan;
mod point_to_point;
mod process;
pub mod topology;

pub use attribute::{Attributes, Cause, Key, Value, WeakKey};
pub use calls::{Created, Creating, RemoteLeader, Sent, SplitKey};
pub use communicator::{Communicator, ErrorHandler, Relation, UserHandler};
pub use error::Error;
pub use error::code::{CodeError, ErrorCodes};
pub use error_class::ErrorClass;
pub use generalized::{GeneralizedCallbacks, GeneralizedRequest};
pub use info::{Info, InfoError, Start};
pub use memory::{Elements, Input, Operand, Output, Plain, Reduction, TypedBlock};
pub use plan::{Persistent, Plan, Steps};
pub use point_to_point::{
    PROC_NULL, PartitionedReceive, PartitionedSend, PersistentTransfer, SendMode,
};
pub use process::{AttachedBuffer, Process, SendBuffer, job};

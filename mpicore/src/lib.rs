//! MPI's concepts, independent of Rust's types and of C's handles: groups, communicators, topologies, datatypes,
//! operations, collectives.
//!
//! The interfaces for users (`mpj` for Rust) translate their callers' types into those of this crate, and contain no
//! algorithms of their own. This crate works on bytes; its caller states the kind of the elements. *Job ranks* are the
//! ranks of the device below.

mod attribute;
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
pub use communicator::{
    Communicator, Created, Creating, ErrorHandler, Relation, RemoteLeader, Sent, SplitKey,
    UserHandler,
};
pub use error::Error;
pub use error::code::{CodeError, ErrorCodes};
pub use error_class::ErrorClass;
pub use generalized::{GeneralizedCallbacks, GeneralizedRequest};
pub use info::{Info, InfoError, Start};
pub use memory::{Elements, Input, Operand, Output, Plain, Reduction, TypedBlock};
pub use plan::{Persistent, Plan, Steps};
pub use point_to_point::{
    AttachedBuffer, PROC_NULL, PartitionedReceive, PartitionedSend, PersistentTransfer, SendBuffer,
    SendMode,
};
pub use process::{Process, job};

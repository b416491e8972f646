//! MPI's concepts, independent of Rust's types and of C's handles: groups, communicators, topologies, datatypes,
//! operations, collectives.
//!
//! The interfaces for users (`mpj` for Rust) translate their callers' types into those of this crate, and contain no
//! algorithms of their own. This crate works on bytes; its caller states the kind of the elements. *Job ranks* are the
//! ranks of the device below.

mod attribute;
mod buffered;
pub mod collective;
mod communicator;
mod context_ids;
pub mod datatype;
mod error;
mod error_class;
mod error_code;
mod exchange;
mod generalized;
pub mod group;
mod info;
pub mod job;
mod memory;
pub mod op;
mod partitioned;
mod plan;
mod process;
pub mod topology;
mod transfer;

pub use attribute::{Attributes, Cause, Key, Value, WeakKey};
pub use buffered::{AttachedBuffer, SendBuffer};
pub use communicator::{
    Communicator, Created, Creating, ErrorHandler, OtherGroup, Relation, Sent, SplitKey,
    UserHandler,
};
pub use error::Error;
pub use error_class::ErrorClass;
pub use error_code::{CodeError, ErrorCodes};
pub use generalized::{GeneralizedCallbacks, GeneralizedRequest};
pub use info::{Info, InfoError, Start};
pub use memory::{Elements, Input, Operand, Output, Plain, Reduction, TypedBlock};
pub use partitioned::{PartitionedReceive, PartitionedSend};
pub use plan::{Persistent, Plan, Steps};
pub use process::Process;
pub use transfer::{PROC_NULL, PersistentTransfer, SendMode};
